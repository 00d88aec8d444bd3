//! The coordinator as its callers see it: open, submit, read, watch, stop.

use crate::claims::{self, ClaimedRows};
use crate::coming::{self, Coming};
use crate::core::Core;
use crate::counters::Stats;
use crate::dispatch::AttemptView;
use crate::error::SubmitError;
use crate::executor::Executor;
use crate::leases::{self, LeaseView};
use crate::outbox::{self, Courier, EffectView, NoCourier};
use crate::supervise::{Task, TaskHealth, supervise};
use crate::tables::TableView;
use crate::views::{self, Behind, EntityView, History, Listing, MachineView, Page};
use crate::wait::{self, Settled};
use crate::watch::{Filter, Watch};
use crate::{deadline, read, reconcile, recover, scheduler, schedules, tables};
use interlock_kernel::command::{Acquire, Command, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, EventId, LeaseName, MachineName, Principal, RowKey, ScheduleName, TableName};
use interlock_kernel::machine::Revision;
use interlock_kernel::record::{Answer, Dedup, Key, Memo, Record, Row, ScheduleRecord};
use interlock_kernel::rows::{QueryAnswer, QueryAsk};
use interlock_kernel::view::View;
use interlock_store::{Condition, Position, Seq, Stamp, Store, StoreError};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use uuid::Uuid;

/// How long a stop waits for attempts that were told to stop, whatever its drain.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How a coordinator runs.
#[derive(Clone)]
pub struct Options {
    /// Attempts that run at a time; further ones wait for a slot.
    pub executions_max: usize,
    /// Whether the reconciler runs all the time.
    pub reconcile: bool,
    /// The secret of a store that has none yet, from which steps' random numbers are derived. None draws
    /// one; a host that has to run the same way twice names it.
    pub secret: Option<[u8; 32]>,
    /// Makes the requests of effects. None refuses all of them.
    pub courier: Option<Arc<dyn Courier>>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { executions_max, reconcile, secret: _, courier } = self;
        f.debug_struct("Options")
            .field("executions_max", executions_max)
            .field("reconcile", reconcile)
            .field("courier", &courier.is_some())
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { executions_max: 64, reconcile: true, secret: None, courier: None }
    }
}

/// Why a coordinator did not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// There is no tokio runtime to run on.
    NoRuntime,
    /// The session was not opened.
    Session(SubmitError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRuntime => f.write_str("expected to be opened inside a tokio runtime, got none"),
            Self::Session(_) => f.write_str("the store took no session"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoRuntime => None,
            Self::Session(error) => Some(error),
        }
    }
}

/// Whether the host works, in detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether new work is taken and done: the store is ready, no task keeps dying, nobody stops it.
    pub ready: bool,
    /// Whether the host stops.
    pub stopping: bool,
    /// This boot's session.
    pub session: Option<u64>,
    /// The store.
    pub store: interlock_store::Health,
    /// The background tasks.
    pub tasks: Vec<TaskHealth>,
}

/// One boot of a host on a store.
pub struct Coordinator {
    core: Arc<Core>,
    slots: usize,
    tasks: Mutex<Vec<Task>>,
}

impl Coordinator {
    /// Opens a session on a store, takes up what earlier sessions left open, and runs. Must be called
    /// inside a tokio runtime with time enabled.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(store: Arc<dyn Store>, executor: Arc<dyn Executor>, options: Options) -> Result<Self, OpenError> {
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let slots = options.executions_max.max(1);
        let courier = options.courier.clone().unwrap_or_else(|| Arc::new(NoCourier));
        let core = Core::new(store, executor, courier, slots, runtime);
        open_session(&core, options.secret).await.map_err(OpenError::Session)?;
        let mut tasks = vec![
            supervise(&core, "due", scheduler::due),
            supervise(&core, "timers", scheduler::timers),
            supervise(&core, "sweep", scheduler::sweep),
            supervise(&core, "deadlines", deadline::watch),
            supervise(&core, "fill", recover::fill),
            supervise(&core, "outbox", outbox::run),
            supervise(&core, "tables", tables::run),
        ];
        if options.reconcile {
            tasks.push(supervise(&core, "reconcile", reconcile::run));
        }
        Ok(Self { core, slots, tasks: Mutex::new(tasks) })
    }

    /// Decides a command and commits what was decided: the one way to change anything. Answers once
    /// that, or what a refusal has read, is durable. Dropping the future does not take the command
    /// back.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub async fn submit(&self, command: Command) -> Result<Outcome, SubmitError> {
        self.core.submit(command).await
    }

    /// Waits until the execution that an answer speaks of has ended or parked, or a queued event was
    /// refused; at most `within`, in store time.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn settled(&self, entity: &EntityId, answer: &Answer, within: Duration) -> Result<Settled, StoreError> {
        wait::settled(&self.core, entity, answer, within).await
    }

    /// An entity; none if there is none with this key.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn entity(&self, id: &EntityId) -> Result<Option<EntityView>, StoreError> {
        views::entity(&self.core, id.clone()).await
    }

    /// A page of entities, in order of their keys.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn entities(&self, listing: Listing) -> Result<Page, StoreError> {
        views::entities(&self.core, listing).await
    }

    /// An entity's history, newest first; of the newest incarnation unless another is named, from
    /// before an entry's number. None if there is none. A deleted entity's stays for its retention.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn history(
        &self,
        id: &EntityId,
        incarnation: Option<u64>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<History>, StoreError> {
        views::history(&self.core, id.clone(), incarnation, before, limit).await
    }

    /// What is remembered of an event id, within its window.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn answer(&self, id: &EntityId, event: &EventId) -> Result<Option<Dedup>, StoreError> {
        views::answer(&self.core, id.clone(), event.clone()).await
    }

    /// Every machine, with its active revision.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn machines(&self) -> Result<Vec<MachineView>, StoreError> {
        views::machines(&self.core).await
    }

    /// One machine, with its active revision.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn machine(&self, name: &MachineName) -> Result<Option<MachineView>, StoreError> {
        views::machine(&self.core, name.clone()).await
    }

    /// One revision of a machine.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn revision(&self, name: &MachineName, number: u64) -> Result<Option<Arc<Revision>>, StoreError> {
        views::revision(&self.core, name.clone(), number).await
    }

    /// Revisions of a machine, newest first, from before a number.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn revisions(
        &self,
        name: &MachineName,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Arc<Revision>>, StoreError> {
        views::revisions(&self.core, name.clone(), before, limit).await
    }

    /// Entities that do not follow their machine's active revision, with why they cannot if they
    /// cannot, and where the list goes on.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn behind(
        &self,
        machine: &MachineName,
        after: Option<EntityId>,
        limit: usize,
    ) -> Result<(Vec<Behind>, Option<EntityId>), StoreError> {
        views::behind(&self.core, machine.clone(), after, limit).await
    }

    /// Takes a lease for a client, standing in line as long as it says: first come first served. Dropping
    /// the future gives up its place, or what was granted meanwhile.
    ///
    /// # Errors
    /// [`SubmitError::Rejected`] with `busy` or `limit`; what the store cannot do.
    pub async fn acquire(&self, by: Principal, ask: Acquire) -> Result<Outcome, SubmitError> {
        leases::acquire(&self.core, by, ask).await
    }

    /// A lease with what became of it; none if nobody has it, wants it, or has asked about it lately.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn lease(&self, name: &LeaseName) -> Result<Option<LeaseView>, StoreError> {
        leases::lease(&self.core, name.clone()).await
    }

    /// A page of leases whose names begin so, in order, and where the list goes on.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn leases(
        &self,
        beginning: &str,
        after: Option<LeaseName>,
        limit: usize,
    ) -> Result<(Vec<LeaseView>, Option<LeaseName>), StoreError> {
        leases::leases(&self.core, beginning.to_owned(), after, limit).await
    }

    /// Tables in the order of their names, from behind one.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn tables(&self, after: Option<TableName>, limit: usize) -> Result<Vec<TableView>, StoreError> {
        tables::list(&self.core, after, limit).await
    }

    /// A table with what became of its rows.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn table(&self, name: &TableName) -> Result<Option<TableView>, StoreError> {
        tables::show(&self.core, name.clone()).await
    }

    /// Schedules in the order of their names, from behind one.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn schedules(
        &self,
        after: Option<ScheduleName>,
        limit: usize,
    ) -> Result<Vec<ScheduleRecord>, StoreError> {
        schedules::list(&self.core, after, limit).await
    }

    /// A schedule with what became of its last due times.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn schedule(&self, name: &ScheduleName) -> Result<Option<ScheduleRecord>, StoreError> {
        schedules::show(&self.core, name.clone()).await
    }

    /// A row as it is stored.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn row(&self, table: &TableName, key: &RowKey) -> Result<Option<Row>, StoreError> {
        tables::row(&self.core, table.clone(), key.clone()).await
    }

    /// Rows as they are stored, by key, from behind one; at most `limit`. What has expired is not among them.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn rows_of(
        &self,
        table: &TableName,
        after: Option<RowKey>,
        limit: usize,
    ) -> Result<Vec<(RowKey, Row)>, StoreError> {
        tables::rows(&self.core, table.clone(), after, limit).await
    }

    /// What executions of an entity have claimed and not settled, or one of them: by its incarnation and its number.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn claimed_by(
        &self,
        entity: &EntityId,
        execution: Option<(u64, u64)>,
    ) -> Result<ClaimedRows, StoreError> {
        claims::of(&self.core, entity.clone(), execution).await
    }

    /// Rows by filter, for a client, by what it calls itself.
    ///
    /// # Errors
    /// [`SubmitError::Rejected`] with `denied`, `not_found`, `invalid`, `limit` or `unavailable`; what kept the store
    /// from reading.
    pub async fn query(&self, label: &str, ask: QueryAsk) -> Result<QueryAnswer, SubmitError> {
        tables::query(&self.core, tables::By::Client(label.to_owned()), ask).await
    }

    /// What is remembered of the requests on rows that an entity's open visit has made.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn memos_of(&self, id: &EntityId) -> Result<Vec<(Digest, Memo)>, StoreError> {
        tables::memos(&self.core, id.clone()).await
    }

    /// An entity's effects that are not settled, in order.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn effects_of(&self, id: &EntityId) -> Result<Vec<EffectView>, StoreError> {
        outbox::of(&self.core, id.clone()).await
    }

    /// The first effects of all lanes, by target, and those that are given up; at most `limit`.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn effects(&self, limit: usize) -> Result<Vec<EffectView>, StoreError> {
        outbox::all(&self.core, limit).await
    }

    /// History entries as they are committed, behind a position, or from now on.
    #[must_use]
    pub fn watch(&self, filter: Filter, after: Option<Position>) -> Watch {
        let after = after.unwrap_or_else(|| Position::after(Seq(self.core.store().now().seq)));
        Watch::new(self.core.clone(), filter, after)
    }

    /// Compares every head with the index and every index entry with its head, once, and repairs what
    /// disagrees; what that was, in words. Should be empty. Open attempts that nobody runs are found by
    /// the reconciler that runs all the time, since it takes two looks to be sure.
    ///
    /// # Errors
    /// What kept the store from reading or repairing.
    pub async fn reconcile(&self) -> Result<Vec<String>, StoreError> {
        reconcile::pass(&self.core).await
    }

    /// Compares one entity with what its head implies, and repairs; what that was, in words.
    ///
    /// # Errors
    /// What kept the store from reading or repairing.
    pub async fn audit(&self, entity: &EntityId) -> Result<Vec<String>, StoreError> {
        reconcile::audit(&self.core, entity.clone()).await
    }

    /// What time alone will bring, the earliest first; at most `limit` of timers and of other things.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn coming(&self, limit: usize) -> Result<Vec<Coming>, StoreError> {
        coming::coming(&self.core, limit).await
    }

    /// Whether something is left to be tried again that is not yet on record: after a store's error, say.
    #[must_use]
    pub fn is_catching_up(&self) -> bool {
        self.core.is_pausing()
    }

    /// Attempts that run, and at most `limit` in all with those that wait for a slot.
    #[must_use]
    pub fn attempts(&self, limit: usize) -> Vec<AttemptView> {
        self.core.dispatch().views(limit)
    }

    /// The counters since the boot.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(self.core.counters(), self.core.dispatch().load(), self.slots)
    }

    /// Whether the host works.
    #[must_use]
    pub fn health(&self) -> Health {
        let store = self.core.store().health();
        let now = self.core.store().clock().monotonic();
        let tasks: Vec<TaskHealth> = self.lock().iter().map(|task| task.health(now)).collect();
        let stopping = self.core.is_refusing();
        let ready = !stopping && matches!(store.condition, Condition::Ready) && tasks.iter().all(|task| !task.failing);
        Health { ready, stopping, session: self.core.session_id().map(|id| id.get()), store, tasks }
    }

    /// The current times and the last durable number.
    #[must_use]
    pub fn now(&self) -> Stamp {
        self.core.store().now()
    }

    /// Stops in good order: takes no new work, gives running attempts up to `drain` to end, stops the
    /// rest without counting it against them, closes the session and the store.
    ///
    /// # Errors
    /// What the store could not do; the next boot then finds the session open and recovers.
    pub async fn stop(&self, drain: Duration) -> Result<(), SubmitError> {
        let core = &self.core;
        core.refuse_new();
        core.dispatch().stop();
        core.within(drain, idle(core)).await;
        core.dispatch().shut();
        core.within(LAST_WORDS, idle(core)).await;
        let closed = core.submit(Command { by: Principal::host(), verb: Verb::CloseSession }).await;
        core.stop_tasks();
        let tasks = std::mem::take(&mut *self.lock());
        for task in tasks {
            task.ended().await;
        }
        core.store().close(drain.max(LAST_WORDS)).await?;
        closed.map(drop)
    }

    /// The shared middle, for tests that break things on purpose.
    #[cfg(test)]
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Ends the background tasks as the end of the process would.
    #[cfg(test)]
    pub(crate) fn halt(&self) {
        self.core.dispatch().stop();
        self.core.stop_tasks();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.core.refuse_new();
        self.core.dispatch().stop();
        self.core.stop_tasks();
    }
}

impl fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinator").field("health", &self.health()).finish_non_exhaustive()
    }
}

async fn idle(core: &Arc<Core>) {
    while !core.dispatch().is_idle() {
        core.dispatch().idle.notified().await;
    }
    core.flights().landed().await;
}

async fn open_session(core: &Arc<Core>, secret: Option<[u8; 32]>) -> Result<(), SubmitError> {
    let nonce = Uuid::new_v4().to_string();
    let drawn = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat();
    let secret = secret.unwrap_or_else(|| *blake3::hash(&drawn).as_bytes());
    let verb = Verb::OpenSession { nonce, secret };
    let outcome = core.submit(Command { by: Principal::host(), verb }).await?;
    let Outcome::Session(session, closed) = outcome else {
        let (expected, got) = ("an open session".to_owned(), format!("{outcome:?}"));
        return Err(StoreError::Corrupt { expected, got }.into());
    };
    // The store keeps the first secret it was given.
    let kept = read::look(core, |view, _| view.get(&Key::Secret)).await?;
    let Some(Record::Secret(secret)) = kept else {
        let (expected, got) = ("the store's secret".to_owned(), "none".to_owned());
        return Err(StoreError::Corrupt { expected, got }.into());
    };
    tracing::info!(%session, closed, "session opened");
    core.opened(session, secret);
    Ok(())
}
