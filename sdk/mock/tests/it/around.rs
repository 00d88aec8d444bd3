//! One step by itself.

use interlock::{Done, Entity, Failure, checkpoint, to};
use interlock_mock::{Fault, MockHost, at};
use serde_json::{Value, json};

/// Grows towards what is desired, by as much as the event says.
fn grow(pool: &Entity) -> Result<Done, Failure> {
    let size = pool.data::<Option<Value>>()?.unwrap_or_default()["size"].as_u64().unwrap_or(0);
    let want = pool.desired::<Value>()?.ok_or_else(|| Failure::permanent("nothing desired").code("no-desired"))?;
    let by = pool.event().payload::<Value>()?.unwrap_or_default()["by"].as_u64().unwrap_or(1);
    let size = (size + by).min(want["size"].as_u64().unwrap_or(0));
    pool.save(checkpoint().data(&json!({ "size": size, "note": null })))?;
    let next = if want["size"] == json!(size) { "full" } else { "growing" };
    Ok(pool.transition(to(next).outputs(&json!({ "size": size })))?)
}

#[test]
fn given_data_desired_and_event_it_asks_for_this() {
    let ran = MockHost::around("grow", grow)
        .to(["full"])
        .data(json!({ "size": 2, "note": null }))
        .desired(json!({ "size": 4 }))
        .event("more", json!({ "by": 3 }))
        .run();
    assert_eq!((ran.to(), ran.outputs(), ran.event.name.as_str()), ("full", json!({ "size": 4 }), "more"));
    assert_eq!(ran.calls().len(), 2);
}

#[test]
fn a_state_that_was_not_named_is_not_allowed() {
    let ran = MockHost::around("grow", grow).to(["full"]).desired(json!({ "size": 4 })).run();
    assert_eq!(ran.refused("not_allowed").got, "growing");
}

#[test]
fn a_step_may_come_back_to_its_own_state() {
    let mut host =
        MockHost::around("grow", grow).state("growing").to(["growing", "full"]).desired(json!({ "size": 3 })).host();
    host.run();
    assert_eq!(host.ran().len(), 3, "{host}");
    host.entity("it").state_is("full");
}

#[test]
fn faults_come_to_it_too() {
    let mut host = MockHost::around("grow", grow).to(["full"]).desired(json!({ "size": 1 })).host();
    host.fault(at("grow").call(2), Fault::Crash);
    host.until_settled("it").state_is("full");
    assert_eq!(host.entity("it").data()["size"], 1);
}

#[test]
fn what_it_fails_with_is_told() {
    let ran = MockHost::around("grow", grow).to(["full"]).run();
    assert!(ran.failed("no-desired").is_permanent());
    assert_eq!(ran.data(), json!(null));
    let panic = std::panic::catch_unwind(|| ran.to().len()).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.starts_with("expected an accepted transition, got\ngrow, attempt 1 of around/it"), "{text}");
}

#[test]
fn names_that_are_no_names_are_refused() {
    let panic = std::panic::catch_unwind(|| MockHost::around("Grow It", grow).to(["full"]).run()).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("bad-name"), "{text}");
}
