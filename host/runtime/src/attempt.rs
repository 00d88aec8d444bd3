//! Running one attempt: a store of its own, one call, and what became of it.
//!
//! The coordinator closes the attempt's gate when it may not go on; here that ends the guest, within
//! one tick of the epoch if it computes, at once if it waits in an import.

use crate::bindings::Failure as GuestFailure;
use crate::guest::{Entity, Guest};
use crate::host::types;
use crate::library::{Library, Prepared};
use crate::limits::{AFTERWARDS_TICKS_MAX, HANDLES_MAX, HOSTCALL_BYTES_MAX};
use crate::logs::Logs;
use crate::stopped::{self, Stopped};
use futures_util::FutureExt as _;
use interlock_coordinator::contract::{self, retryable};
use interlock_coordinator::{Attempt, Closed, Ended, Executor, Gate};
use interlock_kernel::doc::Digest;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use wasmtime::component::Resource;
use wasmtime::{Store, UpdateDeadline};

/// Runs attempts as WebAssembly components. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Wasm {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    library: Library,
    /// As many as the pool has room for, whatever the coordinator hands out.
    slots: Semaphore,
    runs: AtomicU64,
    run_ns: AtomicU64,
    waited_ns: AtomicU64,
    dropped_lines: AtomicU64,
}

/// What all attempts of this process did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Attempts that ran.
    pub runs: u64,
    /// From the making of their stores to the end of them, in all.
    pub ran: Duration,
    /// Of that, waiting for the coordinator's answers.
    pub waited: Duration,
    /// Log lines past the budgets.
    pub dropped_lines: u64,
}

impl Wasm {
    /// Runs the components of this library.
    #[must_use]
    pub fn new(library: Library) -> Self {
        let slots = usize::try_from(library.engines().options().executions_max).unwrap_or(usize::MAX);
        Self {
            inner: Arc::new(Inner {
                library,
                slots: Semaphore::new(slots.min(Semaphore::MAX_PERMITS)),
                runs: AtomicU64::new(0),
                run_ns: AtomicU64::new(0),
                waited_ns: AtomicU64::new(0),
                dropped_lines: AtomicU64::new(0),
            }),
        }
    }

    /// What was run so far.
    #[must_use]
    pub fn runs(&self) -> Runs {
        let inner = &self.inner;
        Runs {
            runs: inner.runs.load(Ordering::Relaxed),
            ran: Duration::from_nanos(inner.run_ns.load(Ordering::Relaxed)),
            waited: Duration::from_nanos(inner.waited_ns.load(Ordering::Relaxed)),
            dropped_lines: inner.dropped_lines.load(Ordering::Relaxed),
        }
    }
}

impl Executor for Wasm {
    fn start(&self, attempt: Attempt) {
        let inner = Arc::clone(&self.inner);
        self.inner.library.engines().spawn(async move { inner.run(attempt).await });
    }

    fn memory_bytes_max(&self) -> u64 {
        self.inner.library.engines().options().guest_memory_bytes
    }

    fn weight_bytes(&self, component: Option<Digest>) -> u64 {
        component.map_or(0, |digest| self.inner.library.weight_bytes(digest))
    }
}

impl Inner {
    async fn run(&self, attempt: Attempt) {
        let logs = Arc::new(Logs::new(attempt.start()));
        let gate = attempt.gate();
        let ready = async {
            // Never closed: a refusal of it would be one of ours.
            let slot = self.slots.acquire().await.map_err(|why| retryable("shutdown", why.to_string()))?;
            let start = attempt.start();
            let Some(digest) = start.component else {
                return Err(retryable("component-missing", "the revision has steps and no component"));
            };
            let prepared = self.library.prepared(digest, start.memory_bytes).await;
            let prepared = prepared.map_err(|why| retryable(why.code(), with_causes(&why)))?;
            Ok((slot, prepared))
        };
        let ready = tokio::select! {
            biased;
            closed = gate.closed() => Err(retryable(closed.why, closed.text)),
            ready = ready => ready,
        };
        let (attempt, ended) = match ready {
            Err(failure) => (attempt, Ended::Failed(failure)),
            Ok((slot, prepared)) => {
                let run = self.execute(attempt, &prepared, &gate, &logs).await;
                drop(slot);
                run
            }
        };
        if let Ended::Failed(failure) = &ended {
            logs.failed(failure);
        }
        attempt.finish(ended);
    }

    /// Runs the guest. Once this returns nothing is left of it.
    async fn execute(&self, attempt: Attempt, prepared: &Prepared, gate: &Gate, logs: &Arc<Logs>) -> (Attempt, Ended) {
        let engines = self.library.engines();
        let began = engines.uptime();
        let _running = engines.running();
        let mut store =
            Store::new(prepared.pre.engine(), Guest::new(attempt, Arc::clone(logs), engines, prepared.place));
        confine(&mut store);
        let called = {
            let call = AssertUnwindSafe(call(&mut store, prepared)).catch_unwind();
            tokio::select! {
                biased;
                closed = gate.closed() => Called::Stopped(closed),
                called = call => called.map_or_else(Called::Panicked, Called::Done),
            }
        };
        let guest = store.into_data();
        self.library.took(prepared.digest, guest.caps.peak_bytes());
        let dropped = logs.close();
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.run_ns.fetch_add(nanos(engines.uptime().saturating_sub(began)), Ordering::Relaxed);
        self.waited_ns.fetch_add(nanos(guest.waited), Ordering::Relaxed);
        self.dropped_lines.fetch_add(dropped, Ordering::Relaxed);
        let (attempt, ended, afterwards) = guest.handle.over(ended(called, logs));
        if let Some(failure) = afterwards {
            logs.afterwards(&failure);
        }
        (attempt, ended)
    }
}

enum Called {
    Done(wasmtime::Result<Result<(), GuestFailure>>),
    Stopped(Closed),
    Panicked(Box<dyn Any + Send>),
}

fn ended(called: Called, logs: &Logs) -> Ended {
    match called {
        Called::Done(Ok(Ok(()))) => Ended::Returned,
        Called::Done(Ok(Err(failure))) => Ended::Failed(types::failure(failure)),
        Called::Done(Err(error)) => Ended::Failed(stopped::failure(&error, logs.last_words().as_deref())),
        Called::Stopped(closed) => Ended::Failed(retryable(closed.why, closed.text)),
        Called::Panicked(payload) => {
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text");
            tracing::error!(target: "interlock::attempt", "a host function panicked, its attempt failed: {text}");
            Ended::Failed(retryable("host-panic", format!("a host function panicked: {text}")))
        }
    }
}

/// Every bound of one store.
fn confine(store: &mut Store<Guest>) {
    store.limiter(|guest| &mut guest.caps);
    store.set_hostcall_fuel(HOSTCALL_BYTES_MAX);
    store.set_max_component_handles(HANDLES_MAX);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut context| {
        let guest = context.data_mut();
        guest.handle.gate().check().map_err(|closed| Stopped::from(contract::Stopped::Fenced(closed)))?;
        if guest.handle.is_spent() {
            guest.ticks_after += 1;
            if guest.ticks_after > AFTERWARDS_TICKS_MAX {
                return Err(Stopped::Afterwards.into());
            }
        }
        Ok(UpdateDeadline::Yield(1))
    });
}

async fn call(store: &mut Store<Guest>, prepared: &Prepared) -> wasmtime::Result<Result<(), GuestFailure>> {
    let start = store.data().start();
    let (name, event) = (start.step.to_string(), types::event(start));
    let step = prepared.pre.instantiate_async(&mut *store).await?;
    let entity: Resource<Entity> = Resource::new_own(0);
    step.call_run(&mut *store, &name, entity, &event).await
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
