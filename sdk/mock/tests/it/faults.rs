//! What each fault does, and that it does it where it was planted.

use crate::world::{codes, doing, host};
use interlock_mock::{Fault, at};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `save-and-go` with a fault at one call: what the first attempt was refused, the runs that were counted in
/// the end, and the attempts that it took.
fn with(fault: Fault, call: u32) -> (Vec<String>, u64, usize) {
    let mut host = doing("save-and-go");
    host.fault(at("act").call(call), fault);
    host.until_settled("a").state_is("idle");
    let ran = host.ran();
    let refused = codes(&ran[0]).into_iter().map(str::to_owned).collect();
    (refused, host.entity("a").data()["runs"].as_u64().unwrap(), ran.len())
}

fn refused(code: &str) -> Vec<String> {
    vec![code.to_owned()]
}

#[test]
fn at_a_save() {
    assert_eq!(with(Fault::Conflict, 1), (refused("conflict"), 1, 2));
    assert_eq!(with(Fault::Fenced, 1), (refused("fenced"), 1, 2));
    assert_eq!(with(Fault::Unavailable, 1), (refused("unavailable"), 1, 2));
    assert_eq!(with(Fault::Unknown { kept: false }, 1), (refused("unavailable"), 1, 2));
    assert_eq!(with(Fault::Crash, 1), (vec![], 1, 2));
    assert_eq!(with(Fault::CrashBehind, 1), (vec![], 2, 2));
    // The save was made, nobody told the step, and it counted itself again: it should have looked first.
    assert_eq!(with(Fault::Unknown { kept: true }, 1), (refused("unavailable"), 2, 2));
}

#[test]
fn at_a_transition() {
    // What was saved stays saved, and the next attempt counts itself again.
    assert_eq!(with(Fault::Conflict, 2), (refused("conflict"), 2, 2));
    assert_eq!(with(Fault::Fenced, 2), (refused("fenced"), 2, 2));
    assert_eq!(with(Fault::Unavailable, 2), (refused("unavailable"), 2, 2));
    assert_eq!(with(Fault::Unknown { kept: false }, 2), (refused("unavailable"), 2, 2));
    assert_eq!(with(Fault::Crash, 2), (vec![], 2, 2));
    // The transition was made: there is no second attempt.
    assert_eq!(with(Fault::CrashBehind, 2), (vec![], 1, 1));
    assert_eq!(with(Fault::Unknown { kept: true }, 2), (refused("unavailable"), 1, 1));
}

#[test]
fn faults_for_one_call_happen_in_turn() {
    let mut host = doing("go");
    for fault in [Fault::Crash, Fault::Fenced, Fault::Crash] {
        host.fault(at("act"), fault);
    }
    host.until_settled("a").state_is("idle");
    let ends: Vec<String> = host.ran().iter().map(|ran| ran.end.to_string()).collect();
    assert_eq!(ends.len(), 4, "{ends:?}");
    assert_eq!(
        (ends[0].as_str(), ends[2].as_str(), ends[3].as_str()),
        ("lost with its host", "lost with its host", "done")
    );
}

#[test]
fn a_place_may_name_attempt_and_entity() {
    let mut host = host();
    host.create("b").accepted();
    host.fault(at("act").of("b").attempt(2), Fault::Crash);
    for key in ["a", "b"] {
        host.send(key, "run", json!({ "act": "fail-twice" })).accepted();
    }
    host.until_settled("a");
    host.until_settled("b");
    assert_eq!((host.entity("a").state(), host.entity("b").state()), ("idle", "idle"));
    // Two that failed by themselves asked for nothing, so the second attempt of b was never met; the third was.
    host.fault(at("act").of("b").attempt(1), Fault::Crash);
    host.send("b", "run", json!({ "act": "go" })).accepted();
    host.until_settled("b");
    assert_eq!(host.entity("b").data()["runs"], 1);
}

#[test]
fn a_fault_that_is_never_met_fails_the_test() {
    let mut host = doing("go");
    host.fault(at("act").call(7), Fault::Conflict);
    host.run();
    let panic = catch_unwind(AssertUnwindSafe(|| drop(host))).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert_eq!(text, "expected every fault to be met, got none at call 7 of act (another write gets in between)");
}

#[test]
fn a_store_that_fails_at_a_read_is_the_tests_mistake() {
    let mut host = doing("reload-for-ever");
    host.fault(at("act"), Fault::Unavailable);
    let panic = catch_unwind(AssertUnwindSafe(|| host.run())).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.starts_with("expected a save or a transition at call 1 of act"), "{text}");
    std::mem::forget(host);
}
