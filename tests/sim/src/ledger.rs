//! What clients and guests were told, kept by themselves: whatever was acknowledged must be there, exactly
//! once; whatever was refused must have left nothing; whatever was not answered may be either, whole.

use crate::cargo::mark_of;
use crate::finding::{Finding, Held, ensure};
use crate::model::Model;
use interlock_coordinator::SubmitError;
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::ids::{EntityId, EventId, ExecutionId, LeaseName};
use interlock_kernel::record::{Answer, AnswerKind, EffectWhat, Key, Owner, What};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_store::StoreError;
use std::collections::BTreeMap;

/// Events that are forgotten too soon for an exact count: whoever sends one again after its window starts anew.
const FORGETFUL: &str = "note";

/// What a client asked for, and what it was told each time it asked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) command: Command,
    pub(crate) tries: Vec<Told>,
    /// Store time of the first try.
    pub(crate) since_ms: u64,
}

/// What came of one try.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// Not yet anything.
    Waiting,
    /// Nothing, and nothing will: whoever would have told is gone, or does not know.
    Unknown,
    /// Not taken, and certainly not done.
    NotTaken,
    /// Refused.
    Refused(Box<Rejection>),
    /// Done.
    Done(Box<Outcome>),
}

/// What a guest asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A save.
    Save,
    /// A transition.
    Move,
}

/// A guest's write.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) entity: EntityId,
    pub(crate) incarnation: u64,
    pub(crate) token: u64,
    pub(crate) mark: u64,
    pub(crate) asked: Asked,
    /// Requests that it carries.
    pub(crate) effects: usize,
    /// The version it made, or why not; none if it never heard.
    pub(crate) told: Option<Result<u64, Code>>,
}

/// A lease that a guest was told it has.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) execution: ExecutionId,
    pub(crate) lease: LeaseName,
    pub(crate) token: u64,
}

/// Every request of every client.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    pub(crate) requests: Vec<Request>,
}

impl Request {
    /// Whether anybody knows what became of it.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self.tries.last(), Some(Told::Done(_) | Told::Refused(_)))
    }

    /// Whether an answer is still to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.tries.iter().any(|told| matches!(told, Told::Waiting))
    }

    /// The event it delivers, if it does.
    pub(crate) fn event(&self) -> Option<(&EntityId, &interlock_kernel::view::Event)> {
        match &self.command.verb {
            Verb::Deliver { entity, event } => Some((entity, event)),
            Verb::Create(create) => create.event.as_ref().map(|event| (&create.entity, event)),
            _ => None,
        }
    }
}

impl Told {
    /// What an answer of the coordinator says.
    pub(crate) fn of(answer: Result<Outcome, SubmitError>) -> Self {
        match answer {
            Ok(outcome) => Self::Done(Box::new(outcome)),
            Err(SubmitError::Rejected(no)) => Self::Refused(no),
            Err(SubmitError::Contended { .. } | SubmitError::Store(StoreError::Unavailable { .. })) => Self::NotTaken,
            Err(SubmitError::Store(_)) => Self::Unknown,
        }
    }

    /// As the transcript shows it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Waiting => "...".to_owned(),
            Self::Unknown => "unknown".to_owned(),
            Self::NotTaken => "not taken".to_owned(),
            Self::Refused(no) => format!("REFUSED {no}"),
            Self::Done(outcome) => match &**outcome {
                Outcome::Answered { answer, replayed } => {
                    let again = if *replayed { " (replayed)" } else { "" };
                    format!("{:?} v{} {}{again}", answer.kind, answer.version, answer.state)
                }
                other => format!("{other:?}"),
            },
        }
    }
}

impl Ledger {
    /// A client hears an answer: it must be true at this moment already.
    pub(crate) fn hears(&mut self, nth: usize, try_number: usize, told: Told, model: &Model) -> Held {
        let Some(request) = self.requests.get_mut(nth) else { return Ok(()) };
        if let Some(place) = request.tries.get_mut(try_number) {
            *place = told;
        }
        let request = request.clone();
        let Some(Told::Done(outcome)) = request.tries.get(try_number) else { return Ok(()) };
        is_true(&request.command.verb, outcome, model)
    }

    /// Nobody answers any more: the host is gone.
    pub(crate) fn hears_nothing(&mut self) {
        let tries = self.requests.iter_mut().flat_map(|request| request.tries.iter_mut());
        for told in tries.filter(|told| matches!(told, Told::Waiting)) {
            *told = Told::Unknown;
        }
    }

    /// What everybody was told, and what happened: the same.
    pub(crate) fn agrees(&self, model: &Model, written: &[Written]) -> Held {
        self.events_agree(model)?;
        self.verbs_agree(model)?;
        writes_agree(model, written)?;
        effects_agree(model, written)
    }

    fn events_agree(&self, model: &Model) -> Held {
        let mut counts: BTreeMap<(&EntityId, &EventId), Counts> = BTreeMap::new();
        for ((entity, ..), entry) in &model.log {
            let Some(event) = &entry.event else { continue };
            let counts = counts.entry((entity, event)).or_default();
            match entry.what {
                What::Event(_) => counts.taken += 1,
                What::Queued(_) => counts.queued += 1,
                What::Refused(..) => counts.refused += 1,
                _ => {}
            }
        }
        let mut groups: BTreeMap<(&EntityId, &EventId), Vec<&Request>> = BTreeMap::new();
        for request in &self.requests {
            if let Some((entity, event)) = request.event() {
                groups.entry((entity, &event.id)).or_default().push(request);
            }
        }
        for ((entity, id), requests) in &groups {
            let count = counts.get(&(*entity, *id)).copied().unwrap_or_default();
            event_agrees(entity, id, requests, count)?;
        }
        let foreign = counts.iter().find(|(key, count)| count.taken + count.queued > 0 && !groups.contains_key(*key));
        match foreign {
            Some(((entity, id), _)) => Err(Finding::new("only_what_was_sent_is_taken", entity, id)),
            None => Ok(()),
        }
    }

    /// Each deletion and each killing in the history was asked for, and each that was told is there.
    fn verbs_agree(&self, model: &Model) -> Held {
        let mut told: BTreeMap<(&EntityId, &str), (usize, usize)> = BTreeMap::new();
        for request in &self.requests {
            let (entity, what) = match &request.command.verb {
                Verb::Delete(entity) => (entity, "deleted"),
                Verb::Kill { entity, .. } => (entity, "killed"),
                Verb::Create(create) => (&create.entity, "created"),
                _ => continue,
            };
            let counts = told.entry((entity, what)).or_default();
            for told in &request.tries {
                match told {
                    Told::Done(outcome) => match **outcome {
                        Outcome::Now { changed: true, .. } | Outcome::Created { new: true, .. } => counts.0 += 1,
                        _ => {}
                    },
                    Told::Unknown | Told::Waiting => counts.1 += 1,
                    Told::NotTaken | Told::Refused(_) => {}
                }
            }
        }
        for ((entity, what), (done, maybe)) in told {
            let matches = |entry: &What| match entry {
                What::Deleted => what == "deleted",
                What::Killed(_) => what == "killed",
                What::Created => what == "created",
                _ => false,
            };
            let found = model.entries(entity).filter(|(_, entry)| matches(&entry.what)).count();
            // A recreation deletes, too.
            let most = if what == "deleted" { usize::MAX } else { done + maybe };
            ensure(found >= done && found <= most, "what_was_told_is_there_once", entity, || {
                format!("{what}: expected {done} to {most}, got {found}")
            })?;
        }
        Ok(())
    }
}

/// How often an event id stands in a history.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    taken: usize,
    queued: usize,
    refused: usize,
}

fn event_agrees(entity: &EntityId, id: &EventId, requests: &[&Request], count: Counts) -> Held {
    let tries = || requests.iter().flat_map(|request| &request.tries);
    let answers = || {
        tries().filter_map(|told| match told {
            Told::Done(outcome) => answer_of(outcome),
            _ => None,
        })
    };
    let said = |kind: AnswerKind| answers().any(|answer| answer.kind == kind);
    let unknown = tries().any(|told| matches!(told, Told::Unknown | Told::Waiting));
    let forgetful =
        requests.iter().any(|request| request.event().is_some_and(|(_, event)| event.name.as_str() == FORGETFUL));
    let most = if forgetful { usize::MAX } else { 1 };
    let name = format!("{entity} event {id}");
    let detail = || format!("{count:?}, told {:?}", tries().map(Told::shown).collect::<Vec<_>>());
    let Counts { taken, queued, refused } = count;
    ensure(taken <= most && queued <= most, "an_event_is_taken_once", &name, detail)?;
    ensure(!said(AnswerKind::Accepted) || taken >= 1, "nothing_acknowledged_is_lost", &name, detail)?;
    ensure(!said(AnswerKind::Queued) || queued >= 1, "nothing_acknowledged_is_lost", &name, detail)?;
    ensure(taken + refused <= queued.max(1) || forgetful, "an_event_is_taken_once", &name, detail)?;
    let possible = unknown || answers().next().is_some();
    ensure(possible || taken + queued == 0, "a_refusal_leaves_no_effect", &name, detail)?;
    let late = said(AnswerKind::Late) && !said(AnswerKind::Accepted) && !forgetful;
    ensure(!late || taken + queued == 0, "a_late_event_changes_nothing", &name, detail)
}

fn answer_of(outcome: &Outcome) -> Option<&Answer> {
    match outcome {
        Outcome::Answered { answer, .. } => Some(answer),
        Outcome::Created { answer, .. } => answer.as_deref(),
        _ => None,
    }
}

/// Whether an outcome is on record as it is told.
fn is_true(verb: &Verb, outcome: &Outcome, model: &Model) -> Held {
    let theorem = "what_is_told_is_true";
    if let Verb::Deliver { entity, .. } = verb
        && let Some(answer) = answer_of(outcome)
    {
        return answer_is_true(entity, answer, model);
    }
    let there = match (verb, outcome) {
        (Verb::Create(create), Outcome::Created { incarnation, answer, .. }) => {
            if let Some(answer) = answer {
                answer_is_true(&create.entity, answer, model)?;
            }
            let mut entries = model.entries(&create.entity);
            entries.any(|(of, entry)| of == incarnation.get() && matches!(entry.what, What::Created))
        }
        (Verb::Apply { entity, .. }, Outcome::Applied { generation }) => {
            *generation == 1 || model.entries(entity).any(|(_, entry)| entry.what == What::Applied(*generation))
        }
        (Verb::Delete(entity), Outcome::Now { .. }) => {
            model.entries(entity).any(|(_, entry)| matches!(entry.what, What::Deleted))
        }
        (Verb::Kill { entity, .. }, Outcome::Now { changed: true, .. }) => {
            model.entries(entity).any(|(_, entry)| matches!(entry.what, What::Killed(_)))
        }
        (Verb::Deploy(deploy), Outcome::Deployed { revision, .. }) => {
            let key = Key::Revision(deploy.machine.name.clone(), *revision);
            let found = model.records.get(&key);
            matches!(found, Some(interlock_kernel::record::Record::Revision(there)) if there.digest == deploy.digest)
        }
        (Verb::Acquire(ask), Outcome::Leased { claim, .. }) => {
            model.grants.has(&ask.lease, claim.token.get(), &Owner::Grant(ask.grant.clone()))
        }
        (Verb::Extend { lease, grant, token, .. }, Outcome::Leased { claim, .. }) => {
            claim.token.get() == *token && model.grants.has(lease, *token, &Owner::Grant(grant.clone()))
        }
        (Verb::Release { lease, token, .. }, Outcome::Released) => model.grants.is_returned(lease, *token),
        (Verb::Unlock { entity, .. }, Outcome::Now { changed: true, .. }) => {
            model.entries(entity).any(|(_, entry)| matches!(entry.what, What::Unlocked(..)))
        }
        (Verb::Retry(entity, number), Outcome::Now { changed: true, .. }) => {
            was_told(model, entity, *number, EffectWhat::Retried)
        }
        (Verb::Drop { entity, number, .. }, Outcome::Now { changed: true, .. }) => {
            was_told(model, entity, *number, EffectWhat::Dropped)
        }
        (Verb::Rollback { machine, .. }, Outcome::Deployed { revision, .. }) => {
            model.records.contains_key(&Key::Revision(machine.clone(), *revision))
        }
        _ => true,
    };
    ensure(there, theorem, format!("{verb:.80?}"), || format!("{outcome:?}"))
}

fn was_told(model: &Model, entity: &EntityId, number: u64, what: EffectWhat) -> bool {
    let about = |entry: &What| matches!(entry, What::Effect(of, _, nth, _) if *of == what && *nth == number);
    model.entries(entity).any(|(_, entry)| about(&entry.what))
}

fn answer_is_true(entity: &EntityId, answer: &Answer, model: &Model) -> Held {
    let name = format!("{entity} event {}", answer.event);
    let remembered = model.turns.get(&(entity.clone(), answer.event.clone()));
    let was = remembered.is_some_and(|turns| turns.iter().any(|dedup| dedup.answer == *answer));
    ensure(was, "same_dedup_id_same_answer", &name, || format!("told {answer:?}, remembered {remembered:?}"))?;
    let mut entries = model.entries(entity).filter(|(incarnation, entry)| {
        *incarnation == answer.incarnation.get() && entry.event.as_ref() == Some(&answer.event)
    });
    let there = match answer.kind {
        AnswerKind::Accepted => entries.any(|(_, entry)| {
            matches!(entry.what, What::Event(_)) && entry.version == answer.version && entry.to == answer.state
        }),
        AnswerKind::Queued => entries.any(|(_, entry)| matches!(entry.what, What::Queued(_))),
        AnswerKind::Refused | AnswerKind::Late => true,
    };
    ensure(there, "what_is_told_is_true", name, || format!("{answer:?} is not in its history"))
}

/// A write in the history: entity, incarnation, token, version.
type Found<'a> = (&'a EntityId, u64, u64, u64, Asked);

/// A guest's accepted write is in the history, once, with its token and version; a refused one is not.
fn writes_agree(model: &Model, written: &[Written]) -> Held {
    let mut marked: BTreeMap<u64, Vec<Found<'_>>> = BTreeMap::new();
    for ((entity, incarnation, _), entry) in &model.log {
        let asked = match entry.what {
            What::Saved(_) => Asked::Save,
            What::Transition(_) => Asked::Move,
            _ => continue,
        };
        let inline = entry.data.as_ref().and_then(|data| data.inline.as_deref());
        let data = inline.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        let Some(mark) = data.and_then(|data| data.get("mark")?.as_u64()) else { continue };
        let token = entry.token.map_or(0, |token| token.get());
        marked.entry(mark).or_default().push((entity, *incarnation, token, entry.version.get(), asked));
    }
    for one in written {
        let found = marked.remove(&one.mark).unwrap_or_default();
        let fits = |version: Option<u64>| {
            matches!(found[..], [(entity, incarnation, token, at, asked)]
                if *entity == one.entity && incarnation == one.incarnation && token == one.token
                    && asked == one.asked && version.is_none_or(|version| version == at))
        };
        let holds = match one.told {
            Some(Ok(version)) => fits(Some(version)),
            Some(Err(_)) => found.is_empty(),
            None => found.is_empty() || fits(None),
        };
        ensure(holds, "a_step_s_write_is_there_as_told", &one.entity, || format!("{one:?}, found {found:?}"))?;
    }
    match marked.first_key_value() {
        Some((mark, found)) => Err(Finding::new("only_what_was_asked_is_written", mark, format!("{found:?}"))),
        None => Ok(()),
    }
}

/// The requests of an accepted write are all there, those of a refused one are not, and there are no others.
fn effects_agree(model: &Model, written: &[Written]) -> Held {
    let mut marked: BTreeMap<u64, usize> = BTreeMap::new();
    for life in model.lives.values().filter(|life| life.first.attempt.is_some()) {
        if let Some(mark) = mark_of(life.first.body.as_ref()) {
            *marked.entry(mark).or_default() += 1;
        }
    }
    for one in written {
        let found = marked.remove(&one.mark).unwrap_or_default();
        let holds = match one.told {
            Some(Ok(_)) => found == one.effects,
            Some(Err(_)) => found == 0,
            None => found == 0 || found == one.effects,
        };
        ensure(holds, "an_effect_exists_if_its_commit_does", &one.entity, || format!("{one:?}, found {found}"))?;
    }
    let foreign = marked.first_key_value();
    ensure(foreign.is_none(), "an_effect_exists_if_its_commit_does", "the outbox", || format!("{foreign:?}"))
}
