//! The component's side of the contract: generated bindings, and this crate's words over them.
//! The only module that knows wit-bindgen; it exists on wasm alone.

use crate::change::{Change, Checkpoint, Condition, Mutation, Status, Value};
use crate::log::Level;
use crate::row::{
    Answer, Claimed, Claiming, Deleted, Deleting, EntityRequirement, Getting, Got, Operation, Page, Putting, Querying,
    Requirement, RowRequirement, Updated, Updating, Upserting, Written,
};
use crate::{Entity, Event, EventKind, Failure, Host, Rejection, RejectionKind, Request, Step};
use bindings::interlock::step::{effects, fencing, lease, log, rows, timers, transition, types};
use std::time::Duration;

#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "step-with-everything",
        pub_export_macro: true,
    });
}

/// Runs a step on what the component was called with.
pub fn run(
    steps: &[Step],
    name: &str,
    entity: bindings::Entity,
    event: bindings::Event,
) -> Result<(), bindings::Failure> {
    // In one line: the host escapes line breaks, and a reason of two lines reads badly.
    std::panic::set_hook(Box::new(|panic| write(Level::Error, &panic.to_string().replace('\n', " "), &[])));
    #[cfg(feature = "log")]
    crate::facade::set();
    let entity = Entity::new(Imports(entity), Event::from(event));
    match crate::run(steps, name, &entity) {
        Ok(_done) => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}

pub(crate) fn write(level: Level, message: &str, fields: &[(String, String)]) {
    let level = match level {
        Level::Trace => log::Level::Trace,
        Level::Debug => log::Level::Debug,
        Level::Info => log::Level::Info,
        Level::Warn => log::Level::Warn,
        Level::Error => log::Level::Error,
    };
    log::write(level, message, fields);
}

/// The handle that a component was called with.
pub(crate) struct Imports(bindings::Entity);

impl Host for Imports {
    fn id(&self) -> String {
        self.0.id()
    }
    fn key(&self) -> String {
        self.0.key()
    }
    fn execution(&self) -> String {
        self.0.execution()
    }
    fn attempt(&self) -> u32 {
        self.0.attempt()
    }
    fn state(&self) -> String {
        self.0.state()
    }
    fn version(&self) -> u64 {
        self.0.version()
    }
    fn desired(&self) -> Option<String> {
        self.0.desired()
    }
    fn data(&self) -> Option<String> {
        self.0.data()
    }
    fn outputs(&self) -> Option<String> {
        self.0.outputs()
    }
    fn cancel_requested(&self) -> bool {
        self.0.cancel_requested()
    }
    fn deadline_ms(&self) -> u64 {
        self.0.deadline_ms()
    }
    fn reload(&self) -> Result<(), Rejection> {
        Ok(self.0.reload()?)
    }
    fn save(&self, checkpoint: Checkpoint) -> Result<(), Rejection> {
        let Checkpoint { data, outputs, set, conditions } = checkpoint;
        let (set, conditions) = (all(set), all(conditions));
        Ok(self.0.save(&transition::Checkpoint { data, outputs, set, conditions })?)
    }
    fn transition(&self, change: Change) -> Result<(), Rejection> {
        let Change { to, data, outputs, set, conditions } = change;
        let (set, conditions) = (all(set), all(conditions));
        Ok(self.0.transition(&transition::Change { to, data, outputs, set, conditions })?)
    }
    fn token(&self) -> u64 {
        fencing::token(&self.0)
    }
    fn still_holds(&self) -> bool {
        fencing::still_holds(&self.0)
    }
    fn acquire(&self, name: &str, ttl_ms: Option<u64>) -> Result<HeldLease, Rejection> {
        Ok(HeldLease(lease::acquire(&self.0, name, ttl_ms)?))
    }
    fn timer_after(&self, name: &str, ms: u64) -> Result<(), Rejection> {
        Ok(timers::after(&self.0, name, ms)?)
    }
    fn timer_at(&self, name: &str, unix_ms: i64) -> Result<(), Rejection> {
        Ok(timers::at(&self.0, name, unix_ms)?)
    }
    fn timer_cancel(&self, name: &str) -> Result<(), Rejection> {
        Ok(timers::cancel(&self.0, name)?)
    }
    fn effect_request(&self, request: Request) -> Result<(), Rejection> {
        let Request { target, params, headers, body } = request;
        Ok(effects::request(&self.0, &effects::Outbound { target, params, headers, body })?)
    }
    fn row_get(&self, table: &str, getting: Getting) -> Result<Got, Rejection> {
        Ok(rows::get(&self.0, table, &getting.into())?.into())
    }
    fn row_query(&self, table: &str, querying: Querying) -> Result<Page, Rejection> {
        Ok(rows::query(&self.0, table, &querying.into())?.into())
    }
    fn row_put(&self, table: &str, putting: Putting, op: Option<&str>) -> Result<Written, Rejection> {
        Ok(rows::put(&self.0, table, &putting.into(), op)?.into())
    }
    fn row_update(&self, table: &str, updating: Updating, op: Option<&str>) -> Result<Updated, Rejection> {
        Ok(rows::update(&self.0, table, &updating.into(), op)?.into())
    }
    fn row_upsert(&self, table: &str, upserting: Upserting, op: Option<&str>) -> Result<Written, Rejection> {
        Ok(rows::upsert(&self.0, table, &upserting.into(), op)?.into())
    }
    fn row_claim(&self, table: &str, claiming: Claiming, op: Option<&str>) -> Result<Claimed, Rejection> {
        Ok(rows::claim(&self.0, table, &claiming.into(), op)?.into())
    }
    fn row_delete(&self, table: &str, deleting: Deleting, op: Option<&str>) -> Result<Deleted, Rejection> {
        Ok(rows::delete(&self.0, table, &deleting.into(), op)?.into())
    }
    fn row_transact(
        &self,
        operations: Vec<Operation>,
        requirements: Vec<Requirement>,
        op: Option<&str>,
    ) -> Result<Vec<Answer>, Rejection> {
        let (operations, requirements): (Vec<_>, Vec<_>) = (all(operations), all(requirements));
        Ok(all(rows::transact(&self.0, &operations, &requirements, op)?))
    }
    fn row_stage(&self, operation: Operation) -> Result<(), Rejection> {
        Ok(rows::stage(&self.0, &operation.into())?)
    }
    fn row_require(&self, requirement: RowRequirement) -> Result<(), Rejection> {
        Ok(rows::require_row(&self.0, &requirement.into())?)
    }
    fn entity_require(&self, requirement: EntityRequirement) -> Result<(), Rejection> {
        Ok(rows::require_entity(&self.0, &requirement.into())?)
    }
    fn row_answers(&self) -> Vec<Answer> {
        all(rows::answers(&self.0))
    }
}

/// The handle of a lease. Dropping it releases nothing.
pub struct HeldLease(lease::Lease);

impl HeldLease {
    pub(crate) fn name(&self) -> String {
        self.0.name()
    }
    pub(crate) fn left_ms(&self) -> u64 {
        self.0.left_ms()
    }
    pub(crate) fn extend(&self, ttl_ms: Option<u64>) -> Result<(), Rejection> {
        Ok(self.0.extend(ttl_ms)?)
    }
    pub(crate) fn release(self) -> Result<(), Rejection> {
        Ok(lease::Lease::release(self.0)?)
    }
    pub(crate) fn token(&self) -> u64 {
        fencing::lease_token(&self.0)
    }
    pub(crate) fn still_holds(&self) -> bool {
        fencing::still_holds_lease(&self.0)
    }
}

pub(crate) fn all<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

impl From<Value> for types::Value {
    fn from(value: Value) -> types::Value {
        match value {
            Value::Json(text) => types::Value::Json(text),
            Value::From(source) => types::Value::From(source),
        }
    }
}

impl From<Mutation> for types::Mutation {
    fn from(mutation: Mutation) -> types::Mutation {
        let assignment = |field, value: Value| types::Assignment { field, value: value.into() };
        match mutation {
            Mutation::Set(field, value) => types::Mutation::Set(assignment(field, value)),
            Mutation::Increment(field, value) => types::Mutation::Increment(assignment(field, value)),
            Mutation::Remove(field) => types::Mutation::Remove(field),
            Mutation::Append(field, value, limit) => {
                types::Mutation::Append(types::Appending { field, value: value.into(), limit })
            }
            Mutation::Max(field, value) => types::Mutation::Max(assignment(field, value)),
            Mutation::Min(field, value) => types::Mutation::Min(assignment(field, value)),
        }
    }
}

impl From<Condition> for types::Condition {
    fn from(condition: Condition) -> types::Condition {
        let Condition { r#type, status, reason, message } = condition;
        let status = match status {
            Status::True => types::ConditionStatus::True,
            Status::False => types::ConditionStatus::False,
            Status::Unknown => types::ConditionStatus::Unknown,
        };
        types::Condition { type_: r#type, status, reason, message }
    }
}

impl From<types::Event> for Event {
    fn from(event: types::Event) -> Event {
        let types::Event { id, kind, name, payload, at_ms } = event;
        Event { id, kind: kind.into(), name, payload, at_ms }
    }
}

impl From<types::EventKind> for EventKind {
    fn from(kind: types::EventKind) -> EventKind {
        match kind {
            types::EventKind::Signal => EventKind::Signal,
            types::EventKind::Timer => EventKind::Timer,
            types::EventKind::Deadline => EventKind::Deadline,
            types::EventKind::Transition => EventKind::Transition,
            types::EventKind::DesiredChanged => EventKind::DesiredChanged,
            types::EventKind::Failure => EventKind::Failure,
            types::EventKind::Created => EventKind::Created,
            types::EventKind::Child => EventKind::Child,
            types::EventKind::Join => EventKind::Join,
            types::EventKind::Effect => EventKind::Effect,
            types::EventKind::Cancel => EventKind::Cancel,
            types::EventKind::Operator => EventKind::Operator,
            types::EventKind::Other => EventKind::Other,
        }
    }
}

impl From<types::Rejection> for Rejection {
    fn from(rejection: types::Rejection) -> Rejection {
        let types::Rejection { kind, code, subject, expected, got, retryable, retry_after_ms, detail } = rejection;
        Rejection {
            kind: kind.into(),
            code,
            subject,
            expected,
            got,
            retryable,
            retry_after: retry_after_ms.map(Duration::from_millis),
            detail,
        }
    }
}

impl From<types::RejectionKind> for RejectionKind {
    fn from(kind: types::RejectionKind) -> RejectionKind {
        match kind {
            types::RejectionKind::Invalid => RejectionKind::Invalid,
            types::RejectionKind::NotFound => RejectionKind::NotFound,
            types::RejectionKind::Denied => RejectionKind::Denied,
            types::RejectionKind::Late => RejectionKind::Late,
            types::RejectionKind::Fenced => RejectionKind::Fenced,
            types::RejectionKind::Busy => RejectionKind::Busy,
            types::RejectionKind::NotAllowed => RejectionKind::NotAllowed,
            types::RejectionKind::Conflict => RejectionKind::Conflict,
            types::RejectionKind::Guard => RejectionKind::Guard,
            types::RejectionKind::Limit => RejectionKind::Limit,
            types::RejectionKind::Unavailable => RejectionKind::Unavailable,
        }
    }
}

impl From<Failure> for types::Failure {
    fn from(failure: Failure) -> types::Failure {
        types::Failure {
            permanent: failure.is_permanent(),
            code: failure.as_code().to_owned(),
            reason: failure.reason().to_owned(),
            retry_after_ms: failure.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}
