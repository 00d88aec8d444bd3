//! The reconciler's command: the head is the truth, the index is rebuilt from it, and a head that
//! contradicts itself is parked, never guessed. It should find nothing.

use super::draft::{Draft, Given, Tag};
use super::session::lose;
use crate::command::Outcome;
use crate::ids::EntityId;
use crate::number::FencingToken;
use crate::record::{FactKind, Key, Park, Record};
use crate::theorems;
use crate::view::{Decision, Stop, Wake};

/// Compares an entity with the index entries found for it, and repairs.
pub(super) fn audit(
    given: &Given<'_>,
    entity: &EntityId,
    found: &[Key],
    abandoned: Option<FencingToken>,
) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return orphaned(given, found);
    };
    let mut repaired = Vec::new();
    let mut implied = draft.head.index(entity);
    implied.extend(draft.unsettled()?.iter().filter_map(|(number, effect)| effect.index(entity, *number)));
    for key in found.iter().filter(|key| !implied.contains(key)) {
        if given.view.get(key)?.is_some() {
            repaired.push(format!("index entry without cause: {key:?}"));
            draft.writes.push((key.clone(), None));
        }
    }
    for key in &implied {
        if given.view.get(key)?.is_none() {
            repaired.push(format!("missing index entry: {key:?}"));
            draft.writes.push((key.clone(), Some(Record::Mark)));
        }
    }
    let broken = theorems::entity(&draft.head, &draft.revision.machine);
    let lost = draft.head.lock.as_ref().and_then(|lock| lock.attempt).filter(|open| Some(open.token) == abandoned);
    if !broken.is_empty() {
        let reason = broken.join(", ");
        repaired.push(format!("parked: {reason}"));
        set_aside(&mut draft, reason);
    } else if lost.is_some() {
        repaired.push("an open attempt that nobody runs".to_owned());
        lose(&mut draft)?;
    }
    if repaired.is_empty() {
        return Ok(Decision::plain(Outcome::Repaired(repaired)));
    }
    draft.fact(FactKind::Repaired, repaired.join("; "), Tag::default());
    draft.finish(Outcome::Repaired(repaired))
}

/// Nothing moves it any more: no attempt, no timer, no deadline. An operator decides.
fn set_aside(draft: &mut Draft<'_>, reason: String) {
    draft.fence("inconsistent");
    draft.head.timers.clear();
    draft.head.deadline = None;
    draft.head.due = None;
    draft.head.awaits = None;
    if let Some(lock) = draft.head.lock.as_mut() {
        lock.retry = None;
        lock.limit = None;
    }
    draft.wake.push(Wake::Settled(draft.id.clone()));
    draft.head.park = Some(Park { code: Park::INCONSISTENT.to_owned(), reason, since: draft.now().wall });
}

/// Index entries that name an entity that is not there.
fn orphaned(given: &Given<'_>, found: &[Key]) -> Result<Decision, Stop> {
    let mut repaired = Vec::new();
    let mut writes = Vec::new();
    for key in found {
        if given.view.get(key)?.is_some() {
            repaired.push(format!("index entry of no entity: {key:?}"));
            writes.push((key.clone(), None));
        }
    }
    let mut decision = Decision::plain(Outcome::Repaired(repaired));
    decision.writes = writes;
    Ok(decision)
}
