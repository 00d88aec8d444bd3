//! The one writer: takes jobs, runs them as a batch, commits once, settles all.
//!
//! Jobs touch only overlays; redb sees one sorted layer per batch. Losing the handle is
//! `recovery.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::disk::nanos;
use super::gate::{Failure, NoSnapshot, Snapshot, write};
use super::queue::{BATCH_JOBS, Wake};
use super::{Opener, Shared};
use crate::batch::{Batch, Sealed, settle};
use crate::error::StoreError;
use crate::meta::{BATCH_KEY, BatchRecord};
use crate::overlay::Layer;
use crate::store::{Condition, Fate, Job};

/// A batch takes no further job above this; with the largest job it is twice as much.
const BATCH_BYTES: u64 = 8 * 1024 * 1024;
/// Part of a commit's usual time that is spent waiting for company: more costs latency than the
/// larger batch saves.
const LINGER_PART: u32 = 5;
/// Weight of the newest commit in the usual time, as a divisor.
const USUAL_WEIGHT: u32 = 8;
/// An idle store persists its time this often: what a crash can take back, and so how late a
/// deadline can get by one.
const HEARTBEAT: Duration = Duration::from_secs(60);
/// How often a full disk is tried again.
const PROBE: Duration = Duration::from_millis(250);

pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) opener: Opener,
    pub(super) record: BatchRecord,
    pub(super) last_seq: u64,
    /// Taken from the queue, not run yet.
    pub(super) carried: VecDeque<Box<dyn Job>>,
    pub(super) last_batch: usize,
    pub(super) usual_commit: Duration,
    /// When a full disk was last tried.
    pub(super) probed: Option<Duration>,
}

impl Writer {
    /// The life of the writer thread.
    pub(super) fn serve(mut self) {
        loop {
            if self.past_deadline() {
                break;
            }
            let wake = if self.carried.is_empty() {
                let idle = if self.probed.is_some() { PROBE } else { HEARTBEAT };
                self.shared.queue.wait(idle)
            } else {
                Wake::Jobs
            };
            match wake {
                Wake::Jobs => {
                    self.gather();
                    self.run_batch();
                }
                Wake::Suspected => self.lost_by_a_reader(None),
                Wake::Idle => self.idle(),
                Wake::Close => break,
            }
        }
        self.conclude();
    }

    fn past_deadline(&self) -> bool {
        let now = self.shared.time.clock().monotonic();
        self.shared.queue.closing().is_some_and(|at| now >= at)
    }

    /// Takes what is queued; lingers only if company is expected.
    fn gather(&mut self) {
        self.shared.queue.take(&mut self.carried);
        let running = self.shared.company.load(Ordering::Relaxed);
        let expected = self.last_batch.min(running).min(BATCH_JOBS);
        let here = self.carried.len();
        if here < expected {
            let linger = self.usual_commit / LINGER_PART;
            if !linger.is_zero() {
                self.shared.queue.linger(expected - here, linger);
                self.shared.queue.take(&mut self.carried);
            }
        }
    }

    fn run_batch(&mut self) {
        if self.probed.is_some() && !self.has_room() {
            let why = "the disk is full; writes go on when there is room again";
            self.refuse_all(why);
            return;
        }
        let snapshot = match self.shared.gate.snapshot(Duration::ZERO) {
            Ok(snapshot) => snapshot,
            Err(NoSnapshot::Failed(generation, failure)) => {
                return self.lost(generation, failure, None);
            }
            Err(NoSnapshot::Refused(_)) => return self.lost_by_a_reader(None),
        };
        let stamp = self.shared.time.stamp(self.last_seq);
        let mut batch = Batch::open(&snapshot, self.record.clone(), stamp);
        let mut jobs = 0;
        while batch.bytes() < BATCH_BYTES
            && jobs < BATCH_JOBS
            && snapshot.latched().is_none()
            && let Some(job) = self.carried.pop_front()
        {
            batch.run(job);
            jobs += 1;
        }
        self.last_batch = jobs;
        self.last_seq += jobs as u64;
        let sealed = batch.seal();
        let (generation, latched) = (snapshot.generation, snapshot.latched());
        // The commit may free pages that an open snapshot would pin.
        drop(snapshot);
        match (sealed, latched) {
            (Ok(sealed), None) => self.commit(generation, sealed),
            (Ok(sealed), Some(failure)) => {
                let why = failure.clone().into_store_error();
                settle_failed(sealed.ran, &why);
                self.lost(generation, failure, None);
            }
            (Err((error, jobs)), latched) => {
                for job in jobs {
                    settle(job, Fate::Failed(error.clone()));
                }
                if let Some(failure) = latched {
                    self.lost(generation, failure, None);
                }
            }
        }
    }

    fn commit(&mut self, generation: u64, sealed: Sealed) {
        if sealed.layer.is_empty() {
            return self.settle_batch(sealed);
        }
        let written = match self.shared.gate.database() {
            Some((db, _)) => self.timed_write(&db, &sealed.layer),
            None => return self.lost_by_a_reader(Some(sealed)),
        };
        match written {
            Ok(()) => self.settle_batch(sealed),
            Err(failure) => self.lost(generation, failure, Some(sealed)),
        }
    }

    /// A reader found the handle failed, perhaps after `inflight` was run on it.
    fn lost_by_a_reader(&mut self, inflight: Option<Sealed>) {
        // None: the report came late, the handle is a new one already.
        if let Some((generation, failure)) = self.shared.gate.suspicion() {
            self.lost(generation, failure, inflight);
        } else if let Some(sealed) = inflight {
            let why = StoreError::Unavailable { why: "the store was opened again meanwhile".to_string() };
            settle_failed(sealed.ran, &why);
        }
    }

    fn timed_write(&mut self, db: &::redb::Database, layer: &Layer) -> Result<(), Failure> {
        let clock = self.shared.time.clock();
        let began = clock.monotonic();
        let counts = &self.shared.counts;
        counts.commit_began_nanos.store(nanos(began).saturating_add(1), Ordering::Relaxed);
        let written = write(db, layer);
        let took = clock.monotonic().saturating_sub(began);
        counts.last_commit_nanos.store(nanos(took), Ordering::Relaxed);
        counts.commit_began_nanos.store(0, Ordering::Relaxed);
        self.usual_commit = if self.usual_commit.is_zero() {
            took
        } else {
            self.usual_commit - self.usual_commit / USUAL_WEIGHT + took / USUAL_WEIGHT
        };
        written
    }

    /// The batch is durable, or wrote nothing: tells the watchers, then every job.
    pub(super) fn settle_batch(&mut self, sealed: Sealed) {
        let counts = &self.shared.counts;
        if !sealed.layer.is_empty() {
            self.record = sealed.record;
            self.shared.durable_seq.store(self.record.seq, Ordering::Release);
            self.shared.wake.publish(self.record.feed_newest);
            counts.batches.fetch_add(1, Ordering::Relaxed);
            counts.bytes.fetch_add(sealed.bytes, Ordering::Relaxed);
        }
        counts.jobs.fetch_add(sealed.ran.len() as u64, Ordering::Relaxed);
        for (job, fate) in sealed.ran {
            let counter = match &fate {
                Fate::Committed(_) => &counts.committed,
                Fate::Aborted(_) => &counts.aborted,
                Fate::Failed(_) => &counts.failed,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            settle(job, fate);
        }
    }

    /// Goes on from `record`, and tells the watchers.
    pub(super) fn is_durable(&mut self, record: BatchRecord) {
        let durable_seq = &self.shared.durable_seq;
        durable_seq.store(record.seq, Ordering::Release);
        self.shared.wake.publish(record.feed_newest);
        self.record = record;
    }

    /// Tells every job that waits that it cannot be done now.
    pub(super) fn refuse_all(&mut self, why: &str) {
        let why = StoreError::Unavailable { why: why.to_string() };
        let mut jobs = std::mem::take(&mut self.carried);
        jobs.extend(self.shared.queue.take_all());
        let counts = &self.shared.counts;
        counts.failed.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        for job in jobs {
            settle(job, Fate::Failed(why.clone()));
        }
    }

    fn idle(&mut self) {
        if self.probed.is_some() && !self.has_room() {
            return;
        }
        let behind = self.shared.time.now_ms().saturating_sub(self.record.store_ms);
        if u128::from(behind) < HEARTBEAT.as_millis() {
            return;
        }
        let mut record = self.record.clone();
        record.advance(self.last_seq, self.shared.time.now_ms());
        self.write_record(record);
    }

    /// Commits a batch that holds its record only.
    fn write_record(&mut self, record: BatchRecord) {
        let Some((db, generation)) = self.shared.gate.database() else {
            return;
        };
        let layer = Layer::from([(BATCH_KEY.to_vec(), Some(record.encode()))]);
        let written = self.timed_write(&db, &layer);
        drop(db);
        match written {
            Ok(()) => self.is_durable(record),
            Err(failure) => self.lost(generation, failure, None),
        }
    }

    /// True, and writable again, once the disk takes the reserve; asked at most every so often.
    fn has_room(&mut self) -> bool {
        let now = self.shared.time.clock().monotonic();
        if self.probed.is_some_and(|at| now < at + PROBE) {
            return false;
        }
        self.probed = Some(now);
        if let Err(error) = self.opener.disk.fill_reserve() {
            tracing::debug!(%error, "the disk is still full");
            return false;
        }
        self.probed = None;
        self.shared.gate.writable();
        tracing::info!("there is room on the disk again: writes go on");
        true
    }

    /// The end: refuses what is left, persists where the next session goes on, closes the file.
    fn conclude(mut self) {
        let left = self.shared.queue.end();
        for job in std::mem::take(&mut self.carried).into_iter().chain(left) {
            settle(job, Fate::Failed(StoreError::Closed));
        }
        if self.probed.is_none() {
            let mut record = self.record.clone();
            record.conclude(self.last_seq, self.shared.time.now_ms());
            self.write_record(record);
        }
        self.shared.asks.close();
        let closed = self.shared.gate.shut(Condition::Closed);
        self.shared.wake.close();
        let shared = self.shared.clone();
        // Releases the directory's lock before anyone hears that the store is closed.
        drop(self);
        let result = closed.map_err(Failure::into_store_error);
        shared.finished.send_replace(Some(result));
    }
}

pub(super) fn settle_failed(ran: Vec<(Box<dyn Job>, Fate)>, why: &StoreError) {
    for (job, fate) in ran {
        match fate {
            Fate::Failed(own) if !matches!(own, StoreError::Unavailable { .. }) => {
                settle(job, Fate::Failed(own));
            }
            Fate::Failed(_) | Fate::Committed(_) | Fate::Aborted(_) => {
                settle(job, Fate::Failed(why.clone()));
            }
        }
    }
}

/// What a snapshot of a fresh handle says about the last batch.
pub(super) fn last_record(db: &::redb::Database) -> Result<BatchRecord, StoreError> {
    let snapshot = Snapshot::of(db, 0).map_err(Failure::into_store_error)?;
    BatchRecord::load(&snapshot)
}
