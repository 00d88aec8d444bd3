//! `kill -9` at random moments under load. Clients send events, keep what they were told, and send again with
//! the same id whenever the connection broke; in the end the file must say what they were told.

use crate::host::{Api, Setup, event, run_within, start_with};
use crate::ledger::{adds_up, audit, count, of_kind};
use crate::machines::COUNTED;
use anyhow::{Context as _, Result, bail, ensure};
use interlock_conformance::Random;
use interlock_support::kills::{Boots, kill_again_and_again};
use serde_json::Value;
use std::collections::BTreeSet;
use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

const KILLS: u64 = 200;
const SEED: u64 = 20_26;
const ENTITIES: u64 = 12;
const CLIENTS: u64 = 6;
/// How long a daemon listens before it is killed, in ms.
const LIVES_MS: u64 = 50;

/// What a client was told of an event.
#[derive(Debug, PartialEq)]
enum Told {
    Accepted,
    Queued,
    Refused,
}

#[derive(Debug)]
struct Sent {
    entity: String,
    id: String,
    told: Told,
}

#[test]
fn kills_at_random_moments_lose_nothing_and_double_nothing() -> Result<()> {
    let number = |name: &str, default| env::var(name).ok().map_or(Ok(default), |text| text.parse());
    let (kills, seed) = (number("INTERLOCK_E2E_KILLS", KILLS)?, number("INTERLOCK_E2E_SEED", SEED)?);
    let bound = Duration::from_secs(120 + kills);
    run_within(bound, survive(kills, seed)).with_context(|| {
        format!(
            "again: INTERLOCK_E2E_SEED={seed} INTERLOCK_E2E_KILLS={kills} \
             cargo test -p interlock-e2e --test it kills_at_random_moments"
        )
    })
}

async fn survive(kills: u64, seed: u64) -> Result<()> {
    let mut host = start_with(Setup { slots: 4, ..Setup::default() }).await?;
    host.api().deploy(COUNTED, Some("noop")).await?;
    for key in 0..ENTITIES {
        host.api().create(&format!("counted/{key}")).await?;
    }
    let random = Random::new(seed);
    let (publish, boots) = watch::channel(Some(host.api().clone()));
    let enough = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|nth| tokio::spawn(client(nth, part(&random, nth + 1), boots.clone(), enough.clone())))
        .collect();
    let began = Instant::now();
    let mut moments = part(&random, 0);
    kill_again_and_again(&mut host, kills, LIVES_MS, &mut |bound| moments.below(bound), &publish).await?;
    let killing = began.elapsed();
    enough.store(true, Ordering::Relaxed);
    let mut sent = Vec::new();
    for client in clients {
        sent.extend(client.await??);
    }
    let told = |what: Told| sent.iter().filter(|sent| sent.told == what).count();
    println!(
        "{kills} kills in {killing:.1?}, seed {seed}: {} accepted, {} queued, {} refused",
        told(Told::Accepted),
        told(Told::Queued),
        told(Told::Refused)
    );
    ensure!(told(Told::Accepted) > 0 && told(Told::Queued) > 0 && told(Told::Refused) > 0, "no load to speak of");
    for key in 0..ENTITIES {
        let entity = format!("counted/{key}");
        check(host.api(), &entity, sent.iter().filter(|sent| sent.entity == entity)).await.context(entity)?;
    }
    ensure!(host.api().counter("repaired").await? == 0, "the reconciler repaired something");
    host.stop().await?;
    ensure!(audit(&host.data()).await? as u64 == ENTITIES);
    Ok(())
}

/// Another sequence of numbers for each part of the run.
fn part(random: &Random, nth: u64) -> Random {
    let mut whole = random.clone();
    let seed = (0..nth).fold(whole.number(), |_, _| whole.number());
    Random::new(seed)
}

/// One client: an event after another, each until it is answered.
async fn client(nth: u64, mut random: Random, mut boots: Boots, enough: Arc<AtomicBool>) -> Result<Vec<Sent>> {
    let mut sent = Vec::new();
    let mut number = 0;
    while !enough.load(Ordering::Relaxed) {
        number += 1;
        let entity = format!("counted/{}", random.below(ENTITIES));
        let id = format!("c{nth}-{number}");
        let name = if random.below(4) == 0 { "later" } else { "go" };
        let reply = deliver(&mut boots, &entity, &id, name).await?;
        let told = match (reply.status, reply.body["answer"].as_str(), reply.body["code"].as_str()) {
            (202, Some("accepted"), _) => Told::Accepted,
            (202, Some("queued"), _) => Told::Queued,
            (409, _, Some("busy")) | (429, _, Some("limit")) => Told::Refused,
            _ => bail!("{id} was answered {} {}", reply.status, reply.body),
        };
        if told == Told::Accepted && random.below(5) == 0 {
            let again = deliver(&mut boots, &entity, &id, name).await?;
            ensure!(again.replayed && again.body == reply.body, "first {}, then {}", reply.body, again.body);
        }
        sent.push(Sent { entity, id, told });
    }
    Ok(sent)
}

/// Sends an event until somebody answers: a broken connection says nothing about what became of it.
async fn deliver(boots: &mut Boots, entity: &str, id: &str, name: &str) -> Result<crate::host::Reply> {
    loop {
        let api = boots.wait_for(Option::is_some).await?.clone().context("a boot")?;
        match api.send(entity, id, event(name)).await {
            Ok(reply) if reply.status != 503 => return Ok(reply),
            // Another boot, or the same one a little later.
            _ => drop(tokio::time::timeout(Duration::from_millis(20), boots.changed()).await),
        }
    }
}

async fn check(api: &Api, entity: &str, sent: impl Iterator<Item = &Sent>) -> Result<()> {
    let last = api.until(entity, |found| found["kind"] == "rest" && found["inbox"] == 0).await?;
    ensure!(last["locked_by"].is_null() && last["parked"].is_null(), "at rest, and yet {last}");
    let history = api.history_by(entity, 500).await?;
    adds_up(&last, &history)?;
    let mut known = BTreeSet::new();
    for Sent { id, told, .. } in sent {
        let taken = count(&history, "event", id);
        let (queued, refused) = (count(&history, "queued", id), count(&history, "refused", id));
        let wanted = match told {
            Told::Accepted => taken == 1 && queued <= 1,
            Told::Queued => queued == 1 && taken + refused == 1,
            Told::Refused => taken + queued == 0,
        };
        ensure!(wanted, "{id} was told {told:?}; taken {taken} times, queued {queued}, refused {refused}");
        if taken == 1 {
            known.insert(id.as_str());
        }
    }
    let taken: Vec<_> = of_kind(&history, "event").iter().filter_map(|entry| entry["event"].as_str()).collect();
    ensure!(taken.iter().copied().collect::<BTreeSet<_>>() == known, "an event nobody sent was taken");
    counted_once(&last, &history, taken.len())
}

/// Every execution moved the entity six times, and each move counted itself.
fn counted_once(last: &Value, history: &[Value], executions: usize) -> Result<()> {
    for field in ["taken", "s1", "s2", "s3", "s4", "s5"] {
        ensure!(last["data"][field] == executions, "{executions} executions, and {field} of {}", last["data"]);
    }
    ensure!(of_kind(history, "transition").len() == executions * 5);
    ensure!(last["version"] == 1 + executions * 6, "version {} after {executions} executions", last["version"]);
    Ok(())
}
