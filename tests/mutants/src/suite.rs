//! The tests of a copy: which there are, which checks each reaches, and whether one notices a mutant.

use crate::copy::{Copy, LIMIT_EXIT};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// One test, and what it reaches without a mutant.
#[derive(Clone, Debug)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// The sites it reaches.
    pub reaches: BTreeSet<u32>,
    /// Checks it evaluates, as a power of two.
    pub evaluates: u64,
}

impl Test {
    /// Whether it evaluates so many checks that it is tried last.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.evaluates > EVALUATIONS_LONG
    }
}

/// How a test ended while a mutant was active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It passed: the mutant was not noticed.
    Passed,
    /// It failed.
    Failed,
    /// The process was stopped by a signal.
    Crashed,
    /// It evaluated many times the checks it needs without the mutant, or took longer than [`TIME_MAX`].
    Endless,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
            Self::Endless => "did not end",
        })
    }
}

/// How many times the checks of the run without a mutant a test may evaluate. It is this that ends a loop
/// without end, not a clock: a busy machine notices no more than an idle one.
const EVALUATIONS_FACTOR: u64 = 64;
/// A test that evaluates more checks than this is tried last.
const EVALUATIONS_LONG: u64 = 1 << 16;
/// At the least: some tests evaluate hardly any check.
const EVALUATIONS_MIN: u64 = 1 << 20;
/// A loop that evaluates no check at all: far above what any test takes on a busy machine.
pub const TIME_MAX: Duration = Duration::from_secs(600);

/// Every test of the copy, each run once alone, those that reach least first.
///
/// # Errors
/// When a test fails without a mutant.
pub fn tests(copy: &Copy) -> Result<Vec<Test>> {
    let listed = Command::new(&copy.binary).args(["--list", "--format", "terse"]).output()?;
    ensure!(listed.status.success(), "{} does not list its tests", copy.binary.display());
    let names: Vec<String> = String::from_utf8_lossy(&listed.stdout)
        .lines()
        .filter_map(|line| line.strip_suffix(": test").map(str::to_owned))
        .collect();
    let mut tests = in_parallel(&names, |index, name| {
        let file = copy.root.join(format!("reach-{index}"));
        let end = run(copy, name, &[("INTERLOCK_MUTANT_REACH", &file.to_string_lossy())])?;
        if end != End::Passed {
            bail!("without a mutant, {name} {end}");
        }
        reached(name, &file)
    })?;
    // The more it reaches, the less its failure says; the long ones last, whatever they reach.
    let long = |test: &Test| if test.is_long() { test.evaluates } else { 0 };
    tests.sort_by(|one, two| (long(one), one.reaches.len(), &one.name).cmp(&(long(two), two.reaches.len(), &two.name)));
    Ok(tests)
}

/// What the switch wrote: a line for each site reached first, and for each power of two of evaluations.
fn reached(name: &str, file: &Path) -> Result<Test> {
    let mut test = Test { name: name.to_owned(), reaches: BTreeSet::new(), evaluates: 0 };
    if file.exists() {
        for line in std::fs::read_to_string(file)?.lines() {
            let (site, count) = line.split_once(' ').context("the switch writes two numbers a line")?;
            test.reaches.insert(site.parse()?);
            let count: u64 = count.parse()?;
            test.evaluates = test.evaluates.max(count.next_power_of_two());
        }
        std::fs::remove_file(file)?;
    }
    Ok(test)
}

/// Runs one test with a mutant.
///
/// # Errors
/// When it cannot be started.
pub fn with_mutant(copy: &Copy, test: &Test, mutant: u32) -> Result<End> {
    let limit = test.evaluates.saturating_mul(EVALUATIONS_FACTOR).max(EVALUATIONS_MIN);
    run(copy, &test.name, &[("INTERLOCK_MUTANT", &mutant.to_string()), ("INTERLOCK_MUTANT_LIMIT", &limit.to_string())])
}

fn run(copy: &Copy, test: &str, variables: &[(&str, &str)]) -> Result<End> {
    let mut child = Command::new(&copy.binary)
        .args([test, "--exact", "--test-threads=1"])
        .current_dir(&copy.crate_root)
        .env("CARGO_MANIFEST_DIR", &copy.crate_root)
        .env("CARGO_WORKSPACE_DIR", &copy.root)
        .env_remove("UPDATE_EXPECT")
        .env_remove("RUST_BACKTRACE")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {}", copy.binary.display()))?;
    let started = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match status.code() {
                Some(0) => End::Passed,
                Some(LIMIT_EXIT) => End::Endless,
                Some(_) => End::Failed,
                None => End::Crashed,
            });
        }
        if started.elapsed() > TIME_MAX {
            child.kill()?;
            child.wait()?;
            return Ok(End::Endless);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Does something with each item, on as many threads as there are cores; answers in the items' order.
///
/// # Errors
/// The first error of any item.
pub fn in_parallel<I: Sync, O: Send>(items: &[I], work: impl Fn(usize, &I) -> Result<O> + Sync) -> Result<Vec<O>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    let answer = work(index, item);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, answer));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, answer)| answer).collect()
}
