//! A guest's lines on their way to the host's log: escaped, cut, counted.
//!
//! Both ways in share one budget: the `log` interface, and standard output and error line by line.

use crate::limits::{LOG_BYTES_MAX, LOG_FIELDS_MAX, LOG_LINES_MAX, LOG_TEXT_BYTES_MAX};
use crate::stopped::cut;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::{Level, Span};

/// The lines of one attempt.
pub(crate) struct Logs {
    span: Span,
    budget: Mutex<Budget>,
}

#[derive(Default)]
struct Budget {
    lines: u32,
    bytes: usize,
    dropped: u64,
    last_words: Option<String>,
}

impl Logs {
    /// Lines are written inside this span, which names the entity, the execution and the attempt.
    pub(crate) fn new(span: Span) -> Self {
        Self { span, budget: Mutex::default() }
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
        let (span, fields) = (&self.span, named);
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
            tracing::info!(target: "interlock::guest", parent: &self.span, stream, "{message}");
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
                parent: &self.span,
                dropped,
                "log lines dropped: expected at most {LOG_LINES_MAX} lines and {LOG_BYTES_MAX} bytes in an attempt"
            );
        }
        dropped
    }

    fn charge(&self, bytes: usize, last_words: Option<&String>) -> bool {
        let mut budget = self.budget();
        if let Some(words) = last_words {
            budget.last_words = Some(cut(words, 400).to_owned());
        }
        if budget.lines >= LOG_LINES_MAX || budget.bytes + bytes > LOG_BYTES_MAX {
            budget.dropped += 1;
            return false;
        }
        budget.lines += 1;
        budget.bytes += bytes;
        true
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
    use super::{Logs, escape};
    use crate::limits::LOG_LINES_MAX;
    use tracing::{Level, Span};

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape("a\x1b[31mb\nc é\u{202e}"), "a\\u{1b}[31mb\\nc é\\u{202e}");
    }

    #[test]
    fn lines_past_the_budget_are_counted() {
        let logs = Logs::new(Span::none());
        for _ in 0..LOG_LINES_MAX + 7 {
            logs.write(Level::INFO, "again", &[]);
        }
        assert_eq!(logs.close(), 7);
    }
}
