//! A machine of two steps and a timer, and steps as functions.

use interlock_coordinator::{Attempt, Closed, Ended, Executor, SubmitError};
use interlock_kernel::command::{Change, Create, OnExisting, Outcome, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::{Expect, Failure};
use interlock_kernel::view::Event;
use interlock_lab::Lab;
use interlock_lab::scenario::Stage;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const JOB: &str = r#"
machine = "job"
owner   = "tests <tests@example.com>"
initial = "idle"
component = "steps.wasm"
desired.schema = false
data    = { default = { runs = 0 }, schema = { type = "object" } }
outputs.schema = false
events.run.schema = false
events.note.schema = false

[states.idle]
kind = "rest"
on.run = { to = "first" }

[states.first]
step = "first"
to = ["pause"]
deadline = "1h"
retry = { attempts = 3, first = "1s", factor = 2.0, max = "1m" }
on.note = { set = { "data.noted" = true } }

[states.pause]
after = { wait = "90s", to = "second" }

[states.second]
step = "second"
to = ["idle"]
deadline = "1h"
"#;

/// Each step counts itself and goes on: `first` to `pause`, `second` to `idle`.
pub(crate) struct Steps;

impl Executor for Steps {
    fn start(&self, attempt: Attempt) {
        tokio::spawn(async move {
            let gate = attempt.gate();
            let done = tokio::select! {
                biased;
                closed = gate.closed() => return attempt.finish(stopped(&closed)),
                done = step(&attempt) => done,
            };
            attempt.finish(match done {
                Ok(()) => Ended::Returned,
                Err(error) => Ended::Failed(Failure {
                    permanent: false,
                    code: error.rejection().map_or("store".to_owned(), |no| no.code.to_string()),
                    reason: error.to_string(),
                    retry_after_ms: None,
                }),
            });
        });
    }
}

/// What a runtime says of a step that it stopped.
fn stopped(closed: &Closed) -> Ended {
    let (code, reason) = (closed.why.to_owned(), closed.text.to_string());
    Ended::Failed(Failure { permanent: false, code, reason, retry_after_ms: None })
}

async fn step(attempt: &Attempt) -> Result<(), SubmitError> {
    let data = attempt.start().documents.data.clone().unwrap();
    let runs = data.value()["runs"].as_u64().unwrap() + 1;
    let change = Change { data: Some(doc(&format!("{{\"runs\":{runs}}}"))), ..Change::default() };
    if attempt.start().step.as_str() == "first" {
        attempt.save(change.clone()).await?;
        attempt.transition("pause".parse().unwrap(), Change::default()).await?;
    } else {
        attempt.transition("idle".parse().unwrap(), change).await?;
    }
    Ok(())
}

pub(crate) fn doc(text: &str) -> Doc {
    Doc::parse(text).unwrap()
}

pub(crate) fn id() -> EntityId {
    "job/a".parse().unwrap()
}

/// What scenarios of the machine are played with.
pub(crate) fn stage() -> Stage {
    // Open documents: scenarios may write and expect what they like.
    let open =
        |text: &str, part: &str| text.replace(&format!("{part}.schema = false"), &format!("{part}.schema = {{}}"));
    let text = ["desired", "outputs"].into_iter().fold(JOB.to_owned(), |text, part| open(&text, part));
    stage_of(&text)
}

/// The same steps under another manifest.
pub(crate) fn stage_of(text: &str) -> Stage {
    let report = interlock_manifest::parse("machine.toml", text);
    let manifest = report.manifest.unwrap_or_else(|| panic!("{:?}", report.problems));
    Stage {
        manifest,
        component: Some(interlock_kernel::doc::Digest::of(&[b"steps"])),
        tables: Vec::new(),
        executor: Arc::new(Steps),
    }
}

/// A lab with the machine deployed and `job/a` at rest.
pub(crate) fn lab() -> Lab {
    lab_with(Arc::new(Steps))
}

pub(crate) fn lab_with(executor: Arc<dyn Executor>) -> Lab {
    let mut lab = Lab::new(executor).unwrap();
    let report = interlock_manifest::parse("machine.toml", JOB);
    let manifest = report.manifest.unwrap_or_else(|| panic!("{:?}", report.problems));
    lab.deploy(&manifest, JOB, Some(interlock_kernel::doc::Digest::of(&[b"steps"]))).unwrap();
    let create =
        Create { entity: id(), desired: None, labels: BTreeMap::new(), on_existing: OnExisting::Fail, event: None };
    lab.submit(Principal::local(), Verb::Create(Box::new(create))).unwrap();
    lab
}

pub(crate) fn send(lab: &mut Lab, name: &str, event: &str) -> Result<Outcome, SubmitError> {
    let event = Event {
        id: event.parse().unwrap(),
        name: name.parse().unwrap(),
        payload: None,
        expect: Expect::default(),
        checked: None,
    };
    lab.submit(Principal::local(), Verb::Deliver { entity: id(), event: Box::new(event) })
}

/// Where `job/a` stands, in one line.
pub(crate) fn stands(lab: &Lab) -> String {
    let view = lab.read(|host| async move { host.entity(&id()).await }).unwrap().unwrap();
    let data = view.documents.data.map(|data| data.to_string()).unwrap_or_default();
    let lock = view.head.lock.as_ref().map_or(String::new(), |lock| {
        format!(" attempt {:?} failed {} lost {}", lock.attempt.map(|open| open.ordinal), lock.failed, lock.lost)
    });
    format!("{} v{} {data}{lock}", view.head.state, view.head.version)
}
