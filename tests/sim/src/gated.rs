//! A store that waits to be told: every job and, if wanted, every query is held until the scheduler lets it
//! run, and every answer until the scheduler lets it be heard.
//!
//! Below is a real engine, and whatever a job reads and writes goes through it. What is decided here is only
//! when, and which of the fates that the contract allows: run, run and thrown away to be run again, failed,
//! or of unknown fate. Whatever a job wrote is written down on its way, for the model. The planted faults
//! are here too: with them the checks must fail.

use crate::plant::{Mischief, Plant};
use interlock_store::{
    BoxFuture, Bytes, Changes, Clock, Each, Fate, Full, Halt, Health, Job, Lane, Position, QUEUE_ADMISSIONS, Query,
    Read, Seq, Span, Stamp, Store, StoreError, Txn,
};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One write: a key, and what it holds from then on.
pub(crate) type Write = (Vec<u8>, Option<Bytes>);

/// What is to become of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It runs, and its fate is told as it is.
    Plain,
    /// It runs, and leaves no trace; it is told so.
    Unavailable,
    /// It runs; nobody can say whether its writes are kept.
    Unknown {
        /// Whether they are.
        kept: bool,
    },
    /// It runs, and waits to run again, as a job must expect.
    Again,
}

/// A job that ran.
#[derive(Clone)]
pub(crate) struct Ran {
    /// Its place in the order of submission.
    pub(crate) number: u64,
    /// The stamp of its run; none if it never ran.
    pub(crate) stamp: Option<Stamp>,
    /// What it wrote, in order.
    pub(crate) writes: Vec<Write>,
    /// Whether that is durable; none if nobody knows, since the store died over it.
    pub(crate) kept: Option<bool>,
    /// What it is told.
    pub(crate) fate: Fate,
}

/// The gate.
pub(crate) struct Gated {
    inner: Arc<dyn Store>,
    state: Mutex<State>,
    flight: Flight,
    mischief: Mischief,
}

#[derive(Default)]
struct State {
    next: u64,
    jobs: Vec<Held>,
    holds_queries: bool,
    queries: VecDeque<Box<dyn Query>>,
    untold: VecDeque<(Box<dyn Job>, Fate)>,
    full: bool,
    dead: bool,
}

struct Held {
    number: u64,
    lane: Lane,
    job: Box<dyn Job>,
}

/// The one job or query in the engine's hands, and what came of it.
#[derive(Default)]
struct Landing {
    airborne: bool,
    stamp: Option<Stamp>,
    writes: Vec<Write>,
    landed: Option<(Box<dyn Job>, Fate)>,
    dead: bool,
}

/// Shared with the engine's threads.
type Flight = Arc<(Mutex<Landing>, Condvar)>;

impl Gated {
    pub(crate) fn new(inner: Arc<dyn Store>, plant: Plant) -> Arc<Self> {
        let (state, flight) = (Mutex::default(), Flight::default());
        Arc::new(Self { inner, state, flight, mischief: Mischief::new(plant) })
    }

    /// Jobs that wait.
    pub(crate) fn jobs(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Queries that wait.
    pub(crate) fn queries(&self) -> usize {
        self.lock().queries.len()
    }

    /// Answers that wait to be heard.
    pub(crate) fn untold(&self) -> usize {
        self.lock().untold.len()
    }

    /// Whether queries wait too.
    pub(crate) fn hold_queries(&self, hold: bool) {
        self.lock().holds_queries = hold;
    }

    /// The next submission finds the queue full.
    pub(crate) fn fill(&self) {
        self.lock().full = true;
    }

    /// Whether a dead disk or process has ended this store.
    pub(crate) fn is_dead(&self) -> bool {
        self.lock().dead
    }

    /// The end, as a killed process meets it: nothing is taken, run or told any more. May be called on any
    /// thread.
    pub(crate) fn die(&self) {
        lock(&self.flight.0).dead = true;
        self.flight.1.notify_all();
        self.lock().dead = true;
    }

    /// Lets go of everything that waited, unheard. The engine must have been closed: what it had in its hands
    /// is waited for.
    pub(crate) fn bury(&self) {
        self.die();
        let landing = lock(&self.flight.0);
        let mut landing =
            self.flight.1.wait_while(landing, |landing| landing.airborne).unwrap_or_else(PoisonError::into_inner);
        let landed = landing.landed.take();
        drop(landing);
        let mut state = self.lock();
        let jobs = std::mem::take(&mut state.jobs);
        let queries = std::mem::take(&mut state.queries);
        let untold = std::mem::take(&mut state.untold);
        drop(state);
        drop((landed, jobs, queries, untold));
    }

    /// Runs the `nth` of the waiting jobs. Its answer then waits to be heard.
    pub(crate) fn run(&self, nth: usize, how: How) -> Option<Ran> {
        let Held { number, lane, job } = {
            let mut state = self.lock();
            if state.dead || nth >= state.jobs.len() {
                return None;
            }
            state.jobs.remove(nth)
        };
        self.take_off();
        let airborne = Airborne { job: Some(job), how, mischief: self.mischief.clone(), flight: self.flight.clone() };
        if let Err(full) = self.inner.submit(lane, Box::new(airborne)) {
            full.job.settle(Fate::Failed(full.why));
        }
        let mut landing = self.landed();
        let (stamp, writes) = (landing.stamp, std::mem::take(&mut landing.writes));
        let Some((job, fate)) = landing.landed.take() else {
            // Its answer, if there will be one, reaches nobody.
            let fate = Fate::Failed(StoreError::Indeterminate { why: "the store died over it".to_owned() });
            return Some(Ran { number, stamp, writes, kept: None, fate });
        };
        drop(landing);
        if how == How::Again {
            self.lock().jobs.push(Held { number, lane, job });
            return Some(Ran { number, stamp, writes: Vec::new(), kept: Some(false), fate });
        }
        let kept = matches!(fate, Fate::Committed(_));
        let fate = told(how, fate, &writes);
        self.lock().untold.push_back((job, fate.clone()));
        Some(Ran { number, stamp, writes, kept: Some(kept), fate })
    }

    /// Lets the next answer be heard; false if none waits.
    pub(crate) fn tell(&self) -> bool {
        let next = self.lock().untold.pop_front();
        next.map(|(job, fate)| job.settle(fate)).is_some()
    }

    /// Runs the `nth` of the waiting queries and lets its answer be heard, or has it fail.
    pub(crate) fn ask(&self, nth: usize, fails: bool) -> bool {
        let query = {
            let mut state = self.lock();
            if state.dead { None } else { state.queries.remove(nth) }
        };
        let Some(query) = query else { return false };
        if fails {
            query.settle(Err(unavailable()));
            return true;
        }
        self.take_off();
        self.inner.query(Box::new(Asked { query: Some(query), flight: self.flight.clone() }));
        drop(self.landed());
        true
    }

    fn take_off(&self) {
        let mut landing = lock(&self.flight.0);
        let dead = landing.dead;
        *landing = Landing { airborne: true, dead, ..Landing::default() };
    }

    /// Waits for what is in the engine's hands, or for the store's death. The engine in memory has landed it
    /// already; the other does so on a thread of its own.
    fn landed(&self) -> MutexGuard<'_, Landing> {
        let landing = lock(&self.flight.0);
        let in_the_air = |landing: &mut Landing| landing.airborne && !landing.dead;
        self.flight.1.wait_while(landing, in_the_air).unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unavailable() -> StoreError {
    StoreError::Unavailable { why: "the simulator says so".to_owned() }
}

/// The fate that a job hears of. A batch that wrote nothing commits nothing and cannot fail.
fn told(how: How, fate: Fate, writes: &[Write]) -> Fate {
    let settled = matches!(fate, Fate::Committed(_) | Fate::Aborted(_));
    match how {
        How::Unavailable if settled && !writes.is_empty() => Fate::Failed(unavailable()),
        How::Unknown { .. } if settled && !writes.is_empty() => {
            Fate::Failed(StoreError::Indeterminate { why: "the simulator says so".to_owned() })
        }
        How::Plain | How::Again | How::Unavailable | How::Unknown { .. } => fate,
    }
}

/// A job in the engine's hands.
struct Airborne {
    job: Option<Box<dyn Job>>,
    how: How,
    mischief: Mischief,
    flight: Flight,
}

impl Job for Airborne {
    fn run(&mut self, txn: &mut dyn Txn) -> Result<(), Halt> {
        let Some(job) = &mut self.job else { return Err(Halt::Abort) };
        let stamp = txn.stamp();
        let mut recorder = Recorder { txn, writes: Vec::new(), mischief: &self.mischief };
        let mut ended = job.run(&mut recorder);
        if self.mischief.runs_twice(&recorder.writes) {
            ended = job.run(&mut recorder);
        }
        let writes = recorder.writes;
        let lost = match self.how {
            How::Again => true,
            How::Unavailable | How::Unknown { kept: false } => !writes.is_empty(),
            How::Plain | How::Unknown { kept: true } => self.mischief.loses(&writes),
        };
        let mut landing = lock(&self.flight.0);
        landing.stamp = Some(stamp);
        landing.writes = if ended.is_ok() { writes } else { Vec::new() };
        if lost && ended.is_ok() { Err(Halt::Abort) } else { ended }
    }

    fn settle(mut self: Box<Self>, fate: Fate) {
        lock(&self.flight.0).landed = self.job.take().map(|job| (job, fate));
    }
}

impl Drop for Airborne {
    fn drop(&mut self) {
        lock(&self.flight.0).airborne = false;
        self.flight.1.notify_all();
    }
}

/// A query in the engine's hands.
struct Asked {
    query: Option<Box<dyn Query>>,
    flight: Flight,
}

impl Query for Asked {
    fn run(&mut self, at: &mut dyn Read) -> Result<(), Halt> {
        self.query.as_mut().map_or(Err(Halt::Abort), |query| query.run(at))
    }

    fn settle(mut self: Box<Self>, result: Result<Seq, StoreError>) {
        if let Some(query) = self.query.take() {
            query.settle(result);
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        lock(&self.flight.0).airborne = false;
        self.flight.1.notify_all();
    }
}

/// Writes down what a job writes.
struct Recorder<'a> {
    txn: &'a mut dyn Txn,
    writes: Vec<Write>,
    mischief: &'a Mischief,
}

impl Read for Recorder<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, Halt> {
        self.txn.get(key)
    }

    fn scan(&mut self, span: Span<'_>, limit: usize, each: Each<'_>) -> Result<(), Halt> {
        self.txn.scan(span, limit, each)
    }

    fn stamp(&self) -> Stamp {
        self.txn.stamp()
    }
}

impl Txn for Recorder<'_> {
    fn put(&mut self, key: &[u8], value: Bytes) -> Result<(), Halt> {
        if !self.mischief.drops(key) {
            self.txn.put(key, value.clone())?;
        }
        self.writes.push((key.to_vec(), Some(value)));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Halt> {
        self.txn.delete(key)?;
        self.writes.push((key.to_vec(), None));
        Ok(())
    }

    fn note(&mut self, payload: Bytes) -> Result<(), Halt> {
        self.txn.note(payload)
    }
}

impl Store for Gated {
    fn submit(&self, lane: Lane, job: Box<dyn Job>) -> Result<(), Full> {
        let mut state = self.lock();
        if state.dead {
            return Err(Full { job, lane, why: StoreError::Closed });
        }
        if std::mem::take(&mut state.full) {
            let limit = QUEUE_ADMISSIONS;
            let why = StoreError::Limit { name: limit.name, max: limit.max, got: limit.max + 1 };
            return Err(Full { job, lane, why });
        }
        let number = state.next;
        state.next += 1;
        state.jobs.push(Held { number, lane, job });
        Ok(())
    }

    fn query(&self, query: Box<dyn Query>) {
        let mut state = self.lock();
        if state.dead {
            drop(state);
            return query.settle(Err(StoreError::Closed));
        }
        if state.holds_queries {
            state.queries.push_back(query);
            return;
        }
        drop(state);
        self.inner.query(query);
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
        self.inner.sleep_until_store(store_ms)
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
