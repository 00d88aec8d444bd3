//! What one attempt's store holds: the attempt, its limits, what the guest was told.
//!
//! How every import begins is here, by the order of answers in `rights.rs`; the imports themselves are
//! in `host/`.

use crate::caps::Caps;
use crate::engine::{Engines, Place};
use crate::limits::{RELOADS_MAX, RESOURCES_MAX, UNAVAILABLE_RETRY_MS};
use crate::logs::Logs;
use crate::rights::{No, Rights};
use crate::stopped::Stopped;
use crate::wasi::Wasi;
use interlock_coordinator::{Attempt, Gate, SubmitError};
use interlock_kernel::Version;
use interlock_kernel::ids::Name;
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::view::{Documents, Start};
use std::sync::Arc;
use std::time::Duration;
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
    pub(crate) engines: Engines,
    /// Ticks of the epoch since its accepted transition.
    pub(crate) ticks_after: u32,
    /// Time spent on answers of the coordinator's.
    pub(crate) waited: Duration,
    pub(crate) rights: Rights,
    reloads: u32,
}

impl Guest {
    pub(crate) fn new(attempt: Attempt, logs: Arc<Logs>, engines: &Engines, place: Place) -> Self {
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
            engines: engines.clone(),
            ticks_after: 0,
            waited: Duration::ZERO,
            rights: Rights::default(),
            reloads: 0,
            attempt,
        }
    }

    pub(crate) fn start(&self) -> &Start {
        self.attempt.start()
    }

    /// The attempt back; nothing is left of the guest.
    pub(crate) fn into_attempt(self) -> Attempt {
        self.attempt
    }

    /// Passes while the attempt may go on: for imports that cannot answer a rejection.
    ///
    /// # Errors
    /// Ends the attempt.
    pub(crate) fn pass(&self) -> Result<(), Stopped> {
        self.rights.pass(self.gate.check())
    }

    /// Passes while the attempt may go on and its handle is not spent: for imports that answer a
    /// rejection. `fenced` and `spent` are answered once; the call after that ends the attempt.
    ///
    /// # Errors
    /// [`Refusal`]: what to tell the guest, or its end.
    pub(crate) fn may_ask(&mut self) -> Result<(), Refusal> {
        let claim = &self.start().claim;
        let no = match self.rights.may_ask(self.gate.check()) {
            Ok(()) => return Ok(()),
            Err(No::Stop(stopped)) => return Err(stopped.into()),
            Err(No::Spent) => {
                let (expected, got) = ("one transition per attempt", "another call");
                Rejection::new(Code::Spent, &claim.execution.entity, expected, got)
            }
            Err(No::Fenced(closed)) => {
                let expected = format!("attempt {}, token {}, to be the open one", claim.attempt, claim.token);
                Rejection::new(Code::Fenced, &claim.execution.entity, expected, closed.text)
            }
        };
        Err(self.refuse(no))
    }

    /// One more read of the entity.
    ///
    /// # Errors
    /// [`Refusal`] past the bound.
    pub(crate) fn count_reload(&mut self) -> Result<(), Refusal> {
        self.reloads = self.reloads.saturating_add(1);
        if self.reloads <= RELOADS_MAX {
            return Ok(());
        }
        let expected = format!("at most {RELOADS_MAX} reloads in an attempt (reloads_max)");
        Err(self.refuse(Rejection::new(Code::Limit, "reload", expected, self.reloads)))
    }

    /// Counts a rejection on its way to the guest.
    pub(crate) fn refuse(&mut self, rejection: Rejection) -> Refusal {
        self.rights.refused(rejection.code);
        rejection.into()
    }

    /// The same for what the coordinator answered.
    pub(crate) fn refuse_submit(&mut self, error: SubmitError) -> Refusal {
        let unavailable =
            |got: String, ms| Rejection::new(Code::Unavailable, "store", "an answer", got).retry_after(ms);
        self.refuse(match error {
            SubmitError::Rejected(rejection) => *rejection,
            SubmitError::Contended { retry_after_ms } => unavailable("a full queue".to_owned(), retry_after_ms),
            // What the store cannot do is no fault of the step's, so none of it is for good. Where a write's fate is
            // not known, the next attempt reads what there is.
            SubmitError::Store(error) => unavailable(error.to_string(), UNAVAILABLE_RETRY_MS),
        })
    }

    /// Counts the time since then as spent on an answer of the coordinator's.
    pub(crate) fn waited_since(&mut self, asked: Duration) {
        self.waited += self.engines.uptime().saturating_sub(asked);
    }
}
