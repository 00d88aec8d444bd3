//! The pair, once each.

use interlock_pair::{Fence, Report, run};
use interlock_support::host::Program;

fn program() -> Program {
    Program { path: env!("CARGO_BIN_EXE_interlock-pair").into(), tmp: env!("CARGO_TARGET_TMPDIR").into() }
}

const ROUNDS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_fence_acknowledged_updates_are_lost() -> anyhow::Result<()> {
    let report = run(program(), ROUNDS, Fence::Absent).await?;
    assert_eq!(report, Report { acknowledged: 2 * ROUNDS, lost: ROUNDS, refused: 0 });
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_fence_the_late_writer_is_refused_and_nothing_is_lost() -> anyhow::Result<()> {
    let report = run(program(), ROUNDS, Fence::Present).await?;
    assert_eq!(report, Report { acknowledged: 2 * ROUNDS, lost: 0, refused: ROUNDS });
    Ok(())
}
