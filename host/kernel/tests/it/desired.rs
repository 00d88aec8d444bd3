//! `desired`: written by clients at any time, seen by an execution as it was when it left rest.

use crate::build::{Mc, create, doc, entity, event, failed, machine, mutation, rest, step, to};
use crate::semantics::{idle, working};
use crate::world::{World, permanent};
use interlock_kernel::command::{Change, Create, Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::machine::ApplyPolicy;
use interlock_kernel::record::{AnswerKind, Part};
use interlock_kernel::rejection::Code;

fn apply(id: &EntityId, text: &str, expect: Option<u64>) -> Verb {
    Verb::Apply { entity: id.clone(), desired: doc(text), expect, checked: None }
}

/// Follows desired.size by a step; a size of 13 is never wanted.
fn follower() -> Mc {
    machine("pool", "ready")
        .event("poke")
        .queued("later")
        .data(r#"{"size":0}"#)
        .state(
            "ready",
            rest()
                .on("desired-changed", to("sizing").when("desired.size ne 13").set("data.target = desired.size"))
                .on("poke", to("sizing"))
                .on("later", to("ready").set("data.later += 1")),
        )
        .state("sizing", step("size").to(to("ready").set("data.size = desired.size")).on_permanent(to("ready")))
        .state("broken", failed())
}

fn ready() -> (World, EntityId) {
    World::of(follower(), "pool/p")
}

fn generations(world: &World, id: &EntityId) -> (u64, u64) {
    let head = world.head(id);
    (head.generation, head.observed)
}

#[test]
fn apply_at_rest_is_followed_by_desired_changed_in_the_same_transaction() {
    let (mut world, id) = ready();
    assert_eq!(world.ok(apply(&id, r#"{"size":3}"#, None)), Outcome::Applied { generation: 1 });
    assert_eq!((world.decisions, world.head(&id).state.as_str()), (2, "sizing"));
    assert_eq!(generations(&world, &id), (1, 0));
    world.go(&id, "ready");
    assert_eq!(generations(&world, &id), (1, 1));
    assert_eq!((world.data(&id).as_str(), world.decisions), (r#"{"size":3,"target":3}"#, 1));
}

#[test]
fn an_execution_sees_desired_as_it_was_and_many_applies_collapse_into_one() {
    let (mut world, id) = ready();
    world.ok(apply(&id, r#"{"size":1}"#, None));
    for size in 2..=5 {
        world.ok(apply(&id, &format!(r#"{{"size":{size}}}"#), None));
    }
    assert_eq!(world.part(&id, Part::Held).unwrap().text(), r#"{"size":1}"#);
    world.reboot();
    assert_eq!(world.starts[&id].documents.desired.as_ref().unwrap().text(), r#"{"size":1}"#);
    world.go(&id, "ready");
    assert_eq!((world.decisions, world.head(&id).executions), (2, 2));
    assert_eq!(world.data(&id), r#"{"size":1,"target":5}"#);
    assert_eq!(generations(&world, &id), (5, 1));
    assert_eq!(world.part(&id, Part::Held), None);
    assert_eq!(world.starts[&id].documents.desired.as_ref().unwrap().text(), r#"{"size":5}"#);
    world.go(&id, "ready");
    assert_eq!((world.decisions, generations(&world, &id)), (1, (5, 5)));
}

#[test]
fn an_execution_that_began_without_desired_sees_none() {
    let (mut world, id) = ready();
    world.send(&id, "poke", "p1");
    world.ok(apply(&id, r#"{"size":1}"#, None));
    world.reboot();
    assert_eq!(world.starts[&id].documents.desired, None);
    assert_eq!(world.transition(&id, "ready", Change::default()).unwrap_err().code, Code::Invalid);
    world.end(&id, permanent("nothing-wanted")).unwrap();
    assert_eq!((world.head(&id).state.as_str(), generations(&world, &id)), ("sizing", (1, 0)));
}

#[test]
fn observed_means_tried_however_the_execution_ended() {
    for ending in ["failed", "killed"] {
        let (mut world, id) = ready();
        world.ok(apply(&id, r#"{"size":1}"#, None));
        match ending {
            "failed" => drop(world.end(&id, permanent("burnt")).unwrap()),
            _ => drop(world.ok(Verb::Kill { entity: id.clone(), reason: String::new() })),
        }
        assert_eq!((generations(&world, &id), world.decisions), ((1, 1), 1), "{ending}: not raised again");
    }
}

#[test]
fn kill_at_rest_observes_nothing() {
    let (mut world, id) = ready();
    world.ok(apply(&id, r#"{"size":13}"#, None));
    world.ok(Verb::Kill { entity: id.clone(), reason: String::new() });
    assert_eq!(generations(&world, &id), (1, 0));
}

#[test]
fn s16_not_taken_is_nothing_not_even_a_fact() {
    let (mut world, id) = ready();
    world.ok(apply(&id, r#"{"size":13}"#, None));
    let head = world.head(&id);
    assert_eq!((head.state.as_str(), head.facts.len(), head.history.last), ("ready", 0, 2));
    assert_eq!(generations(&world, &id), (1, 0));
    // It is raised again whenever the entity comes to rest, and when desired changes.
    world.send(&id, "poke", "p1");
    world.go(&id, "ready");
    assert_eq!((generations(&world, &id), world.head(&id).state.as_str()), ((1, 1), "ready"));
    world.ok(apply(&id, r#"{"size":2}"#, None));
    assert_eq!(world.head(&id).state.as_str(), "sizing");
}

#[test]
fn a_move_of_desired_changed_between_rests_is_made_once() {
    let paint = machine("wall", "white")
        .event("poke")
        .state("white", rest().on("desired-changed", to("white").set("data.color = desired")).on("poke", to("white")));
    let (mut world, id) = World::of(paint, "wall/w");
    world.ok(apply(&id, r#""red""#, None));
    assert_eq!((world.decisions, generations(&world, &id)), (2, (1, 1)));
    world.send(&id, "poke", "p1");
    assert_eq!(world.decisions, 1);
    assert_eq!(world.data(&id), r#"{"color":"red"}"#);
}

#[test]
fn the_inbox_comes_before_desired_changed() {
    let (mut world, id) = ready();
    world.send(&id, "poke", "p1");
    world.ok(apply(&id, r#"{"size":7}"#, None));
    for number in 1..=3 {
        assert_eq!(world.send(&id, "later", &format!("l{number}")).kind, AnswerKind::Queued);
    }
    world.reboot();
    let set = vec![mutation("data.size = 0")];
    let data = Some(doc(r#"{"size":0}"#));
    world.transition(&id, "ready", Change { data, set, ..Change::default() }).unwrap_err(); // desired is missing
    world.end(&id, permanent("nothing-wanted")).unwrap();
    assert_eq!((world.decisions, world.head(&id).state.as_str()), (5, "sizing"));
    assert_eq!(world.data(&id), r#"{"later":3,"size":0,"target":7}"#);
}

#[test]
fn desired_at_creation_is_generation_1_and_raised() {
    let mut world = World::with(follower());
    world.create(Create { desired: Some(doc(r#"{"size":2}"#)), ..create("pool/p") }).unwrap();
    let id = entity("pool/p");
    assert_eq!((world.decisions, world.head(&id).state.as_str(), generations(&world, &id)), (2, "sizing", (1, 0)));
}

#[test]
fn desired_and_a_first_event_at_creation_are_both_followed() {
    let mut world = World::with(follower());
    let desired = Some(doc(r#"{"size":2}"#));
    world.create(Create { desired, event: Some(event("poke", "p1")), ..create("pool/p") }).unwrap();
    let id = entity("pool/p");
    assert_eq!((world.decisions, world.head(&id).cause.name.as_str()), (1, "poke"));
    world.go(&id, "ready");
    assert_eq!((generations(&world, &id), world.head(&id).executions), ((1, 1), 1), "it was tried");
}

#[test]
fn s26_apply_is_told_again_by_generation() {
    let (mut world, id) = World::of(follower().with(|machine| machine.apply = ApplyPolicy::IfMatch), "pool/p");
    assert_eq!(world.code(apply(&id, r#"{"size":13}"#, None)), Code::Invalid);
    for _ in 0..2 {
        assert_eq!(world.ok(apply(&id, r#"{"size":13}"#, Some(0))), Outcome::Applied { generation: 1 });
    }
    assert!(world.wrote.is_empty());
    assert_eq!(world.ok(apply(&id, r#"{"size":13}"#, Some(1))), Outcome::Applied { generation: 1 });
    assert_eq!(world.code(apply(&id, r#"{"size":14}"#, Some(0))), Code::Conflict);
    world.ok(apply(&id, r#"{"size":14}"#, Some(1)));
    assert_eq!(world.code(apply(&id, r#"{"size":13}"#, Some(0))), Code::Conflict, "a late retry does not undo");
}

#[test]
fn apply_needs_no_lock_and_never_conflicts_with_a_step() {
    let (mut world, id) = working();
    world.ok(apply(&id, "{}", None));
    world.go(&id, "idle");
    let (mut world, id) = idle();
    world.rules.0.push((1, "desired", "an object", serde_json::Value::is_object));
    assert_eq!(world.code(apply(&id, "7", None)), Code::Invalid);
    world.send(&id, "end", "e1");
    assert_eq!(world.code(apply(&id, "{}", None)), Code::Final);
}

#[test]
fn a_machine_without_desired_changed_only_keeps_it() {
    let (mut world, id) = idle();
    world.ok(apply(&id, "{}", None));
    assert_eq!((world.decisions, generations(&world, &id)), (1, (1, 0)));
    world.send(&id, "run", "r1");
    world.go(&id, "idle");
    assert_eq!(generations(&world, &id), (1, 1));
}
