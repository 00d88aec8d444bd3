//! A schedule: a declaration of the operator's by which the host raises an event at an entity again and again, whenever
//! a rule of the calendar comes. `interlock-manifest` makes it from TOML and has checked it.

use crate::doc::Doc;
use crate::ids::{EntityId, Name, ScheduleName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What comes again and again, and what happens then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Its name.
    pub name: ScheduleName,
    /// Who answers for it; shown in refusals.
    pub owner: String,
    /// When it comes.
    pub rule: Recurrence,
    /// At whom the event is raised.
    pub entity: EntityId,
    /// How the entity is made if there is none; none makes none.
    pub create: Option<Creation>,
    /// The event.
    pub event: Name,
    /// Its payload.
    pub payload: Option<Doc>,
    /// The field of the payload, an object, in which the due time stands, in ms since 1970.
    pub due_field: Option<String>,
    /// What if an execution of the entity is under way.
    pub overlap: Overlap,
    /// What of the times that nobody was there for.
    pub catch_up: CatchUp,
}

/// A rule of the calendar that comes again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recurrence {
    /// Minute, hour, day of the month, month, day of the week; or `@daily` and the like.
    pub cron: String,
    /// The zone's name in the IANA time zone database, by whose clocks.
    pub zone: String,
}

/// An entity as a schedule makes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Creation {
    /// What it is to be.
    pub desired: Option<Doc>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
}

/// What becomes of a due time while an execution of the entity is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Overlap {
    /// Nothing is raised.
    #[default]
    Skip,
    /// The event waits in the entity's inbox, whatever the machine says of it; one at a time.
    Queue,
    /// The event is raised like any client's: what it means now is the machine's to say.
    Deliver,
}

/// What becomes of times that passed while no host ran, or the schedule could not be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CatchUp {
    /// They are past.
    None,
    /// The last of them is made up for.
    #[default]
    Latest,
    /// Each of them is, in order, as long as it is not past for longer than this, in ms.
    All(u64),
}

impl fmt::Display for Recurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.cron, self.zone)
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Deliver => "deliver",
        })
    }
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Latest => f.write_str("latest"),
            Self::All(within_ms) => write!(f, "all of the last {}", crate::time::Span(*within_ms)),
        }
    }
}
