//! The machine of the README and the demo, `guests/resource`, along every path that its README promises: real
//! steps on a real daemon, only the waits are short.

use crate::host::{Api, Setup, run, start, start_unkilled};
use crate::ledger::{adds_up, audit, of_kind};
use anyhow::{Context as _, Result, ensure};
use interlock_support::guest_folder;
use serde_json::{Value, json};

/// Its manifest with waits that a test can sit through.
fn manifest() -> Result<String> {
    let mut text = std::fs::read_to_string(guest_folder("resource").join("machine.toml"))?;
    for (long, short) in [
        ("wait = \"90s\"", "wait = \"50ms\""),
        ("first = \"1s\"", "first = \"10ms\""),
        ("first = \"2s\"", "first = \"10ms\""),
        ("max = \"1m\"", "max = \"20ms\""),
    ] {
        ensure!(text.contains(long), "{long} is not in the manifest any more");
        text = text.replace(long, short);
    }
    Ok(text)
}

/// A pool of an image, once its first execution, which `desired-changed` starts, is over or parked.
async fn made(api: &Api, image: &str) -> Result<Value> {
    let body = json!({ "machine": "resource", "key": image, "desired": { "image": image } });
    api.post("/v1/entities", body).await?.done()?;
    let over = |found: &Value| found["locked_by"].is_null() || found["parked"].is_object();
    api.until(&format!("resource/{image}"), over).await
}

/// The pool of an image, asked for a size; and what came of it.
async fn resized(api: &Api, image: &str, size: u32) -> Result<(Value, Value)> {
    let pool = format!("resource/{image}");
    let end = api.settle(&pool, "e1", json!({ "name": "resize", "payload": { "size": size } })).await?.done()?;
    let last = api.entity(&pool).await?;
    adds_up(&last, &api.history(&pool).await?)?;
    Ok((end, last))
}

fn condition<'a>(entity: &'a Value, kind: &str) -> Result<&'a Value> {
    let all = entity["conditions"].as_array().context("conditions")?;
    all.iter().find(|one| one["type"] == kind).with_context(|| format!("no condition {kind}: {entity}"))
}

#[test]
fn a_pool_is_planned_waited_for_and_verified() -> Result<()> {
    run(async {
        let mut host = start_unkilled(Setup::default()).await?;
        host.api().deploy(&manifest()?, Some("resource")).await?;
        for (image, failed) in [("train", 0), ("train-80g", 0), ("train-slow-start", 2)] {
            let endpoint = format!("{image}.pool.example");
            let first = made(host.api(), image).await?;
            ensure!(first["outputs"] == json!({ "size": 1, "endpoint": endpoint }), "{first}");
            ensure!(first["observed_generation"] == 1 && first["generation"] == 1, "{first}");
            let (end, last) = resized(host.api(), image, 4).await?;
            ensure!(end["outcome"] == "succeeded" && end["state"] == "ready", "{end}");
            ensure!(last["outputs"] == json!({ "size": 4, "endpoint": endpoint }), "{last}");
            ensure!(last["data"]["size"] == 4 && last["data"]["target"] == 4 && last["locked_by"].is_null(), "{last}");
            ensure!(last["data"]["nodes"].as_array().is_some_and(|nodes| nodes.len() == 4), "{last}");
            let history = host.api().history(&format!("resource/{image}")).await?;
            let states: Vec<_> = of_kind(&history, "transition").iter().map(|entry| entry["to"].clone()).collect();
            ensure!(states == ["provisioning", "ready", "provisioning", "ready"], "{states:?}");
            ensure!(of_kind(&history, "timer").len() == 2 && of_kind(&history, "ended").len() == 2 * failed, "{image}");
        }
        host.stop().await?;
        ensure!(audit(&host.data()).await? == 3);
        Ok(())
    })
}

#[test]
fn a_pool_that_cannot_be_planned_is_ready_again_with_its_old_size_and_says_why() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(&manifest()?, Some("resource")).await?;
        let first = made(api, "train-512g").await?;
        ensure!(first["state"] == "ready" && first["observed_generation"] == 1, "observed means tried: {first}");
        let (end, last) = resized(api, "train-512g", 4).await?;
        ensure!(end["outcome"] == "failed" && end["state"] == "ready", "{end}");
        ensure!(last["data"]["size"] == 1 && last["data"]["target"] == 1 && last["outputs"].is_null(), "{last}");
        let failed = condition(&last, "interlock/execution")?;
        ensure!(failed["status"] == "failed" && failed["reason"] == "no-room", "{failed}");
        ensure!(failed["message"].as_str().is_some_and(|why| why.contains("no room for 4")), "{failed}");
        // A permanent failure is not tried again, and somebody else may try at once.
        let history = api.history("resource/train-512g").await?;
        ensure!(of_kind(&history, "ended").is_empty() && of_kind(&history, "failure-path").len() == 2, "{history:?}");
        let again = json!({ "name": "resize", "payload": { "size": 2 } });
        let again = api.settle("resource/train-512g", "e2", again).await?.done()?;
        ensure!(again["outcome"] == "failed" && again["execution"] != end["execution"], "{again}");
        Ok(())
    })
}

#[test]
fn a_pool_that_never_starts_is_parked_tried_again_and_killed_by_an_operator() -> Result<()> {
    run(async {
        let host = start_unkilled(Setup::default()).await?;
        let api = host.api();
        api.deploy(&manifest()?, Some("resource")).await?;
        let pool = "resource/train-never-starts";
        let parked = made(api, "train-never-starts").await?;
        ensure!(parked["state"] == "verifying" && parked["locked_by"].is_string(), "{parked}");
        let park = &parked["parked"];
        ensure!(park["code"] == "exhausted" && park.to_string().contains("still starting"), "{park}");
        ensure!(of_kind(&api.history(pool).await?, "ended").len() == 7, "of eight attempts the last one parks");
        let resize = || json!({ "name": "resize", "payload": { "size": 2 } });
        api.send(pool, "e1", resize()).await?.refused(409, "busy")?;
        api.post(&format!("/v1/entities/{pool}/unpark"), Value::Null).await?.done()?;
        // Eight more attempts, under the same lock.
        let again = api.until(pool, |found| found["parked"].is_object() && found["lock"]["attempt"] == 16).await?;
        ensure!(again["locked_by"] == parked["locked_by"], "{again}");
        let killed = api.killed(pool, "the provider gave up on it").await?.done()?;
        ensure!(killed["state"] == "killed", "{killed}");
        let last = api.entity(pool).await?;
        ensure!(last["locked_by"].is_null() && last["outputs"].is_null() && last["data"]["size"] == 1, "{last}");
        api.send(pool, "e2", resize()).await?.refused(409, "late")?;
        adds_up(&last, &api.history(pool).await?)
    })
}

#[test]
fn a_pool_whose_nodes_are_withdrawn_is_lost() -> Result<()> {
    run(async {
        let host = start().await?;
        host.api().deploy(&manifest()?, Some("resource")).await?;
        let lost = made(host.api(), "train-withdrawn").await?;
        ensure!(lost["state"] == "lost" && lost["kind"] == "failed" && lost["outputs"].is_null(), "{lost}");
        ensure!(condition(&lost, "interlock/execution")?["reason"] == "withdrawn", "{lost}");
        adds_up(&lost, &host.api().history("resource/train-withdrawn").await?)
    })
}
