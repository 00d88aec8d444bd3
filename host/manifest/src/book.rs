//! Compiled schemas of revisions: compiled once, shared by every decision.
//!
//! A decision may only meet revisions that are in the book. [`RuleBook::ensure`] puts one in and
//! hands back a share of it; a revision is never dropped while somebody holds its share. So a
//! coordinator calls `ensure` wherever it decodes a revision's record for a decision, and keeps the
//! shares until the decision is made.

use crate::calendar;
use crate::schema::{Compiled, Fault};
use interlock_courier::{Pattern, Unfilled};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{MachineName, Name};
use interlock_kernel::machine::{Machine, Revision};
use interlock_kernel::time::WallTime;
use interlock_kernel::timer::CalendarRule;
use interlock_kernel::view::{Breach, Rules, Schema};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Revisions a book keeps when nobody holds them: every machine of a large host with a few revisions
/// each. A compiled revision is some tens of KiB.
const REVISIONS_MAX: usize = 512;

/// All schemas of one machine, compiled.
#[derive(Debug, Default)]
pub struct CompiledMachine {
    desired: Option<Compiled>,
    data: Option<Compiled>,
    outputs: Option<Compiled>,
    events: BTreeMap<Name, Compiled>,
}

/// A schema that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncompiled {
    /// Whose schema: `desired`, `data`, `outputs` or `event.name`.
    pub schema: String,
    /// Where in the schema, as a JSON Pointer.
    pub path: String,
    /// Why.
    pub why: String,
}

impl fmt::Display for Uncompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schema of {} does not compile at {:?}: {}", self.schema, self.path, self.why)
    }
}

impl std::error::Error for Uncompiled {}

impl CompiledMachine {
    /// Compiles every schema of a machine.
    ///
    /// # Errors
    /// The first that does not compile; [`parse`](crate::parse) lets no such machine through.
    pub fn compile(machine: &Machine) -> Result<Self, Uncompiled> {
        let compile = |schema: Schema<'_>, doc: &Option<Doc>| {
            let failed = |Fault { path, why, .. }| Uncompiled { schema: schema.to_string(), path, why };
            doc.as_ref().map(|doc| Compiled::new(doc.value()).map_err(failed)).transpose()
        };
        let mut events = BTreeMap::new();
        for (name, event) in &machine.events {
            if let Some(compiled) = compile(Schema::Event(name), &event.schema)? {
                events.insert(name.clone(), compiled);
            }
        }
        Ok(Self {
            desired: compile(Schema::Desired, &machine.desired.schema)?,
            data: compile(Schema::Data, &machine.data.schema)?,
            outputs: compile(Schema::Outputs, &machine.outputs.schema)?,
            events,
        })
    }

    /// Whether a document keeps to one of the schemas; a missing schema accepts any document.
    ///
    /// # Errors
    /// [`Breach`]: the first rule it breaks, and where.
    pub fn check(&self, schema: Schema<'_>, doc: &Doc) -> Result<(), Breach> {
        let compiled = match schema {
            Schema::Desired => self.desired.as_ref(),
            Schema::Data => self.data.as_ref(),
            Schema::Outputs => self.outputs.as_ref(),
            Schema::Event(name) => self.events.get(name),
        };
        compiled.map_or(Ok(()), |compiled| compiled.check(doc))
    }
}

/// The compiled schemas of the revisions in use.
#[derive(Debug)]
pub struct RuleBook {
    shelves: RwLock<HashMap<MachineName, BTreeMap<u64, Slot>>>,
    capacity: usize,
    clock: AtomicU64,
    missed: AtomicU64,
}

#[derive(Debug)]
struct Slot {
    digest: Digest,
    compiled: Arc<CompiledMachine>,
    used: AtomicU64,
}

impl Slot {
    fn new(revision: &Revision, compiled: &Arc<CompiledMachine>) -> Self {
        Self { digest: revision.digest, compiled: Arc::clone(compiled), used: AtomicU64::new(0) }
    }
}

impl Default for RuleBook {
    fn default() -> Self {
        Self::new()
    }
}

impl RuleBook {
    /// An empty book.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(REVISIONS_MAX)
    }

    /// An empty book that keeps at most this many revisions nobody holds.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            shelves: RwLock::new(HashMap::new()),
            capacity: capacity.max(1),
            clock: AtomicU64::new(0),
            missed: AtomicU64::new(0),
        }
    }

    /// A share of the revision's compiled schemas, compiling them if they are not in the book. While
    /// the share is held, [`Rules::check`] knows the revision.
    ///
    /// # Errors
    /// [`Uncompiled`] for a machine that did not come from [`parse`](crate::parse).
    pub fn ensure(&self, revision: &Revision) -> Result<Arc<CompiledMachine>, Uncompiled> {
        // The digest tells a revision from one with its number that was decided and never became durable.
        if let Some(found) = self.find(&revision.machine.name, revision.number, Some(&revision.digest)) {
            return Ok(found);
        }
        // Compiled outside the lock: decisions on other revisions go on meanwhile.
        let compiled = Arc::new(CompiledMachine::compile(&revision.machine)?);
        let mut shelves = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        let shelf = shelves.entry(revision.machine.name.clone()).or_default();
        let slot = shelf.entry(revision.number).or_insert_with(|| Slot::new(revision, &compiled));
        // Somebody else may have put it there meanwhile: one share for all, or holding it would not keep it.
        if slot.digest != revision.digest {
            *slot = Slot::new(revision, &compiled);
        }
        slot.used.store(self.tick(), Ordering::Relaxed);
        let share = Arc::clone(&slot.compiled);
        evict(&mut shelves, self.capacity);
        Ok(share)
    }

    /// How often `check` was asked about a revision nobody had ensured: a caller's mistake, 0 in a
    /// correct host.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Revisions in the book.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shelves.read().unwrap_or_else(PoisonError::into_inner).values().map(BTreeMap::len).sum()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&self, machine: &MachineName, revision: u64, digest: Option<&Digest>) -> Option<Arc<CompiledMachine>> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let slot = shelves.get(machine)?.get(&revision)?;
        if digest.is_some_and(|digest| *digest != slot.digest) {
            return None;
        }
        slot.used.store(self.tick(), Ordering::Relaxed);
        Some(Arc::clone(&slot.compiled))
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

/// Drops the revisions that were used longest ago and that nobody holds, down to the capacity. New
/// shares are only taken under the lock, so one that is not held now cannot become held meanwhile.
fn evict(shelves: &mut HashMap<MachineName, BTreeMap<u64, Slot>>, capacity: usize) {
    let held: usize = shelves.values().map(BTreeMap::len).sum();
    let Some(surplus) = held.checked_sub(capacity).filter(|surplus| *surplus > 0) else { return };
    let mut idle: Vec<(u64, MachineName, u64)> = shelves
        .iter()
        .flat_map(|(machine, shelf)| shelf.iter().map(move |(number, slot)| (machine, number, slot)))
        .filter(|(_, _, slot)| Arc::strong_count(&slot.compiled) == 1)
        .map(|(machine, number, slot)| (slot.used.load(Ordering::Relaxed), machine.clone(), *number))
        .collect();
    idle.sort_unstable();
    for (_, machine, number) in idle.into_iter().take(surplus) {
        if let Some(shelf) = shelves.get_mut(&machine) {
            shelf.remove(&number);
        }
    }
    shelves.retain(|_, shelf| !shelf.is_empty());
}

impl Rules for RuleBook {
    /// A revision nobody ensured refuses the document and is counted in [`RuleBook::missed`]: a
    /// document that was not checked must not get in.
    fn check(&self, machine: &MachineName, revision: u64, schema: Schema<'_>, doc: &Doc) -> Result<(), Breach> {
        match self.find(machine, revision, None) {
            Some(compiled) => compiled.check(schema, doc),
            None => {
                self.missed.fetch_add(1, Ordering::Relaxed);
                Err(Breach {
                    path: String::new(),
                    expected: format!("the compiled schemas of {machine} revision {revision}"),
                    got: "a host that did not load them".to_owned(),
                })
            }
        }
    }

    fn instant(&self, text: &str) -> Option<WallTime> {
        calendar::instant(text)
    }

    fn next(&self, rule: &CalendarRule, after: WallTime) -> Result<WallTime, Breach> {
        calendar::next(rule, after)
    }

    fn fill(&self, pattern: &str, values: &BTreeMap<String, String>) -> Result<String, Breach> {
        let breach = |path: &str, expected: String, got: String| Breach { path: path.to_owned(), expected, got };
        let read = Pattern::parse(pattern)
            .map_err(|why| breach("", "a URL pattern".to_owned(), format!("{pattern:?}: {why}")))?;
        let placeholders: Vec<&str> = read.placeholders().collect();
        if let Some(unknown) = values.keys().find(|name| !placeholders.contains(&name.as_str())) {
            let known = if placeholders.is_empty() { "no placeholder".to_owned() } else { placeholders.join(", ") };
            return Err(breach("", known, unknown.clone()));
        }
        match read.fill(|name| values.get(name).map(String::as_str)) {
            Ok(url) => Ok(url.as_str().to_owned()),
            Err(Unfilled::Missing(name)) => Err(breach(&format!(".{name}"), "a value".to_owned(), "none".to_owned())),
            Err(Unfilled::Empty(name)) => {
                Err(breach(&format!(".{name}"), "a value".to_owned(), "an empty one".to_owned()))
            }
            Err(why @ (Unfilled::Open | Unfilled::Bad(_))) => {
                Err(breach("", "values that fit its URL".to_owned(), why.to_string()))
            }
        }
    }
}
