//! `kill -9` at every point between the commit of an effect and its result, with the receiver as the witness: none is
//! lost, each comes at least once and always under its key, and no lane goes back.

use crate::effects::{ask, effects, errands, manifest, settled, to, until_first};
use crate::host::{Api, Host, Setup, run, run_within, start_unkilled};
use crate::ledger::{adds_up, audit, of_kind};
use crate::sink::{Answer, Seen, Sink, status};
use anyhow::{Context as _, Result, bail, ensure};
use interlock_conformance::Random;
use interlock_support::kills::kill_again_and_again;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::env;
use std::process::Command;
use std::time::Duration;
use tokio::sync::watch;

/// Every delivery of one effect, which came under one key and with one body.
fn one_effect(seen: &[Seen]) -> Result<()> {
    let first = seen.first().context("it came")?;
    ensure!(seen.iter().all(|one| one.key() == first.key() && one.body == first.body), "{seen:?}");
    Ok(())
}

#[test]
fn killed_before_a_try_begins_it_is_made_after() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let mut host = errands(&sink).await?;
        // As many as may be under way for a target hang there; those behind are committed and not begun.
        let entity = |nth: usize| format!("errand/{nth}");
        sink.hold(true);
        for nth in 0..10 {
            host.api().create(&entity(nth)).await?;
            ask(host.api(), &entity(nth), "e1", json!([to(&nth.to_string())]), "waiting").await?;
        }
        let under_way = async |api: &Api| -> Result<usize> {
            let list = api.get("/v1/effects?stands=in-flight").await?.done()?;
            Ok(list["effects"].as_array().map_or(0, Vec::len))
        };
        while under_way(host.api()).await? < 8 || sink.seen().len() < 8 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for nth in 0..10 {
            host.api().until(&entity(nth), |found| found["state"] == "waiting").await?;
        }
        let not_begun = host.api().get("/v1/effects?stands=due").await?.done()?;
        ensure!(not_begun["effects"].as_array().is_some_and(|due| due.len() == 2), "{not_begun}");
        host.kill().await?;
        sink.hold(false);
        host.boot().await?;
        for nth in 0..10 {
            let done = settled(host.api(), &entity(nth)).await?;
            ensure!(done["data"]["done"] == 1, "{done}");
            one_effect(&sink.at(&format!("/{nth}")))?;
        }
        let tries = sink.seen().len();
        ensure!(tries == 8 + 10, "eight came twice and two once, not {tries} in all");
        host.stop().await?;
        ensure!(audit(&host.data()).await? == 10);
        Ok(())
    })
}

#[test]
fn killed_between_the_begin_of_a_try_and_its_request_it_is_made_after() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let mut host = start_unkilled(Setup::default()).await?;
        // Whoever reads this secret waits until somebody writes it: the try is begun, and nothing is sent.
        let pipe = host.config().with_file_name("secret");
        ensure!(Command::new("mkfifo").arg(&pipe).status()?.success(), "mkfifo");
        let configured = sink.allowed("\"slow\"") + "\n[effects.secrets.slow]\nfile = \"secret\"\n";
        let text = manifest(&sink, "")?.replacen("{path}\"\n", "{path}\"\nsecret  = { name = \"slow\" }\n", 1);
        host.api().deploy(&text, Some("errand")).await?;
        host.configure(&configured).await?;
        host.api().create("errand/one").await?;
        ask(host.api(), "errand/one", "e1", json!([to("a"), to("b")]), "waiting").await?;
        until_first(host.api(), "errand/one", |one| one["stands"] == "in-flight").await?;
        host.kill().await?;
        ensure!(sink.seen().is_empty(), "{:?}", sink.seen());
        std::fs::remove_file(&pipe)?;
        std::fs::write(&pipe, "s3cret")?;
        host.boot().await?;
        settled(host.api(), "errand/one").await?;
        let paths: Vec<_> = sink.seen().into_iter().map(|seen| seen.path).collect();
        ensure!(paths == ["/a", "/b"], "{paths:?}");
        Ok(())
    })
}

#[test]
fn killed_after_the_receiver_has_done_it_the_same_comes_again_before_the_next() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let mut host = errands(&sink).await?;
        host.api().create("errand/one").await?;
        // Twice: a kill is no failure of the target's and uses up none of its four tries.
        sink.answers("/a", [Answer::Held, Answer::Held, Answer::Held, Answer::Held, Answer::Held]);
        ask(host.api(), "errand/one", "e1", json!([to("a"), to("b")]), "waiting").await?;
        for kill in 1..=5 {
            sink.until("/a", kill).await;
            host.crash().await?;
        }
        let done = settled(host.api(), "errand/one").await?;
        ensure!(done["data"]["done"] == 1, "{done}");
        one_effect(&sink.at("/a"))?;
        let paths: Vec<_> = sink.seen().into_iter().map(|seen| seen.path).collect();
        ensure!(paths == ["/a", "/a", "/a", "/a", "/a", "/a", "/b"], "{paths:?}");
        ensure!(of_kind(&host.api().history("errand/one").await?, "effect-done").len() == 2);
        Ok(())
    })
}

#[test]
fn killed_after_its_result_it_does_not_come_again() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let mut host = errands(&sink).await?;
        host.api().create("errand/one").await?;
        sink.answers("/b", [Answer::Held]);
        ask(host.api(), "errand/one", "e1", json!([to("a"), to("b")]), "waiting").await?;
        // Its successor is on its way: its own result is durable.
        sink.until("/b", 1).await;
        host.crash().await?;
        settled(host.api(), "errand/one").await?;
        ensure!(sink.at("/a").len() == 1 && sink.at("/b").len() == 2, "{:?}", sink.seen());
        one_effect(&sink.at("/b"))
    })
}

#[test]
fn killed_while_it_waits_for_its_next_try_it_waits_on() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let mut host = errands(&sink).await?;
        host.api().create("errand/one").await?;
        sink.answers("/a", [crate::sink::with_header(503, "retry-after", "3000"), status(503)]);
        ask(host.api(), "errand/one", "e1", json!([to("a")]), "waiting").await?;
        until_first(host.api(), "errand/one", |one| one["tries"] == 1 && one["stands"] == "due").await?;
        host.crash().await?;
        let still = effects(host.api(), "errand/one").await?;
        ensure!(still[0]["stands"] == "due" && still[0]["tries"] == 1 && sink.at("/a").len() == 1, "{still:?}");
        crate::effects::operate(host.api(), "errand/one", 1, "retry", Value::Null).await?;
        settled(host.api(), "errand/one").await?;
        one_effect(&sink.at("/a"))
    })
}

const KILLS: u64 = 40;
const SEED: u64 = 1_130;
const ENTITIES: u64 = 5;
/// How long a daemon listens before it is killed, in ms.
const LIVES_MS: u64 = 80;
/// Effects of one event.
const PER_EVENT: u64 = 3;

#[test]
fn killed_at_random_moments_no_effect_is_lost_renamed_or_out_of_order() -> Result<()> {
    let number = |name: &str, default| env::var(name).ok().map_or(Ok(default), |text| text.parse());
    let (kills, seed) = (number("INTERLOCK_E2E_KILLS", KILLS)?, number("INTERLOCK_E2E_SEED", SEED)?);
    run_within(Duration::from_secs(120 + kills), survive(kills, seed)).with_context(|| {
        format!(
            "again: INTERLOCK_E2E_SEED={seed} INTERLOCK_E2E_KILLS={kills} \
             cargo test -p interlock-e2e --test it effect_kills::killed_at_random_moments"
        )
    })
}

async fn survive(kills: u64, seed: u64) -> Result<()> {
    let sink = Sink::start().await?;
    let mut host = errands(&sink).await?;
    for key in 0..ENTITIES {
        host.api().create(&format!("errand/{key}")).await?;
    }
    let (publish, boots) = watch::channel(Some(host.api().clone()));
    let enough = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let clients: Vec<_> = (0..ENTITIES).map(|key| tokio::spawn(client(key, boots.clone(), enough.clone()))).collect();
    let mut moments = Random::new(seed);
    kill_again_and_again(&mut host, kills, LIVES_MS, &mut |bound| moments.below(bound), &publish).await?;
    enough.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut events = 0;
    for (key, client) in clients.into_iter().enumerate() {
        let sent = client.await??;
        events += sent;
        check(&host, &sink, &format!("errand/{key}"), sent).await.with_context(|| format!("errand/{key}"))?;
    }
    let came = sink.seen().len() as u64;
    println!("{kills} kills, seed {seed}: {events} events, {} effects, {came} requests", events * PER_EVENT);
    ensure!(events > kills && came > events * PER_EVENT, "no load to speak of, or no effect was cut off");
    host.stop().await?;
    ensure!(audit(&host.data()).await? as u64 == ENTITIES);
    Ok(())
}

/// One event after another, each until it is answered. Gives how many were taken.
async fn client(
    key: u64,
    mut boots: interlock_support::kills::Boots,
    enough: std::sync::Arc<std::sync::atomic::AtomicBool>,
) -> Result<u64> {
    let entity = format!("errand/{key}");
    let mut nth = 0;
    while !enough.load(std::sync::atomic::Ordering::Relaxed) {
        let asks: Vec<Value> = (0..PER_EVENT)
            .map(|part| {
                let number = nth * PER_EVENT + part;
                json!({ "target": "sink", "params": { "path": key.to_string() }, "body": { "number": number } })
            })
            .collect();
        let event = json!({ "name": "do", "payload": { "asks": asks, "then": "idle" } });
        loop {
            let api = boots.wait_for(Option::is_some).await?.clone().context("a boot")?;
            match api.send(&entity, &format!("e{nth}"), event.clone()).await {
                Ok(reply) if reply.status < 300 => break,
                // Busy, or a full inbox or outbox: its time comes.
                Ok(reply) if matches!(reply.status, 409 | 429 | 503) => {}
                Ok(reply) => bail!("e{nth} was answered {} {}", reply.status, reply.body),
                Err(_) => {}
            }
            drop(tokio::time::timeout(Duration::from_millis(20), boots.changed()).await);
        }
        nth += 1;
    }
    Ok(nth)
}

/// All of an entity's effects came, each under one key, and no lane went back.
async fn check(host: &Host, sink: &Sink, entity: &str, events: u64) -> Result<()> {
    let api = host.api();
    let over = |found: &Value| found["state"] == "idle" && found["inbox"] == 0 && found["outbox"]["unsettled"] == 0;
    let last = api.until(entity, over).await?;
    ensure!(last["outbox"]["dead"] == 0 && last["outstanding"] == json!([]), "{last}");
    let history = api.history_by(entity, 500).await?;
    adds_up(&last, &history)?;
    let done = of_kind(&history, "effect-done").len() as u64;
    ensure!(done == events * PER_EVENT, "{done} results of {} effects", events * PER_EVENT);
    let mut keys: BTreeMap<u64, String> = BTreeMap::new();
    let mut before = 0;
    for seen in sink.seen().iter().filter(|seen| seen.header("interlock-entity") == entity) {
        let number = seen.body["number"].as_u64().context("a number")?;
        ensure!(number == before || number == before + 1, "{number} after {before}");
        let key = keys.entry(number).or_insert_with(|| seen.key().to_owned());
        ensure!(key == seen.key(), "{number} came as {key} and as {}", seen.key());
        before = number;
    }
    ensure!(keys.len() as u64 == events * PER_EVENT, "{} of {} came", keys.len(), events * PER_EVENT);
    let names: std::collections::BTreeSet<_> = keys.values().collect();
    ensure!(names.len() == keys.len(), "two effects share a key");
    Ok(())
}
