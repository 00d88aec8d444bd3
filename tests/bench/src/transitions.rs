//! Transitions through the coordinator without WebAssembly, and the same keys and bytes through redb
//! alone.

use crate::bed::{Bed, jobs_per_batch, redb};
use crate::load::{self, Pick, STEPS};
use crate::raw;
use crate::report::{Group, Row};
use crate::scripted::{AtOnce, ByHand};
use crate::spread::rate;
use crate::tape::{Recorder, Tape, Taped};
use anyhow::{Result, bail};
use interlock_store::{Lane, Mem, SystemClock};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Entities that run at once, and the batch that redb alone is given: as many commands wait for a
/// commit as entities run.
pub(crate) const SIZES: [usize; 4] = [1, 16, 64, 256];

pub(crate) const TITLE: &str = "transitions through the coordinator and redb, without WebAssembly";

/// Before each measurement, so that files and tables have their size.
pub(crate) const WARM_UP: Duration = Duration::from_millis(300);

/// redb alone, at each size.
pub(crate) async fn raw(dir: &Path, sizes: &[usize], jobs_wanted: usize) -> Result<Group> {
    let mut rows = Vec::new();
    for (nth, &size) in sizes.iter().enumerate() {
        // A lone writer commits once per job: fewer of them, or it takes a minute.
        let wanted = if size == 1 { jobs_wanted / 8 } else { jobs_wanted };
        let (before, jobs) = record(size, wanted.div_ceil(size * (STEPS + 1))).await?;
        if nth == 0 {
            rows.push(raw::sizes("a transition writes", &jobs, Lane::Completion));
            rows.push(raw::sizes("an event writes", &jobs, Lane::Admission));
        }
        rows.push(raw::measure(dir, &before, &jobs, size)?);
    }
    Ok(Group {
        title: raw::TITLE,
        note: "recorded from the coordinator: executions of 1 event and 5 transitions, entities in turn".to_owned(),
        rows,
    })
}

/// What the coordinator writes: up to the creates, then rounds of executions, entities in turn.
async fn record(entities: usize, rounds: usize) -> Result<(Vec<Taped>, Vec<Taped>)> {
    let tape = Tape::default();
    let store = Recorder { inner: Mem::new(Arc::new(SystemClock::new())), tape: tape.clone() };
    let executor = ByHand::default();
    let bed = Bed::open(Arc::new(store), Arc::new(executor.clone()), entities).await?;
    bed.deploy(None).await?;
    bed.fill(0, entities).await?;
    let before = tape.take();
    for _ in 0..rounds {
        for nth in 0..entities {
            bed.go(&bed.entity(nth)?).await?;
        }
        for _ in 0..STEPS {
            let moved = executor.move_all().await?;
            if moved != entities {
                bail!("expected {entities} attempts, got {moved}");
            }
        }
    }
    let jobs = tape.take();
    let expected = entities * rounds * (STEPS + 1);
    if jobs.len() != expected {
        bail!("expected {expected} commits, got {}", jobs.len());
    }
    Ok((before, jobs))
}

/// The coordinator on redb, at each size.
pub(crate) async fn measure(dir: &Path, sizes: &[usize], within: Duration) -> Result<Group> {
    let mut rows = Vec::new();
    for &size in sizes {
        rows.push(at_size(&dir.join(format!("transitions-{size}")), size, within).await?);
    }
    Ok(Group {
        title: TITLE,
        note: "each entity: an event, 5 chained transitions, the next event; times are of one transition".to_owned(),
        rows,
    })
}

async fn at_size(dir: &Path, entities: usize, within: Duration) -> Result<Row> {
    let store = redb(dir)?;
    let executor = AtOnce::new(Handle::current());
    let bed = Bed::open(store.clone(), Arc::new(executor.clone()), entities).await?;
    bed.deploy(None).await?;
    bed.fill(0, entities).await?;
    load::run(&bed, entities, Pick::Own, WARM_UP).await?;
    executor.take_log();
    let before = store.stats();
    let ran = load::run(&bed, entities, Pick::Own, within).await?;
    let log = executor.take_log();
    let jobs = jobs_per_batch(&store, &before)?;
    bed.stop().await?;
    if let Some(why) = log.refused.first() {
        bail!("{} transitions were refused, the first: {why}", log.refused.len());
    }
    let (per_second, cpu) = (rate(ran.steps(), ran.took), ran.cpu_us_per_step());
    let (transition, execution) = (log.transitions.spread(), ran.executions.spread());
    Ok(Row::new(
        row_name(entities),
        &[
            ("steps_per_s", per_second),
            ("p50_us", transition.p50_us),
            ("p99_us", transition.p99_us),
            ("execution_p50_us", execution.p50_us),
            ("jobs_per_batch", jobs),
            ("cpu_us_per_step", cpu),
        ],
    ))
}

pub(crate) fn row_name(entities: usize) -> String {
    format!("{entities} x {STEPS}")
}
