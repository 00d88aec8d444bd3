//! The kernel's typed view of a transaction of bytes.
//!
//! The kernel sees records and never why a view stopped; the view remembers that for whoever opened
//! the transaction. Revisions are immutable and large, so they are decoded once and shared.

use crate::codec;
use interlock_kernel::ids::MachineName;
use interlock_kernel::machine::Revision;
use interlock_kernel::record::{Key, Record, TableSpec};
use interlock_kernel::time::{Now, Session, StoreTime, WallTime};
use interlock_kernel::view::{Span, Stop, View};
use interlock_manifest::{CompiledMachine, CompiledTable, RuleBook};
use interlock_store as store;
use interlock_store::{Halt, SCAN_ENTRIES, Stamp, StoreError};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

/// Decoded revisions kept. A host serves few machines and few of their revisions at a time.
const REVISIONS_MAX: usize = 256;

/// A revision, decoded and compiled. Holding it keeps its schemas in the book.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) revision: Arc<Revision>,
    pub(crate) compiled: Arc<CompiledMachine>,
}

/// Revisions that are known to be durable.
#[derive(Default)]
pub(crate) struct Revisions {
    known: RwLock<HashMap<MachineName, BTreeMap<u64, Known>>>,
    /// Declarations of tables, each with the bytes that it was read from.
    tables: RwLock<HashMap<Key, (store::Bytes, Arc<TableSpec>)>>,
}

impl Revisions {
    pub(crate) fn get(&self, machine: &MachineName, number: u64) -> Option<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(machine)?.get(&number).cloned()
    }

    /// A declaration that was read from these very bytes before.
    fn declaration(&self, key: &Key, bytes: &store::Bytes) -> Option<Arc<TableSpec>> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.get(key).filter(|(of, _)| of == bytes).map(|(_, spec)| spec.clone())
    }

    fn declared(&self, key: &Key, bytes: &store::Bytes, spec: &Arc<TableSpec>) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        if tables.len() >= REVISIONS_MAX {
            tables.clear();
        }
        tables.insert(key.clone(), (bytes.clone(), spec.clone()));
    }

    /// The newest one met: a good guess of the active one, never more.
    pub(crate) fn newest(&self, machine: &MachineName) -> Option<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(machine)?.last_key_value().map(|(_, known)| known.clone())
    }

    /// Remembers what a settled job has read. Not before: a revision of a batch that failed never
    /// was, and its number is given out again.
    pub(crate) fn learn(&self, seen: Seen) {
        if !seen.met.iter().any(|met| met.fresh) {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.values().map(BTreeMap::len).sum::<usize>() >= REVISIONS_MAX {
            known.clear();
        }
        for met in seen.met.into_iter().filter(|met| met.fresh) {
            let revision = &met.known.revision;
            known.entry(revision.machine.name.clone()).or_default().insert(revision.number, met.known);
        }
    }
}

/// Takes one record of a walk; breaks when it has enough.
pub(crate) type Each<'a> = &'a mut dyn FnMut(Key, &[u8]) -> Result<ControlFlow<()>, Stop>;

/// A [`View`] over one transaction or snapshot.
pub(crate) struct TxnView<'a> {
    at: RefCell<&'a mut dyn store::Read>,
    shared: &'a Revisions,
    book: &'a RuleBook,
    seen: RefCell<Seen>,
}

/// What the views of one job met.
#[derive(Default)]
pub(crate) struct Seen {
    /// Why one stopped.
    halt: Option<Halt>,
    /// Revisions, held until the job is settled.
    met: Vec<Met>,
    /// Declarations of tables, likewise.
    tables: Vec<Arc<CompiledTable>>,
}

struct Met {
    known: Known,
    /// Not shared yet.
    fresh: bool,
}

impl<'a> TxnView<'a> {
    pub(crate) fn new(at: &'a mut dyn store::Read, shared: &'a Revisions, book: &'a RuleBook) -> Self {
        Self { at: RefCell::new(at), shared, book, seen: RefCell::default() }
    }

    pub(crate) fn into_seen(self) -> Seen {
        self.seen.into_inner()
    }

    fn stop(&self, halt: Halt) -> Stop {
        self.seen.borrow_mut().halt.get_or_insert(halt);
        Stop::View
    }

    pub(crate) fn decode(key: &Key, bytes: &[u8]) -> Result<Record, Stop> {
        Record::decode(key, bytes).map_err(|why| Stop::Corrupt(format!("{key:?}: {why}")))
    }

    fn revision(&self, machine: &MachineName, number: u64, key: &Key) -> Result<Option<Record>, Stop> {
        let is_it = |met: &&Met| met.known.revision.number == number && met.known.revision.machine.name == *machine;
        let met = self.seen.borrow().met.iter().find(is_it).map(|met| met.known.revision.clone());
        if let Some(revision) = met {
            return Ok(Some(Record::Revision(revision)));
        }
        let (known, fresh) = match self.shared.get(machine, number) {
            Some(known) => (known, false),
            None => {
                let Some(bytes) = self.bytes(key)? else { return Ok(None) };
                let Record::Revision(revision) = Self::decode(key, &bytes)? else {
                    return Err(Stop::Corrupt(format!("{key:?}: not a revision")));
                };
                // Compiled here at the latest: the kernel may judge by it next.
                let compiled = self.book.ensure(&revision).map_err(|why| Stop::Corrupt(format!("{key:?}: {why}")))?;
                (Known { revision, compiled }, true)
            }
        };
        let record = Record::Revision(known.revision.clone());
        self.seen.borrow_mut().met.push(Met { known, fresh });
        Ok(Some(record))
    }

    /// A declaration of a table, compiled: the kernel may judge rows by it next.
    fn declaration(&self, key: &Key, bytes: &store::Bytes) -> Result<Record, Stop> {
        let spec = match self.shared.declaration(key, bytes) {
            Some(known) => known,
            None => {
                let Record::TableSpec(spec) = Self::decode(key, bytes)? else {
                    return Err(Stop::Corrupt(format!("{key:?}: not a declaration of a table")));
                };
                self.shared.declared(key, bytes, &spec);
                spec
            }
        };
        let compiled = self.book.ensure_table(&spec).map_err(|why| Stop::Corrupt(format!("{key:?}: {why}")))?;
        self.seen.borrow_mut().tables.push(compiled);
        Ok(Record::TableSpec(spec))
    }

    /// The keys of a run of index entries.
    pub(crate) fn keys(&self, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Key>, Stop> {
        let mut found = Vec::new();
        self.walk(store::Span::between(from, to), limit, &mut |key, _| {
            found.push(key);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Decoded keys and raw values, in the span's order, until `each` has enough.
    pub(crate) fn walk(&self, span: store::Span<'_>, limit: usize, each: Each<'_>) -> Result<(), Stop> {
        let mut bad = None;
        let mut one = |key: &[u8], value: &[u8]| {
            let done = codec::decode(key).map_err(|why| Stop::Corrupt(why.to_string()));
            match done.and_then(|key| each(key, value)) {
                Ok(flow) => flow,
                Err(stop) => {
                    bad = Some(stop);
                    ControlFlow::Break(())
                }
            }
        };
        let limit = limit.min(usize::try_from(SCAN_ENTRIES.max).unwrap_or(usize::MAX));
        self.at.borrow_mut().scan(span, limit, &mut one).map_err(|halt| self.stop(halt))?;
        bad.map_or(Ok(()), Err)
    }

    fn bytes(&self, key: &Key) -> Result<Option<store::Bytes>, Stop> {
        self.at.borrow_mut().get(&codec::encode(key)).map_err(|halt| self.stop(halt))
    }
}

impl Seen {
    /// Takes in what a later view of the same job met.
    pub(crate) fn merge(&mut self, later: Self) {
        self.halt = self.halt.take().or(later.halt);
        self.met.extend(later.met);
        self.tables.extend(later.tables);
    }

    /// Why the job stops, told as the store understands it.
    pub(crate) fn halt(&mut self, stop: Stop) -> Halt {
        match stop {
            Stop::View => self.halt.take().unwrap_or(Halt::Abort),
            Stop::Corrupt(got) => {
                Halt::Failed(StoreError::Corrupt { expected: "records that agree with each other".to_owned(), got })
            }
        }
    }
}

impl View for TxnView<'_> {
    fn get(&self, key: &Key) -> Result<Option<Record>, Stop> {
        if let Key::Revision(machine, number) = key {
            return self.revision(machine, *number, key);
        }
        match self.bytes(key)? {
            Some(bytes) if matches!(key, Key::TableSpec(..)) => self.declaration(key, &bytes).map(Some),
            Some(bytes) => Self::decode(key, &bytes).map(Some),
            None => Ok(None),
        }
    }

    fn scan(&self, span: &Span, limit: usize) -> Result<Vec<(Key, Record)>, Stop> {
        let (from, to) = codec::range(span);
        let mut found = Vec::new();
        let run = store::Span::between(&from, &to);
        let run = if matches!(span, Span::RowIndex(index) if index.back) { run.back() } else { run };
        self.walk(run, limit, &mut |key, value| {
            let record = Self::decode(&key, value)?;
            found.push((key, record));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }
}

/// The kernel's view of a stamp.
pub(crate) fn now(stamp: Stamp, session: Session) -> Now {
    Now { store: StoreTime(stamp.store_ms), wall: WallTime(stamp.wall_ms), seq: stamp.seq, session }
}
