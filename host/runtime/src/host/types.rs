//! `types`: between the guest's words and the kernel's.
//!
//! Text of a guest becomes a kernel value here or is refused, naming where; nothing unparsed goes on.

use crate::bindings::interlock::step::types as wit;
use crate::guest::{Guest, Refusal};
use crate::stopped::cut;
use interlock_kernel::command::Change;
use interlock_kernel::doc::{BadDoc, Doc};
use interlock_kernel::limits::{
    CONDITION_BYTES_MAX, CONDITIONS_MAX, MUTATIONS_MAX, RETRY_AFTER_MS_MAX, TEXT_BYTES_MAX,
};
use interlock_kernel::record::{Cause, CauseKind, Condition, Failure};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::time::WallTime;
use interlock_kernel::value::{Mutation, Operation, Source, Value};
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
    use wit::RejectionKind as Kind;
    let kind = match rejection.code {
        Code::Invalid => Kind::Invalid,
        Code::NotFound => Kind::NotFound,
        Code::Denied => Kind::Denied,
        Code::Late | Code::Final => Kind::Late,
        Code::Fenced => Kind::Fenced,
        Code::Spent | Code::NotAllowed => Kind::NotAllowed,
        Code::Paused | Code::Unavailable => Kind::Unavailable,
        Code::Busy => Kind::Busy,
        Code::Conflict | Code::IdReused => Kind::Conflict,
        Code::Require | Code::Guard => Kind::Guard,
        Code::Limit => Kind::Limit,
    };
    wit::Rejection {
        kind,
        code: rejection.code.as_str().to_owned(),
        subject: rejection.subject,
        expected: rejection.expected,
        got: rejection.got,
        retryable: rejection.retryable,
        retry_after_ms: rejection.retry_after_ms,
        detail: rejection.detail.map(|doc| doc.text().to_owned()),
    }
}

/// What a guest asks to be changed, in its own words.
pub(super) struct Asked {
    pub(super) data: Option<String>,
    pub(super) outputs: Option<String>,
    pub(super) set: Vec<wit::Mutation>,
    pub(super) conditions: Vec<wit::Condition>,
}

/// The kernel's change, or why there is none.
pub(super) fn change(asked: Asked) -> Result<Change, Rejection> {
    bounded("set", asked.set.len(), MUTATIONS_MAX, "mutations_max")?;
    bounded("conditions", asked.conditions.len(), CONDITIONS_MAX, "conditions_max")?;
    let document = |text: Option<String>, subject: &str| text.map(|text| document(&text, subject)).transpose();
    let set = asked.set.into_iter().enumerate().map(|(index, one)| mutation(index, one));
    let conditions = asked.conditions.into_iter().enumerate().map(|(index, one)| condition(index, one));
    Ok(Change {
        data: document(asked.data, "data")?,
        outputs: document(asked.outputs, "outputs")?,
        set: set.collect::<Result<_, _>>()?,
        conditions: conditions.collect::<Result<_, _>>()?,
        checked: None,
    })
}

fn bounded(subject: &str, got: usize, max: usize, name: &str) -> Result<(), Rejection> {
    if got > max {
        return Err(Rejection::new(Code::Limit, subject, format!("at most {max} ({name})"), got));
    }
    Ok(())
}

fn document(text: &str, subject: &str) -> Result<Doc, Rejection> {
    Doc::parse(text).map_err(|bad| match bad {
        BadDoc::Size(_) => Rejection::new(Code::Limit, subject, "a document within its bounds", bad),
        BadDoc::Syntax(_) | BadDoc::Integer(_) => Rejection::new(Code::Invalid, subject, "a JSON document", bad),
    })
}

fn mutation(index: usize, mutation: wit::Mutation) -> Result<Mutation, Rejection> {
    let (field, operation, given) = match mutation {
        wit::Mutation::Set(wit::Assignment { field, value }) => (field, Operation::Set, Some(value)),
        wit::Mutation::Increment(wit::Assignment { field, value }) => (field, Operation::Increment, Some(value)),
        wit::Mutation::Max(wit::Assignment { field, value }) => (field, Operation::Max, Some(value)),
        wit::Mutation::Min(wit::Assignment { field, value }) => (field, Operation::Min, Some(value)),
        wit::Mutation::Remove(field) => (field, Operation::Remove, None),
        wit::Mutation::Append(wit::Appending { field, value, limit }) => {
            let max = usize::try_from(limit).unwrap_or(usize::MAX);
            (field, Operation::Append { max }, Some(value))
        }
    };
    let subject = || format!("set[{index}]");
    let path = field.parse().map_err(|why: String| Rejection::new(Code::Invalid, subject(), "a field path", why))?;
    let value = match given {
        None => Value::Json(Doc::new(serde_json::Value::Null)),
        Some(wit::Value::Json(text)) => Value::Json(document(&text, &format!("{}.value", subject()))?),
        Some(wit::Value::From(text)) => Value::From(
            text.parse::<Source>()
                .map_err(|why| Rejection::new(Code::Invalid, format!("{}.value", subject()), "a source", why))?,
        ),
    };
    Ok(Mutation { field: path, operation, value })
}

fn condition(index: usize, condition: wit::Condition) -> Result<Condition, Rejection> {
    let wit::Condition { type_, status, reason, message } = condition;
    for (field, text) in [("type", &type_), ("reason", &reason), ("message", &message)] {
        let subject = format!("conditions[{index}].{field}");
        bounded(&subject, text.len(), CONDITION_BYTES_MAX, "condition_bytes_max")?;
    }
    if type_.is_empty() || type_.chars().any(char::is_control) {
        let subject = format!("conditions[{index}].type");
        return Err(Rejection::new(Code::Invalid, subject, "a name without control characters", format!("{type_:?}")));
    }
    if type_.starts_with("interlock/") {
        let subject = format!("conditions[{index}].type");
        return Err(Rejection::new(Code::Denied, subject, "a type of the step's own", type_));
    }
    let status = match status {
        wit::ConditionStatus::True => "true",
        wit::ConditionStatus::False => "false",
        wit::ConditionStatus::Unknown => "unknown",
    };
    // `since` is the host's to say, inside the transaction.
    Ok(Condition { kind: type_, status: status.to_owned(), reason, message, since: WallTime(0) })
}

/// What entered the visit, for the guest.
pub(crate) fn event(start: &Start) -> wit::Event {
    let Cause { kind, name, id, at, payload: _ } = &start.cause;
    wit::Event {
        id: id.as_ref().map_or_else(|| format!("visit-{}", start.visit), ToString::to_string),
        kind: match kind {
            CauseKind::Created => wit::EventKind::Created,
            CauseKind::Signal => wit::EventKind::Signal,
            CauseKind::Timer => wit::EventKind::Timer,
            CauseKind::Transition => wit::EventKind::Transition,
            CauseKind::DesiredChanged => wit::EventKind::DesiredChanged,
            CauseKind::Failure => wit::EventKind::Failure,
            CauseKind::Deadline => wit::EventKind::Deadline,
            CauseKind::Operator => wit::EventKind::Operator,
        },
        name: name.to_string(),
        payload: start.payload.as_ref().map(|doc| doc.text().to_owned()),
        at_ms: u64::try_from(at.0).unwrap_or(0),
    }
}

/// How the step says that its attempt came to nothing.
pub(crate) fn failure(failure: wit::Failure) -> Failure {
    let wit::Failure { permanent, code, reason, retry_after_ms } = failure;
    let code = cut(&code, TEXT_BYTES_MAX).trim();
    Failure {
        permanent,
        code: if code.is_empty() { "failed".to_owned() } else { code.to_owned() },
        reason: cut(&reason, TEXT_BYTES_MAX).to_owned(),
        retry_after_ms: retry_after_ms.map(|ms| ms.min(RETRY_AFTER_MS_MAX)),
    }
}
