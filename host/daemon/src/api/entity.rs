//! Entities: making them, asking about them, the operator's verbs.

use super::Document;
use super::effect::{EffectView, OutboxView};
use super::event::{AnswerView, ExpectView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A new entity.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRequest {
    /// The machine it follows.
    pub machine: String,
    /// Its key there: 1 to 200 bytes without `@` and control characters.
    pub key: String,
    /// What clients want.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Document>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What if there is one.
    #[serde(default)]
    pub on_existing: Existing,
    /// Decided in the same transaction; if it is refused, so is the create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<FirstEvent>,
}

/// What a create does about an entity that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Existing {
    /// The same request is the existing entity, another a conflict.
    #[default]
    Same,
    /// A conflict always.
    Fail,
    /// The existing entity, and the first event is still delivered.
    Use,
    /// Delete and create in one transaction, by delete's rule.
    Recreate,
}

/// The event a new entity begins with.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FirstEvent {
    /// Its id; the host mints one if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name.
    pub name: String,
    /// Its payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Document>,
    /// What the sender believes.
    #[serde(default)]
    pub expect: ExpectView,
}

/// An entity is there.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Created {
    /// Whether this request made it.
    pub new: bool,
    /// The answer to the first event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerView>,
    /// The entity as it is now; null if it is gone again.
    pub entity: Option<EntityView>,
}

/// New `desired`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// What clients want now.
    pub desired: Document,
}

/// What clients want.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DesiredView {
    /// Counts changes of it: name it in the next `If-Match`.
    pub generation: u64,
    /// The generation that the steps have seen.
    pub observed_generation: u64,
    /// What clients want.
    pub desired: Option<Document>,
}

/// `desired` is written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Applied {
    /// The entity.
    pub entity: String,
    /// The generation it has now: name it in the next `If-Match`.
    pub generation: u64,
    /// The generation that the steps have seen.
    pub observed_generation: u64,
}

/// An operator's kill.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KillRequest {
    /// Why, for the record.
    pub reason: String,
}

/// An operator's unlock.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UnlockRequest {
    /// The state to enter: a rest or a failed final state.
    pub to: String,
    /// Although something but an operator can still move it.
    #[serde(default)]
    pub force: bool,
    /// Why, for the record; by force there has to be one.
    #[serde(default)]
    pub reason: String,
}

/// Where an entity stands after an operator's verb.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NowView {
    /// The entity.
    pub entity: String,
    /// Its state.
    pub state: String,
    /// Its version.
    pub version: u64,
    /// Whether this request changed something: false is a repetition.
    pub changed: bool,
}

/// What a state means for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Free: nothing runs, a new operation may start.
    Rest,
    /// Locked by an execution.
    Working,
    /// Over, well.
    Succeeded,
    /// Over, badly.
    Failed,
}

/// One entity.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EntityView {
    /// `machine/key`.
    pub id: String,
    /// The machine it follows.
    pub machine: String,
    /// Its key there.
    pub key: String,
    /// Tells it from a deleted one with the same key.
    pub incarnation: u64,
    /// The revision it follows.
    pub revision: u64,
    /// Who answers for the machine.
    pub owner: String,
    /// The state it is in.
    pub state: String,
    /// What the state means for the lock.
    pub kind: Kind,
    /// Counts accepted changes of state, data or outputs.
    pub version: u64,
    /// Counts changes of `desired`.
    pub generation: u64,
    /// The generation that the steps have seen, whether or not they succeeded.
    pub observed_generation: u64,
    /// The execution that holds the lock; null exactly when a new operation is accepted, or the state is final.
    pub locked_by: Option<String>,
    /// More about the lock.
    pub lock: Option<LockView>,
    /// What clients want.
    pub desired: Option<Document>,
    /// What steps remember.
    pub data: Option<Document>,
    /// What steps promise to clients.
    pub outputs: Option<Document>,
    /// Published statuses.
    pub conditions: Vec<ConditionView>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// Set when nothing is tried any more and an operator must decide.
    pub parked: Option<ParkView>,
    /// The leases that the execution has.
    pub leases: Vec<String>,
    /// The lease that it stands in line for before its step begins.
    pub awaits: Option<String>,
    /// Pending timers of the state.
    pub timers: Vec<TimerView>,
    /// Events that wait for the entity to come to rest.
    pub inbox: u32,
    /// Its outbox.
    pub outbox: OutboxView,
    /// Effects whose execution is over: what the entity may still do, whatever state it is in.
    pub outstanding: Vec<EffectView>,
    /// How the last execution ended.
    pub last_execution: Option<LastExecutionView>,
    /// When it was created.
    pub created: String,
    /// When it entered the state.
    pub entered: String,
}

/// Who works on an entity, since when, and until when at most.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LockView {
    /// When the execution left rest.
    pub since: String,
    /// Its last progress.
    pub progress: String,
    /// What has to happen next.
    pub waiting_for: WaitingFor,
    /// The attempt of this visit that ran last, from 1.
    pub attempt: Option<u32>,
    /// The open attempt's fencing token.
    pub token: Option<u64>,
    /// When the state ends at the latest, as far as that is known.
    pub until: Option<String>,
    /// Attempts of this visit that failed.
    pub failed: u32,
    /// Attempts of this visit that were lost with their host.
    pub lost: u32,
    /// The last failure of this visit.
    pub failure: Option<super::FailureView>,
}

/// Who holds the lock, in a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HolderView {
    /// The execution.
    pub execution: String,
    /// The event that started it.
    pub started_by: String,
    /// When it left rest.
    pub since: String,
    /// How long ago that was, in ms.
    pub held_ms: u64,
    /// Its last progress.
    pub progress: String,
    /// The state it is in.
    pub state: String,
    /// What it waits for, in words.
    pub waiting_for: String,
    /// The open attempt's number.
    pub attempt: Option<u32>,
    /// When the state ends at the latest, as far as that is known.
    pub until: Option<String>,
}

/// What an execution waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitingFor {
    /// A running step.
    Step,
    /// A timer.
    Timer,
    /// The result of an effect.
    Effect,
    /// An event from outside.
    Event,
    /// The next attempt's time.
    BackOff,
    /// A free place to run a step.
    Slot,
    /// Memory that other running steps hold: its component takes much.
    Memory,
    /// A lease that somebody else has.
    Lease,
    /// An operator: it is parked.
    Operator,
}

/// A published status.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConditionView {
    /// Its type; `interlock/...` is the host's own.
    #[serde(rename = "type")]
    pub kind: String,
    /// `true`, `false` or `unknown`.
    pub status: String,
    /// One word for programs.
    pub reason: String,
    /// One sentence for people.
    pub message: String,
    /// The last change of its status.
    pub since: String,
}

/// Why nothing is tried any more.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ParkView {
    /// One word for programs: `exhausted`, `permanent`, `deadline`, `crash-loop`, `runaway`, `execution-limit`,
    /// `effect-failed`, and others that may come.
    pub code: String,
    /// For people.
    pub reason: String,
    /// Since when.
    pub since: String,
}

/// A pending timer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TimerView {
    /// Its name in the state.
    pub name: String,
    /// When it fires.
    pub due: String,
    /// What made it due then: a calendar rule or a field, in words; missing for a wait after entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// How an execution ended.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LastExecutionView {
    /// Its id.
    pub execution: String,
    /// Whether it ended well: not by a failure path, a kill or a failed final state.
    pub succeeded: bool,
    /// The state it ended in.
    pub state: String,
    /// The version it ended with.
    pub version: u64,
}

/// One page of entities, ordered by machine and key.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EntityPage {
    /// At most `limit` of them.
    pub entities: Vec<EntitySummary>,
    /// Pass this as `after` for the next page; null at the end.
    pub next: Option<String>,
}

/// An entity in a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EntitySummary {
    /// `machine/key`.
    pub id: String,
    /// The state it is in.
    pub state: String,
    /// What the state means for the lock.
    pub kind: Kind,
    /// Counts accepted changes.
    pub version: u64,
    /// The revision it follows.
    pub revision: u64,
    /// Counts changes of `desired`.
    pub generation: u64,
    /// The generation that the steps have seen.
    pub observed_generation: u64,
    /// The execution that holds the lock.
    pub locked_by: Option<String>,
    /// The park's code, if it is parked.
    pub parked: Option<String>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// When it entered the state.
    pub entered: String,
}
