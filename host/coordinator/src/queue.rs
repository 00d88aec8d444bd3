//! Attempts that wait for a slot: those that need nothing else, and those that need memory too.
//!
//! Each line is served in the order of its arrivals, and whoever came first among their heads goes first.
//! What needs only a slot passes an attempt whose memory is not free yet, and takes none of the
//! memory that it waits for; nothing that needs memory passes another that does. So neither starves.

use interlock_kernel::doc::Digest;
use interlock_kernel::ids::EntityId;
use interlock_kernel::view::Start;
use std::collections::{HashMap, VecDeque};

/// Waiting attempts that keep their documents. Those of later ones, and large ones, are read again when
/// their turn comes.
const WHOLE_MAX: usize = 256;

/// Text of the documents that a waiting attempt keeps, in bytes: with [`WHOLE_MAX`], 4 MiB in all.
const WHOLE_BYTES_MAX: usize = 16 * 1024;

/// The bytes that running attempts hold, and how many there are for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) held: u64,
    pub(crate) max: u64,
}

impl Memory {
    pub(crate) fn of(max: u64) -> Self {
        Self { held: 0, max }
    }

    /// What an attempt counts for: one that is heavier than all there is takes all there is, and so runs when nothing
    /// else holds any.
    pub(crate) fn clamp(self, weight: u64) -> u64 {
        weight.min(self.max)
    }

    pub(crate) fn fits(self, weight: u64) -> bool {
        weight <= self.max.saturating_sub(self.held)
    }

    pub(crate) fn take(&mut self, weight: u64) {
        self.held = self.held.saturating_add(weight);
    }

    pub(crate) fn give(&mut self, weight: u64) {
        debug_assert!(weight <= self.held, "expected at most the {} bytes that are held, got {weight}", self.held);
        self.held = self.held.saturating_sub(weight);
    }
}

/// What an attempt needs before it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A slot.
    Slot,
    /// A slot, and memory that running attempts hold.
    Memory,
}

impl Needs {
    pub(crate) fn of(weight: u64) -> Self {
        if weight == 0 { Self::Slot } else { Self::Memory }
    }
}

pub(crate) enum Waiting {
    Whole(Box<Start>),
    Slim(EntityId, u64, Option<Digest>),
}

impl Waiting {
    pub(crate) fn token(&self) -> u64 {
        match self {
            Self::Whole(start) => start.claim.token.get(),
            Self::Slim(_, token, _) => *token,
        }
    }

    pub(crate) fn entity(&self) -> &EntityId {
        match self {
            Self::Whole(start) => &start.claim.execution.entity,
            Self::Slim(entity, ..) => entity,
        }
    }

    fn component(&self) -> Option<Digest> {
        match self {
            Self::Whole(start) => start.component,
            Self::Slim(_, _, component) => *component,
        }
    }
}

struct Place {
    arrival: u64,
    waiting: Waiting,
}

/// Both lines.
#[derive(Default)]
pub(crate) struct Queue {
    light: VecDeque<Place>,
    weighed: VecDeque<Place>,
    /// Who still wants what they stand in line for, by token: whoever does not is dropped when met.
    wanted: HashMap<u64, Needs>,
    arrivals: u64,
}

impl Queue {
    /// Places in line, those of attempts that want nothing any more included.
    pub(crate) fn len(&self) -> usize {
        self.light.len().saturating_add(self.weighed.len())
    }

    /// Attempts that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.wanted.len()
    }

    /// What the attempt with this token waits for, if it does.
    pub(crate) fn needs(&self, token: u64) -> Option<Needs> {
        self.wanted.get(&token).copied()
    }

    /// Whether an attempt with these needs would be passing somebody who has waited for the same.
    pub(crate) fn is_before(&mut self, needs: Needs) -> bool {
        self.drop_gone();
        match needs {
            Needs::Slot => !self.light.is_empty(),
            Needs::Memory => !self.weighed.is_empty(),
        }
    }

    pub(crate) fn push(&mut self, start: Box<Start>, needs: Needs) {
        let token = start.claim.token.get();
        let waiting = if self.len() < WHOLE_MAX && bytes(&start) <= WHOLE_BYTES_MAX {
            Waiting::Whole(start)
        } else {
            Waiting::Slim(start.claim.execution.entity, token, start.component)
        };
        self.wanted.insert(token, needs);
        self.arrivals = self.arrivals.saturating_add(1);
        let place = Place { arrival: self.arrivals, waiting };
        match needs {
            Needs::Slot => self.light.push_back(place),
            Needs::Memory => self.weighed.push_back(place),
        }
    }

    /// Whoever is next for a slot, with the memory that they take. They are still counted as waiting until they
    /// [leave](Self::leave).
    pub(crate) fn next(&mut self, memory: Memory, weigh: impl Fn(Option<Digest>) -> u64) -> Option<(Waiting, u64)> {
        loop {
            self.drop_gone();
            let first =
                self.weighed.front().map(|place| (place.arrival, memory.clamp(weigh(place.waiting.component()))));
            let first = first.filter(|(_, weight)| memory.fits(*weight));
            let light = self.light.front().map(|place| place.arrival);
            if let Some((arrival, weight)) = first
                && light.is_none_or(|light| arrival < light)
            {
                return self.weighed.pop_front().map(|place| (place.waiting, weight));
            }
            let place = self.light.pop_front()?;
            if weigh(place.waiting.component()) == 0 {
                return Some((place.waiting, 0));
            }
            // A run of its component took more than was known when it came.
            self.wanted.insert(place.waiting.token(), Needs::Memory);
            let at = self.weighed.partition_point(|other| other.arrival < place.arrival);
            self.weighed.insert(at, place);
        }
    }

    /// True if it was waiting: it is not any more.
    pub(crate) fn leave(&mut self, token: u64) -> bool {
        self.wanted.remove(&token).is_some()
    }

    /// Everybody who waits and has not been called, in the order of each line.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Waiting, Needs)> {
        let places = self.light.iter().chain(&self.weighed);
        places.filter_map(|place| self.needs(place.waiting.token()).map(|needs| (&place.waiting, needs)))
    }

    pub(crate) fn clear(&mut self) {
        let Self { light, weighed, wanted, arrivals: _ } = self;
        light.clear();
        weighed.clear();
        wanted.clear();
    }

    fn drop_gone(&mut self) {
        for line in [&mut self.light, &mut self.weighed] {
            while line.front().is_some_and(|place| !self.wanted.contains_key(&place.waiting.token())) {
                line.pop_front();
            }
        }
    }
}

fn bytes(start: &Start) -> usize {
    let documents = [&start.documents.desired, &start.documents.data, &start.documents.outputs, &start.payload];
    documents.into_iter().flatten().map(|doc| doc.text().len()).sum()
}
