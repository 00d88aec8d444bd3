//! Effects from a step's commit to a real receiver and back: what is sent, how often, in which order, and what an
//! operator can do about one that is given up.

use crate::host::{Api, Host, Setup, run, start_unkilled};
use crate::ledger::{adds_up, of_kind};
use crate::sink::{Answer, Seen, Sink, status, with_header};
use anyhow::{Context as _, Result, ensure};
use interlock_support::guest_folder;
use serde_json::{Value, json};

/// The guest's manifest with its target at a receiver, under waits that a test can sit through, and more targets.
pub(crate) fn manifest(sink: &Sink, more: &str) -> Result<String> {
    let mut text = std::fs::read_to_string(guest_folder("errand").join("machine.toml"))?;
    let here = format!("http://127.0.0.1:{}/{{path}}", sink.port());
    for (long, short) in [
        ("https://sink.example.com/{path}", &*here),
        ("first = \"1s\"", "first = \"10ms\""),
        ("max = \"1m\"", "max = \"20ms\""),
    ] {
        ensure!(text.contains(long), "{long} is not in the manifest any more");
        text = text.replace(long, short);
    }
    Ok(text + more)
}

/// A daemon whose operator allows a receiver, with the machine deployed.
pub(crate) async fn errands(sink: &Sink) -> Result<Host> {
    let host = start_unkilled(Setup::default()).await?;
    host.configure(&sink.allowed("")).await?;
    let deployed = host.api().deploy(&manifest(sink, "")?, Some("errand")).await?;
    let warned = deployed["warnings"].to_string();
    ensure!(!warned.contains("target-not-allowed"), "{warned}");
    Ok(host)
}

/// A request to a path of the receiver.
pub(crate) fn to(path: &str) -> Value {
    json!({ "target": "sink", "params": { "path": path }, "body": { "path": path } })
}

/// Has an entity ask for something, and go on in a state.
pub(crate) async fn ask(api: &Api, entity: &str, id: &str, asks: Value, then: &str) -> Result<Value> {
    let event = json!({ "name": "do", "payload": { "asks": asks, "then": then } });
    api.send(entity, id, event).await?.done()
}

/// An entity's effects that are not settled.
pub(crate) async fn effects(api: &Api, entity: &str) -> Result<Vec<Value>> {
    let mut list = api.get(&format!("/v1/entities/{entity}/effects")).await?.done()?;
    let Value::Array(effects) = list["effects"].take() else { anyhow::bail!("no effects: {list}") };
    Ok(effects)
}

/// Waits until an entity's first effect is as wanted.
pub(crate) async fn until_first(api: &Api, entity: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    loop {
        if let Some(first) = effects(api, entity).await?.into_iter().next().filter(|first| wanted(first)) {
            return Ok(first);
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// What an operator asks of an effect.
pub(crate) async fn operate(api: &Api, entity: &str, number: u64, verb: &str, body: Value) -> Result<Value> {
    api.post(&format!("/v1/entities/{entity}/effects/{number}/{verb}"), body).await?.done()
}

/// An entity once nothing of it is left to do.
pub(crate) async fn settled(api: &Api, entity: &str) -> Result<Value> {
    let over = |found: &Value| found["state"] == "idle" && found["outbox"] == json!({ "unsettled": 0, "dead": 0 });
    let found = api.until(entity, over).await?;
    ensure!(found["outstanding"] == json!([]) && found["locked_by"].is_null(), "{found}");
    adds_up(&found, &api.history(entity).await?)?;
    Ok(found)
}

fn paths(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|seen| seen.path.as_str()).collect()
}

#[test]
fn an_effect_is_delivered_once_and_says_all_of_itself() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = errands(&sink).await?;
        let api = host.api();
        api.create("errand/one").await?;
        let mut one = to("a");
        one["headers"] = json!({ "X-Team": "platform" });
        sink.answers("/a", [Answer::Says(201, Vec::new(), json!({ "id": 9_007_199_254_740_993_u64 }))]);
        let asked = ask(api, "errand/one", "e1", json!([one]), "waiting").await?;
        let done = settled(api, "errand/one").await?;
        ensure!(done["data"]["done"] == 1 && done["data"]["status"] == 201, "{done}");
        ensure!(done["data"]["body"]["id"] == 9_007_199_254_740_993_u64, "every digit: {done}");
        let seen = sink.seen();
        let [seen] = &seen[..] else { anyhow::bail!("once, not {seen:?}") };
        ensure!(seen.body == json!({ "path": "a" }), "{seen:?}");
        let history = api.history("errand/one").await?;
        let sent = *of_kind(&history, "transition").first().context("the commit")?;
        ensure!(seen.key().len() == 32 && seen.key().bytes().all(|byte| byte.is_ascii_hexdigit()), "{seen:?}");
        for (name, value) in [
            ("interlock-entity", "errand/one".to_owned()),
            ("interlock-fence-resource", "errand/one".to_owned()),
            ("interlock-fencing-token", sent["token"].to_string()),
            ("interlock-version", sent["version"].to_string()),
            ("interlock-attempt", "1".to_owned()),
            ("content-type", "application/json".to_owned()),
            ("x-team", "platform".to_owned()),
            ("host", format!("127.0.0.1:{}", sink.port())),
        ] {
            ensure!(seen.header(name) == value, "{name}: expected {value}, got {:?}", seen.header(name));
        }
        let trace: Vec<&str> = seen.header("traceparent").split('-').collect();
        let widths: Vec<usize> = trace.iter().map(|part| part.len()).collect();
        ensure!(widths == [2, 32, 16, 2] && trace[0] == "00" && trace[1].bytes().any(|byte| byte != b'0'), "{trace:?}");
        let result = of_kind(&history, "effect-done");
        ensure!(result.len() == 1 && result[0]["what"] == "effect 1 on sink done: status 201 -> idle", "{result:?}");
        ensure!(result[0]["execution"] == asked["execution"], "{result:?}");
        ensure!(api.get("/v1/effects").await?.done()? == json!({ "effects": [], "more": false }));
        Ok(())
    })
}

#[test]
fn every_try_carries_the_same_key_and_body() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = errands(&sink).await?;
        let api = host.api();
        api.create("errand/one").await?;
        sink.answers("/a", [status(503), with_header(429, "retry-after", "0"), status(408)]);
        ask(api, "errand/one", "e1", json!([to("a")]), "waiting").await?;
        settled(api, "errand/one").await?;
        let seen = sink.at("/a");
        let of = |name: &'static str| seen.iter().map(|seen| seen.header(name)).collect::<Vec<_>>();
        ensure!(of("interlock-attempt") == ["1", "2", "3", "4"], "{seen:?}");
        ensure!(seen.iter().all(|one| one.key() == seen[0].key() && one.body == seen[0].body), "{seen:?}");
        ensure!(of("interlock-fencing-token").iter().all(|token| *token == of("interlock-fencing-token")[0]));
        let traces = of("traceparent");
        ensure!(traces.iter().all(|trace| trace[..36] == traces[0][..36]), "one trace: {traces:?}");
        ensure!(traces[0] != traces[1], "a span for each try: {traces:?}");
        // The next effect of the same entity is another one.
        ask(api, "errand/one", "e2", json!([to("b")]), "waiting").await?;
        settled(api, "errand/one").await?;
        ensure!(sink.at("/b")[0].key() != seen[0].key());
        Ok(())
    })
}

#[test]
fn a_lane_is_in_order_and_no_lane_waits_for_another() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = errands(&sink).await?;
        let api = host.api();
        for entity in ["errand/held", "errand/free"] {
            api.create(entity).await?;
        }
        sink.answers("/a1", [status(503), Answer::Held]);
        sink.answers("/b2", [status(500), status(500)]);
        ask(api, "errand/held", "e1", json!([to("a1"), to("a2"), to("a3")]), "idle").await?;
        sink.until("/a1", 2).await;
        // The entity is at rest, and its effects are still to be done: that is on show.
        let held = api.until("errand/held", |found| found["state"] == "idle").await?;
        ensure!(held["outbox"]["unsettled"] == 3 && held["outstanding"].as_array().map(Vec::len) == Some(3), "{held}");
        ensure!(held["locked_by"].is_null(), "{held}");
        ask(api, "errand/free", "e1", json!([to("b1"), to("b2"), to("b3")]), "idle").await?;
        settled(api, "errand/free").await?;
        let stands: Vec<_> = effects(api, "errand/held").await?.iter().map(|one| one["stands"].clone()).collect();
        ensure!(stands == ["in-flight", "waits", "waits"], "{stands:?}");
        ensure!(api.get("/v1/effects?stands=in-flight&target=sink").await?.done()?["effects"][0]["number"] == 1);
        ensure!(api.get("/v1/effects?stands=waits").await?.done()?["effects"].as_array().map(Vec::len) == Some(2));
        api.delete("/v1/entities/errand/held").await?.refused(409, "busy").ok();
        sink.let_go();
        settled(api, "errand/held").await?;
        let seen = sink.seen();
        let (held, free): (Vec<Seen>, Vec<Seen>) =
            seen.into_iter().partition(|seen| seen.header("interlock-entity") == "errand/held");
        ensure!(paths(&held) == ["/a1", "/a1", "/a2", "/a3"], "{:?}", paths(&held));
        ensure!(paths(&free) == ["/b1", "/b2", "/b2", "/b2", "/b3"], "{:?}", paths(&free));
        let late = of_kind(&api.history("errand/free").await?, "effect-done").len();
        ensure!(late == 3, "late results are on record: {late}");
        Ok(())
    })
}

#[test]
fn a_target_that_hangs_holds_up_no_other() -> Result<()> {
    run(async {
        let (sink, other) = (Sink::start().await?, Sink::start().await?);
        let host = start_unkilled(Setup::default()).await?;
        let api = host.api();
        let both = sink.allowed("") + other.allowed("").split_once("\n\n").context("its rule")?.1;
        host.configure(&both).await?;
        let more = format!("\n[targets.other]\nurl = \"http://127.0.0.1:{}/{{path}}\"\n", other.port());
        api.deploy(&manifest(&sink, &more)?, Some("errand")).await?;
        sink.hold(true);
        // More than may be under way for one target.
        for nth in 0..12 {
            let entity = format!("errand/held-{nth}");
            api.create(&entity).await?;
            ask(api, &entity, "e1", json!([to("held")]), "idle").await?;
        }
        sink.until("/held", 8).await;
        for nth in 0..3 {
            let entity = format!("errand/free-{nth}");
            api.create(&entity).await?;
            let free = json!([{ "target": "other", "params": { "path": "free" } }]);
            ask(api, &entity, "e1", free, "waiting").await?;
            settled(api, &entity).await?;
        }
        ensure!(other.at("/free").len() == 3 && sink.at("/held").len() == 8, "the rest waits its turn");
        sink.hold(false);
        sink.let_go();
        for nth in 0..12 {
            settled(api, &format!("errand/held-{nth}")).await?;
        }
        ensure!(sink.at("/held").len() == 12);
        Ok(())
    })
}

#[test]
fn a_target_says_when_to_try_again_and_an_operator_may_say_otherwise() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = errands(&sink).await?;
        let api = host.api();
        api.create("errand/one").await?;
        sink.answers("/a", [with_header(503, "retry-after", "3000")]);
        ask(api, "errand/one", "e1", json!([to("a")]), "waiting").await?;
        let due = until_first(api, "errand/one", |one| one["tries"] == 1 && one["stands"] == "due").await?;
        ensure!(due["last"] == "status 503" && due["maybe_sent"] == true && due["due"].is_string(), "{due}");
        let shown = api.entity("errand/one").await?;
        ensure!(shown["lock"]["waiting_for"] == "effect", "{shown}");
        // It waits for the better part of an hour: in the order of their RFC 3339 texts.
        ensure!(due["due"].as_str() > due["at"].as_str(), "{due}");
        let again = operate(api, "errand/one", 1, "retry", Value::Null).await?;
        ensure!(again["changed"] == true, "{again}");
        let done = settled(api, "errand/one").await?;
        ensure!(done["data"]["done"] == 1, "{done}");
        ensure!(sink.at("/a").len() == 2 && sink.at("/a")[1].key() == sink.at("/a")[0].key());
        let missing =
            api.post("/v1/entities/errand/one/effects/1/retry", Value::Null).await?.refused(404, "not_found")?;
        ensure!(missing["expected"] == "an unsettled effect", "{missing}");
        Ok(())
    })
}

#[test]
fn a_receiver_that_fences_is_believed() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = errands(&sink).await?;
        let api = host.api();
        api.create("errand/one").await?;
        sink.answers("/a", [status(412)]);
        ask(api, "errand/one", "e1", json!([to("a")]), "minding").await?;
        let failed = settled(api, "errand/one").await?;
        ensure!(failed["data"]["code"] == "fenced" && failed["data"]["reason"] == "status 412", "{failed}");
        ensure!(sink.at("/a").len() == 1, "not tried again");
        ensure!(of_kind(&api.history("errand/one").await?, "effect-fenced").len() == 1);
        Ok(())
    })
}

#[test]
fn what_is_given_up_parks_its_entity_until_an_operator_has_it_tried_again() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = errands(&sink).await?;
        let api = host.api();
        api.create("errand/one").await?;
        sink.answers("/a", [status(503), status(503), status(503), status(503)]);
        ask(api, "errand/one", "e1", json!([to("a"), to("b")]), "waiting").await?;
        let parked = api.until("errand/one", |found| found["parked"].is_object()).await?;
        ensure!(parked["parked"]["code"] == "effect-failed" && parked["outbox"]["dead"] == 1, "{parked}");
        let dead = api.get("/v1/effects?stands=dead").await?.done()?;
        let dead = &dead["effects"][0];
        ensure!(dead["code"] == "exhausted" && dead["reason"] == "4 tries: status 503", "{dead}");
        ensure!(sink.at("/b").is_empty(), "those behind it wait");
        operate(api, "errand/one", 1, "retry", Value::Null).await?;
        let done = settled(api, "errand/one").await?;
        ensure!(done["data"]["done"] == 1 && done["parked"].is_null(), "{done}");
        ensure!(sink.at("/a").len() == 5 && sink.at("/b").len() == 1, "{:?}", paths(&sink.seen()));
        let kinds: Vec<_> = api.history("errand/one").await?.iter().map(|entry| entry["kind"].clone()).collect();
        ensure!(kinds.contains(&json!("effect-failed")) && kinds.contains(&json!("effect-retried")), "{kinds:?}");
        Ok(())
    })
}

#[test]
fn an_operator_gives_an_effect_up_with_a_reason_and_its_lane_goes_on() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = errands(&sink).await?;
        let api = host.api();
        api.create("errand/one").await?;
        sink.answers("/a", [status(400)]);
        sink.answers("/b", [Answer::Held]);
        ask(api, "errand/one", "e1", json!([to("a"), to("b")]), "waiting").await?;
        let parked = api.until("errand/one", |found| found["parked"].is_object()).await?;
        ensure!(parked["outbox"] == json!({ "unsettled": 1, "dead": 1 }), "{parked}");
        let path = "/v1/entities/errand/one/effects";
        api.post(&format!("{path}/1/drop"), json!({ "reason": " " })).await?.refused(400, "invalid")?;
        operate(api, "errand/one", 1, "drop", json!({ "reason": "the order was cancelled" })).await?;
        sink.until("/b", 1).await;
        api.post(&format!("{path}/2/drop"), json!({ "reason": "no" })).await?.refused(409, "busy")?;
        sink.let_go();
        let done = settled(api, "errand/one").await?;
        ensure!(done["data"]["done"] == 1, "{done}");
        let history = api.history("errand/one").await?;
        let dropped = of_kind(&history, "effect-dropped");
        let what = dropped.first().map(|entry| entry["what"].to_string()).unwrap_or_default();
        ensure!(what.contains("the order was cancelled (a try of it may have reached the target)"), "{what}");
        Ok(())
    })
}
