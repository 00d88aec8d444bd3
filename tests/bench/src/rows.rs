//! Rows: updates, upserts and claims through the coordinator, the same keys and bytes through redb alone, a claim among
//! many that wait, and PostgreSQL's `SKIP LOCKED` queue where that server is installed.

use crate::bed::redb;
use crate::raw;
use crate::report::{Group, Row};
use crate::scripted::AtOnce;
use crate::spread::{Times, rate};
use crate::tape::{Recorder, Tape};
use anyhow::{Context as _, Result, bail};
use interlock_coordinator::{Coordinator, Options};
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::Principal;
use interlock_kernel::rows::{ClientRows, Declare, Order, RowAnswer, RowAsk, RowOp, RowsAsk};
use interlock_kernel::table::{Access, ClaimSpec, IndexSpec, Right, Table, Tie};
use interlock_kernel::value::{Filter, Mutation, Operation, Value};
use interlock_store::{Mem, Store, SystemClock};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Rows put in one request while a table is filled, and requests under way at once.
const AT_ONCE: usize = 50;
const FILLING: usize = 32;
/// Rows that wait before claims are measured.
const WAITING: usize = 100_000;
/// Claims of one client among many that wait.
const CLAIMS: usize = 2_000;

/// What is measured of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Update,
    Upsert,
    Claim,
}

impl Doing {
    const ALL: [Self; 3] = [Self::Update, Self::Upsert, Self::Claim];

    fn name(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Upsert => "upsert",
            Self::Claim => "claim of one",
        }
    }

    fn ask(self, client: usize) -> Result<RowAsk> {
        let key = Value::Json(Doc::new(json!(format!("counter-{client}"))));
        let more = Mutation {
            field: parse("row.n")?,
            operation: Operation::Increment,
            value: Value::Json(Doc::new(json!(1))),
        };
        Ok(match self {
            Self::Update => RowAsk::Update { key, filter: Filter::default(), set: vec![more] },
            Self::Upsert => {
                RowAsk::Upsert { key, insert: Doc::new(json!({ "n": 1 })), fill: Vec::new(), set: vec![more] }
            }
            Self::Claim => claim(1),
        })
    }
}

fn claim(limit: u32) -> RowAsk {
    RowAsk::Claim { filter: None, set: None, order: Order::default(), limit, delete: false }
}

fn parse<T: std::str::FromStr<Err = impl std::fmt::Display>>(text: &str) -> Result<T> {
    text.parse().map_err(|why| anyhow::anyhow!("{text}: {why}"))
}

fn op(what: RowAsk) -> Result<RowOp> {
    Ok(RowOp { table: parse("jobs")?, what, fields: Vec::new(), must: false })
}

async fn open(store: Arc<dyn Store>) -> Result<Arc<Coordinator>> {
    let executor = Arc::new(AtOnce::new(tokio::runtime::Handle::current()));
    let host = Coordinator::open(store, executor, Options::default()).await?;
    let every: BTreeSet<Right> = Right::ALL.into_iter().map(|(_, right)| right).collect();
    let by_status = IndexSpec { fields: vec![parse("row.status")?], tie: Tie::Created };
    let table = Table {
        name: parse("jobs")?,
        owner: "bench".to_owned(),
        schema: None,
        indexes: BTreeMap::from([(parse("by-status")?, by_status)]),
        claim: ClaimSpec::standard(),
        ttl: None,
        access: Access { machines: BTreeMap::new(), clients: every },
    };
    let declare = Declare { table: Arc::new(table), digest: Digest::of(&[b"jobs"]), source: String::new() };
    submit(&host, Verb::Declare(Box::new(declare))).await?;
    Ok(Arc::new(host))
}

async fn submit(host: &Coordinator, verb: Verb) -> Result<Outcome> {
    Ok(host.submit(Command { by: Principal::local(), verb }).await?)
}

async fn ask(host: &Coordinator, ops: Vec<RowOp>) -> Result<Vec<RowAnswer>> {
    let rows = ClientRows { ask: RowsAsk { require: Vec::new(), ops }, label: "bench".to_owned(), id: None };
    match submit(host, Verb::Rows(Box::new(rows))).await? {
        Outcome::Rows { answers, .. } => Ok(answers),
        other => bail!("expected answers about rows, got {other:?}"),
    }
}

fn put(key: String, value: serde_json::Value) -> Result<RowOp> {
    op(RowAsk::Put { key: Value::Json(Doc::new(key.into())), value: Doc::new(value), fill: Vec::new(), expect: None })
}

/// Rows that wait, by number.
async fn fill(host: &Arc<Coordinator>, from: usize, to: usize) -> Result<()> {
    let chunks: Vec<usize> = (from..to).step_by(AT_ONCE).collect();
    for together in chunks.chunks(FILLING) {
        let mut tasks = Vec::new();
        for &first in together {
            let host = host.clone();
            tasks.push(tokio::spawn(async move {
                let one = |n: usize| put(format!("job-{n:08}"), json!({ "n": n, "status": "pending" }));
                let ops: Result<Vec<RowOp>> = (first..to.min(first + AT_ONCE)).map(one).collect();
                ask(&host, ops?).await.map(drop)
            }));
        }
        for task in tasks {
            task.await.context("filling panicked")??;
        }
    }
    Ok(())
}

async fn seed(host: &Coordinator, clients: usize) -> Result<()> {
    for client in 0..clients {
        ask(host, vec![put(format!("counter-{client}"), json!({ "n": 0 }))?]).await?;
    }
    Ok(())
}

/// Each operation by so many clients, and redb alone with what it wrote.
pub(crate) async fn rates(dir: &Path, sizes: &[usize], within: Duration, raw_jobs: usize) -> Result<Group> {
    let mut rows = Vec::new();
    for doing in Doing::ALL {
        for &clients in sizes {
            let at = dir.join(format!("rows-{doing:?}-{clients}"));
            let host = open(redb(&at)?).await?;
            seed(&host, clients).await?;
            if doing == Doing::Claim {
                fill(&host, 0, WAITING).await?;
            }
            let (mut times, took) = load(&host, doing, clients, within).await?;
            host.stop(Duration::from_secs(10)).await?;
            let count = times.count();
            let spread = std::mem::take(&mut times).spread();
            let raw = alone(&at, doing, clients, raw_jobs).await?;
            let alone = raw.figures.iter().find(|(name, _)| *name == "commits_per_s").map_or(0.0, |(_, rate)| *rate);
            let per_second = rate(count, took);
            let figures = [
                ("per_s", per_second),
                ("p50_us", spread.p50_us),
                ("p99_us", spread.p99_us),
                ("raw_redb_per_s", alone),
                ("share_of_raw", per_second / alone.max(1.0)),
            ];
            rows.push(Row::new(format!("{}, {clients} clients", doing.name()), &figures));
        }
    }
    let note =
        "each client its own row; claims from 100,000 that wait, one index; raw redb is given the same keys and bytes";
    Ok(Group { title: "rows: update, upsert and claim", note: note.to_owned(), rows })
}

async fn load(host: &Arc<Coordinator>, doing: Doing, clients: usize, within: Duration) -> Result<(Times, Duration)> {
    let (stop, began) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let (host, stop) = (host.clone(), stop.clone());
            tokio::spawn(async move {
                let mut times = Times::default();
                while !stop.load(Ordering::Acquire) {
                    let from = Instant::now();
                    once(&host, doing, client).await?;
                    times.push(from.elapsed());
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    tokio::time::sleep(within).await;
    stop.store(true, Ordering::Release);
    let mut all = Times::default();
    for task in tasks {
        all.append(&mut task.await.context("a client panicked")??);
    }
    Ok((all, began.elapsed()))
}

async fn once(host: &Coordinator, doing: Doing, client: usize) -> Result<()> {
    let answer = ask(host, vec![op(doing.ask(client)?)?]).await?;
    match answer.first() {
        Some(RowAnswer::Claimed { rows, .. }) if rows.is_empty() => bail!("nothing is left to be claimed"),
        Some(RowAnswer::Updated { row: None, .. }) => bail!("expected a row that is there"),
        Some(_) => Ok(()),
        None => bail!("expected an answer"),
    }
}

/// The same operations recorded in memory, then their keys and bytes through redb alone, in batches of the clients.
async fn alone(at: &Path, doing: Doing, clients: usize, jobs: usize) -> Result<Row> {
    let tape = Tape::default();
    let store = Recorder { inner: Mem::new(Arc::new(SystemClock::new())), tape: tape.clone() };
    let host = open(Arc::new(store)).await?;
    seed(&host, clients).await?;
    let jobs = if clients == 1 { jobs / 8 } else { jobs };
    if doing == Doing::Claim {
        fill(&host, 0, WAITING.max(jobs)).await?;
    }
    let before = tape.take();
    for nth in 0..jobs {
        once(&host, doing, nth % clients).await?;
    }
    let recorded = tape.take();
    host.stop(Duration::from_secs(10)).await?;
    raw::measure(at, &before, &recorded, clients)
}

/// One claim after the other, among so many that wait.
pub(crate) async fn among(dir: &Path, sizes: &[usize]) -> Result<Group> {
    let mut rows = Vec::new();
    let host = open(redb(&dir.join("rows-among"))?).await?;
    let mut filled = 0;
    for &size in sizes {
        fill(&host, filled, size).await?;
        filled = size;
        let mut figures = Vec::new();
        for (name_p50, name_p99, limit) in [("one_p50_us", "one_p99_us", 1_u32), ("ten_p50_us", "ten_p99_us", 10)] {
            let mut times = Times::default();
            let claims = CLAIMS.min(size / 20);
            for _ in 0..claims {
                let from = Instant::now();
                let answer = ask(&host, vec![op(claim(limit))?]).await?;
                times.push(from.elapsed());
                let Some(RowAnswer::Claimed { rows: taken, .. }) = answer.first() else { bail!("expected a claim") };
                if taken.len() != limit as usize {
                    bail!("expected {limit} rows, got {}", taken.len());
                }
            }
            let spread = times.spread();
            figures.extend([(name_p50, spread.p50_us), (name_p99, spread.p99_us)]);
        }
        rows.push(Row::new(format!("{size} rows wait"), &figures));
    }
    host.stop(Duration::from_secs(10)).await?;
    let note = "one client; pending rows by insertion, one index".to_owned();
    Ok(Group { title: "rows: a claim among many", note, rows })
}
