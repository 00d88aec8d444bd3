//! The change feed: what jobs noted, in commit order, kept for a named window.
//!
//! Entries live in the one key space below the callers' keys, written by the batch that commits
//! them and trimmed by later batches, a bounded number at a time. A reader that was away for
//! longer than the window is told so and must list again.

use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};

use crate::error::StoreError;
use crate::meta::{BatchRecord, be32, be64};
use crate::overlay::{Base, Layer};
use crate::store::{Bytes, Order, Seq, Stamp};

/// Entries younger than this are never trimmed.
pub const FEED_KEPT_MS: u64 = 60 * 60 * 1_000;
/// The newest this many entries are never trimmed.
pub const FEED_KEPT_ENTRIES: u64 = 100_000;
/// Trimming waits for this many and removes at most this many with one batch: popping the left
/// edge costs its own pages, so it is done in strides, and no single commit pays for all.
const FEED_TRIM_STRIDE: u64 = 512;
/// Changes handed out by one call of [`Changes::next`].
const FEED_READ: usize = 256;

const FEED_PREFIX: u8 = 0x01;
const FEED_KEY_LEN: usize = 1 + 8 + 4;
const FEED_HEAD_LEN: usize = 8 + 8;

/// A place in the change feed; prints and parses as `seq.n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The number of the job.
    pub seq: u64,
    /// Counts the notes of that job, from 0.
    pub n: u32,
}

impl Position {
    /// Before every change.
    pub const START: Position = Position { seq: 0, n: 0 };

    /// Behind everything noted up to `seq`: where to watch from after listing at `seq`.
    pub fn after(seq: Seq) -> Position {
        Position { seq: seq.0, n: u32::MAX }
    }

    fn key(self) -> [u8; FEED_KEY_LEN] {
        let mut key = [FEED_PREFIX; FEED_KEY_LEN];
        key[1..9].copy_from_slice(&self.seq.to_be_bytes());
        key[9..].copy_from_slice(&self.n.to_be_bytes());
        key
    }

    fn of_key(key: &[u8]) -> Position {
        Position { seq: be64(&key[1..9]), n: be32(&key[9..]) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq, self.n)
    }
}

/// A text that is not a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAPosition {
    got: String,
}

impl fmt::Display for NotAPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a position like `42.0`, got `{}`", self.got)
    }
}

impl std::error::Error for NotAPosition {}

impl FromStr for Position {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<Position, NotAPosition> {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        text.split_once('.')
            .filter(|(seq, n)| digits(seq) && digits(n))
            .and_then(|(seq, n)| Some(Position { seq: seq.parse().ok()?, n: n.parse().ok()? }))
            .ok_or_else(|| NotAPosition { got: text.to_string() })
    }
}

/// One noted change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where it is in the feed.
    pub position: Position,
    /// Store time of its batch.
    pub store_ms: u64,
    /// Wall time of its batch.
    pub wall_ms: i64,
    /// What the job noted.
    pub payload: Bytes,
}

/// Why a reader of the feed cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangesError {
    /// Changes behind the position were trimmed: list again, then watch from the list's number.
    Gone {
        /// The oldest change still kept.
        oldest: Position,
    },
    /// The position lies above every number of this store: it comes from another one.
    Ahead {
        /// The newest change kept.
        newest: Position,
    },
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for ChangesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangesError::Gone { oldest } => {
                write!(f, "expected a position of {oldest} or later, got an older one")
            }
            ChangesError::Ahead { newest } => {
                write!(f, "expected a position of this store, which ends at {newest}, got a later one")
            }
            ChangesError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChangesError {}

/// What an engine offers so that its feed can be read.
pub(crate) trait FeedSource: Send + Sync + 'static {
    /// Answers with the changes behind `after`, read from a durable snapshot.
    fn read_feed(&self, after: Position, reply: FeedReply);
}

pub(crate) type FeedReply = oneshot::Sender<Result<Vec<Change>, ChangesError>>;

/// Tells readers the newest durable position, and that there will be no more.
pub(crate) struct FeedWake {
    sender: Mutex<Option<watch::Sender<Position>>>,
}

impl FeedWake {
    pub(crate) fn new(newest: Position) -> FeedWake {
        FeedWake { sender: Mutex::new(Some(watch::channel(newest).0)) }
    }

    pub(crate) fn publish(&self, newest: Position) {
        if let Some(sender) = &*self.lock() {
            sender.send_if_modified(|known| {
                let newer = newest > *known;
                *known = newest.max(*known);
                newer
            });
        }
    }

    pub(crate) fn close(&self) {
        self.lock().take();
    }

    fn subscribe(&self) -> watch::Receiver<Position> {
        match &*self.lock() {
            Some(sender) => sender.subscribe(),
            None => watch::channel(Position::START).1,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<watch::Sender<Position>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader of the change feed. Dropping it is enough to stop.
pub struct Changes {
    source: Arc<dyn FeedSource>,
    newest: watch::Receiver<Position>,
    after: Position,
    looked: bool,
}

impl Changes {
    pub(crate) fn new(source: Arc<dyn FeedSource>, wake: &FeedWake, after: Position) -> Changes {
        Changes { newest: wake.subscribe(), source, after, looked: false }
    }

    /// The position of the last change handed out.
    pub fn position(&self) -> Position {
        self.after
    }

    /// The next changes in order, at least one; waits for them. Cancel safe.
    ///
    /// # Errors
    /// [`ChangesError::Gone`] if the reader fell out of the window, [`ChangesError::Ahead`] if it
    /// never was in it, else what kept the store from reading ([`StoreError::Closed`] at the end).
    pub async fn next(&mut self) -> Result<Vec<Change>, ChangesError> {
        loop {
            // The first look is taken even if nothing is new, to judge the position itself.
            if !self.looked || *self.newest.borrow_and_update() > self.after {
                let (reply, answer) = oneshot::channel();
                self.source.read_feed(self.after, reply);
                let changes = answer.await.unwrap_or(Err(ChangesError::Store(StoreError::Closed)))?;
                self.looked = true;
                if let Some(last) = changes.last() {
                    self.after = last.position;
                    return Ok(changes);
                }
            }
            if self.newest.changed().await.is_err() {
                return Err(ChangesError::Store(StoreError::Closed));
            }
        }
    }
}

/// Adds one job's notes to the batch.
pub(crate) fn append(layer: &mut Layer, record: &mut BatchRecord, notes: Vec<Bytes>, stamp: Stamp) {
    for (n, payload) in (0..).zip(notes) {
        let position = Position { seq: stamp.seq, n };
        let mut value = Vec::with_capacity(FEED_HEAD_LEN + payload.len());
        value.extend_from_slice(&stamp.store_ms.to_be_bytes());
        value.extend_from_slice(&stamp.wall_ms.to_be_bytes());
        value.extend_from_slice(&payload);
        layer.insert(position.key().to_vec(), Some(value.into()));
        record.feed_entries += 1;
        record.feed_newest = position;
    }
}

/// Removes what left the window, at most one stride.
pub(crate) fn trim(
    base: &dyn Base,
    layer: &mut Layer,
    record: &mut BatchRecord,
    store_ms: u64,
) -> Result<(), StoreError> {
    let excess = record.feed_entries.saturating_sub(FEED_KEPT_ENTRIES);
    if excess < FEED_TRIM_STRIDE || store_ms < FEED_KEPT_MS {
        return Ok(());
    }
    let keep_from_ms = store_ms - FEED_KEPT_MS;
    let mut removed = 0;
    walk(base, record.feed_trimmed, &mut |position, value| {
        if removed == FEED_TRIM_STRIDE || be64(&value[..8]) > keep_from_ms {
            return ControlFlow::Break(());
        }
        layer.insert(position.key().to_vec(), None);
        record.feed_trimmed = position;
        removed += 1;
        ControlFlow::Continue(())
    })?;
    record.feed_entries -= removed;
    Ok(())
}

/// Reads the changes behind `after`, at most one answer's worth.
pub(crate) fn read(base: &dyn Base, after: Position) -> Result<Vec<Change>, ChangesError> {
    let record = BatchRecord::load(base).map_err(ChangesError::Store)?;
    if after < record.feed_trimmed {
        let mut oldest = record.feed_newest;
        walk(base, record.feed_trimmed, &mut |position, _| {
            oldest = position;
            ControlFlow::Break(())
        })
        .map_err(ChangesError::Store)?;
        return Err(ChangesError::Gone { oldest });
    }
    if after.seq > record.seq_ceiling {
        return Err(ChangesError::Ahead { newest: record.feed_newest });
    }
    let mut changes = Vec::new();
    walk(base, after, &mut |position, value| {
        changes.push(Change {
            position,
            store_ms: be64(&value[..8]),
            wall_ms: be64(&value[8..FEED_HEAD_LEN]).cast_signed(),
            payload: value[FEED_HEAD_LEN..].into(),
        });
        if changes.len() == FEED_READ {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })
    .map_err(ChangesError::Store)?;
    Ok(changes)
}

/// Entries behind `after`; an entry too short to be one is corruption, not a panic.
fn walk(
    base: &dyn Base,
    after: Position,
    each: &mut dyn FnMut(Position, &[u8]) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let (first, last) = (after.key(), Position { seq: u64::MAX, n: u32::MAX }.key());
    let mut corrupt = None;
    base.walk(
        // The start itself may be a change: number 0 is never handed out, so it never is.
        (Bound::Excluded(&first), Bound::Included(&last)),
        Order::Ascending,
        &mut |key, value| {
            if key.len() == FEED_KEY_LEN && value.len() >= FEED_HEAD_LEN {
                return each(Position::of_key(key), value);
            }
            // The batch record lies in this range too; it is no entry.
            if key == crate::meta::BATCH_KEY {
                return ControlFlow::Continue(());
            }
            corrupt = Some(StoreError::Corrupt {
                expected: "an entry of the change feed".to_string(),
                got: format!("key {key:02x?} with {} bytes", value.len()),
            });
            ControlFlow::Break(())
        },
    )?;
    corrupt.map_or(Ok(()), Err)
}
