//! Guards and `set` name fields that can exist, and compare what can be compared.

use crate::draft::{ComparisonDraft, Draft, GuardDraft, Schema, SetDraft};
use crate::log::{Log, Span, suggest};
use crate::problem::{Code, Kind};
use crate::shape::{self, Field, Types, type_of};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::Name;
use interlock_kernel::machine::DESIRED_CHANGED;
use interlock_kernel::value::{Operation, Operator, Path, Root, Source, Value};
use serde_json::Value as Json;

pub(super) fn check(draft: &Draft<'_>, log: &mut Log<'_>) {
    for state in &draft.states {
        for (event, moves) in &state.on {
            let seen = Seen { draft, event: Some(&event.value) };
            for one in moves {
                seen.guard(&one.guard, log);
                seen.set(&one.set, log);
            }
        }
        // What a step, a timer or a failure path sees as the event is whatever entered the visit.
        let seen = Seen { draft, event: None };
        for one in state.to.iter().chain(state.after.iter().map(|timer| &timer.then)) {
            seen.guard(&one.guard, log);
            seen.set(&one.set, log);
        }
        for (_, set) in state.failures() {
            seen.set(set, log);
        }
    }
}

/// The documents a move sees.
pub(super) struct Seen<'d, 'a> {
    pub(super) draft: &'d Draft<'a>,
    pub(super) event: Option<&'d Name>,
}

impl<'d> Seen<'d, '_> {
    fn guard(&self, guard: &GuardDraft, log: &mut Log<'_>) {
        let GuardDraft::Some(any) = guard else { return };
        for one in any.iter().flatten() {
            let field = self.field(&one.comparison.field, &one.field_at, log);
            let value = self.value(&one.comparison.value, &one.value_at, log);
            if let (Some(field), Some(value)) = (field, value) {
                compare(one, &field, &value, Code::TypeMismatch, log);
            }
        }
    }

    fn set(&self, set: &[SetDraft], log: &mut Log<'_>) {
        for one in set {
            let field = self.field(&one.mutation.field, &one.field_at, log);
            let value = match one.mutation.operation {
                Operation::Remove => Some(Types::any()),
                _ => self.value(&one.mutation.value, &one.value_at, log),
            };
            if let (Some(field), Some(value)) = (field, value) {
                change(one, &field, &value, Code::TypeMismatch, log);
            }
        }
    }

    /// The types of a field; none if it was reported.
    pub(super) fn field(&self, path: &Path, at: &Span, log: &mut Log<'_>) -> Option<Types> {
        let schema = match path.root {
            Root::Desired => known(&self.draft.desired.schema),
            Root::Data => known(&self.draft.data.schema),
            Root::Outputs => known(&self.draft.outputs.schema),
            Root::Row => None,
            Root::Event => {
                if self.event.is_some_and(|event| *event == *DESIRED_CHANGED) {
                    let remedy = "compare fields of desired instead";
                    log.add(Code::UnknownField, at, format!("`{path}`: `desired-changed` has no payload"), remedy);
                    return None;
                }
                self.event.and_then(|event| {
                    let event = self.draft.events.iter().find(|declared| declared.name.value == *event)?;
                    known(&event.schema)
                })
            }
        };
        types_of(schema, path, at, log)
    }

    pub(super) fn value(&self, value: &Value, at: &Span, log: &mut Log<'_>) -> Option<Types> {
        match value {
            Value::Json(doc) => Some(types_of_json(doc)),
            Value::From(Source::Now(_)) => Some(Types::only("number")),
            Value::From(Source::Execution) => Some(Types::only("string")),
            Value::From(Source::Field(path)) => self.field(path, at, log),
        }
    }
}

/// The types of a field by the schema of its document; none if the schema rules it out, which was reported.
pub(crate) fn types_of(schema: Option<&Json>, path: &Path, at: &Span, log: &mut Log<'_>) -> Option<Types> {
    let Some(schema) = schema else { return Some(Types::any()) };
    match shape::find(schema, &path.segments) {
        Field::Known(found) => Some(shape::types(found)),
        Field::Open => Some(Types::any()),
        Field::RuledOut { part, names } => {
            let remedy = suggest(&part, names.iter().copied(), "name another field, or correct the schema");
            let message = format!("the schema rules out `{path}`: nothing there has `{part}`");
            let mut entry = log.add(Code::UnknownField, at, message, remedy);
            if !names.is_empty() {
                entry = entry.expected(crate::log::list(&names));
            }
            entry.got(path.to_string());
            None
        }
    }
}

/// The type of a literal.
pub(crate) fn types_of_json(doc: &Doc) -> Types {
    Types::only(type_of(doc.value()))
}

fn known<'s>(schema: &'s Schema<'_>) -> Option<&'s Json> {
    match schema {
        Schema::Known(written) => Some(written.doc.value()),
        Schema::None | Schema::Unread => None,
    }
}

/// A comparison that no valid document can make true, or can make false.
pub(crate) fn compare(one: &ComparisonDraft, field: &Types, value: &Types, kind: impl Into<Kind>, log: &mut Log<'_>) {
    let orders = |types: &Types| types.has("number") || types.has("string");
    let (operator, constant) = (one.comparison.operator, &one.comparison.value);
    let (fits, expected) = match operator {
        Operator::Eq | Operator::Ne => (field.meets(value), field.words()),
        Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge => {
            let both = ["number", "string"].into_iter().any(|name| field.has(name) && value.has(name));
            (both, if orders(field) { field.words() } else { "a field that is a number or text".to_owned() })
        }
        Operator::In | Operator::NotIn => {
            (value.has("array") && elements_meet(constant, field), format!("an array of {}", field.words()))
        }
        Operator::Exists => (value.has("boolean"), "true or false".to_owned()),
        Operator::Contains => {
            let text = field.has("string") && value.has("string");
            (text || field.has("array"), "an array, or text and a part of it".to_owned())
        }
        Operator::StartsWith => (field.has("string") && value.has("string"), "text and its beginning".to_owned()),
    };
    if !fits {
        let never = if matches!(operator, Operator::Ne) { "always true" } else { "never true" };
        let message = format!("`{}` is {never}", one.comparison);
        log.add(kind, &one.value_at, message, "compare it with a value of its type, or correct the schema")
            .expected(expected)
            .got(value.words());
    }
}

fn elements_meet(constant: &Value, field: &Types) -> bool {
    match constant {
        Value::Json(doc) => {
            doc.value().as_array().is_none_or(|items| items.iter().any(|item| field.has(type_of(item))))
        }
        Value::From(_) => true,
    }
}

/// A change that is always refused.
pub(crate) fn change(one: &SetDraft, field: &Types, value: &Types, kind: impl Into<Kind>, log: &mut Log<'_>) {
    let path = &one.mutation.field;
    let (fits, expected) = match one.mutation.operation {
        Operation::Set => (field.meets(value), field.words()),
        Operation::Increment => (field.has("number") && value.has("number"), "a number".to_owned()),
        Operation::Append { .. } => (field.has("array"), "an array".to_owned()),
        Operation::Max | Operation::Min => {
            let both = ["number", "string"].into_iter().any(|name| field.has(name) && value.has(name));
            (both, "two numbers or two texts".to_owned())
        }
        Operation::Remove => (true, String::new()),
    };
    if !fits {
        let message = format!("this change of `{path}` is always refused: it is {}", field.words());
        log.add(kind, &one.value_at, message, "set a value of its type, or correct the schema")
            .expected(expected)
            .got(value.words());
    }
}
