//! Names and identifiers. Parse, don't validate: once one of these exists it is well formed.

use crate::limits::{EVENT_ID_BYTES_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX};
use crate::number::Incarnation;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A text that is not a name: what was expected, what was got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    /// What kind of name it should have been.
    pub kind: &'static str,
    /// The rule it breaks.
    pub expected: String,
    /// The text.
    pub got: String,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let article = if self.kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        write!(f, "not {article} {}: expected {}, got {:?}", self.kind, self.expected, self.got)
    }
}

impl std::error::Error for BadName {}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                let rule: fn(&str) -> Option<String> = $rule;
                match rule(text) {
                    None => Ok(Self(text.into())),
                    Some(expected) => Err(BadName { kind: $kind, expected, got: excerpt(text) }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// The beginning of a text that may be long, and how long it is.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(80) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}... ({} bytes)", text.get(..end).unwrap_or_default(), text.len()),
    }
}

fn slug(text: &str) -> Option<String> {
    let good = text.len() <= NAME_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (!good).then(|| format!("1 to {NAME_BYTES_MAX} bytes of [a-z][a-z0-9-]*"))
}

fn printable(text: &str, bytes_max: usize, forbidden: &[char]) -> Option<String> {
    let good = (1..=bytes_max).contains(&text.len()) && !text.chars().any(|c| c.is_control() || forbidden.contains(&c));
    let also = if forbidden.is_empty() { String::new() } else { format!(" or {forbidden:?}") };
    (!good).then(|| format!("1 to {bytes_max} bytes without control characters{also}"))
}

name! {
    /// A machine's name.
    MachineName, "machine name", slug
}
name! {
    /// The name of a state, event, step or timer.
    Name, "name", slug
}
name! {
    /// An entity's key within its machine: 1 to 200 bytes without `@` and control characters.
    EntityKey, "entity key", |text| printable(text, KEY_BYTES_MAX, &['@'])
}
name! {
    /// A client's name for one occurrence of an event.
    EventId, "event id", |text| printable(text, EVENT_ID_BYTES_MAX, &[])
}

name! {
    /// A lease's name: 1 to 200 bytes without `*`, which stands for many names where leases are granted.
    LeaseName, "lease name", |text| printable(text, KEY_BYTES_MAX, &['*'])
}
name! {
    /// What a client holds a lease under: random, known to nobody else.
    GrantId, "grant id", |text| printable(text, EVENT_ID_BYTES_MAX, &[])
}

name! {
    /// A table's name.
    TableName, "table name", |text| {
        let good = text.len() <= NAME_BYTES_MAX
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'));
        (!good).then(|| format!("1 to {NAME_BYTES_MAX} bytes of [a-z][a-z0-9_-]*"))
    }
}
name! {
    /// A row's key within its table: 1 to 200 bytes without control characters.
    RowKey, "row key", |text| printable(text, KEY_BYTES_MAX, &[])
}

name! {
    /// A schedule's name.
    ScheduleName, "schedule name", slug
}

/// One durable subject: `machine/key`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntityId {
    /// The machine it follows.
    pub machine: MachineName,
    /// Its key there.
    pub key: EntityKey,
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.machine, self.key)
    }
}

impl FromStr for EntityId {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let (machine, key) = text.split_once('/').ok_or_else(|| BadName {
            kind: "entity",
            expected: "machine/key".to_owned(),
            got: excerpt(text),
        })?;
        Ok(Self { machine: machine.parse()?, key: key.parse()? })
    }
}

/// Everything from the event that leaves a rest state until the next rest or final state. Its id is
/// the lock: it contains its entity, so both directions of the mapping are one fact.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExecutionId {
    /// The entity it works on.
    pub entity: EntityId,
    /// The entity's incarnation.
    #[serde(deserialize_with = "crate::number::incarnation")]
    pub incarnation: Incarnation,
    /// Counted per incarnation, from 1.
    pub ordinal: u64,
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}.{}", self.entity, self.incarnation, self.ordinal)
    }
}

/// An execution id as a client writes it: read, compared, never trusted to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionRef {
    /// The entity.
    pub entity: EntityId,
    /// The incarnation it names.
    pub incarnation: u64,
    /// The execution's number.
    pub ordinal: u64,
}

impl FromStr for ExecutionRef {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let bad =
            || BadName { kind: "execution", expected: "machine/key@incarnation.number".to_owned(), got: excerpt(text) };
        let (entity, tail) = text.rsplit_once('@').ok_or_else(bad)?;
        let (incarnation, ordinal) = tail.split_once('.').ok_or_else(bad)?;
        Ok(Self {
            entity: entity.parse()?,
            incarnation: incarnation.parse().map_err(|_| bad())?,
            ordinal: ordinal.parse().map_err(|_| bad())?,
        })
    }
}

/// Who asked: `local` before authentication exists, `host`, or an execution's id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A client on this machine.
    #[must_use]
    pub fn local() -> Self {
        Self("local".into())
    }

    /// The host itself.
    #[must_use]
    pub fn host() -> Self {
        Self("host".into())
    }

    /// The host, because a schedule says so.
    #[must_use]
    pub fn schedule(name: &ScheduleName) -> Self {
        Self(format!("schedule/{name}").into())
    }

    /// A step of an execution.
    #[must_use]
    pub fn execution(id: &ExecutionId) -> Self {
        Self(id.to_string().into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The longest text that is compared with valid names, in bytes: no valid name is longer, and the comparison takes
/// memory for every pair of letters.
const NEAREST_BYTES_MAX: usize = 128;

/// The valid name nearest to `got`, if one is near enough to be meant.
#[must_use]
pub fn nearest<'a>(got: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if got.len() > NEAREST_BYTES_MAX {
        return None;
    }
    valid
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(got, name), name))
        .filter(|(distance, name)| *distance <= 1.max(name.len().max(got.len()) / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
