//! Events and what became of them.

use super::Document;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An event. Its id is the header `Idempotency-Key`; without one the host mints one and returns it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EventRequest {
    /// Its name.
    pub name: String,
    /// Its payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Document>,
    /// What the sender believes.
    #[serde(default)]
    pub expect: ExpectView,
}

/// What a sender believes about the entity. Something past makes the event late, another version a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExpectView {
    /// The incarnation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u64>,
    /// The execution's id, `machine/key@incarnation.number`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    /// The visit, by the version that entered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visit: Option<u64>,
    /// The generation of `desired`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The answer to an event. A repetition gets the same body and the header `Idempotent-Replayed: true`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnswerView {
    /// What became of it.
    pub answer: AnswerKind,
    /// The event's id.
    pub event: String,
    /// The execution it started or joined.
    pub execution: Option<String>,
    /// The entity's version then; with `wait`, where it stands now.
    pub version: u64,
    /// The entity's state then; with `wait`, where it stands now.
    pub state: String,
    /// Why not, if it was refused or late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<RejectionView>,
    /// With `wait`: how the execution ended, or that it still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ExecutionOutcome>,
    /// With `wait`: the outputs when the execution ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Document>,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnswerKind {
    /// It changed the entity.
    Accepted,
    /// It waits in the entity's inbox.
    Queued,
    /// It waited, and was refused when its turn came.
    Refused,
    /// It came too late.
    Late,
}

impl AnswerKind {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Queued => "queued",
            Self::Refused => "refused",
            Self::Late => "late",
        }
    }
}

/// Where an execution stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionOutcome {
    /// It ended well.
    Succeeded,
    /// It ended by a failure path, a kill, or in a failed final state.
    Failed,
    /// Nothing is tried any more; an operator must decide.
    Parked,
    /// It has not ended.
    Running,
}

/// A decided no inside an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RejectionView {
    /// Why.
    pub code: String,
    /// What it is about.
    pub subject: String,
    /// What would have been accepted.
    pub expected: String,
    /// What was there.
    pub got: String,
    /// Whether the same request can be accepted later, unchanged.
    pub retryable: bool,
    /// When it makes sense to try again.
    pub retry_after_ms: Option<u64>,
}
