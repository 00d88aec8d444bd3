//! What has to hold: the kernel's theorems, what every host promises, and the author's own promises.

use super::world::World;
use super::{Broken, Plan};
use crate::TableRows;
use crate::lab::LabError;
use crate::scenario::{Promise, Request};
use interlock_coordinator::{EntityView, LeaseView, PAGE_MAX};
use interlock_kernel::Version;
use interlock_kernel::ids::EntityId;
use interlock_kernel::machine::StateKind;
use interlock_kernel::record::{Entry, What};
use interlock_kernel::theorems;

/// Promised of every step: it asks for something, or ends.
pub(super) const STEPS_END: &str = "every step ends";

/// What is remembered of an entity from one moment to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    incarnation: u64,
    version: Version,
    is_final: bool,
}

impl Before {
    pub(super) fn of(view: &EntityView) -> Self {
        let kind = view.revision.machine.state(&view.head.state).map(|state| state.kind);
        Self {
            incarnation: view.head.incarnation.get(),
            version: view.head.version,
            is_final: kind.is_some_and(StateKind::is_final),
        }
    }
}

fn broken(promise: &str, entity: &EntityId, expected: impl Into<String>, got: impl Into<String>) -> Option<Broken> {
    let (promise, entity) = (promise.to_owned(), entity.to_string());
    Some(Broken { promise, entity, expected: expected.into(), got: got.into() })
}

/// What has to hold after every choice.
pub(super) fn moment(
    world: &World<'_>,
    plan: &Plan<'_>,
    before: &[Option<Before>],
    views: &[Option<EntityView>],
    leases: &[LeaseView],
    tables: &[TableRows],
) -> Option<Broken> {
    if let Some(hung) = world.lab.hung().first() {
        let got = "a step that computed on for 10 s of real time".to_owned();
        let (promise, expected) = (STEPS_END.to_owned(), "a call, or an end".to_owned());
        return Some(Broken { promise, entity: hung.clone(), expected, got });
    }
    for (before, view) in before.iter().zip(views) {
        let Some(view) = view else { continue };
        if let Some(theorem) = theorems::entity(&view.head, &view.revision.machine).first() {
            return broken(theorem, &view.id, "a theorem of the kernel to hold", format!("{:?}", view.head));
        }
        if let Some(before) = before.filter(|before| before.incarnation == view.head.incarnation.get()) {
            let now = Before::of(view);
            if now.version < before.version {
                let (old, new) = (before.version, now.version);
                return broken("versions only grow", &view.id, format!("{old} or more"), new.to_string());
            }
            if before.is_final && now.version != before.version {
                return broken("final is final", &view.id, "no change", view.head.state.to_string());
            }
        }
    }
    promised(world, &plan.scenario.always, views, leases, tables)
}

/// What has to hold once nothing more happens.
pub(super) fn end(
    world: &World<'_>,
    plan: &Plan<'_>,
    views: &[Option<EntityView>],
    leases: &[LeaseView],
    tables: &[TableRows],
) -> Result<Option<Broken>, LabError> {
    for view in views.iter().flatten() {
        if let Some(broken) = rests(plan, view) {
            return Ok(Some(broken));
        }
        let entries = history(world, &view.id)?;
        if let Some(broken) = folds(view, &entries).or_else(|| once(world, plan, view, &entries)) {
            return Ok(Some(broken));
        }
    }
    Ok(promised(world, &plan.scenario.eventually, views, leases, tables))
}

/// Nobody is left behind: parked, or locked with nothing to come.
fn rests(plan: &Plan<'_>, view: &EntityView) -> Option<Broken> {
    let head = &view.head;
    let state = view.revision.machine.state(&head.state);
    if let Some(park) = head.park.as_ref().filter(|_| !plan.may_park) {
        let expected = "every execution to come to rest or to a final state";
        return broken("nothing is left parked", &view.id, expected, format!("parked: {}: {}", park.code, park.reason));
    }
    let waits = head.park.is_some() || state.is_some_and(|state| state.waits_forever || !state.on.is_empty());
    if head.lock.is_some() && !waits {
        let got = format!("{}, locked, and nothing that will move it", head.state);
        return broken("every execution ends", &view.id, "rest, a final state, or a declared wait", got);
    }
    None
}

/// The newest entries, oldest first.
fn history(world: &World<'_>, id: &EntityId) -> Result<Vec<Entry>, LabError> {
    let id = id.clone();
    let history = world.lab.read(|host| async move { host.history(&id, None, None, PAGE_MAX).await })?;
    let mut entries = history.map(|history| history.entries).unwrap_or_default();
    entries.reverse();
    Ok(entries)
}

fn folds(view: &EntityView, entries: &[Entry]) -> Option<Broken> {
    if view.head.history.last > PAGE_MAX as u64 {
        return None; // not all of it was read
    }
    let promise = "history folds to the entity";
    let folded = match theorems::fold(&view.id, &view.head, entries) {
        Ok(folded) => folded,
        Err((number, why)) => return broken(promise, &view.id, "a chain without a gap", format!("{number}: {why}")),
    };
    let documents = [&view.documents.desired, &view.documents.data, &view.documents.outputs];
    let digests = documents.map(|document| document.as_ref().map(|doc| doc.digest()));
    if theorems::history_folds_to_entity(&view.head, &folded, digests) {
        return None;
    }
    broken(promise, &view.id, format!("{:?}", view.head), format!("{folded:?}"))
}

/// An event is taken at most once, and one that was acknowledged is.
fn once(world: &World<'_>, plan: &Plan<'_>, view: &EntityView, entries: &[Entry]) -> Option<Broken> {
    for (act, answer) in plan.acts.iter().zip(&world.arrived) {
        let (Some(ask), Some(answer)) = (act.ask(), answer) else { continue };
        let Request::Send { id, event, .. } = &ask.request else { continue };
        if ask.entity != view.id || entries.len() >= PAGE_MAX {
            continue;
        }
        let of_event: Vec<_> = entries.iter().filter(|entry| entry.event.as_ref() == Some(id)).collect();
        let taken = of_event.iter().filter(|entry| matches!(&entry.what, What::Event(name) if name == event)).count();
        let settled = of_event.iter().any(|entry| matches!(entry.what, What::Refused(..) | What::Queued(_)));
        if taken > 1 || (taken == 0 && World::was_taken(answer) && !settled) {
            let got = format!("{} taken {taken} times", ask.request);
            return broken("an acknowledged event takes effect once", &view.id, "once", got);
        }
    }
    None
}

fn promised(
    world: &World<'_>,
    promises: &[Promise],
    views: &[Option<EntityView>],
    leases: &[LeaseView],
    tables: &[TableRows],
) -> Option<Broken> {
    let requests = world.lab.requests();
    for promise in promises {
        if let Err((table, why)) = promise.judge_rows(tables) {
            let (promise, entity) = (promise.name.clone(), format!("table {table}"));
            return Some(Broken { promise, entity, expected: why.expected, got: why.got });
        }
        for view in views.iter().flatten() {
            if let Err(why) = promise.judge(view, leases, &requests) {
                return broken(&promise.name, &view.id, why.expected, why.got);
            }
        }
    }
    None
}
