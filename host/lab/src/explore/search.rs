//! The search: depth first, each order played from the start, fewest faults first.

use super::choice::{Choice, Path};
use super::judge::{self, Before};
use super::recall::Recall;
use super::world::World;
use super::{Broken, Plan};
use crate::lab::LabError;
use interlock_coordinator::EntityView;
use interlock_kernel::doc::Digest;
use std::collections::{BTreeSet, HashMap};

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Different states.
    pub states: usize,
    /// Choices taken.
    pub choices: usize,
    /// Orders played to their end, or into a state seen before.
    pub orders: usize,
    /// States in which nothing more happens.
    pub ends: usize,
    /// States in which the host was killed.
    pub crash_points: usize,
    /// Store answers lost, and writes.
    pub lost: usize,
    /// Acts delivered twice.
    pub doubled: usize,
    /// Arrivals in a state seen before.
    pub equal: usize,
    /// Choices left out since another order of the same gives the same.
    pub independent: usize,
    /// Most choices in a row.
    pub deepest: usize,
    /// Attempts that were run; the others were remembered.
    pub runs: usize,
}

/// Why a search did not see everything within its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// An order was longer than `depth` choices.
    Depth,
    /// There were more than `states` states.
    States,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was looked at.
    pub counts: Counts,
    /// The faults in one order that were tried at most.
    pub faults: u32,
    /// What kept it from being complete.
    pub stopped: Option<Stopped>,
    /// What does not hold, and the shortest way there that was found.
    pub broken: Option<(Broken, Path)>,
}

/// A node on the way down.
struct Frame {
    choices: Vec<(Choice, u32)>,
    next: usize,
    done: Vec<Choice>,
    sleep: BTreeSet<Choice>,
    used: u32,
    before: Vec<Option<Before>>,
}

/// With how many faults a state was reached, and what was asleep there.
type Visit = (u32, BTreeSet<Choice>);

struct Search<'p> {
    plan: &'p Plan,
    recall: Recall,
    of_act: Vec<usize>,
    budget: u32,
    counts: Counts,
    stopped: Option<Stopped>,
    visited: HashMap<Digest, Vec<Visit>>,
}

/// Searches.
///
/// # Errors
/// [`LabError`]: the search itself could not go on.
pub fn explore(plan: &Plan) -> Result<Found, LabError> {
    let recall = Recall::new(plan.executor.clone(), plan.sees_tokens);
    let mut last = None;
    for budget in 0..=plan.bounds.faults {
        let mut search = Search {
            plan,
            recall: recall.clone(),
            of_act: plan.of_act(),
            budget,
            counts: Counts::default(),
            stopped: None,
            visited: HashMap::new(),
        };
        let broken = search.run()?;
        let broken = match broken {
            Some((broken, path)) => Some(shrink(plan, &recall, broken, path)?),
            None => None,
        };
        let done = broken.is_some() || search.stopped.is_some();
        search.counts.runs = recall.runs();
        last = Some(Found { counts: search.counts, faults: budget, stopped: search.stopped, broken });
        if done {
            break;
        }
    }
    last.ok_or_else(|| LabError::Restless("no budget of faults to search with".to_owned()))
}

impl Search<'_> {
    fn run(&mut self) -> Result<Option<(Broken, Path)>, LabError> {
        let mut world = World::reach(self.plan, &self.recall, &[])?;
        // Where `world` is, and where the search is: the same but for the way back up.
        let (mut at, mut path) = (Vec::new(), Vec::new());
        let nobody = vec![None; self.plan.entities.len()];
        let mut frames = match self.enter(&world, &path, 0, BTreeSet::new(), &nobody)? {
            Entered::Open(frame) => vec![frame],
            Entered::Seen => Vec::new(),
            Entered::Broken(broken) => return Ok(Some((broken, Path(path)))),
        };
        while let Some(frame) = frames.last_mut() {
            let Some((choice, cost)) = frame.choices.get(frame.next).copied() else {
                frames.pop();
                path.pop();
                continue;
            };
            frame.next = frame.next.saturating_add(1);
            let asleep = frame.sleep.iter().chain(&frame.done);
            let sleep = asleep.copied().filter(|other| other.commutes(choice, &self.of_act)).collect();
            frame.done.push(choice);
            if at != path {
                world = World::reach(self.plan, &self.recall, &path)?;
            }
            world.take(choice)?;
            self.count(choice);
            path.push(choice);
            if self.recall.missed() {
                world = World::reach(self.plan, &self.recall, &path)?;
            }
            at.clone_from(&path);
            let (used, before) = (frame.used.saturating_add(cost), frame.before.clone());
            match self.enter(&world, &path, used, sleep, &before)? {
                Entered::Open(frame) => frames.push(frame),
                Entered::Seen => {
                    self.counts.orders = self.counts.orders.saturating_add(1);
                    path.pop();
                }
                Entered::Broken(broken) => return Ok(Some((broken, Path(path)))),
            }
            if self.stopped == Some(Stopped::States) {
                break;
            }
        }
        Ok(None)
    }

    fn count(&mut self, choice: Choice) {
        let counts = &mut self.counts;
        counts.choices = counts.choices.saturating_add(1);
        let counter = match choice {
            Choice::Crash | Choice::Down => &mut counts.crash_points,
            Choice::Unavailable(..) | Choice::AnswerLost(..) | Choice::WriteLost(..) => &mut counts.lost,
            Choice::Again(_) => &mut counts.doubled,
            Choice::Go(..) | Choice::Act(_) | Choice::Tick => return,
        };
        *counter = counter.saturating_add(1);
    }

    /// Looks at where a choice has led.
    fn enter(
        &mut self,
        world: &World<'_>,
        path: &[Choice],
        used: u32,
        sleep: BTreeSet<Choice>,
        before: &[Option<Before>],
    ) -> Result<Entered, LabError> {
        let views = world.views()?;
        if let Some(broken) = judge::moment(world, self.plan, before, &views) {
            return Ok(Entered::Broken(broken));
        }
        let coming = world.lab.coming()?;
        let key = world.key(&views, &coming)?;
        let visits = self.visited.entry(key).or_default();
        if visits.iter().any(|(then, slept)| *then <= used && slept.is_subset(&sleep)) {
            self.counts.equal = self.counts.equal.saturating_add(1);
            return Ok(Entered::Seen);
        }
        let is_new = visits.is_empty();
        visits.push((used, sleep.clone()));
        self.counts.states = self.visited.len();
        self.counts.deepest = self.counts.deepest.max(path.len());
        let mut choices = world.enabled(&coming, used < self.budget);
        if !choices.iter().any(|choice| !World::is_fault(*choice, &coming)) {
            if is_new {
                self.counts.ends = self.counts.ends.saturating_add(1);
            }
            if let Some(broken) = judge::end(world, self.plan, &views)? {
                return Ok(Entered::Broken(broken));
            }
        }
        if self.counts.states >= self.plan.bounds.states {
            self.stopped = Some(Stopped::States);
        }
        if path.len() >= self.plan.bounds.depth && !choices.is_empty() {
            self.stopped.get_or_insert(Stopped::Depth);
            return Ok(Entered::Seen);
        }
        let awake = choices.len();
        choices.retain(|choice| !sleep.contains(choice));
        self.counts.independent = self.counts.independent.saturating_add(awake.saturating_sub(choices.len()));
        if choices.is_empty() {
            return Ok(Entered::Seen);
        }
        Ok(Entered::Open(Frame {
            choices: choices.into_iter().map(|choice| (choice, u32::from(World::is_fault(choice, &coming)))).collect(),
            next: 0,
            done: Vec::new(),
            sleep,
            used,
            before: remember(&views, before),
        }))
    }
}

enum Entered {
    Open(Frame),
    Seen,
    Broken(Broken),
}

fn remember(views: &[Option<EntityView>], before: &[Option<Before>]) -> Vec<Option<Before>> {
    let now = views.iter().zip(before);
    now.map(|(view, before)| view.as_ref().map(Before::of).or(*before)).collect()
}

/// What came of playing an order.
pub(super) struct Played {
    pub(super) taken: Path,
    pub(super) faults: u32,
    pub(super) broken: Option<Broken>,
}

/// Plays choices, leaving out those that cannot be taken, then whatever comes by itself; up to the first
/// promise that breaks. Every fault that is asked for is allowed.
fn play(plan: &Plan, recall: &Recall, path: &Path) -> Result<Played, LabError> {
    loop {
        let played = retell(plan, recall, path, &mut |_, _| Ok(()))?;
        if !recall.missed() {
            return Ok(played);
        }
    }
}

/// Told of each choice that was taken, and of the world behind it.
pub(super) type Tell<'t> = &'t mut dyn FnMut(Choice, &mut World<'_>) -> Result<(), LabError>;

/// As [`play`], telling each choice.
pub(super) fn retell(plan: &Plan, recall: &Recall, path: &Path, tell: Tell<'_>) -> Result<Played, LabError> {
    let mut world = World::new(plan, recall)?;
    let (mut taken, mut faults) = (Vec::new(), 0_u32);
    let played = |taken, faults, broken| Ok(Played { taken: Path(taken), faults, broken });
    let mut before = vec![None; plan.entities.len()];
    let mut script = path.0.iter().copied();
    loop {
        let views = world.views()?;
        if let Some(broken) = judge::moment(&world, plan, &before, &views) {
            return played(taken, faults, Some(broken));
        }
        before = remember(&views, &before);
        let coming = world.lab.coming()?;
        let choice = match script.next() {
            Some(choice) => choice,
            // What happens if nothing goes wrong and nobody hurries.
            None => match world.enabled(&coming, false).into_iter().next() {
                Some(choice) if taken.len() < plan.bounds.depth => choice,
                Some(_) => return played(taken, faults, None),
                None => {
                    let broken = judge::end(&world, plan, &views)?;
                    return played(taken, faults, broken);
                }
            },
        };
        if world.enabled(&coming, true).contains(&choice) && world.take(choice)? {
            taken.push(choice);
            faults = faults.saturating_add(u32::from(World::is_fault(choice, &coming)));
            tell(choice, &mut world)?;
        }
    }
}

/// Leaves out one choice after another for as long as the same promise breaks, with no fault more.
fn shrink(plan: &Plan, recall: &Recall, broken: Broken, path: Path) -> Result<(Broken, Path), LabError> {
    let mut faults = play(plan, recall, &path)?.faults;
    let mut best = (broken, path);
    let mut nth = 0;
    while nth < best.1.0.len() {
        let mut shorter = best.1.clone();
        shorter.0.remove(nth);
        let played = play(plan, recall, &shorter)?;
        match played.broken {
            Some(found)
                if found.promise == best.0.promise
                    && (played.faults, played.taken.0.len()) < (faults, best.1.0.len()) =>
            {
                faults = played.faults;
                best = (found, played.taken);
                nth = 0;
            }
            _ => nth = nth.saturating_add(1),
        }
    }
    Ok(best)
}
