//! Stored records: what comes back is what was written; bytes that are no record are refused, and what they decode
//! to keeps to the rules of its own constructors.
//!
//! An input is a letter, which says where the record stands, and the record's bytes. Records of every kind are made
//! by playing the scripts of `decide`, since only the kernel mints the numbers in them.

use super::{decide, holds};
use crate::target::{Broken, Seen, Target};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::machine::{FailurePath, Machine, Move};
use interlock_kernel::record::{Answer, Entry, Key, Part, Place, Record, What};
use interlock_kernel::rejection::Rejection;
use interlock_kernel::rows::RowAnswer;
use interlock_kernel::time::{StoreTime, WallTime};
use interlock_kernel::value::{Mutation, Value};
use interlock_kernel::{Incarnation, SessionId};

/// See the module.
pub(crate) struct Records;

/// The letter of a kind of record.
fn letter(key: &Key) -> u8 {
    match key {
        Key::Machine(_) => b'M',
        Key::Revision(..) => b'R',
        Key::Head(_) => b'H',
        Key::Part(_, Part::Conditions) => b'C',
        Key::Part(..) => b'D',
        Key::Inbox(..) => b'I',
        Key::History(..) => b'E',
        Key::Dedup(..) => b'U',
        Key::Due(..) => b'1',
        Key::Timer(..) => b'2',
        Key::Open(..) => b'3',
        Key::Session(_) => b'S',
        Key::Expiry(..) => b'X',
        Key::Secret => b'K',
        Key::Lease(_) => b'L',
        Key::LeaseEntry(..) => b'F',
        Key::Lapse(..) => b'4',
        Key::Effect(..) => b'A',
        Key::Outbox(..) => b'5',
        Key::Flight(..) => b'6',
        Key::Table(_) => b'T',
        Key::TableSpec(..) => b'P',
        Key::Row(..) => b'W',
        Key::RowIndex(..) => b'7',
        Key::RowDue(..) => b'8',
        Key::RowHeld(..) => b'9',
        Key::RowKept(..) => b'G',
        Key::RowEntry(..) => b'V',
        Key::Memo(..) => b'N',
        Key::Answered(_) => b'O',
        Key::Schedule(_) => b'J',
        Key::ScheduleDue(..) => b'0',
    }
}

/// Where a record of that letter stands.
fn key(letter: u8) -> Option<Key> {
    let entity = || "m/k".parse().ok();
    Some(match letter {
        b'M' => Key::Machine("m".parse().ok()?),
        b'R' => Key::Revision("m".parse().ok()?, 1),
        b'H' => Key::Head(entity()?),
        b'C' => Key::Part(entity()?, Part::Conditions),
        b'D' => Key::Part(entity()?, Part::Data),
        b'I' => Key::Inbox(entity()?, 1),
        b'E' => Key::History(entity()?, Incarnation::stored(1), 1),
        b'U' => Key::Dedup(entity()?, "e".parse().ok()?),
        b'1' => Key::Due(StoreTime(1), entity()?),
        b'2' => Key::Timer(WallTime(1), entity()?, "t".parse().ok()?),
        b'3' => Key::Open(SessionId::stored(1), entity()?),
        b'T' => Key::Table("t".parse().ok()?),
        b'P' => Key::TableSpec("t".parse().ok()?, 1),
        b'W' => Key::Row("t".parse().ok()?, "k".parse().ok()?),
        b'7' => Key::RowIndex("t".parse().ok()?, 0, Vec::new(), Place { seq: 1, n: 1 }, "k".parse().ok()?),
        b'8' => Key::RowDue(StoreTime(1), "t".parse().ok()?, "k".parse().ok()?),
        b'9' => Key::RowHeld(entity()?, Incarnation::stored(1), 1, "t".parse().ok()?, "k".parse().ok()?),
        b'G' => Key::RowKept(entity()?, Incarnation::stored(1), 1, "t".parse().ok()?, "k".parse().ok()?),
        b'V' => Key::RowEntry("t".parse().ok()?, 1),
        b'N' => Key::Memo(entity()?, Digest([0; 32])),
        b'O' => Key::Answered("e".parse().ok()?),
        b'J' => Key::Schedule("s".parse().ok()?),
        b'0' => Key::ScheduleDue(WallTime(1), "s".parse().ok()?),
        b'S' => Key::Session(SessionId::stored(1)),
        b'X' => Key::Expiry(StoreTime(1), 1, 1),
        b'K' => Key::Secret,
        b'L' => Key::Lease("l".parse().ok()?),
        b'F' => Key::LeaseEntry("l".parse().ok()?, 1),
        b'A' => Key::Effect(entity()?, 1),
        b'5' => Key::Outbox("m".parse().ok()?, "t".parse().ok()?, StoreTime(1), entity()?, 1),
        b'6' => Key::Flight(SessionId::stored(1), entity()?, 1),
        b'4' => Key::Lapse(StoreTime(1), "l".parse().ok()?),
        _ => return None,
    })
}

impl Target for Records {
    fn name(&self) -> &'static str {
        "records"
    }

    fn words(&self) -> &'static str {
        "\
         \u{1}¦\u{2}¦\u{0}¦\u{7f}¦{\"a\": 1}¦[1,  2]¦data.x¦local¦1e5¦\u{0}\u{0}\u{0}"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let mut all: Vec<Vec<u8>> = decide::played()
            .into_iter()
            .map(|(key, record)| [vec![letter(&key)], record.encode(&key)].concat())
            .collect();
        all.sort();
        all.dedup();
        all
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let mut seen = Seen::default();
        let Some((letter, bytes)) = input.split_first() else { return Ok(seen) };
        let Some(key) = key(*letter) else { return Ok(seen) };
        match Record::decode(&key, bytes) {
            Ok(record) => {
                let written = record.encode(&key);
                let read = Record::decode(&key, &written).map_err(|corrupt| format!("{corrupt}: {record:?}"))?;
                holds!(read.encode(&key) == written, "it does not come back: {record:?}, {read:?}");
                // A float that is no number equals nothing, itself not even.
                let odd = format!("{record:?}").contains("NaN");
                holds!(odd || read == record, "another record comes back: {record:?}, {read:?}");
                for doc in documents(&record) {
                    sound(doc)?;
                }
                seen.note(&(letter, "a record"));
                seen.size("length", written.len());
            }
            Err(corrupt) => {
                holds!(!corrupt.expected.is_empty() && corrupt.got.len() < 2_000, "{} bytes", corrupt.got.len());
                seen.note(letter);
                seen.say(&corrupt.to_string());
            }
        }
        Ok(seen)
    }
}

/// A document as its constructors make it.
fn sound(doc: &Doc) -> Result<(), Broken> {
    let again = Doc::new(doc.value().clone());
    holds!(again.text() == doc.text(), "not the canonical text {again}: {doc}");
    let parsed = Doc::parse(doc.text());
    holds!(parsed.as_ref() == Ok(doc), "no document of its own text: {doc}: {parsed:?}");
    Ok(())
}

/// Every document in a record.
fn documents(record: &Record) -> Vec<&Doc> {
    match record {
        Record::Doc(doc) => vec![doc],
        Record::Revision(revision) => of_machine(&revision.machine),
        Record::Queued(queued) => queued.payload.iter().collect(),
        Record::Dedup(dedup) => of_answer(&dedup.answer),
        Record::Entry(entry) => of_entry(entry),
        Record::Effect(effect) => effect.body.iter().collect(),
        Record::Row(row) => vec![&row.value],
        Record::TableSpec(spec) => spec.table.schema.iter().chain([&spec.table.claim.held]).collect(),
        Record::Memo(memo) => memo.answers.iter().flat_map(of_rows).collect(),
        Record::Schedule(record) => {
            let create = record.schedule.create.iter().flat_map(|create| &create.desired);
            record.schedule.payload.iter().chain(create).collect()
        }
        Record::Machine(_)
        | Record::Table(_)
        | Record::RowEntry(_)
        | Record::Head(_)
        | Record::Conditions(_)
        | Record::Mark
        | Record::Session(_)
        | Record::Expires(_)
        | Record::Lease(_)
        | Record::LeaseEntry(_)
        | Record::Secret(_) => Vec::new(),
    }
}

fn of_rows(answer: &RowAnswer) -> Vec<&Doc> {
    match answer {
        RowAnswer::Got { row, .. } | RowAnswer::Updated { row, .. } => row.iter().map(|row| &row.value).collect(),
        RowAnswer::Put { row, .. } | RowAnswer::Upserted { row, .. } => vec![&row.value],
        RowAnswer::Claimed { rows, .. } => rows.iter().map(|row| &row.value).collect(),
        RowAnswer::Deleted { .. } => Vec::new(),
    }
}

fn of_answer(answer: &Answer) -> Vec<&Doc> {
    answer.rejection.iter().flat_map(of_rejection).collect()
}

fn of_rejection(rejection: &Rejection) -> Option<&Doc> {
    rejection.detail.as_ref()
}

fn of_entry(entry: &Entry) -> Vec<&Doc> {
    match &entry.what {
        What::Refused(_, rejection) => of_rejection(rejection).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn of_machine(machine: &Machine) -> Vec<&Doc> {
    let contracts = [&machine.desired, &machine.data, &machine.outputs];
    let of_contracts = contracts.into_iter().flat_map(|contract| contract.schema.iter().chain(&contract.default));
    let of_events = machine.events.values().filter_map(|event| event.schema.as_ref());
    let states = machine.states.values();
    let moves = states.clone().flat_map(|state| {
        let timers = state.after.iter().map(|timer| &timer.then);
        state.to.iter().chain(state.on.values().flatten()).chain(timers)
    });
    let paths = states.flat_map(|state| [&state.on_permanent, &state.on_exhausted]).flat_map(|path| match path {
        FailurePath::Park => &[],
        FailurePath::To { set, .. } => set.as_slice(),
    });
    of_contracts.chain(of_events).chain(moves.flat_map(of_move)).chain(paths.filter_map(of_mutation)).collect()
}

fn of_move(one: &Move) -> Vec<&Doc> {
    let guards = one.guard.any.iter().flatten().filter_map(|one| of_value(&one.value));
    guards.chain(one.set.iter().filter_map(of_mutation)).collect()
}

fn of_mutation(one: &Mutation) -> Option<&Doc> {
    of_value(&one.value)
}

fn of_value(value: &Value) -> Option<&Doc> {
    match value {
        Value::Json(doc) => Some(doc),
        Value::From(_) => None,
    }
}
