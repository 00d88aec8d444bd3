//! Between a step's words and the kernel's.
//!
//! Text of a step becomes a kernel value here or is refused, naming where; nothing unparsed goes on.

use interlock_kernel::command::{Change, Stage};
use interlock_kernel::doc::{BadDoc, Doc};
use interlock_kernel::ids::{BadName, LeaseName, Name};
use interlock_kernel::limits::{CONDITION_BYTES_MAX, CONDITIONS_MAX, MUTATIONS_MAX};
use interlock_kernel::record::{CauseKind, Condition};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::time::WallTime;
use interlock_kernel::value::{Mutation, Operation, Path, Source, Value};
use interlock_kernel::view::Start;

/// What a step asks to be changed, in its own words: documents are text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    /// Replaces the data document.
    pub data: Option<String>,
    /// Replaces the outputs document.
    pub outputs: Option<String>,
    /// Applied after that, in order.
    pub set: Vec<Edit>,
    /// Published with it.
    pub conditions: Vec<Published>,
}

/// One change of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The field's path.
    pub field: String,
    /// How it changes.
    pub operation: Operation,
    /// With what; nothing for `remove`.
    pub value: Option<Given>,
}

/// A value, given or to be evaluated by the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// A document as text.
    Json(String),
    /// Where it comes from: `now+5m`, `data.size`.
    From(String),
}

/// A condition, before the host says since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Names what is said.
    pub kind: String,
    /// Whether it holds.
    pub status: Status,
    /// One word for programs.
    pub reason: String,
    /// One sentence for people.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can tell.
    Unknown,
}

/// What entered a visit, as a step is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Unique per entity; the client's own id where it sent one.
    pub id: String,
    /// What kind of thing happened.
    pub kind: CauseKind,
    /// The declared name of a signal or timer; for other kinds what it is about.
    pub name: String,
    /// What came with it, as JSON text.
    pub payload: Option<String>,
    /// Milliseconds since 1970 when the host committed it.
    pub at_ms: u64,
}

/// The kinds of refusal that a step tells apart; the exact rule is the [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the contract are in wit/types.wit, said once")]
pub enum Kind {
    Invalid,
    NotFound,
    Denied,
    Late,
    Fenced,
    Busy,
    NotAllowed,
    Conflict,
    Guard,
    Limit,
    Unavailable,
}

impl Kind {
    /// The kind that a code is of.
    #[must_use]
    pub const fn of(code: Code) -> Self {
        match code {
            Code::Invalid => Self::Invalid,
            Code::NotFound => Self::NotFound,
            Code::Denied => Self::Denied,
            Code::Late | Code::Final => Self::Late,
            Code::Fenced => Self::Fenced,
            Code::Spent | Code::NotAllowed => Self::NotAllowed,
            Code::Paused | Code::Unavailable => Self::Unavailable,
            Code::Busy => Self::Busy,
            Code::Conflict | Code::IdReused => Self::Conflict,
            Code::Require | Code::Guard => Self::Guard,
            Code::Limit | Code::OutboxFull => Self::Limit,
        }
    }
}

/// What entered the visit of an attempt.
#[must_use]
pub fn event(start: &Start) -> Event {
    let cause = &start.cause;
    Event {
        id: cause.id.as_ref().map_or_else(|| format!("visit-{}", start.visit), ToString::to_string),
        kind: cause.kind,
        name: cause.name.to_string(),
        payload: start.payload.as_ref().map(|doc| doc.text().to_owned()),
        at_ms: u64::try_from(cause.at.0).unwrap_or(0),
    }
}

/// The state a step names. What is no name is no declared state either.
pub(super) fn state(to: &str) -> Result<Name, Rejection> {
    to.parse().map_err(|bad| Rejection::new(Code::NotAllowed, "to", "a declared state", bad))
}

/// A lease's name.
pub(super) fn lease(name: &str) -> Result<LeaseName, Rejection> {
    name.parse().map_err(|bad| Rejection::new(Code::Invalid, "lease", "the name of a lease", bad))
}

/// The kernel's change, or why there is none.
pub(super) fn change(wish: Wish) -> Result<Change, Rejection> {
    bounded("set", wish.set.len(), MUTATIONS_MAX, "mutations_max")?;
    bounded("conditions", wish.conditions.len(), CONDITIONS_MAX, "conditions_max")?;
    let document = |text: Option<String>, subject: &str| text.map(|text| document(&text, subject)).transpose();
    let set = wish.set.into_iter().enumerate().map(|(index, edit)| edited(&format!("set[{index}]"), edit, str::parse));
    let conditions = wish.conditions.into_iter().enumerate().map(|(index, one)| condition(index, one));
    Ok(Change {
        data: document(wish.data, "data")?,
        outputs: document(wish.outputs, "outputs")?,
        set: set.collect::<Result<_, _>>()?,
        conditions: conditions.collect::<Result<_, _>>()?,
        checked: None,
        stage: Stage::default(),
    })
}

/// The timer a step names.
pub(super) fn timer(name: &str) -> Result<Name, Rejection> {
    name.parse().map_err(|bad: BadName| Rejection::new(Code::Invalid, "timer", bad.expected, bad.got))
}

fn bounded(subject: &str, got: usize, max: usize, name: &str) -> Result<(), Rejection> {
    if got > max {
        return Err(Rejection::new(Code::Limit, subject, format!("at most {max} ({name})"), got));
    }
    Ok(())
}

pub(super) fn document(text: &str, subject: &str) -> Result<Doc, Rejection> {
    Doc::parse(text).map_err(|bad| match bad {
        BadDoc::Size(_) => Rejection::new(Code::Limit, subject, "a document within its bounds", bad),
        BadDoc::Syntax(_) | BadDoc::Integer(_) => Rejection::new(Code::Invalid, subject, "a JSON document", bad),
    })
}

/// One change of one field, whose path is read so.
pub(super) fn edited(
    subject: &str,
    edit: Edit,
    path: impl FnOnce(&str) -> Result<Path, String>,
) -> Result<Mutation, Rejection> {
    let field = path(&edit.field).map_err(|why| Rejection::new(Code::Invalid, subject, "a field path", why))?;
    let value = match edit.value {
        None => Value::Json(Doc::new(serde_json::Value::Null)),
        Some(value) => given(&format!("{subject}.value"), value)?,
    };
    Ok(Mutation { field, operation: edit.operation, value })
}

/// A value, or where it comes from.
pub(super) fn given(subject: &str, given: Given) -> Result<Value, Rejection> {
    match given {
        Given::Json(text) => document(&text, subject).map(Value::Json),
        Given::From(text) => match text.parse::<Source>() {
            Ok(source) => Ok(Value::From(source)),
            Err(why) => Err(Rejection::new(Code::Invalid, subject, "a source", why)),
        },
    }
}

fn condition(index: usize, published: Published) -> Result<Condition, Rejection> {
    let Published { kind, status, reason, message } = published;
    for (field, text) in [("type", &kind), ("reason", &reason), ("message", &message)] {
        let subject = format!("conditions[{index}].{field}");
        bounded(&subject, text.len(), CONDITION_BYTES_MAX, "condition_bytes_max")?;
    }
    if kind.is_empty() || kind.chars().any(char::is_control) {
        let subject = format!("conditions[{index}].type");
        return Err(Rejection::new(Code::Invalid, subject, "a name without control characters", format!("{kind:?}")));
    }
    if kind.starts_with("interlock/") {
        let subject = format!("conditions[{index}].type");
        return Err(Rejection::new(Code::Denied, subject, "a type of the step's own", kind));
    }
    let status = match status {
        Status::True => "true",
        Status::False => "false",
        Status::Unknown => "unknown",
    };
    // `since` is the host's to say, inside the transaction.
    Ok(Condition { kind, status: status.to_owned(), reason, message, since: WallTime(0) })
}
