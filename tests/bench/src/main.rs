//! The benchmark: one run, one machine, one file system, durable commits.
//!
//! Every figure is measured in the run that shows it, the denominators included: append + fdatasync,
//! and redb alone with the same keys and bytes. Targets are those of the design, first column; they
//! are reported, never asserted: timing fails nobody's build.
//!
//! `sync.rs` is the disk, `raw.rs` redb alone, `transitions.rs` the coordinator, `steps.rs`
//! everything, `outside.rs` leases, effects and timers, `rows.rs` tables, `languages.rs` what a language costs, `scale.rs` a store that grows and is killed; `report.rs` shows it.

mod bed;
mod hardware;
mod languages;
mod load;
mod outside;
mod raw;
mod report;
mod rows;
mod scale;
mod scripted;
mod skip_locked;
mod spread;
mod stage;
mod steps;
mod sync;
mod tape;
mod targets;
mod transitions;

use anyhow::{Context as _, Result};
use clap::{Parser, ValueEnum};
use report::{Group, Report};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measures Interlock on this machine.
#[derive(Parser)]
#[command(name = "interlock-bench", version)]
struct Arguments {
    /// Writes every figure and what it was measured on.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Under a minute: shorter runs, no million entities.
    #[arg(long)]
    quick: bool,
    /// Where the stores are made, and removed; a folder of the target folder by default.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Only these measurements; again for more than one.
    #[arg(long, value_name = "NAME")]
    only: Vec<Measurement>,
    /// Only these numbers of entities at once; again for more than one.
    #[arg(long, value_name = "NUMBER")]
    entities: Vec<usize>,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(clap::Subcommand)]
enum Part {
    /// One boot on a growing store; started by the benchmark itself.
    #[command(hide = true)]
    Stage(stage::Plan),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// append + fdatasync.
    Sync,
    /// redb alone.
    Raw,
    /// The coordinator without WebAssembly.
    Transitions,
    /// Whole steps.
    Steps,
    /// The run of a step.
    Start,
    /// Leases of clients.
    Leases,
    /// Requests to a sink.
    Effects,
    /// Timers among many that wait.
    Timers,
    /// Rows: updates, upserts, claims; PostgreSQL's beside them if it is here.
    Rows,
    /// The same steps in Rust, C, JavaScript and Python, as far as their tools are here.
    Languages,
    /// Restart, cost and memory by entities.
    Scale,
}

/// How much is measured.
struct Extent {
    syncs: usize,
    raw_jobs: usize,
    load: Duration,
    starts: usize,
    sizes: &'static [usize],
    scale_load: Duration,
}

const FULL: Extent = Extent {
    syncs: 5_000,
    raw_jobs: 36_000,
    load: Duration::from_secs(5),
    starts: 4_000,
    sizes: &[1_000, 100_000, 1_000_000],
    scale_load: Duration::from_secs(5),
};

const QUICK: Extent = Extent {
    syncs: 1_000,
    raw_jobs: 9_000,
    load: Duration::from_millis(1_200),
    starts: 400,
    sizes: &[1_000, 50_000],
    scale_load: Duration::from_millis(1_500),
};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Part::Stage(plan)) = arguments.part {
        return stage::run(plan).await;
    }
    let parent = match &arguments.dir {
        Some(dir) => dir.clone(),
        None => in_target()?,
    };
    std::fs::create_dir_all(&parent).with_context(|| format!("make {}", parent.display()))?;
    let dir = tempfile::Builder::new().prefix("run-").tempdir_in(&parent)?;
    let extent = if arguments.quick { QUICK } else { FULL };
    let hardware = hardware::Hardware::of(dir.path())?;
    println!("{hardware}");
    let mut report = Report { hardware, quick: arguments.quick, groups: Vec::new(), targets: Vec::new() };
    let sizes = if arguments.entities.is_empty() { transitions::SIZES.to_vec() } else { arguments.entities };
    let chosen = |one| arguments.only.is_empty() || arguments.only.contains(&one);
    run(dir.path(), &extent, &sizes, &chosen, &mut report).await?;
    report.targets = targets::judge(&report);
    print!("{}", report.targets_table());
    if let Some(path) = &arguments.json {
        report.write_json(path)?;
    }
    Ok(())
}

async fn run(
    dir: &Path,
    extent: &Extent,
    sizes: &[usize],
    chosen: &impl Fn(Measurement) -> bool,
    report: &mut Report,
) -> Result<()> {
    let mut show = |group: Group| {
        print!("{}", report::table(&group));
        report.groups.push(group);
    };
    if chosen(Measurement::Sync) {
        show(sync::measure(dir, extent.syncs)?);
    }
    if chosen(Measurement::Raw) {
        show(transitions::raw(dir, sizes, extent.raw_jobs).await?);
    }
    if chosen(Measurement::Transitions) {
        show(transitions::measure(dir, sizes, extent.load).await?);
    }
    if chosen(Measurement::Steps) || chosen(Measurement::Start) {
        let guests = steps::Guests::new(sizes)?;
        if chosen(Measurement::Steps) {
            show(steps::measure(&guests, dir, sizes, extent.load).await?);
        }
        if chosen(Measurement::Start) {
            show(steps::start(&guests, dir, extent.starts).await?);
        }
    }
    if chosen(Measurement::Leases) {
        show(outside::leases(dir, sizes, extent.load).await?);
    }
    if chosen(Measurement::Effects) {
        show(outside::effects(dir, sizes, extent.load).await?);
    }
    if chosen(Measurement::Timers) {
        show(outside::timers(dir, extent.sizes).await?);
    }
    if chosen(Measurement::Rows) {
        let sizes: Vec<usize> = sizes.iter().copied().filter(|size| [1, 64].contains(size)).collect();
        show(rows::rates(dir, &sizes, extent.load, extent.raw_jobs / 4).await?);
        match skip_locked::measure(dir, &sizes, extent.load)? {
            Some(group) => show(group),
            None => println!("\nPostgreSQL is not installed here: its figures are left out"),
        }
        show(rows::among(dir, extent.sizes).await?);
    }
    if chosen(Measurement::Languages) {
        show(languages::measure(dir, extent.starts / 4, extent.load).await?);
    }
    if chosen(Measurement::Scale) {
        let dir = dir.join("scale");
        scale::measure(&dir, extent.sizes, extent.scale_load)?.into_iter().for_each(show);
    }
    Ok(())
}

/// Beside this program: the same disk as the build, not a file system in memory.
fn in_target() -> Result<PathBuf> {
    let program = std::env::current_exe().context("this program's path")?;
    let target = program.ancestors().nth(2).context("the target folder")?;
    Ok(target.join("bench"))
}
