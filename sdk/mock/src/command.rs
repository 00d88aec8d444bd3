//! Commands in the words of a test.

use interlock_kernel::command::{Create, OnExisting};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::Expect;
use interlock_kernel::view::Event;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// An event to be sent: `Signal::new("resize").payload(json!({"size": 4})).id("e1")`.
#[derive(Clone, Debug)]
#[must_use = "a signal does nothing until it is sent"]
pub struct Signal {
    name: String,
    payload: Option<Value>,
    id: Option<String>,
    expect: Expect,
}

impl Signal {
    /// Without a payload, under an id that no other has.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), payload: None, id: None, expect: Expect::default() }
    }

    /// With this payload; null is none.
    pub fn payload(mut self, payload: impl Into<Value>) -> Self {
        self.payload = Some(payload.into()).filter(|payload| !payload.is_null());
        self
    }

    /// Under this id: the same one again is the same event.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// For an entity that still has this version.
    pub fn at_version(mut self, version: u64) -> Self {
        self.expect.version = Some(version);
        self
    }

    /// For an entity that is still in the visit entered with this version.
    pub fn at_visit(mut self, visit: u64) -> Self {
        self.expect.visit = Some(visit);
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's event; `mint` names it if nobody did.
    #[track_caller]
    pub(crate) fn event(self, mint: impl FnOnce() -> String) -> Event {
        let id = self.id.unwrap_or_else(mint);
        Event {
            id: parsed("an event id", &id),
            name: parsed("an event's name", &self.name),
            payload: self.payload.map(Doc::new),
            expect: self.expect,
            checked: None,
        }
    }
}

/// An entity to be created: `New::of("gpu-7").desired(json!({"image": "a"}))`. A key alone is one too.
#[derive(Clone, Debug)]
#[must_use = "an entity is not there until it is created"]
pub struct New {
    pub(crate) key: String,
    pub(crate) desired: Option<Value>,
    pub(crate) first: Option<Signal>,
    labels: BTreeMap<String, String>,
    on_existing: OnExisting,
}

impl New {
    /// With this key, and nothing desired yet.
    pub fn of(key: impl Into<String>) -> Self {
        let (desired, first, labels) = (None, None, BTreeMap::new());
        Self { key: key.into(), desired, first, labels, on_existing: OnExisting::Same }
    }

    /// With this desired from the beginning.
    pub fn desired(mut self, desired: impl Into<Value>) -> Self {
        self.desired = Some(desired.into());
        self
    }

    /// With a label.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// With its first event, decided in the same transaction: if that is refused, so is the create.
    pub fn first(mut self, signal: Signal) -> Self {
        self.first = Some(signal);
        self
    }

    /// What if there is one: without this, the same request is the existing entity and another is a conflict.
    pub fn on_existing(mut self, on_existing: OnExisting) -> Self {
        self.on_existing = on_existing;
        self
    }

    #[track_caller]
    pub(crate) fn create(self, entity: EntityId, mint: impl FnOnce() -> String) -> Create {
        Create {
            entity,
            desired: self.desired.map(Doc::new),
            labels: self.labels,
            on_existing: self.on_existing,
            event: self.first.map(|signal| signal.event(mint)),
        }
    }
}

impl From<&str> for New {
    fn from(key: &str) -> Self {
        Self::of(key)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(payload) = &self.payload {
            write!(f, " {payload}")?;
        }
        self.id.as_ref().map_or(Ok(()), |id| write!(f, " as {id}"))
    }
}

impl fmt::Display for New {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if let Some(desired) = &self.desired {
            write!(f, ", desired {desired}")?;
        }
        self.first.as_ref().map_or(Ok(()), |first| write!(f, ", {first}"))
    }
}

/// A name in a test that is no name is the test's mistake.
#[track_caller]
pub(crate) fn parsed<T: std::str::FromStr>(what: &str, text: &str) -> T
where
    T::Err: fmt::Display,
{
    match text.parse() {
        Ok(name) => name,
        Err(why) => panic!("expected {what}: {why}"),
    }
}
