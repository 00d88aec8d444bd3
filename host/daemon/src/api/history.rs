//! What is on record, and what is told as it happens.

use super::Document;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One page of an entity's history, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryPage {
    /// The entity.
    pub entity: String,
    /// The incarnation it is of.
    pub incarnation: u64,
    /// At most `limit` entries.
    pub entries: Vec<EntryView>,
    /// Pass this as `before` for older entries; null at the end.
    pub next: Option<u64>,
}

/// One entry: an accepted command, an attempt, or a fact that changed nothing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EntryView {
    /// From 1, without gaps.
    pub number: u64,
    /// The entity's version after it.
    pub version: u64,
    /// What happened, in one word: `created`, `event`, `queued`, `refused`, `applied`, `desired-changed`,
    /// `transition`, `saved`, `timer`, `begun`, `ended`, `failure-path`, `parked`, `unparked`, `killed`,
    /// `unlocked`, `leased`, `returned`, `lease-lost`, `awaits`, `deleted`, `effect-done`, `effect-fenced`,
    /// `effect-failed`, `effect-dropped`, `effect-retried`, `fact`.
    pub kind: String,
    /// What happened, in a few words for people.
    pub what: String,
    /// The event, step, timer or lease it is about.
    pub name: Option<String>,
    /// The state before.
    pub from: String,
    /// The state after.
    pub to: String,
    /// The execution's id.
    pub execution: Option<String>,
    /// The attempt's number in its visit.
    pub attempt: Option<u32>,
    /// The attempt's fencing token.
    pub token: Option<u64>,
    /// Who: `local`, `host`, or an execution's id.
    pub by: String,
    /// The revision that judged it.
    pub revision: u64,
    /// The event's id.
    pub event: Option<String>,
    /// When.
    pub at: String,
    /// The failure it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureView>,
    /// What changed of `desired`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<ChangedView>,
    /// What changed of `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ChangedView>,
    /// What changed of `outputs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<ChangedView>,
    /// The hash of the entry before it: the chain.
    pub previous: String,
}

/// A document's change.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedView {
    /// Digest of the new canonical text; null if the document is gone.
    pub digest: Option<String>,
    /// The document, if it is small.
    pub value: Option<Document>,
}

/// Why an attempt came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureView {
    /// Whether trying again is useless.
    pub permanent: bool,
    /// One word for programs.
    pub code: String,
    /// For people.
    pub reason: String,
    /// When the next attempt begins, in ms from the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_ms: Option<u64>,
}

/// One thing that became of a lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseEntryView {
    /// From 1, without gaps while the lease is remembered.
    pub number: u64,
    /// `acquired`, `contended`, `extended`, `released`, `expired`, `fenced` or `reconciled`.
    pub what: String,
    /// The execution, or what its client calls itself.
    pub owner: String,
    /// The token it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// More, for people.
    pub note: String,
    /// Who asked.
    pub by: String,
    /// When, by the wall clock.
    pub at: String,
}

/// What became of a lease, told as it happens. On the stream its position is the event's id.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WatchLease {
    /// Where it stands in the feed: a later stream goes on behind it.
    pub position: String,
    /// The lease.
    pub lease: String,
    /// What became of it.
    pub entry: LeaseEntryView,
}

/// One thing that became of a table's rows.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RowEntryView {
    /// From 1, without gaps while the table is there.
    pub number: u64,
    /// `claimed`, `settled`, `released`, `reaped`, `dead` or `expired`.
    pub what: String,
    /// The first of the rows, by key.
    pub keys: Vec<String>,
    /// How many there were.
    pub count: u64,
    /// The execution, or what its client calls itself, whose claim it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimant: Option<String>,
    /// More, for people.
    pub note: String,
    /// Who asked.
    pub by: String,
    /// When, by the wall clock.
    pub at: String,
}

/// What became of rows, told as it happens. On the stream its position is the event's id.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WatchRows {
    /// Where it stands in the feed: a later stream goes on behind it.
    pub position: String,
    /// The table.
    pub table: String,
    /// What became of its rows.
    pub entry: RowEntryView,
}

/// One entry of an entity's history, told as it happens. On the stream its position is the event's id.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WatchEntry {
    /// Where it stands in the feed: a later stream goes on behind it.
    pub position: String,
    /// The entity.
    pub entity: String,
    /// The entity's incarnation.
    pub incarnation: u64,
    /// The entry.
    pub entry: EntryView,
}
