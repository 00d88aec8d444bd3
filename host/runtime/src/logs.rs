//! A guest's lines on their way to the host's log.
//!
//! Both ways in share one budget: the `log` interface, and standard output and error line by line.

use interlock_coordinator::contract::{LOG_BYTES_MAX, LOG_LINES_MAX, Level, Line, Lines, escape};
use interlock_kernel::ids::Name;
use interlock_kernel::record::Failure;
use interlock_kernel::view::{Claim, Start};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tracing::Span;

/// The lines of one attempt.
pub(crate) struct Logs {
    claim: Claim,
    step: Name,
    span: OnceLock<Span>,
    lines: Mutex<Lines>,
}

impl Logs {
    pub(crate) fn new(start: &Start) -> Self {
        Self { claim: start.claim.clone(), step: start.step.clone(), span: OnceLock::new(), lines: Mutex::default() }
    }

    /// Lines are written inside this span, which a guest cannot set. Made with the first of them: most
    /// attempts have nothing to say.
    fn span(&self) -> &Span {
        self.span.get_or_init(|| {
            tracing::info_span!(
                target: "interlock::attempt",
                "attempt",
                entity = %self.claim.execution.entity,
                execution = %self.claim.execution,
                step = %self.step,
                attempt = self.claim.attempt,
                token = self.claim.token.get(),
            )
        })
    }

    /// The attempt came to nothing.
    pub(crate) fn failed(&self, failure: &Failure) {
        let (code, reason) = (escape(&failure.code), escape(&failure.reason));
        tracing::info!(target: "interlock::attempt", parent: self.span(), code, reason, "attempt failed");
    }

    /// The guest went on after its accepted transition, and this became of it.
    pub(crate) fn afterwards(&self, failure: &Failure) {
        let (code, reason) = (escape(&failure.code), escape(&failure.reason));
        tracing::info!(
            target: "interlock::attempt",
            parent: self.span(),
            code,
            reason,
            "failed after its accepted transition, which changes nothing"
        );
    }

    /// One line through the `log` interface.
    pub(crate) fn write(&self, level: Level, message: &str, fields: &[(String, String)]) {
        let Some(Line { level, message, fields }) = self.lines().line(level, message, fields) else { return };
        let span = self.span();
        macro_rules! line {
            ($level:ident) => {
                match fields.as_str() {
                    "" => tracing::event!(target: "interlock::guest", parent: span, tracing::Level::$level, "{message}"),
                    fields => tracing::event!(
                        target: "interlock::guest", parent: span, tracing::Level::$level, fields, "{message}"
                    ),
                }
            };
        }
        match level {
            Level::Trace => line!(TRACE),
            Level::Debug => line!(DEBUG),
            Level::Info => line!(INFO),
            Level::Warn => line!(WARN),
            Level::Error => line!(ERROR),
        }
    }

    /// One line of standard output or error.
    pub(crate) fn output(&self, stream: &'static str, line: &str) {
        let level = if stream == "stderr" { Level::Error } else { Level::Info };
        if let Some(message) = self.lines().output(level, line) {
            tracing::info!(target: "interlock::guest", parent: self.span(), stream, "{message}");
        }
    }

    /// The guest's last line of level error, or to standard error.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.lines().last_words().map(str::to_owned)
    }

    /// How many lines were past the budget. Says so once in the log.
    pub(crate) fn close(&self) -> u64 {
        let dropped = self.lines().dropped();
        if dropped > 0 {
            tracing::warn!(
                target: "interlock::guest",
                parent: self.span(),
                dropped,
                "log lines dropped: expected at most {LOG_LINES_MAX} lines and {LOG_BYTES_MAX} bytes in an attempt"
            );
        }
        dropped
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
