//! The contract: ordered keys, serializable jobs, durable snapshots and a change feed.
//!
//! Object safe and free of `async fn`: a job is run and settled on the engine's own thread.
//! Start with [`crate::transact`] and [`crate::query`], which wrap closures into jobs.

use std::borrow::Cow;
use std::fmt;
use std::iter;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{BoxFuture, Clock};
use crate::error::StoreError;
use crate::feed::{Changes, Position};

/// A stored value: cheap to clone, never changed in place.
pub type Bytes = Arc<[u8]>;

/// First byte of the lowest key a caller may use; everything below is the store's own.
pub const USER_KEYS_FROM: u8 = 0x02;

/// One number per job run, above every earlier one of this store, over restarts too.
/// Numbers may be skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// When a job runs. Both times are taken once per batch, inside the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The job's own number; for a query, the last durable one.
    pub seq: u64,
    /// Store time in milliseconds: never goes back, stands still while the store is closed.
    pub store_ms: u64,
    /// Wall time in milliseconds since the epoch, as the machine believes.
    pub wall_ms: i64,
}

/// What a scan hands each entry to: key, then value.
pub type Each<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Which of two keys a walk meets first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The lower one.
    Ascending,
    /// The higher one.
    Descending,
}

impl Order {
    /// What is sorted ascending, as a walk in this order meets it.
    pub fn walk<I: DoubleEndedIterator>(self, mut sorted: I) -> impl Iterator<Item = I::Item> {
        iter::from_fn(move || match self {
            Order::Ascending => sorted.next(),
            Order::Descending => sorted.next_back(),
        })
    }

    /// Whether a walk meets `key` earlier than `other`.
    pub(crate) fn meets_first(self, key: &[u8], other: &[u8]) -> bool {
        match self {
            Order::Ascending => key < other,
            Order::Descending => key > other,
        }
    }
}

/// A range of keys and the order it is walked in: ascending, unless it is said to go [`Span::back`].
#[derive(Clone, Debug)]
pub struct Span<'a> {
    pub(crate) from: Bound<&'a [u8]>,
    pub(crate) to: Bound<Cow<'a, [u8]>>,
    order: Order,
}

impl<'a> Span<'a> {
    /// Every key a caller can have written.
    pub fn all() -> Span<'a> {
        Span { from: Bound::Unbounded, to: Bound::Unbounded, order: Order::Ascending }
    }

    /// Keys that start with `prefix`.
    pub fn prefix(prefix: &'a [u8]) -> Span<'a> {
        let mut end = prefix.to_vec();
        while end.last() == Some(&u8::MAX) {
            end.pop();
        }
        let to = match end.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(Cow::Owned(end))
            }
            None => Bound::Unbounded,
        };
        Span { from: Bound::Included(prefix), to, order: Order::Ascending }
    }

    /// Keys from `from` up to, and without, `to`.
    pub fn between(from: &'a [u8], to: &'a [u8]) -> Span<'a> {
        Span { from: Bound::Included(from), to: Bound::Excluded(Cow::Borrowed(to)), order: Order::Ascending }
    }

    /// Keys from `from` on.
    pub fn starting(from: &'a [u8]) -> Span<'a> {
        Span { from: Bound::Included(from), to: Bound::Unbounded, order: Order::Ascending }
    }

    /// The same keys, walked in descending order.
    pub fn back(self) -> Span<'a> {
        Span { order: Order::Descending, ..self }
    }

    /// The order it is walked in.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The same walk, beginning behind `key`: how a bounded one resumes. A walk back goes on with the keys
    /// below `key`, so say [`Span::back`] first.
    pub fn after(self, key: &'a [u8]) -> Span<'a> {
        match self.order {
            Order::Ascending => Span { from: Bound::Excluded(key), ..self },
            Order::Descending => Span { to: Bound::Excluded(Cow::Borrowed(key)), ..self },
        }
    }

    /// Whether a walk of it meets `key`.
    pub fn contains(&self, key: &[u8]) -> bool {
        let from_on = match self.from {
            Bound::Included(from) => key >= from,
            Bound::Excluded(from) => key > from,
            Bound::Unbounded => true,
        };
        let up_to = match &self.to {
            Bound::Included(to) => key <= &**to,
            Bound::Excluded(to) => key < &**to,
            Bound::Unbounded => true,
        };
        from_on && up_to
    }
}

/// Why a job or query stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The job wants none of its writes.
    Abort,
    /// The store could not go on.
    Failed(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Halt {
        Halt::Failed(error)
    }
}

/// Reading one consistent state.
pub trait Read {
    /// The value of `key`, if there is one.
    ///
    /// # Errors
    /// [`StoreError::ReservedKey`], [`StoreError::Limit`], or what keeps the store from reading.
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, Halt>;

    /// Hands the entries of `span` to `each`, in its order, until `limit` of them were seen or
    /// `each` breaks.
    ///
    /// # Errors
    /// [`StoreError::Limit`] if `limit` is above `scan.entries`, or what keeps the store from
    /// reading.
    fn scan(&mut self, span: Span<'_>, limit: usize, each: Each<'_>) -> Result<(), Halt>;

    /// The job's number and times; for a query the last durable number and current times.
    fn stamp(&self) -> Stamp;
}

/// Reading and writing inside one job. Reads see the job's own writes.
///
/// A call that failed fails the job, even if the job goes on and returns `Ok`.
pub trait Txn: Read {
    /// Writes `value` under `key`.
    ///
    /// # Errors
    /// [`StoreError::ReservedKey`] or [`StoreError::Limit`].
    fn put(&mut self, key: &[u8], value: Bytes) -> Result<(), Halt>;

    /// Removes `key`; removing what is not there is not an error.
    ///
    /// # Errors
    /// [`StoreError::ReservedKey`] or [`StoreError::Limit`].
    fn delete(&mut self, key: &[u8]) -> Result<(), Halt>;

    /// Appends an opaque payload to the change feed, committed with this job.
    ///
    /// # Errors
    /// [`StoreError::Limit`].
    fn note(&mut self, payload: Bytes) -> Result<(), Halt>;
}

/// A serializable read-write transaction.
pub trait Job: Send + 'static {
    /// May run more than once; only its last run counts. No clock, no I/O, no call of the store
    /// inside.
    ///
    /// # Errors
    /// [`Halt::Abort`] to want none of its writes; a failed call of `txn` is passed on.
    fn run(&mut self, txn: &mut dyn Txn) -> Result<(), Halt>;

    /// Called once, when the fate of the last run is durable; in which order jobs are settled is not said.
    /// A job that the engine drops without settling has an unknown fate.
    fn settle(self: Box<Self>, fate: Fate);
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its writes, if any, and everything it read are durable.
    Committed(Seq),
    /// It wanted none of its writes; everything it read is durable.
    Aborted(Seq),
    /// It left no trace, unless this is [`StoreError::Indeterminate`].
    Failed(StoreError),
}

/// Reading a durable snapshot.
pub trait Query: Send + 'static {
    /// May run more than once; only its last run counts.
    ///
    /// # Errors
    /// [`Halt::Abort`] to stop early (settled as a success); a failed call of `at` is passed on.
    fn run(&mut self, at: &mut dyn Read) -> Result<(), Halt>;

    /// Called once, with the number of the snapshot's last commit.
    fn settle(self: Box<Self>, result: Result<Seq, StoreError>);
}

/// Which queue a job waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Work of what already runs: always before admissions, or overload starves it.
    Completion,
    /// New work: refused when its queue is full.
    Admission,
}

/// A job that was not taken, handed back.
pub struct Full {
    /// The job, never run.
    pub job: Box<dyn Job>,
    /// The lane it was meant for.
    pub lane: Lane,
    /// [`StoreError::Limit`] of the lane's queue, or [`StoreError::Closed`].
    pub why: StoreError,
}

impl fmt::Debug for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("lane", &self.lane).field("why", &self.why).finish_non_exhaustive()
    }
}

/// Whether the store takes reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Reads and writes.
    Ready,
    /// An I/O error made the engine close its file; it is being opened again. Reads wait, writes
    /// are unavailable.
    Reopening {
        /// Store time when it began.
        since_ms: u64,
        /// The error.
        why: String,
    },
    /// Reads go on, writes are unavailable until there is room.
    ReadOnly {
        /// Store time when it began.
        since_ms: u64,
        /// What stands in the way.
        why: String,
    },
    /// Closed or closing.
    Closed,
}

/// The store as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether it takes reads and writes.
    pub condition: Condition,
    /// Jobs waiting in the completion lane.
    pub completions: usize,
    /// Jobs waiting in the admission lane.
    pub admissions: usize,
    /// How long the last commit took to become durable, or the one under way has taken if that is longer.
    pub last_commit: Duration,
}

/// A durable, ordered key space with serializable jobs.
pub trait Store: Send + Sync + 'static {
    /// Queues a job.
    ///
    /// # Errors
    /// [`Full`] hands the job back if its lane is full or the store is closing.
    fn submit(&self, lane: Lane, job: Box<dyn Job>) -> Result<(), Full>;

    /// Runs a query on the last durable state; always settles it.
    fn query(&self, query: Box<dyn Query>);

    /// The change feed behind `after`.
    fn changes(&self, after: Position) -> Changes;

    /// The last durable number and the current times.
    fn now(&self) -> Stamp;

    /// Store time at a moment of [`Clock::monotonic`].
    fn store_time_at(&self, monotonic: Duration) -> u64;

    /// Completes when store time has reached `store_ms`: late, never early.
    fn sleep_until_store(&self, store_ms: u64) -> BoxFuture<'static, ()>;

    /// The clock this store was opened with.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Whether the store takes reads and writes, and how full its queues are.
    fn health(&self) -> Health;

    /// A hint for group commit: how many executions are running and may soon submit.
    fn expect_company(&self, running: usize);

    /// Takes no more jobs, finishes those queued for up to `drain`, settles the rest as
    /// [`StoreError::Closed`], and releases the files.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if a commit was still stuck after `drain`.
    fn close(&self, drain: Duration) -> BoxFuture<'_, Result<(), StoreError>>;
}
