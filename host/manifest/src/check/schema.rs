//! Schemas compile, say only what JSON Schema knows, and accept their own defaults.

use crate::draft::{ContractDraft, Draft, Schema, Written};
use crate::log::{Log, Span, excerpt, suggest};
use crate::problem::Code;
use crate::schema::Compiled;
use interlock_kernel::machine::DESIRED_CHANGED;
use serde_json::Value;

pub(super) fn check(draft: &Draft<'_>, log: &mut Log<'_>) {
    let start = 0..0;
    contract("desired", &draft.desired, &start, log);
    contract("data", &draft.data, &start, log);
    contract("outputs", &draft.outputs, &start, log);
    for event in &draft.events {
        let name = &event.name.value;
        let remedy = format!("describe its payload: [events.{name}.schema], or schema = false if it never has one");
        one(&format!("the event `{name}`"), &event.schema, &event.name.at, &remedy, log);
    }
    let applied = draft.states.iter().any(|state| state.on.iter().any(|(event, _)| event.value == *DESIRED_CHANGED));
    if let (true, Schema::Known(written)) = (applied, &draft.desired.schema)
        && *written.doc.value() == Value::Bool(false)
    {
        let remedy = "give desired a schema, or take `desired-changed` out of the states";
        log.add(
            Code::UnusedKey,
            &written.node.at(),
            "`desired` can never be written, and a state waits for it to change",
            remedy,
        );
    }
}

fn contract(name: &str, contract: &ContractDraft<'_>, start: &Span, log: &mut Log<'_>) {
    let remedy = format!("describe it: [{name}.schema], or {name}.schema = false if there is none");
    let compiled = one(&format!("`{name}`"), &contract.schema, contract.at.as_ref().unwrap_or(start), &remedy, log);
    let (Some(compiled), Some(default)) = (compiled, &contract.default) else { return };
    if let Err(breach) = compiled.check(&default.doc) {
        let place = if breach.path.is_empty() { "as a whole".to_owned() } else { format!("at {}", breach.path) };
        let message = format!("the default of `{name}` breaks its own schema {place}");
        log.add(Code::BadDefault, &default.node.place(&breach.path), message, "correct the default, or the schema")
            .expected(breach.expected)
            .got(breach.got);
    }
}

pub(crate) fn one(what: &str, schema: &Schema<'_>, at: &Span, remedy: &str, log: &mut Log<'_>) -> Option<Compiled> {
    match schema {
        Schema::None => {
            log.add(Code::NoSchema, at, format!("{what} has no schema: anything is accepted"), remedy);
            None
        }
        Schema::Unread => None,
        Schema::Known(written) => {
            let before = log.problems().len();
            keywords(written, written.doc.value(), "", log);
            let reported = log.problems().iter().skip(before).any(|problem| problem.code == Code::BadSchema.text());
            match Compiled::new(written.doc.value()) {
                Ok(compiled) => Some(compiled),
                Err(_) if reported => None,
                Err(fault) => {
                    let place = if fault.path.is_empty() { String::new() } else { format!(" at {}", fault.path) };
                    let message = format!("the schema of {what} does not compile{place}: {}", fault.why);
                    log.add(Code::BadSchema, &written.node.place(&fault.path), message, fault.remedy);
                    None
                }
            }
        }
    }
}

/// A reference must lead into this schema; jsonschema would not say where one that does not stands.
fn reference(written: &Written<'_>, value: &Value, at: &str, log: &mut Log<'_>) {
    let (Some(reference), root) = (value.as_str(), written.doc.value()) else { return };
    // With `$id` a reference is relative to it, and "#name" is an anchor's: those are left to jsonschema.
    let known = match reference.strip_prefix('#') {
        Some(pointer) if pointer.starts_with('/') => root.pointer(pointer).is_some(),
        Some(_) => true,
        None => root.get("$id").is_some() || reference.starts_with("https://json-schema.org/draft/2020-12/"),
    };
    if !known {
        let message = format!("the schema refers to {:?}, which is not in it", excerpt(reference));
        let remedy = "refer to a part of this schema, \"#/$defs/name\"; nothing is fetched";
        log.add(Code::BadSchema, &written.node.place(at), message, remedy).got(excerpt(reference));
    }
}

/// Every keyword of Draft 2020-12, and what may stand under it.
const KEYWORDS: &[(&str, Under)] = &[
    ("$anchor", Under::Anything),
    ("$comment", Under::Anything),
    ("$defs", Under::Schemas),
    ("$dynamicAnchor", Under::Anything),
    ("$dynamicRef", Under::Anything),
    ("$id", Under::Anything),
    ("$ref", Under::Anything),
    ("$schema", Under::Anything),
    ("$vocabulary", Under::Anything),
    ("additionalProperties", Under::Schema),
    ("allOf", Under::List),
    ("anyOf", Under::List),
    ("const", Under::Anything),
    ("contains", Under::Schema),
    ("contentEncoding", Under::Anything),
    ("contentMediaType", Under::Anything),
    ("contentSchema", Under::Schema),
    ("default", Under::Anything),
    ("definitions", Under::Schemas),
    ("dependentRequired", Under::Anything),
    ("dependentSchemas", Under::Schemas),
    ("deprecated", Under::Anything),
    ("description", Under::Anything),
    ("else", Under::Schema),
    ("enum", Under::Anything),
    ("examples", Under::Anything),
    ("exclusiveMaximum", Under::Anything),
    ("exclusiveMinimum", Under::Anything),
    ("format", Under::Anything),
    ("if", Under::Schema),
    ("items", Under::Schema),
    ("maxContains", Under::Anything),
    ("maxItems", Under::Anything),
    ("maxLength", Under::Anything),
    ("maxProperties", Under::Anything),
    ("maximum", Under::Anything),
    ("minContains", Under::Anything),
    ("minItems", Under::Anything),
    ("minLength", Under::Anything),
    ("minProperties", Under::Anything),
    ("minimum", Under::Anything),
    ("multipleOf", Under::Anything),
    ("not", Under::Schema),
    ("oneOf", Under::List),
    ("pattern", Under::Anything),
    ("patternProperties", Under::Schemas),
    ("prefixItems", Under::List),
    ("properties", Under::Schemas),
    ("propertyNames", Under::Schema),
    ("readOnly", Under::Anything),
    ("required", Under::Anything),
    ("then", Under::Schema),
    ("title", Under::Anything),
    ("type", Under::Anything),
    ("unevaluatedItems", Under::Schema),
    ("unevaluatedProperties", Under::Schema),
    ("uniqueItems", Under::Anything),
    ("writeOnly", Under::Anything),
];

#[derive(Clone, Copy)]
enum Under {
    Anything,
    Schema,
    List,
    Schemas,
}

/// JSON Schema ignores what it does not know: `requried` would check nothing. `x-` is free.
fn keywords(written: &Written<'_>, schema: &Value, at: &str, log: &mut Log<'_>) {
    let Some(fields) = schema.as_object() else { return };
    for (name, value) in fields {
        let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        match KEYWORDS.iter().find(|(known, _)| known == name).map(|(_, under)| *under) {
            None if name.starts_with("x-") => {}
            None => {
                let near = suggest(name, KEYWORDS.iter().map(|(known, _)| *known), "");
                let remedy = if near.starts_with("did") { near } else { "take it out, or begin it with x-".to_owned() };
                let message = format!("JSON Schema has no keyword `{}`: it checks nothing", excerpt(name));
                log.add(Code::UnknownKeyword, &written.node.key_place(&pointer), message, remedy);
            }
            Some(Under::Anything) if name == "$ref" => reference(written, value, &pointer, log),
            Some(Under::Anything) => {}
            Some(Under::Schema) => keywords(written, value, &pointer, log),
            Some(Under::List) => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    keywords(written, item, &format!("{pointer}/{index}"), log);
                }
            }
            Some(Under::Schemas) => {
                for (key, item) in value.as_object().into_iter().flatten() {
                    keywords(written, item, &format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), log);
                }
            }
        }
    }
}
