//! A value in the TOML tree with its place, and how each kind of value is read from it. Every reader
//! reports what it cannot read and goes on: one mistake never hides another.

use crate::keys::Keys;
use crate::log::{Log, Span, Spot, excerpt, list, suggest};
use crate::problem::Code;
use interlock_kernel::ids::BadName;
use interlock_kernel::limits::DEPTH_MAX;
use interlock_kernel::time;
use interlock_kernel::value::parse_ms;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The longest duration that may be written, in ms: ten years, far below where sums overflow.
pub const DURATION_MS_MAX: u64 = 3_660 * 86_400_000;

/// A value, its key and its dotted path.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// The dotted path.
    pub path: String,
    /// Its key, or itself if it has none.
    pub key: Span,
    pub(crate) value: &'a Spanned<DeValue<'a>>,
}

/// A table whose keys are known.
#[derive(Debug)]
pub struct Table<'a> {
    /// The dotted path; empty is the whole text.
    pub path: String,
    /// Its key.
    pub at: Span,
    what: &'static str,
    entries: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// The whole text.
    pub(crate) fn root(entries: &'a DeTable<'a>, keys: &Keys, log: &mut Log<'_>) -> Self {
        Self::new(String::new(), 0..0, entries, keys, log)
    }

    fn new(path: String, at: Span, entries: &'a DeTable<'a>, keys: &Keys, log: &mut Log<'_>) -> Self {
        for (key, _) in in_order(entries) {
            let name = key.get_ref().as_ref();
            if !keys.names.contains(&name) {
                let remedy = suggest(name, keys.names.iter().copied(), "take it out");
                log.add(Code::UnknownKey, &key.span(), format!("{} has no key `{}`", keys.what, excerpt(name)), remedy)
                    .expected(list(keys.names))
                    .got(excerpt(name));
            }
        }
        Self { path, at, what: keys.what, entries }
    }

    /// What stands at a key.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Node<'a>> {
        let (key, value) = self.entries.get_key_value(name)?;
        Some(Node { path: join(&self.path, name), key: key.span(), value })
    }

    /// Reports the key if it is missing.
    pub fn need(&self, name: &str, remedy: &str, log: &mut Log<'_>) -> Option<Node<'a>> {
        let found = self.get(name);
        if found.is_none() {
            let subject = match self.path.as_str() {
                "" => format!("the {}", self.what.trim_start_matches("a ")),
                path => format!("`{path}`"),
            };
            log.add(Code::MissingKey, &self.at, format!("{subject} has no `{name}`"), remedy);
        }
        found
    }

    /// The keys that are written, with their places.
    #[must_use]
    pub fn written(&self) -> Vec<Spot<&'a str>> {
        in_order(self.entries).map(|(key, _)| Spot { value: key.get_ref().as_ref(), at: key.span() }).collect()
    }
}

fn in_order<'a>(
    table: &'a DeTable<'a>,
) -> impl Iterator<Item = (&'a Spanned<toml::de::DeString<'a>>, &'a Spanned<DeValue<'a>>)> {
    // The parser sorts by name; people think in the order of the file.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter()
}

fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let key = if bare { key.to_owned() } else { format!("{:?}", excerpt(key)) };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

impl<'a> Node<'a> {
    /// Where the value stands.
    #[must_use]
    pub fn at(&self) -> Span {
        self.value.span()
    }

    /// A value that stands here.
    #[must_use]
    pub fn spot<T>(&self, value: T) -> Spot<T> {
        Spot { value, at: self.at() }
    }

    fn kind(&self) -> &'static str {
        match self.value.get_ref() {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        }
    }

    /// Reports that it should have been of another type.
    pub fn wrong(&self, expected: &str, remedy: &str, log: &mut Log<'_>) {
        log.add(Code::WrongType, &self.at(), format!("`{}` is {}, not {expected}", self.path, self.kind()), remedy)
            .expected(expected)
            .got(self.kind());
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&'a str> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The text, or a report that it is none.
    pub fn text(&self, log: &mut Log<'_>) -> Option<Spot<&'a str>> {
        if self.as_text().is_none() {
            self.wrong("text", "write it in quotes", log);
        }
        self.as_text().map(|text| self.spot(text))
    }

    /// A name, or a report of why it is none.
    pub fn name<T: FromStr<Err = BadName>>(&self, log: &mut Log<'_>) -> Option<Spot<T>> {
        let text = self.text(log)?;
        name(&text, log)
    }

    /// One of some words.
    pub fn choice<T: Copy>(&self, choices: &[(&'static str, T)], log: &mut Log<'_>) -> Option<Spot<T>> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let text = self.text(log)?;
        let found = choices.iter().find(|(name, _)| *name == text.value).map(|(_, value)| self.spot(*value));
        if found.is_none() {
            let remedy = suggest(text.value, names.iter().copied(), "");
            log.add(
                Code::BadChoice,
                &self.at(),
                format!("`{}` cannot be {:?}", self.path, excerpt(text.value)),
                remedy,
            )
            .expected(list(&names))
            .got(excerpt(text.value));
        }
        found
    }

    /// A duration in ms.
    pub fn duration(&self, range: RangeInclusive<u64>, log: &mut Log<'_>) -> Option<Spot<u64>> {
        let Some(text) = self.as_text() else {
            self.wrong(
                "a duration",
                "write a number and its unit in quotes: \"500ms\", \"30s\", \"5m\", \"2h\", \"7d\"",
                log,
            );
            return None;
        };
        let Ok(ms) = parse_ms(text) else {
            let message = format!("`{}` is not a duration: {:?}", self.path, excerpt(text));
            log.add(Code::BadDuration, &self.at(), message, "write a whole number and ms, s, m, h or d: \"90s\"")
                .expected("a whole number and ms, s, m, h or d")
                .got(excerpt(text));
            return None;
        };
        self.within(ms, &range, |ms| time::Span(ms).to_string(), log)
    }

    /// A size in bytes.
    pub(crate) fn size(&self, range: RangeInclusive<u64>, log: &mut Log<'_>) -> Option<Spot<u64>> {
        let Some(text) = self.as_text() else {
            self.wrong("a size", "write a number and its unit in quotes: \"64MiB\"", log);
            return None;
        };
        let Some(bytes) = parse_bytes(text) else {
            let message = format!("`{}` is not a size: {:?}", self.path, excerpt(text));
            log.add(Code::BadSize, &self.at(), message, "write a whole number and B, KiB, MiB or GiB: \"64MiB\"")
                .expected("a whole number and B, KiB, MiB or GiB")
                .got(excerpt(text));
            return None;
        };
        self.within(bytes, &range, show_bytes, log)
    }

    /// A whole number.
    pub fn integer(&self, range: RangeInclusive<u64>, log: &mut Log<'_>) -> Option<Spot<u64>> {
        let Some(number) = self.as_integer() else {
            self.wrong("an integer", "write a whole number without quotes", log);
            return None;
        };
        match u64::try_from(number) {
            Ok(number) => self.within(number, &range, |number| number.to_string(), log),
            Err(_) => {
                self.outside(&format!("{} to {}", range.start(), range.end()), &number.to_string(), log);
                None
            }
        }
    }

    fn as_integer(&self) -> Option<i128> {
        match self.value.get_ref() {
            DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        }
    }

    pub(crate) fn number(&self, range: RangeInclusive<f64>, log: &mut Log<'_>) -> Option<Spot<f64>> {
        let found = match self.value.get_ref() {
            DeValue::Float(digits) => digits.as_str().parse().ok(),
            // Written without a fraction: 2 for 2.0.
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().parse::<f64>().ok(),
            _ => None,
        };
        let Some(number) = found else {
            self.wrong("a number", "write a number without quotes", log);
            return None;
        };
        if !range.contains(&number) {
            self.outside(&format!("{} to {}", range.start(), range.end()), &number.to_string(), log);
            return None;
        }
        Some(self.spot(number))
    }

    fn within(
        &self,
        got: u64,
        range: &RangeInclusive<u64>,
        show: impl Fn(u64) -> String,
        log: &mut Log<'_>,
    ) -> Option<Spot<u64>> {
        if range.contains(&got) {
            return Some(self.spot(got));
        }
        self.outside(&format!("{} to {}", show(*range.start()), show(*range.end())), &show(got), log);
        None
    }

    fn outside(&self, expected: &str, got: &str, log: &mut Log<'_>) {
        log.add(
            Code::OutOfRange,
            &self.at(),
            format!("`{}` is out of range: {got}", self.path),
            format!("use {expected}"),
        )
        .expected(expected)
        .got(got);
    }

    /// Whether it is a table.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.as_table().is_some()
    }

    /// `true` or `false`.
    pub fn boolean(&self, log: &mut Log<'_>) -> Option<Spot<bool>> {
        let DeValue::Boolean(truth) = self.value.get_ref() else {
            self.wrong("a boolean", "write true or false, without quotes", log);
            return None;
        };
        Some(self.spot(*truth))
    }

    /// What stands at a key, if it is a table with this key; nothing is reported.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<Node<'a>> {
        let (key, value) = self.as_table()?.get_key_value(name)?;
        Some(Node { path: join(&self.path, name), key: key.span(), value })
    }

    /// The keys of a table, in file order; none of anything else.
    #[must_use]
    pub fn keys(&self) -> Vec<Spot<&'a str>> {
        let entries = self.as_table().into_iter().flat_map(in_order);
        entries.map(|(key, _)| Spot { value: key.get_ref().as_ref(), at: key.span() }).collect()
    }

    pub(crate) fn as_table(&self) -> Option<&'a DeTable<'a>> {
        match self.value.get_ref() {
            DeValue::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// A table whose keys are known; others are reported.
    pub fn table(&self, keys: &Keys, log: &mut Log<'_>) -> Option<Table<'a>> {
        let Some(entries) = self.as_table() else {
            self.wrong("a table", &format!("write a table of {}", list(keys.names)), log);
            return None;
        };
        // A written header is long and says less than the name it ends with.
        Some(Table::new(self.path.clone(), self.key.clone(), entries, keys, log))
    }

    /// The entries of a table whose keys are the author's, in file order.
    pub fn entries(&self, log: &mut Log<'_>) -> Vec<(Spot<&'a str>, Node<'a>)> {
        let Some(entries) = self.as_table() else {
            self.wrong("a table", "write a table with a name for each entry", log);
            return Vec::new();
        };
        in_order(entries)
            .map(|(key, value)| {
                let name = key.get_ref().as_ref();
                (Spot { value: name, at: key.span() }, Node { path: join(&self.path, name), key: key.span(), value })
            })
            .collect()
    }

    /// The elements of an array, if it is one.
    #[must_use]
    pub fn as_items(&self) -> Option<Vec<Node<'a>>> {
        let DeValue::Array(items) = self.value.get_ref() else { return None };
        let node = |(index, value): (usize, &'a Spanned<DeValue<'a>>)| Node {
            path: format!("{}[{index}]", self.path),
            key: value.span(),
            value,
        };
        Some(items.iter().enumerate().map(node).collect())
    }

    /// One table, or an array of them.
    #[must_use]
    pub fn one_or_more(&self) -> Vec<Node<'a>> {
        self.as_items().unwrap_or_else(|| vec![self.clone()])
    }

    /// The JSON of any value.
    pub fn json(&self, log: &mut Log<'_>) -> Option<Value> {
        self.json_below(0, log)
    }

    fn json_below(&self, depth: usize, log: &mut Log<'_>) -> Option<Value> {
        if depth > DEPTH_MAX {
            let message = format!("`{}` is nested deeper than {DEPTH_MAX}", excerpt(&self.path));
            log.add(Code::TooLarge, &self.key, message, "nest it less deeply");
            return None;
        }
        let mut bad = |what: &str, remedy: &str| {
            log.add(Code::BadValue, &self.at(), format!("`{}` is {what}, which JSON does not have", self.path), remedy);
        };
        Some(match self.value.get_ref() {
            DeValue::String(text) => Value::String(text.clone().into_owned()),
            DeValue::Boolean(truth) => Value::Bool(*truth),
            DeValue::Integer(_) => match self.as_integer().map(|number| (i64::try_from(number), u64::try_from(number)))
            {
                Some((Ok(number), _)) => number.into(),
                Some((_, Ok(number))) => number.into(),
                _ => {
                    self.outside("an integer of at most 64 bits", "a longer one", log);
                    return None;
                }
            },
            DeValue::Float(digits) => match digits.as_str().parse().ok().and_then(serde_json::Number::from_f64) {
                Some(number) => Value::Number(number),
                None => {
                    bad("not a finite number", "use a finite number");
                    return None;
                }
            },
            DeValue::Datetime(_) => {
                bad("a date or time", "write it as text, in quotes");
                return None;
            }
            DeValue::Array(_) => {
                // All of them, so that every bad element is reported.
                let items: Vec<Option<Value>> =
                    self.as_items()?.iter().map(|item| item.json_below(depth + 1, log)).collect();
                Value::Array(items.into_iter().collect::<Option<_>>()?)
            }
            DeValue::Table(_) => {
                let entries = self.entries(log).into_iter();
                let fields: Vec<_> =
                    entries.map(|(name, node)| (name.value.to_owned(), node.json_below(depth + 1, log))).collect();
                let fields: Option<Map<String, Value>> =
                    fields.into_iter().map(|(name, value)| Some((name, value?))).collect();
                Value::Object(fields?)
            }
        })
    }

    /// The place of the value that a JSON Pointer names below this one; the deepest part that exists.
    #[must_use]
    pub fn place(&self, pointer: &str) -> Span {
        let (key, value) = self.deepest(pointer);
        // A table's own place is its header or braces, long and far from what it is called.
        if value.get_ref().is_table() { key } else { value.span() }
    }

    /// The place of the key of what a JSON Pointer names below this value.
    pub(crate) fn key_place(&self, pointer: &str) -> Span {
        self.deepest(pointer).0
    }

    fn deepest(&self, pointer: &str) -> (Span, &'a Spanned<DeValue<'a>>) {
        let mut found = (self.key.clone(), self.value);
        for part in pointer.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            let next = match found.1.get_ref() {
                DeValue::Table(entries) => entries.get_key_value(part.as_str()).map(|(key, value)| (key.span(), value)),
                DeValue::Array(items) => {
                    part.parse::<usize>().ok().and_then(|index| items.get(index)).map(|item| (item.span(), item))
                }
                _ => None,
            };
            let Some(next) = next else { break };
            found = next;
        }
        found
    }
}

/// A name, or a report of why it is none.
pub(crate) fn name<T: FromStr<Err = BadName>>(text: &Spot<&str>, log: &mut Log<'_>) -> Option<Spot<T>> {
    match text.value.parse() {
        Ok(value) => Some(Spot { value, at: text.at.clone() }),
        Err(BadName { kind, expected, got }) => {
            let letters = if kind == "table name" { "digits, hyphens and underscores" } else { "digits and hyphens" };
            let remedy = format!("use small letters, {letters}, beginning with a letter");
            log.add(Code::BadName, &text.at, format!("{got:?} is not a {kind}"), remedy).expected(expected).got(got);
            None
        }
    }
}

/// A number of bytes as manifests write it: a whole number and B, KiB, MiB or GiB. None if it is no such thing.
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let shift = match unit {
        "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn show_bytes(bytes: u64) -> String {
    match bytes {
        0 => "0B".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{}GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}
