//! Why something does not go on, asked of the daemon while steps run, fail and are given up.

use crate::host::{Api, Setup, run, start, start_unkilled};
use crate::machines::STUBBORN;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

async fn why(api: &Api, entity: &str) -> Result<Value> {
    api.get(&format!("/v1/entities/{entity}/why")).await?.done()
}

/// Asks until it is because of this. The bound of the test is the bound of the wait.
async fn until(api: &Api, entity: &str, because: &str) -> Result<Value> {
    loop {
        let why = why(api, entity).await?;
        if why["because"] == because {
            return Ok(why);
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn attempt(name: &str) -> Value {
    json!({ "name": "attempt", "payload": { "name": name } })
}

fn texts(why: &Value, list: &str, field: Option<&str>) -> Vec<String> {
    let all = why[list].as_array().into_iter().flatten();
    all.filter_map(|one| field.map_or(one, |field| &one[field]).as_str().map(str::to_owned)).collect()
}

#[test]
fn a_step_that_runs_says_since_when_and_until_when_at_most() -> Result<()> {
    run(async {
        let host = start_unkilled(Setup::default()).await?;
        let api = host.api();
        api.deploy(STUBBORN, Some("hostile")).await?;
        api.create("stubborn/a").await?;
        ensure!(why(api, "stubborn/a").await?["because"] == "free");
        api.send("stubborn/a", "e1", attempt("fence-loop")).await?.done()?;
        let said = until(api, "stubborn/a", "step").await?;
        ensure!(said["sentence"] == "attempt 1 of attempt runs in attempting", "{said}");
        ensure!(said["holder"] == api.entity("stubborn/a").await?["locked_by"] && said["since"].is_string(), "{said}");
        ensure!(texts(&said, "next", Some("what")) == ["the deadline of attempting, parked"], "{said}");
        ensure!(said["owner"] == "interlock tests", "{said}");
        Ok(())
    })
}

#[test]
fn a_step_that_fails_says_when_it_is_tried_again() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(STUBBORN, Some("hostile")).await?;
        api.create("stubborn/a").await?;
        api.send("stubborn/a", "e1", attempt("panic")).await?.done()?;
        let said = until(api, "stubborn/a", "back-off").await?;
        let next = texts(&said, "next", Some("what"));
        ensure!(next == ["attempt 2 begins", "the deadline of attempting, parked"], "{said}");
        ensure!(said["failure"]["code"].is_string() && said["next"][0]["at"].is_string(), "{said}");
        Ok(())
    })
}

#[test]
fn a_parked_entity_says_what_to_type_and_it_works() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        let once = STUBBORN.replace("attempts = 3, first = \"1h\", max = \"1h\"", "attempts = 1");
        api.deploy(&once, Some("hostile")).await?;
        api.create("stubborn/a").await?;
        api.settle("stubborn/a", "e1", attempt("panic")).await?.done()?;
        let said = why(api, "stubborn/a").await?;
        ensure!(said["because"] == "operator", "{said}");
        let commands = texts(&said, "operator", None);
        ensure!(
            commands.first().is_some_and(|first| first == "interlock entity unpark stubborn/a")
                && commands.iter().any(|one| one.starts_with("interlock entity unlock stubborn/a --to calm"))
                && commands.last().is_some_and(|last| last == "interlock entity kill stubborn/a --reason WHY"),
            "{commands:?}"
        );
        // With force exactly where it takes force.
        let forced = commands.iter().any(|one| one.contains("--force"));
        let plain = api.post("/v1/entities/stubborn/a/unlock", json!({ "to": "calm" })).await?;
        ensure!(forced == (plain.status == 409), "{commands:?}, and without force {plain:?}");
        let unlock = json!({ "to": "calm", "force": true, "reason": "as the test says" });
        api.post("/v1/entities/stubborn/a/unlock", unlock).await?.done()?;
        ensure!(why(api, "stubborn/a").await?["because"] == "free");
        ensure!(api.entity("stubborn/a").await?["last_execution"]["succeeded"] == false);
        Ok(())
    })
}

#[test]
fn an_entity_in_line_for_a_lease_says_who_has_it_and_gets_it_in_turn() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        let gated = STUBBORN.replace(
            "[states.attempting]",
            "[leases]\ngate = { ttl = \"1h\" }\n\n[states.attempting]\nneeds    = [\"gate\"]",
        );
        api.deploy(&gated, Some("hostile")).await?;
        for entity in ["stubborn/a", "stubborn/b"] {
            api.create(entity).await?;
        }
        let held = api.post("/v1/leases/gate", json!({ "label": "run 4711", "ttl": "1h" })).await?.done()?;
        api.send("stubborn/a", "e1", attempt("fence-loop")).await?.done()?;
        api.send("stubborn/b", "e1", attempt("fence-loop")).await?.done()?;
        let said = until(api, "stubborn/b", "lease").await?;
        ensure!(
            said["sentence"] == "attempt does not begin before it has lease gate, held by run 4711, place 2 in line",
            "{said}"
        );
        ensure!(said["awaits"]["held_by"] == "run 4711" && said["awaits"]["place"] == 2, "{said}");
        let next = texts(&said, "next", Some("what"));
        ensure!(next.contains(&"lease gate is free, unless it is renewed".to_owned()), "{said}");
        let waiting = api.entity("stubborn/a").await?;
        ensure!(waiting["awaits"] == "gate" && waiting["lock"]["waiting_for"] == "lease", "{waiting}");
        let unlock = api.post("/v1/entities/stubborn/a/unlock", json!({ "to": "calm" })).await?.refused(409, "busy")?;
        let got = unlock["got"].as_str().unwrap_or_default();
        ensure!(got.ends_with("a lease it waits for, its deadline can still move it"), "{unlock}");

        let release = json!({ "grant": held["grant"], "token": held["token"] });
        api.post("/v1/leases/gate/release", release).await?.done()?;
        let said = until(api, "stubborn/a", "step").await?;
        ensure!(said["leases"][0]["lease"] == "gate" && said["leases"][0]["until"].is_string(), "{said}");
        ensure!(api.entity("stubborn/a").await?["leases"] == json!(["gate"]));
        let lease = api.get("/v1/leases/gate/why").await?.done()?;
        ensure!(lease["because"] == "held" && lease["holder"] == said["holder"], "{lease}");
        ensure!(
            texts(&lease, "operator", None) == [format!("interlock why {}", said["holder"].as_str().unwrap_or("-"))]
        );
        ensure!(why(api, "stubborn/b").await?["awaits"]["place"] == 1);
        // With its execution ends what it has, and the next in line begins.
        api.killed("stubborn/a", "as the test says").await?.done()?;
        until(api, "stubborn/b", "step").await?;
        Ok(())
    })
}
