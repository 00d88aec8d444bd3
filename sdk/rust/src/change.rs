//! What a step asks for: a draft that steps build, and the request that a host gets.

use crate::{Rejection, RejectionKind};
use serde::Serialize;

/// Begins a request for the next state: `to("ready").data(&data)`.
pub fn to(state: impl Into<String>) -> Draft<Move> {
    Draft { target: Move(state.into()), content: Checkpoint::default(), problem: None }
}

/// Begins a checkpoint: `checkpoint().data(&data)`.
pub fn checkpoint() -> Draft<Stay> {
    Draft { target: Stay, content: Checkpoint::default(), problem: None }
}

/// A value that the host evaluates inside the transaction, so it cannot be stale: `from("now")`,
/// `from("now+5m")`, `from("execution")`, `from("event.size")`, `from("data.size")`.
#[must_use]
pub fn from(source: impl Into<String>) -> Value {
    Value::From(source.into())
}

/// Marks a draft that moves the entity to a state.
#[derive(Clone, Debug)]
pub struct Move(String);

/// Marks a draft that leaves the entity in its visit.
#[derive(Clone, Debug)]
pub struct Stay;

/// A request being built. A value that is no JSON is refused where the draft is used, like
/// everything else that is wrong with it.
#[derive(Clone, Debug)]
#[must_use = "a draft asks for nothing until it is handed to the entity"]
pub struct Draft<Target> {
    target: Target,
    content: Checkpoint,
    problem: Option<Rejection>,
}

impl<Target> Draft<Target> {
    /// Replaces the data document.
    pub fn data(mut self, data: &impl Serialize) -> Self {
        self.content.data = self.encode("data", data);
        self
    }

    /// Replaces the outputs document.
    pub fn outputs(mut self, outputs: &impl Serialize) -> Self {
        self.content.outputs = self.encode("outputs", outputs);
        self
    }

    /// Puts a value at a path under `data` or `outputs`, after those were replaced.
    pub fn set(self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.mutation(Mutation::Set(field.into(), value.into()))
    }

    /// Adds one change of one field; they are applied in order.
    pub fn mutation(mut self, mutation: Mutation) -> Self {
        self.content.set.push(mutation);
        self
    }

    /// Publishes a condition, replacing the one of its type.
    pub fn condition(mut self, condition: Condition) -> Self {
        self.content.conditions.push(condition);
        self
    }

    fn encode(&mut self, subject: &str, document: &impl Serialize) -> Option<String> {
        match serde_json::to_string(document) {
            Ok(text) => Some(text),
            Err(e) => {
                self.problem.get_or_insert(unencodable(subject, &e));
                None
            }
        }
    }
}

/// The refusal of a value that is no JSON.
pub(crate) fn unencodable(subject: &str, why: &serde_json::Error) -> Rejection {
    Rejection {
        kind: RejectionKind::Invalid,
        code: "json".to_owned(),
        subject: subject.to_owned(),
        expected: "a value that JSON can hold".to_owned(),
        got: why.to_string(),
        retryable: false,
        retry_after: None,
        detail: None,
    }
}

impl Draft<Move> {
    pub(crate) fn finish(self) -> Result<Change, Rejection> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let Checkpoint { data, outputs, set, conditions } = self.content;
        Ok(Change { to: self.target.0, data, outputs, set, conditions })
    }
}

impl Draft<Stay> {
    pub(crate) fn finish(self) -> Result<Checkpoint, Rejection> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(self.content),
        }
    }
}

/// A request for the next state, as a host gets it. Documents are JSON text.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The state to enter.
    pub to: String,
    /// Replaces the data document; none keeps it.
    pub data: Option<String>,
    /// Replaces the outputs document; none keeps it.
    pub outputs: Option<String>,
    /// Applied after the documents were replaced, in order.
    pub set: Vec<Mutation>,
    /// Published with it.
    pub conditions: Vec<Condition>,
}

/// A checkpoint, as a host gets it. Documents are JSON text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Replaces the data document; none keeps it.
    pub data: Option<String>,
    /// Replaces the outputs document; none keeps it.
    pub outputs: Option<String>,
    /// Applied after the documents were replaced, in order.
    pub set: Vec<Mutation>,
    /// Published with it.
    pub conditions: Vec<Condition>,
}

/// One change of one field, applied by the host inside the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Puts the value at the path.
    Set(String, Value),
    /// Adds a number; a missing field starts from 0.
    Increment(String, Value),
    /// Takes the field away.
    Remove(String),
    /// Adds to the end of a list, of which at most this many items stay.
    Append(String, Value, u32),
    /// Keeps the larger one.
    Max(String, Value),
    /// Keeps the smaller one.
    Min(String, Value),
}

/// A value, given or to be evaluated by the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A JSON document as text.
    Json(String),
    /// See [`from`].
    From(String),
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Value {
        Value::Json(value.to_string())
    }
}

macro_rules! value_from {
    ($($scalar:ty),+) => {
        $(impl From<$scalar> for Value {
            fn from(value: $scalar) -> Value {
                serde_json::Value::from(value).into()
            }
        })+
    };
}
value_from!(bool, i32, i64, u32, u64, &str, String);

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

/// A published status of the entity, one per type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Names what is said: `NodesPlaced`. `interlock/` belongs to the host.
    pub r#type: String,
    /// Whether it holds.
    pub status: Status,
    /// One word for programs.
    pub reason: String,
    /// One sentence for people.
    pub message: String,
}

impl Condition {
    /// A condition without reason and message.
    #[must_use]
    pub fn new(r#type: impl Into<String>, status: Status) -> Condition {
        Condition { r#type: r#type.into(), status, reason: String::new(), message: String::new() }
    }

    /// Why, in one word for programs and one sentence for people.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>, message: impl Into<String>) -> Condition {
        self.reason = reason.into();
        self.message = message.into();
        self
    }
}
