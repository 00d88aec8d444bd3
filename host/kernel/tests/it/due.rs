//! When timers are due: fixed as their state is entered, from what stands in the documents by then and from the
//! calendar; and what happens to a move whose timers cannot be set.

use crate::build::{Mc, St, create, daily, entity, event_of, machine, rest, stay, step, to, wait};
use crate::world::{World, permanent};
use interlock_kernel::command::{Change, Create, Outcome, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::{FactKind, Key, What};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::timer::{Date, Due};

const ENDED: [Date; 1] = [Date { year: 2026, month: 12, day: 25 }];

/// A rest state and one that waits until what `field` holds.
fn waits_until(field: &str) -> Mc {
    machine("job", "idle")
        .event("hold")
        .data(r#"{"wakes":0}"#)
        .state("idle", rest().on("hold", to("held").set("data.until = event.until")))
        .state("held", wait().at("wake", field, to("idle").set("data.wakes += 1")))
}

fn held(field: &str, payload: &str) -> (World, EntityId) {
    let (mut world, id) = World::of(waits_until(field), "job/a");
    world.deliver(&id, event_of("hold", "h1", payload)).unwrap();
    (world, id)
}

fn refused(field: &str, payload: &str) -> Rejection {
    let (mut world, id) = World::of(waits_until(field), "job/a");
    let before = world.head(&id);
    let refused = world.deliver(&id, event_of("hold", "h1", payload)).unwrap_err();
    assert_eq!(world.head(&id), before, "refused, and yet changed");
    assert!(!world.records.keys().any(|key| matches!(key, Key::Timer(..))));
    refused
}

#[test]
fn a_timer_at_a_field_is_due_at_what_stands_there_as_it_is_entered() {
    for (field, payload) in [
        ("data.until", r#"{"until":1500000}"#),
        ("data.until", r#"{"until":"at 1500000"}"#),
        ("event.until", r#"{"until":1500000}"#),
    ] {
        let (mut world, id) = held(field, payload);
        let timer = world.head(&id).timers[0].clone();
        assert_eq!((timer.due.0, timer.rule), (1_500_000, Some(format!("at {field}"))));
        world.fire(&id, "wake");
        assert_eq!(world.data(&id), r#"{"until":_,"wakes":1}"#.replace('_', &payload[9..payload.len() - 1]));
    }
}

#[test]
fn desired_too_can_say_when() {
    let machine =
        machine("job", "idle").state("idle", rest().at("start", "desired.start", stay().set("data.on = true")));
    let mut world = World::with(machine);
    let desired = Some(Doc::parse(r#"{"start":2000000}"#).unwrap());
    world.create(Create { desired, ..create("job/a") }).unwrap();
    assert_eq!(world.head(&entity("job/a")).timers[0].due.0, 2_000_000);
}

#[test]
fn an_instant_that_is_past_is_due_at_once() {
    let (mut world, id) = held("data.until", r#"{"until":5}"#);
    assert_eq!(world.head(&id).timers[0].due.0, 5);
    let due = world.head(&id).timers[0].due;
    world.ok(Verb::Fire { entity: id.clone(), timer: "wake".parse().unwrap(), due });
    assert_eq!(world.head(&id).state.as_str(), "idle");
}

#[test]
fn a_ring_of_past_instants_turns_once_a_second() {
    let ring = machine("job", "idle").data(r#"{"at":5}"#).state("idle", rest().at("again", "data.at", to("idle")));
    let (mut world, id) = World::of(ring, "job/a");
    assert_eq!(world.head(&id).timers[0].due.0, 5);
    for _ in 0..3 {
        world.fire(&id, "again");
        assert_eq!(world.head(&id).timers[0].due.0, world.wall + 1_000);
    }
}

#[test]
fn what_is_no_instant_refuses_the_move_with_path_expected_and_got() {
    for (field, payload, got) in [
        ("data.other", r#"{"until":5}"#, "nothing"),
        ("data.until", r#"{"until":true}"#, "true"),
        ("data.until", r#"{"until":1.5}"#, "1.5"),
        ("data.until", r#"{"until":18446744073709551615}"#, "18446744073709551615"),
        ("data.until", r#"{"until":"tomorrow"}"#, "\"tomorrow\""),
        ("desired.until", r#"{"until":5}"#, "nothing"),
    ] {
        let refused = refused(field, payload);
        let expected = "when timer wake of held is due: RFC 3339 with an offset, or ms since 1970";
        assert_eq!((refused.code, refused.subject.as_str()), (Code::Invalid, field));
        assert_eq!((refused.expected.as_str(), refused.got.as_str()), (expected, got));
    }
}

#[test]
fn a_calendar_rule_is_asked_as_its_state_is_entered_and_never_again() {
    let (mut world, id) = World::of(machine("job", "idle").state("idle", calendar(&[])), "job/a");
    let timer = world.head(&id).timers[0].clone();
    assert_eq!((timer.due.0, timer.rule.as_deref()), (1_020_000, Some("every day, 09:00 UTC")));
    world.pass(500_000);
    world.reboot();
    assert_eq!(world.head(&id).timers, [timer], "downtime counts");
    world.fire(&id, "daily");
    assert_eq!(world.head(&id).timers[0].due.0, (world.wall / 60_000 + 1) * 60_000);
}

fn calendar(holidays: &[Date]) -> St {
    rest().timer("daily", daily(holidays), to("idle").set("data.days += 1"))
}

#[test]
fn a_rule_that_says_nothing_refuses_the_move_by_name() {
    let mut world = World::with(machine("job", "idle").state("idle", calendar(&ENDED)));
    let refused = world.create(create("job/a")).unwrap_err();
    assert_eq!((refused.code, refused.subject.as_str()), (Code::Invalid, "timer daily of idle"));
    assert_eq!(refused.expected, "holidays of this year");
    assert_eq!(refused.got, "a list that ends on 2026-12-25");
    assert!(world.heads().is_empty());
}

/// A step that enters a state whose timer reads data, as its failure does.
fn stepping() -> Mc {
    machine("job", "idle")
        .event("run")
        .state("idle", rest().on("run", to("working")))
        .state("working", step("work").to(to("held")).deadline(60_000).on_permanent(to("held")))
        .state("held", wait().at("wake", "data.until", to("idle")))
}

#[test]
fn a_steps_transition_is_judged_with_what_it_proposes() {
    let (mut world, id) = World::of(stepping(), "job/a");
    world.send(&id, "run", "r1");
    let refused = world.transition(&id, "held", Change::default()).unwrap_err();
    assert_eq!(
        (refused.code, refused.subject.as_str(), refused.got.as_str()),
        (Code::Invalid, "data.until", "nothing")
    );
    // The attempt goes on, and may say when.
    let data = Some(Doc::parse(r#"{"until":9000000}"#).unwrap());
    world.transition(&id, "held", Change { data, ..Change::default() }).unwrap();
    assert_eq!(world.head(&id).timers[0].due.0, 9_000_000);
}

#[test]
fn a_failure_path_whose_timer_cannot_be_set_parks_with_both_reasons() {
    let (mut world, id) = World::of(stepping(), "job/a");
    world.send(&id, "run", "r1");
    world.end(&id, permanent("broken")).unwrap();
    let head = world.head(&id);
    let park = head.park.unwrap();
    assert_eq!((head.state.as_str(), park.code.as_str()), ("working", "failure-path"));
    assert!(park.reason.starts_with("broken: "), "{}", park.reason);
    assert!(park.reason.contains("its failure path: invalid: data.until: expected when timer wake"), "{}", park.reason);
}

#[test]
fn a_timer_whose_move_cannot_set_the_next_timer_is_used_up_and_recorded() {
    let machine = machine("job", "idle")
        .event("run")
        .state("idle", rest().on("run", to("first")))
        .state("first", wait().after("next", 1_000, to("held")))
        .state("held", wait().at("wake", "data.until", to("idle")));
    let (mut world, id) = World::of(machine, "job/a");
    world.send(&id, "run", "r1");
    world.fire(&id, "next");
    let head = world.head(&id);
    assert_eq!((head.state.as_str(), head.facts[&FactKind::NotAllowed]), ("first", 1));
    assert_eq!(head.park.as_ref().unwrap().code, "stranded");
    let facts: Vec<_> = world
        .history(&id, &head)
        .into_iter()
        .filter_map(|entry| match entry.what {
            What::Fact(_, text) => Some(text),
            _ => None,
        })
        .collect();
    assert!(
        facts[0].starts_with("timer next: invalid: data.until: expected when timer wake of held is due"),
        "{facts:?}"
    );
}

#[test]
fn an_operators_kill_needs_no_timer() {
    let (mut world, id) = held("data.until", r#"{"until":9000000}"#);
    world.ok(Verb::Kill { entity: id.clone(), reason: "enough".to_owned() });
    assert_eq!((world.head(&id).state.as_str(), world.head(&id).timers.len()), ("killed", 0));
}

#[test]
fn an_unpark_that_cannot_set_the_timer_again_is_refused_and_stays_parked() {
    let machine = machine("job", "idle")
        .event("hold")
        .event("forget")
        .state("idle", rest().on("hold", to("held").set("data.until = event.until")))
        .state(
            "held",
            wait()
                .at("wake", "data.until", stay().set("data.until = event.none"))
                .on("forget", stay().set("data.until = true")),
        );
    let (mut world, id) = World::of(machine, "job/a");
    world.deliver(&id, event_of("hold", "h1", r#"{"until":1500000}"#)).unwrap();
    world.send(&id, "forget", "f1");
    world.fire(&id, "wake");
    assert_eq!(world.head(&id).park.unwrap().code, "stranded");
    assert_eq!(world.code(Verb::Unpark(id.clone())), Code::Invalid);
    assert_eq!(world.head(&id).park.unwrap().code, "stranded");
    world.ok(Verb::Kill { entity: id.clone(), reason: "enough".to_owned() });
}

#[test]
fn a_first_event_that_leaves_at_once_never_waits_for_the_initial_states_timers() {
    let idle = calendar(&ENDED).on("hold", to("held").set("data.until = event.until"));
    let machine = waits_until("data.until").state("idle", idle);
    let mut world = World::with(machine);
    assert_eq!(world.create(create("job/a")).unwrap_err().subject, "timer daily of idle");
    let event = Some(event_of("hold", "h1", r#"{"until":1500000}"#));
    let made = world.create(Create { event, ..create("job/a") }).unwrap();
    assert!(matches!(made, Outcome::Created { new: true, .. }));
}

#[test]
fn a_newer_revision_whose_timers_cannot_be_set_is_not_followed_at_entry() {
    let data = || Change { data: Some(Doc::parse(r#"{"until":9000000}"#).unwrap()), ..Change::default() };
    let due = |due: Due| {
        stepping().with(|machine| machine.states.get_mut(&"held".parse().unwrap()).unwrap().after[0].due = due)
    };
    let (mut world, id) = World::of(stepping(), "job/a");
    world.send(&id, "run", "r1");
    world.deploy(due(Due::At("data.other".parse().unwrap()))); // while an attempt of the first is open
    world.transition(&id, "held", data()).unwrap();
    assert_eq!((world.head(&id).revision, world.head(&id).timers[0].due.0), (1, 9_000_000));
    // One whose timers can be set is followed, and they are its own.
    let plain = world.deploy(stepping());
    world.fire(&id, "wake");
    world.send(&id, "run", "r2");
    assert_eq!(world.head(&id).revision, plain);
    let newest = world.deploy(due(daily(&[])));
    world.transition(&id, "held", data()).unwrap();
    let timer = world.head(&id).timers[0].clone();
    assert_eq!((world.head(&id).revision, timer.rule.as_deref()), (newest, Some("every day, 09:00 UTC")));
}

#[test]
fn what_is_waited_for_once_more_is_due_at_what_entered_the_visit() {
    let machine = machine("job", "idle")
        .event("hold")
        .state("idle", rest().on("hold", to("held")))
        .state("held", wait().at("wake", "event.until", stay()));
    let (mut world, id) = World::of(machine, "job/a");
    world.deliver(&id, event_of("hold", "h1", r#"{"until":1500000}"#)).unwrap();
    world.fire(&id, "wake");
    assert_eq!(world.head(&id).park.unwrap().code, "stranded");
    world.ok(Verb::Unpark(id.clone()));
    assert_eq!(world.head(&id).timers[0].due.0, 1_500_000);
}
