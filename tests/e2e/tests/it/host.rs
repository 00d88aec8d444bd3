//! A daemon in a process of its own: this package's binary.

use anyhow::{Context as _, Result};
use interlock_support::host::Program;
use interlock_support::weather::Weather;
use std::future::Future;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

pub(crate) use interlock_support::api::{Api, Reply, deployment, event};
pub(crate) use interlock_support::host::{Host, Setup};

/// The daemon of these tests.
pub(crate) fn daemon() -> Program {
    Program { path: env!("CARGO_BIN_EXE_interlock-e2e").into(), tmp: env!("CARGO_TARGET_TMPDIR").into() }
}

/// A daemon on a new folder.
pub(crate) async fn start() -> Result<Host> {
    start_with(Setup::default()).await
}

/// The same with another setup.
pub(crate) async fn start_with(setup: Setup) -> Result<Host> {
    Host::start(daemon(), setup).await
}

/// A daemon that no weather kills.
pub(crate) async fn start_unkilled(setup: Setup) -> Result<Host> {
    Host::start_unkilled(daemon(), setup).await
}

/// A new folder on the disk of the build, gone with the test.
pub(crate) fn folder() -> Result<TempDir> {
    daemon().folder()
}

/// No test may take longer in calm weather; the crash run says its own bound.
const TEST_MAX: Duration = Duration::from_secs(90);
/// In every other weather it may take so many times as long: its daemon is away for much of that.
const LONGER: u32 = 3;

/// Plays a test, bounded in time, on a runtime of its own.
pub(crate) fn run(test: impl Future<Output = Result<()>>) -> Result<()> {
    run_within(TEST_MAX, test)
}

/// The same with another bound.
pub(crate) fn run_within(max: Duration, test: impl Future<Output = Result<()>>) -> Result<()> {
    // Built before the clock runs: the first build of a machine takes minutes.
    for name in ["noop", "survey", "resource", "errand", "ticket", "deploy", "hostile", "hostile-wasi"] {
        interlock_support::guest(name)?;
    }
    run_without_guests(max, test)
}

/// The same for a test that deploys no component.
pub(crate) fn run_without_guests(max: Duration, test: impl Future<Output = Result<()>>) -> Result<()> {
    let max = if Weather::now() == Weather::Calm { max } else { max * LONGER };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async { timeout(max, test).await.with_context(|| format!("the test took longer than {max:?}"))? })
}
