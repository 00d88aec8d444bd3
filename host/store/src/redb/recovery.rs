//! Going on without a restart: after an I/O error the file is closed and opened again.
//!
//! A commit that failed may be durable all the same. The reopened file knows: every batch
//! persists its number. Only if the file cannot be opened for a while is the fate given up as
//! unknown.

use std::time::Duration;

use super::gate::{Failure, FailureKind};
use super::writer::{Writer, last_record, settle_failed};
use crate::batch::Sealed;
use crate::error::StoreError;
use crate::meta::BatchRecord;
use crate::store::Condition;

/// The first pause between two attempts to open; doubles.
const BACK_OFF_FIRST: Duration = Duration::from_millis(10);
/// The longest pause: short enough that an operator's fix is noticed at once.
const BACK_OFF_MAX: Duration = Duration::from_secs(1);
/// Attempts after which the jobs of a failed commit hear that their fate is unknown: their
/// callers must not wait for a disk that may never come back.
const ATTEMPTS_UNTIL_UNKNOWN: u32 = 4;

impl Writer {
    /// The handle of `generation` is of no use any more; `inflight` is the batch whose commit
    /// failed. Comes back when the file is open again, or when the store closes.
    pub(super) fn lost(&mut self, generation: u64, failure: Failure, inflight: Option<Sealed>) {
        let since_ms = self.shared.time.now_ms();
        if !self.shared.gate.suspect(generation, since_ms, &failure.why) {
            // Known and dealt with already.
            if let Some(sealed) = inflight {
                settle_failed(sealed.ran, &failure.into_store_error());
            }
            return;
        }
        tracing::warn!(why = failure.why, "an I/O error: opening the store again");
        let reopening = Condition::Reopening { since_ms, why: failure.why.clone() };
        if let Err(error) = self.shared.gate.shut(reopening) {
            tracing::debug!(why = error.why, "closing the failed handle");
        }
        // A disk that was full is so until the reserve fits again.
        let mut full = failure.kind == FailureKind::Full || self.probed.is_some();
        if full {
            self.free_reserve();
        }
        let Some(db) = self.open_again(&mut full, inflight, &failure) else {
            return;
        };
        self.shared.counts.reopened();
        let condition = if full && self.opener.disk.fill_reserve().is_err() {
            self.probed = Some(self.shared.time.clock().monotonic());
            Condition::ReadOnly { since_ms, why: failure.why }
        } else {
            self.probed = None;
            Condition::Ready
        };
        tracing::info!(?condition, "the store is open again");
        self.shared.gate.reopen(db, condition);
    }

    fn open_again(
        &mut self,
        full: &mut bool,
        mut inflight: Option<Sealed>,
        failure: &Failure,
    ) -> Option<::redb::Database> {
        let mut pause = BACK_OFF_FIRST;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let opened = self.opener.open().and_then(|db| {
                let record =
                    last_record(&db).map_err(|error| Failure { why: error.to_string(), kind: FailureKind::Latched })?;
                Ok((db, record))
            });
            let why = match opened {
                Ok((db, record)) => {
                    self.resolve(inflight.take(), record, failure);
                    return Some(db);
                }
                Err(why) => why,
            };
            tracing::warn!(attempts, why = why.why, "the store does not open yet");
            if why.kind == FailureKind::Full && !*full {
                *full = true;
                self.free_reserve();
            }
            let closing = self.shared.queue.closing().is_some();
            if (attempts == ATTEMPTS_UNTIL_UNKNOWN || closing)
                && let Some(sealed) = inflight.take()
            {
                let unknown = StoreError::Indeterminate { why: format!("{}; then: {}", failure.why, why.why) };
                settle_failed(sealed.ran, &unknown);
            }
            self.refuse_all(&why.why);
            if closing {
                return None;
            }
            self.shared.queue.back_off(pause);
            pause = (pause * 2).min(BACK_OFF_MAX);
        }
    }

    /// The file says what became of the batch whose commit failed.
    fn resolve(&mut self, inflight: Option<Sealed>, record: BatchRecord, failure: &Failure) {
        match inflight {
            Some(sealed) if record.batch >= sealed.record.batch => self.settle_batch(sealed),
            Some(sealed) => settle_failed(sealed.ran, &failure.clone().into_store_error()),
            None => {}
        }
        self.is_durable(record);
    }

    fn free_reserve(&self) {
        if let Err(error) = self.opener.disk.free_reserve() {
            tracing::warn!(%error, "the reserve could not be freed");
        }
    }
}
