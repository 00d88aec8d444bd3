//! History: one numbered, chained entry per accepted command that touched an entity.

use super::{EffectWhat, Failure, Key, Record};
use crate::doc::Digest;
use crate::ids::{EventId, LeaseName, Name, Principal};
use crate::number::{FencingToken, Version};
use crate::rejection::Rejection;
use crate::time::{StoreTime, WallTime};
use serde::{Deserialize, Serialize};

/// A kind of fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FactKind {
    /// A write of an attempt that is not the open one.
    Fenced,
    /// An event for something past.
    Late,
    /// A principal that may not.
    Denied,
    /// An event that the state does not take.
    NotAllowed,
    /// A timer that fired twice or after its visit.
    StaleTimer,
    /// The reconciler repaired something.
    Repaired,
    /// A result of an effect whose execution is over, or that is settled already.
    LateEffect,
}

/// One numbered entry per accepted command that touched the entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// From 1, without gaps.
    pub number: u64,
    /// The entity's version after it.
    #[serde(deserialize_with = "crate::number::version")]
    pub version: Version,
    /// What happened.
    pub what: What,
    /// The state before.
    pub from: Name,
    /// The state after.
    pub to: Name,
    /// The execution's number.
    pub execution: Option<u64>,
    /// The attempt's number in its visit.
    pub attempt: Option<u32>,
    /// The attempt's token.
    #[serde(deserialize_with = "crate::number::optional_token")]
    pub token: Option<FencingToken>,
    /// Who.
    pub by: Principal,
    /// The revision that judged it.
    pub revision: u64,
    /// The event's id.
    pub event: Option<EventId>,
    /// Wall time.
    pub wall: WallTime,
    /// Store time.
    pub store: StoreTime,
    /// The previous entry's hash; zero for the first.
    pub previous: Digest,
    /// What changed of `desired`.
    pub desired: Option<Changed>,
    /// What changed of `data`.
    pub data: Option<Changed>,
    /// What changed of `outputs`.
    pub outputs: Option<Changed>,
}

/// A document's change: its digest always, its text up to the inline bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Digest of the new canonical text; none if the document is gone.
    pub digest: Option<Digest>,
    /// The text.
    pub inline: Option<String>,
}

/// What an entry records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// It was created.
    Created,
    /// A client's event was taken.
    Event(Name),
    /// An event was put into the inbox.
    Queued(Name),
    /// A queued event was refused when its turn came.
    Refused(Name, Box<Rejection>),
    /// `desired` was written: its generation.
    Applied(u64),
    /// `desired-changed` was taken.
    DesiredChanged,
    /// A step's transition: the step.
    Transition(Name),
    /// A step's save: the step.
    Saved(Name),
    /// A timer fired.
    Timer(Name),
    /// An attempt began; why.
    Begun(BeginReason),
    /// An attempt ended without a transition; when the next begins, in ms, if one does.
    Ended(Failure, Option<u64>),
    /// A failure path was taken.
    FailurePath(Failure),
    /// Nothing is tried any more: code and reason.
    Parked(String, String),
    /// An operator had it tried again.
    Unparked,
    /// An operator ended it: the reason given.
    Killed(String),
    /// It was deleted.
    Deleted,
    /// Something that changed nothing.
    Fact(FactKind, String),
    /// A step took a lease.
    Leased(LeaseName),
    /// A step gave a lease back.
    Returned(LeaseName),
    /// The execution lost a lease while no attempt ran.
    LeaseLost(LeaseName),
    /// The step begins once it gets this lease.
    Awaits(LeaseName),
    /// An operator ended the execution: the reason given, and whether it was forced.
    Unlocked(String, bool),
    /// An effect was settled: its target, its number, and what came of it.
    Effect(EffectWhat, Name, u64, String),
}

/// Why an attempt begins apart from a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BeginReason {
    /// Its back-off is over.
    Retry,
    /// The one before was lost with its host.
    LostWithHost,
    /// The host had stopped in good order.
    HostStopped,
    /// An operator unparked it.
    Unparked,
    /// It got the lease it waited for.
    Leased,
}

impl Entry {
    /// The hash that the next entry carries as `previous`.
    #[must_use]
    pub fn hash(&self, key: &Key) -> Digest {
        Digest::of(&[&Record::Entry(Box::new(self.clone())).encode(key)])
    }
}
