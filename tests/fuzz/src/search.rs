//! The search: change, run, keep what says something new.

use crate::kept::{corpus, keep};
use crate::mutate::mutate;
use crate::shrink::shrink;
use crate::target::{Broken, Target, guarded};
use anyhow::{Context as _, Result};
use interlock_conformance::Random;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// An input that runs this long does not end: the slowest take some ms.
const HANGS: Duration = Duration::from_secs(60);

/// When a search ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After so many changed inputs: the same ones for the same seed.
    Inputs(u64),
    /// After so long.
    Seconds(u64),
}

/// What a search did.
#[derive(Debug)]
pub struct Report {
    /// Inputs that ran.
    pub inputs: u64,
    /// Inputs that showed something new, those of the corpus included.
    pub pool: Vec<Vec<u8>>,
    /// Things the target said.
    pub seen: usize,
    /// The first input that broke a property.
    pub failure: Option<Failure>,
}

/// An input that broke a property.
#[derive(Debug)]
pub struct Failure {
    /// The input, made as small as could be.
    pub input: Vec<u8>,
    /// What broke.
    pub why: Broken,
    /// Where it was written.
    pub path: PathBuf,
}

/// Runs the corpus, then changed inputs, until the end or the first failure, which is written to `folder`.
///
/// # Errors
/// Files that cannot be read or written.
pub fn search(target: &dyn Target, seed: u64, until: Until, folder: &Path) -> Result<Report> {
    let mut random = Random::new(seed);
    let began = Instant::now();
    let words: Vec<&str> = target.words().split('¦').collect();
    let mut found = Found { target, folder, known: HashSet::new(), watch: Watch::start(target, folder)? };
    let mut report = Report { inputs: 0, pool: Vec::new(), seen: 0, failure: None };
    let files = corpus(target).with_context(|| format!("the corpus of {}", target.name()))?;
    let mut given = files.into_iter().map(|(_, input)| input).chain(target.seeds());
    loop {
        let (input, seed) = match given.next() {
            Some(input) => (input, true),
            None => (mutate(&report.pool, &words, &mut random), false),
        };
        let over = match until {
            Until::Inputs(most) => report.inputs >= most,
            Until::Seconds(most) => began.elapsed() >= Duration::from_secs(most),
        };
        if over && !seed {
            break;
        }
        report.inputs += 1;
        match found.run(&input)? {
            Ok(true) => report.pool.push(input),
            Ok(false) => {}
            Err(why) => {
                report.failure = Some(found.failed(input, why)?);
                break;
            }
        }
    }
    report.seen = found.known.len();
    Ok(report)
}

/// The fewest of a pool's inputs that say all of it, short ones first: what is worth a file in the corpus.
#[must_use]
pub fn distilled(target: &dyn Target, mut pool: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut known = HashSet::new();
    pool.sort_by_key(Vec::len);
    pool.retain(|input| {
        let seen = guarded(target, input).unwrap_or_default();
        seen.notes().filter(|note| known.insert(*note)).count() > 0
    });
    pool
}

struct Found<'a> {
    target: &'a dyn Target,
    folder: &'a Path,
    known: HashSet<u64>,
    watch: Watch,
}

impl Found<'_> {
    /// Whether the input showed something new.
    fn run(&mut self, input: &[u8]) -> Result<Result<bool, Broken>> {
        self.watch.begins(input)?;
        let seen = match guarded(self.target, input) {
            Ok(seen) => seen,
            Err(why) => return Ok(Err(why)),
        };
        // Every note, not only the first new one.
        let new = seen.notes().filter(|note| self.known.insert(*note)).count();
        Ok(Ok(new > 0))
    }

    fn failed(&self, input: Vec<u8>, why: Broken) -> Result<Failure> {
        let input = shrink(self.target, input, &why);
        let why = guarded(self.target, &input).err().unwrap_or(why);
        let path = keep(self.folder, self.target, &input).context("the input that failed")?;
        Ok(Failure { input, why, path })
    }
}

/// Keeps the input that runs in a file, so that one which ends the process (a stack that overflows, memory that ends)
/// or never ends is there afterwards; and ends the process on the latter.
struct Watch {
    path: PathBuf,
    running: File,
    begun: Sender<()>,
}

impl Watch {
    fn start(target: &dyn Target, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).context("the folder for inputs that fail")?;
        let path = folder.join(format!("{}-running-{}", target.name(), std::process::id()));
        let running = File::create(&path).context("the input that runs")?;
        let (begun, next) = channel();
        let line = crate::kept::replay_line(target, &path);
        std::thread::spawn(move || {
            loop {
                match next.recv_timeout(HANGS) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!("an input does not end after {HANGS:?}\nagain: {line}");
                        std::process::exit(1);
                    }
                }
            }
        });
        Ok(Self { path, running, begun })
    }

    fn begins(&mut self, input: &[u8]) -> Result<()> {
        // One file, written over: to make one anew for every input takes longer than most inputs.
        self.running.rewind()?;
        self.running.write_all(input).context("the input that runs")?;
        self.running.set_len(input.len() as u64)?;
        self.begun.send(()).context("the watch is gone")
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It ran to its end: nobody misses the file.
        let _ = fs::remove_file(&self.path);
    }
}
