//! The host dies and comes back.

use crate::world::{ACTOR, STEPS, doing, host};
use interlock::to;
use interlock_mock::{Answer, End, Fault, MockHost, Steps, at};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[test]
fn a_step_is_begun_again_from_what_is_on_record() {
    let mut host = doing("save-and-go");
    host.fault(at("act").call(2), Fault::Crash);
    host.run();
    let ran = host.ran();
    assert_eq!((&ran[0].end, ran[0].calls()[1].told.as_ref()), (&End::Lost, None));
    assert!(ran[1].token > ran[0].token);
    assert_eq!(ran[1].event, ran[0].event, "the same event, for every attempt of the visit");
    assert_eq!((ran[1].attempt, &ran[1].end), (2, &End::Done));
    assert_eq!(host.entity("a").history()[3], "attempt 1 lost with its host, begun again");
}

#[test]
fn a_killed_host_does_nothing() {
    let mut host = doing("wait");
    host.run();
    host.crash();
    let answer: Answer = host.send("a", "run", json!({}));
    assert!(answer.to_string().starts_with("NOT DONE"), "{answer}");
    host.advance(Duration::from_secs(100));
    assert_eq!(host.ran().len(), 1);
    host.boot();
    host.run();
    host.entity("a").state_is("idle");
    assert_eq!(host.ran().len(), 2, "the timer counts the time that the host was down");
}

#[test]
fn the_thread_of_a_killed_step_is_unwound_before_the_next_begins() {
    struct Unwound(Arc<AtomicU32>);
    impl Drop for Unwound {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let unwound = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&unwound);
    let steps = Steps::one("act", move |actor| {
        let _here = Unwound(Arc::clone(&seen));
        // What it has to say while it unwinds is for nobody.
        struct Talks<'a>(&'a interlock::Entity);
        impl Drop for Talks<'_> {
            fn drop(&mut self) {
                interlock::log::info!("attempt {}", self.0.attempt());
            }
        }
        let _talks = Talks(actor);
        assert_eq!(seen.load(Ordering::SeqCst), actor.attempt() - 1);
        Ok(actor.transition(to("idle"))?)
    });
    let mut host = MockHost::new(ACTOR, steps);
    host.create("a").accepted();
    host.send("a", "run", json!({})).accepted();
    host.restart();
    host.advance(Duration::from_secs(1));
    host.entity("a").state_is("idle");
    assert_eq!(host.ran().len(), 2);
    assert_eq!(unwound.load(Ordering::SeqCst), 2);
    let logs: Vec<String> = host.logs().iter().map(ToString::to_string).collect();
    assert_eq!(logs, ["info: attempt 2"]);
}

#[test]
fn the_tenth_loss_of_one_visit_parks() {
    let mut host = doing("go");
    for _ in 0..10 {
        host.fault(at("act"), Fault::Crash);
    }
    let view = host.until_settled("a");
    assert_eq!((view.parked(), view.lost()), (Some("crash-loop"), 10));
    assert_eq!(view.failed(), 0, "losses are counted apart");
    host.unpark("a").accepted();
    host.run();
    host.entity("a").state_is("idle");
}

#[test]
fn what_was_answered_is_still_so() {
    let mut host = MockHost::new(ACTOR, STEPS);
    host.create("a").accepted();
    host.send("a", "run", json!({ "act": "wait" })).accepted();
    host.run();
    let before = host.entity("a").history();
    host.restart();
    assert_eq!(host.entity("a").history(), before);
    assert_eq!(host.entity("a").timers(), ["after"]);
}

#[test]
fn dropping_a_host_in_the_middle_of_a_step_ends_the_step() {
    let mut host = host();
    host.send("a", "run", json!({ "act": "insist" })).accepted();
    drop(host);
}
