//! Attempts that come to nothing, and what follows by the state's policy.

use crate::world::{ACTOR, doing, host};
use interlock::{Done, Entity, Failure, to};
use interlock_mock::{End, MockHost, Steps};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_failure_is_retried_after_its_back_off() {
    let mut host = doing("fail-twice");
    let ran = host.step("a");
    assert_eq!(ran.failed("early").reason(), "not at attempt 1");
    assert_eq!((host.entity("a").attempt(), host.entity("a").failed()), (None, 1));
    host.advance(Duration::from_millis(999));
    assert_eq!(host.ran().len(), 1);
    host.advance(Duration::from_millis(1));
    assert_eq!(host.ran().len(), 2);
    host.advance(Duration::from_secs(2));
    host.entity("a").state_is("idle");
    assert_eq!(
        host.entity("a").history(),
        [
            "created, idle",
            "run -> acting",
            "attempt 1 failed: early, next in 1 s",
            "attempt 2 begun",
            "attempt 2 failed: early, next in 2 s",
            "attempt 3 begun",
            "act -> idle",
        ]
    );
}

#[test]
fn a_step_may_ask_for_a_longer_wait() {
    let mut host = doing("fail-later");
    host.advance(Duration::from_secs(29));
    host.entity("a").state_is("acting");
    host.advance(Duration::from_secs(1));
    host.entity("a").state_is("idle");
}

#[test]
fn what_is_exhausted_parks_and_unpark_begins_anew() {
    let mut host = doing("fail");
    let view = host.until_settled("a");
    assert_eq!((view.parked(), view.state(), view.failed()), (Some("exhausted"), "acting", 3));
    assert!(view.locked_by().is_some(), "the lock stays");
    host.advance(Duration::from_secs(60));
    assert_eq!(host.ran().len(), 3, "nothing is tried any more");
    host.unpark("a").accepted();
    assert_eq!(host.entity("a").attempt(), None, "it has failed at once");
    assert_eq!((host.entity("a").parked(), host.entity("a").failed(), host.ran().len()), (None, 1, 4));
}

#[test]
fn a_permanent_failure_takes_its_path_at_once() {
    let mut host = doing("fail-for-good");
    assert_eq!(host.step("a").failed("no-room").reason(), "no room");
    let view = host.entity("a");
    view.state_is("broken");
    assert_eq!(view.condition("interlock/execution"), Some("failed"));
    assert!(view.conditions()[0].contains("no-room"), "{:?}", view.conditions());
    assert_eq!(view.locked_by(), None);
}

#[test]
fn a_panic_is_a_trap_and_retried() {
    let mut host = doing("panic");
    let ran = host.step("a");
    let reason = ran.failed("trap").reason().to_owned();
    assert!(reason.contains("world.rs") && reason.ends_with("two lines"), "{reason}");
    assert!(!ran.failed("trap").is_permanent());
    assert_eq!(ran.logs()[0].message, reason, "the panic is a line of the log, as a component's is");
    host.until_settled("a").state_is("idle");
}

#[test]
fn nothing_after_the_accepted_transition_changes_anything() {
    for (act, code) in [("panic-after", "trap"), ("fail-after", "failed")] {
        let mut host = doing(act);
        let ran = host.step("a");
        assert_eq!((ran.to(), &ran.end), ("idle", &End::Done), "{act}");
        assert_eq!(ran.afterwards.unwrap().as_code(), code);
        assert_eq!(host.entity("a").condition("interlock/execution"), None, "{act}");
    }
}

#[test]
fn a_step_that_returns_without_a_transition_has_failed() {
    // `Done` comes only from an accepted transition; one that was kept from another attempt is no proof.
    let kept: Arc<Mutex<Option<Done>>> = Arc::default();
    let step = move |actor: &Entity| -> Result<Done, Failure> {
        let done = kept.lock().unwrap().take();
        match done {
            Some(old) => Ok(old),
            None => {
                *kept.lock().unwrap() = Some(actor.transition(to("idle"))?);
                Err(Failure::retry("kept"))
            }
        }
    };
    let mut host = MockHost::new(ACTOR, Steps::one("act", step));
    host.create("a").accepted();
    for _ in 0..2 {
        host.send("a", "run", json!({}));
        host.run();
    }
    let ran = host.ran();
    assert_eq!(ran[0].end, End::Done);
    assert_eq!(ran[1].failed("no-transition").reason(), "the step returned without an accepted transition");
    assert_eq!(host.entity("a").failed(), 1);
}

#[test]
fn a_step_that_nobody_wrote_is_unknown_and_says_which_are_known() {
    let mut host = MockHost::new(ACTOR, Steps::one("settle", |actor| Ok(actor.transition(to("idle"))?)));
    host.create("a").accepted();
    host.send("a", "run", json!({})).accepted();
    let ran = host.step("a");
    assert_eq!(ran.failed("unknown-step").reason(), r#"this component has no step "act"; it has settle"#);
}

#[test]
fn an_operator_ends_it_for_good() {
    let mut host = doing("go");
    host.kill("a", "not needed any more").accepted();
    host.run();
    host.entity("a").state_is("killed");
    let _ = host.ran()[0].refused("fenced");
    host.send("a", "run", json!({})).refused("late");
    host.delete("a").accepted();
    assert!(host.find("a").is_none());
}

#[test]
fn another_entity_goes_on() {
    let mut host = host();
    host.create("b").accepted();
    host.send("a", "run", json!({ "act": "panic" })).accepted();
    host.send("b", "run", json!({ "act": "go" })).accepted();
    host.run();
    assert_eq!((host.entity("a").state(), host.entity("b").state()), ("acting", "idle"));
}
