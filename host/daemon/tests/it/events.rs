//! Events: taken, queued, refused, remembered, awaited.

use crate::site::{Answer, Site};
use expect_test::expect;
use interlock_daemon::base64;
use reqwest::Method;
use serde_json::{Value, json};
use std::fmt::Write;

#[tokio::test(flavor = "multi_thread")]
async fn the_same_id_is_the_same_answer() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let first = site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    assert_eq!((first.status, first.at("/answer"), first.at("/state")), (202, &json!("accepted"), &json!("opening")));
    assert_eq!(first.header("idempotent-replayed"), None);
    let again = site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    assert_eq!((again.status, &again.body), (202, &first.body));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let quoted = site.send("door/a", "\"e1\"", "push", json!({ "force": 5 })).await?;
    assert_eq!(quoted.body, first.body);
    let reused = site.send("door/a", "e1", "push", json!({ "force": 6 })).await?;
    assert_eq!(
        reused.line(),
        "422 id_reused: door/a: expected event e1 with the name and payload it had before, got another name or payload"
    );
    let remembered = site.get("/v1/entities/door/a/events/e1").await?;
    assert_eq!((remembered.status, &remembered.body), (200, &first.body));
    let unknown = site.get("/v1/entities/door/a/events/e9").await?;
    assert_eq!(
        unknown.line(),
        "404 not_found: door/a event e9: expected an event id that is remembered, got nothing of this name"
    );
    let minted = site.post("/v1/entities/door/a/events", json!({ "name": "stop" })).await?;
    assert!(minted.at("/event").as_str().is_some_and(|id| id.len() == 36), "{}", minted.body);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_stands_when_its_entity_is_gone_whether_one_waits_or_not() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let first = site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    site.send("door/a", "e2", "stop", Value::Null).await?;
    site.ask(site.request(Method::DELETE, "/v1/entities/door/a")?).await?;
    site.post("/v1/entities", json!({ "machine": "door", "key": "a" })).await?;
    for path in ["/v1/entities/door/a/events", "/v1/entities/door/a/events?wait=30s"] {
        let request = site.request(Method::POST, path)?.header("Idempotency-Key", "e1");
        let again = site.ask(request.json(&json!({ "name": "push", "payload": { "force": 5 } }))).await?;
        assert_eq!((again.status, &again.body), (202, &first.body), "{path}");
        assert_eq!(again.header("idempotent-replayed"), Some("true"), "{path}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_entity_says_who_holds_it_and_when_to_come_back() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    let busy = site.send("door/a", "e2", "push", json!({ "force": 6 })).await?;
    assert_eq!(busy.line(), "409 busy: door/a is being modified, try again shortly");
    assert_eq!(busy.at("/expected"), "unlocked");
    assert_eq!(busy.at("/retryable"), true);
    assert_eq!((busy.at("/event"), busy.at("/owner")), (&json!("e2"), &json!("facilities <door@example.com>")));
    assert_eq!((busy.at("/holder/started_by"), busy.at("/holder/state")), (&json!("push"), &json!("opening")));
    let seconds: u64 = busy.header("retry-after").unwrap_or_default().parse()?;
    assert!((3_500..=3_600).contains(&seconds), "{seconds}");
    assert_eq!(site.get("/v1/entities/door/a/events/e2").await?.status, 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_say_what_was_expected_and_got() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let expecting = |expect: Value| json!({ "name": "push", "payload": { "force": 5 }, "expect": expect });
    let events = [
        json!({ "name": "push", "payload": { "force": 0 } }),
        json!({ "name": "stop" }),
        expecting(json!({ "version": 9 })),
        expecting(json!({ "generation": 9 })),
        expecting(json!({ "execution": "door/b@1.1" })),
        expecting(json!({ "execution": "soon" })),
    ];
    let mut said = String::new();
    for event in events {
        let answer = site.post("/v1/entities/door/a/events", event.clone()).await?;
        let _ = writeln!(said, "{event}\n    {}", answer.line());
    }
    expect![[r#"
        {"name":"push","payload":{"force":0}}
            422 guard: door/a does not take this now: expected event.force gt data.force, got 0 and 0
        {"name":"stop"}
            409 not_allowed: door/a: expected one of knock, push, got stop in shut
        {"expect":{"version":9},"name":"push","payload":{"force":5}}
            412 conflict: door/a: expected version 9, got version 1
        {"expect":{"generation":9},"name":"push","payload":{"force":5}}
            412 conflict: door/a: expected generation 9, got generation 0
        {"expect":{"execution":"door/b@1.1"},"name":"push","payload":{"force":5}}
            400 invalid: expect.execution: expected an execution of door/a, got door/b@1.1
        {"expect":{"execution":"soon"},"name":"push","payload":{"force":5}}
            400 invalid: expect.execution: expected machine/key@incarnation.number, got "soon"
    "#]]
    .assert_eq(&said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_event_is_answered_in_the_end() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    let queued = site.send("door/a", "e2", "knock", Value::Null).await?;
    assert_eq!((queued.status, queued.at("/answer")), (202, &json!("queued")));
    assert_eq!(site.get("/v1/entities/door/a").await?.at("/inbox"), 1);
    let waiting = site.request(Method::POST, "/v1/entities/door/a/events?wait=30s")?;
    let waiting = waiting.header("Idempotency-Key", "e2").json(&json!({ "name": "knock", "payload": null }));
    let (stopped, awaited) = tokio::join!(site.send("door/a", "e3", "stop", Value::Null), site.ask(waiting));
    assert_eq!(stopped?.status, 202);
    let awaited = awaited?;
    assert_eq!(
        (awaited.status, awaited.at("/answer"), awaited.at("/state")),
        (200, &json!("accepted"), &json!("shut"))
    );
    assert_eq!(site.get("/v1/entities/door/a").await?.at("/data/force"), 1);
    assert_eq!(site.get("/v1/entities/door/a/events/e2").await?.at("/answer"), "accepted");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_at_its_limit() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let request = site.request(Method::POST, "/v1/entities/door/a/events?wait=50ms")?;
    let pending = site.ask(request.json(&json!({ "name": "push", "payload": { "force": 5 } }))).await?;
    assert_eq!(
        (pending.status, pending.at("/outcome"), pending.at("/state")),
        (202, &json!("running"), &json!("opening"))
    );
    let wrong = site.request(Method::POST, "/v1/entities/door/a/events?wait=soon")?;
    let wrong = site.ask(wrong.json(&json!({ "name": "push", "payload": { "force": 5 } }))).await?;
    assert_eq!(wrong.line(), r#"400 invalid: query.wait: expected a duration such as 500ms, 30s or 5m, got "soon""#);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_answers_those_who_wait() -> anyhow::Result<()> {
    let mut site = Site::with_door().await?;
    site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    let again = site.request(Method::POST, "/v1/entities/door/a/events?wait=5m")?;
    let again = again.header("Idempotency-Key", "e1").json(&json!({ "name": "push", "payload": { "force": 5 } }));
    let waiting = tokio::spawn(again.send());
    // Answered once it is in the handler, so that the stop finds it waiting.
    while site.get("/v1/stats").await?.at("/counters/decided").as_u64() < Some(6) {
        tokio::task::yield_now().await;
    }
    site.stop().await?;
    let answered = Answer::read(waiting.await??).await?;
    assert_eq!((answered.status, answered.at("/outcome")), (202, &json!("running")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_runs_and_is_awaited() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let manifest = std::fs::read_to_string(interlock_support::guest_folder("resource").join("machine.toml"))?;
    let manifest = manifest.replace("wait = \"90s\"", "wait = \"100ms\"");
    let component = base64::encode(&std::fs::read(interlock_support::guest("resource")?)?);
    let deployed = site.post("/v1/machines", json!({ "manifest": manifest, "component": component })).await?;
    assert_eq!(deployed.status, 201, "{}", deployed.body);
    site.post("/v1/entities", json!({ "machine": "resource", "key": "gpu-7" })).await?;
    let request = site.request(Method::POST, "/v1/entities/resource/gpu-7/events?wait=30s")?;
    let done = site.ask(request.json(&json!({ "name": "resize", "payload": { "size": 4 } }))).await?;
    assert_eq!(
        (done.status, done.at("/outcome"), done.at("/state")),
        (200, &json!("succeeded"), &json!("ready")),
        "{}",
        done.body
    );
    assert_eq!(done.at("/outputs"), &json!({ "size": 4, "endpoint": "gpu-7.pool.example" }));
    let stats = site.get("/v1/stats").await?;
    assert_eq!(stats.at("/counters/dispatched"), 2);
    Ok(())
}
