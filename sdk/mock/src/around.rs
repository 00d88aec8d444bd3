//! A host around a single step: the smallest machine that has it.

use crate::command::{New, Signal};
use crate::host::MockHost;
use crate::native::Steps;
use crate::ran::Ran;
use interlock::{Done, Entity, Failure};
use interlock_kernel::doc::Doc;
use serde_json::Value;

/// A step about to be tried by itself; made by [`MockHost::around`].
#[derive(Debug)]
#[must_use = "nothing is tried before `run` or `host`"]
pub struct Around {
    name: String,
    steps: Steps,
    state: String,
    to: Vec<String>,
    desired: Option<Value>,
    data: Option<Value>,
    outputs: Option<Value>,
    event: Signal,
}

impl MockHost {
    /// A step by itself, in a machine made for it: the entity `it` rests in `idle`, and an event takes it to the
    /// state `working`, whose step this is. There are no schemas and no guards, only the states that
    /// [`Around::to`] names; a failure parks. For a step's own logic that is enough; whether a machine allows
    /// what it asks is for a test with its manifest.
    pub fn around(
        name: impl Into<String>,
        step: impl Fn(&Entity) -> Result<Done, Failure> + Send + Sync + 'static,
    ) -> Around {
        let name = name.into();
        Around {
            steps: Steps::one(name.clone(), step),
            name,
            state: "working".to_owned(),
            to: Vec::new(),
            desired: None,
            data: None,
            outputs: None,
            event: Signal::new("start"),
        }
    }
}

impl Around {
    /// The states that the step may ask for.
    pub fn to<S: Into<String>>(mut self, states: impl IntoIterator<Item = S>) -> Self {
        self.to.extend(states.into_iter().map(Into::into));
        self
    }

    /// The name of the step's own state, for a step that looks at it.
    pub fn state(mut self, name: impl Into<String>) -> Self {
        self.state = name.into();
        self
    }

    /// What clients want.
    pub fn desired(mut self, desired: Value) -> Self {
        self.desired = Some(desired);
        self
    }

    /// What steps before this one remembered.
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// What steps before this one promised.
    pub fn outputs(mut self, outputs: Value) -> Self {
        self.outputs = Some(outputs);
        self
    }

    /// The event that the step is given.
    pub fn event(mut self, name: impl Into<String>, payload: Value) -> Self {
        self.event = Signal::new(name).payload(payload);
        self
    }

    /// Runs one attempt to its end.
    #[track_caller]
    #[must_use]
    pub fn run(self) -> Ran {
        self.host().step("it")
    }

    /// The host, with the entity `it` held before the step's first call: for faults, and for what comes after the
    /// first attempt.
    #[track_caller]
    #[must_use]
    pub fn host(self) -> MockHost {
        let manifest = self.manifest();
        let report = interlock_manifest::parse("machine.toml", &manifest);
        let Some(mut read) = report.manifest.clone() else {
            panic!("expected names of states and events, got\n{}", interlock_manifest::render(&report, false));
        };
        // TOML has no null, and these are anything that JSON can say.
        read.machine.data.default = self.data.map(Doc::new);
        read.machine.outputs.default = self.outputs.map(Doc::new);
        let mut host = MockHost::empty();
        host.deploy_read(&read, &manifest, self.steps).accepted();
        let new = New::of("it");
        let new = match self.desired {
            Some(desired) => new.desired(desired),
            None => new,
        };
        host.create(new).accepted();
        host.deliver("it", self.event).accepted();
        host
    }

    /// The machine.
    fn manifest(&self) -> String {
        let Self { name, state, event, .. } = self;
        let event = event.name();
        let to: Vec<String> = self.to.iter().map(|to| format!("{to:?}")).collect();
        let mut text = format!(
            r#"
machine = "around"
owner = "a test"
component = "step.wasm"
initial = "idle"
desired.schema = {{}}
data.schema = {{}}
outputs.schema = {{}}
events.{event}.schema = {{}}

[states.idle]
kind = "rest"
on.{event} = {{ to = "{state}" }}

[states.{state}]
step = "{name}"
to = [{}]
deadline = "1h"
retry = {{ attempts = 3, first = "1s", factor = 2.0, max = "1m" }}
on_failure = "park"
"#,
            to.join(", ")
        );
        for to in self.to.iter().filter(|to| *to != "idle" && *to != state) {
            text.push_str(&format!("\n[states.{to}]\nkind = \"rest\"\non.{event} = {{ to = \"{state}\" }}\n"));
        }
        text
    }
}
