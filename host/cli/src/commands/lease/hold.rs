//! Holding a lease: renewed in time, or known to be lost before somebody else can have it.
//!
//! All by this process's own monotonic clock. What an answer confirms is counted from before its request was
//! sent, so it ends here no later than at the host. Where nobody says whether a renewal was written, it was not.

use super::{Grant, Terms, mint, request};
use crate::client::Client;
use crate::failed::Failed;
use interlock_daemon::Problem;
use interlock_daemon::api::{ExtendRequest, LeaseHeld, ReleaseRequest};
use interlock_kernel::ids::LeaseName;
use interlock_store::{Clock, SystemClock};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The pause before a renewal that came to nothing is asked for again.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a release may take: the lease ends by itself as well.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);

/// What is confirmed: held for so long, from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Confirmed {
    from: Duration,
    ttl: Duration,
}

impl Confirmed {
    /// By an answer to a request that was sent then.
    fn by(from: Duration, held: &LeaseHeld) -> Self {
        Self { from, ttl: Duration::from_millis(held.ttl_ms) }
    }

    /// A third of the time is over: the first renewal is asked for.
    fn renew_at(self) -> Duration {
        self.from + self.ttl / 3
    }

    /// Two thirds are over without one: whoever relies on it is told to stop.
    fn stop_at(self) -> Duration {
        self.from + self.ttl * 2 / 3
    }

    /// Whoever relies on it does not run any more; the last sixth is for what the clocks and the machine are late.
    pub(super) fn over_at(self) -> Duration {
        self.from + self.ttl * 5 / 6
    }

    /// How long an answer is waited for before it is asked again: two tries fit.
    fn patience(self) -> Duration {
        self.ttl / 6
    }
}

/// A lease that is held.
pub(super) struct Hold {
    client: Client,
    clock: Arc<SystemClock>,
    right: Grant,
    confirmed: watch::Sender<Confirmed>,
}

/// For how long a lease is known to be held, for somebody who looks on.
pub(super) struct Known {
    clock: Arc<SystemClock>,
    confirmed: watch::Receiver<Confirmed>,
}

impl Known {
    /// How long from now on.
    pub(super) fn left(&mut self) -> Duration {
        self.confirmed.borrow_and_update().over_at().saturating_sub(self.clock.monotonic())
    }

    /// Waits until it is renewed; none if nobody renews it any more.
    pub(super) async fn longer(&mut self) -> Option<()> {
        self.confirmed.changed().await.ok()
    }
}

/// Why a lease is not held any more.
#[derive(Debug)]
pub(super) enum Lost {
    /// The host said so.
    Refused(Box<Problem>),
    /// The host did not say that it is.
    Unknown(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(problem) => write!(f, "its renewal was refused: {problem}"),
            Self::Unknown(why) => write!(f, "no renewal is known to be written: {why}"),
        }
    }
}

impl Hold {
    /// Takes a lease.
    ///
    /// # Errors
    /// Why it is not held.
    pub(super) async fn take(client: &Client, lease: &LeaseName, terms: &Terms) -> Result<Self, Failed> {
        let clock = Arc::new(SystemClock::new());
        let grant = mint();
        let from = clock.monotonic();
        let held = client.acquire(lease, &request(terms, grant.clone()), terms.wait.as_deref()).await?;
        let right = Grant { lease: lease.clone(), grant, token: held.token };
        let confirmed = watch::Sender::new(Confirmed::by(from, &held));
        let hold = Self { client: client.clone(), clock, right, confirmed };
        if hold.now() >= hold.confirmed().renew_at() {
            // It stood in line, or the answer took long: only an answer to a fresh request says how long it lasts.
            let from = hold.now();
            let held = hold.client.extend(&hold.right.lease, &hold.renewal()).await?;
            hold.confirmed.send_replace(Confirmed::by(from, &held));
        }
        Ok(hold)
    }

    pub(super) fn token(&self) -> u64 {
        self.right.token
    }

    pub(super) fn confirmed(&self) -> Confirmed {
        *self.confirmed.borrow()
    }

    /// For how long it is known to be held, from now on.
    pub(super) fn known(&self) -> Known {
        Known { clock: Arc::clone(&self.clock), confirmed: self.confirmed.subscribe() }
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Renews it again and again; ends when it is lost, or not known to be held for long enough.
    pub(super) async fn keep(&self) -> Lost {
        loop {
            self.clock.sleep_until(self.confirmed().renew_at()).await;
            if let Err(lost) = self.renew().await {
                return lost;
            }
        }
    }

    async fn renew(&self) -> Result<(), Lost> {
        let stop_at = self.confirmed().stop_at();
        let mut why = "this process was held up".to_owned();
        loop {
            let from = self.now();
            if from >= stop_at {
                return Err(Lost::Unknown(why));
            }
            let patience = self.confirmed().patience().min(stop_at - from);
            match tokio::time::timeout(patience, self.client.extend(&self.right.lease, &self.renewal())).await {
                Ok(Ok(held)) => {
                    self.confirmed.send_replace(Confirmed::by(from, &held));
                    return Ok(());
                }
                Ok(Err(Failed::Problem(problem))) if is_final(&problem) => return Err(Lost::Refused(problem)),
                Ok(Err(failed)) => why = failed.to_string(),
                Err(_) => why = format!("no answer from {} within {patience:.1?}", self.client.url()),
            }
            self.clock.sleep_until((self.now() + PAUSE).min(stop_at)).await;
        }
    }

    fn renewal(&self) -> ExtendRequest {
        ExtendRequest { grant: self.right.grant.clone(), token: self.right.token, ttl: None }
    }

    /// Gives it back; says why it could not, after which it ends by itself.
    pub(super) async fn release(self) -> Result<(), String> {
        let Grant { lease, grant, token } = &self.right;
        let request = ReleaseRequest { grant: grant.clone(), token: *token };
        match tokio::time::timeout(RELEASE_WITHIN, self.client.release(lease, &request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(failed)) => Err(failed.to_string()),
            Err(_) => Err(format!("no answer from {} within {RELEASE_WITHIN:?}", self.client.url())),
        }
    }
}

/// A no that the same request will hear again.
fn is_final(problem: &Problem) -> bool {
    (400..500).contains(&problem.status) && !problem.retryable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_stops_before_its_time_is_over_and_asks_twice_before_that() {
        for ttl in [1, 999, 1_000, 30_000, 3_600_000].map(Duration::from_millis) {
            let from = Duration::from_secs(7);
            let held = Confirmed { from, ttl };
            assert!(from <= held.renew_at() && held.renew_at() <= held.stop_at(), "{held:?}");
            assert!(held.renew_at() + held.patience() * 2 <= held.stop_at() + Duration::from_nanos(2), "{held:?}");
            assert!(held.stop_at() <= held.over_at() && held.over_at() < from + ttl, "{held:?}");
        }
    }
}
