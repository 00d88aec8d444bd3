//! What entered the visit: stored by the host, the same for every attempt of it.

use crate::Failure;
use serde::de::DeserializeOwned;

/// What sort of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A client sent an event that the machine declares.
    Signal,
    /// A timer of the machine fell due.
    Timer,
    /// The deadline of a visit passed.
    Deadline,
    /// A step's accepted transition.
    Transition,
    /// Clients' desired document is ahead of what the steps have seen.
    DesiredChanged,
    /// Attempts failed and the declared failure path was taken.
    Failure,
    /// The entity was made.
    Created,
    /// A child came to its end.
    Child,
    /// A join over children was decided or settled.
    Join,
    /// An outbound request got its result.
    Effect,
    /// A client asked for the execution to be cancelled.
    Cancel,
    /// An operator moved the entity, with a recorded reason.
    Operator,
    /// Something that this version of the contract has no word for; its name says what.
    Other,
}

/// What entered the visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Unique per entity; the client's own id where it sent one.
    pub id: String,
    /// What sort of thing happened.
    pub kind: EventKind,
    /// The declared name of a signal or timer; for other kinds what it is about.
    pub name: String,
    /// What came with it, as JSON text.
    pub payload: Option<String>,
    /// Milliseconds since 1970 when the host committed it.
    pub at_ms: u64,
}

impl Event {
    /// What came with it, as a type of yours; none if nothing came.
    ///
    /// # Errors
    /// A permanent failure with the code `payload-shape` if it is no such type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let Some(text) = &self.payload else {
            return Ok(None);
        };
        serde_json::from_str(text).map(Some).map_err(|e| {
            let reason = format!("the payload of {} is not what the step expects: {e}", self.name);
            Failure::permanent(reason).code("payload-shape")
        })
    }
}
