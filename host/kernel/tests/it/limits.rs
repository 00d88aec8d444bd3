//! Every bound at its value and one above: accepted, then refused or cut by name.

use crate::build::{condition, create, doc, entity, event, mutation, name};
use crate::semantics::{idle, working};
use crate::world::{Answered, World};
use interlock_kernel::command::{Change, Create, Outcome, Verb};
use interlock_kernel::doc::{BadDoc, Doc};
use interlock_kernel::ids::{EntityKey, EventId, MachineName, nearest};
use interlock_kernel::limits::*;
use interlock_kernel::rejection::Code;
use interlock_kernel::value::{Mutation, Operator, Path, Source, parse_ms};
use interlock_kernel::view::Event;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn of_bytes(bytes: usize) -> Doc {
    Doc::new(Value::String("x".repeat(bytes - 2)))
}

fn deep(levels: usize) -> Doc {
    Doc::new((0..levels).fold(json!(1), |inside, _| json!([inside])))
}

fn labels(count: usize, bytes: usize) -> Create {
    let labels: BTreeMap<_, _> = (0..count).map(|number| (format!("l{number}"), "v".repeat(bytes))).collect();
    Create { labels, ..create("job/b") }
}

fn create_with(desired: Doc) -> Answered {
    idle().0.create(Create { desired: Some(desired), ..create("job/b") })
}

fn saved(change: Change) -> Answered {
    let (mut world, id) = working();
    world.save(&id, change)
}

fn conditions(count: usize) -> Change {
    let conditions = (0..count).map(|number| condition(&format!("c{number}"), "true")).collect();
    Change { conditions, ..Change::default() }
}

fn mutations(count: usize) -> Change {
    Change { set: (0..count).map(|_| mutation("data.n += 1")).collect(), ..Change::default() }
}

fn delivered(payload: Doc) -> Answered {
    let (mut world, id) = idle();
    world.deliver(&id, Event { payload: Some(payload), ..event("note", "n1") })
}

fn queued(count: usize) -> Answered {
    let (mut world, id) = working();
    world.unchecked = true;
    for number in 1..count {
        world.send(&id, "later", &format!("l{number}"));
    }
    world.deliver(&id, event("later", "last"))
}

fn saves(count: usize) -> Answered {
    let (mut world, id) = working();
    world.unchecked = true;
    for _ in 1..count {
        world.save(&id, Change::default()).unwrap();
    }
    world.save(&id, Change::default())
}

/// A bound, its name in the refusal, its value, and what is tried with a size.
type Bound = (&'static str, usize, fn(usize) -> Answered);

const BOUNDS: [Bound; 15] = [
    ("document_bytes_max", DOCUMENT_BYTES_MAX, |bytes| create_with(of_bytes(bytes))),
    ("document_bytes_max", DOCUMENT_BYTES_MAX, |bytes| delivered(of_bytes(bytes))),
    ("document_bytes_max", DOCUMENT_BYTES_MAX, |bytes| {
        saved(Change { data: Some(of_bytes(bytes)), ..Change::default() })
    }),
    ("document_bytes_max", DOCUMENT_BYTES_MAX, |bytes| {
        saved(Change { outputs: Some(of_bytes(bytes)), ..Change::default() })
    }),
    ("document_bytes_max", DOCUMENT_BYTES_MAX, |bytes| {
        let (mut world, entity) = idle();
        world.run(Verb::Apply { entity, desired: of_bytes(bytes), expect: None, checked: None })
    }),
    ("depth_max", DEPTH_MAX, |levels| create_with(deep(levels))),
    ("depth_max", DEPTH_MAX, |levels| saved(Change { data: Some(deep(levels)), ..Change::default() })),
    ("depth_max", DEPTH_MAX, |levels| {
        let set: Mutation = mutation(&format!("data.a.b = {}", deep(levels - 2)));
        saved(Change { set: vec![set], ..Change::default() })
    }),
    ("labels_max", LABELS_MAX, |count| idle().0.create(labels(count, 1))),
    ("label_bytes_max", LABEL_BYTES_MAX, |bytes| idle().0.create(labels(1, bytes))),
    ("conditions_max", CONDITIONS_MAX, |count| saved(conditions(count))),
    ("condition_bytes_max", CONDITION_BYTES_MAX, |bytes| {
        saved(Change { conditions: vec![condition(&"c".repeat(bytes), "true")], ..Change::default() })
    }),
    ("mutations_max", MUTATIONS_MAX, |count| saved(mutations(count))),
    ("inbox_max", INBOX_MAX as usize, queued),
    ("saves_max", SAVES_MAX as usize, saves),
];

#[test]
fn every_bound_holds_at_its_value_and_refuses_one_more() {
    for (bound, max, tried) in BOUNDS {
        let at = tried(max);
        assert!(at.is_ok(), "{bound} at {max}: {at:?}");
        let refused = tried(max + 1).expect_err(bound);
        assert_eq!(refused.code, Code::Limit, "{bound}: {refused}");
        assert!(refused.expected.contains(bound) && refused.expected.contains(&max.to_string()), "{refused}");
    }
}

#[test]
fn a_full_inbox_is_worth_another_try() {
    assert!(queued(INBOX_MAX as usize + 1).unwrap_err().retryable);
    assert!(!saves(SAVES_MAX as usize + 1).unwrap_err().retryable);
}

#[test]
fn names_are_bounded_in_bytes() {
    let text = |bytes: usize| "k".repeat(bytes);
    assert!(text(KEY_BYTES_MAX).parse::<EntityKey>().is_ok() && text(KEY_BYTES_MAX + 1).parse::<EntityKey>().is_err());
    let event_id = |bytes| text(bytes).parse::<EventId>();
    assert!(event_id(EVENT_ID_BYTES_MAX).is_ok() && event_id(EVENT_ID_BYTES_MAX + 1).is_err());
    let machine = |bytes| text(bytes).parse::<MachineName>();
    assert!(machine(NAME_BYTES_MAX).is_ok() && machine(NAME_BYTES_MAX + 1).is_err());
    assert!("a-1".parse::<MachineName>().is_ok());
    let expected = |bad: Result<(), interlock_kernel::ids::BadName>| bad.unwrap_err().expected;
    assert_eq!(
        [expected("a@b".parse::<EntityKey>().map(drop)), expected("\t".parse::<EventId>().map(drop))],
        [
            "1 to 200 bytes without control characters or ['@']".to_owned(),
            "1 to 200 bytes without control characters".to_owned()
        ]
    );
    let wide = "ü".repeat(KEY_BYTES_MAX / 2);
    assert!(wide.parse::<EntityKey>().is_ok() && format!("{wide}k").parse::<EntityKey>().is_err());
}

#[test]
fn a_name_is_offered_only_if_it_is_near() {
    use interlock_kernel::ids::nearest;
    let valid = ["resize", "run", "stop"];
    for (got, near) in [
        ("rezise", Some("resize")),
        ("resi", Some("resize")),
        ("resizeeee", Some("resize")),
        ("rsi", None),
        ("r", None),
        ("ru", Some("run")),
        ("tops", None),
        ("nothing", None),
    ] {
        assert_eq!(nearest(got, valid), near, "{got}");
    }
}

#[test]
fn a_text_is_bounded_before_it_is_parsed_and_as_it_is_stored() {
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    assert!(Doc::parse(&text(DOCUMENT_BYTES_MAX)).is_ok());
    assert_eq!(Doc::parse(&text(DOCUMENT_BYTES_MAX + 1)), Err(BadDoc::Size(DOCUMENT_BYTES_MAX + 1)));
    let spaced = format!("{}1", " ".repeat(DOCUMENT_BYTES_MAX + 10));
    assert_eq!(Doc::parse(&spaced).unwrap().text(), "1", "white space is not stored");
    assert!(Doc::parse(&format!("{}1", " ".repeat(2 * DOCUMENT_BYTES_MAX - 1))).is_ok());
    assert!(matches!(Doc::parse(&" ".repeat(2 * DOCUMENT_BYTES_MAX + 1)), Err(BadDoc::Size(_))));
    assert!(Doc::parse(deep(DEPTH_MAX).text()).is_ok() && Doc::parse(deep(DEPTH_MAX + 1).text()).is_err());
    assert_eq!(deep(DEPTH_MAX).depth(), DEPTH_MAX);
}

#[test]
fn a_path_is_bounded_so_that_no_step_nests_without_end() {
    let path = |segments: usize| format!("data{}", ".a".repeat(segments)).parse::<Path>();
    assert!(path(DEPTH_MAX).is_ok() && path(DEPTH_MAX + 1).is_err());
    assert!(format!("data{}", "[0]".repeat(DEPTH_MAX + 1)).parse::<Path>().is_err());
}

#[test]
fn a_document_that_a_step_nests_into_itself_stays_readable() {
    let (mut world, id) = working();
    world.unchecked = true;
    let nest = || Change { set: vec![mutation("data.again = data")], ..Change::default() };
    let refused = (0..2 * DEPTH_MAX).find_map(|_| world.save(&id, nest()).err()).unwrap();
    assert_eq!(refused.code, Code::Limit);
    world.unchecked = false;
    world.save(&id, Change::default()).unwrap();
}

/// A document that is put into itself doubles: the change is refused at the field where that passes a bound, not when
/// all of it is done.
#[test]
fn a_change_that_puts_a_document_into_itself_is_refused_where_it_passes_a_bound() {
    let large = Some(of_bytes(DOCUMENT_BYTES_MAX / 2)).map(|text| Doc::new(json!({ "x": text.value() })));
    let way = format!("data{}", ".a".repeat(DEPTH_MAX - 1));
    let deeper = format!("{way} = data");
    for (data, set, subject) in [
        (large.clone(), ["data.a = data", "data.b = data", "data.c = data"], "data.b"),
        (large, ["data.all << data", "data.more << data", "data.more << 1"], "data.more"),
        (Some(doc("{}")), [&deeper, &deeper, &deeper], way.as_str()),
    ] {
        let set = set.map(mutation).to_vec();
        let refused = saved(Change { data, set, ..Change::default() }).unwrap_err();
        assert_eq!((refused.code, refused.subject.as_str()), (Code::Limit, subject), "{refused}");
    }
}

#[test]
fn a_long_text_is_neither_compared_with_names_nor_repeated_whole() {
    let long = "data_".repeat(1_000);
    for said in [
        long.parse::<Path>().unwrap_err(),
        long.parse::<Source>().unwrap_err(),
        long.parse::<Operator>().unwrap_err(),
        format!("data.{long}[").parse::<Path>().unwrap_err(),
        format!("data[{}]", "9".repeat(1_000)).parse::<Path>().unwrap_err(),
        parse_ms(&long).unwrap_err(),
    ] {
        assert!(said.len() < 600, "{} bytes: {said}", said.len());
    }
    assert_eq!(nearest("dta", ["data"]), Some("data"));
    let as_long = |bytes: usize| "a".repeat(bytes);
    assert_eq!(nearest(&as_long(128), [as_long(127).as_str()]).map(str::len), Some(127));
    assert_eq!(nearest(&as_long(129), [as_long(128).as_str()]), None);
}

#[test]
fn appending_keeps_the_newest_up_to_its_bound() {
    let (mut world, id) = working();
    for number in 1..=5 {
        world.save(&id, Change { set: vec![mutation(&format!("data.log << {number}"))], ..Change::default() }).unwrap();
    }
    assert_eq!(world.data(&id), r#"{"log":[3,4,5],"notes":0,"runs":1}"#);
}

#[test]
fn no_bound_of_an_append_is_above_the_hosts() {
    use interlock_kernel::value::{Operation, Roots};
    let mut data = json!({ "log": vec![0; APPEND_MAX + 5] });
    let append = Mutation { operation: Operation::Append { max: 2 * APPEND_MAX }, ..mutation("data.log << 1") };
    append.apply(&mut data, &Roots::default()).unwrap();
    assert_eq!(data["log"].as_array().unwrap().len(), APPEND_MAX);
}

#[test]
fn conditions_are_merged_by_type_and_the_hosts_own_does_not_count() {
    let (mut world, id) = working();
    world.save(&id, conditions(CONDITIONS_MAX)).unwrap();
    world.end(&id, crate::world::permanent("burnt")).unwrap();
    assert_eq!(world.conditions(&id).len(), CONDITIONS_MAX + 1);
    world.send(&id, "run", "r2");
    world.pass(1_000);
    let change = Change { conditions: vec![condition("c1", "true"), condition("c2", "false")], ..Change::default() };
    world.save(&id, change).unwrap();
    let since = |kind: &str| world.conditions(&id).iter().find(|one| one.kind == kind).unwrap().since.0;
    assert_eq!((since("c1"), since("c2")), (world.wall - 1_000, world.wall), "since is the last change of the status");
    assert_eq!(world.save(&id, conditions(CONDITIONS_MAX + 1)).unwrap_err().code, Code::Limit);
}

#[test]
fn long_texts_of_conditions_are_cut() {
    let long = interlock_kernel::record::Condition {
        status: "s".repeat(5_000),
        reason: "r".repeat(5_000),
        message: "m".repeat(5_000),
        ..condition("c", "")
    };
    let (mut world, id) = working();
    world.save(&id, Change { conditions: vec![long], ..Change::default() }).unwrap();
    let kept = world.conditions(&id).remove(0);
    assert_eq!([kept.status.len(), kept.reason.len(), kept.message.len()], [TEXT_BYTES_MAX; 3]);
}

#[test]
fn documents_are_inline_in_history_up_to_a_bound() {
    let (mut world, id) = working();
    for (bytes, inline) in [(INLINE_BYTES_MAX, true), (INLINE_BYTES_MAX + 1, false)] {
        world.save(&id, Change { outputs: Some(of_bytes(bytes)), ..Change::default() }).unwrap();
        let changed = world.last_entry(&id).outputs.unwrap();
        assert_eq!((changed.inline.is_some(), changed.digest), (inline, Some(of_bytes(bytes).digest())));
    }
}

#[test]
fn the_largest_records_fit_the_stores_value_limit() {
    const VALUE_BYTES_MAX: usize = 256 * 1024;
    let key = "k".repeat(KEY_BYTES_MAX);
    let mut world = World::with(crate::semantics::job());
    let id = entity(&format!("job/{key}"));
    let labels = (0..LABELS_MAX).map(|number| (format!("{number:0256}"), "v".repeat(LABEL_BYTES_MAX))).collect();
    world.create(Create { labels, desired: Some(of_bytes(DOCUMENT_BYTES_MAX)), ..create(&id.to_string()) }).unwrap();
    world.send(&id, "run", "r1");
    let long = |number: usize| interlock_kernel::record::Condition {
        status: "s".repeat(TEXT_BYTES_MAX),
        reason: "r".repeat(TEXT_BYTES_MAX),
        message: "m".repeat(TEXT_BYTES_MAX),
        ..condition(&format!("{number:01024}"), "")
    };
    let all = (0..CONDITIONS_MAX).map(long).collect();
    let data = Some(of_bytes(DOCUMENT_BYTES_MAX));
    world.save(&id, Change { data: data.clone(), outputs: data, conditions: all, ..Change::default() }).unwrap();
    let payload = Some(of_bytes(DOCUMENT_BYTES_MAX));
    world.deliver(&id, Event { payload, ..event("later", &"e".repeat(EVENT_ID_BYTES_MAX)) }).unwrap();
    for (key, bytes) in world.records.bytes() {
        assert!(bytes.len() <= VALUE_BYTES_MAX, "{key:?}: {} bytes", bytes.len());
    }
}

#[test]
fn checked_documents_are_checked_again_only_by_another_revision() {
    let (mut world, id) = working();
    world.rules.0.push((1, "data", "never", |_| false));
    let data = || Change { data: Some(doc("7")), ..Change::default() };
    assert_eq!(world.save(&id, Change { checked: Some(2), ..data() }).unwrap_err().code, Code::Invalid);
    assert_eq!(world.save(&id, Change { checked: None, ..data() }).unwrap_err().code, Code::Invalid);
    let set = vec![mutation("data = 8")];
    let changed = Change { checked: Some(1), set, ..data() };
    assert_eq!(world.save(&id, changed).unwrap_err().code, Code::Invalid, "what is checked is not what is stored");
    assert!(matches!(world.save(&id, Change { checked: Some(1), ..data() }), Ok(Outcome::Written { .. })));
    assert_eq!(world.claim(&id).read, world.head(&id).version);
    assert_eq!(world.head(&id).state, name("working"));
}
