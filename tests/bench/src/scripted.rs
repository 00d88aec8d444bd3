//! Executors without WebAssembly: one that moves on at once, one that keeps attempts for whoever
//! wants to move them one by one.

use crate::spread::Times;
use anyhow::{Context as _, Result, bail};
use interlock_coordinator::{Attempt, Ended, Executor};
use interlock_kernel::command::Change;
use interlock_kernel::ids::Name;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::runtime::Handle;

/// Asks for the next state as soon as it is started. Clones are the same one.
#[derive(Clone)]
pub(crate) struct AtOnce {
    inner: Arc<Inner>,
}

struct Inner {
    runtime: Handle,
    holding: AtomicBool,
    log: Mutex<Log>,
    held: Mutex<Vec<Attempt>>,
}

/// What was seen since the log was taken.
#[derive(Default)]
pub(crate) struct Log {
    /// From the asking to the answer of each accepted transition.
    pub(crate) transitions: Times,
    /// When the first one was answered.
    pub(crate) first: Option<Instant>,
    /// Transitions that were not accepted.
    pub(crate) refused: Vec<String>,
}

impl AtOnce {
    pub(crate) fn new(runtime: Handle) -> Self {
        let inner = Inner { runtime, holding: AtomicBool::new(false), log: Mutex::default(), held: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// From now on attempts are kept and not moved.
    pub(crate) fn hold(&self) {
        self.inner.holding.store(true, Ordering::Release);
    }

    pub(crate) fn take_log(&self) -> Log {
        std::mem::take(&mut *lock(&self.inner.log))
    }

    /// Looks at the log without taking it.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Log) -> T) -> T {
        look(&lock(&self.inner.log))
    }
}

impl Executor for AtOnce {
    fn start(&self, attempt: Attempt) {
        let inner = self.inner.clone();
        if inner.holding.load(Ordering::Acquire) {
            lock(&inner.held).push(attempt);
            return;
        }
        self.inner.runtime.spawn(async move {
            let asked = Instant::now();
            let moved = move_on(&attempt).await;
            let answered = Instant::now();
            {
                let mut log = lock(&inner.log);
                match moved {
                    Ok(()) => log.transitions.push(answered.duration_since(asked)),
                    Err(why) => log.refused.push(format!("{why:#}")),
                }
                log.first.get_or_insert(answered);
            }
            attempt.finish(Ended::Returned);
        });
    }
}

/// Keeps attempts. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct ByHand(Arc<Mutex<Vec<Attempt>>>);

impl ByHand {
    /// Moves every kept attempt on, one after another, and says how many there were.
    pub(crate) async fn move_all(&self) -> Result<usize> {
        let attempts = std::mem::take(&mut *lock(&self.0));
        let count = attempts.len();
        for attempt in attempts {
            move_on(&attempt).await?;
            attempt.finish(Ended::Returned);
        }
        Ok(count)
    }
}

impl Executor for ByHand {
    fn start(&self, attempt: Attempt) {
        lock(&self.0).push(attempt);
    }
}

/// Asks for the state behind the attempt's, as the no-op guest does.
async fn move_on(attempt: &Attempt) -> Result<()> {
    let to = match attempt.start().state.as_str() {
        "s1" => "s2",
        "s2" => "s3",
        "s3" => "s4",
        "s4" => "s5",
        "s5" => "idle",
        other => bail!("the no-op machine has no step in {other}"),
    };
    let to: Name = to.parse().context("a state's name")?;
    attempt.transition(to, Change::default()).await?;
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
