//! Steps that take much memory: how many of them run at once, and how the host knows.

use crate::bed::{Bed, Time, component, manifest};
use anyhow::{Result, ensure};
use interlock_coordinator::{Executor as _, Phase};
use interlock_kernel::command::Verb;
use interlock_kernel::doc::Digest;
use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
use interlock_support::{Then, step_wat};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// Room for one of the heavy components here, and not for two.
const BUDGET: u64 = 64 * MIB;

fn engines() -> &'static Engines {
    static ENGINES: LazyLock<Engines> = LazyLock::new(|| {
        let options = EngineOptions { executions_max: 8, guest_memory_bytes: BUDGET, ..EngineOptions::default() };
        Engines::new(options).expect("this machine runs WebAssembly")
    });
    &ENGINES
}

/// A host with the machine `heavy` and this component, and the machine of `guests/noop`.
async fn bed(folder: &Path, step: &[u8]) -> Result<(Bed, Digest)> {
    let bed = Bed::on(&Library::open(engines(), folder)?).await?;
    let heavy = manifest("hostile")?
        .replace("machine   = \"hostile\"", "machine = \"heavy\"")
        .replace("memory = \"64MiB\"", "memory = \"128MiB\"");
    let digest = bed.deploy(&heavy, step).await?;
    bed.deploy(&manifest("noop")?, &component("noop")?).await?;
    Ok((bed, digest))
}

async fn begin(bed: &Bed, key: &str) -> Result<()> {
    bed.create(&format!("heavy/{key}"), "attempt", Some(r#"{"name":"it"}"#)).await?;
    Ok(())
}

/// Where the attempts of `heavy` are, by key.
fn phases(bed: &Bed) -> Vec<(String, Phase)> {
    let views = bed.coordinator.attempts(100).into_iter().filter(|view| view.entity.machine.as_str() == "heavy");
    let mut phases: Vec<_> = views.map(|view| (view.entity.key.to_string(), view.phase)).collect();
    phases.sort_by(|a, b| a.0.cmp(&b.0));
    phases
}

async fn until(bed: &Bed, wanted: &[(&str, Phase)]) {
    while phases(bed).iter().map(|(key, phase)| (key.as_str(), *phase)).ne(wanted.iter().copied()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Lets time pass until the attempts are there; meanwhile no more than one runs.
async fn pass(bed: &Bed, wanted: &[(&str, Phase)]) -> Result<()> {
    loop {
        let now = phases(bed);
        let running = now.iter().filter(|(_, phase)| *phase == Phase::Running).count();
        ensure!(running <= 1, "{now:?}");
        if now.iter().map(|(key, phase)| (key.as_str(), *phase)).eq(wanted.iter().copied()) {
            return Ok(());
        }
        bed.clock.advance(Duration::from_millis(20));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_heavy_steps_run_one_after_the_other_and_light_ones_beside_them() -> Result<()> {
    let folder = TempDir::new()?;
    let (bed, _) = bed(folder.path(), &step_wat(640, 0, Then::Spins)?).await?;
    begin(&bed, "a").await?;
    begin(&bed, "b").await?;
    until(&bed, &[("a", Phase::Running), ("b", Phase::WaitingForMemory)]).await;
    let stats = bed.coordinator.stats();
    ensure!(stats.memory_held_bytes == 40 * MIB && stats.memory_bytes_max == BUDGET, "{stats:?}");

    let light = bed.create("noop/light", "go", None).await?;
    let ending = bed.settled(&light, "first", Time::BetweenAttempts).await?;
    ensure!(ending.state == "idle" && ending.failures.is_empty(), "{ending:?}");
    until(&bed, &[("a", Phase::Running), ("b", Phase::WaitingForMemory)]).await;

    // The first one's deadline ends it. The other's begins then, and ends it too.
    pass(&bed, &[("b", Phase::Running)]).await?;
    let began = bed.clock_ms();
    pass(&bed, &[]).await?;
    ensure!(bed.clock_ms() - began >= 900, "its deadline had begun while it waited");
    for key in ["a", "b"] {
        let ending = bed.ending(&format!("heavy/{key}").parse()?, "first", Time::BetweenAttempts).await?;
        ensure!(ending.state == "stopped" && ending.code() == "idle-deadline", "{key}: {ending:?}");
    }
    ensure!(bed.coordinator.stats().memory_held_bytes == 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_heavier_than_the_whole_budget_runs_alone() -> Result<()> {
    let folder = TempDir::new()?;
    let (bed, digest) = bed(folder.path(), &step_wat(1_600, 0, Then::Returns)?).await?;
    ensure!(bed.wasm.weight_bytes(Some(digest)) > BUDGET);
    for key in ["a", "b", "c", "d"] {
        begin(&bed, key).await?;
    }
    pass(&bed, &[]).await?;
    for key in ["a", "b", "c", "d"] {
        let ending = bed.ending(&format!("heavy/{key}").parse()?, "first", Time::BetweenAttempts).await?;
        ensure!(ending.code() == "no-transition", "{key}: {ending:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_step_does_not_wait_for_memory_any_more() -> Result<()> {
    let folder = TempDir::new()?;
    let (bed, _) = bed(folder.path(), &step_wat(640, 0, Then::Spins)?).await?;
    begin(&bed, "a").await?;
    begin(&bed, "b").await?;
    until(&bed, &[("a", Phase::Running), ("b", Phase::WaitingForMemory)]).await;
    bed.submit(Verb::Kill { entity: "heavy/b".parse()?, reason: "enough".to_owned() }).await?;
    until(&bed, &[("a", Phase::Running)]).await;
    bed.submit(Verb::Kill { entity: "heavy/a".parse()?, reason: "enough".to_owned() }).await?;
    until(&bed, &[]).await;
    ensure!(bed.coordinator.stats().memory_held_bytes == 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_grows_is_weighed_by_what_it_took_also_after_a_restart() -> Result<()> {
    let folder = TempDir::new()?;
    let (bed, digest) = bed(folder.path(), &step_wat(1, 640, Then::Spins)?).await?;
    ensure!(bed.wasm.weight_bytes(Some(digest)) == 0, "one page is light");
    let mut runs = 0;
    // Time may end a run before it came to grow.
    while bed.wasm.weight_bytes(Some(digest)) == 0 {
        runs += 1;
        let (a, b) = (format!("a{runs}"), format!("b{runs}"));
        begin(&bed, &a).await?;
        begin(&bed, &b).await?;
        until(&bed, &[(&a, Phase::Running), (&b, Phase::Running)]).await;
        while !phases(&bed).is_empty() {
            bed.clock.advance(Duration::from_millis(20));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    ensure!(bed.wasm.weight_bytes(Some(digest)) == 41 * MIB);

    begin(&bed, "c").await?;
    begin(&bed, "d").await?;
    until(&bed, &[("c", Phase::Running), ("d", Phase::WaitingForMemory)]).await;
    pass(&bed, &[]).await?;

    // It is written down elsewhere than where it ran.
    loop {
        let next = Wasm::new(Library::open(engines(), folder.path())?);
        if next.weight_bytes(Some(digest)) == 41 * MIB {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
