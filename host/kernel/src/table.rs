//! A table: a declaration of the operator's of what its rows are, who may do what with them, and what a claim
//! means. `interlock-manifest` makes it from TOML and has checked it.

use crate::doc::Doc;
use crate::ids::{MachineName, Name, TableName};
use crate::value::{Filter, Mutation, Path};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// What the rows of a table are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its name.
    pub name: TableName,
    /// Who answers for it; shown in refusals.
    pub owner: String,
    /// JSON Schema of a row's value; none accepts any value.
    pub schema: Option<Doc>,
    /// Declared indexes, by name.
    pub indexes: BTreeMap<Name, IndexSpec>,
    /// What a claim means.
    pub claim: ClaimSpec,
    /// How long a row lives.
    pub ttl: Option<Ttl>,
    /// Who may do what; whoever is not named may do nothing.
    pub access: Access,
}

/// An index: fields in order, then the time that breaks ties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexSpec {
    /// The fields, of the row.
    pub fields: Vec<Path>,
    /// What orders rows whose fields are the same.
    pub tie: Tie,
}

/// What orders rows that are the same otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tie {
    /// The number of their insertion.
    #[default]
    Created,
    /// The number of their last change.
    Updated,
}

/// What a claim means in a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimSpec {
    /// The field that says how a row stands.
    pub status: Path,
    /// What stands there while a row is claimed.
    pub held: Doc,
    /// Which rows are claimed when a claim does not say.
    pub filter: Filter,
    /// How they are marked when a claim does not say.
    pub set: Vec<Mutation>,
    /// What a claim's row gets when it is taken back; empty cannot be taken back.
    pub release: Vec<Mutation>,
    /// What becomes of what an execution has claimed when it ends.
    pub on_end: OnEnd,
    /// Takes back what was claimed too long ago.
    pub reaper: Option<Reaper>,
}

/// What becomes of a claim when its execution ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnEnd {
    /// It stays: settled later, or found stale.
    #[default]
    Keep,
    /// The row is taken back.
    Release,
}

/// Takes back what was claimed too long ago.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reaper {
    /// How long a claim may last, in ms of store time.
    pub after_ms: u64,
    /// How often a row is claimed before it is given up; none for ever.
    pub attempts: Option<u32>,
    /// What a row gets that is given up.
    pub dead: Vec<Mutation>,
}

/// How long a row lives, in store time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ttl {
    /// In ms: it is there for at least as long.
    pub ms: u64,
    /// Counted from its last change; from its insertion otherwise.
    pub from_change: bool,
}

/// Who may do what with a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Steps of machines.
    pub machines: BTreeMap<MachineName, BTreeSet<Right>>,
    /// Clients.
    pub clients: BTreeSet<Right>,
}

/// One thing that may be done with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Right {
    /// Read one row by key; `require` on a row.
    Get,
    /// Read rows by filter.
    Query,
    /// Write a whole row.
    Put,
    /// Change one row by key.
    Update,
    /// Take rows by filter.
    Claim,
    /// Insert, or change what is there.
    Upsert,
    /// Remove one row by key; claim and delete needs this too.
    Delete,
}

impl Right {
    /// Every right, and how it is written.
    pub const ALL: [(&'static str, Self); 7] = [
        ("get", Self::Get),
        ("query", Self::Query),
        ("put", Self::Put),
        ("update", Self::Update),
        ("claim", Self::Claim),
        ("upsert", Self::Upsert),
        ("delete", Self::Delete),
    ];

    /// How it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, right)| *right == self).map_or("", |(name, _)| name)
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Right {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(|(name, _)| name);
        let found = Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, right)| *right);
        found.ok_or_else(|| format!("expected one of {}, got {text:?}", names.join(", ")))
    }
}

impl ClaimSpec {
    /// What a row is like that was claimed: `status` becomes `in_flight`, with when and by whom.
    #[must_use]
    pub fn standard() -> Self {
        use crate::value::{Comparison, Operation, Operator, Root, Segment, Source, Value};
        let path = |name: &str| Path::new(Root::Row, vec![Segment::Field(name.to_owned())]);
        let text = |text: &str| Value::Json(Doc::new(text.into()));
        let set = |field: &str, value: Value| Mutation { field: path(field), operation: Operation::Set, value };
        let away = |field: &str| Mutation {
            field: path(field),
            operation: Operation::Remove,
            value: Value::Json(Doc::new(serde_json::Value::Null)),
        };
        let pending = Comparison { field: path("status"), operator: Operator::Eq, value: text("pending") };
        Self {
            status: path("status"),
            held: Doc::new("in_flight".into()),
            filter: Filter { any: vec![vec![pending]] },
            set: vec![
                set("status", text("in_flight")),
                set("claimed_at", Value::From(Source::Now(0))),
                set("claimed_by", Value::From(Source::Execution)),
            ],
            release: vec![set("status", text("pending")), away("claimed_at"), away("claimed_by")],
            on_end: OnEnd::Keep,
            reaper: None,
        }
    }

    /// Whether a row of this value counts as claimed.
    #[must_use]
    pub fn is_held(&self, value: &serde_json::Value) -> bool {
        self.status.find(value).is_some_and(|status| status == self.held.value())
    }
}
