//! Revisions: numbered, immutable, adopted by entities between attempts where everything goes on.

use crate::build::{Mc, doc, event, event_of, machine, name, rest, step, to, wait};
use crate::semantics::{job, working};
use crate::world::World;
use interlock_kernel::command::{Change, Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::DOCUMENT_BYTES_MAX;
use interlock_kernel::machine::{Machine, Revisions, State};
use interlock_kernel::rejection::Code;

fn revision(world: &World, id: &EntityId) -> u64 {
    world.head(id).revision
}

fn changed(change: impl FnOnce(&mut Machine)) -> Mc {
    job().with(|machine| machine.owner = "another team".to_owned()).with(change)
}

fn state<'a>(machine: &'a mut Machine, text: &str) -> &'a mut State {
    machine.states.get_mut(&name(text)).unwrap()
}

#[test]
fn s13_the_active_digest_again_is_no_new_revision_and_rollback_is_one() {
    let mut world = World::with(job());
    assert_eq!(world.deploy(job()), 1);
    assert!(world.wrote.is_empty());
    assert_eq!(world.deploy(changed(|_| ())), 2);
    let back = Verb::Rollback { machine: "job".parse().unwrap(), to: 1 };
    assert_eq!(world.ok(back.clone()), Outcome::Deployed { revision: 3, new: true });
    assert_eq!(world.ok(back), Outcome::Deployed { revision: 3, new: false });
    assert_eq!(world.deploy(job()), 3, "its content is active");
    assert_eq!(world.deploy(changed(|_| ())), 4);
    let unknown = Verb::Rollback { machine: "job".parse().unwrap(), to: 9 };
    assert_eq!(world.refused(unknown).to_string(), "not_found: job: expected a revision from 1 to 4, got revision 9");
    let none = Verb::Rollback { machine: "jobs".parse().unwrap(), to: 1 };
    assert_eq!(world.code(none), Code::NotFound);
}

#[test]
fn a_definition_has_a_bound() {
    let mut world = World::bare();
    world.open();
    let huge = job().with(|machine| machine.owner = "o".repeat(DOCUMENT_BYTES_MAX));
    let deploy = interlock_kernel::command::Deploy {
        machine: huge.0.into(),
        digest: doc("1").digest(),
        component: None,
        source: String::new(),
    };
    assert_eq!(world.code(Verb::Deploy(Box::new(deploy))), Code::Limit);
}

#[test]
fn entities_are_not_rewritten_by_a_deploy_and_adopt_with_their_next_command() {
    let (mut world, id) = World::of(job(), "job/a");
    world.deploy(changed(|machine| {
        let end = state(machine, "idle").on[&name("end")].clone();
        state(machine, "idle").on.insert(name("stop"), end);
    }));
    assert_eq!(revision(&world, &id), 1);
    world.send(&id, "stop", "s1"); // only revision 2 takes it
    assert_eq!((revision(&world, &id), world.head(&id).state.as_str()), (2, "over"));
    assert_eq!(world.last_entry(&id).revision, 2);
}

#[test]
fn an_attempt_is_judged_by_the_revision_it_began_with() {
    let (mut world, id) = working();
    world.deploy(changed(|machine| state(machine, "working").to.retain(|one| one.to != Some(name("waiting")))));
    world.send(&id, "note", "n1");
    assert_eq!(revision(&world, &id), 1, "not while an attempt is open");
    world.starts.get_mut(&id).unwrap().claim.read = world.head(&id).version;
    world.go(&id, "waiting");
    assert_eq!(revision(&world, &id), 2, "adopted as the visit is entered");
    let entry = world.last_entry(&id);
    assert_eq!((entry.revision, entry.to.as_str()), (1, "waiting"), "but judged by the one before");
    world.send(&id, "stop", "s1");
    assert_eq!(world.last_entry(&id).revision, 2);
}

#[test]
fn a_retry_an_orphan_and_an_unparked_visit_run_the_new_revision() {
    for how in ["retry", "recover", "unpark"] {
        let (mut world, id) = working();
        if how == "unpark" {
            for attempt in 1..=5 {
                world.fail(&id, "slow");
                if attempt < 5 {
                    world.due(&id);
                }
            }
        }
        world.deploy(changed(|machine| state(machine, "working").idle_ms = 77));
        match how {
            "retry" => {
                world.fail(&id, "slow");
                drop(world.due(&id));
            }
            "recover" => world.reboot(),
            _ => drop(world.ok(Verb::Unpark(id.clone()))),
        }
        let start = &world.starts[&id];
        assert_eq!((start.revision, start.idle_ms), (2, 77), "{how}");
    }
}

#[test]
fn deploying_while_locked_leaves_both_directions_of_the_lock_agreeing() {
    let (mut world, id) = working();
    let before = world.head(&id).locked_by(&id);
    for number in 0..5 {
        world.deploy(changed(|machine| machine.owner = format!("team {number}")));
        world.reboot();
        if world.head(&id).lock.unwrap().retry.is_some() {
            world.due(&id);
        }
        assert_eq!(world.head(&id).locked_by(&id), before);
        assert_eq!(world.claim(&id).execution, before.clone().unwrap());
    }
    world.go(&id, "idle");
    assert_eq!(world.head(&id).lock, None);
}

#[test]
fn a_pinned_entity_keeps_the_revision_it_began_with() {
    let pinned = |owner: &str| {
        let owner = owner.to_owned();
        job().with(move |machine| (machine.revisions, machine.owner) = (Revisions::Pinned, owner))
    };
    let (mut world, id) = World::of(pinned("a"), "job/a");
    world.deploy(pinned("b"));
    world.send(&id, "run", "r1");
    world.reboot();
    world.go(&id, "idle");
    assert_eq!(revision(&world, &id), 1);
    world.create(crate::build::create("job/b")).unwrap();
    assert_eq!(revision(&world, &crate::build::entity("job/b")), 2);
}

/// Where an entity stands when an incompatible revision comes.
type Stand = fn() -> (World, EntityId);

/// Why it does not go on there, where it stands, and the revision that comes.
type Incompatible = (&'static str, Stand, fn(&mut World) -> Mc);

fn at_rest() -> (World, EntityId) {
    World::of(job(), "job/a")
}

fn backing_off() -> (World, EntityId) {
    let (mut world, id) = working();
    world.fail(&id, "slow");
    (world, id)
}

fn waiting() -> (World, EntityId) {
    let (mut world, id) = working();
    world.go(&id, "waiting");
    (world, id)
}

fn with_queue() -> (World, EntityId) {
    let (mut world, id) = working();
    world.send_of(&id, "later", "l1", "7");
    world.fail(&id, "slow");
    (world, id)
}

fn held() -> (World, EntityId) {
    let (mut world, id) = at_rest();
    for text in [r#""old""#, "2"] {
        world.ok(Verb::Apply { entity: id.clone(), desired: doc(text), expect: None, checked: None });
        if text == r#""old""# {
            world.send(&id, "run", "r1");
        }
    }
    world.fail(&id, "slow");
    (world, id)
}

fn is_text(value: &serde_json::Value) -> bool {
    value.is_string()
}

#[test]
fn what_does_not_go_on_there_is_not_adopted() {
    let table: [Incompatible; 11] = [
        ("the state is gone", waiting, |_| changed(|machine| drop(machine.states.remove(&name("waiting"))))),
        ("its kind is another", waiting, |_| changed(|machine| state(machine, "waiting").kind = rest_kind())),
        ("its step is gone", backing_off, |_| {
            changed(|machine| (state(machine, "working").step, state(machine, "working").waits_forever) = (None, true))
        }),
        ("its wait became a step", waiting, |_| changed(|machine| state(machine, "waiting").step = Some(name("x")))),
        ("nothing wakes it there", waiting, |_| changed(|machine| state(machine, "waiting").waits_forever = false)),
        ("desired is invalid", held, |world| {
            world.rules.0.push((2, "desired", "text", is_text));
            changed(|_| ())
        }),
        ("the held desired is invalid", held, |world| {
            world.rules.0.push((2, "desired", "a number", |value| value.is_number()));
            changed(|_| ())
        }),
        ("data is invalid", at_rest, |world| {
            world.rules.0.push((2, "data", "text", is_text));
            changed(|_| ())
        }),
        ("outputs are invalid", backing_off_with_outputs, |world| {
            world.rules.0.push((2, "outputs", "text", is_text));
            changed(|_| ())
        }),
        ("a waiting event is not declared", with_queue, |_| {
            changed(|machine| drop(machine.events.remove(&name("later"))))
        }),
        ("a waiting event is invalid", with_queue, |world| {
            world.rules.0.push((2, "event.later", "text", is_text));
            changed(|_| ())
        }),
    ];
    for (why, stand, deploy) in table {
        let (mut world, id) = stand();
        let before = world.head(&id);
        let machine = deploy(&mut world);
        world.deploy(machine);
        let moved = world.head(&id).due.is_some();
        if moved {
            world.due(&id);
        } else {
            world.deliver(&id, event("note", "n9")).ok();
        }
        assert_eq!(revision(&world, &id), before.revision, "{why}");
    }
}

fn rest_kind() -> interlock_kernel::machine::StateKind {
    interlock_kernel::machine::StateKind::Rest
}

fn backing_off_with_outputs() -> (World, EntityId) {
    let (mut world, id) = working();
    world.save(&id, Change { outputs: Some(doc("1")), ..Change::default() }).unwrap();
    world.fail(&id, "slow");
    (world, id)
}

#[test]
fn what_could_not_be_adopted_in_a_visit_may_be_in_the_next() {
    let (mut world, id) = waiting();
    world.deploy(changed(|machine| drop(machine.states.remove(&name("waiting")))));
    world.send(&id, "stop", "s1");
    assert_eq!((revision(&world, &id), world.last_entry(&id).revision), (2, 1));
}

#[test]
fn a_pending_timer_must_be_known_to_the_new_revision_also_as_it_fires() {
    let bell = |bell: &str| {
        machine("job", "idle")
            .event("run")
            .state("idle", rest().on("run", to("waiting")))
            .state("waiting", wait().after(bell, 1_000, to("working")))
            .state("working", step("work").to(to("idle")))
    };
    let (mut world, id) = World::of(bell("bell"), "job/a");
    world.send(&id, "run", "r1");
    world.deploy(bell("gong"));
    world.fire(&id, "bell");
    let head = world.head(&id);
    assert_eq!((head.state.as_str(), head.revision), ("working", 2));
}

#[test]
fn an_answer_stands_under_a_revision_that_would_not_take_the_event_any_more() {
    let (mut world, id) = at_rest();
    let first = world.send(&id, "note", "n1");
    world.deploy(changed(|machine| {
        machine.events.remove(&name("note"));
        machine.states.values_mut().for_each(|state| drop(state.on.remove(&name("note"))));
    }));
    assert_eq!(world.deliver(&id, event("note", "n2")).unwrap_err().code, Code::Invalid);
    let records = world.records.clone();
    assert_eq!(world.send(&id, "note", "n1"), first);
    assert!(world.records == records);
    // Another event under the same id is judged as any other.
    assert_eq!(world.deliver(&id, event_of("note", "n1", "7")).unwrap_err().code, Code::Invalid);
    assert_eq!(world.deliver(&id, event("run", "n1")).unwrap_err().code, Code::IdReused);
}

#[test]
fn an_event_that_enters_a_revision_without_it_is_remembered_all_the_same() {
    let (mut world, id) = working();
    let known = world.machine(&id, 1).events[&name("stop")].dedup_ms;
    world.deploy(changed(|machine| {
        machine.events.remove(&name("stop"));
        machine.states.values_mut().for_each(|state| drop(state.on.remove(&name("stop"))));
    }));
    let first = world.send(&id, "stop", "e1");
    assert_eq!((revision(&world, &id), world.dedup(&id, "e1").unwrap().window_ms), (2, known));
    assert_eq!(world.send(&id, "stop", "e1"), first);
    // A revision that brings it back does not take it a second time.
    world.ok(Verb::Rollback { machine: id.machine.clone(), to: 1 });
    let version = world.head(&id).version;
    assert_eq!(world.send(&id, "stop", "e1"), first);
    assert_eq!(world.head(&id).version, version);
}
