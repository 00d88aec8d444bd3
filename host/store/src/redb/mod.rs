//! The embedded engine: one redb file, one writer thread, group commit.
//!
//! Reading order: `writer.rs` (a batch), `gate.rs` (the handle and redb's errors), `recovery.rs`
//! (losing the handle), `reader.rs`, `queue.rs`, `disk.rs`. It knows no rule of the contract that
//! `Mem` doesn't share: those are in `batch.rs`, `overlay.rs` and `feed.rs`.

mod disk;
mod gate;
mod queue;
mod reader;
mod recovery;
mod writer;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;

use self::disk::{Directory, Meter, Metered};
use self::gate::{Failure, FailureKind, Gate, Snapshot, write};
use self::queue::Queue;
use self::reader::{Ask, Asks};
use self::writer::Writer;
use crate::clock::{BoxFuture, Clock, StoreTime, SystemClock};
use crate::error::StoreError;
use crate::feed::{Changes, FeedReply, FeedSource, FeedWake, Position};
use crate::meta::{BatchRecord, FORMAT, FORMAT_KEY, check_format, encode_format};
use crate::overlay::Layer;
use crate::store::{Condition, Full, Health, Job, Lane, Query, Stamp, Store};

pub use self::disk::Disk;

/// redb's own default of 1 GiB is a server's; this holds the inner pages of some ten million keys.
const CACHE_BYTES: usize = 128 * 1024 * 1024;
/// Reads wait this long for a file that is being opened again.
const READS_WAIT: Duration = Duration::from_secs(5);
/// One reader would let a long scan hold up a short look-up.
const READERS: usize = 2;
/// Beyond the drain a close waits this long for a commit that is under way.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// How to open the engine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory; created if missing. Unused by [`Redb::open_backend`].
    pub dir: PathBuf,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Memory for pages.
    pub cache_bytes: usize,
    /// How long reads wait for a file that is being opened again after an I/O error.
    pub reads_wait: Duration,
}

impl Options {
    /// The defaults for a data directory on the machine's clocks.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        Options {
            dir: dir.into(),
            clock: Arc::new(SystemClock::new()),
            cache_bytes: CACHE_BYTES,
            reads_wait: READS_WAIT,
        }
    }
}

/// What the engine has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Batches that wrote something.
    pub batches: u64,
    /// Jobs run.
    pub jobs: u64,
    /// Jobs committed.
    pub committed: u64,
    /// Jobs that refused.
    pub aborted: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Bytes of keys and values written by jobs.
    pub bytes: u64,
    /// Bytes written to the file.
    pub file_bytes: u64,
    /// Syncs of the file.
    pub syncs: u64,
    /// How long they took together.
    pub sync_time: Duration,
    /// How long the last one took.
    pub last_sync: Duration,
    /// How long the last commit took.
    pub last_commit: Duration,
    /// Reads of the file while it was opened: grows with the file only after a crash.
    pub opening_reads: u64,
    /// Bytes of those reads.
    pub opening_read_bytes: u64,
    /// How long opening took.
    pub opening: Duration,
    /// Times the file was opened again after an I/O error.
    pub reopenings: u64,
}

#[derive(Default)]
struct Counts {
    batches: AtomicU64,
    jobs: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    last_commit_nanos: AtomicU64,
    /// When the commit under way began, and one; 0 while there is none.
    commit_began_nanos: AtomicU64,
    reopenings: AtomicU64,
}

impl Counts {
    fn reopened(&self) {
        self.reopenings.fetch_add(1, Ordering::Relaxed);
    }
}

struct Shared {
    queue: Queue,
    asks: Asks,
    gate: Gate,
    time: StoreTime,
    wake: FeedWake,
    durable_seq: AtomicU64,
    company: AtomicUsize,
    counts: Counts,
    meter: Arc<Meter>,
    opening: Stats,
    reads_wait: Duration,
    finished: watch::Sender<Option<Result<(), StoreError>>>,
}

impl Shared {
    /// A reader found the handle of `generation` failed.
    fn suspect(&self, generation: u64, failure: &Failure) {
        if self.gate.suspect(generation, self.time.now_ms(), &failure.why) {
            self.queue.suspect();
        }
    }
}

impl Shared {
    /// Only a bug below the jobs gets here. Nobody may wait for a thread that is gone: jobs are
    /// dropped, which their callers hear as an unknown fate.
    fn writer_died(&self) {
        tracing::error!("the store's writer panicked; the store is closed");
        drop(self.queue.end());
        self.asks.close();
        if let Err(error) = self.gate.shut(Condition::Closed) {
            tracing::error!(why = error.why, "closing the file");
        }
        self.wake.close();
        self.finished
            .send_replace(Some(Err(StoreError::Indeterminate { why: "the store's writer panicked".to_string() })));
    }
}

impl FeedSource for Shared {
    fn read_feed(&self, after: Position, reply: FeedReply) {
        self.asks.push(Ask::Feed { after, reply });
    }
}

/// Opens the file, again and again if need be.
struct Opener {
    disk: Box<dyn Disk>,
    cache_bytes: usize,
    meter: Arc<Meter>,
    clock: Arc<dyn Clock>,
}

impl Opener {
    /// As [`Opener::open`]; on a full disk, once more with the reserve freed.
    fn open_with_reserve(&self) -> Result<::redb::Database, Failure> {
        match self.open() {
            Err(failure) if failure.kind == FailureKind::Full => {
                self.disk.free_reserve().map_err(Failure::of_io)?;
                self.open()
            }
            opened => opened,
        }
    }

    fn open(&self) -> Result<::redb::Database, Failure> {
        let inner = self.disk.open().map_err(Failure::of_io)?;
        let name = self.disk.name();
        let mut builder = ::redb::Database::builder();
        builder.set_cache_size(self.cache_bytes);
        builder.set_repair_callback(move |repair| {
            let percent = repair.progress() * 100.0;
            tracing::info!(store = %name.display(), percent, "repairing after a crash");
        });
        builder
            .create_with_backend(Metered { inner, meter: self.meter.clone(), clock: self.clock.clone() })
            .map_err(Failure::of)
    }
}

/// The embedded engine. Dropping it closes it without a drain.
pub struct Redb {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Redb {
    /// Opens the store in a data directory, creating both if missing.
    ///
    /// After a crash this reads the whole file.
    ///
    /// # Errors
    /// [`StoreError::AlreadyOpen`], [`StoreError::NewerFormat`], [`StoreError::Corrupt`] or
    /// [`StoreError::Io`].
    pub fn open(options: Options) -> Result<Redb, StoreError> {
        let directory = Directory::lock(&options.dir)?;
        Redb::open_backend(directory, options)
    }

    /// Opens the store on a given disk; [`Options::dir`] is not used.
    ///
    /// # Errors
    /// As [`Redb::open`].
    pub fn open_backend(disk: impl Disk, options: Options) -> Result<Redb, StoreError> {
        let clock = options.clock;
        let began = clock.monotonic();
        let meter = Arc::new(Meter::default());
        let opener = Opener {
            disk: Box::new(disk),
            cache_bytes: options.cache_bytes,
            meter: meter.clone(),
            clock: clock.clone(),
        };
        let path = opener.disk.name();
        let told = |failure: Failure| match failure.kind {
            FailureKind::Held => StoreError::AlreadyOpen { path: path.clone(), pid: None },
            FailureKind::Full | FailureKind::Latched => StoreError::Io {
                doing: format!("open the store in {}", path.display()),
                kind: std::io::ErrorKind::Other,
                message: failure.why,
            },
            FailureKind::Corrupt => failure.into_store_error(),
        };
        let db = opener.open_with_reserve().map_err(told)?;
        let record = match prepare(&db).map_err(|error| error.unwrap_or_else(told))? {
            Some(record) => record,
            None => {
                let created = opener.disk.created();
                created.map_err(|error| StoreError::io("keep the new store", &error))?;
                BatchRecord::default()
            }
        };
        if let Err(error) = opener.disk.fill_reserve() {
            tracing::warn!(%error, "no reserve for a full disk");
        }
        let opening = Stats {
            opening_reads: meter.reads.load(Ordering::Relaxed),
            opening_read_bytes: meter.read_bytes.load(Ordering::Relaxed),
            opening: clock.monotonic().saturating_sub(began),
            ..Stats::default()
        };
        let shared = Arc::new(Shared {
            queue: Queue::new(),
            asks: Asks::new(),
            gate: Gate::open(db),
            time: StoreTime::resume(clock, record.store_ms),
            wake: FeedWake::new(record.feed_newest),
            durable_seq: AtomicU64::new(record.seq),
            company: AtomicUsize::new(0),
            counts: Counts::default(),
            meter,
            opening,
            reads_wait: options.reads_wait,
            finished: watch::channel(None).0,
        });
        let writer = Writer {
            shared: shared.clone(),
            opener,
            last_seq: record.seq_ceiling,
            record,
            carried: VecDeque::new(),
            last_batch: 0,
            usual_commit: Duration::ZERO,
            probed: None,
        };
        let redb = Redb { shared: shared.clone(), threads: Mutex::new(Vec::new()) };
        redb.spawn("store-writer", {
            let shared = shared.clone();
            move || {
                if catch_unwind(AssertUnwindSafe(|| writer.serve())).is_err() {
                    shared.writer_died();
                }
            }
        })?;
        for _ in 0..READERS {
            let shared = shared.clone();
            redb.spawn("store-reader", move || reader::serve(&shared))?;
        }
        Ok(redb)
    }

    /// What the engine has done since it was opened.
    pub fn stats(&self) -> Stats {
        let (counts, meter) = (&self.shared.counts, &self.shared.meter);
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            batches: get(&counts.batches),
            jobs: get(&counts.jobs),
            committed: get(&counts.committed),
            aborted: get(&counts.aborted),
            failed: get(&counts.failed),
            bytes: get(&counts.bytes),
            file_bytes: get(&meter.written_bytes),
            syncs: get(&meter.syncs),
            sync_time: Duration::from_nanos(get(&meter.sync_nanos)),
            last_sync: Duration::from_nanos(get(&meter.last_sync_nanos)),
            last_commit: Duration::from_nanos(get(&counts.last_commit_nanos)),
            reopenings: get(&counts.reopenings),
            ..self.shared.opening
        }
    }

    fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
        let handle = thread::Builder::new()
            .name(name.to_string())
            .spawn(body)
            .map_err(|error| StoreError::io("start a thread", &error))?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        Ok(())
    }
}

/// Checks the format and says where the last session ended; a new file is marked, and `None`.
fn prepare(db: &::redb::Database) -> Result<Option<BatchRecord>, Result<StoreError, Failure>> {
    {
        let snapshot = Snapshot::of(db, 0).map_err(Err)?;
        if check_format(&snapshot).map_err(Ok)? {
            return BatchRecord::load(&snapshot).map(Some).map_err(Ok);
        }
    }
    let format = encode_format(FORMAT);
    write(db, &Layer::from([(FORMAT_KEY.to_vec(), Some(format))])).map_err(Err)?;
    Ok(None)
}

impl Drop for Redb {
    fn drop(&mut self) {
        self.shared.queue.close(Duration::ZERO);
        let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A job or query may hold the last handle: its thread must not wait for itself, nor for
        // a thread that waits for it.
        let own = thread::current().id();
        if threads.iter().any(|thread| thread.thread().id() == own) {
            return;
        }
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the store panicked");
            }
        }
    }
}

impl Store for Redb {
    fn submit(&self, lane: Lane, job: Box<dyn Job>) -> Result<(), Full> {
        self.shared.queue.push(lane, job)
    }

    fn query(&self, query: Box<dyn Query>) {
        self.shared.asks.push(Ask::Query(query));
    }

    fn changes(&self, after: Position) -> Changes {
        let source: Arc<dyn FeedSource> = self.shared.clone();
        Changes::new(source, &self.shared.wake, after)
    }

    fn now(&self) -> Stamp {
        let seq = self.shared.durable_seq.load(Ordering::Acquire);
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
        let (completions, admissions) = self.shared.queue.lengths();
        let closing = self.shared.queue.closing().is_some();
        let counts = &self.shared.counts;
        let last = Duration::from_nanos(counts.last_commit_nanos.load(Ordering::Relaxed));
        let began = counts.commit_began_nanos.load(Ordering::Relaxed).checked_sub(1);
        let under_way = began.map_or(Duration::ZERO, |began| {
            self.shared.time.clock().monotonic().saturating_sub(Duration::from_nanos(began))
        });
        Health {
            condition: if closing { Condition::Closed } else { self.shared.gate.condition() },
            completions,
            admissions,
            last_commit: last.max(under_way),
        }
    }

    fn expect_company(&self, running: usize) {
        self.shared.company.store(running, Ordering::Relaxed);
    }

    fn close(&self, drain: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        let clock = self.shared.time.clock();
        let deadline = clock.monotonic() + drain;
        self.shared.queue.close(deadline);
        let mut finished = self.shared.finished.subscribe();
        Box::pin(async move {
            let ended = finished.wait_for(Option::is_some);
            tokio::select! {
                ended = ended => match ended.as_deref() {
                    Ok(Some(result)) => result.clone(),
                    Ok(None) | Err(_) => Err(StoreError::Closed),
                },
                () = clock.sleep_until(deadline + CLOSE_GRACE) => Err(StoreError::Unavailable {
                    why: format!("a commit was still under way {drain:?} after the close began"),
                }),
            }
        })
    }
}
