//! Every refusal that a step can meet, by the rule that makes it.

use crate::world::{codes, doing, host};
use interlock::{Condition, Mutation, Status, checkpoint, from, to};
use interlock_mock::{End, Fault, MockHost, Ran, Told, at};
use serde_json::json;

/// One attempt at the machine of the tests whose step asks once, and fails with what it is refused.
fn asks(
    step: impl Fn(&interlock::Entity) -> Result<interlock::Done, interlock::Rejection> + Send + Sync + 'static,
) -> Ran {
    let steps = interlock_mock::Steps::one("act", move |actor| Ok(step(actor)?));
    let mut host = MockHost::new(crate::world::ACTOR, steps);
    host.create("a").accepted();
    host.send("a", "run", json!({})).accepted();
    host.step("a")
}

#[test]
fn a_state_that_is_no_target_is_not_allowed() {
    let ran = asks(|actor| actor.transition(to("broken")));
    let no = ran.refused("not_allowed");
    assert_eq!((no.expected.as_str(), no.got.as_str()), ("idle or waiting or alarm", "broken"));
    assert!(ran.failed("not_allowed").is_permanent(), "repeating it changes nothing");
    let _ = asks(|actor| actor.transition(to("No Name"))).refused("not_allowed");
}

#[test]
fn a_guard_judges_what_the_step_proposes() {
    let ran = asks(|actor| actor.transition(to("alarm").data(&json!({ "runs": 3 }))));
    let no = ran.refused("guard");
    assert_eq!((no.expected.as_str(), no.got.as_str()), ("data.runs gt 3", "3"));
    assert_eq!(asks(|actor| actor.transition(to("alarm").data(&json!({ "runs": 4 })))).to(), "alarm");
}

#[test]
fn what_is_not_a_steps_to_write_is_denied() {
    let _ = asks(|actor| actor.transition(to("idle").set("desired.image", "mine"))).refused("denied");
    let mine = || Condition::new("interlock/execution", Status::True);
    let _ = asks(move |actor| actor.transition(to("idle").condition(mine()))).refused("denied");
}

#[test]
fn documents_against_their_schema_are_invalid() {
    let ran = asks(|actor| actor.transition(to("idle").data(&json!({ "runs": 6 }))));
    assert_eq!(ran.refused("invalid").subject, "data/runs");
    let _ = asks(|actor| actor.transition(to("idle").outputs(&json!({ "no": "such" })))).refused("invalid");
    let _ = asks(|actor| actor.save(checkpoint().set("data.runs", "many")).map(|()| unreachable!())).refused("invalid");
}

#[test]
fn paths_and_sources_that_cannot_be_read_are_invalid() {
    let _ = asks(|actor| actor.transition(to("idle").set("weather", 1))).refused("invalid");
    let _ = asks(|actor| actor.transition(to("idle").set("data.at", from("tomorrow")))).refused("invalid");
    let more = || Mutation::Increment("data.runs".to_owned(), "one".into());
    let _ = asks(move |actor| actor.transition(to("idle").mutation(more()))).refused("invalid");
}

#[test]
fn bounds_are_limits_by_name() {
    let many = asks(|actor| {
        let draft = (0..65).fold(to("idle"), |draft, n| draft.set("data.runs", n));
        actor.transition(draft)
    });
    assert_eq!(many.refused("limit").expected, "at most 64 (mutations_max)");
    let large = asks(|actor| actor.transition(to("idle").set("data.note", "x".repeat(300 << 10))));
    let _ = large.refused("limit");
    let conditions = asks(|actor| {
        let draft = (0..33).fold(to("idle"), |draft, n| draft.condition(Condition::new(format!("C{n}"), Status::True)));
        actor.transition(draft)
    });
    assert_eq!(conditions.refused("limit").subject, "conditions");
}

#[test]
fn a_second_transition_is_spent_and_a_third_call_ends_the_attempt() {
    let mut host = doing("ask-again");
    let ran = host.step("a");
    assert_eq!((ran.to(), codes(&ran)), ("idle", vec!["spent"]));
    assert_eq!(ran.end, End::Done, "what a step does after its accepted transition changes nothing");
    assert_eq!(ran.afterwards.as_ref().map(|failure| failure.as_code()), Some("spent"));
    let heard: Vec<&str> = ran.logs().iter().map(|line| line.message.as_str()).collect();
    assert!(heard[0].starts_with("spent: actor/a: expected one transition per attempt"), "{heard:?}");
    assert_eq!(heard[1..], ["version 2"], "it reads on, and nothing comes after the third call");
    assert_eq!(host.entity("a").data()["runs"], 1);
}

#[test]
fn a_fenced_step_hears_it_once() {
    let mut host = doing("go-on-when-fenced");
    host.fault(at("act"), Fault::Fenced);
    let ran = host.step("a");
    assert_eq!(codes(&ran), ["fenced"]);
    assert!(matches!(&ran.calls()[1].told, Some(Told::Stopped(code, _)) if code == "fenced"), "{ran}");
    let _ = ran.failed("fenced");
    host.entity("a").state_is("acting");
    assert_eq!((host.entity("a").failed(), host.entity("a").attempt()), (1, None));
}

#[test]
fn still_holds_says_no_once() {
    let mut host = doing("still-holds");
    host.fault(at("act").call(3), Fault::Fenced);
    let ran = host.step("a");
    let told: Vec<_> = ran.calls().iter().map(|call| call.to_string()).collect();
    assert_eq!(told[..3], ["still holds?: yes", "reload: done", "still holds?: no"]);
    assert!(told[3].starts_with("still holds?: stopped, fenced: "), "{told:?}");
    assert_eq!(told.len(), 4);
}

#[test]
fn a_conflict_is_reloaded_and_decided_again() {
    let mut host = doing("reload-after-conflict");
    host.hold(at("act"));
    host.run();
    host.send("a", "note", json!({ "text": "in between" })).accepted();
    host.let_go();
    let ran = host.step("a");
    assert_eq!(codes(&ran), ["conflict"]);
    let no = ran.refused("conflict");
    assert_eq!((no.expected.as_str(), no.got.as_str(), no.retryable), ("version 2", "version 3", true));
    assert_eq!(*host.entity("a").data(), json!({ "runs": 1, "note": "in between" }));
}

#[test]
fn a_store_that_takes_nothing_is_unavailable() {
    let mut host = doing("go");
    host.fault(at("act"), Fault::Unavailable);
    let ran = host.step("a");
    let no = ran.refused("unavailable");
    assert_eq!((no.retryable, no.retry_after.map(|wait| wait.as_millis())), (true, Some(1_000)));
    host.until_settled("a").state_is("idle");
    assert_eq!(host.entity("a").data()["runs"], 1);
}

#[test]
fn the_call_after_sixteen_refusals_ends_the_attempt() {
    let ran = doing("insist").step("a");
    assert_eq!(codes(&ran).len(), 16);
    assert_eq!(ran.calls().len(), 17);
    assert!(ran.failed("refusals").reason().contains("16 refusals"));
}

#[test]
fn what_is_no_json_is_refused_before_the_host_is_asked() {
    let keyed_by_lists = std::collections::BTreeMap::from([(vec![1], 1)]);
    let ran = asks(move |actor| actor.transition(to("idle").data(&keyed_by_lists)));
    assert!(ran.calls().is_empty());
    let _ = ran.failed("json");
}

#[test]
fn a_step_reads_what_is_there() {
    let steps = interlock_mock::Steps::one("act", |actor| {
        assert_eq!((actor.id(), actor.key(), actor.state()), ("actor/a".into(), "a".into(), "acting".into()));
        assert_eq!((actor.attempt(), actor.version()), (1, 2));
        assert!(actor.execution().starts_with("actor/a@"));
        assert_eq!(actor.time_left().as_secs(), 300);
        assert!(!actor.cancel_requested());
        assert_eq!(actor.desired::<serde_json::Value>()?, Some(json!({ "image": "x" })));
        assert_eq!(actor.outputs::<serde_json::Value>()?, None);
        assert_eq!((actor.event().id.as_str(), actor.event().name.as_str()), ("mine", "run"));
        assert_eq!(actor.event().at_ms, 1_767_225_600_000);
        actor.save(checkpoint().set("data.note", "saved"))?;
        assert_eq!((actor.version(), actor.data::<serde_json::Value>()?["note"].clone()), (3, json!("saved")));
        Ok(actor.transition(to("idle"))?)
    });
    let mut host = MockHost::new(crate::world::ACTOR, steps);
    host.create(interlock_mock::New::of("a").desired(json!({ "image": "x" }))).accepted();
    host.deliver("a", interlock_mock::Signal::new("run").payload(json!({})).id("mine")).accepted();
    assert_eq!(host.step("a").to(), "idle");
    assert_eq!(host_without_desired().1, 0);
}

/// An entity that nobody applied anything to.
fn host_without_desired() -> (MockHost, u64) {
    let host = host();
    let generation = host.entity("a").generation();
    (host, generation)
}
