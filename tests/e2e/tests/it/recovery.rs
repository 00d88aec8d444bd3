//! What a real `kill -9`, and a stop in good order, leave behind: a step in the middle, a checkpoint, a timer,
//! a client that waits.

use crate::host::{Setup, event, run, start, start_with};
use crate::ledger::{adds_up, audit, of_kind};
use crate::machines::{DOOR, STUBBORN};
use anyhow::{Result, ensure};
use interlock_support::guest_folder;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A step that loops until somebody stops it.
fn looping() -> Value {
    json!({ "name": "attempt", "payload": { "name": "fence-loop" } })
}

fn runs(entity: &Value) -> bool {
    entity["lock"]["waiting_for"] == "step"
}

#[test]
fn a_killed_host_begins_its_step_again_with_a_higher_token() -> Result<()> {
    run(async {
        let mut host = start().await?;
        host.api().deploy(STUBBORN, Some("hostile")).await?;
        host.api().create("stubborn/a").await?;
        let first = host.api().send("stubborn/a", "e1", looping()).await?;
        ensure!((first.status, first.replayed) == (202, false), "{first:?}");
        let before = host.api().until("stubborn/a", runs).await?;
        host.crash().await?;

        let api = host.api();
        let after = api.until("stubborn/a", |entity| runs(entity) && entity["lock"]["attempt"] == 2).await?;
        ensure!(after["locked_by"] == before["locked_by"] && after["version"] == before["version"]);
        ensure!(
            after["lock"]["token"].as_u64() > before["lock"]["token"].as_u64(),
            "{} {}",
            before["lock"],
            after["lock"]
        );
        ensure!(after["lock"]["lost"] == 1 && after["lock"]["failed"] == 0);

        let again = api.send("stubborn/a", "e1", looping()).await?;
        ensure!(again.replayed && again.body == first.body, "first {}, then {}", first.body, again.body);
        let other = api.send("stubborn/a", "e2", looping()).await?.refused(409, "busy")?;
        ensure!(other["holder"]["execution"] == before["locked_by"], "{other}");

        // Whatever it does, it can be ended; its loop stops within a tick and gives its slot back.
        api.killed("stubborn/a", "the test is over").await?.done()?;
        api.idle().await?;
        let last = api.entity("stubborn/a").await?;
        ensure!(last["state"] == "killed" && last["locked_by"].is_null(), "{last}");
        let history = api.history("stubborn/a").await?;
        adds_up(&last, &history)?;
        ensure!(of_kind(&history, "begun").len() == 1, "{history:?}");
        host.stop().await?;
        audit(&host.data()).await.map(drop)
    })
}

#[test]
fn what_a_step_saved_before_the_kill_is_not_done_again() -> Result<()> {
    const PARTS: u64 = 16;
    const PRIMES: u64 = 121_127; // below 1,600,000
    run(async {
        let mut host = start().await?;
        let manifest = std::fs::read_to_string(guest_folder("survey").join("machine.toml"))?;
        host.api().deploy(&manifest, Some("survey")).await?;
        host.api().create("survey/a").await?;
        let go = json!({ "name": "go", "payload": { "parts": PARTS } });
        host.api().send("survey/a", "e1", go.clone()).await?.done()?;
        for parts in [3, 7] {
            host.api().until("survey/a", |entity| entity["data"]["done"].as_u64() >= Some(parts)).await?;
            host.crash().await?;
        }
        let end = host.api().settle("survey/a", "e1", go).await?;
        ensure!(end.replayed && end.body["outcome"] == "succeeded", "{end:?}");
        ensure!(end.body["outputs"] == json!({ "parts": PARTS, "primes": PRIMES }), "{}", end.body);
        let history = host.api().history("survey/a").await?;
        adds_up(&host.api().entity("survey/a").await?, &history)?;
        let done: Vec<_> =
            of_kind(&history, "saved").iter().filter_map(|entry| entry["data"]["value"]["done"].as_u64()).collect();
        ensure!(done == (1..=PARTS).collect::<Vec<_>>(), "a part was saved twice, or never: {done:?}");
        Ok(())
    })
}

#[test]
fn a_data_folder_boots_elsewhere_and_its_execution_goes_on_there() -> Result<()> {
    const PARTS: u64 = 12;
    run(async {
        let mut host = start().await?;
        let manifest = std::fs::read_to_string(guest_folder("survey").join("machine.toml"))?;
        host.api().deploy(&manifest, Some("survey")).await?;
        host.api().create("survey/a").await?;
        let go = json!({ "name": "go", "payload": { "parts": PARTS } });
        let accepted = host.api().send("survey/a", "e1", go.clone()).await?.done()?;
        // Moved in good order first, and then as a kill left it.
        for (parts, stop) in [(2, true), (6, false)] {
            host.api().until("survey/a", |entity| entity["data"]["done"].as_u64() >= Some(parts)).await?;
            match stop {
                true => host.stop().await?,
                false => host.kill().await?,
            }
            host = host.moved().await?;
        }
        let end = host.api().settle("survey/a", "e1", go).await?;
        ensure!(end.replayed && end.body["outcome"] == "succeeded", "{end:?}");
        ensure!(end.body["execution"] == accepted["execution"] && end.body["outputs"]["parts"] == PARTS, "{end:?}");
        let history = host.api().history("survey/a").await?;
        let done: Vec<_> =
            of_kind(&history, "saved").iter().filter_map(|entry| entry["data"]["value"]["done"].as_u64()).collect();
        ensure!(done == (1..=PARTS).collect::<Vec<_>>(), "a part was saved twice, or never: {done:?}");
        adds_up(&host.api().entity("survey/a").await?, &history)?;
        host.stop().await?;
        ensure!(audit(&host.data()).await? == 1);
        Ok(())
    })
}

#[test]
fn a_timer_counts_the_time_its_host_was_down() -> Result<()> {
    run(async {
        let mut host = start().await?;
        host.api().deploy(DOOR, None).await?;
        host.api().create("door/a").await?;
        let open = json!({ "name": "open", "payload": { "times": 1 } });
        host.api().send("door/a", "e1", open.clone()).await?.done()?;
        let due = host.api().entity("door/a").await?["timers"][0]["due"].clone();
        host.kill().await?;
        // Longer than the door stays open: its timer falls due while nobody is there.
        tokio::time::sleep(Duration::from_millis(350)).await;
        host.boot().await?;
        let end = host.api().settle("door/a", "e1", open).await?;
        ensure!(end.replayed && end.body["outcome"] == "succeeded" && end.body["state"] == "shut", "{end:?}");
        let history = host.api().history("door/a").await?;
        let fired = of_kind(&history, "timer");
        ensure!(fired.len() == 1 && fired[0]["at"].as_str() >= due.as_str(), "due {due}, fired {fired:?}");
        adds_up(&host.api().entity("door/a").await?, &history)
    })
}

#[test]
fn a_client_whose_wait_was_cut_by_a_kill_asks_again_and_hears_the_end() -> Result<()> {
    run(async {
        let mut host = start().await?;
        host.api().deploy(DOOR, None).await?;
        host.api().create("door/a").await?;
        let api = host.api().clone();
        let waiting = tokio::spawn(async move { api.settle("door/a", "e1", event("hold")).await });
        host.api().until("door/a", |entity| entity["state"] == "held").await?;
        host.crash().await?;
        ensure!(waiting.await?.is_err(), "an answer from a killed host");

        let api = host.api().clone();
        let waiting = tokio::spawn(async move { api.settle("door/a", "e1", event("hold")).await });
        let freed = host.api().send("door/a", "e2", event("free")).await?.done()?;
        let end = waiting.await??;
        ensure!(end.replayed && end.status == 200 && end.body["outcome"] == "succeeded", "{end:?}");
        ensure!(
            end.body["version"] == freed["version"] && end.body["execution"] == freed["execution"],
            "{end:?} {freed}"
        );
        Ok(())
    })
}

#[test]
fn a_stop_in_good_order_keeps_its_time_and_counts_against_nobody() -> Result<()> {
    let stop_within = Duration::from_secs(1);
    run(async {
        let mut host = start_with(Setup { stop_within, ..Setup::default() }).await?;
        host.api().deploy(STUBBORN, Some("hostile")).await?;
        host.api().create("stubborn/a").await?;
        host.api().send("stubborn/a", "e1", looping()).await?.done()?;
        host.api().until("stubborn/a", runs).await?;
        let began = Instant::now();
        host.stop().await?;
        let took = began.elapsed();
        // What it promises, and a margin for a machine that is busy with other tests.
        ensure!(took < stop_within + Duration::from_secs(5), "stopped after {took:?}");

        host.boot().await?;
        let after = host.api().until("stubborn/a", |entity| runs(entity) && entity["lock"]["attempt"] == 2).await?;
        ensure!(after["lock"]["lost"] == 0 && after["lock"]["failed"] == 0, "{}", after["lock"]);
        let history = host.api().history("stubborn/a").await?;
        let begun = of_kind(&history, "begun");
        ensure!(
            begun.len() == 1 && begun[0]["what"].as_str().is_some_and(|what| what.contains("stopped with its host"))
        );
        Ok(())
    })
}

#[test]
fn a_second_host_on_the_same_folder_is_refused_and_the_first_goes_on() -> Result<()> {
    run(async {
        let host = start().await?;
        host.api().deploy(DOOR, None).await?;
        let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_interlock-e2e"))
            .arg("serve")
            .arg(host.data())
            .args(["2", "1000"])
            .arg(host.config())
            .output()
            .await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && said.contains("open"), "{said}");
        host.api().create("door/a").await.map(drop)
    })
}
