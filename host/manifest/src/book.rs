//! Compiled schemas of revisions and of declarations of tables: compiled once, shared by every decision.
//!
//! A decision may only meet what is in the book. [`RuleBook::ensure`] puts a revision in and hands back a
//! share of it, [`RuleBook::ensure_table`] a declaration; neither is dropped while somebody holds its share.
//! So a coordinator calls them wherever it decodes such a record for a decision, and keeps the shares until
//! the decision is made. How long what nobody holds is kept is in `shelf.rs`.

use crate::schema::{Compiled, Fault};
use crate::shelf::Shelves;
use crate::{calendar, cron};
use interlock_courier::{Pattern, Unfilled};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{MachineName, Name, TableName};
use interlock_kernel::machine::{Machine, Revision};
use interlock_kernel::record::TableSpec;
use interlock_kernel::schedule::Recurrence;
use interlock_kernel::table::Table;
use interlock_kernel::time::WallTime;
use interlock_kernel::timer::CalendarRule;
use interlock_kernel::view::{Breach, Rules, Schema};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Whose schema: `desired`, `data`, `outputs`, `event.name` or `table name`.
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

/// The schema of one declaration of a table, compiled.
#[derive(Debug, Default)]
pub struct CompiledTable {
    row: Option<Compiled>,
}

impl CompiledTable {
    /// Compiles the schema of a table's rows.
    ///
    /// # Errors
    /// It does not compile; [`parse_table`](crate::parse_table) lets no such table through.
    pub fn compile(table: &Table) -> Result<Self, Uncompiled> {
        let failed = |Fault { path, why, .. }| Uncompiled { schema: format!("table {}", table.name), path, why };
        let row = table.schema.as_ref().map(|doc| Compiled::new(doc.value()).map_err(failed)).transpose()?;
        Ok(Self { row })
    }

    /// Whether a row's value keeps to the schema; a missing schema accepts any value.
    ///
    /// # Errors
    /// [`Breach`]: the first rule it breaks, and where.
    pub fn check(&self, value: &Doc) -> Result<(), Breach> {
        self.row.as_ref().map_or(Ok(()), |compiled| compiled.check(value))
    }
}

/// The compiled schemas of the revisions and of the declarations of tables in use.
#[derive(Debug)]
pub struct RuleBook {
    machines: Shelves<MachineName, Digest, CompiledMachine>,
    /// Marked by the schema itself: a declaration's record has no digest.
    tables: Shelves<TableName, Option<Doc>, CompiledTable>,
    missed: AtomicU64,
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

    /// An empty book that keeps at most this many revisions nobody holds, and as many declarations of tables.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let (machines, tables) = (Shelves::with_capacity(capacity), Shelves::with_capacity(capacity));
        Self { machines, tables, missed: AtomicU64::new(0) }
    }

    /// A share of the revision's compiled schemas, compiling them if they are not in the book. While
    /// the share is held, [`Rules::check`] knows the revision.
    ///
    /// # Errors
    /// [`Uncompiled`] for a machine that did not come from [`parse`](crate::parse).
    pub fn ensure(&self, revision: &Revision) -> Result<Arc<CompiledMachine>, Uncompiled> {
        let (name, number) = (&revision.machine.name, revision.number);
        // The digest tells a revision from one with its number that was decided and never became durable.
        if let Some(found) = self.machines.find(name, number, Some(&revision.digest)) {
            return Ok(found);
        }
        // Compiled outside the lock: decisions on other revisions go on meanwhile.
        let compiled = CompiledMachine::compile(&revision.machine)?;
        Ok(self.machines.put(name, number, revision.digest, compiled))
    }

    /// The same for a declaration of a table and [`Rules::check_row`].
    ///
    /// # Errors
    /// [`Uncompiled`] for a table that did not come from [`parse_table`](crate::parse_table).
    pub fn ensure_table(&self, spec: &TableSpec) -> Result<Arc<CompiledTable>, Uncompiled> {
        let (name, schema) = (&spec.table.name, &spec.table.schema);
        if let Some(found) = self.tables.find(name, spec.number, Some(schema)) {
            return Ok(found);
        }
        let compiled = CompiledTable::compile(&spec.table)?;
        Ok(self.tables.put(name, spec.number, schema.clone(), compiled))
    }

    /// How often `check` or `check_row` was asked about what nobody had ensured: a caller's mistake, 0 in a
    /// correct host.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Revisions and declarations of tables in the book.
    #[must_use]
    pub fn len(&self) -> usize {
        self.machines.len() + self.tables.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn miss(&self, what: fmt::Arguments<'_>) -> Breach {
        self.missed.fetch_add(1, Ordering::Relaxed);
        Breach {
            path: String::new(),
            expected: format!("the compiled {what}"),
            got: "a host that did not load them".to_owned(),
        }
    }
}

impl Rules for RuleBook {
    /// A revision nobody ensured refuses the document and is counted in [`RuleBook::missed`]: a
    /// document that was not checked must not get in.
    fn check(&self, machine: &MachineName, revision: u64, schema: Schema<'_>, doc: &Doc) -> Result<(), Breach> {
        match self.machines.find(machine, revision, None) {
            Some(compiled) => compiled.check(schema, doc),
            None => Err(self.miss(format_args!("schemas of {machine} revision {revision}"))),
        }
    }

    /// A declaration nobody ensured refuses the value, as [`check`](Self::check) does.
    fn check_row(&self, table: &TableName, revision: u64, value: &Doc) -> Result<(), Breach> {
        match self.tables.find(table, revision, None) {
            Some(compiled) => compiled.check(value),
            None => Err(self.miss(format_args!("schemas of table {table} revision {revision}"))),
        }
    }

    fn instant(&self, text: &str) -> Option<WallTime> {
        calendar::instant(text)
    }

    fn following(&self, rule: &Recurrence, after: WallTime) -> Result<WallTime, Breach> {
        cron::following(rule, after)
    }

    fn latest(&self, rule: &Recurrence, up_to: WallTime) -> Result<WallTime, Breach> {
        cron::latest(rule, up_to)
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
