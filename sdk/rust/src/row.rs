//! Operations on rows as a host gets them, and its answers. Documents are JSON text; the words are those of
//! `wit/rows.wit`, which says what each of them means.

use crate::{Failure, Filter, Mutation, Value};
use serde::de::DeserializeOwned;

/// A row as it stands behind the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its key.
    pub key: String,
    /// Its value as JSON text, or the fields asked for.
    pub value: String,
    /// Names this content of this row.
    pub etag: String,
    /// Milliseconds since 1970 when it was inserted.
    pub created_ms: u64,
    /// The same of its last change.
    pub updated_ms: u64,
    /// How often it was claimed.
    pub claims: u32,
    /// Who has claimed it and is not done with it.
    pub claimed_by: Option<String>,
}

impl Row {
    /// Its value.
    ///
    /// # Errors
    /// A permanent failure with the code `row-shape` if it is no such type.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(&self.value).map_err(|why| {
            Failure::permanent(format!("row {} is not what the step expects: {why}", self.key)).code("row-shape")
        })
    }
}

/// Why a row is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The key that was asked for.
    pub key: String,
    /// The comparison that did not hold; none if there is no such row.
    pub guard: Option<String>,
}

/// What orders rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OrderBy {
    /// Their insertion: first in, first out.
    #[default]
    Created,
    /// Their last change.
    Updated,
    /// A declared index.
    Index(String),
}

/// An order of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// By what.
    pub by: OrderBy,
    /// The last first.
    pub descending: bool,
}

/// See [`Rows::get`](super::Rows::get).
#[derive(Clone, Debug, PartialEq)]
pub struct Getting {
    /// The row.
    pub key: Value,
    /// Top-level fields of the value to answer with; none means all of it.
    pub fields: Vec<String>,
}

/// What is expected to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// No row.
    Absent,
    /// A row with this etag.
    Etag(String),
}

/// See [`Rows::put`](super::Rows::put).
#[derive(Clone, Debug, PartialEq)]
pub struct Putting {
    /// The row.
    pub key: Value,
    /// Its value.
    pub value: String,
    /// Applied to that.
    pub fill: Vec<Mutation>,
    /// What is there now; none writes whatever it is.
    pub expect: Option<Expected>,
    /// As in [`Getting`].
    pub fields: Vec<String>,
}

/// See [`Rows::update`](super::Rows::update).
#[derive(Clone, Debug, PartialEq)]
pub struct Updating {
    /// The row.
    pub key: Value,
    /// The guard.
    pub filter: Filter,
    /// The changes.
    pub set: Vec<Mutation>,
    /// As in [`Getting`].
    pub fields: Vec<String>,
    /// Refuses the whole request if it matches nothing.
    pub must: bool,
}

/// See [`Rows::upsert`](super::Rows::upsert).
#[derive(Clone, Debug, PartialEq)]
pub struct Upserting {
    /// The row.
    pub key: Value,
    /// Its value if it is absent.
    pub insert: String,
    /// Applied to that.
    pub fill: Vec<Mutation>,
    /// The changes if it is there.
    pub set: Vec<Mutation>,
    /// As in [`Getting`].
    pub fields: Vec<String>,
}

/// See [`Rows::claim`](super::Rows::claim).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claiming {
    /// Which; none takes what the table declares.
    pub filter: Option<Filter>,
    /// How they are marked; none marks them as the table declares.
    pub set: Option<Vec<Mutation>>,
    /// None takes the first inserted first.
    pub order: Option<Order>,
    /// At most so many; none takes 10.
    pub limit: Option<u32>,
    /// Removes them instead.
    pub delete: bool,
    /// As in [`Getting`].
    pub fields: Vec<String>,
    /// As in [`Updating`].
    pub must: bool,
}

/// See [`Rows::delete`](super::Rows::delete).
#[derive(Clone, Debug, PartialEq)]
pub struct Deleting {
    /// The row.
    pub key: Value,
    /// The guard.
    pub filter: Filter,
    /// As in [`Updating`].
    pub must: bool,
}

/// See [`Rows::query`](super::Rows::query).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Querying {
    /// Which.
    pub filter: Filter,
    /// None begins with the first inserted.
    pub order: Option<Order>,
    /// At most so many; none takes 10.
    pub limit: Option<u32>,
    /// The rows behind that.
    pub after: Option<String>,
    /// As in [`Getting`].
    pub fields: Vec<String>,
}

/// One of several operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The table.
    pub table: String,
    /// What is done to it.
    pub what: Action,
}

/// What is done to a table.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is what it holds")]
pub enum Action {
    Get(Getting),
    Put(Putting),
    Update(Updating),
    Upsert(Upserting),
    Claim(Claiming),
    Delete(Deleting),
}

/// A condition on a row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowRequirement {
    /// The table.
    pub table: String,
    /// The row.
    pub key: Value,
    /// Whether there is to be one.
    pub present: bool,
    /// What is to hold of it.
    pub filter: Filter,
}

/// A condition on an entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityRequirement {
    /// `machine/key`.
    pub entity: String,
    /// It is in one of these; none means any.
    pub states: Vec<String>,
    /// What is to hold of its documents.
    pub filter: Filter,
}

/// A condition on something else.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// On a row.
    Row(RowRequirement),
    /// On an entity.
    Entity(EntityRequirement),
}

/// What a get is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    /// The key that was asked for.
    pub key: String,
    /// None if there is no such row.
    pub row: Option<Row>,
}

/// What a put or an upsert is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Whether it is new.
    pub inserted: bool,
    /// The row.
    pub row: Row,
}

/// What an update is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Updated {
    /// The row, changed.
    Changed(Row),
    /// Nothing was changed.
    Unmatched(Miss),
}

impl Updated {
    /// The row, if it was changed.
    #[must_use]
    pub fn row(self) -> Option<Row> {
        match self {
            Updated::Changed(row) => Some(row),
            Updated::Unmatched(_) => None,
        }
    }
}

/// What a claim is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The rows that this claim has, in order.
    pub rows: Vec<Row>,
    /// Whether it was cut by the bound on bytes, not by its limit.
    pub more: bool,
    /// Keys of rows that an earlier answer of this claim had, and that it has no more.
    pub lost: Vec<String>,
}

/// What a delete is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The key of the row that is gone.
    Gone(String),
    /// Nothing was deleted.
    Unmatched(Miss),
}

impl Deleted {
    /// Whether a row is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Deleted::Gone(_))
    }
}

/// What a query is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// Where to go on, if there may be more.
    pub next: Option<String>,
}

/// What one of several operations is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what it holds")]
pub enum Answer {
    Got(Got),
    Put(Written),
    Updated(Updated),
    Upserted(Written),
    Claimed(Claimed),
    Deleted(Deleted),
}
