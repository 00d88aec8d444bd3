//! The store's own records: the format version and what every batch persists beside its writes.
//!
//! Both live below the callers' keys. The batch record's key sorts right behind the change
//! feed, so that a commit which appends to the feed touches one leaf for both.

use crate::error::StoreError;
use crate::feed::Position;
use crate::overlay::Base;
use crate::store::Bytes;

/// The format this release writes and the latest it reads.
pub(crate) const FORMAT: u32 = 1;

pub(crate) const FORMAT_KEY: &[u8] = &[0x00];
pub(crate) const BATCH_KEY: &[u8] = &[0x01, 0xff];

const FORMAT_MAGIC: &[u8; 8] = b"ilkstore";

/// Numbers handed out to jobs that wrote nothing are covered by the last batch that did: a
/// restart goes on above this many. More of them in a row cost one commit.
const SEQ_RESERVE: u64 = 1_024;

/// What one batch persists; also how its fate is found out after a failed commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchRecord {
    /// Counts batches that were written.
    pub(crate) batch: u64,
    /// The last number handed out up to this batch.
    pub(crate) seq: u64,
    /// No number above this was handed out without a later batch.
    pub(crate) seq_ceiling: u64,
    pub(crate) store_ms: u64,
    /// Entries kept in the change feed.
    pub(crate) feed_entries: u64,
    /// The newest entry of the change feed.
    pub(crate) feed_newest: Position,
    /// The newest entry that was trimmed from it.
    pub(crate) feed_trimmed: Position,
}

impl BatchRecord {
    const LEN: usize = 6 * 8 + 2 * 4 + 8 + 4;

    /// Numbers the next written batch, at `store_ms`, after `seq` was handed out.
    pub(crate) fn advance(&mut self, seq: u64, store_ms: u64) {
        self.batch += 1;
        self.seq = seq;
        self.seq_ceiling = self.seq_ceiling.max(seq + SEQ_RESERVE);
        self.store_ms = store_ms;
    }

    /// Ends a session: the next one goes on right behind `seq`.
    pub(crate) fn conclude(&mut self, seq: u64, store_ms: u64) {
        self.advance(seq, store_ms);
        self.seq_ceiling = seq;
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(Self::LEN);
        for number in [
            self.batch,
            self.seq,
            self.seq_ceiling,
            self.store_ms,
            self.feed_entries,
            self.feed_newest.seq,
            self.feed_trimmed.seq,
        ] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&self.feed_newest.n.to_be_bytes());
        out.extend_from_slice(&self.feed_trimmed.n.to_be_bytes());
        let sum = crc32fast::hash(&out);
        out.extend_from_slice(&sum.to_be_bytes());
        out.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<BatchRecord, StoreError> {
        let corrupt = |expected: String, got: String| StoreError::Corrupt { expected, got };
        if bytes.len() != Self::LEN {
            return Err(corrupt(format!("a batch record of {} bytes", Self::LEN), format!("{} bytes", bytes.len())));
        }
        let (body, sum) = bytes.split_at(Self::LEN - 4);
        let (expected, got) = (crc32fast::hash(body), be32(sum));
        if expected != got {
            return Err(corrupt(format!("a batch record with checksum {got:08x}"), format!("{expected:08x}")));
        }
        let number = |at: usize| be64(&body[at * 8..at * 8 + 8]);
        Ok(BatchRecord {
            batch: number(0),
            seq: number(1),
            seq_ceiling: number(2),
            store_ms: number(3),
            feed_entries: number(4),
            feed_newest: Position { seq: number(5), n: be32(&body[56..60]) },
            feed_trimmed: Position { seq: number(6), n: be32(&body[60..64]) },
        })
    }

    /// The record of the last batch in `base`, or of a store that never wrote one.
    pub(crate) fn load(base: &dyn Base) -> Result<BatchRecord, StoreError> {
        match base.get(BATCH_KEY)? {
            Some(bytes) => BatchRecord::decode(&bytes),
            None => Ok(BatchRecord::default()),
        }
    }
}

/// The value of [`FORMAT_KEY`].
pub(crate) fn encode_format(version: u32) -> Bytes {
    let mut out = FORMAT_MAGIC.to_vec();
    out.extend_from_slice(&version.to_be_bytes());
    out.into()
}

/// True if `base` is marked with a format this release reads, false if it is new.
pub(crate) fn check_format(base: &dyn Base) -> Result<bool, StoreError> {
    let Some(bytes) = base.get(FORMAT_KEY)? else {
        return Ok(false);
    };
    match bytes.strip_prefix(FORMAT_MAGIC) {
        Some(version) if version.len() == 4 => {
            let found = be32(version);
            if found > FORMAT {
                return Err(StoreError::NewerFormat { found, supported: FORMAT });
            }
            Ok(true)
        }
        _ => Err(StoreError::Corrupt { expected: "a format record".to_string(), got: format!("{bytes:02x?}") }),
    }
}

/// Big-endian, of a slice whose length the caller has checked; shorter ones count as leading
/// zeros.
pub(crate) fn be64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

pub(crate) fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}
