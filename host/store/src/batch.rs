//! One batch: jobs run one after another, each over what the earlier ones wrote.
//!
//! Shared by the engines, so that numbering, limits, stamps, the change feed and "who is
//! answered when" are decided once. An engine supplies the durable state below and makes
//! [`Sealed::layer`] durable.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::StoreError;
use crate::feed;
use crate::meta::{BATCH_KEY, BatchRecord};
use crate::overlay::{Base, Layer, Ran, panic_message, run_job};
use crate::store::{Fate, Job, Seq, Stamp};

/// A batch that takes jobs.
pub(crate) struct Batch<'a> {
    base: &'a dyn Base,
    layer: Layer,
    record: BatchRecord,
    stamp: Stamp,
    ran: Vec<(Box<dyn Job>, Fate)>,
    wrote: bool,
    bytes: u64,
}

/// A batch that must become durable before its jobs are settled.
pub(crate) struct Sealed {
    /// Everything to write, the batch record included; empty if there is nothing to write.
    pub(crate) layer: Layer,
    pub(crate) record: BatchRecord,
    pub(crate) ran: Vec<(Box<dyn Job>, Fate)>,
    pub(crate) bytes: u64,
}

impl<'a> Batch<'a> {
    /// A batch over `base`, whose last record is `record`; `stamp` carries the last number
    /// handed out.
    pub(crate) fn open(base: &'a dyn Base, record: BatchRecord, stamp: Stamp) -> Batch<'a> {
        Batch { base, layer: Layer::new(), record, stamp, ran: Vec::new(), wrote: false, bytes: 0 }
    }

    /// Runs `job` with the next number.
    pub(crate) fn run(&mut self, mut job: Box<dyn Job>) {
        self.stamp.seq += 1;
        let seq = Seq(self.stamp.seq);
        let fate = match run_job(&mut *job, self.base, &self.layer, self.stamp) {
            Ran::Wrote(writes) => {
                self.wrote = true;
                self.bytes += writes.bytes;
                if self.layer.is_empty() {
                    self.layer = writes.layer;
                } else {
                    for (key, value) in writes.layer {
                        self.layer.insert(key, value);
                    }
                }
                feed::append(&mut self.layer, &mut self.record, writes.notes, self.stamp);
                Fate::Committed(seq)
            }
            Ran::Nothing => Fate::Committed(seq),
            Ran::Refused => Fate::Aborted(seq),
            Ran::Failed(error) => Fate::Failed(error),
        };
        self.ran.push((job, fate));
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the batch. One that wrote nothing stays empty, unless it used up the numbers that
    /// the last record covers.
    pub(crate) fn seal(mut self) -> Result<Sealed, (StoreError, Vec<Box<dyn Job>>)> {
        let last_seq = self.stamp.seq;
        if self.wrote || last_seq > self.record.seq_ceiling {
            let trimmed = feed::trim(self.base, &mut self.layer, &mut self.record, self.stamp.store_ms);
            if let Err(error) = trimmed {
                let jobs = self.ran.into_iter().map(|(job, _)| job).collect();
                return Err((error, jobs));
            }
            self.record.advance(last_seq, self.stamp.store_ms);
            let record = self.record.encode();
            self.layer.insert(BATCH_KEY.to_vec(), Some(record));
        }
        Ok(Sealed { layer: self.layer, record: self.record, ran: self.ran, bytes: self.bytes })
    }
}

/// Settles one job; a panic in it is logged and goes no further.
pub(crate) fn settle(job: Box<dyn Job>, fate: Fate) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job.settle(fate))) {
        let message = panic_message(&*panic);
        tracing::error!(message, "a job panicked while it was settled");
    }
}
