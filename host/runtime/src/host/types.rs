//! `types`: between the words of `wit/` and those of the contract.

use crate::bindings::interlock::step::types as wit;
use crate::guest::{Guest, Refusal};
use interlock_coordinator::contract::{self, Edit, Given, Kind, Published, Status, Wish, said};
use interlock_kernel::record::{CauseKind, Failure};
use interlock_kernel::rejection::Rejection;
use interlock_kernel::value::Operation;
use interlock_kernel::view::Start;

impl wit::Host for Guest {
    fn convert_rejection(&mut self, refusal: Refusal) -> wasmtime::Result<wit::Rejection> {
        match refusal {
            Refusal::No(rejection) => Ok(rejection_for_guest(*rejection)),
            Refusal::Trap(error) => Err(error),
        }
    }
}

fn rejection_for_guest(rejection: Rejection) -> wit::Rejection {
    wit::Rejection {
        kind: match Kind::of(rejection.code) {
            Kind::Invalid => wit::RejectionKind::Invalid,
            Kind::NotFound => wit::RejectionKind::NotFound,
            Kind::Denied => wit::RejectionKind::Denied,
            Kind::Late => wit::RejectionKind::Late,
            Kind::Fenced => wit::RejectionKind::Fenced,
            Kind::Busy => wit::RejectionKind::Busy,
            Kind::NotAllowed => wit::RejectionKind::NotAllowed,
            Kind::Conflict => wit::RejectionKind::Conflict,
            Kind::Guard => wit::RejectionKind::Guard,
            Kind::Limit => wit::RejectionKind::Limit,
            Kind::Unavailable => wit::RejectionKind::Unavailable,
        },
        code: rejection.code.as_str().to_owned(),
        subject: rejection.subject,
        expected: rejection.expected,
        got: rejection.got,
        retryable: rejection.retryable,
        retry_after_ms: rejection.retry_after_ms,
        detail: rejection.detail.map(|doc| doc.text().to_owned()),
    }
}

/// What a guest asks to be changed.
pub(super) fn wish(
    data: Option<String>,
    outputs: Option<String>,
    set: Vec<wit::Mutation>,
    conditions: Vec<wit::Condition>,
) -> Wish {
    let set = set.into_iter().map(edit).collect();
    Wish { data, outputs, set, conditions: conditions.into_iter().map(published).collect() }
}

pub(super) fn edit(mutation: wit::Mutation) -> Edit {
    let (field, operation, value) = match mutation {
        wit::Mutation::Set(wit::Assignment { field, value }) => (field, Operation::Set, Some(value)),
        wit::Mutation::Increment(wit::Assignment { field, value }) => (field, Operation::Increment, Some(value)),
        wit::Mutation::Max(wit::Assignment { field, value }) => (field, Operation::Max, Some(value)),
        wit::Mutation::Min(wit::Assignment { field, value }) => (field, Operation::Min, Some(value)),
        wit::Mutation::Remove(field) => (field, Operation::Remove, None),
        wit::Mutation::Append(wit::Appending { field, value, limit }) => {
            (field, Operation::Append { max: usize::try_from(limit).unwrap_or(usize::MAX) }, Some(value))
        }
    };
    Edit { field, operation, value: value.map(given) }
}

pub(super) fn given(value: wit::Value) -> Given {
    match value {
        wit::Value::Json(text) => Given::Json(text),
        wit::Value::From(text) => Given::From(text),
    }
}

/// An answer of the host's own that is none: its defect, and the end of the attempt.
pub(super) fn strange(expected: &str, got: impl std::fmt::Debug) -> Refusal {
    Refusal::Trap(wasmtime::Error::msg(format!("expected {expected}, got {got:?}")))
}

fn published(condition: wit::Condition) -> Published {
    let wit::Condition { type_: kind, status, reason, message } = condition;
    let status = match status {
        wit::ConditionStatus::True => Status::True,
        wit::ConditionStatus::False => Status::False,
        wit::ConditionStatus::Unknown => Status::Unknown,
    };
    Published { kind, status, reason, message }
}

/// What entered the visit, for the guest.
pub(crate) fn event(start: &Start) -> wit::Event {
    let contract::Event { id, kind, name, payload, at_ms } = contract::event(start);
    let kind = match kind {
        CauseKind::Created => wit::EventKind::Created,
        CauseKind::Signal => wit::EventKind::Signal,
        CauseKind::Timer => wit::EventKind::Timer,
        CauseKind::Transition => wit::EventKind::Transition,
        CauseKind::DesiredChanged => wit::EventKind::DesiredChanged,
        CauseKind::Failure => wit::EventKind::Failure,
        CauseKind::Deadline => wit::EventKind::Deadline,
        CauseKind::Operator => wit::EventKind::Operator,
        CauseKind::Effect => wit::EventKind::Effect,
    };
    wit::Event { id, kind, name, payload, at_ms }
}

/// How the step says that its attempt came to nothing.
pub(crate) fn failure(failure: wit::Failure) -> Failure {
    let wit::Failure { permanent, code, reason, retry_after_ms } = failure;
    said(Failure { permanent, code, reason, retry_after_ms })
}
