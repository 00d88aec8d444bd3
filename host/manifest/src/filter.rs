//! The language of guards outside of manifests: what an entity must be like, told by its documents.

use crate::check::field as judged;
use crate::draft::ComparisonDraft;
use crate::log::{Log, Span};
use crate::node::{Node, Table};
use crate::problem::{Code, Kind, Severity};
use crate::read::Paths;
use crate::read::field as written;
use interlock_kernel::doc::Doc;
use interlock_kernel::machine::{Contract, Machine};
use interlock_kernel::value::{Filter, Path, Root, Segment, Source, Value};
use serde_json::Value as Json;

/// A comparison that can never hold. A manifest is only warned of it, since somebody may mean it; a test
/// that tests nothing is wrong.
const POINTLESS: Kind = Kind { code: Code::TypeMismatch.text(), severity: Severity::Error };

/// The schemas that fields are looked up in.
#[derive(Clone, Copy, Debug)]
pub struct Schemas<'s> {
    desired: Option<&'s Json>,
    data: Option<&'s Json>,
    outputs: Option<&'s Json>,
}

impl<'s> Schemas<'s> {
    /// Of a machine's documents.
    #[must_use]
    pub fn of(machine: &'s Machine) -> Self {
        let schema = |contract: &'s Contract| contract.schema.as_ref().map(Doc::value);
        Self { desired: schema(&machine.desired), data: schema(&machine.data), outputs: schema(&machine.outputs) }
    }

    fn root(&self, root: Root) -> Option<&'s Json> {
        match root {
            Root::Desired => self.desired,
            Root::Data => self.data,
            Root::Outputs => self.outputs,
            Root::Event | Root::Row => None,
        }
    }
}

/// What a table says of an entity's documents: `any`, `all`, or one comparison as `field`, `op` and `value`.
/// None if it says nothing of them, or nothing that can be read.
pub fn filter(table: &Table<'_>, schemas: &Schemas<'_>, log: &mut Log<'_>) -> Option<Filter> {
    let any = written::any_of(Paths::Documents, table, log)?;
    for one in any.iter().flatten() {
        look(one, schemas, log);
    }
    Some(Filter { any: any.into_iter().map(|all| all.into_iter().map(|one| one.comparison).collect()).collect() })
}

fn look(one: &ComparisonDraft, schemas: &Schemas<'_>, log: &mut Log<'_>) {
    let seen = |path: &Path, at: &Span, log: &mut Log<'_>| {
        if path.root == Root::Event {
            let message = format!("`{path}`: there is no event to look at");
            log.add(Code::BadPath, at, message, "compare fields of desired, data or outputs").got(path.to_string());
            return None;
        }
        judged::types_of(schemas.root(path.root), path, at, log)
    };
    let field = seen(&one.comparison.field, &one.field_at, log);
    let value = match &one.comparison.value {
        Value::Json(doc) => Some(judged::types_of_json(doc)),
        Value::From(Source::Field(path)) => seen(path, &one.value_at, log),
        Value::From(Source::Execution) => None,
        Value::From(Source::Now(_)) => {
            let message = "`now` is no fixed moment here";
            log.add(Code::BadPath, &one.value_at, message, "compare with a literal, or with a field").got("now");
            None
        }
    };
    if let (Some(field), Some(value)) = (field, value) {
        judged::compare(one, &field, &value, POINTLESS, log);
    }
}

/// Reports each field of a literal document, at any depth, that the schema of `root` rules out.
pub fn fields(node: &Node<'_>, root: Root, schemas: &Schemas<'_>, log: &mut Log<'_>) {
    if let Some(schema) = schemas.root(root) {
        below(node, root, schema, &mut Vec::new(), log);
    }
}

fn below(node: &Node<'_>, root: Root, schema: &Json, way: &mut Vec<Segment>, log: &mut Log<'_>) {
    if !node.is_table() {
        return;
    }
    for (name, value) in node.entries(log) {
        way.push(Segment::Field(name.value.to_owned()));
        let path = Path::new(root, way.clone());
        if judged::types_of(Some(schema), &path, &name.at, log).is_some() {
            below(&value, root, schema, way, log);
        }
        way.pop();
    }
}
