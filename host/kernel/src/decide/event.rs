//! Events: the one way in for clients, and what a rest is followed by.

use super::draft::{Draft, Given, Tag};
use super::enter::{breach, oversize};
use super::{no_entity, no_machine};
use crate::command::Outcome;
use crate::doc::{Digest, Doc};
use crate::ids::{EntityId, EventId, Name, nearest};
use crate::limits::{BUSY_RETRY_MS, DEDUP_MS_DEFAULT, INBOX_MAX};
use crate::machine::{DESIRED_CHANGED, HOST_EVENTS, Machine, OnBusy, StateKind};
use crate::record::{
    Answer, AnswerKind, Cause, CauseKind, Dedup, Expect, Expires, FactKind, Key, Queued, Record, What,
};
use crate::rejection::{Code, Rejection};
use crate::time::{Span, StoreTime, WallTime};
use crate::view::{Decision, Event, Schema, Stop};
use serde_json::json;
use std::cmp::Ordering;

/// Delivers a client's event.
pub(super) fn deliver(given: &Given<'_>, entity: &EntityId, event: &Event) -> Result<Decision, Stop> {
    deliver_as(given, entity, event, false)
}

/// Delivers an event that waits in the inbox if an execution is under way, whatever its machine says of such events.
pub(super) fn deliver_behind(given: &Given<'_>, entity: &EntityId, event: &Event) -> Result<Decision, Stop> {
    deliver_as(given, entity, event, true)
}

fn deliver_as(given: &Given<'_>, entity: &EntityId, event: &Event, behind: bool) -> Result<Decision, Stop> {
    let Some(record) = given.machine(&entity.machine)? else {
        return Ok(Decision::refused(no_machine(&entity.machine)));
    };
    let mut draft = Draft::of(given, entity)?;
    if let Some(draft) = &mut draft {
        draft.adopt()?;
    }
    let revision = match &draft {
        Some(draft) => Some(draft.revision.clone()),
        None => given.revision(&entity.machine, record.active)?,
    };
    let Some(revision) = revision else {
        return Ok(Decision::refused(no_machine(&entity.machine)));
    };
    let digest = digest(&event.name, event.payload.as_ref());
    let known = match given.view.get(&Key::Dedup(entity.clone(), event.id.clone()))? {
        Some(Record::Dedup(known)) if known.remembers(given.now.store) => Some(known),
        _ => None,
    };
    // An answer stands, also where today's revision would not take the event any more.
    if let Some(known) = known.as_ref().filter(|known| known.digest == digest && draft.is_some()) {
        let answer = Box::new(known.answer.clone());
        return Ok(Decision::plain(Outcome::Answered { answer, replayed: true }));
    }
    if let Some(refused) = malformed(given, &revision.machine, revision.number, event) {
        return Ok(Decision::refused(refused));
    }
    let Some(mut draft) = draft else {
        return Ok(Decision::refused(no_entity(entity)));
    };
    if known.is_some() {
        return Ok(Decision::refused(id_reused(entity, &event.id)));
    }
    let window_ms = window_ms(&draft.machine(), event);
    let judged = receive(&mut draft, event, behind)?;
    let answer = match judged {
        Ok(answer) => answer,
        Err(refused) => return draft.refuse(refused),
    };
    // Nothing refuses below this line: the answer is remembered, a late one too.
    remember(&mut draft, event, digest, window_ms, &answer);
    draft.finish(Outcome::Answered { answer: Box::new(answer), replayed: false })
}

/// Whether an event is one of the machine's, and its payload keeps to its schema.
pub(super) fn malformed(given: &Given<'_>, machine: &Machine, revision: u64, event: &Event) -> Option<Rejection> {
    let Some(spec) = machine.events.get(&event.name) else {
        let names: Vec<&str> = machine.events.keys().map(Name::as_str).collect();
        let hint = nearest(event.name.as_str(), names.iter().copied());
        let hint = hint.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
        let expected = if names.is_empty() {
            "no event: this machine takes none".to_owned()
        } else {
            format!("one of {}", names.join(", "))
        };
        return Some(Rejection::new(
            Code::Invalid,
            format!("{} event", machine.name),
            expected,
            format!("{}{hint}", event.name),
        ));
    };
    if event.checked == Some(revision) {
        return None;
    }
    let payload = spec.judged(event.payload.as_ref())?;
    let found = given.rules.check(&machine.name, revision, Schema::Event(&event.name), &payload).err()?;
    Some(breach(Code::Invalid, &format!("event.{}", event.name), &found))
}

/// A first event whose id an earlier incarnation used up.
pub(super) fn used_before(given: &Given<'_>, entity: &EntityId, event: &Event) -> Result<Option<Rejection>, Stop> {
    let known = given.view.get(&Key::Dedup(entity.clone(), event.id.clone()))?;
    let Some(Record::Dedup(known)) = known else {
        return Ok(None);
    };
    Ok(known.remembers(given.now.store).then(|| {
        Rejection::new(Code::IdReused, entity, "an event id that no earlier entity of this key used", &event.id)
    }))
}

fn id_reused(entity: &EntityId, id: &EventId) -> Rejection {
    Rejection::new(
        Code::IdReused,
        entity,
        format!("event {id} with the name and payload it had before"),
        "another name or payload",
    )
}

pub(super) fn digest(name: &Name, payload: Option<&Doc>) -> Digest {
    Digest::of(&[name.as_str().as_bytes(), payload.map_or("", Doc::text).as_bytes()])
}

/// Decides an event on the draft: accepted, queued, or late; else why not. Facts are recorded. `behind` an execution
/// under way in any case, or only if the machine says so.
pub(super) fn receive(draft: &mut Draft<'_>, event: &Event, behind: bool) -> Result<Result<Answer, Rejection>, Stop> {
    let tag = || Tag { event: Some(event.id.clone()), ..Tag::default() };
    if let Some(refused) = late(draft, &event.expect)? {
        draft.fact(FactKind::Late, format!("{}: {refused}", event.name), tag());
        return Ok(Ok(answer(draft, AnswerKind::Late, &event.id, None, Some(refused))));
    }
    if draft.head.is_inconsistent() {
        return Ok(Err(busy(draft)?));
    }
    let state = draft.state()?;
    if state.kind == StateKind::Working && (behind || !state.on.contains_key(&event.name)) {
        let queues = draft.machine().events.get(&event.name).is_some_and(|spec| spec.on_busy == OnBusy::Queue);
        if !(behind || queues) {
            return Ok(Err(busy(draft)?));
        }
        if draft.head.inbox.length >= INBOX_MAX {
            let expected = format!("at most {INBOX_MAX} waiting events (inbox_max)");
            return Ok(Err(Rejection::new(Code::Limit, &draft.id, expected, "one more").retry_after(BUSY_RETRY_MS)));
        }
        if let Some(refused) = too_large(event) {
            return Ok(Err(refused));
        }
        return Ok(Ok(enqueue(draft, event)));
    }
    if let Some(refused) = changed(draft, &event.expect) {
        return Ok(Err(refused));
    }
    let from = draft.head.state.clone();
    let joined = draft.head.lock.as_ref().map(|lock| lock.ordinal);
    if let Err(refused) = take(draft, event, draft.now().wall)? {
        if refused.code == Code::NotAllowed {
            draft.fact(FactKind::NotAllowed, refused.to_string(), tag());
        }
        return Ok(Err(refused));
    }
    let execution = joined.or(draft.head.lock.as_ref().map(|lock| lock.ordinal));
    draft.record(What::Event(event.name.clone()), taken_tag(draft, from, joined, event.id.clone()));
    Ok(Ok(answer(draft, AnswerKind::Accepted, &event.id, execution, None)))
}

/// The tag of an event that was taken: with the attempt it began, if it began one.
fn taken_tag(draft: &Draft<'_>, from: Name, joined: Option<u64>, id: EventId) -> Tag {
    let begun =
        draft.head.lock.as_ref().and_then(|lock| lock.attempt).filter(|open| open.token.get() == draft.now().seq);
    let attempt = begun.map(|open| (open.ordinal, open.token));
    Tag { from: Some(from), execution: joined, attempt, event: Some(id), by: None }
}

fn answer(
    draft: &Draft<'_>,
    kind: AnswerKind,
    id: &EventId,
    execution: Option<u64>,
    rejection: Option<Rejection>,
) -> Answer {
    Answer {
        kind,
        event: id.clone(),
        incarnation: draft.head.incarnation,
        execution,
        version: draft.head.version,
        state: draft.head.state.clone(),
        rejection,
    }
}

/// Something past is named, or the entity is over.
fn late(draft: &Draft<'_>, expect: &Expect) -> Result<Option<Rejection>, Stop> {
    let past = beliefs(draft, expect).into_iter().find(|belief| belief.is.is_lt());
    if let Some(past) = past {
        return Ok(Some(past.refused(Code::Late, &draft.id)));
    }
    if draft.state()?.kind.is_final() {
        let got = format!("{} (final)", draft.head.state);
        return Ok(Some(Rejection::new(Code::Late, &draft.id, "an entity that is not final", got)));
    }
    Ok(None)
}

/// Another version than the one named, or something that has not been yet.
fn changed(draft: &Draft<'_>, expect: &Expect) -> Option<Rejection> {
    let ahead = beliefs(draft, expect).into_iter().find(|belief| belief.is.is_gt());
    if let Some(ahead) = ahead {
        return Some(ahead.refused(Code::Conflict, &draft.id));
    }
    let got = draft.head.version.get();
    let expected = expect.version.filter(|expected| *expected != got)?;
    Some(Rejection::new(Code::Conflict, &draft.id, format!("version {expected}"), format!("version {got}")))
}

/// One thing a sender believes, and where it lies from what is.
struct Belief {
    name: &'static str,
    expected: u64,
    got: Option<u64>,
    is: Ordering,
}

impl Belief {
    fn refused(&self, code: Code, entity: &EntityId) -> Rejection {
        let got = self.got.map_or_else(|| "none running".to_owned(), |got| format!("{} {got}", self.name));
        Rejection::new(code, entity, format!("{} {}", self.name, self.expected), got)
    }
}

fn beliefs(draft: &Draft<'_>, expect: &Expect) -> Vec<Belief> {
    let head = &draft.head;
    let counted = |name, expected: Option<u64>, got: u64| {
        expected.map(|expected| Belief { name, expected, got: Some(got), is: expected.cmp(&got) })
    };
    let incarnation = counted("incarnation", expect.incarnation, head.incarnation.get());
    if incarnation.as_ref().is_some_and(|belief| belief.is.is_ne()) {
        return incarnation.into_iter().collect(); // the rest counts in another incarnation
    }
    let running = head.lock.as_ref().map(|lock| lock.ordinal);
    let execution = expect.execution.map(|expected| {
        let is = if running == Some(expected) {
            Ordering::Equal
        } else if expected <= head.executions {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        Belief { name: "execution", expected, got: running, is }
    });
    let visit = counted("visit", expect.visit, head.visit.get());
    let generation = counted("generation", expect.generation, head.generation);
    [execution, visit, generation].into_iter().flatten().collect()
}

/// Takes an event that happened `at` in the state the entity is in: declared, guarded, made.
fn take(draft: &mut Draft<'_>, event: &Event, at: WallTime) -> Result<Result<(), Rejection>, Stop> {
    let state = draft.state()?;
    let Some(moves) = state.on.get(&event.name).filter(|moves| !moves.is_empty()) else {
        let names: Vec<&str> = state
            .on
            .keys()
            .map(Name::as_str)
            .filter(|name| !HOST_EVENTS.iter().any(|own| own.as_str() == *name))
            .collect();
        let expected =
            if names.is_empty() { "no event in this state".to_owned() } else { format!("one of {}", names.join(", ")) };
        let got = format!("{} in {}", event.name, draft.head.state);
        return Ok(Err(Rejection::new(Code::NotAllowed, &draft.id, expected, got)));
    };
    let scope = draft.scope(event.payload.clone())?;
    let one = match draft.choose(moves, &scope) {
        Ok(one) => one,
        Err(refused) => return Ok(Err(refused)),
    };
    if let Some(refused) = too_large(event) {
        return Ok(Err(refused));
    }
    let cause =
        Cause { kind: CauseKind::Signal, name: event.name.clone(), id: Some(event.id.clone()), at, payload: false };
    draft.make(&one, cause, scope)
}

fn too_large(event: &Event) -> Option<Rejection> {
    event.payload.as_ref().and_then(|payload| oversize("payload", payload))
}

fn enqueue(draft: &mut Draft<'_>, event: &Event) -> Answer {
    let place = draft.head.inbox.next;
    draft.head.inbox.next = place.saturating_add(1);
    draft.head.inbox.length = draft.head.inbox.length.saturating_add(1);
    let queued = Queued {
        id: event.id.clone(),
        name: event.name.clone(),
        payload: event.payload.clone(),
        at: draft.now().wall,
        by: draft.given.by.clone(),
        expect: event.expect,
    };
    draft.writes.push((Key::Inbox(draft.id.clone(), place), Some(Record::Queued(queued))));
    draft.record(What::Queued(event.name.clone()), Tag { event: Some(event.id.clone()), ..Tag::default() });
    answer(draft, AnswerKind::Queued, &event.id, None, None)
}

/// How long an event's answer is remembered, by the revision that takes it: the one that is entered by it may not
/// know the event any more.
pub(super) fn window_ms(machine: &Machine, event: &Event) -> u64 {
    machine.events.get(&event.name).map_or(DEDUP_MS_DEFAULT, |spec| spec.dedup_ms)
}

pub(super) fn remember(draft: &mut Draft<'_>, event: &Event, digest: Digest, window_ms: u64, answer: &Answer) {
    let until = draft.now().store.plus(window_ms);
    let expiry = draft.expiry(until);
    let dedup = Dedup { digest, answer: answer.clone(), window_ms, until };
    draft.writes.push((Key::Dedup(draft.id.clone(), event.id.clone()), Some(Record::Dedup(dedup))));
    draft.writes.push((expiry, Some(Record::Expires(Expires::Dedup(draft.id.clone(), event.id.clone())))));
}

/// Who holds the lock, since when, what it waits for, the longest it can take, and whether to retry.
pub(super) fn busy(draft: &Draft<'_>) -> Result<Rejection, Stop> {
    let (head, now) = (&draft.head, draft.now());
    let Some(lock) = &head.lock else {
        return Ok(Rejection::new(Code::Busy, &draft.id, "unlocked", format!("{} without a lock", head.state)));
    };
    let timer = head.timers.iter().map(|timer| timer.due).min();
    let (waits, retry) = match (&head.park, lock.attempt, lock.retry, timer) {
        (Some(park), ..) => (format!("parked: {}", park.code), None),
        (None, Some(open), ..) => (format!("attempt {}", open.ordinal), Some(BUSY_RETRY_MS)),
        (None, None, Some(at), _) => {
            let wait = at.since(now.store);
            (format!("back-off, next attempt in {}", Span(wait)), Some(wait.saturating_add(BUSY_RETRY_MS)))
        }
        (None, None, None, _) if head.awaits.is_some() => {
            let lease = head.awaits.as_ref().map(ToString::to_string).unwrap_or_default();
            (format!("waiting for lease {lease}"), Some(BUSY_RETRY_MS))
        }
        (None, None, None, Some(due)) => {
            ("waiting for a timer".to_owned(), Some(due.since(now.wall).max(BUSY_RETRY_MS)))
        }
        (None, None, None, None) => {
            ("waiting for an event".to_owned(), head.deadline.map(|at| at.since(now.store).max(BUSY_RETRY_MS)))
        }
    };
    let wall = |at: StoreTime| now.wall.plus(at.since(now.store));
    let bounds = [head.deadline.map(wall), lock.limit.map(wall), timer.filter(|_| lock.attempt.is_none())];
    let until = bounds.into_iter().flatten().min();
    let id = head.execution(&draft.id, lock.ordinal);
    let held = now.wall.since(lock.since);
    let got = format!("locked by {id} for {}, {}, {waits} (started by {})", Span(held), head.state, lock.started_by);
    let rejection = Rejection::new(Code::Busy, &draft.id, "unlocked", got).with_detail(json!({
        "execution": id.to_string(),
        "started_by": lock.started_by.as_str(),
        "since_ms": lock.since.0,
        "held_ms": held,
        "progress_ms": lock.progress.0,
        "state": head.state.as_str(),
        "waiting_for": waits,
        "attempt": lock.attempt.map(|open| open.ordinal),
        "until_ms": until.map(|until| until.0),
        "owner": draft.revision.machine.owner,
    }));
    Ok(match retry {
        Some(ms) => rejection.retry_after(ms),
        // Parked is for an operator to end; an event may come at any time.
        None => Rejection { retryable: head.park.is_none(), ..rejection },
    })
}

/// What a rest is followed by: the next queued event, then `desired-changed`.
pub(super) fn next(given: &Given<'_>, entity: &EntityId) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    draft.adopt()?;
    if draft.state()?.kind != StateKind::Rest || draft.head.is_inconsistent() {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    if draft.head.inbox.length > 0 {
        let place = draft.head.inbox.next.saturating_sub(u64::from(draft.head.inbox.length));
        let key = Key::Inbox(entity.clone(), place);
        draft.head.inbox.length = draft.head.inbox.length.saturating_sub(1);
        let queued = match given.view.get(&key)? {
            Some(Record::Queued(queued)) => queued,
            _ => return Err(super::corrupt(&key, "a place of the inbox is empty")),
        };
        draft.writes.push((key, None));
        return take_queued(draft, queued);
    }
    desired_changed(draft)
}

fn take_queued(mut draft: Draft<'_>, queued: Queued) -> Result<Decision, Stop> {
    let (at, by) = (queued.at, queued.by.clone());
    let event = Event::queued(queued);
    let from = draft.head.state.clone();
    let refused = match late(&draft, &event.expect)?.or_else(|| changed(&draft, &event.expect)) {
        Some(refused) => Some(refused),
        None => take(&mut draft, &event, at)?.err(),
    };
    let execution = draft.head.lock.as_ref().map(|lock| lock.ordinal);
    match refused {
        None => {
            let tag = Tag { by: Some(by), ..taken_tag(&draft, from, None, event.id.clone()) };
            draft.record(What::Event(event.name.clone()), tag);
            draft.turn_answer(&event.id, AnswerKind::Accepted, execution, None)?;
        }
        Some(refused) => {
            let tag = Tag { event: Some(event.id.clone()), by: Some(by), ..Tag::default() };
            draft.record(What::Refused(event.name.clone(), Box::new(refused.clone())), tag);
            draft.turn_answer(&event.id, AnswerKind::Refused, None, Some(refused))?;
        }
    }
    draft.finish(Outcome::Nothing)
}

/// Raised by the host; not taken is nothing at all.
fn desired_changed(mut draft: Draft<'_>) -> Result<Decision, Stop> {
    let state = draft.state()?;
    let moves = state.on.get(&*DESIRED_CHANGED).cloned().unwrap_or_default();
    if moves.is_empty() || draft.head.generation <= draft.head.observed {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    let scope = draft.scope(None)?;
    let Ok(one) = draft.choose(&moves, &scope) else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    let from = draft.head.state.clone();
    let cause = Cause {
        kind: CauseKind::DesiredChanged,
        name: DESIRED_CHANGED.clone(),
        id: None,
        at: draft.now().wall,
        payload: false,
    };
    if draft.make(&one, cause, scope)?.is_err() {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    if one.to.is_none() {
        draft.head.observed = draft.head.generation;
    }
    let begun = draft.head.lock.as_ref().and_then(|lock| lock.attempt);
    let tag = Tag { from: Some(from), attempt: begun.map(|open| (open.ordinal, open.token)), ..Tag::default() };
    draft.record(What::DesiredChanged, tag);
    draft.finish(Outcome::Nothing)
}
