//! Events: accepted once, queued, refused, late.

use crate::world::{ACTOR, STEPS, doing, host};
use interlock_mock::{MockHost, New, OnExisting, Signal};
use serde_json::json;

#[test]
fn a_busy_entity_says_who_holds_it() {
    let mut host = doing("wait");
    host.run();
    let no = host.send("a", "now", json!(null)).refused("busy");
    assert!(no.got.contains("waiting for a timer") && no.retryable, "{no:?}");
    assert!(no.retry_after.is_some());
}

#[test]
fn a_queued_event_is_taken_when_its_turn_comes() {
    let mut host = doing("wait");
    host.run();
    host.send("a", "run", json!({ "act": "go" })).queued();
    assert_eq!(host.entity("a").inbox(), ["run"]);
    host.until_settled("a");
    host.until("a", "idle");
    host.run();
    let steps: Vec<String> = host.ran().iter().map(|ran| ran.step.clone()).collect();
    assert_eq!(steps, ["act", "settle", "act"]);
    assert_eq!((host.entity("a").inbox().len(), host.entity("a").data()["runs"].as_u64()), (0, Some(2)));
}

#[test]
fn the_same_event_twice_is_one() {
    let mut host = host();
    let signal = || Signal::new("run").payload(json!({ "act": "go" })).id("e1");
    let first = host.deliver("a", signal());
    host.run();
    let again = host.deliver("a", signal());
    host.run();
    assert!(!first.is_replayed() && again.is_replayed());
    assert_eq!((first.execution(), again.execution(), again.event()), (Some(1), Some(1), Some("e1")));
    assert_eq!((host.ran().len(), host.entity("a").data()["runs"].as_u64()), (1, Some(1)));
    host.deliver("a", signal().payload(json!({ "act": "wait" }))).refused("id_reused");
}

#[test]
fn what_the_machine_does_not_take_is_refused_by_name() {
    let mut host = host();
    host.send("a", "runn", json!({})).refused("invalid");
    host.send("a", "run", json!({ "act": 7 })).refused("invalid");
    host.send("a", "note", json!({})).refused("not_allowed");
    host.send("b", "run", json!({})).refused("not_found");
    host.create("a").accepted();
    host.create(New::of("a").on_existing(OnExisting::Fail)).refused("conflict");
    host.create(New::of("c").desired(json!(7))).refused("invalid");
}

#[test]
fn an_event_may_name_what_it_is_for() {
    let mut host = doing("wait");
    host.run();
    host.deliver("a", Signal::new("note").payload(json!({ "text": "x" })).at_visit(2)).refused("late");
    host.deliver("a", Signal::new("note").payload(json!({ "text": "x" })).at_version(2)).refused("conflict");
    host.deliver("a", Signal::new("note").payload(json!({ "text": "x" })).at_version(3).at_visit(3)).accepted();
    assert_eq!(host.entity("a").data()["note"], "x");
}

#[test]
fn what_clients_want_is_theirs() {
    let mut host = host();
    host.apply("a", json!({ "image": "x" })).accepted();
    host.apply("a", json!({ "image": "y" })).accepted();
    host.apply_over("a", 1, json!({ "image": "z" })).refused("conflict");
    host.apply("a", json!("text")).refused("invalid");
    let view = host.entity("a");
    assert_eq!((view.generation(), view.observed_generation()), (2, 0));
    assert_eq!(view.desired()["image"], "y");
    host.send("a", "run", json!({ "act": "go" })).accepted();
    host.run();
    assert_eq!(host.entity("a").observed_generation(), 2);
}

#[test]
fn a_first_event_comes_with_the_create() {
    let mut host = MockHost::new(ACTOR, STEPS);
    let first = || Signal::new("run").payload(json!({ "act": "go" }));
    host.create(New::of("a").first(first()).label("team", "x")).accepted();
    host.run();
    assert_eq!(host.entity("a").data()["runs"], 1);
    host.create(New::of("b").first(Signal::new("note").payload(json!({})))).refused("not_allowed");
    assert!(host.find("b").is_none());
}

#[test]
fn asserting_the_wrong_answer_says_what_came() {
    let mut host = host();
    let answer = host.send("a", "note", json!({}));
    let panic = std::panic::catch_unwind(|| {
        answer.accepted();
    });
    let text = panic.unwrap_err().downcast_ref::<String>().unwrap().clone();
    assert!(text.starts_with("expected an accepted command, got: REFUSED not_allowed: "), "{text}");
    let panic = std::panic::catch_unwind(|| answer.refused("busy"));
    let text = panic.unwrap_err().downcast_ref::<String>().unwrap().clone();
    assert!(text.starts_with("expected a refusal with the code busy, got: REFUSED not_allowed: "), "{text}");
}
