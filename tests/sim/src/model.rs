//! What must be durable, decoded: every record of every committed job, and every history entry there ever
//! was. It is fed by what jobs wrote and by nothing else; what is checked at each commit is in `commit.rs`,
//! what is checked over the whole in `whole.rs`.

use crate::finding::{Finding, Held, ensure};
use crate::gated::Write;
use crate::leases::Grants;
use crate::outbox::Life;
use interlock_coordinator::{decode_key, entity_of};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, EventId, LeaseName, Name};
use interlock_kernel::machine::{Machine, Revision, StateKind};
use interlock_kernel::record::{Dedup, Entry, Head, Key, Part, Record};
use interlock_kernel::time::StoreTime;
use interlock_store::{Bytes, Halt, Query, Read, SCAN_ENTRIES, Seq, Span, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};

/// The end of one incarnation's history.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) number: u64,
    pub(crate) version: u64,
    pub(crate) state: Name,
    pub(crate) hash: Digest,
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Model {
    raw: Raw,
    pub(crate) records: BTreeMap<Key, Record>,
    /// Index entries by entity.
    pub(crate) index: BTreeMap<EntityId, BTreeSet<Key>>,
    /// Every entry ever committed, by entity, incarnation and number.
    pub(crate) log: BTreeMap<(EntityId, u64, u64), Entry>,
    pub(crate) ends: BTreeMap<(EntityId, u64), End>,
    /// Every state that a remembered answer ever had.
    pub(crate) turns: BTreeMap<(EntityId, EventId), Vec<Dedup>>,
    /// Index entries of leases.
    pub(crate) lapses: BTreeMap<LeaseName, BTreeSet<StoreTime>>,
    pub(crate) grants: Grants,
    /// Every effect ever committed, by its key.
    pub(crate) lives: BTreeMap<String, Life>,
    /// Every incarnation of an entity.
    pub(crate) born: BTreeMap<EntityId, BTreeSet<u64>>,
    /// Timers that have fired, by incarnation and visit.
    pub(crate) fired: BTreeSet<(EntityId, u64, u64, Name)>,
    /// The session that is open.
    pub(crate) session: Option<u64>,
    /// The highest token so far.
    pub(crate) token: u64,
    pub(crate) seq: u64,
}

/// What a store holds, as bytes.
pub(crate) type Raw = BTreeMap<Vec<u8>, Bytes>;

impl Model {
    pub(crate) fn head(&self, id: &EntityId) -> Option<&Head> {
        match self.records.get(&Key::Head(id.clone())) {
            Some(Record::Head(head)) => Some(head),
            _ => None,
        }
    }

    pub(crate) fn heads(&self) -> impl Iterator<Item = (&EntityId, &Head)> {
        self.records.iter().filter_map(|(key, record)| match (key, record) {
            (Key::Head(id), Record::Head(head)) => Some((id, &**head)),
            _ => None,
        })
    }

    /// Every index entry that an entity implies.
    pub(crate) fn implied(&self, id: &EntityId, head: &Head) -> BTreeSet<Key> {
        let effects = self.effects(id).filter_map(|(number, effect)| effect.index(id, number));
        head.index(id).into_iter().chain(effects).collect()
    }

    pub(crate) fn data(&self, id: &EntityId) -> Option<&serde_json::Value> {
        match self.records.get(&Key::Part(id.clone(), Part::Data)) {
            Some(Record::Doc(doc)) => Some(doc.value()),
            _ => None,
        }
    }

    pub(crate) fn revision(&self, id: &EntityId, number: u64) -> Option<&Arc<Revision>> {
        match self.records.get(&Key::Revision(id.machine.clone(), number)) {
            Some(Record::Revision(revision)) => Some(revision),
            _ => None,
        }
    }

    /// The definition that an entity follows.
    pub(crate) fn machine(&self, id: &EntityId, head: &Head) -> Result<&Machine, Finding> {
        self.revision(id, head.revision)
            .map(|revision| &*revision.machine)
            .ok_or_else(|| Finding::new("a_head_follows_a_stored_revision", id, format!("revision {}", head.revision)))
    }

    pub(crate) fn kind(&self, id: &EntityId, head: &Head) -> Result<StateKind, Finding> {
        let state = self.machine(id, head)?.state(&head.state).map(|state| state.kind);
        state.ok_or_else(|| Finding::new("a_head_is_in_a_declared_state", id, &head.state))
    }

    pub(crate) fn dedup(&self, id: &EntityId, event: &EventId) -> Option<&Dedup> {
        match self.records.get(&Key::Dedup(id.clone(), event.clone())) {
            Some(Record::Dedup(dedup)) => Some(dedup),
            _ => None,
        }
    }

    /// Every entry of an entity, whichever incarnation.
    pub(crate) fn entries<'a>(&'a self, id: &EntityId) -> impl Iterator<Item = (u64, &'a Entry)> + use<'a> {
        let span = (id.clone(), 0, 0)..=(id.clone(), u64::MAX, u64::MAX);
        self.log.range(span).map(|((_, incarnation, _), entry)| (*incarnation, entry))
    }

    /// Takes a write in, unchecked.
    pub(crate) fn put(&mut self, (at, bytes): &Write, key: Key, record: Option<Record>) {
        match bytes {
            Some(bytes) => self.raw.insert(at.clone(), bytes.clone()),
            None => self.raw.remove(at),
        };
        if let Key::Lapse(due, lease) = &key {
            let entries = self.lapses.entry(lease.clone()).or_default();
            if record.is_some() {
                entries.insert(*due)
            } else {
                entries.remove(due)
            };
        }
        if let (Key::Session(id), Some(Record::Session(session))) = (&key, &record) {
            self.session = session.closed.is_none().then(|| id.get()).or(self.session);
        }
        if matches!(key, Key::Due(..) | Key::Timer(..) | Key::Open(..) | Key::Outbox(..) | Key::Flight(..))
            && let Some(entity) = entity_of(key.clone())
        {
            let entries = self.index.entry(entity).or_default();
            if record.is_some() {
                entries.insert(key.clone())
            } else {
                entries.remove(&key)
            };
        }
        match record {
            Some(record) => self.records.insert(key, record),
            None => self.records.remove(&key),
        };
    }

    /// The store holds exactly what was committed.
    pub(crate) fn is_what_is_stored(&self, raw: &Raw) -> Held {
        let theorem = "the_store_holds_what_was_committed";
        for at in raw.keys().chain(self.raw.keys()) {
            let (expected, got) = (self.raw.get(at), raw.get(at));
            if expected != got {
                let read = |bytes: Option<&Bytes>| decode(&(at.clone(), bytes.cloned()));
                let (key, expected) = read(expected)?;
                let (_, got) = read(got)?;
                let detail = format!("expected {}, got {}", shown(expected.as_ref()), shown(got.as_ref()));
                return Err(Finding::new(theorem, about(&key), detail));
            }
        }
        Ok(())
    }
}

/// A key as a finding names it.
pub(crate) fn about(key: &Key) -> String {
    format!("{key:?}")
}

fn shown(record: Option<&Record>) -> String {
    match record {
        Some(record) => {
            let mut text = format!("{record:?}");
            let end = text.char_indices().nth(400).map_or(text.len(), |(at, _)| at);
            text.truncate(end);
            text
        }
        None => "nothing".to_owned(),
    }
}

/// A write, decoded.
///
/// # Errors
/// Bytes that are no key, or no record of that key.
pub(crate) fn decode((key, value): &Write) -> Result<(Key, Option<Record>), Finding> {
    let theorem = "what_is_stored_can_be_read";
    let key = decode_key(key).map_err(|why| Finding::new(theorem, format!("{key:02x?}"), why))?;
    let record = match value {
        Some(bytes) => {
            let record = Record::decode(&key, bytes).map_err(|why| Finding::new(theorem, about(&key), why))?;
            ensure(record.encode(&key)[..] == bytes[..], theorem, about(&key), || {
                "expected the same bytes when encoded again".to_owned()
            })?;
            Some(record)
        }
        None => None,
    };
    Ok((key, record))
}

/// Everything a store holds, on one snapshot after another; nothing may be written meanwhile.
///
/// # Errors
/// What kept the store from reading.
pub(crate) fn read_all(store: &dyn Store) -> Result<Raw, StoreError> {
    let mut all = Raw::new();
    loop {
        let after = all.last_key_value().map(|(key, _)| key.clone());
        let (found, page) = mpsc::channel();
        store.query(Box::new(Scan { after, page: Raw::new(), found }));
        let page = page.recv().unwrap_or(Err(StoreError::Closed))?;
        let full = page.len() as u64 == SCAN_ENTRIES.max;
        all.extend(page);
        if !full {
            return Ok(all);
        }
    }
}

struct Scan {
    after: Option<Vec<u8>>,
    page: Raw,
    found: mpsc::Sender<Result<Raw, StoreError>>,
}

impl Query for Scan {
    fn run(&mut self, at: &mut dyn Read) -> Result<(), Halt> {
        self.page.clear();
        let (page, after) = (&mut self.page, &self.after);
        let span = after.as_ref().map_or_else(Span::all, |after| Span::all().after(after));
        let limit = usize::try_from(SCAN_ENTRIES.max).unwrap_or(usize::MAX);
        at.scan(span, limit, &mut |key, value| {
            page.insert(key.to_vec(), value.into());
            ControlFlow::Continue(())
        })
    }

    fn settle(self: Box<Self>, result: Result<Seq, StoreError>) {
        let Self { page, found, .. } = *self;
        // Whoever asked may have gone.
        let _ = found.send(result.map(|_| page));
    }
}
