//! Machines in a few words: `machine("resource", "ready").state("ready", rest().on("resize", to("planning")))`.

use interlock_kernel::command::{Create, OnExisting};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, Name};
use interlock_kernel::limits::DEDUP_MS_DEFAULT;
use interlock_kernel::machine::{
    ApplyPolicy, Contract, EventSpec, FailurePath, LeaseSpec, Leases, Machine, MachineLimits, Move, OnBusy, Retry,
    Revisions, State, StateKind, TimerSpec,
};
use interlock_kernel::record::{Condition, Expect};
use interlock_kernel::time::WallTime;
use interlock_kernel::timer::{CalendarRule, Date, Days, Due, FirstDay};
use interlock_kernel::value::{Comparison, Filter, Mutation, Operation, Value};
use interlock_kernel::view::Event;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn entity(text: &str) -> EntityId {
    text.parse().unwrap()
}

pub(crate) fn doc(text: &str) -> Doc {
    Doc::parse(text).unwrap_or_else(|bad| panic!("{text}: {bad}"))
}

/// JSON, or else a source: `4`, `"text"`, `event.size`, `now+5m`.
pub(crate) fn value(text: &str) -> Value {
    Doc::parse(text).map(Value::Json).unwrap_or_else(|_| Value::From(text.parse().unwrap()))
}

/// `event.size ne data.size`.
pub(crate) fn comparison(text: &str) -> Comparison {
    let mut words = text.splitn(3, ' ');
    let mut next = || words.next().unwrap_or_else(|| panic!("{text:?}"));
    Comparison { field: next().parse().unwrap(), operator: next().parse().unwrap(), value: value(next()) }
}

/// `a and b or c`.
pub(crate) fn filter(text: &str) -> Filter {
    Filter { any: text.split(" or ").map(|all| all.split(" and ").map(comparison).collect()).collect() }
}

/// `data.x = 1`, `data.n += 1`, `data.log << event.x`, `data.m max 3`, `data.m min 3`, `data.x remove 0`.
pub(crate) fn mutation(text: &str) -> Mutation {
    let mut words = text.splitn(3, ' ');
    let mut next = || words.next().unwrap_or_else(|| panic!("{text:?}"));
    let (field, operation) = (next(), next());
    let operation = match operation {
        "=" => Operation::Set,
        "+=" => Operation::Increment,
        "<<" => Operation::Append { max: 3 },
        "max" => Operation::Max,
        "min" => Operation::Min,
        "remove" => Operation::Remove,
        other => panic!("{other:?}"),
    };
    Mutation { field: field.parse().unwrap(), operation, value: value(next()) }
}

pub(crate) struct Mv(Move);

pub(crate) fn to(state: &str) -> Mv {
    Mv(Move { to: Some(name(state)), guard: Filter::default(), set: Vec::new() })
}

pub(crate) fn stay() -> Mv {
    Mv(Move { to: None, guard: Filter::default(), set: Vec::new() })
}

impl Mv {
    pub(crate) fn when(mut self, guard: &str) -> Self {
        self.0.guard = filter(guard);
        self
    }

    pub(crate) fn set(mut self, text: &str) -> Self {
        self.0.set.push(mutation(text));
        self
    }
}

pub(crate) struct St(State);

fn state(kind: StateKind) -> St {
    let retry = Retry { jitter: 0.0, ..Retry::default() };
    St(State { kind, retry, ..State::default() })
}

pub(crate) fn rest() -> St {
    state(StateKind::Rest)
}

pub(crate) fn wait() -> St {
    state(StateKind::Working)
}

pub(crate) fn step(step: &str) -> St {
    St(State { step: Some(name(step)), ..state(StateKind::Working).0 })
}

pub(crate) fn succeeded() -> St {
    state(StateKind::Succeeded)
}

pub(crate) fn failed() -> St {
    state(StateKind::Failed)
}

impl St {
    /// A move of the step.
    pub(crate) fn to(mut self, one: Mv) -> Self {
        self.0.to.push(one.0);
        self
    }

    /// A move of an event; further ones of the same event come after it.
    pub(crate) fn on(mut self, event: &str, one: Mv) -> Self {
        self.0.on.entry(name(event)).or_default().push(one.0);
        self
    }

    pub(crate) fn after(self, timer: &str, wait_ms: u64, then: Mv) -> Self {
        self.timer(timer, Due::After(wait_ms), then)
    }

    /// A timer that is due at what a field holds.
    pub(crate) fn at(self, timer: &str, field: &str, then: Mv) -> Self {
        self.timer(timer, Due::At(field.parse().unwrap()), then)
    }

    pub(crate) fn timer(mut self, timer: &str, due: Due, then: Mv) -> Self {
        self.0.after.push(TimerSpec { name: name(timer), due, then: then.0 });
        self
    }

    pub(crate) fn deadline(mut self, ms: u64) -> Self {
        self.0.deadline_ms = Some(ms);
        self
    }

    pub(crate) fn forever(mut self) -> Self {
        self.0.waits_forever = true;
        self
    }

    pub(crate) fn retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    pub(crate) fn attempts(mut self, attempts: u32) -> Self {
        self.0.retry.attempts = attempts;
        self
    }

    pub(crate) fn on_exhausted(mut self, one: Mv) -> Self {
        self.0.on_exhausted = path(one);
        self
    }

    pub(crate) fn on_permanent(mut self, one: Mv) -> Self {
        self.0.on_permanent = path(one);
        self
    }
}

pub(crate) fn path(one: Mv) -> FailurePath {
    FailurePath::To { to: one.0.to.unwrap(), set: one.0.set }
}

pub(crate) struct Mc(pub(crate) Machine);

pub(crate) fn machine(text: &str, initial: &str) -> Mc {
    Mc(Machine {
        name: text.parse().unwrap(),
        owner: "team@example.org".to_owned(),
        initial: name(initial),
        revisions: Revisions::Newest,
        labels: BTreeMap::new(),
        desired: Contract::default(),
        apply: ApplyPolicy::LastWriter,
        data: Contract::default(),
        outputs: Contract::default(),
        events: BTreeMap::new(),
        states: BTreeMap::new(),
        limits: MachineLimits::default(),
        leases: Leases::default(),
        targets: BTreeMap::new(),
        tables: BTreeSet::new(),
        peers: BTreeSet::new(),
    })
}

impl Mc {
    pub(crate) fn event(self, event: &str) -> Self {
        self.event_with(event, OnBusy::Reject, DEDUP_MS_DEFAULT)
    }

    pub(crate) fn queued(self, event: &str) -> Self {
        self.event_with(event, OnBusy::Queue, DEDUP_MS_DEFAULT)
    }

    /// Every event of these tests has a schema, so that the world's table of rules is asked.
    pub(crate) fn event_with(mut self, event: &str, on_busy: OnBusy, dedup_ms: u64) -> Self {
        let schema = Some(doc("true"));
        self.0.events.insert(name(event), EventSpec { on_busy, dedup_ms, schema });
        self
    }

    pub(crate) fn state(mut self, text: &str, state: St) -> Self {
        self.0.states.insert(name(text), state.0);
        self
    }

    pub(crate) fn data(mut self, text: &str) -> Self {
        self.0.data.default = Some(doc(text));
        self
    }

    /// The leases its executions may have.
    pub(crate) fn grants(mut self, pattern: &str, spec: LeaseSpec) -> Self {
        self.0.leases.granted.insert(pattern.to_owned(), spec);
        self
    }

    /// What every attempt in a state has: `"quota"` in JSON, or where the name stands.
    pub(crate) fn needs(mut self, state: &str, leases: &[&str]) -> Self {
        self.0.leases.needs.insert(name(state), leases.iter().map(|one| value(one)).collect());
        self
    }

    /// What a step's move takes.
    pub(crate) fn requires(mut self, from: &str, to: &str, leases: &[&str]) -> Self {
        let targets = self.0.leases.requires.entry(name(from)).or_default();
        targets.insert(name(to), leases.iter().map(|one| value(one)).collect());
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Machine)) -> Self {
        change(&mut self.0);
        self
    }
}

/// An event without payload.
pub(crate) fn event(text: &str, id: &str) -> Event {
    Event { id: id.parse().unwrap(), name: name(text), payload: None, expect: Expect::default(), checked: None }
}

pub(crate) fn event_of(text: &str, id: &str, payload: &str) -> Event {
    Event { payload: Some(doc(payload)), ..event(text, id) }
}

pub(crate) fn create(text: &str) -> Create {
    Create { entity: entity(text), desired: None, labels: BTreeMap::new(), on_existing: OnExisting::Same, event: None }
}

pub(crate) fn condition(kind: &str, status: &str) -> Condition {
    let (reason, message) = (String::new(), String::new());
    Condition { kind: kind.to_owned(), status: status.to_owned(), reason, message, since: WallTime(0) }
}

/// A calendar rule; what it means is the world's `Rules`' to say.
pub(crate) fn daily(holidays: &[Date]) -> Due {
    Due::Calendar(CalendarRule {
        text: "every day, 09:00 UTC".to_owned(),
        from: FirstDay::Today,
        days: Days::Weekdays(127),
        at_s: 32_400,
        zone: "UTC".to_owned(),
        at_least_ms: 0,
        holidays: holidays.to_vec(),
    })
}
