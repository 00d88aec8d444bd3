//! The decided "no": named, with what was expected and what was got. The same vocabulary in WIT, HTTP
//! and on the command line.

use crate::limits::TEXT_BYTES_MAX;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a command was refused. The order of declaration is the order of precedence for events;
/// [`Code::STEP_ORDER`] is the order for what a step asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Code {
    /// The request itself is wrong: a name, a schema, a document.
    Invalid,
    /// No such machine, entity or revision.
    NotFound,
    /// The principal may not.
    Denied,
    /// The event id was used for another event.
    IdReused,
    /// For a past incarnation, execution, visit or generation, or a finished entity.
    Late,
    /// The entity is in a final state.
    Final,
    /// The attempt is no longer the open one: somebody else may write now.
    Fenced,
    /// The handle already has its one accepted transition.
    Spent,
    /// An operator paused it.
    Paused,
    /// An execution holds the lock.
    Busy,
    /// What was read is no longer what is there.
    Conflict,
    /// The state does not take this event, or allow this move.
    NotAllowed,
    /// A requirement on something else does not hold.
    Require,
    /// The guard does not hold.
    Guard,
    /// A named bound is reached.
    Limit,
    /// The store cannot answer now.
    Unavailable,
    /// A lane of the outbox is full: the target does not keep up. Ranks with `limit`.
    OutboxFull,
}

/// At most [`TEXT_BYTES_MAX`] bytes of a text that only people read.
pub(crate) fn cut(text: &str) -> String {
    cut_to(text, TEXT_BYTES_MAX).to_owned()
}

/// At most so many bytes of a text, ending with a whole character.
pub(crate) fn cut_to(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

impl Code {
    /// Every code, in order of precedence.
    pub const ALL: [Self; 17] = [
        Self::Invalid,
        Self::NotFound,
        Self::Denied,
        Self::IdReused,
        Self::Late,
        Self::Final,
        Self::Fenced,
        Self::Spent,
        Self::Paused,
        Self::Busy,
        Self::Conflict,
        Self::NotAllowed,
        Self::Require,
        Self::Guard,
        Self::Limit,
        Self::Unavailable,
        Self::OutboxFull,
    ];

    /// The order in which a step's request is refused.
    pub const STEP_ORDER: [Self; 10] = [
        Self::Fenced,
        Self::Spent,
        Self::Conflict,
        Self::NotAllowed,
        Self::Require,
        Self::Guard,
        Self::Denied,
        Self::Invalid,
        Self::Limit,
        Self::OutboxFull,
    ];

    /// The stable text of the code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::IdReused => "id_reused",
            Self::Late => "late",
            Self::Final => "final",
            Self::Fenced => "fenced",
            Self::Spent => "spent",
            Self::Paused => "paused",
            Self::Busy => "busy",
            Self::Conflict => "conflict",
            Self::NotAllowed => "not_allowed",
            Self::Require => "require",
            Self::Guard => "guard",
            Self::Limit => "limit",
            Self::Unavailable => "unavailable",
            Self::OutboxFull => "outbox_full",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// Why.
    pub code: Code,
    /// What it is about: an entity, a machine, a field, a limit's name.
    pub subject: String,
    /// What would have been accepted.
    pub expected: String,
    /// What was there instead.
    pub got: String,
    /// Whether the same request can succeed later.
    pub retryable: bool,
    /// When to try again, in ms.
    pub retry_after_ms: Option<u64>,
    /// More, as JSON text: who holds the lock, since when, until when.
    pub detail: Option<crate::doc::Doc>,
}

impl Rejection {
    /// A refusal that repeating does not change. Long texts are cut: a refusal may have to be stored.
    #[must_use]
    pub fn new(code: Code, subject: impl fmt::Display, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        Self {
            code,
            subject: cut(&subject.to_string()),
            expected: cut(&expected.to_string()),
            got: cut(&got.to_string()),
            retryable: false,
            retry_after_ms: None,
            detail: None,
        }
    }

    /// The same, worth trying again after this many ms.
    #[must_use]
    pub fn retry_after(mut self, ms: u64) -> Self {
        self.retryable = true;
        self.retry_after_ms = Some(ms);
        self
    }

    /// The same, with more.
    #[must_use]
    pub fn with_detail(mut self, detail: serde_json::Value) -> Self {
        self.detail = Some(crate::doc::Doc::new(detail));
        self
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: expected {}, got {}", self.code, self.subject, self.expected, self.got)
    }
}

impl std::error::Error for Rejection {}
