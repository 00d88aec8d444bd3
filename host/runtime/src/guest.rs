//! What one attempt's store holds: the handle on its entity, its limits, what it has of the host.
//!
//! What a guest may ask for and is told is the coordinator's `contract`; the imports are in `host/`.

use crate::caps::Caps;
use crate::engine::{Engines, Place};
use crate::limits::RESOURCES_MAX;
use crate::logs::Logs;
use crate::stopped::Stopped;
use crate::wasi::Wasi;
use interlock_coordinator::contract::{self, Handle};
use interlock_coordinator::{Attempt, HeldLease};
use interlock_kernel::rejection::Rejection;
use interlock_kernel::view::Start;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::ResourceTable;

/// Stands behind a guest's handle of its entity. There is one entity in a store, so it holds nothing:
/// that a handle is real is wasmtime's to check, before any host code.
#[allow(unreachable_pub, reason = "the generated bindings name it in a public place")]
pub struct Entity;

/// Stands behind a guest's handle of a lease.
#[allow(unreachable_pub, reason = "the generated bindings name it in a public place")]
pub struct Lease(pub(crate) HeldLease);

/// Why an import did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A decided no, which the guest is told.
    No(Box<Rejection>),
    /// The end of the attempt.
    Trap(wasmtime::Error),
}

impl From<contract::Refusal> for Refusal {
    fn from(refusal: contract::Refusal) -> Self {
        match refusal {
            contract::Refusal::No(no) => Self::No(no),
            contract::Refusal::Stop(stopped) => Stopped::from(stopped).into(),
        }
    }
}

impl From<Stopped> for Refusal {
    fn from(stopped: Stopped) -> Self {
        Self::Trap(stopped.into())
    }
}

/// One attempt's side of its store.
pub(crate) struct Guest {
    pub(crate) handle: Handle,
    pub(crate) caps: Caps,
    pub(crate) table: ResourceTable,
    pub(crate) logs: Arc<Logs>,
    pub(crate) wasi: Option<Box<Wasi>>,
    pub(crate) engines: Engines,
    /// Ticks of the epoch since its accepted transition.
    pub(crate) ticks_after: u32,
    /// Time spent on answers of the coordinator's.
    pub(crate) waited: Duration,
}

impl Guest {
    pub(crate) fn new(attempt: Attempt, logs: Arc<Logs>, engines: &Engines, place: Place) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        Self {
            caps: Caps::new(attempt.start().memory_bytes, place),
            table,
            logs,
            wasi: None,
            engines: engines.clone(),
            ticks_after: 0,
            waited: Duration::ZERO,
            handle: Handle::new(attempt),
        }
    }

    pub(crate) fn start(&self) -> &Start {
        self.handle.start()
    }

    /// Passes while the attempt may go on: for imports that cannot answer a rejection.
    ///
    /// # Errors
    /// Ends the attempt.
    pub(crate) fn pass(&self) -> Result<(), Stopped> {
        Ok(self.handle.pass()?)
    }

    /// Counts the time since then as spent on an answer of the coordinator's.
    pub(crate) fn waited_since(&mut self, asked: Duration) {
        self.waited += self.engines.uptime().saturating_sub(asked);
    }
}
