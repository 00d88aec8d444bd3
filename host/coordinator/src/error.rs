//! Why a command was not done, as its caller must tell it apart.

use interlock_kernel::rejection::Rejection;
use interlock_store::StoreError;
use std::fmt;

/// Why a submitted command changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// The kernel decided "no". What it read is durable, so the "no" holds.
    Rejected(Box<Rejection>),
    /// The queue is full; nothing was decided.
    Contended {
        /// When to try again, in ms.
        retry_after_ms: u64,
    },
    /// The store could not do it, or cannot say whether it did ([`StoreError::Indeterminate`]).
    Store(StoreError),
}

impl SubmitError {
    /// The refusal, if it is one.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Contended { .. } | Self::Store(_) => None,
        }
    }

    /// Whether the same request may succeed later without anybody changing it.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Rejected(rejection) => rejection.retryable,
            Self::Contended { .. } => true,
            Self::Store(error) => error.is_retryable(),
        }
    }
}

impl From<Rejection> for SubmitError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(Box::new(rejection))
    }
}

impl From<StoreError> for SubmitError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::Contended { retry_after_ms } => {
                write!(f, "expected room in the queue, got a full one; try again in {retry_after_ms} ms")
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SubmitError {}
