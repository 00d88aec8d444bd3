//! A store that does everything that the contract allows and nobody hopes for, over any other.
//!
//! [`Hostile`] runs every job three times: once on the last durable state, which may be older than what the job will
//! meet, as an optimistic engine does before it finds a conflict; once in its own transaction, and drops what it
//! wrote; and once for good. Queries run twice. Settlements are held back while another job is on its way and then
//! come last first. Sleepers wake late.
//!
//! What runs on it as it runs on the engine below relies on nothing that the contract does not say.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::time::Duration;

use interlock_store::{
    BoxFuture, Bytes, Changes, Clock, Each, Fate, Fault, Full, Halt, Health, Job, Lane, ManualClock, Position, Query,
    Read, SCAN_ENTRIES, Seq, Span, Stamp, Store, StoreError, Txn,
};

use crate::engine::Engine;

/// Settlements that are held back at most: clients that never pause must not wait for ever.
const HELD_BACK_MAX: usize = 16;
/// Turns of the scheduler by which a sleeper wakes late.
const LATE_TURNS: usize = 16;

/// The store. Clones are the same one.
#[derive(Clone)]
pub struct Hostile {
    inner: Arc<dyn Store>,
    back: Arc<Back>,
}

impl Hostile {
    /// Over this store, which nobody else may use to submit jobs.
    pub fn over(inner: Arc<dyn Store>) -> Hostile {
        Hostile { inner, back: Arc::default() }
    }

    /// The job as the store below gets it.
    fn wrap(&self, job: Box<dyn Job>) -> (Twice, Slot) {
        self.back.lock().flying += 1;
        let slot = Slot::default();
        *lock(&slot) = Some(job);
        (Twice { slot: slot.clone(), back: self.back.clone() }, slot)
    }

    /// The first run, which does not count: on the last durable state.
    fn rehearse(&self, job: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let (back, rehearsed) = mpsc::channel();
        self.inner.query(Box::new(Rehearsal { job: Some(job), back }));
        rehearsed.recv().ok()
    }
}

impl Store for Hostile {
    fn submit(&self, lane: Lane, job: Box<dyn Job>) -> Result<(), Full> {
        let Some(job) = self.rehearse(job) else {
            unreachable!("a query is always settled");
        };
        let (twice, slot) = self.wrap(job);
        match self.inner.submit(lane, Box::new(twice)) {
            Ok(()) => Ok(()),
            // The engine's copy of the job is dropped empty.
            Err(Full { lane, why, .. }) => {
                let Some(job) = lock(&slot).take() else { unreachable!("a job that was not taken is not settled") };
                self.back.landed(None);
                Err(Full { job, lane, why })
            }
        }
    }

    fn query(&self, query: Box<dyn Query>) {
        self.inner.query(Box::new(TwiceAsked(query)));
    }

    fn changes(&self, after: Position) -> Changes {
        self.inner.changes(after)
    }

    fn now(&self) -> Stamp {
        self.inner.now()
    }

    fn store_time_at(&self, monotonic: Duration) -> u64 {
        self.inner.store_time_at(monotonic)
    }

    fn sleep_until_store(&self, store_ms: u64) -> BoxFuture<'static, ()> {
        let slept = self.inner.sleep_until_store(store_ms);
        Box::pin(async move {
            slept.await;
            for _ in 0..LATE_TURNS {
                tokio::task::yield_now().await;
            }
        })
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    fn expect_company(&self, running: usize) {
        self.inner.expect_company(running);
    }

    fn close(&self, drain: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.close(drain)
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Settlements that are held back.
#[derive(Default)]
struct Back(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// Jobs that were taken and not yet settled.
    flying: usize,
    waiting: Vec<(Box<dyn Job>, Fate)>,
}

impl Back {
    fn lock(&self) -> MutexGuard<'_, Held> {
        lock(&self.0)
    }

    /// A job has landed; none if it was dropped without a fate.
    fn landed(&self, settled: Option<(Box<dyn Job>, Fate)>) {
        let due = {
            let mut held = self.lock();
            held.flying -= 1;
            held.waiting.extend(settled);
            let wait = held.flying > 0 && held.waiting.len() < HELD_BACK_MAX;
            if wait { Vec::new() } else { std::mem::take(&mut held.waiting) }
        };
        for (job, fate) in due.into_iter().rev() {
            // A panic of one is not to keep the others from their fates; its message was told where it arose.
            let _ = catch_unwind(AssertUnwindSafe(|| job.settle(fate)));
        }
    }
}

/// Where a job waits for its runs, so that it can be handed back.
type Slot = Arc<Mutex<Option<Box<dyn Job>>>>;

/// A job that runs twice in its transaction.
struct Twice {
    slot: Slot,
    back: Arc<Back>,
}

impl Job for Twice {
    fn run(&mut self, txn: &mut dyn Txn) -> Result<(), Halt> {
        let mut slot = lock(&self.slot);
        let Some(job) = slot.as_mut() else { unreachable!("a settled job does not run") };
        // Whatever it says: this run does not count.
        let _ = job.run(&mut Dropped::over(txn));
        job.run(txn)
    }

    fn settle(self: Box<Self>, fate: Fate) {
        let job = lock(&self.slot).take();
        self.back.landed(job.map(|job| (job, fate)));
    }
}

impl Drop for Twice {
    fn drop(&mut self) {
        // Still there: its store died.
        let job = lock(&self.slot).take();
        if job.is_some() {
            self.back.landed(None);
        }
    }
}

/// A first run on a state that may be old.
struct Rehearsal {
    job: Option<Box<dyn Job>>,
    back: mpsc::Sender<Box<dyn Job>>,
}

impl Query for Rehearsal {
    fn run(&mut self, at: &mut dyn Read) -> Result<(), Halt> {
        if let Some(job) = &mut self.job {
            // On an old state a job may even panic: this run does not count.
            let _ = catch_unwind(AssertUnwindSafe(|| job.run(&mut Dropped::over(at))));
        }
        Ok(())
    }

    fn settle(self: Box<Self>, _result: Result<Seq, StoreError>) {
        if let Some(job) = self.job {
            // Whoever submits waits for it.
            let _ = self.back.send(job);
        }
    }
}

struct TwiceAsked(Box<dyn Query>);

impl Query for TwiceAsked {
    fn run(&mut self, at: &mut dyn Read) -> Result<(), Halt> {
        let _ = self.0.run(at);
        self.0.run(at)
    }

    fn settle(self: Box<Self>, result: Result<Seq, StoreError>) {
        self.0.settle(result);
    }
}

/// A transaction whose writes nobody keeps; it reads them, as any does.
struct Dropped<'a, R: ?Sized> {
    at: &'a mut R,
    wrote: BTreeMap<Vec<u8>, Option<Bytes>>,
}

impl<'a, R: Read + ?Sized> Dropped<'a, R> {
    fn over(at: &'a mut R) -> Self {
        Dropped { at, wrote: BTreeMap::new() }
    }
}

impl<R: Read + ?Sized> Read for Dropped<'_, R> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, Halt> {
        match self.wrote.get(key) {
            Some(own) => Ok(own.clone()),
            None => self.at.get(key),
        }
    }

    fn scan(&mut self, span: Span<'_>, limit: usize, each: Each<'_>) -> Result<(), Halt> {
        let most = usize::try_from(SCAN_ENTRIES.max).unwrap_or(usize::MAX);
        let mut found = BTreeMap::new();
        let below = (limit + self.wrote.len()).min(most.max(limit));
        self.at.scan(span.clone(), below, &mut |key, value| {
            found.insert(key.to_vec(), Some(Bytes::from(value)));
            ControlFlow::Continue(())
        })?;
        let own = self.wrote.iter().filter(|(key, _)| span.contains(key));
        found.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        let there = found.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
        for (key, value) in span.order().walk(there).take(limit) {
            if each(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn stamp(&self) -> Stamp {
        self.at.stamp()
    }
}

impl<R: Read + ?Sized> Txn for Dropped<'_, R> {
    fn put(&mut self, key: &[u8], value: Bytes) -> Result<(), Halt> {
        self.wrote.insert(key.to_vec(), Some(value));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Halt> {
        self.wrote.insert(key.to_vec(), None);
        Ok(())
    }

    fn note(&mut self, _payload: Bytes) -> Result<(), Halt> {
        Ok(())
    }
}

/// An engine whose stores are hostile.
pub struct HostileEngine<E> {
    engine: E,
    /// Not a handle: dropping the caller's must end the store.
    open: Weak<Hostile>,
}

impl<E> HostileEngine<E> {
    fn hostile(&self) -> Arc<Hostile> {
        self.open.upgrade().expect("an open store")
    }
}

impl<E: Engine> Engine for HostileEngine<E> {
    fn new() -> Self {
        HostileEngine { engine: E::new(), open: Weak::new() }
    }

    fn clock(&self) -> &ManualClock {
        self.engine.clock()
    }

    fn open(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        let hostile = Arc::new(Hostile::over(self.engine.open()?));
        self.open = Arc::downgrade(&hostile);
        Ok(hostile)
    }

    fn crash(&mut self, store: Arc<dyn Store>) {
        let inner = self.hostile().inner.clone();
        drop(store);
        self.engine.crash(inner);
    }

    fn hold(&self) {
        self.engine.hold();
    }

    fn wait_until_held(&self) {
        self.engine.wait_until_held();
    }

    fn release(&self) {
        self.engine.release();
    }

    fn fail_next(&self, fault: Fault) {
        self.engine.fail_next(fault);
    }

    fn set_format(&mut self, version: u32) {
        self.engine.set_format(version);
    }

    /// Without the first of the three runs: a batch is handed over as one.
    fn submit_together(&self, _store: &dyn Store, jobs: Vec<Box<dyn Job>>) {
        let hostile = self.hostile();
        let twice = jobs.into_iter().map(|job| Box::new(hostile.wrap(job).0) as Box<dyn Job>);
        self.engine.submit_together(&*hostile.inner, twice.collect());
    }
}
