//! The engine in memory: the executable specification, and the store of simulations.
//!
//! Every job is a batch of its own, run and settled inline by whoever submits. "Durable" is what
//! its [`MemImage`] holds: an image outlives the store opened on it, so closing, crashing and
//! opening again can be played through without a disk. Faults are planted by tests.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::batch::{Batch, Sealed, settle};
use crate::clock::{BoxFuture, Clock, StoreTime};
use crate::error::StoreError;
use crate::feed::{self, Changes, FeedReply, FeedSource, FeedWake, Position};
use crate::limits::{QUEUE_ADMISSIONS, QUEUE_COMPLETIONS};
use crate::meta::{BATCH_KEY, BatchRecord, FORMAT, FORMAT_KEY, check_format, encode_format};
use crate::overlay::{Base, Ends, run_query};
use crate::store::{Bytes, Condition, Each, Fate, Full, Health, Job, Lane, Order, Query, Seq, Stamp, Store};

type Map = BTreeMap<Vec<u8>, Bytes>;
type Settled = Vec<(Box<dyn Job>, Fate)>;

/// What survives a close or a crash of [`Mem`]. Clones are the same image.
#[derive(Clone, Default)]
pub struct MemImage {
    inner: Arc<Mutex<Image>>,
}

#[derive(Default)]
struct Image {
    map: Map,
    open: bool,
}

impl MemImage {
    /// An image nothing was written to.
    pub fn new() -> MemImage {
        MemImage::default()
    }

    /// Marks the image as written by the release that knows format `version`.
    pub fn set_format(&self, version: u32) {
        let format = encode_format(version);
        self.lock().map.insert(FORMAT_KEY.to_vec(), format);
    }

    fn lock(&self) -> MutexGuard<'_, Image> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let image = self.lock();
        f.debug_struct("MemImage").field("entries", &image.map.len()).field("open", &image.open).finish()
    }
}

/// A planted failure of the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is kept; the jobs are told so.
    Unavailable,
    /// The jobs are told that their fate is unknown.
    Indeterminate {
        /// Whether the writes are kept all the same.
        kept: bool,
    },
}

/// The engine in memory. Clones are the same store.
#[derive(Clone)]
pub struct Mem {
    shared: Arc<Shared>,
}

struct Shared {
    image: MemImage,
    time: StoreTime,
    wake: FeedWake,
    inner: Mutex<Inner>,
}

struct Inner {
    completions: VecDeque<Box<dyn Job>>,
    admissions: VecDeque<Box<dyn Job>>,
    faults: VecDeque<Fault>,
    /// The process dies behind the next commit that writes something.
    dies: bool,
    /// Jobs of a process that died: kept, so that whoever waits for them waits for good.
    dead: Vec<Box<dyn Job>>,
    record: BatchRecord,
    last_seq: u64,
    held: bool,
    /// The batch whose commit is held.
    stalled: Option<Sealed>,
    /// Somebody is running jobs; who submits meanwhile only queues, `settle` included.
    pumping: bool,
    closed: bool,
}

impl Mem {
    /// A new store on an image of its own.
    pub fn new(clock: Arc<dyn Clock>) -> Mem {
        match Mem::open(MemImage::new(), clock) {
            Ok(mem) => mem,
            Err(error) => unreachable!("a new image opens: {error}"),
        }
    }

    /// Opens a store on `image`.
    ///
    /// # Errors
    /// [`StoreError::AlreadyOpen`], [`StoreError::NewerFormat`] or [`StoreError::Corrupt`].
    pub fn open(image: MemImage, clock: Arc<dyn Clock>) -> Result<Mem, StoreError> {
        let record = {
            let mut image = image.lock();
            if image.open {
                return Err(StoreError::AlreadyOpen {
                    path: PathBuf::from("the image in memory"),
                    pid: Some(std::process::id()),
                });
            }
            let base = MemBase(&image.map);
            let marked = check_format(&base)?;
            let record = BatchRecord::load(&base)?;
            if !marked {
                image.map.insert(FORMAT_KEY.to_vec(), encode_format(FORMAT));
            }
            image.open = true;
            record
        };
        Ok(Mem {
            shared: Arc::new(Shared {
                image,
                time: StoreTime::resume(clock, record.store_ms),
                wake: FeedWake::new(record.feed_newest),
                inner: Mutex::new(Inner {
                    completions: VecDeque::new(),
                    admissions: VecDeque::new(),
                    faults: VecDeque::new(),
                    dies: false,
                    dead: Vec::new(),
                    last_seq: record.seq_ceiling,
                    record,
                    held: false,
                    stalled: None,
                    pumping: false,
                    closed: false,
                }),
            }),
        })
    }

    /// What survives this store.
    pub fn image(&self) -> MemImage {
        self.shared.image.clone()
    }

    /// Makes the next commits that write something fail, in the order planted.
    pub fn fail_next(&self, fault: Fault) {
        self.shared.lock().faults.push_back(fault);
    }

    /// Ends the store as a killed process does, right behind the next commit that writes something: it is
    /// durable, and nobody is told, not even that there is nothing to wait for. [`Mem::crash`] lets go.
    pub fn die_after_commit(&self) {
        self.shared.lock().dies = true;
    }

    /// Stalls the disk: the next batch that writes is not durable, and so not settled, before
    /// [`Mem::release`]; jobs queue behind it and reads go on.
    pub fn hold(&self) {
        self.shared.lock().held = true;
    }

    /// Ends the stall.
    pub fn release(&self) {
        self.shared.lock().held = false;
        self.shared.pump();
    }

    /// Ends the store as a killed process does: queued jobs are dropped without an answer, and
    /// the image can be opened again.
    pub fn crash(&self) {
        let dropped = {
            let mut inner = self.shared.lock();
            let dead = std::mem::take(&mut inner.dead);
            if inner.closed {
                drop(inner);
                drop(dead);
                return;
            }
            inner.closed = true;
            (inner.stalled.take(), std::mem::take(&mut inner.completions), std::mem::take(&mut inner.admissions))
        };
        drop(dropped);
        self.shared.wake.close();
        self.shared.image.lock().open = false;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs queued jobs until none is left; returns at once if somebody else does.
    fn pump(&self) {
        {
            let mut inner = self.lock();
            if inner.pumping {
                return;
            }
            inner.pumping = true;
        }
        loop {
            let settled = {
                let mut inner = self.lock();
                match self.step(&mut inner) {
                    Some(settled) => settled,
                    None => {
                        inner.pumping = false;
                        return;
                    }
                }
            };
            for (job, fate) in settled {
                settle(job, fate);
            }
        }
    }

    /// Runs one batch of one job, or finishes the stalled one; `None` if there is nothing to do.
    fn step(&self, inner: &mut Inner) -> Option<Settled> {
        if inner.closed || (inner.held && inner.stalled.is_some()) {
            return None;
        }
        if let Some(sealed) = inner.stalled.take() {
            return Some(self.commit(inner, sealed));
        }
        let job = inner.completions.pop_front().or_else(|| inner.admissions.pop_front())?;
        let sealed = {
            let image = self.image.lock();
            let base = MemBase(&image.map);
            let stamp = self.time.stamp(inner.last_seq);
            let mut batch = Batch::open(&base, inner.record.clone(), stamp);
            batch.run(job);
            batch.seal()
        };
        inner.last_seq += 1;
        match sealed {
            Ok(sealed) if sealed.layer.is_empty() => Some(sealed.ran),
            Ok(sealed) if inner.held => {
                inner.stalled = Some(sealed);
                None
            }
            Ok(sealed) => Some(self.commit(inner, sealed)),
            Err((error, jobs)) => {
                let failed = |job| (job, Fate::Failed(error.clone()));
                Some(jobs.into_iter().map(failed).collect())
            }
        }
    }

    /// Makes a batch durable, or plays the fault planted for it.
    fn commit(&self, inner: &mut Inner, sealed: Sealed) -> Settled {
        let fault = inner.faults.pop_front();
        if !matches!(fault, Some(Fault::Unavailable | Fault::Indeterminate { kept: false })) {
            let mut image = self.image.lock();
            for (key, value) in sealed.layer {
                match value {
                    Some(value) => image.map.insert(key, value),
                    None => image.map.remove(&key),
                };
            }
            inner.record = sealed.record;
            self.wake.publish(inner.record.feed_newest);
        }
        if inner.dies {
            inner.closed = true;
            let Inner { dead, completions, admissions, .. } = inner;
            dead.extend(sealed.ran.into_iter().map(|(job, _)| job));
            dead.extend(completions.drain(..).chain(admissions.drain(..)));
            self.wake.close();
            self.image.lock().open = false;
            return Vec::new();
        }
        let error = match fault {
            None => return sealed.ran,
            Some(Fault::Unavailable) => StoreError::Unavailable { why: "a planted fault".to_string() },
            Some(Fault::Indeterminate { .. }) => StoreError::Indeterminate { why: "a planted fault".to_string() },
        };
        let failed = |(job, fate)| match fate {
            Fate::Failed(own) => (job, Fate::Failed(own)),
            Fate::Committed(_) | Fate::Aborted(_) => (job, Fate::Failed(error.clone())),
        };
        sealed.ran.into_iter().map(failed).collect()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.lock().closed {
            self.image.lock().open = false;
        }
    }
}

impl FeedSource for Shared {
    fn read_feed(&self, after: Position, reply: FeedReply) {
        let answer = if self.lock().closed {
            Err(crate::feed::ChangesError::Store(StoreError::Closed))
        } else {
            feed::read(&MemBase(&self.image.lock().map), after)
        };
        // The reader may have gone.
        let _ = reply.send(answer);
    }
}

impl Store for Mem {
    fn submit(&self, lane: Lane, job: Box<dyn Job>) -> Result<(), Full> {
        {
            let mut inner = self.shared.lock();
            if inner.closed {
                let why = StoreError::Closed;
                return Err(Full { job, lane, why });
            }
            let (queue, limit) = match lane {
                Lane::Completion => (&mut inner.completions, QUEUE_COMPLETIONS),
                Lane::Admission => (&mut inner.admissions, QUEUE_ADMISSIONS),
            };
            if let Err(why) = limit.check(queue.len() as u64 + 1) {
                return Err(Full { job, lane, why });
            }
            queue.push_back(job);
        }
        self.shared.pump();
        Ok(())
    }

    fn query(&self, mut query: Box<dyn Query>) {
        let result = {
            let inner = self.shared.lock();
            let stamp = self.shared.time.stamp(inner.record.seq);
            if inner.closed {
                Err(StoreError::Closed)
            } else {
                // Held over the run: the snapshot is the state nobody changes meanwhile.
                let image = self.shared.image.lock();
                drop(inner);
                run_query(&mut *query, &MemBase(&image.map), stamp).map(|()| Seq(stamp.seq))
            }
        };
        let settled = catch_unwind(AssertUnwindSafe(|| query.settle(result)));
        if settled.is_err() {
            tracing::error!("a query panicked while it was settled");
        }
    }

    fn changes(&self, after: Position) -> Changes {
        let source: Arc<dyn FeedSource> = self.shared.clone();
        Changes::new(source, &self.shared.wake, after)
    }

    fn now(&self) -> Stamp {
        let seq = self.shared.lock().record.seq;
        self.shared.time.stamp(seq)
    }

    fn store_time_at(&self, monotonic: Duration) -> u64 {
        self.shared.time.at(monotonic)
    }

    fn sleep_until_store(&self, store_ms: u64) -> BoxFuture<'static, ()> {
        self.shared.time.sleep_until(store_ms)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.shared.time.clock().clone()
    }

    fn health(&self) -> Health {
        let inner = self.shared.lock();
        Health {
            condition: if inner.closed { Condition::Closed } else { Condition::Ready },
            completions: inner.completions.len(),
            admissions: inner.admissions.len(),
            last_commit: Duration::ZERO,
        }
    }

    fn expect_company(&self, _running: usize) {
        // Every job is its own batch: there is nothing to wait for.
    }

    fn close(&self, _drain: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let left: Vec<_> = {
                let mut inner = self.shared.lock();
                if inner.closed {
                    return Ok(());
                }
                inner.closed = true;
                let seq = inner.last_seq;
                inner.record.conclude(seq, self.shared.time.now_ms());
                let mut image = self.shared.image.lock();
                image.map.insert(BATCH_KEY.to_vec(), inner.record.encode());
                image.open = false;
                let inner = &mut *inner;
                let stalled = inner.stalled.take().map_or(Vec::new(), |sealed| sealed.ran);
                let stalled = stalled.into_iter().map(|(job, _)| job);
                let completions = inner.completions.drain(..);
                stalled.chain(completions).chain(inner.admissions.drain(..)).collect()
            };
            self.shared.wake.close();
            for job in left {
                settle(job, Fate::Failed(StoreError::Closed));
            }
            Ok(())
        })
    }
}

struct MemBase<'a>(&'a Map);

impl Base for MemBase<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.0.get(key).cloned())
    }

    fn walk(&self, ends: Ends<'_>, order: Order, each: Each<'_>) -> Result<(), StoreError> {
        for (key, value) in order.walk(self.0.range::<[u8], _>(ends)) {
            if each(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}
