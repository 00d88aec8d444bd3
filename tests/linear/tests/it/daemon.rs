//! A short round against the real daemon, which is killed meanwhile.

use anyhow::{Context as _, Result, ensure};
use interlock_linear::rounds::{Run, run};
use interlock_support::host::Program;
use std::time::Duration;

/// No round may take longer.
const ROUND_MAX: Duration = Duration::from_secs(180);

#[test]
fn what_clients_hear_of_a_daemon_that_is_killed_has_an_order() -> Result<()> {
    interlock_support::guest("noop")?;
    let tmp = env!("CARGO_TARGET_TMPDIR");
    let program = Program { path: env!("CARGO_BIN_EXE_interlock-linear").into(), tmp: tmp.into() };
    let asked = Run { program, rounds: 1, kills: 20, lives_ms: 150, seed: 20_26, folder: tmp.into() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let bounded = async { tokio::time::timeout(ROUND_MAX, run(&asked)).await };
    let report = runtime.block_on(bounded).context("the round does not end")??;
    println!("{report}");
    let lost: usize = report.operations.values().map(|(_, lost)| lost).sum();
    ensure!(
        report.operations.len() == 6 && report.entities > 3 && lost > 0 && report.replayed > 0,
        "no load: {report}"
    );
    Ok(())
}
