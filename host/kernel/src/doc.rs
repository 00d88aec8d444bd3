//! JSON documents: one canonical text each, exact 64-bit integers, a digest over the text.

use crate::limits::DOCUMENT_BYTES_MAX;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A document: canonical text (sorted keys, no white space) and its value.
#[derive(Clone)]
pub struct Doc {
    text: Arc<str>,
    value: Arc<Value>,
}

/// Why a text is not a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadDoc {
    /// Not JSON: the parser's reason, with line and column.
    Syntax(String),
    /// An integer outside the 64-bit range: it would silently lose digits.
    Integer(String),
    /// Longer than [`DOCUMENT_BYTES_MAX`], in bytes.
    Size(usize),
}

impl fmt::Display for BadDoc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(why) => write!(f, "expected JSON, got {why}"),
            Self::Integer(digits) => {
                write!(f, "expected integers of at most 64 bits, got {digits}")
            }
            Self::Size(got) => write!(f, "expected at most {DOCUMENT_BYTES_MAX} bytes, got {got} (document_bytes_max)"),
        }
    }
}

impl std::error::Error for BadDoc {}

impl Doc {
    /// Reads JSON text.
    ///
    /// # Errors
    /// [`BadDoc`] if it is not JSON, has an integer outside 64 bits, or is too long.
    pub fn parse(text: &str) -> Result<Self, BadDoc> {
        if text.len() > DOCUMENT_BYTES_MAX.saturating_mul(2) {
            return Err(BadDoc::Size(text.len()));
        }
        let doc = Self::new(exact(text)?);
        match doc.text.len() {
            0..=DOCUMENT_BYTES_MAX => Ok(doc),
            got => Err(BadDoc::Size(got)),
        }
    }

    /// The document of a value. Its size is checked where it is stored.
    #[must_use]
    pub fn new(value: Value) -> Self {
        let mut text = String::new();
        write_canonical(&value, &mut text);
        Self { text: text.into(), value: Arc::new(value) }
    }

    /// The canonical text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Nesting: 0 for a scalar, 1 for an object or array of scalars.
    #[must_use]
    pub fn depth(&self) -> usize {
        depth(&self.value)
    }

    /// blake3 of the canonical text.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&[self.text.as_bytes()])
    }
}

impl PartialEq for Doc {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Doc {}

impl fmt::Debug for Doc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Doc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Doc {
    /// As text: records hold JSON as text bytes.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Doc {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        // Written anew: two equal documents have one text, whatever stood in the bytes.
        serde_json::from_str(&text).map(Self::new).map_err(serde::de::Error::custom)
    }
}

/// Reads JSON text of any length: what a document is read from, and requests that hold several.
///
/// # Errors
/// [`BadDoc`] if it is not JSON or has an integer outside 64 bits.
pub fn exact(text: &str) -> Result<Value, BadDoc> {
    let value = serde_json::from_str(text).map_err(|why| BadDoc::Syntax(why.to_string()))?;
    match long_integer(text) {
        Some(digits) => Err(BadDoc::Integer(digits.to_owned())),
        None => Ok(value),
    }
}

/// The first integer literal outside i64 and u64. serde_json would read it as a float.
fn long_integer(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = at.saturating_add(1);
                while let Some(inner) = bytes.get(at).filter(|inner| **inner != b'"') {
                    at = at.saturating_add(if *inner == b'\\' { 2 } else { 1 });
                }
                at = at.saturating_add(1);
            }
            b'-' | b'0'..=b'9' => {
                let rest = text.get(at..).unwrap_or_default();
                let end =
                    rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9')).unwrap_or(rest.len());
                let number = rest.get(..end).unwrap_or_default();
                let integer = !number.contains(['.', 'e', 'E']);
                if integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number);
                }
                at = at.saturating_add(end);
            }
            _ => at = at.saturating_add(1),
        }
    }
    None
}

fn depth(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
    };
    inside.unwrap_or(0).saturating_add(1)
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            // Sorted here, whatever map serde_json was built with.
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| name.as_str());
            out.push('{');
            for (index, (name, field)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write_canonical(field, out);
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push_str(&Value::String(text.to_owned()).to_string());
}

/// A blake3 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of these parts, each preceded by its length, so that no two lists of parts collide.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        if let [single] = parts {
            hasher.update(single);
        } else {
            for part in parts {
                hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
            }
        }
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Digest {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("expected 64 hexadecimal digits, got {text:?}");
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad());
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            let at = index.saturating_mul(2);
            let pair = text.get(at..at.saturating_add(2)).ok_or_else(bad)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}
