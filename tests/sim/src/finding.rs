//! What a check says when it does not hold.

use std::fmt;

/// A theorem that does not hold: its name, about what, and what was expected and got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The theorem.
    pub theorem: &'static str,
    /// An entity, an event, an attempt.
    pub subject: String,
    /// What was expected, and what was got.
    pub detail: String,
}

impl Finding {
    pub(crate) fn new(theorem: &'static str, subject: impl fmt::Display, detail: impl fmt::Display) -> Self {
        Self { theorem, subject: subject.to_string(), detail: detail.to_string() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.theorem, self.subject, self.detail)
    }
}

impl std::error::Error for Finding {}

/// Holds, or is found not to.
pub(crate) type Held = Result<(), Finding>;

/// A finding unless it holds.
pub(crate) fn ensure(
    holds: bool,
    theorem: &'static str,
    subject: impl fmt::Display,
    detail: impl FnOnce() -> String,
) -> Held {
    if holds { Ok(()) } else { Err(Finding::new(theorem, subject, detail())) }
}
