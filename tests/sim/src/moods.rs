//! What steps may be up to.

use interlock_conformance::Random;
use interlock_kernel::view::Start;
use std::sync::Arc;

/// What a step is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mood {
    /// Does its work.
    Good,
    /// Saves twice, then does it.
    Saves,
    /// Takes its time, perhaps too much of it.
    Slow,
    /// Takes a second.
    Naps,
    /// Returns without a transition.
    Nothing,
    /// Fails, and may be tried again.
    Fails,
    /// Fails for good.
    FailsForGood,
    /// Is dropped without a word.
    Vanishes,
    /// Does nothing until it is stopped.
    Hangs,
    /// Goes on after it was stopped.
    Zombie,
    /// Moves twice.
    Twice,
    /// Asks for what it may not, then does its work.
    Wrong,
    /// Is refused again and again.
    Floods,
    /// Saves and moves at the same time.
    Together,
    /// Reads again before it writes.
    Rereads,
    /// Enters its own state anew.
    Again,
    /// Takes, renews and gives back leases on its way.
    Leases,
    /// Works under leases that it should have lost by then.
    Outlasts,
}

impl Mood {
    /// Every mood but the good one.
    pub(crate) const BAD: [Self; 16] = [
        Self::Saves,
        Self::Slow,
        Self::Nothing,
        Self::Fails,
        Self::FailsForGood,
        Self::Vanishes,
        Self::Hangs,
        Self::Zombie,
        Self::Twice,
        Self::Wrong,
        Self::Floods,
        Self::Together,
        Self::Rereads,
        Self::Again,
        Self::Leases,
        Self::Outlasts,
    ];
}

/// Says in which mood an attempt is.
pub(crate) type Moods = Arc<dyn Fn(&Start, &mut Random) -> Mood + Send + Sync>;
