//! The canonical scenarios, as scripts: what clients and operators do, what steps are up to, how time passes.
//!
//! A script says the same whatever happens to the host: a client that is not answered asks again, and `rest`
//! waits until nothing moves any more. So each must end the same, wherever the host dies in it.

use crate::guests::Mood;
use crate::machines::Kind;
use interlock_kernel::command::{Command, Create, OnExisting, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::Expect;
use interlock_kernel::value::parse_ms;
use interlock_kernel::view::Event;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A scenario.
pub struct Scenario {
    /// What it is about.
    pub name: &'static str,
    pub(crate) script: &'static str,
}

/// Every scenario.
pub const SCENARIOS: [Scenario; 11] = [
    Scenario {
        name: "first boot, deploy, create",
        script: r#"
            deploy chain 0
            deploy pool 0
            create chain/a
            create chain/b first=later e0 {"n":1}
            create pool/a {"image":"v1"}
            create pool/a {"image":"v1"}
            rest
        "#,
    },
    Scenario {
        name: "two steps and a timer",
        script: r#"
            deploy pool 0
            create pool/a
            mood planning Naps
            send pool/a resize e1 {"size":4}
            send pool/a resize e1 {"size":4}
            send pool/a resize e2 {"size":8}
            pass 1s
            apply pool/a {"image":"v2"} 0
            rest
            send pool/a resize e1 {"size":4}
        "#,
    },
    Scenario {
        name: "a queue drained in coming to rest",
        script: r#"
            deploy desk 0
            create desk/a
            mood serving Hangs
            send desk/a ask a1 {"n":1}
            send desk/a ask a2 {"n":2}
            send desk/a ask a3 {"n":3}
            send desk/a note n1
            send desk/a stop s1
            mood serving Good
            rest
            send desk/a ask a2 {"n":2}
        "#,
    },
    Scenario {
        name: "retries and a failure path",
        script: r#"
            deploy chain 0
            create chain/a
            mood s2 Fails
            send chain/a go e1 {"n":1}
            send chain/a later e2 {"n":2}
            rest
            mood s2 Nothing
            send chain/a later e3 {"n":3}
            mood s2 Good
            rest
        "#,
    },
    Scenario {
        name: "saves, and what is lost with a host",
        script: r#"
            deploy saver 0
            create saver/a
            send saver/a walk w1 {"parts":4}
            mood walking Naps
            send saver/a walk w2 {"parts":2}
            send saver/a walk w3 {"parts":1}
            rest
        "#,
    },
    Scenario {
        name: "park and unpark",
        script: r#"
            deploy flaky 0
            create flaky/a
            mood trying Fails
            send flaky/a try t1
            send flaky/a again t2
            rest
            mood trying Good
            unpark flaky/a
            unpark flaky/a
            rest
            mood trying FailsForGood
            send flaky/a try t3
            rest
        "#,
    },
    Scenario {
        name: "kill",
        script: r#"
            deploy desk 0
            create desk/a
            mood serving Hangs
            send desk/a ask a1 {"n":1}
            send desk/a ask a2 {"n":2}
            send desk/a note n1
            kill desk/a
            kill desk/a
            send desk/a ask a3 {"n":3}
            rest
        "#,
    },
    Scenario {
        name: "deploy while locked, and rollback",
        script: r#"
            deploy pool 0
            create pool/a
            create pool/b
            mood planning Naps
            send pool/a resize e1 {"size":4}
            deploy pool 1
            send pool/b resize e2 {"size":5}
            pass 1s
            rollback pool 1
            rest
            deploy pool 2
            send pool/a grow e3 {"size":9}
            rest
        "#,
    },
    Scenario {
        name: "delete and create again",
        script: r#"
            deploy chain 0
            create chain/a
            send chain/a go e1 {"n":1}
            rest
            delete chain/a
            send chain/a go e1 {"n":1}
            create chain/a first=later e2 {"n":2}
            rest
            send chain/a go e1 {"n":1}
            recreate chain/a first=later e3 {"n":3}
            rest
        "#,
    },
    Scenario {
        name: "what is forgotten",
        script: r#"
            deploy desk 0
            create desk/a
            create desk/b
            send desk/a note n1
            send desk/a note n2
            send desk/b note n3
            delete desk/b
            pass 70s
            rest
            send desk/a note n1
            pass 70s
            rest
            pass 20s
            rest
        "#,
    },
    Scenario {
        name: "waits, timers and a stop in good order",
        script: r#"
            deploy lamp 0
            create lamp/a
            create lamp/b
            send lamp/a light l1
            send lamp/b hold h1
            pass 2500ms
            boot
            send lamp/b free f1
            send lamp/a hold h2
            send lamp/a light l2
            boot
            pass 10s
            rest
        "#,
    },
];

/// One line of a script.
pub(crate) enum Act {
    /// A request, until it is answered.
    Ask(Box<Command>),
    /// What steps in a state are up to from now on.
    Mood(String, Mood),
    /// Time passes, in ms.
    Pass(u64),
    /// Until nothing moves any more.
    Rest,
    /// A stop in good order, and a boot.
    Boot,
}

impl Scenario {
    /// Its lines; the last is always a rest.
    pub(crate) fn acts(&self) -> Vec<Act> {
        let lines = self.script.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(act).chain([Act::Rest]).collect()
    }
}

fn parse<T: FromStr>(text: &str) -> T
where
    T::Err: fmt::Display,
{
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn id(text: &str) -> EntityId {
    let (machine, key) = text.split_once('/').unwrap_or_else(|| panic!("{text:?} is not machine/key"));
    EntityId { machine: parse(machine), key: parse(key) }
}

fn act(line: &str) -> Act {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ask = |verb| Act::Ask(Box::new(Command { by: Principal::local(), verb }));
    match words[..] {
        ["rest"] => Act::Rest,
        ["boot"] => Act::Boot,
        ["pass", span] => Act::Pass(parse_ms(span).unwrap_or_else(|error| panic!("{error}"))),
        ["mood", state, mood] => {
            let known = Mood::BAD.into_iter().chain([Mood::Good, Mood::Naps]);
            let mood = known.into_iter().find(|known| format!("{known:?}") == mood);
            Act::Mood(state.to_owned(), mood.unwrap_or_else(|| panic!("{line}: no such mood")))
        }
        ["deploy", name, nth] => {
            let kind = Kind::of(name).unwrap_or_else(|| panic!("{name} is no machine"));
            ask(kind.deploy(parse(nth)))
        }
        ["rollback", name, to] => ask(Verb::Rollback { machine: parse(name), to: parse(to) }),
        ["create", entity, ref rest @ ..] => ask(create(entity, OnExisting::Same, rest)),
        ["recreate", entity, ref rest @ ..] => ask(create(entity, OnExisting::Recreate, rest)),
        ["send", entity, name, event, ref payload @ ..] => {
            ask(Verb::Deliver { entity: id(entity), event: Box::new(self::event(name, event, payload)) })
        }
        ["apply", entity, desired, generation] => ask(Verb::Apply {
            entity: id(entity),
            desired: json(desired),
            expect: Some(parse(generation)),
            checked: None,
        }),
        ["delete", entity] => ask(Verb::Delete(id(entity))),
        ["kill", entity] => ask(Verb::Kill { entity: id(entity), reason: "as the script says".to_owned() }),
        ["unpark", entity] => ask(Verb::Unpark(id(entity))),
        _ => panic!("unknown line: {line}"),
    }
}

fn json(text: &str) -> Doc {
    Doc::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn event(name: &str, id: &str, payload: &[&str]) -> Event {
    Event {
        id: parse(id),
        name: parse(name),
        payload: payload.first().map(|text| json(text)),
        expect: Expect::default(),
        checked: None,
    }
}

fn create(entity: &str, on_existing: OnExisting, rest: &[&str]) -> Verb {
    let (first, desired) = match *rest {
        [first, ref event @ ..] if first.starts_with("first=") => {
            let name = first.trim_start_matches("first=");
            let (event_id, payload) = event.split_first().unwrap_or_else(|| panic!("{entity}: {first} without an id"));
            (Some(self::event(name, event_id, payload)), None)
        }
        [desired] => (None, Some(json(desired))),
        _ => (None, None),
    };
    Verb::Create(Box::new(Create { entity: id(entity), desired, labels: BTreeMap::new(), on_existing, event: first }))
}
