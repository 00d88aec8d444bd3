//! The floor under everything durable: one small write and its sync, on the file system of the run.

use crate::report::{Group, Row};
use crate::spread::{Times, rate};
use anyhow::Result;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

/// About what one transition writes.
const RECORD_BYTES: usize = 450;

/// Zeros written before the measurement, so that no write has to change the file's length or extents.
const PREALLOCATED_BYTES: usize = 4 << 20;

pub(crate) const TITLE: &str = "append + fdatasync, 450 B";

/// Measures a file that grows and one that does not.
pub(crate) fn measure(dir: &Path, count: usize) -> Result<Group> {
    let growing = File::create(dir.join("growing"))?;
    let preallocated = OpenOptions::new().create_new(true).write(true).open(dir.join("preallocated"))?;
    preallocated.write_all_at(&vec![0; PREALLOCATED_BYTES], 0)?;
    preallocated.sync_all()?;
    Ok(Group {
        title: TITLE,
        note: String::new(),
        rows: vec![write("growing file", &growing, count)?, write("preallocated file", &preallocated, count)?],
    })
}

fn write(name: &str, file: &File, count: usize) -> Result<Row> {
    let record = [0x5a; RECORD_BYTES];
    let mut times = Times::default();
    let began = Instant::now();
    for nth in 0..count.min(PREALLOCATED_BYTES / RECORD_BYTES) {
        let from = Instant::now();
        file.write_all_at(&record, (nth * RECORD_BYTES) as u64)?;
        file.sync_data()?;
        times.push(from.elapsed());
    }
    let per_second = rate(times.count(), began.elapsed());
    let spread = times.spread();
    Ok(Row::new(name, &[("ops_per_s", per_second), ("p50_us", spread.p50_us), ("p99_us", spread.p99_us)]))
}
