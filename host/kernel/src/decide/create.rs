//! Create: version 1 at rest, and the first event in the same transaction.

use super::draft::{Draft, Given, Tag};
use super::enter::{breach, oversize};
use super::{event, no_machine, operate};
use crate::command::{Create, OnExisting, Outcome};
use crate::doc::{Digest, Doc};
use crate::limits::{LABEL_BYTES_MAX, LABELS_MAX};
use crate::machine::Revision;
use crate::number::{Incarnation, Version};
use crate::record::{Answer, AnswerKind, Cause, CauseKind, Head, HistoryHead, Inbox, Key, Outbox, Part, Record, What};
use crate::rejection::{Code, Rejection};
use crate::view::{Decision, Event, Schema, Stop};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Creates an entity, or does about an existing one what the request says.
pub(super) fn create(given: &Given<'_>, create: &Create) -> Result<Decision, Stop> {
    let machine = &create.entity.machine;
    let Some(record) = given.machine(machine)? else {
        return Ok(Decision::refused(no_machine(machine)));
    };
    let Some(revision) = given.revision(machine, record.active)? else {
        return Ok(Decision::refused(no_machine(machine)));
    };
    if let Some(refused) = malformed(given, create, &revision) {
        return Ok(Decision::refused(refused));
    }
    let body = body(create);
    let Some(existing) = Draft::of(given, &create.entity)? else {
        return fresh(given, create, revision, body);
    };
    match create.on_existing {
        OnExisting::Same if existing.head.created_as == body => {
            Ok(Decision::plain(there(&existing.head, remembered(given, create)?)))
        }
        OnExisting::Same => Ok(Decision::refused(exists(create, "with another request"))),
        OnExisting::Fail => Ok(Decision::refused(exists(create, "already"))),
        OnExisting::Use => reuse(given, create, existing),
        OnExisting::Recreate => {
            // The same request under the same event id has been done: told again, it takes nothing away.
            let told = remembered(given, create)?;
            if existing.head.created_as == body
                && let Some(answer) = told.filter(|answer| answer.incarnation == existing.head.incarnation)
            {
                return Ok(Decision::plain(there(&existing.head, Some(answer))));
            }
            let removed = operate::delete(given, &create.entity)?;
            if removed.outcome.is_err() {
                return Ok(removed);
            }
            let mut made = fresh(given, create, revision, body)?;
            if made.outcome.is_ok() {
                let mut writes = removed.writes;
                writes.append(&mut made.writes);
                made.writes = writes;
            }
            Ok(made)
        }
    }
}

fn malformed(given: &Given<'_>, create: &Create, revision: &Revision) -> Option<Rejection> {
    let desired = create.desired.as_ref();
    if let Some(desired) = desired
        && let Err(found) = given.rules.check(&create.entity.machine, revision.number, Schema::Desired, desired)
    {
        return Some(breach(Code::Invalid, "desired", &found));
    }
    let labels = &create.labels;
    if labels.len() > LABELS_MAX {
        return Some(Rejection::new(Code::Limit, "labels", format!("at most {LABELS_MAX} (labels_max)"), labels.len()));
    }
    for (name, value) in labels {
        let got = name.len().max(value.len());
        if got > LABEL_BYTES_MAX {
            let expected = format!("at most {LABEL_BYTES_MAX} bytes (label_bytes_max)");
            return Some(Rejection::new(Code::Limit, format!("label {name:.40}"), expected, format!("{got} bytes")));
        }
    }
    desired.and_then(|desired| oversize("desired", desired))
}

/// What makes two create requests the same.
fn body(create: &Create) -> Digest {
    let labels: BTreeMap<_, _> = create.labels.iter().collect();
    let labels = serde_json::to_string(&labels).unwrap_or_default();
    let event =
        create.event.as_ref().map_or(Digest([0; 32]), |event| event::digest(&event.name, event.payload.as_ref()));
    Digest::of(&[create.desired.as_ref().map_or("", Doc::text).as_bytes(), labels.as_bytes(), &event.0])
}

fn exists(create: &Create, how: &str) -> Rejection {
    Rejection::new(Code::Conflict, &create.entity, "no entity with this key", format!("one that was created {how}"))
}

fn there(head: &Head, answer: Option<Box<Answer>>) -> Outcome {
    Outcome::Created { incarnation: head.incarnation, version: head.version, new: false, answer }
}

/// The answer to the first event of a create that is told again.
fn remembered(given: &Given<'_>, create: &Create) -> Result<Option<Box<Answer>>, Stop> {
    let Some(event) = &create.event else { return Ok(None) };
    let digest = event::digest(&event.name, event.payload.as_ref());
    Ok(match given.view.get(&Key::Dedup(create.entity.clone(), event.id.clone()))? {
        Some(Record::Dedup(known)) if known.digest == digest && known.remembers(given.now.store) => {
            Some(Box::new(known.answer))
        }
        _ => None,
    })
}

/// The existing entity, and the first event is still delivered.
fn reuse(given: &Given<'_>, create: &Create, existing: Draft<'_>) -> Result<Decision, Stop> {
    let Some(first) = &create.event else {
        return Ok(Decision::plain(there(&existing.head, None)));
    };
    let mut decision = event::deliver(given, &create.entity, first)?;
    if let Ok(Outcome::Answered { answer, .. }) = &decision.outcome {
        decision.outcome = Ok(Outcome::Created {
            incarnation: existing.head.incarnation,
            version: answer.version,
            new: false,
            answer: Some(answer.clone()),
        });
    }
    Ok(decision)
}

fn fresh(given: &Given<'_>, create: &Create, revision: Arc<Revision>, body: Digest) -> Result<Decision, Stop> {
    let machine = Arc::clone(&revision.machine);
    let incarnation = Incarnation::mint(given.now.seq);
    let head = Head {
        incarnation,
        revision: revision.number,
        state: machine.initial.clone(),
        version: Version::FIRST,
        visit: Version::FIRST,
        entered: given.now.wall,
        generation: u64::from(create.desired.is_some()),
        observed: 0,
        executions: 0,
        lock: None,
        cause: Cause {
            kind: CauseKind::Created,
            name: machine.initial.clone(),
            id: None,
            at: given.now.wall,
            payload: false,
        },
        timers: Vec::new(),
        deadline: None,
        due: None,
        park: None,
        last: None,
        inbox: Inbox::default(),
        history: HistoryHead { first: 1, last: 0, hash: Digest([0; 32]) },
        facts: BTreeMap::new(),
        labels: create.labels.clone(),
        created: given.now.wall,
        created_as: body,
        leases: Vec::new(),
        awaits: None,
        outbox: Outbox::default(),
        memos: 0,
        holds: false,
    };
    let mut draft = Draft::new(given, &create.entity, head, None, revision);
    let desired = create.desired.clone().or_else(|| machine.desired.default.clone());
    for (part, doc) in [
        (Part::Desired, desired),
        (Part::Data, machine.data.default.clone()),
        (Part::Outputs, machine.outputs.default.clone()),
    ] {
        if doc.is_some() {
            draft.overwrite(part, doc);
        }
    }
    // A first event that leaves at once never waits for them.
    let timers = draft.arm_again()?;
    draft.head.timers = timers.as_ref().cloned().unwrap_or_default();
    draft.record(What::Created, Tag::default());
    let mut answer = None;
    if let Some(event) = &create.event {
        match first(&mut draft, event)? {
            Ok(accepted) => answer = Some(Box::new(accepted)),
            Err(refused) => return Ok(Decision::refused(refused)),
        }
    }
    if let Err(refused) = timers
        && draft.head.visit == Version::FIRST
    {
        return Ok(Decision::refused(refused));
    }
    let version = draft.head.version;
    draft.finish(Outcome::Created { incarnation, version, new: true, answer })
}

/// The first event: if it is refused, so is the create.
fn first(draft: &mut Draft<'_>, event: &Event) -> Result<Result<Answer, Rejection>, Stop> {
    if let Some(refused) = event::malformed(draft.given, &draft.machine(), draft.head.revision, event) {
        return Ok(Err(refused));
    }
    let digest = event::digest(&event.name, event.payload.as_ref());
    if let Some(refused) = event::used_before(draft.given, &draft.id, event)? {
        return Ok(Err(refused));
    }
    let window_ms = event::window_ms(&draft.machine(), event);
    match event::receive(draft, event, false)? {
        Err(refused) => Ok(Err(refused)),
        Ok(Answer { kind: AnswerKind::Late, rejection: Some(refused), .. }) => Ok(Err(refused)),
        Ok(answer) => {
            event::remember(draft, event, digest, window_ms, &answer);
            Ok(Ok(answer))
        }
    }
}
