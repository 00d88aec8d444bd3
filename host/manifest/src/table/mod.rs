//! A table's manifest: read where each value stands ([`read`]), looked at as a whole ([`check`], [`claim`]), and
//! turned into the kernel's [`Table`].

mod check;
mod claim;
mod read;

use crate::draft::{ComparisonDraft, Schema, SetDraft};
use crate::keys;
use crate::log::{Span, Spot};
use crate::parse::{Report, walk};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{MachineName, Name, TableName};
use interlock_kernel::table::{Access, ClaimSpec, IndexSpec, OnEnd, Reaper, Right, Table, Tie, Ttl};
use interlock_kernel::value::{Filter, Mutation, Path};

/// Reads and checks the manifest of a table. `name` is shown with every problem and nothing else; no file is read.
/// What comes with a table is its warnings.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_table(name: &str, text: &str) -> Result<(Table, Report), Box<Report>> {
    let (found, report) = walk(name, text, &keys::TABLE, |root, is_toml, log| {
        let draft = read::table(root, log);
        if is_toml {
            check::draft(&draft, log);
        }
        draft.table()
    });
    match found {
        Some(table) => Ok((table, report)),
        None => Err(Box::new(report)),
    }
}

struct Draft<'a> {
    name: Option<TableName>,
    owner: Option<String>,
    schema: Schema<'a>,
    indexes: Vec<IndexDraft>,
    claim: ClaimDraft,
    ttl: Option<Ttl>,
    access: AccessDraft,
}

struct IndexDraft {
    name: Spot<Name>,
    fields: Vec<Spot<Path>>,
    tie: Tie,
}

/// What a claim means; what is not written is as [`ClaimSpec::standard`] says.
struct ClaimDraft {
    /// The table says something about claims.
    written: bool,
    /// Some of it could not be read: what hangs on the whole of it is not judged.
    half_read: bool,
    status: Spot<Path>,
    held: Spot<Doc>,
    filter: Spot<Vec<Vec<ComparisonDraft>>>,
    set: Changes,
    release: Changes,
    on_end: Option<Spot<OnEnd>>,
    reaper: Option<ReaperDraft>,
}

/// A `set`, or what stands for one that is not written.
struct Changes {
    /// Its key, or the table it is left out of.
    at: Span,
    written: bool,
    set: Vec<SetDraft>,
}

struct ReaperDraft {
    at: Span,
    after_ms: u64,
    attempts: Option<u32>,
    dead: Changes,
}

#[derive(Default)]
struct AccessDraft {
    /// Its key, if it is there.
    at: Span,
    clients: Vec<Spot<Right>>,
    machines: Vec<(MachineName, Vec<Spot<Right>>)>,
    /// Some of it could not be read.
    half_read: bool,
}

impl Draft<'_> {
    /// The kernel's table. Only a draft without errors has all of it.
    fn table(&self) -> Option<Table> {
        let indexes = self.indexes.iter().map(|index| {
            let fields = index.fields.iter().map(|field| field.value.clone()).collect();
            (index.name.value.clone(), IndexSpec { fields, tie: index.tie })
        });
        let schema = match &self.schema {
            Schema::Known(written) => Some(written.doc.clone()),
            Schema::None | Schema::Unread => None,
        };
        Some(Table {
            name: self.name.clone()?,
            owner: self.owner.clone()?,
            schema,
            indexes: indexes.collect(),
            claim: self.claim.spec(),
            ttl: self.ttl,
            access: self.access.access(),
        })
    }
}

impl ClaimDraft {
    fn spec(&self) -> ClaimSpec {
        let any = self.filter.value.iter().map(|all| all.iter().map(|one| one.comparison.clone()).collect());
        let reaper = |reaper: &ReaperDraft| Reaper {
            after_ms: reaper.after_ms,
            attempts: reaper.attempts,
            dead: reaper.dead.mutations(),
        };
        ClaimSpec {
            status: self.status.value.clone(),
            held: self.held.value.clone(),
            filter: Filter { any: any.collect() },
            set: self.set.mutations(),
            release: self.release.mutations(),
            on_end: self.on_end.as_ref().map(|on_end| on_end.value).unwrap_or_default(),
            reaper: self.reaper.as_ref().map(reaper),
        }
    }
}

impl Changes {
    fn mutations(&self) -> Vec<Mutation> {
        self.set.iter().map(|one| one.mutation.clone()).collect()
    }

    /// What they leave a field as, if the last change of it says so itself.
    fn leave(&self, field: &Path) -> Left<'_> {
        use interlock_kernel::value::{Operation, Value};
        let last = self.set.iter().rev().map(|one| &one.mutation).find(|one| overlap(&one.field, field));
        match last.map(|last| (last.field == *field, last.operation, &last.value)) {
            None => Left::Alone,
            Some((true, Operation::Set, Value::Json(doc))) => Left::As(doc),
            Some(_) => Left::Open,
        }
    }
}

/// One of two paths leads through the other.
fn overlap(a: &Path, b: &Path) -> bool {
    a.segments.starts_with(&b.segments) || b.segments.starts_with(&a.segments)
}

/// What becomes of a field.
enum Left<'a> {
    /// Nothing.
    Alone,
    /// This stands there.
    As(&'a Doc),
    /// What stands there is known once it is done.
    Open,
}

impl AccessDraft {
    fn all(&self) -> impl Iterator<Item = &Spot<Right>> {
        self.clients.iter().chain(self.machines.iter().flat_map(|(_, rights)| rights))
    }

    fn access(&self) -> Access {
        let values = |rights: &[Spot<Right>]| rights.iter().map(|right| right.value).collect();
        Access {
            machines: self.machines.iter().map(|(name, rights)| (name.clone(), values(rights))).collect(),
            clients: values(&self.clients),
        }
    }
}
