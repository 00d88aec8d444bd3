//! What all parts of the coordinator share. It holds the store and the kernel's rules, and no decision.

use crate::alarm::Alarms;
use crate::counters::Counters;
use crate::dispatch::{Dispatch, Running};
use crate::error::SubmitError;
use crate::executor::Executor;
use crate::outbox::{Courier, Flights};
use crate::standing::Standings;
use crate::tables;
use crate::txn::Revisions;
use crate::wait::Waiters;
use interlock_kernel::SessionId;
use interlock_kernel::command::{Command, Verb};
use interlock_kernel::ids::{EntityId, LeaseName, Principal, TableName};
use interlock_kernel::record::Failure;
use interlock_kernel::time::Session;
use interlock_kernel::view::Wake;
use interlock_manifest::RuleBook;
use interlock_store::{Store, StoreError};
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// The first and the longest pause before an internal command is tried again.
const INSIST_MS: u64 = 50;
const INSIST_MS_MAX: u64 = 5_000;

/// The shared middle.
pub(crate) struct Core {
    store: Arc<dyn Store>,
    executor: Arc<dyn Executor>,
    runtime: Handle,
    book: RuleBook,
    revisions: Revisions,
    session: OnceLock<SessionId>,
    secret: OnceLock<[u8; 32]>,
    dispatch: Dispatch,
    alarms: Alarms,
    waiters: Waiters<EntityId>,
    lines: Waiters<LeaseName>,
    standings: Standings,
    flights: Flights,
    /// Tables that a task tends.
    tended: Mutex<HashMap<TableName, bool>>,
    counters: Counters,
    refusing: AtomicBool,
    pausing: AtomicUsize,
    stopping: watch::Sender<bool>,
}

impl Core {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        executor: Arc<dyn Executor>,
        courier: Arc<dyn Courier>,
        slots: usize,
        runtime: Handle,
    ) -> Arc<Self> {
        let dispatch = Dispatch::new(slots, executor.memory_bytes_max());
        Arc::new(Self {
            store,
            executor,
            runtime,
            book: RuleBook::default(),
            revisions: Revisions::default(),
            session: OnceLock::new(),
            secret: OnceLock::new(),
            dispatch,
            alarms: Alarms::default(),
            waiters: Waiters::default(),
            lines: Waiters::default(),
            standings: Standings::default(),
            flights: Flights::new(courier),
            tended: Mutex::default(),
            counters: Counters::default(),
            refusing: AtomicBool::new(false),
            pausing: AtomicUsize::new(0),
            stopping: watch::channel(false).0,
        })
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn executor(&self) -> &dyn Executor {
        &*self.executor
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn book(&self) -> &RuleBook {
        &self.book
    }

    pub(crate) fn revisions(&self) -> &Revisions {
        &self.revisions
    }

    pub(crate) fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    pub(crate) fn alarms(&self) -> &Alarms {
        &self.alarms
    }

    pub(crate) fn waiters(&self) -> &Waiters<EntityId> {
        &self.waiters
    }

    /// Effects on their way.
    pub(crate) fn flights(&self) -> &Flights {
        &self.flights
    }

    /// Tables that a task tends, and whether it was asked to once more.
    pub(crate) fn tended(&self) -> MutexGuard<'_, HashMap<TableName, bool>> {
        self.tended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clients that stand in line for a lease.
    pub(crate) fn standings(&self) -> &Standings {
        &self.standings
    }

    /// Who waits to hear of a lease's next owner.
    pub(crate) fn lines(&self) -> &Waiters<LeaseName> {
        &self.lines
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The boot this is; decisions before it is open are made without one.
    pub(crate) fn session(&self) -> Session {
        self.session.get().map_or(Session::NONE, |id| Session::of(*id))
    }

    pub(crate) fn session_id(&self) -> Option<SessionId> {
        self.session.get().copied()
    }

    pub(crate) fn opened(&self, session: SessionId, secret: [u8; 32]) {
        // Both are set once, by `open`, before anything else can ask.
        let _ = self.session.set(session);
        let _ = self.secret.set(secret);
    }

    /// The store's secret; nothing runs before it was read.
    pub(crate) fn secret(&self) -> &[u8; 32] {
        self.secret.get_or_init(|| [0; 32])
    }

    /// Whether new work is refused since the host stops.
    pub(crate) fn is_refusing(&self) -> bool {
        self.refusing.load(Ordering::Acquire)
    }

    pub(crate) fn refuse_new(&self) {
        self.refusing.store(true, Ordering::Release);
    }

    /// Ends the background tasks.
    pub(crate) fn stop_tasks(&self) {
        self.stopping.send_replace(true);
    }

    /// Completes when the background tasks are to end.
    pub(crate) async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender lives in this very struct.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }

    /// Completes after `ms`, by the clock that the store was opened with: something is left to be done then.
    pub(crate) async fn pause(&self, ms: u64) {
        let _pausing = Pausing::new(&self.pausing);
        self.idle(ms).await;
    }

    /// The same, with nothing left to be done but to look again.
    pub(crate) async fn idle(&self, ms: u64) {
        let clock = self.store.clock();
        clock.sleep_until(clock.monotonic().saturating_add(Duration::from_millis(ms))).await;
    }

    /// Whether something waits to be tried again, or looked at again, that no index knows.
    pub(crate) fn is_pausing(&self) -> bool {
        self.pausing.load(Ordering::Acquire) > 0
    }

    /// Waits for something, but no longer than this; by the same clock.
    pub(crate) async fn within(&self, limit: Duration, wait: impl Future<Output = ()>) {
        let clock = self.store.clock();
        tokio::select! {
            biased;
            () = wait => {}
            () = clock.sleep_until(clock.monotonic().saturating_add(limit)) => {}
        }
    }

    /// Looks at what a durable decision asks to look at.
    pub(crate) fn wake(self: &Arc<Self>, wakes: Vec<Wake>) {
        for wake in wakes {
            match wake {
                Wake::Run(start) => self.push(start),
                Wake::Due(at) => self.alarms.due(at),
                Wake::Timer(at) => self.alarms.timer(at),
                Wake::Fence { entity: _, token, why } => {
                    if self.dispatch.fence(token.get(), why) {
                        self.fill_slots();
                    }
                }
                Wake::Settled(entity) => self.waiters.wake(&entity),
                Wake::Send(at) => self.alarms.send(at),
                Wake::Lapse(at) => self.alarms.due(at),
                Wake::Granted(lease) => self.lines.wake(&lease),
                Wake::Row(at) => self.alarms.due(at),
                Wake::Tend(table) => tables::tend(self, table),
                Wake::TakeBack(execution) => tables::take_back(self, execution),
            }
        }
    }

    /// The fate of a commit is unknown, and with it what it asked to look at: look at everything.
    pub(crate) fn resync(&self) {
        self.counters.resyncs.add(1);
        self.dispatch.mark_overflow();
        self.alarms.look_again();
        self.waiters.wake_all();
        self.lines.wake_all();
    }

    /// Tells the kernel, once, that an attempt ended without a transition. False if it is not for this
    /// caller to say.
    pub(crate) fn end(self: &Arc<Self>, run: &Arc<Running>, failure: Failure) -> bool {
        if !run.claim_end() {
            return false;
        }
        let claim = run.claim();
        let token = claim.token.get();
        self.dispatch.ending(token);
        let command = Command { by: Principal::host(), verb: Verb::End(claim, failure) };
        let core = self.clone();
        self.runtime.spawn(async move {
            core.insist(command).await;
            core.dispatch.ended(token);
        });
        true
    }

    /// Submits a command of the host until it is decided, or the host stops: every such command may be
    /// decided twice.
    pub(crate) async fn insist(
        self: &Arc<Self>,
        command: Command,
    ) -> Option<Result<interlock_kernel::command::Outcome, SubmitError>> {
        let mut pause = INSIST_MS;
        loop {
            match self.submit(command.clone()).await {
                Err(SubmitError::Store(StoreError::Closed)) => return None,
                Err(SubmitError::Contended { .. })
                | Err(SubmitError::Store(StoreError::Unavailable { .. } | StoreError::Indeterminate { .. })) => {}
                decided => return Some(decided),
            }
            tokio::select! {
                biased;
                () = self.stopped() => return None,
                () = self.pause(pause) => {}
            }
            pause = pause.saturating_mul(2).min(INSIST_MS_MAX);
        }
    }
}

/// Somebody pauses for as long as this lives, cancelled or not.
struct Pausing<'a>(&'a AtomicUsize);

impl<'a> Pausing<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Pausing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
