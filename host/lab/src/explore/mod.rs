//! Searching what can happen: every order in which a few clients' acts, calls of steps and timers can come,
//! with crashes and lost answers between any two of them.
//!
//! Each order is played on a host of its own ([`Lab`]), from the start: nothing is saved and restored, so
//! what is found is what a real host does. Worlds from which the same can follow are recognised, and of
//! choices that concern different entities one order is played (sleep sets: Godefroid, 1996). A violation is
//! cut down until no single choice can be left out. The same plan gives the same bytes.
//!
//! Crash points: whatever a step does between two calls that reach the store leaves no trace, so a crash
//! there is the same as one before the later call; that is where it is played, and once more after each
//! commit before its answer (a lost answer).

mod choice;
mod judge;
mod recall;
mod search;
mod world;

use crate::lab::{Lab, LabError};
use interlock_coordinator::{EntityView, Executor};
use interlock_kernel::command::Verb;
use interlock_kernel::ids::EntityId;
use std::fmt;
use std::sync::Arc;

pub use choice::{Choice, Path};
pub use search::{Counts, Found, Stopped, explore};

/// Acts of clients that may overtake one another.
const TOGETHER_MAX: usize = 3;

/// What clients do, in the order in which they would do it if nothing got in between.
#[derive(Clone, Debug)]
pub struct Act {
    /// The entity it is about.
    pub entity: EntityId,
    /// What is asked for.
    pub verb: Verb,
    /// The same in words.
    pub words: String,
}

/// What has to hold, at each moment or at each end.
pub struct Promise {
    /// What is promised, in a sentence.
    pub name: String,
    /// Of this entity only.
    pub entity: Option<EntityId>,
    /// Whether it holds; expected and got, if not.
    pub judge: Box<dyn Fn(&EntityView) -> Result<(), (String, String)>>,
}

impl fmt::Debug for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promise").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How far to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Choices in a row.
    pub depth: usize,
    /// Faults in one order.
    pub faults: u32,
    /// Different states.
    pub states: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { depth: 60, faults: 1, states: 20_000 }
    }
}

/// Makes a host with everything given, that runs its steps with this executor.
pub type Begin = Box<dyn Fn(Arc<dyn Executor>) -> Result<Lab, LabError>>;

/// What to search.
pub struct Plan {
    /// Makes the host that each order begins with.
    pub begin: Begin,
    /// Runs steps; each attempt once, if it begins from the same and is told the same.
    pub executor: Arc<dyn Executor>,
    /// Whether steps can read fencing tokens: they are then run again for each.
    pub sees_tokens: bool,
    /// The entities that it is about.
    pub entities: Vec<EntityId>,
    /// What clients do.
    pub acts: Vec<Act>,
    /// What holds after each choice.
    pub always: Vec<Promise>,
    /// What holds once nothing more happens.
    pub eventually: Vec<Promise>,
    /// Whether being parked is a good end.
    pub may_park: bool,
    /// How far.
    pub bounds: Bounds,
}

impl Plan {
    /// The entity of each act, by its place.
    fn of_act(&self) -> Vec<usize> {
        let place = |act: &Act| self.entities.iter().position(|entity| *entity == act.entity);
        self.acts.iter().map(|act| place(act).unwrap_or(usize::MAX)).collect()
    }
}

/// What did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The promise, by its name.
    pub promise: String,
    /// Of which entity.
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
