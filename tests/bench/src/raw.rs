//! redb and nothing else: the keys and bytes that the coordinator's jobs wrote, committed in batches.
//!
//! This is the denominator of the targets. It is redb at its best: every batch is merged and sorted
//! before the clock starts, nothing is read, decided or answered.

use crate::hardware::processor_time;
use crate::report::Row;
use crate::spread::{Times, rate, share_us};
use crate::tape::{Taped, of_every_batch};
use anyhow::Result;
use interlock_store::{Bytes, Lane};
use redb::{Database, Durability, TableDefinition};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("kv");

/// As the store's own.
const CACHE_BYTES: usize = 128 * 1024 * 1024;

type Layer = BTreeMap<Vec<u8>, Option<Bytes>>;

pub(crate) const TITLE: &str = "raw redb, the keys and bytes of a step's transition";

/// Commits `jobs` in batches, over what `before` wrote.
pub(crate) fn measure(dir: &Path, before: &[Taped], jobs: &[Taped], batch: usize) -> Result<Row> {
    let path = dir.join(format!("raw-{batch}.redb"));
    let db = Database::builder().set_cache_size(CACHE_BYTES).create(&path)?;
    write(&db, &layer(before))?;
    let layers: Vec<_> = jobs.chunks(batch).map(layer).collect();
    let steps = jobs.iter().filter(|job| job.lane == Lane::Completion).count();

    let mut times = Times::default();
    let cpu = processor_time();
    let began = Instant::now();
    for layer in &layers {
        let from = Instant::now();
        write(&db, layer)?;
        times.push(from.elapsed());
    }
    let (took, cpu) = (began.elapsed(), processor_time() - cpu);
    drop(db);
    std::fs::remove_file(path)?;
    let spread = times.spread();
    Ok(Row::new(
        row_name(batch),
        &[
            ("commits_per_s", rate(jobs.len(), took)),
            ("steps_per_s", rate(steps, took)),
            ("batch_p50_us", spread.p50_us),
            ("batch_p99_us", spread.p99_us),
            ("cpu_us_per_step", share_us(cpu, steps)),
        ],
    ))
}

pub(crate) fn row_name(batch: usize) -> String {
    format!("batches of {batch}")
}

fn layer(jobs: &[Taped]) -> Layer {
    let writes = jobs.iter().flat_map(|job| job.writes.iter().cloned());
    writes.chain([of_every_batch()]).collect()
}

fn write(db: &Database, layer: &Layer) -> Result<()> {
    let mut txn = db.begin_write()?;
    txn.set_durability(Durability::Immediate)?;
    {
        let mut table = txn.open_table(TABLE)?;
        for (key, value) in layer {
            match value {
                Some(value) => table.insert(&**key, &**value)?,
                None => table.remove(&**key)?,
            };
        }
    }
    txn.commit()?;
    Ok(())
}

/// What one job of a lane writes, in the middle: the figures that decide how many pages it costs.
pub(crate) fn sizes(name: &str, jobs: &[Taped], lane: Lane) -> Row {
    let of_lane = || jobs.iter().filter(move |job| job.lane == lane);
    let count = crate::spread::number(of_lane().count().max(1));
    let sum =
        |measure: fn(&Taped) -> usize| of_lane().map(|job| crate::spread::number(measure(job))).sum::<f64>() / count;
    Row::new(
        name,
        &[
            ("puts", sum(|job| job.writes.iter().filter(|(_, value)| value.is_some()).count())),
            ("removals", sum(|job| job.writes.iter().filter(|(_, value)| value.is_none()).count())),
            ("key_bytes", sum(|job| job.writes.iter().map(|(key, _)| key.len()).sum())),
            (
                "value_bytes",
                sum(|job| job.writes.iter().map(|(_, value)| value.as_ref().map_or(0, |value| value.len())).sum()),
            ),
        ],
    )
}
