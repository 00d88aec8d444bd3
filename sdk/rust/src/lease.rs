//! Leases: named exclusive rights of the execution, apart from its entity.

use crate::Rejection;
use crate::timer::whole_ms;
use std::fmt;
use std::time::Duration;

/// In a component the resource itself; see [`Entity`](crate::Entity) for why it is no trait object there.
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub type Held = crate::wasm::HeldLease;
/// For hosts: a lease as an attempt holds it.
#[cfg(not(target_arch = "wasm32"))]
pub type Held = Box<dyn HostLease>;

/// One lease of an attempt, as [`Host`](crate::Host) is one entity of it. Each method is the function of the same
/// name in `wit/lease.wit` or `wit/fencing.wit`.
#[expect(missing_docs, reason = "the words of the contract are in wit/, said once")]
pub trait HostLease {
    fn name(&self) -> String;
    fn left_ms(&self) -> u64;
    fn extend(&self, ttl_ms: Option<u64>) -> Result<(), Rejection>;
    fn release(self: Box<Self>) -> Result<(), Rejection>;
    fn token(&self) -> u64;
    fn still_holds(&self) -> bool;
}

/// A lease that this execution holds: over all its steps and attempts, until it is [released](Lease::release) or
/// lost, or the execution ends. Dropping this value gives nothing back.
///
/// Made by [`Entity::lease`](crate::Entity::lease). Every accepted save, transition and extension renews all leases
/// of the execution. Once one is lost, whatever this attempt asks for is refused as `fenced`.
///
/// ```
/// # use interlock_sdk::{to, Done, Entity, Failure};
/// # fn copy(_token: u64) {}
/// # fn step(pool: &Entity) -> Result<Done, Failure> {
/// let disk = pool.lease("disk-7")?;
/// copy(disk.token()); // whoever receives it refuses an older one
/// let done = pool.transition(to("copied"))?;
/// # Ok(done)
/// # }
/// ```
#[must_use = "the execution holds it all the same; release it, or let it end with the execution"]
pub struct Lease(pub(crate) Held);

impl Lease {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// Time of the host's store left before it is over, unless it is renewed; none if it is lost.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        Duration::from_millis(self.0.left_ms())
    }

    /// Begins the time to live that the machine declares anew.
    ///
    /// # Errors
    /// Rejections: fenced, unavailable. It then ends when it would have ended.
    pub fn extend(&self) -> Result<(), Rejection> {
        self.0.extend(None)
    }

    /// The same for so long; part of a millisecond counts as a whole one.
    ///
    /// # Errors
    /// Rejections: fenced, limit, unavailable.
    pub fn extend_for(&self, ttl: Duration) -> Result<(), Rejection> {
        self.0.extend(Some(whole_ms(ttl)))
    }

    /// Gives it back before the execution ends.
    ///
    /// # Errors
    /// Rejections: fenced if it was held no longer; unavailable, and it then ends with the execution or by its time.
    pub fn release(self) -> Result<(), Rejection> {
        self.0.release()
    }

    /// The token of this grant, to carry outside: higher than that of any grant of this lease before, below 2^53.
    #[must_use]
    pub fn token(&self) -> u64 {
        self.0.token()
    }

    /// Whether it is still held under this grant. True is the answer of one moment: send the token along with
    /// whatever you do next.
    #[must_use]
    pub fn still_holds(&self) -> bool {
        self.0.still_holds()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.name()).finish()
    }
}
