//! One request of a resource at a time, in the order of arrival.

use crate::header::Resource;
use crate::problem::Refusal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Mutex as Gate, OwnedMutexGuard};

/// The resources that somebody writes or waits for.
#[derive(Debug)]
pub(crate) struct Lanes {
    requests_max: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    requests: usize,
    lanes: HashMap<Resource, Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    gate: Arc<Gate<()>>,
    requests: usize,
}

/// The right to write a resource, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    // In this order: the gate opens before the lane may go.
    _gate: OwnedMutexGuard<()>,
    _seat: Seat,
}

/// A request that is counted, be it waiting or at work.
#[derive(Debug)]
struct Seat {
    lanes: Arc<Lanes>,
    resource: Resource,
}

impl Lanes {
    /// No more than so many requests at a time, those that wait included: the bound of everything kept here.
    pub(crate) fn new(requests_max: usize) -> Self {
        Self { requests_max, open: Mutex::default() }
    }

    /// Waits until no request that came earlier for this resource is at work.
    pub(crate) async fn turn(self: &Arc<Self>, resource: &Resource) -> Result<Turn, Refusal> {
        let (seat, gate) = self.sit(resource)?;
        Ok(Turn { _gate: gate.lock_owned().await, _seat: seat })
    }

    fn sit(self: &Arc<Self>, resource: &Resource) -> Result<(Seat, Arc<Gate<()>>), Refusal> {
        let mut open = self.open();
        if open.requests >= self.requests_max {
            return Err(Refusal::Full { limit: "fence.requests", max: self.requests_max });
        }
        open.requests += 1;
        let lane = open.lanes.entry(resource.clone()).or_default();
        lane.requests += 1;
        Ok((Seat { lanes: self.clone(), resource: resource.clone() }, lane.gate.clone()))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.lanes.open();
        open.requests -= 1;
        if let Some(lane) = open.lanes.get_mut(&self.resource) {
            lane.requests -= 1;
            if lane.requests == 0 {
                open.lanes.remove(&self.resource);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lanes, Resource};
    use futures_util::FutureExt as _;
    use std::sync::Arc;

    fn kept(lanes: &Lanes) -> (usize, usize) {
        let open = lanes.open();
        (open.requests, open.lanes.len())
    }

    #[test]
    fn nothing_is_kept_of_a_resource_that_nobody_wants() {
        let lanes = Arc::new(Lanes::new(8));
        let pool = Resource::new("pool/a").expect("a name");
        let first = lanes.turn(&pool).now_or_never().expect("nobody is before it").expect("there is room");
        let mut second = Box::pin(lanes.turn(&pool));
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(kept(&lanes), (2, 1));
        drop(first);
        let second = second.now_or_never().expect("it is its turn").expect("there is room");
        assert_eq!(kept(&lanes), (1, 1));
        drop(second);
        assert_eq!(kept(&lanes), (0, 0));
    }

    #[test]
    fn who_gives_up_waiting_leaves_nothing_behind() {
        let lanes = Arc::new(Lanes::new(8));
        let pool = Resource::new("pool/a").expect("a name");
        let first = lanes.turn(&pool).now_or_never().expect("nobody is before it").expect("there is room");
        assert!(lanes.turn(&pool).now_or_never().is_none(), "polled once and dropped");
        assert_eq!(kept(&lanes), (1, 1));
        drop(first);
        assert!(lanes.turn(&pool).now_or_never().is_some(), "the one that left holds nothing");
    }
}
