//! Crash-point exhaustion: every canonical scenario, and a host that dies at every point of it.
//!
//! On the embedded engine a point is a write, a change of length, a sync of its file, or the renaming of a new
//! file. The disk dies with that operation, and what is left of it is looked at in several ways: as if it had
//! died just before, just after, in the middle (torn), with nothing kept that was not synced, with the unsynced
//! writes kept in order up to one of them, and with any of their sectors kept. From each of these a store is
//! opened and a host booted, which must find exactly what was committed, and the job it died over whole or not
//! at all; the scenario is played on, and must end as it does without a death. One of them dies a second time
//! while it comes back.
//!
//! On the engine in memory a point is a job: the host dies before it, after its commit, or after its answer.
//!
//! The embedded engine has a writer thread of its own and orders its page writes by hash maps: two runs of a
//! scenario write the same pages in another order. So these runs are compared by what comes of them and not
//! byte for byte, and which page a point is about may differ from run to run; that every point is met does not.

mod scenarios;
mod stage;

use crate::finding::Finding;
use crate::world::{Death, Exit};
use interlock_conformance::{CrashedDisk, SimDisk};
use interlock_store::MemImage;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

pub use scenarios::{SCENARIOS, Scenario};
use stage::{Place, Stage};

/// Power cuts tried at each point that keep the unsynced writes in order, and as many that keep any of them.
const CUTS: u64 = 2;

/// Operations after a death among which the second one is: opening, repairing, and the first commits.
const AGAIN: u64 = 24;
/// The engines' names.
const REDB: &str = "redb";
const MEM: &str = "mem";

/// Points that are tried at the same time.
const WORKERS: usize = 4;

/// Which points are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// Every one.
    Every,
    /// Each n-th, from one that the scenario's name chooses; and the first and the last.
    Each(u64),
}

/// What was covered of one scenario on one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    /// The scenario.
    pub scenario: &'static str,
    /// Points that it has, as counted in a run without a death.
    pub points: u64,
    /// Points at which the host died.
    pub met: BTreeSet<u64>,
    /// What was left after a death, played on to the end.
    pub endings: u64,
    /// Of those, how many died a second time on the way.
    pub twice: u64,
}

impl Covered {
    fn of(scenario: &Scenario, points: u64, tried: &[Tried]) -> Self {
        Self {
            scenario: scenario.name,
            points,
            met: tried.iter().filter_map(|tried| tried.point).collect(),
            endings: tried.iter().map(|tried| tried.endings + tried.twice).sum(),
            twice: tried.iter().map(|tried| tried.twice).sum(),
        }
    }

    /// Whether the host died at every point there is, and at no other.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.met == (1..=self.points).collect()
    }
}

/// What does not hold, where, and the command that shows it again.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The scenario and the point.
    pub place: String,
    /// What.
    pub finding: Finding,
    /// The last of what happened.
    pub lines: Vec<String>,
    replay: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "    {line}")?;
        }
        write!(f, "{}: {}\nagain: {}", self.place, self.finding, self.replay)
    }
}

impl std::error::Error for Broken {}

/// A way of dying, by its number: the same for every scenario.
fn images(wreck: &CrashedDisk, point: u64) -> Vec<(String, SimDisk)> {
    let mut images = vec![
        ("just before".to_owned(), wreck.before_last()),
        ("just after".to_owned(), wreck.after_kill()),
        ("torn".to_owned(), wreck.torn_last(point)),
        ("nothing kept but what was synced".to_owned(), wreck.synced_only()),
    ];
    for cut in 0..CUTS {
        let seed = point * CUTS + cut;
        images.push((format!("a power cut in order, seed {seed}"), wreck.after_ordered_power_cut(seed)));
        images.push((format!("a power cut, seed {seed}"), wreck.after_power_cut(seed)));
    }
    let mut different: Vec<(String, SimDisk)> = Vec::new();
    for (name, image) in images {
        if different.iter().all(|(_, known)| !known.holds_the_same(&image)) {
            different.push((name, image));
        }
    }
    different
}

/// Points to try of so many.
fn sample(sample: Sample, name: &str, points: u64) -> Vec<u64> {
    match sample {
        Sample::Every => (1..=points).collect(),
        Sample::Each(nth) => {
            let first =
                name.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % nth.max(1);
            (1..=points).filter(|point| point % nth.max(1) == first || *point == 1 || *point == points).collect()
        }
    }
}

fn broken(scenario: &Scenario, engine: &str, place: String, stage: &Stage, finding: Finding) -> Box<Broken> {
    let replay = format!("cargo run -p interlock-sim -- points --engine {engine} --only {:?}", scenario.name);
    let place = format!("{} on {engine}, {place}", scenario.name);
    Box::new(Broken { place, finding, lines: stage.world.log.lines(), replay })
}

/// Plays on to the end, which must be this one.
fn plays_on(stage: &mut Stage, place: &Place, expected: &[String]) -> Result<(), Finding> {
    let exit = stage.play(place)?;
    if exit != Exit::Enough {
        return Err(Finding::new("a_scenario_comes_to_its_end", "the script", format!("{exit:?}")));
    }
    stage.ends_well(place)?;
    let ending = stage.ending();
    let other = expected.iter().chain(&ending).find(|line| expected.contains(line) != ending.contains(line));
    match other {
        Some(line) => {
            Err(Finding::new("it_ends_as_without_a_death", line, format!("expected {expected:#?}, got {ending:#?}")))
        }
        None => Ok(()),
    }
}

/// Has the host die at points of a scenario on the embedded engine.
///
/// # Errors
/// What does not hold.
pub fn on_redb(scenario: &Scenario, which: Sample) -> Result<Covered, Box<Broken>> {
    on_disks(scenario, which, SimDisk::new)
}

/// The same on disks that only say that they have synced: something that must be found.
///
/// # Errors
/// What does not hold.
pub fn on_lying_disks(scenario: &Scenario, which: Sample) -> Result<Covered, Box<Broken>> {
    on_disks(scenario, which, SimDisk::lying)
}

fn on_disks(scenario: &Scenario, which: Sample, new: fn() -> SimDisk) -> Result<Covered, Box<Broken>> {
    let disk = new();
    let mut stage = Stage::new(scenario);
    let place = Place::Disk(disk.clone());
    let played = stage.play(&place);
    // Counted before anybody looks at the outcome.
    let points = disk.operations();
    let ended = played.and_then(|_| stage.ends_well(&place));
    ended.map_err(|finding| broken(scenario, REDB, "nobody dies".to_owned(), &stage, finding))?;
    let expected = stage.ending();
    let tried = together(sample(which, scenario.name, points), |point| {
        let disk = new();
        let mut stage = Stage::new(scenario);
        stage.loses = point % 2 == 0;
        let knell = stage.knell.clone();
        disk.crash_at(point, move || knell.ring());
        let played = stage.play(&Place::Disk(disk.clone()));
        let name = |how: &str| format!("point {point} of {points}, {how}");
        played.map_err(|finding| broken(scenario, REDB, name("until it dies"), &stage, finding))?;
        let wreck = disk.wreck();
        let mut endings = 0;
        for (how, image) in images(&wreck, point) {
            let mut on = stage.fork();
            let held = plays_on(&mut on, &Place::Disk(image), &expected);
            held.map_err(|finding| broken(scenario, REDB, name(&how), &on, finding))?;
            endings += 1;
        }
        let twice = dies_again(scenario, &stage, &wreck, point, &expected)?;
        Ok(Tried { point: stage.knell.has_rung().then_some(point), endings, twice })
    })?;
    Ok(Covered::of(scenario, points, &tried))
}

/// One of the images dies again, at one of the first operations after its death; which of both, the point says.
fn dies_again(
    scenario: &Scenario,
    stage: &Stage,
    wreck: &CrashedDisk,
    point: u64,
    expected: &[String],
) -> Result<u64, Box<Broken>> {
    let mut left = images(wreck, point);
    let nth = usize::try_from(point).unwrap_or(0) % left.len();
    let (how, disk) = left.swap_remove(nth);
    let operation = 1 + point * 5 % AGAIN;
    let mut again = stage.fork();
    let knell = again.knell.clone();
    disk.crash_at(operation, move || knell.ring());
    let name = |then: &str| format!("point {point}, {how}, and again at operation {operation}, {then}");
    let played = again.play(&Place::Disk(disk.clone()));
    played.map_err(|finding| broken(scenario, REDB, name("until it dies"), &again, finding))?;
    if !again.knell.has_rung() {
        return Ok(0); // it has come to its end before
    }
    let mut endings = 0;
    for (then, image) in images(&disk.wreck(), point).into_iter().rev().take(2) {
        let mut on = again.fork();
        let held = plays_on(&mut on, &Place::Disk(image), expected);
        held.map_err(|finding| broken(scenario, REDB, name(&then), &on, finding))?;
        endings += 1;
    }
    Ok(endings)
}

/// Has the host die at every job of a scenario on the engine in memory: points are jobs, three for each.
///
/// # Errors
/// What does not hold.
pub fn on_mem(scenario: &Scenario) -> Result<Covered, Box<Broken>> {
    let mut stage = Stage::new(scenario);
    let place = Place::Image(MemImage::new());
    let played = stage.play(&place);
    let jobs = stage.world.runs;
    let ended = played.and_then(|_| stage.ends_well(&place));
    ended.map_err(|finding| broken(scenario, MEM, "nobody dies".to_owned(), &stage, finding))?;
    let expected = stage.ending();
    let points = jobs * 3;
    let tried = together((1..=points).collect(), |point| {
        let job = (point - 1) / 3;
        let death = match point % 3 {
            1 => Death::Before(job),
            2 => Death::Committed(job),
            _ => Death::Told(job),
        };
        let mut stage = Stage::new(scenario);
        stage.loses = point % 2 == 0;
        stage.dies_at(death);
        let place = Place::Image(MemImage::new());
        let name = format!("{death:?} of {jobs} jobs");
        let exit = stage.play(&place);
        let exit = exit.map_err(|finding| broken(scenario, MEM, name.clone(), &stage, finding))?;
        let mut on = stage.fork();
        let held = plays_on(&mut on, &place, &expected);
        held.map_err(|finding| broken(scenario, MEM, name, &on, finding))?;
        Ok(Tried { point: (exit == Exit::Died).then_some(point), endings: 1, twice: 0 })
    })?;
    Ok(Covered::of(scenario, points, &tried))
}

/// What came of one point.
struct Tried {
    /// The point, if the host died there.
    point: Option<u64>,
    endings: u64,
    twice: u64,
}

/// Tries points on a few threads: each waits for its engine's threads most of the time.
///
/// # Errors
/// That of the lowest point that has one.
fn together(
    points: Vec<u64>,
    one: impl Fn(u64) -> Result<Tried, Box<Broken>> + Sync,
) -> Result<Vec<Tried>, Box<Broken>> {
    let next = AtomicUsize::new(0);
    let mut tried = thread::scope(|scope| {
        let work = || {
            let mut tried = Vec::new();
            while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                let came = one(*point);
                let failed = came.is_err();
                tried.push((*point, came));
                if failed {
                    break;
                }
            }
            tried
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.flat_map(|tried| tried.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect::<Vec<_>>()
    });
    tried.sort_by_key(|(point, _)| *point);
    tried.into_iter().map(|(_, came)| came).collect()
}
