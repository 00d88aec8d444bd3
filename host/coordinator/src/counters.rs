//! What happened since the boot, in numbers.

use crate::queue::Memory;
use interlock_kernel::record::{EffectWhat, LeaseWhat, RowWhat};
use interlock_kernel::rejection::Code;
use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Every counter of the coordinator.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) decided: Counter,
    pub(crate) committed: Counter,
    pub(crate) entries: Counter,
    pub(crate) facts: Counter,
    pub(crate) failures: Counter,
    pub(crate) parked: Counter,
    pub(crate) refused: [Counter; Code::ALL.len()],
    pub(crate) contended: Counter,
    pub(crate) store_errors: Counter,
    pub(crate) mismatches: Counter,
    pub(crate) dispatched: Counter,
    pub(crate) deadlines: Counter,
    pub(crate) due: Counter,
    pub(crate) timers: Counter,
    pub(crate) recovered: Counter,
    pub(crate) swept: Counter,
    pub(crate) scanned: Counter,
    pub(crate) audited: Counter,
    pub(crate) repaired: Counter,
    pub(crate) clock_jumps: Counter,
    pub(crate) resyncs: Counter,
    pub(crate) panics: Counter,
    pub(crate) sent: Counter,
    pub(crate) effects: [Counter; EffectWhat::ALL.len()],
    pub(crate) leases: [Counter; LeaseWhat::ALL.len()],
    pub(crate) rows: [Counter; RowWhat::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            decided: Counter::default(),
            committed: Counter::default(),
            entries: Counter::default(),
            facts: Counter::default(),
            failures: Counter::default(),
            parked: Counter::default(),
            refused: array::from_fn(|_| Counter::default()),
            contended: Counter::default(),
            store_errors: Counter::default(),
            mismatches: Counter::default(),
            dispatched: Counter::default(),
            deadlines: Counter::default(),
            due: Counter::default(),
            timers: Counter::default(),
            recovered: Counter::default(),
            swept: Counter::default(),
            scanned: Counter::default(),
            audited: Counter::default(),
            repaired: Counter::default(),
            clock_jumps: Counter::default(),
            resyncs: Counter::default(),
            panics: Counter::default(),
            sent: Counter::default(),
            effects: array::from_fn(|_| Counter::default()),
            leases: array::from_fn(|_| Counter::default()),
            rows: array::from_fn(|_| Counter::default()),
        }
    }
}

impl Counters {
    pub(crate) fn refuse(&self, code: Code) {
        if let Some(at) = Code::ALL.iter().position(|known| *known == code)
            && let Some(counter) = self.refused.get(at)
        {
            counter.add(1);
        }
    }
}

impl Counters {
    pub(crate) fn rows(&self, what: RowWhat, count: u64) {
        if let Some(at) = RowWhat::ALL.iter().position(|known| *known == what)
            && let Some(counter) = self.rows.get(at)
        {
            counter.add(count);
        }
    }

    pub(crate) fn effect(&self, what: EffectWhat) {
        if let Some(at) = EffectWhat::ALL.iter().position(|known| *known == what)
            && let Some(counter) = self.effects.get(at)
        {
            counter.add(1);
        }
    }

    pub(crate) fn lease(&self, what: LeaseWhat) {
        if let Some(at) = LeaseWhat::ALL.iter().position(|known| *known == what)
            && let Some(counter) = self.leases.get(at)
        {
            counter.add(1);
        }
    }
}

/// The counters at one moment, since the boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Commands decided, refusals included.
    pub decided: u64,
    /// Commands accepted and durable.
    pub committed: u64,
    /// History entries written, facts included.
    pub entries: u64,
    /// Facts written: what changed nothing and is on record.
    pub facts: u64,
    /// Attempts that failed, visits that left on their failure path, entities that were parked: each once.
    pub failures: u64,
    /// Of those, entities that were parked.
    pub parked: u64,
    /// Refusals by code, each code once.
    pub refused: Vec<(Code, u64)>,
    /// Commands that found the queue full.
    pub contended: u64,
    /// Commands that the store could not do.
    pub store_errors: u64,
    /// Comparisons that met a value of the wrong type.
    pub type_mismatches: u64,
    /// Attempts given a slot.
    pub dispatched: u64,
    /// Attempts whose idle or total deadline passed.
    pub deadlines: u64,
    /// Commands that store time caused.
    pub due: u64,
    /// Timers fired.
    pub timers: u64,
    /// Attempts begun again after a restart.
    pub recovered: u64,
    /// Expired records removed.
    pub swept: u64,
    /// Index entries read by the scheduler and the recovery.
    pub scanned: u64,
    /// Entities compared with their index entries.
    pub audited: u64,
    /// Of those, how many had to be repaired. Should be 0.
    pub repaired: u64,
    /// Jumps of the wall clock noticed.
    pub clock_jumps: u64,
    /// Commits of unknown fate, after which everything was looked at again.
    pub resyncs: u64,
    /// Panics of background tasks and of the executor.
    pub panics: u64,
    /// Tries of effects.
    pub sent: u64,
    /// What became of effects, each kind once.
    pub effects: Vec<(EffectWhat, u64)>,
    /// What became of leases, each kind once.
    pub leases: Vec<(LeaseWhat, u64)>,
    /// What became of rows, each kind once.
    pub rows: Vec<(RowWhat, u64)>,
    /// Attempts waiting for a slot now.
    pub waiting: usize,
    /// Attempts running now.
    pub running: usize,
    /// Slots in all.
    pub slots: usize,
    /// Memory that running attempts hold now, in bytes, as far as it is weighed.
    pub memory_held_bytes: u64,
    /// Memory that there is for them; [`u64::MAX`] where nothing is weighed.
    pub memory_bytes_max: u64,
}

impl Stats {
    /// Refusals with this code.
    #[must_use]
    pub fn refusals(&self, code: Code) -> u64 {
        self.refused.iter().find(|(known, _)| *known == code).map_or(0, |(_, count)| *count)
    }

    pub(crate) fn of(counters: &Counters, (waiting, running, memory): (usize, usize, Memory), slots: usize) -> Self {
        Self {
            decided: counters.decided.get(),
            committed: counters.committed.get(),
            entries: counters.entries.get(),
            facts: counters.facts.get(),
            failures: counters.failures.get(),
            parked: counters.parked.get(),
            refused: Code::ALL.into_iter().zip(counters.refused.iter().map(Counter::get)).collect(),
            contended: counters.contended.get(),
            store_errors: counters.store_errors.get(),
            type_mismatches: counters.mismatches.get(),
            dispatched: counters.dispatched.get(),
            deadlines: counters.deadlines.get(),
            due: counters.due.get(),
            timers: counters.timers.get(),
            recovered: counters.recovered.get(),
            swept: counters.swept.get(),
            scanned: counters.scanned.get(),
            audited: counters.audited.get(),
            repaired: counters.repaired.get(),
            clock_jumps: counters.clock_jumps.get(),
            resyncs: counters.resyncs.get(),
            panics: counters.panics.get(),
            sent: counters.sent.get(),
            rows: RowWhat::ALL.into_iter().zip(counters.rows.iter().map(Counter::get)).collect(),
            effects: EffectWhat::ALL.into_iter().zip(counters.effects.iter().map(Counter::get)).collect(),
            leases: LeaseWhat::ALL.into_iter().zip(counters.leases.iter().map(Counter::get)).collect(),
            waiting,
            running,
            slots,
            memory_held_bytes: memory.held,
            memory_bytes_max: memory.max,
        }
    }
}
