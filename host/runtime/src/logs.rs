//! A guest's lines on their way to the host's log: escaped, cut, counted.
//!
//! Both ways in share one budget: the `log` interface, and standard output and error line by line.

use crate::limits::{LOG_BYTES_MAX, LOG_FIELDS_MAX, LOG_LINES_MAX, LOG_TEXT_BYTES_MAX};
use crate::stopped::cut;
use interlock_kernel::ids::Name;
use interlock_kernel::record::Failure;
use interlock_kernel::view::{Claim, Start};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tracing::{Level, Span};

/// The lines of one attempt.
pub(crate) struct Logs {
    claim: Claim,
    step: Name,
    span: OnceLock<Span>,
    budget: Mutex<Budget>,
}

#[derive(Default)]
struct Budget {
    lines: u32,
    bytes: usize,
    dropped: u64,
    last_words: Option<String>,
}

impl Budget {
    fn charge(&mut self, bytes: usize) -> bool {
        if self.lines >= LOG_LINES_MAX || self.bytes + bytes > LOG_BYTES_MAX {
            self.dropped += 1;
            return false;
        }
        self.lines += 1;
        self.bytes += bytes;
        true
    }
}

/// What a guest said last stands before the trap in a failure's reason, cut to leave room for the stack.
const LAST_WORDS_BYTES_MAX: usize = 400;

impl Logs {
    pub(crate) fn new(start: &Start) -> Self {
        Self { claim: start.claim.clone(), step: start.step.clone(), span: OnceLock::new(), budget: Mutex::default() }
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
        let message = escape(cut(message, LOG_TEXT_BYTES_MAX));
        let mut named = String::new();
        for (name, value) in fields.iter().take(LOG_FIELDS_MAX) {
            let space = if named.is_empty() { "" } else { " " };
            let (name, value) = (cut(name, LOG_TEXT_BYTES_MAX), cut(value, LOG_TEXT_BYTES_MAX));
            // Writing to a text does not fail.
            let _ = write!(named, "{space}{}={}", escape(name), escape(value));
        }
        if !self.charge(message.len() + named.len(), (level == Level::ERROR).then_some(&message)) {
            return;
        }
        let (span, fields) = (self.span(), named);
        macro_rules! line {
            ($level:ident) => {
                match fields.as_str() {
                    "" => tracing::event!(target: "interlock::guest", parent: span, Level::$level, "{message}"),
                    fields => tracing::event!(target: "interlock::guest", parent: span, Level::$level, fields, "{message}"),
                }
            };
        }
        match level {
            Level::TRACE => line!(TRACE),
            Level::DEBUG => line!(DEBUG),
            Level::INFO => line!(INFO),
            Level::WARN => line!(WARN),
            Level::ERROR => line!(ERROR),
        }
    }

    /// One line of standard output or error.
    pub(crate) fn output(&self, stream: &'static str, line: &str) {
        let message = escape(cut(line, LOG_TEXT_BYTES_MAX));
        if self.charge(message.len(), (stream == "stderr").then_some(&message)) {
            tracing::info!(target: "interlock::guest", parent: self.span(), stream, "{message}");
        }
    }

    /// The guest's last line of level error, or to standard error.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.budget().last_words.clone()
    }

    /// How many lines were past the budget. Says so once in the log.
    pub(crate) fn close(&self) -> u64 {
        let dropped = self.budget().dropped;
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

    fn charge(&self, bytes: usize, last_words: Option<&String>) -> bool {
        let mut budget = self.budget();
        if let Some(words) = last_words {
            budget.last_words = Some(cut(words, LAST_WORDS_BYTES_MAX).to_owned());
        }
        budget.charge(bytes)
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Control characters as `\u{1b}`, so that a guest writes neither lines nor colours of its own, nor
/// turns the text of others around.
pub(crate) fn escape(text: &str) -> String {
    if !text.chars().any(is_control) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for next in text.chars() {
        match next {
            '\n' | '\r' | '\t' => escaped.extend(next.escape_default()),
            control if is_control(control) => escaped.extend(control.escape_unicode()),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Controls, line and paragraph separators, and what changes the direction of text (Unicode TR 36).
fn is_control(next: char) -> bool {
    next.is_control()
        || matches!(next, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{Budget, escape};
    use crate::limits::{LOG_BYTES_MAX, LOG_LINES_MAX};

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape("a\x1b[31mb\nc é\u{202e}"), "a\\u{1b}[31mb\\nc é\\u{202e}");
    }

    #[test]
    fn lines_past_the_budget_are_counted() {
        let mut budget = Budget::default();
        let kept = (0..LOG_LINES_MAX + 7).filter(|_| budget.charge(1)).count();
        assert_eq!((kept, budget.dropped), (LOG_LINES_MAX as usize, 7));
    }

    #[test]
    fn bytes_past_the_budget_are_counted() {
        let mut budget = Budget::default();
        assert!(budget.charge(LOG_BYTES_MAX) && !budget.charge(1));
        assert_eq!(budget.dropped, 1);
    }
}
