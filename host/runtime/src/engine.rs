//! The engines that run guests, the tick that interrupts them, the threads they run on.
//!
//! Two engines from one configuration: one takes memory, tables and stacks from a pool made once, the
//! other maps them as asked, for what the pool is too small for. Code compiled for one loads in both.
//! Nothing here knows components or steps: see `library.rs` and `attempt.rs`.

use crate::limits::{
    CORE_INSTANCES_MAX, EPOCH_TICK_MS, EXECUTIONS_MAX, FIBER_STACK_BYTES, GUEST_MEMORY_BYTES, GUEST_STACK_BYTES,
    GUEST_THREADS, LIGHT_BYTES, POOL_MEMORY_BYTES_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX,
};
use interlock_store::{Clock as _, SystemClock};
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, WasmBacktraceDetails};

/// How many guests run at once, and on what.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Attempts that run at the same time.
    pub executions_max: u32,
    /// Memory for them, in bytes: what is expected to take more than is free waits. One that takes more than all of it runs
    /// while no other holds any.
    pub guest_memory_bytes: u64,
    /// Threads that run them. With none, each runs on the runtime that it is started in: a guest that loops
    /// then delays whatever else runs there, which only somebody who plays a whole host can want.
    pub guest_threads: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { executions_max: EXECUTIONS_MAX, guest_memory_bytes: GUEST_MEMORY_BYTES, guest_threads: GUEST_THREADS }
    }
}

/// The engines of this process. Clones are the same ones.
#[derive(Clone)]
pub struct Engines {
    inner: Arc<Inner>,
}

struct Inner {
    options: EngineOptions,
    pooled: Option<Engine>,
    on_demand: Engine,
    ticker: Ticker,
    stopwatch: SystemClock,
    guests: Guests,
}

/// Where a component's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The pool: a start takes microseconds.
    Pooled,
    /// Mapped for each attempt, for what does not fit the pool.
    OnDemand,
}

/// The engines could not be made.
#[derive(Debug)]
pub struct EngineError {
    what: &'static str,
    why: String,
}

impl std::fmt::Display for EngineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

impl std::error::Error for EngineError {}

impl Engines {
    /// Makes both engines, the ticker and the guests' threads. Without room for the pool (a limit on
    /// address space, say) everything runs on demand, and one warning says so.
    ///
    /// Reserves address space for every attempt that may run at once: make it once in a process.
    ///
    /// # Errors
    /// [`EngineError`] if this machine cannot run WebAssembly at all, or start threads.
    pub fn new(options: EngineOptions) -> Result<Self, EngineError> {
        let on_demand = Engine::new(&config(None))
            .map_err(|why| EngineError { what: "no engine for WebAssembly", why: format!("{why:#}") })?;
        let pooled = match Engine::new(&config(Some(pool(options.executions_max)))) {
            Ok(engine) => Some(engine),
            Err(why) => {
                tracing::warn!(
                    executions_max = options.executions_max,
                    "no pool for guests' memory, every attempt maps its own and starts slower: {why:#}"
                );
                None
            }
        };
        let ticker = Ticker::start(pooled.iter().chain([&on_demand]).cloned().collect())?;
        let guests = Guests::start(options.guest_threads)?;
        let inner = Inner { options, pooled, on_demand, ticker, stopwatch: SystemClock::new(), guests };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Time since they were made: a stopwatch, for what is measured and shown.
    pub(crate) fn uptime(&self) -> Duration {
        self.inner.stopwatch.monotonic()
    }

    /// What they were made for.
    #[must_use]
    pub fn options(&self) -> EngineOptions {
        self.inner.options
    }

    /// Whether there is a pool.
    #[must_use]
    pub fn has_pool(&self) -> bool {
        self.inner.pooled.is_some()
    }

    /// The engine of a place; without a pool there is only the other one.
    pub(crate) fn engine(&self, place: Place) -> &Engine {
        match (place, &self.inner.pooled) {
            (Place::Pooled, Some(pooled)) => pooled,
            (Place::Pooled, None) | (Place::OnDemand, _) => &self.inner.on_demand,
        }
    }

    /// Names everything that compiled code depends on: wasmtime's version, this processor, settings.
    pub(crate) fn compatibility(&self) -> blake3::Hash {
        let mut hasher = StableHasher(blake3::Hasher::new());
        self.inner.on_demand.precompile_compatibility_hash().hash(&mut hasher);
        hasher.0.finalize()
    }

    /// The ticker runs for as long as this is held.
    pub(crate) fn running(&self) -> Running {
        let ticker = &self.inner.ticker;
        ticker.tick.running.fetch_add(1, Ordering::SeqCst);
        if ticker.tick.parked.load(Ordering::SeqCst) && ticker.tick.parked.swap(false, Ordering::SeqCst) {
            ticker.wake();
        }
        Running(Arc::clone(&ticker.tick))
    }

    /// Runs an attempt where attempts run.
    pub(crate) fn spawn(&self, attempt: impl Future<Output = ()> + Send + 'static) {
        match &self.inner.guests.runtime {
            Some(runtime) => drop(runtime.spawn(attempt)),
            None => drop(tokio::spawn(attempt)),
        }
    }
}

impl std::fmt::Debug for Engines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engines")
            .field("options", &self.inner.options)
            .field("has_pool", &self.has_pool())
            .finish_non_exhaustive()
    }
}

/// What both engines have in common is what compiled code depends on.
fn config(pool: Option<PoolingAllocationConfig>) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        // An attempt can be reproduced exactly: no number depends on the processor.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .wasm_memory64(false)
        .max_wasm_stack(GUEST_STACK_BYTES)
        .async_stack_size(FIBER_STACK_BYTES)
        .wasm_backtrace_max_frames(NonZeroUsize::new(crate::limits::FRAMES_MAX * 2))
        .wasm_backtrace_details(WasmBacktraceDetails::Disable);
    if let Some(pool) = pool {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

/// Room for as many attempts of the largest component that fits: with a slot, none meets a full pool.
fn pool(attempts: u32) -> PoolingAllocationConfig {
    let memory_bytes = usize::try_from(POOL_MEMORY_BYTES_MAX).unwrap_or(usize::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(attempts)
        .total_core_instances(attempts.saturating_mul(CORE_INSTANCES_MAX))
        .total_memories(attempts)
        .total_tables(attempts.saturating_mul(TABLES_MAX))
        .total_stacks(attempts)
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .max_memories_per_component(1)
        .max_tables_per_component(TABLES_MAX)
        .max_memory_size(memory_bytes)
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_unused_warm_slots(attempts)
        .decommit_batch_size(8)
        .table_keep_resident(64 << 10);
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        // Only pages that were written are reset, so much may stay.
        pool.pagemap_scan(Enabled::Auto)
            .linear_memory_keep_resident(usize::try_from(LIGHT_BYTES).unwrap_or(usize::MAX));
    } else {
        // This much is reset each time, written or not.
        pool.linear_memory_keep_resident(128 << 10);
    }
    pool
}

/// Feeds blake3, because the standard hasher may change with the standard library.
struct StableHasher(blake3::Hasher);

impl Hasher for StableHasher {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

impl Tick {
    fn run(&self, engines: &[Engine]) {
        let mut idle_ticks = 0;
        while !self.stop.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(EPOCH_TICK_MS));
            engines.iter().for_each(Engine::increment_epoch);
            idle_ticks = match self.running.load(Ordering::SeqCst) {
                0 => idle_ticks + 1,
                _ => 0,
            };
            if idle_ticks < IDLE_TICKS_MAX {
                continue;
            }
            // Told first, looked at again after: whoever starts between the two finds it told.
            self.parked.store(true, Ordering::SeqCst);
            while self.parked.load(Ordering::SeqCst)
                && self.running.load(Ordering::SeqCst) == 0
                && !self.stop.load(Ordering::Acquire)
            {
                std::thread::park();
            }
            self.parked.store(false, Ordering::SeqCst);
            idle_ticks = 0;
        }
    }
}

/// Something runs; dropped, it does not.
pub(crate) struct Running(Arc<Tick>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Tick {
    running: AtomicUsize,
    parked: AtomicBool,
    stop: AtomicBool,
}

/// One thread that moves the epoch of each engine while anything runs, and parks otherwise.
struct Ticker {
    tick: Arc<Tick>,
    thread: Option<JoinHandle<()>>,
}

/// Ticks without a guest after which the ticker parks: a second, so that short attempts one after
/// another do not pay for waking it each time.
const IDLE_TICKS_MAX: u32 = 100;

impl Ticker {
    fn start(engines: Vec<Engine>) -> Result<Self, EngineError> {
        let tick = Arc::new(Tick {
            running: AtomicUsize::new(0),
            parked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let shared = Arc::clone(&tick);
        let thread = std::thread::Builder::new()
            .name("interlock-epoch".to_owned())
            .spawn(move || shared.run(&engines))
            .map_err(|why| EngineError { what: "no thread for the epoch ticker", why: why.to_string() })?;
        Ok(Self { tick, thread: Some(thread) })
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.tick.stop.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // It runs nothing that panics, and there is nobody left to tell.
            drop(thread.join());
        }
    }
}

/// A tokio runtime of their own, so that a guest that loops delays no request, health check or
/// renewal of the host's.
struct Guests {
    runtime: Option<tokio::runtime::Runtime>,
}

impl Guests {
    fn start(threads: usize) -> Result<Self, EngineError> {
        if threads == 0 {
            return Ok(Self { runtime: None });
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("interlock-guest")
            .enable_time()
            .build()
            .map_err(|why| EngineError { what: "no threads for guests", why: why.to_string() })?;
        Ok(Self { runtime: Some(runtime) })
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        // Waiting is forbidden where the last owner may be an asynchronous task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
