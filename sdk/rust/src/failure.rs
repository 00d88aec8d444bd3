//! How a step says that this attempt came to nothing. What follows is the manifest's policy.

use crate::Rejection;
use std::fmt;
use std::time::Duration;

/// Why an attempt failed, and whether another one could help.
///
/// Nothing that the attempt did since its last accepted save remains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    permanent: bool,
    code: String,
    reason: String,
    retry_after: Option<Duration>,
}

impl Failure {
    /// Try again, by the state's declared retry policy.
    #[must_use]
    pub fn retry(reason: impl fmt::Display) -> Failure {
        Failure { permanent: false, code: "failed".to_owned(), reason: reason.to_string(), retry_after: None }
    }

    /// Retries would not help: take the declared failure path at once.
    #[must_use]
    pub fn permanent(reason: impl fmt::Display) -> Failure {
        Failure { permanent: true, ..Failure::retry(reason) }
    }

    /// One word for programs; `failed` if it is not called.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Failure {
        self.code = code.into();
        self
    }

    /// The earliest next attempt; the policy's back-off may be later. Without meaning if permanent.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Failure {
        self.retry_after = Some(wait);
        self
    }

    /// Whether retries would not help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }

    /// The word for programs.
    #[must_use]
    pub fn as_code(&self) -> &str {
        &self.code
    }

    /// The sentence for people.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The earliest next attempt, if the step named one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = if self.permanent { "permanent" } else { "retry" };
        write!(f, "{} ({next}): {}", self.code, self.reason)
    }
}

impl std::error::Error for Failure {}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Failure {
        Failure {
            permanent: !rejection.retryable,
            reason: rejection.to_string(),
            code: rejection.code,
            retry_after: rejection.retry_after,
        }
    }
}
