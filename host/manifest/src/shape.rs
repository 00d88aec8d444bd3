//! What a schema says about one field, as far as it can be told without judging a document.

use interlock_kernel::value::Segment;
use serde_json::Value;

/// A field, looked up in a schema.
#[derive(Debug, PartialEq)]
pub(crate) enum Field<'a> {
    /// The schema of the field.
    Known(&'a Value),
    /// The schema leaves it open.
    Open,
    /// No valid document has it.
    RuledOut {
        /// The part that cannot be: a field's name or an index.
        part: String,
        /// The names that can; none if this is no object or array at all.
        names: Vec<&'a str>,
    },
}

/// References followed on the way to one part of a path; more is a circle.
const REFERENCES_MAX: usize = 32;
/// Keywords beside which `properties` do not say all.
const COMBINING: [&str; 11] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "patternProperties",
    "$dynamicRef",
    "unevaluatedProperties",
];

/// Follows a path through `properties`, `items`, `prefixItems`, `additionalProperties` and local `$ref`.
pub(crate) fn find<'a>(root: &'a Value, segments: &[Segment]) -> Field<'a> {
    let mut at = root;
    for segment in segments {
        let Some(schema) = resolve(root, at) else { return Field::Open };
        match step(schema, segment) {
            Field::Known(next) => at = next,
            other => return other,
        }
    }
    resolve(root, at).map_or(Field::Open, Field::Known)
}

/// The schema a chain of local references ends at; none if it leads elsewhere.
fn resolve<'a>(root: &'a Value, mut at: &'a Value) -> Option<&'a Value> {
    for _ in 0..REFERENCES_MAX {
        let Some(reference) = at.get("$ref") else { return Some(at) };
        let alone = at.as_object().is_some_and(|fields| fields.len() == 1);
        at = root.pointer(reference.as_str()?.strip_prefix('#')?).filter(|_| alone)?;
    }
    None
}

fn step<'a>(schema: &'a Value, segment: &Segment) -> Field<'a> {
    let ruled_out = || Field::RuledOut { part: part(segment), names: Vec::new() };
    if *schema == Value::Bool(false) {
        return ruled_out();
    }
    let Some(fields) = schema.as_object() else { return Field::Open };
    let allowed = types(schema);
    let combined = COMBINING.iter().any(|keyword| fields.contains_key(*keyword));
    match segment {
        Segment::Field(name) => {
            if !allowed.has("object") {
                return ruled_out();
            }
            if let Some(found) = fields.get("properties").and_then(|properties| properties.get(name)) {
                return Field::Known(found);
            }
            match fields.get("additionalProperties") {
                // `additionalProperties` looks at `patternProperties` beside it, and at no other keyword.
                Some(Value::Bool(false)) if !fields.contains_key("patternProperties") => Field::RuledOut {
                    part: part(segment),
                    names: fields.get("properties").and_then(Value::as_object).map(names).unwrap_or_default(),
                },
                Some(other) if !combined => Field::Known(other),
                _ => Field::Open,
            }
        }
        Segment::Index(index) => {
            if !allowed.has("array") {
                return ruled_out();
            }
            if combined {
                return Field::Open;
            }
            let first = fields.get("prefixItems").and_then(Value::as_array);
            match first.and_then(|items| items.get(*index)).or_else(|| fields.get("items")) {
                Some(found) => Field::Known(found),
                None => Field::Open,
            }
        }
    }
}

fn part(segment: &Segment) -> String {
    match segment {
        Segment::Field(name) => name.clone(),
        Segment::Index(index) => format!("[{index}]"),
    }
}

fn names(fields: &serde_json::Map<String, Value>) -> Vec<&str> {
    fields.keys().map(String::as_str).collect()
}

/// The JSON types a schema lets through, at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Types(Option<Vec<&'static str>>);

/// `integer` counts as `number` here: what matters is what can be compared.
const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

/// What `type`, `const` and `enum` of a schema let through.
pub(crate) fn types(schema: &Value) -> Types {
    if *schema == Value::Bool(false) {
        return Types(Some(Vec::new()));
    }
    let plain = |name: &str| TYPES.into_iter().find(|known| *known == if name == "integer" { "number" } else { name });
    if let Some(value) = schema.get("const") {
        return Types(Some(vec![type_of(value)]));
    }
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return Types(Some(options.iter().map(type_of).collect()));
    }
    match schema.get("type") {
        Some(Value::String(name)) => Types(plain(name).map(|name| vec![name])),
        Some(Value::Array(names)) => Types(names.iter().map(|name| plain(name.as_str()?)).collect()),
        _ => Types(None),
    }
}

/// The type of a value.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Types {
    /// One type.
    pub(crate) fn only(name: &'static str) -> Self {
        Self(Some(vec![name]))
    }

    /// Any.
    pub(crate) const fn any() -> Self {
        Self(None)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.contains(&name))
    }

    /// Whether a value can be of both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        TYPES.iter().any(|name| self.has(name) && other.has(name))
    }

    /// `a number or text`, for a message.
    pub(crate) fn words(&self) -> String {
        let word = |name: &&str| match *name {
            "null" => "null",
            "boolean" => "a boolean",
            "number" => "a number",
            "string" => "text",
            "array" => "an array",
            _ => "an object",
        };
        match &self.0 {
            None => "anything".to_owned(),
            Some(names) if names.is_empty() => "nothing".to_owned(),
            Some(names) => {
                let mut words: Vec<&str> = names.iter().map(word).collect();
                words.dedup();
                words.join(" or ")
            }
        }
    }
}
