//! Where something happens to a step, and what: planted before, met when the step comes there.

use interlock_lab::{Asked, Fault, Held};
use std::fmt;

/// Before a call of a step: `at("plan").call(2)`.
///
/// Calls are what a step asks its host for (a save, a transition, a reload, a lease, whether it still holds), counted
/// in each attempt from 1. What it reads of its snapshot is no call, nor is one that is refused before it comes
/// to the host: text that is no JSON, say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    step: String,
    call: u32,
    attempt: Option<u32>,
    entity: Option<String>,
}

/// Before the first call of this step, in whichever attempt of whichever entity comes first.
#[must_use]
pub fn at(step: impl Into<String>) -> At {
    At { step: step.into(), call: 1, attempt: None, entity: None }
}

impl At {
    /// Before this call, from 1.
    #[must_use]
    pub fn call(mut self, call: u32) -> Self {
        self.call = call;
        self
    }

    /// In this attempt of a visit, from 1, and no other.
    #[must_use]
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = Some(attempt);
        self
    }

    /// Of this entity and no other, named by its key.
    #[must_use]
    pub fn of(mut self, key: impl Into<String>) -> Self {
        self.entity = Some(key.into());
        self
    }

    pub(crate) fn is(&self, held: &Held) -> bool {
        held.step.as_str() == self.step
            && held.nth == self.call
            // What the host reads after a checkpoint belongs to that call, which has been met.
            && !matches!(held.asked, Asked::LookAgain)
            && self.attempt.is_none_or(|attempt| held.attempt == attempt)
            && self.entity.as_ref().is_none_or(|key| held.entity.key.as_str() == key)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {} of {}", self.call, self.step)?;
        if let Some(attempt) = self.attempt {
            write!(f, ", attempt {attempt}")?;
        }
        self.entity.as_ref().map_or(Ok(()), |key| write!(f, ", of {key}"))
    }
}

/// A fault in words.
pub(crate) fn words(fault: Fault) -> &'static str {
    match fault {
        Fault::Conflict => "another write gets in between",
        Fault::Fenced => "the attempt is ended, as by its deadline",
        Fault::Unavailable => "the store takes nothing",
        Fault::Unknown { kept: true } => "the answer is lost, the write is kept",
        Fault::Unknown { kept: false } => "the answer is lost, and the write",
        Fault::LeaseLost => "a lease is over before anybody renews it",
        Fault::Crash => "a crash",
        Fault::CrashBehind => "a crash right behind it",
    }
}

/// Whether a fault can happen to a call: the store fails at writes.
pub(crate) fn fits(fault: Fault, asked: &Asked) -> bool {
    match fault {
        Fault::Conflict | Fault::Fenced | Fault::LeaseLost | Fault::Crash => true,
        Fault::Unavailable | Fault::Unknown { .. } | Fault::CrashBehind => asked.is_write(),
    }
}
