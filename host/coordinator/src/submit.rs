//! The one place that commits (invariant A3): a command in, a decision of the kernel, one transaction.
//!
//! Nothing else opens a write transaction. A refusal that records facts is durable before it is told,
//! and so is what any refusal read; a refusal that records nothing writes nothing.

use crate::codec;
use crate::core::Core;
use crate::counters::Counters;
use crate::dispatch::Running;
use crate::error::SubmitError;
use crate::txn::{self, Seen, TxnView};
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::decide;
use interlock_kernel::ids::{EntityId, LeaseName, RowKey, ScheduleName, TableName};
use interlock_kernel::limits::{INBOX_MAX, LEASES_MAX};
use interlock_kernel::record::{
    EffectWhat, Entry, Fired, Firing, Key, LeaseEntry, LeaseWhat, Record, RowEntry, RowWhat, What,
};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::view::{Decision, Wake};
use interlock_store::{Fate, Halt, Job, Lane, StoreError, Txn};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Decisions of one transaction for one entity: the command, every queued event, `desired-changed`, and one to
/// find that nothing is left. A command that finds every lease of an execution lost to time decides for the
/// former owners as well.
const CHAIN_MAX: u32 = (INBOX_MAX + 3) * (LEASES_MAX as u32 + 1);

/// What a caller is told to wait when the queue is full, in ms: about as long as the store needs to
/// work off a full queue.
const CONTENDED_MS: u64 = 200;

/// Which queue a command waits in: what a running execution needs, and what an operator ends or begins
/// again with, goes before new work.
fn lane(verb: &Verb) -> Lane {
    match verb {
        Verb::OpenSession { .. }
        | Verb::CloseSession
        | Verb::Save(..)
        | Verb::Transition(..)
        | Verb::End(..)
        | Verb::Recover(_)
        | Verb::Due(_)
        | Verb::Fire { .. }
        | Verb::Kill { .. }
        | Verb::Unpark(_)
        | Verb::Unlock { .. }
        | Verb::Extend { .. }
        | Verb::Release { .. }
        | Verb::Withdraw { .. }
        | Verb::Lease(..)
        | Verb::Renew(_)
        | Verb::Lapse(_)
        | Verb::Lose(..)
        | Verb::Turn(..)
        | Verb::Send(..)
        | Verb::Settle { .. }
        | Verb::Resend(..)
        | Verb::Retry(..)
        | Verb::StepRows(..)
        | Verb::RowDue(..)
        | Verb::TakeBack(_)
        | Verb::FireSchedule { .. }
        | Verb::Drop { .. } => Lane::Completion,
        Verb::Deploy(_)
        | Verb::Rollback { .. }
        | Verb::Create(_)
        | Verb::Apply { .. }
        | Verb::Delete(_)
        | Verb::Deliver { .. }
        | Verb::Continue(_)
        | Verb::Acquire(_)
        | Verb::Sweep
        | Verb::Declare(_)
        | Verb::DropTable(_)
        | Verb::Rows(_)
        | Verb::Tend(_)
        | Verb::Schedule(_)
        | Verb::DropSchedule(_)
        | Verb::PauseSchedule { .. }
        | Verb::AuditLease { .. }
        | Verb::Audit { .. } => Lane::Admission,
    }
}

/// Whether a host that stops still takes it.
fn is_new_work(verb: &Verb) -> bool {
    match verb {
        Verb::Deploy(_)
        | Verb::Rollback { .. }
        | Verb::Create(_)
        | Verb::Apply { .. }
        | Verb::Delete(_)
        | Verb::Kill { .. }
        | Verb::Unpark(_)
        | Verb::Deliver { .. }
        | Verb::Recover(_)
        | Verb::Due(_)
        | Verb::Fire { .. }
        | Verb::Sweep
        | Verb::Acquire(_)
        | Verb::Unlock { .. }
        | Verb::Lapse(_)
        | Verb::Renew(_)
        | Verb::Send(..)
        | Verb::Resend(..)
        | Verb::Retry(..)
        | Verb::Drop { .. }
        | Verb::Declare(_)
        | Verb::DropTable(_)
        | Verb::Rows(_)
        | Verb::Tend(_)
        | Verb::RowDue(..)
        | Verb::Schedule(_)
        | Verb::DropSchedule(_)
        | Verb::PauseSchedule { .. }
        | Verb::FireSchedule { .. }
        | Verb::AuditLease { .. }
        | Verb::Audit { .. } => true,
        Verb::OpenSession { .. }
        | Verb::CloseSession
        | Verb::Save(..)
        | Verb::Transition(..)
        | Verb::End(..)
        | Verb::Extend { .. }
        | Verb::Release { .. }
        | Verb::Withdraw { .. }
        | Verb::Lease(..)
        | Verb::Lose(..)
        | Verb::Turn(..)
        | Verb::Settle { .. }
        | Verb::StepRows(..)
        | Verb::TakeBack(_)
        | Verb::Continue(_) => false,
    }
}

/// One command on its way through the store.
struct Submission {
    core: Arc<Core>,
    command: Command,
    /// The attempt that asks, told of its own transition before anything else is.
    run: Option<Arc<Running>>,
    last: Option<Decided>,
    reply: oneshot::Sender<Result<Outcome, SubmitError>>,
}

/// What the last run decided.
struct Decided {
    outcome: Result<Outcome, Rejection>,
    wakes: Vec<Wake>,
    seen: Seen,
    writes: usize,
    entries: u64,
    facts: u64,
    mismatches: u64,
    /// What went wrong, to be told once it is durable.
    told: Vec<(EntityId, Entry)>,
    /// What became of leases, to be told with it.
    leases: Vec<(LeaseName, LeaseEntry)>,
    /// What became of rows, likewise.
    rows: Vec<(TableName, RowEntry)>,
}

impl Core {
    /// Checks documents outside of the queue, then decides and commits.
    pub(crate) async fn submit(self: &Arc<Self>, command: Command) -> Result<Outcome, SubmitError> {
        self.submit_as(command, None).await
    }

    /// The same, for an attempt.
    pub(crate) async fn submit_as(
        self: &Arc<Self>,
        mut command: Command,
        run: Option<Arc<Running>>,
    ) -> Result<Outcome, SubmitError> {
        if self.is_refusing() && is_new_work(&command.verb) {
            let why = "the host is stopping".to_owned();
            return Err(StoreError::Unavailable { why }.into());
        }
        self.precheck(&mut command.verb, run.as_deref());
        let lane = lane(&command.verb);
        let (reply, answer) = oneshot::channel();
        let job = Submission { core: self.clone(), command, run, last: None, reply };
        if let Err(full) = self.store().submit(lane, Box::new(job)) {
            return Err(match full.why {
                StoreError::Limit { .. } => {
                    self.counters().contended.add(1);
                    SubmitError::Contended { retry_after_ms: CONTENDED_MS }
                }
                why => SubmitError::Store(why),
            });
        }
        answer.await.unwrap_or_else(|_| {
            let why = "the store went away before it settled the command".to_owned();
            Err(StoreError::Indeterminate { why }.into())
        })
    }
}

impl Submission {
    fn decide(&self, txn: &mut dyn Txn) -> Result<Decided, Halt> {
        let mut decided = Decided {
            outcome: Ok(Outcome::Nothing),
            wakes: Vec::new(),
            seen: Seen::default(),
            writes: 0,
            entries: 0,
            facts: 0,
            mismatches: 0,
            told: Vec::new(),
            leases: Vec::new(),
            rows: Vec::new(),
        };
        let mut then = VecDeque::from([self.command.clone()]);
        for nth in 0..CHAIN_MAX {
            let Some(command) = then.pop_front() else { return Ok(decided) };
            let decision = self.decide_one(txn, &command, &mut decided.seen)?;
            for (key, record) in &decision.writes {
                write(txn, key, record.as_ref(), &mut decided)?;
            }
            decided.writes += decision.writes.len();
            decided.wakes.extend(decision.wake);
            decided.mismatches += u64::from(decision.mismatches);
            if nth == 0 {
                decided.outcome = decision.outcome;
            }
            then.extend(decision.then);
        }
        if then.is_empty() {
            return Ok(decided);
        }
        Err(Halt::Failed(StoreError::Corrupt {
            expected: format!("a command to be followed by at most {CHAIN_MAX} decisions"),
            got: format!("one more: {then:?}"),
        }))
    }

    fn decide_one(&self, txn: &mut dyn Txn, command: &Command, seen: &mut Seen) -> Result<Decision, Halt> {
        let now = txn::now(txn.stamp(), self.core.session());
        let view = TxnView::new(txn, self.core.revisions(), self.core.book());
        let decision = decide(&view, self.core.book(), now, command);
        seen.merge(view.into_seen());
        decision.map_err(|stop| seen.halt(stop))
    }
}

fn write(txn: &mut dyn Txn, key: &Key, record: Option<&Record>, decided: &mut Decided) -> Result<(), Halt> {
    let at = codec::encode(key);
    let Some(record) = record else { return txn.delete(&at) };
    txn.put(&at, record.encode(key).into())?;
    if let (Key::History(entity, ..), Record::Entry(entry)) = (key, record) {
        decided.entries += 1;
        decided.facts += u64::from(matches!(entry.what, What::Fact(..)));
        if matches!(entry.what, What::Ended(..) | What::FailurePath(_) | What::Parked(..) | What::Effect(..)) {
            decided.told.push((entity.clone(), (**entry).clone()));
        }
        // The note is the entry's key: entity, incarnation and number, and where to read it.
        txn.note(at.clone().into())?;
    }
    if let (Key::LeaseEntry(lease, _), Record::LeaseEntry(entry)) = (key, record) {
        decided.leases.push((lease.clone(), (**entry).clone()));
        txn.note(at.into())?;
        return Ok(());
    }
    if let (Key::RowEntry(table, _), Record::RowEntry(entry)) = (key, record) {
        decided.rows.push((table.clone(), (**entry).clone()));
        txn.note(at.into())?;
    }
    Ok(())
}

impl Job for Submission {
    fn run(&mut self, txn: &mut dyn Txn) -> Result<(), Halt> {
        self.last = None;
        let decided = self.decide(txn)?;
        let wrote_nothing = decided.writes == 0 && decided.outcome.is_err();
        self.last = Some(decided);
        // A refusal without a fact wants nothing written; its answer still waits for what it read.
        if wrote_nothing { Err(Halt::Abort) } else { Ok(()) }
    }

    fn settle(self: Box<Self>, fate: Fate) {
        let Self { core, command, run, last, reply } = *self;
        let counters = core.counters();
        let answer = match (fate, last) {
            (Fate::Committed(_) | Fate::Aborted(_), Some(decided)) => {
                counters.decided.add(1);
                counters.entries.add(decided.entries);
                counters.facts.add(decided.facts);
                counters.mismatches.add(decided.mismatches);
                for (entity, entry) in &decided.told {
                    tell(counters, entity, entry);
                }
                for (lease, entry) in &decided.leases {
                    tell_lease(counters, lease, entry);
                }
                for (table, entry) in &decided.rows {
                    tell_rows(counters, table, entry);
                }
                core.revisions().learn(decided.seen);
                if let (Verb::FireSchedule { schedule, .. }, Ok(Outcome::Fired(Some(firing)))) =
                    (&command.verb, &decided.outcome)
                {
                    tell_schedule(schedule, firing);
                }
                if decided.outcome.is_ok() {
                    counters.committed.add(1);
                    if let (Verb::Transition(..), Some(run)) = (&command.verb, &run) {
                        run.written();
                    }
                }
                core.wake(decided.wakes);
                decided.outcome.map_err(|rejection| {
                    counters.refuse(rejection.code);
                    SubmitError::from(rejection)
                })
            }
            (Fate::Failed(error), _) => {
                counters.store_errors.add(1);
                if matches!(error, StoreError::Indeterminate { .. }) {
                    core.resync();
                }
                Err(SubmitError::Store(error))
            }
            (Fate::Committed(_) | Fate::Aborted(_), None) => Err(SubmitError::Store(StoreError::Panicked {
                message: "the command was settled without having been decided".to_owned(),
            })),
        };
        // The caller may have gone; what is decided stays decided.
        let _ = reply.send(answer);
    }
}

/// Counts and logs a failure, and what became of an effect: whoever only looks at numbers or the log hears of it, too.
fn tell(counters: &Counters, entity: &EntityId, entry: &Entry) {
    let (state, attempt) = (&entry.from, entry.attempt);
    match &entry.what {
        What::Ended(failure, next_attempt_ms) => {
            counters.failures.add(1);
            let (code, reason) = (&failure.code, &failure.reason);
            tracing::warn!(%entity, %state, attempt, code, reason, next_attempt_ms, "an attempt failed");
        }
        What::FailurePath(failure) => {
            counters.failures.add(1);
            let (code, reason, to) = (&failure.code, &failure.reason, &entry.to);
            tracing::warn!(%entity, %state, attempt, code, reason, %to, "a visit failed and left on its failure path");
        }
        What::Parked(code, reason) => {
            counters.failures.add(1);
            counters.parked.add(1);
            tracing::warn!(%entity, %state, attempt, code, reason, "parked until an operator decides");
        }
        What::Effect(what, target, number, note) => {
            counters.effect(*what);
            match what {
                EffectWhat::Fenced | EffectWhat::Failed => {
                    tracing::warn!(%entity, number, %target, %what, note, "effect");
                }
                EffectWhat::Done | EffectWhat::Dropped | EffectWhat::Retried => {
                    tracing::info!(%entity, number, %target, %what, note, "effect");
                }
            }
        }
        _not_told => {}
    }
}

/// Counts and logs what became of a lease.
fn tell_lease(counters: &Counters, lease: &LeaseName, entry: &LeaseEntry) {
    let LeaseEntry { what, owner, note, .. } = entry;
    let token = entry.token.map(|token| token.get());
    counters.lease(*what);
    match what {
        LeaseWhat::Expired | LeaseWhat::Fenced | LeaseWhat::Reconciled => {
            tracing::warn!(%lease, %what, owner, token, note, "lease");
        }
        LeaseWhat::Acquired | LeaseWhat::Contended | LeaseWhat::Extended | LeaseWhat::Released => {
            tracing::info!(%lease, %what, owner, token, note, "lease");
        }
    }
}

/// Counts and logs what became of rows.
fn tell_rows(counters: &Counters, table: &TableName, entry: &RowEntry) {
    let RowEntry { what, count, claimant, note, .. } = entry;
    let key = entry.keys.first().map(RowKey::as_str);
    let claimant = claimant.as_deref();
    counters.rows(*what, *count);
    match what {
        RowWhat::Reaped | RowWhat::Dead => tracing::warn!(%table, %what, key, count, claimant, note, "rows"),
        RowWhat::Claimed | RowWhat::Settled | RowWhat::Released | RowWhat::Expired => {
            tracing::info!(%table, %what, key, count, claimant, note, "rows");
        }
    }
}

/// Logs what became of a due time of a schedule.
fn tell_schedule(schedule: &ScheduleName, firing: &Firing) {
    let Firing { due, fired, .. } = firing;
    let due_ms = due.0;
    match fired {
        Fired::Raised(..) => tracing::info!(%schedule, due_ms, %fired, "schedule"),
        Fired::Skipped(_) | Fired::Refused(_) | Fired::Missed(_) => {
            tracing::warn!(%schedule, due_ms, %fired, "schedule");
        }
    }
}

/// What a host that cannot answer says to a step, in the step's own vocabulary.
impl From<&SubmitError> for Rejection {
    fn from(error: &SubmitError) -> Self {
        match error {
            SubmitError::Rejected(rejection) => (**rejection).clone(),
            SubmitError::Contended { retry_after_ms } => {
                Self::new(Code::Unavailable, "store", "room in the queue", "a full one").retry_after(*retry_after_ms)
            }
            SubmitError::Store(error) => {
                Self::new(Code::Unavailable, "store", "a store that answers", error).retry_after(CONTENDED_MS)
            }
        }
    }
}
