//! What time causes: back-off, deadlines and the execution limit by store time; authors' timers by
//! wall time. Late, never early; twice is a recorded no-op.

use super::corrupt;
use super::draft::{Draft, Given, Tag};
use super::enter::path;
use crate::command::Outcome;
use crate::ids::{EntityId, Name};
use crate::machine::FailurePath;
use crate::record::{BeginReason, Cause, CauseKind, FactKind, Failure, Key, What};
use crate::time::{Span, WallTime};
use crate::view::{Decision, Stop};

/// Store time has come to what the index says of this entity.
pub(super) fn due(given: &Given<'_>, entity: &EntityId) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    let now = given.now.store;
    if draft.head.due.is_none_or(|due| due > now) {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    // Nothing refuses below this line: the index entry is used up, whatever it finds.
    draft.head.due = None;
    draft.adopt()?;
    let passed = |time: Option<crate::time::StoreTime>| time.is_some_and(|time| time <= now);
    let parked = draft.head.park.is_some();
    let lock = draft.head.lock.clone().filter(|_| !parked);
    if passed(draft.head.deadline) {
        let machine = draft.machine();
        let attempt = draft.head.lock.as_ref().and_then(|lock| lock.attempt);
        let limit = draft.state()?.deadline_ms.unwrap_or_default();
        draft.head.deadline = None;
        let reason = format!("{} was not left within {}", draft.head.state, Span(limit));
        let failure = Failure { permanent: false, code: "deadline".to_owned(), reason, retry_after_ms: None };
        let tag = Tag { attempt: attempt.map(|open| (open.ordinal, open.token)), ..Tag::default() };
        let path = path(&machine, &draft.head.state, false);
        // Parked already: why it was tells an operator more than that nobody came in time.
        if !(parked && path == FailurePath::Park) {
            draft.fail(&path, failure, "deadline", tag)?;
        }
    } else if lock.as_ref().is_some_and(|lock| passed(lock.limit)) {
        let limit = draft.revision.machine.limits.execution_ms.unwrap_or_default();
        let reason = format!("running for more than {} (limits.execution)", Span(limit));
        draft.park("execution-limit", &reason, Tag::default());
    } else if lock.as_ref().is_some_and(|lock| passed(lock.retry)) {
        match draft.worn_out()? {
            Some(failure) => {
                let path = path(&draft.machine(), &draft.head.state, false);
                draft.fail(&path, failure, "exhausted", Tag::default())?;
            }
            None if draft.head.awaits.is_some() => draft.begin_as(BeginReason::Leased)?,
            None => draft.begin_as(BeginReason::Retry)?,
        }
    }
    draft.finish(Outcome::Nothing)
}

/// A timer's wall time has come.
pub(super) fn fire(given: &Given<'_>, entity: &EntityId, timer: &Name, due: WallTime) -> Result<Decision, Stop> {
    let key = Key::Timer(due, entity.clone(), timer.clone());
    let Some(mut draft) = Draft::of(given, entity)? else {
        let indexed = given.view.get(&key)?.is_some();
        let mut decision = Decision::plain(Outcome::Nothing);
        decision.writes.extend(indexed.then_some((key, None)));
        return Ok(decision);
    };
    let Some(place) = draft.head.timers.iter().position(|set| set.name == *timer && set.due == due) else {
        draft.fact(FactKind::StaleTimer, format!("timer {timer} of {} is not of this visit", due.0), Tag::default());
        if given.view.get(&key)?.is_some() {
            draft.writes.push((key, None));
        }
        return draft.finish(Outcome::Nothing);
    };
    if due > given.now.wall {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    // Nothing refuses below this line: the timer is used up.
    draft.adopt()?; // before the timer goes: a revision that does not know it must not be adopted
    draft.head.timers.remove(place);
    let spec = draft.state()?.after.iter().find(|spec| spec.name == *timer).cloned();
    let Some(spec) = spec else {
        return Err(corrupt(&key, "a timer that its state does not declare"));
    };
    let scope = draft.scope(None)?;
    let from = draft.head.state.clone();
    let joined = draft.head.lock.as_ref().map(|lock| lock.ordinal);
    let cause = Cause { kind: CauseKind::Timer, name: timer.clone(), id: None, at: given.now.wall, payload: false };
    let made = match draft.choose(std::slice::from_ref(&spec.then), &scope) {
        Ok(one) => draft.make(&one, cause, scope)?,
        Err(refused) => Err(refused),
    };
    match made {
        Ok(()) => {
            let begun =
                draft.head.lock.as_ref().and_then(|lock| lock.attempt).filter(|open| open.token.get() == given.now.seq);
            let attempt = begun.map(|open| (open.ordinal, open.token));
            draft.record(
                What::Timer(timer.clone()),
                Tag { from: Some(from), execution: joined, attempt, ..Tag::default() },
            );
        }
        Err(refused) => draft.fact(FactKind::NotAllowed, format!("timer {timer}: {refused}"), Tag::default()),
    }
    draft.park_if_stranded(&format!("timer {timer} was the last thing it waited for"));
    draft.finish(Outcome::Nothing)
}
