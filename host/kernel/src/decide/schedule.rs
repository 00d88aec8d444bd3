//! Schedules: declared, paused, and what becomes of a due time. A due time is used up by the command that finds it, in
//! the transaction that raises its event: it comes once, whatever becomes of the host.

use super::draft::{Draft, Given};
use super::{corrupt, create, event, no_machine};
use crate::command::{Create, DeclareSchedule, OnExisting, Outcome};
use crate::doc::Doc;
use crate::ids::{EventId, Principal, ScheduleName};
use crate::limits::{FIRINGS_MAX, INBOX_MAX, ON_TIME_MS};
use crate::record::{Answer, Fired, Firing, Key, Record, ScheduleRecord};
use crate::rejection::{Code, Rejection};
use crate::schedule::{CatchUp, Overlap, Schedule};
use crate::time::WallTime;
use crate::view::{Decision, Event, Span, Stop, Wake};
use serde_json::Value;

/// A declaration comes into force: from now on, not for what is past.
pub(super) fn declare(given: &Given<'_>, declare: &DeclareSchedule) -> Result<Decision, Stop> {
    let schedule = &declare.schedule;
    let was = read(given, &schedule.name)?;
    if let Some(was) = was.as_ref().filter(|was| was.digest == declare.digest) {
        return Ok(Decision::plain(Outcome::Declared { revision: was.revision, new: false }));
    }
    if let Some(refused) = misfit(given, schedule)? {
        return Ok(Decision::refused(refused));
    }
    let next = match given.rules.following(&schedule.rule, given.now.wall) {
        Ok(next) => next,
        Err(found) => {
            let subject = format!("schedule {}", schedule.name);
            return Ok(Decision::refused(Rejection::new(Code::Invalid, subject, found.expected, found.got)));
        }
    };
    // Nothing refuses below this line.
    let revision = was.as_ref().map_or(1, |was| was.revision.saturating_add(1));
    let paused = was.as_ref().is_some_and(|was| was.paused);
    let record = ScheduleRecord {
        schedule: Schedule::clone(schedule),
        source: declare.source.clone(),
        digest: declare.digest,
        revision,
        declared: given.now.wall,
        next: (!paused).then_some(next),
        paused,
        firings: was.as_ref().map(|was| was.firings.clone()).unwrap_or_default(),
        raised: was.as_ref().map_or(0, |was| was.raised),
        passed: was.as_ref().map_or(0, |was| was.passed),
    };
    let mut decision = Decision::plain(Outcome::Declared { revision, new: true });
    write(&mut decision, &schedule.name, was.as_ref(), Some(record));
    Ok(decision)
}

/// What a machine that is deployed has against a schedule.
fn misfit(given: &Given<'_>, schedule: &Schedule) -> Result<Option<Rejection>, Stop> {
    let machine = &schedule.entity.machine;
    let Some(record) = given.machine(machine)? else { return Ok(Some(no_machine(machine))) };
    let Some(revision) = given.revision(machine, record.active)? else { return Ok(Some(no_machine(machine))) };
    let event = raised(schedule, 0, given.now.wall)?;
    Ok(event::malformed(given, &revision.machine, revision.number, &event))
}

/// Away with a schedule. What it raised stays.
pub(super) fn remove(given: &Given<'_>, name: &ScheduleName) -> Result<Decision, Stop> {
    let Some(was) = read(given, name)? else { return Ok(Decision::refused(no_schedule(name))) };
    let mut decision = Decision::plain(Outcome::Nothing);
    write(&mut decision, name, Some(&was), None);
    Ok(decision)
}

/// An operator pauses a schedule, or has it go on: with the next due time from now.
pub(super) fn pause(given: &Given<'_>, name: &ScheduleName, paused: bool) -> Result<Decision, Stop> {
    let Some(was) = read(given, name)? else { return Ok(Decision::refused(no_schedule(name))) };
    if was.paused == paused {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    let next = if paused { None } else { given.rules.following(&was.schedule.rule, given.now.wall).ok() };
    let record = ScheduleRecord { paused, next, ..was.clone() };
    let mut decision = Decision::plain(Outcome::Nothing);
    write(&mut decision, name, Some(&was), Some(record));
    Ok(decision)
}

/// Wall time has come to what the index says of this schedule.
pub(super) fn fire(given: &Given<'_>, name: &ScheduleName, due: WallTime) -> Result<Decision, Stop> {
    let Some(was) = read(given, name)? else { return Ok(Decision::plain(Outcome::Nothing)) };
    if was.next != Some(due) || due > given.now.wall {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    // Nothing refuses below this line: the due time is used up, whatever becomes of its event.
    let mut record = was.clone();
    let pick = pick(given, &was.schedule, due);
    if let Some(until) = pick.missed {
        note(&mut record, given.now.wall, due, Fired::Missed(until));
    }
    record.next = pick.next;
    let mut decision = Decision::plain(Outcome::Nothing);
    if let Some(due) = pick.fires {
        let by = Principal::schedule(name);
        let (raised, fired) = raise(&Given { by: &by, ..*given }, &was, due)?;
        decision = raised;
        note(&mut record, given.now.wall, due, fired);
    }
    decision.outcome = Ok(Outcome::Fired(record.firings.last().cloned()));
    write(&mut decision, name, Some(&was), Some(record));
    Ok(decision)
}

/// Which of the due times that are past is made up for, and what comes after it.
struct Pick {
    /// The first due time and the last one for which nothing happens.
    missed: Option<WallTime>,
    fires: Option<WallTime>,
    next: Option<WallTime>,
}

fn pick(given: &Given<'_>, schedule: &Schedule, due: WallTime) -> Pick {
    let (now, rule, rules) = (given.now.wall, &schedule.rule, given.rules);
    let after = |time: WallTime| rules.following(rule, time).ok();
    let not_before = match schedule.catch_up {
        CatchUp::None => WallTime(now.0.saturating_sub_unsigned(ON_TIME_MS)),
        CatchUp::All(within_ms) => WallTime(now.0.saturating_sub_unsigned(within_ms)),
        CatchUp::Latest => rules.latest(rule, now).unwrap_or(due),
    };
    if due >= not_before {
        return Pick { missed: None, fires: Some(due), next: after(due) };
    }
    let before = WallTime(not_before.0.saturating_sub(1));
    let candidate = after(before);
    let missed = Some(rules.latest(rule, before).unwrap_or(due));
    match candidate.filter(|candidate| *candidate <= now) {
        Some(fires) => Pick { missed, fires: Some(fires), next: after(fires) },
        None => Pick { missed, fires: None, next: candidate },
    }
}

/// Raises the event of a due time, by what the entity is at.
fn raise(given: &Given<'_>, record: &ScheduleRecord, due: WallTime) -> Result<(Decision, Fired), Stop> {
    let schedule = &record.schedule;
    let event = raised(schedule, record.revision, due)?;
    let entity = &schedule.entity;
    let existing = Draft::of(given, entity)?;
    let running = existing.as_ref().and_then(|draft| draft.head.lock.as_ref().map(|lock| lock.ordinal));
    let mut decision = match (&existing, &schedule.create) {
        (None, Some(made)) => {
            let made = Create {
                entity: entity.clone(),
                desired: made.desired.clone(),
                labels: made.labels.clone(),
                on_existing: OnExisting::Same,
                event: Some(event),
            };
            create::create(given, &made)?
        }
        _ => match (schedule.overlap, running) {
            (Overlap::Skip, Some(execution)) => {
                return Ok(skipped(format!("execution {execution} of {entity} was under way")));
            }
            (Overlap::Queue, Some(_)) if waits(given, schedule)? => {
                return Ok(skipped("the event of an earlier due time was still waiting".to_owned()));
            }
            (Overlap::Queue, Some(_)) => event::deliver_behind(given, entity, &event)?,
            (Overlap::Skip | Overlap::Queue, None) | (Overlap::Deliver, _) => event::deliver(given, entity, &event)?,
        },
    };
    let fired = match std::mem::replace(&mut decision.outcome, Ok(Outcome::Nothing)) {
        Ok(Outcome::Answered { answer, .. }) => told(&answer),
        Ok(Outcome::Created { answer: Some(answer), .. }) => told(&answer),
        Ok(other) => return Err(Stop::Corrupt(format!("the event of schedule {}: {other:?}", schedule.name))),
        Err(refused) => Fired::Refused(refused.to_string()),
    };
    Ok((decision, fired))
}

fn told(answer: &Answer) -> Fired {
    Fired::Raised(answer.kind, answer.execution)
}

fn skipped(why: String) -> (Decision, Fired) {
    (Decision::plain(Outcome::Nothing), Fired::Skipped(why))
}

/// Whether an event of this schedule still waits in the inbox.
fn waits(given: &Given<'_>, schedule: &Schedule) -> Result<bool, Stop> {
    let own = format!("schedule/{}.", schedule.name);
    let waiting = given.view.scan(&Span::Inbox(schedule.entity.clone()), INBOX_MAX as usize)?;
    let is_own = |record: &Record| matches!(record, Record::Queued(queued) if queued.id.as_str().starts_with(&own));
    Ok(waiting.iter().any(|(_, record)| is_own(record)))
}

/// The event of a due time. Its id says which: the same due time is the same event, whoever looks at it again.
fn raised(schedule: &Schedule, revision: u64, due: WallTime) -> Result<Event, Stop> {
    let id = format!("schedule/{}.{revision}/{}", schedule.name, due.0);
    let id: EventId = id.parse().map_err(|why| Stop::Corrupt(format!("schedule {}: {why}", schedule.name)))?;
    let mut payload = schedule.payload.clone();
    if let Some(field) = &schedule.due_field {
        let mut fields = match payload.as_ref().map(Doc::value) {
            Some(Value::Object(fields)) => fields.clone(),
            _ => serde_json::Map::new(),
        };
        fields.insert(field.clone(), Value::from(due.0));
        payload = Some(Doc::new(Value::Object(fields)));
    }
    Ok(Event { id, name: schedule.event.clone(), payload, expect: crate::record::Expect::default(), checked: None })
}

fn note(record: &mut ScheduleRecord, at: WallTime, due: WallTime, fired: Fired) {
    match &fired {
        Fired::Raised(..) => record.raised = record.raised.saturating_add(1),
        Fired::Skipped(_) | Fired::Refused(_) | Fired::Missed(_) => record.passed = record.passed.saturating_add(1),
    }
    record.firings.push(Firing { due, at, fired });
    let surplus = record.firings.len().saturating_sub(FIRINGS_MAX);
    record.firings.drain(..surplus);
}

fn read(given: &Given<'_>, name: &ScheduleName) -> Result<Option<ScheduleRecord>, Stop> {
    let key = Key::Schedule(name.clone());
    match given.view.get(&key)? {
        None => Ok(None),
        Some(Record::Schedule(record)) => Ok(Some(*record)),
        Some(_) => Err(corrupt(&key, "not a schedule")),
    }
}

/// The record, and its index entry as the difference of what was and is.
fn write(decision: &mut Decision, name: &ScheduleName, was: Option<&ScheduleRecord>, record: Option<ScheduleRecord>) {
    let before = was.and_then(|was| was.next);
    let next = record.as_ref().and_then(|record| record.next);
    if before != next {
        let at = |due: WallTime| Key::ScheduleDue(due, name.clone());
        decision.writes.extend(before.map(|due| (at(due), None)));
        decision.writes.extend(next.map(|due| (at(due), Some(Record::Mark))));
        decision.wake.extend(next.map(Wake::Timer));
    }
    decision.writes.push((Key::Schedule(name.clone()), record.map(|record| Record::Schedule(Box::new(record)))));
}

fn no_schedule(name: &ScheduleName) -> Rejection {
    Rejection::new(Code::NotFound, format!("schedule {name}"), "a declared schedule", "none with this name")
}
