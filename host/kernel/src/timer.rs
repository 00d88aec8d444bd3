//! When an author's timer is due: after a wait, at an instant that a document holds, or by a rule of the
//! calendar. The kernel knows neither zones nor leap years: [`Rules`](crate::view::Rules) does.

use crate::time::Span;
use crate::value::Path;
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What fixes a timer's due time as its state is entered. From then on it is an instant of wall time, whatever
/// happens to the document, the rule or the zone.
#[derive(Clone, Debug, PartialEq)]
pub enum Due {
    /// So many ms after entry, at least one; downtime counts.
    After(u64),
    /// What stands there: text (RFC 3339 with an offset) or a whole number of ms since 1970. An instant that is
    /// past is due at once.
    At(Path),
    /// What a calendar says.
    Calendar(CalendarRule),
    /// What a step has staged: the one whose transition enters the state, or its own with a save. Not at all where
    /// none has.
    Step,
}

/// The first day that fits, at a time of day, in a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalendarRule {
    /// The rule in its author's words.
    pub text: String,
    /// Whether the day of the entry may be the one.
    pub from: FirstDay,
    /// The days that fit.
    pub days: Days,
    /// The time of day by the zone's clocks, in seconds from its midnight as a clock shows it.
    pub at_s: u32,
    /// The zone's name in the IANA time zone database.
    pub zone: String,
    /// Not sooner after entry than this, in ms.
    pub at_least_ms: u64,
    /// Days that do not fit, in order. Known to the end of the last one's year, and no further.
    pub holidays: Vec<Date>,
}

/// The first day that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FirstDay {
    /// The day of the entry, as the zone has it.
    Today,
    /// The one after it.
    Tomorrow,
}

/// The days that fit a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Days {
    /// These weekdays, unless they are holidays: bit 0 is Monday.
    Weekdays(u8),
    /// This day of each month; the last day of a shorter one.
    OfMonth(u8),
}

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Date {
    /// The year.
    pub year: i16,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(ms) => write!(f, "{} after entry", Span(*ms)),
            Self::At(path) => write!(f, "at {path}"),
            Self::Calendar(rule) => f.write_str(&rule.text),
            Self::Step => f.write_str("set by a step"),
        }
    }
}

/// Format 1 knew waits alone and wrote them as their ms, never 0. So a 0 says that something else follows, and
/// both formats are read alike.
const NO_WAIT: u64 = 0;

#[derive(Serialize, Deserialize)]
enum Stored {
    At(Path),
    Calendar(CalendarRule),
    Step,
}

impl Serialize for Due {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let stored = match self {
            Self::After(ms) => return (*ms).max(1).serialize(to),
            Self::At(path) => Stored::At(path.clone()),
            Self::Calendar(rule) => Stored::Calendar(rule.clone()),
            Self::Step => Stored::Step,
        };
        let mut both = to.serialize_tuple(2)?;
        both.serialize_element(&NO_WAIT)?;
        both.serialize_element(&stored)?;
        both.end()
    }
}

impl<'de> Deserialize<'de> for Due {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Due;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a wait in ms, or 0 and what else says when")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Due, A::Error> {
                let missing = || A::Error::custom("nothing says when the timer is due");
                match from.next_element()?.ok_or_else(missing)? {
                    NO_WAIT => Ok(match from.next_element()?.ok_or_else(missing)? {
                        Stored::At(path) => Due::At(path),
                        Stored::Calendar(rule) => Due::Calendar(rule),
                        Stored::Step => Due::Step,
                    }),
                    ms => Ok(Due::After(ms)),
                }
            }
        }
        from.deserialize_tuple(2, Either)
    }
}
