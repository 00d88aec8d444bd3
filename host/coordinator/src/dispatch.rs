//! From a begun attempt to a running one: a bounded queue, slots and memory, and the table of what runs.
//!
//! An attempt is open, with its token, before it has a slot; its deadlines begin with the slot, which it gets
//! together with the memory that its executor says it takes. Who is next is `queue.rs`. What
//! does not fit the queue is found again by its index entry (`resync`), so the queue may be short.

use crate::core::Core;
use crate::executor::Attempt;
use crate::gate::{Closed, Gate};
use crate::queue::{Memory, Needs, Queue, Waiting};
use crate::read;
use interlock_kernel::Version;
use interlock_kernel::command::{Command, Verb};
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::time::WallTime;
use interlock_kernel::view::{Claim, Start};
use interlock_store::{Stamp, Store};
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Waiting attempts at all; about 200 bytes each. Later ones are left to their index entries.
const QUEUE_MAX: usize = 32_768;

/// How soon an attempt is looked at again whose deadline is over while it waits for the store.
const ASKING_MS: u64 = 1_000;

/// Where an attempt of this host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Begun, without a slot yet.
    WaitingForSlot,
    /// Begun; a slot is free, and the memory that it takes is not.
    WaitingForMemory,
    /// In the executor's hands.
    Running,
}

/// One attempt of this host.
#[derive(Clone, Debug)]
pub struct AttemptView {
    /// Its entity.
    pub entity: EntityId,
    /// Its fencing token.
    pub token: u64,
    /// Its number in the visit; none while it waits.
    pub attempt: Option<u32>,
    /// Where it is.
    pub phase: Phase,
    /// Since when it runs.
    pub since: Option<WallTime>,
    /// Why it was told to stop, if it was.
    pub closed: Option<Closed>,
}

/// Waiting and running attempts. Its lock is a leaf: the store is never called under it, and it is
/// never taken inside a job or a query.
pub(crate) struct Dispatch {
    slots: usize,
    table: Mutex<Table>,
    /// Told when the queue has become short and somebody waits for that.
    pub(crate) room: Notify,
    /// Told when nothing runs any more.
    pub(crate) idle: Notify,
    /// Told when an attempt's deadline is earlier than what the deadline task sleeps for.
    pub(crate) sooner: Notify,
    /// What the deadline task sleeps for, in store time.
    next_deadline: AtomicU64,
}

struct Table {
    used: usize,
    memory: Memory,
    queue: Queue,
    /// In order of their tokens, so that what is done to all of them is done in the same order every time.
    running: BTreeMap<u64, Arc<Running>>,
    /// Attempts out of their executor's hands whose end is not decided yet.
    ending: HashSet<u64>,
    /// Something was left to its index entry.
    overflowed: bool,
    /// What was left to its index entry is being taken in.
    refilling: bool,
    /// Whoever fills the queue waits for it to become short.
    hungry: bool,
    /// Nothing is started any more.
    stopped: bool,
}

impl Table {
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.ending.is_empty()
    }
}

/// A running attempt, shared by its executor, the table and the deadline task.
pub(crate) struct Running {
    start: Start,
    gate: Gate,
    started: WallTime,
    /// Of the memory there is for running attempts, in bytes.
    weight: u64,
    total_until: u64,
    idle_until: AtomicU64,
    asking: AtomicU32,
    read: Mutex<(Version, Version)>,
    written: AtomicBool,
    ended: AtomicBool,
}

impl Running {
    pub(crate) fn start(&self) -> &Start {
        &self.start
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn started(&self) -> WallTime {
        self.started
    }

    pub(crate) fn claim(&self) -> Claim {
        let mut claim = self.start.claim.clone();
        claim.read = self.lock().0;
        claim
    }

    pub(crate) fn base(&self) -> Version {
        self.lock().1
    }

    pub(crate) fn saved(&self, version: Version, store_ms: u64) {
        *self.lock() = (version, version);
        self.idle_until.store(store_ms.saturating_add(self.start.idle_ms), Ordering::Release);
    }

    /// A request was done that makes no version.
    pub(crate) fn progressed(&self, store_ms: u64) {
        self.idle_until.store(store_ms.saturating_add(self.start.idle_ms), Ordering::Release);
    }

    pub(crate) fn reloaded(&self, version: Version) {
        self.lock().0 = version;
    }

    pub(crate) fn written(&self) {
        self.written.store(true, Ordering::Release);
    }

    pub(crate) fn is_written(&self) -> bool {
        self.written.load(Ordering::Acquire)
    }

    /// True for the one caller who is to tell the kernel that this attempt ended.
    pub(crate) fn claim_end(&self) -> bool {
        !self.is_written() && !self.ended.swap(true, Ordering::AcqRel)
    }

    /// The attempt waits for the store from now on, until what this returns is dropped. That time is the
    /// host's and not the step's: no deadline of the attempt is decided within it, the idle one waits as long.
    pub(crate) fn asks<'a>(&'a self, store: &'a dyn Store) -> Asking<'a> {
        self.asking.fetch_add(1, Ordering::AcqRel);
        Asking { run: self, store, since: store.now().store_ms }
    }

    /// When it is ended at the latest, in store time.
    pub(crate) fn total_until(&self) -> u64 {
        self.total_until
    }

    fn until(&self) -> (u64, &'static str) {
        let idle = self.idle_until.load(Ordering::Acquire);
        if idle <= self.total_until {
            (idle, Closed::IDLE_DEADLINE)
        } else {
            (self.total_until, Closed::TOTAL_DEADLINE)
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Version, Version)> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt waits for the store.
pub(crate) struct Asking<'a> {
    run: &'a Running,
    store: &'a dyn Store,
    since: u64,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let waited = self.store.now().store_ms.saturating_sub(self.since);
        self.run.idle_until.fetch_add(waited, Ordering::AcqRel);
        self.run.asking.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Dispatch {
    pub(crate) fn new(slots: usize, memory_bytes: u64) -> Self {
        let table = Table {
            used: 0,
            memory: Memory::of(memory_bytes),
            queue: Queue::default(),
            running: BTreeMap::new(),
            ending: HashSet::new(),
            overflowed: false,
            refilling: false,
            hungry: false,
            stopped: false,
        };
        Self {
            slots,
            table: Mutex::new(table),
            room: Notify::new(),
            idle: Notify::new(),
            sooner: Notify::new(),
            next_deadline: AtomicU64::new(u64::MAX),
        }
    }

    /// Whether this host has the attempt with this token: waiting, running, or about to be ended.
    pub(crate) fn has(&self, token: u64) -> bool {
        let table = self.lock();
        table.running.contains_key(&token) || table.queue.needs(token).is_some() || table.ending.contains(&token)
    }

    /// Whether every attempt of this session that is not here is nowhere.
    pub(crate) fn is_complete(&self) -> bool {
        let table = self.lock();
        !table.overflowed && !table.refilling
    }

    pub(crate) fn ending(&self, token: u64) {
        self.lock().ending.insert(token);
    }

    pub(crate) fn ended(&self, token: u64) {
        let mut table = self.lock();
        table.ending.remove(&token);
        if table.is_idle() {
            self.idle.notify_one();
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.lock().is_idle()
    }

    pub(crate) fn phase(&self, token: u64) -> Option<Phase> {
        let table = self.lock();
        if table.running.contains_key(&token) {
            return Some(Phase::Running);
        }
        table.queue.needs(token).map(|needs| self.wait(&table, needs))
    }

    /// What somebody who waits would need next.
    fn wait(&self, table: &Table, needs: Needs) -> Phase {
        match needs {
            Needs::Memory if table.used < self.slots => Phase::WaitingForMemory,
            Needs::Memory | Needs::Slot => Phase::WaitingForSlot,
        }
    }

    /// Waiting and running attempts, by number; and the memory of those that run.
    pub(crate) fn load(&self) -> (usize, usize, Memory) {
        let table = self.lock();
        (table.queue.waiting(), table.running.len(), table.memory)
    }

    /// Whether more attempts may be begun without filling the queue for nothing. If not, `room` tells.
    pub(crate) fn has_room(&self) -> bool {
        let mut table = self.lock();
        table.hungry = table.queue.len() >= self.slots;
        !table.hungry
    }

    /// Whether something was left to its index entry and the queue is short again.
    pub(crate) fn wants_refill(&self) -> bool {
        let table = self.lock();
        table.overflowed && table.queue.len() < self.slots
    }

    /// Everything left to its index entry so far is about to be taken in.
    pub(crate) fn refilling(&self) {
        let mut table = self.lock();
        table.overflowed = false;
        table.refilling = true;
    }

    /// It is: what is open and not here from now on is nowhere, unless something was left out again.
    pub(crate) fn refilled(&self) {
        self.lock().refilling = false;
    }

    /// Has the index of open attempts compared with this table soon.
    pub(crate) fn mark_overflow(&self) {
        self.lock().overflowed = true;
        self.room.notify_one();
    }

    pub(crate) fn views(&self, limit: usize) -> Vec<AttemptView> {
        let table = self.lock();
        let running = table.running.values().map(|run| AttemptView {
            entity: run.start.claim.execution.entity.clone(),
            token: run.start.claim.token.get(),
            attempt: Some(run.start.claim.attempt),
            phase: Phase::Running,
            since: Some(run.started),
            closed: run.gate.check().err(),
        });
        let waiting = table.queue.iter().map(|(waiting, needs)| AttemptView {
            entity: waiting.entity().clone(),
            token: waiting.token(),
            attempt: None,
            phase: self.wait(&table, needs),
            since: None,
            closed: None,
        });
        running.chain(waiting).take(limit).collect()
    }

    /// Tells the attempt with this token to stop. True if it waited: whoever stands behind it may be next.
    pub(crate) fn fence(&self, token: u64, why: &'static str) -> bool {
        let (waited, run) = {
            let mut table = self.lock();
            (table.queue.leave(token), table.running.get(&token).cloned())
        };
        // A fenced attempt has nothing left to end, and one that wrote its transition is no loser.
        if let Some(run) = run.filter(|run| !run.is_written() && run.claim_end()) {
            run.gate.close(Closed::FENCED, why);
        }
        waited
    }

    /// Stops every running attempt in good order: none of them has failed, the next session takes
    /// them up.
    pub(crate) fn shut(&self) {
        let running: Vec<_> = self.lock().running.values().cloned().collect();
        for run in running {
            run.claim_end();
            run.gate.close(Closed::SHUTDOWN, "the host stops; the next one goes on");
        }
    }

    /// Starts nothing more: what is open stays so for the next session.
    pub(crate) fn stop(&self) {
        let mut table = self.lock();
        table.stopped = true;
        table.queue.clear();
    }

    /// The earliest deadline, and the attempts whose deadline is over.
    pub(crate) fn deadlines(&self, store_ms: u64) -> (Option<u64>, Vec<(Arc<Running>, &'static str)>) {
        let table = self.lock();
        let mut next: Option<u64> = None;
        let mut over = Vec::new();
        for run in table.running.values().filter(|run| !run.ended.load(Ordering::Acquire) && !run.is_written()) {
            let (until, why) = run.until();
            if until <= store_ms && run.asking.load(Ordering::Acquire) > 0 {
                let again = store_ms.saturating_add(ASKING_MS);
                next = Some(next.map_or(again, |next| next.min(again)));
            } else if until <= store_ms {
                over.push((run.clone(), why));
            } else {
                next = Some(next.map_or(until, |next| next.min(until)));
            }
        }
        self.next_deadline.store(next.unwrap_or(u64::MAX), Ordering::Release);
        (next, over)
    }

    /// Attempts that run, each with the ms until it is ended and by which deadline.
    pub(crate) fn running_until(&self, store_ms: u64) -> Vec<(EntityId, u64, &'static str)> {
        let table = self.lock();
        let running = table.running.values().filter(|run| !run.ended.load(Ordering::Acquire) && !run.is_written());
        let until = |run: &Arc<Running>| {
            let (until, why) = run.until();
            (run.start.claim.execution.entity.clone(), until.saturating_sub(store_ms), why)
        };
        running.map(until).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Takes in an attempt that has begun: starts it, or has it wait for a slot and for memory. The same attempt
    /// twice is one.
    pub(crate) fn push(self: &Arc<Self>, start: Box<Start>) {
        let dispatch = self.dispatch();
        let token = start.claim.token.get();
        let now = self.store().now();
        let start = {
            let mut table = dispatch.lock();
            if table.stopped || table.running.contains_key(&token) || table.queue.needs(token).is_some() {
                return;
            }
            let weight = table.memory.clamp(self.executor().weight_bytes(start.component));
            let needs = Needs::of(weight);
            if table.used < dispatch.slots && table.memory.fits(weight) && !table.queue.is_before(needs) {
                table.used += 1;
                table.memory.take(weight);
                Some(admit(&mut table, start, weight, now))
            } else if table.queue.len() >= QUEUE_MAX {
                table.overflowed = true;
                None
            } else {
                table.queue.push(start, needs);
                None
            }
        };
        if let Some(run) = start {
            self.launch(run);
        }
    }

    /// An attempt is out of its executor's hands: its slot and its memory go to the next ones.
    pub(crate) fn release(self: &Arc<Self>, run: &Arc<Running>) {
        let running = {
            let mut table = self.dispatch().lock();
            table.running.remove(&run.start.claim.token.get());
            table.running.len()
        };
        self.store().expect_company(running);
        self.give_back(run.weight);
    }

    /// As if this host had never heard of an attempt that runs.
    #[cfg(test)]
    pub(crate) fn forget(&self, token: u64) {
        self.dispatch().lock().running.remove(&token);
    }

    /// Gives back a slot that the caller holds, with this much memory.
    fn give_back(self: &Arc<Self>, weight: u64) {
        {
            let mut table = self.dispatch().lock();
            table.used = table.used.saturating_sub(1);
            table.memory.give(weight);
        }
        self.fill_slots();
    }

    /// Gives what is free to whoever is next, until there is nobody whom it is enough for.
    pub(crate) fn fill_slots(self: &Arc<Self>) {
        while let Some((waiting, weight)) = self.called() {
            match waiting {
                Waiting::Whole(start) => {
                    let token = start.claim.token.get();
                    self.admit_called(token, weight, Some(start));
                }
                Waiting::Slim(entity, token, _) => {
                    // Still counted as waiting while its documents are read.
                    let core = self.clone();
                    read::start_then(self, entity, move |start| core.admit_called(token, weight, start));
                }
            }
        }
    }

    /// Whoever is next, with a slot and memory taken for them.
    fn called(&self) -> Option<(Waiting, u64)> {
        let dispatch = self.dispatch();
        let mut table = dispatch.lock();
        let called = if table.used < dispatch.slots {
            let memory = table.memory;
            table.queue.next(memory, |component| self.executor().weight_bytes(component))
        } else {
            None
        };
        if let Some((_, weight)) = &called {
            table.used += 1;
            table.memory.take(*weight);
        }
        let tell = table.queue.len() < dispatch.slots && (table.hungry || table.overflowed);
        let idle = called.is_none() && table.is_idle();
        drop(table);
        if tell {
            dispatch.room.notify_one();
        }
        if idle {
            dispatch.idle.notify_one();
        }
        called
    }

    /// Starts an attempt that was called, if it is still there: the caller holds its slot and its memory.
    fn admit_called(self: &Arc<Self>, token: u64, weight: u64, start: Option<Box<Start>>) {
        let now = self.store().now();
        let run = {
            let mut table = self.dispatch().lock();
            let wanted = table.queue.leave(token) && !table.stopped;
            match start {
                Some(start) if wanted && start.claim.token.get() == token => {
                    Some(admit(&mut table, start, weight, now))
                }
                Some(_moved_on) => None,
                None => {
                    // Over, or unreadable now: its index entry says which.
                    table.overflowed |= wanted;
                    None
                }
            }
        };
        match run {
            Some(run) => self.launch(run),
            None => self.give_back(weight),
        }
    }

    /// Hands an attempt out, unless too little of its leases is left: nobody may act on a lease that somebody else
    /// may have before the first renewal.
    fn launch(self: &Arc<Self>, run: Arc<Running>) {
        if run.start.renew_by.is_some_and(|by| by.0 <= self.store().now().store_ms) {
            self.renew_first(&run);
            return;
        }
        let dispatch = self.dispatch();
        let (_, running, _) = dispatch.load();
        self.store().expect_company(running);
        let (until, _) = run.until();
        if dispatch.next_deadline.fetch_min(until, Ordering::AcqRel) > until {
            dispatch.sooner.notify_one();
        }
        self.counters().dispatched.add(1);
        let attempt = Attempt::new(self.clone(), run);
        // On the store's thread too, an executor may spawn; and its panic is not the store's.
        let _inside = self.runtime().enter();
        if catch_unwind(AssertUnwindSafe(|| self.executor().start(attempt))).is_err() {
            self.counters().panics.add(1);
            tracing::error!("the executor panicked as it was handed an attempt");
        }
    }
}

impl Core {
    /// Renews an attempt's leases; that hands it out, or ends it.
    fn renew_first(self: &Arc<Self>, run: &Arc<Running>) {
        let claim = run.claim();
        let token = claim.token.get();
        self.dispatch().ending(token);
        self.release(run);
        let core = self.clone();
        self.runtime().spawn(async move {
            core.insist(Command { by: Principal::host(), verb: Verb::Renew(claim) }).await;
            core.dispatch().ended(token);
        });
    }
}

fn admit(table: &mut Table, start: Box<Start>, weight: u64, now: Stamp) -> Arc<Running> {
    let run = Arc::new(Running {
        gate: Gate::default(),
        started: WallTime(now.wall_ms),
        weight,
        total_until: now.store_ms.saturating_add(start.total_ms),
        idle_until: AtomicU64::new(now.store_ms.saturating_add(start.idle_ms)),
        asking: AtomicU32::new(0),
        read: Mutex::new((start.claim.read, start.base)),
        written: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        start: *start,
    });
    table.running.insert(run.start.claim.token.get(), run.clone());
    run
}
