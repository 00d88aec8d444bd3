//! Background tasks that must not die quietly: a panic is caught, told, counted, and the task is begun
//! again; one that keeps dying makes the host unhealthy.

use crate::core::Core;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// The first and the longest pause before a task is begun again.
const PAUSE_MS: u64 = 100;
const PAUSE_MS_MAX: u64 = 10_000;

/// Deaths in a row after which a task counts as failing.
const FAILING: u32 = 3;

/// A task that lived this long has recovered.
const LIVED: Duration = Duration::from_secs(60);

/// A background task as health shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskHealth {
    /// Its name.
    pub name: &'static str,
    /// Deaths in a row; none once it has lived for a minute.
    pub deaths: u32,
    /// Whether it keeps dying.
    pub failing: bool,
}

/// A supervised task.
pub(crate) struct Task {
    name: &'static str,
    life: Arc<Mutex<Life>>,
    handle: JoinHandle<()>,
}

/// The newest life of a task, by the monotonic clock.
struct Life {
    begun: Duration,
    deaths: u32,
}

impl Life {
    /// Deaths in a row, as of a moment.
    fn deaths(&self, now: Duration) -> u32 {
        if now.saturating_sub(self.begun) >= LIVED { 0 } else { self.deaths }
    }
}

impl Task {
    pub(crate) fn health(&self, now: Duration) -> TaskHealth {
        let deaths = lock(&self.life).deaths(now);
        TaskHealth { name: self.name, deaths, failing: deaths >= FAILING }
    }

    /// Waits for its end; the stop signal must have been given.
    pub(crate) async fn ended(self) {
        // It only ever ends by the signal; a cancelled runtime has nothing to say.
        let _ = self.handle.await;
    }
}

/// Runs a task until the host stops.
pub(crate) fn supervise<F>(core: &Arc<Core>, name: &'static str, body: fn(Arc<Core>) -> F) -> Task
where
    F: Future<Output = ()> + Send + 'static,
{
    let life = Arc::new(Mutex::new(Life { begun: core.store().clock().monotonic(), deaths: 0 }));
    let (core, lived) = (core.clone(), life.clone());
    let handle = core.runtime().clone().spawn(async move {
        loop {
            lock(&lived).begun = core.store().clock().monotonic();
            let mut task = core.runtime().spawn(body(core.clone()));
            let ended = tokio::select! {
                biased;
                ended = &mut task => ended,
                () = core.stopped() => {
                    task.abort();
                    let _ = task.await;
                    return;
                }
            };
            let Err(error) = ended else { return };
            if !error.is_panic() {
                return;
            }
            core.counters().panics.add(1);
            let deaths = {
                let now = core.store().clock().monotonic();
                let mut life = lock(&lived);
                life.deaths = life.deaths(now).saturating_add(1);
                life.begun = now;
                life.deaths
            };
            tracing::error!(task = name, deaths, %error, "a background task panicked and is begun again");
            let pause_ms = PAUSE_MS.saturating_mul(1 << deaths.min(10)).min(PAUSE_MS_MAX);
            tokio::select! {
                biased;
                () = core.pause(pause_ms) => {}
                () = core.stopped() => return,
            }
        }
    });
    Task { name, life, handle }
}

fn lock(life: &Mutex<Life>) -> MutexGuard<'_, Life> {
    life.lock().unwrap_or_else(PoisonError::into_inner)
}
