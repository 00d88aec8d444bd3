//! Golden bytes of each kind of record, format version 1: a store written today is read tomorrow.
//! If this fails, the format has changed: raise `RECORD_VERSION` and keep reading version 1.

use crate::build::{condition, create, doc, entity, event_of, mutation};
use crate::flagship::resource;
use crate::semantics::job;
use crate::world::World;
use expect_test::expect_file;
use interlock_kernel::command::{Change, Create, OnExisting, Verb};
use interlock_kernel::record::{Key, Part, RECORD_VERSION, Record};
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
        Key::Due(..) | Key::Timer(..) | Key::Open(..) => "index",
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

#[test]
fn records_of_format_1_have_these_bytes() {
    assert_eq!(RECORD_VERSION, 1);
    let world = rich();
    let mut golden = String::new();
    let mut kinds = BTreeMap::new();
    for (key, bytes) in world.records.bytes() {
        assert_eq!(bytes[1], RECORD_VERSION);
        kinds.insert(kind(key), bytes[0]);
        let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let _ = writeln!(golden, "{key:?}\n  {hex}");
    }
    assert_eq!(kinds.len(), 12, "{kinds:?}");
    let numbers: std::collections::BTreeSet<_> = kinds.values().collect();
    assert_eq!(numbers.len(), 12, "each kind has its own number");
    expect_file!["golden/format-1.txt"].assert_eq(&golden);
}

#[test]
fn bytes_that_are_not_the_record_are_refused_by_name() {
    let world = rich();
    for (key, bytes) in world.records.bytes() {
        let decode = |bytes: &[u8]| Record::decode(key, bytes);
        assert!(decode(bytes).is_ok());
        let error = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
        assert!(error(&[]).contains("0 bytes"));
        assert!(error(&[bytes[0], RECORD_VERSION + 1]).contains("format 2"));
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
    let bytes = [&[5, RECORD_VERSION, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let read = Record::decode(&key, &bytes).unwrap();
    assert_eq!(read, Record::Doc(doc(text)));
    let Record::Doc(read) = read else { panic!("{read:?}") };
    assert_eq!((read.text(), read.digest()), (r#"{"a":[2],"b":1}"#, doc(text).digest()));
}
