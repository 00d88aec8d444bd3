//! What one attempt's store holds: the attempt, the limits, and what was already refused.
//!
//! The rules that every import shares live here: the gate, the spent handle, the budget of
//! refusals. The imports themselves are in `host/`.

use crate::caps::Caps;
use crate::engine::Place;
use crate::limits::{RELOADS_MAX, RESOURCES_MAX};
use crate::logs::Logs;
use crate::stopped::Stopped;
use crate::wasi::Wasi;
use interlock_coordinator::{Attempt, Closed, Gate, SubmitError};
use interlock_kernel::Version;
use interlock_kernel::ids::Name;
use interlock_kernel::limits::REFUSALS_MAX;
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::view::{Documents, Start};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::component::ResourceTable;

/// Stands behind a guest's handle of its entity. There is one entity in a store, so it holds nothing:
/// that a handle is real is wasmtime's to check, before any host code.
#[allow(unreachable_pub, reason = "the generated bindings name it in a public place")]
pub struct Entity;

/// Stands behind a guest's handle of a lease. None is granted in this release.
#[allow(unreachable_pub, reason = "the generated bindings name it in a public place")]
pub struct Lease;

/// Why an import did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A decided no, which the guest is told.
    No(Box<Rejection>),
    /// The end of the attempt.
    Trap(wasmtime::Error),
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self::No(Box::new(rejection))
    }
}

impl From<Stopped> for Refusal {
    fn from(stopped: Stopped) -> Self {
        Self::Trap(stopped.into())
    }
}

/// The entity as the guest sees it.
pub(crate) struct View {
    pub(crate) state: Name,
    pub(crate) version: Version,
    pub(crate) documents: Documents,
}

/// One attempt's side of its store.
pub(crate) struct Guest {
    pub(crate) attempt: Attempt,
    pub(crate) gate: Gate,
    pub(crate) view: View,
    pub(crate) caps: Caps,
    pub(crate) table: ResourceTable,
    pub(crate) logs: Arc<Logs>,
    pub(crate) wasi: Option<Box<Wasi>>,
    pub(crate) began: Instant,
    /// Time spent on answers of the coordinator's.
    pub(crate) waited: Duration,
    refusals: u32,
    reloads: u32,
    holds: Holds,
    spent: bool,
    /// The coordinator said so before the gate did.
    pub(crate) lost: bool,
}

/// What the guest was told about its right to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// It may ask.
    Open,
    /// Its transition is accepted.
    Spent,
    /// It asked again after that, and was told.
    ToldSpent,
    /// It lost the entity, and was told.
    ToldFenced,
}

impl Guest {
    pub(crate) fn new(attempt: Attempt, logs: Arc<Logs>, place: Place) -> Self {
        let start = attempt.start();
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        Self {
            gate: attempt.gate(),
            view: View { state: start.state.clone(), version: start.claim.read, documents: start.documents.clone() },
            caps: Caps::new(start.memory_bytes, place),
            table,
            logs,
            wasi: None,
            began: Instant::now(),
            waited: Duration::ZERO,
            refusals: 0,
            reloads: 0,
            holds: Holds::Open,
            spent: false,
            lost: false,
            attempt,
        }
    }

    pub(crate) fn start(&self) -> &Start {
        self.attempt.start()
    }

    /// Whether its one transition was accepted.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent
    }

    /// The attempt back; nothing is left of the guest.
    pub(crate) fn into_attempt(self) -> Attempt {
        self.attempt
    }

    /// Passes while the attempt may go on: for imports that cannot answer a rejection.
    ///
    /// # Errors
    /// Ends the attempt.
    pub(crate) fn pass(&mut self) -> Result<(), Stopped> {
        if self.refusals >= REFUSALS_MAX {
            return Err(Stopped::Refusals);
        }
        match self.holds {
            Holds::ToldFenced => Err(Stopped::Fenced(self.why())),
            Holds::Open | Holds::Spent | Holds::ToldSpent => self.open().map_err(Stopped::Fenced),
        }
    }

    /// Passes while the attempt may go on and its handle is not spent: for imports that answer a
    /// rejection. `fenced` and `spent` are answered once; the call after that ends the attempt.
    ///
    /// # Errors
    /// [`Refusal`]: what to tell the guest, or its end.
    pub(crate) fn may_ask(&mut self) -> Result<(), Refusal> {
        if self.refusals >= REFUSALS_MAX {
            return Err(Stopped::Refusals.into());
        }
        if self.holds == Holds::ToldFenced {
            return Err(Stopped::Fenced(self.why()).into());
        }
        if let Err(closed) = self.open() {
            return Err(self.tell_fenced(&closed.text));
        }
        match self.holds {
            Holds::Open => Ok(()),
            Holds::ToldSpent | Holds::ToldFenced => Err(Stopped::Spent.into()),
            Holds::Spent => {
                self.holds = Holds::ToldSpent;
                let subject = &self.attempt.start().claim.execution.entity;
                let no = Rejection::new(Code::Spent, subject, "one transition per attempt", "another call");
                Err(self.refuse(no))
            }
        }
    }

    /// Whether a question about the right to write is still answered; the first "no" is an answer,
    /// the question after it ends the attempt.
    pub(crate) fn may_hold(&mut self) -> Result<bool, Stopped> {
        if self.refusals >= REFUSALS_MAX {
            return Err(Stopped::Refusals);
        }
        if self.holds == Holds::ToldFenced {
            return Err(Stopped::Fenced(self.why()));
        }
        Ok(self.open().is_ok())
    }

    /// It was told that it lost the entity.
    pub(crate) fn told_fenced(&mut self) {
        self.holds = Holds::ToldFenced;
    }

    /// Its transition is accepted.
    pub(crate) fn spend(&mut self) {
        self.spent = true;
        if self.holds == Holds::Open {
            self.holds = Holds::Spent;
        }
    }

    /// Waits for the coordinator, on the clock that is not the guest's.
    pub(crate) fn waited(&mut self, since: Instant) {
        self.waited += since.elapsed();
    }

    /// One more read of the entity.
    pub(crate) fn count_reload(&mut self) -> Result<(), Refusal> {
        self.reloads += 1;
        if self.reloads <= RELOADS_MAX {
            return Ok(());
        }
        let expected = format!("at most {RELOADS_MAX} reloads in an attempt (reloads_max)");
        Err(self.refuse(Rejection::new(Code::Limit, "reload", expected, self.reloads)))
    }

    /// Counts a rejection on its way to the guest.
    pub(crate) fn refuse(&mut self, rejection: Rejection) -> Refusal {
        self.refusals += 1;
        if rejection.code == Code::Fenced {
            self.holds = Holds::ToldFenced;
        }
        rejection.into()
    }

    /// The same for what the coordinator answered.
    pub(crate) fn refuse_submit(&mut self, error: SubmitError) -> Refusal {
        let unavailable = |got: String| Rejection::new(Code::Unavailable, "store", "an answer", got);
        self.refuse(match error {
            SubmitError::Rejected(rejection) => *rejection,
            SubmitError::Contended { retry_after_ms } => {
                unavailable("a full queue".to_owned()).retry_after(retry_after_ms)
            }
            SubmitError::Store(error) if error.is_retryable() => {
                unavailable(error.to_string()).retry_after(crate::limits::UNAVAILABLE_RETRY_MS)
            }
            SubmitError::Store(error) => unavailable(error.to_string()),
        })
    }

    fn tell_fenced(&mut self, got: &str) -> Refusal {
        let claim = &self.attempt.start().claim;
        let expected = format!("attempt {}, token {}, to be the open one", claim.attempt, claim.token);
        self.refuse(Rejection::new(Code::Fenced, &claim.execution.entity, expected, got))
    }

    fn open(&self) -> Result<(), Closed> {
        self.gate.check()?;
        if self.lost { Err(lost()) } else { Ok(()) }
    }

    fn why(&self) -> Closed {
        self.gate.check().err().unwrap_or_else(lost)
    }
}

fn lost() -> Closed {
    Closed { why: Closed::FENCED, text: "somebody else may write now".into() }
}
