//! The moves every verb shares: applying a `set`, entering a visit, ending an execution, failing, parking.

use super::arm::Entered;
use super::draft::{Draft, Scope, Tag};
use crate::command::Stage;
use crate::doc::Doc;
use crate::ids::Name;
use crate::limits::{CONDITION_BYTES_MAX, CONDITIONS_MAX, DEPTH_MAX, DOCUMENT_BYTES_MAX};
use crate::machine::{FailurePath, Machine, Move, StateKind};
use crate::record::{
    AnswerKind, Cause, CauseKind, Condition, Failure, Key, LastExecution, Lock, Park, Part, Record, Timer, What,
};
use crate::rejection::{Code, Rejection, cut};
use crate::theorems;
use crate::value::{Mutation, Root, Roots, Value, Verdict};
use crate::view::{Breach, Documents, Schema, Stop, Wake};

/// How a visit is entered.
pub(super) struct Entry {
    pub(super) to: Name,
    pub(super) cause: Cause,
    pub(super) payload: Option<Doc>,
    /// Its timers, as the revision has them that judged the move.
    pub(super) timers: Vec<Timer>,
    /// What they were staged with, for a newer revision to judge.
    pub(super) stage: Stage,
    /// How the execution ended, if this ends it.
    pub(super) ends: Ending,
}

/// How an execution ends when the state it enters is at rest or final.
pub(super) enum Ending {
    /// As the state says: succeeded but in a failed final state.
    AsTheStateSays,
    /// By a failure path or an operator.
    Failed(Failure),
}

/// A rejection for a breach of a schema.
pub(super) fn breach(code: Code, schema: &str, breach: &Breach) -> Rejection {
    Rejection::new(code, format!("{schema}{}", breach.path), &breach.expected, &breach.got)
}

/// A document that is too large, or too deep, to be stored and read again.
pub(super) fn oversize(name: &str, doc: &Doc) -> Option<Rejection> {
    let (bytes, depth) = (doc.text().len(), doc.depth());
    if bytes > DOCUMENT_BYTES_MAX {
        let expected = format!("at most {DOCUMENT_BYTES_MAX} bytes (document_bytes_max)");
        return Some(Rejection::new(Code::Limit, name, expected, format!("{bytes} bytes")));
    }
    (depth > DEPTH_MAX).then(|| {
        let expected = format!("at most {DEPTH_MAX} levels (depth_max)");
        Rejection::new(Code::Limit, name, expected, format!("{depth} levels"))
    })
}

/// What is not a step's to write: a field outside of data and outputs, a condition of the host's own.
pub(super) fn denied(set: &[Mutation], conditions: &[Condition]) -> Option<Rejection> {
    let own = |root: Root| matches!(root, Root::Data | Root::Outputs);
    if let Some(foreign) = set.iter().find(|one| !own(one.field.root)) {
        let got = format!("{} (clients write desired)", foreign.field);
        return Some(Rejection::new(Code::Denied, &foreign.field, "a field of data or outputs", got));
    }
    let reserved = conditions.iter().find(|one| one.kind.is_empty() || one.kind.starts_with("interlock/"))?;
    Some(Rejection::new(Code::Denied, "conditions", "a type of the author's own", format!("{:?}", reserved.kind)))
}

/// Documents after mutations.
pub(super) fn mutate(
    documents: &mut Documents,
    set: &[Mutation],
    scope: &Scope,
    now: crate::time::Now,
) -> Result<(), Rejection> {
    if set.is_empty() {
        return Ok(());
    }
    if let Some(refused) = denied(set, &[]) {
        return Err(refused);
    }
    let value = |doc: &Option<Doc>| doc.as_ref().map_or(serde_json::Value::Null, |doc| doc.value().clone());
    let (mut data, mut outputs) = (value(&documents.data), value(&documents.outputs));
    for mutation in set {
        // Each sees what those before it did.
        let seen = Roots { data: Some(&data), outputs: Some(&outputs), ..scope.roots(now) };
        let resolved = seen.value(&mutation.value).map(Doc::new);
        // Bounded here too: a document that is put into itself doubles, and sixty-four times that is more than any memory.
        if let Some(refused) = resolved.as_ref().and_then(|doc| oversize(&mutation.field.to_string(), doc)) {
            return Err(refused);
        }
        let resolved = resolved.map(Value::Json);
        let mutation = Mutation { value: resolved.unwrap_or_else(|| mutation.value.clone()), ..mutation.clone() };
        let target = if mutation.field.root == Root::Outputs { &mut outputs } else { &mut data };
        mutation
            .apply(target, &scope.roots(now))
            .map_err(|why| Rejection::new(Code::Invalid, &mutation.field, "a change that its value allows", why))?;
    }
    for (root, slot, value) in
        [(Root::Data, &mut documents.data, data), (Root::Outputs, &mut documents.outputs, outputs)]
    {
        let touched = set.iter().any(|one| one.field.root == root);
        let missing = slot.is_none() && value.is_null(); // something was removed from nothing
        if touched && !missing {
            *slot = Some(Doc::new(value));
        }
    }
    Ok(())
}

impl Draft<'_> {
    pub(super) fn scope(&mut self, event: Option<Doc>) -> Result<Scope, Stop> {
        Ok(Scope {
            documents: self.documents()?,
            event,
            execution: self.head.locked_by(&self.id).map(|id| id.to_string()),
        })
    }

    /// Data and outputs against the schemas of the revision that judges.
    pub(super) fn check(&mut self, documents: &Documents, checked: Option<u64>) -> Result<Option<Rejection>, Stop> {
        let mut changed = Vec::new();
        for (part, schema, doc) in
            [(Part::Data, Schema::Data, &documents.data), (Part::Outputs, Schema::Outputs, &documents.outputs)]
        {
            if let Some(doc) = doc.as_ref()
                && self.doc(part)?.as_ref() != Some(doc)
            {
                changed.push((schema, doc));
            }
        }
        for (schema, doc) in changed.iter().filter(|_| checked != Some(self.head.revision)) {
            if let Err(found) = self.given.rules.check(&self.id.machine, self.head.revision, *schema, doc) {
                return Ok(Some(breach(Code::Invalid, &schema.to_string(), &found)));
            }
        }
        Ok(changed.into_iter().find_map(|(schema, doc)| oversize(&schema.to_string(), doc)))
    }

    /// Writes data and outputs.
    pub(super) fn keep(&mut self, documents: Documents) -> Result<(), Stop> {
        self.put(Part::Data, documents.data)?;
        self.put(Part::Outputs, documents.outputs)
    }

    /// The first move whose guard holds, or why none does.
    pub(super) fn choose(&mut self, moves: &[Move], scope: &Scope) -> Result<Move, Rejection> {
        let now = self.now();
        let mut last = None;
        for one in moves {
            match one.guard.judge(&scope.roots(now), &mut self.mismatches) {
                Verdict::Holds => return Ok(one.clone()),
                Verdict::Fails { expected, got } => last = Some((expected, got)),
            }
        }
        let (expected, got) = last.unwrap_or_else(|| ("a move".to_owned(), "none declared".to_owned()));
        Err(Rejection::new(Code::Guard, &self.id, expected, got))
    }

    /// Makes a move of an event or timer: `set`, then the visit it enters, or the same one.
    /// Nothing is changed if it is refused.
    pub(super) fn make(&mut self, one: &Move, cause: Cause, scope: Scope) -> Result<Result<(), Rejection>, Stop> {
        let mut documents = scope.documents.clone();
        if let Err(refused) = mutate(&mut documents, &one.set, &scope, self.now()) {
            return Ok(Err(refused));
        }
        let stage = Stage::default();
        let entered = Entered { documents: &documents, event: scope.event.as_ref(), by: cause.kind, stage: &stage };
        let timers = match self.ready(one.to.as_ref(), &entered, None)? {
            Ok(timers) => timers,
            Err(refused) => return Ok(Err(refused)),
        };
        self.keep(documents)?;
        match &one.to {
            Some(to) => {
                let ends = Ending::AsTheStateSays;
                self.enter(Entry { to: to.clone(), cause, payload: scope.event, timers, stage, ends })?;
            }
            None => {
                self.head.version = self.head.version.next();
                if let Some(lock) = self.head.lock.as_mut() {
                    lock.progress = self.given.now.wall;
                }
            }
        }
        Ok(Ok(()))
    }

    /// Enters a state: version + 1, a new visit, and what the state needs.
    pub(super) fn enter(&mut self, entry: Entry) -> Result<(), Stop> {
        let now = self.now();
        self.fence("another visit was entered");
        self.head.awaits = None;
        self.leave_effects(matches!(entry.ends, Ending::Failed(_)))?;
        self.forget_memos()?;
        self.head.version = self.head.version.next();
        self.head.visit = self.head.version;
        self.head.entered = now.wall;
        self.head.timers = entry.timers;
        self.head.park = None;
        self.head.state = entry.to;
        self.adopt_at_entry(entry.cause.kind, entry.payload.as_ref(), &entry.stage)?;
        let state = self.state()?;
        let by = entry.cause.clone();
        self.head.cause = Cause { payload: entry.payload.is_some(), ..entry.cause };
        self.overwrite_cause(entry.payload)?;
        // Only a visit that is worked on can take too long.
        self.head.deadline = state.deadline_ms.filter(|_| state.kind.is_locked()).map(|ms| now.store.plus(ms));
        match state.kind {
            StateKind::Working => self.work(&by, state.step.is_some())?,
            StateKind::Rest => self.release(&by, entry.ends, true)?,
            StateKind::Succeeded => self.release(&by, entry.ends, true)?,
            StateKind::Failed => self.release(&by, entry.ends, false)?,
        }
        if state.kind.is_final() {
            self.head.timers.clear();
            self.head.deadline = None;
            self.refuse_inbox()?;
        }
        Ok(())
    }

    fn overwrite_cause(&mut self, payload: Option<Doc>) -> Result<(), Stop> {
        match payload {
            Some(doc) => self.overwrite(Part::Cause, Some(doc)),
            None => self.put(Part::Cause, None)?,
        }
        Ok(())
    }

    fn work(&mut self, cause: &Cause, runs: bool) -> Result<(), Stop> {
        let now = self.now();
        let limits = self.revision.machine.limits.clone();
        let chained = matches!(cause.kind, CauseKind::Transition | CauseKind::Failure | CauseKind::Deadline);
        let lock = match self.head.lock.take() {
            Some(lock) => Lock {
                chain: if runs && chained { lock.chain.saturating_add(1) } else { 0 },
                progress: now.wall,
                saves: 0,
                base: self.head.version,
                attempts: 0,
                failed: 0,
                lost: 0,
                attempt: None,
                retry: None,
                failure: None,
                ..lock
            },
            None => {
                self.head.executions = self.head.executions.saturating_add(1);
                Lock {
                    ordinal: self.head.executions,
                    started_by: cause.name.clone(),
                    since: now.wall,
                    progress: now.wall,
                    generation: self.head.generation,
                    chain: 0,
                    saves: 0,
                    base: self.head.version,
                    attempts: 0,
                    failed: 0,
                    lost: 0,
                    attempt: None,
                    retry: None,
                    limit: limits.execution_ms.map(|ms| now.store.plus(ms)),
                    failure: None,
                }
            }
        };
        let chain = lock.chain;
        self.head.lock = Some(lock);
        if !runs {
            return Ok(());
        }
        if chain >= limits.transitions {
            let reason =
                format!("{chain} transitions in a row without a wait (limits.transitions = {})", limits.transitions);
            self.afterwards.push(What::Parked("runaway".to_owned(), reason.clone()));
            self.head.park = Some(Park { code: "runaway".to_owned(), reason, since: now.wall });
            self.wake.push(Wake::Settled(self.id.clone()));
            return Ok(());
        }
        self.begin_first()
    }

    /// Ends the execution, if there is one: the lock is free in the same transaction.
    fn release(&mut self, cause: &Cause, ends: Ending, good: bool) -> Result<(), Stop> {
        let Some(lock) = self.head.lock.take() else {
            if cause.kind == CauseKind::DesiredChanged {
                self.head.observed = self.head.generation;
            }
            return Ok(());
        };
        let ended = self.head.execution(&self.id, lock.ordinal);
        self.end_leases(ended.clone())?;
        if std::mem::take(&mut self.head.holds) {
            self.ended = Some(ended);
        }
        self.head.observed = lock.generation;
        if lock.generation != self.head.generation {
            self.put(Part::Held, None)?;
        }
        let failure = match ends {
            Ending::Failed(failure) => Some(failure),
            Ending::AsTheStateSays if good => None,
            Ending::AsTheStateSays => Some(Failure {
                permanent: true,
                code: "failed-state".to_owned(),
                reason: format!("ended in {}", self.head.state),
                retry_after_ms: None,
            }),
        };
        self.head.last = Some(LastExecution {
            ordinal: lock.ordinal,
            succeeded: failure.is_none(),
            version: self.head.version,
            state: self.head.state.clone(),
        });
        self.publish_outcome(lock.ordinal, failure)?;
        self.wake.push(Wake::Settled(self.id.clone()));
        Ok(())
    }

    /// The host's own condition: set by a failed execution, cleared by the next that succeeds.
    fn publish_outcome(&mut self, ordinal: u64, failure: Option<Failure>) -> Result<(), Stop> {
        const KIND: &str = "interlock/execution";
        let mut conditions = self.conditions()?;
        let before = conditions.len();
        conditions.retain(|condition| condition.kind != KIND);
        if failure.is_none() && before == conditions.len() {
            return Ok(());
        }
        if let Some(failure) = failure {
            conditions.push(Condition {
                kind: KIND.to_owned(),
                status: "failed".to_owned(),
                reason: failure.code,
                message: format!("{}: {}", self.head.execution(&self.id, ordinal), failure.reason),
                since: self.now().wall,
            });
        }
        self.set_conditions(conditions);
        Ok(())
    }

    /// Merges what a step publishes: see [`denied`] for what it may not.
    pub(super) fn publish(&mut self, published: &[Condition]) -> Result<Result<(), Rejection>, Stop> {
        if published.is_empty() {
            return Ok(Ok(()));
        }
        let mut conditions = self.conditions()?;
        for one in published {
            if one.kind.len() > CONDITION_BYTES_MAX {
                let expected = format!("a type of at most {CONDITION_BYTES_MAX} bytes (condition_bytes_max)");
                return Ok(Err(Rejection::new(
                    Code::Limit,
                    "conditions",
                    expected,
                    format!("{} bytes", one.kind.len()),
                )));
            }
            let status = cut(&one.status);
            let since = conditions.iter().find(|old| old.kind == one.kind && old.status == status).map(|old| old.since);
            conditions.retain(|old| old.kind != one.kind);
            conditions.push(Condition {
                kind: one.kind.clone(),
                status,
                reason: cut(&one.reason),
                message: cut(&one.message),
                since: since.unwrap_or(self.now().wall),
            });
        }
        let own = conditions.iter().filter(|one| !one.kind.starts_with("interlock/")).count();
        if own > CONDITIONS_MAX {
            let expected = format!("at most {CONDITIONS_MAX} (conditions_max)");
            return Ok(Err(Rejection::new(Code::Limit, "conditions", expected, own)));
        }
        self.set_conditions(conditions);
        Ok(Ok(()))
    }

    /// Takes the declared way after a failure; parks if there is none, or if it cannot be taken.
    pub(super) fn fail(&mut self, path: &FailurePath, failure: Failure, code: &str, tag: Tag) -> Result<(), Stop> {
        let (to, set) = match path {
            FailurePath::Park => {
                self.park(code, &format!("{}: {}", failure.code, failure.reason), tag);
                return Ok(());
            }
            FailurePath::To { to, set } => (to, set),
        };
        let payload = Doc::new(serde_json::json!({
            "code": failure.code,
            "reason": failure.reason,
            "permanent": failure.permanent,
            "state": self.head.state.as_str(),
        }));
        let scope = self.scope(Some(payload))?;
        let mut documents = scope.documents.clone();
        let kind = if failure.code == "deadline" { CauseKind::Deadline } else { CauseKind::Failure };
        let ready = match mutate(&mut documents, set, &scope, self.now()) {
            Err(refused) => Err(refused),
            Ok(()) => {
                let entered =
                    Entered { documents: &documents, event: scope.event.as_ref(), by: kind, stage: &Stage::default() };
                self.ready(Some(to), &entered, None)?
            }
        };
        let timers = match ready {
            Ok(timers) => timers,
            Err(refused) => {
                let reason = format!("{}: {}; its failure path: {refused}", failure.code, failure.reason);
                self.park("failure-path", &reason, tag);
                return Ok(());
            }
        };
        self.keep(documents)?;
        let cause = Cause { kind, name: self.head.state.clone(), id: None, at: self.now().wall, payload: false };
        let from = self.head.state.clone();
        let execution = self.head.lock.as_ref().map(|lock| lock.ordinal);
        let ends = Ending::Failed(failure.clone());
        let stage = Stage::default();
        self.enter(Entry { to: to.clone(), cause, payload: scope.event, timers, stage, ends })?;
        self.record(What::FailurePath(failure), Tag { from: Some(from), execution, ..tag });
        Ok(())
    }

    /// Stops trying, visibly. The lock stays: an operator decides.
    pub(super) fn park(&mut self, code: &str, reason: &str, tag: Tag) {
        self.fence("parked");
        if let Some(lock) = self.head.lock.as_mut() {
            lock.retry = None;
            lock.limit = None;
        }
        self.head.awaits = None;
        let (code, reason) = (code.to_owned(), cut(reason));
        self.head.park = Some(Park { code: code.clone(), reason: reason.clone(), since: self.now().wall });
        self.wake.push(Wake::Settled(self.id.clone()));
        self.record(What::Parked(code, reason), tag);
    }

    /// Parks what nothing but an operator or a declared event could still move: a visit whose last
    /// timer has fired without leaving it.
    pub(super) fn park_if_stranded(&mut self, reason: &str) {
        if !theorems::live_entity_has_a_wake_cause(&self.head, &self.revision.machine) {
            self.park("stranded", reason, Tag::default());
        }
    }

    /// A final state takes nothing more: whoever waits is told.
    fn refuse_inbox(&mut self) -> Result<(), Stop> {
        if self.head.inbox.length == 0 {
            return Ok(());
        }
        for (key, event) in self.waiting()? {
            let got = format!("{} (final)", self.head.state);
            let refused = Rejection::new(Code::Final, &self.id, "an entity that is not final", got);
            self.turn_answer(&event.id, AnswerKind::Refused, None, Some(refused))?;
            self.writes.push((key, None));
        }
        self.head.inbox.length = 0;
        Ok(())
    }

    /// Changes the remembered answer of a queued event, and remembers it for a whole window more.
    pub(super) fn turn_answer(
        &mut self,
        event: &crate::ids::EventId,
        kind: AnswerKind,
        execution: Option<u64>,
        rejection: Option<Rejection>,
    ) -> Result<(), Stop> {
        let key = Key::Dedup(self.id.clone(), event.clone());
        self.wake.push(Wake::Settled(self.id.clone()));
        let Some(Record::Dedup(mut dedup)) = self.given.view.get(&key)? else {
            return Ok(());
        };
        let window = dedup.window_ms;
        dedup.answer.kind = kind;
        dedup.answer.execution = execution;
        dedup.answer.version = self.head.version;
        dedup.answer.state = self.head.state.clone();
        dedup.answer.rejection = rejection;
        dedup.until = self.now().store.plus(window);
        let expiry = self.expiry(dedup.until);
        let expires = crate::record::Expires::Dedup(self.id.clone(), event.clone());
        self.writes.push((key, Some(Record::Dedup(dedup))));
        self.writes.push((expiry, Some(Record::Expires(expires))));
        Ok(())
    }
}

/// The failure path of a state that applies.
pub(super) fn path(machine: &Machine, state: &Name, permanent: bool) -> FailurePath {
    machine.state(state).map_or(FailurePath::Park, |state| {
        if permanent { state.on_permanent.clone() } else { state.on_exhausted.clone() }
    })
}
