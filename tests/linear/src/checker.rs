//! The search for an order of one entity's operations that the model agrees with.

use crate::history::Operation;
use crate::model::Model;
use std::collections::HashSet;

/// Operations of one entity, at most: one bit each.
pub const OPERATIONS_MAX: usize = 128;
/// Places looked at before a search is given up, which is no verdict. Short histories take some hundreds.
const PLACES_MAX: usize = 3_000_000;

/// An order was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The operations by their place in the history, in the order found; lost ones may be missing.
    pub operations: Vec<usize>,
    /// Places the search looked at.
    pub places: usize,
}

/// There is none, or none was found in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The longest order that agrees.
    pub longest: Vec<usize>,
    /// Where the entity would stand after it.
    pub model: Model,
    /// Whether the search looked everywhere.
    pub complete: bool,
}

/// Finds an order: each operation within its time, each answer as the model gives it. An operation without an answer
/// is taken anywhere after it was asked, or nowhere.
///
/// # Errors
/// [`Stuck`]: the longest order there is.
pub fn check(history: &[Operation]) -> Result<Order, Box<Stuck>> {
    assert!(history.len() <= OPERATIONS_MAX, "{} operations of one entity", history.len());
    let mut search =
        Search { history, known: HashSet::new(), order: Vec::new(), longest: (Vec::new(), Model::default()) };
    if search.from(0, &Model::default()) {
        return Ok(Order { operations: search.order, places: search.known.len() });
    }
    let complete = search.known.len() < PLACES_MAX;
    Err(Box::new(Stuck { longest: search.longest.0, model: search.longest.1, complete }))
}

struct Search<'a> {
    history: &'a [Operation],
    /// Places that lead nowhere: which operations are in order, and where the entity stands.
    known: HashSet<(u128, Model)>,
    order: Vec<usize>,
    longest: (Vec<usize>, Model),
}

impl Search<'_> {
    fn from(&mut self, ordered: u128, model: &Model) -> bool {
        let left = |at: &usize| ordered & (1 << at) == 0;
        // Nothing that was asked after this moment can come next: an answer heard before it would be left behind.
        let horizon = (0..self.history.len())
            .filter(left)
            .filter_map(|at| self.history[at].heard.as_ref().map(|(heard, _)| *heard))
            .min();
        let Some(horizon) = horizon else { return true };
        if self.known.len() >= PLACES_MAX || !self.known.insert((ordered, model.clone())) {
            return false;
        }
        if self.order.len() > self.longest.0.len() {
            self.longest = (self.order.clone(), model.clone());
        }
        let next: Vec<usize> =
            (0..self.history.len()).filter(left).filter(|at| self.history[*at].asked <= horizon).collect();
        // Those that were answered first: a lost one is taken only where nothing else helps.
        let (answered, lost): (Vec<usize>, Vec<usize>) =
            next.into_iter().partition(|at| self.history[*at].heard.is_some());
        if answered.into_iter().any(|at| self.take(ordered, model, at)) {
            return true;
        }
        if model.by_itself().is_some_and(|next| self.from(ordered, &next)) {
            return true;
        }
        lost.into_iter().any(|at| self.take(ordered, model, at))
    }

    fn take(&mut self, ordered: u128, model: &Model, at: usize) -> bool {
        let operation = &self.history[at];
        let (next, said) = model.ask(&operation.ask);
        let next = match &operation.heard {
            Some((_, heard)) => next.hears(&said, heard),
            // One that changes nothing might as well not have happened.
            None => Some(next).filter(|next| next != model),
        };
        let Some(next) = next else { return false };
        self.order.push(at);
        let found = self.from(ordered | (1 << at), &next);
        if !found {
            self.order.pop();
        }
        found
    }
}
