//! Every "no" of a receiver: RFC 9457 problems in the words of the host's own API.

use crate::effect::Stale;
use crate::header::{BadHeader, IdempotencyKey};
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use std::fmt;

/// Why an effect was not done. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 400: a header is missing, repeated or malformed. The sender is not what it should be; do not guess.
    Header(BadHeader),
    /// 412: a newer owner has the resource. It stays so: the same request is never accepted again.
    Stale(Stale),
    /// 422: the idempotency key was used for another request.
    KeyReused {
        /// The key.
        key: IdempotencyKey,
    },
    /// 409: another delivery of the same effect is being worked on.
    InProgress {
        /// The effect's key.
        key: IdempotencyKey,
    },
    /// 503: a named limit is reached.
    Full {
        /// The limit.
        limit: &'static str,
        /// Its value.
        max: usize,
    },
    /// 503: the highest token cannot be read or raised now, so nobody may write.
    Unavailable {
        /// What happened; the sender is told.
        why: String,
    },
}

impl Refusal {
    /// The same as a document.
    #[must_use]
    pub fn problem(&self) -> Problem {
        match self {
            Self::Header(bad) => Problem::new(INVALID, &bad.header, bad.expected, &bad.got),
            Self::Stale(stale) => {
                Problem::new(FENCED, &stale.resource, format_args!("a token of at least {}", stale.expected), stale.got)
            }
            Self::KeyReused { key } => {
                Problem::new(ID_REUSED, key, "the request that this key was first used for", "another one")
            }
            Self::InProgress { key } => {
                Problem::new(BUSY, key, "no delivery of this effect in work", "one that is").retry()
            }
            Self::Full { limit, max } => {
                Problem::new(UNAVAILABLE, limit, format_args!("at most {max}"), "one more").retry()
            }
            Self::Unavailable { why } => Problem::new(UNAVAILABLE, "the fence", "its highest token", why).retry(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem();
        write!(f, "{}: {}", problem.code, problem.detail)
    }
}

impl std::error::Error for Refusal {}

impl From<BadHeader> for Refusal {
    fn from(bad: BadHeader) -> Self {
        Self::Header(bad)
    }
}

impl From<Stale> for Refusal {
    fn from(stale: Stale) -> Self {
        Self::Stale(stale)
    }
}

type Row = (&'static str, StatusCode, &'static str);
const INVALID: Row = ("invalid", StatusCode::BAD_REQUEST, "The request itself is wrong");
// The token is a condition that the request carries, so it is 412 here; the host's own API says 409 to an attempt.
const FENCED: Row = ("fenced", StatusCode::PRECONDITION_FAILED, "Somebody else may write now");
const ID_REUSED: Row =
    ("id_reused", StatusCode::UNPROCESSABLE_ENTITY, "The idempotency key was used for another request");
const BUSY: Row = ("busy", StatusCode::CONFLICT, "The same effect is being worked on");
const UNAVAILABLE: Row = ("unavailable", StatusCode::SERVICE_UNAVAILABLE, "The receiver cannot answer now");
#[cfg(any(feature = "sqlite", feature = "postgres"))]
const INTERNAL: Row = ("internal", StatusCode::INTERNAL_SERVER_ERROR, "A fault of the receiver");

/// How long a sender is asked to wait where only time helps.
const RETRY_AFTER_MS: u64 = 1_000;

/// A problem (RFC 9457), `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// `urn:interlock:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the code means, the same for every problem of it.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// Why: one stable word for programs.
    pub code: &'static str,
    /// One sentence for people.
    pub detail: String,
    /// What it is about: a header, a resource, a key, a limit.
    pub subject: String,
    /// What would have been accepted.
    pub expected: String,
    /// What was there.
    pub got: String,
    /// Whether the same request can be accepted later, unchanged.
    pub retryable: bool,
    /// When it makes sense to try again; the header `Retry-After` says it in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Problem {
    fn new(row: Row, subject: impl fmt::Display, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        let (code, status, title) = row;
        let (subject, expected, got) = (subject.to_string(), expected.to_string(), got.to_string());
        Self {
            kind: format!("urn:interlock:{code}"),
            title,
            status: status.as_u16(),
            code,
            detail: format!("{subject}: expected {expected}, got {got}"),
            subject,
            expected,
            got,
            retryable: false,
            retry_after_ms: None,
        }
    }

    fn retry(mut self) -> Self {
        self.retryable = true;
        self.retry_after_ms = Some(RETRY_AFTER_MS);
        self
    }

    /// The database failed in a way that passes: it is locked, or asks to begin the transaction anew.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn database_busy() -> Self {
        Self::new(UNAVAILABLE, "the database", "a transaction that commits", "one that has to begin anew").retry()
    }

    /// The database failed. What happened belongs into the receiver's log, not to the sender.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn database_failed() -> Self {
        Self::new(INTERNAL, "the database", "an answer", "an error; the receiver's log has more")
    }

    /// The same as a response.
    #[must_use]
    pub fn response<B: From<Vec<u8>>>(&self) -> Response<B> {
        let body = serde_json::to_vec(self).unwrap_or_default();
        let mut response = Response::new(B::from(body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(ms) = self.retry_after_ms {
            headers.insert(header::RETRY_AFTER, ms.div_ceil(1_000).max(1).into());
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        refusal.problem()
    }
}

impl From<BadHeader> for Problem {
    fn from(bad: BadHeader) -> Self {
        Refusal::from(bad).problem()
    }
}
