//! A store that writes down what jobs wrote, key by key: so that redb alone can be given the very
//! same keys and bytes.

use interlock_store::{
    BoxFuture, Bytes, Changes, Clock, Each, Fate, Full, Halt, Health, Job, Lane, Position, Query, Read, Span, Stamp,
    Store, StoreError, Txn,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// First byte of the store's change feed, and the key of what it persists with every batch.
const FEED: u8 = 0x01;
const BATCH_KEY: [u8; 2] = [FEED, 0xFF];
const BATCH_BYTES: usize = 68;

/// A write: a removal if there is no value.
pub(crate) type Written = (Vec<u8>, Option<Bytes>);

/// One committed job that wrote something.
#[derive(Clone, Debug)]
pub(crate) struct Taped {
    pub(crate) lane: Lane,
    /// In the order written, the entries of the change feed last.
    pub(crate) writes: Vec<Written>,
}

/// What the store itself writes with every batch.
pub(crate) fn of_every_batch() -> Written {
    (BATCH_KEY.to_vec(), Some(vec![0; BATCH_BYTES].into()))
}

/// What was recorded. Clones are the same tape.
#[derive(Clone, Default)]
pub(crate) struct Tape(Arc<Mutex<Vec<Taped>>>);

impl Tape {
    /// Takes what was recorded since the last time.
    pub(crate) fn take(&self) -> Vec<Taped> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The store in front of another.
pub(crate) struct Recorder<S> {
    pub(crate) inner: S,
    pub(crate) tape: Tape,
}

impl<S: Store> Store for Recorder<S> {
    fn submit(&self, lane: Lane, job: Box<dyn Job>) -> Result<(), Full> {
        let job = TapedJob { job, lane, tape: self.tape.clone(), writes: Vec::new() };
        self.inner.submit(lane, Box::new(job))
    }

    fn query(&self, query: Box<dyn Query>) {
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

struct TapedJob {
    job: Box<dyn Job>,
    lane: Lane,
    tape: Tape,
    writes: Vec<Written>,
}

impl Job for TapedJob {
    fn run(&mut self, txn: &mut dyn Txn) -> Result<(), Halt> {
        let mut txn = TapedTxn { txn, writes: Vec::new(), notes: Vec::new() };
        self.job.run(&mut txn)?;
        self.writes = txn.writes;
        let stamp = txn.txn.stamp();
        for (n, note) in (0_u32..).zip(txn.notes) {
            let key = [&[FEED][..], &stamp.seq.to_be_bytes(), &n.to_be_bytes()].concat();
            let times = [stamp.store_ms.to_be_bytes(), stamp.wall_ms.to_be_bytes()].concat();
            let value = [&times[..], &note].concat();
            self.writes.push((key, Some(value.into())));
        }
        Ok(())
    }

    fn settle(self: Box<Self>, fate: Fate) {
        let Self { job, lane, tape, writes } = *self;
        // The host's own looks commit too, and write nothing.
        if matches!(fate, Fate::Committed(_)) && !writes.is_empty() {
            let mut tape = tape.0.lock().unwrap_or_else(PoisonError::into_inner);
            tape.push(Taped { lane, writes });
        }
        job.settle(fate);
    }
}

struct TapedTxn<'a> {
    txn: &'a mut dyn Txn,
    writes: Vec<Written>,
    notes: Vec<Bytes>,
}

impl Read for TapedTxn<'_> {
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

impl Txn for TapedTxn<'_> {
    fn put(&mut self, key: &[u8], value: Bytes) -> Result<(), Halt> {
        self.writes.push((key.to_vec(), Some(value.clone())));
        self.txn.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Halt> {
        self.writes.push((key.to_vec(), None));
        self.txn.delete(key)
    }

    fn note(&mut self, payload: Bytes) -> Result<(), Halt> {
        self.notes.push(payload.clone());
        self.txn.note(payload)
    }
}
