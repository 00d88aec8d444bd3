//! Records as bytes: kind, format version, postcard. A store written by an earlier build is read by
//! this one.

use super::{Key, Part, Record};
use serde::Deserialize;
use std::fmt;

/// Bytes that are not the record their key says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// The kind of record expected.
    pub expected: &'static str,
    /// What is wrong.
    pub got: String,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a {} record, got {}", self.expected, self.got)
    }
}

impl std::error::Error for Corrupt {}

/// The newest version of the record format; each kind of record is written in the one that last changed it, so
/// that a history made before is chained by the same bytes. This one and every earlier one are read.
pub const RECORD_VERSION: u8 = 4;

impl Key {
    /// The format that records of this kind are written in.
    ///
    /// 2: a timer of a machine may be due at a field or by a calendar, one of a head may have a rule. What format 1
    /// could say has the same bytes in both.
    ///
    /// 3: leases and effects, which stand at the end of both. See [`Self::added`].
    ///
    /// 4: what an entity has to do with rows, likewise.
    const fn format(&self) -> u8 {
        match self {
            Self::Revision(..) | Self::Head(_) => 4,
            Self::Machine(_)
            | Self::Part(..)
            | Self::Inbox(..)
            | Self::History(..)
            | Self::Dedup(..)
            | Self::Due(..)
            | Self::Timer(..)
            | Self::Open(..)
            | Self::Session(_)
            | Self::Expiry(..)
            | Self::Secret
            | Self::Lease(_)
            | Self::LeaseEntry(..)
            | Self::Lapse(..)
            | Self::Effect(..)
            | Self::Outbox(..)
            | Self::Flight(..)
            | Self::Table(_)
            | Self::TableSpec(..)
            | Self::Row(..)
            | Self::RowIndex(..)
            | Self::RowDue(..)
            | Self::RowHeld(..)
            | Self::RowKept(..)
            | Self::RowEntry(..)
            | Self::Memo(..)
            | Self::Answered(_)
            | Self::Schedule(_)
            | Self::ScheduleDue(..) => 1,
        }
    }

    /// How many empty lists, maps and options, and zeros, later formats have put at the end of a record of this format. Each is
    /// one zero byte.
    const fn added(&self, format: u8) -> usize {
        match (self, format) {
            (Self::Head(_), 1 | 2) => 7,
            (Self::Head(_), 3) => 2,
            (Self::Revision(..), 1 | 2) => 6,
            (Self::Revision(..), 3) => 2,
            _ => 0,
        }
    }

    fn kind(&self) -> (u8, &'static str) {
        match self {
            Self::Machine(_) => (1, "machine"),
            Self::Revision(..) => (2, "revision"),
            Self::Head(_) => (3, "head"),
            Self::Part(_, Part::Conditions) => (4, "conditions"),
            Self::Part(..) => (5, "document"),
            Self::Inbox(..) => (6, "queued event"),
            Self::History(..) => (7, "history entry"),
            Self::Dedup(..) => (8, "dedup"),
            Self::Due(..)
            | Self::Timer(..)
            | Self::Open(..)
            | Self::Lapse(..)
            | Self::Outbox(..)
            | Self::Flight(..)
            | Self::RowIndex(..)
            | Self::RowDue(..)
            | Self::RowHeld(..)
            | Self::RowKept(..)
            | Self::ScheduleDue(..) => (9, "index mark"),
            Self::Session(_) => (10, "session"),
            Self::Expiry(..) => (11, "expiry"),
            Self::Secret => (12, "secret"),
            Self::Lease(_) => (13, "lease"),
            Self::LeaseEntry(..) => (14, "lease entry"),
            Self::Effect(..) => (15, "effect"),
            Self::Table(_) => (16, "table"),
            Self::TableSpec(..) => (17, "declaration of a table"),
            Self::Row(..) => (18, "row"),
            Self::RowEntry(..) => (19, "row entry"),
            Self::Memo(..) | Self::Answered(_) => (20, "remembered answer"),
            Self::Schedule(_) => (21, "schedule"),
        }
    }
}

impl Record {
    /// The bytes: kind, format version, postcard.
    #[must_use]
    pub fn encode(&self, key: &Key) -> Vec<u8> {
        let start = vec![key.kind().0, key.format()];
        let bytes = match self {
            Self::Machine(record) => postcard::to_extend(record, start),
            Self::Revision(record) => postcard::to_extend(record, start),
            Self::Head(record) => postcard::to_extend(record, start),
            Self::Doc(record) => postcard::to_extend(record, start),
            Self::Conditions(record) => postcard::to_extend(record, start),
            Self::Queued(record) => postcard::to_extend(record, start),
            Self::Entry(record) => postcard::to_extend(record, start),
            Self::Dedup(record) => postcard::to_extend(record, start),
            Self::Mark => Ok(start),
            Self::Session(record) => postcard::to_extend(record, start),
            Self::Expires(record) => postcard::to_extend(record, start),
            Self::Secret(record) => postcard::to_extend(record, start),
            Self::Lease(record) => postcard::to_extend(record, start),
            Self::LeaseEntry(record) => postcard::to_extend(record, start),
            Self::Effect(record) => postcard::to_extend(record, start),
            Self::Table(record) => postcard::to_extend(record, start),
            Self::TableSpec(record) => postcard::to_extend(record, start),
            Self::Row(record) => postcard::to_extend(record, start),
            Self::RowEntry(record) => postcard::to_extend(record, start),
            Self::Memo(record) => postcard::to_extend(record, start),
            Self::Schedule(record) => postcard::to_extend(record, start),
        };
        // Records hold no map with unknown length and no float that postcard could refuse.
        bytes.unwrap_or_else(|never| unreachable!("a record always encodes: {never}"))
    }

    /// The record that `key` says stands in these bytes.
    ///
    /// # Errors
    /// [`Corrupt`] with the kind that was expected.
    pub fn decode(key: &Key, bytes: &[u8]) -> Result<Self, Corrupt> {
        let (kind, expected) = key.kind();
        let bad = |got: String| Corrupt { expected, got };
        let (body, added) = match bytes {
            [found, version, body @ ..] if *found == kind && (1..=key.format()).contains(version) => {
                (body, key.added(*version))
            }
            [found, version, ..] => {
                return Err(bad(format!(
                    "kind {found}, format {version} (this build reads kind {kind} up to format {})",
                    key.format()
                )));
            }
            short => return Err(bad(format!("{} bytes", short.len()))),
        };
        let grown = (added > 0).then(|| [body, &vec![0; added]].concat());
        let body = grown.as_deref().unwrap_or(body);
        let record: Result<Self, String> = match key {
            Key::Machine(_) => whole(body).map(Self::Machine),
            Key::Revision(..) => whole(body).map(Self::Revision),
            Key::Head(_) => whole(body).map(Self::Head),
            Key::Part(_, Part::Conditions) => whole(body).map(Self::Conditions),
            Key::Part(..) => whole(body).map(Self::Doc),
            Key::Inbox(..) => whole(body).map(Self::Queued),
            Key::History(..) => whole(body).map(Self::Entry),
            Key::Dedup(..) => whole(body).map(Self::Dedup),
            Key::Due(..)
            | Key::Timer(..)
            | Key::Open(..)
            | Key::Lapse(..)
            | Key::Outbox(..)
            | Key::Flight(..)
            | Key::RowIndex(..)
            | Key::RowDue(..)
            | Key::RowHeld(..)
            | Key::RowKept(..)
            | Key::ScheduleDue(..) => whole(body).map(|()| Self::Mark),
            Key::Session(_) => whole(body).map(Self::Session),
            Key::Expiry(..) => whole(body).map(Self::Expires),
            Key::Secret => whole(body).map(Self::Secret),
            Key::Lease(_) => whole(body).map(Self::Lease),
            Key::LeaseEntry(..) => whole(body).map(Self::LeaseEntry),
            Key::Effect(..) => whole(body).map(Self::Effect),
            Key::Table(_) => whole(body).map(Self::Table),
            Key::TableSpec(..) => whole(body).map(Self::TableSpec),
            Key::Row(..) => whole(body).map(Self::Row),
            Key::RowEntry(..) => whole(body).map(Self::RowEntry),
            Key::Memo(..) | Key::Answered(_) => whole(body).map(Self::Memo),
            Key::Schedule(_) => whole(body).map(Self::Schedule),
        };
        record.map_err(bad)
    }
}

/// All of the bytes: what is left over is not this record.
fn whole<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    match postcard::take_from_bytes(body) {
        Ok((record, [])) => Ok(record),
        Ok((_, rest)) => Err(format!("{} bytes too many", rest.len())),
        Err(why) => Err(why.to_string()),
    }
}
