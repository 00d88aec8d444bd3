//! The reconciler: slowly and all the time, compares every head with the index entries it implies and with the leases
//! it names, every lease with its index entry and with whom it names, every index entry with its cause, and open
//! attempts with what runs here. It should find nothing; what it finds is one command, one record, one counter.

use crate::codec;
use crate::core::Core;
use crate::read::{head_in, look};
use crate::txn::TxnView;
use crate::views::{each_head, entity_of};
use interlock_kernel::FencingToken;
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::ids::{EntityId, LeaseName, Principal};
use interlock_kernel::record::{Effect, Head, Key, Lease, Owner, Record};
use interlock_kernel::theorems;
use interlock_kernel::view::{Span, Stop, View};
use interlock_store::StoreError;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Heads, or index entries, compared at a time.
const PAGE: usize = 128;

/// Between two whole pages: a million entities take about two hours, at less than a hundredth of a core.
const PAUSE_MS: u64 = 1_000;

/// Where a pass stands.
#[derive(Clone)]
enum Place {
    Heads(Option<EntityId>),
    Leases(Vec<u8>),
    Index(usize, Vec<u8>),
}

impl Place {
    /// Tells the families of records that it goes through.
    fn family(&self) -> usize {
        match self {
            Self::Heads(_) => 0,
            Self::Leases(_) => 1,
            Self::Index(nth, _) => nth.saturating_add(2),
        }
    }
}

/// An audit of one entity.
fn of_entity(entity: EntityId, found: Vec<Key>, abandoned: Option<FencingToken>) -> Verb {
    Verb::Audit { entity, found, abandoned }
}

/// An audit of one lease.
fn of_lease(lease: LeaseName, found: Vec<Key>, named_by: Option<EntityId>) -> Verb {
    Verb::AuditLease { lease, found, named_by }
}

/// An open attempt of this session that was not here when last looked at.
type Doubts = BTreeMap<EntityId, FencingToken>;

/// Compares everything again and again.
pub(crate) async fn run(core: Arc<Core>) {
    let mut place = Place::Heads(None);
    let mut doubts = Doubts::new();
    loop {
        match page(&core, place.clone(), &mut doubts).await {
            Ok((_, Some(next))) => {
                // The rest of a family is less than a page: what is small does not take longer for being in many.
                let whole = next.family() == place.family();
                place = next;
                if !whole {
                    continue;
                }
            }
            Ok((_, None)) => place = Place::Heads(None),
            Err(error) => tracing::warn!(%error, "the reconciler could not read"),
        }
        core.idle(PAUSE_MS).await;
        settle_doubts(&core, &mut doubts).await;
    }
}

/// One whole pass without pauses; what was repaired, in words.
pub(crate) async fn pass(core: &Arc<Core>) -> Result<Vec<String>, StoreError> {
    let mut place = Place::Heads(None);
    let mut doubts = Doubts::new();
    let mut repaired = Vec::new();
    loop {
        let (words, next) = page(core, place, &mut doubts).await?;
        repaired.extend(words);
        match next {
            Some(next) => place = next,
            None => return Ok(repaired),
        }
    }
}

/// One entity, by what its head implies.
pub(crate) async fn audit(core: &Arc<Core>, entity: EntityId) -> Result<Vec<String>, StoreError> {
    repair(core, of_entity(entity, Vec::new(), None)).await
}

async fn page(core: &Arc<Core>, place: Place, doubts: &mut Doubts) -> Result<(Vec<String>, Option<Place>), StoreError> {
    let shared = core.clone();
    let (suspects, open, next) = look(core, move |view, _| match &place {
        Place::Heads(after) => heads(view, &shared, after.as_ref()),
        Place::Leases(from) => leases(view, &shared, from),
        Place::Index(nth, from) => index(view, &shared, *nth, from),
    })
    .await?;
    if core.dispatch().is_complete() {
        let absent = open.into_iter().filter(|(_, token)| !core.dispatch().has(token.get()));
        doubts.extend(absent);
    }
    let mut repaired = Vec::new();
    for suspect in suspects {
        repaired.extend(repair(core, suspect).await?);
    }
    Ok((repaired, next))
}

/// Audits of what does not agree, the attempts that are open, and where to go on.
type Found = (Vec<Verb>, Vec<(EntityId, FencingToken)>, Option<Place>);

fn heads(view: &TxnView<'_>, core: &Core, after: Option<&EntityId>) -> Result<Found, Stop> {
    let mut suspects = Vec::new();
    let mut open = Vec::new();
    let next = each_head(view, None, after, PAGE, &mut |entity, head| {
        core.counters().audited.add(1);
        if !agrees(view, &entity, &head)? {
            suspects.push(of_entity(entity.clone(), Vec::new(), None));
        }
        for name in head.leases.iter().chain(&head.awaits) {
            let lease = lease_in(view, name)?.unwrap_or_default();
            if !theorems::lease_and_execution_agree(name, &lease, &entity, Some(&head)) {
                suspects.push(of_lease(name.clone(), Vec::new(), Some(entity.clone())));
            }
        }
        let attempt = head.lock.as_ref().and_then(|lock| lock.attempt);
        open.extend(attempt.filter(|open| Some(open.session) == core.session_id()).map(|open| (entity, open.token)));
        Ok(ControlFlow::Continue(()))
    })?;
    let next = next.map_or_else(|| Place::Leases(codec::leases("").0), |id| Place::Heads(Some(id)));
    Ok((suspects, open, Some(next)))
}

/// From one lease's record straight to the next one's.
fn leases(view: &TxnView<'_>, core: &Core, from: &[u8]) -> Result<Found, Stop> {
    let (_, to) = codec::leases("");
    let (mut from, mut suspects) = (from.to_vec(), Vec::new());
    for _ in 0..PAGE {
        let Some(key) = view.keys(&from, &to, 1)?.pop() else {
            return Ok((suspects, Vec::new(), Some(Place::Index(0, codec::due().0))));
        };
        let (Key::Lease(name) | Key::LeaseEntry(name, _)) = key else {
            return Err(Stop::Corrupt(format!("{key:?} among the leases")));
        };
        core.counters().audited.add(1);
        from = codec::behind_lease(&name);
        if !lease_agrees(view, &name)? {
            suspects.push(of_lease(name, Vec::new(), None));
        }
    }
    Ok((suspects, Vec::new(), Some(Place::Leases(from))))
}

fn lease_in(view: &TxnView<'_>, name: &LeaseName) -> Result<Option<Lease>, Stop> {
    Ok(match view.get(&Key::Lease(name.clone()))? {
        Some(Record::Lease(lease)) => Some(*lease),
        _ => None,
    })
}

/// Its index entry is there, and each execution that it names says the same.
fn lease_agrees(view: &TxnView<'_>, name: &LeaseName) -> Result<bool, Stop> {
    let Some(lease) = lease_in(view, name)? else { return Ok(true) };
    let owners = lease.holder.iter().map(|holder| &holder.owner).chain(lease.line.iter().map(|waiter| &waiter.owner));
    for owner in owners {
        let Owner::Execution(execution) = owner else { continue };
        let head = head_in(view, &execution.entity)?;
        if !theorems::lease_and_execution_agree(name, &lease, &execution.entity, head.as_ref()) {
            return Ok(false);
        }
    }
    match lease.due {
        Some(due) => Ok(view.get(&Key::Lapse(due, name.clone()))?.is_some()),
        None => Ok(true),
    }
}

fn agrees(view: &TxnView<'_>, entity: &EntityId, head: &Head) -> Result<bool, Stop> {
    for key in head.index(entity) {
        if view.get(&key)?.is_none() {
            return Ok(false);
        }
    }
    if head.outbox.unsettled > 0 || head.outbox.dead > 0 {
        for (key, record) in view.scan(&Span::Effects(entity.clone()), usize::MAX)? {
            let (Key::Effect(_, number), Record::Effect(effect)) = (key, record) else { continue };
            let implied = effect.index(entity, number);
            if implied.is_some_and(|key| !matches!(view.get(&key), Ok(Some(_)))) {
                return Ok(false);
            }
        }
    }
    let parked = head.park.as_ref().is_some_and(|park| park.code == "inconsistent");
    Ok(parked
        || match view.get(&Key::Revision(entity.machine.clone(), head.revision))? {
            Some(Record::Revision(revision)) => theorems::entity(head, &revision.machine).is_empty(),
            _ => false,
        })
}

fn effect_in(view: &TxnView<'_>, entity: &EntityId, number: u64) -> Result<Option<Effect>, Stop> {
    Ok(match view.get(&Key::Effect(entity.clone(), number))? {
        Some(Record::Effect(effect)) => Some(*effect),
        _ => None,
    })
}

fn index(view: &TxnView<'_>, core: &Core, nth: usize, from: &[u8]) -> Result<Found, Stop> {
    let families = [codec::due(), codec::timers(), codec::open(), codec::lapses(), codec::outbox(), codec::flights()];
    let Some((_, to)) = families.get(nth) else { return Ok((Vec::new(), Vec::new(), None)) };
    let keys = view.keys(from, to, PAGE)?;
    core.counters().scanned.add(keys.len() as u64);
    let mut suspects = Vec::new();
    for key in &keys {
        if let Key::Lapse(due, name) = key {
            if lease_in(view, name)?.and_then(|lease| lease.due) != Some(*due) {
                suspects.push(of_lease(name.clone(), vec![key.clone()], None));
            }
            continue;
        }
        let Some(entity) = entity_of(key.clone()) else { continue };
        if let Key::Outbox(_, _, _, _, number) | Key::Flight(_, _, number) = key {
            let implied = effect_in(view, &entity, *number)?.and_then(|effect| effect.index(&entity, *number));
            if implied.as_ref() != Some(key) {
                suspects.push(of_entity(entity, vec![key.clone()], None));
            }
            continue;
        }
        let head = head_in(view, &entity)?;
        if head.is_none_or(|head| !head.index(&entity).contains(key)) {
            suspects.push(of_entity(entity, vec![key.clone()], None));
        }
    }
    let next = match keys.last() {
        Some(last) if keys.len() == PAGE => {
            let mut behind = codec::encode(last);
            behind.push(0);
            Some(Place::Index(nth, behind))
        }
        _ => {
            let nth = nth.saturating_add(1);
            families.get(nth).map(|(from, _)| Place::Index(nth, from.clone()))
        }
    };
    Ok((suspects, Vec::new(), next))
}

/// An attempt that is open and not here may have been on its way. If it still is so, nobody runs it.
async fn settle_doubts(core: &Arc<Core>, doubts: &mut Doubts) {
    for (entity, token) in std::mem::take(doubts) {
        let here = core.dispatch().has(token.get()) || !core.dispatch().is_complete();
        if here {
            continue;
        }
        if let Err(error) = repair(core, of_entity(entity, Vec::new(), Some(token))).await {
            tracing::warn!(%error, "an attempt that nobody runs could not be looked at");
        }
    }
}

async fn repair(core: &Arc<Core>, verb: Verb) -> Result<Vec<String>, StoreError> {
    let what = match &verb {
        Verb::AuditLease { lease, .. } => format!("lease {lease}"),
        Verb::Audit { entity, .. } => entity.to_string(),
        other => format!("{other:?}"),
    };
    match core.insist(Command { by: Principal::host(), verb }).await {
        Some(Ok(Outcome::Repaired(words))) => {
            if !words.is_empty() {
                core.counters().repaired.add(1);
                tracing::error!(what, ?words, "repaired what should never be wrong");
            }
            Ok(words)
        }
        Some(Ok(other)) => {
            tracing::warn!(what, ?other, "an audit answered something else");
            Ok(Vec::new())
        }
        Some(Err(crate::SubmitError::Store(error))) => Err(error),
        Some(Err(error)) => {
            tracing::warn!(what, %error, "an audit was refused");
            Ok(Vec::new())
        }
        None => Err(StoreError::Closed),
    }
}
