//! Time moves by hand: timers, deadlines, the wall clock.

use crate::world::{ACTOR, doing, host};
use interlock::to;
use interlock_mock::{End, MockHost, Steps, at};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn nothing_happens_before_it_is_time() {
    let mut host = doing("wait");
    host.run();
    host.entity("a").state_is("waiting");
    assert_eq!(host.entity("a").timers(), ["after"]);
    host.advance(Duration::from_secs(89));
    host.entity("a").state_is("waiting");
    host.advance(Duration::from_secs(1));
    host.entity("a").state_is("idle");
    assert_eq!(*host.entity("a").outputs(), json!({ "by": "after" }));
    assert_eq!((host.passed().as_secs(), host.wall_ms()), (90, 1_767_225_690_000));
}

#[test]
fn until_goes_as_far_as_a_state_and_no_further() {
    let mut host = doing("wait");
    host.until("a", "settling").state_is("settling");
    assert_eq!(host.passed().as_secs(), 90);
    assert_eq!((host.ran().len(), &host.ran()[1].end), (2, &End::Running));
    let ran = host.step("a");
    assert_eq!((ran.step.as_str(), ran.to(), ran.outputs()), ("settle", "idle", json!({ "by": "after" })));
}

#[test]
fn a_wall_clock_that_jumps_brings_timers_and_nothing_else() {
    let mut host = doing("wait");
    host.run();
    host.jump_ms(90_000);
    host.advance(Duration::from_secs(1));
    host.entity("a").state_is("idle");

    let mut host = doing("fail-twice");
    host.run();
    host.jump_ms(3_600_000);
    host.run();
    assert_eq!(host.ran().len(), 1, "a back-off is time that passes");

    let mut host = doing("wait");
    host.run();
    host.jump_ms(-3_600_000);
    host.advance(Duration::from_secs(90));
    host.entity("a").state_is("waiting");
    host.advance(Duration::from_secs(3_600));
    host.entity("a").state_is("idle");
}

#[test]
fn an_attempt_without_progress_is_ended_and_its_next_call_fenced() {
    let mut host = doing("go-on-when-fenced");
    host.hold(at("act").attempt(1));
    host.advance(Duration::from_secs(29));
    assert_eq!(host.entity("a").failed(), 0);
    host.advance(Duration::from_secs(1));
    assert_eq!(host.entity("a").failed(), 1);
    assert!(host.entity("a").history().contains(&"attempt 1 failed: idle-deadline, next in 1 s".to_owned()));
    host.let_go();
    host.run();
    let zombie = &host.ran()[0];
    assert_eq!(zombie.refusals()[0].code, "fenced");
    host.until_settled("a").state_is("idle");
}

#[test]
fn a_save_is_progress_and_the_total_deadline_is_not_moved_by_it() {
    // Held for 20 s before each save, it is never without progress for 30 s.
    let mut host = doing("save-for-ever");
    for call in 1..=14 {
        host.hold(at("act").call(call));
        host.advance(Duration::from_secs(20));
        host.let_go();
    }
    assert_eq!((host.passed().as_secs(), host.entity("a").failed()), (280, 0));
    host.hold(at("act").call(15));
    host.advance(Duration::from_secs(20));
    assert!(host.entity("a").history().iter().any(|line| line.starts_with("attempt 1 failed: total-deadline")));
    host.let_go();
    host.kill("a", "enough").accepted();
}

#[test]
fn a_step_that_computes_without_end_is_ended_by_its_deadline() {
    let over = Arc::new(AtomicBool::new(false));
    let (seen, begun) = (Arc::clone(&over), AtomicBool::new(false));
    let steps = Steps::one("act", move |actor| {
        // Without a call to the host, which would end it.
        let is_first = !begun.swap(true, Ordering::SeqCst);
        while is_first && !seen.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        Ok(actor.transition(to("idle"))?)
    });
    let mut host = MockHost::new(ACTOR, steps);
    host.create("a").accepted();
    host.patience(Duration::ZERO);
    host.send("a", "run", json!({})).accepted();
    host.patience(Duration::from_secs(120));
    host.run();
    assert!(host.story().contains("the step of actor/a computes on and on"), "{host}");
    host.advance(Duration::from_secs(30));
    assert_eq!(host.ran()[0].failed("idle-deadline").reason(), "act was without progress for 30 s");
    over.store(true, Ordering::SeqCst);
    host.until_settled("a").state_is("idle");
    assert_eq!(host.ran().len(), 2);
}

#[test]
fn a_visit_has_its_deadline_whatever_its_attempts_do() {
    let mut host = doing("fail");
    let before = host.until_settled("a");
    assert_eq!(before.parked(), Some("exhausted"));
    host.advance(Duration::from_secs(3_600));
    // Over is the failure path, which parks: it is parked already, and says why it would be now.
    assert!(host.entity("a").parked().is_some());
}

#[test]
fn a_host_that_is_never_let_go_on_says_what_it_waits_for() {
    let mut host = host();
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.until("a", "waiting"))).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(
        text.starts_with(
            "expected a to come to the state waiting, got nothing that happens by itself: actor/a is idle"
        ),
        "{text}"
    );
}
