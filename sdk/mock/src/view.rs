//! An entity as it stands, and what is on record of it.

use interlock_coordinator::EntityView;
use interlock_kernel::doc::Doc;
use interlock_kernel::record::{Condition, Entry};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// An entity as it stood when it was asked for.
#[derive(Clone, Debug)]
pub struct View {
    entity: EntityView,
    history: Vec<Entry>,
    desired: Value,
    data: Value,
    outputs: Value,
}

impl View {
    pub(crate) fn new(entity: EntityView, history: Vec<Entry>) -> Self {
        let value = |doc: &Option<Doc>| doc.as_ref().map_or(Value::Null, |doc| doc.value().clone());
        let documents = &entity.documents;
        let (desired, data, outputs) = (value(&documents.desired), value(&documents.data), value(&documents.outputs));
        Self { entity, history, desired, data, outputs }
    }

    /// `machine/key`.
    #[must_use]
    pub fn id(&self) -> String {
        self.entity.id.to_string()
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &str {
        self.entity.head.state.as_str()
    }

    /// It is in this state.
    ///
    /// # Panics
    /// If it is in another.
    #[track_caller]
    pub fn state_is(&self, state: &str) -> &Self {
        assert!(self.state() == state, "expected the state {state}, got\n{self}");
        self
    }

    /// Counts accepted changes.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.entity.head.version.get()
    }

    /// Counts changes of `desired`.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.entity.head.generation
    }

    /// The generation of `desired` that the steps have tried.
    #[must_use]
    pub fn observed_generation(&self) -> u64 {
        self.entity.head.observed
    }

    /// The revision that it follows.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.entity.head.revision
    }

    /// What clients want; null before the first apply.
    #[must_use]
    pub fn desired(&self) -> &Value {
        &self.desired
    }

    /// What steps remember.
    #[must_use]
    pub fn data(&self) -> &Value {
        &self.data
    }

    /// The same as a type of yours.
    ///
    /// # Panics
    /// If it is no such thing.
    #[track_caller]
    #[must_use]
    pub fn data_as<T: DeserializeOwned>(&self) -> T {
        match serde_json::from_value(self.data.clone()) {
            Ok(data) => data,
            Err(why) => panic!("expected data of another shape ({why}), got\n{self}"),
        }
    }

    /// What steps promise; null before the first.
    #[must_use]
    pub fn outputs(&self) -> &Value {
        &self.outputs
    }

    /// The id of the execution that holds it; none at rest and at its end.
    #[must_use]
    pub fn locked_by(&self) -> Option<String> {
        self.entity.head.locked_by(&self.entity.id).map(|execution| execution.to_string())
    }

    /// The number of the attempt that is open, from 1 in each visit.
    #[must_use]
    pub fn attempt(&self) -> Option<u32> {
        self.entity.head.lock.as_ref().and_then(|lock| lock.attempt).map(|open| open.ordinal)
    }

    /// Attempts of this visit that failed.
    #[must_use]
    pub fn failed(&self) -> u32 {
        self.entity.head.lock.as_ref().map_or(0, |lock| lock.failed)
    }

    /// Attempts of this visit that were lost with their host.
    #[must_use]
    pub fn lost(&self) -> u32 {
        self.entity.head.lock.as_ref().map_or(0, |lock| lock.lost)
    }

    /// Why nothing is tried any more: the park's code (`exhausted`, `crash-loop`), if it is parked.
    #[must_use]
    pub fn parked(&self) -> Option<&str> {
        self.entity.head.park.as_ref().map(|park| park.code.as_str())
    }

    /// The names of the timers that are set.
    #[must_use]
    pub fn timers(&self) -> Vec<&str> {
        self.entity.head.timers.iter().map(|timer| timer.name.as_str()).collect()
    }

    /// The names of the events that wait, oldest first.
    #[must_use]
    pub fn inbox(&self) -> Vec<&str> {
        self.entity.inbox.iter().map(|queued| queued.name.as_str()).collect()
    }

    /// Its published conditions, in words: `NodesPlaced is true: Found, four nodes`.
    #[must_use]
    pub fn conditions(&self) -> Vec<String> {
        self.entity.conditions.iter().map(condition).collect()
    }

    /// The status of one condition: `true`, `false`, `unknown`.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&str> {
        self.entity.conditions.iter().find(|condition| condition.kind == kind).map(|found| found.status.as_str())
    }

    /// What is on record of it, oldest first, a line each: `resize -> planning`.
    #[must_use]
    pub fn history(&self) -> Vec<String> {
        self.history.iter().map(Entry::sentence).collect()
    }
}

fn condition(condition: &Condition) -> String {
    let Condition { kind, status, reason, message, since: _ } = condition;
    let why: Vec<&str> = [reason.as_str(), message.as_str()].into_iter().filter(|why| !why.is_empty()).collect();
    if why.is_empty() { format!("{kind} is {status}") } else { format!("{kind} is {status}: {}", why.join(", ")) }
}

/// Where it stands, and its history, numbered.
impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = &self.entity.head;
        write!(f, "{} is {}, version {}", self.entity.id, head.state, head.version)?;
        match &head.lock {
            None => f.write_str(", unlocked")?,
            Some(lock) => {
                write!(f, ", locked by @{}.{}", head.incarnation, lock.ordinal)?;
                if let Some(open) = lock.attempt {
                    write!(f, ", attempt {} open", open.ordinal)?;
                }
                for (count, what) in [(lock.failed, "failed"), (lock.lost, "lost")] {
                    if count > 0 {
                        write!(f, ", {count} {what}")?;
                    }
                }
            }
        }
        if let Some(park) = &head.park {
            write!(f, ", PARKED {}: {}", park.code, park.reason)?;
        }
        for (name, document) in [("desired", &self.desired), ("data", &self.data), ("outputs", &self.outputs)] {
            if !document.is_null() {
                write!(f, "\n  {name} {}", crate::ran::short(&document.to_string()))?;
            }
        }
        for published in self.conditions() {
            write!(f, "\n  condition {published}")?;
        }
        for entry in &self.history {
            let by = entry.by.to_string();
            let by = by.rsplit_once('@').map_or(by.clone(), |(_, execution)| format!("@{execution}"));
            let event = entry.event.as_ref().map_or(String::new(), |id| format!(", event {id}"));
            write!(f, "\n  {:>3}  v{:<3} {}  (by {by}{event})", entry.number, entry.version, entry.sentence())?;
        }
        Ok(())
    }
}
