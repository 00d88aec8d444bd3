//! What changes of a schedule while it runs.

use super::AnswerKind;
use crate::doc::Digest;
use crate::schedule::Schedule;
use crate::time::WallTime;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A schedule, its next due time, and what became of the last ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// The declaration.
    pub schedule: Schedule,
    /// As written.
    pub source: String,
    /// Its digest.
    pub digest: Digest,
    /// Counts declarations.
    pub revision: u64,
    /// When it was declared.
    pub declared: WallTime,
    /// When it comes next; none if it is paused, or its rule never comes again.
    pub next: Option<WallTime>,
    /// Whether an operator has it paused.
    pub paused: bool,
    /// What became of the last due times, newest last; at most
    /// [`FIRINGS_MAX`](crate::limits::FIRINGS_MAX).
    pub firings: Vec<Firing>,
    /// Events raised.
    pub raised: u64,
    /// Due times for which none was.
    pub passed: u64,
}

/// What became of a due time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firing {
    /// The due time.
    pub due: WallTime,
    /// When it was looked at.
    pub at: WallTime,
    /// What became of it.
    pub fired: Fired,
}

/// See [`Firing`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fired {
    /// The event was raised: its answer, and the number of the execution that it began or joined.
    Raised(AnswerKind, Option<u64>),
    /// Not raised, because of what the entity was at.
    Skipped(String),
    /// Raised and refused: the refusal, in words.
    Refused(String),
    /// This due time, and those up to this one, passed while nobody could look.
    Missed(WallTime),
}

impl fmt::Display for Fired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raised(answer, Some(execution)) => write!(f, "{} (execution {execution})", answer.name()),
            Self::Raised(answer, None) => f.write_str(answer.name()),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Missed(_) => f.write_str("missed: nobody could look"),
        }
    }
}
