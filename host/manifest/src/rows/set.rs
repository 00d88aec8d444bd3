//! `set`, and the values in it.

use super::at::At;
use super::{Asks, Misread};
use crate::log::excerpt;
use crate::path::of_row;
use interlock_kernel::doc::Doc;
use interlock_kernel::limits::APPEND_MAX;
use interlock_kernel::value::{Mutation, Operation, Path, Root, Source, Value};
use serde_json::Value as Json;

const SET: &str = "a list of {field, operation, value}, or an object of changes by path";
const VALUE: [&str; 2] = ["value", "literal"];
/// What a change says about itself in the short form.
const CHANGE: [&str; 7] = ["append", "from", "increment", "max", "min", "remove", "value"];
const CHANGES: &str = "a value, {from}, {value}, {increment}, {append, max}, {max}, {min} or {remove: true}";

/// What paths begin at, and what values are read from.
pub(super) struct Scope {
    asks: Asks,
    of: Of,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// A row that is there.
    Row,
    /// The name of a row: there is none yet.
    Key,
    /// Another entity.
    Entity,
}

impl Scope {
    pub(super) fn row(asks: Asks) -> Self {
        Self { asks, of: Of::Row }
    }

    pub(super) fn key(asks: Asks) -> Self {
        Self { asks, of: Of::Key }
    }

    pub(super) fn entity(asks: Asks) -> Self {
        Self { asks, of: Of::Entity }
    }

    /// A field path.
    pub(super) fn path(&self, at: &At<'_>, text: &str) -> Result<Path, Misread> {
        if self.of != Of::Entity {
            let way = "a path from the row, such as status, payload.amount or tags[0]";
            return of_row(text).map_err(|why| at.misread_as(format!("{way} ({why})"), format!("{:?}", excerpt(text))));
        }
        let way = "a field of desired, data or outputs, such as data.size";
        match text.parse::<Path>() {
            Ok(path) if matches!(path.root, Root::Desired | Root::Data | Root::Outputs) => Ok(path),
            Ok(_) | Err(_) => Err(at.misread_as(way, format!("{:?}", excerpt(text)))),
        }
    }

    /// What a value may be read from here.
    fn sees(&self, root: Root) -> bool {
        match (root, self.of, self.asks) {
            (Root::Row, Of::Row, _) => true,
            (Root::Row, Of::Key | Of::Entity, _) => false,
            (Root::Desired | Root::Data | Root::Outputs, Of::Entity, _) => true,
            (Root::Event | Root::Desired | Root::Data | Root::Outputs, _, asks) => asks == Asks::Step,
        }
    }

    fn source(&self, at: &At<'_>) -> Result<Source, Misread> {
        let roots = [
            (Root::Event, "event.x"),
            (Root::Desired, "desired.x"),
            (Root::Data, "data.x"),
            (Root::Outputs, "outputs.x"),
            (Root::Row, "row.x"),
        ];
        let seen: Vec<&str> = roots.iter().filter(|(root, _)| self.sees(*root)).map(|(_, name)| *name).collect();
        let expected = ["now, now+5m, now-90s, execution"].into_iter().chain(seen).collect::<Vec<_>>().join(", ");
        let source: Source = at.text(&expected)?.parse().map_err(|_| at.misread(&*expected))?;
        match &source {
            Source::Field(path) if !self.sees(path.root) => Err(at.misread(expected)),
            Source::Field(_) | Source::Now(_) | Source::Execution => Ok(source),
        }
    }

    /// JSON, or `{"from": SOURCE}`.
    pub(super) fn value(&self, at: &At<'_>) -> Result<Value, Misread> {
        match at.json.as_object().filter(|fields| fields.len() == 1).and_then(|_| at.get("from")) {
            Some(from) => self.source(&from).map(Value::From),
            None => Ok(literal(at)),
        }
    }

    /// What stands at `value`, or at `literal`: the same, where `{"from": ...}` is nothing but an object.
    pub(super) fn compared(&self, at: &At<'_>) -> Result<Value, Misread> {
        match (at.get("value"), at.get("literal")) {
            (Some(value), None) => self.value(&value),
            (None, Some(plain)) => Ok(literal(&plain)),
            (Some(_), Some(both)) => Err(both.misread_as("`value` or `literal`", "both")),
            (None, None) => at.need("value", "JSON, or {from: SOURCE}").and_then(|value| self.value(&value)),
        }
    }
}

pub(super) fn literal(at: &At<'_>) -> Value {
    Value::Json(Doc::new(at.json.clone()))
}

/// Changes: a list keeps its order, an object is sorted by path.
pub(super) fn set(at: &At<'_>, scope: &Scope) -> Result<Vec<Mutation>, Misread> {
    match at.json {
        Json::Array(_) => at.each(SET, |one| mutation(&one, scope)),
        Json::Object(_) => at.entries(SET)?.into_iter().map(|(path, one)| short(path, &one, scope)).collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Err(at.misread(SET)),
    }
}

/// How a change is written, before it is known how many elements stay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Set,
    Increment,
    Remove,
    Append,
    Max,
    Min,
}

const WORDS: [(&str, Word); 6] = [
    ("set", Word::Set),
    ("increment", Word::Increment),
    ("remove", Word::Remove),
    ("append", Word::Append),
    ("max", Word::Max),
    ("min", Word::Min),
];

/// `{"field": PATH, "operation": WORD, "value": ...}`.
fn mutation(at: &At<'_>, scope: &Scope) -> Result<Mutation, Misread> {
    at.map("{field, operation, value}")?;
    let word = at.need("operation", "set, increment, remove, append, max or min")?.choice(&WORDS)?;
    let known: &[&str] = match word {
        Word::Remove => &["field", "operation"],
        Word::Append => &["field", "operation", "value", "literal", "max"],
        Word::Set | Word::Increment | Word::Max | Word::Min => &["field", "operation", "value", "literal"],
    };
    at.only("{field, operation, value}", known)?;
    let field = at.need("field", "a path from the row")?;
    let path = scope.path(&field, field.text("a path from the row")?)?;
    let value = if word == Word::Remove { nothing() } else { scope.compared(at)? };
    let value_at = VALUE.iter().find_map(|name| at.get(name));
    change(&field, path, word, (value, value_at.as_ref().unwrap_or(&field)), at.get("max").as_ref())
}

/// `PATH: value`, or `PATH: {"increment": 1}`.
fn short(path: &str, at: &At<'_>, scope: &Scope) -> Result<Mutation, Misread> {
    let field = scope.path(at, path)?;
    let Some(fields) = at.json.as_object() else {
        return change(at, field, Word::Set, (literal(at), at), None);
    };
    at.only(CHANGES, &CHANGE).map_err(|why| {
        let as_it_is = "; a literal object is written {\"value\": {...}}";
        Misread { expected: why.expected + as_it_is, ..why }
    })?;
    let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
    names.sort_unstable();
    let inner = |name: &str| at.need(name, CHANGES);
    let valued = |word: Word, name: &str, max: Option<&At<'_>>| {
        let one = inner(name)?;
        change(at, field.clone(), word, (scope.value(&one)?, &one), max)
    };
    let plain = |word: Word, value: Value| change(at, field.clone(), word, (value, at), None);
    match names.as_slice() {
        ["append", "max"] => valued(Word::Append, "append", at.get("max").as_ref()),
        ["append"] => valued(Word::Append, "append", None),
        ["increment"] => valued(Word::Increment, "increment", None),
        ["max"] => valued(Word::Max, "max", None),
        ["min"] => valued(Word::Min, "min", None),
        ["from"] => plain(Word::Set, Value::From(scope.source(&inner("from")?)?)),
        ["value"] => plain(Word::Set, literal(&inner("value")?)),
        ["remove"] if fields.get("remove") == Some(&Json::Bool(true)) => plain(Word::Remove, nothing()),
        ["remove"] => Err(inner("remove")?.misread("true")),
        _ => Err(at.misread(CHANGES)),
    }
}

fn nothing() -> Value {
    Value::Json(Doc::new(Json::Null))
}

fn change(
    field_at: &At<'_>,
    field: Path,
    word: Word,
    (value, value_at): (Value, &At<'_>),
    max: Option<&At<'_>>,
) -> Result<Mutation, Misread> {
    let operation = match word {
        Word::Set => Operation::Set,
        Word::Increment => match &value {
            Value::Json(doc) if !doc.value().is_number() => return Err(value_at.misread("a number to add")),
            Value::Json(_) | Value::From(_) => Operation::Increment,
        },
        Word::Remove if field.segments.is_empty() => {
            return Err(field_at.misread_as("a field to remove; a row is removed by delete", "the whole row"));
        }
        Word::Remove => Operation::Remove,
        Word::Append => Operation::Append { max: max.map_or(Ok(APPEND_MAX), kept)? },
        Word::Max => Operation::Max,
        Word::Min => Operation::Min,
    };
    Ok(Mutation { field, operation, value })
}

/// How many elements an append keeps.
fn kept(at: &At<'_>) -> Result<usize, Misread> {
    let count = at.json.as_u64().and_then(|count| usize::try_from(count).ok());
    let fits = count.filter(|count| (1..=APPEND_MAX).contains(count));
    fits.ok_or_else(|| at.misread(format!("1 to {APPEND_MAX} elements to keep (append_max)")))
}
