//! Requests that steps have made: staged with a commit, made by the host, answered by targets that the test plays.

use interlock::{Done, Entity, Failure, Rejection, checkpoint, to};
use interlock_mock::{Fault, MockHost, Replies, Steps, at};
use serde_json::json;
use std::time::Duration;

const DESK: &str = r#"
machine = "desk"
owner   = "tests <tests@example.com>"
initial = "idle"
component = "desk.wasm"
desired.schema = false
outputs.schema = false
[data]
default = {}
schema = { type = "object" }
[events]
open.schema = false

[states.idle]
kind = "rest"
on.open = { to = "filing" }

[states.filing]
step = "file"
to   = ["asking"]
deadline = "10m"
retry = { attempts = 3, first = "1s", jitter = 0 }
on_failure = "park"

[states.asking]
deadline = "1d"
on_failure = "park"
on.effect-done   = { to = "reading", set = { "data.ticket" = { from = "event.body.id" } } }
on.effect-failed = { to = "idle", set = { "data.why" = { from = "event.code" } } }

[states.reading]
step = "file"
to   = ["idle"]
deadline = "10m"
on_failure = "park"

[targets.tickets]
url     = "https://tickets.example.com/v1/{project}"
timeout = "5s"
retry   = { attempts = 4, first = "1s", factor = 2.0, max = "1m", jitter = 0 }
on_late = "event"
"#;

fn ask(desk: &Entity) -> Result<(), Rejection> {
    desk.effect("tickets").param("project", "atlas").body(&json!({ "title": desk.key() })).request()
}

fn file(desk: &Entity) -> Result<Done, Failure> {
    ask(desk)?;
    Ok(desk.transition(to("asking"))?)
}

fn read(desk: &Entity) -> Result<Done, Failure> {
    let result = desk.event().effect::<serde_json::Value>()?;
    let mut data: serde_json::Value = desk.data()?;
    data["read"] = json!([result.target, result.status, result.number]);
    Ok(desk.transition(to("idle").data(&data))?)
}

fn desk(file: impl Fn(&Entity) -> Result<Done, Failure> + Send + Sync + 'static) -> MockHost {
    let both = move |desk: &Entity| if desk.state() == "reading" { read(desk) } else { file(desk) };
    let mut host = MockHost::new(DESK, Steps::one("file", both));
    host.answer("tickets", 201, json!({ "id": "T-1" }));
    host.create("a").accepted();
    host.send("a", "open", json!(null)).accepted();
    host
}

#[test]
fn a_request_is_made_once_its_commit_is_there_and_its_answer_is_an_event() {
    let mut host = desk(file);
    assert_eq!(host.made(), [], "the step is held before its first call");
    host.run();
    let view = host.entity("a");
    assert_eq!(*view.state_is("idle").data(), json!({ "ticket": "T-1", "read": ["tickets", 201, 1] }));
    let made = host.made();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].to_string(), r#"tickets POST https://tickets.example.com/v1/atlas {"title":"a"}, 1 try, done"#);
    assert_eq!(made[0].token, host.ran()[0].token, "the token of the attempt that asked");
    assert!(host.story().contains("desk/a effect 1, try 1: tickets POST"), "{host}");
}

#[test]
fn a_target_in_trouble_is_asked_again_under_the_same_key() {
    let mut host = desk(file);
    host.replies_times("tickets", 1, Replies::Lost(201, json!({ "id": "T-0" })));
    host.replies_times("tickets", 1, Replies::Down);
    host.replies_times("tickets", 1, Replies::Hang);
    host.run();
    host.entity("a").state_is("asking");
    host.restart();
    // 1 s, 2 s, the timeout and 4 s.
    host.advance(Duration::from_secs(12));
    assert_eq!(host.entity("a").state_is("idle").data()["ticket"], "T-0", "what was answered at first");
    assert_eq!(host.made().iter().map(|made| (made.tries, made.done)).collect::<Vec<_>>(), [(4, true)]);
}

#[test]
fn one_that_is_given_up_is_an_event_too() {
    for (replies, why) in [
        (Replies::With(422, json!({ "error": "no such project" })), "refused"),
        (Replies::With(412, json!(null)), "fenced"),
        (Replies::Down, "exhausted"),
    ] {
        let mut host = desk(file);
        host.replies("tickets", replies);
        host.advance(Duration::from_secs(60));
        assert_eq!(host.entity("a").state_is("idle").data()["why"], why);
        assert!(!host.made()[0].done);
    }
}

#[test]
fn a_refusal_and_a_reload_drop_what_was_staged() {
    let mut host = desk(|desk| {
        ask(desk)?;
        assert_eq!(desk.transition(to("nowhere")).unwrap_err().code, "not_allowed");
        ask(desk)?;
        desk.reload()?;
        file(desk)
    });
    host.run();
    assert_eq!(host.made().len(), 1);
}

#[test]
fn what_cannot_be_requested_is_refused_by_the_staging_or_by_the_commit() {
    let mut host = desk(|desk| {
        let refused = |request: Result<(), Rejection>| request.expect_err("a refusal").code;
        assert_eq!(refused(desk.effect("Tickets").request()), "invalid");
        assert_eq!(refused(desk.effect("tickets").header("Authorization", "Bearer x").request()), "denied");
        assert_eq!(refused(desk.effect("tickets").header("X-Note", "a\nb").request()), "invalid");
        assert_eq!(refused(desk.effect("tickets").param("p", "1").param("p", "2").request()), "invalid");
        assert_eq!(refused(desk.effect("tickets").param("p", "x".repeat(1 << 20)).request()), "limit");
        desk.effect("ticket").request()?;
        let undeclared = desk.transition(to("asking")).unwrap_err();
        assert_eq!(
            (undeclared.code.as_str(), undeclared.got.as_str()),
            ("not_allowed", "ticket (did you mean tickets?)")
        );
        desk.effect("tickets").request()?;
        assert_eq!(desk.transition(to("asking")).unwrap_err().code, "invalid", "a placeholder that nobody fills");
        for _ in 0..16 {
            ask(desk)?;
        }
        assert_eq!(refused(ask(desk)), "limit");
        desk.reload()?;
        file(desk)
    });
    host.run();
    host.entity("a").state_is("idle");
    assert_eq!(host.made().len(), 1);
}

#[test]
fn a_request_of_a_save_is_made_again_by_a_step_that_does_not_remember_it() {
    let mut host = desk(|desk| {
        ask(desk)?;
        desk.save(checkpoint())?;
        Ok(desk.transition(to("asking"))?)
    });
    host.fault(at("file").call(2), Fault::Crash);
    host.run();
    assert_eq!(host.made().len(), 2, "two keys, two tickets");
}

#[test]
fn a_spent_handle_requests_nothing() {
    let mut host = desk(|desk| {
        let done = file(desk)?;
        assert_eq!(ask(desk).unwrap_err().code, "spent");
        Ok(done)
    });
    host.run();
    assert_eq!(host.made().len(), 1);
}
