//! Planted faults: what the contract of the store forbids. With one of them the checks must fail, or they
//! prove nothing.

use crate::gated::Write;
use crate::receiver::Manners;
use interlock_coordinator::decode_key;
use interlock_kernel::record::{Key, Part};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A kind of record that a planted fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Heads of entities.
    Head,
    /// Documents that steps remember.
    Data,
    /// History entries.
    History,
    /// Remembered event ids.
    Dedup,
    /// Queued events.
    Inbox,
    /// The index of store time.
    Due,
    /// The index of timers.
    Timer,
    /// The index of open attempts.
    Open,
    /// Leases.
    Lease,
    /// Effects.
    Effect,
    /// The index of effects that are due.
    Outbox,
}

impl Family {
    const ALL: [(&'static str, Self); 11] = [
        ("head", Self::Head),
        ("data", Self::Data),
        ("history", Self::History),
        ("dedup", Self::Dedup),
        ("inbox", Self::Inbox),
        ("due", Self::Due),
        ("timer", Self::Timer),
        ("open", Self::Open),
        ("lease", Self::Lease),
        ("effect", Self::Effect),
        ("outbox", Self::Outbox),
    ];

    fn of(bytes: &[u8]) -> Option<Self> {
        match decode_key(bytes).ok()? {
            Key::Head(_) => Some(Self::Head),
            Key::Part(_, Part::Data) => Some(Self::Data),
            Key::History(..) => Some(Self::History),
            Key::Dedup(..) => Some(Self::Dedup),
            Key::Inbox(..) => Some(Self::Inbox),
            Key::Due(..) => Some(Self::Due),
            Key::Timer(..) => Some(Self::Timer),
            Key::Open(..) => Some(Self::Open),
            Key::Lease(_) => Some(Self::Lease),
            Key::Effect(..) => Some(Self::Effect),
            Key::Outbox(..) => Some(Self::Outbox),
            Key::Part(..)
            | Key::Machine(_)
            | Key::Revision(..)
            | Key::Session(_)
            | Key::Expiry(..)
            | Key::Secret
            | Key::LeaseEntry(..)
            | Key::Lapse(..)
            | Key::Flight(..)
            | Key::Table(_)
            | Key::TableSpec(..)
            | Key::Row(..)
            | Key::RowIndex(..)
            | Key::RowDue(..)
            | Key::RowHeld(..)
            | Key::RowKept(..)
            | Key::RowEntry(..)
            | Key::Memo(..)
            | Key::Answered(_)
            | Key::Schedule(_)
            | Key::ScheduleDue(..) => None,
        }
    }
}

/// A fault of the store, or of receivers, that must not go unnoticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plant {
    /// None.
    #[default]
    Nothing,
    /// The n-th committed write of a family does not reach the disk.
    Drop(Family, u64),
    /// The n-th writing job is answered as if committed, and leaves no trace.
    Acknowledge(u64),
    /// The n-th writing job is applied twice in one transaction.
    Twice(u64),
    /// Receivers do what they did before once more.
    Forgetful,
    /// Receivers do what a late owner asks for.
    Unfenced,
}

impl Plant {
    /// How receivers behave.
    pub(crate) fn manners(self) -> Manners {
        match self {
            Self::Forgetful => Manners { remembers: false, ..Manners::GOOD },
            Self::Unfenced => Manners { fences: false, ..Manners::GOOD },
            Self::Nothing | Self::Drop(..) | Self::Acknowledge(_) | Self::Twice(_) => Manners::GOOD,
        }
    }
}

impl fmt::Display for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Drop(family, nth) => {
                let name = Family::ALL.iter().find(|(_, known)| known == family).map_or("", |(name, _)| name);
                write!(f, "drop-{name}-{nth}")
            }
            Self::Acknowledge(nth) => write!(f, "acknowledge-{nth}"),
            Self::Twice(nth) => write!(f, "twice-{nth}"),
            Self::Forgetful => f.write_str("forgetful"),
            Self::Unfenced => f.write_str("unfenced"),
        }
    }
}

impl FromStr for Plant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            let families: Vec<&str> = Family::ALL.iter().map(|(name, _)| *name).collect();
            let families = families.join(", ");
            format!(
                "expected nothing, forgetful, unfenced, acknowledge-N, twice-N or drop-FAMILY-N ({families}), got {text:?}"
            )
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| bad());
        match text.split('-').collect::<Vec<_>>()[..] {
            ["nothing"] => Ok(Self::Nothing),
            ["forgetful"] => Ok(Self::Forgetful),
            ["unfenced"] => Ok(Self::Unfenced),
            ["acknowledge", nth] => Ok(Self::Acknowledge(number(nth)?)),
            ["twice", nth] => Ok(Self::Twice(number(nth)?)),
            ["drop", family, nth] => {
                let found = Family::ALL.iter().find(|(name, _)| *name == family);
                found.map_or_else(|| Err(bad()), |(_, family)| Ok(Self::Drop(*family, number(nth)?)))
            }
            _ => Err(bad()),
        }
    }
}

/// A planted fault at work. Clones count together.
#[derive(Clone)]
pub(crate) struct Mischief {
    plant: Plant,
    met: Arc<AtomicU64>,
}

impl Mischief {
    pub(crate) fn new(plant: Plant) -> Self {
        Self { plant, met: Arc::default() }
    }

    fn is_the(&self, nth: u64) -> bool {
        self.met.fetch_add(1, Ordering::Relaxed) + 1 == nth
    }

    /// Whether this write is to be lost.
    pub(crate) fn drops(&self, key: &[u8]) -> bool {
        match self.plant {
            Plant::Drop(family, nth) => Family::of(key) == Some(family) && self.is_the(nth),
            Plant::Nothing | Plant::Acknowledge(_) | Plant::Twice(_) | Plant::Forgetful | Plant::Unfenced => false,
        }
    }

    /// Whether the job with these writes is to run once more in the same transaction.
    pub(crate) fn runs_twice(&self, writes: &[Write]) -> bool {
        match self.plant {
            Plant::Twice(nth) => !writes.is_empty() && self.is_the(nth),
            Plant::Nothing | Plant::Acknowledge(_) | Plant::Drop(..) | Plant::Forgetful | Plant::Unfenced => false,
        }
    }

    /// Whether the job with these writes is to leave no trace, and hear nothing of it.
    pub(crate) fn loses(&self, writes: &[Write]) -> bool {
        match self.plant {
            Plant::Acknowledge(nth) => !writes.is_empty() && self.is_the(nth),
            Plant::Nothing | Plant::Twice(_) | Plant::Drop(..) | Plant::Forgetful | Plant::Unfenced => false,
        }
    }
}
