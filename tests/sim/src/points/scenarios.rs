//! The canonical scenarios, as scripts: what clients and operators do, what steps are up to, how time passes.
//!
//! A script says the same whatever happens to the host: a client that is not answered asks again, and `rest`
//! waits until nothing moves any more. So each must end the same, wherever the host dies in it.

use crate::machines::Kind;
use crate::moods::Mood;
use crate::receiver::Whim;
use crate::wire::Turn;
use interlock_kernel::command::{Acquire, Command, Create, OnExisting, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, GrantId, LeaseName, Principal};
use interlock_kernel::record::{Expect, Terms};
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
pub const SCENARIOS: [Scenario; 16] = [
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
    Scenario {
        name: "a lease held over two steps and a wait",
        script: r#"
            deploy crane 0
            create crane/a
            create crane/b
            acquire dock alice 8s
            send crane/a lift l1 {"ship":"ship/a"}
            acquire ship/a bob 5s
            pass 1s
            extend dock alice
            send crane/b lift l2 {"ship":"ship/b"}
            release dock alice
            mood lifting Leases
            rest
            acquire dock alice 4s
            release dock alice
            send crane/b lift l3 {"ship":"ship/a"}
            rest
        "#,
    },
    Scenario {
        name: "a lease that is lost under a step",
        script: r#"
            deploy crane 0
            create crane/a
            mood lifting Outlasts
            send crane/a lift l1 {"ship":"ship/a"}
            mood lifting Good
            pass 4500ms
            acquire spare alice 5s
            rest
            mood stowing Hangs
            send crane/a lift l2 {"ship":"ship/c"}
            mood stowing Good
            rest
        "#,
    },
    Scenario {
        name: "effects in each of their fates",
        script: r#"
            deploy mail 0
            create mail/a
            fate mail/a letter fails unheard does
            send mail/a post p1
            rest
            fate mail/a letter refuses
            send mail/a post p2
            fate mail/a letter does
            retry mail/a
            unpark mail/a
            rest
            fate mail/a letter unreached denied
            send mail/a post p3
            pass 2s
            drop mail/a
            rest
            fate mail/a letter fails
            fate mail/a note refuses
            send mail/a post p4
            rest
        "#,
    },
    Scenario {
        name: "an effect that is done too late, and one of a late owner",
        script: r#"
            deploy mail 0
            deploy crane 0
            create mail/a
            create crane/a
            create crane/b
            hold mail/a
            hold crane/a
            send mail/a post p1
            send mail/a stop s1
            send crane/a lift l1 {"ship":"ship/a"}
            pass 25s
            pass 4s
            send crane/b lift l2 {"ship":"ship/b"}
            pass 1s
            go
            rest
            send mail/a post p2
            kill mail/a
            rest
        "#,
    },
    Scenario {
        name: "timers at an instant, by a calendar, and of a step",
        script: r#"
            deploy bell 0
            create bell/a
            create bell/b
            send bell/a book b1 {"at":1700000005000}
            send bell/b plan p1
            pass 6s
            send bell/a plan p2
            boot
            pass 3s
            rest
            send bell/a book b2 {"at":1}
            send bell/b book b3 {"at":1700000900000}
            send bell/b stop s1
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
    /// What becomes of an entity's requests to a target from now on, try by try; the last for good.
    Fate(EntityId, String, Vec<Turn>),
    /// An entity's requests stay on their way from now on.
    Hold(EntityId),
    /// Nobody's do.
    Go,
    /// A client renews a lease, or gives it back, under the token that it was told last.
    Tenant(LeaseName, GrantId, Tenancy),
    /// An operator has what was given up tried again, or gives it up for good; nothing if nothing was.
    GivenUp(EntityId, Remedy),
    /// Time passes, in ms.
    Pass(u64),
    /// Until nothing moves any more.
    Rest,
    /// A stop in good order, and a boot.
    Boot,
}

/// What a client does with what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tenancy {
    Extend,
    Release,
}

/// What an operator does about an effect that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    Retry,
    Drop,
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

fn span(text: &str) -> u64 {
    parse_ms(text).unwrap_or_else(|error| panic!("{error}"))
}

fn turn(word: &str) -> Turn {
    match word {
        "does" => Turn::Arrives(Whim::Does),
        "fails" => Turn::Arrives(Whim::Fails),
        "refuses" => Turn::Arrives(Whim::Refuses),
        "unheard" => Turn::Unheard(Whim::Does),
        "unreached" => Turn::Unreached,
        "denied" => Turn::Denied,
        _ => panic!("{word:?} is no fate of a request"),
    }
}

fn act(line: &str) -> Act {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ask = |verb| Act::Ask(Box::new(Command { by: Principal::local(), verb }));
    match words[..] {
        ["rest"] => Act::Rest,
        ["boot"] => Act::Boot,
        ["pass", by] => Act::Pass(span(by)),
        ["mood", state, mood] => {
            let known = Mood::BAD.into_iter().chain([Mood::Good, Mood::Naps]);
            let mood = known.into_iter().find(|known| format!("{known:?}") == mood);
            Act::Mood(state.to_owned(), mood.unwrap_or_else(|| panic!("{line}: no such mood")))
        }
        ["fate", entity, target, ref words @ ..] => {
            Act::Fate(id(entity), target.to_owned(), words.iter().map(|word| turn(word)).collect())
        }
        ["hold", entity] => Act::Hold(id(entity)),
        ["go"] => Act::Go,
        ["acquire", lease, client, ttl] => ask(Verb::Acquire(Box::new(Acquire {
            lease: parse(lease),
            grant: parse(client),
            label: client.to_owned(),
            terms: Terms { ttl_ms: span(ttl), hold_ms: 60_000, delay_ms: 500 },
            wait_ms: None,
        }))),
        ["extend", lease, client] => Act::Tenant(parse(lease), parse(client), Tenancy::Extend),
        ["release", lease, client] => Act::Tenant(parse(lease), parse(client), Tenancy::Release),
        ["retry", entity] => Act::GivenUp(id(entity), Remedy::Retry),
        ["drop", entity] => Act::GivenUp(id(entity), Remedy::Drop),
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
