//! Steps that do not behave, on a real daemon: what their README says becomes of them is what becomes of them.

use crate::host::{Api, Setup, run, start, start_unkilled, start_with};
use crate::ledger::{adds_up, audit, of_kind};
use crate::machines::STUBBORN;
use anyhow::{Context as _, Result, bail, ensure};
use interlock_support::guest_folder;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// The table of `guests/hostile/README.md` whose attempts one guest makes: attempt, and the states it may
/// end in. Its `fence-` attempts end only when somebody takes the entity away.
fn attempts(guest: &str) -> Result<Vec<(String, Vec<String>)>> {
    let text = std::fs::read_to_string(guest_folder("hostile").join("README.md"))?;
    let (hostile, wasi) = text.split_once("`guests/hostile-wasi`").context("the two tables")?;
    let (wasi, _by_hand) = wasi.split_once("`wat/`").context("the third table")?;
    let table = if guest == "hostile" { hostile } else { wasi };
    let mut attempts = Vec::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [names, _, end] = cells.as_slice() else { bail!("another row than expected: {row}") };
        let states: Vec<_> =
            ["calm", "stopped"].into_iter().filter(|state| end.contains(state)).map(str::to_owned).collect();
        let mut first = String::new();
        for name in names.split(',').map(|name| name.trim().trim_matches('`')) {
            // `after-the-end-loop`, `-panic`, `-failure`: the same beginning.
            let whole = match name.strip_prefix('-') {
                Some(end) => format!("{}-{end}", first.rsplit_once('-').map_or("", |(begin, _)| begin)),
                None => name.to_owned(),
            };
            first = whole.clone();
            attempts.push((whole, states.clone()));
        }
    }
    Ok(attempts)
}

async fn nothing_gets_through(guest: &'static str) -> Result<()> {
    let mut host = start_with(Setup { slots: 6, ..Setup::default() }).await?;
    let hasty = std::fs::read_to_string(guest_folder(guest).join("machine.toml"))?;
    // What is not about time must not hang on how busy this machine is: the same with time to spare.
    let name = |of: &str| format!("machine   = \"{of}\"");
    let patient = hasty.replace("= \"1s\"", "= \"25s\"").replace("= \"5s\"", "= \"50s\"");
    let patient = patient.replace(&name(guest), &name("patient"));
    ensure!(patient.contains(&name("patient")) && patient.contains("25s") && patient.contains("50s"), "{patient}");
    for manifest in [&hasty, &patient] {
        host.api().deploy(manifest, Some(guest)).await?;
    }
    // What the attempts on rows speak of: all of it granted, nothing granted, granted but not named by the machine.
    let all = ["hostile", "patient"].map(|machine| {
        format!("machines.{machine} = [\"get\", \"query\", \"put\", \"update\", \"claim\", \"upsert\", \"delete\"]\n")
    });
    for (table, access) in [("ours", all.concat()), ("theirs", String::new()), ("unnamed", all.concat())] {
        let manifest = format!("table = \"{table}\"\nowner = \"interlock tests\"\n[access]\n{access}");
        host.api().post("/v1/tables", json!({ "manifest": manifest })).await?.done()?;
    }
    let attempts = attempts(guest)?;
    ensure!(attempts.len() > 10, "{attempts:?}");
    let (leases, attempts): (Vec<_>, Vec<_>) = attempts
        .into_iter()
        .filter(|(name, _)| !name.starts_with("fence-"))
        .partition(|(name, _)| name.starts_with("lease-"));
    let mut running = Vec::new();
    for (name, states) in attempts {
        let api = host.api().clone();
        running.push(tokio::spawn(async move {
            let about_time = name.contains("deadline");
            let entity = format!("{}/{name}", if about_time { guest } else { "patient" });
            misbehave(&api, &entity, &name, &states).await.context(entity)
        }));
    }
    for attempt in running {
        attempt.await??;
    }
    // One after the other: they want the same leases. Those whose end hangs on somebody else are the runtime's tests.
    for (name, states) in leases.into_iter().filter(|(_, states)| !states.is_empty()) {
        let rival = name == "lease-busy";
        let asked = json!({ "label": "rival", "ttl": "10s" });
        let held = if rival { Some(host.api().post("/v1/leases/room-1", asked).await?.done()?) } else { None };
        let entity = format!("patient/{name}");
        misbehave(host.api(), &entity, &name, &states).await.context(entity)?;
        if let Some(held) = held {
            let release = json!({ "grant": held["grant"], "token": held["token"] });
            host.api().post("/v1/leases/room-1/release", release).await?.done()?;
        }
    }
    // One that loops after its accepted transition is left a second to return.
    timeout(Duration::from_secs(10), host.api().idle()).await.context("a slot was not given back")??;
    host.api().get("/readyz").await?.done()?;
    host.stop().await?;
    audit(&host.data()).await.map(drop)
}

async fn misbehave(api: &Api, entity: &str, name: &str, states: &[String]) -> Result<()> {
    api.create(entity).await?;
    let event = json!({ "name": "attempt", "payload": { "name": name } });
    let end = api.settle(entity, "e1", event).await?.done()?;
    let last = api.entity(entity).await?;
    let state = end["state"].as_str().unwrap_or_default();
    ensure!(states.iter().any(|one| one == state), "ended in {state}, not in {states:?}: {end} {last}");
    ensure!(last["locked_by"].is_null() && last["outputs"].is_null(), "{last}");
    adds_up(&last, &api.history(entity).await?)
}

#[test]
fn no_hostile_step_gets_through_with_anything() -> Result<()> {
    run(nothing_gets_through("hostile"))
}

#[test]
fn no_step_reaches_the_machine_around_it() -> Result<()> {
    run(nothing_gets_through("hostile-wasi"))
}

#[test]
fn malformed_output_is_refused_by_name_and_the_step_may_go_on() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(STUBBORN, Some("hostile")).await?;
        for (name, code) in [("not-json", "invalid"), ("document-size", "limit"), ("not-allowed", "not_allowed")] {
            let entity = format!("stubborn/{name}");
            api.create(&entity).await?;
            let event = json!({ "name": "attempt", "payload": { "name": name } });
            let end = api.settle(&entity, "e1", event).await?.done()?;
            ensure!(end["outcome"] == "succeeded" && end["state"] == "calm", "{end}");
            let heard = api.entity(&entity).await?["data"]["said"].clone();
            let heard = heard.as_array().context("what it heard")?;
            ensure!(!heard.is_empty(), "{name} heard nothing");
            for line in heard {
                ensure!(
                    line.as_str().is_some_and(|line| line.starts_with(&format!("{code}: "))),
                    "{name} heard {line}"
                );
            }
            // Nothing it proposed before is anywhere.
            ensure!(of_kind(&api.history(&entity).await?, "transition").len() == 1);
        }
        Ok(())
    })
}

/// Outputs are a promise by a schema of their own: what breaks it is refused where it would be committed.
#[test]
fn outputs_that_break_their_schema_are_refused_by_path_and_rule_and_there_are_none() -> Result<()> {
    run(async {
        let mut host = start_unkilled(Setup::default()).await?;
        let api = host.api();
        let honest = std::fs::read_to_string(guest_folder("survey").join("machine.toml"))?;
        let narrow = honest.replace("primes = { type = \"integer\" }", "primes = { type = \"integer\", maximum = 10 }");
        ensure!(narrow != honest, "{honest}");
        api.deploy(&narrow, Some("survey")).await?;
        api.create("survey/a").await?;
        let go = json!({ "name": "go", "payload": { "parts": 1 } });
        let end = api.settle("survey/a", "e1", go).await?.done()?;
        ensure!(end["outcome"] == "failed" && end["state"] == "idle" && end["outputs"].is_null(), "{end}");
        let last = api.entity("survey/a").await?;
        ensure!(last["outputs"].is_null() && last["locked_by"].is_null(), "{last}");
        // What the step found out and saved stays: data has a schema of its own.
        ensure!(last["data"]["primes"] == 9592, "{last}");
        let history = api.history("survey/a").await?;
        ensure!(of_kind(&history, "transition").is_empty(), "{history:?}");
        let failed = of_kind(&history, "failure-path");
        let failure = &failed.first().context("its failure path")?["failure"];
        ensure!(failure["code"] == "invalid", "{failure}");
        for part in ["outputs/primes", "expected at most 10", "got 9592"] {
            ensure!(failure["reason"].as_str().is_some_and(|reason| reason.contains(part)), "no {part}: {failure}");
        }
        ensure!(api.get("/v1/stats").await?.done()?["refused"]["invalid"] == 1);
        adds_up(&last, &history)?;
        host.stop().await?;
        audit(&host.data()).await.map(drop)
    })
}

/// temporal 1685: a step fails again and again, or is given up.
#[test]
fn a_failing_step_says_why_within_one_attempt() -> Result<()> {
    run(async {
        let host = start_unkilled(Setup::default()).await?;
        let api = host.api();
        api.deploy(STUBBORN, Some("hostile")).await?;
        api.create("stubborn/a").await?;
        let event = json!({ "name": "attempt", "payload": { "name": "panic" } });
        api.send("stubborn/a", "e1", event.clone()).await?.done()?;
        // After one attempt, with the next one an hour away.
        let failed = api.until("stubborn/a", |entity| entity["lock"]["failed"] == 1).await?;
        ensure!(failed["lock"]["waiting_for"] == "back-off", "{}", failed["lock"]);
        let failure = &failed["lock"]["failure"];
        ensure!(failure["code"].is_string() && failure["reason"].is_string(), "{failed}");
        let history = api.history("stubborn/a").await?;
        let ended = of_kind(&history, "ended");
        ensure!(ended.len() == 1 && ended[0]["failure"]["next_attempt_ms"] == 3_600_000, "{ended:?}");
        let busy = api.send("stubborn/a", "e2", event).await?.refused(409, "busy")?;
        ensure!(busy["got"].as_str().is_some_and(|got| got.contains("back-off")), "{busy}");
        ensure!(busy["retry_after_ms"].as_u64() > Some(3_500_000), "{busy}");
        // Whoever looks at numbers, or at the log, hears of it as well.
        ensure!(api.counter("failures").await? == 1 && api.counter("parked").await? == 0);
        let said = host.said()?;
        let line = said.lines().find(|line| line.contains("an attempt failed")).context("a line of the log")?;
        for part in ["WARN", "entity=stubborn/a", "state=attempting", "attempt=1", "next_attempt_ms=3600000"] {
            ensure!(line.contains(part), "{part} is not in {line}");
        }
        ensure!(line.contains(failure["code"].as_str().context("a code")?), "{line}");
        Ok(())
    })
}

/// graphile-worker 254: the last attempt is over, the entity waits for an operator, and others wait for it.
#[test]
fn a_given_up_entity_is_parked_in_plain_sight_and_unpark_works() -> Result<()> {
    run(async {
        let mut host = start_unkilled(Setup::default()).await?;
        host.api()
            .deploy(&STUBBORN.replace("attempts = 3, first = \"1h\", max = \"1h\"", "attempts = 1"), Some("hostile"))
            .await?;
        let api = host.api().clone();
        api.create("stubborn/a").await?;
        let event = json!({ "name": "attempt", "payload": { "name": "panic" } });
        let end = api.settle("stubborn/a", "e1", event.clone()).await?.done()?;
        ensure!(end["outcome"] == "parked", "{end}");
        ensure!(api.counter("failures").await? == 1 && api.counter("parked").await? == 1);
        ensure!(host.said()?.contains("parked until an operator decides entity=stubborn/a"), "{}", host.said()?);
        api.send("stubborn/a", "n1", json!({ "name": "note" })).await?.done()?;
        host.crash().await?;

        let api = host.api();
        let listed = api.get("/v1/entities?machine=stubborn&parked=true").await?.done()?;
        ensure!(
            listed["entities"][0]["parked"] == "exhausted" && listed["entities"][0]["locked_by"].is_string(),
            "{listed}"
        );
        let busy = api.send("stubborn/a", "e2", event).await?.refused(409, "busy")?;
        ensure!(busy["retryable"] == false, "a parked entity is nobody's to wait for: {busy}");
        let unparked = api.post("/v1/entities/stubborn/a/unpark", Value::Null).await?.done()?;
        ensure!(unparked["changed"] == true, "{unparked}");
        // It fails again, and is parked again: with fresh budgets, a token of its own and the lock kept.
        let parked =
            api.until("stubborn/a", |entity| entity["parked"].is_object() && entity["lock"]["attempt"] == 2).await?;
        ensure!(parked["locked_by"] == listed["entities"][0]["locked_by"] && parked["inbox"] == 1, "{parked}");
        // Whoever waits behind it hears that it is over.
        api.killed("stubborn/a", "given up").await?.done()?;
        let note = api.get("/v1/entities/stubborn/a/events/n1").await?.done()?;
        ensure!(note["answer"] == "refused" && note["rejection"]["code"] == "final", "{note}");
        let last = api.entity("stubborn/a").await?;
        adds_up(&last, &api.history("stubborn/a").await?)
    })
}

/// inngest 2531: kill always works and needs no payload; what loops stops soon, what waits for a slot never starts.
#[test]
fn kill_works_on_whatever_an_entity_does() -> Result<()> {
    run(async {
        let host = start_with(Setup { slots: 1, ..Setup::default() }).await?;
        let api = host.api();
        api.deploy(STUBBORN, Some("hostile")).await?;
        let looping = || json!({ "name": "attempt", "payload": { "name": "fence-loop" } });
        for (key, what) in [("loops", "step"), ("waits", "slot")] {
            let entity = format!("stubborn/{key}");
            api.create(&entity).await?;
            api.send(&entity, "e1", looping()).await?.done()?;
            api.until(&entity, |entity| entity["lock"]["waiting_for"] == what).await?;
        }
        api.create("stubborn/rests").await?;
        for key in ["waits", "loops", "rests"] {
            let entity = format!("stubborn/{key}");
            let killed = api.killed(&entity, "the test is over").await?.done()?;
            ensure!(killed["changed"] == true && killed["state"] == "killed", "{killed}");
            ensure!(api.entity(&entity).await?["locked_by"].is_null());
        }
        // The slot is free again: the loop has stopped.
        api.create("stubborn/next").await?;
        let end =
            api.settle("stubborn/next", "e1", json!({ "name": "attempt", "payload": { "name": "not-json" } })).await?;
        ensure!(end.done()?["state"] == "calm");
        timeout(Duration::from_secs(10), api.idle()).await.context("a killed loop goes on")?
    })
}
