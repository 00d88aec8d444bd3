//! Tables: rows that entities and clients share, under the rights that their declarations grant.
//!
//! Each request is one transaction of the host's: a guard is judged where the change is made, and no row is taken
//! twice. What is asked [at once](Op::now) stays done whatever becomes of the attempt, and its answer is remembered
//! for the attempts after it; what is [staged](Op::stage) is done with the next accepted save or transition, or not
//! at all.
//!
//! ```
//! use interlock_sdk::rows::Updated;
//! use interlock_sdk::{Done, Entity, Failure, field, from, to};
//! # fn send(_job: &serde_json::Value) {}
//!
//! fn work(worker: &Entity) -> Result<Done, Failure> {
//!     let jobs = worker.rows("jobs");
//!     // Nobody else has these, and they are this execution's until their status changes.
//!     let taken = jobs.claim().limit(5).now()?;
//!     for job in &taken.rows {
//!         send(&job.value()?);
//!         let mine = field("claimed_by").eq(from("execution"));
//!         match jobs.update(&*job.key).only_if(mine).set("status", "done").now()? {
//!             Updated::Changed(_) => {}
//!             Updated::Unmatched(miss) => interlock_sdk::log::warn!("{} is somebody else's: {:?}", miss.key, miss.guard),
//!         }
//!     }
//!     // Counted in the transaction of the transition: once, or not at all.
//!     worker.rows("counters").update("done").increment("n", taken.rows.len() as u64).must().stage()?;
//!     Ok(worker.transition(to("idle"))?)
//! }
//! # fn main() {}
//! ```

pub use crate::row::{
    Action, Answer, Claimed, Claiming, Deleted, Deleting, EntityRequirement, Expected, Getting, Got, Miss, Operation,
    Order, OrderBy, Page, Putting, Querying, Requirement, Row, RowRequirement, Updated, Updating, Upserting, Written,
};

use crate::change::unencodable;
// In a component the host is its imports, by their type: what no step calls is no import then.
#[cfg(target_arch = "wasm32")]
use crate::Host;
use crate::{Entity, Filter, Mutation, Rejection, Value};
use serde::Serialize;

/// A table, as this attempt may use it. Made by [`Entity::rows`].
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub(crate) entity: &'a Entity,
    pub(crate) table: &'a str,
}

impl<'a> Rows<'a> {
    /// One row by its key.
    pub fn get(&self, key: impl Into<Value>) -> Op<'a, Getting> {
        self.op(Getting { key: key.into(), fields: Vec::new() })
    }

    /// Writes a whole row, whatever is there, unless it says what it [expects](Op::if_absent).
    pub fn put(&self, key: impl Into<Value>, value: &impl Serialize) -> Op<'a, Putting> {
        let (value, problem) = encode("value", value);
        let what = Putting { key: key.into(), value, fill: Vec::new(), expect: None, fields: Vec::new() };
        Op { problem, ..self.op(what) }
    }

    /// Changes one row if a guard holds; never makes one.
    pub fn update(&self, key: impl Into<Value>) -> Op<'a, Updating> {
        let (filter, set, fields) = (Filter::default(), Vec::new(), Vec::new());
        self.op(Updating { key: key.into(), filter, set, fields, must: false })
    }

    /// Inserts the row if it is absent, changes it otherwise: not at all, if no change is named.
    pub fn upsert(&self, key: impl Into<Value>, insert: &impl Serialize) -> Op<'a, Upserting> {
        let (insert, problem) = encode("insert", insert);
        let what = Upserting { key: key.into(), insert, fill: Vec::new(), set: Vec::new(), fields: Vec::new() };
        Op { problem, ..self.op(what) }
    }

    /// Takes rows that nobody else takes: as the table declares, or as it is [said](Op::matching).
    pub fn claim(&self) -> Op<'a, Claiming> {
        self.op(Claiming::default())
    }

    /// Removes one row if a guard holds.
    pub fn delete(&self, key: impl Into<Value>) -> Op<'a, Deleting> {
        self.op(Deleting { key: key.into(), filter: Filter::default(), must: false })
    }

    /// Reads rows by filter, from a snapshot.
    pub fn query(&self) -> Query<'a> {
        Query { entity: self.entity, table: self.table.to_owned(), query: Querying::default() }
    }

    /// A condition: the row is there, unless it is to be [absent](RowCondition::absent).
    pub fn require(&self, key: impl Into<Value>) -> RowCondition<'a> {
        let (table, key) = (self.table.to_owned(), key.into());
        let requirement = RowRequirement { table, key, present: true, filter: Filter::default() };
        RowCondition { entity: self.entity, requirement }
    }

    fn op<A>(&self, what: A) -> Op<'a, A> {
        Op { entity: self.entity, table: self.table.to_owned(), what, named: None, problem: None }
    }
}

fn encode(subject: &str, value: &impl Serialize) -> (String, Option<Rejection>) {
    match serde_json::to_string(value) {
        Ok(text) => (text, None),
        Err(why) => (String::new(), Some(unencodable(subject, &why))),
    }
}

/// An operation on a table: nothing is asked until [`Op::now`] or [`Op::stage`] does, or a [`Transaction`] takes it.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked until `now` or `stage` does"]
pub struct Op<'a, A> {
    entity: &'a Entity,
    table: String,
    what: A,
    named: Option<String>,
    problem: Option<Rejection>,
}

/// What can be done to a table, and what it is answered.
pub trait Asks: Sized {
    /// The answer.
    type Answer;
    #[doc(hidden)]
    fn ask(self, entity: &Entity, table: &str, op: Option<&str>) -> Result<Self::Answer, Rejection>;
    #[doc(hidden)]
    fn action(self) -> Action;
}

macro_rules! asks {
    ($($what:ident $answer:ty, $action:ident: $ask:expr;)+) => {$(
        impl Asks for $what {
            type Answer = $answer;
            fn ask(self, entity: &Entity, table: &str, op: Option<&str>) -> Result<$answer, Rejection> {
                let ask: fn(&Entity, &str, $what, Option<&str>) -> Result<$answer, Rejection> = $ask;
                ask(entity, table, self, op)
            }
            fn action(self) -> Action {
                Action::$action(self)
            }
        }
    )+};
}

asks! {
    Getting Option<Row>, Get: |entity, table, what, _| entity.host().row_get(table, what).map(|got| got.row);
    Putting Written, Put: |entity, table, what, op| entity.host().row_put(table, what, op);
    Updating Updated, Update: |entity, table, what, op| entity.host().row_update(table, what, op);
    Upserting Written, Upsert: |entity, table, what, op| entity.host().row_upsert(table, what, op);
    Claiming Claimed, Claim: |entity, table, what, op| entity.host().row_claim(table, what, op);
    Deleting Deleted, Delete: |entity, table, what, op| entity.host().row_delete(table, what, op);
}

impl<A: Asks> Op<'_, A> {
    /// The step's own name for what it asks at once: whoever asks again under it gets the same answer, until the next
    /// accepted save or transition. Without it the request itself is its name, and how often it was asked.
    pub fn named(mut self, op: impl Into<String>) -> Self {
        self.named = Some(op.into());
        self
    }

    /// Does it at once, whatever becomes of this attempt, and remembers the answer for those after it.
    ///
    /// # Errors
    /// Rejections: fenced, spent, invalid, not-found, denied, guard, conflict, limit, unavailable. Nothing has
    /// changed then; after `unavailable` the same may be asked again.
    pub fn now(self) -> Result<A::Answer, Rejection> {
        match self.problem {
            Some(problem) => Err(problem),
            None => self.what.ask(self.entity, &self.table, self.named.as_deref()),
        }
    }

    /// Stages it: the next accepted save or transition does it in its one transaction, and
    /// [`Entity::row_answers`] has its answer then.
    ///
    /// # Errors
    /// Rejections: fenced, spent, invalid, limit. Whether it may be done is judged by the commit.
    pub fn stage(self) -> Result<(), Rejection> {
        let entity = self.entity;
        entity.host().row_stage(self.operation()?)
    }

    fn operation(self) -> Result<Operation, Rejection> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(Operation { table: self.table, what: self.what.action() }),
        }
    }
}

macro_rules! fields {
    ($($what:ty)+) => {$(
        impl Op<'_, $what> {
            /// Only these top-level fields of the value are answered.
            pub fn fields<F: Into<String>>(mut self, fields: impl IntoIterator<Item = F>) -> Self {
                self.what.fields = fields.into_iter().map(F::into).collect();
                self
            }
        }
    )+};
}
fields!(Getting Putting Updating Upserting Claiming);

macro_rules! changes {
    ($($what:ident |$self:ident| $set:expr;)+) => {$(
        impl Op<'_, $what> {
            /// Puts a value at a path of the row.
            pub fn set(self, field: impl Into<String>, value: impl Into<Value>) -> Self {
                self.mutation(Mutation::Set(field.into(), value.into()))
            }

            /// Adds a number to a field; a missing one starts from 0.
            pub fn increment(self, field: impl Into<String>, by: impl Into<Value>) -> Self {
                self.mutation(Mutation::Increment(field.into(), by.into()))
            }

            /// Takes a field away.
            pub fn remove(self, field: impl Into<String>) -> Self {
                self.mutation(Mutation::Remove(field.into()))
            }

            /// One more change; they are applied in order.
            pub fn mutation(self, mutation: Mutation) -> Self {
                let mut $self = self;
                $set.push(mutation);
                $self
            }
        }
    )+};
}
changes! {
    Updating |this| this.what.set;
    Upserting |this| this.what.set;
    Claiming |this| this.what.set.get_or_insert_default();
}

macro_rules! fills {
    ($($what:ident)+) => {$(
        impl Op<'_, $what> {
            /// Puts into the new value what only the transaction knows: `fill("at", from("now"))`.
            pub fn fill(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
                self.what.fill.push(Mutation::Set(field.into(), value.into()));
                self
            }
        }
    )+};
}
fills!(Putting Upserting);

macro_rules! guards {
    ($($what:ident)+) => {$(
        impl Op<'_, $what> {
            /// Only if this holds of the row; said twice, both have to.
            pub fn only_if(mut self, filter: Filter) -> Self {
                self.what.filter = self.what.filter.and(filter);
                self
            }

            /// If it matches nothing the whole request is refused: `guard`, with the code `require`.
            pub fn must(mut self) -> Self {
                self.what.must = true;
                self
            }
        }
    )+};
}
guards!(Updating Deleting);

impl Op<'_, Putting> {
    /// Only if there is no such row; a `conflict` otherwise.
    pub fn if_absent(mut self) -> Self {
        self.what.expect = Some(Expected::Absent);
        self
    }

    /// Only if the row is as it was when it was answered; a `conflict` otherwise.
    pub fn if_still(mut self, row: &Row) -> Self {
        self.what.expect = Some(Expected::Etag(row.etag.clone()));
        self
    }
}

impl Op<'_, Claiming> {
    /// Only rows of which this holds, instead of those that the table declares; said twice, both have to.
    pub fn matching(mut self, filter: Filter) -> Self {
        self.what.filter = Some(self.what.filter.unwrap_or_default().and(filter));
        self
    }

    /// In this order, instead of first in, first out.
    pub fn order(mut self, order: Order) -> Self {
        self.what.order = Some(order);
        self
    }

    /// At most so many, up to 1,000; 10 if it does not say.
    pub fn limit(mut self, limit: u32) -> Self {
        self.what.limit = Some(limit);
        self
    }

    /// Removes the rows instead of marking them.
    pub fn and_delete(mut self) -> Self {
        self.what.delete = true;
        self
    }

    /// If it takes none the whole request is refused: `guard`, with the code `require`.
    pub fn must(mut self) -> Self {
        self.what.must = true;
        self
    }
}

impl Order {
    /// By their last change, the one longest ago first.
    #[must_use]
    pub fn updated() -> Order {
        Order { by: OrderBy::Updated, descending: false }
    }

    /// By a declared index.
    #[must_use]
    pub fn index(name: impl Into<String>) -> Order {
        Order { by: OrderBy::Index(name.into()), descending: false }
    }

    /// The other way round: `Order::default().descending()` is last in, first out.
    #[must_use]
    pub fn descending(mut self) -> Order {
        self.descending = !self.descending;
        self
    }
}

/// Rows to be read. Made by [`Rows::query`].
#[derive(Clone, Debug)]
#[must_use = "nothing is read until `now` does"]
pub struct Query<'a> {
    entity: &'a Entity,
    table: String,
    query: Querying,
}

impl Query<'_> {
    /// Only rows of which this holds; said twice, both have to.
    pub fn matching(mut self, filter: Filter) -> Self {
        self.query.filter = self.query.filter.and(filter);
        self
    }

    /// In this order, instead of that of their insertion.
    pub fn order(mut self, order: Order) -> Self {
        self.query.order = Some(order);
        self
    }

    /// At most so many, up to 1,000; 10 if it does not say.
    pub fn limit(mut self, limit: u32) -> Self {
        self.query.limit = Some(limit);
        self
    }

    /// The rows behind an earlier page of the same query: its `next`.
    pub fn after(mut self, next: impl Into<String>) -> Self {
        self.query.after = Some(next.into());
        self
    }

    /// Only these top-level fields of the values are answered.
    pub fn fields<F: Into<String>>(mut self, fields: impl IntoIterator<Item = F>) -> Self {
        self.query.fields = fields.into_iter().map(F::into).collect();
        self
    }

    /// Reads a page of them.
    ///
    /// # Errors
    /// Rejections: fenced, spent, invalid, not-found, denied, limit, unavailable.
    pub fn now(self) -> Result<Page, Rejection> {
        self.entity.host().row_query(&self.table, self.query)
    }
}

/// A condition on a row. Made by [`Rows::require`].
#[derive(Clone, Debug)]
#[must_use = "nothing is required until it is staged, or a transaction takes it"]
pub struct RowCondition<'a> {
    entity: &'a Entity,
    requirement: RowRequirement,
}

impl RowCondition<'_> {
    /// There is to be no such row.
    pub fn absent(mut self) -> Self {
        self.requirement.present = false;
        self
    }

    /// This is to hold of it; said twice, both have to.
    pub fn only_if(mut self, filter: Filter) -> Self {
        self.requirement.filter = self.requirement.filter.and(filter);
        self
    }

    /// Stages it: the next save or transition is refused as `guard`, with the code `require`, if it does not hold.
    ///
    /// # Errors
    /// Rejections: fenced, spent, invalid, limit.
    pub fn stage(self) -> Result<(), Rejection> {
        self.entity.host().row_require(self.requirement)
    }
}

/// A condition on an entity. Made by [`Entity::require`].
#[derive(Clone, Debug)]
#[must_use = "nothing is required until it is staged, or a transaction takes it"]
pub struct EntityCondition<'a> {
    pub(crate) entity: &'a Entity,
    pub(crate) requirement: EntityRequirement,
}

impl EntityCondition<'_> {
    /// It is to be in this state; said several times, in one of them.
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.requirement.states.push(state.into());
        self
    }

    /// This is to hold of its documents; said twice, both have to.
    pub fn only_if(mut self, filter: Filter) -> Self {
        self.requirement.filter = self.requirement.filter.and(filter);
        self
    }

    /// Stages it: the next save or transition is refused as `guard`, with the code `require`, if it does not hold.
    ///
    /// # Errors
    /// Rejections: fenced, spent, invalid, limit.
    pub fn stage(self) -> Result<(), Rejection> {
        self.entity.host().entity_require(self.requirement)
    }
}

impl From<RowCondition<'_>> for Requirement {
    fn from(condition: RowCondition<'_>) -> Requirement {
        Requirement::Row(condition.requirement)
    }
}

impl From<EntityCondition<'_>> for Requirement {
    fn from(condition: EntityCondition<'_>) -> Requirement {
        Requirement::Entity(condition.requirement)
    }
}

/// Several operations: all of them or none. Made by [`Entity::transact`].
///
/// ```
/// # use interlock_sdk::{Entity, Rejection, field};
/// # fn step(teller: &Entity) -> Result<(), Rejection> {
/// let accounts = teller.rows("accounts");
/// teller
///     .transact()
///     .and(accounts.update("a").only_if(field("balance").ge(10)).increment("balance", -10).must())
///     .and(accounts.update("b").increment("balance", 10).must())
///     .now()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is asked until `now` does"]
pub struct Transaction<'a> {
    pub(crate) entity: &'a Entity,
    pub(crate) operations: Result<Vec<Operation>, Rejection>,
    pub(crate) requirements: Vec<Requirement>,
    pub(crate) named: Option<String>,
}

impl Transaction<'_> {
    /// One operation more; each sees what those before it did.
    pub fn and<A: Asks>(mut self, op: Op<'_, A>) -> Self {
        self.operations = self.operations.and_then(|mut operations| {
            operations.push(op.operation()?);
            Ok(operations)
        });
        self
    }

    /// A condition, judged before any of the operations.
    pub fn require(mut self, condition: impl Into<Requirement>) -> Self {
        self.requirements.push(condition.into());
        self
    }

    /// As [`Op::named`].
    pub fn named(mut self, op: impl Into<String>) -> Self {
        self.named = Some(op.into());
        self
    }

    /// Does all of them at once, as [`Op::now`]; their answers, in order.
    ///
    /// # Errors
    /// As [`Op::now`].
    pub fn now(self) -> Result<Vec<Answer>, Rejection> {
        self.entity.host().row_transact(self.operations?, self.requirements, self.named.as_deref())
    }
}
