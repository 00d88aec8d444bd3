//! Tables and rows as they are stored.

use crate::doc::{Digest, Doc};
use crate::ids::{ExecutionId, Name, Principal, RowKey};
use crate::rows::RowAnswer;
use crate::table::IndexSpec;
use crate::time::{StoreTime, WallTime};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A table's own record: what changes while it is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableHead {
    /// The number of the declaration that is in force.
    pub revision: u64,
    /// Digest of that declaration, as written.
    pub digest: Digest,
    /// Rows.
    pub rows: u64,
    /// Rows that are claimed.
    pub held: u64,
    /// Its indexes; the first is that of every table, by insertion.
    pub indexes: Vec<Index>,
    /// The number the next index gets.
    pub next_index: u32,
    /// Whether it is being dropped: its rows go first.
    pub dropped: bool,
    /// Rows behind this key are looked at anew: what store time does to them was declared differently.
    pub anew: Option<Option<RowKey>>,
    /// The oldest entry kept of what became of its rows.
    pub first: u64,
    /// The newest.
    pub last: u64,
    /// When it was declared first.
    pub created: WallTime,
    /// When it was declared last.
    pub declared: WallTime,
}

/// An index of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// Never given to another one of this table.
    pub number: u32,
    /// As it was declared; none is that by insertion.
    pub name: Option<Name>,
    /// What it orders by.
    pub spec: IndexSpec,
    /// Whether it can be used.
    pub stage: IndexStage,
}

/// Whether an index can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexStage {
    /// It has every row.
    Ready,
    /// It has the rows up to this key, and every row changed since.
    Building {
        /// The last key that was looked at.
        up_to: Option<RowKey>,
        /// Rows looked at.
        done: u64,
    },
    /// Its entries are being removed.
    Dropping,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its value.
    pub value: Doc,
    /// The engine's number of the job that changed it last: it grows, and is never that of another content.
    pub version: u64,
    /// Its place in the order of insertion.
    pub created: Place,
    /// When that was.
    pub created_at: WallTime,
    /// Its place in the order of changes.
    pub updated: Place,
    /// When that was.
    pub updated_at: WallTime,
    /// Who took it, while it is taken.
    pub claim: Option<Claimed>,
    /// How often it was taken.
    pub claims: u32,
    /// It is there until then.
    pub until: Option<StoreTime>,
    /// When the index looks at it next.
    pub due: Option<StoreTime>,
}

/// A place in the order of all changes of a store: the job, and what of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The engine's number of the job.
    pub seq: u64,
    /// The change within the job.
    pub n: u32,
}

/// A claim of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The claim: one number for all the rows it took.
    pub number: Place,
    /// Who.
    pub by: Claimant,
    /// Since when.
    pub since: WallTime,
    /// The same in store time.
    pub at: StoreTime,
    /// Whether it is taken back when its execution ends.
    pub back: bool,
}

/// Who claims rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Claimant {
    /// An execution.
    Execution(ExecutionId),
    /// A client, by what it calls itself.
    Client(String),
}

impl fmt::Display for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execution(id) => id.fmt(f),
            Self::Client(label) => f.write_str(label),
        }
    }
}

impl Row {
    /// Whether it is still there at this time.
    #[must_use]
    pub fn is_there(&self, now: StoreTime) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

/// One thing that became of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowEntry {
    /// From 1, without gaps while the table is there.
    pub number: u64,
    /// What.
    pub what: RowWhat,
    /// The first of the rows.
    pub keys: Vec<RowKey>,
    /// How many there were.
    pub count: u64,
    /// Whose claim it is about.
    pub claimant: Option<String>,
    /// More, for people.
    pub note: String,
    /// Who asked.
    pub by: Principal,
    /// Wall time.
    pub wall: WallTime,
    /// Store time.
    pub store: StoreTime,
}

/// What became of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RowWhat {
    /// Taken.
    Claimed,
    /// What was taken is done: its status was changed, or it was deleted.
    Settled,
    /// Taken back since its execution ended.
    Released,
    /// Taken back since the claim was too old.
    Reaped,
    /// Given up: claimed too often.
    Dead,
    /// Its time to live was over.
    Expired,
}

impl RowWhat {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Claimed, Self::Settled, Self::Released, Self::Reaped, Self::Dead, Self::Expired];

    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Settled => "settled",
            Self::Released => "released",
            Self::Reaped => "reaped",
            Self::Dead => "dead",
            Self::Expired => "expired",
        }
    }
}

impl fmt::Display for RowWhat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What was answered to a request on rows that may be asked again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memo {
    /// Digest of the request: the same name with another is refused.
    pub request: Digest,
    /// The answers.
    pub answers: Vec<RowAnswer>,
    /// Of each claim among them, in order: its number, and the rows as it left them.
    pub claims: Vec<ClaimMemo>,
    /// A client's is forgotten then; a step's goes with its visit or its next save.
    pub until: Option<StoreTime>,
}

/// What is remembered of a claim: what its rows are like is read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimMemo {
    /// The claim.
    pub number: Place,
    /// Its rows, and the version each was given.
    pub rows: Vec<(RowKey, u64)>,
}
