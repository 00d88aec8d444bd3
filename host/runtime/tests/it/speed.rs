//! What a run costs, shown and not asserted: benchmarks measure it.

use crate::bed::{Bed, Time};
use anyhow::{Result, ensure};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_does_nothing_runs_in_microseconds() -> Result<()> {
    let bed = Bed::with("noop").await?;
    let mut before = bed.wasm.runs();
    let mut least = Duration::MAX;
    for round in 0..8 {
        for n in 0..40 {
            let entity = bed.create(&format!("noop/{round}-{n}"), "go", None).await?;
            let ending = bed.ending(&entity, "first", Time::BetweenAttempts).await?;
            ensure!(ending.state == "idle" && ending.failures.is_empty(), "{ending:?}");
        }
        let after = bed.wasm.runs();
        let runs = u32::try_from(after.runs - before.runs)?;
        let (ran, waited) = (after.ran - before.ran, after.waited - before.waited);
        least = least.min((ran - waited) / runs);
        before = after;
    }
    println!("a run takes {least:?} without waiting for commits");
    Ok(())
}
