//! Every refusal has a test, and the one that wins over another does.

use crate::build::{
    Mc, condition, create, doc, entity, event, event_of, machine, mutation, name, rest, stay, step, succeeded, to,
};
use crate::world::{Answered, World};
use interlock_kernel::command::{Change, Create, OnExisting, Outcome, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::{CONDITIONS_MAX, DOCUMENT_BYTES_MAX};
use interlock_kernel::machine::OnBusy;
use interlock_kernel::record::Expect;
use interlock_kernel::rejection::Code;
use interlock_kernel::view::Event;

/// A door: closed by a step, opened by it, taken down for good.
fn door() -> Mc {
    machine("door", "open")
        .event("close")
        .event("paint")
        .event("remove")
        .event_with("later", OnBusy::Queue, 60_000)
        .data(r#"{"oiled":true}"#)
        .state("open", rest().on("close", to("closing").when("data.oiled eq true")).on("remove", to("gone")))
        .state("closing", step("close").to(to("open").when("data.oiled eq true")).on("remove", stay()))
        .state("gone", succeeded())
}

fn open() -> (World, EntityId) {
    let (mut world, id) = World::of(door(), "door/front");
    world.rules.0.push((1, "event.close", "a number", |payload| payload.is_null() || payload.is_number()));
    world.rules.0.push((1, "data", "an object", serde_json::Value::is_object));
    world.rules.0.push((1, "desired", "an object", serde_json::Value::is_object));
    (world, id)
}

fn closing() -> (World, EntityId) {
    let (mut world, id) = open();
    world.send(&id, "close", "c1");
    (world, id)
}

/// The refusal's code; a late answer's too.
fn code(answered: &Answered) -> Code {
    match answered {
        Err(refused) => refused.code,
        Ok(Outcome::Answered { answer, .. }) => answer.rejection.as_ref().map(|refused| refused.code).unwrap(),
        Ok(other) => panic!("{other:?}"),
    }
}

fn huge() -> Doc {
    Doc::new("x".repeat(DOCUMENT_BYTES_MAX).into())
}

fn expecting(event: Event, expect: Expect) -> Event {
    Event { expect, ..event }
}

fn dry(world: &mut World, id: &EntityId) {
    let change = Change { data: Some(doc(r#"{"oiled":false}"#)), ..Change::default() };
    world.transition(id, "open", Change { set: vec![mutation("data.oiled = true")], ..change }).unwrap();
}

/// Where a code is refused from. A new code does not compile until it is named here.
fn example(wanted: Code) -> Result<Answered, &'static str> {
    let (mut world, id) = closing();
    Ok(match wanted {
        Code::Invalid => world.deliver(&id, event("clsoe", "c2")),
        Code::NotFound => world.deliver(&entity("door/back"), event("close", "c2")),
        Code::Denied => world.save(&id, Change { set: vec![mutation("desired.size = 1")], ..Change::default() }),
        Code::IdReused => world.deliver(&id, event_of("close", "c1", "7")),
        Code::Late => {
            world.deliver(&id, expecting(event("close", "c2"), Expect { visit: Some(1), ..Expect::default() }))
        }
        Code::Final => {
            world.ok(Verb::Kill { entity: id.clone(), reason: String::new() });
            world.run(Verb::Apply { entity: id, desired: doc("{}"), expect: None, checked: None })
        }
        Code::Fenced => {
            let claim = world.claim(&id);
            world.go(&id, "open");
            world.run(Verb::Transition(claim, name("open"), Box::default()))
        }
        Code::Busy => world.deliver(&id, event("close", "c2")),
        Code::Conflict => world.create(Create { on_existing: OnExisting::Fail, ..create("door/front") }),
        Code::NotAllowed => world.transition(&id, "opne", Change::default()),
        Code::Guard => {
            let dry = Change { data: Some(doc(r#"{"oiled":false}"#)), ..Change::default() };
            world.transition(&id, "open", dry)
        }
        Code::Limit => world.deliver(&id, Event { payload: Some(huge()), ..event("later", "c2") }),
        Code::Spent => return Err("the runtime: the handle of an attempt that moved is spent"),
        Code::Paused => return Err("no verb pauses yet"),
        Code::Require => return Err("requirements are staged on the handle, which is not built yet"),
        Code::Unavailable => return Err("the store"),
        Code::OutboxFull => crate::effects::full(),
    })
}

#[test]
fn every_code_is_refused_from_somewhere() {
    let mut elsewhere = Vec::new();
    for wanted in Code::ALL {
        match example(wanted) {
            Ok(answered) => assert_eq!(code(&answered), wanted, "{answered:?}"),
            Err(_) => elsewhere.push(wanted),
        }
    }
    assert_eq!(elsewhere, [Code::Spent, Code::Paused, Code::Require, Code::Unavailable]);
}

#[test]
fn codes_are_declared_in_order_of_precedence_and_named_once() {
    assert!(Code::ALL.is_sorted());
    let names: std::collections::BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names.len(), Code::ALL.len());
    for code in Code::STEP_ORDER {
        assert!(Code::ALL.contains(&code));
    }
}

type Case = (Code, Code, fn() -> Answered);

/// An event that breaks two rules at once hears of the first.
const EVENTS: [Case; 8] = [
    (Code::Invalid, Code::NotFound, || open().0.deliver(&entity("door/back"), event("clsoe", "c1"))),
    (Code::NotFound, Code::IdReused, || {
        let (mut world, id) = closing();
        world.go(&id, "open");
        world.ok(Verb::Delete(id.clone()));
        world.deliver(&id, event_of("close", "c1", "7"))
    }),
    (Code::IdReused, Code::Late, || {
        let (mut world, id) = closing();
        let past = Expect { visit: Some(1), ..Expect::default() };
        world.deliver(&id, expecting(event_of("close", "c1", "7"), past))
    }),
    (Code::Late, Code::Busy, || {
        let (mut world, id) = closing();
        let past = Expect { visit: Some(1), ..Expect::default() };
        world.deliver(&id, expecting(event("close", "c2"), past))
    }),
    (Code::Busy, Code::Conflict, || {
        let (mut world, id) = closing();
        let other = Expect { version: Some(1), ..Expect::default() };
        world.deliver(&id, expecting(event("close", "c2"), other))
    }),
    (Code::Conflict, Code::NotAllowed, || {
        let (mut world, id) = open();
        let other = Expect { version: Some(9), ..Expect::default() };
        world.deliver(&id, expecting(event("paint", "c2"), other))
    }),
    (Code::NotAllowed, Code::Limit, || {
        let (mut world, id) = open();
        world.deliver(&id, Event { payload: Some(huge()), ..event("paint", "c2") })
    }),
    (Code::Guard, Code::Limit, || {
        let mut world = World::with(door().data("{}"));
        world.create(create("door/front")).unwrap();
        world.deliver(&entity("door/front"), Event { payload: Some(huge()), ..event("close", "c2") })
    }),
];

/// A step that breaks two rules at once hears of the first.
const STEPS: [Case; 7] = [
    (Code::Fenced, Code::Conflict, || {
        let (mut world, id) = closing();
        let zombie = world.claim(&id);
        world.reboot();
        world.send(&id, "remove", "r1"); // the version moves too
        world.run(Verb::Transition(zombie, name("open"), Box::default()))
    }),
    (Code::Conflict, Code::NotAllowed, || {
        let (mut world, id) = closing();
        world.send(&id, "remove", "r1");
        world.transition(&id, "nowhere", Change::default())
    }),
    (Code::NotAllowed, Code::Denied, || {
        let (mut world, id) = closing();
        world.transition(&id, "nowhere", Change { set: vec![mutation("desired.x = 1")], ..Change::default() })
    }),
    (Code::Guard, Code::Denied, || {
        let (mut world, id) = closing();
        let dry = Change { data: Some(doc(r#"{"oiled":false}"#)), ..Change::default() };
        world.transition(&id, "open", dry.clone()).unwrap_err();
        let conditions = vec![condition("interlock/execution", "fine")];
        world.transition(&id, "open", Change { conditions, ..dry })
    }),
    (Code::Denied, Code::Invalid, || {
        let (mut world, id) = closing();
        let set = vec![mutation("event.x = 1")];
        world.save(&id, Change { data: Some(doc("7")), set, ..Change::default() })
    }),
    (Code::Invalid, Code::Limit, || {
        let (mut world, id) = closing();
        let conditions = (0..=CONDITIONS_MAX).map(|number| condition(&format!("c{number}"), "true")).collect();
        world.save(&id, Change { data: Some(doc("7")), outputs: Some(huge()), conditions, ..Change::default() })
    }),
    (Code::Limit, Code::OutboxFull, crate::effects::full_and_too_many),
];

#[test]
fn events_are_refused_in_the_documented_order() {
    for (first, second, both) in EVENTS {
        assert_eq!(code(&both()), first, "before {second}");
    }
    // Nothing is left out: what the kernel refuses an event with, in a chain without gaps. An event that
    // its state does not take has no guard there, so those two never meet.
    let order = [
        Code::Invalid,
        Code::NotFound,
        Code::IdReused,
        Code::Late,
        Code::Busy,
        Code::Conflict,
        Code::NotAllowed,
        Code::Limit,
    ];
    let pairs: Vec<_> = EVENTS.iter().map(|(first, second, _)| (*first, *second)).collect();
    let chain: Vec<_> = order.windows(2).map(|pair| (pair[0], pair[1])).chain([(Code::Guard, Code::Limit)]).collect();
    assert_eq!(pairs, chain);
    assert!(order.is_sorted());
}

#[test]
fn steps_are_refused_in_the_documented_order() {
    for (first, second, both) in STEPS {
        assert_eq!(code(&both()), first, "before {second}");
    }
    let rank = |code| Code::STEP_ORDER.iter().position(|known| *known == code).unwrap();
    let not_here = [Code::Spent, Code::Require];
    let kernel: Vec<_> = Code::STEP_ORDER.into_iter().filter(|code| !not_here.contains(code)).collect();
    for (first, second, _) in STEPS {
        assert!(rank(first) < rank(second));
    }
    let named = |code| STEPS.iter().any(|(first, second, _)| *first == code || *second == code);
    assert!(kernel.into_iter().all(named));
}

#[test]
fn a_remembered_answer_wins_over_late_busy_and_guard() {
    let (mut world, id) = closing();
    dry(&mut world, &id);
    world.ok(Verb::Kill { entity: id.clone(), reason: String::new() });
    let again = world.deliver(&id, event("close", "c1"));
    assert!(matches!(again, Ok(Outcome::Answered { replayed: true, .. })), "{again:?}");
}

#[test]
fn a_refusal_carries_what_would_have_been_accepted_and_what_was_there() {
    let (mut world, id) = closing();
    let got = [
        world.deliver(&id, event("clsoe", "c2")).unwrap_err().to_string(),
        world.deliver(&id, event_of("close", "c2", r#""x""#)).unwrap_err().to_string(),
        world.transition(&id, "opne", Change::default()).unwrap_err().to_string(),
        world.transition(&id, "open", Change { data: Some(doc("{}")), ..Change::default() }).unwrap_err().to_string(),
        world.save(&id, Change { data: Some(doc("[]")), ..Change::default() }).unwrap_err().to_string(),
        world.save(&id, Change { set: vec![mutation("desired.x = 1")], ..Change::default() }).unwrap_err().to_string(),
    ];
    expect_test::expect![[r#"
        invalid: door event: expected one of close, later, paint, remove, got clsoe (did you mean close?)
        invalid: event.close: expected a number, got "x"
        not_allowed: door/front: expected open, got opne (did you mean open?)
        guard: door/front: expected data.oiled eq true, got nothing
        invalid: data: expected an object, got []
        denied: desired.x: expected a field of data or outputs, got desired.x (clients write desired)"#]]
    .assert_eq(&got.join("\n"));
}

#[test]
fn a_refusal_is_never_longer_than_a_record() {
    let mut world = World::with(
        machine("m", "a").event("go").state("a", rest().on("go", to("b").when("event eq 1"))).state("b", rest()),
    );
    world.create(create("m/k")).unwrap();
    world
        .rules
        .0
        .push((1, "event.go", "a short text", |payload| payload.as_str().is_none_or(|text| text.len() < 250_000)));
    for length in [200_000, 251_000] {
        let payload = Some(Doc::new("ü".repeat(length / 2).into()));
        let refused = world.deliver(&entity("m/k"), Event { payload, ..event("go", "g") }).unwrap_err();
        assert!(refused.to_string().len() < 4_000);
    }
}
