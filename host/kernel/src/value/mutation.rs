//! Changes of one field of data or outputs: `set`.

use super::{Path, Roots, Segment, Value, integer, order};
use crate::limits::APPEND_MAX;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value as Json};
use std::cmp::Ordering;

/// A change of one field of data or outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mutation {
    /// The field.
    pub field: Path,
    /// How it changes.
    pub operation: Operation,
    /// With what; nothing for `remove`.
    pub value: Value,
}

/// How a field changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// Overwritten.
    Set,
    /// Plus a number, which may be negative; missing starts from 0.
    Increment,
    /// Taken away; missing stays missing.
    Remove,
    /// One more element at the end of an array; the oldest make room. Missing starts empty.
    Append {
        /// At most this many elements stay.
        max: usize,
    },
    /// The greater of both; missing takes the value.
    Max,
    /// The lesser of both; missing takes the value.
    Min,
}

impl Mutation {
    /// Applies it to the document of its root. `roots` are the documents its value is read from.
    ///
    /// # Errors
    /// The path, what it expected there and what it met; the document is then unusable.
    pub fn apply(&self, document: &mut Json, roots: &Roots<'_>) -> Result<(), String> {
        let field = &self.field;
        if self.operation == Operation::Remove {
            return self.remove(document);
        }
        let value = roots
            .value(&self.value)
            .ok_or_else(|| format!("{field}: expected a value, got nothing at {}", self.value))?;
        let slot = slot(document, &field.segments).map_err(|got| format!("{field}: {got}"))?;
        let met = |wanted: &str, got: &Json| format!("{field}: expected {wanted}, got {}", kind(got));
        let next = match (self.operation, slot) {
            (Operation::Set, _) | (Operation::Max | Operation::Min, None) => value,
            (Operation::Increment, current) => {
                let zero = Json::from(0);
                let (Json::Number(a), Json::Number(b)) = (current.unwrap_or(&zero), &value) else {
                    return Err(met("a number", if value.is_number() { current.unwrap_or(&zero) } else { &value }));
                };
                Json::Number(sum(a, b).ok_or_else(|| format!("{field}: expected a 64-bit sum, got {a} + {b}"))?)
            }
            (Operation::Append { max }, current) => {
                let mut items = match current {
                    None => Vec::new(),
                    Some(Json::Array(items)) => items.clone(),
                    Some(other) => return Err(met("an array", other)),
                };
                items.push(value);
                let extra = items.len().saturating_sub(max.min(APPEND_MAX));
                items.drain(..extra);
                Json::Array(items)
            }
            (Operation::Max | Operation::Min, Some(current)) => {
                let order = order(&value, current).ok_or_else(|| met("two numbers or two texts", current))?;
                let wanted = if self.operation == Operation::Max { Ordering::Greater } else { Ordering::Less };
                if order == wanted { value } else { current.clone() }
            }
            (Operation::Remove, _) => return Ok(()),
        };
        *slot_mut(document, &field.segments).map_err(|got| format!("{field}: {got}"))? = next;
        Ok(())
    }

    fn remove(&self, document: &mut Json) -> Result<(), String> {
        let Some((last, way)) = self.field.segments.split_last() else {
            return Err(format!("{}: expected a field, got the whole document", self.field));
        };
        let parent = way.iter().try_fold(document, |at, segment| match segment {
            Segment::Field(name) => at.as_object_mut()?.get_mut(name),
            Segment::Index(index) => at.as_array_mut()?.get_mut(*index),
        });
        match (parent, last) {
            (Some(Json::Object(fields)), Segment::Field(name)) => drop(fields.remove(name)),
            (Some(Json::Array(items)), Segment::Index(index)) if *index < items.len() => drop(items.remove(*index)),
            _ => {}
        }
        Ok(())
    }
}

/// The value at a path that a mutation may write to: none if it would be new.
fn slot<'a>(document: &'a Json, segments: &[Segment]) -> Result<Option<&'a Json>, String> {
    let mut at = Some(document);
    for segment in segments {
        at = match (at, segment) {
            (None | Some(Json::Null), Segment::Field(_)) => None,
            (Some(Json::Object(fields)), Segment::Field(name)) => fields.get(name),
            (Some(Json::Array(items)), Segment::Index(index)) => {
                Some(items.get(*index).ok_or_else(|| format!("expected an index below {}, got {index}", items.len()))?)
            }
            (Some(other), Segment::Field(_)) => {
                return Err(format!("expected an object on the way, got {}", kind(other)));
            }
            (Some(other), Segment::Index(_)) => {
                return Err(format!("expected an array on the way, got {}", kind(other)));
            }
            (None, Segment::Index(index)) => {
                return Err(format!("expected an array on the way, got nothing at [{index}]"));
            }
        };
    }
    Ok(at)
}

fn slot_mut<'a>(document: &'a mut Json, segments: &[Segment]) -> Result<&'a mut Json, String> {
    segments.iter().try_fold(document, |at, segment| match segment {
        Segment::Field(name) => {
            if at.is_null() {
                *at = Json::Object(Map::new());
            }
            let found = kind(at);
            let fields = at.as_object_mut().ok_or_else(|| format!("expected an object on the way, got {found}"))?;
            Ok(fields.entry(name.clone()).or_insert(Json::Null))
        }
        Segment::Index(index) => {
            let found = kind(at);
            let items = at.as_array_mut().ok_or_else(|| format!("expected an array on the way, got {found}"))?;
            let length = items.len();
            items.get_mut(*index).ok_or_else(|| format!("expected an index below {length}, got {index}"))
        }
    })
}

fn sum(a: &Number, b: &Number) -> Option<Number> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => {
            let sum = a.checked_add(b)?;
            i64::try_from(sum).map(Number::from).or_else(|_| u64::try_from(sum).map(Number::from)).ok()
        }
        _ => Number::from_f64(a.as_f64()? + b.as_f64()?),
    }
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "text",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}
