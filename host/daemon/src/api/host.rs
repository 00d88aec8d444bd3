//! The host itself: alive, ready, and what it counted.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The daemon answers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Alive {
    /// Always true.
    pub alive: bool,
    /// The release.
    pub release: String,
    /// This boot's session.
    pub session: u64,
    /// How long it has been up, in ms.
    pub up_ms: u64,
}

/// Whether requests can be served, and why not.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReadyView {
    /// Whether reads and writes are taken. With false the status is 503.
    pub ready: bool,
    /// Why not.
    pub why: Option<String>,
    /// The store.
    pub store: StoreView,
    /// The host's background tasks.
    pub tasks: Vec<BackgroundTask>,
}

/// The store.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StoreView {
    /// Whether it takes reads and writes.
    pub condition: StoreCondition,
    /// What stands in the way.
    pub why: Option<String>,
    /// Jobs of running executions that wait.
    pub completions: usize,
    /// New jobs that wait.
    pub admissions: usize,
    /// How long the last commit took to become durable, or one that takes longer has taken, in microseconds.
    pub last_commit_us: u64,
}

/// Whether the store takes reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoreCondition {
    /// Reads and writes.
    Ready,
    /// Reads and writes, but the last commit took long, or one takes long now.
    Slow,
    /// It is being opened again after an I/O error.
    Reopening,
    /// Reads go on, writes are unavailable.
    ReadOnly,
    /// It is closed or closing.
    Closed,
}

/// One of the host's background tasks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BackgroundTask {
    /// What it does.
    pub name: String,
    /// False if it keeps dying.
    pub alive: bool,
    /// Deaths in a row; after each it was begun again.
    pub deaths: u32,
}

/// What the host counted since its boot.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StatsView {
    /// How long it has been up, in ms.
    pub up_ms: u64,
    /// Attempts that run now.
    pub running: usize,
    /// Attempts that wait for a slot, or for memory, now.
    pub waiting: usize,
    /// Slots in all.
    pub slots: usize,
    /// What running steps are expected to take of the memory there is for them now, in bytes; those that take little
    /// are not counted.
    pub memory_held_bytes: u64,
    /// Memory that there is for them, in bytes (`serve --guest-memory`).
    pub memory_bytes_max: u64,
    /// Requests answered, by status.
    pub requests: BTreeMap<u16, u64>,
    /// Refusals, by code.
    pub refused: BTreeMap<String, u64>,
    /// Everything else that is counted, by name.
    pub counters: BTreeMap<String, u64>,
}
