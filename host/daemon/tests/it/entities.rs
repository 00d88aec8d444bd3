//! Make, ask, list, apply, and the operator's verbs.

use crate::site::Site;
use expect_test::expect;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn create_is_idempotent_by_its_body() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let body = |colour: &str| json!({ "machine": "door", "key": "b/1", "desired": { "colour": colour } });
    let made = site.post("/v1/entities", body("red")).await?;
    assert_eq!(
        (made.status, made.at("/entity/id"), made.at("/entity/generation")),
        (201, &json!("door/b/1"), &json!(1))
    );
    let again = site.post("/v1/entities", body("red")).await?;
    assert_eq!((again.status, again.at("/new")), (200, &json!(false)));
    let other = site.post("/v1/entities", body("blue")).await?;
    assert_eq!(
        other.line(),
        "412 conflict: door/b/1: expected no entity with this key, got one that was created with another request"
    );
    let with = |policy: &str| {
        let mut body = body("blue");
        body["on_existing"] = json!(policy);
        body
    };
    assert_eq!(site.post("/v1/entities", with("fail")).await?.status, 412);
    assert_eq!(site.post("/v1/entities", with("use")).await?.status, 200);
    let incarnation = |answer: &Value| answer.pointer("/entity/incarnation").and_then(Value::as_u64);
    let recreated = site.post("/v1/entities", with("recreate")).await?;
    assert_eq!(recreated.status, 201);
    assert!(incarnation(&recreated.body) > incarnation(&made.body));
    // A key with a slash is one segment, percent-encoded.
    assert_eq!(site.get("/v1/entities/door/b%2F1").await?.at("/key"), "b/1");
    assert_eq!(site.get("/v1/entities/door/b/1").await?.status, 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_is_answered_although_somebody_takes_the_entity_away_at_once() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let creating = async {
        for _ in 0..150 {
            let made = site.post("/v1/entities", json!({ "machine": "door", "key": "brief" })).await?;
            anyhow::ensure!(matches!(made.status, 200 | 201), "{}", made.line());
            anyhow::ensure!(made.at("/entity").is_null() || made.at("/entity/id") == "door/brief", "{}", made.body);
        }
        anyhow::Ok(())
    };
    let deleting = async {
        for _ in 0..150 {
            let gone = site.ask(site.request(Method::DELETE, "/v1/entities/door/brief")?).await?;
            anyhow::ensure!(matches!(gone.status, 200 | 404), "{}", gone.line());
        }
        anyhow::Ok(())
    };
    let (created, deleted) = tokio::join!(creating, deleting);
    created.and(deleted)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_first_event_makes_no_entity() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let body = |force: u64| json!({ "machine": "door", "key": "c", "event": { "name": "push", "payload": { "force": force }, "id": "first" } });
    let refused = site.post("/v1/entities", body(0)).await?;
    assert_eq!(
        refused.line(),
        "422 guard: door/c does not take this now: expected event.force gt data.force, got 0 and 0"
    );
    assert_eq!(site.get("/v1/entities/door/c").await?.status, 404);
    let made = site.post("/v1/entities", body(3)).await?;
    assert_eq!(
        (made.status, made.at("/answer/answer"), made.at("/entity/state")),
        (201, &json!("accepted"), &json!("opening"))
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_is_shown_whole() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let rest = site.get("/v1/entities/door/a").await?;
    assert_eq!(
        (rest.at("/kind"), rest.at("/locked_by"), rest.at("/lock")),
        (&json!("rest"), &Value::Null, &Value::Null)
    );
    site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    let busy = site.get("/v1/entities/door/a").await?;
    let locked_by = busy.at("/locked_by").as_str().unwrap_or_default().to_owned();
    assert!(locked_by.starts_with("door/a@") && locked_by.ends_with(".1"), "{locked_by}");
    assert_eq!((busy.at("/kind"), busy.at("/lock/waiting_for")), (&json!("working"), &json!("timer")));
    assert_eq!(busy.at("/timers/0/due"), busy.at("/lock/until"));
    assert_eq!(busy.at("/data"), &json!({ "force": 0 }));
    assert_eq!(busy.at("/owner"), "facilities <door@example.com>");
    let missing = site.get("/v1/entities/door/z").await?;
    assert_eq!(missing.line(), "404 not_found: there is no entity door/z");
    assert_eq!(missing.at("/owner"), "facilities <door@example.com>");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn desired_is_written_over_the_generation_that_was_read() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let put = async |generation: Option<&str>, colour: &str| {
        let request =
            site.request(Method::PUT, "/v1/entities/door/a/desired")?.json(&json!({ "desired": { "colour": colour } }));
        let request = match generation {
            Some(tag) => request.header("If-Match", tag),
            None => request,
        };
        site.ask(request).await
    };
    let without = put(None, "red").await?;
    let said =
        r#"428 precondition_required: door/a: expected If-Match: "0", the generation it replaces, got no If-Match"#;
    assert_eq!(without.line(), said);
    let first = put(Some("\"0\""), "red").await?;
    assert_eq!((first.status, first.at("/generation")), (200, &json!(1)));
    let stale = put(Some("\"0\""), "blue").await?;
    assert_eq!(stale.line(), "412 conflict: door/a: expected generation 0, got generation 1");
    let repeated = put(Some("\"0\""), "red").await?;
    assert_eq!((repeated.status, repeated.at("/generation")), (200, &json!(1)));
    let wrong = put(Some("*"), "blue").await?;
    assert_eq!(wrong.line(), r#"400 invalid: If-Match: expected one generation, such as "3", got *"#);
    let invalid = put(Some("\"1\""), "7").await?;
    assert_eq!(invalid.status, 200);
    let shown = site.get("/v1/entities/door/a/desired").await?;
    assert_eq!((shown.header("etag"), shown.at("/desired/colour")), (Some("\"2\""), &json!("7")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_in_pages() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    for key in ["b", "c", "d"] {
        let labels = if key == "c" { json!({ "floor": "2" }) } else { json!({}) };
        site.post("/v1/entities", json!({ "machine": "door", "key": key, "labels": labels })).await?;
    }
    site.send("door/d", "e1", "push", json!({ "force": 5 })).await?;
    let ids = async |query: &str| -> anyhow::Result<(String, Value)> {
        let page = site.get(&format!("/v1/entities?{query}")).await?;
        let entities = page.at("/entities").as_array().cloned().unwrap_or_default();
        let ids: Vec<_> = entities.iter().filter_map(|entity| entity.get("id")?.as_str().map(str::to_owned)).collect();
        Ok((ids.join(" "), page.at("/next").clone()))
    };
    assert_eq!(ids("machine=door").await?, ("door/a door/b door/c door/d".to_owned(), Value::Null));
    assert_eq!(ids("limit=2").await?, ("door/a door/b".to_owned(), json!("door/b")));
    assert_eq!(ids("limit=2&after=door/b").await?.0, "door/c door/d");
    assert_eq!(ids("label=floor%3D2").await?.0, "door/c");
    assert_eq!(ids("machine=door&state=opening").await?.0, "door/d");
    assert_eq!(ids("parked=true").await?.0, "");
    let unknown = site.get("/v1/entities?machine=door&state=shutt").await?;
    assert_eq!(
        unknown.line(),
        "400 invalid: query.state: expected one of broken, open, opening, shut (did you mean shut?), got shutt"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_end_and_delete() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    let delete = || site.request(Method::DELETE, "/v1/entities/door/a");
    let busy = site.ask(delete()?).await?;
    assert_eq!((busy.status, busy.at("/code")), (409, &json!("busy")));
    let nameless = site.post("/v1/entities/door/a/kill", json!({ "reason": " " })).await?;
    assert_eq!(nameless.status, 400);
    let killed = site.post("/v1/entities/door/a/kill", json!({ "reason": "fire drill" })).await?;
    assert_eq!((killed.status, killed.at("/state"), killed.at("/changed")), (200, &json!("killed"), &json!(true)));
    let again = site.post("/v1/entities/door/a/kill", json!({ "reason": "fire drill" })).await?;
    assert_eq!((again.status, again.at("/changed")), (200, &json!(false)));
    let unparked = site.ask(site.request(Method::POST, "/v1/entities/door/a/unpark")?).await?;
    assert_eq!((unparked.status, unparked.at("/changed")), (200, &json!(false)));
    let late = site.send("door/a", "e2", "push", json!({ "force": 5 })).await?;
    assert_eq!((late.status, late.at("/code"), late.at("/answer/answer")), (409, &json!("late"), &json!("late")));
    assert_eq!(site.ask(delete()?).await?.status, 200);
    assert_eq!(site.ask(delete()?).await?.status, 404);
    let history = site.get("/v1/entities/door/a/history").await?;
    let lines = history.at("/entries").as_array().cloned().unwrap_or_default();
    let lines: Vec<_> = lines
        .iter()
        .map(|entry| {
            format!("{} v{} {}\n", entry["number"], entry["version"], entry["what"].as_str().unwrap_or_default())
        })
        .collect();
    expect![[r#"
        5 v3 deleted
        4 v3 late: push: door/a: expected an entity that is not final, got killed (final)
        3 v3 killed: fire drill
        2 v2 push -> opening
        1 v1 created, shut
    "#]]
    .assert_eq(&lines.concat());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn unlock_names_what_can_still_move_it_and_force_needs_a_reason() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let mut said = String::new();
    let mut ask = async |body: Value| -> anyhow::Result<()> {
        let answer = site.post("/v1/entities/door/a/unlock", body.clone()).await?;
        let got = answer.at("/got").as_str().unwrap_or_default();
        // How long it has been locked is the clock's to say.
        let what = match got.rsplit_once("; ") {
            Some((locked, movers)) => format!("{} ... {movers}", locked.split(" for ").next().unwrap_or_default()),
            None if got.is_empty() => answer.body.to_string(),
            None => got.to_owned(),
        };
        said.push_str(&format!("{body}\n    {} {what}\n", answer.status));
        Ok(())
    };
    ask(json!({ "to": "shut" })).await?;
    ask(json!({ "to": "open" })).await?;
    site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    ask(json!({ "to": "shut" })).await?;
    ask(json!({ "to": "opening" })).await?;
    ask(json!({ "to": "shut", "force": true })).await?;
    ask(json!({ "to": "shut", "force": true, "reason": "the motor was taken out" })).await?;
    ask(json!({ "to": "shut", "force": true, "reason": "the motor was taken out" })).await?;
    expect![[r#"
        {"to":"shut"}
            200 {"changed":false,"entity":"door/a","state":"shut","version":1}
        {"to":"open"}
            409 shut, unlocked
        {"to":"shut"}
            409 locked by door/a@4.1 ... a timer, an event can still move it
        {"to":"opening"}
            400 opening
        {"force":true,"to":"shut"}
            400 none
        {"force":true,"reason":"the motor was taken out","to":"shut"}
            200 {"changed":true,"entity":"door/a","state":"shut","version":3}
        {"force":true,"reason":"the motor was taken out","to":"shut"}
            200 {"changed":false,"entity":"door/a","state":"shut","version":3}
    "#]]
    .assert_eq(&said);
    let newest = site.get("/v1/entities/door/a/history?limit=1").await?;
    assert_eq!(newest.at("/entries/0/what"), "unlocked by force to shut: the motor was taken out");
    assert_eq!(newest.at("/entries/0/kind"), "unlocked");
    Ok(())
}
