//! WASI 0.2, linked and inert: components of every toolchain import it, none reaches this machine
//! through it.
//!
//! No files, sockets, environment or arguments. Clocks are virtual: they start with the attempt and
//! move by a fixed step with each call; a sleep moves them instead of waiting. Random numbers are
//! drawn from the attempt's seed. Standard output and error become log lines.

use crate::guest::Guest;
use crate::limits::{CLOCK_STEP_NS, OUTPUT_PERMIT_BYTES, RANDOM_BYTES_MAX};
use crate::logs::Logs;
use crate::stopped::Stopped;
use bytes::Bytes;
use interlock_coordinator::Attempt;
use interlock_coordinator::contract::LOG_TEXT_BYTES_MAX;
use rand::rngs::StdRng;
use rand::{SeedableRng, TryRng};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWrite;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::{DynPollable, OutputStream, Pollable, StreamResult, subscribe};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView, async_trait};

/// WASI of one attempt, made when a guest first asks for any of it.
pub(crate) struct Wasi {
    ctx: WasiCtx,
    clock: Clock,
    random: Random,
}

impl Wasi {
    fn new(attempt: &Attempt, logs: &Arc<Logs>) -> Self {
        let clock = Clock::new(attempt.started().0);
        let random = Random::new(attempt.seed());
        let seed = blake3::hash(&attempt.seed());
        let [a, b] =
            [0, 8].map(|at| seed.as_bytes().iter().skip(at).take(8).fold(0, |n, byte| n << 8 | u128::from(*byte)));
        let mut builder = WasiCtxBuilder::new();
        builder
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .wall_clock(clock.clone())
            .monotonic_clock(clock.clone())
            .secure_random(random.clone())
            .insecure_random(random.clone())
            .insecure_random_seed(a << 64 | b)
            .max_random_size(RANDOM_BYTES_MAX)
            .stdout(Output::new("stdout", logs))
            .stderr(Output::new("stderr", logs));
        Self { ctx: builder.build(), clock, random }
    }

    /// Random numbers go on from what a retry would start from.
    pub(crate) fn reseed(&self, seed: [u8; 32]) {
        *self.random.lock() = StdRng::from_seed(seed);
    }
}

impl Guest {
    fn wasi(&mut self) -> &mut Wasi {
        self.wasi.get_or_insert_with(|| Box::new(Wasi::new(self.handle.running(), &self.logs)))
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi.get_or_insert_with(|| Box::new(Wasi::new(self.handle.running(), &self.logs)));
        wasi.clock.step();
        WasiCtxView { ctx: &mut wasi.ctx, table: &mut self.table }
    }
}

/// Links all of WASI 0.2, with this file's monotonic clock over wasmtime's, which would sleep.
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<Guest, Shadowed>(linker, |guest| guest)?;
    linker.allow_shadowing(false);
    Ok(())
}

struct Shadowed;

impl HasData for Shadowed {
    type Data<'a> = &'a mut Guest;
}

impl monotonic_clock::Host for Guest {
    fn now(&mut self) -> wasmtime::Result<u64> {
        self.pass()?;
        let wasi = self.wasi();
        wasi.clock.step();
        Ok(wasi.clock.ns())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        self.pass()?;
        Ok(CLOCK_STEP_NS)
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.sleep_until(when)
    }

    fn subscribe_duration(&mut self, duration: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let when = self.wasi().clock.ns().saturating_add(duration);
        self.sleep_until(when)
    }
}

impl Guest {
    /// A sleep takes no time: the clock is there, and what was to be waited for is ready.
    fn sleep_until(&mut self, when_ns: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.pass()?;
        let total_ms = self.start().total_ms;
        if when_ns > total_ms.saturating_mul(1_000_000) {
            return Err(Stopped::Slept { total_ms, slept_ms: when_ns / 1_000_000 }.into());
        }
        self.wasi().clock.jump(when_ns);
        let ready = self.table.push(Ready)?;
        subscribe(&mut self.table, ready)
    }
}

struct Ready;

#[async_trait]
impl Pollable for Ready {
    async fn ready(&mut self) {}
}

/// The guest's time. Clones are the same clock.
#[derive(Clone)]
struct Clock {
    started: Duration,
    ns: Arc<AtomicU64>,
}

impl Clock {
    fn new(started_ms: i64) -> Self {
        Self { started: Duration::from_millis(u64::try_from(started_ms).unwrap_or(0)), ns: Arc::default() }
    }

    fn ns(&self) -> u64 {
        self.ns.load(Ordering::Relaxed)
    }

    fn step(&self) {
        self.ns.fetch_add(CLOCK_STEP_NS, Ordering::Relaxed);
    }

    fn jump(&self, to_ns: u64) {
        self.ns.fetch_max(to_ns, Ordering::Relaxed);
    }
}

impl HostWallClock for Clock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(CLOCK_STEP_NS)
    }

    fn now(&self) -> Duration {
        self.started + Duration::from_nanos(self.ns())
    }
}

impl HostMonotonicClock for Clock {
    fn resolution(&self) -> u64 {
        CLOCK_STEP_NS
    }

    fn now(&self) -> u64 {
        self.ns()
    }
}

/// The guest's random numbers. Clones draw from the same stream.
#[derive(Clone)]
struct Random(Arc<Mutex<StdRng>>);

impl Random {
    fn new(seed: [u8; 32]) -> Self {
        Self(Arc::new(Mutex::new(StdRng::from_seed(seed))))
    }

    fn lock(&self) -> MutexGuard<'_, StdRng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.lock().try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.lock().try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.lock().try_fill_bytes(bytes)
    }
}

/// Standard output or error, line by line into the log. Past the budget it still takes what is
/// written: a guest that prints too much has not failed. Every handle of a stream is the same one.
#[derive(Clone)]
struct Output(Arc<Stream>);

struct Stream {
    name: &'static str,
    logs: Arc<Logs>,
    partial: Mutex<Vec<u8>>,
}

impl Output {
    fn new(name: &'static str, logs: &Arc<Logs>) -> Self {
        Self(Arc::new(Stream { name, logs: Arc::clone(logs), partial: Mutex::default() }))
    }
}

impl Stream {
    fn write(&self, bytes: &[u8]) {
        let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = LOG_TEXT_BYTES_MAX.saturating_sub(partial.len());
            partial.extend_from_slice(piece.get(..room).unwrap_or(piece));
            if pieces.peek().is_some() {
                self.logs.output(self.name, &String::from_utf8_lossy(&partial));
                partial.clear();
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let partial = self.partial.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !partial.is_empty() {
            self.logs.output(self.name, &String::from_utf8_lossy(partial));
        }
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        // WASI 0.3 would write here; it is not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.write(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(OUTPUT_PERMIT_BYTES)
    }
}
