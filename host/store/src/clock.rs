//! The one place of the project that reads clocks (invariant A8).
//!
//! Store time is built here from a monotonic clock and the last persisted value: it stands
//! still while the store is closed and never goes back. Wall time is passed through as it is;
//! noticing a jump is the business of whoever runs calendar timers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;

use crate::store::Stamp;

/// A boxed future, so that the traits here stay object safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where time comes from.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
    /// Milliseconds since the Unix epoch, as the machine believes.
    fn wall_ms(&self) -> i64;
    /// Completes when [`Clock::monotonic`] has reached `monotonic`.
    fn sleep_until(&self, monotonic: Duration) -> BoxFuture<'static, ()>;
}

/// The machine's clocks. Sleeping needs a tokio runtime with its time driver.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// Starts counting now.
    pub fn new() -> SystemClock {
        SystemClock { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }

    fn wall_ms(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        }
    }

    fn sleep_until(&self, monotonic: Duration) -> BoxFuture<'static, ()> {
        let deadline = tokio::time::Instant::from_std(self.origin + monotonic);
        Box::pin(tokio::time::sleep_until(deadline))
    }
}

/// A clock that moves only when told: for tests and simulations. Clones share the time.
#[derive(Clone, Default)]
pub struct ManualClock {
    inner: Arc<Mutex<Manual>>,
}

#[derive(Default)]
struct Manual {
    monotonic: Duration,
    wall_ms: i64,
    sleepers: Vec<(Duration, oneshot::Sender<()>)>,
}

impl ManualClock {
    /// Monotonic time zero, the wall clock at the epoch.
    pub fn new() -> ManualClock {
        ManualClock::default()
    }

    /// Moves both clocks forward and wakes who slept until then.
    pub fn advance(&self, by: Duration) {
        let woken = {
            let mut inner = self.lock();
            inner.monotonic += by;
            inner.wall_ms += i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            let now = inner.monotonic;
            let (due, later) =
                std::mem::take(&mut inner.sleepers).into_iter().partition(|(deadline, _)| *deadline <= now);
            inner.sleepers = later;
            let mut due: Vec<_> = due;
            due.sort_by_key(|(deadline, _)| *deadline);
            due
        };
        for (_, sleeper) in woken {
            let _ = sleeper.send(());
        }
    }

    /// Sets the wall clock alone: a jump.
    pub fn set_wall(&self, wall_ms: i64) {
        self.lock().wall_ms = wall_ms;
    }

    /// The earliest moment somebody sleeps until.
    pub fn next_sleeper(&self) -> Option<Duration> {
        let mut inner = self.lock();
        inner.sleepers.retain(|(_, sleeper)| !sleeper.is_closed());
        inner.sleepers.iter().map(|(deadline, _)| *deadline).min()
    }

    fn lock(&self) -> MutexGuard<'_, Manual> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("ManualClock")
            .field("monotonic", &inner.monotonic)
            .field("wall_ms", &inner.wall_ms)
            .finish_non_exhaustive()
    }
}

impl Clock for ManualClock {
    fn monotonic(&self) -> Duration {
        self.lock().monotonic
    }

    fn wall_ms(&self) -> i64 {
        self.lock().wall_ms
    }

    fn sleep_until(&self, monotonic: Duration) -> BoxFuture<'static, ()> {
        let woken = {
            let mut inner = self.lock();
            if inner.monotonic >= monotonic {
                return Box::pin(std::future::ready(()));
            }
            let (sleeper, woken) = oneshot::channel();
            inner.sleepers.push((monotonic, sleeper));
            woken
        };
        // A dropped clock will never reach the deadline: sleeping on is the honest answer.
        Box::pin(async move {
            if woken.await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

/// Store time of one opening: the persisted value plus what passed since.
#[derive(Debug)]
pub(crate) struct StoreTime {
    clock: Arc<dyn Clock>,
    opened: Duration,
    opened_store_ms: u64,
    floor_ms: AtomicU64,
}

impl StoreTime {
    pub(crate) fn resume(clock: Arc<dyn Clock>, persisted_ms: u64) -> StoreTime {
        StoreTime {
            opened: clock.monotonic(),
            clock,
            opened_store_ms: persisted_ms,
            floor_ms: AtomicU64::new(persisted_ms),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let passed = self.clock.monotonic().saturating_sub(self.opened);
        let passed_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let now = self.opened_store_ms.saturating_add(passed_ms);
        self.floor_ms.fetch_max(now, Ordering::AcqRel).max(now)
    }

    pub(crate) fn stamp(&self, seq: u64) -> Stamp {
        Stamp { seq, store_ms: self.now_ms(), wall_ms: self.clock.wall_ms() }
    }

    /// The moment of the monotonic clock at which store time reaches `store_ms`.
    pub(crate) fn monotonic_at(&self, store_ms: u64) -> Duration {
        self.opened.saturating_add(Duration::from_millis(store_ms.saturating_sub(self.opened_store_ms)))
    }

    /// Store time at a moment of the monotonic clock.
    pub(crate) fn at(&self, monotonic: Duration) -> u64 {
        let passed = monotonic.saturating_sub(self.opened);
        self.opened_store_ms.saturating_add(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn sleep_until(&self, store_ms: u64) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(self.monotonic_at(store_ms))
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}
