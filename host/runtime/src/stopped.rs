//! How an attempt is ended from outside the guest's own will, and what is recorded of it.
//!
//! A trap of the guest's, an abuse of the contract and a passed limit all become one
//! [`Failure`]: a code for programs, a reason for people with the guest's own stack.

use crate::limits::{AFTERWARDS_TICKS_MAX, EPOCH_TICK_MS, FRAMES_MAX};
use interlock_coordinator::contract::{self, cut, retryable};
use interlock_kernel::limits::TEXT_BYTES_MAX;
use interlock_kernel::record::Failure;
use interlock_kernel::time::Span;
use std::fmt;
use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

/// A frame of a guest's stack in a reason, in bytes: names of generic functions have no end.
const FRAME_BYTES_MAX: usize = 120;

/// Ends an attempt: the contract was abused, or a limit passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The contract ends it.
    Contract(contract::Stopped),
    /// It went on for too long after its accepted transition.
    Afterwards,
    /// It wanted more memory than the machine allows.
    Memory { cap: u64, wanted: u64 },
    /// It wanted a larger table than a step needs.
    Table { cap: usize, wanted: usize },
    /// It slept past its deadline.
    Slept { total_ms: u64, slept_ms: u64 },
}

impl Stopped {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Contract(stopped) => stopped.code(),
            Self::Afterwards => "afterwards",
            Self::Memory { .. } => "memory-limit",
            Self::Table { .. } => "table-limit",
            Self::Slept { .. } => "slept",
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contract(stopped) => stopped.fmt(f),
            Self::Afterwards => {
                write!(
                    f,
                    "still computing {} ms after its accepted transition, which is its end",
                    u64::from(AFTERWARDS_TICKS_MAX) * EPOCH_TICK_MS
                )
            }
            Self::Memory { cap, wanted } => write!(
                f,
                "expected at most {cap} bytes of memory, got {wanted}: raise [limits] memory, or keep less at once"
            ),
            Self::Table { cap, wanted } => write!(f, "expected a table of at most {cap} elements, got {wanted}"),
            Self::Slept { total_ms, slept_ms } => write!(
                f,
                "expected a step to end within {}, got one that slept to {}: waiting is a timer's job, use a timer",
                Span(*total_ms),
                Span(*slept_ms)
            ),
        }
    }
}

impl std::error::Error for Stopped {}

impl From<contract::Stopped> for Stopped {
    fn from(stopped: contract::Stopped) -> Self {
        Self::Contract(stopped)
    }
}

/// What is recorded of an attempt that wasmtime ended. `last_words` is the guest's last line of level
/// error: a panic says more than the trap that follows it.
pub(crate) fn failure(error: &wasmtime::Error, last_words: Option<&str>) -> Failure {
    let (code, what) = code(error);
    let mut reason = match last_words {
        Some(words) if code == "trap" => format!("{words} ({what})"),
        Some(_) | None => what,
    };
    if let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() {
        // The first line is a heading, each further one `  0:  0xad - module!function`.
        for line in backtrace.to_string().lines().skip(1).take(FRAMES_MAX) {
            let frame = line.rsplit(" - ").next().unwrap_or(line).trim();
            let frame = cut(frame.trim_start_matches("<unknown>!"), FRAME_BYTES_MAX);
            if reason.len() + frame.len() > TEXT_BYTES_MAX {
                break;
            }
            reason.push_str("\n  at ");
            reason.push_str(frame);
        }
    }
    retryable(code, reason)
}

fn code(error: &wasmtime::Error) -> (&'static str, String) {
    if let Some(stopped) = error.downcast_ref::<Stopped>() {
        return (stopped.code(), stopped.to_string());
    }
    if let Some(I32Exit(status)) = error.downcast_ref::<I32Exit>() {
        let what = format!("expected the step to return, got exit({status})");
        return ("exit", what);
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => ("stack-overflow", Trap::StackOverflow.to_string()),
        Some(trap) => ("trap", trap.to_string()),
        None => ("trap", error.root_cause().to_string()),
    }
}
