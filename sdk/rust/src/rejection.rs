//! A decided no, in the host's words. It knows no rule: the host names the one that held.

use std::fmt;
use std::time::Duration;

/// The kinds of refusal; the same words as over HTTP and on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionKind {
    /// What was handed over is malformed or violates a declared schema.
    Invalid,
    /// The thing named does not exist.
    NotFound,
    /// The machine was not granted this.
    Denied,
    /// It concerns something past.
    Late,
    /// The caller no longer holds what it acts on.
    Fenced,
    /// Somebody else holds it.
    Busy,
    /// The machine does not declare this move, or not from here.
    NotAllowed,
    /// What the caller read has changed since: reload, decide again.
    Conflict,
    /// A declared guard or requirement does not hold.
    Guard,
    /// A named limit would be passed.
    Limit,
    /// The host cannot do it now, or not in this release.
    Unavailable,
}

impl fmt::Display for RejectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RejectionKind::Invalid => "invalid",
            RejectionKind::NotFound => "not-found",
            RejectionKind::Denied => "denied",
            RejectionKind::Late => "late",
            RejectionKind::Fenced => "fenced",
            RejectionKind::Busy => "busy",
            RejectionKind::NotAllowed => "not-allowed",
            RejectionKind::Conflict => "conflict",
            RejectionKind::Guard => "guard",
            RejectionKind::Limit => "limit",
            RejectionKind::Unavailable => "unavailable",
        })
    }
}

/// A decided no. The system worked; nothing was changed.
///
/// `?` turns it into a [`Failure`](crate::Failure) of the attempt: a retry if it is retryable,
/// permanent otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// What sort of no.
    pub kind: RejectionKind,
    /// The exact rule, stable across releases: `spent`, `fenced`, `schema`.
    pub code: String,
    /// What it is about: an entity, a state, a field.
    pub subject: String,
    /// What would have been accepted.
    pub expected: String,
    /// What was found instead.
    pub got: String,
    /// Whether the same request can be accepted later, unchanged.
    pub retryable: bool,
    /// When it makes sense to try again; none if nobody knows.
    pub retry_after: Option<Duration>,
    /// More for programs, as JSON text; its shape depends on the code.
    pub detail: Option<String>,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rejection { code, subject, expected, got, .. } = self;
        write!(f, "{code}: {subject}: expected {expected}, got {got}")
    }
}

impl std::error::Error for Rejection {}
