//! Event ids: the same id is the same answer, for its window, over delete, and while its event waits.

use crate::build::{create, entity, event, event_of, machine, rest, step, to};
use crate::semantics::{idle, job, working};
use crate::world::World;
use interlock_kernel::command::{Create, OnExisting, Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::{DEDUP_MS_DEFAULT, FACTS_MAX, SWEEP_MAX};
use interlock_kernel::machine::OnBusy;
use interlock_kernel::record::{Answer, AnswerKind, Expect, FactKind, Key};
use interlock_kernel::rejection::Code;
use interlock_kernel::view::Event;

fn again(world: &mut World, id: &EntityId, sent: Event) -> (Answer, bool) {
    match world.deliver(id, sent) {
        Ok(Outcome::Answered { answer, replayed }) => (*answer, replayed),
        other => panic!("{other:?}"),
    }
}

fn kept(world: &World, wanted: fn(&Key) -> bool) -> usize {
    world.records.keys().filter(|key| wanted(key)).count()
}

#[test]
fn same_id_is_the_same_answer_and_one_effect() {
    let (mut world, id) = idle();
    let first = world.send(&id, "note", "n1");
    world.send(&id, "run", "r1");
    world.go(&id, "idle");
    let records = world.records.clone();
    assert_eq!(again(&mut world, &id, event("note", "n1")), (first, true));
    assert!(world.records == records);
}

#[test]
fn an_id_with_another_name_or_payload_is_refused_and_white_space_is_not_another() {
    let (mut world, id) = idle();
    world.send_of(&id, "note", "n1", r#"{"a":1,"b":2}"#);
    assert!(again(&mut world, &id, event_of("note", "n1", r#"{ "b": 2, "a": 1 }"#)).1);
    for other in [event("note", "n1"), event_of("note", "n1", r#"{"a":1}"#), event_of("run", "n1", r#"{"a":1,"b":2}"#)]
    {
        assert_eq!(world.deliver(&id, other).unwrap_err().code, Code::IdReused);
    }
}

#[test]
fn what_may_come_true_is_not_remembered() {
    let (mut world, id) = working();
    for (text, wanted) in [("run", Code::Busy), ("end", Code::Busy)] {
        assert_eq!(world.deliver(&id, event(text, "x")).unwrap_err().code, wanted);
        assert!(world.dedup(&id, "x").is_none() && world.wrote.is_empty());
    }
    world.go(&id, "idle");
    world.send(&id, "run", "x");
}

#[test]
fn a_late_answer_is_remembered() {
    let (mut world, id) = working();
    let late = || Event { expect: Expect { visit: Some(1), ..Expect::default() }, ..event("note", "n1") };
    let (first, replayed) = again(&mut world, &id, late());
    assert_eq!((first.kind, replayed), (AnswerKind::Late, false));
    assert_eq!(again(&mut world, &id, late()), (first.clone(), true));
    // What it believed is not part of its identity.
    assert_eq!(again(&mut world, &id, event("note", "n1")), (first, true));
    assert_eq!(world.head(&id).facts[&FactKind::Late], 1);
}

#[test]
fn a_queued_answer_turns_accepted_or_refused_and_duplicates_follow_it() {
    let (mut world, id) = working();
    let queued = world.send(&id, "later", "l1");
    assert_eq!(again(&mut world, &id, event("later", "l1")), (queued, true));
    assert_eq!(world.head(&id).inbox.length, 1);
    world.go(&id, "idle");
    let (turned, replayed) = again(&mut world, &id, event("later", "l1"));
    assert_eq!((turned.kind, turned.execution, replayed), (AnswerKind::Accepted, Some(2), true));
    world.send(&id, "later", "l2");
    world.go(&id, "broken");
    let (turned, _) = again(&mut world, &id, event("later", "l2"));
    assert_eq!((turned.kind, turned.rejection.unwrap().code), (AnswerKind::Refused, Code::Final));
}

#[test]
fn a_queued_event_is_judged_when_its_turn_comes() {
    let (mut world, id) = working();
    let stale = Expect { execution: Some(1), ..Expect::default() };
    world.deliver(&id, Event { expect: stale, ..event("later", "l1") }).unwrap();
    let version = Expect { version: Some(2), ..Expect::default() };
    world.deliver(&id, Event { expect: version, ..event("later", "l2") }).unwrap();
    world.go(&id, "idle");
    let codes = ["l1", "l2"].map(|queued| world.dedup(&id, queued).unwrap().answer.rejection.unwrap().code);
    assert_eq!(codes, [Code::Late, Code::Conflict]);
    assert_eq!((world.decisions, world.head(&id).state.as_str()), (3, "idle"));
}

#[test]
fn an_id_is_forgotten_after_its_window_and_swept() {
    let (mut world, id) = idle();
    world.send(&id, "note", "n1");
    world.pass(DEDUP_MS_DEFAULT - 1);
    assert_eq!(world.ok(Verb::Sweep), Outcome::Swept { removed: 0, more: false });
    assert!(again(&mut world, &id, event("note", "n1")).1);
    world.pass(1);
    assert!(!again(&mut world, &id, event("note", "n1")).1, "forgotten even before it is swept");
    assert_eq!(world.ok(Verb::Sweep), Outcome::Swept { removed: 1, more: false });
    assert!(again(&mut world, &id, event("note", "n1")).1, "the old expiry does not take the new memory");
    world.pass(DEDUP_MS_DEFAULT);
    world.ok(Verb::Sweep);
    assert_eq!(kept(&world, |key| matches!(key, Key::Dedup(..) | Key::Expiry(..))), 0);
}

#[test]
fn the_window_runs_from_the_last_change_of_the_answer() {
    let (mut world, id) = working();
    world.send(&id, "later", "l1");
    world.pass(DEDUP_MS_DEFAULT / 2);
    world.go(&id, "idle");
    world.pass(DEDUP_MS_DEFAULT - 1);
    world.ok(Verb::Sweep);
    assert!(again(&mut world, &id, event("later", "l1")).1);
}

#[test]
fn an_id_is_remembered_as_long_as_its_event_waits() {
    let (mut world, id) = working();
    world.send(&id, "later", "l1");
    world.pass(10 * DEDUP_MS_DEFAULT);
    world.ok(Verb::Sweep);
    assert!(again(&mut world, &id, event("later", "l1")).1);
    assert_eq!(world.head(&id).inbox.length, 1);
    world.reboot();
    world.go(&id, "idle");
    assert_eq!(world.dedup(&id, "l1").unwrap().answer.kind, AnswerKind::Accepted);
    world.pass(DEDUP_MS_DEFAULT);
    world.ok(Verb::Sweep);
    assert!(world.dedup(&id, "l1").is_none());
}

#[test]
fn memory_survives_delete_and_binds_the_next_incarnation() {
    let (mut world, id) = idle();
    let first = world.send(&id, "note", "n1");
    world.ok(Verb::Delete(id.clone()));
    assert_eq!(world.deliver(&id, event("note", "n1")).unwrap_err().code, Code::NotFound);
    let with = Create { event: Some(event("note", "n1")), ..create("job/a") };
    assert_eq!(world.create(with).unwrap_err().code, Code::IdReused);
    world.create(create("job/a")).unwrap();
    assert_eq!(again(&mut world, &id, event("note", "n1")), (first, true));
    assert_eq!(world.head(&id).version.get(), 1);
}

#[test]
fn a_recreate_told_again_takes_nothing_away() {
    let (mut world, id) = idle();
    let recreate = |sent| Create { on_existing: OnExisting::Recreate, event: Some(sent), ..create("job/a") };
    let made = |outcome| match outcome {
        Ok(Outcome::Created { incarnation, new, answer: Some(answer), .. }) => (incarnation, new, answer),
        other => panic!("{other:?}"),
    };
    let (incarnation, new, answer) = made(world.create(recreate(event("note", "n1"))));
    assert!(new);
    world.send(&id, "note", "n2");
    let records = world.records.clone();
    assert_eq!(made(world.create(recreate(event("note", "n1")))), (incarnation, false, answer));
    assert!(world.records == records);
    // Under another id it is another request; an id of the entity that it took away is used up.
    assert_ne!(made(world.create(recreate(event("note", "n3")))).0, incarnation);
    assert_eq!(world.create(recreate(event("note", "n1"))).unwrap_err().code, Code::IdReused);
}

#[test]
fn every_expiry_of_one_job_is_kept_apart() {
    // One job takes a queued event, and the next one ends the entity and refuses the third; one deletes
    // and creates again with an event. The world checks that each memory expires.
    let job = job().queued("note").queued("end").with(|machine| machine.limits.history_ms = DEDUP_MS_DEFAULT);
    let queue_all = |machine: &mut interlock_kernel::machine::Machine| {
        machine.states.get_mut(&"working".parse().unwrap()).unwrap().on.clear();
    };
    let (mut world, id) = World::of(job.with(queue_all), "job/a");
    world.send(&id, "run", "r1");
    for (text, queued) in [("note", "q1"), ("end", "q2"), ("later", "q3"), ("later", "q4")] {
        world.send(&id, text, queued);
    }
    world.go(&id, "idle");
    let recreate = |id| Create { on_existing: OnExisting::Recreate, event: Some(event("note", id)), ..create("job/b") };
    world.create(recreate("b1")).unwrap();
    world.create(recreate("b2")).unwrap();
    world.ok(Verb::Delete(entity("job/b")));
    world.pass(DEDUP_MS_DEFAULT);
    while matches!(world.ok(Verb::Sweep), Outcome::Swept { more: true, .. }) {}
    assert_eq!(kept(&world, |key| matches!(key, Key::Dedup(..) | Key::Expiry(..))), 0);
    let of_b = kept(&world, |key| matches!(key, Key::History(of, ..) if of.key.as_str() == "b"));
    assert_eq!(of_b, 0, "histories of both incarnations are gone");
}

#[test]
fn a_sweep_is_bounded_and_says_that_there_is_more() {
    let (mut world, id) = World::of(
        machine("m", "a").event_with("go", OnBusy::Reject, 60_000).state("a", rest().on("go", to("a"))),
        "m/k",
    );
    world.unchecked = true;
    for number in 0..SWEEP_MAX + 40 {
        world.send(&id, "go", &format!("g{number}"));
    }
    world.ok(Verb::Delete(id));
    world.pass(90 * 86_400_000);
    let mut sweeps = Vec::new();
    loop {
        let Outcome::Swept { removed, more } = world.ok(Verb::Sweep) else { panic!() };
        sweeps.push(removed);
        if !more {
            break;
        }
    }
    assert_eq!(kept(&world, |key| matches!(key, Key::Dedup(..) | Key::Expiry(..) | Key::History(..))), 0);
    assert!(sweeps.iter().all(|removed| *removed <= 2 * SWEEP_MAX), "{sweeps:?}");
    assert_eq!(sweeps[0], SWEEP_MAX);
    world.check("swept");
}

#[test]
fn facts_beyond_their_bound_are_only_counted() {
    let (mut world, id) = idle();
    world.unchecked = true;
    for number in 0..FACTS_MAX + 50 {
        assert_eq!(world.deliver(&id, event("stop", &format!("s{number}"))).unwrap_err().code, Code::NotAllowed);
    }
    let head = world.head(&id);
    assert_eq!(head.facts[&FactKind::NotAllowed], FACTS_MAX + 50);
    assert_eq!(head.history.last, 1 + u64::from(FACTS_MAX));
    world.unchecked = false;
    world.send(&id, "note", "n1"); // and the history still folds
}

#[test]
fn a_fenced_zombie_that_never_stops_fills_no_disk() {
    let (mut world, id) = World::of(
        machine("m", "a").event("go").state("a", rest().on("go", to("b"))).state("b", step("work").to(to("a"))),
        "m/k",
    );
    world.send(&id, "go", "g1");
    let zombie = world.claim(&id);
    world.go(&id, "a");
    world.unchecked = true;
    for _ in 0..FACTS_MAX + 50 {
        let verb = Verb::Transition(zombie.clone(), "a".parse().unwrap(), Box::default());
        assert_eq!(world.code(verb), Code::Fenced);
    }
    assert_eq!(world.head(&id).facts[&FactKind::Fenced], FACTS_MAX + 50);
    world.check("fenced");
    assert_eq!(world.history(&id, &world.head(&id)).len(), 3 + FACTS_MAX as usize);
}
