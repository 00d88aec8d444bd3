//! How an attempt is ended against its step's will, and what is recorded of it.

use crate::gate::Closed;
use interlock_kernel::limits::{REFUSALS_MAX, RETRY_AFTER_MS_MAX, TEXT_BYTES_MAX};
use interlock_kernel::record::Failure;
use std::fmt;

/// Ends an attempt: its step abused the contract, or may not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The attempt lost the right to go on.
    Fenced(Closed),
    /// It asked again after it was told that its handle is spent.
    Spent,
    /// It went on asking after too many refusals.
    Refusals,
    /// The store could not say what the step must know to go on.
    Unavailable(String),
}

impl Stopped {
    /// A short stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Fenced(closed) => closed.why,
            Self::Spent => "spent",
            Self::Refusals => "refusals",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fenced(closed) => write!(f, "stopped: {}", closed.text),
            Self::Spent => f.write_str("called again after the answer `spent`: return after an accepted transition"),
            Self::Refusals => write!(f, "called again after {REFUSALS_MAX} refusals in one attempt"),
            Self::Unavailable(why) => write!(f, "expected the store to answer, got: {why}"),
        }
    }
}

impl std::error::Error for Stopped {}

/// A failure that the state's policy retries.
#[must_use]
pub fn retryable(code: &str, reason: impl AsRef<str>) -> Failure {
    Failure {
        permanent: false,
        code: code.to_owned(),
        reason: cut(reason.as_ref(), TEXT_BYTES_MAX).to_owned(),
        retry_after_ms: None,
    }
}

/// A failure as a step says it, within its bounds. One without a code is `failed`.
#[must_use]
pub fn said(failure: Failure) -> Failure {
    let code = cut(&failure.code, TEXT_BYTES_MAX).trim();
    Failure {
        permanent: failure.permanent,
        code: if code.is_empty() { "failed".to_owned() } else { code.to_owned() },
        reason: cut(&failure.reason, TEXT_BYTES_MAX).to_owned(),
        retry_after_ms: failure.retry_after_ms.map(|ms| ms.min(RETRY_AFTER_MS_MAX)),
    }
}

/// The longest beginning of at most this many bytes.
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
