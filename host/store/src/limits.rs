//! The limits of the contract, the same on every engine.
//!
//! A caller that passes one gets [`StoreError::Limit`] with its name; whatever else shares
//! the batch goes on.

use crate::error::StoreError;

/// One named limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Stable name, as it appears in errors and metrics.
    pub name: &'static str,
    /// The largest allowed value.
    pub max: u64,
    /// What is counted, and why this number.
    pub why: &'static str,
}

impl Limit {
    pub(crate) const fn check(&self, got: u64) -> Result<(), StoreError> {
        if got > self.max {
            return Err(self.passed(got));
        }
        Ok(())
    }

    pub(crate) const fn passed(&self, got: u64) -> StoreError {
        StoreError::Limit { name: self.name, max: self.max, got }
    }
}

/// Bytes of one key.
pub const KEY_BYTES: Limit = Limit {
    name: "key.bytes",
    max: 1024,
    why: "a key takes part in every branch page on its path; four fit in a page",
};

/// Bytes of one value or one note of the change feed.
pub const VALUE_BYTES: Limit = Limit {
    name: "value.bytes",
    max: 256 * 1024,
    why: "a value above a page is rewritten whole on every change; larger things are files",
};

/// Puts, deletes and notes of one transaction, rewrites of the same key included.
pub const TXN_WRITES: Limit =
    Limit { name: "txn.writes", max: 8_192, why: "bounds how long one job can hold the writer" };

/// Bytes of keys and values written by one transaction.
pub const TXN_BYTES: Limit =
    Limit { name: "txn.bytes", max: 8 * 1024 * 1024, why: "bounds the memory of an overlay and the size of a commit" };

/// Entries one scan may ask for.
pub const SCAN_ENTRIES: Limit = Limit {
    name: "scan.entries",
    max: 16_384,
    why: "twice what a transaction can write; a longer walk resumes behind the last key",
};

/// Jobs waiting in the completion lane.
pub const QUEUE_COMPLETIONS: Limit = Limit {
    name: "queue.completions",
    max: 16_384,
    why: "bounded by running executions; the limit only catches a runaway",
};

/// Jobs waiting in the admission lane.
pub const QUEUE_ADMISSIONS: Limit = Limit {
    name: "queue.admissions",
    max: 4_096,
    why: "about a tenth of a second of commits: beyond that, waiting is worse than a refusal",
};

/// Queries waiting for a reader.
pub const QUEUE_QUERIES: Limit = Limit {
    name: "queue.queries",
    max: 4_096,
    why: "a query is short; more waiting than this means the readers are stuck",
};

/// Every limit of the contract.
pub const LIMITS: [Limit; 8] =
    [KEY_BYTES, VALUE_BYTES, TXN_WRITES, TXN_BYTES, SCAN_ENTRIES, QUEUE_COMPLETIONS, QUEUE_ADMISSIONS, QUEUE_QUERIES];
