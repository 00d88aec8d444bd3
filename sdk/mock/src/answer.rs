//! What a command was answered.

use crate::convert;
use interlock::Rejection;
use interlock_coordinator::SubmitError;
use interlock_kernel::command::Outcome;
use interlock_kernel::record::{Answer as Given, AnswerKind};
use std::fmt;

/// What a command was answered. To assert on it: [`Answer::accepted`], [`Answer::queued`],
/// [`Answer::refused`].
#[derive(Clone, PartialEq)]
pub struct Answer {
    what: Result<Outcome, SubmitError>,
}

impl Answer {
    pub(crate) fn new(what: Result<Outcome, SubmitError>) -> Self {
        Self { what }
    }

    /// The answer to an event, if this is one.
    fn given(&self) -> Option<&Given> {
        match &self.what {
            Ok(Outcome::Answered { answer, .. } | Outcome::Created { answer: Some(answer), .. }) => Some(answer),
            _ => None,
        }
    }

    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.what.as_ref().ok()
    }

    fn is(&self, kind: AnswerKind) -> bool {
        self.given().is_some_and(|given| given.kind == kind)
    }

    /// It was done. Of an event: it changed the entity, or did so when it was first delivered.
    ///
    /// # Panics
    /// If it was not.
    #[track_caller]
    pub fn accepted(&self) -> &Self {
        let accepted = self.what.is_ok() && self.given().is_none_or(|given| given.kind == AnswerKind::Accepted);
        assert!(accepted, "expected an accepted command, got: {self}");
        self
    }

    /// The event waits in the inbox.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn queued(&self) -> &Self {
        assert!(self.is(AnswerKind::Queued), "expected a queued event, got: {self}");
        self
    }

    /// It was refused with this code: `busy`, `guard`, `invalid`, `late`.
    ///
    /// # Panics
    /// If it was not.
    #[track_caller]
    pub fn refused(&self, code: &str) -> Rejection {
        let no = match &self.what {
            Err(error) => error.rejection(),
            Ok(_) => self.given().and_then(|given| given.rejection.as_ref()),
        };
        match no.map(convert::rejection) {
            Some(no) if no.code == code => no,
            _ => panic!("expected a refusal with the code {code}, got: {self}"),
        }
    }

    /// Whether it is the remembered answer to an earlier delivery of the same event.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        matches!(self.what, Ok(Outcome::Answered { replayed: true, .. }))
    }

    /// The number of the execution that the event started or joined, counted for its entity from 1.
    #[must_use]
    pub fn execution(&self) -> Option<u64> {
        self.given().and_then(|given| given.execution)
    }

    /// The id of the event.
    #[must_use]
    pub fn event(&self) -> Option<&str> {
        self.given().map(|given| given.event.as_str())
    }
}

/// As people read it.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Err(SubmitError::Rejected(no)) => write!(f, "REFUSED {no}"),
            Err(error) => write!(f, "NOT DONE {error}"),
            Ok(Outcome::Answered { answer, replayed }) => {
                write!(f, "{}{}", said(answer), if *replayed { ", as before" } else { "" })
            }
            Ok(Outcome::Created { version, new, answer, .. }) => {
                write!(f, "{}, version {version}", if *new { "created" } else { "there already" })?;
                answer.as_ref().map_or(Ok(()), |answer| write!(f, ", {}", said(answer)))
            }
            Ok(Outcome::Deployed { revision, new }) => {
                write!(f, "revision {revision}{}", if *new { "" } else { ", already active" })
            }
            Ok(Outcome::Applied { generation }) => write!(f, "generation {generation}"),
            Ok(Outcome::Now { version, state, changed }) => {
                write!(f, "{state}, version {version}{}", if *changed { "" } else { ", as before" })
            }
            Ok(Outcome::Leased { claim, new, ttl_ms, .. }) => {
                write!(f, "held for {ttl_ms} ms, token {}{}", claim.token, if *new { "" } else { ", as before" })
            }
            Ok(Outcome::Released) => f.write_str("given back"),
            Ok(Outcome::Nothing) => f.write_str("nothing to do"),
            Ok(other) => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn said(answer: &Given) -> String {
    let kind = format!("{:?}", answer.kind).to_lowercase();
    let why = answer.rejection.as_ref().map_or(String::new(), |no| format!(" ({no})"));
    format!("{kind}, {}, version {}{why}", answer.state, answer.version)
}
