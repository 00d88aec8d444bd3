//! Searching what can happen: every order in which a few clients' acts, calls of steps and timers can come,
//! with crashes and lost answers between any two of them.
//!
//! Each order is played on a host of its own ([`Lab`](crate::Lab)), from the start: nothing is saved and restored, so
//! what is found is what a real host does. Worlds from which the same can follow are recognised, and of
//! choices that concern different entities one order is played (sleep sets: Godefroid, 1996). A violation is
//! cut down until no single choice can be left out. The same scenario gives the same bytes.
//!
//! Crash points: whatever a step does between two calls that reach the store leaves no trace, so a crash
//! there is the same as one before the later call. That is where it is played, and behind each write,
//! before anybody hears of it.

mod choice;
mod judge;
mod recall;
mod search;
mod world;

use crate::lab::LabError;
use crate::scenario::{Act, Ask, Asking, Deed, Parked, Request, Scenario, Stage};
use crate::story::Story;
use interlock_kernel::ids::EntityId;
use interlock_kernel::timer::Due;
pub use recall::Recall;
use serde::Serialize;
use std::fmt;

pub use choice::{Choice, Path};

/// Acts of clients that may overtake one another.
const TOGETHER_MAX: usize = 3;

/// Choices in a row.
const DEPTH: usize = 80;

/// Faults in one order.
const FAULTS: u32 = 1;

/// Different states: some hundred megabytes, and minutes.
const STATES: usize = 100_000;

/// How a search goes where the scenario does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Choices in a row at most.
    pub depth: Option<usize>,
    /// Faults in one order at most.
    pub faults: Option<u32>,
    /// Different states at most.
    pub states: Option<usize>,
    /// Steps can read fencing tokens: they are then run again for each.
    pub sees_tokens: bool,
    /// Plays orders that give the same as another, too: to check that leaving them out loses nothing.
    pub all_orders: bool,
}

/// How far a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Choices in a row.
    pub depth: usize,
    /// Faults in one order.
    pub faults: u32,
    /// Different states.
    pub states: usize,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Different states.
    pub states: usize,
    /// Choices taken.
    pub choices: usize,
    /// Orders, each played to its end or into a state seen before.
    pub orders: usize,
    /// States in which nothing more happens.
    pub ends: usize,
    /// Places at which the host was killed.
    pub crash_points: usize,
    /// Writes that were lost, or whose answer was.
    pub lost: usize,
    /// Leases that were over before their step was.
    pub leases_lost: usize,
    /// Requests that were done and their answer lost, or that nobody answered.
    pub unanswered: usize,
    /// Events delivered twice.
    pub doubled: usize,
    /// Steps that were slower than their deadline.
    pub slow: usize,
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
    /// What was looked at, with as many faults in an order as `faults`.
    pub counts: Counts,
    /// The faults in one order that were tried at most.
    pub faults: u32,
    /// How far it went.
    pub bounds: Bounds,
    /// What kept it from being complete, if nothing is broken.
    pub stopped: Option<Stopped>,
    /// What does not hold, told.
    pub broken: Option<Told>,
}

/// An order that was played, told.
#[derive(Clone, Debug)]
pub struct Told {
    /// What happened.
    pub story: Story,
    /// The choices that were made: the same again is the same again.
    pub path: Path,
    /// How many choices that were asked for could not be made where they stood.
    pub passed_over: usize,
    /// How many of the choices are faults.
    pub faults: u32,
    /// What did not hold at its end; nothing, if all holds.
    pub broken: Option<Broken>,
}

/// What did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The promise, by its name.
    pub promise: String,
    /// Of which entity, or table.
    pub entity: String,
    /// What was promised.
    pub expected: String,
    /// What was found.
    pub got: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: expected {}, got {}", self.promise, self.entity, self.expected, self.got)
    }
}

/// Searches from a scenario: what is given is there, clients do what they do in `when`, in about that order;
/// everything else that the scenario makes happen (time, crashes, faults) is left to the search.
///
/// # Errors
/// [`LabError`]: the search itself could not go on.
pub fn explore(scenario: &Scenario, stage: &Stage, options: Options) -> Result<Found, LabError> {
    let plan = Plan::of(scenario, stage, options);
    search::explore(&plan, &plan.recall(options))
}

/// Plays one order, as far as it can be taken and then whatever comes by itself, and tells it.
///
/// # Errors
/// [`LabError`].
pub fn replay(scenario: &Scenario, stage: &Stage, options: Options, path: &Path) -> Result<Told, LabError> {
    let plan = Plan::of(scenario, stage, options);
    search::tell(&plan, &plan.recall(options), path)
}

/// What is searched.
struct Plan<'s> {
    scenario: &'s Scenario,
    /// The machine without jitter: what comes when is the search's to choose, not chance's.
    stage: Stage,
    /// Every entity of the scenario.
    entities: Vec<EntityId>,
    /// What clients do.
    acts: Vec<Does<'s>>,
    /// The entity of each, by its place; a lease or a row is of none.
    of_act: Vec<usize>,
    /// Whether the machine can have leases, or a client does something with one.
    leased: bool,
    /// Whether there are tables.
    tabled: bool,
    /// Whether being parked is a good end.
    may_park: bool,
    all_orders: bool,
    /// Whether what comes depends on the day: a timer of the machine is due at an instant or by a calendar.
    dated: bool,
    bounds: Bounds,
}

impl<'s> Plan<'s> {
    fn of(scenario: &'s Scenario, stage: &Stage, options: Options) -> Self {
        let mut stage = stage.clone();
        for state in stage.manifest.machine.states.values_mut() {
            state.retry.jitter = 0.0;
        }
        for target in stage.manifest.machine.targets.values_mut() {
            target.retry.jitter = 0.0;
        }
        let waits = |due: &Due| matches!(due, Due::After(_));
        let dated = stage.manifest.machine.states.values().flat_map(|state| &state.after).any(|set| !waits(&set.due));
        let acts: Vec<Does<'_>> = scenario.when.iter().filter_map(|when| Does::of(&when.act)).collect();
        let mut entities: Vec<EntityId> = scenario.given.iter().map(|given| given.entity.clone()).collect();
        for ask in acts.iter().filter_map(Does::ask) {
            if !entities.contains(&ask.entity) {
                entities.push(ask.entity.clone());
            }
        }
        let place = |act: &Does<'_>| {
            let ask = act.ask().and_then(|ask| entities.iter().position(|entity| *entity == ask.entity));
            ask.unwrap_or(usize::MAX)
        };
        let tabled = !stage.tables.is_empty();
        let leased = !stage.manifest.machine.leases.granted.is_empty();
        let parks = |parked: &Option<Parked>| matches!(parked, Some(Parked::Yes | Parked::Because(_)));
        let named = scenario.explore;
        let number = |own: Option<usize>, named: Option<u64>, otherwise| {
            own.or(named.and_then(|named| usize::try_from(named).ok())).unwrap_or(otherwise)
        };
        Self {
            scenario,
            stage,
            of_act: acts.iter().map(place).collect(),
            acts,
            // What different entities do is about the same leases and rows.
            all_orders: options.all_orders || leased || tabled,
            leased,
            tabled,
            dated,
            may_park: scenario.then.iter().any(|then| parks(&then.parked)),
            bounds: Bounds {
                depth: number(options.depth, named.depth.map(u64::from), DEPTH),
                faults: options.faults.or(named.faults).unwrap_or(FAULTS),
                states: number(options.states, named.states, STATES),
            },
            entities,
        }
    }

    fn recall(&self, options: Options) -> Recall {
        Recall::new(self.stage.executor.clone(), options.sees_tokens)
    }
}

/// What a client does.
#[derive(Clone, Copy)]
enum Does<'s> {
    Ask(&'s Ask),
    Lease(&'s Deed),
    Rows(&'s Asking),
}

impl<'s> Does<'s> {
    fn of(act: &'s Act) -> Option<Self> {
        match act {
            Act::Ask(ask) => Some(Self::Ask(ask)),
            Act::Lease(deed) => Some(Self::Lease(deed)),
            Act::Rows(asking) => Some(Self::Rows(asking)),
            Act::Advance(_) | Act::Crash | Act::Down(_) | Act::Wall(_) | Act::Fault(_) | Act::Expect(_) => None,
        }
    }

    fn ask(&self) -> Option<&'s Ask> {
        match self {
            Self::Ask(ask) => Some(ask),
            Self::Lease(_) | Self::Rows(_) => None,
        }
    }

    /// Whether it has an id by which a second delivery is known.
    fn is_event(&self) -> bool {
        match self {
            Self::Ask(ask) => matches!(ask.request, Request::Send { .. }),
            Self::Lease(_) => false,
            Self::Rows(asking) => asking.ask.id.is_some(),
        }
    }
}
