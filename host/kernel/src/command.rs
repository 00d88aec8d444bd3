//! Everything that writes is one of these, the host's own sweeps and the operator's verbs included.

use crate::doc::{Digest, Doc};
use crate::ids::{
    EntityId, ExecutionId, GrantId, LeaseName, MachineName, Name, Principal, RowKey, ScheduleName, TableName,
};
use crate::machine::{Machine, Target};
use crate::number::{FencingToken, Incarnation, SessionId, Version};
use crate::record::{Answer, Condition, Effect, Failure, Firing, Key, Terms};
use crate::rows::{ClientRows, Declare, RowAnswer, RowsAsk, StepRows};
use crate::schedule::Schedule;
use crate::time::{StoreTime, WallTime};
use crate::value::Mutation;
use crate::view::{Claim, Event, LeaseClaim};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request to change something, decided and committed in one transaction.
#[derive(Clone, Debug)]
pub struct Command {
    /// Who asks.
    pub by: Principal,
    /// For what.
    pub verb: Verb,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Verb {
    /// One boot of a host: closes every other session.
    OpenSession {
        /// Random.
        nonce: String,
        /// Kept if the store has none yet.
        secret: [u8; 32],
    },
    /// A stop in good order.
    CloseSession,
    /// A new revision of a machine; a no-op if its digest is the active one's.
    Deploy(Box<Deploy>),
    /// A new revision with the content of an old one.
    Rollback {
        /// The machine.
        machine: MachineName,
        /// The revision to bring back.
        to: u64,
    },
    /// A new entity.
    Create(Box<Create>),
    /// New `desired`.
    Apply {
        /// The entity.
        entity: EntityId,
        /// What clients want now.
        desired: Doc,
        /// The generation it replaces.
        expect: Option<u64>,
        /// The revision whose schema it was already checked against.
        checked: Option<u64>,
    },
    /// Away with an entity at rest or over.
    Delete(EntityId),
    /// End whatever it does, for good.
    Kill {
        /// The entity.
        entity: EntityId,
        /// For the record.
        reason: String,
    },
    /// Try again.
    Unpark(EntityId),
    /// Something happened.
    Deliver {
        /// To whom.
        entity: EntityId,
        /// What.
        event: Box<Event>,
    },
    /// A step's checkpoint.
    Save(Claim, Box<Change>),
    /// A step's move.
    Transition(Claim, Name, Box<Change>),
    /// An attempt ended without a transition.
    End(Claim, Failure),
    /// Store time has come to what the index says of this entity.
    Due(EntityId),
    /// A timer's wall time has come.
    Fire {
        /// The entity.
        entity: EntityId,
        /// The timer.
        timer: Name,
        /// When it was to fire: tells one visit's timer from another's.
        due: WallTime,
    },
    /// An attempt whose session is over: begin it again.
    Recover(EntityId),
    /// The next queued event, or `desired-changed`: what a rest is followed by.
    Continue(EntityId),
    /// Remove what has expired, a bounded number at a time.
    Sweep,
    /// A client asks for a lease.
    Acquire(Box<Acquire>),
    /// A client renews a lease.
    Extend {
        /// The lease.
        lease: LeaseName,
        /// What it is held under.
        grant: GrantId,
        /// The token the client was told.
        token: u64,
        /// Another time to live; none takes the one it was granted with.
        ttl_ms: Option<u64>,
    },
    /// A client gives a lease back.
    Release {
        /// The lease.
        lease: LeaseName,
        /// What it is held under.
        grant: GrantId,
        /// The token the client was told.
        token: u64,
    },
    /// A client that stood in line went away: out of the line, or what it got meanwhile is free again.
    Withdraw {
        /// The lease.
        lease: LeaseName,
        /// Whose place.
        grant: GrantId,
    },
    /// What a step asks of a lease.
    Lease(Claim, LeaseAsk),
    /// Renew the leases of an attempt that is about to be handed out.
    Renew(Claim),
    /// Store time has come to what the index says of this lease.
    Lapse(LeaseName),
    /// An execution lost a lease.
    Lose(ExecutionId, LeaseName),
    /// It is the turn of an execution that stands in line for a lease.
    Turn(ExecutionId, LeaseName),
    /// Begin a try of an effect.
    Send(EntityId, u64),
    /// What came of a try.
    Settle {
        /// The entity.
        entity: EntityId,
        /// The effect.
        number: u64,
        /// Which try of it.
        nth: u32,
        /// What came of it.
        tried: Tried,
    },
    /// An effect was in flight when its session ended: it is tried again.
    Resend(EntityId, u64),
    /// An operator has an effect tried again.
    Retry(EntityId, u64),
    /// An operator gives an effect up.
    Drop {
        /// The entity.
        entity: EntityId,
        /// The effect.
        number: u64,
        /// For the record.
        reason: String,
    },
    /// End an execution, into a rest or failed final state.
    Unlock {
        /// The entity.
        entity: EntityId,
        /// The state to enter.
        to: Name,
        /// Although something would wake it.
        force: bool,
        /// For the record.
        reason: String,
    },
    /// A new declaration of a table; a no-op if its digest is that in force.
    Declare(Box<Declare>),
    /// Away with a table and its rows.
    DropTable(TableName),
    /// What a client asks of rows.
    Rows(Box<ClientRows>),
    /// What a step asks of rows, at once.
    StepRows(Claim, Box<StepRows>),
    /// Store time has come to what the index says of this row.
    RowDue(TableName, RowKey),
    /// An execution has ended: what it has claimed is taken back.
    TakeBack(ExecutionId),
    /// A little more of what a table's declaration asks for: an index is filled or emptied, its rows go.
    Tend(TableName),
    /// A new declaration of a schedule; a no-op if its digest is that in force.
    Schedule(Box<DeclareSchedule>),
    /// Away with a schedule.
    DropSchedule(ScheduleName),
    /// A schedule stands still, or goes on.
    PauseSchedule {
        /// The schedule.
        schedule: ScheduleName,
        /// Whether it stands still.
        paused: bool,
    },
    /// Wall time has come to what the index says of this schedule.
    FireSchedule {
        /// The schedule.
        schedule: ScheduleName,
        /// The due time: tells it from a later one.
        due: WallTime,
    },
    /// Compare a lease with the index entries found for it and with the executions it names, and repair.
    AuditLease {
        /// The lease.
        lease: LeaseName,
        /// Index entries that name it.
        found: Vec<Key>,
        /// An entity whose head names it.
        named_by: Option<EntityId>,
    },
    /// Compare an entity with the index entries found for it, and repair.
    Audit {
        /// The entity.
        entity: EntityId,
        /// Index entries that name it.
        found: Vec<Key>,
        /// An attempt of this session that this host does not run, by its token.
        abandoned: Option<FencingToken>,
    },
}

/// See [`Verb::Acquire`].
#[derive(Clone, Debug)]
pub struct Acquire {
    /// The lease.
    pub lease: LeaseName,
    /// What it will be held under.
    pub grant: GrantId,
    /// What people are shown as its owner.
    pub label: String,
    /// On what terms.
    pub terms: Terms,
    /// Stands in line for this long if it has to; none only tries.
    pub wait_ms: Option<u64>,
}

/// See [`Verb::Lease`].
#[derive(Clone, Debug)]
pub enum LeaseAsk {
    /// Take it, or renew it if the execution has it.
    Acquire(LeaseName, Option<u64>),
    /// Renew it.
    Extend(LeaseClaim, Option<u64>),
    /// Give it back.
    Release(LeaseClaim),
}

/// See [`Verb::Deploy`].
#[derive(Clone, Debug)]
pub struct Deploy {
    /// The definition, checked.
    pub machine: Arc<Machine>,
    /// Digest of manifest and component.
    pub digest: Digest,
    /// Digest of the component, already stored.
    pub component: Option<Digest>,
    /// The manifest as written.
    pub source: String,
}

/// See [`Verb::Schedule`].
#[derive(Clone, Debug)]
pub struct DeclareSchedule {
    /// The declaration, checked.
    pub schedule: Arc<Schedule>,
    /// Its digest, as written.
    pub digest: Digest,
    /// As written.
    pub source: String,
}

/// See [`Verb::Create`].
#[derive(Clone, Debug)]
pub struct Create {
    /// Its id.
    pub entity: EntityId,
    /// What clients want.
    pub desired: Option<Doc>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// What if there is one.
    pub on_existing: OnExisting,
    /// Decided in the same transaction; if it is refused, so is the create.
    pub event: Option<Event>,
}

/// What a create does about an entity that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExisting {
    /// The same request is the existing entity, another a conflict.
    #[default]
    Same,
    /// A conflict always.
    Fail,
    /// The existing entity, and the first event is still delivered.
    Use,
    /// Delete and create in one transaction, by delete's rule.
    Recreate,
}

/// What a step changes besides its state.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Replaces data.
    pub data: Option<Doc>,
    /// Replaces outputs.
    pub outputs: Option<Doc>,
    /// Applied to both, after that.
    pub set: Vec<Mutation>,
    /// Published; `since` is the host's to say.
    pub conditions: Vec<Condition>,
    /// The revision whose schemas both documents were already checked against.
    pub checked: Option<u64>,
    /// What was staged on its handle before.
    pub stage: Stage,
}

/// What a step has staged on its handle: its next commit carries all of it, or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// Timers, at most [`STAGED_TIMERS_MAX`](crate::limits::STAGED_TIMERS_MAX); the last word on a name counts.
    pub timers: Vec<StagedTimer>,
    /// Requests to the outside, in order.
    pub effects: Vec<StagedEffect>,
    /// Operations on rows, in order, and the conditions of the commit.
    pub rows: RowsAsk,
}

/// A request that a step asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedEffect {
    /// The target.
    pub target: Name,
    /// What its URL's placeholders stand for.
    pub fill: BTreeMap<String, String>,
    /// Headers to add.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Doc>,
}

/// What came of one try of an effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Tried {
    /// The target has done it.
    Done(Said),
    /// It may work later.
    Again {
        /// The pause that the target asks for, in ms.
        after_ms: Option<u64>,
        /// For people.
        reason: String,
        /// Whether the target may have seen it.
        maybe_sent: bool,
    },
    /// The target says that somebody else acts by now.
    Fenced(Said),
    /// The target refuses it for good.
    Failed(Said),
    /// The operator does not allow it, or it could not be sent as it is: the target has not seen it.
    Refused {
        /// For people; what an operator is told besides stands in the log.
        reason: String,
    },
}

/// What a target said.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// The status.
    pub status: u16,
    /// The body: JSON as it is, else as text.
    pub body: Option<Doc>,
    /// Whether there was more of it.
    pub truncated: bool,
}

/// A timer that a step sets or takes back: of the visit that its transition enters, or for a save of the one it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedTimer {
    /// Its name; its state declares it with `due = "step"`.
    pub name: Name,
    /// When it fires.
    pub due: StagedDue,
}

/// When a staged timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagedDue {
    /// So many ms of wall time after the commit.
    After(u64),
    /// At this instant; one that is past at once.
    At(WallTime),
    /// Not at all.
    Cancelled,
}

/// What became of an accepted command.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Nothing was to be done.
    Nothing,
    /// A session is open: its id, and how many others it closed.
    Session(SessionId, usize),
    /// A revision is active; `new` unless it already was.
    Deployed {
        /// Its number.
        revision: u64,
        /// Whether this command made it.
        new: bool,
    },
    /// An entity is there.
    Created {
        /// Its incarnation.
        incarnation: Incarnation,
        /// Its version.
        version: Version,
        /// Whether this command made it.
        new: bool,
        /// The answer to the first event.
        answer: Option<Box<Answer>>,
    },
    /// `desired` is written.
    Applied {
        /// Its generation.
        generation: u64,
    },
    /// An event's answer.
    Answered {
        /// The answer.
        answer: Box<Answer>,
        /// Whether it is the remembered one of an earlier delivery.
        replayed: bool,
    },
    /// A step's save or transition is committed.
    Written {
        /// The version it made.
        version: Version,
        /// The answers to the operations on rows that it carried.
        rows: Vec<RowAnswer>,
    },
    /// The entity has this version and state now.
    Now {
        /// The version.
        version: Version,
        /// The state.
        state: Name,
        /// Whether this command changed something.
        changed: bool,
    },
    /// Expired records were removed; more may be waiting.
    Swept {
        /// How many.
        removed: usize,
        /// Whether to come back at once.
        more: bool,
    },
    /// What the audit mended, in words.
    Repaired(Vec<String>),
    /// A lease is held.
    Leased {
        /// The right to it.
        claim: LeaseClaim,
        /// Whether this command granted it; it was renewed otherwise.
        new: bool,
        /// What was granted, in ms from the commit.
        ttl_ms: u64,
        /// It is over then, unless it is renewed.
        until: StoreTime,
    },
    /// A client stands in line for a lease.
    InLine {
        /// How many are before it.
        before: usize,
    },
    /// A lease is free again.
    Released,
    /// A try of an effect begins.
    Sending(Box<Sending>),
    /// A declaration of a table or a schedule is in force.
    Declared {
        /// Its number.
        revision: u64,
        /// Whether this command made it so.
        new: bool,
    },
    /// What was asked of rows is done.
    Rows {
        /// The answers, in order.
        answers: Vec<RowAnswer>,
        /// Whether these are the remembered ones of an earlier request.
        replayed: bool,
    },
    /// What became of a due time of a schedule; none if it was none any more.
    Fired(Option<Firing>),
    /// A table was tended.
    Tended {
        /// Rows or entries that were looked at.
        done: usize,
        /// Whether to come back at once.
        more: bool,
    },
}

/// All a host needs to make a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Sending {
    /// Whose.
    pub entity: EntityId,
    /// Its number.
    pub number: u64,
    /// The effect.
    pub effect: Effect,
    /// Its target.
    pub target: Target,
}
