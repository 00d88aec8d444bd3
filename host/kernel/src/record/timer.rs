//! A pending timer, and how it is stored.

use crate::ids::Name;
use crate::time::WallTime;
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A pending timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Its name in the state.
    pub name: Name,
    /// When it fires.
    pub due: WallTime,
    /// What made it due then, in words; none for a plain wait after entry.
    pub rule: Option<String>,
}

/// Format 1 wrote name and due time; a name is never empty. So an empty one says that the rule comes first, and
/// both formats are read alike.
const RULE_FIRST: &str = "";

impl Serialize for Timer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut parts = to.serialize_tuple(if self.rule.is_some() { 4 } else { 2 })?;
        if let Some(rule) = &self.rule {
            parts.serialize_element(RULE_FIRST)?;
            parts.serialize_element(rule)?;
        }
        parts.serialize_element(&self.name)?;
        parts.serialize_element(&self.due)?;
        parts.end()
    }
}

impl<'de> Deserialize<'de> for Timer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Timer;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a timer's name and due time, behind an empty text and its rule if it has one")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Timer, A::Error> {
                let missing = || A::Error::custom("a timer ends too early");
                let mut first: String = from.next_element()?.ok_or_else(missing)?;
                let mut rule = None;
                if first == RULE_FIRST {
                    rule = Some(from.next_element()?.ok_or_else(missing)?);
                    first = from.next_element()?.ok_or_else(missing)?;
                }
                let name = first.parse().map_err(A::Error::custom)?;
                Ok(Timer { name, due: from.next_element()?.ok_or_else(missing)?, rule })
            }
        }
        from.deserialize_tuple(4, Parts)
    }
}
