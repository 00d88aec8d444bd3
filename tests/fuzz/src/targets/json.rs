//! JSON documents: one canonical text each, bounded, integers exact.

use super::holds;
use crate::target::{Broken, Seen, Target};
use interlock_kernel::doc::{BadDoc, Doc};
use interlock_kernel::limits::{DEPTH_MAX, DOCUMENT_BYTES_MAX};
use interlock_kernel::record::{Key, Part, Record};
use serde_json::Value;

/// See the module.
pub(crate) struct Json;

const WORDS: &str = "\
    {}¦[]¦null¦true¦false¦{\"a\":¦}¦[¦]¦,¦:¦\"\"¦\"\\u0000\"¦\"\\ud834\\udd1e\"¦\"\\ud834\"¦\"\\\"\"¦\"\\\\\"¦0.1¦\
    1.0¦-0.0¦1e5¦1E-7¦1e400¦-1e308¦5e-324¦123456789012345678901234567890¦0x10¦01¦+1¦.5¦5.¦NaN¦ ¦\t¦\n¦\u{feff}¦é¦\
    \u{2028}";

impl Target for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn words(&self) -> &'static str {
        WORDS
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let text = String::from_utf8_lossy(input);
        let mut seen = Seen::default();
        match Doc::parse(&text) {
            Ok(doc) => {
                seen.size("depth", doc.depth());
                seen.size("length", doc.text().len());
                kinds(doc.value(), &mut seen);
                canonical(&text, &doc)?;
            }
            Err(bad) => {
                seen.say(&bad.to_string());
                holds!(
                    !matches!(bad, BadDoc::Syntax(_)) || serde_json::from_str::<Value>(&text).is_err(),
                    "JSON, and yet {bad}"
                );
            }
        }
        Ok(seen)
    }
}

fn canonical(text: &str, doc: &Doc) -> Result<(), Broken> {
    let again = Doc::parse(doc.text()).map_err(|bad| format!("its own text is refused: {bad}: {doc}"))?;
    holds!(again.text() == doc.text(), "another text the second time: {doc} and {again}");
    holds!(again.digest() == doc.digest() && again.value() == doc.value(), "another value the second time: {doc}");
    holds!(doc.text().len() <= DOCUMENT_BYTES_MAX, "{} bytes", doc.text().len());
    holds!(doc.depth() <= DEPTH_MAX, "{} levels", doc.depth());
    let plain: Value = serde_json::from_str(text).map_err(|why| format!("no JSON, and yet a document: {why}"))?;
    holds!(Doc::new(plain) == *doc, "serde_json reads another document: {doc}");
    let spread = serde_json::to_string_pretty(doc.value()).map_err(|why| why.to_string())?;
    holds!(Doc::parse(&spread).as_ref() == Ok(doc), "white space makes another document: {spread}");
    // Nothing is rounded: every integer of the document stands in the text digit by digit.
    let written = integers(text);
    for number in integers(doc.text()) {
        holds!(written.contains(&number), "the integer {number} is nowhere in {text:?}");
    }
    holds!(finite(doc.value()), "not a number of 64 bits in {doc}");
    stored(doc)
}

fn stored(doc: &Doc) -> Result<(), Broken> {
    let entity = "m/k".parse().map_err(|bad| format!("{bad}"))?;
    let (key, record) = (Key::Part(entity, Part::Data), Record::Doc(doc.clone()));
    let read = Record::decode(&key, &record.encode(&key)).map_err(|corrupt| format!("{corrupt}: {doc}"))?;
    holds!(read == record, "the stored document is another one: {doc}");
    Ok(())
}

/// Every integer literal outside of texts, without its sign's zero.
fn integers(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut quoted, mut escaped, mut number) = (false, false, String::new());
    for c in text.chars().chain([' ']) {
        if quoted {
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E') {
            number.push(c);
        } else {
            let whole = number.strip_prefix('-').unwrap_or(&number);
            if !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit()) {
                found.push(std::mem::take(&mut number));
            }
            number.clear();
            quoted = c == '"';
        }
    }
    found
}

fn finite(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_i64() || number.is_u64() || number.as_f64().is_some_and(f64::is_finite),
        Value::Array(items) => items.iter().all(finite),
        Value::Object(fields) => fields.values().all(finite),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

fn kinds(value: &Value, seen: &mut Seen) {
    match value {
        Value::Null => seen.note(&"null"),
        Value::Bool(truth) => seen.note(truth),
        Value::Number(number) => seen.note(&("number", number.is_i64(), number.is_u64(), number.is_f64())),
        Value::String(text) => {
            seen.note(&("text", text.is_ascii(), text.contains('\\'), text.chars().any(char::is_control)));
        }
        Value::Array(items) => {
            seen.size("items", items.len());
            items.iter().for_each(|item| kinds(item, seen));
        }
        Value::Object(fields) => {
            seen.size("fields", fields.len());
            fields.values().for_each(|field| kinds(field, seen));
        }
    }
}
