//! Effects: outbound requests, committed with a transition and delivered at least once.

use crate::doc::Doc;
use crate::ids::{LeaseName, Name};
use crate::number::{FencingToken, SessionId, Version};
use crate::time::{StoreTime, WallTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What an entity has in its outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbox {
    /// Effects so far.
    pub last: u64,
    /// Those that are not settled yet, and will be.
    pub unsettled: u32,
    /// Those that are given up until an operator acts or the visit is left.
    pub dead: u32,
}

/// A request to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The target, declared by the machine.
    pub target: Name,
    /// The revision that declared it.
    pub revision: u64,
    /// What its URL's placeholders stand for.
    pub fill: BTreeMap<String, String>,
    /// The URL, filled.
    pub url: String,
    /// Headers that the step adds.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Doc>,
    /// The same over all tries of it; no other effect has it.
    pub key: String,
    /// What the receiver fences: the entity, or a lease. Effects of one entity with the same are a lane, in order.
    pub resource: String,
    /// The lease that fences it.
    pub lease: Option<LeaseName>,
    /// The fencing token.
    #[serde(deserialize_with = "crate::number::token")]
    pub token: FencingToken,
    /// The execution that asked for it.
    pub execution: u64,
    /// The version that committed it.
    #[serde(deserialize_with = "crate::number::version")]
    pub version: Version,
    /// The visit it was asked for in.
    #[serde(deserialize_with = "crate::number::version")]
    pub visit: Version,
    /// The attempt that asked for it; none if no step did.
    pub attempt: Option<u32>,
    /// When it was committed.
    pub at: WallTime,
    /// Tries begun.
    pub tries: u32,
    /// Whether one of them may have reached the target.
    pub maybe_sent: bool,
    /// What came of the last one.
    pub last: Option<String>,
    /// Where it stands.
    pub stands: Stands,
}

/// Where an effect stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stands {
    /// Behind another one of its lane.
    Waits,
    /// Tried at this store time.
    Due(StoreTime),
    /// Handed to the target by this boot.
    InFlight(#[serde(deserialize_with = "crate::number::session")] SessionId),
    /// Given up.
    Dead {
        /// A short stable name.
        code: String,
        /// For people.
        reason: String,
    },
}

/// What a record of history says about an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EffectWhat {
    /// The target has done it.
    Done,
    /// The target, or the lease that fences it, says that somebody else acts by now.
    Fenced,
    /// The target refuses it, or every try is used up.
    Failed,
    /// Taken back before it was sent.
    Dropped,
    /// An operator had it tried again.
    Retried,
}

impl EffectWhat {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Done, Self::Fenced, Self::Failed, Self::Dropped, Self::Retried];

    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Fenced => "fenced",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
            Self::Retried => "retried",
        }
    }
}

impl fmt::Display for EffectWhat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Effect {
    /// Whether it holds up those behind it in its lane.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self.stands, Stands::Dead { .. })
    }

    /// Whether an attempt of it is out: its fate is not known yet.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        matches!(self.stands, Stands::InFlight(_))
    }

    /// Whether the target cannot have seen it, so that it can be taken back.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        !self.maybe_sent && !self.is_in_flight()
    }
}
