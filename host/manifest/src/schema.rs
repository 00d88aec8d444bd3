//! The one file that knows jsonschema: Draft 2020-12, offline, formats checked, patterns without
//! backtracking. It turns the crate's errors into a path, a rule in words and what stood there.

use crate::effort::{CHECKS_MAX, Effort};
use crate::log::excerpt;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::nearest;
use interlock_kernel::view::Breach;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::fmt;

/// A compiled pattern, and the cache of states it may build while it matches, in bytes. Enough for any
/// pattern people write; `(a{1000}){1000}` is refused.
const PATTERN_BYTES_MAX: usize = 256 * 1024;

/// A schema, ready to judge documents.
pub(crate) struct Compiled {
    /// As it was written: which fields there are is not in the validator's errors.
    written: Value,
    validator: Validator,
    effort: Effort,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compiled")
    }
}

/// Why a schema does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where in the schema, as a JSON Pointer.
    pub(crate) path: String,
    pub(crate) why: String,
    pub(crate) remedy: &'static str,
}

impl Compiled {
    pub(crate) fn new(schema: &Value) -> Result<Self, Fault> {
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .with_pattern_options(
                PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX),
            )
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            .build(schema)
            .map_err(|error| fault(&error))?;
        let effort = Effort::of(schema);
        if effort.outside() > CHECKS_MAX {
            return Err(Fault {
                path: String::new(),
                why: format!("one value would be checked more than {CHECKS_MAX} times (checks_max)"),
                remedy: "let fewer alternatives refer to the same part, and none to itself without going deeper",
            });
        }
        Ok(Self { written: schema.clone(), validator, effort })
    }

    pub(crate) fn check(&self, doc: &Doc) -> Result<(), Breach> {
        if self.effort.on(doc.value()) > CHECKS_MAX {
            return Err(Breach {
                path: String::new(),
                expected: format!("a document whose values its schema checks at most {CHECKS_MAX} times (checks_max)"),
                got: "one that is too large or too deep for the schema's alternatives".to_owned(),
            });
        }
        self.validator.validate(doc.value()).map_err(|error| breach(&self.written, &error))
    }
}

fn fault(error: &ValidationError<'_>) -> Fault {
    let path = error.instance_path().as_str().to_owned();
    let (why, remedy) = match error.kind() {
        Kind::Format { format } if format == "regex" => (
            "not a regular expression the host takes".to_owned(),
            "write it without look-around and back-references, and short: it must match in linear time",
        ),
        _ if path.ends_with("/type") => (
            format!("{} is not a type", show(error.instance())),
            "use null, boolean, integer, number, string, array or object",
        ),
        _ if path.ends_with("/format") => (
            format!("{} is not a format the host checks", show(error.instance())),
            "use date-time, date, time, duration, email, hostname, ipv4, ipv6, uri, uuid or another of Draft 2020-12, or take it out",
        ),
        Kind::Referencing(_) => {
            (error.to_string(), "refer to a part of this schema: \"#/$defs/name\"; nothing is fetched")
        }
        _ => (error.to_string(), "correct it as JSON Schema Draft 2020-12 asks"),
    };
    Fault { path, why: excerpt(&why), remedy }
}

fn breach(schema: &Value, error: &ValidationError<'_>) -> Breach {
    let at = error.instance_path().as_str();
    let (path, expected, missing) = match error.kind() {
        Kind::Required { property } => {
            (below(at, property.as_str().unwrap_or_default()), "a value: it is required".to_owned(), true)
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let first = unexpected.first().map_or("", String::as_str);
            (below(at, first), unexpected_field(schema, error, first), false)
        }
        kind => (at.to_owned(), rule(kind, error), false),
    };
    let found = match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected.first().and_then(|name| error.instance().get(name)).map(show)
        }
        _ => (!missing).then(|| show(error.instance())),
    };
    Breach { path, expected, got: found.unwrap_or_else(|| "nothing".to_owned()) }
}

/// A misspelt field is told which one it may have been.
fn unexpected_field(schema: &Value, error: &ValidationError<'_>, field: &str) -> String {
    let rule = error.schema_path().as_str();
    let owner = rule.rsplit_once('/').and_then(|(owner, _)| schema.pointer(owner));
    let declared = owner.and_then(|owner| owner.get("properties")?.as_object());
    let near = declared.and_then(|fields| nearest(field, fields.keys().map(String::as_str)));
    let hint = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
    format!("no field of this name{hint}")
}

fn below(at: &str, field: &str) -> String {
    format!("{at}/{}", field.replace('~', "~0").replace('/', "~1"))
}

fn show(value: &Value) -> String {
    excerpt(Doc::new(value.clone()).text())
}

/// The rule in words.
fn rule(kind: &Kind, error: &ValidationError<'_>) -> String {
    match kind {
        Kind::Type { kind: TypeKind::Single(one) } => article(one.as_str()),
        Kind::Type { kind: TypeKind::Multiple(set) } => {
            set.iter().map(|one| article(one.as_str())).collect::<Vec<_>>().join(" or ")
        }
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("at least {}", count(*limit, "character")),
        Kind::MaxLength { limit } => format!("at most {}", count(*limit, "character")),
        Kind::MinItems { limit } => format!("at least {}", count(*limit, "element")),
        Kind::MaxItems { limit } => format!("at most {}", count(*limit, "element")),
        Kind::MinProperties { limit } => format!("at least {}", count(*limit, "field")),
        Kind::MaxProperties { limit } => format!("at most {}", count(*limit, "field")),
        Kind::AdditionalItems { limit } => format!("at most {}", count(*limit as u64, "element")),
        Kind::UniqueItems => "elements that all differ".to_owned(),
        Kind::Contains => "an element that fits `contains`".to_owned(),
        Kind::Constant { expected_value } => show(expected_value),
        Kind::Enum { options } => match options.as_array() {
            Some(options) => format!("one of {}", excerpt(&options.iter().map(show).collect::<Vec<_>>().join(", "))),
            None => show(options),
        },
        Kind::Pattern { pattern } => format!("text matching {}", excerpt(pattern)),
        Kind::Format { format } => format!("text in format {}", excerpt(format)),
        Kind::FalseSchema => "nothing: the schema is false".to_owned(),
        Kind::AnyOf { context } => format!("one of {} alternatives (anyOf)", context.len()),
        Kind::OneOfNotValid { context } => format!("one of {} alternatives (oneOf)", context.len()),
        Kind::OneOfMultipleValid { context } => format!("only one of {} alternatives (oneOf)", context.len()),
        Kind::Not { schema } => format!("something else than {}", show(schema)),
        Kind::PropertyNames { error } => format!("field names that are {}", rule(error.kind(), error)),
        // The rest are rare; the crate's own words name the rule.
        _ => excerpt(&error.masked().to_string()),
    }
}

fn article(noun: &str) -> String {
    match noun {
        "null" => "null".to_owned(),
        "string" => "text".to_owned(),
        "integer" | "array" | "object" => format!("an {noun}"),
        _ => format!("a {noun}"),
    }
}

fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
