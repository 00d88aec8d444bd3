//! Leases: named exclusive rights with a time to live, apart from entities.

use crate::ids::{ExecutionId, GrantId, Principal};
use crate::number::{FencingToken, SessionId};
use crate::time::{StoreTime, WallTime};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A lease that somebody has, or stands in line for. One that is free and long unused has no record: its
/// next grant has a higher token all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Who has it. Past its time it is over, whatever is written here.
    pub holder: Option<Holder>,
    /// Only whoever lost it may take it, for a while.
    pub delay: Option<Delay>,
    /// Who is next, first come first served.
    pub line: Vec<Waiter>,
    /// The store time at which the index looks at it next.
    pub due: Option<StoreTime>,
    /// The oldest entry kept of what became of it.
    pub first: u64,
    /// The newest.
    pub last: u64,
    /// Refused since the last grant.
    pub contended: u32,
    /// The token of the newest grant: whoever has a lower one is past.
    #[serde(deserialize_with = "crate::number::optional_token")]
    pub granted: Option<FencingToken>,
}

/// Who has a lease, and how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Who.
    pub owner: Owner,
    /// What a client calls itself; an execution is known by its id.
    pub label: String,
    /// The token of this grant.
    #[serde(deserialize_with = "crate::number::token")]
    pub token: FencingToken,
    /// When it was granted.
    pub since: WallTime,
    /// When it was last renewed.
    pub renewed: WallTime,
    /// It is over then, unless it is renewed.
    pub until: StoreTime,
    /// However often it is renewed.
    pub hold_until: StoreTime,
    /// What it was granted on.
    pub terms: Terms,
}

/// On what terms a lease is granted, in ms of store time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// At least this long without a renewal.
    pub ttl_ms: u64,
    /// At most this long in all.
    pub hold_ms: u64,
    /// After a loss nobody else gets it for this long.
    pub delay_ms: u64,
}

/// Who may have a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Owner {
    /// An execution, over all its steps and attempts.
    Execution(ExecutionId),
    /// A client, by an id that only it knows.
    Grant(GrantId),
}

/// After a loss: the time in which only the former owner may take the lease again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    /// The former owner.
    pub owner: Owner,
    /// Until then.
    pub until: StoreTime,
}

/// Somebody in line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    /// Who.
    pub owner: Owner,
    /// What a client calls itself.
    pub label: String,
    /// On what terms.
    pub terms: Terms,
    /// Since when.
    pub since: WallTime,
    /// A client's patience; an execution waits as long as its visit lasts.
    pub until: Option<StoreTime>,
    /// The boot that a client asked: with it goes the connection that waits.
    #[serde(deserialize_with = "crate::number::optional_session")]
    pub session: Option<SessionId>,
}

/// One thing that became of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseEntry {
    /// From 1, without gaps while the lease has a record.
    pub number: u64,
    /// What.
    pub what: LeaseWhat,
    /// The execution or the client's label it is about.
    pub owner: String,
    /// The token it is about.
    #[serde(deserialize_with = "crate::number::optional_token")]
    pub token: Option<FencingToken>,
    /// More, for people: who has it, or why not.
    pub note: String,
    /// Who asked.
    pub by: Principal,
    /// Wall time.
    pub wall: WallTime,
    /// Store time.
    pub store: StoreTime,
}

/// What became of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LeaseWhat {
    /// Granted.
    Acquired,
    /// Asked for while somebody else had it.
    Contended,
    /// Renewed on request.
    Extended,
    /// Given back, or ended with its execution.
    Released,
    /// Not renewed in time.
    Expired,
    /// A request of somebody who does not have it, or not any more.
    Fenced,
    /// The reconciler repaired something.
    Reconciled,
}

impl LeaseWhat {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Acquired,
        Self::Contended,
        Self::Extended,
        Self::Released,
        Self::Expired,
        Self::Fenced,
        Self::Reconciled,
    ];

    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Contended => "contended",
            Self::Extended => "extended",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Fenced => "fenced",
            Self::Reconciled => "reconciled",
        }
    }
}

impl fmt::Display for LeaseWhat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Lease {
    /// Who has it at this time.
    #[must_use]
    pub fn held(&self, now: StoreTime) -> Option<&Holder> {
        self.holder.as_ref().filter(|holder| holder.until > now)
    }
}

impl Owner {
    /// What people are shown: a client's grant id is its secret.
    #[must_use]
    pub fn shown(&self, label: &str) -> String {
        match self {
            Self::Execution(id) => id.to_string(),
            Self::Grant(_) if label.is_empty() => "a client".to_owned(),
            Self::Grant(_) => label.to_owned(),
        }
    }
}
