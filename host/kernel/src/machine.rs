//! A machine: states, events, transitions, guards, steps. Immutable per revision; `interlock-manifest`
//! makes it from TOML and has checked it.

use crate::doc::Doc;
use crate::ids::{LeaseName, MachineName, Name, TableName};
use crate::limits;
use crate::timer::Due;
use crate::value::{Filter, Mutation, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

/// One definition, owned by the operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub name: MachineName,
    /// Who answers for it; shown in every refusal.
    pub owner: String,
    /// Where a created entity starts: a rest state.
    pub initial: Name,
    /// Which revision an entity follows.
    pub revisions: Revisions,
    /// Free labels, `project` among them.
    pub labels: BTreeMap<String, String>,
    /// What clients want.
    pub desired: Contract,
    /// How `desired` is written.
    pub apply: ApplyPolicy,
    /// What steps remember.
    pub data: Contract,
    /// What steps promise to clients.
    pub outputs: Contract,
    /// The events clients may send.
    pub events: BTreeMap<Name, EventSpec>,
    /// The states.
    pub states: BTreeMap<Name, State>,
    /// Bounds of an execution.
    pub limits: MachineLimits,
    /// What its executions have to do with leases.
    pub leases: Leases,
    /// Where its effects may go.
    pub targets: BTreeMap<Name, Target>,
    /// The tables that its steps use.
    pub tables: BTreeSet<TableName>,
    /// The machines on whose entities its steps may put conditions.
    pub peers: BTreeSet<MachineName>,
}

/// Where effects may go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The HTTP method.
    pub method: String,
    /// The URL, with placeholders.
    pub url: String,
    /// How long one try may take, in ms.
    pub timeout_ms: u64,
    /// When a try is repeated.
    pub retry: Retry,
    /// The secret that goes with it, by name.
    pub secret: Option<SecretUse>,
    /// The lease that fences it; none is fenced by its entity.
    pub fence: Option<Value>,
    /// What a result is used for that comes after its execution has ended.
    pub on_late: OnLate,
    /// Whether one that is given up lets those behind it go on.
    pub skips_dead: bool,
    /// Bytes of an answer's body that are kept.
    pub answer_bytes_max: u64,
}

/// A secret of the operator's, by reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretUse {
    /// Its name in the operator's configuration.
    pub name: String,
    /// The header it is put into.
    pub header: String,
    /// What stands before it there.
    pub prefix: String,
}

/// What a result is used for that comes after its execution has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnLate {
    /// It is on record.
    Record,
    /// It is an event like any other.
    Event,
    /// It is undone by a request to this target, with the same values for its placeholders.
    Compensate(Name),
}

impl Target {
    /// A lane never stands still for one that is given up.
    #[must_use]
    pub fn holds(&self, effect: &crate::record::Effect) -> bool {
        !(effect.is_dead() && self.skips_dead)
    }
}

/// What a machine has to do with leases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Leases {
    /// Those its executions may have, by name; a `*` at the end stands for any rest.
    pub granted: BTreeMap<String, LeaseSpec>,
    /// By state: what every attempt of its step has before it begins; all or none are granted, in this order.
    pub needs: BTreeMap<Name, Vec<Value>>,
    /// By state and target: what the execution must have for a step's move.
    pub requires: BTreeMap<Name, BTreeMap<Name, Vec<Value>>>,
}

/// A lease that a machine was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseSpec {
    /// The time to live when a step does not say, in ms of store time.
    pub ttl_ms: u64,
    /// The longest a step may ask for.
    pub ttl_ms_max: u64,
    /// The longest in all, however often it is renewed.
    pub hold_ms: u64,
    /// After a loss only the same execution may take it for this long.
    pub delay_ms: u64,
}

impl Default for LeaseSpec {
    fn default() -> Self {
        Self {
            ttl_ms: limits::LEASE_TTL_MS_DEFAULT,
            ttl_ms_max: limits::LEASE_TTL_MS_MAX,
            hold_ms: limits::LEASE_HOLD_MS_DEFAULT,
            delay_ms: 0,
        }
    }
}

/// The contract of one document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// JSON Schema; none accepts any document.
    pub schema: Option<Doc>,
    /// What a created entity has.
    pub default: Option<Doc>,
}

/// Which revision an entity follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Revisions {
    /// The newest compatible one, adopted between attempts.
    Newest,
    /// The one it began with.
    Pinned,
}

/// How `desired` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApplyPolicy {
    /// `apply` names the generation it replaces.
    IfMatch,
    /// `apply` may leave it out: the last writer wins.
    LastWriter,
}

/// One event clients may send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventSpec {
    /// What happens while the entity is busy.
    pub on_busy: OnBusy,
    /// How long an event id is remembered, in ms of store time.
    pub dedup_ms: u64,
    /// JSON Schema of the payload; none accepts any.
    pub schema: Option<Doc>,
}

impl EventSpec {
    /// What its schema judges: the payload, or null for a missing one. Nothing, if there is no schema, or
    /// if it is `false`, which says that there is never a payload, and none came.
    #[must_use]
    pub fn judged(&self, payload: Option<&Doc>) -> Option<Doc> {
        let never = *self.schema.as_ref()?.value() == serde_json::Value::Bool(false);
        match payload {
            Some(payload) => Some(payload.clone()),
            None => (!never).then(|| Doc::new(serde_json::Value::Null)),
        }
    }
}

/// What happens to an event that meets a busy entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnBusy {
    /// Refused, with who holds the lock.
    Reject,
    /// Kept in the entity's inbox until it rests.
    Queue,
}

/// One state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Free, busy or over.
    pub kind: StateKind,
    /// The step that runs in it; none waits for a timer or an event.
    pub step: Option<Name>,
    /// The transitions its step may ask for, named by their target.
    pub to: Vec<Move>,
    /// The events it takes, each with its moves in file order: the first whose guard holds.
    pub on: BTreeMap<Name, Vec<Move>>,
    /// Timers set at entry.
    pub after: Vec<TimerSpec>,
    /// The whole visit, retries included, in ms of store time.
    pub deadline_ms: Option<u64>,
    /// `wait = "forever"`: it may wait without deadline or timer.
    pub waits_forever: bool,
    /// An attempt may be this long without progress, in ms.
    pub idle_ms: u64,
    /// An attempt may take this long in all, in ms.
    pub total_ms: u64,
    /// When a failed attempt is tried again.
    pub retry: Retry,
    /// After a permanent failure.
    pub on_permanent: FailurePath,
    /// After the last retry, and when the visit's deadline is over.
    pub on_exhausted: FailurePath,
}

/// Whether an entity in this state is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StateKind {
    /// Free: nothing runs, a new operation may start.
    Rest,
    /// Locked by an execution.
    Working,
    /// Over, well.
    Succeeded,
    /// Over, badly.
    Failed,
}

impl StateKind {
    /// Succeeded or failed.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Working: exactly these states are locked.
    #[must_use]
    pub const fn is_locked(self) -> bool {
        matches!(self, Self::Working)
    }
}

/// One move a state allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// The state it enters; none stays in the same visit and only `set`s (events and timers only).
    pub to: Option<Name>,
    /// Must hold inside the transaction.
    pub guard: Filter,
    /// Applied to data and outputs.
    pub set: Vec<Mutation>,
}

/// A timer of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerSpec {
    /// Its name in the state.
    pub name: Name,
    /// When it fires, fixed at entry.
    pub due: Due,
    /// What it does.
    pub then: Move,
}

/// When a failed attempt is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// Wait before the second, in ms.
    pub first_ms: u64,
    /// Each further wait is this much longer.
    pub factor: f64,
    /// No wait is longer than this, in ms.
    pub max_ms: u64,
    /// Plus or minus this part of the wait, 0 to 1; drawn from the attempt's identity.
    pub jitter: f64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 5, first_ms: 1_000, factor: 2.0, max_ms: 60_000, jitter: 0.1 }
    }
}

/// Where a failed visit goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FailurePath {
    /// Stop trying, visibly; an operator decides.
    Park,
    /// Enter this state.
    To {
        /// The state.
        to: Name,
        /// Applied to data and outputs.
        set: Vec<Mutation>,
    },
}

/// Bounds of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineLimits {
    /// Linear memory of a step, in bytes.
    pub memory_bytes: u64,
    /// Transitions in a row without a wait; then parked as `runaway`.
    pub transitions: u32,
    /// From leaving rest, in ms of store time; then parked as `execution-limit`.
    pub execution_ms: Option<u64>,
    /// How long history is kept, in ms of wall time.
    pub history_ms: u64,
}

impl Default for MachineLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            transitions: limits::CHAIN_DEFAULT,
            execution_ms: None,
            history_ms: limits::HISTORY_MS_DEFAULT,
        }
    }
}

/// The state a killed entity is in: final, failed, in every machine; no manifest may name it.
pub static KILLED: LazyLock<Name> = LazyLock::new(|| match "killed".parse() {
    Ok(name) => name,
    Err(never) => unreachable!("{never}"),
});

/// The host event raised when `desired` is ahead of what the steps have seen.
pub static DESIRED_CHANGED: LazyLock<Name> = LazyLock::new(|| match "desired-changed".parse() {
    Ok(name) => name,
    Err(never) => unreachable!("{never}"),
});

/// The host event raised with the result of an effect.
pub static EFFECT_DONE: LazyLock<Name> = LazyLock::new(|| match "effect-done".parse() {
    Ok(name) => name,
    Err(never) => unreachable!("{never}"),
});

/// The host event raised when an effect is given up.
pub static EFFECT_FAILED: LazyLock<Name> = LazyLock::new(|| match "effect-failed".parse() {
    Ok(name) => name,
    Err(never) => unreachable!("{never}"),
});

/// What only the host raises: a state may take these, and no client sends them.
pub static HOST_EVENTS: LazyLock<[Name; 3]> =
    LazyLock::new(|| [DESIRED_CHANGED.clone(), EFFECT_DONE.clone(), EFFECT_FAILED.clone()]);

static KILLED_STATE: LazyLock<State> = LazyLock::new(|| State { kind: StateKind::Failed, ..State::default() });

impl Default for State {
    fn default() -> Self {
        Self {
            kind: StateKind::Working,
            step: None,
            to: Vec::new(),
            on: BTreeMap::new(),
            after: Vec::new(),
            deadline_ms: None,
            waits_forever: false,
            idle_ms: limits::IDLE_MS_DEFAULT,
            total_ms: limits::TOTAL_MS_DEFAULT,
            retry: Retry::default(),
            on_permanent: FailurePath::Park,
            on_exhausted: FailurePath::Park,
        }
    }
}

impl Machine {
    /// A state by name, the built-in `killed` included.
    #[must_use]
    pub fn state(&self, name: &Name) -> Option<&State> {
        self.states.get(name).or_else(|| (*name == *KILLED).then(|| &*KILLED_STATE))
    }

    /// The terms on which its executions may have a lease: of the name itself, else of the longest beginning.
    #[must_use]
    pub fn lease(&self, name: &LeaseName) -> Option<&LeaseSpec> {
        let covers =
            |pattern: &&String| pattern.strip_suffix('*').is_some_and(|beginning| name.as_str().starts_with(beginning));
        let granted = &self.leases.granted;
        granted.get(name.as_str()).or_else(|| {
            let longest = granted.keys().filter(covers).max_by_key(|pattern| pattern.len())?;
            granted.get(longest)
        })
    }

    /// What an attempt in this state has before it begins.
    #[must_use]
    pub fn needs(&self, state: &Name) -> &[Value] {
        self.leases.needs.get(state).map_or(&[], Vec::as_slice)
    }

    /// What an execution must have to move from one state to another.
    #[must_use]
    pub fn requires(&self, from: &Name, to: &Name) -> &[Value] {
        self.leases.requires.get(from).and_then(|targets| targets.get(to)).map_or(&[], Vec::as_slice)
    }
}

/// A machine as deployed: a numbered, immutable revision of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    /// Counted per machine, from 1.
    pub number: u64,
    /// Digest of manifest and component: the same digest is the same revision.
    pub digest: crate::doc::Digest,
    /// Digest of the component; none for a machine without steps.
    pub component: Option<crate::doc::Digest>,
    /// The manifest as it was written.
    pub source: String,
    /// The revision this one brought back, if it was a rollback.
    pub rollback_of: Option<u64>,
    /// When, and by whom.
    pub deployed: crate::time::WallTime,
    /// See `deployed`.
    pub by: crate::ids::Principal,
    /// The definition.
    pub machine: Arc<Machine>,
}
