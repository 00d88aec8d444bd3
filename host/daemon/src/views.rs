//! From records to answers: what the kernel stores, as clients read it.
//!
//! Reads only; a clock reading is handed in where an answer needs one.

mod leases;
mod schedules;
mod tables;
pub(crate) mod why;

pub(crate) use leases::{lease, lease_summary};
pub(crate) use schedules::{schedule, schedule_summary};
pub(crate) use tables::{table, table_summary};

use crate::api::{
    AnswerKind, AnswerView, ChangedView, ConditionView, Document, EntitySummary, EntityView, EntryView, FailureView,
    HolderView, Kind, LastExecutionView, LeaseEntryView, LockView, OutboxView, ParkView, RejectionView, RevisionView,
    RowEntryView, TimerView, WaitingFor,
};
use interlock_coordinator::Phase;
use interlock_kernel::ids::EntityId;
use interlock_kernel::machine::{Machine, Revision, StateKind};
use interlock_kernel::record::{
    Answer, Changed, Condition, EffectWhat, Entry, Failure, Head, LeaseEntry, Lock, RowEntry, What,
};
use interlock_kernel::rejection::Rejection;
use interlock_kernel::time::{StoreTime, WallTime};
use interlock_kernel::view::Documents;

/// RFC 3339 in UTC, to the millisecond.
pub(crate) fn rfc3339(time: WallTime) -> String {
    match jiff::Timestamp::from_millisecond(time.0) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => time.0.to_string(),
    }
}

/// Both times at one moment: turns a store time to come into the wall time at which it should.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) store: StoreTime,
    pub(crate) wall: WallTime,
}

impl Clocks {
    pub(crate) fn wall_of(self, at: StoreTime) -> WallTime {
        self.wall.plus(at.since(self.store))
    }
}

/// Whether the open attempt has a place to run, and the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dispatched {
    Yes,
    No,
    /// There is a place, and too little memory.
    NoMemory,
}

impl Dispatched {
    pub(crate) fn of(phase: Option<Phase>) -> Self {
        match phase {
            Some(Phase::WaitingForSlot) => Self::No,
            Some(Phase::WaitingForMemory) => Self::NoMemory,
            Some(Phase::Running) | None => Self::Yes,
        }
    }
}

/// What a head stands for besides itself.
pub(crate) struct Around<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) clocks: Clocks,
    pub(crate) dispatched: Dispatched,
}

impl Around<'_> {
    fn kind(&self, head: &Head) -> Kind {
        // A state that the revision no longer has is shown by what the head says of the lock.
        let fallback = if head.lock.is_some() { StateKind::Working } else { StateKind::Rest };
        match self.machine.state(&head.state).map_or(fallback, |state| state.kind) {
            StateKind::Rest => Kind::Rest,
            StateKind::Working => Kind::Working,
            StateKind::Succeeded => Kind::Succeeded,
            StateKind::Failed => Kind::Failed,
        }
    }

    /// One entity, whole.
    pub(crate) fn entity(
        &self,
        id: &EntityId,
        head: &Head,
        documents: Documents,
        conditions: &[Condition],
    ) -> EntityView {
        EntityView {
            id: id.to_string(),
            machine: id.machine.to_string(),
            key: id.key.to_string(),
            incarnation: head.incarnation.get(),
            revision: head.revision,
            owner: self.machine.owner.clone(),
            state: head.state.to_string(),
            kind: self.kind(head),
            version: head.version.get(),
            generation: head.generation,
            observed_generation: head.observed,
            locked_by: head.locked_by(id).map(|execution| execution.to_string()),
            lock: head.lock.as_ref().map(|lock| self.lock(head, lock)),
            desired: documents.desired.map(Document),
            data: documents.data.map(Document),
            outputs: documents.outputs.map(Document),
            conditions: conditions.iter().map(condition).collect(),
            labels: head.labels.clone(),
            parked: head.park.as_ref().map(|park| ParkView {
                code: park.code.clone(),
                reason: park.reason.clone(),
                since: rfc3339(park.since),
            }),
            leases: head.leases.iter().map(ToString::to_string).collect(),
            awaits: head.awaits.as_ref().map(ToString::to_string),
            timers: head
                .timers
                .iter()
                .map(|timer| TimerView {
                    name: timer.name.to_string(),
                    due: rfc3339(timer.due),
                    rule: timer.rule.clone(),
                })
                .collect(),
            inbox: head.inbox.length,
            outbox: OutboxView { unsettled: head.outbox.unsettled, dead: head.outbox.dead },
            outstanding: Vec::new(), // of records of their own
            last_execution: head.last.as_ref().map(|last| LastExecutionView {
                execution: head.execution(id, last.ordinal).to_string(),
                succeeded: last.succeeded,
                state: last.state.to_string(),
                version: last.version.get(),
            }),
            created: rfc3339(head.created),
            entered: rfc3339(head.entered),
        }
    }

    /// One entity in a list.
    pub(crate) fn summary(&self, id: &EntityId, head: &Head) -> EntitySummary {
        EntitySummary {
            id: id.to_string(),
            state: head.state.to_string(),
            kind: self.kind(head),
            version: head.version.get(),
            revision: head.revision,
            generation: head.generation,
            observed_generation: head.observed,
            locked_by: head.locked_by(id).map(|execution| execution.to_string()),
            parked: head.park.as_ref().map(|park| park.code.clone()),
            labels: head.labels.clone(),
            entered: rfc3339(head.entered),
        }
    }

    fn lock(&self, head: &Head, lock: &Lock) -> LockView {
        let deadline = head.deadline.map(|at| self.clocks.wall_of(at));
        let timer = head.timers.iter().map(|timer| timer.due).min();
        let limit = lock.limit.map(|at| self.clocks.wall_of(at));
        LockView {
            since: rfc3339(lock.since),
            progress: rfc3339(lock.progress),
            waiting_for: waiting_for(head, lock, self.dispatched),
            attempt: (lock.attempts > 0).then_some(lock.attempts),
            token: lock.attempt.map(|attempt| attempt.token.get()),
            until: [deadline, timer, limit].into_iter().flatten().min().map(rfc3339),
            failed: lock.failed,
            lost: lock.lost,
            failure: lock.failure.as_ref().map(|failed| failure(failed, None)),
        }
    }
}

fn waiting_for(head: &Head, lock: &Lock, dispatched: Dispatched) -> WaitingFor {
    match (&head.park, lock.attempt, lock.retry) {
        (Some(_), ..) => WaitingFor::Operator,
        (None, Some(_), _) if dispatched == Dispatched::No => WaitingFor::Slot,
        (None, Some(_), _) if dispatched == Dispatched::NoMemory => WaitingFor::Memory,
        (None, Some(_), _) => WaitingFor::Step,
        (None, None, Some(_)) => WaitingFor::BackOff,
        (None, None, None) if head.awaits.is_some() => WaitingFor::Lease,
        (None, None, None) if head.outbox.unsettled > 0 => WaitingFor::Effect,
        (None, None, None) if !head.timers.is_empty() => WaitingFor::Timer,
        (None, None, None) => WaitingFor::Event,
    }
}

fn condition(condition: &Condition) -> ConditionView {
    ConditionView {
        kind: condition.kind.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        since: rfc3339(condition.since),
    }
}

/// A failure; when the next attempt begins, in ms, if one does.
pub(crate) fn failure(failure: &Failure, next_attempt_ms: Option<u64>) -> FailureView {
    FailureView {
        permanent: failure.permanent,
        code: failure.code.clone(),
        reason: failure.reason.clone(),
        next_attempt_ms,
    }
}

/// A refusal inside an answer.
pub(crate) fn rejection(rejection: &Rejection) -> RejectionView {
    RejectionView {
        code: rejection.code.as_str().to_owned(),
        subject: rejection.subject.clone(),
        expected: rejection.expected.clone(),
        got: rejection.got.clone(),
        retryable: rejection.retryable,
        retry_after_ms: rejection.retry_after_ms,
    }
}

/// The answer to an event.
pub(crate) fn answer(id: &EntityId, answer: &Answer) -> AnswerView {
    use interlock_kernel::record::AnswerKind as Kept;
    AnswerView {
        answer: match answer.kind {
            Kept::Accepted => AnswerKind::Accepted,
            Kept::Queued => AnswerKind::Queued,
            Kept::Refused => AnswerKind::Refused,
            Kept::Late => AnswerKind::Late,
        },
        event: answer.event.to_string(),
        execution: answer.execution.map(|ordinal| format!("{id}@{}.{ordinal}", answer.incarnation)),
        version: answer.version.get(),
        state: answer.state.to_string(),
        rejection: answer.rejection.as_ref().map(rejection),
        outcome: None,
        outputs: None,
    }
}

impl HolderView {
    /// Reads what the kernel says of the holder in a refusal.
    pub(crate) fn read(detail: &serde_json::Value) -> Option<Self> {
        let text = |name: &str| detail.get(name)?.as_str().map(str::to_owned);
        let time = |name: &str| detail.get(name)?.as_i64().map(|ms| rfc3339(WallTime(ms)));
        Some(Self {
            execution: text("execution")?,
            started_by: text("started_by")?,
            since: time("since_ms")?,
            held_ms: detail.get("held_ms")?.as_u64()?,
            progress: time("progress_ms")?,
            state: text("state")?,
            waiting_for: text("waiting_for")?,
            attempt: detail.get("attempt").and_then(|attempt| attempt.as_u64()?.try_into().ok()),
            until: time("until_ms"),
        })
    }
}

/// One revision.
pub(crate) fn revision(revision: &Revision) -> RevisionView {
    RevisionView {
        number: revision.number,
        digest: revision.digest.to_string(),
        component: revision.component.map(|digest| digest.to_string()),
        rollback_of: revision.rollback_of,
        deployed: rfc3339(revision.deployed),
        by: revision.by.to_string(),
    }
}

/// One thing that became of a lease.
pub(crate) fn lease_entry(entry: &LeaseEntry) -> LeaseEntryView {
    LeaseEntryView {
        number: entry.number,
        what: entry.what.to_string(),
        owner: entry.owner.clone(),
        token: entry.token.map(|token| token.get()),
        note: entry.note.clone(),
        by: entry.by.to_string(),
        at: rfc3339(entry.wall),
    }
}

/// One thing that became of a table's rows.
pub(crate) fn row_entry(entry: &RowEntry) -> RowEntryView {
    RowEntryView {
        number: entry.number,
        what: entry.what.to_string(),
        keys: entry.keys.iter().map(ToString::to_string).collect(),
        count: entry.count,
        claimant: entry.claimant.clone(),
        note: entry.note.clone(),
        by: entry.by.to_string(),
        at: rfc3339(entry.wall),
    }
}

/// One entry of an entity's history.
pub(crate) fn entry(id: &EntityId, incarnation: u64, entry: &Entry) -> EntryView {
    let (kind, name) = kind_of(&entry.what);
    let failed = match &entry.what {
        What::Ended(failed, next) => Some(failure(failed, *next)),
        What::FailurePath(failed) => Some(failure(failed, None)),
        _ => None,
    };
    EntryView {
        number: entry.number,
        version: entry.version.get(),
        kind: kind.to_owned(),
        what: entry.sentence(),
        name,
        from: entry.from.to_string(),
        to: entry.to.to_string(),
        execution: entry.execution.map(|ordinal| format!("{id}@{incarnation}.{ordinal}")),
        attempt: entry.attempt,
        token: entry.token.map(|token| token.get()),
        by: entry.by.to_string(),
        revision: entry.revision,
        event: entry.event.as_ref().map(ToString::to_string),
        at: rfc3339(entry.wall),
        failure: failed,
        desired: entry.desired.as_ref().map(changed),
        data: entry.data.as_ref().map(changed),
        outputs: entry.outputs.as_ref().map(changed),
        previous: entry.previous.to_string(),
    }
}

fn changed(changed: &Changed) -> ChangedView {
    let inline = changed.inline.as_deref().and_then(|text| interlock_kernel::doc::Doc::parse(text).ok());
    ChangedView { digest: changed.digest.map(|digest| digest.to_string()), value: inline.map(Document) }
}

fn kind_of(what: &What) -> (&'static str, Option<String>) {
    match what {
        What::Created => ("created", None),
        What::Event(name) => ("event", Some(name.to_string())),
        What::Queued(name) => ("queued", Some(name.to_string())),
        What::Refused(name, _) => ("refused", Some(name.to_string())),
        What::Applied(_) => ("applied", None),
        What::DesiredChanged => ("desired-changed", None),
        What::Transition(name) => ("transition", Some(name.to_string())),
        What::Saved(name) => ("saved", Some(name.to_string())),
        What::Timer(name) => ("timer", Some(name.to_string())),
        What::Begun(_) => ("begun", None),
        What::Ended(..) => ("ended", None),
        What::FailurePath(_) => ("failure-path", None),
        What::Parked(..) => ("parked", None),
        What::Unparked => ("unparked", None),
        What::Killed(_) => ("killed", None),
        What::Deleted => ("deleted", None),
        What::Leased(lease) => ("leased", Some(lease.to_string())),
        What::Returned(lease) => ("returned", Some(lease.to_string())),
        What::LeaseLost(lease) => ("lease-lost", Some(lease.to_string())),
        What::Awaits(lease) => ("awaits", Some(lease.to_string())),
        What::Unlocked(..) => ("unlocked", None),
        What::Effect(what, target, ..) => {
            let kind = match what {
                EffectWhat::Done => "effect-done",
                EffectWhat::Fenced => "effect-fenced",
                EffectWhat::Failed => "effect-failed",
                EffectWhat::Dropped => "effect-dropped",
                EffectWhat::Retried => "effect-retried",
            };
            (kind, Some(target.to_string()))
        }
        What::Fact(..) => ("fact", None),
    }
}
