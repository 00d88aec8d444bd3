//! What time causes and what it does not: looks that come early, times that fall together, what a park
//! stops and an unpark sets anew, and the one index entry that says when to look.

use crate::build::{Mc, doc, event, machine, mutation, name, rest, stay, step, to, wait};
use crate::semantics::{idle, job, working};
use crate::world::{World, permanent};
use interlock_kernel::command::{Change, Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::machine::{FailurePath, Machine, Retry};
use interlock_kernel::record::{FactKind, Head, Key, Record, What};
use interlock_kernel::time::{StoreTime, WallTime};
use interlock_kernel::view::Wake;

fn due(world: &World, id: &EntityId) -> Option<u64> {
    world.head(id).due.map(|due| due.0)
}

fn plant(world: &mut World, id: &EntityId, change: impl FnOnce(&mut Head)) {
    let mut head = world.head(id);
    change(&mut head);
    world.records.put(&Key::Head(id.clone()), &Record::Head(Box::new(head)));
}

#[test]
fn a_look_before_its_time_writes_nothing_not_even_an_adoption() {
    let (mut world, id) = working();
    world.fail(&id, "slow");
    world.deploy(job().with(|machine| machine.owner = "another team".to_owned()));
    world.pass(999);
    assert_eq!(world.ok(Verb::Due(id.clone())), Outcome::Nothing);
    assert!(world.wrote.is_empty() && world.head(&id).revision == 1);
    world.pass(1);
    world.ok(Verb::Due(id.clone()));
    assert_eq!((world.head(&id).revision, world.claim(&id).attempt), (2, 2));
}

/// A visit of at most 10 s with a back-off of a minute, and one after it.
fn bounded(change: impl FnOnce(&mut Machine)) -> (World, EntityId) {
    let retry = Retry { attempts: 9, first_ms: 60_000, factor: 1.0, max_ms: 60_000, jitter: 0.0 };
    let job = machine("job", "idle")
        .event("run")
        .state("idle", rest().on("run", to("first")))
        .state("first", step("work").to(to("second")).to(to("idle")).deadline(10_000))
        .state("second", step("work").to(to("idle")).to(to("third")).deadline(90_000).retry(retry.clone()))
        .state("third", step("work").to(to("idle")).retry(retry));
    let (mut world, id) = World::of(job.with(change), "job/a");
    world.send(&id, "run", "r1");
    (world, id)
}

#[test]
fn an_index_entry_that_comes_up_early_begins_no_second_attempt() {
    for failed in [false, true] {
        let (mut world, id) = bounded(|_| ());
        world.pass(5_000);
        world.go(&id, "second");
        if failed {
            world.fail(&id, "slow"); // the next attempt is at 65 s
        }
        assert_eq!(due(&world, &id), Some(10_000), "of the visit before: rewritten only when it gets earlier");
        let before = world.head(&id).lock;
        world.due(&id);
        assert_eq!(world.head(&id).lock, before);
        assert!(!world.wakes.iter().any(|wake| matches!(wake, Wake::Run(_))));
        assert_eq!(due(&world, &id), Some(if failed { 65_000 } else { 95_000 }));
    }
}

#[test]
fn an_index_entry_stays_while_locked_although_nothing_needs_it_and_goes_at_rest() {
    let (mut world, id) = bounded(|_| ());
    world.go(&id, "second");
    world.go(&id, "third"); // no deadline
    assert_eq!(due(&world, &id), Some(10_000));
    assert!(!world.wrote.keys().any(|key| matches!(key, Key::Due(..))), "no index write for a visit that is left");
    world.go(&id, "idle");
    assert_eq!(due(&world, &id), None);
}

#[test]
fn a_runaway_is_not_moved_by_the_limit_of_its_execution() {
    let (mut world, id) = bounded(|machine| {
        (machine.limits.execution_ms, machine.limits.transitions) = (Some(5_000), 1);
    });
    assert_eq!(due(&world, &id), Some(5_000));
    world.go(&id, "second"); // the first move is one too many
    assert_eq!(world.head(&id).park.unwrap().code, "runaway");
    world.due(&id);
    assert_eq!((world.store, world.head(&id).park.unwrap().code.as_str()), (5_000, "runaway"));
    assert_eq!(due(&world, &id), Some(90_000), "its deadline still works, its limit does not");
    let mut beyond = bounded(|machine| {
        (machine.limits.execution_ms, machine.limits.transitions) = (Some(500_000), 1);
        machine.states.get_mut(&name("second")).unwrap().deadline_ms = None;
    });
    beyond.0.go(&beyond.1, "second");
    beyond.0.due(&beyond.1);
    assert_eq!(due(&beyond.0, &beyond.1), None);
}

#[test]
fn a_park_forgets_back_off_and_limit() {
    let (mut world, id) = bounded(|machine| {
        machine.limits.execution_ms = Some(5_000);
        machine.states.get_mut(&name("first")).unwrap().retry =
            Retry { attempts: 9, first_ms: 9_000, ..Retry::default() };
    });
    world.fail(&id, "slow");
    assert!(world.head(&id).lock.unwrap().retry.is_some());
    world.due(&id);
    let head = world.head(&id);
    let lock = head.lock.unwrap();
    assert_eq!((head.park.unwrap().code.as_str(), lock.retry, lock.limit), ("execution-limit", None, None));
}

#[test]
fn what_is_set_aside_has_neither_back_off_nor_limit() {
    let (mut world, id) = bounded(|machine| machine.limits.execution_ms = Some(5_000));
    world.fail(&id, "slow");
    plant(&mut world, &id, |head| head.executions = 9);
    world.unchecked = true;
    world.ok(Verb::Audit { entity: id.clone(), found: Vec::new(), abandoned: None });
    let lock = world.head(&id).lock.unwrap();
    assert_eq!((world.head(&id).is_inconsistent(), lock.retry, lock.limit), (true, None, None));
}

#[test]
fn a_failure_path_and_a_deadline_are_transitions_in_a_row_too() {
    let circle = |machine: &mut Machine| {
        machine.limits.transitions = 2;
        let state = machine.states.get_mut(&name("first")).unwrap();
        state.on_exhausted = FailurePath::To { to: name("first"), set: Vec::new() };
        state.on_permanent = FailurePath::To { to: name("first"), set: Vec::new() };
    };
    let (mut world, id) = bounded(circle);
    for chain in 1..=2 {
        world.end(&id, permanent("burnt")).unwrap();
        assert_eq!(world.head(&id).lock.unwrap().chain, chain);
    }
    assert_eq!(world.head(&id).park.unwrap().code, "runaway");
    let (mut world, id) = bounded(circle);
    for chain in 1..=2 {
        world.due(&id);
        assert_eq!((world.store, world.head(&id).lock.unwrap().chain), (u64::from(chain) * 10_000, chain));
    }
    assert_eq!(world.head(&id).park.unwrap().code, "runaway");
}

#[test]
fn a_budget_of_no_transitions_parks_steps_and_not_waits() {
    let (mut world, id) = bounded(|machine| {
        machine.limits.transitions = 0;
        let first = machine.states.get_mut(&name("first")).unwrap();
        first.step = None;
        first.to.clear();
    });
    assert!(world.head(&id).park.is_none());
    let (world_of_steps, id_of_steps) = bounded(|machine| machine.limits.transitions = 0);
    assert_eq!(world_of_steps.head(&id_of_steps).park.unwrap().code, "runaway");
    world.due(&id);
}

#[test]
fn unpark_leaves_a_deadline_that_still_runs() {
    let (mut world, id) = bounded(|machine| machine.states.get_mut(&name("first")).unwrap().retry.attempts = 1);
    world.fail(&id, "slow");
    world.pass(4_000);
    world.ok(Verb::Unpark(id.clone()));
    assert_eq!(world.head(&id).deadline, Some(StoreTime(10_000)));
}

#[test]
fn a_deadline_over_while_parked_takes_its_path_if_there_is_one() {
    let parked = |path: FailurePath| {
        let (mut world, id) = bounded(|machine| {
            let first = machine.states.get_mut(&name("first")).unwrap();
            first.on_exhausted = path;
        });
        world.end(&id, permanent("burnt")).unwrap();
        assert_eq!(world.head(&id).park.unwrap().code, "permanent");
        world.due(&id);
        let head = world.head(&id);
        (head.state.to_string(), head.park.map(|park| park.code), head.deadline)
    };
    let stays = ("first".to_owned(), Some("permanent".to_owned()), None);
    assert_eq!(parked(FailurePath::Park), stays, "why it was parked says more");
    assert_eq!(parked(FailurePath::To { to: name("idle"), set: Vec::new() }), ("idle".to_owned(), None, None));
}

/// A step and a wait with a timer each; the timer in place leaves them there.
fn ringing() -> Mc {
    machine("job", "idle")
        .event("run")
        .event("rest")
        .state("idle", rest().on("run", to("working")).on("rest", to("waiting")))
        .state("working", step("work").to(to("idle")).after("bell", 1_000, stay()).attempts(1))
        .state("waiting", wait().after("bell", 20_000, stay()).deadline(10_000))
}

#[test]
fn unpark_sets_no_timer_of_a_step_again() {
    let (mut world, id) = World::of(ringing(), "job/a");
    world.send(&id, "run", "r1");
    world.fire(&id, "bell");
    world.fail(&id, "slow");
    world.ok(Verb::Unpark(id.clone()));
    assert_eq!(world.head(&id).timers, []);
}

#[test]
fn unpark_of_a_wait_leaves_a_timer_that_still_runs() {
    let (mut world, id) = World::of(ringing(), "job/a");
    world.send(&id, "rest", "w1");
    let timers = world.head(&id).timers;
    world.due(&id);
    assert_eq!(world.head(&id).park.unwrap().code, "deadline");
    world.ok(Verb::Unpark(id.clone()));
    assert_eq!(world.head(&id).timers, timers);
    assert_eq!(world.head(&id).deadline, Some(StoreTime(20_000)));
}

#[test]
fn of_two_timers_due_together_the_named_one_fires() {
    let both = machine("job", "idle")
        .event("run")
        .data(r#"{"one":0,"two":0}"#)
        .state("idle", rest().on("run", to("waiting")))
        .state(
            "waiting",
            wait().forever().after("one", 1_000, stay().set("data.one += 1")).after(
                "two",
                1_000,
                stay().set("data.two += 1"),
            ),
        );
    let (mut world, id) = World::of(both, "job/a");
    world.send(&id, "run", "r1");
    world.fire(&id, "two");
    assert_eq!(world.data(&id), r#"{"one":0,"two":1}"#);
    let entry = world.last_entry(&id);
    assert_eq!((entry.what, entry.execution, entry.attempt), (What::Timer(name("two")), Some(1), None));
    world.fire(&id, "one");
    assert_eq!(world.data(&id), r#"{"one":1,"two":1}"#);
}

#[test]
fn a_timer_in_place_is_progress_and_names_no_attempt_of_its_own() {
    let (mut world, id) = World::of(ringing(), "job/a");
    world.send(&id, "run", "r1");
    world.fire(&id, "bell");
    assert_eq!(world.head(&id).lock.unwrap().progress.0, world.wall);
    let entry = world.last_entry(&id);
    assert_eq!((entry.execution, entry.attempt, entry.token), (Some(1), None, None));
}

#[test]
fn an_index_entry_of_a_timer_without_its_visit_or_its_entity_is_used_up() {
    let (mut world, id) = World::of(ringing(), "job/a");
    for (entity, facts) in [(id.clone(), 1), (crate::build::entity("job/nobody"), 0)] {
        let key = Key::Timer(WallTime(7), entity.clone(), name("bell"));
        world.records.put(&key, &Record::Mark);
        let fire = Verb::Fire { entity: entity.clone(), timer: name("bell"), due: WallTime(7) };
        world.ok(fire.clone());
        assert_eq!(world.wrote.get(&key), Some(&false), "{entity}");
        world.ok(fire);
        assert!(!world.wrote.contains_key(&key), "{entity}: only what is there is removed");
        let met = world.find_head(&entity).map_or(0, |head| head.facts[&FactKind::StaleTimer]);
        assert_eq!(met, 2 * facts);
    }
}

#[test]
fn what_an_audit_found_and_is_gone_since_is_no_finding() {
    let (mut world, id) = idle();
    for entity in [id, crate::build::entity("job/nobody")] {
        let found = vec![Key::Due(StoreTime(5), entity.clone())];
        let audit = Verb::Audit { entity, found, abandoned: None };
        assert_eq!(world.ok(audit), Outcome::Repaired(Vec::new()));
        assert!(world.wrote.is_empty());
    }
}

#[test]
fn history_is_trimmed_whenever_sixteen_more_were_written_and_not_before() {
    let (mut world, id) = World::of(job().with(|machine| machine.limits.history_ms = 100), "job/a");
    for number in 2..=15 {
        world.send(&id, "note", &format!("n{number}"));
    }
    world.pass(100);
    assert_eq!(world.head(&id).history.last, 15);
    world.send(&id, "note", "n16");
    assert_eq!(world.head(&id).history.first, 1, "kept for a hundred ms, and these are a hundred ms old");
    for number in 17..=31 {
        world.send(&id, "note", &format!("n{number}"));
    }
    world.pass(1);
    assert_eq!(world.head(&id).history.first, 1);
    world.send(&id, "note", "n32");
    assert_eq!(world.head(&id).history.first, 16, "fifteen were a hundred and one ms old");
    world.pass(1_000);
    for number in 33..=47 {
        world.send(&id, "note", &format!("n{number}"));
        assert_eq!(world.head(&id).history.first, 16, "n{number}");
    }
}

/// Follows `desired` in place, unless it is 13 or not to be had.
fn follower() -> Mc {
    machine("pool", "ready").event("poke").event("nudge").state(
        "ready",
        rest().on("desired-changed", stay().when("desired ne 13").set("data.size += desired")).on("poke", to("ready")),
    )
}

fn apply(id: &EntityId, text: &str) -> Verb {
    Verb::Apply { entity: id.clone(), desired: doc(text), expect: None, checked: None }
}

#[test]
fn desired_taken_in_place_is_observed_and_taken_once() {
    let (mut world, id) = World::of(follower(), "pool/p");
    world.ok(apply(&id, "4"));
    let head = world.head(&id);
    assert_eq!((world.decisions, head.generation, head.observed, head.version.get()), (2, 1, 1, 2));
    world.send(&id, "poke", "p1");
    world.ok(Verb::Continue(id.clone()));
    assert!(world.wrote.is_empty());
    assert_eq!(world.data(&id), r#"{"size":4}"#);
}

#[test]
fn desired_that_cannot_be_taken_leaves_no_trace_and_is_not_tried_by_every_command() {
    for refused in ["13", r#""text""#] {
        let (mut world, id) = World::of(follower(), "pool/p");
        world.ok(apply(&id, refused));
        let head = world.head(&id);
        assert_eq!((world.decisions, head.observed, head.version.get(), head.history.last), (2, 0, 1, 2));
        world.deliver(&id, event("nudge", "n1")).unwrap_err(); // a fact, not a change
        assert_eq!(world.decisions, 1, "what was not taken is not raised again by what changed nothing");
        world.send(&id, "poke", "p1");
        assert_eq!(world.decisions, 2);
    }
}

#[test]
fn what_a_rest_is_followed_by_is_for_a_rest_in_order() {
    let (mut world, id) = working();
    world.send(&id, "later", "l1");
    world.ok(Verb::Continue(id.clone()));
    assert!(world.wrote.is_empty(), "it works");
    // At rest with a waiting event, but not to be trusted.
    plant(&mut world, &id, |head| {
        head.state = name("idle");
    });
    world.unchecked = true;
    world.ok(Verb::Audit { entity: id.clone(), found: Vec::new(), abandoned: None });
    assert!(world.head(&id).is_inconsistent() && world.head(&id).inbox.length == 1);
    let records = world.records.clone();
    world.ok(Verb::Continue(id.clone()));
    assert!(world.records == records);
}

#[test]
fn setting_a_whole_document_to_null_is_a_change() {
    let (mut world, id) = working();
    world.save(&id, Change { set: vec![mutation("data = null")], ..Change::default() }).unwrap();
    assert_eq!(world.data(&id), "null");
}
