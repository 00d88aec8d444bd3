//! The two times a decision knows, and the number of its job. Nothing here reads a clock.

use crate::number::SessionId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Milliseconds of store time: monotonic, persisted, standing still while the store is closed.
/// It drives back-off, deadlines and windows: late, never early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StoreTime(pub u64);

/// Milliseconds since 1970-01-01T00:00:00Z. It drives authors' timers and is shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WallTime(pub i64);

impl StoreTime {
    /// This much later.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this; 0 if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl WallTime {
    /// This much later.
    #[must_use]
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(ms))
    }

    /// Milliseconds from `earlier` to this; 0 if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

/// What a job knows besides the store: taken once for a batch, `seq` once for a job.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Store time.
    pub store: StoreTime,
    /// Wall time.
    pub wall: WallTime,
    /// The engine's number of this job, above every earlier one of this store. Tokens, incarnations
    /// and sessions are minted from it.
    pub seq: u64,
    /// The boot that decides; attempts begun now belong to it. [`Session::NONE`] before it is open.
    pub session: Session,
}

/// The boot a decision is made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session(pub(crate) Option<SessionId>);

impl Session {
    /// No session is open yet: only `OpenSession` is decided without one.
    pub const NONE: Self = Self(None);

    /// The session that `OpenSession` answered.
    #[must_use]
    pub const fn of(id: SessionId) -> Self {
        Self(Some(id))
    }
}

/// A length of time as people read it: `200 ms`, `2.9 s`, `15 min`, `2 h`, `3 d`.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tenths, name) = match self.0 {
            0..=999 => return write!(f, "{} ms", self.0),
            1_000..=119_999 => (self.0 / 100, "s"),
            120_000..=7_199_999 => (self.0 / 6_000, "min"),
            7_200_000..=172_799_999 => (self.0 / 360_000, "h"),
            _ => (self.0 / 8_640_000, "d"),
        };
        match tenths % 10 {
            0 => write!(f, "{} {name}", tenths / 10),
            rest => write!(f, "{}.{rest} {name}", tenths / 10),
        }
    }
}
