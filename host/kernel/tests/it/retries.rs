//! What happens to attempts that end without a transition: budgets, waits, deadlines, parks.

use crate::build::{Mc, event, machine, mutation, name, rest, stay, step, succeeded, to, wait};
use crate::semantics::job;
use crate::world::{World, failure, permanent};
use interlock_kernel::command::{Change, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::{LOST_MAX, RETRY_AFTER_MS_MAX, TEXT_BYTES_MAX};
use interlock_kernel::machine::Retry;
use interlock_kernel::record::{CauseKind, Failure, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::view::Wake;

/// One step with this retry policy, and nowhere to go.
fn tries(retry: Retry) -> (World, EntityId) {
    let job = machine("job", "idle")
        .event("run")
        .state("idle", rest().on("run", to("working")))
        .state("working", step("work").to(to("idle")).retry(retry));
    let (mut world, id) = World::of(job, "job/a");
    world.send(&id, "run", "r1");
    (world, id)
}

/// Waits between attempts until it parks.
fn waits(retry: Retry, failed: &Failure) -> Vec<u64> {
    let (mut world, id) = tries(retry);
    let mut waits = Vec::new();
    loop {
        world.end(&id, failed.clone()).unwrap();
        let head = world.head(&id);
        let Some(next) = head.lock.unwrap().retry else {
            assert_eq!(head.park.unwrap().code, if failed.permanent { "permanent" } else { "exhausted" });
            return waits;
        };
        waits.push(next.0 - world.store);
        world.due(&id);
    }
}

fn even() -> Retry {
    Retry { attempts: 8, first_ms: 1_000, factor: 2.0, max_ms: 10_000, jitter: 0.0 }
}

#[test]
fn waits_double_up_to_the_cap_and_then_it_parks_as_exhausted() {
    assert_eq!(waits(even(), &failure("slow")), [1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000]);
}

#[test]
fn a_budget_of_one_or_none_is_one_attempt() {
    for attempts in [0, 1] {
        assert_eq!(waits(Retry { attempts, ..even() }, &failure("slow")), Vec::<u64>::new());
    }
}

#[test]
fn a_wild_policy_stays_within_its_cap() {
    for (factor, jitter) in [(f64::INFINITY, 0.0), (-3.0, 0.0), (1e300, 1.0), (0.0, 1.0)] {
        for wait in waits(Retry { factor, jitter, ..even() }, &failure("slow")) {
            assert!(wait <= 10_000, "{factor} {jitter}: {wait}");
        }
    }
}

#[test]
fn jitter_is_within_bounds_deterministic_and_not_the_same_for_all() {
    let spread = Retry { jitter: 0.5, ..even() };
    let one = waits(spread.clone(), &failure("slow"));
    assert_eq!(one, waits(spread.clone(), &failure("slow")));
    for (wait, plain) in one.iter().zip([1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000]) {
        assert!((plain / 2..=(plain + plain / 2).min(10_000)).contains(wait), "{wait} of {plain}");
    }
    assert_ne!(one[..4], [1_000, 2_000, 4_000, 8_000]);
    let capped = waits(Retry { first_ms: 64_000, ..spread.clone() }, &failure("slow"));
    assert!(capped.iter().any(|wait| *wait < 10_000), "what is spread is the capped wait: {capped:?}");
    // Another attempt token, another draw.
    let first_wait = |skip: u64| {
        let (mut world, id) = tries(spread.clone());
        world.seq += skip;
        world.reboot();
        world.fail(&id, "slow");
        world.head(&id).lock.unwrap().retry.unwrap().0
    };
    assert!((0..8).map(first_wait).collect::<std::collections::BTreeSet<_>>().len() > 4);
}

#[test]
fn the_pause_a_step_asks_for_is_a_lower_bound_and_bounded() {
    let asking = |ms| Failure { retry_after_ms: Some(ms), ..failure("slow") };
    assert_eq!(waits(Retry { attempts: 4, ..even() }, &asking(3_000)), [3_000, 3_000, 4_000]);
    assert_eq!(waits(Retry { attempts: 2, ..even() }, &asking(u64::MAX)), [RETRY_AFTER_MS_MAX]);
}

#[test]
fn a_permanent_failure_skips_retries() {
    assert_eq!(waits(even(), &permanent("burnt")), Vec::<u64>::new());
}

#[test]
fn a_failure_path_is_taken_with_its_set_and_the_failure_as_the_event() {
    let job = job().with(|machine| {
        let state = machine.states.get_mut(&name("working")).unwrap();
        state.retry.attempts = 1;
        state.on_exhausted = interlock_kernel::machine::FailurePath::To {
            to: name("stopping"),
            set: vec![mutation("data.why = event.code"), mutation("data.from = event.state")],
        };
    });
    let (mut world, id) = World::of(job, "job/a");
    world.send(&id, "run", "r1");
    world.fail(&id, "slow");
    assert_eq!(world.data(&id), r#"{"from":"working","notes":0,"runs":1,"why":"slow"}"#);
    let head = world.head(&id);
    assert_eq!(
        (head.state.as_str(), head.cause.kind, head.cause.name.as_str()),
        ("stopping", CauseKind::Failure, "working")
    );
    assert!(world.starts[&id].payload.as_ref().unwrap().text().contains(r#""code":"slow""#));
    assert!(matches!(world.last_entry(&id).what, What::FailurePath(_)));
    world.go(&id, "idle");
}

#[test]
fn a_failure_path_that_cannot_be_taken_parks() {
    let job = job().with(|machine| {
        machine.states.get_mut(&name("working")).unwrap().on_permanent =
            interlock_kernel::machine::FailurePath::To { to: name("idle"), set: vec![mutation("data.runs << 1")] };
    });
    let (mut world, id) = World::of(job, "job/a");
    world.send(&id, "run", "r1");
    let version = world.head(&id).version;
    world.end(&id, permanent("burnt")).unwrap();
    let head = world.head(&id);
    assert_eq!((head.park.unwrap().code.as_str(), head.version), ("failure-path", version));
    assert_eq!(world.data(&id), r#"{"notes":0,"runs":1}"#);
}

#[test]
fn attempts_lost_with_their_host_resume_at_once_then_wait_and_the_tenth_parks() {
    let (mut world, id) = tries(even());
    let mut waits = Vec::new();
    for lost in 1..=LOST_MAX {
        world.pass(10);
        world.reboot();
        let lock = world.head(&id).lock.unwrap();
        assert_eq!((lock.lost, lock.failed), (lost, 0));
        match lock.retry {
            Some(at) => {
                waits.push(at.0 - world.store);
                world.due(&id);
            }
            None if lost == 1 => assert!(lock.attempt.is_some(), "the first resumes at once"),
            None => assert_eq!(lost, LOST_MAX),
        }
    }
    assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    assert_eq!(world.head(&id).park.unwrap().code, "crash-loop");
    assert!(world.head(&id).lock.is_some());
}

#[test]
fn a_graceful_stop_counts_nowhere() {
    let (mut world, id) = tries(even());
    for _ in 0..2 * LOST_MAX {
        world.ok(Verb::CloseSession);
        world.reboot();
        let lock = world.head(&id).lock.unwrap();
        assert_eq!((lock.lost, lock.failed), (0, 0));
        assert!(lock.attempt.is_some());
    }
    assert!(matches!(world.last_entry(&id).what, What::Begun(interlock_kernel::record::BeginReason::HostStopped)));
}

#[test]
fn a_new_visit_forgets_lost_and_failed_attempts() {
    let (mut world, id) = World::of(job(), "job/a");
    world.send(&id, "run", "r1");
    for _ in 0..3 {
        world.reboot();
        if world.head(&id).lock.unwrap().retry.is_some() {
            world.due(&id);
        }
    }
    world.go(&id, "working");
    let lock = world.head(&id).lock.unwrap();
    assert_eq!((lock.lost, lock.failed, lock.attempts), (0, 0, 1));
}

#[test]
fn unpark_is_the_next_attempt_with_fresh_budgets() {
    let (mut world, id) = tries(Retry { attempts: 2, ..even() });
    for _ in 0..3 {
        world.fail(&id, "slow");
        world.due(&id);
        world.fail(&id, "slow");
        assert_eq!(world.head(&id).park.unwrap().code, "exhausted");
        let before = world.head(&id).lock.unwrap().attempts;
        world.pass(1_000_000);
        world.ok(Verb::Unpark(id.clone()));
        let lock = world.head(&id).lock.unwrap();
        assert_eq!((lock.failed, lock.lost, lock.attempt.unwrap().ordinal), (0, 0, before + 1));
    }
    world.go(&id, "idle");
}

fn limited(transitions: u32) -> Mc {
    job().with(|machine| machine.limits.transitions = transitions)
}

#[test]
fn a_loop_without_a_wait_parks_as_runaway() {
    let (mut world, id) = World::of(limited(3), "job/a");
    world.send(&id, "run", "r1");
    for _ in 0..2 {
        world.go(&id, "working");
        assert!(world.head(&id).park.is_none());
    }
    world.go(&id, "working");
    let head = world.head(&id);
    assert_eq!(head.park.unwrap().code, "runaway");
    assert!(head.lock.unwrap().attempt.is_none());
    assert!(matches!(world.last_entry(&id).what, What::Parked(..)));
    assert!(world.wakes.iter().any(|wake| matches!(wake, Wake::Settled(_))));
    world.ok(Verb::Unpark(id.clone()));
    world.go(&id, "working");
    assert!(world.head(&id).park.is_none(), "the chain starts again");
}

#[test]
fn a_wait_or_an_event_breaks_the_chain() {
    let (mut world, id) = World::of(limited(3), "job/a");
    world.send(&id, "run", "r1");
    world.go(&id, "working");
    world.go(&id, "working");
    world.go(&id, "waiting");
    world.send(&id, "stop", "s1");
    assert_eq!(world.head(&id).lock.unwrap().chain, 0);
    world.go(&id, "idle");
    assert!(world.head(&id).park.is_none());
}

#[test]
fn the_execution_limit_parks_whatever_it_is_doing() {
    let job = job().with(|machine| machine.limits.execution_ms = Some(5_000));
    let (mut world, id) = World::of(job, "job/a");
    world.send(&id, "run", "r1");
    world.pass(3_000);
    let busy = world.deliver(&id, event("run", "r2")).unwrap_err();
    assert_eq!(busy.detail.unwrap().value()["until_ms"], world.wall + 2_000, "the longest it can take");
    world.go(&id, "working"); // the limit is the execution's, not the visit's
    let zombie = world.claim(&id);
    world.due(&id);
    assert_eq!(world.store, 5_000);
    assert_eq!(world.head(&id).park.unwrap().code, "execution-limit");
    assert_eq!(world.code(Verb::Transition(zombie, name("idle"), Box::default())), Code::Fenced);
    world.ok(Verb::Unpark(id.clone()));
    assert_eq!(world.head(&id).due.unwrap().0, 10_000);
    world.go(&id, "idle");
    assert_eq!(world.head(&id).due, None);
}

/// A visit of at most 10 s, then another way.
fn bounded() -> (World, EntityId) {
    let job = machine("job", "idle")
        .event("run")
        .event("note")
        .event("again")
        .state("idle", rest().on("run", to("working")).deadline(1))
        .state(
            "working",
            step("work")
                .to(to("working"))
                .to(to("idle"))
                .on("note", stay())
                .on("again", to("working"))
                .deadline(10_000)
                .retry(Retry { attempts: 9, first_ms: 60_000, max_ms: 60_000, ..even() })
                .on_exhausted(to("late").set("data.late = true")),
        )
        .state("late", step("mend").to(to("idle")));
    let (mut world, id) = World::of(job, "job/a");
    world.send(&id, "run", "r1");
    (world, id)
}

#[test]
fn a_deadline_over_is_the_failure_path_and_fences_the_attempt() {
    let (mut world, id) = bounded();
    let zombie = world.claim(&id);
    world.pass(9_999);
    world.run(Verb::Due(id.clone())).unwrap();
    assert_eq!(world.head(&id).state, name("working"), "never early");
    world.due(&id);
    assert_eq!(world.head(&id).state, name("late"));
    assert_eq!(world.data(&id), r#"{"late":true}"#);
    assert_eq!(world.head(&id).cause.kind, CauseKind::Deadline);
    assert_eq!(world.code(Verb::Transition(zombie, name("idle"), Box::default())), Code::Fenced);
}

#[test]
fn a_deadline_counts_back_off_and_events_in_place() {
    let (mut world, id) = bounded();
    world.pass(4_000);
    world.send(&id, "note", "n1");
    world.fail(&id, "slow");
    world.due(&id);
    assert_eq!((world.store, world.head(&id).state.as_str()), (10_000, "late"));
}

#[test]
fn a_state_entered_again_has_its_whole_deadline() {
    let (mut world, id) = bounded();
    for again in 1..=3_u64 {
        world.pass(9_000);
        if again == 2 {
            world.send(&id, "again", "a1");
        } else {
            world.go(&id, "working");
        }
        assert_eq!(world.head(&id).deadline.unwrap().0, world.store + 10_000);
    }
    assert!(world.head(&id).due.unwrap().0 < world.head(&id).deadline.unwrap().0, "the index may be early");
    world.due(&id);
    assert_eq!(world.head(&id).state, name("working"), "and is then moved on");
    world.due(&id);
    assert_eq!(world.head(&id).state, name("late"));
}

#[test]
fn a_rest_has_no_deadline() {
    let (mut world, id) = bounded();
    world.go(&id, "idle");
    let head = world.head(&id);
    assert_eq!((head.deadline, head.due), (None, None));
}

#[test]
fn a_deadline_that_would_park_what_is_parked_keeps_the_first_reason_and_unpark_sets_it_anew() {
    let job = job().with(|machine| {
        let state = machine.states.get_mut(&name("working")).unwrap();
        state.deadline_ms = Some(10_000);
        state.retry.attempts = 1;
    });
    let (mut world, id) = World::of(job, "job/a");
    world.send(&id, "run", "r1");
    world.fail(&id, "slow");
    assert_eq!(world.head(&id).park.unwrap().code, "exhausted");
    let entries = world.head(&id).history.last;
    world.due(&id);
    let head = world.head(&id);
    // Why it was parked stays said: that nobody came in time says less.
    assert_eq!((world.store, head.park.unwrap().code.as_str(), head.deadline), (10_000, "exhausted", None));
    assert_eq!(head.history.last, entries);
    world.pass(70_000);
    world.ok(Verb::Unpark(id.clone()));
    assert_eq!(world.head(&id).deadline.unwrap().0, 90_000);
}

#[test]
fn long_reasons_are_cut_not_refused() {
    let (mut world, id) = tries(even());
    let long = Failure { reason: "ü".repeat(10_000), ..failure(&"c".repeat(10_000)) };
    world.end(&id, long).unwrap();
    let kept = world.head(&id).lock.unwrap().failure.unwrap();
    assert!(kept.reason.len() <= TEXT_BYTES_MAX && kept.code.len() == TEXT_BYTES_MAX);
}

#[test]
fn saves_survive_a_failed_attempt_and_move_the_base() {
    let (mut world, id) = tries(even());
    let visit = world.head(&id).visit;
    assert_eq!(world.starts[&id].base, visit);
    world.save(&id, Change { set: vec![mutation("data.done = 1")], ..Change::default() }).unwrap();
    world.fail(&id, "slow");
    world.due(&id);
    let start = &world.starts[&id];
    assert_eq!((start.visit, start.base.get()), (visit, visit.get() + 1));
    assert_eq!(start.documents.data.as_ref().unwrap().text(), r#"{"done":1}"#);
}

#[test]
fn a_wait_that_nothing_can_end_is_parked_and_unpark_waits_once_more() {
    let wait_for = |bell| {
        machine("job", "idle")
            .event("run")
            .state("idle", rest().on("run", to("waiting")))
            .state("waiting", wait().after("bell", 1_000, bell))
            .state("over", succeeded())
    };
    for bell in [stay().set("data.rung += 1"), to("over").when("data.open eq true")] {
        let (mut world, id) = World::of(wait_for(bell), "job/a");
        world.send(&id, "run", "r1");
        for _ in 0..2 {
            world.fire(&id, "bell");
            assert_eq!(world.head(&id).park.unwrap().code, "stranded");
            assert_eq!(world.deliver(&id, event("run", "r2")).unwrap_err().code, Code::Busy);
            world.ok(Verb::Unpark(id.clone()));
            assert_eq!(world.head(&id).timers.len(), 1);
        }
    }
}
