//! The contract in golden files, and what every route shares.

use crate::site::Site;
use expect_test::{expect, expect_file};
use interlock_daemon::{Reason, openapi};
use reqwest::Method;
use serde_json::{Value, json};
use std::fmt::Write;

#[test]
fn the_description_is_the_one_on_record() -> anyhow::Result<()> {
    expect_file!["../../openapi.json"].assert_eq(&(serde_json::to_string_pretty(&openapi())? + "\n"));
    Ok(())
}

#[test]
fn every_operation_and_schema_is_named_once() -> anyhow::Result<()> {
    let document = serde_json::to_value(openapi())?;
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    assert!(schemas > 30, "{schemas}");
    let operations = document.pointer("/paths").and_then(Value::as_object).into_iter().flatten();
    let ids: Vec<_> = operations
        .flat_map(|(_, path)| path.as_object().into_iter().flatten())
        .filter_map(|(_, operation)| operation.get("operationId")?.as_str().map(str::to_owned))
        .collect();
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    let text = document.to_string();
    for reference in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(
            document.pointer(&format!("/components/schemas/{reference}")).is_some(),
            "{reference} is not described"
        );
    }
    Ok(())
}

#[test]
fn every_reason_has_its_status() {
    let mut table = String::new();
    for reason in Reason::all() {
        let (code, status, title) = reason.row();
        let _ = writeln!(table, "{status} {code:<22} {title}");
    }
    expect![[r#"
        400 invalid                The request itself is wrong
        404 not_found              There is no such thing
        403 denied                 The caller may not
        422 id_reused              The event id was used for another event
        409 late                   It concerns something past
        409 final                  The entity is in a final state
        409 fenced                 Somebody else may write now
        409 spent                  The attempt has had its one transition
        409 paused                 An operator paused it
        409 busy                   Somebody else holds the lock
        412 conflict               What was read is no longer what is there
        409 not_allowed            The state does not take this
        422 require                A requirement does not hold
        422 guard                  The guard does not hold
        429 limit                  A named limit is reached
        503 unavailable            The store cannot answer now
        429 outbox_full            A target does not keep up
        413 limit                  More or longer than a named limit
        404 not_found              There is no such path
        405 method_not_allowed     The path has no such method
        415 media_type             The body is not JSON by its own account
        428 precondition_required  The request must say what it replaces
        410 gone                   The feed no longer keeps this position
        503 indeterminate          Whether it was written is not known
        500 internal               A fault of the host
    "#]]
    .assert_eq(&table);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_a_problem_too() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let nowhere = site.get("/v1/entites").await?;
    assert_eq!(nowhere.line(), "404 not_found: there is no /v1/entites");
    assert_eq!(nowhere.header("content-type"), Some("application/problem+json"));
    let wrong = site.ask(site.request(Method::PATCH, "/v1/machines")?).await?;
    assert_eq!(wrong.status, 405);
    assert_eq!(wrong.at("/code"), "method_not_allowed");
    assert_eq!(wrong.header("allow"), Some("POST,GET,HEAD"));
    let described = site.get("/v1/openapi.json").await?;
    assert_eq!(described.at("/info/title"), "Interlock");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_read_strictly() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let long = |bytes: usize| format!(r#"{{"name": "push", "payload": "{}"}}"#, "x".repeat(bytes));
    let bodies = [
        ("text/plain", "{}".to_owned()),
        ("application/json", r#"{"name": "push", "#.to_owned()),
        ("application/json", r#"{"name": "push", "paylod": {}}"#.to_owned()),
        ("application/json", r#"{"name": "push", "payload": {"force": 99999999999999999999}}"#.to_owned()),
        ("application/json", r#"{"name": "pusch", "payload": {"force": 1}}"#.to_owned()),
        ("application/json", r#"{"name": "push", "payload": {"force": 101}}"#.to_owned()),
        ("application/json", r#"{"name": "push", "payload": {"force": 1, "speed": 2}}"#.to_owned()),
        ("application/json", long(300 << 10)),
        ("application/json", long(2 << 20)),
    ];
    let mut said = String::new();
    for (kind, body) in bodies {
        let request = site.request(Method::POST, "/v1/entities/door/a/events")?;
        let answer = site.ask(request.header("content-type", kind).body(body.clone())).await?;
        let _ = writeln!(said, "{body:.70}\n    {}", answer.line());
    }
    let query = site.get("/v1/entities?machin=door").await?;
    let _ = writeln!(said, "?machin=door\n    {}", query.line());
    let deploy = site.post("/v1/machines", json!({ "manifest": "", "component": "no base64" })).await?;
    let _ = writeln!(said, "no base64\n    {}", deploy.line());
    expect![[r#"
        {}
            415 media_type: Content-Type: expected application/json, got text/plain
        {"name": "push", 
            400 invalid: body: expected JSON of the documented shape, got EOF while parsing a value at line 1 column 17
        {"name": "push", "paylod": {}}
            400 invalid: paylod: expected one of `name`, `payload`, `expect` (did you mean payload?), got unknown field `paylod` at line 1 column 25
        {"name": "push", "payload": {"force": 99999999999999999999}}
            400 invalid: payload: expected integers of at most 64 bits, got 99999999999999999999 at line 1 column 60
        {"name": "pusch", "payload": {"force": 1}}
            400 invalid: door event: expected one of knock, push, slam, stop, got pusch (did you mean push?)
        {"name": "push", "payload": {"force": 101}}
            400 invalid: event.push/force: expected at most 100, got 101
        {"name": "push", "payload": {"force": 1, "speed": 2}}
            400 invalid: event.push/speed: expected no field of this name, got 2
        {"name": "push", "payload": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            413 limit: payload: expected at most 258048 bytes, got 307202 (document_bytes_max) at line 1 column 307231
        {"name": "push", "payload": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            413 limit: body: expected at most 1048576 bytes (body_bytes_max), got more
        ?machin=door
            400 invalid: query.machin: expected only machine, state, parked, label, limit, after (did you mean machine?), got "machin"
        no base64
            400 invalid: component: expected base64 with padding (RFC 4648, section 4), got another text
    "#]].assert_eq(&said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn web_pages_are_refused() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let foreign = site.request(Method::GET, "/v1/machines")?.header("origin", "http://evil.example");
    expect!["403 denied: requests are taken from this machine's own programs only, not from web pages"]
        .assert_eq(&site.ask(foreign).await?.line());
    let rebound = site.request(Method::GET, "/v1/machines")?.header("host", "evil.example");
    assert_eq!(site.ask(rebound).await?.status, 403);
    Ok(())
}
