//! A step's lines on their way to a log: escaped, cut, counted.

use super::stopped::cut;
use std::fmt::Write as _;

/// Log lines of one attempt, standard output and error included; further ones are counted.
pub const LOG_LINES_MAX: u32 = 1_000;
/// Text of log lines of one attempt, in bytes; further lines are counted.
pub const LOG_BYTES_MAX: usize = 256 << 10;
/// A log line's message, or one of its fields, in bytes; the rest is cut.
pub const LOG_TEXT_BYTES_MAX: usize = 4 << 10;
/// Fields of a log line; further ones are cut.
pub const LOG_FIELDS_MAX: usize = 32;

/// What a step said last stands before the trap in a failure's reason, cut to leave room for the stack.
const LAST_WORDS_BYTES_MAX: usize = 400;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever follows every move.
    Trace,
    /// For whoever looks for a fault.
    Debug,
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warn,
    /// Wrong.
    Error,
}

/// A line as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// What it says.
    pub message: String,
    /// `name=value`, with spaces between; empty if it has none.
    pub fields: String,
}

/// The budget of one attempt's lines, and the last of its errors.
#[derive(Debug, Default)]
pub struct Lines {
    lines: u32,
    bytes: usize,
    dropped: u64,
    last_words: Option<String>,
}

impl Lines {
    /// One line through the `log` interface; none if it is past the budget.
    #[must_use]
    pub fn line(&mut self, level: Level, message: &str, fields: &[(String, String)]) -> Option<Line> {
        let message = escape(cut(message, LOG_TEXT_BYTES_MAX));
        let mut named = String::new();
        for (name, value) in fields.iter().take(LOG_FIELDS_MAX) {
            let space = if named.is_empty() { "" } else { " " };
            let (name, value) = (cut(name, LOG_TEXT_BYTES_MAX), cut(value, LOG_TEXT_BYTES_MAX));
            // Writing to a text does not fail.
            let _ = write!(named, "{space}{}={}", escape(name), escape(value));
        }
        if level == Level::Error {
            self.remember(&message);
        }
        self.charge(message.len() + named.len()).then_some(Line { level, message, fields: named })
    }

    /// One line of standard output, or of standard error if its level is [`Level::Error`].
    #[must_use]
    pub fn output(&mut self, level: Level, line: &str) -> Option<String> {
        let message = escape(cut(line, LOG_TEXT_BYTES_MAX));
        if level == Level::Error {
            self.remember(&message);
        }
        self.charge(message.len()).then_some(message)
    }

    /// The last line of level error.
    #[must_use]
    pub fn last_words(&self) -> Option<&str> {
        self.last_words.as_deref()
    }

    /// How many lines were past the budget.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn remember(&mut self, message: &str) {
        self.last_words = Some(cut(message, LAST_WORDS_BYTES_MAX).to_owned());
    }

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

/// Control characters as `\u{1b}`, so that a step writes neither lines nor colours of its own, nor
/// turns the text of others around.
#[must_use]
pub fn escape(text: &str) -> String {
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
    use super::{LOG_BYTES_MAX, LOG_LINES_MAX, Level, Lines, escape};

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape("a\x1b[31mb\nc é\u{202e}"), "a\\u{1b}[31mb\\nc é\\u{202e}");
    }

    #[test]
    fn lines_past_the_budget_are_counted() {
        let mut lines = Lines::default();
        let kept = (0..LOG_LINES_MAX + 7).filter(|_| lines.charge(1)).count();
        assert_eq!((kept, lines.dropped()), (LOG_LINES_MAX as usize, 7));
    }

    #[test]
    fn bytes_past_the_budget_are_counted() {
        let mut lines = Lines::default();
        assert!(lines.charge(LOG_BYTES_MAX) && !lines.charge(1));
        assert_eq!(lines.dropped(), 1);
    }

    #[test]
    fn the_last_error_is_remembered_past_the_budget_too() {
        let mut lines = Lines::default();
        assert!(lines.charge(LOG_BYTES_MAX));
        assert_eq!(lines.line(Level::Error, "so\nit ends", &[]), None);
        assert_eq!(lines.line(Level::Warn, "no error", &[]), None);
        assert_eq!(lines.last_words(), Some("so\\nit ends"));
    }
}
