//! What every route shares: the coordinator, the components, the clock, and how a refusal is explained.

use crate::effects::Carrier;
use crate::limits::PAGE_MAX;
use crate::problem::Problem;
use crate::views::Clocks;
use axum::http::StatusCode;
use interlock_coordinator::{Coordinator, MachineView, SubmitError};
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::ids::{EntityId, MachineName, Principal, TableName, nearest};
use interlock_kernel::machine::Revision;
use interlock_kernel::time::{StoreTime, WallTime};
use interlock_runtime::{Library, Wasm};
use interlock_store::{Clock, Redb};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// What every route shares.
pub(crate) struct App {
    pub(crate) coordinator: Coordinator,
    pub(crate) library: Library,
    pub(crate) wasm: Wasm,
    pub(crate) store: Arc<Redb>,
    pub(crate) carrier: Arc<Carrier>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) began: Duration,
    /// True once the daemon stops: streams end.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) answered: Answered,
}

/// The state of every route.
pub(crate) type Shared = Arc<App>;

/// Requests answered, by status.
#[derive(Default)]
pub(crate) struct Answered(Mutex<BTreeMap<u16, u64>>);

impl Answered {
    pub(crate) fn count(&self, status: StatusCode) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(status.as_u16()).or_default() += 1;
    }

    pub(crate) fn by_status(&self) -> BTreeMap<u16, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl App {
    /// Store time as a snapshot saw it, and wall time now.
    pub(crate) fn clocks(&self, store_ms: u64) -> Clocks {
        Clocks { store: StoreTime(store_ms), wall: WallTime(self.clock.wall_ms()) }
    }

    /// Both times now.
    pub(crate) fn now(&self) -> Clocks {
        self.clocks(self.coordinator.now().store_ms)
    }

    /// How long the daemon has been up, in ms.
    pub(crate) fn up_ms(&self) -> u64 {
        let up = self.clock.monotonic().saturating_sub(self.began);
        u64::try_from(up.as_millis()).unwrap_or(u64::MAX)
    }

    /// Asks for a change of a machine's entity, or of the machine. A refusal says who answers for the machine.
    pub(crate) async fn submit(&self, machine: &MachineName, verb: Verb) -> Result<Outcome, Problem> {
        match self.coordinator.submit(Command { by: Principal::local(), verb }).await {
            Ok(outcome) => Ok(outcome),
            Err(SubmitError::Rejected(rejection)) => Err(self.explain(machine, Problem::from(&*rejection)).await),
            Err(error) => Err(error.into()),
        }
    }

    /// A refusal with who answers for the machine; of a machine that is not there, with the nearest that is.
    pub(crate) async fn explain(&self, machine: &MachineName, problem: Problem) -> Problem {
        if problem.owner.is_some() {
            return problem;
        }
        match self.coordinator.machine(machine).await {
            Ok(Some(found)) => problem.owned_by(found.revision.machine.owner.clone()),
            Ok(None) => self.no_machine(machine).await,
            // The refusal stands without its explanation.
            Err(_) => problem,
        }
    }

    /// A machine, or that there is none and which is nearest.
    pub(crate) async fn machine(&self, name: &MachineName) -> Result<MachineView, Problem> {
        match self.coordinator.machine(name).await? {
            Some(machine) => Ok(machine),
            None => Err(self.no_machine(name).await),
        }
    }

    /// Asks for a change of a table or its rows. A refusal says who answers for the table.
    pub(crate) async fn submit_on(&self, table: &TableName, verb: Verb) -> Result<Outcome, Problem> {
        match self.coordinator.submit(Command { by: Principal::local(), verb }).await {
            Ok(outcome) => Ok(outcome),
            Err(SubmitError::Rejected(rejection)) => Err(self.explain_on(table, Problem::from(&*rejection)).await),
            Err(error) => Err(error.into()),
        }
    }

    /// A refusal with who answers for the table; of a table that is not there, with the nearest that is.
    pub(crate) async fn explain_on(&self, table: &TableName, problem: Problem) -> Problem {
        match self.coordinator.table(table).await {
            Ok(Some(found)) => problem.owned_by(found.spec.table.owner.clone()),
            Ok(None) if problem.status == 404 => {
                let pointer = problem.pointer;
                Problem { pointer, ..self.no_table(table).await }
            }
            // The refusal stands without its explanation.
            Ok(None) | Err(_) => problem,
        }
    }

    /// That there is no such table, and which is nearest.
    pub(crate) async fn no_table(&self, name: &TableName) -> Problem {
        let tables = self.coordinator.tables(None, PAGE_MAX).await.unwrap_or_default();
        let names = tables.iter().map(|table| table.name.as_str());
        let expected = match (nearest(name.as_str(), names), tables.len()) {
            (Some(near), _) => format!("a declared table (did you mean {near}?)"),
            (None, 0) => "a declared table (none is declared)".to_owned(),
            (None, _) => "a declared table".to_owned(),
        };
        Problem::not_found(format_args!("table {name}"), expected).saying(format!("there is no table {name}"))
    }

    async fn no_machine(&self, name: &MachineName) -> Problem {
        let machines = self.coordinator.machines().await.unwrap_or_default();
        let names = || machines.iter().map(|machine| machine.revision.machine.name.as_str());
        let expected = match (nearest(name.as_str(), names()), machines.len()) {
            (Some(near), _) => format!("a deployed machine (did you mean {near}?)"),
            (None, 0) => "a deployed machine (none is deployed)".to_owned(),
            (None, _) => "a deployed machine".to_owned(),
        };
        Problem::not_found(name, expected).saying(format!("there is no machine {name}"))
    }

    /// That there is no such entity; or, before that, no such machine.
    pub(crate) async fn no_entity(&self, entity: &EntityId) -> Problem {
        match self.machine(&entity.machine).await {
            Ok(machine) => Problem::not_found(entity, "an entity with this key")
                .saying(format!("there is no entity {entity}"))
                .owned_by(machine.revision.machine.owner.clone()),
            Err(problem) => problem,
        }
    }

    /// A machine's revision, active or not.
    pub(crate) async fn revision(&self, name: &MachineName, number: u64) -> Result<Arc<Revision>, Problem> {
        let found = self.coordinator.revision(name, number).await?;
        found.ok_or_else(|| Problem::internal("a revision that an entity follows is not there"))
    }
}
