//! Running one attempt: what the coordinator hands out, and what it gets back.
//!
//! An [`Attempt`] is the only way to write as a step. It carries the claim that the kernel made, so
//! nobody names a version or a token; it knows nothing of Wasm. The runtime implements
//! [`Executor`], tests script it.

use crate::core::Core;
use crate::dispatch::Running;
use crate::error::SubmitError;
use crate::gate::Gate;
use crate::probe::{Call, Probe, Reply};
use crate::{read, tables};
use interlock_kernel::command::{Change, Command, LeaseAsk, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{Name, Principal};
use interlock_kernel::record::{Failure, Key, Record};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::rows::{QueryAnswer, QueryAsk, RowAnswer, StepRows};
use interlock_kernel::time::{StoreTime, WallTime};
use interlock_kernel::view::{Documents, LeaseClaim, Start, View};
use interlock_kernel::{FencingToken, Version};
use interlock_store::StoreError;
use std::fmt;
use std::sync::Arc;

/// Runs attempts.
pub trait Executor: Send + Sync + 'static {
    /// Begins to run an attempt elsewhere and returns at once: it may be called on the store's own
    /// thread, with commits waiting behind it. It is called inside the runtime that the coordinator was
    /// opened in, so `tokio::spawn` works. A panic fails the attempt as `executor-lost`.
    fn start(&self, attempt: Attempt);

    /// Memory that there is for running attempts, in bytes.
    fn memory_bytes_max(&self) -> u64 {
        u64::MAX
    }

    /// What an attempt of this component will hold of that memory while it runs; 0 if it needs no more than its slot.
    /// One that weighs more than there is runs when nothing else holds any. What is learned from a run holds for those
    /// that wait, too. Asked under a lock: it answers at once and calls nobody.
    fn weight_bytes(&self, component: Option<Digest>) -> u64 {
        let _ = component;
        0
    }
}

/// An attempt with a slot and its memory. Dropped without [`Attempt::finish`] it has failed as `executor-lost`.
pub struct Attempt {
    core: Arc<Core>,
    run: Arc<Running>,
    probes: Vec<Arc<dyn Probe>>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The step returned. Without an accepted transition that is a failure, `no-transition`.
    Returned,
    /// The step failed, or did not come to its end: `trap`, `out-of-memory`, the step's own code.
    Failed(Failure),
}

/// A lease that an attempt's execution holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLease {
    /// The right to it.
    pub claim: LeaseClaim,
    /// It is over then, unless it is renewed.
    pub until: StoreTime,
    /// What was granted last, in ms from that commit.
    pub ttl_ms: u64,
}

/// The entity as an attempt reads it again.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The state.
    pub state: Name,
    /// The version; the attempt's next write is judged against it.
    pub version: Version,
    /// The documents, `desired` still as of the moment the execution left rest.
    pub documents: Documents,
    /// The visit's deadline.
    pub deadline: Option<StoreTime>,
}

impl Attempt {
    pub(crate) fn new(core: Arc<Core>, run: Arc<Running>) -> Self {
        Self { core, run, probes: Vec::new() }
    }

    /// Has somebody look on from now on, behind those who already do.
    #[must_use]
    pub fn watched_by(mut self, probe: Arc<dyn Probe>) -> Self {
        self.probes.push(probe);
        self
    }

    /// What to run, on what.
    #[must_use]
    pub fn start(&self) -> &Start {
        self.run.start()
    }

    /// The seed of the step's random numbers: the same for every attempt that starts from the same
    /// version, known to nobody without the store's secret. Asked again after a save it is another.
    #[must_use]
    pub fn seed(&self) -> [u8; 32] {
        let execution = &self.start().claim.execution;
        let from = format!("{}@{}:{}", execution.entity, execution.incarnation, self.run.base());
        *blake3::keyed_hash(self.core.secret(), from.as_bytes()).as_bytes()
    }

    /// Closed when this attempt may not go on.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.run.gate().clone()
    }

    /// When it got its slot.
    #[must_use]
    pub fn started(&self) -> WallTime {
        self.run.started()
    }

    /// Milliseconds until it is ended at the latest: by its total deadline, or with its visit's.
    #[must_use]
    pub fn left_ms(&self) -> u64 {
        let now = self.core.store().now().store_ms;
        let visit = self.start().deadline.map_or(u64::MAX, |deadline| deadline.0);
        self.run.total_until().min(visit).saturating_sub(now)
    }

    /// The version its next write is judged against.
    #[must_use]
    pub fn version(&self) -> Version {
        self.run.claim().read
    }

    /// Its fencing token, to be carried outside.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.start().claim.token
    }

    /// Checkpoints: one version more, same visit. Resets the idle deadline.
    ///
    /// # Errors
    /// [`SubmitError::Rejected`] with `fenced`, `conflict`, `invalid` or `limit`; what the store cannot do.
    pub async fn save(&self, change: Change) -> Result<Written, SubmitError> {
        self.before(|| Call::Save(&change)).await;
        let seen = self.is_watched().then(|| change.clone());
        let saved = self.write(Verb::Save(self.run.claim(), Box::new(change))).await;
        if let Ok(done) = &saved {
            self.run.saved(done.version, self.core.store().now().store_ms);
        }
        self.after(seen.as_ref().map(Call::Save), written(&saved));
        saved
    }

    /// Moves the entity. Once accepted this attempt is over: whatever it asks for afterwards is refused.
    ///
    /// # Errors
    /// [`SubmitError::Rejected`] with `fenced`, `spent`, `conflict`, `not_allowed`, `guard`, `invalid` or
    /// `limit`; what the store cannot do.
    pub async fn transition(&self, to: Name, change: Change) -> Result<Written, SubmitError> {
        self.before(|| Call::Transition(&to, &change)).await;
        let seen = self.is_watched().then(|| (to.clone(), change.clone()));
        let moved = if self.run.is_written() {
            Err(Rejection::new(Code::Spent, &to, "one transition per attempt", "a second").into())
        } else {
            self.write(Verb::Transition(self.run.claim(), to, Box::new(change))).await
        };
        self.after(seen.as_ref().map(|(to, change)| Call::Transition(to, change)), written(&moved));
        moved
    }

    /// Reads the entity again; the next write is judged against what this returns.
    ///
    /// # Errors
    /// [`SubmitError::Rejected`] with `fenced`; what the store cannot do.
    pub async fn reload(&self) -> Result<Snapshot, SubmitError> {
        self.read_as(Call::Reload).await
    }

    /// The same after an accepted checkpoint, for a step that did not ask for it.
    ///
    /// # Errors
    /// As [`Attempt::reload`].
    pub async fn look_again(&self) -> Result<Snapshot, SubmitError> {
        self.read_as(Call::LookAgain).await
    }

    async fn read_as(&self, call: Call<'static>) -> Result<Snapshot, SubmitError> {
        self.before(|| call.clone()).await;
        let read = self.read_again().await;
        self.after(Some(call), read.as_ref().map_or_else(Reply::Refused, Reply::Read));
        read
    }

    async fn read_again(&self) -> Result<Snapshot, SubmitError> {
        let claim = self.run.claim();
        let entity = claim.execution.entity.clone();
        match read::start(&self.core, entity).await? {
            Some(start) if start.claim.token == claim.token => {
                self.run.reloaded(start.claim.read);
                Ok(Snapshot {
                    state: start.state,
                    version: start.claim.read,
                    documents: start.documents,
                    deadline: start.deadline,
                })
            }
            other => {
                let got = other.map_or_else(
                    || "no open attempt".to_owned(),
                    |start| format!("attempt {}, token {}", start.claim.attempt, start.claim.token),
                );
                let expected = format!("attempt {}, token {}", claim.attempt, claim.token);
                Err(Rejection::new(Code::Fenced, &claim.execution.entity, expected, got).into())
            }
        }
    }

    /// Whether this attempt is still the open one: the answer of one moment, which protects no later
    /// write outside. Send the token along.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn still_holds(&self) -> Result<bool, StoreError> {
        self.before(|| Call::StillHolds).await;
        let claim = self.run.claim();
        let head = read::head(&self.core, claim.execution.entity.clone()).await;
        let open = head.map(|head| head.and_then(|head| head.lock).and_then(|lock| lock.attempt));
        let holds = open.map(|open| open.is_some_and(|open| open.token == claim.token));
        match &holds {
            Ok(holds) => self.after(Some(Call::StillHolds), Reply::Holds(*holds)),
            Err(error) => self.after(Some(Call::StillHolds), Reply::Refused(&error.clone().into())),
        }
        holds
    }

    /// Takes, renews or gives back a lease; what is done is progress. None if the lease is given back.
    ///
    /// # Errors
    /// [`SubmitError::Rejected`] with `fenced`, `spent`, `not_found`, `busy` or `limit`; what the store cannot do: whether
    /// a renewal was made is then not known, and nobody may act as if it was.
    pub async fn lease(&self, ask: LeaseAsk) -> Result<Option<HeldLease>, SubmitError> {
        self.before(|| Call::Lease(&ask)).await;
        let done = self.ask_lease(ask.clone()).await;
        let reply = match &done {
            Ok(Some(held)) => Reply::Leased(&held.claim, held.ttl_ms),
            Ok(None) => Reply::Released,
            Err(refused) => Reply::Refused(refused),
        };
        self.after(Some(Call::Lease(&ask)), reply);
        done
    }

    async fn ask_lease(&self, ask: LeaseAsk) -> Result<Option<HeldLease>, SubmitError> {
        if self.run.is_written() {
            let subject = &self.start().claim.execution.entity;
            return Err(Rejection::new(Code::Spent, subject, "one transition per attempt", "another call").into());
        }
        let by = Principal::execution(&self.start().claim.execution);
        let done = {
            let _asking = self.run.asks(self.core.store());
            let verb = Verb::Lease(self.run.claim(), ask);
            self.core.submit_as(Command { by, verb }, Some(self.run.clone())).await?
        };
        self.run.progressed(self.core.store().now().store_ms);
        match done {
            Outcome::Leased { claim, ttl_ms, until, new: _ } => Ok(Some(HeldLease { claim, until, ttl_ms })),
            Outcome::Released => Ok(None),
            other => {
                let expected = "a request for a lease to answer whether it is held".to_owned();
                Err(StoreError::Corrupt { expected, got: format!("{other:?}") }.into())
            }
        }
    }

    /// Asks something of rows, at once; the answers, and whether they are remembered ones. What is done is progress.
    ///
    /// # Errors
    /// [`SubmitError::Rejected`] with `fenced`, `spent`, `denied`, `not_found`, `invalid`, `require`, `id_reused`,
    /// `limit` or `unavailable`; what the store cannot do.
    pub async fn rows(&self, ask: StepRows) -> Result<(Vec<RowAnswer>, bool), SubmitError> {
        self.before(|| Call::Rows(&ask)).await;
        let done = self.ask_rows(ask.clone()).await;
        let reply = match &done {
            Ok((answers, replayed)) => Reply::Rows(answers, *replayed),
            Err(refused) => Reply::Refused(refused),
        };
        self.after(Some(Call::Rows(&ask)), reply);
        done
    }

    async fn ask_rows(&self, ask: StepRows) -> Result<(Vec<RowAnswer>, bool), SubmitError> {
        if self.run.is_written() {
            let subject = &self.start().claim.execution.entity;
            return Err(Rejection::new(Code::Spent, subject, "one transition per attempt", "another call").into());
        }
        let by = Principal::execution(&self.start().claim.execution);
        let done = {
            let _asking = self.run.asks(self.core.store());
            let verb = Verb::StepRows(self.run.claim(), Box::new(ask));
            self.core.submit_as(Command { by, verb }, Some(self.run.clone())).await?
        };
        self.run.progressed(self.core.store().now().store_ms);
        match done {
            Outcome::Rows { answers, replayed } => Ok((answers, replayed)),
            other => {
                let expected = "a request on rows to answer what became of them".to_owned();
                Err(StoreError::Corrupt { expected, got: format!("{other:?}") }.into())
            }
        }
    }

    /// Reads rows by filter, as they are durable now.
    ///
    /// # Errors
    /// [`SubmitError::Rejected`] with `denied`, `not_found`, `invalid`, `limit`, `unavailable`, or `fenced` for a late
    /// owner; what kept the store from reading.
    pub async fn query(&self, ask: QueryAsk) -> Result<QueryAnswer, SubmitError> {
        self.before(|| Call::Query(&ask)).await;
        let found = tables::query(&self.core, tables::By::Step(self.start().claim.clone()), ask.clone()).await;
        let reply = found.as_ref().map_or_else(Reply::Refused, Reply::Found);
        self.after(Some(Call::Query(&ask)), reply);
        found
    }

    /// Whether a lease is still held under a grant: the answer of one moment. Send its token along.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub async fn still_holds_lease(&self, claim: &LeaseClaim) -> Result<bool, StoreError> {
        self.before(|| Call::StillHoldsLease(claim)).await;
        let (name, token) = (claim.lease.clone(), claim.token);
        let holds = read::look(&self.core, move |view, stamp| {
            let now = StoreTime(stamp.store_ms);
            Ok(match view.get(&Key::Lease(name.clone()))? {
                Some(Record::Lease(lease)) => lease.held(now).is_some_and(|holder| holder.token == token),
                _ => false,
            })
        })
        .await;
        let call = Some(Call::StillHoldsLease(claim));
        match &holds {
            Ok(holds) => self.after(call, Reply::Holds(*holds)),
            Err(error) => self.after(call, Reply::Refused(&error.clone().into())),
        }
        holds
    }

    /// Milliseconds of store time left of a lease, as it was last granted.
    #[must_use]
    pub fn lease_left_ms(&self, held: &HeldLease) -> u64 {
        held.until.since(StoreTime(self.core.store().now().store_ms))
    }

    /// Ends the attempt and gives its slot back.
    pub fn finish(mut self, ended: Ended) {
        for probe in std::mem::take(&mut self.probes) {
            probe.over(Some(&ended));
        }
        let failure = match ended {
            Ended::Failed(failure) => failure,
            Ended::Returned => no_transition(),
        };
        self.core.end(&self.run, failure);
    }

    fn is_watched(&self) -> bool {
        !self.probes.is_empty()
    }

    async fn before<'a>(&'a self, call: impl Fn() -> Call<'a>) {
        // All of them hear of it before any of them holds it.
        let holds: Vec<_> = self.probes.iter().map(|probe| probe.before(self, call())).collect();
        for hold in holds {
            hold.await;
        }
    }

    fn after(&self, call: Option<Call<'_>>, reply: Reply<'_>) {
        let Some(call) = call else { return };
        for probe in &self.probes {
            probe.after(self, call.clone(), reply.clone());
        }
    }

    async fn write(&self, verb: Verb) -> Result<Written, SubmitError> {
        let by = Principal::execution(&self.start().claim.execution);
        let _asking = self.run.asks(self.core.store());
        match self.core.submit_as(Command { by, verb }, Some(self.run.clone())).await? {
            Outcome::Written { version, rows } => Ok(Written { version, rows }),
            other => Err(StoreError::Corrupt {
                expected: "a step's write to answer its version".to_owned(),
                got: format!("{other:?}"),
            }
            .into()),
        }
    }
}

/// An accepted save or transition.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The version it made.
    pub version: Version,
    /// The answers to the operations on rows that it carried, in order.
    pub rows: Vec<RowAnswer>,
}

/// The failure of a step that returned and left its entity where it was.
pub(crate) fn no_transition() -> Failure {
    Failure {
        permanent: false,
        code: "no-transition".to_owned(),
        reason: "the step returned without an accepted transition".to_owned(),
        retry_after_ms: None,
    }
}

fn written(answer: &Result<Written, SubmitError>) -> Reply<'_> {
    answer.as_ref().map_or_else(Reply::Refused, Reply::Written)
}

impl Drop for Attempt {
    fn drop(&mut self) {
        for probe in std::mem::take(&mut self.probes) {
            probe.over(None);
        }
        self.core.end(
            &self.run,
            Failure {
                permanent: false,
                code: "executor-lost".to_owned(),
                reason: "the executor gave the attempt up without saying how it ended".to_owned(),
                retry_after_ms: None,
            },
        );
        self.core.release(&self.run);
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("claim", &self.run.claim()).finish_non_exhaustive()
    }
}
