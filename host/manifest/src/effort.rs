//! How much work a schema can make of a document, known before the document is checked: nothing stops a check that
//! is under way, and some run where everybody waits for them.
//!
//! Alternatives multiply. Thirty parts that each refer twice to the next are 2^30 checks of one value; a recursive
//! part with two alternatives doubles the work with every level of the document. So the checks of one value are
//! counted by how deep it lies, at most, once per schema; a document is then only counted.

use interlock_kernel::limits::DEPTH_MAX;
use serde_json::Value;
use std::collections::HashMap;

/// Checks of one document, at most: a document of the largest size has some 20,000 values, so that each may be
/// checked 50 times, and the longest check takes less than a second.
pub(crate) const CHECKS_MAX: u64 = 1 << 20;
/// Checks of one value by the meta-schema: itself and its seven vocabularies, with room.
const META_CHECKS: u64 = 16;
/// Where the meta-schema and its vocabularies are.
const META: &str = "https://json-schema.org/draft/2020-12/";

/// Beside a value, one schema of these decides about it.
const HERE: [&str; 4] = ["not", "if", "then", "else"];
const HERE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Only one of all these applies to a value inside.
const ONE_BELOW: [&str; 2] = ["additionalProperties", "items"];
/// Each of these may apply to a value inside.
const ALL_BELOW: [&str; 4] = ["contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"];

/// The checks that a schema makes of one value, by the value's depth; the last is for every deeper one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effort {
    by_depth: Vec<u64>,
}

impl Effort {
    /// Of a schema that compiles.
    pub(crate) fn of(schema: &Value) -> Self {
        let mut parts = Parts { root: schema, known: HashMap::new(), all: Vec::new() };
        parts.part("");
        let mut next = 0;
        while next < parts.all.len() {
            parts.read(next);
            next += 1;
        }
        Self { by_depth: parts.count() }
    }

    /// Checks of the outermost value.
    pub(crate) fn outside(&self) -> u64 {
        self.at(0)
    }

    /// Checks of a whole document.
    pub(crate) fn on(&self, document: &Value) -> u64 {
        self.within(document, 0)
    }

    fn at(&self, depth: usize) -> u64 {
        self.by_depth.get(depth).or(self.by_depth.last()).copied().unwrap_or(u64::MAX)
    }

    fn within(&self, value: &Value, depth: usize) -> u64 {
        let add = |sum: u64, inner: &Value| sum.saturating_add(self.within(inner, depth + 1));
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => self.at(depth),
            Value::Array(items) => items.iter().fold(self.at(depth), add),
            Value::Object(fields) => fields.values().fold(self.at(depth), add),
        }
    }
}

/// The parts of a schema that a check can reach.
struct Parts<'a> {
    root: &'a Value,
    known: HashMap<String, usize>,
    all: Vec<Part>,
}

/// A schema inside a schema, by JSON Pointer; the numbers are places in the list of all.
#[derive(Default)]
struct Part {
    pointer: String,
    here: Vec<usize>,
    one_below: Vec<usize>,
    all_below: Vec<usize>,
    /// Checks by what lies outside of this schema; more than any if a reference leads nowhere.
    outside: u64,
}

impl Parts<'_> {
    fn part(&mut self, pointer: &str) -> usize {
        if let Some(place) = self.known.get(pointer) {
            return *place;
        }
        self.known.insert(pointer.to_owned(), self.all.len());
        self.all.push(Part { pointer: pointer.to_owned(), ..Part::default() });
        self.all.len() - 1
    }

    fn read(&mut self, place: usize) {
        let pointer = self.all[place].pointer.clone();
        let Some(schema) = self.root.pointer(&pointer).and_then(Value::as_object) else { return };
        let mut found = Part { pointer: pointer.clone(), ..Part::default() };
        for (name, value) in schema {
            let below = format!("{pointer}/{name}");
            match name.as_str() {
                "$ref" | "$dynamicRef" => match self.referred(value.as_str().unwrap_or_default()) {
                    Referred::Parts(parts) => found.here.extend(parts),
                    Referred::Outside(checks) => found.outside = found.outside.saturating_add(checks),
                },
                one if HERE.contains(&one) => found.here.push(self.part(&below)),
                list if HERE_LISTS.contains(&list) => found.here.extend(self.inside(&below, value)),
                "dependentSchemas" => found.here.extend(self.inside(&below, value)),
                "properties" | "prefixItems" => found.one_below.extend(self.inside(&below, value)),
                one if ONE_BELOW.contains(&one) => found.one_below.push(self.part(&below)),
                "patternProperties" => found.all_below.extend(self.inside(&below, value)),
                one if ALL_BELOW.contains(&one) => found.all_below.push(self.part(&below)),
                _ => {}
            }
        }
        self.all[place] = found;
    }

    /// The schemas in a list, or under names.
    fn inside(&mut self, pointer: &str, value: &Value) -> Vec<usize> {
        let names: Vec<String> = match value {
            Value::Array(items) => (0..items.len()).map(|index| index.to_string()).collect(),
            Value::Object(fields) => fields.keys().map(|name| escaped(name)).collect(),
            _ => Vec::new(),
        };
        names.iter().map(|name| self.part(&format!("{pointer}/{name}"))).collect()
    }

    /// What a reference leads to: every place it may mean.
    fn referred(&mut self, reference: &str) -> Referred {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if document.starts_with(META) {
            return Referred::Outside(META_CHECKS);
        }
        let mut places = Vec::new();
        let fragment = decoded(fragment);
        places_of(self.root, "", &mut |pointer, schema| {
            let named = |key: &str| schema.get(key).and_then(Value::as_str);
            let is_base = match document {
                "" => pointer.is_empty() || named("$id").is_some(),
                document => named("$id").is_some_and(|id| id.trim_end_matches('#').ends_with(document)),
            };
            if is_base && (fragment.is_empty() || fragment.starts_with('/')) && schema.pointer(&fragment).is_some() {
                places.push(format!("{pointer}{fragment}"));
            }
            if [named("$anchor"), named("$dynamicAnchor")].contains(&Some(fragment.as_str())) {
                places.push(pointer.to_owned());
            }
        });
        if places.is_empty() {
            return Referred::Outside(u64::MAX);
        }
        Referred::Parts(places.iter().map(|pointer| self.part(pointer)).collect())
    }

    /// The checks of one value by the whole schema, by the value's depth.
    fn count(&self) -> Vec<u64> {
        let order = self.innermost_first();
        let mut above = vec![0_u64; self.all.len()];
        let mut by_depth = Vec::with_capacity(DEPTH_MAX + 1);
        for depth in 0..=DEPTH_MAX {
            // What is not in the order refers to itself without going deeper.
            let mut now = vec![u64::MAX; self.all.len()];
            for &place in &order {
                let part = &self.all[place];
                let own = if depth == 0 {
                    1
                } else {
                    let one = part.one_below.iter().map(|inner| above[*inner]).max().unwrap_or(0);
                    part.all_below.iter().fold(one, |sum, inner| sum.saturating_add(above[*inner]))
                };
                let own = own.saturating_add(part.outside);
                now[place] = part.here.iter().fold(own, |sum, inner| sum.saturating_add(now[*inner]));
            }
            by_depth.push(now[0]);
            above = now;
        }
        by_depth
    }

    /// Every part behind all that decide beside it.
    fn innermost_first(&self) -> Vec<usize> {
        let mut open: Vec<usize> = self.all.iter().map(|part| part.here.len()).collect();
        let mut outer: Vec<Vec<usize>> = vec![Vec::new(); self.all.len()];
        for (place, part) in self.all.iter().enumerate() {
            part.here.iter().for_each(|inner| outer[*inner].push(place));
        }
        let mut order: Vec<usize> = (0..self.all.len()).filter(|place| open[*place] == 0).collect();
        let mut next = 0;
        while let Some(&place) = order.get(next) {
            for &waiting in &outer[place] {
                open[waiting] -= 1;
                if open[waiting] == 0 {
                    order.push(waiting);
                }
            }
            next += 1;
        }
        order
    }
}

enum Referred {
    Parts(Vec<usize>),
    Outside(u64),
}

/// Every object in a document, with its pointer.
fn places_of(value: &Value, pointer: &str, each: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => {
            each(pointer, value);
            for (name, inner) in fields {
                places_of(inner, &format!("{pointer}/{}", escaped(name)), each);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                places_of(inner, &format!("{pointer}/{index}"), each);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Percent-encoding undone.
fn decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match hex.filter(|_| first == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(schema: &Value, document: &Value) -> (u64, u64) {
        let effort = Effort::of(schema);
        (effort.outside(), effort.on(document))
    }

    #[test]
    fn every_value_is_counted_once_per_schema_that_decides_about_it() {
        let plain = json!({ "properties": { "a": { "type": "integer" }, "b": { "items": true } } });
        assert_eq!(of(&plain, &json!({ "a": 1, "b": [1, 2] })), (1, 5));
        let twice = json!({ "allOf": [{ "properties": { "a": true } }, { "properties": { "a": true } }] });
        assert_eq!(of(&twice, &json!({ "a": 1 })), (3, 5));
    }

    #[test]
    fn alternatives_that_share_parts_multiply() {
        let mut parts = serde_json::Map::new();
        for n in 0..30 {
            let next = json!({ "$ref": format!("#/$defs/{}", n + 1) });
            parts.insert(n.to_string(), json!({ "anyOf": [next, next] }));
        }
        parts.insert("30".to_owned(), json!({ "type": "string" }));
        let schema = json!({ "$ref": "#/$defs/0", "$defs": parts });
        assert!(Effort::of(&schema).outside() > 1 << 30);
    }

    #[test]
    fn a_recursive_alternative_multiplies_with_the_depth_of_the_document() {
        let schema = json!({ "anyOf": [
            { "properties": { "in": { "$ref": "#" } } }, { "properties": { "in": { "$ref": "#" } } }
        ] });
        let deep = |levels| (0..levels).fold(json!(1), |inner, _| json!({ "in": inner }));
        let effort = Effort::of(&schema);
        assert!(effort.on(&deep(8)) < CHECKS_MAX && effort.on(&deep(30)) > CHECKS_MAX);
        let list = json!({ "type": "array", "items": { "$ref": "#" } });
        let nested = (0..126).fold(json!([]), |inner, _| json!([inner]));
        assert!(Effort::of(&list).on(&nested) < 1_000);
    }

    #[test]
    fn what_refers_to_itself_without_going_deeper_never_ends() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "not": { "$ref": "#" } }),
            json!({ "$dynamicAnchor": "m", "allOf": [{ "$dynamicRef": "#m" }] }),
            json!({ "$ref": "#/$defs/a%20b", "$defs": { "a b": { "anyOf": [{ "$ref": "#/$defs/a b" }] } } }),
        ] {
            assert_eq!(Effort::of(&schema).outside(), u64::MAX, "{schema}");
        }
    }

    #[test]
    fn references_by_anchor_and_by_id_are_followed() {
        for reference in ["#/$defs/n", "#n", "https://example.com/s#/$defs/n", "s#n"] {
            let schema = json!({
                "$id": "https://example.com/s",
                "items": { "$ref": reference },
                "$defs": { "n": { "$anchor": "n", "type": "integer" } },
            });
            assert_eq!(of(&schema, &json!([1, 2])), (1, 5), "{reference}");
        }
        let meta = json!({ "$ref": "https://json-schema.org/draft/2020-12/schema" });
        assert!(Effort::of(&meta).outside() < 100);
    }
}
