//! Runs seeds, or every point at which a host can die, and prints what they met. A failing seed is made small
//! and printed with the one line that replays it.

use anyhow::{Result, anyhow, bail, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use interlock_sim::plant::Plant;
use interlock_sim::points::{Covered, SCENARIOS, Sample, on_mem, on_redb};
use interlock_sim::{Figures, Plan, Steps, run, shrink};
use interlock_store::{Clock as _, SystemClock};
use std::thread;
use std::time::Instant;

/// Seeded simulation and crash-point exhaustion of coordinator, kernel and store.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    seeds: Seeds,
}

#[derive(Subcommand)]
enum What {
    /// Has a host die at every point of every scenario.
    Points(Points),
    /// Runs seeds and every point, and prints the figures as a table for the README.
    Report(Report),
}

#[derive(Args)]
struct Report {
    /// Runs so many seeds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// Steps of the scheduler in each.
    #[arg(long, default_value_t = 400)]
    steps: u64,
}

#[derive(Args)]
struct Seeds {
    /// Runs this seed alone and prints its transcript.
    #[arg(long)]
    seed: Option<u64>,
    /// Runs so many seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Steps of the scheduler in each.
    #[arg(long, default_value_t = 400)]
    steps: u64,
    /// Steps to leave out, as 3,5-9.
    #[arg(long, default_value_t = Steps::default())]
    skip: Steps,
    /// Plants a fault that must be found: acknowledge-N, twice-N, drop-FAMILY-N.
    #[arg(long, default_value_t = Plant::Nothing)]
    plant: Plant,
    /// Leaves a failing run as long as it is.
    #[arg(long)]
    no_shrink: bool,
}

#[derive(Args)]
struct Points {
    /// On this engine only.
    #[arg(long)]
    engine: Option<Engine>,
    /// Scenarios whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Each n-th point only.
    #[arg(long, default_value_t = 1)]
    each: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Redb,
    Mem,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.what {
        Some(What::Points(points)) => all_points(&points).map(drop),
        Some(What::Report(report)) => figures_for_the_readme(&report),
        None => match cli.seeds.seed {
            Some(seed) => one_seed(&cli.seeds, seed),
            None => many_seeds(&cli.seeds).map(drop),
        },
    }
}

fn plan(args: &Seeds, seed: u64) -> Plan {
    Plan { seed, steps: args.steps, skip: args.skip.clone(), plant: args.plant, transcript: args.seed.is_some() }
}

fn one_seed(args: &Seeds, seed: u64) -> Result<()> {
    let outcome = run(&plan(args, seed));
    for line in &outcome.lines {
        println!("{line}");
    }
    println!("{}\ntranscript {}", outcome.figures, outcome.digest);
    match outcome.finding {
        Some((finding, step)) => bail!("step {step}: {finding}"),
        None => Ok(()),
    }
}

fn many_seeds(args: &Seeds) -> Result<Figures> {
    let began = Instant::now();
    let mut figures = Figures::default();
    for nth in 0..args.seeds {
        let outcome = run(&plan(args, args.from + nth));
        figures.add(&outcome.figures);
        if outcome.finding.is_some() {
            println!("{outcome}");
            if !args.no_shrink {
                println!("\nmade small:\n{}", shrink(&outcome));
            }
            bail!("seed {} of {} failed", nth + 1, args.seeds);
        }
        if (nth + 1) % 100 == 0 {
            println!("{} seeds, {} commands decided, {:.0?}", nth + 1, figures.decided, began.elapsed());
        }
    }
    println!("{figures}\nseeds: {} from {}, none failed, in {:.1?}", args.seeds, args.from, began.elapsed());
    Ok(figures)
}

/// What was covered, on the embedded engine and in memory.
type Both = (Vec<Covered>, Vec<Covered>);

fn all_points(args: &Points) -> Result<Both> {
    let began = Instant::now();
    let which = if args.each > 1 { Sample::Each(args.each) } else { Sample::Every };
    let (mut redb, mut mem) = (Vec::new(), Vec::new());
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.name.contains(&args.only)) {
        if args.engine != Some(Engine::Mem) {
            let covered = on_redb(scenario, which).map_err(|broken| anyhow!("{broken}"))?;
            tell("redb", &covered, began);
            ensure!(args.each > 1 || covered.is_all(), "points that were counted were not met, or others were");
            redb.push(covered);
        }
        if args.engine != Some(Engine::Redb) {
            let covered = on_mem(scenario).map_err(|broken| anyhow!("{broken}"))?;
            tell("mem", &covered, began);
            ensure!(covered.is_all(), "points that were counted were not met, or others were");
            mem.push(covered);
        }
    }
    let all = || redb.iter().chain(&mem);
    println!(
        "{} scenarios, {} points, {} met, {} endings as without a death, in {:.1?}",
        redb.len().max(mem.len()),
        all().map(|covered| covered.points).sum::<u64>(),
        all().map(|covered| covered.met.len()).sum::<usize>(),
        all().map(|covered| covered.endings).sum::<u64>(),
        began.elapsed()
    );
    Ok((redb, mem))
}

fn tell(engine: &str, covered: &Covered, began: Instant) {
    let Covered { scenario, points, met, endings, twice } = covered;
    println!(
        "{engine:<4}  {scenario:<42} {points:>4} points, {:>4} met, {endings:>5} endings ({twice} died twice), {:.0?}",
        met.len(),
        began.elapsed()
    );
}

fn figures_for_the_readme(args: &Report) -> Result<()> {
    let began = Instant::now();
    let seeds = Seeds {
        seed: None,
        seeds: args.seeds,
        from: 0,
        steps: args.steps,
        skip: Steps::default(),
        plant: Plant::Nothing,
        no_shrink: false,
    };
    let figures = many_seeds(&seeds)?;
    let seeds_took = began.elapsed();
    let (redb, mem) = all_points(&Points { engine: None, only: String::new(), each: 1 })?;
    let report = interlock_sim::Report {
        date: jiff::Timestamp::from_millisecond(SystemClock::new().wall_ms())?.strftime("%Y-%m-%d").to_string(),
        cores: thread::available_parallelism()?.get(),
        figures,
        steps: args.steps,
        seeds_took,
        redb,
        mem,
        points_took: began.elapsed().saturating_sub(seeds_took),
    };
    println!("\n{report}");
    Ok(())
}
