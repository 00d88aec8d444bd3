//! Closed loops: as many clients as entities, each sending the next event as soon as its entity rests.

use crate::bed::Bed;
use crate::hardware::processor_time;
use crate::spread::{Times, share_us};
use anyhow::{Context as _, Result};
use interlock_kernel::ids::EntityId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Steps of one execution of the no-op machine.
pub(crate) const STEPS: usize = 5;

/// What a run of clients saw.
#[derive(Default)]
pub(crate) struct Ran {
    /// From the sending of each event to the news of the rest: one event and five steps.
    pub(crate) executions: Times,
    pub(crate) took: Duration,
    /// Of the whole process, the clients included.
    pub(crate) cpu: Duration,
}

impl Ran {
    pub(crate) fn cpu_us_per_step(&self) -> f64 {
        share_us(self.cpu, self.steps())
    }

    pub(crate) fn steps(&self) -> usize {
        self.executions.count() * STEPS
    }
}

/// Which entity a client sends its next event to.
#[derive(Clone)]
pub(crate) enum Pick {
    /// Its own, always.
    Own,
    /// Any of this many.
    Random(usize),
}

/// Runs `clients` for a while.
pub(crate) async fn run(bed: &Arc<Bed>, clients: usize, pick: Pick, within: Duration) -> Result<Ran> {
    let stop = Arc::new(AtomicBool::new(false));
    let (began, cpu) = (Instant::now(), processor_time());
    let mut tasks = Vec::new();
    for nth in 0..clients {
        let (bed, pick, stop) = (bed.clone(), pick.clone(), stop.clone());
        tasks.push(tokio::spawn(async move { client(&bed, nth, clients, pick, &stop).await }));
    }
    tokio::time::sleep(within).await;
    stop.store(true, Ordering::Release);
    let mut ran = Ran::default();
    for task in tasks {
        ran.executions.append(&mut task.await.context("a client panicked")??);
    }
    (ran.took, ran.cpu) = (began.elapsed(), processor_time() - cpu);
    Ok(ran)
}

async fn client(bed: &Bed, nth: usize, clients: usize, pick: Pick, stop: &AtomicBool) -> Result<Times> {
    let mut times = Times::default();
    let mut draw = nth as u64 + 1;
    while !stop.load(Ordering::Acquire) {
        let entity = match pick {
            Pick::Own => bed.entity(nth)?,
            Pick::Random(of) => bed.entity(share(&mut draw, nth, clients, of))?,
        };
        times.push(execute(bed, &entity).await?);
    }
    Ok(times)
}

/// A random entity out of this client's share, so that no two clients ever meet.
fn share(draw: &mut u64, nth: usize, clients: usize, of: usize) -> usize {
    // A linear congruential step; only its high bits are used (Knuth, MMIX).
    *draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let rows = (of / clients).max(1);
    let row = usize::try_from(*draw >> 33).unwrap_or(0) % rows;
    (row * clients + nth) % of
}

async fn execute(bed: &Bed, entity: &EntityId) -> Result<Duration> {
    let from = Instant::now();
    bed.run_to_rest(entity).await?;
    Ok(from.elapsed())
}
