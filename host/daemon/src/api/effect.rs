//! Effects that are not settled: what waits, what is on its way, what was given up. Secrets are names here, as
//! everywhere.

use super::Document;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What an entity has in its outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutboxView {
    /// Effects that will be settled.
    pub unsettled: u32,
    /// Effects that are given up until an operator acts or the visit is left.
    pub dead: u32,
}

/// Where an effect stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StandsView {
    /// Behind another one of its lane.
    Waits,
    /// The first of its lane, tried at `due`.
    Due,
    /// Handed to its target.
    InFlight,
    /// Given up.
    Dead,
}

impl StandsView {
    /// Every place.
    pub const ALL: [Self; 4] = [Self::Waits, Self::Due, Self::InFlight, Self::Dead];

    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Due => "due",
            Self::InFlight => "in-flight",
            Self::Dead => "dead",
        }
    }
}

/// An effect that is not settled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EffectView {
    /// Whose.
    pub entity: String,
    /// Its number there, from 1.
    pub number: u64,
    /// The target, as the machine declares it.
    pub target: String,
    /// Where it goes.
    pub url: String,
    /// Where it stands.
    pub stands: StandsView,
    /// When it is tried, if it is due.
    pub due: Option<String>,
    /// Tries begun, since an operator had it tried again.
    pub tries: u32,
    /// Whether one of them may have reached the target.
    pub maybe_sent: bool,
    /// What came of the last one.
    pub last: Option<String>,
    /// Why it was given up: `refused`, `exhausted`, `denied`, `withdrawn`.
    pub code: Option<String>,
    /// The same for people.
    pub reason: Option<String>,
    /// Its `Idempotency-Key`: the same over all tries, and no other effect's.
    pub key: String,
    /// What its receiver fences: the entity or a lease. Effects of one entity with the same are a lane, in order.
    pub resource: String,
    /// Its fencing token.
    pub token: u64,
    /// The version that committed it.
    pub version: u64,
    /// The attempt that asked for it; null if no step did.
    pub attempt: Option<u32>,
    /// The execution that asked for it.
    pub execution: String,
    /// Whether that execution is over: it may still do something.
    pub outstanding: bool,
    /// When it was committed.
    pub at: String,
    /// The body and the headers that the step gave it; in an entity's own list only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<EffectRequestView>,
}

/// What a step gave an effect.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EffectRequestView {
    /// What the placeholders of its URL stand for.
    pub params: BTreeMap<String, String>,
    /// Headers that the step adds.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Document>,
}

/// Effects that are not settled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EffectList {
    /// By entity and number.
    pub effects: Vec<EffectView>,
    /// Whether there may be more than are listed.
    pub more: bool,
}

/// An operator gives an effect up.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DropRequest {
    /// Why, for the record.
    pub reason: String,
}
