//! `where`: comparisons in `all` and `any` to any depth, as the kernel's any of all.

use super::Misread;
use super::at::At;
use super::set::{Scope, literal};
use interlock_kernel::doc::Doc;
use interlock_kernel::limits::{COMPARISONS_MAX, DEPTH_MAX};
use interlock_kernel::value::{Comparison, Filter, Operator, Value};
use serde_json::Value as Json;

const WHERE: &str = "a list of {field, operator, value}, {all: [...]}, {any: [...]}, or an object of values by path";
/// What tells a comparison or a group from values by path.
const STRUCTURE: [&str; 4] = ["all", "any", "field", "operator"];

/// Alternatives of which one must hold whole.
type Any = Vec<Vec<Comparison>>;

/// What rows must be like. An empty list or object is any row.
pub(super) fn filter(at: &At<'_>, scope: &Scope) -> Result<Filter, Misread> {
    let empty = match at.json {
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    };
    if empty {
        return Ok(Filter::default());
    }
    Ok(Filter { any: any_of(at, scope, 0)? })
}

fn any_of(at: &At<'_>, scope: &Scope, depth: usize) -> Result<Any, Misread> {
    if depth > DEPTH_MAX {
        return Err(at.misread_as(format!("conditions nested at most {DEPTH_MAX} deep (depth_max)"), "deeper ones"));
    }
    match at.json {
        Json::Array(_) => all(at, scope, depth),
        Json::Object(_) if !STRUCTURE.iter().any(|name| at.has(name)) => values(at, scope),
        Json::Object(_) => match (at.get("all"), at.get("any")) {
            (Some(group), _) => {
                at.only(WHERE, &["all"])?;
                all(&group, scope, depth)
            }
            (None, Some(group)) => {
                at.only(WHERE, &["any"])?;
                any(&group, scope, depth)
            }
            (None, None) => Ok(vec![vec![comparison(at, scope)?]]),
        },
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Err(at.misread(WHERE)),
    }
}

fn some<'j>(at: &At<'j>) -> Result<Vec<At<'j>>, Misread> {
    let items = at.list("a list of conditions")?;
    if items.is_empty() { Err(at.misread("at least one condition")) } else { Ok(items) }
}

fn any(at: &At<'_>, scope: &Scope, depth: usize) -> Result<Any, Misread> {
    let mut found = Any::new();
    for item in some(at)? {
        found.extend(any_of(&item, scope, depth + 1)?);
        bounded(at, count(&found))?;
    }
    Ok(found)
}

/// Each alternative of one condition with each of the next.
fn all(at: &At<'_>, scope: &Scope, depth: usize) -> Result<Any, Misread> {
    let mut found: Any = vec![Vec::new()];
    for item in some(at)? {
        let next = any_of(&item, scope, depth + 1)?;
        // Counted before they are made: a few lines would fill the memory.
        let (mine, theirs) = (count(&found).saturating_mul(next.len()), count(&next).saturating_mul(found.len()));
        bounded(at, mine.saturating_add(theirs))?;
        found = found.iter().flat_map(|one| next.iter().map(|more| [one.as_slice(), more].concat())).collect();
    }
    Ok(found)
}

fn count(any: &Any) -> usize {
    any.iter().map(Vec::len).sum()
}

fn bounded(at: &At<'_>, count: usize) -> Result<(), Misread> {
    if count <= COMPARISONS_MAX {
        return Ok(());
    }
    let expected = format!(
        "at most {COMPARISONS_MAX} comparisons once every `any` in an `all` is multiplied out (comparisons_max)"
    );
    Err(at.misread_as(expected, count.to_string()))
}

/// `{"status": "pending", "size": 3}`: each field is equal to its value.
fn values(at: &At<'_>, scope: &Scope) -> Result<Any, Misread> {
    let entries = at.entries(WHERE)?;
    if entries.is_empty() {
        return Err(at.misread("at least one condition"));
    }
    bounded(at, entries.len())?;
    let equal = |(path, one): (&str, At<'_>)| {
        Ok(Comparison { field: scope.path(&one, path)?, operator: Operator::Eq, value: plain(&one, scope)? })
    };
    Ok(vec![entries.into_iter().map(equal).collect::<Result<_, _>>()?])
}

/// A value of the short form: JSON that is no object, `{"from": SOURCE}` or `{"value": {...}}`.
fn plain(at: &At<'_>, scope: &Scope) -> Result<Value, Misread> {
    let expected = "a value, {from: SOURCE}, or {value: {...}} for an object";
    let Some(fields) = at.json.as_object() else { return Ok(literal(at)) };
    match (fields.len(), at.get("value")) {
        (1, Some(value)) => Ok(literal(&value)),
        (1, None) if at.has("from") => scope.value(at),
        _ => Err(at.misread(expected)),
    }
}

fn comparison(at: &At<'_>, scope: &Scope) -> Result<Comparison, Misread> {
    at.only("{field, operator, value}", &["field", "operator", "value", "literal"])?;
    let field = at.need("field", "a field path")?;
    let field = scope.path(&field, field.text("a field path")?)?;
    let operator = at.need("operator", "how it is compared, such as eq")?.choice(&Operator::ALL)?;
    let valueless = operator == Operator::Exists && !at.has("value") && !at.has("literal");
    let value = if valueless { Value::Json(Doc::new(true.into())) } else { scope.compared(at)? };
    fits(at, operator, &value)?;
    Ok(Comparison { field, operator, value })
}

/// A literal that no field is compared with so: it would hold for no row, ever.
fn fits(at: &At<'_>, operator: Operator, value: &Value) -> Result<(), Misread> {
    let Value::Json(doc) = value else { return Ok(()) };
    let (fits, expected) = match operator {
        Operator::In | Operator::NotIn => (doc.value().is_array(), "a list of values"),
        Operator::Exists => (doc.value().is_boolean(), "true or false"),
        Operator::StartsWith => (doc.value().is_string(), "text"),
        Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge => {
            (doc.value().is_number() || doc.value().is_string(), "a number or text")
        }
        Operator::Eq | Operator::Ne | Operator::Contains => return Ok(()),
    };
    let place = at.get("value").or_else(|| at.get("literal"));
    match place.filter(|_| !fits) {
        Some(place) => Err(place.misread(format!("{expected} for {}", operator.name()))),
        None => Ok(()),
    }
}
