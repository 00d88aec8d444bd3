//! Machines and their revisions.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A machine to deploy. The same manifest and component again are the same revision.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeployRequest {
    /// The manifest, as TOML text.
    pub manifest: String,
    /// The component's bytes in base64 (RFC 4648, with padding); none for a machine without steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(content_encoding = "base64")]
    pub component: Option<String>,
}

/// A revision is active.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Deployed {
    /// The machine.
    pub machine: String,
    /// Its active revision.
    pub revision: u64,
    /// Whether this request made it: false is a repetition.
    pub new: bool,
    /// Who answers for it.
    pub owner: String,
    /// Digest of manifest and component.
    pub digest: String,
    /// The component's size in bytes.
    pub component_bytes: Option<u64>,
    /// How long compiling and judging it took, in ms.
    pub compile_ms: Option<u64>,
    /// What its steps can do, read from the component's imports.
    pub can: Vec<PowerView>,
    /// What nothing in it can reach, whatever it computes.
    pub cannot: Vec<PowerView>,
    /// What the check warns of.
    pub warnings: Vec<Finding>,
}

/// One thing that a component can, or cannot, do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerView {
    /// One word.
    pub name: String,
    /// One sentence.
    pub what: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The machine is refused.
    Error,
    /// The machine is accepted.
    Warning,
}

/// Something the check of a manifest or a component found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// Error or warning.
    pub severity: Severity,
    /// A stable name of this kind of finding.
    pub code: String,
    /// What it is about: `manifest`, or the component's import or export.
    pub subject: String,
    /// The manifest's line, from 1; null when it is about the component.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// What is wrong, in one line.
    pub message: String,
    /// What should have stood there, where that is a thing of its own.
    pub expected: Option<String>,
    /// What stood there.
    pub got: Option<String>,
    /// What to do about it.
    pub remedy: String,
}

/// A return to an earlier revision.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The revision whose content becomes a new revision.
    pub to: u64,
}

/// Every machine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MachineList {
    /// By name.
    pub machines: Vec<MachineSummary>,
}

/// A machine in a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MachineSummary {
    /// Its name.
    pub name: String,
    /// Who answers for it.
    pub owner: String,
    /// The revision that new entities follow.
    pub active: u64,
    /// The newest revision's number.
    pub latest: u64,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// When the active revision was deployed.
    pub deployed: String,
}

/// One machine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MachineView {
    /// Its name.
    pub name: String,
    /// Who answers for it.
    pub owner: String,
    /// The revision that new entities follow.
    pub active: u64,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// Every revision, newest first.
    pub revisions: Vec<RevisionView>,
    /// Entities that do not follow the active revision and why; at most 100 of them.
    pub held_back: Vec<HeldBack>,
    /// The active revision's manifest, as it was written.
    pub manifest: String,
}

/// One revision of a machine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RevisionView {
    /// Counted per machine, from 1.
    pub number: u64,
    /// Digest of manifest and component.
    pub digest: String,
    /// The component's digest.
    pub component: Option<String>,
    /// The revision this one brought back.
    pub rollback_of: Option<u64>,
    /// When it was deployed.
    pub deployed: String,
    /// By whom.
    pub by: String,
}

/// An entity that does not follow the active revision.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeldBack {
    /// The entity.
    pub entity: String,
    /// The revision it follows.
    pub revision: u64,
    /// Whether it will follow the active one with its next change.
    pub can_move: bool,
    /// Why it has not, or cannot.
    pub why: String,
}
