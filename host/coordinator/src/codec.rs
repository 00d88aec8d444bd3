//! Keys as bytes: one ordered key space.
//!
//! ```text
//! A <event id>                         what a client was answered about rows
//! D <due u64> <entity>                 the earliest thing that store time will cause
//! E <machine> <key> 0                  head
//!                   1 ..= 6            parts
//!                   7 <place u64>      inbox
//!                   8 <!inc> <!n>      history, newest first: it lands beside the head
//!                   9 <event id>       dedup; survives delete
//!                  10 <n u64>          effects that are not settled
//!                  11 <digest>         what a step was answered about rows
//! F <session u64> <entity> <n u64>     effects in flight by session
//! G <entity> <inc u64> <n u64> <table> <row>  rows that an execution has claimed and that stay claimed at its end
//! H <entity> <inc u64> <n u64> <table> <row>  rows that an execution has claimed and that are taken back
//! K                                    the store's secret
//! L <lease> 0                          lease
//!           8 <!n>                     what became of it, newest first
//! M <machine>                          machine
//! N <session u64>                      sessions
//! O <machine> <target> <due u64> <entity> <n u64>  the first effect of each lane, by target
//! Q <table> 0                          table
//!           1 <n u64>                  its declarations
//!           2 <row>                    its rows
//!           3 <index u32> <fields> <seq u64> <n u32> <row>  its indexes; the fields are escaped like a text
//!           8 <!n>                     what became of its rows, newest first
//! R <machine> <number u64>             revisions
//! S <session u64> <entity>             open attempts by session: orphans without a scan
//! T <due i64> <entity> <timer>         timers
//! W <due u64> <table> <row>            the earliest thing that store time will cause to a row
//! X <due u64> <seq u64> <n u32>        expiry: appended, popped from the left
//! Y <due u64> <lease>                  the earliest thing that store time will cause to a lease
//! ```
//! Numbers are big-endian and fixed; texts are escaped (`00` becomes `00 FF`) and end with `00 01`, so
//! that no text is a prefix of another and order is that of the texts.

use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, EventId, LeaseName, MachineName, Name, ScheduleName, TableName};
use interlock_kernel::record::{Key, Part, Place};
use interlock_kernel::time::{StoreTime, WallTime};
use interlock_kernel::view::{IndexSpan, Span};
use interlock_kernel::{Incarnation, SessionId};
use std::str::FromStr;

const ANSWERED: u8 = b'A';
const DUE: u8 = b'D';
const ENTITY: u8 = b'E';
const HELD: u8 = b'H';
const KEPT: u8 = b'G';
const SECRET: u8 = b'K';
const FLIGHT: u8 = b'F';
const LEASE: u8 = b'L';
const MACHINE: u8 = b'M';
const SESSION: u8 = b'N';
const OUTBOX: u8 = b'O';
const TABLE: u8 = b'Q';
const REVISION: u8 = b'R';
const OPEN: u8 = b'S';
const TIMER: u8 = b'T';
const SCHEDULE_DUE: u8 = b'U';
const SCHEDULE: u8 = b'V';
const ROW_DUE: u8 = b'W';
const EXPIRY: u8 = b'X';
const LAPSE: u8 = b'Y';

const HEAD: u8 = 0;
const INBOX: u8 = 7;
const HISTORY: u8 = 8;
const DEDUP: u8 = 9;
const EFFECT: u8 = 10;
const MEMO: u8 = 11;

const SPEC: u8 = 1;
const ROW: u8 = 2;
const INDEX: u8 = 3;

/// The lowest byte that sorts behind every record of an entity.
const BEHIND: u8 = 0xFF;

/// A key that cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKey(String);

impl std::fmt::Display for BadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadKey {}

/// The bytes of a key.
pub(crate) fn encode(key: &Key) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(64));
    match key {
        Key::Machine(machine) => out.family(MACHINE).text(machine.as_str()),
        Key::Revision(machine, number) => out.family(REVISION).text(machine.as_str()).number(*number),
        Key::Head(entity) => out.of(entity).byte(HEAD),
        Key::Part(entity, part) => out.of(entity).byte(part_byte(*part)),
        Key::Inbox(entity, place) => out.of(entity).byte(INBOX).number(*place),
        Key::History(entity, incarnation, number) => {
            out.of(entity).byte(HISTORY).number(!incarnation.get()).number(!*number)
        }
        Key::Dedup(entity, event) => out.of(entity).byte(DEDUP).text(event.as_str()),
        Key::Due(due, entity) => out.family(DUE).number(due.0).entity(entity),
        Key::Timer(due, entity, timer) => out.family(TIMER).signed(due.0).entity(entity).text(timer.as_str()),
        Key::Open(session, entity) => out.family(OPEN).number(session.get()).entity(entity),
        Key::Session(session) => out.family(SESSION).number(session.get()),
        Key::Expiry(due, seq, n) => {
            out.family(EXPIRY).number(due.0).number(*seq);
            out.0.extend_from_slice(&n.to_be_bytes());
            &mut out
        }
        Key::Secret => out.family(SECRET),
        Key::Lease(lease) => out.family(LEASE).text(lease.as_str()).byte(HEAD),
        Key::LeaseEntry(lease, number) => out.family(LEASE).text(lease.as_str()).byte(HISTORY).number(!*number),
        Key::Lapse(due, lease) => out.family(LAPSE).number(due.0).text(lease.as_str()),
        Key::Effect(entity, number) => out.of(entity).byte(EFFECT).number(*number),
        Key::Outbox(machine, target, due, entity, number) => {
            out.family(OUTBOX).text(machine.as_str()).text(target.as_str()).number(due.0).entity(entity).number(*number)
        }
        Key::Flight(session, entity, number) => out.family(FLIGHT).number(session.get()).entity(entity).number(*number),
        Key::Table(table) => out.table(table).byte(HEAD),
        Key::TableSpec(table, number) => out.table(table).byte(SPEC).number(*number),
        Key::Row(table, row) => out.table(table).byte(ROW).text(row.as_str()),
        Key::RowIndex(table, index, fields, place, row) => {
            out.index(table, *index).bytes(fields).place(*place).text(row.as_str())
        }
        Key::RowDue(due, table, row) => out.family(ROW_DUE).number(due.0).text(table.as_str()).text(row.as_str()),
        Key::RowHeld(entity, incarnation, ordinal, table, row) => {
            out.family(HELD).execution(entity, incarnation.get(), *ordinal).text(table.as_str()).text(row.as_str())
        }
        Key::RowKept(entity, incarnation, ordinal, table, row) => {
            out.family(KEPT).execution(entity, incarnation.get(), *ordinal).text(table.as_str()).text(row.as_str())
        }
        Key::RowEntry(table, number) => out.table(table).byte(HISTORY).number(!*number),
        Key::Memo(entity, digest) => {
            out.of(entity).byte(MEMO).0.extend_from_slice(&digest.0);
            &mut out
        }
        Key::Answered(id) => out.family(ANSWERED).text(id.as_str()),
        Key::Schedule(schedule) => out.family(SCHEDULE).text(schedule.as_str()),
        Key::ScheduleDue(due, schedule) => out.family(SCHEDULE_DUE).signed(due.0).text(schedule.as_str()),
    };
    out.0
}

/// The key of these bytes: for whoever looks at a store from below, as a simulator does.
///
/// # Errors
/// [`BadKey`] says what was expected, and where.
pub fn decode(bytes: &[u8]) -> Result<Key, BadKey> {
    let mut rest = Reader { all: bytes, rest: bytes };
    let key = match rest.byte()? {
        MACHINE => Key::Machine(rest.name()?),
        REVISION => Key::Revision(rest.name()?, rest.number()?),
        ENTITY => {
            let entity = rest.entity()?;
            match rest.byte()? {
                HEAD => Key::Head(entity),
                INBOX => Key::Inbox(entity, rest.number()?),
                HISTORY => {
                    let incarnation = Incarnation::stored(!rest.number()?);
                    Key::History(entity, incarnation, !rest.number()?)
                }
                DEDUP => Key::Dedup(entity, rest.name::<EventId>()?),
                EFFECT => Key::Effect(entity, rest.number()?),
                MEMO => Key::Memo(entity, Digest(rest.fixed()?)),
                byte => match Part::ALL.into_iter().find(|part| part_byte(*part) == byte) {
                    Some(part) => Key::Part(entity, part),
                    None => return Err(rest.bad("a record of an entity")),
                },
            }
        }
        DUE => Key::Due(StoreTime(rest.number()?), rest.entity()?),
        TIMER => Key::Timer(WallTime(rest.signed()?), rest.entity()?, rest.name::<Name>()?),
        OPEN => Key::Open(SessionId::stored(rest.number()?), rest.entity()?),
        SESSION => Key::Session(SessionId::stored(rest.number()?)),
        EXPIRY => Key::Expiry(StoreTime(rest.number()?), rest.number()?, u32::from_be_bytes(rest.fixed()?)),
        SECRET => Key::Secret,
        LEASE => {
            let lease = rest.name::<LeaseName>()?;
            match rest.byte()? {
                HEAD => Key::Lease(lease),
                HISTORY => Key::LeaseEntry(lease, !rest.number()?),
                _ => return Err(rest.bad("a record of a lease")),
            }
        }
        OUTBOX => {
            let (machine, target) = (rest.name()?, rest.name()?);
            Key::Outbox(machine, target, StoreTime(rest.number()?), rest.entity()?, rest.number()?)
        }
        FLIGHT => Key::Flight(SessionId::stored(rest.number()?), rest.entity()?, rest.number()?),
        TABLE => {
            let table = rest.name::<TableName>()?;
            match rest.byte()? {
                HEAD => Key::Table(table),
                SPEC => Key::TableSpec(table, rest.number()?),
                ROW => Key::Row(table, rest.name()?),
                INDEX => {
                    let index = u32::from_be_bytes(rest.fixed()?);
                    let fields = rest.bytes()?;
                    Key::RowIndex(table, index, fields, rest.place()?, rest.name()?)
                }
                HISTORY => Key::RowEntry(table, !rest.number()?),
                _ => return Err(rest.bad("a record of a table")),
            }
        }
        ROW_DUE => Key::RowDue(StoreTime(rest.number()?), rest.name()?, rest.name()?),
        family @ (HELD | KEPT) => {
            let entity = rest.entity()?;
            let incarnation = Incarnation::stored(rest.number()?);
            let at = if family == HELD { Key::RowHeld } else { Key::RowKept };
            at(entity, incarnation, rest.number()?, rest.name()?, rest.name()?)
        }
        ANSWERED => Key::Answered(rest.name::<EventId>()?),
        SCHEDULE => Key::Schedule(rest.name::<ScheduleName>()?),
        SCHEDULE_DUE => Key::ScheduleDue(WallTime(rest.signed()?), rest.name::<ScheduleName>()?),
        LAPSE => Key::Lapse(StoreTime(rest.number()?), rest.name::<LeaseName>()?),
        _ => return Err(rest.bad("a known family")),
    };
    if rest.rest.is_empty() { Ok(key) } else { Err(rest.bad("nothing behind it")) }
}

/// From the first key of a run, to behind its last one.
pub(crate) fn range(span: &Span) -> (Vec<u8>, Vec<u8>) {
    match span {
        Span::Sessions => family(SESSION),
        Span::Open(session) => {
            let mut from = Writer(Vec::new());
            from.family(OPEN).number(session.get());
            behind(from.0)
        }
        Span::Expired(until) => {
            let (from, _) = family(EXPIRY);
            let mut to = Writer(Vec::new());
            to.family(EXPIRY).number(until.0.saturating_add(1));
            (from, to.0)
        }
        Span::Inbox(entity) => {
            let mut from = Writer(Vec::new());
            from.of(entity).byte(INBOX);
            behind(from.0)
        }
        Span::Effects(entity) => {
            let mut from = Writer(Vec::new());
            from.of(entity).byte(EFFECT);
            behind(from.0)
        }
        Span::History(entity, incarnation, newest) => history(entity, incarnation.get(), *newest),
        Span::Memos(entity) => {
            let mut from = Writer(Vec::new());
            from.of(entity).byte(MEMO);
            behind(from.0)
        }
        Span::Rows(table, after) => {
            let mut prefix = Writer(Vec::new());
            prefix.table(table).byte(ROW);
            let (mut from, to) = behind(prefix.0);
            if let Some(after) = after {
                from = encode(&Key::Row(table.clone(), after.clone()));
                from.push(0);
            }
            (from, to)
        }
        Span::RowIndex(span) => index(span),
        Span::RowsDue(until) => {
            let (from, _) = family(ROW_DUE);
            let mut to = Writer(Vec::new());
            to.family(ROW_DUE).number(until.0.saturating_add(1));
            (from, to.0)
        }
        Span::RowsHeld(entity, incarnation, ordinal) => {
            let mut from = Writer(Vec::new());
            from.family(HELD).execution(entity, incarnation.get(), *ordinal);
            behind(from.0)
        }
        Span::RowEntries(table) => {
            let mut from = Writer(Vec::new());
            from.table(table).byte(HISTORY);
            behind(from.0)
        }
        Span::TableSpecs(table) => {
            let mut from = Writer(Vec::new());
            from.table(table).byte(SPEC);
            behind(from.0)
        }
    }
}

/// A run of a table's index. The fields' bytes end where a value ends, so that their escaped beginnings have their
/// order.
fn index(span: &IndexSpan) -> (Vec<u8>, Vec<u8>) {
    let mut prefix = Writer(Vec::new());
    prefix.index(&span.table, span.index);
    let (_, end) = behind(prefix.0.clone());
    let beginning = |fields: &[u8]| {
        let mut out = Writer(prefix.0.clone());
        out.escaped(fields);
        out.0
    };
    let mut from = beginning(&span.from);
    let mut to = span.to.as_ref().map_or(end, |to| beginning(to));
    if let Some((fields, place, row)) = &span.after {
        let mut at = encode(&Key::RowIndex(span.table.clone(), span.index, fields.clone(), *place, row.clone()));
        if span.back {
            to = to.min(at);
        } else {
            at.push(0);
            from = from.max(at);
        }
    }
    let to = to.max(from.clone());
    (from, to)
}

/// All index entries of rows by store time.
pub(crate) fn rows_due() -> (Vec<u8>, Vec<u8>) {
    family(ROW_DUE)
}

/// All rows that executions have claimed and that are taken back.
pub(crate) fn rows_held() -> (Vec<u8>, Vec<u8>) {
    family(HELD)
}

/// The rows that executions of an entity have claimed, or one of them: what is taken back at its end, then what stays.
pub(crate) fn rows_claimed(entity: &EntityId, execution: Option<(u64, u64)>) -> [(Vec<u8>, Vec<u8>); 2] {
    [HELD, KEPT].map(|family| {
        let mut from = Writer(Vec::new());
        match execution {
            Some((incarnation, ordinal)) => from.family(family).execution(entity, incarnation, ordinal),
            None => from.family(family).entity(entity),
        };
        behind(from.0)
    })
}

/// All schedules.
pub(crate) fn schedules() -> (Vec<u8>, Vec<u8>) {
    family(SCHEDULE)
}

/// All index entries of schedules.
pub(crate) fn schedules_due() -> (Vec<u8>, Vec<u8>) {
    family(SCHEDULE_DUE)
}

/// All records of tables.
pub(crate) fn tables() -> (Vec<u8>, Vec<u8>) {
    family(TABLE)
}

/// Behind the last record of a table: where the next one begins.
pub(crate) fn behind_table(table: &TableName) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.table(table).byte(BEHIND);
    out.0
}

/// What became of a table's rows, newest first, from an entry downwards.
pub(crate) fn row_entries(table: &TableName, newest: u64) -> (Vec<u8>, Vec<u8>) {
    let mut prefix = Writer(Vec::new());
    prefix.table(table).byte(HISTORY);
    let (mut from, to) = behind(prefix.0);
    from.extend_from_slice(&(!newest).to_be_bytes());
    (from, to)
}

/// An incarnation's history from an entry downwards, newest first.
pub(crate) fn history(entity: &EntityId, incarnation: u64, newest: u64) -> (Vec<u8>, Vec<u8>) {
    let mut prefix = Writer(Vec::new());
    prefix.of(entity).byte(HISTORY).number(!incarnation);
    let (mut from, to) = behind(prefix.0);
    from.extend_from_slice(&(!newest).to_be_bytes());
    (from, to)
}

/// All index entries of store time.
pub(crate) fn due() -> (Vec<u8>, Vec<u8>) {
    family(DUE)
}

/// All timers.
pub(crate) fn timers() -> (Vec<u8>, Vec<u8>) {
    family(TIMER)
}

/// All open attempts, by session.
pub(crate) fn open() -> (Vec<u8>, Vec<u8>) {
    family(OPEN)
}

/// All first effects of lanes, by target.
pub(crate) fn outbox() -> (Vec<u8>, Vec<u8>) {
    family(OUTBOX)
}

/// Behind the last effect of a target: where the next target begins.
pub(crate) fn behind_target(machine: &MachineName, target: &Name) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.family(OUTBOX).text(machine.as_str()).text(target.as_str());
    behind(out.0).1
}

/// All effects in flight, by session.
pub(crate) fn flights() -> (Vec<u8>, Vec<u8>) {
    family(FLIGHT)
}

/// All index entries of leases.
pub(crate) fn lapses() -> (Vec<u8>, Vec<u8>) {
    family(LAPSE)
}

/// All records of leases whose names are not before this beginning, nor behind all that have it.
pub(crate) fn leases(beginning: &str) -> (Vec<u8>, Vec<u8>) {
    let mut from = Writer(Vec::new());
    from.family(LEASE).text(beginning);
    from.0.truncate(from.0.len().saturating_sub(2)); // without the end of the text
    behind(from.0)
}

/// Behind the last record of a lease: where the next one begins.
pub(crate) fn behind_lease(lease: &LeaseName) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.family(LEASE).text(lease.as_str()).byte(BEHIND);
    out.0
}

/// What became of a lease, newest first, from an entry downwards.
pub(crate) fn lease_entries(lease: &LeaseName, newest: u64) -> (Vec<u8>, Vec<u8>) {
    let mut prefix = Writer(Vec::new());
    prefix.family(LEASE).text(lease.as_str()).byte(HISTORY);
    let (mut from, to) = behind(prefix.0);
    from.extend_from_slice(&(!newest).to_be_bytes());
    (from, to)
}

/// All machines.
pub(crate) fn machines() -> (Vec<u8>, Vec<u8>) {
    family(MACHINE)
}

/// All records of all entities, or of one machine's.
pub(crate) fn entities(machine: Option<&MachineName>) -> (Vec<u8>, Vec<u8>) {
    match machine {
        None => family(ENTITY),
        Some(machine) => {
            let mut from = Writer(Vec::new());
            from.family(ENTITY).text(machine.as_str());
            behind(from.0)
        }
    }
}

/// Behind the last record of an entity: where the next one begins.
pub(crate) fn behind_entity(entity: &EntityId) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.of(entity).byte(BEHIND);
    out.0
}

/// Every incarnation's history of an entity, newest first.
pub(crate) fn histories(entity: &EntityId) -> (Vec<u8>, Vec<u8>) {
    let mut from = Writer(Vec::new());
    from.of(entity).byte(HISTORY);
    behind(from.0)
}

/// The family byte of a part.
const fn part_byte(part: Part) -> u8 {
    match part {
        Part::Desired => 1,
        Part::Data => 2,
        Part::Outputs => 3,
        Part::Cause => 4,
        Part::Held => 5,
        Part::Conditions => 6,
    }
}

fn family(byte: u8) -> (Vec<u8>, Vec<u8>) {
    (vec![byte], vec![byte.saturating_add(1)])
}

/// Keys with this prefix: `FF` begins no number that is given out, no text and no record of an entity.
fn behind(prefix: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let mut to = prefix.clone();
    to.extend_from_slice(&[BEHIND; 9]);
    (prefix, to)
}

struct Writer(Vec<u8>);

impl Writer {
    fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.push(byte);
        self
    }

    fn family(&mut self, byte: u8) -> &mut Self {
        self.byte(byte)
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// With the sign bit turned, so that times before 1970 sort before those after it.
    fn signed(&mut self, number: i64) -> &mut Self {
        self.number(number.cast_unsigned() ^ (1 << 63))
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.escaped(bytes);
        self.0.extend_from_slice(&[0, 1]);
        self
    }

    /// Without the end.
    fn escaped(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0.push(*byte);
            if *byte == 0 {
                self.0.push(0xFF);
            }
        }
    }

    fn table(&mut self, table: &TableName) -> &mut Self {
        self.family(TABLE).text(table.as_str())
    }

    fn index(&mut self, table: &TableName, index: u32) -> &mut Self {
        self.table(table).byte(INDEX).0.extend_from_slice(&index.to_be_bytes());
        self
    }

    fn place(&mut self, place: Place) -> &mut Self {
        self.number(place.seq).0.extend_from_slice(&place.n.to_be_bytes());
        self
    }

    fn entity(&mut self, entity: &EntityId) -> &mut Self {
        self.text(entity.machine.as_str()).text(entity.key.as_str())
    }

    fn execution(&mut self, entity: &EntityId, incarnation: u64, ordinal: u64) -> &mut Self {
        self.entity(entity).number(incarnation).number(ordinal)
    }

    fn of(&mut self, entity: &EntityId) -> &mut Self {
        self.family(ENTITY).entity(entity)
    }
}

struct Reader<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl Reader<'_> {
    fn bad(&self, expected: &str) -> BadKey {
        let at = self.all.len().saturating_sub(self.rest.len());
        BadKey(format!("expected {expected} at byte {at} of the key {:02x?}", self.all))
    }

    fn byte(&mut self) -> Result<u8, BadKey> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| self.bad("a byte"))?;
        self.rest = rest;
        Ok(*first)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], BadKey> {
        let (first, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.bad("a number"))?;
        self.rest = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, BadKey> {
        self.fixed().map(u64::from_be_bytes)
    }

    fn signed(&mut self) -> Result<i64, BadKey> {
        self.number().map(|number| (number ^ (1 << 63)).cast_signed())
    }

    fn name<T: FromStr>(&mut self) -> Result<T, BadKey> {
        let text = String::from_utf8(self.bytes()?).map_err(|_| self.bad("UTF-8"))?;
        text.parse().map_err(|_| self.bad("a well-formed name"))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, BadKey> {
        let mut bytes = Vec::new();
        loop {
            match (self.byte()?, self.rest.first()) {
                (0, Some(0xFF)) => bytes.push(0),
                (0, Some(1)) => break,
                (0, _) => return Err(self.bad("an escaped zero or the end of a text")),
                (byte, _) => {
                    bytes.push(byte);
                    continue;
                }
            }
            self.byte()?;
        }
        self.byte()?;
        Ok(bytes)
    }

    fn place(&mut self) -> Result<Place, BadKey> {
        Ok(Place { seq: self.number()?, n: u32::from_be_bytes(self.fixed()?) })
    }

    fn entity(&mut self) -> Result<EntityId, BadKey> {
        Ok(EntityId { machine: self.name()?, key: self.name()? })
    }
}
