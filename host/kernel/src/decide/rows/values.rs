//! Keys, changes and filters of rows, as their values are in this transaction.

use crate::doc::Doc;
use crate::ids::{RowKey, TableName};
use crate::limits::{COMPARISONS_MAX, MUTATIONS_MAX};
use crate::rejection::{Code, Rejection};
use crate::value::{Filter, Mutation, Root, Roots, Value};
use serde_json::Value as Json;

use super::super::enter::oversize;

/// The key that a value names: a text, or an integer as it is written.
pub(super) fn key(value: &Value, roots: &Roots<'_>, table: &TableName) -> Result<RowKey, Rejection> {
    let subject = || format!("table {table}");
    let text = match roots.value(value) {
        Some(Json::String(text)) => text,
        Some(Json::Number(number)) if !number.is_f64() => number.to_string(),
        Some(other) => {
            let got = Doc::new(other);
            return Err(Rejection::new(Code::Invalid, subject(), "a key that is text or an integer", got));
        }
        None => {
            let got = format!("nothing at {value}");
            return Err(Rejection::new(Code::Invalid, subject(), "a key", got));
        }
    };
    text.parse().map_err(|bad: crate::ids::BadName| {
        Rejection::new(Code::Invalid, subject(), format!("a row key of {}", bad.expected), format!("{:?}", bad.got))
    })
}

/// A value after changes; each sees what those before it did.
pub(super) fn mutate(
    value: &Doc,
    set: &[Mutation],
    roots: &Roots<'_>,
    table: &TableName,
    key: &RowKey,
) -> Result<Doc, Rejection> {
    if set.is_empty() {
        return Ok(value.clone());
    }
    let subject = |mutation: &Mutation| format!("{table}/{key}: {}", mutation.field);
    let mut now = value.value().clone();
    for mutation in set {
        if mutation.field.root != Root::Row {
            return Err(Rejection::new(Code::Invalid, subject(mutation), "a field of the row", &mutation.field));
        }
        let resolved = Roots { row: Some(&now), ..*roots }.value(&mutation.value).map(Doc::new);
        // Bounded here too: a row that is put into itself doubles.
        if let Some(refused) = resolved.as_ref().and_then(|doc| oversize(&subject(mutation), doc)) {
            return Err(refused);
        }
        let resolved = resolved.map(Value::Json).unwrap_or_else(|| mutation.value.clone());
        let mutation = Mutation { value: resolved, ..mutation.clone() };
        mutation
            .apply(&mut now, roots)
            .map_err(|why| Rejection::new(Code::Invalid, subject(&mutation), "a change that its value allows", why))?;
    }
    Ok(Doc::new(now))
}

/// Too many changes.
pub(super) fn overlong(set: &[Mutation]) -> Option<Rejection> {
    let expected = format!("at most {MUTATIONS_MAX} changes (mutations_max)");
    (set.len() > MUTATIONS_MAX).then(|| Rejection::new(Code::Limit, "set", expected, set.len()))
}

/// Too many comparisons.
pub(super) fn overcompared(filter: &Filter) -> Option<Rejection> {
    let count = filter.any.iter().map(Vec::len).fold(0_usize, usize::saturating_add);
    let expected = format!("at most {COMPARISONS_MAX} comparisons in a filter (comparisons_max)");
    (count > COMPARISONS_MAX).then(|| Rejection::new(Code::Limit, "where", expected, count))
}
