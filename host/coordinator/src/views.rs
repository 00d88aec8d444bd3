//! What clients and operators see: entities, machines, history, answers, on one durable snapshot each.

use crate::codec;
use crate::core::Core;
use crate::dispatch::Phase;
use crate::read::{head_in, look};
use crate::txn::{self, TxnView};
use interlock_kernel::cannot_move;
use interlock_kernel::ids::{EntityId, EventId, MachineName, Name};
use interlock_kernel::machine::Revision;
use interlock_kernel::record::{Condition, Dedup, Entry, Head, Key, MachineRecord, Part, Queued, Record};
use interlock_kernel::view::{Documents, Span, Stop, View};
use interlock_store::{self as store, StoreError};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Entities looked at by one listing call: it answers a shorter page rather than hold up its snapshot.
const LOOKED_AT_MAX: usize = 2_000;

/// The most entries, entities or revisions one call answers.
pub const PAGE_MAX: usize = 500;

/// An entity as it stands.
#[derive(Clone, Debug)]
pub struct EntityView {
    /// Its id.
    pub id: EntityId,
    /// Its head: state, versions, lock, timers, park.
    pub head: Head,
    /// What clients want now, what steps remember, what steps promise.
    pub documents: Documents,
    /// The published conditions.
    pub conditions: Vec<Condition>,
    /// Events waiting, oldest first.
    pub inbox: Vec<Queued>,
    /// Who answers for its machine.
    pub owner: String,
    /// The revision it follows.
    pub revision: Arc<Revision>,
    /// Where its open attempt is, if this host has it.
    pub phase: Option<Phase>,
    /// The number of the snapshot; watch from behind it.
    pub seq: u64,
    /// Store time of the snapshot, to tell deadlines by.
    pub store_ms: u64,
}

/// A machine as deployed.
#[derive(Clone, Debug)]
pub struct MachineView {
    /// Its active and its latest revision.
    pub record: MachineRecord,
    /// The active one.
    pub revision: Arc<Revision>,
}

/// Which entities to list.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Of this machine only.
    pub machine: Option<MachineName>,
    /// In this state only.
    pub state: Option<Name>,
    /// With all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Parked ones only.
    pub parked: bool,
    /// Behind this one.
    pub after: Option<EntityId>,
    /// At most this many; at most [`PAGE_MAX`].
    pub limit: usize,
}

/// A page of a listing, in order of the keys.
#[derive(Clone, Debug)]
pub struct Page {
    /// The entities.
    pub entities: Vec<(EntityId, Head)>,
    /// Where the next page goes on; none at the end. A page may be short, or empty, and not the last.
    pub next: Option<EntityId>,
    /// The number of the snapshot; watch from behind it.
    pub seq: u64,
}

/// Part of an entity's history, newest first.
#[derive(Clone, Debug)]
pub struct History {
    /// The incarnation it is of.
    pub incarnation: u64,
    /// The entries.
    pub entries: Vec<Entry>,
    /// The number to ask before for older ones; none at the end.
    pub before: Option<u64>,
}

/// An entity that does not follow the active revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The entity.
    pub entity: EntityId,
    /// The revision it follows.
    pub revision: u64,
    /// Why it cannot move; none if it will with its next change.
    pub why: Option<String>,
}

pub(crate) async fn entity(core: &Arc<Core>, id: EntityId) -> Result<Option<EntityView>, StoreError> {
    let mut found = look(core, move |view, stamp| {
        let Some(head) = head_in(view, &id)? else { return Ok(None) };
        let Some(revision) = revision_in(view, &id.machine, head.revision)? else { return Ok(None) };
        let doc = |part| {
            Ok(match view.get(&Key::Part(id.clone(), part))? {
                Some(Record::Doc(doc)) => Some(doc),
                _ => None,
            })
        };
        let conditions = match view.get(&Key::Part(id.clone(), Part::Conditions))? {
            Some(Record::Conditions(conditions)) => conditions,
            _ => Vec::new(),
        };
        let inbox = match head.inbox.length {
            0 => Vec::new(),
            length => queued(view, &id, length)?,
        };
        Ok(Some(EntityView {
            documents: Documents { desired: doc(Part::Desired)?, data: doc(Part::Data)?, outputs: doc(Part::Outputs)? },
            id: id.clone(),
            head,
            conditions,
            inbox,
            owner: revision.machine.owner.clone(),
            revision,
            phase: None,
            seq: stamp.seq,
            store_ms: stamp.store_ms,
        }))
    })
    .await?;
    if let Some(entity) = &mut found {
        let open = entity.head.lock.as_ref().and_then(|lock| lock.attempt);
        entity.phase = open.and_then(|open| core.dispatch().phase(open.token.get()));
    }
    Ok(found)
}

fn queued(view: &TxnView<'_>, id: &EntityId, length: u32) -> Result<Vec<Queued>, Stop> {
    let limit = usize::try_from(length).unwrap_or(usize::MAX);
    let records = view.scan(&Span::Inbox(id.clone()), limit)?;
    let events = records.into_iter().filter_map(|(_, record)| match record {
        Record::Queued(event) => Some(event),
        _ => None,
    });
    Ok(events.collect())
}

pub(crate) async fn entities(core: &Arc<Core>, listing: Listing) -> Result<Page, StoreError> {
    let limit = listing.limit.clamp(1, PAGE_MAX);
    look(core, move |view, stamp| {
        let mut entities = Vec::new();
        let next =
            each_head(view, listing.machine.as_ref(), listing.after.as_ref(), LOOKED_AT_MAX, &mut |id, head| {
                if listing.takes(&head) {
                    entities.push((id, head));
                }
                Ok(until(entities.len() >= limit))
            })?;
        Ok(Page { entities, next, seq: stamp.seq })
    })
    .await
}

impl Listing {
    fn takes(&self, head: &Head) -> bool {
        self.state.as_ref().is_none_or(|state| head.state == *state)
            && (!self.parked || head.park.is_some())
            && self.labels.iter().all(|(name, value)| head.labels.get(name) == Some(value))
    }
}

/// Heads in order of their keys, one seek each: no other record of an entity is read. Answers behind
/// which entity to go on, if there may be more.
pub(crate) fn each_head(
    view: &TxnView<'_>,
    machine: Option<&MachineName>,
    after: Option<&EntityId>,
    seeks: usize,
    each: &mut dyn FnMut(EntityId, Head) -> Result<ControlFlow<()>, Stop>,
) -> Result<Option<EntityId>, Stop> {
    let (mut from, to) = codec::entities(machine);
    let mut passed = after.cloned();
    if let Some(after) = after {
        from = codec::behind_entity(after);
    }
    for _ in 0..seeks {
        let mut first = None;
        view.walk(store::Span::between(&from, &to), 1, &mut |key, value| {
            let head = match &key {
                Key::Head(_) => match TxnView::decode(&key, value)? {
                    Record::Head(head) => Some(*head),
                    _ => None,
                },
                // A deleted entity may have history and remembered event ids, and no head.
                _ => None,
            };
            first = entity_of(key).map(|id| (id, head));
            Ok(ControlFlow::Break(()))
        })?;
        let Some((id, head)) = first else { return Ok(None) };
        from = codec::behind_entity(&id);
        passed = Some(id.clone());
        if let Some(head) = head
            && each(id, head)?.is_break()
        {
            break;
        }
    }
    let more = !view.keys(&from, &to, 1)?.is_empty();
    Ok(passed.filter(|_| more))
}

fn until(enough: bool) -> ControlFlow<()> {
    if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The entity that a record or index entry belongs to.
#[must_use]
pub fn entity_of(key: Key) -> Option<EntityId> {
    match key {
        Key::Head(id)
        | Key::Part(id, _)
        | Key::Inbox(id, _)
        | Key::History(id, ..)
        | Key::Dedup(id, _)
        | Key::Due(_, id)
        | Key::Timer(_, id, _)
        | Key::Open(_, id)
        | Key::Effect(id, _)
        | Key::Outbox(_, _, _, id, _)
        | Key::Flight(_, id, _)
        | Key::RowHeld(id, ..)
        | Key::RowKept(id, ..)
        | Key::Memo(id, _) => Some(id),
        Key::Machine(_)
        | Key::Revision(..)
        | Key::Session(_)
        | Key::Expiry(..)
        | Key::Secret
        | Key::Lease(_)
        | Key::LeaseEntry(..)
        | Key::Lapse(..)
        | Key::Table(_)
        | Key::TableSpec(..)
        | Key::Row(..)
        | Key::RowIndex(..)
        | Key::RowDue(..)
        | Key::RowEntry(..)
        | Key::Answered(_)
        | Key::Schedule(_)
        | Key::ScheduleDue(..) => None,
    }
}

pub(crate) async fn history(
    core: &Arc<Core>,
    id: EntityId,
    incarnation: Option<u64>,
    before: Option<u64>,
    limit: usize,
) -> Result<Option<History>, StoreError> {
    let limit = limit.clamp(1, PAGE_MAX);
    look(core, move |view, _| {
        let incarnation = match incarnation {
            Some(incarnation) => incarnation,
            None => match newest_incarnation(view, &id)? {
                Some(newest) => newest,
                None => return Ok(None),
            },
        };
        let (from, to) = codec::history(&id, incarnation, before.map_or(u64::MAX, |before| before.saturating_sub(1)));
        let mut entries = Vec::new();
        view.walk(store::Span::between(&from, &to), limit, &mut |key, value| {
            if let Record::Entry(entry) = TxnView::decode(&key, value)? {
                entries.push(*entry);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let full = entries.len() == limit;
        let older = entries.last().map(|entry| entry.number).filter(|number| full && *number > 1);
        let known = !entries.is_empty() || before.is_some();
        Ok(known.then_some(History { incarnation, entries, before: older }))
    })
    .await
}

fn newest_incarnation(view: &TxnView<'_>, id: &EntityId) -> Result<Option<u64>, Stop> {
    if let Some(head) = head_in(view, id)? {
        return Ok(Some(head.incarnation.get()));
    }
    let (from, to) = codec::histories(id);
    let newest = view.keys(&from, &to, 1)?.into_iter().next();
    Ok(newest.and_then(|key| match key {
        Key::History(_, incarnation, _) => Some(incarnation.get()),
        _ => None,
    }))
}

pub(crate) async fn answer(core: &Arc<Core>, id: EntityId, event: EventId) -> Result<Option<Dedup>, StoreError> {
    look(core, move |view, stamp| {
        Ok(match view.get(&Key::Dedup(id.clone(), event.clone()))? {
            Some(Record::Dedup(dedup)) if dedup.until.0 > stamp.store_ms => Some(dedup),
            _ => None,
        })
    })
    .await
}

pub(crate) async fn machines(core: &Arc<Core>) -> Result<Vec<MachineView>, StoreError> {
    look(core, |view, _| {
        let (from, to) = codec::machines();
        let mut found = Vec::new();
        for key in view.keys(&from, &to, usize::MAX)? {
            if let Key::Machine(name) = key {
                found.extend(machine_in(view, &name)?);
            }
        }
        Ok(found)
    })
    .await
}

pub(crate) async fn machine(core: &Arc<Core>, name: MachineName) -> Result<Option<MachineView>, StoreError> {
    look(core, move |view, _| machine_in(view, &name)).await
}

fn machine_in(view: &TxnView<'_>, name: &MachineName) -> Result<Option<MachineView>, Stop> {
    let Some(Record::Machine(record)) = view.get(&Key::Machine(name.clone()))? else { return Ok(None) };
    let revision = revision_in(view, name, record.active)?;
    Ok(revision.map(|revision| MachineView { record, revision }))
}

fn revision_in(view: &TxnView<'_>, name: &MachineName, number: u64) -> Result<Option<Arc<Revision>>, Stop> {
    Ok(match view.get(&Key::Revision(name.clone(), number))? {
        Some(Record::Revision(revision)) => Some(revision),
        _ => None,
    })
}

pub(crate) async fn revision(
    core: &Arc<Core>,
    name: MachineName,
    number: u64,
) -> Result<Option<Arc<Revision>>, StoreError> {
    look(core, move |view, _| revision_in(view, &name, number)).await
}

pub(crate) async fn revisions(
    core: &Arc<Core>,
    name: MachineName,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Arc<Revision>>, StoreError> {
    let limit = limit.clamp(1, PAGE_MAX);
    look(core, move |view, _| {
        let Some(Record::Machine(record)) = view.get(&Key::Machine(name.clone()))? else { return Ok(Vec::new()) };
        let newest = before.map_or(record.latest, |before| before.saturating_sub(1).min(record.latest));
        let mut found = Vec::new();
        for number in (1..=newest).rev().take(limit) {
            found.extend(revision_in(view, &name, number)?);
        }
        Ok(found)
    })
    .await
}

/// Entities of a machine that do not follow its active revision, and why, if they cannot.
pub(crate) async fn behind(
    core: &Arc<Core>,
    machine: MachineName,
    after: Option<EntityId>,
    limit: usize,
) -> Result<(Vec<Behind>, Option<EntityId>), StoreError> {
    let limit = limit.clamp(1, PAGE_MAX);
    let shared = core.clone();
    look(core, move |view, stamp| {
        let now = txn::now(stamp, shared.session());
        let Some(active) = machine_in(view, &machine)? else { return Ok((Vec::new(), None)) };
        let mut found = Vec::new();
        let next = each_head(view, Some(&machine), after.as_ref(), LOOKED_AT_MAX, &mut |id, head| {
            if head.revision != active.record.active {
                let why = cannot_move(view, shared.book(), now, &id)?;
                found.push(Behind { entity: id, revision: head.revision, why });
            }
            Ok(until(found.len() >= limit))
        })?;
        Ok((found, next))
    })
    .await
}
