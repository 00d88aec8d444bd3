//! Unlock: an operator ends an execution, into a rest or failed final state.

use crate::audit::plant;
use crate::build::{daily, event, failed, name, rest, succeeded, to, wait};
use crate::leases::{ask, pool_machine};
use crate::world::World;
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::{Head, What};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::timer::Date;
use interlock_kernel::view::Wake;

type Make = fn(&mut World, &EntityId);

fn of(entity: &EntityId, to: &str, force: bool, reason: &str) -> Verb {
    Verb::Unlock { entity: entity.clone(), to: name(to), force, reason: reason.to_owned() }
}

fn parked() -> (World, EntityId) {
    let machine = pool_machine().state("gone", failed()).state("done", succeeded()).queued("later");
    let (mut world, a) = World::of(machine, "pool/a");
    world.send(&a, "go", "a1");
    world.end(&a, crate::world::permanent("broken")).unwrap();
    (world, a)
}

#[test]
fn what_only_an_operator_can_move_is_unlocked_and_its_leases_are_free() {
    for to in ["idle", "gone"] {
        let (mut world, a) = parked();
        world.ok(of(&a, to, false, "by hand"));
        let head = world.head(&a);
        assert_eq!((head.state.as_str(), head.lock, head.park), (to, None, None));
        assert!(!head.last.unwrap().succeeded, "as a failure does");
        assert_eq!(world.last_entry(&a).what, What::Unlocked("by hand".to_owned(), false));
        assert_eq!(world.holder("quota"), "nobody");
        assert_eq!(world.conditions(&a)[0].reason, "unlocked");
    }
}

#[test]
fn twice_is_once() {
    let (mut world, a) = parked();
    world.ok(of(&a, "idle", false, ""));
    let records = world.records.clone();
    let again = world.ok(of(&a, "idle", false, ""));
    assert!(matches!(again, Outcome::Now { changed: false, .. }), "{again:?}");
    assert!(world.records == records);
}

#[test]
fn where_it_may_not_go_is_refused_by_name() {
    let (mut world, a) = parked();
    for to in ["work", "done", "nowhere"] {
        let refused = world.refused(of(&a, to, false, ""));
        assert_eq!((refused.code, refused.got.as_str()), (Code::Invalid, to));
        assert_eq!(refused.expected, "a rest or failed final state: gone or idle");
    }
    assert_eq!(world.code(of(&a, "idle", true, "  ")), Code::Invalid, "force wants a reason");
    assert_eq!(world.code(of(&"pool/none".parse().unwrap(), "idle", false, "")), Code::NotFound);
    world.ok(of(&a, "gone", false, ""));
    let refused = world.refused(of(&a, "idle", false, ""));
    assert_eq!((refused.code, refused.got.as_str()), (Code::NotAllowed, "gone, unlocked"));
}

#[test]
fn what_something_else_can_move_is_unlocked_only_by_force() {
    let moved: [(&str, Make); 5] = [
        ("an attempt that runs", |world, a| drop(world.send(a, "plan", "1"))),
        ("an attempt after its back-off", |world, a| {
            world.send(a, "plan", "1");
            world.fail(a, "slow");
        }),
        ("a lease it waits for", |world, a| {
            world.ok(ask("quota", "one", 60_000).into());
            world.send(a, "go", "1");
        }),
        ("its deadline", |world, a| {
            world.send(a, "go", "1");
            world.go(a, "hold");
        }),
        ("an event", |world, a| {
            world.send(a, "go", "1");
            world.go(a, "hold");
        }),
    ];
    for (what, make) in moved {
        let (mut world, a) = World::of(pool_machine(), "pool/a");
        make(&mut world, &a);
        let refused: Rejection = world.refused(of(&a, "idle", false, ""));
        assert!(refused.code == Code::Busy && refused.got.contains(what), "{what}: {}", refused.got);
        world.ok(of(&a, "idle", true, "I know"));
        assert_eq!(world.last_entry(&a).what, What::Unlocked("I know".to_owned(), true));
        assert_eq!(world.head(&a).state.as_str(), "idle");
    }
}

#[test]
fn a_running_attempt_is_fenced() {
    let (mut world, a) = World::of(pool_machine(), "pool/a");
    world.send(&a, "go", "1");
    world.ok(of(&a, "idle", true, "stuck"));
    assert!(world.wakes.iter().any(|wake| matches!(wake, Wake::Fence { why: "unlocked", .. })));
    assert_eq!(world.transition(&a, "idle", Default::default()).unwrap_err().code, Code::Fenced);
}

#[test]
fn what_waits_in_the_inbox_goes_on_afterwards() {
    let (mut world, a) = parked();
    let machine = pool_machine().queued("later").with(|machine| {
        let idle = machine.states.get_mut(&name("idle")).unwrap();
        let go = idle.on[&name("go")].clone();
        idle.on.insert(name("later"), go);
    });
    world.deploy(machine);
    world.deliver(&a, event("later", "l1")).unwrap();
    world.ok(of(&a, "idle", false, ""));
    assert_eq!(world.head(&a).state.as_str(), "work");
    assert_eq!(world.holder("quota"), "pool/a@3.2", "an execution of its own, with a grant of its own");
}

#[test]
fn a_state_whose_timers_cannot_be_set_is_refused() {
    let ended = [Date { year: 2026, month: 12, day: 25 }];
    let machine = pool_machine().state("aside", rest().timer("business", daily(&ended), to("idle")));
    let (mut world, a) = World::of(machine, "pool/a");
    world.send(&a, "plan", "1");
    let refused = world.refused(of(&a, "aside", true, "I know"));
    assert!(refused.code == Code::Invalid && world.wrote.is_empty(), "{refused}");
    world.ok(of(&a, "idle", true, "I know"));
}

#[test]
fn what_contradicts_itself_is_only_to_be_killed_locked_or_not() {
    let contradictions: [fn(&mut Head); 2] = [|head| head.lock = None, |head| head.executions = 9];
    for contradict in contradictions {
        let (mut world, a) = World::of(pool_machine(), "pool/a");
        world.send(&a, "plan", "1");
        plant(&mut world, &a, contradict);
        world.unchecked = true;
        world.ok(Verb::Audit { entity: a.clone(), found: Vec::new(), abandoned: None });
        assert_eq!(world.code(of(&a, "idle", true, "")), Code::Invalid, "what was asked is judged first");
        let refused = world.refused(of(&a, "idle", true, "I know"));
        assert_eq!(refused.code, Code::NotAllowed);
        assert!(refused.got.starts_with("inconsistent: lock_and_execution_agree"), "{}", refused.got);
        world.ok(Verb::Kill { entity: a, reason: "kill always works".to_owned() });
    }
}

/// What could still move it, as a refusal tells.
fn told(world: &mut World, a: &EntityId, to: &str) -> Vec<String> {
    let got = world.refused(of(a, to, false, "")).got;
    let movers = got.rsplit("; ").next().unwrap().strip_suffix(" can still move it").unwrap();
    movers.split(", ").map(str::to_owned).collect()
}

#[test]
fn exactly_what_can_still_move_it_is_told() {
    let (mut world, a) = World::of(pool_machine(), "pool/a");
    world.send(&a, "plan", "1");
    assert_eq!(told(&mut world, &a, "idle"), ["an attempt that runs"]);
    world.fail(&a, "slow");
    assert_eq!(told(&mut world, &a, "idle"), ["an attempt after its back-off"]);
    let (mut world, a) = World::of(pool_machine(), "pool/a");
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "1");
    let refused = world.refused(of(&a, "idle", false, ""));
    assert!(refused.got.contains("waiting for lease quota"), "{}", refused.got);
    assert_eq!(told(&mut world, &a, "idle"), ["a lease it waits for"]);
    let (mut world, id) = crate::effects::waiting();
    assert_eq!(told(&mut world, &id, "idle"), ["an effect on its way", "its deadline", "an event"]);
    let waits = wait().after("bell", 5_000, to("idle"));
    let (mut world, a) = World::of(pool_machine().state("hold", waits), "pool/a");
    world.send(&a, "go", "1");
    world.go(&a, "hold");
    assert_eq!(told(&mut world, &a, "idle"), ["a timer"]);
}

#[test]
fn of_two_reasons_to_refuse_the_state_is_told_before_the_reason_and_that_before_the_lock() {
    let (mut world, a) = parked();
    let refused = world.refused(of(&a, "work", true, ""));
    assert_eq!(refused.got, "work", "where to, before why");
    world.ok(of(&a, "gone", false, ""));
    assert_eq!(world.refused(of(&a, "idle", true, "")).expected, "a reason, for the record");
}
