//! Why something stands where it stands.

use super::FailureView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why an entity, an execution or a lease stands where it stands: read from the store, as it is now.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyView {
    /// What was asked about.
    pub subject: String,
    /// What it comes to, in one word.
    pub because: Because,
    /// The same in one sentence, for people.
    pub sentence: String,
    /// Who holds it: an execution, or what a lease's client calls itself.
    pub holder: Option<String>,
    /// Since when it is held.
    pub since: Option<String>,
    /// The last sign of life: an execution's progress, a lease's renewal.
    pub progress: Option<String>,
    /// The last failure of this visit.
    pub failure: Option<FailureView>,
    /// The lease that its step waits for.
    pub awaits: Option<AwaitsView>,
    /// The leases that it has, and until when without a renewal.
    pub leases: Vec<LeaseUntilView>,
    /// Rows that it has claimed and not settled, the first 20: of an entity those of all its executions, the newest
    /// first.
    pub rows: Vec<ClaimedRowView>,
    /// So many more, counted up to 10,000.
    pub rows_more: usize,
    /// What happens next by itself, the earliest first.
    pub next: Vec<NextView>,
    /// What an operator can do about it: commands, the mildest first.
    pub operator: Vec<String>,
    /// Who answers for the machine.
    pub owner: Option<String>,
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// Nothing holds it.
    Free,
    /// A final state, or an execution that has ended.
    Over,
    /// A step runs.
    Step,
    /// A step is to run, and there is no free place to run it.
    Slot,
    /// A step is to run, and other running steps hold the memory that its component takes.
    Memory,
    /// An attempt failed, and the next one is not due yet.
    BackOff,
    /// Its step waits for a lease.
    Lease,
    /// It waits for a timer.
    Timer,
    /// The result of an effect.
    Effect,
    /// It waits for an event from outside.
    Event,
    /// It is parked, or nothing that is pending could move it.
    Operator,
    /// A lease that somebody has.
    Held,
    /// A lease that is kept for whoever lost it.
    Delayed,
}

/// A lease that is waited for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AwaitsView {
    /// The lease.
    pub lease: String,
    /// Its place in line, from 1.
    pub place: Option<usize>,
    /// Who has it.
    pub held_by: Option<String>,
    /// Since when.
    pub since: Option<String>,
    /// It is free then, unless it is renewed.
    pub until: Option<String>,
}

/// A lease that is held.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseUntilView {
    /// The lease.
    pub lease: String,
    /// It is over then, unless it is renewed; null if it is lost already.
    pub until: Option<String>,
}

/// A row that an execution has claimed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClaimedRowView {
    /// Its table.
    pub table: String,
    /// Its key.
    pub key: String,
    /// The execution.
    pub claimed_by: String,
    /// Since when.
    pub since: String,
}

/// Something that happens by itself.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NextView {
    /// What, in a few words for people.
    pub what: String,
    /// When; null for what has no time.
    pub at: Option<String>,
}
