//! Authors' timers: due fixed at entry, late but never early, one effect or a recorded no-op.

use crate::build::{Mc, create, entity, event, machine, rest, stay, step, to, wait};
use crate::world::World;
use interlock_kernel::command::{Change, Create, OnExisting, Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::{CauseKind, FactKind, Key, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::view::Wake;

fn bells() -> Mc {
    machine("job", "idle")
        .event("run")
        .event("again")
        .data(r#"{"rung":0}"#)
        .state("idle", rest().on("run", to("working")).after("nap", 60_000, to("idle").set("data.naps += 1")))
        .state(
            "working",
            step("work").to(to("idle")).to(to("waiting")).after("remind", 1_000, stay().set("data.rung += 1")).after(
                "stop",
                5_000,
                to("stopping"),
            ),
        )
        .state("stopping", step("stop").to(to("idle")))
        .state("waiting", wait().after("wake", 2_000, to("working")).on("again", to("waiting")))
}

fn working() -> (World, EntityId) {
    let (mut world, id) = World::of(bells(), "job/a");
    world.send(&id, "run", "r1");
    (world, id)
}

#[test]
fn timers_are_due_from_entry_and_leave_with_the_visit() {
    let (mut world, id) = World::of(bells(), "job/a");
    let due =
        |world: &World| -> Vec<i64> { world.head(&id).timers.iter().map(|timer| timer.due.0 - 1_000_000).collect() };
    assert_eq!(due(&world), [60_000]);
    world.pass(10);
    world.send(&id, "run", "r1");
    assert_eq!(due(&world), [1_010, 5_010]);
    world.pass(500);
    world.reboot(); // downtime counts, a new attempt changes nothing
    assert_eq!(due(&world), [1_010, 5_010]);
    world.go(&id, "waiting");
    assert_eq!(due(&world), [2_510]);
}

#[test]
fn a_timer_never_fires_early_and_late_is_the_same_as_in_time() {
    let (mut world, id) = working();
    world.go(&id, "waiting");
    let due = world.head(&id).timers[0].due;
    let fire = Verb::Fire { entity: id.clone(), timer: "wake".parse().unwrap(), due };
    world.pass(1_999);
    assert_eq!(world.ok(fire.clone()), Outcome::Nothing);
    assert!(world.wrote.is_empty());
    world.pass(1_000_000);
    world.ok(fire);
    let head = world.head(&id);
    assert_eq!((head.state.as_str(), head.cause.kind, head.cause.name.as_str()), ("working", CauseKind::Timer, "wake"));
}

#[test]
fn a_second_firing_and_one_after_its_visit_are_recorded_and_change_nothing() {
    let (mut world, id) = working();
    let stop = world.head(&id).timers[1].clone();
    world.go(&id, "waiting");
    let twice = world.fire(&id, "wake");
    let before = world.head(&id);
    world.ok(twice);
    world.ok(Verb::Fire { entity: id.clone(), timer: stop.name, due: stop.due });
    let head = world.head(&id);
    assert_eq!(head.facts[&FactKind::StaleTimer], 2);
    assert_eq!(
        (head.version, head.visit, head.timers, head.lock),
        (before.version, before.visit, before.timers, before.lock)
    );
}

#[test]
fn a_timer_of_a_visit_entered_again_is_another_timer() {
    let (mut world, id) = working();
    world.go(&id, "waiting");
    let old = world.head(&id).timers[0].clone();
    world.pass(1_500);
    world.send(&id, "again", "a1");
    world.pass(600);
    world.ok(Verb::Fire { entity: id.clone(), timer: old.name.clone(), due: old.due });
    assert_eq!(world.head(&id).state.as_str(), "waiting");
    world.fire(&id, "wake");
    assert_eq!(world.head(&id).state.as_str(), "working");
}

#[test]
fn s6_a_timer_in_place_sets_and_the_step_meets_a_conflict() {
    let (mut world, id) = working();
    world.fire(&id, "remind");
    assert_eq!(world.data(&id), r#"{"rung":1}"#);
    assert!(!world.wakes.iter().any(|wake| matches!(wake, Wake::Fence { .. })));
    assert_eq!(world.transition(&id, "idle", Change::default()).unwrap_err().code, Code::Conflict);
    world.starts.get_mut(&id).unwrap().claim.read = world.head(&id).version;
    world.go(&id, "idle");
}

#[test]
fn s6_a_timer_with_a_target_fences_the_attempt() {
    let (mut world, id) = working();
    let zombie = world.claim(&id);
    world.fire(&id, "stop");
    assert!(world.wakes.iter().any(|wake| matches!(wake, Wake::Fence { token, .. } if *token == zombie.token)));
    let what = world.last_entry(&id);
    assert_eq!((what.what, what.execution), (What::Timer("stop".parse().unwrap()), Some(1)));
    assert_eq!(world.code(Verb::Transition(zombie, "idle".parse().unwrap(), Box::default())), Code::Fenced);
}

#[test]
fn a_timer_at_rest_moves_it_without_a_lock() {
    let (mut world, id) = World::of(bells(), "job/a");
    world.fire(&id, "nap");
    let head = world.head(&id);
    assert_eq!((head.version.get(), head.executions, head.timers[0].due.0), (2, 0, world.wall + 60_000));
    assert_eq!(world.data(&id), r#"{"naps":1,"rung":0}"#);
}

#[test]
fn a_first_event_replaces_the_initial_states_timers() {
    let mut world = World::with(bells());
    let create = Create { event: Some(event("run", "r1")), ..create("job/a") };
    world.create(create).unwrap();
    let names: Vec<String> = world.head(&entity("job/a")).timers.iter().map(|timer| timer.name.to_string()).collect();
    assert_eq!(names, ["remind", "stop"]);
}

#[test]
fn a_timer_of_a_deleted_entity_is_gone_and_of_a_recreated_one_is_stale() {
    let (mut world, id) = World::of(bells(), "job/a");
    let nap = world.head(&id).timers[0].clone();
    let fire = Verb::Fire { entity: id.clone(), timer: nap.name.clone(), due: nap.due };
    world.ok(Verb::Delete(id.clone()));
    world.pass(60_000);
    assert_eq!(world.ok(fire.clone()), Outcome::Nothing);
    assert!(world.wrote.is_empty());
    world.create(create("job/a")).unwrap();
    world.ok(fire);
    let head = world.head(&id);
    assert_eq!((head.version.get(), head.facts[&FactKind::StaleTimer]), (1, 1));
}

#[test]
fn recreating_at_the_same_instant_keeps_one_timer_of_each_name() {
    let (mut world, id) = World::of(bells(), "job/a");
    let create = Create { on_existing: OnExisting::Recreate, ..create("job/a") };
    world.create(create).unwrap();
    let timers: Vec<_> = world.records.keys().filter(|key| matches!(key, Key::Timer(..))).collect();
    assert_eq!(timers.len(), 1);
    world.fire(&id, "nap");
    assert_eq!(world.head(&id).version.get(), 2);
}

#[test]
fn a_wall_clock_that_jumps_back_only_delays_a_timer() {
    let (mut world, id) = working();
    world.go(&id, "waiting");
    let due = world.head(&id).timers[0].due;
    world.wall -= 1_000_000;
    let fire = Verb::Fire { entity: id.clone(), timer: "wake".parse().unwrap(), due };
    assert_eq!(world.ok(fire), Outcome::Nothing);
    assert_eq!(world.head(&id).timers[0].due, due);
    world.fire(&id, "wake");
    assert_eq!(world.head(&id).state.as_str(), "working");
}

#[test]
fn a_timer_whose_guard_fails_is_used_up_and_recorded() {
    let guarded = machine("job", "idle")
        .event("run")
        .state("idle", rest().on("run", to("waiting")))
        .state("waiting", wait().forever().after("bell", 1_000, to("idle").when("data.open eq true")));
    let (mut world, id) = World::of(guarded, "job/a");
    world.send(&id, "run", "r1");
    world.fire(&id, "bell");
    let head = world.head(&id);
    assert_eq!((head.state.as_str(), head.timers.len(), head.facts[&FactKind::NotAllowed]), ("waiting", 0, 1));
    assert!(head.park.is_none(), "it may wait forever");
}
