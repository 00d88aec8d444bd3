//! Schedules.

use super::{Document, Finding};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A schedule to declare. The same manifest again changes nothing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRequest {
    /// The schedule's manifest, as TOML text.
    pub manifest: String,
}

/// A schedule is in force, or would be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Scheduled {
    /// The schedule.
    pub schedule: String,
    /// The number of the declaration in force; null of a schedule that is not there and was only checked.
    pub revision: Option<u64>,
    /// Whether this request made it so: false is a repetition, or a check.
    pub new: bool,
    /// Who answers for it.
    pub owner: String,
    /// Digest of the manifest.
    pub digest: String,
    /// When its rule comes from now on, the first few times.
    pub times: Vec<String>,
    /// What the check warns of.
    pub warnings: Vec<Finding>,
}

/// One page of schedules, ordered by name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SchedulePage {
    /// At most `limit` of them.
    pub schedules: Vec<ScheduleSummary>,
    /// Pass this as `after` for the next page; null at the end.
    pub next: Option<String>,
}

/// A schedule in a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleSummary {
    /// Its name.
    pub schedule: String,
    /// Who answers for it.
    pub owner: String,
    /// When it comes, in the words of cron.
    pub cron: String,
    /// By the clocks of this zone.
    pub zone: String,
    /// At whom it raises its event.
    pub entity: String,
    /// The event.
    pub event: String,
    /// When it comes next; null while it is paused, or if it never comes again.
    pub due: Option<String>,
    /// Whether it stands still.
    pub paused: bool,
    /// What became of its last due time.
    pub last: Option<FiringView>,
}

/// One schedule, and what became of its last due times.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleView {
    /// What a list shows of it.
    #[serde(flatten)]
    pub summary: ScheduleSummary,
    /// The number of the declaration in force.
    pub revision: u64,
    /// When that was declared.
    pub declared: String,
    /// Digest of the declaration in force.
    pub digest: String,
    /// The event's payload, but for the due time.
    pub payload: Option<Document>,
    /// Whether the entity is made if there is none.
    pub creates: bool,
    /// What if an execution of the entity is under way: `skip`, `queue` or `deliver`.
    pub overlap: String,
    /// What of times that nobody was there for: `none`, `latest`, or all of the last so long.
    pub catch_up: String,
    /// Events raised since it was declared first.
    pub raised: u64,
    /// Due times for which none was.
    pub passed: u64,
    /// What became of the last due times, newest first.
    pub firings: Vec<FiringView>,
    /// The declaration in force, as it was written.
    pub manifest: String,
}

/// What became of a due time.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FiringView {
    /// The due time.
    pub due: String,
    /// When it was looked at.
    pub at: String,
    /// What became of it.
    pub what: FiringKind,
    /// The number of the execution that the event began or joined.
    pub execution: Option<u64>,
    /// The last of the due times that were missed with this one.
    pub until: Option<String>,
    /// For people.
    pub note: String,
}

/// What became of a due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FiringKind {
    /// The event was raised and taken.
    Accepted,
    /// The event was raised and waits in the inbox.
    Queued,
    /// The event was raised, for an entity that is over.
    Late,
    /// The event was raised and refused.
    Refused,
    /// No event was raised, because of what the entity was at.
    Skipped,
    /// Nobody could look in time.
    Missed,
}
