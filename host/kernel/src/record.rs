//! What is stored: one kind of record per key family. The kernel sees these, never bytes; `encode` and
//! `decode` are here because only the kernel may bring back a version or a token, and only inside a
//! whole record.

use crate::doc::{Digest, Doc};
use crate::ids::{
    EntityId, EventId, ExecutionId, LeaseName, MachineName, Name, Principal, RowKey, ScheduleName, TableName,
};
use crate::machine::Revision;
use crate::number::{FencingToken, Incarnation, SessionId, Version};
use crate::rejection::Rejection;
use crate::time::{StoreTime, WallTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

mod codec;
mod effect;
mod history;
mod lease;
mod row;
mod schedule;
mod sentence;
mod timer;

pub use codec::{Corrupt, RECORD_VERSION};
pub use effect::{Effect, EffectWhat, Outbox, Stands};
pub use history::{BeginReason, Changed, Entry, FactKind, What};
pub use lease::{Delay, Holder, Lease, LeaseEntry, LeaseWhat, Owner, Terms, Waiter};
pub use row::{ClaimMemo, Claimant, Claimed, Index, IndexStage, Memo, Place, Row, RowEntry, RowWhat, TableHead};
pub use schedule::{Fired, Firing, ScheduleRecord};
pub use timer::Timer;

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A machine: its active revision.
    Machine(MachineName),
    /// One revision of it.
    Revision(MachineName, u64),
    /// An entity's head.
    Head(EntityId),
    /// One of its documents.
    Part(EntityId, Part),
    /// A queued event, by its place.
    Inbox(EntityId, u64),
    /// A history entry.
    History(EntityId, Incarnation, u64),
    /// A remembered event id; survives delete.
    Dedup(EntityId, EventId),
    /// Index: the earliest thing that store time will cause.
    Due(StoreTime, EntityId),
    /// Index: a timer.
    Timer(WallTime, EntityId, Name),
    /// Index: an open attempt by session.
    Open(SessionId, EntityId),
    /// A session.
    Session(SessionId),
    /// What expires at a store time; the number tells apart what one job wrote.
    Expiry(StoreTime, u64, u32),
    /// The store's random secret, from which steps' random numbers are derived.
    Secret,
    /// A lease.
    Lease(LeaseName),
    /// What became of a lease, by number.
    LeaseEntry(LeaseName, u64),
    /// Index: the earliest thing that store time will cause to a lease.
    Lapse(StoreTime, LeaseName),
    /// An effect that is not settled, by its number in its entity's outbox.
    Effect(EntityId, u64),
    /// Index: the first of a lane, by target and the store time of its next try.
    Outbox(MachineName, Name, StoreTime, EntityId, u64),
    /// Index: an effect that is in flight, by session.
    Flight(SessionId, EntityId, u64),
    /// A table: what changes while it is used.
    Table(TableName),
    /// One declaration of it.
    TableSpec(TableName, u64),
    /// A row.
    Row(TableName, RowKey),
    /// Index of a table, by number: what stands in a row's fields, its place, its key.
    RowIndex(TableName, u32, Vec<u8>, Place, RowKey),
    /// Index: the earliest thing that store time will cause to a row.
    RowDue(StoreTime, TableName, RowKey),
    /// Index: a row that an execution has claimed, of a table that takes it back at its end.
    RowHeld(EntityId, Incarnation, u64, TableName, RowKey),
    /// Index: a row that an execution has claimed, of a table that leaves it claimed at its end.
    RowKept(EntityId, Incarnation, u64, TableName, RowKey),
    /// What became of a table's rows, by number.
    RowEntry(TableName, u64),
    /// What a step was answered, by the digest of its name.
    Memo(EntityId, Digest),
    /// What a client was answered, by its id.
    Answered(EventId),
    /// A schedule.
    Schedule(ScheduleName),
    /// Index: when a schedule comes next.
    ScheduleDue(WallTime, ScheduleName),
}

/// A document of an entity that is a record of its own, rewritten only when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// What clients want.
    Desired,
    /// What steps remember.
    Data,
    /// What steps promise.
    Outputs,
    /// The payload of the visit's cause.
    Cause,
    /// `desired` as the running execution sees it, kept once an apply has replaced it.
    Held,
    /// The published conditions.
    Conditions,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 6] = [Self::Desired, Self::Data, Self::Outputs, Self::Cause, Self::Held, Self::Conditions];
}

/// A stored record.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// At [`Key::Machine`].
    Machine(MachineRecord),
    /// At [`Key::Revision`].
    Revision(Arc<Revision>),
    /// At [`Key::Head`].
    Head(Box<Head>),
    /// At [`Key::Part`] but for conditions.
    Doc(Doc),
    /// At [`Part::Conditions`].
    Conditions(Vec<Condition>),
    /// At [`Key::Inbox`].
    Queued(Queued),
    /// At [`Key::History`].
    Entry(Box<Entry>),
    /// At [`Key::Dedup`].
    Dedup(Dedup),
    /// At an index key.
    Mark,
    /// At [`Key::Session`].
    Session(SessionRecord),
    /// At [`Key::Expiry`].
    Expires(Expires),
    /// At [`Key::Secret`].
    Secret([u8; 32]),
    /// At [`Key::Lease`].
    Lease(Box<Lease>),
    /// At [`Key::LeaseEntry`].
    LeaseEntry(Box<LeaseEntry>),
    /// At [`Key::Effect`].
    Effect(Box<Effect>),
    /// At [`Key::Table`].
    Table(Box<TableHead>),
    /// At [`Key::TableSpec`].
    TableSpec(Arc<TableSpec>),
    /// At [`Key::Row`].
    Row(Box<Row>),
    /// At [`Key::RowEntry`].
    RowEntry(Box<RowEntry>),
    /// At [`Key::Memo`] and [`Key::Answered`].
    Memo(Box<Memo>),
    /// At [`Key::Schedule`].
    Schedule(Box<ScheduleRecord>),
}

/// One declaration of a table; never changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSpec {
    /// Its number.
    pub number: u64,
    /// What it says.
    pub table: crate::table::Table,
    /// As written.
    pub source: String,
    /// When it was declared.
    pub declared: WallTime,
}

/// A machine's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// The revision that new entities follow.
    pub active: u64,
    /// The newest number given out.
    pub latest: u64,
}

/// An entity's head: everything a decision needs but the documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Tells it from a deleted one with the same key.
    #[serde(deserialize_with = "crate::number::incarnation")]
    pub incarnation: Incarnation,
    /// The revision it follows.
    pub revision: u64,
    /// The state it is in.
    pub state: Name,
    /// Counts accepted changes.
    #[serde(deserialize_with = "crate::number::version")]
    pub version: Version,
    /// The version that entered this state.
    #[serde(deserialize_with = "crate::number::version")]
    pub visit: Version,
    /// When that was.
    pub entered: WallTime,
    /// Counts changes of `desired`.
    pub generation: u64,
    /// The generation that the steps have seen.
    pub observed: u64,
    /// Executions so far in this incarnation.
    pub executions: u64,
    /// Who works on it; exactly the working states have one.
    pub lock: Option<Lock>,
    /// What entered the visit.
    pub cause: Cause,
    /// The visit's timers.
    pub timers: Vec<Timer>,
    /// The visit's deadline.
    pub deadline: Option<StoreTime>,
    /// The store time at which the index looks at this entity next.
    pub due: Option<StoreTime>,
    /// Stopped trying.
    pub park: Option<Park>,
    /// How the last execution ended, if one has.
    pub last: Option<LastExecution>,
    /// Events waiting.
    pub inbox: Inbox,
    /// Entries of history.
    pub history: HistoryHead,
    /// How many facts of each kind were met.
    pub facts: BTreeMap<FactKind, u32>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// When it was created.
    pub created: WallTime,
    /// Digest of the create request.
    pub created_as: Digest,
    /// The leases that the execution has, in the order it got them. One of these that is lost ends the attempt.
    pub leases: Vec<LeaseName>,
    /// The lease that the step waits for before it begins.
    pub awaits: Option<LeaseName>,
    /// Requests to the outside that are not settled.
    pub outbox: Outbox,
    /// Requests on rows whose answers are remembered for this visit.
    pub memos: u32,
    /// Whether rows were claimed that are taken back when the execution ends.
    pub holds: bool,
}

/// The lock: one execution at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// The execution's number.
    pub ordinal: u64,
    /// The event that left rest, `desired-changed` among them.
    pub started_by: Name,
    /// When it left rest.
    pub since: WallTime,
    /// Its last progress.
    pub progress: WallTime,
    /// The generation of `desired` it works on.
    pub generation: u64,
    /// Transitions in a row without a wait.
    pub chain: u32,
    /// Saves in this visit.
    pub saves: u32,
    /// The version of the visit's entry or of its last save: what a retry starts from.
    #[serde(deserialize_with = "crate::number::version")]
    pub base: Version,
    /// Attempts begun in this visit.
    pub attempts: u32,
    /// Those that failed.
    pub failed: u32,
    /// Those lost with their host.
    pub lost: u32,
    /// The open one.
    pub attempt: Option<OpenAttempt>,
    /// When the next begins.
    pub retry: Option<StoreTime>,
    /// When the execution has taken too long.
    pub limit: Option<StoreTime>,
    /// The last failure of this visit.
    pub failure: Option<Failure>,
}

/// An attempt that may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenAttempt {
    /// Its number in the visit.
    pub ordinal: u32,
    /// Its fencing token.
    #[serde(deserialize_with = "crate::number::token")]
    pub token: FencingToken,
    /// The boot it runs in.
    #[serde(deserialize_with = "crate::number::session")]
    pub session: SessionId,
}

/// Why nothing is tried any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Park {
    /// `exhausted`, `permanent`, `deadline`, `crash-loop`, `runaway`, `execution-limit`,
    /// `failure-path`, `stranded`, `inconsistent`.
    pub code: String,
    /// For people.
    pub reason: String,
    /// Since when.
    pub since: WallTime,
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastExecution {
    /// Its number.
    pub ordinal: u64,
    /// Not by a failure path, kill or a failed final state.
    pub succeeded: bool,
    /// The version it ended with.
    #[serde(deserialize_with = "crate::number::version")]
    pub version: Version,
    /// The state it ended in.
    pub state: Name,
}

/// The inbox's places: `next - length` is taken out first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbox {
    /// The place the next event gets.
    pub next: u64,
    /// Events waiting.
    pub length: u32,
}

/// The end of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryHead {
    /// The oldest entry kept.
    pub first: u64,
    /// The newest entry's number.
    pub last: u64,
    /// The newest entry's hash.
    pub hash: Digest,
}

/// A failure as a step reports it, or as the host names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Whether trying again is useless.
    pub permanent: bool,
    /// A short stable name.
    pub code: String,
    /// For people.
    pub reason: String,
    /// The pause the step asks for, in ms.
    pub retry_after_ms: Option<u64>,
}

/// What entered a visit; its payload stands at [`Part::Cause`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// What kind of thing happened.
    pub kind: CauseKind,
    /// The event's, timer's or step's name.
    pub name: Name,
    /// The event's id.
    pub id: Option<EventId>,
    /// When it happened.
    pub at: WallTime,
    /// Whether a payload is stored.
    pub payload: bool,
}

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CauseKind {
    /// It was created.
    Created,
    /// A client's event.
    Signal,
    /// A timer.
    Timer,
    /// A step's accepted transition.
    Transition,
    /// `desired` is ahead.
    DesiredChanged,
    /// A failure path.
    Failure,
    /// The visit's deadline.
    Deadline,
    /// An operator.
    Operator,
    /// An effect's result.
    Effect,
}

/// An event in an inbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    /// Its id.
    pub id: EventId,
    /// Its name.
    pub name: Name,
    /// Its payload.
    pub payload: Option<Doc>,
    /// When it arrived.
    pub at: WallTime,
    /// Who sent it.
    pub by: Principal,
    /// What else it asked for.
    pub expect: Expect,
}

/// What a sender believes about the entity. A past incarnation, execution, visit or generation is
/// late; one that has not been yet, or another version, is a conflict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expect {
    /// The incarnation.
    pub incarnation: Option<u64>,
    /// The execution's number.
    pub execution: Option<u64>,
    /// The visit.
    pub visit: Option<u64>,
    /// The generation.
    pub generation: Option<u64>,
    /// The version.
    pub version: Option<u64>,
}

/// A remembered event id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dedup {
    /// Digest of name and canonical payload: the same id with another is refused.
    pub digest: Digest,
    /// What was answered last.
    pub answer: Answer,
    /// How long it is remembered after the last change of the answer, in ms.
    pub window_ms: u64,
    /// Forgotten then; store time.
    pub until: StoreTime,
}

/// The answer to an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What became of it.
    pub kind: AnswerKind,
    /// The event's id.
    pub event: EventId,
    /// The incarnation that answered, and the execution the event started or joined.
    #[serde(deserialize_with = "crate::number::incarnation")]
    pub incarnation: Incarnation,
    /// The execution's number.
    pub execution: Option<u64>,
    /// The entity's version then.
    #[serde(deserialize_with = "crate::number::version")]
    pub version: Version,
    /// The entity's state then.
    pub state: Name,
    /// Why not, if it was refused or late.
    pub rejection: Option<Rejection>,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerKind {
    /// It changed the entity.
    Accepted,
    /// It waits in the inbox.
    Queued,
    /// It waited, and was refused when its turn came.
    Refused,
    /// It came too late.
    Late,
}

impl AnswerKind {
    /// How it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Queued => "queued",
            Self::Refused => "refused",
            Self::Late => "late",
        }
    }
}

/// A published status of an entity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Its type, `interlock/...` being the host's own.
    pub kind: String,
    /// `true`, `false` or `unknown`, or the author's own word.
    pub status: String,
    /// A short stable name.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The last change of its status.
    pub since: WallTime,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Random, told by the host that opened it.
    pub nonce: String,
    /// When it was opened.
    pub opened: WallTime,
    /// How it ended; none while it is open.
    pub closed: Option<Closed>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Closed {
    /// The host stopped in good order: its attempts are resumed and counted nowhere.
    Graceful,
    /// The next boot found it open: its attempts were lost.
    Lost,
}

/// What expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expires {
    /// A remembered event id.
    Dedup(EntityId, EventId),
    /// A deleted entity's history, up to this entry.
    History(EntityId, #[serde(deserialize_with = "crate::number::incarnation")] Incarnation, u64, u64),
    /// What a client was answered.
    Answer(EventId),
}

impl Park {
    /// The code of a head that contradicts itself: only an operator's kill or delete moves it.
    pub const INCONSISTENT: &'static str = "inconsistent";
}

impl Head {
    /// Whether the head was found to contradict itself.
    #[must_use]
    pub fn is_inconsistent(&self) -> bool {
        self.park.as_ref().is_some_and(|park| park.code == Park::INCONSISTENT)
    }

    /// The id of an execution of this entity.
    #[must_use]
    pub fn execution(&self, entity: &EntityId, ordinal: u64) -> ExecutionId {
        ExecutionId { entity: entity.clone(), incarnation: self.incarnation, ordinal }
    }

    /// The id of the execution that holds the lock.
    #[must_use]
    pub fn locked_by(&self, entity: &EntityId) -> Option<ExecutionId> {
        self.lock.as_ref().map(|lock| self.execution(entity, lock.ordinal))
    }

    /// Every index entry that this head implies. Indexes are written only from the difference of
    /// this list before and after a decision, so head and index cannot drift.
    #[must_use]
    pub fn index(&self, entity: &EntityId) -> Vec<Key> {
        let open = self.lock.as_ref().and_then(|lock| lock.attempt);
        let timers = self.timers.iter().map(|timer| Key::Timer(timer.due, entity.clone(), timer.name.clone()));
        self.due
            .map(|due| Key::Due(due, entity.clone()))
            .into_iter()
            .chain(open.map(|attempt| Key::Open(attempt.session, entity.clone())))
            .chain(timers)
            .collect()
    }
}

impl Dedup {
    /// Whether the event id is still remembered: for its window, and as long as its event waits.
    #[must_use]
    pub fn remembers(&self, now: StoreTime) -> bool {
        self.until > now || self.answer.kind == AnswerKind::Queued
    }
}

impl Effect {
    /// The index entry that it implies: only the first of a lane is tried.
    #[must_use]
    pub fn index(&self, entity: &EntityId, number: u64) -> Option<Key> {
        match self.stands {
            Stands::Due(at) => {
                Some(Key::Outbox(entity.machine.clone(), self.target.clone(), at, entity.clone(), number))
            }
            Stands::InFlight(session) => Some(Key::Flight(session, entity.clone(), number)),
            // Never due, and found by whoever lists what is given up.
            Stands::Dead { .. } => {
                let never = StoreTime(u64::MAX);
                Some(Key::Outbox(entity.machine.clone(), self.target.clone(), never, entity.clone(), number))
            }
            Stands::Waits => None,
        }
    }
}
