//! Timers that a step stages: carried by its next commit, dropped by a refusal or a reload.

use interlock::{Done, Entity, Failure, Rejection, checkpoint, to};
use interlock_mock::{MockHost, Steps};
use serde_json::json;
use std::time::Duration;

const ORDER: &str = r#"
machine = "order"
owner   = "tests <tests@example.com>"
initial = "idle"
component = "order.wasm"
desired.schema = false
outputs.schema = false
[data]
default = { reminded = 0 }
schema = { type = "object" }
[events]
start.schema = { type = "object" }
pay.schema = false

[states.idle]
kind = "rest"
on.start = { to = "placing" }

[states.placing]
step = "place"
to   = ["waiting"]
deadline = "10m"
after = [{ due = "step", name = "nag", set = { "data.reminded" = { increment = 1 } } }]

[states.waiting]
after = [
    { due = "step", name = "reminder", set = { "data.reminded" = { increment = 1 } } },
    { due = "step", name = "expiry", to = "idle" },
]
on.pay = { to = "idle" }
"#;

const MINUTE: Duration = Duration::from_secs(60);

/// Runs one step on an order that was started.
fn placing(step: impl Fn(&Entity) -> Result<Done, Failure> + Send + Sync + 'static) -> MockHost {
    let mut host = MockHost::new(ORDER, Steps::one("place", step));
    host.create("a").accepted();
    host.send("a", "start", json!({})).accepted();
    host.run();
    host
}

fn code(answer: Result<impl Sized, Rejection>) -> String {
    answer.err().map_or("accepted".to_owned(), |no| no.code)
}

#[test]
fn a_step_sets_the_timers_of_the_visit_that_it_enters() {
    let mut host = placing(|order| {
        order.timer("reminder").after(MINUTE)?;
        order.timer("expiry").after(MINUTE * 5)?;
        order.timer("reminder").after(MINUTE * 2)?; // the last word counts
        Ok(order.transition(to("waiting"))?)
    });
    assert_eq!(host.entity("a").timers(), ["reminder", "expiry"]);
    host.advance(MINUTE * 2 - Duration::from_millis(1));
    assert_eq!(*host.entity("a").data(), json!({ "reminded": 0 }));
    host.advance(Duration::from_millis(1));
    assert_eq!(*host.entity("a").data(), json!({ "reminded": 1 }));
    host.restart();
    host.advance(MINUTE * 3);
    host.entity("a").state_is("idle");
    let ran = host.ran()[0].to_string();
    assert!(ran.contains("timer reminder in 120000 ms: staged"), "{ran}");
}

#[test]
fn a_save_sets_and_cancels_timers_of_its_own_visit() {
    let host = placing(|order| {
        order.timer("nag").at_ms(0)?; // long past: at once
        order.save(checkpoint())?;
        order.reload()?;
        order.timer("nag").after(MINUTE)?;
        order.save(checkpoint())?;
        order.timer("nag").cancel()?;
        order.save(checkpoint())?;
        order.timer("expiry").after(MINUTE)?;
        Ok(order.transition(to("waiting"))?)
    });
    assert_eq!(host.entity("a").timers(), ["expiry"]);
    assert_eq!(*host.entity("a").data(), json!({ "reminded": 1 }), "the one that was past");
}

#[test]
fn what_was_staged_is_dropped_by_a_refusal_and_by_a_reload() {
    let host = placing(|order| {
        let stage = || order.timer("expiry").after(MINUTE);
        stage()?;
        assert_eq!(code(order.transition(to("nowhere"))), "not_allowed");
        // Nothing is staged any more, and nothing else would ever end the wait.
        let refused = order.transition(to("waiting")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "invalid: timer reminder of waiting: expected a due time staged by the step that enters waiting, got none"
        );
        stage()?;
        order.reload()?;
        assert_eq!(code(order.transition(to("waiting"))), "invalid");
        stage()?;
        // A text that is no document is refused before the store is asked: dropped all the same.
        assert_eq!(code(order.save(checkpoint().set("data.x", interlock::Value::Json("{".to_owned())))), "invalid");
        assert_eq!(code(order.transition(to("waiting"))), "invalid");
        stage()?;
        Ok(order.transition(to("waiting"))?)
    });
    assert_eq!(host.entity("a").timers(), ["expiry"]);
}

#[test]
fn what_cannot_be_staged_is_refused_and_what_was_staged_before_stays() {
    let host = placing(|order| {
        order.timer("expiry").after(MINUTE)?;
        for bad in ["", "Expiry", "expiry timer", "../x", &"x".repeat(64), "a\0b"] {
            assert_eq!(code(order.timer(bad).after(MINUTE)), "invalid", "{bad:?}");
        }
        for nth in 0..15 {
            order.timer(&format!("t{nth}")).cancel()?;
        }
        let one_more = order.timer("t15").cancel().unwrap_err();
        assert_eq!(
            one_more.to_string(),
            "limit: timers: expected at most 16 staged timers (staged_timers_max), got one more"
        );
        order.timer("expiry").after(MINUTE * 2)?; // a name that is there is no further one
        // The commit judges the names.
        let undeclared = order.transition(to("waiting")).unwrap_err();
        assert_eq!(undeclared.code, "not_allowed");
        assert_eq!(undeclared.expected, r#"a timer of waiting with due = "step": reminder or expiry"#);
        order.timer("expiry").after(Duration::MAX)?;
        assert_eq!(code(order.transition(to("waiting"))), "limit");
        order.timer("expiry").at_ms(i64::MAX)?;
        assert_eq!(code(order.transition(to("waiting"))), "limit");
        order.timer("expiry").after(MINUTE)?;
        Ok(order.transition(to("waiting"))?)
    });
    assert_eq!(host.entity("a").timers(), ["expiry"]);
}

#[test]
fn a_spent_handle_stages_nothing() {
    let host = placing(|order| {
        order.timer("expiry").after(MINUTE)?;
        let done = order.transition(to("waiting"))?;
        assert_eq!(code(order.timer("reminder").after(MINUTE)), "spent");
        Ok(done)
    });
    assert_eq!(host.entity("a").timers(), ["expiry"]);
}
