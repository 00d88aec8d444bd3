//! Whole durable steps: the Rust no-op guest through runtime, coordinator and redb. And the run of a
//! step by itself, on a store without a disk.

use crate::bed::{Bed, MACHINE, jobs_per_batch, redb};
use crate::load::{self, Pick, STEPS};
use crate::report::{Group, Row};
use crate::spread::{Times, rate};
use crate::transitions::{WARM_UP, row_name};
use anyhow::{Context as _, Result};
use interlock_coordinator::{Attempt, Executor};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::EntityId;
use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
use interlock_store::{Mem, Store, SystemClock};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) const TITLE: &str = "whole durable steps: the no-op Rust guest, coordinator and redb";
pub(crate) const START_TITLE: &str = "one whole run of the no-op step, without the commit";
pub(crate) const START_ROW: &str = "store, instance, call, drop";

/// WebAssembly for the whole process: the pool reserves address space, so there is one.
pub(crate) struct Guests {
    engines: Engines,
    component: Vec<u8>,
}

impl Guests {
    /// Builds the no-op guest if need be, and the engines.
    pub(crate) fn new(sizes: &[usize]) -> Result<Self> {
        let path = interlock_support::guest(MACHINE)?;
        let component = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let executions_max = sizes.iter().max().and_then(|most| u32::try_from(*most).ok()).unwrap_or(64);
        let engines = Engines::new(EngineOptions { executions_max, ..EngineOptions::default() })?;
        Ok(Self { engines, component })
    }

    async fn executor(&self, data: &Path) -> Result<(Wasm, Digest)> {
        let library = Library::open(&self.engines, data)?;
        let added = library.add(self.component.clone()).await?;
        Ok((Wasm::new(library), added.digest))
    }
}

/// At each number of entities.
pub(crate) async fn measure(guests: &Guests, dir: &Path, sizes: &[usize], within: Duration) -> Result<Group> {
    let mut rows = Vec::new();
    for &size in sizes {
        rows.push(at_size(guests, &dir.join(format!("steps-{size}")), size, within).await?);
    }
    Ok(Group {
        title: TITLE,
        note:
            "each entity: an event, 5 chained steps, the next event; a step is from its start to the start of the next"
                .to_owned(),
        rows,
    })
}

async fn at_size(guests: &Guests, dir: &Path, entities: usize, within: Duration) -> Result<Row> {
    let store = redb(dir)?;
    let (wasm, component) = guests.executor(dir).await?;
    let executor = Watched::new(wasm.clone());
    let bed = Bed::open(store.clone(), Arc::new(executor.clone()), entities).await?;
    bed.deploy(Some(component)).await?;
    bed.fill(0, entities).await?;
    load::run(&bed, entities, Pick::Own, WARM_UP).await?;
    executor.take();
    let (before, runs_before) = (store.stats(), wasm.runs());
    let ran = load::run(&bed, entities, Pick::Own, within).await?;
    let (per_second, cpu) = (rate(ran.steps(), ran.took), ran.cpu_us_per_step());
    let (step, execution) = (executor.take().spread(), ran.executions.spread());
    let (jobs, runs) = (jobs_per_batch(&store, &before)?, wasm.runs());
    bed.stop().await?;
    let run = (runs.ran - runs_before.ran).saturating_sub(runs.waited - runs_before.waited);
    let count = u32::try_from(runs.runs - runs_before.runs).unwrap_or(u32::MAX).max(1);
    Ok(Row::new(
        row_name(entities),
        &[
            ("steps_per_s", per_second),
            ("p50_us", step.p50_us),
            ("p99_us", step.p99_us),
            ("execution_p50_us", execution.p50_us),
            ("jobs_per_batch", jobs),
            ("cpu_us_per_step", cpu),
            ("run_mean_us", run.as_secs_f64() * 1e6 / f64::from(count)),
        ],
    ))
}

/// The run alone: what the runtime says it spent, less what it waited for the coordinator's answers.
pub(crate) async fn start(guests: &Guests, dir: &Path, executions: usize) -> Result<Group> {
    let (wasm, component) = guests.executor(&dir.join("start")).await?;
    let store: Arc<dyn Store> = Arc::new(Mem::new(Arc::new(SystemClock::new())));
    let bed = Bed::open(store, Arc::new(wasm.clone()), 1).await?;
    bed.deploy(Some(component)).await?;
    bed.fill(0, 1).await?;
    let entity = bed.entity(0)?;
    let mut times = Times::default();
    for nth in 0..executions + executions / 10 {
        let before = wasm.runs();
        bed.run_to_rest(&entity).await?;
        let until = before.runs + STEPS as u64;
        // The last attempt is counted right behind the news of the rest.
        while wasm.runs().runs < until {
            tokio::task::yield_now().await;
        }
        let now = wasm.runs();
        let run = (now.ran - before.ran).saturating_sub(now.waited - before.waited);
        if nth >= executions / 10 {
            times.push(run / STEPS as u32);
        }
    }
    bed.stop().await?;
    let count = times.count();
    let spread = times.spread();
    Ok(Group {
        title: START_TITLE,
        note: format!("one at a time on the store in memory; the mean of {STEPS} steps, {count} times"),
        rows: vec![Row::new(
            START_ROW,
            &[("p50_us", spread.p50_us), ("p99_us", spread.p99_us), ("max_us", spread.max_us)],
        )],
    })
}

/// Notes when attempts start, on their way to WebAssembly. Clones are the same one.
#[derive(Clone)]
struct Watched {
    wasm: Wasm,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    last: HashMap<EntityId, Instant>,
    steps: Times,
}

impl Watched {
    fn new(wasm: Wasm) -> Self {
        Self { wasm, seen: Arc::default() }
    }

    fn take(&self) -> Times {
        std::mem::take(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner).steps)
    }
}

impl Executor for Watched {
    fn start(&self, attempt: Attempt) {
        let start = attempt.start();
        let (entity, now) = (&start.claim.execution.entity, Instant::now());
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = &mut *seen;
            match seen.last.get_mut(entity) {
                None => drop(seen.last.insert(entity.clone(), now)),
                Some(last) => {
                    // Before the first step is a client, not a step.
                    if start.state.as_str() != "s1" {
                        seen.steps.push(now.duration_since(*last));
                    }
                    *last = now;
                }
            }
        }
        self.wasm.start(attempt);
    }
}
