//! What clients and operators do to an entity besides sending events: apply, delete, kill, unpark.

use super::arm::Entered;
use super::draft::{Draft, Given, Tag};
use super::enter::{Ending, Entry, breach, oversize};
use super::event::busy;
use super::no_entity;
use crate::command::{Outcome, Stage};
use crate::doc::Doc;
use crate::ids::EntityId;
use crate::limits::BUSY_RETRY_MS;
use crate::machine::{ApplyPolicy, KILLED, StateKind};
use crate::record::{BeginReason, Cause, CauseKind, Expires, Failure, Key, Outbox, Part, Record, What};
use crate::rejection::{Code, Rejection, cut};
use crate::view::{Decision, Schema, Stop};

/// Writes `desired`: needs no lock, bumps the generation, never conflicts with a step.
pub(super) fn apply(
    given: &Given<'_>,
    entity: &EntityId,
    desired: &Doc,
    expect: Option<u64>,
    checked: Option<u64>,
) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::refused(no_entity(entity)));
    };
    draft.adopt()?;
    if checked != Some(draft.head.revision)
        && let Err(found) = given.rules.check(&entity.machine, draft.head.revision, Schema::Desired, desired)
    {
        return draft.refuse(breach(Code::Invalid, "desired", &found));
    }
    let generation = draft.head.generation;
    if expect.is_none() && draft.revision.machine.apply == ApplyPolicy::IfMatch {
        let refused = Rejection::new(
            Code::Invalid,
            entity,
            format!("If-Match with the generation it replaces (now {generation})"),
            "none",
        );
        return draft.refuse(refused);
    }
    if draft.state()?.kind.is_final() {
        let refused =
            Rejection::new(Code::Final, entity, "an entity that is not final", format!("{} (final)", draft.head.state));
        return draft.refuse(refused);
    }
    let same = draft.doc(Part::Desired)?.as_ref() == Some(desired);
    let repeated = expect.is_none_or(|expect| expect == generation || expect.saturating_add(1) == generation);
    if same && repeated && generation > 0 {
        return Ok(Decision::plain(Outcome::Applied { generation }));
    }
    if expect.is_some_and(|expect| expect != generation) {
        let expected = format!("generation {}", expect.unwrap_or_default());
        return draft.refuse(Rejection::new(Code::Conflict, entity, expected, format!("generation {generation}")));
    }
    if let Some(refused) = oversize("desired", desired) {
        return draft.refuse(refused);
    }
    // Nothing refuses below this line.
    if draft.head.lock.as_ref().is_some_and(|lock| lock.generation == generation) {
        let held = draft.doc(Part::Desired)?;
        draft.put(Part::Held, held)?;
    }
    draft.put(Part::Desired, Some(desired.clone()))?;
    draft.head.generation = generation.saturating_add(1);
    let generation = draft.head.generation;
    draft.record(What::Applied(generation), Tag::default());
    draft.finish(Outcome::Applied { generation })
}

/// Away with an entity at rest or over. What is remembered of its events stays for its window, its
/// history for its retention.
pub(super) fn delete(given: &Given<'_>, entity: &EntityId) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::refused(no_entity(entity)));
    };
    if draft.state()?.kind == StateKind::Working {
        let refused = busy(&draft)?;
        return draft.refuse(refused);
    }
    // What was given up went with the visit that it was given up in.
    let Outbox { unsettled, .. } = draft.head.outbox;
    if unsettled > 0 {
        let got = format!("{unsettled} on their way");
        let refused = Rejection::new(Code::Busy, entity, "an entity without unsettled effects", got);
        return draft.refuse(refused.retry_after(BUSY_RETRY_MS));
    }
    // Nothing refuses below this line.
    let index = draft.head.index(entity);
    draft.head.timers.clear();
    draft.head.due = None;
    draft.head.deadline = None;
    draft.record(What::Deleted, Tag::default());
    let head = draft.head.clone();
    let until = given.now.store.plus(draft.revision.machine.limits.history_ms);
    let expiry = draft.history_expiry(until);
    let expires = Expires::History(entity.clone(), head.incarnation, head.history.first, head.history.last);
    let mut decision = Decision::plain(Outcome::Now { version: head.version, state: head.state, changed: true });
    decision.writes = std::mem::take(&mut draft.writes);
    decision.writes.push((expiry, Some(Record::Expires(expires))));
    decision.writes.extend(index.into_iter().map(|key| (key, None)));
    decision.writes.extend(Part::ALL.map(|part| (Key::Part(entity.clone(), part), None)));
    decision.writes.push((Key::Head(entity.clone()), None));
    Ok(decision)
}

/// Ends whatever an entity does, for good. Always works, needs no payload.
pub(super) fn kill(given: &Given<'_>, entity: &EntityId, reason: &str) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::refused(no_entity(entity)));
    };
    // Also out of a state that its revision does not have: kill always works.
    if draft.machine().state(&draft.head.state).is_some_and(|state| state.kind.is_final()) {
        let outcome = Outcome::Now { version: draft.head.version, state: draft.head.state.clone(), changed: false };
        return Ok(Decision::plain(outcome));
    }
    // Nothing refuses below this line.
    let reason = cut(reason);
    let from = draft.head.state.clone();
    let execution = draft.head.lock.as_ref().map(|lock| lock.ordinal);
    let attempt = draft.head.lock.as_ref().and_then(|lock| lock.attempt).map(|open| (open.ordinal, open.token));
    draft.fence("killed");
    let cause = Cause { kind: CauseKind::Operator, name: KILLED.clone(), id: None, at: given.now.wall, payload: false };
    let failure = Failure { permanent: true, code: "killed".to_owned(), reason: reason.clone(), retry_after_ms: None };
    let ends = Ending::Failed(failure);
    let (timers, stage) = (Vec::new(), Stage::default());
    draft.enter(Entry { to: KILLED.clone(), cause, payload: None, timers, stage, ends })?;
    draft.record(What::Killed(reason), Tag { from: Some(from), execution, attempt, ..Tag::default() });
    let outcome = Outcome::Now { version: draft.head.version, state: draft.head.state.clone(), changed: true };
    draft.finish(outcome)
}

/// Tries again with fresh budgets. What is not parked stays as it is.
pub(super) fn unpark(given: &Given<'_>, entity: &EntityId) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::refused(no_entity(entity)));
    };
    if draft.head.park.is_none() {
        let outcome = Outcome::Now { version: draft.head.version, state: draft.head.state.clone(), changed: false };
        return Ok(Decision::plain(outcome));
    }
    if let Some(park) = draft.head.park.as_ref().filter(|_| draft.head.is_inconsistent()) {
        let got = format!("inconsistent: {} (kill ends it)", park.reason);
        let refused = Rejection::new(Code::NotAllowed, entity, "an entity whose records agree", got);
        return draft.refuse(refused);
    }
    draft.adopt()?;
    let state = draft.state()?;
    // A stranded wait is waited for once more.
    let timers = if state.step.is_none() && draft.head.timers.is_empty() { draft.arm_again()? } else { Ok(Vec::new()) };
    let timers = match timers {
        Ok(timers) => timers,
        Err(refused) => return draft.refuse(refused),
    };
    // Nothing refuses below this line.
    draft.head.park = None;
    draft.head.timers.extend(timers);
    let limit = draft.revision.machine.limits.execution_ms.map(|ms| given.now.store.plus(ms));
    if let Some(lock) = draft.head.lock.as_mut() {
        lock.failed = 0;
        lock.lost = 0;
        lock.chain = 0;
        lock.limit = limit;
        lock.progress = given.now.wall;
    }
    if draft.head.deadline.is_none() {
        draft.head.deadline = state.deadline_ms.map(|ms| given.now.store.plus(ms));
    }
    if state.step.is_some() {
        draft.begin_as(BeginReason::Unparked)?;
    } else {
        draft.record(What::Unparked, Tag::default());
    }
    let outcome = Outcome::Now { version: draft.head.version, state: draft.head.state.clone(), changed: true };
    draft.finish(outcome)
}

/// What could still move a working entity without an operator, in words.
fn movers(draft: &Draft<'_>) -> Result<Vec<&'static str>, Stop> {
    let head = &draft.head;
    let of_lock = |holds: fn(&crate::record::Lock) -> bool| head.lock.as_ref().is_some_and(holds);
    Ok([
        (of_lock(|lock| lock.attempt.is_some()), "an attempt that runs"),
        (of_lock(|lock| lock.retry.is_some()), "an attempt after its back-off"),
        (head.awaits.is_some(), "a lease it waits for"),
        (!head.timers.is_empty(), "a timer"),
        (head.outbox.unsettled > 0, "an effect on its way"),
        (head.deadline.is_some(), "its deadline"),
        (!draft.state()?.on.is_empty(), "an event"),
    ]
    .into_iter()
    .filter(|(moves, _)| *moves)
    .map(|(_, what)| what)
    .collect())
}

/// Ends an execution as a failure does, into a rest or failed final state. By force, with a reason, while
/// something else could still move it.
pub(super) fn unlock(
    given: &Given<'_>,
    entity: &EntityId,
    to: &crate::ids::Name,
    force: bool,
    reason: &str,
) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::refused(no_entity(entity)));
    };
    let machine = draft.machine();
    let fits = |kind: StateKind| matches!(kind, StateKind::Rest | StateKind::Failed);
    if !machine.state(to).is_some_and(|state| fits(state.kind)) {
        let names = machine.states.iter().filter(|(_, state)| fits(state.kind)).map(|(name, _)| name.as_str());
        let expected = format!("a rest or failed final state: {}", names.collect::<Vec<_>>().join(" or "));
        return draft.refuse(Rejection::new(Code::Invalid, entity, expected, to));
    }
    if force && reason.trim().is_empty() {
        return draft.refuse(Rejection::new(Code::Invalid, entity, "a reason, for the record", "none"));
    }
    if let Some(park) = draft.head.park.as_ref().filter(|_| draft.head.is_inconsistent()) {
        let got = format!("inconsistent: {} (kill ends it)", park.reason);
        return draft.refuse(Rejection::new(Code::NotAllowed, entity, "an entity whose records agree", got));
    }
    if draft.head.lock.is_none() {
        if draft.head.state == *to {
            let outcome = Outcome::Now { version: draft.head.version, state: to.clone(), changed: false };
            return Ok(Decision::plain(outcome));
        }
        let expected = "an entity that an execution holds";
        let got = format!("{}, unlocked", draft.head.state);
        return draft.refuse(Rejection::new(Code::NotAllowed, entity, expected, got));
    }
    let movers = movers(&draft)?;
    if !force && !movers.is_empty() {
        let refused = busy(&draft)?;
        let got = format!("{}; {} can still move it", refused.got, movers.join(", "));
        let expected = "an execution that nothing but an operator can move (or force, with a reason)".to_owned();
        return draft.refuse(Rejection { expected, got, ..refused });
    }
    let documents = draft.documents()?;
    let stage = Stage::default();
    let entered = Entered { documents: &documents, event: None, by: CauseKind::Operator, stage: &stage };
    let timers = match draft.ready(Some(to), &entered, None)? {
        Ok(timers) => timers,
        Err(refused) => return draft.refuse(refused),
    };
    // Nothing refuses below this line.
    let reason = cut(reason);
    let from = draft.head.state.clone();
    let execution = draft.head.lock.as_ref().map(|lock| lock.ordinal);
    let attempt = draft.head.lock.as_ref().and_then(|lock| lock.attempt).map(|open| (open.ordinal, open.token));
    draft.fence("unlocked");
    let cause = Cause { kind: CauseKind::Operator, name: from.clone(), id: None, at: given.now.wall, payload: false };
    let failure =
        Failure { permanent: true, code: "unlocked".to_owned(), reason: reason.clone(), retry_after_ms: None };
    let ends = Ending::Failed(failure);
    draft.enter(Entry { to: to.clone(), cause, payload: None, timers, stage, ends })?;
    draft.record(What::Unlocked(reason, force), Tag { from: Some(from), execution, attempt, ..Tag::default() });
    let outcome = Outcome::Now { version: draft.head.version, state: draft.head.state.clone(), changed: true };
    draft.finish(outcome)
}
