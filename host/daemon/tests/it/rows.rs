//! Tables and rows over HTTP: declared, written under conditions, claimed, refused with their place, told as they change.

use crate::site::{Answer, Site};
use anyhow::{Context as _, ensure};
use expect_test::expect;
use reqwest::Method;
use serde_json::{Value, json};
use std::fmt::Write as _;

const JOBS: &str = r#"
table = "jobs"
owner = "payments <pay@example.com>"

[schema]
type = "object"
properties.tries = { type = "integer", maximum = 9223372036854775807 }

[indexes]
by-status = ["status"]

[access]
clients = ["get", "query", "put", "update", "claim", "upsert", "delete"]
"#;

/// Nobody is named in it, so nobody may do anything.
const SHUT: &str = "table = \"shut\"\nowner = \"vault <vault@example.com>\"\n";

async fn site() -> anyhow::Result<Site> {
    let site = Site::new().await?;
    let declared = site.post("/v1/tables", json!({ "manifest": JOBS })).await?;
    ensure!(declared.status == 201, "{}", declared.body);
    Ok(site)
}

/// A request with headers, `Name: value` each.
async fn ask(site: &Site, method: Method, path: &str, headers: &[&str], body: Value) -> anyhow::Result<Answer> {
    let mut request = site.request(method, path)?;
    for header in headers {
        let (name, value) = header.split_once(": ").context("a header")?;
        request = request.header(name, value);
    }
    site.ask(request.json(&body)).await
}

async fn put(site: &Site, key: &str, value: Value) -> anyhow::Result<Answer> {
    ask(site, Method::PUT, &format!("/v1/tables/jobs/rows/{key}"), &[], value).await
}

/// So many pending rows, `0` and up.
async fn pending(site: &Site, count: usize) -> anyhow::Result<()> {
    for key in 0..count {
        let written = put(site, &key.to_string(), json!({ "status": "pending", "n": key })).await?;
        ensure!(written.status == 201, "{}", written.body);
    }
    Ok(())
}

fn keys(rows: &Value) -> Vec<&str> {
    rows.as_array().into_iter().flatten().filter_map(|row| row["key"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_declared_once_shown_and_dropped() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let checked = site.post("/v1/tables?check_only=true", json!({ "manifest": JOBS })).await?;
    assert_eq!((checked.status, checked.at("/new"), checked.at("/revision")), (200, &json!(false), &Value::Null));
    assert_eq!(site.get("/v1/tables").await?.body, json!({ "tables": [], "next": null }));
    let declared = site.post("/v1/tables", json!({ "manifest": JOBS })).await?;
    assert_eq!((declared.status, declared.at("/new"), declared.at("/revision")), (201, &json!(true), &json!(1)));
    let again = site.post("/v1/tables", json!({ "manifest": JOBS })).await?;
    assert_eq!((again.status, again.at("/new"), again.at("/revision")), (200, &json!(false), &json!(1)));
    pending(&site, 3).await?;
    site.post("/v1/tables/jobs/claim?as=w", json!({ "limit": 1 })).await?;
    let shown = site.get("/v1/tables/jobs").await?;
    assert_eq!((shown.at("/rows"), shown.at("/claimed"), shown.at("/dropping")), (&json!(3), &json!(1), &json!(false)));
    assert_eq!(shown.at("/manifest"), JOBS);
    assert_eq!(
        shown.at("/indexes"),
        &json!([{ "name": "by-status", "fields": ["status"], "tie": "created", "stage": "ready", "done": null }])
    );
    assert_eq!(shown.at("/access/clients/0"), "get");
    assert_eq!((shown.at("/entries/0/what"), shown.at("/entries/0/claimant")), (&json!("claimed"), &json!("w")));
    let listed = site.get("/v1/tables?limit=1").await?;
    assert_eq!((listed.at("/tables/0/table"), listed.at("/next")), (&json!("jobs"), &json!("jobs")));
    let dropped = site.ask(site.request(Method::DELETE, "/v1/tables/jobs")?).await?;
    assert_eq!((dropped.status, dropped.body), (202, json!({ "table": "jobs", "rows": 3 })));
    while site.get("/v1/tables/jobs").await?.status != 404 {
        tokio::task::yield_now().await;
    }
    // The name is free again, and nothing is left of what it was.
    let declared = site.post("/v1/tables", json!({ "manifest": JOBS })).await?;
    assert_eq!((declared.status, declared.at("/revision")), (201, &json!(1)));
    assert_eq!(site.post("/v1/tables/jobs/query", json!({})).await?.at("/count"), &json!(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_a_filled_table_is_built_while_it_is_used() -> anyhow::Result<()> {
    let site = site().await?;
    pending(&site, 40).await?;
    let more = JOBS.replace("by-status = [\"status\"]", "by-status = [\"status\"]\nby-n = [\"status\", \"n\"]");
    let declared = site.post("/v1/tables", json!({ "manifest": more })).await?;
    assert_eq!((declared.status, declared.at("/revision")), (201, &json!(2)));
    loop {
        let shown = site.get("/v1/tables/jobs").await?;
        let stages = shown.at("/indexes").as_array().into_iter().flatten().map(|index| index["stage"].as_str());
        if stages.collect::<Option<Vec<_>>>() == Some(vec!["ready", "ready"]) {
            break;
        }
        tokio::task::yield_now().await;
    }
    let wanted = json!({ "where": { "status": "pending" }, "order": "-by-n", "limit": 2, "return": ["n"] });
    let found = site.post("/v1/tables/jobs/query", wanted).await?;
    assert_eq!(keys(found.at("/rows")), ["39", "38"], "{}", found.body);
    assert_eq!(found.at("/rows/0/value"), &json!({ "n": 39 }));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_wrong_with_a_declaration_is_found() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let wrong = JOBS.replace("claim\",", "clame\",").replace("[\"status\"]", "[]");
    let refused = site.post("/v1/tables", json!({ "manifest": wrong })).await?;
    assert_eq!((refused.status, refused.at("/subject")), (400, &json!("table")));
    let found: Vec<_> = refused.at("/findings").as_array().into_iter().flatten().collect();
    assert!(found.len() >= 2, "{}", refused.body);
    assert!(found.iter().all(|finding| finding["line"].is_u64() && finding["remedy"].is_string()), "{}", refused.body);
    assert!(refused.body.to_string().contains("claim"), "{}", refused.body);
    assert_eq!(site.get("/v1/tables/jobs").await?.status, 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_written_under_the_version_that_was_read() -> anyhow::Result<()> {
    let site = site().await?;
    let path = "/v1/tables/jobs/rows/a%2Fb";
    let write = async |headers: &[&str], value: Value| ask(&site, Method::PUT, path, headers, value).await;
    let first = write(&["If-None-Match: *"], json!({ "tries": i64::MAX })).await?;
    assert_eq!((first.status, first.at("/inserted"), first.at("/key")), (201, &json!(true), &json!("a/b")));
    assert_eq!(first.at("/value/tries"), &json!(i64::MAX));
    let version = first.header("etag").context("a tag")?.to_owned();
    assert_eq!(version, format!("\"{}\"", first.at("/version")));
    let read = site.get(path).await?;
    assert_eq!((read.status, read.header("etag")), (200, Some(version.as_str())));
    assert_eq!((read.at("/claims"), read.at("/claimed_by")), (&json!(0), &Value::Null));
    let there = write(&["If-None-Match: *"], json!({})).await?;
    assert_eq!((there.status, there.at("/code"), there.at("/expected")), (412, &json!("conflict"), &json!("no row")));
    assert_eq!(there.at("/owner"), "payments <pay@example.com>");
    let second = write(&[&format!("If-Match: {version}")], json!({ "tries": 1 })).await?;
    assert_eq!((second.status, second.at("/inserted")), (200, &json!(false)));
    assert_ne!(second.header("etag"), Some(version.as_str()));
    assert_eq!(write(&[&format!("If-Match: {version}")], json!({ "tries": 2 })).await?.status, 412);
    let delete = |header: Option<&str>| {
        let request = site.request(Method::DELETE, path);
        request.map(|request| header.iter().fold(request, |request, tag| request.header("If-Match", *tag)))
    };
    let unread = site.ask(delete(Some(&version))?).await?;
    assert_eq!((unread.status, unread.at("/subject")), (400, &json!("If-Match")));
    assert_eq!(site.ask(delete(None)?).await?.body, json!({ "deleted": true, "key": "a/b", "unmatched": null }));
    let gone = json!({ "deleted": false, "key": "a/b", "unmatched": "absent" });
    assert_eq!(site.ask(delete(None)?).await?.body, gone);
    let missing = site.get(path).await?;
    assert_eq!(missing.line(), "404 not_found: there is no row a/b in table jobs");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_primitive_says_what_it_did_and_why_not() -> anyhow::Result<()> {
    let site = site().await?;
    let mut said = String::new();
    let requests = [
        ("update", json!({ "key": "a", "set": { "status": "done" } })),
        ("upsert", json!({ "key": "a", "insert": { "status": "pending" }, "set": { "tries": { "increment": 1 } } })),
        ("upsert", json!({ "key": "a", "insert": {}, "set": { "tries": { "increment": 1 } } })),
        ("upsert", json!({ "key": "a", "insert": {} })),
        ("update", json!({ "key": "a", "where": { "status": "done" }, "set": { "status": "x" } })),
        (
            "update",
            json!({ "key": "a", "where": [{ "field": "tries", "operator": "le", "value": 1 }],
            "set": [{ "field": "tries", "operation": "max", "value": 9 },
                    { "field": "tries", "operation": "increment", "value": -2 }], "return": ["tries"] }),
        ),
        ("claim", json!({ "set": { "status": "in_flight", "claimed_by": { "from": "execution" } } })),
        ("claim", json!({})),
        ("query", json!({ "where": { "any": [{ "field": "status", "operator": "eq", "value": "in_flight" }] } })),
        ("query", json!({ "where": { "claimed_by": { "from": "execution" } }, "return": ["claimed_by"] })),
    ];
    for (verb, body) in requests {
        let mut answer = site.post(&format!("/v1/tables/jobs/{verb}?as=me"), body.clone()).await?;
        assert_eq!(answer.status, 200, "{verb} {body}: {}", answer.body);
        blank(&mut answer.body);
        let _ = writeln!(said, "{verb} {body}\n    {}", answer.body);
    }
    expect![[r#"
        update {"key":"a","set":{"status":"done"}}
            {"key":"a","unmatched":"absent","updated":false,"value":null,"version":null}
        upsert {"insert":{"status":"pending"},"key":"a","set":{"tries":{"increment":1}}}
            {"inserted":true,"key":"a","value":{"status":"pending"},"version":"*"}
        upsert {"insert":{},"key":"a","set":{"tries":{"increment":1}}}
            {"inserted":false,"key":"a","value":{"status":"pending","tries":1},"version":"*"}
        upsert {"insert":{},"key":"a"}
            {"inserted":false,"key":"a","value":{"status":"pending","tries":1},"version":"*"}
        update {"key":"a","set":{"status":"x"},"where":{"status":"done"}}
            {"guard":"row.status eq \"done\"","key":"a","unmatched":"guard","updated":false,"value":null,"version":null}
        update {"key":"a","return":["tries"],"set":[{"field":"tries","operation":"max","value":9},{"field":"tries","operation":"increment","value":-2}],"where":[{"field":"tries","operator":"le","value":1}]}
            {"key":"a","unmatched":null,"updated":true,"value":{"tries":7},"version":"*"}
        claim {"set":{"claimed_by":{"from":"execution"},"status":"in_flight"}}
            {"claimed":[{"claimed_by":"me","claims":1,"created":"*","key":"a","updated":"*","value":{"claimed_by":"me","status":"in_flight","tries":7},"version":"*"}],"count":1,"lost":[],"more":false}
        claim {}
            {"claimed":[],"count":0,"lost":[],"more":false}
        query {"where":{"any":[{"field":"status","operator":"eq","value":"in_flight"}]}}
            {"count":1,"next":null,"rows":[{"claimed_by":"me","claims":1,"created":"*","key":"a","updated":"*","value":{"claimed_by":"me","status":"in_flight","tries":7},"version":"*"}]}
        query {"return":["claimed_by"],"where":{"claimed_by":{"from":"execution"}}}
            {"count":1,"next":null,"rows":[{"claimed_by":"me","claims":1,"created":"*","key":"a","updated":"*","value":{"claimed_by":"me"},"version":"*"}]}
    "#]].assert_eq(&said);
    Ok(())
}

/// Numbers and times that no two runs share.
fn blank(body: &mut Value) {
    match body {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "version" | "created" | "updated" if !value.is_null() && !value.is_boolean() => *value = "*".into(),
                    _ => blank(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(blank),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_say_where_in_the_request_and_what_is_allowed() -> anyhow::Result<()> {
    let site = site().await?;
    site.post("/v1/tables", json!({ "manifest": SHUT })).await?;
    put(&site, "a", json!({ "status": "text", "tries": i64::MAX })).await?;
    let mut said = String::new();
    let requests = [
        ("tables/jobs/update", json!({ "key": "a", "set": [] })),
        ("tables/jobs/update", json!({ "key": "a", "set": { "status": { "increment": 1 } } })),
        ("tables/jobs/update", json!({ "key": "a", "set": { "tries": { "increment": 1 } } })),
        ("tables/jobs/update", json!({ "key": "a", "set": { "tries": "many" } })),
        ("tables/jobs/update", json!({ "key": "a", "set": { "tries": { "incremnt": 1 } } })),
        ("tables/jobs/update", json!({ "key": 1.5, "set": { "a": 1 } })),
        ("tables/jobs/update", json!({ "update": "jobs", "key": "a", "set": { "a": 1 } })),
        ("tables/jobs/update", json!([])),
        ("tables/jobs/claim", json!({ "limit": 1001 })),
        ("tables/jobs/claim", json!({ "limit": 0 })),
        ("tables/jobs/claim", json!({ "order": "by-size" })),
        ("tables/jobs/claim", json!({ "where": [{ "field": "status", "operator": "equals", "value": 1 }] })),
        (
            "tables/jobs/claim",
            json!({ "where": [{ "field": "event.x", "operator": "eq", "value": { "from": "event.x" } }] }),
        ),
        ("tables/jobs/query", json!({ "after": "nonsense" })),
        ("tables/jobs/query", json!({ "wher": {} })),
        ("tables/jbs/query", json!({})),
        ("tables/shut/query", json!({})),
        ("tables/shut/claim", json!({})),
        ("transact", json!({ "ops": [{ "get": "jobs", "key": "a" }, { "get": "shut", "key": "a" }] })),
        (
            "transact",
            json!({ "ops": [{ "put": "jobs", "key": "b", "value": {} },
            { "update": "jobs", "key": "a", "set": { "status": { "increment": 1 } } }] }),
        ),
        ("transact", json!({ "ops": [{ "update": "jobs", "key": "b", "set": { "a": 1 }, "must": true }] })),
        ("transact", json!({ "require": [{ "row": "jobs", "key": "a" }, { "absent": "jobs", "key": "a" }] })),
        ("transact", json!({ "require": [{ "row": "jobs", "key": "a", "where": { "status": "done" } }] })),
        ("transact", json!({ "require": [{ "entity": "door/a" }] })),
        ("transact", json!({ "ops": [{ "updat": "jobs" }] })),
        ("tables/jobs/claim?as=", json!({})),
        ("tables/jobs/claim?as=m/k@1.1", json!({})),
        ("tables/jobs/claim?limit=1", json!({})),
    ];
    for (path, body) in requests {
        let answer = site.post(&format!("/v1/{path}"), body.clone()).await?;
        let pointer = answer.at("/pointer").as_str().map(|at| format!(" at {at:?}")).unwrap_or_default();
        let owner = answer.at("/owner").as_str().map(|owner| format!(" ({owner})")).unwrap_or_default();
        let _ = writeln!(said, "{path} {body}\n    {}{pointer}{owner}", answer.line());
    }
    expect![[r#"
        tables/jobs/update {"key":"a","set":[]}
            400 invalid: table jobs: expected at least one change (set), got none (payments <pay@example.com>)
        tables/jobs/update {"key":"a","set":{"status":{"increment":1}}}
            400 invalid: jobs/a: row.status: expected a change that its value allows, got row.status: expected a number, got text (payments <pay@example.com>)
        tables/jobs/update {"key":"a","set":{"tries":{"increment":1}}}
            400 invalid: jobs/a/tries: expected at most 9223372036854775807, got 9223372036854775808 (payments <pay@example.com>)
        tables/jobs/update {"key":"a","set":{"tries":"many"}}
            400 invalid: jobs/a/tries: expected an integer, got "many" (payments <pay@example.com>)
        tables/jobs/update {"key":"a","set":{"tries":{"incremnt":1}}}
            400 invalid: /set/tries/incremnt: expected one of append, from, increment, max, min, remove, value (did you mean increment?); a literal object is written {"value": {...}}, got "incremnt" at "/set/tries/incremnt"
        tables/jobs/update {"key":1.5,"set":{"a":1}}
            400 invalid: /key: expected a row's key: text, a whole number or {from: SOURCE}, got 1.5 at "/key"
        tables/jobs/update {"key":"a","set":{"a":1},"update":"jobs"}
            400 invalid: /update: expected no field of this name: the path says update, and of which table, got one at "/update"
        tables/jobs/update []
            400 invalid: body: expected a JSON object, got [] at ""
        tables/jobs/claim {"limit":1001}
            413 limit: table jobs: expected a limit of 1 to 1000 rows (rows_max; 10 if none is given), got 1001 (payments <pay@example.com>)
        tables/jobs/claim {"limit":0}
            413 limit: table jobs: expected a limit of 1 to 1000 rows (rows_max; 10 if none is given), got 0 (payments <pay@example.com>)
        tables/jobs/claim {"order":"by-size"}
            400 invalid: table jobs: expected an order by created, updated, index by-status, got index by-size (payments <pay@example.com>)
        tables/jobs/claim {"where":[{"field":"status","operator":"equals","value":1}]}
            400 invalid: /where/0/operator: expected one of eq, ne, lt, le, gt, ge, in, not-in, exists, contains, starts-with, got "equals" at "/where/0/operator"
        tables/jobs/claim {"where":[{"field":"event.x","operator":"eq","value":{"from":"event.x"}}]}
            400 invalid: /where/0/value/from: expected now, now+5m, now-90s, execution, row.x, got "event.x" at "/where/0/value/from"
        tables/jobs/query {"after":"nonsense"}
            400 invalid: table jobs: expected the `next` of an earlier answer to the same query, got "nonsense" (payments <pay@example.com>)
        tables/jobs/query {"wher":{}}
            400 invalid: /wher: expected one of query, where, order, limit, after, return (did you mean where?), got "wher" at "/wher"
        tables/jbs/query {}
            404 not_found: there is no table jbs
        tables/shut/query {}
            403 denied: table shut: expected query among access.clients of the table's declaration, got query, which is not granted (vault <vault@example.com>)
        tables/shut/claim {}
            403 denied: table shut: expected claim among access.clients of the table's declaration, got claim, which is not granted (vault <vault@example.com>)
        transact {"ops":[{"get":"jobs","key":"a"},{"get":"shut","key":"a"}]}
            403 denied: table shut: expected get among access.clients of the table's declaration, got get, which is not granted at "/ops/1" (vault <vault@example.com>)
        transact {"ops":[{"key":"b","put":"jobs","value":{}},{"key":"a","set":{"status":{"increment":1}},"update":"jobs"}]}
            400 invalid: jobs/a: row.status: expected a change that its value allows, got row.status: expected a number, got text at "/ops/1" (payments <pay@example.com>)
        transact {"ops":[{"key":"b","must":true,"set":{"a":1},"update":"jobs"}]}
            422 require: jobs/b: expected a row (must), got none at "/ops/0" (payments <pay@example.com>)
        transact {"require":[{"key":"a","row":"jobs"},{"absent":"jobs","key":"a"}]}
            422 require: jobs/a: expected no row, got a row at "/require/1" (payments <pay@example.com>)
        transact {"require":[{"key":"a","row":"jobs","where":{"status":"done"}}]}
            422 require: jobs/a: expected row.status eq "done", got "text" at "/require/0" (payments <pay@example.com>)
        transact {"require":[{"entity":"door/a"}]}
            422 require: door/a: expected an entity, got none with this key at "/require/0"
        transact {"ops":[{"updat":"jobs"}]}
            400 invalid: /ops/0/updat: expected one of claim, get, put, update, upsert, delete (did you mean update?), got "updat" at "/ops/0/updat"
        tables/jobs/claim?as= {}
            400 invalid: query.as: expected 1 to 200 bytes without control characters that are no execution's id, got ""
        tables/jobs/claim?as=m/k@1.1 {}
            400 invalid: query.as: expected 1 to 200 bytes without control characters that are no execution's id, got "m/k@1.1"
        tables/jobs/claim?limit=1 {}
            400 invalid: query.limit: expected only as, got "limit"
    "#]].assert_eq(&said);
    // Nothing of it was done.
    let row = site.get("/v1/tables/jobs/rows/a").await?;
    assert_eq!(row.at("/value"), &json!({ "status": "text", "tries": i64::MAX }));
    assert_eq!(site.get("/v1/tables/jobs").await?.at("/rows"), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_rows_are_read_exactly_and_within_their_bounds() -> anyhow::Result<()> {
    let site = site().await?;
    let write = async |body: String, kind: &str| {
        let request = site.request(Method::PUT, "/v1/tables/jobs/rows/a")?;
        site.ask(request.header("content-type", kind).body(body)).await
    };
    let json = "application/json";
    let kept = write(r#"{"n": 18446744073709551615, "m": -9223372036854775808}"#.to_owned(), json).await?;
    assert_eq!(kept.at("/value"), &json!({ "n": u64::MAX, "m": i64::MIN }));
    let big = |bytes: usize| format!(r#"{{"text": "{}"}}"#, "x".repeat(bytes));
    let mut said = String::new();
    let bodies = [
        (r#"{"n": 18446744073709551616}"#.to_owned(), json),
        ("{\"n\": ".to_owned(), json),
        ("[1, 2]".to_owned(), json),
        ("{}".to_owned(), "text/plain"),
        (big(252 << 10), json),
        (big(1 << 20), json),
    ];
    for (body, kind) in bodies {
        let answer = write(body.clone(), kind).await?;
        let _ = writeln!(said, "{body:.40}\n    {}", answer.line());
    }
    expect![[r#"
        {"n": 18446744073709551616}
            400 invalid: body: expected integers of at most 64 bits, got 18446744073709551616
        {"n": 
            400 invalid: body: expected JSON, got EOF while parsing a value at line 1 column 6
        [1, 2]
            400 invalid: jobs/a: expected an object, got [1,2]
        {}
            415 media_type: Content-Type: expected application/json, got text/plain
        {"text": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            413 limit: jobs/a: expected at most 258048 bytes (document_bytes_max), got 258059 bytes
        {"text": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            413 limit: body: expected at most 1048576 bytes (body_bytes_max), got more
    "#]]
    .assert_eq(&said);
    assert_eq!(write(big(251 << 10), json).await?.status, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_asked_again_under_its_id_is_done_once() -> anyhow::Result<()> {
    let site = site().await?;
    pending(&site, 5).await?;
    let again = async |path: &str, id: &str, body: Value| {
        ask(&site, Method::POST, &format!("/v1/{path}"), &[&format!("Idempotency-Key: {id}")], body).await
    };
    let count = json!({ "key": "n", "insert": { "n": 1 }, "set": { "n": { "increment": 1 } } });
    let first = again("tables/jobs/upsert", "u", count.clone()).await?;
    let second = again("tables/jobs/upsert", "u", count).await?;
    assert_eq!((first.status, second.status, &second.body), (200, 200, &first.body));
    assert_eq!((first.header("idempotent-replayed"), second.header("idempotent-replayed")), (None, Some("true")));
    let other = again("tables/jobs/upsert", "u", json!({ "key": "m", "insert": {} })).await?;
    assert_eq!((other.status, other.at("/code")), (422, &json!("id_reused")));
    // A claim is the rows that it still has, as they are now.
    let claimed = again("tables/jobs/claim?as=w", "c", json!({ "limit": 3 })).await?;
    assert_eq!(keys(claimed.at("/claimed")), ["0", "1", "2"]);
    site.post("/v1/tables/jobs/update", json!({ "key": "0", "set": { "status": "done" } })).await?;
    site.post("/v1/tables/jobs/update", json!({ "key": "1", "set": { "half": true } })).await?;
    let recalled = again("tables/jobs/claim?as=w", "c", json!({ "limit": 3 })).await?;
    assert_eq!((keys(recalled.at("/claimed")), recalled.at("/lost")), (vec!["1", "2"], &json!(["0"])));
    assert_eq!((recalled.at("/count"), recalled.at("/claimed/0/value/half")), (&json!(2), &json!(true)));
    assert_eq!(recalled.header("idempotent-replayed"), Some("true"));
    let key = ["Idempotency-Key: p"];
    let path = "/v1/tables/jobs/rows/p";
    let put = ask(&site, Method::PUT, path, &key, json!({ "a": 1 })).await?;
    let replayed = ask(&site, Method::PUT, path, &key, json!({ "a": 1 })).await?;
    assert_eq!((put.status, replayed.status, replayed.header("etag")), (201, 201, put.header("etag")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn several_operations_are_one_transaction() -> anyhow::Result<()> {
    let site = site().await?;
    pending(&site, 2).await?;
    let moved = json!({
        "require": [{ "row": "jobs", "key": "0", "where": { "status": "pending" } }, { "absent": "jobs", "key": "x" }],
        "ops": [
            { "claim": "jobs", "limit": 1, "delete": true },
            { "put": "jobs", "key": "x", "value": { "from": "0" } },
            { "update": "jobs", "key": "nobody", "set": { "a": 1 } },
            { "get": "jobs", "key": "x" },
        ],
    });
    let done = site.post("/v1/transact", moved.clone()).await?;
    assert_eq!(done.status, 200, "{}", done.body);
    assert_eq!(keys(done.at("/answers/0/claimed")), ["0"]);
    assert_eq!((done.at("/answers/1/inserted"), done.at("/answers/2/updated")), (&json!(true), &json!(false)));
    assert_eq!((done.at("/answers/3/found"), done.at("/answers/3/value/from")), (&json!(true), &json!("0")));
    let refused = site.post("/v1/transact", moved).await?;
    assert_eq!((refused.status, refused.at("/code")), (422, &json!("require")));
    assert_eq!((refused.at("/pointer"), refused.at("/subject")), (&json!("/require/0"), &json!("jobs/0")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_rows_is_told_and_counted() -> anyhow::Result<()> {
    let site = site().await?;
    pending(&site, 3).await?;
    let mut stream = site.request(Method::GET, "/v1/watch?table=jobs")?.send().await?;
    site.post("/v1/leases/another", json!({})).await?;
    site.post("/v1/tables/jobs/claim?as=w", json!({ "limit": 2 })).await?;
    site.post("/v1/tables/jobs/update", json!({ "key": "0", "set": { "status": "done" } })).await?;
    let mut text = String::new();
    while text.matches("event: rows").count() < 2 || !text.ends_with("\n\n") {
        text.push_str(std::str::from_utf8(&stream.chunk().await?.context("the stream ended")?)?);
    }
    let told: Result<Vec<Value>, _> =
        text.lines().filter_map(|line| line.strip_prefix("data: ")).skip(1).map(serde_json::from_str).collect();
    let told: Vec<_> = told?
        .iter()
        .map(|told| format!("{} {} {}", told["table"], told["entry"]["what"], told["entry"]["keys"]))
        .collect();
    assert_eq!(told, [r#""jobs" "claimed" ["0","1"]"#, r#""jobs" "settled" ["0"]"#]);
    let stats = site.get("/v1/stats").await?;
    let counted = ["claimed", "settled", "released", "reaped", "dead", "expired"];
    let counted: Vec<_> = counted.map(|what| format!("{what} {}", stats.at(&format!("/counters/rows_{what}")))).into();
    assert_eq!(counted, ["claimed 2", "settled 1", "released 0", "reaped 0", "dead 0", "expired 0"]);
    let mut said = String::new();
    for path in ["/v1/watch?table=jbs", "/v1/watch?table=jobs&machine=door", "/v1/tables?limit=0", "/v1/tables/J"] {
        let _ = writeln!(said, "{path}\n    {}", site.get(path).await?.line());
    }
    expect![[r#"
        /v1/watch?table=jbs
            404 not_found: there is no table jbs
        /v1/watch?table=jobs&machine=door
            400 invalid: query.table: expected a machine or a table, got both
        /v1/tables?limit=0
            400 invalid: query.limit: expected 1 to 500, got "0"
        /v1/tables/J
            400 invalid: table name: expected 1 to 63 bytes of [a-z][a-z0-9_-]*, got "J"
    "#]]
    .assert_eq(&said);
    Ok(())
}
