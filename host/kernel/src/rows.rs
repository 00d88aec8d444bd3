//! Requests on rows and their answers: what clients, steps and an entity's transition may ask of tables.

use crate::doc::{Digest, Doc};
use crate::ids::{EntityId, EventId, Name, RowKey, TableName};
use crate::time::WallTime;
use crate::value::{Filter, Mutation, Value};
use serde::{Deserialize, Serialize};

/// Several operations, decided and committed in one transaction; each sees what those before it did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowsAsk {
    /// All of these must hold, or nothing is done.
    pub require: Vec<Require>,
    /// The operations, in order.
    pub ops: Vec<RowOp>,
}

/// A condition on something else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Require {
    /// On a row.
    Row {
        /// The table.
        table: TableName,
        /// The row.
        key: Value,
        /// Whether it is to be there.
        present: bool,
        /// What holds of it, if it is.
        filter: Filter,
    },
    /// On an entity.
    Entity {
        /// The entity.
        entity: EntityId,
        /// It is in one of these; none means any.
        states: Vec<Name>,
        /// What holds of its desired, data and outputs.
        filter: Filter,
    },
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowOp {
    /// On this table.
    pub table: TableName,
    /// What.
    pub what: RowAsk,
    /// Top-level fields of the value to answer with; none means all of it.
    pub fields: Vec<String>,
    /// Refuses the whole request if it matches nothing.
    pub must: bool,
}

/// What is asked of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RowAsk {
    /// The row as it is in this transaction.
    Get {
        /// The row.
        key: Value,
    },
    /// Writes the whole row.
    Put {
        /// The row.
        key: Value,
        /// Its value.
        value: Doc,
        /// Applied to that: values that only the transaction knows.
        fill: Vec<Mutation>,
        /// What is there now.
        expect: Option<Found>,
    },
    /// Changes one row if a guard holds; never creates it.
    Update {
        /// The row.
        key: Value,
        /// The guard.
        filter: Filter,
        /// The changes; at least one.
        set: Vec<Mutation>,
    },
    /// Inserts the row if it is absent, changes it otherwise.
    Upsert {
        /// The row.
        key: Value,
        /// Its value if it is absent.
        insert: Doc,
        /// Applied to that.
        fill: Vec<Mutation>,
        /// The changes if it is there; none leaves it alone.
        set: Vec<Mutation>,
    },
    /// Takes rows that nobody else takes.
    Claim {
        /// Which; the table's own filter otherwise.
        filter: Option<Filter>,
        /// How they are marked; as the table says otherwise.
        set: Option<Vec<Mutation>>,
        /// In which order.
        order: Order,
        /// At most so many.
        limit: u32,
        /// Removes them.
        delete: bool,
    },
    /// Removes one row if a guard holds.
    Delete {
        /// The row.
        key: Value,
        /// The guard.
        filter: Filter,
    },
}

/// What a put expects to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// No row.
    Absent,
    /// A row of this version.
    Version(u64),
}

/// The order in which rows are taken or shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// By what.
    pub by: OrderBy,
    /// The last first.
    pub descending: bool,
}

/// What orders rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderBy {
    /// The number of their insertion.
    #[default]
    Created,
    /// The number of their last change.
    Updated,
    /// A declared index: its fields, without those that the filter fixes.
    Index(Name),
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientRows {
    /// What.
    pub ask: RowsAsk,
    /// What the client calls itself where it claims.
    pub label: String,
    /// Answered the same if it is asked again under this id.
    pub id: Option<EventId>,
}

/// A request of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRows {
    /// What.
    pub ask: RowsAsk,
    /// Answered the same if a later attempt of the visit asks again under this name.
    pub memo: MemoName,
}

/// What a remembered answer is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoName {
    /// The request itself, and how often this attempt has asked it before.
    Asked(u32),
    /// The step's own name for it.
    Named(String),
}

/// Reads rows by filter, on a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryAsk {
    /// The table.
    pub table: TableName,
    /// Which rows.
    pub filter: Filter,
    /// In which order.
    pub order: Order,
    /// At most so many.
    pub limit: u32,
    /// Where an earlier answer ended that is continued: its [`QueryAnswer::next`].
    pub after: Option<String>,
    /// Top-level fields of the values; none means all.
    pub fields: Vec<String>,
}

/// Who reads rows.
#[derive(Clone, Copy, Debug)]
pub enum Reader<'a> {
    /// A client, by what it calls itself.
    Client(&'a str),
    /// A step.
    Step(&'a crate::view::Claim),
}

/// The rows that a query found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryAnswer {
    /// The rows, in order.
    pub rows: Vec<RowShown>,
    /// Where to go on, if there may be more behind the last of them.
    pub next: Option<String>,
}

/// A row as it is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowShown {
    /// Its key.
    pub key: RowKey,
    /// Its value, or the fields asked for.
    pub value: Doc,
    /// The number of its last change: it grows, and comes back for no other content.
    pub version: u64,
    /// When it was inserted.
    pub created: WallTime,
    /// When it was changed last.
    pub updated: WallTime,
    /// How often it was claimed.
    pub claims: u32,
    /// Who has it, if it is claimed.
    pub claimed_by: Option<String>,
}

/// The answer to one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RowAnswer {
    /// Of a get.
    Got {
        /// The key that was asked for.
        key: RowKey,
        /// The row, if there is one.
        row: Option<RowShown>,
    },
    /// Of a put.
    Put {
        /// Whether it is new.
        inserted: bool,
        /// The row.
        row: RowShown,
    },
    /// Of an update.
    Updated {
        /// The key that was asked for.
        key: RowKey,
        /// The changed row; none if nothing was changed.
        row: Option<RowShown>,
        /// Why nothing was changed.
        unmatched: Option<Unmatched>,
    },
    /// Of an upsert.
    Upserted {
        /// Whether it is new.
        inserted: bool,
        /// The row.
        row: RowShown,
    },
    /// Of a claim.
    Claimed {
        /// The rows this claim has, in order.
        rows: Vec<RowShown>,
        /// Whether it was cut by the bound on bytes, not by its limit.
        more: bool,
        /// Rows that an earlier answer of the same claim had and somebody else has or is done with by now.
        lost: Vec<RowKey>,
    },
    /// Of a delete.
    Deleted {
        /// The key that was asked for.
        key: RowKey,
        /// Whether there was one.
        deleted: bool,
        /// Why nothing was deleted.
        unmatched: Option<Unmatched>,
    },
}

/// Why an operation changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unmatched {
    /// There is no such row.
    Absent,
    /// The guard does not hold: the comparison that failed, without what stood there.
    Guard(String),
}

/// See [`Verb::Declare`](crate::command::Verb::Declare).
#[derive(Clone, Debug)]
pub struct Declare {
    /// The declaration, checked.
    pub table: std::sync::Arc<crate::table::Table>,
    /// Its digest, as written.
    pub digest: Digest,
    /// As written.
    pub source: String,
}
