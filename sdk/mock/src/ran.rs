//! What one attempt did: what it asked for, what it was told, what it logged, how it ended.

use interlock::log::Level;
use interlock::rows::{Action, Answer, Operation, Page, Querying, Requirement};
use interlock::{Change, Checkpoint, Event, Failure, Rejection, Request};
use serde_json::Value;
use std::fmt;

/// What a step asks its host for. What it only reads is not listed.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A checkpoint.
    Save(Checkpoint),
    /// The next state.
    Transition(Change),
    /// The entity, again.
    Reload,
    /// Whether the attempt is still the open one.
    StillHolds,
    /// A lease, for so many ms or as long as the machine declares.
    Acquire(String, Option<u64>),
    /// A lease, for longer.
    Extend(String, Option<u64>),
    /// To give a lease back.
    Release(String),
    /// Whether a lease is still held.
    StillHoldsLease(String),
    /// To stage a timer for the next save or transition: its name, and when it is due.
    Timer(String, TimerDue),
    /// To stage a request for the next save or transition.
    Effect(Request),
    /// Operations on rows, at once, if all of this holds; the step's own name for them.
    Rows(Vec<Operation>, Vec<Requirement>, Option<String>),
    /// Rows of a table by filter.
    Query(String, Querying),
    /// To stage an operation on rows for the next save or transition.
    StageRow(Operation),
    /// To stage a condition of the next save or transition.
    Require(Requirement),
}

/// When a step wants a timer to be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerDue {
    /// So many ms after the commit.
    After(u64),
    /// At this instant, in ms since 1970.
    At(i64),
    /// Not at all.
    Cancelled,
}

/// What it was told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Yes: it is on record with this version.
    Accepted(u64),
    /// Yes: the step sees the entity as it is now.
    Reloaded,
    /// Yes: the next save or transition carries it.
    Staged,
    /// Yes: the lease is held under this token, for so many ms from the commit.
    Leased(u64, u64),
    /// Yes: the lease is given back.
    Released,
    /// Whether it holds.
    Holds(bool),
    /// What became of operations on rows, and whether that is the remembered answer to an earlier attempt.
    Rows(Vec<Answer>, bool),
    /// Rows.
    Found(Page),
    /// No, and why.
    Refused(Rejection),
    /// Nothing: the host ended the attempt with this code, for this reason.
    Stopped(String, String),
}

/// One call, and its answer: none as long as it is held, or if its host was killed before it answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What the step asked for.
    pub asked: Asked,
    /// What it was told.
    pub told: Option<Told>,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// How much it matters.
    pub level: Level,
    /// What it says, as the host's log would show it.
    pub message: String,
    /// `name=value`, with spaces between; empty if it has none.
    pub fields: String,
}

/// How an attempt stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It runs, or is held before a call.
    Running,
    /// Its step returned what an accepted transition gave it.
    Done,
    /// It failed: the step said so, or the host did.
    Failed(Failure),
    /// It was lost with its host.
    Lost,
}

/// One attempt, as far as it has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// Its entity, `machine/key`.
    pub entity: String,
    /// The step.
    pub step: String,
    /// Its number in the visit, from 1.
    pub attempt: u32,
    /// Its fencing token.
    pub token: u64,
    /// What the step was given as the event.
    pub event: Event,
    /// How it stands.
    pub end: End,
    /// What the step failed with after its accepted transition, which changed nothing.
    pub afterwards: Option<Failure>,
    pub(crate) deeds: Vec<Deed>,
}

/// What an attempt did, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    Called(Box<Call>),
    Logged(Log),
}

impl Deed {
    /// Whether nothing will be added to it.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Called(call) => call.told.is_some(),
            Self::Logged(_) => true,
        }
    }
}

impl Ran {
    /// What it asked for and was told, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<&Call> {
        self.deeds.iter().filter_map(|deed| if let Deed::Called(call) = deed { Some(&**call) } else { None }).collect()
    }

    /// What it logged, in order.
    #[must_use]
    pub fn logs(&self) -> Vec<&Log> {
        self.deeds.iter().filter_map(|deed| if let Deed::Logged(log) = deed { Some(log) } else { None }).collect()
    }

    /// What it was refused, in order.
    #[must_use]
    pub fn refusals(&self) -> Vec<&Rejection> {
        let told = self.calls().into_iter().filter_map(|call| call.told.as_ref());
        told.filter_map(|told| if let Told::Refused(no) = told { Some(no) } else { None }).collect()
    }

    /// Its accepted transition, if it has one.
    #[must_use]
    pub fn transition(&self) -> Option<&Change> {
        self.calls().into_iter().find_map(|call| match (&call.asked, &call.told) {
            (Asked::Transition(change), Some(Told::Accepted(_))) => Some(change),
            _ => None,
        })
    }

    /// The state that it moved its entity to.
    ///
    /// # Panics
    /// If it made no transition.
    #[track_caller]
    #[must_use]
    pub fn to(&self) -> &str {
        match self.transition() {
            Some(change) => &change.to,
            None => panic!("expected an accepted transition, got\n{self}"),
        }
    }

    /// The data that its accepted transition carries; null if it carries none.
    #[must_use]
    pub fn data(&self) -> Value {
        document(self.transition().and_then(|change| change.data.as_ref()))
    }

    /// The outputs that its accepted transition carries; null if it carries none.
    #[must_use]
    pub fn outputs(&self) -> Value {
        document(self.transition().and_then(|change| change.outputs.as_ref()))
    }

    /// The first refusal with this code: `not_allowed`, `guard`, `invalid`.
    ///
    /// # Panics
    /// If it was refused nothing with it.
    #[track_caller]
    #[must_use]
    pub fn refused(&self, code: &str) -> &Rejection {
        match self.refusals().into_iter().find(|no| no.code == code) {
            Some(no) => no,
            None => panic!("expected a refusal with the code {code}, got\n{self}"),
        }
    }

    /// Its failure, with this code: one of the step's own, or of the host's (`trap`, `no-transition`).
    ///
    /// # Panics
    /// If it did not fail with it.
    #[track_caller]
    #[must_use]
    pub fn failed(&self, code: &str) -> &Failure {
        match &self.end {
            End::Failed(failure) if failure.as_code() == code => failure,
            _ => panic!("expected a failure with the code {code}, got\n{self}"),
        }
    }
}

fn document(text: Option<&String>) -> Value {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (data, outputs, set, conditions) = match self {
            Self::Reload => return f.write_str("reload"),
            Self::StillHolds => return f.write_str("still holds?"),
            Self::Acquire(lease, ttl_ms) => return write!(f, "acquire {lease}{}", within(*ttl_ms)),
            Self::Extend(lease, ttl_ms) => return write!(f, "extend {lease}{}", within(*ttl_ms)),
            Self::Release(lease) => return write!(f, "release {lease}"),
            Self::StillHoldsLease(lease) => return write!(f, "still holds {lease}?"),
            Self::Timer(name, TimerDue::After(ms)) => return write!(f, "timer {name} in {ms} ms"),
            Self::Timer(name, TimerDue::At(unix_ms)) => return write!(f, "timer {name} at {unix_ms}"),
            Self::Timer(name, TimerDue::Cancelled) => return write!(f, "timer {name} cancelled"),
            Self::Effect(request) => return write!(f, "effect on {}", request.target),
            Self::Rows(operations, requirements, op) => {
                for (nth, one) in operations.iter().enumerate() {
                    write!(f, "{}{}", if nth > 0 { " and " } else { "" }, of_operation(one))?;
                }
                if !requirements.is_empty() {
                    write!(f, ", under {} conditions", requirements.len())?;
                }
                return op.as_ref().map_or(Ok(()), |op| write!(f, ", as {op}"));
            }
            Self::Query(table, _) => return write!(f, "query {table}"),
            Self::StageRow(one) => return write!(f, "with the next commit: {}", of_operation(one)),
            Self::Require(Requirement::Row(one)) => return write!(f, "require of {}", one.table),
            Self::Require(Requirement::Entity(one)) => return write!(f, "require of {}", one.entity),
            Self::Save(Checkpoint { data, outputs, set, conditions }) => {
                f.write_str("save")?;
                (data, outputs, set, conditions)
            }
            Self::Transition(Change { to, data, outputs, set, conditions }) => {
                write!(f, "transition to {to}")?;
                (data, outputs, set, conditions)
            }
        };
        for (name, document) in [("data", data), ("outputs", outputs)] {
            if let Some(text) = document {
                write!(f, ", {name} {}", short(text))?;
            }
        }
        for mutation in set {
            write!(f, ", {}", short(&format!("{mutation:?}")))?;
        }
        for condition in conditions {
            write!(f, ", {} is {:?}", condition.r#type, condition.status)?;
        }
        Ok(())
    }
}

/// An operation in a few words.
fn of_operation(Operation { table, what }: &Operation) -> String {
    let key = |value: &interlock::Value| match value {
        interlock::Value::Json(text) | interlock::Value::From(text) => short(text),
    };
    match what {
        Action::Get(one) => format!("get {table} {}", key(&one.key)),
        Action::Put(one) => format!("put {table} {} {}", key(&one.key), short(&one.value)),
        Action::Update(one) => format!("update {table} {}", key(&one.key)),
        Action::Upsert(one) => format!("upsert {table} {}", key(&one.key)),
        Action::Claim(_) => format!("claim {table}"),
        Action::Delete(one) => format!("delete {table} {}", key(&one.key)),
    }
}

/// An answer in a few words.
fn of_answer(answer: &Answer) -> String {
    use interlock::rows::{Deleted, Updated};
    let written = |inserted: bool, row: &interlock::rows::Row| {
        format!("{} {} {}", row.key, if inserted { "inserted" } else { "written" }, short(&row.value))
    };
    let miss = |miss: &interlock::rows::Miss| match &miss.guard {
        Some(guard) => format!("{} left alone: {guard}", miss.key),
        None => format!("no {}", miss.key),
    };
    match answer {
        Answer::Got(got) => match &got.row {
            Some(row) => format!("{} {}", row.key, short(&row.value)),
            None => format!("no {}", got.key),
        },
        Answer::Put(one) | Answer::Upserted(one) => written(one.inserted, &one.row),
        Answer::Updated(Updated::Changed(row)) => written(false, row),
        Answer::Updated(Updated::Unmatched(why)) | Answer::Deleted(Deleted::Unmatched(why)) => miss(why),
        Answer::Deleted(Deleted::Gone(key)) => format!("{key} deleted"),
        Answer::Claimed(claimed) => {
            let keys: Vec<&str> = claimed.rows.iter().map(|row| row.key.as_str()).collect();
            let lost =
                if claimed.lost.is_empty() { String::new() } else { format!(", lost {}", claimed.lost.join(", ")) };
            format!("claimed {}{lost}", if keys.is_empty() { "none".to_owned() } else { keys.join(", ") })
        }
    }
}

fn within(ttl_ms: Option<u64>) -> String {
    ttl_ms.map_or(String::new(), |ttl_ms| format!(" for {ttl_ms} ms"))
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted(version) => write!(f, "accepted, version {version}"),
            Self::Reloaded => f.write_str("done"),
            Self::Staged => f.write_str("staged"),
            Self::Leased(token, ttl_ms) => write!(f, "held for {ttl_ms} ms, token {token}"),
            Self::Released => f.write_str("given back"),
            Self::Holds(true) => f.write_str("yes"),
            Self::Holds(false) => f.write_str("no"),
            Self::Rows(answers, replayed) => {
                let told: Vec<String> = answers.iter().map(of_answer).collect();
                write!(f, "{}{}", told.join(", "), if *replayed { ", as before" } else { "" })
            }
            Self::Found(page) => {
                let keys: Vec<&str> = page.rows.iter().map(|row| row.key.as_str()).collect();
                write!(f, "{} rows: {}", keys.len(), short(&keys.join(", ")))
            }
            Self::Refused(no) => write!(f, "REFUSED {no}"),
            Self::Stopped(code, reason) => write!(f, "stopped, {code}: {reason}"),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.told {
            Some(told) => write!(f, "{}: {told}", self.asked),
            None => write!(f, "{}: no answer", self.asked),
        }
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", format!("{:?}", self.level).to_lowercase(), self.message)?;
        if self.fields.is_empty() { Ok(()) } else { write!(f, "  {}", self.fields) }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Called(call) => call.fmt(f),
            Self::Logged(log) => log.fmt(f),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("still running"),
            Self::Done => f.write_str("done"),
            Self::Failed(failure) => write!(f, "FAILED {failure}"),
            Self::Lost => f.write_str("lost with its host"),
        }
    }
}

impl Ran {
    /// Which attempt this is, in words.
    pub(crate) fn name(&self) -> String {
        format!("{}, attempt {} of {}, token {}", self.step, self.attempt, self.entity, self.token)
    }
}

/// The whole attempt, a line for each thing that it did.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name())?;
        for deed in &self.deeds {
            writeln!(f, "  {deed}")?;
        }
        if let Some(failure) = &self.afterwards {
            writeln!(f, "  failed after its accepted transition, which changes nothing: {failure}")?;
        }
        write!(f, "  {}", self.end)
    }
}

/// How much of a document a line shows.
const SHOWN_CHARS_MAX: usize = 160;

/// The beginning of a long text.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
