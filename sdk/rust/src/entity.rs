//! The entity as an attempt sees it: typed reading, and asking for the next state.

use crate::change::{Draft, Move, Stay};
use crate::rows::{Answer, EntityCondition, EntityRequirement, Rows, Transaction};
use crate::timer::whole_ms;
use crate::{Effect, Event, Failure, Host, Lease, Rejection, Request, Timer};
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;

/// The proof that a transition was accepted. Only [`Entity::transition`] makes one.
#[derive(Debug)]
#[must_use = "a step ends by returning it"]
pub struct Done(());

/// In a component the imports themselves: behind a trait object every import would be kept, and
/// `interlock inspect` would show powers that the step never uses.
#[cfg(target_arch = "wasm32")]
type Handle = crate::wasm::Imports;
#[cfg(not(target_arch = "wasm32"))]
type Handle = Box<dyn Host>;

/// The entity of this attempt: a snapshot to read, and the right to ask for its next state.
pub struct Entity {
    host: Handle,
    event: Event,
}

impl Entity {
    /// For hosts: an entity over this handle, entered by this event.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new(host: impl Host + 'static, event: Event) -> Entity {
        Entity { host: Box::new(host), event }
    }

    #[cfg(target_arch = "wasm32")]
    pub(crate) fn new(host: Handle, event: Event) -> Entity {
        Entity { host, event }
    }

    /// `machine/key`.
    #[must_use]
    pub fn id(&self) -> String {
        self.host.id()
    }

    /// The key alone.
    #[must_use]
    pub fn key(&self) -> String {
        self.host.key()
    }

    /// Id of the execution that holds the entity, the same over all its steps and attempts.
    #[must_use]
    pub fn execution(&self) -> String {
        self.host.execution()
    }

    /// Which try of this visit this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.host.attempt()
    }

    /// Name of the state the entity is in.
    #[must_use]
    pub fn state(&self) -> String {
        self.host.state()
    }

    /// How many changes of this entity were accepted. To read and to show.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.host.version()
    }

    /// What entered the visit: the same for every attempt of it.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// What the steps remember. Use an `Option` where the machine has no default.
    ///
    /// # Errors
    /// A permanent failure with the code `data-shape` if it is no such type.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let text = self.host.data();
        decode("data", text.as_deref().unwrap_or("null"))
    }

    /// What clients want; none before the first apply.
    ///
    /// # Errors
    /// A permanent failure with the code `desired-shape` if it is no such type.
    pub fn desired<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.host.desired().map(|text| decode("desired", &text)).transpose()
    }

    /// What steps promised to clients; none before the first.
    ///
    /// # Errors
    /// A permanent failure with the code `outputs-shape` if it is no such type.
    pub fn outputs<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.host.outputs().map(|text| decode("outputs", &text)).transpose()
    }

    /// Whether somebody asked for this execution to be cancelled. The step is not stopped by
    /// that: it decides where to stop safely.
    #[must_use]
    pub fn cancel_requested(&self) -> bool {
        self.host.cancel_requested()
    }

    /// Real time left before the host ends this attempt. An accepted save does not lengthen it;
    /// it only starts the idle deadline anew.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        Duration::from_millis(self.host.deadline_ms())
    }

    /// Reads the entity again, after a `conflict`.
    ///
    /// # Errors
    /// Rejections: fenced, spent, unavailable.
    pub fn reload(&self) -> Result<(), Rejection> {
        self.host.reload()
    }

    /// Puts a checkpoint on record: a later attempt of this visit begins from here.
    ///
    /// ```
    /// # use interlock_sdk::{checkpoint, Entity, Failure};
    /// # fn step(pool: &Entity, data: &[u32]) -> Result<(), Failure> {
    /// pool.save(checkpoint().data(&data))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Rejections: fenced, spent, conflict, guard, denied, invalid, limit, unavailable.
    pub fn save(&self, checkpoint: Draft<Stay>) -> Result<(), Rejection> {
        self.host.save(checkpoint.finish()?)
    }

    /// Asks for the next state. Accepted means durable, and this attempt is over: return the
    /// [`Done`]. One is accepted per attempt.
    ///
    /// # Errors
    /// Rejections: fenced, spent, conflict, not-allowed, guard, denied, invalid, limit,
    /// unavailable. Nothing has changed then, and the step may ask for something else.
    pub fn transition(&self, change: Draft<Move>) -> Result<Done, Rejection> {
        self.host.transition(change.finish()?)?;
        Ok(Done(()))
    }

    /// Takes a lease for this execution, for as long as the machine declares; never waits. One that it has, from a
    /// step before or since its state needs it, is renewed and keeps its token.
    ///
    /// # Errors
    /// Rejections: `not-found` for one that the machine was not granted, `busy` with who has it, fenced, spent,
    /// invalid, limit, unavailable.
    pub fn lease(&self, name: &str) -> Result<Lease, Rejection> {
        self.host.acquire(name, None).map(Lease)
    }

    /// The same for so long; part of a millisecond counts as a whole one.
    ///
    /// # Errors
    /// As [`Entity::lease`]; `limit` past what the machine declares as the longest.
    pub fn lease_for(&self, name: &str, ttl: Duration) -> Result<Lease, Rejection> {
        self.host.acquire(name, Some(whole_ms(ttl))).map(Lease)
    }

    /// A timer that the state declares with `due = "step"`. It is staged for the next commit: a transition sets
    /// timers of the visit it enters, a save those of this one. A refused commit and a reload drop what was staged.
    ///
    /// ```
    /// # use interlock_sdk::{to, Done, Entity, Failure};
    /// # use std::time::Duration;
    /// # fn step(order: &Entity) -> Result<Done, Failure> {
    /// order.timer("reminder").after(Duration::from_secs(3_600))?;
    /// Ok(order.transition(to("waiting"))?)
    /// # }
    /// ```
    pub fn timer<'a>(&'a self, name: &'a str) -> Timer<'a> {
        Timer { entity: self, name }
    }

    /// A request to a target that the machine declares, made by the host once the next commit is durable: at least
    /// once, under one `Idempotency-Key`, with this attempt's fencing token. A refused commit and a reload drop it.
    ///
    /// ```
    /// # use interlock_sdk::{to, Done, Entity, Failure};
    /// # fn step(order: &Entity) -> Result<Done, Failure> {
    /// order.effect("tickets").param("project", "atlas").body(&serde_json::json!({ "title": order.key() })).request()?;
    /// Ok(order.transition(to("waiting"))?)
    /// # }
    /// ```
    pub fn effect(&self, target: &str) -> Effect<'_> {
        let request = Request { target: target.to_owned(), ..Request::default() };
        Effect { entity: self, request, body: Ok(()) }
    }

    /// A table that the machine names, for [what it grants](crate::rows).
    ///
    /// ```
    /// # use interlock_sdk::{to, Done, Entity, Failure};
    /// # fn step(worker: &Entity) -> Result<Done, Failure> {
    /// let first = worker.rows("events").upsert(&*worker.event().id, &serde_json::json!({})).now()?.inserted;
    /// Ok(worker.transition(to(if first { "handling" } else { "idle" }))?)
    /// # }
    /// ```
    #[must_use]
    pub fn rows<'a>(&'a self, table: &'a str) -> Rows<'a> {
        Rows { entity: self, table }
    }

    /// Several operations on rows, of one table or several, all of them or none, at once.
    pub fn transact(&self) -> Transaction<'_> {
        Transaction { entity: self, operations: Ok(Vec::new()), requirements: Vec::new(), named: None }
    }

    /// A condition on an entity of this machine, or of one that its manifest names in `peers`: `machine/key`.
    ///
    /// ```
    /// # use interlock_sdk::{field, to, Done, Entity, Failure};
    /// # fn step(deploy: &Entity) -> Result<Done, Failure> {
    /// deploy.require("cluster/eu-1").state("ready").only_if(field("data.free").ge(4)).stage()?;
    /// Ok(deploy.transition(to("placed"))?)
    /// # }
    /// ```
    pub fn require(&self, entity: impl Into<String>) -> EntityCondition<'_> {
        let requirement = EntityRequirement { entity: entity.into(), ..EntityRequirement::default() };
        EntityCondition { entity: self, requirement }
    }

    /// What the newest accepted save or transition answered to the operations on rows that it carried, in their order.
    #[must_use]
    pub fn row_answers(&self) -> Vec<Answer> {
        self.host.row_answers()
    }

    pub(crate) fn host(&self) -> &Handle {
        &self.host
    }

    pub(crate) fn effect_request(&self, request: Request) -> Result<(), Rejection> {
        self.host.effect_request(request)
    }

    pub(crate) fn timer_after(&self, name: &str, ms: u64) -> Result<(), Rejection> {
        self.host.timer_after(name, ms)
    }

    pub(crate) fn timer_at(&self, name: &str, unix_ms: i64) -> Result<(), Rejection> {
        self.host.timer_at(name, unix_ms)
    }

    pub(crate) fn timer_cancel(&self, name: &str) -> Result<(), Rejection> {
        self.host.timer_cancel(name)
    }

    pub(crate) fn token(&self) -> u64 {
        self.host.token()
    }

    pub(crate) fn still_holds(&self) -> bool {
        self.host.still_holds()
    }
}

impl fmt::Debug for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entity").field("id", &self.id()).field("event", &self.event).finish_non_exhaustive()
    }
}

fn decode<T: DeserializeOwned>(document: &str, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|e| {
        let reason = format!("{document} is not what the step expects: {e}");
        Failure::permanent(reason).code(format!("{document}-shape"))
    })
}
