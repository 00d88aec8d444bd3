//! What is refused over HTTP, by name, and leaves nothing behind: bad input in one table, and every bound that
//! can be reached from outside at its value and one above.

use crate::host::{Api, Reply, event, run, start};
use crate::machines::{DOOR, PLAIN};
use anyhow::{Context as _, Result, ensure};
use expect_test::expect_file;
use interlock_daemon::limits::{BODY_BYTES_MAX, MANIFEST_BYTES_MAX, PAGE_MAX};
use interlock_kernel::limits::{
    DOCUMENT_BYTES_MAX, EVENT_ID_BYTES_MAX, INBOX_MAX, KEY_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX, NAME_BYTES_MAX,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::future::Future;

/// Requests that are wrong, one a line: method, path, body, headers in front of it. `door/a` rests, `door/b` is
/// held, `door/z` and the machine `dor` do not exist.
const WRONG: &str = r#"
# names
GET /v1/machines/dor
GET /v1/machines/DOOR
GET /v1/entities/dor/a
GET /v1/entities/door/z
GET /v1/entities?machine=door&state=hold
GET /v1/entities?machin=door
POST /v1/entities {"machine":"dor","key":"a"}
POST /v1/entities {"machine":"door","key":"a@b"}
POST /v1/entities {"machine":"door","key":""}
POST /v1/entities/door/a/events {"name":"opn","payload":{"times":1}}
POST /v1/entities/door/z/events {"name":"hold"}
POST /v1/entities/dor/a/events {"name":"hold"}
# bodies
POST /v1/entities/door/a/events {"name":"open","payload":{"times":1}
POST /v1/entities/door/a/events {"nam":"open"}
POST /v1/entities/door/a/events {"name":"open","payload":{"times":18446744073709551616}}
POST /v1/entities/door/a/events {"name":"hold","expect":{"versoin":1}}
POST /v1/entities/door/a/events {"name":"hold","expect":{"version":"one"}}
POST /v1/entities {"machine":"door","key":"c","on_existing":"replace"}
POST /v1/entities/door/b/kill {}
POST /v1/entities/door/b/kill {"reason":" "}
# schemas
POST /v1/entities/door/a/events {"name":"open"}
POST /v1/entities/door/a/events {"name":"open","payload":{"times":10}}
POST /v1/entities/door/a/events {"name":"open","payload":{"times":"one"}}
POST /v1/entities/door/a/events {"name":"open","payload":{"times":1,"speed":2}}
POST /v1/entities {"machine":"door","key":"c","desired":{"colour":"blue"}}
POST /v1/entities {"machine":"door","key":"c","event":{"name":"open","payload":{"times":0}}}
PUT /v1/entities/door/a/desired If-Match:"0" {"desired":{"colour":"blue"}}
# preconditions
PUT /v1/entities/door/a/desired {"desired":{"colour":"red"}}
PUT /v1/entities/door/a/desired If-Match:"7" {"desired":{"colour":"red"}}
PUT /v1/entities/door/a/desired If-Match:seven {"desired":{"colour":"red"}}
POST /v1/entities/door/a/events Idempotency-Key:"" {"name":"hold"}
POST /v1/entities/door/a/events?wait=soon {"name":"hold"}
# states
POST /v1/entities/door/a/events {"name":"free"}
POST /v1/entities/door/b/events {"name":"hold"}
DELETE /v1/entities/door/b
DELETE /v1/entities/door/z
POST /v1/entities {"machine":"door","key":"a","desired":{"colour":"red"}}
POST /v1/entities {"machine":"door","key":"b","on_existing":"recreate"}
POST /v1/machines/door/rollback {"to":9}
# paths and methods
GET /v1/entitys
PATCH /v1/machines
GET /v1/entities?limit=0
GET /v1/entities/door/a/history?before=first
POST /v1/machines {"manifest":"machine = "}
"#;

#[test]
fn every_wrong_request_is_refused_by_name_and_changes_nothing() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(DOOR, None).await?;
        for key in ["a", "b"] {
            api.create(&format!("door/{key}")).await?;
        }
        api.send("door/b", "e1", event("hold")).await?.done()?;
        let before = everything(api).await?;
        let mut told = String::new();
        for line in WRONG.lines().filter(|line| !line.is_empty()) {
            writeln!(told, "{line}")?;
            if line.starts_with('#') {
                continue;
            }
            let reply = ask(api, line).await.context(line)?;
            ensure!(reply.status >= 400, "{line} was taken: {}", reply.body);
            let text = |name: &str| reply.body[name].as_str().unwrap_or_default().to_owned();
            let retry = reply.retry_after.as_ref().map(|_| ", Retry-After").unwrap_or_default();
            writeln!(told, "    {} {}{retry}: {}", reply.status, text("code"), text("subject"))?;
            writeln!(told, "    expected {}", text("expected"))?;
            // How long something was held differs from run to run.
            let got = text("got");
            let got = got.split_once(" for ").map_or(got.as_str(), |(held, _)| held);
            writeln!(told, "    got {}", without_incarnation(got))?;
            ensure!(everything(api).await? == before, "{line} was refused and changed something");
        }
        expect_file!["golden/refusals.txt"].assert_eq(&told);
        Ok(())
    })
}

/// Machines, and entities whole.
async fn everything(api: &Api) -> Result<Value> {
    let machines = api.get("/v1/machines").await?.done()?;
    let entities = api.get("/v1/entities").await?.done()?;
    let (a, b) = (api.entity("door/a").await?, api.entity("door/b").await?);
    Ok(json!([machines, entities, a, b]))
}

fn without_incarnation(text: &str) -> String {
    match text.split_once('@').map(|(before, rest)| (before, rest.trim_start_matches(|c: char| c.is_ascii_digit()))) {
        Some((before, rest)) if rest.starts_with('.') => format!("{before}@I{rest}"),
        _ => text.to_owned(),
    }
}

async fn ask(api: &Api, line: &str) -> Result<Reply> {
    let mut words = line.splitn(3, ' ');
    let method: Method = words.next().context("a method")?.parse()?;
    let mut request = api.request(method, words.next().context("a path")?);
    let mut rest = words.next().unwrap_or_default();
    while let Some((header, body)) =
        rest.split_once(' ').filter(|(word, _)| word.contains(':') && !word.starts_with('{'))
    {
        let (name, value) = header.split_once(':').context("a header")?;
        request = request.header(name, value);
        rest = body;
    }
    if !rest.is_empty() {
        request = request.header("Content-Type", "application/json").body(rest.to_owned());
    }
    api.ask(request).await
}

/// At its bound a request is taken; one above it is refused with this status, naming `word`.
async fn bound<F>(name: &str, max: usize, status: u16, ask: impl Fn(usize) -> F) -> Result<()>
where
    F: Future<Output = Result<Reply>>,
{
    let taken = ask(max).await?;
    ensure!((200..300).contains(&taken.status), "{name} at {max}: {} {}", taken.status, taken.body);
    let refused = ask(max + 1).await?;
    let said = refused.body.to_string();
    ensure!(refused.status == status, "{name} at {}: {} {said}", max + 1, refused.status);
    ensure!(said.contains(&max.to_string()), "{name}: the bound {max} is not named: {said}");
    Ok(())
}

#[test]
fn every_bound_holds_at_its_value_and_refuses_one_more() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(PLAIN, None).await?;
        let create = |body: Value| async move { api.post("/v1/entities", body).await };
        let text = |size: usize| "x".repeat(size);

        bound("a key", KEY_BYTES_MAX, 400, |size| create(json!({ "machine": "plain", "key": text(size) }))).await?;
        bound("a machine's name", NAME_BYTES_MAX, 400, |size| {
            let manifest = PLAIN.replace("\"plain\"", &format!("\"{}\"", text(size)));
            async move { api.post("/v1/machines", json!({ "manifest": manifest })).await }
        })
        .await?;
        bound("a manifest", MANIFEST_BYTES_MAX, 413, |size| {
            let manifest = format!("{PLAIN}#{}", "x".repeat(size - PLAIN.len() - 1));
            async move { api.post("/v1/machines", json!({ "manifest": manifest })).await }
        })
        .await?;
        bound("labels", LABELS_MAX, 413, |size| {
            let labels: Value =
                (0..size).map(|nth| (nth.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>().into();
            create(json!({ "machine": "plain", "key": format!("labels-{size}"), "labels": labels }))
        })
        .await?;
        bound("a label's value", LABEL_BYTES_MAX, 413, |size| {
            create(json!({ "machine": "plain", "key": format!("label-{size}"), "labels": { "name": text(size) } }))
        })
        .await?;
        bound("a page", PAGE_MAX, 400, |size| async move { api.get(&format!("/v1/entities?limit={size}")).await })
            .await?;

        api.create("plain/a").await?;
        bound("an event id", EVENT_ID_BYTES_MAX, 400, |size| async move {
            api.send("plain/a", &"x".repeat(size), event("note")).await
        })
        .await?;
        // A document is measured by its canonical text.
        let around = r#"{"text":""}"#.len();
        bound("a payload", DOCUMENT_BYTES_MAX, 413, |size| async move {
            let payload = json!({ "text": "x".repeat(size - around) });
            api.send("plain/a", &format!("size-{size}"), json!({ "name": "note", "payload": payload })).await
        })
        .await?;
        bound("desired", DOCUMENT_BYTES_MAX, 413, |size| async move {
            let generation = api.entity("plain/a").await?["generation"].as_u64().context("a generation")?;
            api.apply("plain/a", generation, json!({ "text": "x".repeat(size - around) })).await
        })
        .await?;

        // A body at its bound is read, and judged by what is in it; one byte more is not.
        let body = |size: usize| {
            let start = r#"{"name":"note""#;
            let body = format!("{start}{}}}", " ".repeat(size - start.len() - 1));
            let request = api.request(Method::POST, "/v1/entities/plain/a/events");
            async move { api.ask(request.header("Content-Type", "application/json").body(body)).await }
        };
        bound("a body", BODY_BYTES_MAX, 413, body).await?;

        api.send("plain/a", "hold", event("hold")).await?.done()?;
        for nth in 0..INBOX_MAX {
            let queued = api.send("plain/a", &format!("queued-{nth}"), event("note")).await?.done()?;
            ensure!(queued["answer"] == "queued", "{queued}");
        }
        let full = api.send("plain/a", "one-more", event("note")).await?;
        ensure!(full.retry_after.is_some(), "{full:?}");
        let full = full.refused(429, "limit")?;
        ensure!(full["expected"].as_str().is_some_and(|text| text.contains("inbox_max")), "{full}");
        let before = api.entity("plain/a").await?["data"]["n"].as_u64().context("n")?;
        api.send("plain/a", "free", event("free")).await?.done()?;
        let after = api.entity("plain/a").await?;
        ensure!(after["data"]["n"] == before + u64::from(INBOX_MAX) && after["inbox"] == 0, "{after}");
        // Refused is not remembered: the same again is taken now.
        let again = api.send("plain/a", "one-more", event("note")).await?;
        ensure!(again.status == 200 && !again.replayed, "{again:?}");
        Ok(())
    })
}
