//! Tables and their declarations.

use super::{Finding, RowEntryView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A table to declare. The same manifest again changes nothing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclareRequest {
    /// The table's manifest, as TOML text.
    pub manifest: String,
}

/// A declaration is in force, or would be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Declared {
    /// The table.
    pub table: String,
    /// The number of the declaration in force; null of a table that is not there and was only checked.
    pub revision: Option<u64>,
    /// Whether this request made it so: false is a repetition, or a check.
    pub new: bool,
    /// Who answers for it.
    pub owner: String,
    /// Digest of the manifest.
    pub digest: String,
    /// What the check warns of.
    pub warnings: Vec<Finding>,
}

/// A table goes: nothing is asked of it from now on, and its rows are removed a few at a time.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Dropping {
    /// The table.
    pub table: String,
    /// Rows that were there when this was asked.
    pub rows: u64,
}

/// One page of tables, ordered by name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TablePage {
    /// At most `limit` of them.
    pub tables: Vec<TableSummary>,
    /// Pass this as `after` for the next page; null at the end.
    pub next: Option<String>,
}

/// A table in a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TableSummary {
    /// Its name.
    pub table: String,
    /// Who answers for it.
    pub owner: String,
    /// Its rows; those count whose time to live is over, until they are swept.
    pub rows: u64,
    /// Those that are claimed.
    pub claimed: u64,
    /// The number of the declaration in force.
    pub revision: u64,
    /// When that was declared.
    pub declared: String,
    /// Whether it is being dropped.
    pub dropping: bool,
}

/// One table: its declaration, its indexes, who may do what, what became of its rows.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TableView {
    /// What a list shows of it.
    #[serde(flatten)]
    pub summary: TableSummary,
    /// When it was declared first.
    pub created: String,
    /// Digest of the declaration in force.
    pub digest: String,
    /// Declared indexes, and those of earlier declarations that are still being removed.
    pub indexes: Vec<IndexView>,
    /// Whether rows are still looked at for a later declaration's claims and time to live.
    pub catching_up: bool,
    /// What a claim means.
    pub claim: ClaimView,
    /// How long a row lives; null is for ever.
    pub ttl: Option<TtlView>,
    /// Who may do what; whoever is not named may do nothing.
    pub access: AccessView,
    /// What became of claims and expired rows, newest first.
    pub entries: Vec<RowEntryView>,
    /// The declaration in force, as it was written.
    pub manifest: String,
}

/// A declared index.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct IndexView {
    /// Its name.
    pub name: String,
    /// The fields it orders by.
    pub fields: Vec<String>,
    /// What orders rows whose fields are the same: `created` or `updated`.
    pub tie: String,
    /// Whether it can be used.
    pub stage: StageView,
    /// While it is built: rows that it has, of the table's `rows`.
    pub done: Option<u64>,
}

/// Whether an index can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StageView {
    /// It has every row.
    Ready,
    /// It does not have every row yet.
    Building,
    /// It is no longer declared.
    Dropping,
}

/// What a claim means in a table.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClaimView {
    /// The field that says how a row stands.
    pub status: String,
    /// What stands there while a row is claimed.
    pub held: super::Document,
    /// What becomes of claims when their execution ends: `keep` or `release`.
    pub on_end: String,
    /// Takes back what was claimed too long ago.
    pub reaper: Option<ReaperView>,
}

/// Takes back what was claimed too long ago.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReaperView {
    /// How long a claim may last, in ms.
    pub after_ms: u64,
    /// How often a row is claimed before it is given up; null is for ever.
    pub attempts: Option<u32>,
}

/// How long a row lives.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TtlView {
    /// At least so long, in ms.
    pub after_ms: u64,
    /// From its `insert`, or from its last `change`.
    pub from: String,
}

/// Who may do what.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AccessView {
    /// What clients may do.
    pub clients: Vec<String>,
    /// What the steps of machines may do.
    pub machines: BTreeMap<String, Vec<String>>,
}
