//! Golden bytes of each kind of record: a store written today is read tomorrow. If they change, the format has
//! changed: raise the format of that kind of key, and `RECORD_VERSION`, and keep reading every earlier one.

use crate::build::{condition, create, daily, doc, entity, event_of, machine, mutation, rest, stay, to};
use crate::effects::waiting;
use crate::flagship::resource;
use crate::leases::{ask, lease, pool};
use crate::semantics::job;
use crate::world::World;
use expect_test::expect_file;
use interlock_kernel::command::{Change, Create, OnExisting, Verb};
use interlock_kernel::record::{Key, Part, RECORD_VERSION, Record};
use interlock_kernel::timer::{Date, Due};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Every kind of key, so that a new one does not compile until its bytes are written down.
fn kind(key: &Key) -> &'static str {
    match key {
        Key::Machine(_) => "machine",
        Key::Revision(..) => "revision",
        Key::Head(_) => "head",
        Key::Part(_, Part::Conditions) => "conditions",
        Key::Part(_, Part::Desired | Part::Data | Part::Outputs | Part::Cause | Part::Held) => "document",
        Key::Inbox(..) => "inbox",
        Key::History(..) => "history",
        Key::Dedup(..) => "dedup",
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
        | Key::ScheduleDue(..) => "index",
        Key::Schedule(_) => "schedule",
        Key::Table(_) => "table",
        Key::TableSpec(..) => "table spec",
        Key::Row(..) => "row",
        Key::RowEntry(..) => "row entry",
        Key::Memo(..) | Key::Answered(_) => "memo",
        Key::Lease(_) => "lease",
        Key::LeaseEntry(..) => "lease entry",
        Key::Effect(..) => "effect",
        Key::Session(_) => "session",
        Key::Expiry(..) => "expiry",
        Key::Secret => "secret",
    }
}

/// A store in which every kind of record has most of its fields filled.
fn rich() -> World {
    let mut world = World::with(resource());
    world.deploy(job());
    world.deploy(job().with(|machine| machine.limits.execution_ms = Some(60_000)));
    let id = entity("resource/gpu-7");
    let labels = BTreeMap::from([("project".to_owned(), "atlas".to_owned())]);
    world.create(Create { labels, desired: Some(doc(r#"{"size":1}"#)), ..create("resource/gpu-7") }).unwrap();
    world.send_of(&id, "resize", "e1", r#"{"size":4}"#);
    world.go(&id, "provisioning");
    world.fire(&id, "provisioned");
    let conditions = vec![condition("ready", "false")];
    let outputs = Some(doc(r#"{"address":"10.0.0.4"}"#));
    let set = vec![mutation("data.checks += 1")];
    world.save(&id, Change { conditions, outputs, set, ..Change::default() }).unwrap();
    world.fail(&id, "slow");
    world
        .run(Verb::Apply { entity: id.clone(), desired: doc(r#"{"size":8}"#), expect: Some(1), checked: None })
        .unwrap();
    let other = entity("job/b");
    let event = Some(event_of("run", "r1", "7"));
    world.create(Create { event, ..create("job/b") }).unwrap();
    world.deliver(&other, event_of("later", "l1", "[1]")).unwrap();
    world.ok(Verb::Kill { entity: entity("job/b"), reason: "enough".to_owned() });
    world.create(Create { on_existing: OnExisting::Recreate, ..create("job/b") }).unwrap();
    world.send(&other, "run", "r2");
    world.send(&other, "later", "l2");
    world.reboot();
    world
}

/// Timers of every kind: what only format 2 can say.
fn timed() -> World {
    let ended = [Date { year: 2026, month: 12, day: 25 }];
    let timed = machine("timed", "idle")
        .data(r#"{"until":7000000}"#)
        .event("work")
        .state(
            "idle",
            rest()
                .after("nap", 60_000, stay().set("data.naps += 1"))
                .at("renew", "data.until", stay().set("data.renewed += 1"))
                .timer("daily", daily(&[]), stay().set("data.days += 1"))
                .timer("nudge", Due::Step, stay().set("data.nudges += 1"))
                .on("work", to("refused")),
        )
        .state("refused", rest().timer("business", daily(&ended), to("idle")));
    let mut world = World::with(timed);
    world.create(create("timed/a")).unwrap();
    world
}

/// Leases in every shape: what only format 3 can say. One is held by an execution, with another in line; one by a
/// client, with a client in line; one is kept for whoever lost it.
fn leased() -> World {
    let (mut world, a, b) = pool();
    world.ok(ask("plan", "one", 5_000).into());
    world.ok(ask("plan", "two", 5_000).waits(60_000).into());
    world.ok(ask("quota", "three", 5_000).delayed(60_000).into());
    world.send(&a, "go", "a1");
    world.send(&b, "go", "b1");
    world.pass(5_000);
    world.ok(Verb::Lapse(lease("quota")));
    world
}

/// A line for each key, and one for its bytes.
fn golden<'a>(records: impl Iterator<Item = (&'a Key, &'a [u8])>) -> String {
    let mut golden = String::new();
    for (key, bytes) in records {
        let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let _ = writeln!(golden, "{key:?}\n  {hex}");
    }
    golden
}

#[test]
fn every_kind_of_record_has_these_bytes() {
    assert_eq!(RECORD_VERSION, 4);
    let (world, leased, (asking, _), tabled) = (rich(), leased(), waiting(), crate::rows::every_record());
    let mut kinds = BTreeMap::new();
    for (key, bytes) in
        world.records.bytes().chain(leased.records.bytes()).chain(asking.records.bytes()).chain(tabled.records.bytes())
    {
        assert!((1..=RECORD_VERSION).contains(&bytes[1]));
        kinds.insert(kind(key), bytes[0]);
    }
    assert_eq!(kinds.len(), 20, "{kinds:?}");
    let numbers: std::collections::BTreeSet<_> = kinds.values().collect();
    assert_eq!(numbers.len(), 20, "each kind has its own number");
    expect_file!["golden/format-4.txt"].assert_eq(&golden(world.records.bytes()));
    expect_file!["golden/format-4-timers.txt"].assert_eq(&golden(timed().records.bytes()));
    expect_file!["golden/format-4-leases.txt"].assert_eq(&golden(leased.records.bytes()));
    expect_file!["golden/format-4-effects.txt"].assert_eq(&golden(asking.records.bytes()));
    expect_file!["golden/format-4-rows.txt"].assert_eq(&golden(tabled.records.bytes()));
}

/// Reads what an earlier build wrote of the same story, and compares what it means.
fn reads_as(world: &World, written: &str, format: u8) {
    let mut lines = written.lines();
    let mut newest = 0;
    for (key, today) in world.records.bytes() {
        assert_eq!(lines.next(), Some(format!("{key:?}").as_str()));
        let hex = lines.next().unwrap().trim();
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        newest = newest.max(bytes[1]);
        match (Record::decode(key, &bytes).unwrap(), Record::decode(key, today).unwrap()) {
            // These tests name a machine by its bytes, so its digest is another.
            (Record::Revision(then), Record::Revision(now)) => assert_eq!(then.machine, now.machine),
            (then, now) => assert_eq!(then, now),
        }
        // The chain of history is over bytes: they may not change under a hash that is stored.
        if matches!(key, Key::History(..)) {
            assert_eq!(bytes, today);
        }
        // What a later format has added is not there, and not half there.
        if bytes[1] < today[1] {
            assert!(Record::decode(key, &[bytes.as_slice(), &[0]].concat()).is_err(), "{key:?}");
            assert!(Record::decode(key, &bytes[..bytes.len() - 1]).is_err(), "{key:?}");
        }
    }
    assert_eq!((lines.next(), newest), (None, format));
}

#[test]
fn a_store_that_format_1_wrote_is_read_as_it_was_meant() {
    reads_as(&rich(), include_str!("golden/format-1.txt"), 1);
}

#[test]
fn a_store_that_format_2_wrote_is_read_as_it_was_meant() {
    reads_as(&rich(), include_str!("golden/format-2.txt"), 2);
    reads_as(&timed(), include_str!("golden/format-2-timers.txt"), 2);
}

#[test]
fn a_store_that_format_3_wrote_is_read_as_it_was_meant() {
    reads_as(&rich(), include_str!("golden/format-3.txt"), 3);
    reads_as(&timed(), include_str!("golden/format-3-timers.txt"), 3);
    reads_as(&leased(), include_str!("golden/format-3-leases.txt"), 3);
    reads_as(&waiting().0, include_str!("golden/format-3-effects.txt"), 3);
}

#[test]
fn a_timer_of_every_kind_is_read_back() {
    let world = timed();
    let head = world.head(&entity("timed/a"));
    let shown: Vec<_> = head.timers.iter().map(|set| (set.name.as_str(), set.due.0, set.rule.as_deref())).collect();
    let expected = [
        ("nap", world.wall + 60_000, None),
        ("renew", 7_000_000, Some("at data.until")),
        ("daily", 1_020_000, Some("every day, 09:00 UTC")),
    ];
    assert_eq!(shown, expected);
    let key = Key::Head(entity("timed/a"));
    let record = Record::Head(Box::new(head));
    let bytes = record.encode(&key);
    assert_eq!(Record::decode(&key, &bytes), Ok(record));
    for end in 2..bytes.len() {
        assert!(Record::decode(&key, &bytes[..end]).is_err(), "{end}");
    }
}

#[test]
fn bytes_that_are_not_the_record_are_refused_by_name() {
    let world = rich();
    for (key, bytes) in world.records.bytes() {
        let decode = |bytes: &[u8]| Record::decode(key, bytes);
        assert!(decode(bytes).is_ok());
        let error = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
        assert!(error(&[]).contains("0 bytes"));
        assert!(error(&[bytes[0], bytes[1] + 1]).contains(&format!("format {} (", bytes[1] + 1)));
        assert!(error(&[bytes[0], 0]).contains("format 0"));
        assert!(error(&[bytes[0] + 1, 1]).contains(&format!("kind {}", bytes[0] + 1)));
        assert!(error(&[bytes, [0].as_slice()].concat()).contains("1 bytes too many"), "{key:?}");
        for end in 2..bytes.len() {
            let _ = decode(&bytes[..end]); // an error or not, but never a panic
        }
    }
}

#[test]
fn a_stored_document_has_its_canonical_text_whatever_its_bytes_hold() {
    let key = Key::Part(entity("resource/gpu-7"), Part::Data);
    let text = r#"{"b": 1, "a": 1e2, "a": [ 2 ]}"#;
    let bytes = [&[5, 1, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let read = Record::decode(&key, &bytes).unwrap();
    assert_eq!(read, Record::Doc(doc(text)));
    let Record::Doc(read) = read else { panic!("{read:?}") };
    assert_eq!((read.text(), read.digest()), (r#"{"a":[2],"b":1}"#, doc(text).digest()));
}
