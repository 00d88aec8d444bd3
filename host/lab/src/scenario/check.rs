//! Whether an entity, and what clients heard, are as a [`Then`] says: everything that is not, at once.

use super::judge::{Broken, broken, locked, outcome, parked};
use super::{Answer, AnswerKind, Made, Request, Then};
use crate::TableRows;
use interlock_coordinator::{EntityView, LeaseView, SubmitError};
use interlock_kernel::command::Outcome;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, EventId};
use interlock_kernel::record;
use interlock_kernel::value::{Comparison, Filter, Operator, Path, Root, Roots, Segment, Value, Verdict};
use interlock_store::StoreError;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;

/// What a client heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) answer: Answer,
    /// Why not, if it was no.
    why: Option<String>,
}

impl Heard {
    /// What an answer comes to, for an entity whose `desired` had this generation before.
    pub(super) fn of(answer: &Result<Outcome, SubmitError>, generation: u64) -> Self {
        let heard = |kind, again| Self { answer: Answer { kind, again }, why: None };
        match answer {
            Ok(Outcome::Answered { answer, replayed }) => Self::kept(answer, *replayed),
            Ok(Outcome::Rows { replayed, .. }) => heard(AnswerKind::Accepted, *replayed),
            Ok(Outcome::Created { new, .. } | Outcome::Deployed { new, .. } | Outcome::Declared { new, .. }) => {
                heard(AnswerKind::Accepted, !new)
            }
            Ok(Outcome::Now { changed, .. }) => heard(AnswerKind::Accepted, !changed),
            Ok(Outcome::Applied { generation: now }) => heard(AnswerKind::Accepted, *now == generation),
            Ok(Outcome::Nothing) => heard(AnswerKind::Accepted, true),
            Ok(Outcome::InLine { .. }) => heard(AnswerKind::Queued, false),
            Ok(Outcome::Leased { new, .. }) => heard(AnswerKind::Accepted, !new),
            Ok(
                Outcome::Written { .. }
                | Outcome::Session(..)
                | Outcome::Swept { .. }
                | Outcome::Repaired(_)
                | Outcome::Released
                | Outcome::Fired(_)
                | Outcome::Tended { .. }
                | Outcome::Sending(_),
            ) => heard(AnswerKind::Accepted, false),
            Err(SubmitError::Rejected(no)) => Self {
                answer: Answer { kind: AnswerKind::Refused(Some(no.code)), again: false },
                why: Some(format!("expected {}, got {}", no.expected, no.got)),
            },
            Err(SubmitError::Store(StoreError::Indeterminate { why })) => {
                Self { why: Some(why.clone()), ..heard(AnswerKind::Unknown, false) }
            }
            Err(error @ (SubmitError::Store(_) | SubmitError::Contended { .. })) => {
                Self { why: Some(error.to_string()), ..heard(AnswerKind::Unavailable, false) }
            }
        }
    }

    /// The answer to an event as it is kept.
    pub(super) fn kept(answer: &record::Answer, again: bool) -> Self {
        let no = answer.rejection.as_ref();
        let kind = match answer.kind {
            record::AnswerKind::Accepted => AnswerKind::Accepted,
            record::AnswerKind::Queued => AnswerKind::Queued,
            record::AnswerKind::Late => AnswerKind::Late,
            record::AnswerKind::Refused => AnswerKind::Refused(no.map(|no| no.code)),
        };
        let why = no.map(|no| format!("expected {}, got {}", no.expected, no.got));
        Self { answer: Answer { kind, again }, why }
    }

    /// Whether it is what was expected: a refusal without a code is any.
    pub(super) fn is(&self, expected: &Answer) -> bool {
        let kind = match (expected.kind, self.answer.kind) {
            (AnswerKind::Refused(None), AnswerKind::Refused(_)) => true,
            (expected, got) => expected == got,
        };
        kind && expected.again == self.answer.again
    }
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Some(why) => write!(f, "{}: {why}", self.answer),
            None => self.answer.fmt(f),
        }
    }
}

/// A request in a word or two: `resize (e1)`.
pub(super) fn name(request: &Request) -> String {
    match request {
        Request::Send { event, id, .. } => format!("{event} ({id})"),
        Request::Apply { .. } => "apply".to_owned(),
        Request::Create { .. } => "create".to_owned(),
        Request::Kill { .. } => "kill".to_owned(),
        Request::Unpark => "unpark".to_owned(),
        Request::Delete => "delete".to_owned(),
    }
}

/// Collects what is not as it should be.
struct Missed {
    key: String,
    all: Vec<(String, Broken)>,
}

impl Missed {
    fn add(&mut self, what: &str, found: Result<(), Broken>) {
        if let Err(broken) = found {
            self.all.push((format!("{what} of {}", self.key), broken));
        }
    }

    fn equal<T: PartialEq + fmt::Display>(&mut self, what: &str, expected: Option<T>, got: T) {
        if let Some(expected) = expected.filter(|expected| *expected != got) {
            self.add(what, broken(expected.to_string(), got.to_string()));
        }
    }
}

/// All that is not as it should be: what, and how.
pub(super) fn all(
    then: &Then,
    view: Option<&EntityView>,
    history: &[String],
    answers: &BTreeMap<EventId, Heard>,
    leases: &[LeaseView],
    tables: &[TableRows],
    requests: &[crate::Request],
) -> Vec<(String, Broken)> {
    let mut missed = Missed { key: then.entity.key.to_string(), all: Vec::new() };
    match (view, then.exists) {
        (Some(view), Some(false)) => {
            missed.all.push((missed.key.clone(), gone(format!("there, in {}", view.head.state), "not there")));
        }
        (None, Some(false)) => {}
        (None, None) if then.is_aside() => {}
        (None, _) => missed.all.push((missed.key.clone(), gone("not there".to_owned(), "there"))),
        (Some(view), _) => entity(then, view, &mut missed),
    }
    for (id, expected) in &then.answers {
        match answers.get(id) {
            Some(heard) if heard.is(expected) => {}
            heard => {
                let got = heard.map_or("none yet".to_owned(), ToString::to_string);
                missed.all.push((format!("the answer to {id}"), Broken { expected: expected.to_string(), got }));
            }
        }
    }
    if view.is_some() {
        missed.add("history", in_order(&then.history, history));
    }
    for (name, holding) in &then.leases {
        let found = holding.judge(leases.iter().find(|view| view.name == *name));
        missed.all.extend(found.into_iter().map(|(what, broken)| (format!("{what} of the lease {name}"), broken)));
    }
    for wanted in &then.rows {
        missed.all.extend(wanted.judge(tables).err().map(|broken| (wanted.to_string(), broken)));
    }
    for wanted in &then.counts {
        let what = || format!("the number of rows in {}", wanted.table);
        missed.all.extend(wanted.judge(tables).err().map(|broken| (what(), broken)));
    }
    if let Some(wanted) = &then.made {
        missed.add("requests", made(wanted, &then.entity, requests));
    }
    missed.all
}

fn gone(got: String, expected: &str) -> Broken {
    Broken { expected: expected.to_owned(), got }
}

fn entity(then: &Then, view: &EntityView, missed: &mut Missed) {
    let head = &view.head;
    if !then.state.is_empty() && !then.state.contains(&head.state) {
        let states: Vec<&str> = then.state.iter().map(|state| state.as_str()).collect();
        missed.add("state", broken(states.join(" or "), head.state.to_string()));
    }
    if let Some(wanted) = &then.parked {
        missed.add("park", parked(wanted, view));
    }
    if let Some(wanted) = then.locked {
        missed.add("lock", locked(wanted, view));
    }
    if let Some(wanted) = then.outcome {
        missed.add("outcome", outcome(wanted, view));
    }
    missed.equal("version", then.version, head.version.get());
    missed.equal("generation", then.generation, head.generation);
    missed.equal("observed generation", then.observed, head.observed);
    missed.equal("attempts", then.attempts, head.lock.as_ref().map_or(0, |lock| lock.attempts));
    missed.equal("inbox", then.inbox, head.inbox.length);
    let documents = &view.documents;
    let parts = [
        (Root::Desired, &then.desired, &documents.desired),
        (Root::Data, &then.data, &documents.data),
        (Root::Outputs, &then.outputs, &documents.outputs),
    ];
    for (root, expected, got) in parts {
        if let Some(expected) = expected {
            fields(root, expected, got.as_ref(), missed);
        }
    }
    for (kind, status) in &then.conditions {
        let found = view.conditions.iter().find(|one| one.kind == *kind);
        let got = found.map_or("none".to_owned(), |one| one.status.clone());
        if got != *status {
            missed.add(&format!("condition {kind}"), broken(status, got));
        }
    }
}

/// Compares the named fields as guards do: 4 and 4.0 are one number.
fn fields(root: Root, expected: &Doc, got: Option<&Doc>, missed: &mut Missed) {
    let mut leaves = Vec::new();
    leaves_of(expected.value(), &mut Vec::new(), &mut leaves);
    for (way, wanted) in leaves {
        let path = Path::new(root, way);
        let value = Value::Json(Doc::new(wanted.clone()));
        let one = Comparison { field: path.clone(), operator: Operator::Eq, value };
        let document = got.map(Doc::value);
        let roots = Roots { desired: document, data: document, outputs: document, ..Roots::default() };
        if (Filter { any: vec![vec![one]] }).judge(&roots, &mut 0) != Verdict::Holds {
            let found = document.and_then(|document| path.find(document));
            let got = found.map_or("nothing".to_owned(), |found| Doc::new(found.clone()).to_string());
            missed.add(&path.to_string(), broken(Doc::new(wanted.clone()).to_string(), got));
        }
    }
}

/// Every value of a document that is no object with fields, with the way to it.
fn leaves_of<'v>(value: &'v Json, way: &mut Vec<Segment>, leaves: &mut Vec<(Vec<Segment>, &'v Json)>) {
    match value.as_object() {
        Some(object) if !object.is_empty() => {
            for (name, inner) in object {
                way.push(Segment::Field(name.clone()));
                leaves_of(inner, way, leaves);
                way.pop();
            }
        }
        _ => leaves.push((way.clone(), value)),
    }
}

/// The requests of an entity that arrived are these, and no other.
fn made(wanted: &[Made], entity: &EntityId, requests: &[crate::Request]) -> Result<(), Broken> {
    let arrived: Vec<_> = requests.iter().filter(|one| one.entity == *entity && one.arrivals > 0).collect();
    let fits = |(wanted, got): (&Made, &&crate::Request)| {
        wanted.target == got.target
            && wanted.url.as_ref().is_none_or(|url| *url == got.url)
            && wanted
                .body
                .as_ref()
                .is_none_or(|body| got.body.as_ref().is_some_and(|got| within(body.value(), got.value())))
            && wanted.tries.is_none_or(|tries| tries == got.tries)
    };
    if wanted.len() == arrived.len() && wanted.iter().zip(&arrived).all(fits) {
        return Ok(());
    }
    let list = |all: Vec<String>| if all.is_empty() { "none".to_owned() } else { all.join(" | ") };
    let shown =
        |one: &&crate::Request| if one.tries > 1 { format!("{one} ({} tries)", one.tries) } else { one.to_string() };
    broken(list(wanted.iter().map(ToString::to_string).collect()), list(arrived.iter().map(shown).collect()))
}

/// Every field of an expected object is in the other, at any depth; all else is the same.
pub(super) fn within(wanted: &Json, got: &Json) -> bool {
    match (wanted, got) {
        (Json::Object(wanted), Json::Object(got)) => {
            wanted.iter().all(|(name, wanted)| got.get(name).is_some_and(|got| within(wanted, got)))
        }
        _ => wanted == got,
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)?;
        self.url.as_ref().map_or(Ok(()), |url| write!(f, " {url}"))?;
        self.body.as_ref().map_or(Ok(()), |body| write!(f, " {body}"))?;
        self.tries.map_or(Ok(()), |tries| write!(f, " ({tries} tries)"))
    }
}

/// Each text is part of a line, in this order, others between them.
pub(super) fn in_order(wanted: &[String], lines: &[String]) -> Result<(), Broken> {
    let mut rest = lines.iter();
    for (nth, text) in wanted.iter().enumerate() {
        if !rest.any(|line| line.contains(text.as_str())) {
            let behind = nth.checked_sub(1).and_then(|before| wanted.get(before));
            let behind = behind.map(|before| format!(" behind \"{before}\"")).unwrap_or_default();
            let got = if lines.is_empty() { "no history".to_owned() } else { lines.join(" | ") };
            return broken(format!("\"{text}\"{behind}"), got);
        }
    }
    Ok(())
}
