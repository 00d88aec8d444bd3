//! One boot on a store that grows: what the restart took, what more entities cost, and then work in
//! flight for a kill. A process of its own, so that it can be killed and its memory be read.

use crate::bed::{Bed, jobs_per_batch, redb};
use crate::hardware::resident_kib;
use crate::load::{self, Pick, STEPS};
use crate::scripted::AtOnce;
use crate::spread::rate;
use crate::transitions::WARM_UP;
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Clients of the load, and slots.
const CLIENTS: usize = 64;

/// Clients that put work in flight.
const SENDERS: usize = 256;

/// A recovery that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(300);

/// What one boot is to do.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Plan {
    /// The data directory.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Entities that the last boot left.
    #[arg(long)]
    pub(crate) from: usize,
    /// Attempts that the last boot left open.
    #[arg(long)]
    pub(crate) orphans: usize,
    /// Entities to fill up to; none is the end after the restart.
    #[arg(long)]
    pub(crate) to: Option<usize>,
    /// How long to run the load, in ms.
    #[arg(long)]
    pub(crate) load_ms: u64,
    /// Attempts to leave open.
    #[arg(long)]
    pub(crate) in_flight: usize,
}

/// What one boot found.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Boot {
    pub(crate) restart: Restart,
    pub(crate) grown: Option<Grown>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Restart {
    pub(crate) file_mib: f64,
    /// redb's repair and the first reads.
    pub(crate) open_ms: f64,
    pub(crate) reads: f64,
    pub(crate) read_mib: f64,
    /// From there to an open session.
    pub(crate) session_ms: f64,
    /// From the beginning to the first orphan's durable transition.
    pub(crate) first_step_ms: Option<f64>,
    /// From the beginning until every orphan's execution was over.
    pub(crate) all_ms: f64,
    /// Index entries and heads looked at to find the orphans.
    pub(crate) scanned: f64,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Grown {
    pub(crate) creates_per_s: f64,
    /// Resident memory in KiB, before filling, after half and after all of it.
    pub(crate) resident_kib: [f64; 3],
    pub(crate) resident_loaded_kib: f64,
    pub(crate) steps_per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) jobs_per_batch: f64,
}

/// Boots, grows, loads; prints what it found as one line; then keeps work in flight until it is killed.
pub(crate) async fn run(plan: Plan) -> Result<()> {
    let began = Instant::now();
    let file = plan.dir.join("store.redb");
    let file_mib = std::fs::metadata(file).map_or(0.0, |meta| mib(meta.len()));
    let store = redb(&plan.dir)?;
    let opened = Instant::now();
    let executor = AtOnce::new(Handle::current());
    let bed = Bed::open(store.clone(), Arc::new(executor.clone()), CLIENTS).await?;
    let session = Instant::now();
    let orphans = plan.orphans * STEPS;
    while executor.look(|log| log.transitions.count()) < orphans {
        if began.elapsed() > PATIENCE {
            bail!("expected {orphans} transitions of orphans, got {}", executor.look(|log| log.transitions.count()));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (all, log, stats) = (began.elapsed(), executor.take_log(), bed.stats());
    let opening = store.stats();
    let restart = Restart {
        file_mib,
        open_ms: ms(opened - began),
        reads: figure(opening.opening_reads),
        read_mib: mib(opening.opening_read_bytes),
        session_ms: ms(session - opened),
        first_step_ms: log.first.map(|first| ms(first - began)),
        all_ms: ms(all),
        scanned: figure(stats.scanned),
    };
    if stats.recovered != plan.orphans as u64 {
        bail!("expected {} orphans to be recovered, got {}", plan.orphans, stats.recovered);
    }
    bed.deploy(None).await?;
    let grown = match plan.to {
        Some(to) => Some(grow(&bed, &store, &executor, &plan, to).await?),
        None => None,
    };
    if plan.to.is_some() {
        executor.hold();
        in_flight(&bed, plan.in_flight).await?;
    }
    let line = serde_json::to_string(&Boot { restart, grown })?;
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    out.flush()?;
    // Killed here; or the parent is gone.
    let waited = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await;
    waited.context("wait for the end")?.context("wait for the end")?;
    std::process::exit(0);
}

async fn grow(
    bed: &Arc<Bed>,
    store: &interlock_store::Redb,
    executor: &AtOnce,
    plan: &Plan,
    to: usize,
) -> Result<Grown> {
    let before = resident_kib();
    let began = Instant::now();
    let half = plan.from.midpoint(to);
    bed.fill(plan.from, half).await?;
    let at_half = resident_kib();
    bed.fill(half, to).await?;
    let filled = began.elapsed();
    let full = resident_kib();

    load::run(bed, CLIENTS, Pick::Random(to), WARM_UP).await?;
    executor.take_log();
    let stats = store.stats();
    let ran = load::run(bed, CLIENTS, Pick::Random(to), Duration::from_millis(plan.load_ms)).await?;
    let (steps_per_s, transitions) = (rate(ran.steps(), ran.took), executor.take_log().transitions.spread());
    Ok(Grown {
        creates_per_s: rate(to - plan.from, filled),
        resident_kib: [before, at_half, full].map(figure),
        resident_loaded_kib: figure(resident_kib()),
        steps_per_s,
        p50_us: transitions.p50_us,
        p99_us: transitions.p99_us,
        jobs_per_batch: jobs_per_batch(store, &stats)?,
    })
}

/// Starts one execution of each of the first entities; nobody moves them.
async fn in_flight(bed: &Arc<Bed>, count: usize) -> Result<()> {
    let mut tasks = Vec::new();
    for nth in 0..SENDERS.min(count) {
        let bed = bed.clone();
        tasks.push(tokio::spawn(async move {
            for nth in (nth..count).step_by(SENDERS) {
                bed.go(&bed.entity(nth)?).await?;
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await.context("a sender panicked")??;
    }
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn figure(count: u64) -> f64 {
    crate::spread::bytes(count)
}

fn mib(count: u64) -> f64 {
    figure(count) / f64::from(1 << 20)
}
