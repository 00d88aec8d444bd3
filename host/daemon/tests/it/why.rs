//! Why something stands where it stands.

use crate::site::{Answer, Site};
use expect_test::expect;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What is said of something, without its times.
fn told(asked: &str, answer: &Answer) -> String {
    if answer.status != 200 {
        return format!("{asked}\n    {}\n", answer.line());
    }
    let word = |name: &str| answer.at(&format!("/{name}")).as_str().unwrap_or("-").to_owned();
    let mut text = format!("{asked}\n    {}: {}\n", word("because"), word("sentence"));
    if let Some(holder) = answer.at("/holder").as_str() {
        let _ = writeln!(text, "    held by {holder}");
        assert!(answer.at("/since").is_string() && answer.at("/progress").is_string(), "{}", answer.body);
    }
    for next in answer.at("/next").as_array().into_iter().flatten() {
        let when = if next["at"].is_string() { "then" } else { "also" };
        let _ = writeln!(text, "    {when} {}", next["what"].as_str().unwrap_or_default());
    }
    for command in answer.at("/operator").as_array().into_iter().flatten() {
        let _ = writeln!(text, "    $ {}", command.as_str().unwrap_or_default());
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_says_what_it_waits_for_and_what_can_be_done() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let why = async |query: &str| -> anyhow::Result<String> {
        let answer = site.get(&format!("/v1/entities/door/a/why{query}")).await?;
        assert!(answer.status != 200 || answer.at("/owner") == "facilities <door@example.com>", "{}", answer.body);
        Ok(told(query, &answer))
    };
    let mut said = why("").await?;
    site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    let entity = site.get("/v1/entities/door/a").await?;
    let execution = entity.at("/locked_by").as_str().unwrap_or_default().to_owned();
    said += &why("").await?;
    let of_execution = why(&format!("?execution={execution}")).await?;
    assert!(of_execution.contains("timer: it waits in opening for timer"), "{of_execution}");
    site.send("door/a", "e2", "stop", Value::Null).await?;
    said += &why(&format!("?execution={execution}")).await?;
    said += &why(&format!("?execution={}", execution.replace(".1", ".2"))).await?;
    said += &why("?execution=door/b@1.1").await?;
    said += &why("?execution=soon").await?;
    site.send("door/a", "e3", "push", json!({ "force": 5 })).await?;
    site.send("door/a", "e4", "slam", Value::Null).await?;
    said += &why("").await?;
    said += &told("door/z", &site.get("/v1/entities/door/z/why").await?);
    expect![[r#"

            free: nothing holds it: it rests in shut, and takes knock, push

            timer: it waits in opening for timer after, or an event: slam, stop
            held by door/a@4.1
            then timer after -> open
            $ interlock entity send door/a slam
            $ interlock entity send door/a stop
            $ interlock entity unlock door/a --to shut --force --reason WHY
            $ interlock entity kill door/a --reason WHY
        ?execution=door/a@4.1
            over: it is over: it succeeded in shut at version 3
            $ interlock entity history door/a
        ?execution=door/a@4.2
            404 not_found: there is no execution door/a@4.2
        ?execution=door/b@1.1
            400 invalid: query.execution: expected an execution of door/a, got one of door/b
        ?execution=soon
            400 invalid: query.execution: expected machine/key@incarnation.number, got "soon"

            over: it is over: broken is a final state
            $ interlock entity delete door/a
        door/z
            404 not_found: there is no entity door/z
    "#]]
    .assert_eq(&said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_says_who_has_it_and_who_is_next() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let mut said = told("nobody", &site.get("/v1/leases/a%2Fb/why").await?);
    let held = site.post("/v1/leases/a%2Fb", json!({ "label": "ci", "grant": "g" })).await?;
    let token = held.at("/token").to_string();
    let url = "/v1/leases/a%2Fb?wait=1m";
    let waiting = tokio::spawn(site.request(reqwest::Method::POST, url)?.json(&json!({ "label": "nightly" })).send());
    let answer = loop {
        let answer = site.get("/v1/leases/a%2Fb/why").await?;
        if answer.body.to_string().contains("place 1") {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    said += &told("held", &answer).replace(&format!("token {token}"), "token N");
    site.post("/v1/leases/a%2Fb/release", json!({ "grant": "g", "token": held.at("/token") })).await?;
    let next = Answer::read(waiting.await??).await?;
    let (grant, token) = (next.at("/grant"), next.at("/token"));
    site.post("/v1/leases/a%2Fb/release", json!({ "grant": grant, "token": token })).await?;
    said += &told("free", &site.get("/v1/leases/a%2Fb/why").await?);
    expect![[r#"
        nobody
            404 not_found: nobody has lease a/b, waits for it, or has asked for it lately
        held
            held: it is held by ci, token N
            held by ci
            then it ends, unless it is renewed
            then it ends, however often it is renewed
            also place 1 in line: nightly
        free
            free: nobody has it
    "#]]
    .assert_eq(&said);
    Ok(())
}
