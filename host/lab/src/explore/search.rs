//! The search: depth first, each order played from the start, fewest faults first.

use super::choice::{Choice, Path};
use super::judge::{self, Before};
use super::recall::Recall;
use super::world::World;
use super::{Broken, Counts, Found, Plan, Stopped, Told};
use crate::lab::LabError;
use crate::story::Story;
use interlock_coordinator::EntityView;
use interlock_kernel::doc::Digest;
use std::collections::{BTreeSet, HashMap};

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
    plan: &'p Plan<'p>,
    recall: &'p Recall,
    budget: u32,
    counts: Counts,
    stopped: Option<Stopped>,
    visited: HashMap<Digest, Vec<Visit>>,
}

/// Searches with no fault, then with one, and so on: what needs fewer is found first.
pub(super) fn explore(plan: &Plan<'_>, recall: &Recall) -> Result<Found, LabError> {
    let mut budget = 0;
    loop {
        let mut search =
            Search { plan, recall, budget, counts: Counts::default(), stopped: None, visited: HashMap::new() };
        let broken = match search.run()? {
            Some((broken, path)) => Some(tell(plan, recall, &shrink(plan, recall, &broken, path)?)?),
            None => None,
        };
        let (mut counts, stopped) = (search.counts, search.stopped);
        // Where there were too many states, another fault makes them more. An order that was too long stops nobody.
        if broken.is_some() || stopped == Some(Stopped::States) || budget >= plan.bounds.faults {
            counts.runs = recall.runs();
            return Ok(Found { counts, faults: budget, bounds: plan.bounds, stopped, broken });
        }
        budget = budget.saturating_add(1);
    }
}

impl Search<'_> {
    fn run(&mut self) -> Result<Option<(Broken, Path)>, LabError> {
        let mut world = World::reach(self.plan, self.recall, &[])?;
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
            let sleeps = |other: &Choice| !self.plan.all_orders && other.commutes(choice, &self.plan.of_act);
            let sleep = asleep.copied().filter(sleeps).collect();
            frame.done.push(choice);
            if at != path {
                world = World::reach(self.plan, self.recall, &path)?;
            }
            world.take(choice)?;
            self.count(choice, cost);
            path.push(choice);
            if self.recall.missed() {
                world = World::reach(self.plan, self.recall, &path)?;
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

    fn count(&mut self, choice: Choice, cost: u32) {
        let counts = &mut self.counts;
        counts.choices = counts.choices.saturating_add(1);
        let counter = match choice {
            Choice::Crash | Choice::CrashBehind(..) | Choice::ReplyUnheard(..) | Choice::Down => {
                &mut counts.crash_points
            }
            Choice::Unavailable(..) | Choice::AnswerLost(..) | Choice::WriteLost(..) => &mut counts.lost,
            Choice::ReplyLost(..) | Choice::Silence(..) => &mut counts.unanswered,
            Choice::LeaseLost(..) => &mut counts.leases_lost,
            Choice::Again(_) => &mut counts.doubled,
            Choice::Tick if cost > 0 => &mut counts.slow,
            Choice::Go(..) | Choice::Reply(..) | Choice::Act(_) | Choice::Tick => return,
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
        let (views, leases, tables) = (world.views()?, world.leases()?, world.tables()?);
        if let Some(broken) = judge::moment(world, self.plan, before, &views, &leases, &tables) {
            return Ok(Entered::Broken(broken));
        }
        let coming = world.lab.coming()?;
        let key = world.key(&views, &leases, &tables, &coming)?;
        let visits = self.visited.entry(key).or_default();
        if visits.iter().any(|(then, slept)| *then <= used && slept.is_subset(&sleep)) {
            self.counts.equal = self.counts.equal.saturating_add(1);
            return Ok(Entered::Seen);
        }
        let is_new = visits.is_empty();
        visits.push((used, sleep.clone()));
        self.counts.states = self.visited.len();
        self.counts.deepest = self.counts.deepest.max(path.len());
        let mut choices = world.enabled(&leases, &coming, used < self.budget);
        if !choices.iter().any(|choice| !World::is_fault(*choice, &coming)) {
            if is_new {
                self.counts.ends = self.counts.ends.saturating_add(1);
            }
            if let Some(broken) = judge::end(world, self.plan, &views, &leases, &tables)? {
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
struct Played {
    taken: Path,
    passed_over: usize,
    faults: u32,
    broken: Option<Broken>,
    story: Option<Story>,
}

/// Plays choices, leaving out those that cannot be taken, then whatever comes by itself; up to the first
/// promise that breaks. Every fault that is asked for is allowed.
fn play(plan: &Plan<'_>, recall: &Recall, path: &Path, told: bool) -> Result<Played, LabError> {
    loop {
        let played = play_once(plan, recall, path, told.then(Story::new))?;
        if !recall.missed() {
            return Ok(played);
        }
    }
}

fn play_once(plan: &Plan<'_>, recall: &Recall, path: &Path, story: Option<Story>) -> Result<Played, LabError> {
    let mut world = World::new(plan, recall, story)?;
    let (mut taken, mut faults, mut passed_over) = (Vec::new(), 0_u32, 0_usize);
    let mut before = vec![None; plan.entities.len()];
    let mut script = path.0.iter().copied();
    let broken = loop {
        let (views, leases, tables) = (world.views()?, world.leases()?, world.tables()?);
        let broken = judge::moment(&world, plan, &before, &views, &leases, &tables);
        if broken.is_some() {
            break broken;
        }
        before = remember(&views, &before);
        let coming = world.lab.coming()?;
        let choice = match script.next() {
            Some(choice) => choice,
            // What happens if nothing goes wrong and nobody hurries.
            None => match world.enabled(&leases, &coming, false).into_iter().next() {
                Some(choice) if taken.len() < plan.bounds.depth => choice,
                Some(_) => break None,
                None => break judge::end(&world, plan, &views, &leases, &tables)?,
            },
        };
        if world.enabled(&leases, &coming, true).contains(&choice) && world.take(choice)? {
            taken.push(choice);
            faults = faults.saturating_add(u32::from(World::is_fault(choice, &coming)));
        } else {
            passed_over = passed_over.saturating_add(1);
        }
    };
    Ok(Played { taken: Path(taken), passed_over, faults, broken, story: world.story.take() })
}

/// Plays one order and tells it.
pub(super) fn tell(plan: &Plan<'_>, recall: &Recall, path: &Path) -> Result<Told, LabError> {
    let Played { taken, passed_over, faults, broken, story } = play(plan, recall, path, true)?;
    Ok(Told { story: story.unwrap_or_default(), path: taken, passed_over, faults, broken })
}

/// Leaves out one choice after another for as long as the same promise breaks, with no fault more.
fn shrink(plan: &Plan<'_>, recall: &Recall, broken: &Broken, path: Path) -> Result<Path, LabError> {
    if broken.promise == judge::STEPS_END {
        return Ok(path); // each try would wait for that step again
    }
    let mut best = play(plan, recall, &path, false)?;
    let mut nth = 0;
    while nth < best.taken.0.len() {
        let mut shorter = best.taken.clone();
        shorter.0.remove(nth);
        let played = play(plan, recall, &shorter, false)?;
        let same = played.broken.as_ref().is_some_and(|found| found.promise == broken.promise);
        if same && (played.faults, played.taken.0.len()) < (best.faults, best.taken.0.len()) {
            best = played;
            nth = 0;
        } else {
            nth = nth.saturating_add(1);
        }
    }
    Ok(best.taken)
}
