//! What a decision sees and what it answers.

use crate::command::{Command, Outcome};
use crate::doc::{Digest, Doc};
use crate::ids::{EntityId, EventId, ExecutionId, LeaseName, MachineName, Name, RowKey, TableName};
use crate::number::{FencingToken, Incarnation, SessionId, Version};
use crate::record::{Cause, Key, Place, Queued, Record};
use crate::rejection::Rejection;
use crate::schedule::Recurrence;
use crate::time::{StoreTime, WallTime};
use crate::timer::CalendarRule;
use std::collections::BTreeMap;
use std::fmt;

/// The typed records inside one transaction.
pub trait View {
    /// The record at a key.
    ///
    /// # Errors
    /// [`Stop`] if the store cannot say.
    fn get(&self, key: &Key) -> Result<Option<Record>, Stop>;

    /// Up to `limit` records of a span, in the order of their keys.
    ///
    /// # Errors
    /// [`Stop`] if the store cannot say.
    fn scan(&self, span: &Span, limit: usize) -> Result<Vec<(Key, Record)>, Stop>;
}

/// A run of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// All sessions.
    Sessions,
    /// Open attempts of a session.
    Open(SessionId),
    /// What expires up to this store time.
    Expired(StoreTime),
    /// An entity's inbox, oldest first.
    Inbox(EntityId),
    /// An incarnation's history, newest first, from this entry number downwards.
    History(EntityId, Incarnation, u64),
    /// An entity's effects, in order.
    Effects(EntityId),
    /// Answers that are remembered for an entity's visit.
    Memos(EntityId),
    /// A table's rows by key, from behind a key.
    Rows(TableName, Option<RowKey>),
    /// Entries of a table's index.
    RowIndex(Box<IndexSpan>),
    /// Rows that store time has something to do with, up to this time.
    RowsDue(StoreTime),
    /// Rows that an execution has claimed and that are taken back at its end.
    RowsHeld(EntityId, Incarnation, u64),
    /// What became of a table's rows, oldest first.
    RowEntries(TableName),
    /// Declarations of a table.
    TableSpecs(TableName),
}

/// A run of entries of a table's index, by what stands in the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpan {
    /// The table.
    pub table: TableName,
    /// The index.
    pub index: u32,
    /// The fields are not before this beginning.
    pub from: Vec<u8>,
    /// The fields are before this beginning; none has no end.
    pub to: Option<Vec<u8>>,
    /// Behind this entry, in the direction of the walk.
    pub after: Option<(Vec<u8>, Place, RowKey)>,
    /// From the last to the first.
    pub back: bool,
}

/// Compiled schemas and calendars, which live outside the kernel.
pub trait Rules {
    /// Whether a document keeps to a revision's schema.
    ///
    /// # Errors
    /// [`Breach`]: the first rule it breaks, and where.
    fn check(&self, machine: &MachineName, revision: u64, schema: Schema<'_>, doc: &Doc) -> Result<(), Breach>;

    /// Whether a row's value keeps to the schema of a declaration of its table.
    ///
    /// # Errors
    /// [`Breach`]: the first rule it breaks, and where.
    fn check_row(&self, table: &TableName, revision: u64, value: &Doc) -> Result<(), Breach>;

    /// The instant that a text names, in RFC 3339 with an offset; none if it names none.
    fn instant(&self, text: &str) -> Option<WallTime>;

    /// When a calendar rule first comes after an instant.
    ///
    /// # Errors
    /// [`Breach`] without a path: the rule says nothing of that time.
    fn next(&self, rule: &CalendarRule, after: WallTime) -> Result<WallTime, Breach>;

    /// When a rule that comes again and again first comes after an instant.
    ///
    /// # Errors
    /// [`Breach`] without a path: it does not come any more.
    fn following(&self, rule: &Recurrence, after: WallTime) -> Result<WallTime, Breach>;

    /// When a rule that comes again and again came last, up to an instant.
    ///
    /// # Errors
    /// [`Breach`] without a path: it had not come yet.
    fn latest(&self, rule: &Recurrence, up_to: WallTime) -> Result<WallTime, Breach>;

    /// A target's URL with values in place of its placeholders, none of which leaves its place.
    ///
    /// # Errors
    /// [`Breach`]: the placeholder without a value, or whose value does not fit.
    fn fill(&self, pattern: &str, values: &BTreeMap<String, String>) -> Result<String, Breach>;
}

/// One of a revision's schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema<'a> {
    /// Of `desired`.
    Desired,
    /// Of `data`.
    Data,
    /// Of `outputs`.
    Outputs,
    /// Of an event's payload.
    Event(&'a Name),
}

impl fmt::Display for Schema<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Desired => f.write_str("desired"),
            Self::Data => f.write_str("data"),
            Self::Outputs => f.write_str("outputs"),
            Self::Event(name) => write!(f, "event.{name}"),
        }
    }
}

/// A schema's rule that a document breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Where in the document, as a JSON Pointer; empty is the whole.
    pub path: String,
    /// The rule, in words.
    pub expected: String,
    /// What stood there.
    pub got: String,
}

/// The store could not answer; the decision is abandoned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The view remembers why.
    View,
    /// A record that must be there is not, or is not what its key says.
    Corrupt(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::View => f.write_str("the store could not answer"),
            Self::Corrupt(why) => write!(f, "a stored record contradicts itself: {why}"),
        }
    }
}

impl std::error::Error for Stop {}

/// What a command does.
#[derive(Debug)]
pub struct Decision {
    /// Puts (some) and deletes (none); nothing else is written.
    pub writes: Vec<(Key, Option<Record>)>,
    /// The answer.
    pub outcome: Result<Outcome, Rejection>,
    /// What the host should look at once this is durable.
    pub wake: Vec<Wake>,
    /// Decided next, in order, in the same transaction, over these writes. Their outcomes are not the caller's.
    pub then: Vec<Command>,
    /// Comparisons that met a value of the wrong type.
    pub mismatches: u32,
}

/// Something to look at after the commit. Losing one loses nothing: the records say the same.
#[derive(Clone, Debug)]
pub enum Wake {
    /// An attempt has begun.
    Run(Box<Start>),
    /// Something is due at this store time.
    Due(StoreTime),
    /// A timer is due at this wall time.
    Timer(WallTime),
    /// This attempt may no longer write: stop it.
    Fence {
        /// Its entity.
        entity: EntityId,
        /// Its token.
        token: FencingToken,
        /// Why.
        why: &'static str,
    },
    /// An execution ended or parked, or an answer to a queued event changed.
    Settled(EntityId),
    /// An effect is to be tried at this store time.
    Send(StoreTime),
    /// Store time will cause something to a lease then.
    Lapse(StoreTime),
    /// Somebody in line got this lease, or gave up.
    Granted(LeaseName),
    /// Store time will cause something to a row then.
    Row(StoreTime),
    /// This table wants tending.
    Tend(TableName),
    /// What this execution has claimed is to be taken back.
    TakeBack(ExecutionId),
}

/// The right to write as one attempt. Made by the kernel when the attempt begins; its numbers cannot be
/// made up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The execution, and with it the entity.
    pub execution: ExecutionId,
    /// The attempt's number in its visit.
    pub attempt: u32,
    /// Its fencing token.
    pub token: FencingToken,
    /// The version that was read last.
    pub read: Version,
}

/// All a host needs to run an attempt.
#[derive(Clone, Debug)]
pub struct Start {
    /// The right to write.
    pub claim: Claim,
    /// The revision that judges it.
    pub revision: u64,
    /// The component's digest.
    pub component: Option<Digest>,
    /// The state.
    pub state: Name,
    /// The step.
    pub step: Name,
    /// The visit, by the version that entered it.
    pub visit: Version,
    /// The version that a retry starts from: the visit's entry or last save. Random numbers hang on it.
    pub base: Version,
    /// What entered the visit.
    pub cause: Cause,
    /// The cause's payload.
    pub payload: Option<Doc>,
    /// Documents as the attempt sees them.
    pub documents: Documents,
    /// Progress at least this often, in ms.
    pub idle_ms: u64,
    /// In all at most this long, in ms.
    pub total_ms: u64,
    /// The visit's deadline.
    pub deadline: Option<StoreTime>,
    /// Linear memory, in bytes.
    pub memory_bytes: u64,
    /// Before this store time it may be handed out as it is; later its leases are renewed first.
    pub renew_by: Option<StoreTime>,
}

/// The right to hold a lease under one grant of it. Made by the kernel at the grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseClaim {
    /// The lease.
    pub lease: LeaseName,
    /// The grant's token.
    pub token: FencingToken,
}

/// The documents of an entity as an attempt sees them.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    /// What clients want, as of the moment the execution left rest.
    pub desired: Option<Doc>,
    /// What steps remember.
    pub data: Option<Doc>,
    /// What steps promise.
    pub outputs: Option<Doc>,
}

/// An event as a client sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its id; the host mints one if the client sent none.
    pub id: EventId,
    /// Its name.
    pub name: Name,
    /// Its payload.
    pub payload: Option<Doc>,
    /// What the sender believes.
    pub expect: crate::record::Expect,
    /// The revision whose schema the payload was already checked against.
    pub checked: Option<u64>,
}

impl Event {
    /// An event that waited: its schema is checked again.
    pub(crate) fn queued(queued: Queued) -> Self {
        Self { id: queued.id, name: queued.name, payload: queued.payload, expect: queued.expect, checked: None }
    }
}
