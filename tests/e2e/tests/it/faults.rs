//! Whole executions on a disk that fails, and loses power, while they run: the real engine, the real
//! coordinator, steps that ask again. What was acknowledged is there, what was not is whole or nowhere.

use crate::host::{Setup, event, run, start_unkilled};
use crate::ledger::{audit, audit_store};
use crate::machines::{COUNTED, PLAIN};
use anyhow::{Context as _, Result, ensure};
use interlock_conformance::{Random, SimDisk, redb_options};
use interlock_coordinator::{Attempt, Coordinator, Ended, Executor, Options, SubmitError};
use interlock_kernel::command::{Change, Command, Create, Deploy, OnExisting, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::{AnswerKind, Expect, Failure, What};
use interlock_kernel::view::Event;
use interlock_store::{ManualClock, Redb, StoreError, SystemClock};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

const SEED: u64 = 7;
const ROUNDS: u64 = 120;
const ENTITIES: u64 = 4;

/// Steps that ask for the next state, and fail if the store cannot say.
struct Walker(Handle);

impl Executor for Walker {
    fn start(&self, attempt: Attempt) {
        self.0.spawn(walk(attempt));
    }
}

async fn walk(attempt: Attempt) {
    let to = match attempt.start().step.as_str() {
        "s1" => "s2",
        "s2" => "s3",
        "s3" => "s4",
        "s4" => "s5",
        _ => "idle",
    };
    let Ok(to) = to.parse() else { return };
    if let Err(error) = attempt.transition(to, Change::default()).await {
        let failure =
            Failure { permanent: false, code: "refused".to_owned(), reason: error.to_string(), retry_after_ms: None };
        attempt.finish(Ended::Failed(failure));
    }
}

fn by_client(verb: Verb) -> Command {
    Command { by: Principal::local(), verb }
}

async fn open(disk: &SimDisk) -> Result<Coordinator> {
    let clock = Arc::new(SystemClock::new());
    let options = interlock_store::Options { clock, ..redb_options(&ManualClock::new()) };
    let store = Redb::open_backend(disk.clone(), options)?;
    Ok(Coordinator::open(Arc::new(store), Arc::new(Walker(Handle::current())), Options::default()).await?)
}

async fn prepare(host: &Coordinator) -> Result<()> {
    let patient = "deadline = \"10m\"\nretry    = { attempts = 1000, first = \"1ms\", max = \"5ms\" }";
    let source = COUNTED.replace("deadline = \"10m\"", patient);
    let report = interlock_manifest::parse("machine.toml", &source);
    let manifest = report.manifest.with_context(|| format!("{:?}", report.problems))?;
    let (digest, component) = (Digest::of(&[source.as_bytes()]), Some(Digest::of(&[b"walker"])));
    let deploy = Deploy { machine: Arc::new(manifest.machine), digest, component, source };
    host.submit(by_client(Verb::Deploy(Box::new(deploy)))).await?;
    for nth in 0..ENTITIES {
        let create = Create {
            entity: entity(nth)?,
            desired: None,
            labels: BTreeMap::new(),
            on_existing: OnExisting::Same,
            event: None,
        };
        host.submit(by_client(Verb::Create(Box::new(create)))).await?;
    }
    Ok(())
}

fn entity(nth: u64) -> Result<EntityId> {
    Ok(format!("counted/{nth}").parse()?)
}

/// Sends an event until it is answered; true if it was taken.
async fn deliver(host: &Coordinator, to: &EntityId, id: &str) -> Result<bool> {
    loop {
        let event =
            Event { id: id.parse()?, name: "later".parse()?, payload: None, expect: Expect::default(), checked: None };
        match host.submit(by_client(Verb::Deliver { entity: to.clone(), event: Box::new(event) })).await {
            Ok(Outcome::Answered { answer, .. }) => {
                ensure!(matches!(answer.kind, AnswerKind::Accepted | AnswerKind::Queued), "{answer:?}");
                return Ok(true);
            }
            Err(SubmitError::Rejected(_)) => return Ok(false),
            Err(SubmitError::Store(StoreError::Unavailable { .. } | StoreError::Indeterminate { .. })) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            other => anyhow::bail!("{id} was answered {other:?}"),
        }
    }
}

#[test]
fn executions_survive_failing_writes_lost_syncs_and_power_cuts() -> Result<()> {
    run(async {
        let mut random = Random::new(SEED);
        let mut disk = SimDisk::new();
        let mut host = open(&disk).await?;
        prepare(&host).await?;
        let mut taken = vec![Vec::new(); usize::try_from(ENTITIES)?];
        let mut cuts = 0;
        for round in 0..ROUNDS {
            match random.below(10) {
                0..=2 => disk.fail_write_after(random.below(12)),
                3 => disk.fail_next_sync(true),
                4 => disk.fail_next_sync(false),
                5 => {
                    let wreck = disk.wreck();
                    disk.die();
                    drop(host);
                    disk = wreck.after_power_cut(random.number());
                    host = open(&disk).await.with_context(|| format!("after the power cut of round {round}"))?;
                    cuts += 1;
                }
                _nothing_this_time => {}
            }
            let nth = random.below(ENTITIES);
            let id = format!("e{round}");
            if deliver(&host, &entity(nth)?, &id).await? {
                taken[usize::try_from(nth)?].push(id);
            }
        }
        ensure!(cuts > 3, "{cuts} power cuts");
        for (nth, sent) in taken.iter().enumerate() {
            let id = entity(u64::try_from(nth)?)?;
            settled(&host, &id, sent).await.with_context(|| id.to_string())?;
        }
        host.stop(Duration::from_secs(1)).await?;
        let options = redb_options(&ManualClock::new());
        ensure!(audit_store(Arc::new(Redb::open_backend(disk, options)?)).await? as u64 == ENTITIES);
        Ok(())
    })
}

/// At rest, with every event taken once and every step counted once.
async fn settled(host: &Coordinator, id: &EntityId, sent: &[String]) -> Result<()> {
    let view = loop {
        let view = host.entity(id).await?.context("the entity")?;
        if view.head.lock.is_none() && view.head.inbox.length == 0 {
            break view;
        }
        ensure!(view.head.park.is_none(), "{:?}", view.head.park);
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let mut entries = Vec::new();
    let mut before = None;
    loop {
        let page = host.history(id, None, before, 500).await?.context("its history")?;
        entries.extend(page.entries);
        before = page.before;
        if before.is_none() {
            break;
        }
    }
    let mut events: Vec<_> = entries
        .iter()
        .filter(|entry| matches!(entry.what, What::Event(_)))
        .filter_map(|entry| entry.event.as_ref().map(ToString::to_string))
        .collect();
    events.reverse();
    ensure!(events == sent, "sent {sent:?}, taken {events:?}");
    let data = view.documents.data.context("data")?.value().clone();
    for field in ["taken", "s1", "s2", "s3", "s4", "s5"] {
        ensure!(data[field] == sent.len(), "{} events, and {data}", sent.len());
    }
    Ok(())
}

/// The whole daemon, where no file can grow any more: without a restart it reads on, and writes again once there
/// is room.
#[cfg(target_os = "linux")]
#[test]
fn a_daemon_on_a_full_disk_reads_on_and_writes_again_once_there_is_room() -> Result<()> {
    const ROOM: u64 = 12 << 20;
    run(async {
        let mut host = start_unkilled(Setup { file_bytes_max: Some(ROOM), ..Setup::default() }).await?;
        host.api().deploy(PLAIN, None).await?;
        let text = "x".repeat(200 << 10);
        let create = |nth: usize| {
            let body = json!({ "machine": "plain", "key": nth.to_string(), "desired": { "text": text } });
            let api = host.api();
            async move { api.post("/v1/entities", body).await }
        };
        let mut made = 0;
        let full = loop {
            let reply = create(made).await?;
            if reply.status != 201 {
                break reply;
            }
            made += 1;
            ensure!(made < 1_000, "the disk is never full");
        };
        ensure!(made > 3 && full.status == 503, "after {made}: {full:?}");
        ensure!(full.body["code"] == "indeterminate" || full.retry_after.is_some(), "{full:?}");
        for round in 0..3 {
            for nth in 0..made {
                let entity =
                    host.api().entity(&format!("plain/{nth}")).await.with_context(|| format!("round {round}"))?;
                ensure!(entity["version"] == 1 && entity["generation"] == 1, "{entity}");
            }
            let again = create(made).await?;
            ensure!(again.status == 503, "{again:?}");
        }
        host.make_room().await?;
        // The same request, until the host has noticed.
        while create(made).await?.status == 503 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        host.api().send("plain/0", "e1", event("note")).await?.done()?;
        host.api().get("/readyz").await?.done()?;
        host.crash().await?;
        ensure!(host.api().entity(&format!("plain/{made}")).await?["generation"] == 1);
        host.stop().await?;
        ensure!(audit(&host.data()).await? == made + 1);
        Ok(())
    })
}
