//! Create, delete, recreate, kill: in every state, and what is left behind.

use crate::build::{create, doc, entity, event, name};
use crate::semantics::{idle, job, working};
use crate::world::World;
use interlock_kernel::command::{Change, Create, OnExisting, Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::HISTORY_MS_DEFAULT;
use interlock_kernel::record::{AnswerKind, Expect, Key, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::view::{Event, Wake};

fn kill(id: &EntityId) -> Verb {
    Verb::Kill { entity: id.clone(), reason: "enough".to_owned() }
}

/// Everything an entity can be doing.
pub(crate) fn stands() -> Vec<(&'static str, World, EntityId)> {
    let at_rest = idle();
    let running = working();
    let mut backing_off = working();
    backing_off.0.fail(&backing_off.1, "slow");
    let mut waiting = working();
    waiting.0.go(&waiting.1, "waiting");
    let mut parked = working();
    for attempt in 1..=5 {
        parked.0.fail(&parked.1, "slow");
        if attempt < 5 {
            parked.0.due(&parked.1);
        }
    }
    let mut over = working();
    over.0.go(&over.1, "over");
    let mut absent = idle();
    absent.0.ok(Verb::Delete(absent.1.clone()));
    let named = [
        ("rest", at_rest),
        ("running", running),
        ("back-off", backing_off),
        ("waiting", waiting),
        ("parked", parked),
        ("final", over),
        ("absent", absent),
    ];
    named.into_iter().map(|(stand, (world, id))| (stand, world, id)).collect()
}

#[test]
fn kill_ends_it_in_every_state_and_twice_is_the_same() {
    for (stand, mut world, id) in stands() {
        let before = world.find_head(&id);
        let open = before.as_ref().and_then(|head| head.lock.as_ref()).and_then(|lock| lock.attempt);
        let killed = world.run(kill(&id));
        let Some(before) = before else {
            assert_eq!(killed.unwrap_err().code, Code::NotFound, "{stand}");
            continue;
        };
        let Ok(Outcome::Now { state, changed, .. }) = killed else { panic!("{stand}") };
        assert_eq!(
            (state.as_str(), changed),
            if stand == "final" { ("over", false) } else { ("killed", true) },
            "{stand}"
        );
        let fenced = world.wakes.iter().any(|wake| matches!(wake, Wake::Fence { .. }));
        assert_eq!(fenced, open.is_some(), "{stand}");
        let head = world.head(&id);
        assert_eq!((head.lock.clone(), head.due), (None, None), "{stand}");
        if changed {
            assert_eq!(head.version.get(), before.version.get() + 1, "{stand}");
            assert_eq!(world.last_entry(&id).execution, before.lock.map(|lock| lock.ordinal), "{stand}");
        }
        assert!(matches!(world.ok(kill(&id)), Outcome::Now { changed: false, .. }), "{stand}");
        assert!(world.wrote.is_empty(), "{stand}");
        world.ok(Verb::Delete(id));
    }
}

#[test]
fn kill_refuses_the_inbox_and_fences_the_step() {
    let (mut world, id) = working();
    world.send(&id, "later", "l1");
    let zombie = world.claim(&id);
    world.ok(kill(&id));
    assert_eq!(world.dedup(&id, "l1").unwrap().answer.kind, AnswerKind::Refused);
    assert_eq!(world.code(Verb::Transition(zombie, name("idle"), Box::default())), Code::Fenced);
    assert_eq!(world.send(&id, "run", "r9").kind, AnswerKind::Late);
    assert!(matches!(world.history(&id, &world.head(&id))[3].what, What::Killed(_)));
}

#[test]
fn delete_is_for_what_rests_or_is_over() {
    for (stand, mut world, id) in stands() {
        let deleted = world.run(Verb::Delete(id.clone()));
        match stand {
            "rest" | "final" => assert!(deleted.is_ok() && world.find_head(&id).is_none(), "{stand}"),
            "absent" => assert_eq!(deleted.unwrap_err().code, Code::NotFound),
            _ => assert_eq!(deleted.unwrap_err().code, Code::Busy, "{stand}"),
        }
    }
}

#[test]
fn a_recreated_entity_is_another_with_a_higher_incarnation_and_tokens() {
    let (mut world, id) = working();
    let old = world.claim(&id);
    world.go(&id, "idle");
    let recreate = Create { on_existing: OnExisting::Recreate, event: Some(event("run", "r2")), ..create("job/a") };
    world.create(recreate).unwrap();
    let (head, new) = (world.head(&id), world.claim(&id));
    assert!(head.incarnation > old.execution.incarnation && new.token > old.token);
    assert_eq!(
        (head.executions, head.history.last, new.execution.to_string()),
        (1, 2, format!("job/a@{}.1", world.seq))
    );
    // What the old one left is fenced, late, and gone from the documents.
    assert_eq!(world.code(Verb::Transition(old.clone(), name("idle"), Box::default())), Code::Fenced);
    let expect = Expect { incarnation: Some(old.execution.incarnation.get()), ..Expect::default() };
    let late = world.deliver(&id, Event { expect, ..event("note", "n1") }).unwrap();
    let Outcome::Answered { answer, .. } = late else { panic!() };
    assert_eq!(answer.kind, AnswerKind::Late);
    world.go(&id, "idle");
    assert_eq!(world.data(&id), r#"{"notes":0,"runs":1}"#);
}

#[test]
fn a_refused_recreate_leaves_the_old_one_whole() {
    let (mut world, id) = idle();
    let records = world.records.clone();
    let recreate = |event| Create { on_existing: OnExisting::Recreate, event: Some(event), ..create("job/a") };
    assert_eq!(world.create(recreate(event("stop", "s1"))).unwrap_err().code, Code::NotAllowed);
    assert!(world.records == records && world.find_head(&id).is_some());
}

#[test]
fn recreate_of_nothing_is_create() {
    let mut world = World::with(job());
    let recreate = Create { on_existing: OnExisting::Recreate, ..create("job/a") };
    assert!(matches!(world.create(recreate), Ok(Outcome::Created { new: true, .. })));
}

#[test]
fn documents_of_a_deleted_entity_do_not_come_back() {
    let (mut world, id) = working();
    let outputs =
        Change { outputs: Some(doc("1")), conditions: vec![crate::build::condition("c", "true")], ..Change::default() };
    world.transition(&id, "idle", outputs).unwrap();
    world.ok(Verb::Delete(id.clone()));
    world.create(create("job/a")).unwrap();
    assert_eq!(world.part(&id, interlock_kernel::record::Part::Outputs), None);
    assert_eq!(world.conditions(&id), []);
}

#[test]
fn history_of_a_deleted_entity_goes_after_its_retention() {
    let (mut world, id) = idle();
    world.unchecked = true;
    for number in 0..300 {
        world.send(&id, "note", &format!("n{number}"));
    }
    world.unchecked = false;
    world.check("three hundred notes");
    let head = world.head(&id);
    world.ok(Verb::Delete(id.clone()));
    assert_eq!(world.history(&id, &head).last().unwrap().what, What::Deleted);
    world.pass(HISTORY_MS_DEFAULT - 1);
    while matches!(world.ok(Verb::Sweep), Outcome::Swept { more: true, .. }) {}
    assert_eq!(world.history(&id, &head).len(), 302);
    world.pass(1);
    while matches!(world.ok(Verb::Sweep), Outcome::Swept { more: true, .. }) {}
    assert_eq!(world.history(&id, &head).len(), 0);
    assert!(!world.records.keys().any(|key| matches!(key, Key::Expiry(..))));
}

#[test]
fn history_is_trimmed_a_little_at_a_time_and_still_folds() {
    let (mut world, id) = World::of(job().with(|machine| machine.limits.history_ms = 100_000), "job/a");
    for number in 0..200 {
        world.pass(10_000);
        world.send(&id, "run", &format!("r{number}")); // two entries each: a sixteenth may be stepped over
        world.go(&id, "idle");
    }
    let kept = world.history(&id, &world.head(&id)).len();
    assert!((20..80).contains(&kept), "{kept}");
    assert_eq!(world.head(&id).history.last, 401);
}

#[test]
fn trimming_is_not_missed_when_a_command_writes_two_entries() {
    let moved = job().queued("note").with(|machine| {
        machine.limits.history_ms = 100_000;
        machine.states.get_mut(&name("working")).unwrap().on.remove(&name("note"));
    });
    let (mut world, id) = World::of(moved, "job/a");
    world.ok(Verb::Delete(id.clone()));
    world.create(Create { event: Some(event("note", "n0")), ..create("job/a") }).unwrap(); // entries 1 and 2
    let audit = |world: &World| Verb::Audit {
        entity: id.clone(),
        found: Vec::new(),
        abandoned: world.head(&id).lock.and_then(|lock| lock.attempt).map(|open| open.token),
    };
    for number in 0..100 {
        world.pass(50_000);
        world.send(&id, "run", &format!("r{number}"));
        world.run(audit(&world)).unwrap(); // an attempt nobody runs: two entries
        world.go(&id, "idle");
    }
    assert!(world.head(&id).history.first > 300, "{:?}", world.head(&id).history);
}

#[test]
fn create_is_refused_without_its_machine_and_keeps_its_schema() {
    let mut world = World::with(job());
    let other = create("jobs/a");
    assert_eq!(
        world.create(other).unwrap_err().to_string(),
        "not_found: jobs: expected a deployed machine, got none with this name"
    );
    world.rules.0.push((1, "desired", "an object", serde_json::Value::is_object));
    let wrong = Create { desired: Some(doc("7")), ..create("job/a") };
    assert_eq!(world.create(wrong).unwrap_err().code, Code::Invalid);
    assert_eq!(
        world.code(Verb::Deliver { entity: entity("jobs/a"), event: Box::new(event("run", "r1")) }),
        Code::NotFound
    );
}
