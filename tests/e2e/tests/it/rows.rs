//! Rows over HTTP, on a daemon in a process of its own: what many clients do at once, clients that die, and a daemon
//! that is killed.

use crate::host::{Api, Reply, run_without_guests, start};
use anyhow::{Context as _, Result, ensure};
use interlock_conformance::Random;
use interlock_support::kills::{Boots, kill_again_and_again};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

const JOBS: &str = r#"
table = "jobs"
owner = "payments <pay@example.com>"
[indexes]
by-status = ["status"]
[claim]
release = { status = "pending" }
reaper = { after = "1s" }
[access]
clients = ["get", "query", "put", "update", "claim", "upsert", "delete"]
"#;

const ROWS: u64 = 400;
const CLAIMERS: usize = 16;
const INCREMENTERS: u64 = 64;
/// Operations of one transaction: the host's own bound.
const OPS_MAX: u64 = 64;

/// A number of the environment, for runs that are longer than a test may be.
fn number(name: &str, default: u64) -> Result<u64> {
    Ok(env::var(name).ok().map_or(Ok(default), |text| text.parse())?)
}

async fn on(api: &Api, verb: &str, body: Value) -> Result<Value> {
    api.post(&format!("/v1/tables/jobs/{verb}"), body).await?.done()
}

async fn declare(api: &Api, manifest: &str) -> Result<Value> {
    api.post("/v1/tables", json!({ "manifest": manifest })).await?.done()
}

/// So many rows, as a producer writes them: their keys sort as they were inserted.
async fn produce(api: &Api, count: u64) -> Result<()> {
    for first in (0..count).step_by(OPS_MAX as usize) {
        let rows = first..count.min(first + OPS_MAX);
        let put =
            |n| json!({ "put": "jobs", "key": key(n), "value": { "status": "pending", "n": n }, "return": ["n"] });
        api.post("/v1/transact", json!({ "ops": rows.map(put).collect::<Vec<_>>() })).await?.done()?;
    }
    Ok(())
}

fn key(n: u64) -> String {
    format!("{n:08}")
}

fn keys(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().into_iter().flatten();
    rows.filter_map(|row| Some(row["key"].as_str()?.to_owned())).collect()
}

async fn count(api: &Api, status: &str) -> Result<usize> {
    let (mut found, mut after) = (0, Value::Null);
    loop {
        let mut ask = json!({ "where": { "status": status }, "limit": 1_000, "return": ["status"] });
        if !after.is_null() {
            ask["after"] = after;
        }
        let page = on(api, "query", ask).await?;
        found += page["count"].as_u64().context("a count")? as usize;
        after = page["next"].clone();
        if after.is_null() {
            return Ok(found);
        }
    }
}

/// Longer: docs/rows.md.
#[test]
fn sixteen_claimers_drain_a_queue_and_each_row_is_one_claimers() -> Result<()> {
    let rows = number("INTERLOCK_E2E_ROWS", ROWS)?;
    run_without_guests(Duration::from_secs(60 + rows / 50), async {
        let host = start().await?;
        declare(host.api(), JOBS.replace("reaper = { after = \"1s\" }", "").as_str()).await?;
        produce(host.api(), rows).await?;
        let began = Instant::now();
        let claimers: Vec<_> =
            (0..CLAIMERS).map(|nth| tokio::spawn(drain(host.api().clone(), format!("claimer {nth}")))).collect();
        let mut all = Vec::new();
        for claimer in claimers {
            let taken = claimer.await??;
            ensure!(taken.is_sorted(), "out of order: {taken:?}");
            all.extend(taken);
        }
        println!("{rows} rows, {CLAIMERS} claimers: {:.1?}", began.elapsed());
        all.sort_unstable();
        let wanted: Vec<String> = (0..rows).map(key).collect();
        ensure!(all == wanted, "{} claims of {rows} rows", all.len());
        let shown = host.api().get("/v1/tables/jobs").await?.done()?;
        ensure!(shown["claimed"] == 0 && shown["rows"] == rows, "{shown}");
        ensure!(host.api().counter("rows_claimed").await? == rows);
        ensure!(host.api().counter("rows_settled").await? == rows);
        host_is_sound(host.api()).await
    })
}

/// Claims and settles until nothing is left; what it got, in its order.
async fn drain(api: Api, label: String) -> Result<Vec<String>> {
    let mut taken = Vec::new();
    loop {
        let asked = format!("/v1/tables/jobs/claim?as={}", label.replace(' ', "%20"));
        let claimed = api.post(&asked, json!({ "limit": 7, "return": ["n"] })).await?.done()?;
        let keys = keys(&claimed["claimed"]);
        if keys.is_empty() {
            return Ok(taken);
        }
        let settled = settle(&api, &label, &keys).await?;
        ensure!(settled == keys.len(), "{label} had {keys:?}, and {settled} were its own to settle");
        taken.extend(keys);
    }
}

/// Marks rows as done that are still this claimer's; how many were.
async fn settle(api: &Api, label: &str, keys: &[String]) -> Result<usize> {
    let done = |key: &String| {
        let own = json!({ "status": "in_flight", "claimed_by": label });
        json!({ "update": "jobs", "key": key, "where": own, "set": { "status": "done" }, "return": ["n"] })
    };
    let ops: Vec<_> = keys.iter().map(done).collect();
    let answers = api.post("/v1/transact", json!({ "ops": ops })).await?.done()?;
    let answers = answers["answers"].as_array().into_iter().flatten();
    Ok(answers.filter(|answer| answer["updated"] == true).count())
}

/// The reconciler had nothing to repair.
async fn host_is_sound(api: &Api) -> Result<()> {
    let repaired = api.counter("repaired").await?;
    ensure!(repaired == 0, "the reconciler repaired {repaired} things");
    Ok(())
}

#[test]
fn sixty_four_incrementers_lose_none() -> Result<()> {
    let counts = number("INTERLOCK_E2E_COUNTS", 320)?;
    run_without_guests(Duration::from_secs(90 + counts / 50), async {
        let host = start().await?;
        declare(host.api(), JOBS).await?;
        let each = counts.div_ceil(INCREMENTERS);
        let began = Instant::now();
        let incrementers: Vec<_> = (0..INCREMENTERS)
            .map(|_| {
                let api = host.api().clone();
                tokio::spawn(async move {
                    let mut seen = Vec::new();
                    for _ in 0..each {
                        let ask = json!({ "key": "n", "insert": { "n": 1 }, "set": { "n": { "increment": 1 } } });
                        let value = on(&api, "upsert", ask).await?["value"]["n"].as_u64();
                        seen.push(value.context("a number")?);
                    }
                    anyhow::Ok(seen)
                })
            })
            .collect();
        let mut seen = Vec::new();
        for incrementer in incrementers {
            seen.extend(incrementer.await??);
        }
        println!("{} counts, {INCREMENTERS} incrementers: {:.1?}", seen.len(), began.elapsed());
        seen.sort_unstable();
        // Each was told a count of its own.
        ensure!(seen == (1..=INCREMENTERS * each).collect::<Vec<_>>(), "{seen:?}");
        Ok(())
    })
}

/// What claimers have worked on, and how often.
type Work = Arc<Mutex<BTreeMap<String, u64>>>;

#[test]
fn claimers_that_die_lose_no_row() -> Result<()> {
    let (rows, seed) = (number("INTERLOCK_E2E_ROWS", 60)?, number("INTERLOCK_E2E_SEED", 20_26)?);
    run_without_guests(Duration::from_secs(90 + rows / 20), async {
        let host = start().await?;
        declare(host.api(), JOBS).await?;
        produce(host.api(), rows).await?;
        let (work, mut random) = (Work::default(), Random::new(seed));
        let begin = |life: u64| {
            let (api, work, random) = (host.api().clone(), work.clone(), Random::new(seed + 1 + life));
            tokio::spawn(claimer(api, format!("life {life}"), work, random))
        };
        let mut lives = 6;
        let mut claimers: Vec<_> = (0..lives).map(begin).collect();
        // Cut off wherever they are, some of them with a claim that nobody settles; others come in their place.
        while count(host.api(), "done").await? < rows as usize {
            tokio::time::sleep(Duration::from_millis(random.below(40))).await;
            let victim = random.below(claimers.len() as u64) as usize;
            claimers[victim].abort();
            claimers[victim] = begin(lives);
            lives += 1;
        }
        claimers.iter().for_each(tokio::task::JoinHandle::abort);
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let wanted: Vec<String> = (0..rows).map(key).collect();
        ensure!(work.keys().eq(&wanted), "worked on {:?}", work.keys());
        let reaped = host.api().counter("rows_reaped").await?;
        println!(
            "{rows} rows, {lives} lives, seed {seed}: {} worked on, {reaped} taken back",
            work.values().sum::<u64>()
        );
        ensure!(reaped > 0, "no claimer died with a row");
        host_is_sound(host.api()).await
    })
}

/// Claims, works, settles; some of its lives end before they settle.
async fn claimer(api: Api, label: String, work: Work, mut random: Random) -> Result<()> {
    loop {
        let asked = format!("/v1/tables/jobs/claim?as={}", label.replace(' ', "%20"));
        let keys = keys(&api.post(&asked, json!({ "limit": 3 })).await?.done()?["claimed"]);
        for key in &keys {
            *work.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default() += 1;
        }
        match keys.is_empty() {
            true => tokio::time::sleep(Duration::from_millis(10)).await,
            false if random.below(4) == 0 => return Ok(()),
            false => drop(settle(&api, &label, &keys).await?),
        }
    }
}

#[test]
fn a_host_that_is_killed_goes_on_with_an_index_where_it_was() -> Result<()> {
    run_without_guests(Duration::from_secs(180), async {
        let mut host = start().await?;
        declare(host.api(), JOBS).await?;
        let rows = 4_096;
        produce(host.api(), rows).await?;
        let mut unfinished = 0;
        for round in 0..6 {
            let index = format!("by-status = [\"status\"]\nround-{round} = [\"n\"]");
            declare(host.api(), &JOBS.replace("by-status = [\"status\"]", &index)).await?;
            let name = format!("round-{round}");
            // Killed in the middle, unless it was too fast for us to see.
            loop {
                let index = self::index(host.api(), &name).await?;
                let done = index["done"].as_u64();
                if index["stage"] == "ready" || done.is_some_and(|done| done > 0) {
                    unfinished += u64::from(index["stage"] == "building");
                    break;
                }
            }
            host.crash().await?;
            while self::index(host.api(), &name).await?["stage"] != "ready" {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let ask = json!({ "order": format!("-round-{round}"), "limit": 1_000, "return": ["n"] });
            let found = on(host.api(), "query", ask).await?;
            let found: Vec<_> =
                found["rows"].as_array().into_iter().flatten().map(|row| row["value"]["n"].as_u64()).collect();
            let wanted: Vec<_> = (0..rows).rev().take(1_000).map(Some).collect();
            ensure!(found == wanted, "{} rows by {name}", found.len());
        }
        ensure!(unfinished > 0, "no index was unfinished when the host was killed");
        host_is_sound(host.api()).await
    })
}

async fn index(api: &Api, name: &str) -> Result<Value> {
    let shown = api.get("/v1/tables/jobs").await?.done()?;
    let index = shown["indexes"].as_array().into_iter().flatten().find(|index| index["name"] == name);
    index.cloned().with_context(|| format!("no {name}: {shown}"))
}

#[test]
fn a_count_whose_answer_was_lost_counts_once() -> Result<()> {
    let (kills, seed) = (number("INTERLOCK_E2E_KILLS", 20)?, number("INTERLOCK_E2E_SEED", 20_26)?);
    run_without_guests(Duration::from_secs(60 + kills), async {
        let mut host = start().await?;
        declare(host.api(), JOBS).await?;
        let (publish, boots) = watch::channel(Some(host.api().clone()));
        let enough = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..4).map(|nth| tokio::spawn(count_up(nth, boots.clone(), enough.clone()))).collect();
        let mut random = Random::new(seed);
        kill_again_and_again(&mut host, kills, 50, &mut |bound| random.below(bound), &publish).await?;
        enough.store(true, Ordering::Relaxed);
        let (mut counted, mut again) = (0, 0);
        for client in clients {
            let (mine, replayed) = client.await??;
            counted += mine;
            again += replayed;
        }
        println!("{kills} kills, seed {seed}: {counted} counted, {again} answers were lost and asked for again");
        ensure!(counted > 0);
        let row = host.api().get("/v1/tables/jobs/rows/n").await?.done()?;
        ensure!(row["value"]["n"] == counted, "{counted} counted, and there is {row}");
        Ok(())
    })
}

/// Counts one after another, each under an id of its own until it is answered; how many, and how many of them had
/// been done when they were answered.
async fn count_up(nth: u64, mut boots: Boots, enough: Arc<AtomicBool>) -> Result<(u64, u64)> {
    let (mut counted, mut again) = (0, 0);
    while !enough.load(Ordering::Relaxed) {
        let id = format!("{nth}-{counted}");
        let reply = until_answered(&mut boots, &id).await?;
        again += u64::from(reply.replayed);
        reply.done()?;
        counted += 1;
    }
    Ok((counted, again))
}

async fn until_answered(boots: &mut Boots, id: &str) -> Result<Reply> {
    loop {
        let api = boots.wait_for(Option::is_some).await?.clone().context("a boot")?;
        let ask = json!({ "key": "n", "insert": { "n": 1 }, "set": { "n": { "increment": 1 } } });
        let post = api.request(Method::POST, "/v1/tables/jobs/upsert").header("Idempotency-Key", id).json(&ask);
        match api.ask(post).await {
            Ok(reply) if reply.status != 503 => return Ok(reply),
            // Another boot, or the same one a little later.
            _ => drop(tokio::time::timeout(Duration::from_millis(20), boots.changed()).await),
        }
    }
}
