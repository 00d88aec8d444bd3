//! What reaches beyond one entity: leases of clients, requests to a sink on loopback, and timers that fire among a
//! million that do not.

use crate::bed::redb;
use crate::hardware::resident_kib;
use crate::report::{Group, Row};
use crate::scripted::AtOnce;
use crate::spread::{Times, number, rate};
use anyhow::{Context as _, Result, bail};
use interlock_coordinator::{Attempt, Coordinator, Courier, Ended, Executor, Options};
use interlock_courier::{Allowed, Destination, Method, Outbound, Pattern};
use interlock_kernel::command::{
    Acquire, Change, Command, Create, Deploy, OnExisting, Outcome, Said, Sending, Stage, StagedEffect, Tried, Verb,
};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{EntityId, LeaseName, Principal};
use interlock_kernel::record::{Expect, Terms};
use interlock_kernel::view::Event;
use interlock_store::{BoxFuture, Store as _};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Commands under way at once while a store is filled.
const FILLING: usize = 1_024;
/// Entities whose timers fire while they are watched.
const FIRING: usize = 10_000;

async fn submit(host: &Coordinator, verb: Verb) -> Result<Outcome> {
    Ok(host.submit(Command { by: Principal::local(), verb }).await?)
}

async fn deploy(host: &Coordinator, source: &str) -> Result<()> {
    let report = interlock_manifest::parse("machine.toml", source);
    let Some(manifest) = &report.manifest else {
        bail!("{}", interlock_manifest::render(&report, false));
    };
    let deploy = Deploy {
        machine: Arc::new(manifest.machine.clone()),
        digest: Digest::of(&[source.as_bytes()]),
        component: None,
        source: source.to_owned(),
    };
    submit(host, Verb::Deploy(Box::new(deploy))).await.map(drop)
}

fn go(payload: Option<Doc>) -> Result<Event> {
    let (id, name) = ("go".parse().context("an event id")?, "go".parse().context("an event's name")?);
    Ok(Event { id, name, payload, expect: Expect::default(), checked: None })
}

fn create(key: &str, payload: Option<Doc>) -> Result<Verb> {
    let entity: EntityId = format!("outside/{key}").parse().context("an entity")?;
    let event = Some(go(payload)?);
    let create = Create { entity, desired: None, labels: BTreeMap::new(), on_existing: OnExisting::Fail, event };
    Ok(Verb::Create(Box::new(create)))
}

/// Takes and gives back, each client its own lease.
pub(crate) async fn leases(dir: &Path, sizes: &[usize], within: Duration) -> Result<Group> {
    let mut rows = Vec::new();
    for &clients in sizes {
        let store = redb(&dir.join(format!("leases-{clients}")))?;
        let executor = Arc::new(AtOnce::new(tokio::runtime::Handle::current()));
        let host = Arc::new(Coordinator::open(store, executor, Options::default()).await?);
        let (stop, began) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let tasks: Vec<_> = (0..clients)
            .map(|nth| {
                let (host, stop) = (host.clone(), stop.clone());
                tokio::spawn(async move { client(&host, nth, &stop).await })
            })
            .collect();
        tokio::time::sleep(within).await;
        stop.store(true, Ordering::Release);
        let mut pairs = Times::default();
        for task in tasks {
            pairs.append(&mut task.await.context("a client panicked")??);
        }
        let (count, took) = (pairs.count(), began.elapsed());
        let spread = pairs.spread();
        host.stop(Duration::from_secs(10)).await?;
        let figures = [("pairs_per_s", rate(count, took)), ("p50_us", spread.p50_us), ("p99_us", spread.p99_us)];
        rows.push(Row::new(format!("{clients} clients"), &figures));
    }
    let note = "each client takes its own lease and gives it back: two durable commits".to_owned();
    Ok(Group { title: "leases: acquire and release", note, rows })
}

async fn client(host: &Coordinator, nth: usize, stop: &AtomicBool) -> Result<Times> {
    let lease: LeaseName = format!("bench/{nth}").parse().context("a lease's name")?;
    let terms = Terms { ttl_ms: 30_000, hold_ms: 60_000, delay_ms: 0 };
    let mut times = Times::default();
    while !stop.load(Ordering::Acquire) {
        let grant: interlock_kernel::ids::GrantId = format!("grant-{nth}").parse().context("a grant")?;
        let began = Instant::now();
        let ask = Acquire { lease: lease.clone(), grant: grant.clone(), label: String::new(), terms, wait_ms: None };
        let Outcome::Leased { claim, new: true, .. } = submit(host, Verb::Acquire(Box::new(ask))).await? else {
            bail!("expected a new grant of {lease}");
        };
        let token = claim.token.get();
        submit(host, Verb::Release { lease: lease.clone(), grant, token }).await?;
        times.push(began.elapsed());
    }
    Ok(times)
}

fn asking(url: &str) -> String {
    format!(
        r#"
machine   = "outside"
owner     = "bench <bench@example.com>"
component = "none.wasm"
initial   = "idle"
desired.schema = false
data.schema    = false
outputs.schema = false
events.go.schema = {{}}
targets.sink = {{ url = "{url}/{{n}}", on_late = "event" }}
[states.idle]
kind  = "rest"
on.go = {{ to = "asking" }}
[states.asking]
step     = "ask"
to       = ["waiting"]
deadline = "1h"
[states.waiting]
deadline = "1h"
on.effect-done   = {{ to = "asking" }}
on.effect-failed = {{ to = "idle" }}
"#
    )
}

/// Stages one request and waits for what comes of it, again and again.
struct Asker {
    runtime: tokio::runtime::Handle,
    stop: Arc<AtomicBool>,
}

impl Executor for Asker {
    fn start(&self, attempt: Attempt) {
        let stop = self.stop.clone();
        self.runtime.spawn(async move {
            if stop.load(Ordering::Acquire) {
                return; // the host is about to be stopped
            }
            let fill = BTreeMap::from([("n".to_owned(), attempt.version().get().to_string())]);
            let (Ok(target), Ok(to)) = ("sink".parse(), "waiting".parse()) else { return };
            let effect = StagedEffect { target, fill, headers: Vec::new(), body: None };
            let stage = Stage { effects: vec![effect], ..Stage::default() };
            // Refused or not: what came back is counted at the sink.
            let _ = attempt.transition(to, Change { stage, ..Change::default() }).await;
            attempt.finish(Ended::Returned);
        });
    }
}

/// The product's courier, one connection for each try.
struct Carrier(interlock_courier::Courier);

impl Courier for Carrier {
    fn send<'a>(&'a self, sending: &'a Sending) -> BoxFuture<'a, Tried> {
        Box::pin(async move {
            let refused = |reason: String| Tried::Refused { reason };
            let declared = match Pattern::parse(&sending.target.url) {
                Ok(declared) => declared,
                Err(why) => return refused(why.to_string()),
            };
            let url = match Destination::parse(&sending.effect.url) {
                Ok(url) => url,
                Err(why) => return refused(why.to_string()),
            };
            let outbound = Outbound {
                target: sending.effect.target.to_string(),
                declared,
                method: Method::Post,
                url,
                headers: vec![("Idempotency-Key".to_owned(), sending.effect.key.clone())],
                body: None,
                secret: None,
                timeout: Duration::from_secs(10),
                answer_bytes_max: 1_024,
            };
            match self.0.send(&outbound).await {
                Ok(answer) => Tried::Done(Said { status: answer.status, body: None, truncated: answer.truncated }),
                Err(error) => Tried::Again { after_ms: None, reason: error.to_string(), maybe_sent: true },
            }
        })
    }
}

/// Answers 204 to whatever it is sent, and counts.
async fn sink() -> Result<(String, Arc<AtomicUsize>)> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let (url, count) = (format!("http://{}", listener.local_addr()?), Arc::new(AtomicUsize::new(0)));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 4_096];
                // One request of one packet on each connection.
                if stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                    counted.fetch_add(1, Ordering::Relaxed);
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await;
                }
            });
        }
    });
    Ok((url, count))
}

/// Whole rounds: a step stages a request, it is committed, made, and its result begins the next step.
pub(crate) async fn effects(dir: &Path, sizes: &[usize], within: Duration) -> Result<Group> {
    let mut rows = Vec::new();
    for &entities in sizes {
        let (url, count) = sink().await?;
        let configuration = format!(
            "[effects]\nnetworks = [\"127.0.0.0/8\"]\n[[effects.allow]]\nurl = \"{url}/*\"\nmethods = [\"POST\"]\n"
        );
        let allowed = Allowed::parse(Path::new("bench.toml"), &configuration, &[])?;
        let courier: Arc<dyn Courier> = Arc::new(Carrier(interlock_courier::Courier::new(allowed)?));
        let stop = Arc::new(AtomicBool::new(false));
        let executor = Arc::new(Asker { runtime: tokio::runtime::Handle::current(), stop: stop.clone() });
        let options = Options { executions_max: entities, courier: Some(courier), ..Options::default() };
        let host = Coordinator::open(redb(&dir.join(format!("effects-{entities}")))?, executor, options).await?;
        deploy(&host, &asking(&url)).await?;
        for nth in 0..entities {
            submit(&host, create(&nth.to_string(), None)?).await?;
        }
        let (before, began) = (count.load(Ordering::Relaxed), Instant::now());
        tokio::time::sleep(within).await;
        let (made, took) = (count.load(Ordering::Relaxed) - before, began.elapsed());
        stop.store(true, Ordering::Release);
        host.stop(Duration::from_secs(2)).await?;
        rows.push(Row::new(format!("{entities} entities"), &[("effects_per_s", rate(made, took))]));
    }
    let note =
        "each: a step stages a request, four durable commits, HTTP on a connection of its own; 8 of a target at a time"
            .to_owned();
    Ok(Group { title: "effects to a sink on loopback", note, rows })
}

const WAITING: &str = r#"
machine = "outside"
owner   = "bench <bench@example.com>"
initial = "idle"
desired.schema = false
data.schema    = false
outputs.schema = false
events.go.schema = { required = ["at"], properties.at = { type = "integer" } }
[states.idle]
kind  = "rest"
on.go = { to = "held" }
[states.held]
after = { at = "event.at", name = "wake", to = "idle" }
"#;

/// Timers that fire together while others wait for a year.
pub(crate) async fn timers(dir: &Path, sizes: &[usize]) -> Result<Group> {
    let mut rows = Vec::new();
    for &pending in sizes {
        let store = redb(&dir.join(format!("timers-{pending}")))?;
        let executor = Arc::new(AtOnce::new(tokio::runtime::Handle::current()));
        let host = Arc::new(Coordinator::open(store.clone(), executor, Options::default()).await?);
        deploy(&host, WAITING).await?;
        let far = store.now().wall_ms + 365 * 86_400_000;
        let before = resident_kib();
        fill(&host, "far", pending, far).await?;
        let grown = resident_kib().saturating_sub(before);
        // All of them at one moment, once they are all there.
        let near = store.now().wall_ms + 3_000 + i64::try_from(FIRING / 4)?;
        fill(&host, "near", FIRING, near).await?;
        let scanned = host.stats().scanned;
        let late = near - store.now().wall_ms;
        anyhow::ensure!(late > 0, "filling took {} ms longer than the timers wait", -late);
        tokio::time::sleep(Duration::from_millis(u64::try_from(late)?)).await;
        let began = Instant::now();
        while host.stats().timers < u64::try_from(FIRING)? {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let took = began.elapsed();
        let scanned = host.stats().scanned - scanned;
        host.stop(Duration::from_secs(10)).await?;
        let figures = [
            ("fired_per_s", rate(FIRING, took)),
            ("last_late_ms", took.as_secs_f64() * 1e3),
            ("entries_read", number(usize::try_from(scanned)?)),
            ("grown_mib", number(usize::try_from(grown)?) / 1024.0),
        ];
        rows.push(Row::new(format!("{pending} pending"), &figures));
    }
    let note = format!("{FIRING} timers due at one moment; the others are due in a year");
    Ok(Group { title: "timers that fire, by timers that do not", note, rows })
}

async fn fill(host: &Arc<Coordinator>, name: &'static str, count: usize, at_ms: i64) -> Result<()> {
    let payload = Doc::parse(&format!("{{\"at\":{at_ms}}}"))?;
    let tasks: Vec<_> = (0..FILLING.min(count))
        .map(|first| {
            let (host, payload) = (host.clone(), payload.clone());
            tokio::spawn(async move {
                for nth in (first..count).step_by(FILLING) {
                    submit(&host, create(&format!("{name}-{nth}"), Some(payload.clone()))?).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await.context("a creating client panicked")??;
    }
    Ok(())
}
