//! Requests on rows and their answers. `interlock-manifest` reads the former and writes the latter, for everybody who
//! speaks of rows; what stands here describes them.

use super::Document;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A change of one row if a guard holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct UpdateRequest {
    /// The row: text, a whole number as it is written, or `{"from": SOURCE}`.
    pub key: Value,
    /// The guard: see [`QueryRequest::filter`].
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<Value>,
    /// The changes, at least one: a list of `{field, operation, value}` in order, or an object of changes by path such
    /// as `{"status": "done", "tries": {"increment": 1}, "at": {"from": "now"}}`.
    pub set: Value,
    /// Fields of the value to answer with; all of it if not given.
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// Refuses the request if it matches nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub must: bool,
}

/// An insert, or a change of what is there.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct UpsertRequest {
    /// The row: text, a whole number as it is written, or `{"from": SOURCE}`.
    pub key: Value,
    /// Its value if it is absent.
    pub insert: Value,
    /// Changes of that value, as in `set`: for what only the transaction knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Value>,
    /// The changes if it is there; none leaves it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<Value>,
    /// Fields of the value to answer with; all of it if not given.
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
}

/// Rows to be taken, that nobody else takes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ClaimRequest {
    /// Which; as the table's declaration says if not given. See [`QueryRequest::filter`].
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<Value>,
    /// How they are marked; as the table's declaration says if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<Value>,
    /// `created` (first in, first out) if not given, `updated`, or an index; a `-` before it turns it round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// At most so many: 1 to 1,000, 10 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Removes what it takes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete: bool,
    /// Fields of the values to answer with; all if not given.
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// Refuses the request if it matches nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub must: bool,
}

/// Rows to be read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct QueryRequest {
    /// Which: a list of `{field, operator, value}`, `{"all": [...]}` or `{"any": [...]}` to any depth, or an object of
    /// values by path such as `{"status": "pending"}`. Operators are `eq`, `ne`, `gt`, `ge`, `lt`, `le`, `in`, `not-in`,
    /// `exists`, `contains` and `starts-with`; a value is JSON or `{"from": "now-5m"}`. Every row if not given.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<Value>,
    /// `created` if not given, `updated`, or an index; a `-` before it turns it round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// At most so many: 1 to 1,000, 100 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The `next` of an earlier answer to the same query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Fields of the values to answer with; all if not given.
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
}

/// Several operations in one transaction: all of them, or nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TransactRequest {
    /// What must hold, at most 32: `{"row": TABLE, "key", "where"}`, `{"absent": TABLE, "key"}` or
    /// `{"entity": "machine/key", "states", "where"}`.
    #[serde(default)]
    pub require: Vec<Value>,
    /// What is done, in order, at most 64. Each has its kind with the table under it, `{"update": TABLE, ...}` say, of
    /// `get`, `put`, `update`, `upsert`, `claim` and `delete`, and sees what those before it did.
    #[serde(default)]
    pub ops: Vec<Value>,
}

/// A row.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RowView {
    /// Its key.
    pub key: String,
    /// Its value, or the fields asked for.
    pub value: Document,
    /// The number of its last change: it grows, and comes back for no other content.
    pub version: u64,
    /// When it was inserted.
    pub created: String,
    /// When it was changed last.
    pub updated: String,
    /// How often it was claimed.
    pub claims: u32,
    /// Who has it, if it is claimed: an execution, or what a client calls itself.
    pub claimed_by: Option<String>,
    /// Since when; only where one row is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_since: Option<String>,
}

/// The answer to a put or an upsert.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RowWritten {
    /// Whether it is new.
    pub inserted: bool,
    /// Its key.
    pub key: String,
    /// Its value, or the fields asked for.
    pub value: Document,
    /// The number of this change.
    pub version: u64,
}

/// The answer to an update.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RowUpdated {
    /// Whether it was changed.
    pub updated: bool,
    /// The key that was asked for.
    pub key: String,
    /// Its value as it is now; null if nothing was changed.
    pub value: Option<Document>,
    /// The number of this change; null if nothing was changed.
    pub version: Option<u64>,
    /// Why nothing was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<UnmatchedView>,
    /// The comparison that failed, where the guard did not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
}

/// The answer to a delete.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RowDeleted {
    /// Whether there was one.
    pub deleted: bool,
    /// The key that was asked for.
    pub key: String,
    /// Why nothing was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<UnmatchedView>,
    /// The comparison that failed, where the guard did not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
}

/// Why an operation changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnmatchedView {
    /// There is no such row.
    Absent,
    /// The guard does not hold.
    Guard,
}

/// The answer to a claim.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RowsClaimed {
    /// The rows, in order; as they are now, if this was answered before.
    pub claimed: Vec<RowView>,
    /// How many.
    pub count: usize,
    /// Whether it was cut by the bound on bytes: there is more.
    pub more: bool,
    /// Rows of an earlier answer to the same request that somebody else has, or is done with.
    pub lost: Vec<String>,
}

/// The answer to a query.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RowPage {
    /// The rows, in order.
    pub rows: Vec<RowView>,
    /// How many.
    pub count: usize,
    /// Pass this as `after` for what comes next; null at the end.
    pub next: Option<String>,
}

/// The answers to several operations.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Transacted {
    /// In the order of the operations; each as its kind is answered.
    pub answers: Vec<Value>,
}
