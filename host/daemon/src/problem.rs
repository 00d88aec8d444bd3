//! Every "no" of the HTTP API: RFC 9457 problems, and the one table from codes to statuses.
//!
//! The codes are the kernel's and a few that only HTTP has. `tests/it/golden/problems.txt` holds the table.

use crate::api::{AnswerView, Finding, HolderView, LeaseBusyView, Severity};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_coordinator::SubmitError;
use interlock_kernel::ids::BadName;
use interlock_kernel::rejection::{Code, Rejection};
use interlock_store::StoreError;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// Why a request was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The kernel decided so.
    Decided(Code),
    /// More or longer than a named limit, now and later.
    TooLarge,
    /// No such path.
    NoRoute,
    /// The path has no such method.
    NoMethod,
    /// A body that is not JSON by its own account.
    MediaType,
    /// `If-Match` is missing.
    NoPrecondition,
    /// A position that the feed no longer keeps.
    Gone,
    /// A write whose fate is not known.
    Indeterminate,
    /// A fault of the host.
    Internal,
}

impl Reason {
    /// Every reason.
    pub fn all() -> impl Iterator<Item = Self> {
        Code::ALL.into_iter().map(Self::Decided).chain([
            Self::TooLarge,
            Self::NoRoute,
            Self::NoMethod,
            Self::MediaType,
            Self::NoPrecondition,
            Self::Gone,
            Self::Indeterminate,
            Self::Internal,
        ])
    }

    /// The table: code, status, title.
    #[must_use]
    pub const fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::Decided(code) => match code {
                Code::Invalid => (code.as_str(), 400, "The request itself is wrong"),
                Code::NotFound => (code.as_str(), 404, "There is no such thing"),
                Code::Denied => (code.as_str(), 403, "The caller may not"),
                Code::IdReused => (code.as_str(), 422, "The event id was used for another event"),
                Code::Late => (code.as_str(), 409, "It concerns something past"),
                Code::Final => (code.as_str(), 409, "The entity is in a final state"),
                Code::Fenced => (code.as_str(), 409, "Somebody else may write now"),
                Code::Spent => (code.as_str(), 409, "The attempt has had its one transition"),
                Code::Paused => (code.as_str(), 409, "An operator paused it"),
                Code::Busy => (code.as_str(), 409, "Somebody else holds the lock"),
                Code::Conflict => (code.as_str(), 412, "What was read is no longer what is there"),
                Code::NotAllowed => (code.as_str(), 409, "The state does not take this"),
                Code::Require => (code.as_str(), 422, "A requirement does not hold"),
                Code::Guard => (code.as_str(), 422, "The guard does not hold"),
                Code::Limit => (code.as_str(), 429, "A named limit is reached"),
                Code::OutboxFull => (code.as_str(), 429, "A target does not keep up"),
                Code::Unavailable => (code.as_str(), 503, "The store cannot answer now"),
            },
            Self::TooLarge => ("limit", 413, "More or longer than a named limit"),
            Self::NoRoute => ("not_found", 404, "There is no such path"),
            Self::NoMethod => ("method_not_allowed", 405, "The path has no such method"),
            Self::MediaType => ("media_type", 415, "The body is not JSON by its own account"),
            Self::NoPrecondition => ("precondition_required", 428, "The request must say what it replaces"),
            Self::Gone => ("gone", 410, "The feed no longer keeps this position"),
            Self::Indeterminate => ("indeterminate", 503, "Whether it was written is not known"),
            Self::Internal => ("internal", 500, "A fault of the host"),
        }
    }
}

/// A problem (RFC 9457), `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:interlock:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the code means, the same for every problem of it.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Why: one stable word for programs.
    pub code: String,
    /// One sentence for people.
    pub detail: String,
    /// What it is about: an entity, a machine, a field, a limit's name.
    pub subject: String,
    /// What would have been accepted.
    pub expected: String,
    /// What was there.
    pub got: String,
    /// JSON Pointer (RFC 6901) to what is wrong in the request's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Whether the same request can be accepted later, unchanged.
    pub retryable: bool,
    /// When it makes sense to try again; the header `Retry-After` says it in whole seconds.
    pub retry_after_ms: Option<u64>,
    /// Who holds the lock, since when and until when, where that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<HolderView>,
    /// Who has the lease, since when, and who is next, where that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseBusyView>,
    /// Who answers for the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The event's id, where an event was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The event's answer, where it is remembered: late, or refused when its turn came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<AnswerView>>,
    /// Everything that the check of a machine found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

impl Problem {
    /// A problem with these particulars.
    #[must_use]
    pub fn new(
        reason: Reason,
        subject: impl fmt::Display,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) -> Self {
        let (code, status, title) = reason.row();
        let (subject, expected, mut got) = (subject.to_string(), expected.to_string(), got.to_string());
        if got.is_empty() {
            // An empty header, say: the sentence is to have an end.
            got.push_str("nothing");
        }
        Self {
            kind: format!("urn:interlock:{code}"),
            title: title.to_owned(),
            status,
            code: code.to_owned(),
            detail: format!("{subject}: expected {expected}, got {got}"),
            subject,
            expected,
            got,
            pointer: None,
            retryable: false,
            retry_after_ms: None,
            holder: None,
            lease: None,
            owner: None,
            event: None,
            answer: None,
            findings: Vec::new(),
        }
    }

    /// The request itself is wrong.
    #[must_use]
    pub fn invalid(subject: impl fmt::Display, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        Self::new(Reason::Decided(Code::Invalid), subject, expected, got)
    }

    /// A text that is no name where one stands.
    #[must_use]
    pub fn bad_name(subject: impl fmt::Display, bad: BadName) -> Self {
        Self::invalid(subject, bad.expected, format_args!("{:?}", bad.got))
    }

    /// A check found errors; `left_out` of them are not among the findings.
    #[must_use]
    pub fn unsound(subject: &str, expected: &str, findings: Vec<Finding>, left_out: usize) -> Self {
        let is_error = |finding: &&Finding| finding.severity == Severity::Error;
        let errors = findings.iter().filter(is_error).count().saturating_add(left_out);
        let noun = if errors == 1 { "error" } else { "errors" };
        let first = findings.iter().find(is_error);
        let got = first.map_or("one with errors".to_owned(), |finding| finding.message.clone());
        let problem = Self::invalid(subject, expected, got).saying(format!("the check found {errors} {noun}"));
        Self { findings, ..problem }
    }

    /// There is no such thing.
    #[must_use]
    pub fn not_found(subject: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self::new(Reason::Decided(Code::NotFound), subject, expected, "nothing of this name")
    }

    /// A fault of the host; what happened goes to the log, not to the client.
    #[must_use]
    pub fn internal(what: &str) -> Self {
        Self::new(Reason::Internal, "the host", "an answer", what)
    }

    /// The same, worth trying again after this many ms.
    #[must_use]
    pub fn retry_after(mut self, ms: u64) -> Self {
        self.retryable = true;
        self.retry_after_ms = Some(ms);
        self
    }

    /// The same, with another sentence.
    #[must_use]
    pub fn saying(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// The same, with who answers for the machine.
    #[must_use]
    pub fn owned_by(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// The same, about this place in the body.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// The same, about this event.
    #[must_use]
    pub fn of_event(mut self, event: impl fmt::Display) -> Self {
        self.event = Some(event.to_string());
        self
    }

    /// What the header `Retry-After` says: whole seconds, at least one.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u64> {
        self.retry_after_ms.map(|ms| ms.div_ceil(1000).max(1))
    }
}

fn sentence(rejection: &Rejection) -> String {
    let Rejection { subject, expected, got, .. } = rejection;
    match rejection.code {
        Code::Busy if subject.starts_with("lease ") => format!("{subject} is not free: {got}"),
        Code::Busy if rejection.retryable => format!("{subject} is being modified, try again shortly"),
        Code::Busy => format!("{subject} is being modified and waits for an operator"),
        Code::Guard => format!("{subject} does not take this now: expected {expected}, got {got}"),
        Code::Final => format!("{subject} is over and takes nothing any more"),
        Code::OutboxFull => format!("{subject} is full: its target does not keep up"),
        Code::Unavailable => format!("the store cannot answer now: {got}"),
        Code::Invalid
        | Code::NotFound
        | Code::Denied
        | Code::IdReused
        | Code::Late
        | Code::Fenced
        | Code::Spent
        | Code::Paused
        | Code::Conflict
        | Code::NotAllowed
        | Code::Require
        | Code::Limit => format!("{subject}: expected {expected}, got {got}"),
    }
}

impl From<&Rejection> for Problem {
    fn from(rejection: &Rejection) -> Self {
        let reason = match rejection.code {
            // A full queue is a matter of when; a document over its limit is not.
            Code::Limit if !rejection.retryable => Reason::TooLarge,
            code => Reason::Decided(code),
        };
        let mut problem = Self::new(reason, &rejection.subject, &rejection.expected, &rejection.got);
        problem.detail = sentence(rejection);
        problem.retryable = rejection.retryable;
        problem.retry_after_ms = rejection.retry_after_ms;
        if let Some(detail) = &rejection.detail {
            problem.holder = HolderView::read(detail.value());
            problem.lease = LeaseBusyView::read(detail.value());
            // The owner of a lease is no machine's.
            let owner = detail.value().get("owner").filter(|_| problem.lease.is_none());
            problem.owner = owner.and_then(|owner| owner.as_str()).map(str::to_owned);
        }
        problem
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let expected = "a store that takes this";
        match error {
            StoreError::Limit { name, max, got } if name.starts_with("queue.") => {
                Self::new(Reason::Decided(Code::Limit), name, format!("at most {max} waiting"), got).retry_after(1_000)
            }
            StoreError::Limit { name, max, got } => Self::new(Reason::TooLarge, name, format!("at most {max}"), got),
            StoreError::Unavailable { why } => {
                Self::new(Reason::Decided(Code::Unavailable), "the store", expected, why).retry_after(1_000)
            }
            StoreError::Indeterminate { why } => Self::new(Reason::Indeterminate, "the store", "a durable answer", why)
                .saying("whether it was written is not known: ask again with the same event id, or read first"),
            StoreError::Closed => {
                Self::new(Reason::Decided(Code::Unavailable), "the store", expected, "one that is closing")
                    .retry_after(1_000)
            }
            StoreError::ReservedKey { .. }
            | StoreError::Panicked { .. }
            | StoreError::Corrupt { .. }
            | StoreError::NewerFormat { .. }
            | StoreError::AlreadyOpen { .. }
            | StoreError::Io { .. } => {
                tracing::error!(%error, "the store failed");
                Self::internal("a failure of the store; the log has more")
            }
        }
    }
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Rejected(rejection) => Self::from(&*rejection),
            SubmitError::Contended { retry_after_ms } => {
                Self::new(Reason::Decided(Code::Limit), "queue.admissions", "room in the queue", "a full one")
                    .retry_after(retry_after_ms)
            }
            SubmitError::Store(error) => error.into(),
        }
    }
}

impl From<BadName> for Problem {
    fn from(bad: BadName) -> Self {
        Self::bad_name(bad.kind, bad)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Problem {}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == 413 {
            // The rest of a body may still be on its way: nothing else can come over this connection.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(seconds) = self.retry_after_s() {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
