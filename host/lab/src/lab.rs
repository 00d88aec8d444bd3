//! The host: boots, crashes, takes commands, and runs until nothing can happen without time passing.

use crate::hand::{Hand, Held, Seen, Watched};
use crate::receiver::{Arrival, Pending, Receivers, Reply, Request, Road};
use interlock_coordinator::{Awaited, Coming, Coordinator, Executor, LeaseView, OpenError, Options, SubmitError};
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{ExecutionId, LeaseName, Principal};
use interlock_kernel::record::{Failure, Owner};
use interlock_manifest::Manifest;
use interlock_store::{
    Clock as _, Condition, Fault as StoreFault, ManualClock, Mem, MemImage, Store as _, StoreError, SystemClock,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The wall clock of a new lab: 2026-01-01T00:00:00Z, a Thursday.
pub const WALL_MS: i64 = 1_767_225_600_000;

/// Rounds in which nothing stirs, after which everything has come to rest: more than any chain of
/// wake-ups between two reads is long.
const QUIET_ROUNDS: u32 = 24;

/// How long a step may compute, in real time, before nobody waits for it any more: time is then moved
/// until its idle deadline ends it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a step that computes is looked at, in real time, if nothing tells that it went on.
const LOOK: Duration = Duration::from_millis(5);

/// Times that the clock is moved for a host that catches up after its store failed.
const CATCH_UP_MAX: u32 = 200;

/// Leases that are looked at: more than any story has.
const LEASES_SHOWN_MAX: usize = 1_000;

/// Calls granted in one [`Lab::settle`]: a step that never stops asking is stopped by its own limits long
/// before.
const TURNS_MAX: u32 = 100_000;

/// What becomes of a call that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It goes on.
    Go,
    /// It stays held.
    Wait,
    /// Something happens first.
    Fault(Fault),
}

/// What can be made to happen to an attempt just before it is answered. None of it is a scripted answer:
/// the kernel and the store say what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Another write of the same execution gets in between: the call is a `conflict`.
    Conflict,
    /// The attempt is ended as by its deadline: the call is `fenced`.
    Fenced,
    /// The store does not take the write.
    Unavailable,
    /// Nobody learns whether the write was taken.
    Unknown {
        /// It was.
        kept: bool,
    },
    /// The host is killed, and boots again.
    Crash,
    /// The host stalls until a lease of the execution is over: the attempt ends as `lease-lost`.
    LeaseLost,
    /// The host is killed right behind the next commit, before anybody hears of it, and boots again.
    CrashBehind,
}

impl Fault {
    /// Whether it takes the call away with its host.
    #[must_use]
    pub fn is_crash(self) -> bool {
        matches!(self, Self::Crash | Self::CrashBehind)
    }
}

/// Why a lab cannot go on. Refusals are no such thing.
#[derive(Debug)]
pub enum LabError {
    /// The store did not open, or the coordinator on it.
    Boot(String),
    /// The store could not be read.
    Store(StoreError),
    /// It does not come to rest: what was seen.
    Restless(String),
    /// A fault that cannot happen there.
    Misfit(String),
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boot(why) => write!(f, "the host did not boot: {why}"),
            Self::Store(error) => write!(f, "the store could not be read: {error}"),
            Self::Misfit(why) => f.write_str(why),
            Self::Restless(what) => write!(f, "expected the host to come to rest, got {what}"),
        }
    }
}

impl std::error::Error for LabError {}

impl From<StoreError> for LabError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A host on one thread: the real coordinator on the engine in memory. Time moves only by
/// [`Lab::advance`] and [`Lab::tick`], attempts go on only when told.
pub struct Lab {
    clock: ManualClock,
    image: MemImage,
    executor: Arc<dyn Executor>,
    hand: Hand,
    receivers: Receivers,
    life: Option<Life>,
    seen: Vec<Seen>,
    boots: u32,
    computed: SystemClock,
    patience: Duration,
}

/// One boot. Dropped in this order, as a killed process goes: all at once.
struct Life {
    host: Arc<Coordinator>,
    mem: Mem,
    runtime: Runtime,
}

impl Lab {
    /// A new store, and a host booted on it, that runs its steps with this executor. The executor must run
    /// attempts on the runtime it is called in, or on threads of its own.
    ///
    /// # Errors
    /// [`LabError::Boot`].
    pub fn new(executor: Arc<dyn Executor>) -> Result<Self, LabError> {
        let clock = ManualClock::new();
        clock.set_wall(WALL_MS);
        let mut lab = Self {
            clock,
            image: MemImage::new(),
            executor,
            hand: Hand::default(),
            receivers: Receivers::default(),
            life: None,
            seen: Vec::new(),
            boots: 0,
            computed: SystemClock::new(),
            patience: PATIENCE,
        };
        lab.boot()?;
        Ok(lab)
    }

    /// Boots a host on what is stored. Nothing is done if one is up.
    ///
    /// # Errors
    /// [`LabError::Boot`].
    pub fn boot(&mut self) -> Result<(), LabError> {
        if self.life.is_some() {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|why| LabError::Boot(why.to_string()))?;
        let mem = Mem::open(self.image.clone(), Arc::new(self.clock.clone()));
        let mem = mem.map_err(|why| LabError::Boot(why.to_string()))?;
        self.hand = Hand::default();
        let executor = Arc::new(Watched { inner: self.executor.clone(), hand: self.hand.clone() });
        let (receivers, hand, clock) = (self.receivers.clone(), self.hand.clone(), self.clock.clone());
        let courier = Some(Arc::new(Road { receivers, hand, clock }) as Arc<dyn interlock_coordinator::Courier>);
        let options = Options { reconcile: false, secret: Some([7; 32]), courier, ..Options::default() };
        let host = runtime.block_on(Coordinator::open(Arc::new(mem.clone()), executor, options));
        let host = host.map_err(|why| LabError::Boot(boot_failure(&why)))?;
        self.boots += 1;
        self.life = Some(Life { host: Arc::new(host), mem, runtime });
        self.rest()
    }

    /// Kills the host: whatever is not stored is gone. Time goes on.
    pub fn kill(&mut self) {
        if let Some(Life { host, mem, runtime }) = self.life.take() {
            self.seen.extend(self.hand.take_seen());
            mem.crash();
            self.receivers.cut_off();
            drop(host);
            drop(runtime);
            drop(mem);
            self.hand = Hand::default();
        }
    }

    /// Sets how long a step may compute, in real time, before nobody waits for it any more; 10 s in a new lab.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Whether a host is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.life.is_some()
    }

    /// Boots so far.
    #[must_use]
    pub fn boots(&self) -> u32 {
        self.boots
    }

    /// Makes a machine's revision active, as a deploy does.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn deploy(
        &mut self,
        manifest: &Manifest,
        source: &str,
        component: Option<Digest>,
    ) -> Result<Outcome, SubmitError> {
        let component_bytes = component.map(|digest| digest.0);
        let digest = Digest::of(&[source.as_bytes(), component_bytes.as_ref().map_or(&[][..], |bytes| &bytes[..])]);
        let deploy = interlock_kernel::command::Deploy {
            machine: Arc::new(manifest.machine.clone()),
            digest,
            component,
            source: source.to_owned(),
        };
        self.submit(Principal::local(), Verb::Deploy(Box::new(deploy)))
    }

    /// Submits a command and has everything that can run on without time or a held call come to rest.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn submit(&mut self, by: Principal, verb: Verb) -> Result<Outcome, SubmitError> {
        let host = self.host()?.clone();
        let answer = self.life()?.runtime.block_on(host.submit(Command { by, verb }));
        // Restlessness shows at the next settle.
        let _ = self.rest();
        answer
    }

    /// Asks the host for something it reads.
    ///
    /// # Errors
    /// [`StoreError::Closed`] if no host is up; what kept the store from reading.
    pub fn read<T, F>(&self, ask: impl FnOnce(Arc<Coordinator>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let life = self.life()?;
        life.runtime.block_on(ask(life.host.clone()))
    }

    /// Lets everything run that can without time passing. `turn` is asked about each call that is held, the
    /// oldest attempt first, and asked again after each that went on.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn settle(&mut self, turn: &mut dyn FnMut(&Held) -> Turn) -> Result<(), LabError> {
        for _ in 0..TURNS_MAX {
            self.rest()?;
            let chosen = self.held().into_iter().find_map(|held| match turn(&held) {
                Turn::Wait => None,
                Turn::Go => Some((held, None)),
                Turn::Fault(fault) => Some((held, Some(fault))),
            });
            match chosen {
                Some((held, None)) => self.let_go(held.place)?,
                Some((held, Some(fault))) => self.fault(held.place, fault)?,
                None => return Ok(()),
            }
        }
        Err(LabError::Restless(format!("{TURNS_MAX} calls of steps")))
    }

    /// Lets everything run, every call included.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn run(&mut self) -> Result<(), LabError> {
        self.settle(&mut |_| Turn::Go)
    }

    /// Calls that are held, the oldest attempt first.
    #[must_use]
    pub fn held(&self) -> Vec<Held> {
        self.hand.held()
    }

    /// Lets one held call go on, and everything come to rest behind it.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn let_go(&mut self, place: usize) -> Result<(), LabError> {
        self.hand.let_go(place);
        self.rest()
    }

    /// Makes something happen to a held call, then lets it go on.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn fault(&mut self, place: usize, fault: Fault) -> Result<(), LabError> {
        self.befall(place, fault)?;
        if fault.is_crash() { Ok(()) } else { self.let_go(place) }
    }

    /// Makes something happen to a held call, which stays held; only a crash takes it away with its host.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn befall(&mut self, place: usize, fault: Fault) -> Result<(), LabError> {
        let Some(claim) = self.hand.claim(place) else { return Ok(()) };
        let by = Principal::execution(&claim.execution);
        match fault {
            Fault::Crash => {
                self.kill();
                self.boot()?;
            }
            Fault::Conflict => {
                // Whatever it is answered, the held call meets what is then there.
                let _ = self.submit(by, Verb::Save(claim, Box::default()));
            }
            Fault::Fenced => {
                let failure = Failure {
                    permanent: false,
                    code: "idle-deadline".to_owned(),
                    reason: "ended on purpose, as by its deadline".to_owned(),
                    retry_after_ms: None,
                };
                let _ = self.submit(Principal::host(), Verb::End(claim, failure));
            }
            Fault::LeaseLost => {
                let Some((lease, left_ms)) = self.lease_of(&claim.execution)? else {
                    let id = &claim.execution;
                    return Err(LabError::Misfit(format!("expected {id} to have a lease to lose, got none")));
                };
                // Time passes before anybody looks: what it brings besides comes behind this.
                self.clock.advance(Duration::from_millis(left_ms));
                let _ = self.submit(Principal::host(), Verb::Lapse(lease));
            }
            Fault::CrashBehind => {
                if let Some(life) = &self.life {
                    life.mem.die_after_commit();
                }
                self.hand.let_go(place);
                self.rest()?;
                self.kill();
                self.boot()?;
            }
            Fault::Unavailable => self.fail_next(StoreFault::Unavailable),
            Fault::Unknown { kept } => self.fail_next(StoreFault::Indeterminate { kept }),
        }
        Ok(())
    }

    /// The first of an execution's leases to be over, and the ms that are left of it.
    fn lease_of(&self, execution: &ExecutionId) -> Result<Option<(LeaseName, u64)>, StoreError> {
        let owner = Owner::Execution(execution.clone());
        let leases = self.leases()?;
        let held = leases.into_iter().filter_map(|view| {
            let holder = view.lease.held(view.at).filter(|holder| holder.owner == owner)?;
            Some((holder.until.since(view.at), view.name))
        });
        Ok(held.min().map(|(left_ms, name)| (name, left_ms)))
    }

    /// Every lease that is on record, by name.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub fn leases(&self) -> Result<Vec<LeaseView>, StoreError> {
        self.read(|host| async move { host.leases("", None, LEASES_SHOWN_MAX).await }).map(|(leases, _)| leases)
    }

    /// Makes the next commit that writes something fail.
    pub fn fail_next(&self, fault: StoreFault) {
        if let Some(life) = &self.life {
            life.mem.fail_next(fault);
        }
    }

    /// What time alone will bring, the earliest first.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub fn coming(&self) -> Result<Vec<Coming>, StoreError> {
        let mut coming = self.read(|host| async move { host.coming(64).await })?;
        let now_ms = self.passed_ms();
        coming.extend(self.receivers.hanging().into_iter().map(|(pending, until_ms)| Coming {
            in_ms: until_ms.saturating_sub(now_ms),
            entity: Some(pending.entity),
            what: Awaited::Answer(pending.target, pending.number),
        }));
        coming.sort_by(|a, b| (a.in_ms, &a.entity, &a.what).cmp(&(b.in_ms, &b.entity, &b.what)));
        Ok(coming)
    }

    /// How a target replies from now on: `times` times and then as before, or for good. One of which nobody said
    /// anything answers 200.
    pub fn reply(&mut self, target: &str, reply: Reply, times: Option<u32>) {
        self.receivers.script(target, reply, times);
    }

    /// Every request so far, in the order in which they were first made.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.receivers.requests()
    }

    /// What was seen at receivers since the last call, in order.
    pub fn take_arrivals(&mut self) -> Vec<Arrival> {
        self.receivers.take_arrivals()
    }

    /// From now on each request waits until somebody says what becomes of it.
    pub fn hold_requests(&mut self) {
        self.receivers.hold();
    }

    /// Requests that wait for that, the oldest first.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        self.receivers.pending()
    }

    /// All that can tell one receiver from another later on.
    pub(crate) fn receivers_know(&self) -> String {
        self.receivers.know()
    }

    /// What the next request to a target gets.
    #[must_use]
    pub fn next_reply(&self, target: &str) -> Reply {
        self.receivers.next(target)
    }

    /// Says what becomes of a request that waits: what was said of its target, or something else. False if there is
    /// none.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn settle_request(&mut self, key: &str, otherwise: Option<Reply>) -> Result<bool, LabError> {
        let settled = self.receivers.settle(key, otherwise, self.passed_ms());
        self.rest()?;
        Ok(settled)
    }

    /// Has a request that waits arrive and be done, if that is what is said of its target; the host is killed before
    /// it hears of it, and boots again.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn crash_behind_request(&mut self, key: &str) -> Result<(), LabError> {
        self.receivers.arrive(key);
        self.kill();
        self.boot()
    }

    /// Moves time to the next thing that it brings, and lets everything come to rest that can without
    /// letting go of calls. None, and no time passes, if nothing comes by itself.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn tick(&mut self) -> Result<Option<Coming>, LabError> {
        let Some(next) = self.coming()?.into_iter().next() else { return Ok(None) };
        self.pass(next.in_ms.max(1))?;
        Ok(Some(next))
    }

    /// Moves time by so much, stopping at each thing that it brings; `turn` as in [`Lab::settle`].
    ///
    /// # Errors
    /// [`LabError`].
    pub fn advance(&mut self, by_ms: u64, turn: &mut dyn FnMut(&Held) -> Turn) -> Result<(), LabError> {
        self.settle(turn)?;
        let mut left_ms = by_ms;
        while left_ms > 0 {
            let next_ms = if self.is_up() { self.coming()?.first().map(|next| next.in_ms.max(1)) } else { None };
            let step_ms = next_ms.unwrap_or(left_ms).min(left_ms);
            self.pass(step_ms)?;
            self.settle(turn)?;
            left_ms = left_ms.saturating_sub(step_ms);
        }
        Ok(())
    }

    /// Moves time by so much at once: what fell due meanwhile comes late.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn leap(&mut self, by_ms: u64) -> Result<(), LabError> {
        self.pass(by_ms)
    }

    /// Sets the wall clock alone: a jump.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn set_wall(&mut self, wall_ms: i64) -> Result<(), LabError> {
        self.clock.set_wall(wall_ms);
        self.rest()
    }

    /// The wall clock, in ms since 1970.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        self.clock.wall_ms()
    }

    /// Ms that passed since the lab was made.
    #[must_use]
    pub fn passed_ms(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_millis()).unwrap_or(u64::MAX)
    }

    /// What was seen of attempts since the last call, in order.
    pub fn take_seen(&mut self) -> Vec<Seen> {
        let mut seen = std::mem::take(&mut self.seen);
        seen.extend(self.hand.take_seen());
        seen
    }

    /// Entities whose step computes without an end, as far as anybody can tell.
    #[must_use]
    pub fn hung(&self) -> Vec<String> {
        self.hand.hung().iter().map(ToString::to_string).collect()
    }

    fn pass(&mut self, ms: u64) -> Result<(), LabError> {
        self.clock.advance(Duration::from_millis(ms));
        self.rest()
    }

    fn life(&self) -> Result<&Life, StoreError> {
        self.life.as_ref().ok_or(StoreError::Closed)
    }

    fn host(&self) -> Result<&Arc<Coordinator>, StoreError> {
        Ok(&self.life()?.host)
    }

    /// Waits until every attempt is held, over or given up and no task of the host has anything to do; moves
    /// time only for a host that has to try something again.
    fn rest(&mut self) -> Result<(), LabError> {
        let Some(life) = &self.life else { return Ok(()) };
        for _ in 0..CATCH_UP_MAX {
            self.receivers.reach(self.passed_ms());
            life.runtime.block_on(quiet(&self.hand, &self.computed, self.patience));
            if !life.host.is_catching_up() || life.mem.health().condition == Condition::Closed {
                return Ok(());
            }
            let now = self.clock.monotonic();
            let next = self.clock.next_sleeper().unwrap_or(now);
            self.clock.advance(next.saturating_sub(now).max(Duration::from_millis(1)));
        }
        Err(LabError::Restless("a host that tries something again and again".to_owned()))
    }
}

impl fmt::Debug for Lab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lab").field("boots", &self.boots).field("passed_ms", &self.passed_ms()).finish_non_exhaustive()
    }
}

/// Completes once nothing stirs. Steps may compute on other threads, and are waited for within reason.
async fn quiet(hand: &Hand, stopwatch: &SystemClock, patience: Duration) {
    let mut quiet = 0;
    let mut waited = 0;
    let mut stir = hand.stir();
    let began = stopwatch.monotonic();
    while quiet < QUIET_ROUNDS {
        tokio::task::yield_now().await;
        let now = hand.stir();
        if hand.is_computing() {
            quiet = 0;
            waited = if now == stir { waited + 1 } else { 0 };
            if now == stir && stopwatch.monotonic().saturating_sub(began) > patience {
                hand.give_up();
            } else if waited > QUIET_ROUNDS {
                // It computes on a thread of its own, which needs this processor more.
                let _ = tokio::time::timeout(LOOK, hand.stirred()).await;
            }
        } else if now == stir {
            quiet += 1;
        } else {
            quiet = 0;
        }
        stir = now;
    }
}

fn boot_failure(error: &OpenError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
