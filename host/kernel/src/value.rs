//! Field paths, values, comparisons and mutations: the small language of guards and `set`.
//!
//! A missing field makes every operator but `exists = false` false; null is a value, not missing.
//! Order compares number with number and text with text; anything else is false and counted as a type
//! mismatch. 64-bit integers are exact; any float makes a float; overflow and non-finite are refused.

use crate::doc::Doc;
use crate::ids::{excerpt, nearest};
use crate::limits::DEPTH_MAX;
use crate::rejection::cut_to;
use crate::time::WallTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value as Json};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

mod mutation;

pub use mutation::{Mutation, Operation};

/// A document a path may start at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// The payload of the event that is judged, or of the visit's cause.
    Event,
    /// What clients want, as the execution sees it.
    Desired,
    /// What steps remember.
    Data,
    /// What steps promise.
    Outputs,
    /// The row an operation looks at.
    Row,
}

impl Root {
    const ALL: [(&'static str, Self); 5] = [
        ("event", Self::Event),
        ("desired", Self::Desired),
        ("data", Self::Data),
        ("outputs", Self::Outputs),
        ("row", Self::Row),
    ];
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A field of an object.
    Field(String),
    /// An element of an array.
    Index(usize),
}

/// `data.nodes[0].name`; a dot, bracket or backslash in a field's name is written `\.`, `\[`, `\\`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The document.
    pub root: Root,
    /// The way from there; empty is the document itself.
    pub segments: Vec<Segment>,
    text: String,
}

impl FromStr for Path {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_at(text.find(['.', '[']).unwrap_or(text.len()));
        let names = Root::ALL.map(|(name, _)| name);
        let root = Root::ALL.iter().find(|(known, _)| *known == name).map(|(_, root)| *root).ok_or_else(|| {
            let hint = nearest(name, names).map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
            format!("expected a field path starting with {}, got {:?}{hint}", names.join(", "), excerpt(text))
        })?;
        Ok(Self {
            root,
            segments: segments(rest).map_err(|why| format!("{why} in path {:?}", excerpt(text)))?,
            text: text.to_owned(),
        })
    }
}

fn segments(text: &str) -> Result<Vec<Segment>, String> {
    let mut found = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(opening) = rest.next() {
        if found.len() >= DEPTH_MAX {
            return Err(format!("expected at most {DEPTH_MAX} segments (depth_max), got more"));
        }
        if opening == '[' {
            let digits: String = std::iter::from_fn(|| rest.next_if(char::is_ascii_digit)).collect();
            if rest.next() != Some(']') {
                return Err("expected [index]".to_owned());
            }
            found.push(Segment::Index(
                digits.parse().map_err(|_| format!("expected an array index, got {:?}", excerpt(&digits)))?,
            ));
            continue;
        }
        if opening != '.' {
            return Err(format!("expected . or [, got {opening:?}"));
        }
        let mut field = String::new();
        while let Some(next) = rest.next_if(|next| !matches!(next, '.' | '[')) {
            match next {
                '\\' => field.push(rest.next().ok_or("expected a character after \\")?),
                other => field.push(other),
            }
        }
        if field.is_empty() {
            return Err("expected a field name after .".to_owned());
        }
        found.push(Segment::Field(field));
    }
    Ok(found)
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Path {
    /// The path through these parts.
    #[must_use]
    pub fn new(root: Root, segments: Vec<Segment>) -> Self {
        let name = Root::ALL.iter().find(|(_, known)| *known == root).map_or("", |(name, _)| name);
        let mut text = name.to_owned();
        for segment in &segments {
            match segment {
                Segment::Index(index) => text.push_str(&format!("[{index}]")),
                Segment::Field(field) => {
                    text.push('.');
                    for letter in field.chars() {
                        if matches!(letter, '.' | '[' | '\\') {
                            text.push('\\');
                        }
                        text.push(letter);
                    }
                }
            }
        }
        Self { root, segments, text }
    }

    /// The value there; none if it is missing.
    #[must_use]
    pub fn find<'a>(&self, document: &'a Json) -> Option<&'a Json> {
        self.segments.iter().try_fold(document, |at, segment| match segment {
            Segment::Field(name) => at.as_object()?.get(name),
            Segment::Index(index) => at.as_array()?.get(*index),
        })
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Itself.
    Json(Doc),
    /// Computed inside the transaction.
    From(Source),
}

/// The grammar of `from`: `now`, `now+5m`, `now-90s`, `execution`, `event.x`, `desired.x`, `data.x`,
/// `outputs.x`, `row.x`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Wall time in ms since 1970, plus this many ms.
    Now(i64),
    /// The execution's id as text; missing at rest.
    Execution,
    /// A field.
    Field(Path),
}

impl FromStr for Source {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "execution" {
            return Ok(Self::Execution);
        }
        let Some(offset) = text.strip_prefix("now") else {
            return text
                .parse()
                .map(Self::Field)
                .map_err(|why: String| format!("{why}; a source is now, now+5m, now-90s, execution or a field path"));
        };
        let ms = |span: &str| parse_ms(span).and_then(|ms| i64::try_from(ms).map_err(|_| "too long".to_owned()));
        match (offset, offset.strip_prefix('+'), offset.strip_prefix('-')) {
            ("", ..) => Ok(Self::Now(0)),
            (_, Some(span), _) => ms(span).map(Self::Now),
            (_, _, Some(span)) => ms(span).map(|ms| Self::Now(ms.saturating_neg())),
            (_, None, None) => Err(format!("expected now, now+5m or now-90s, got {:?}", excerpt(text))),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(0) => f.write_str("now"),
            Self::Now(ms) => write!(f, "now{ms:+}ms"),
            Self::Execution => f.write_str("execution"),
            Self::Field(path) => path.fmt(f),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(doc) => doc.fmt(f),
            Self::From(source) => source.fmt(f),
        }
    }
}

/// A duration: a whole number and ms, s, m, h or d.
///
/// # Errors
/// What was expected and got.
pub fn parse_ms(text: &str) -> Result<u64, String> {
    let bad = || format!("expected a duration such as 500ms, 30s, 5m, 2h or 7d, got {:?}", excerpt(text));
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?);
    let scale: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(bad()),
    };
    digits.parse::<u64>().ok().and_then(|count| count.checked_mul(scale)).ok_or_else(bad)
}

/// A test on a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The field.
    pub field: Path,
    /// How.
    pub operator: Operator,
    /// Against what.
    pub value: Value,
}

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// Equal; numbers by value.
    Eq,
    /// Present and not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// One of an array's elements.
    In,
    /// Present and none of them.
    NotIn,
    /// Present (`true`) or missing (`false`).
    Exists,
    /// An array has this element, a text this part.
    Contains,
    /// A text begins with this.
    StartsWith,
}

impl Operator {
    /// Every operator and how it is written.
    pub const ALL: [(&'static str, Self); 11] = [
        ("eq", Self::Eq),
        ("ne", Self::Ne),
        ("lt", Self::Lt),
        ("le", Self::Le),
        ("gt", Self::Gt),
        ("ge", Self::Ge),
        ("in", Self::In),
        ("not-in", Self::NotIn),
        ("exists", Self::Exists),
        ("contains", Self::Contains),
        ("starts-with", Self::StartsWith),
    ];

    /// How it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, operator)| *operator == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for Operator {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(|(name, _)| name);
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, operator)| *operator).ok_or_else(|| {
            let hint = nearest(text, names).map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
            format!("expected one of {}, got {:?}{hint}", names.join(", "), excerpt(text))
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.field, self.operator.name(), self.value)
    }
}

/// Any of (all of comparisons). Empty matches all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// One of these must hold whole.
    pub any: Vec<Vec<Comparison>>,
}

/// What a filter said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not: the last comparison that failed, and what stood there.
    Fails {
        /// The comparison as written.
        expected: String,
        /// The values met.
        got: String,
    },
}

/// What paths and sources are read from.
#[derive(Clone, Copy, Default)]
pub struct Roots<'a> {
    /// See [`Root::Event`].
    pub event: Option<&'a Json>,
    /// See [`Root::Desired`].
    pub desired: Option<&'a Json>,
    /// See [`Root::Data`].
    pub data: Option<&'a Json>,
    /// See [`Root::Outputs`].
    pub outputs: Option<&'a Json>,
    /// See [`Root::Row`].
    pub row: Option<&'a Json>,
    /// The execution's id.
    pub execution: Option<&'a str>,
    /// Wall time.
    pub now: Option<WallTime>,
}

impl<'a> Roots<'a> {
    fn find(&self, path: &Path) -> Option<&'a Json> {
        path.find(match path.root {
            Root::Event => self.event,
            Root::Desired => self.desired,
            Root::Data => self.data,
            Root::Outputs => self.outputs,
            Root::Row => self.row,
        }?)
    }

    /// What stands at a path; none if it is missing.
    #[must_use]
    pub(crate) fn field(&self, path: &Path) -> Option<&'a Json> {
        self.find(path)
    }

    /// A value inside this transaction; none if the field it comes from is missing.
    #[must_use]
    pub fn value(&self, value: &Value) -> Option<Json> {
        match value {
            Value::Json(doc) => Some(doc.value().clone()),
            Value::From(Source::Now(offset)) => Some(self.now?.0.saturating_add(*offset).into()),
            Value::From(Source::Execution) => Some(self.execution?.into()),
            Value::From(Source::Field(path)) => self.find(path).cloned(),
        }
    }
}

/// A value shown in a refusal, in bytes: enough to recognize it.
const SHOWN_BYTES: usize = 256;

impl Filter {
    /// Whether it holds; counts type mismatches into `mismatches`.
    pub fn judge(&self, roots: &Roots<'_>, mismatches: &mut u32) -> Verdict {
        let mut last = Verdict::Holds;
        for all in &self.any {
            match all.iter().find(|one| !holds(one, roots, mismatches)) {
                None => return Verdict::Holds,
                Some(failed) => {
                    last = Verdict::Fails { expected: failed.to_string(), got: Met(failed, roots).to_string() };
                }
            }
        }
        last
    }
}

/// What stood on the two sides of a comparison; on one, where the other is written into it.
struct Met<'a>(&'a Comparison, &'a Roots<'a>);

impl fmt::Display for Met<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Comparison { field, value, .. }, roots) = *self;
        let show = |value: Option<Json>| {
            value.map_or("nothing".to_owned(), |value| cut_to(Doc::new(value).text(), SHOWN_BYTES).to_owned())
        };
        f.write_str(&show(roots.find(field).cloned()))?;
        match value {
            Value::Json(_) => Ok(()),
            Value::From(_) => write!(f, " and {}", show(roots.value(value))),
        }
    }
}

fn holds(one: &Comparison, roots: &Roots<'_>, mismatches: &mut u32) -> bool {
    let field = roots.find(&one.field);
    let Some(value) = roots.value(&one.value) else {
        return false;
    };
    if let (Operator::Exists, Json::Bool(wanted)) = (one.operator, &value) {
        return *wanted == field.is_some();
    }
    let Some(field) = field else { return false };
    let known = match one.operator {
        Operator::Eq => Some(same(field, &value)),
        Operator::Ne => Some(!same(field, &value)),
        Operator::Lt => order(field, &value).map(Ordering::is_lt),
        Operator::Le => order(field, &value).map(Ordering::is_le),
        Operator::Gt => order(field, &value).map(Ordering::is_gt),
        Operator::Ge => order(field, &value).map(Ordering::is_ge),
        Operator::In => value.as_array().map(|items| items.iter().any(|item| same(item, field))),
        Operator::NotIn => value.as_array().map(|items| !items.iter().any(|item| same(item, field))),
        Operator::Exists => None,
        Operator::Contains => match (field, &value) {
            (Json::Array(items), wanted) => Some(items.iter().any(|item| same(item, wanted))),
            (Json::String(text), Json::String(part)) => Some(text.contains(part.as_str())),
            (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_), _) => None,
        },
        Operator::StartsWith => field.as_str().zip(value.as_str()).map(|(text, part)| text.starts_with(part)),
    };
    known.unwrap_or_else(|| {
        *mismatches = mismatches.saturating_add(1);
        false
    })
}

fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => numbers(a, b) == Some(Ordering::Equal),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn order(a: &Json, b: &Json) -> Option<Ordering> {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => numbers(a, b),
        (Json::String(a), Json::String(b)) => Some(a.cmp(b)),
        (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_), _) => None,
    }
}

pub(crate) fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn numbers(a: &Number, b: &Number) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => b.as_f64().map(|b| integer_with_float(a, b)),
        (None, Some(b)) => a.as_f64().map(|a| integer_with_float(b, a).reverse()),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Exact: 2^53 + 1 is greater than the float 2^53. JSON has no NaN, and a float beyond i128 becomes its
/// bound, which is beyond every 64-bit integer.
#[allow(clippy::cast_possible_truncation, reason = "the float has no fraction where it is cast, or saturates")]
fn integer_with_float(a: i128, b: f64) -> Ordering {
    let whole = b.floor();
    a.cmp(&(whole as i128)).then(if b > whole { Ordering::Less } else { Ordering::Equal })
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
enum StoredValue {
    Json(Doc),
    Now(i64),
    Execution,
    Field(Path),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.clone() {
            Self::Json(doc) => StoredValue::Json(doc),
            Self::From(Source::Now(ms)) => StoredValue::Now(ms),
            Self::From(Source::Execution) => StoredValue::Execution,
            Self::From(Source::Field(path)) => StoredValue::Field(path),
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match StoredValue::deserialize(from)? {
            StoredValue::Json(doc) => Self::Json(doc),
            StoredValue::Now(ms) => Self::From(Source::Now(ms)),
            StoredValue::Execution => Self::From(Source::Execution),
            StoredValue::Field(path) => Self::From(Source::Field(path)),
        })
    }
}
