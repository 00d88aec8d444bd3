//! Between the words of the step author's crate and those of the host's contract: one for one, no rule.

use crate::ran::TimerDue;
use interlock::{
    Change, Checkpoint, Condition, Event, EventKind, Failure, Mutation, Rejection, RejectionKind, Request, Status,
    Value,
};
use interlock_coordinator::contract::{self, Edit, Given, Kind, Published, Wish};
use interlock_kernel::command::StagedDue;
use interlock_kernel::record::CauseKind;
use interlock_kernel::time::WallTime;
use interlock_kernel::value::Operation;
use std::time::Duration;

pub(crate) fn wish_of_change(change: &Change) -> Wish {
    wish(change.data.as_ref(), change.outputs.as_ref(), &change.set, &change.conditions)
}

pub(crate) fn wish_of_checkpoint(checkpoint: &Checkpoint) -> Wish {
    wish(checkpoint.data.as_ref(), checkpoint.outputs.as_ref(), &checkpoint.set, &checkpoint.conditions)
}

fn wish(data: Option<&String>, outputs: Option<&String>, set: &[Mutation], conditions: &[Condition]) -> Wish {
    Wish {
        data: data.cloned(),
        outputs: outputs.cloned(),
        set: set.iter().cloned().map(edit).collect(),
        conditions: conditions.iter().cloned().map(published).collect(),
    }
}

pub(crate) fn edit(mutation: Mutation) -> Edit {
    let (field, operation, value) = match mutation {
        Mutation::Set(field, value) => (field, Operation::Set, Some(value)),
        Mutation::Increment(field, value) => (field, Operation::Increment, Some(value)),
        Mutation::Remove(field) => (field, Operation::Remove, None),
        Mutation::Append(field, value, limit) => {
            (field, Operation::Append { max: usize::try_from(limit).unwrap_or(usize::MAX) }, Some(value))
        }
        Mutation::Max(field, value) => (field, Operation::Max, Some(value)),
        Mutation::Min(field, value) => (field, Operation::Min, Some(value)),
    };
    Edit { field, operation, value: value.map(given) }
}

pub(crate) fn given(value: Value) -> Given {
    match value {
        Value::Json(text) => Given::Json(text),
        Value::From(text) => Given::From(text),
    }
}

fn published(condition: Condition) -> Published {
    let Condition { r#type: kind, status, reason, message } = condition;
    let status = match status {
        Status::True => contract::Status::True,
        Status::False => contract::Status::False,
        Status::Unknown => contract::Status::Unknown,
    };
    Published { kind, status, reason, message }
}

pub(crate) fn due(due: TimerDue) -> StagedDue {
    match due {
        TimerDue::After(ms) => StagedDue::After(ms),
        TimerDue::At(unix_ms) => StagedDue::At(WallTime(unix_ms)),
        TimerDue::Cancelled => StagedDue::Cancelled,
    }
}

pub(crate) fn request(request: Request) -> contract::Asked {
    let Request { target, params, headers, body } = request;
    contract::Asked { target, params, headers, body }
}

pub(crate) fn event(event: contract::Event) -> Event {
    let contract::Event { id, kind, name, payload, at_ms } = event;
    let kind = match kind {
        CauseKind::Created => EventKind::Created,
        CauseKind::Signal => EventKind::Signal,
        CauseKind::Timer => EventKind::Timer,
        CauseKind::Transition => EventKind::Transition,
        CauseKind::DesiredChanged => EventKind::DesiredChanged,
        CauseKind::Failure => EventKind::Failure,
        CauseKind::Deadline => EventKind::Deadline,
        CauseKind::Operator => EventKind::Operator,
        CauseKind::Effect => EventKind::Effect,
    };
    Event { id, kind, name, payload, at_ms }
}

pub(crate) fn rejection(rejection: &interlock_kernel::rejection::Rejection) -> Rejection {
    Rejection {
        kind: match Kind::of(rejection.code) {
            Kind::Invalid => RejectionKind::Invalid,
            Kind::NotFound => RejectionKind::NotFound,
            Kind::Denied => RejectionKind::Denied,
            Kind::Late => RejectionKind::Late,
            Kind::Fenced => RejectionKind::Fenced,
            Kind::Busy => RejectionKind::Busy,
            Kind::NotAllowed => RejectionKind::NotAllowed,
            Kind::Conflict => RejectionKind::Conflict,
            Kind::Guard => RejectionKind::Guard,
            Kind::Limit => RejectionKind::Limit,
            Kind::Unavailable => RejectionKind::Unavailable,
        },
        code: rejection.code.as_str().to_owned(),
        subject: rejection.subject.clone(),
        expected: rejection.expected.clone(),
        got: rejection.got.clone(),
        retryable: rejection.retryable,
        retry_after: rejection.retry_after_ms.map(Duration::from_millis),
        detail: rejection.detail.as_ref().map(|doc| doc.text().to_owned()),
    }
}

/// A failure as its author said it.
pub(crate) fn failure(failure: &interlock_kernel::record::Failure) -> Failure {
    let said = if failure.permanent { Failure::permanent(&failure.reason) } else { Failure::retry(&failure.reason) };
    let said = said.code(&failure.code);
    match failure.retry_after_ms {
        Some(ms) => said.after(Duration::from_millis(ms)),
        None => said,
    }
}

/// A failure as the host records it, within its bounds.
pub(crate) fn said(failure: &Failure) -> interlock_kernel::record::Failure {
    contract::said(interlock_kernel::record::Failure {
        permanent: failure.is_permanent(),
        code: failure.as_code().to_owned(),
        reason: failure.reason().to_owned(),
        retry_after_ms: failure.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
    })
}

pub(crate) fn level(level: interlock::log::Level) -> contract::Level {
    match level {
        interlock::log::Level::Trace => contract::Level::Trace,
        interlock::log::Level::Debug => contract::Level::Debug,
        interlock::log::Level::Info => contract::Level::Info,
        interlock::log::Level::Warn => contract::Level::Warn,
        interlock::log::Level::Error => contract::Level::Error,
    }
}
