//! What was compiled for names and their numbers: kept while somebody holds a share of it, and up to a
//! capacity after that.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// `M` marks what a number stands for: one that was decided and never became durable is given out again.
#[derive(Debug)]
pub(crate) struct Shelves<N, M, T> {
    slots: RwLock<Slots<N, M, T>>,
    capacity: usize,
    clock: AtomicU64,
}

type Slots<N, M, T> = HashMap<N, BTreeMap<u64, Slot<M, T>>>;

#[derive(Debug)]
struct Slot<M, T> {
    mark: M,
    compiled: Arc<T>,
    used: AtomicU64,
}

impl<M, T> Slot<M, T> {
    fn new(mark: M, compiled: T) -> Self {
        Self { mark, compiled: Arc::new(compiled), used: AtomicU64::new(0) }
    }
}

impl<N: Clone + Eq + Hash + Ord, M: PartialEq, T> Shelves<N, M, T> {
    /// Empty; keeps at most this many that nobody holds.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { slots: RwLock::new(HashMap::new()), capacity: capacity.max(1), clock: AtomicU64::new(0) }
    }

    /// A share of what stands there; with a mark, only of what bears it.
    pub(crate) fn find(&self, name: &N, number: u64, mark: Option<&M>) -> Option<Arc<T>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get(name)?.get(&number)?;
        if mark.is_some_and(|mark| *mark != slot.mark) {
            return None;
        }
        slot.used.store(self.tick(), Ordering::Relaxed);
        Some(Arc::clone(&slot.compiled))
    }

    /// Puts it there and hands back a share. If somebody else has put the same there meanwhile, it is a share of
    /// theirs: one for all, or holding it would not keep it.
    pub(crate) fn put(&self, name: &N, number: u64, mark: M, compiled: T) -> Arc<T> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = match slots.entry(name.clone()).or_default().entry(number) {
            Entry::Vacant(free) => free.insert(Slot::new(mark, compiled)),
            Entry::Occupied(taken) => {
                let slot = taken.into_mut();
                if slot.mark != mark {
                    *slot = Slot::new(mark, compiled);
                }
                slot
            }
        };
        slot.used.store(self.tick(), Ordering::Relaxed);
        let share = Arc::clone(&slot.compiled);
        evict(&mut slots, self.capacity);
        share
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).values().map(BTreeMap::len).sum()
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

/// Drops what was used longest ago and nobody holds, down to the capacity. New shares are only taken under the
/// lock, so one that is not held now cannot become held meanwhile.
fn evict<N: Clone + Eq + Hash + Ord, M, T>(slots: &mut Slots<N, M, T>, capacity: usize) {
    let held: usize = slots.values().map(BTreeMap::len).sum();
    let Some(surplus) = held.checked_sub(capacity).filter(|surplus| *surplus > 0) else { return };
    let mut idle: Vec<(u64, N, u64)> = slots
        .iter()
        .flat_map(|(name, shelf)| shelf.iter().map(move |(number, slot)| (name, number, slot)))
        .filter(|(_, _, slot)| Arc::strong_count(&slot.compiled) == 1)
        .map(|(name, number, slot)| (slot.used.load(Ordering::Relaxed), name.clone(), *number))
        .collect();
    idle.sort_unstable();
    for (_, name, number) in idle.into_iter().take(surplus) {
        if let Some(shelf) = slots.get_mut(&name) {
            shelf.remove(&number);
        }
    }
    slots.retain(|_, shelf| !shelf.is_empty());
}
