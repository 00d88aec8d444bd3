//! The machines of the simulation, each with another revision of itself, and what clients send to them.

use interlock_conformance::Random;
use interlock_kernel::command::{Deploy, Verb};
use interlock_kernel::doc::{Digest, Doc};
use serde_json::json;
use std::sync::Arc;

/// One machine of the simulation.
pub(crate) struct Kind {
    /// Its name.
    pub(crate) name: &'static str,
    source: &'static str,
    /// What its other revisions replace in the manifest.
    others: &'static [(&'static str, &'static str)],
    /// The events clients send, the first ones more often.
    pub(crate) events: &'static [&'static str],
    /// Whether clients say what they want.
    pub(crate) takes_desired: bool,
}

/// Every machine.
pub(crate) const KINDS: [Kind; 9] = [
    Kind {
        name: "chain",
        source: include_str!("../machines/chain.toml"),
        // Other guards; everybody can follow.
        others: &[("value = 97", "value = 98"), ("value = 97", "value = 50")],
        events: &["later", "go", "later"],
        takes_desired: false,
    },
    Kind {
        name: "pool",
        source: include_str!("../machines/pool.toml"),
        // The second waits shorter; large pools cannot follow into the third.
        others: &[
            ("wait = \"7s\"", "wait = \"3s\""),
            ("maximum = 64 }\nproperties.target", "maximum = 32 }\nproperties.target"),
        ],
        events: &["resize", "grow", "note", "resize"],
        takes_desired: true,
    },
    Kind {
        name: "desk",
        source: include_str!("../machines/desk.toml"),
        others: &[("deadline   = \"1m\"", "deadline   = \"30s\"")],
        events: &["ask", "ask", "note", "stop", "ask", "note", "ask", "stop", "ask", "ask", "ask", "shut"],
        takes_desired: false,
    },
    Kind {
        name: "lamp",
        source: include_str!("../machines/lamp.toml"),
        // The second has no timer at rest, and lamps that wait for it stay with the first.
        others: &[(
            "after    = { name = \"tick\", wait = \"45s\", set = { \"data.ticks\" = { increment = 1 } } }\n",
            "",
        )],
        events: &["light", "hold", "free", "light", "ring", "free"],
        takes_desired: false,
    },
    Kind {
        name: "flaky",
        source: include_str!("../machines/flaky.toml"),
        others: &[("total        = \"6s\"", "total        = \"5s\"")],
        events: &["try", "again"],
        takes_desired: true,
    },
    Kind {
        name: "saver",
        source: include_str!("../machines/saver.toml"),
        others: &[("idle       = \"3s\"", "idle       = \"4s\"")],
        events: &["walk"],
        takes_desired: false,
    },
    Kind {
        name: "crane",
        source: include_str!("../machines/crane.toml"),
        // The second holds its dock for longer, the third is not told of ships any more.
        others: &[("hold_max = \"25s\"", "hold_max = \"50s\""), ("timeout = \"3s\"", "timeout = \"1s\"")],
        events: &["lift"],
        takes_desired: false,
    },
    Kind {
        name: "mail",
        source: include_str!("../machines/mail.toml"),
        // The second has letters that nobody recalls; the third has no notes any more.
        others: &[
            ("on_late = { compensate = \"recall\" }", "on_late = \"event\""),
            ("[targets.note]", "[targets.memo]"),
        ],
        events: &["post", "post", "post", "stop"],
        takes_desired: false,
    },
    Kind {
        name: "bell",
        source: include_str!("../machines/bell.toml"),
        // The second rings by another clock.
        others: &[("Europe/Berlin", "America/New_York")],
        events: &["plan", "book", "plan", "stop"],
        takes_desired: false,
    },
];

impl Kind {
    /// A machine by name.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// How many revisions of it there are.
    pub(crate) fn revisions(&self) -> u64 {
        self.others.len() as u64 + 1
    }

    /// The command that deploys one of them, from 0.
    pub(crate) fn deploy(&self, nth: u64) -> Verb {
        let other = usize::try_from(nth).ok().and_then(|nth| self.others.get(nth.checked_sub(1)?));
        let source = match other {
            Some((find, replace)) => {
                assert_eq!(self.source.matches(find).count(), 1, "{}: {find}", self.name);
                self.source.replace(find, replace)
            }
            None => self.source.to_owned(),
        };
        deploy(self.name, &source)
    }
}

/// The command that deploys a manifest.
pub(crate) fn deploy(name: &str, source: &str) -> Verb {
    let report = interlock_manifest::parse(name, source);
    let Some(manifest) = report.manifest else {
        panic!("{name} is not a manifest: {:#?}", report.problems);
    };
    let component = manifest.component.as_ref().map(|name| Digest::of(&[name.as_bytes()]));
    Verb::Deploy(Box::new(Deploy {
        machine: Arc::new(manifest.machine),
        digest: Digest::of(&[source.as_bytes()]),
        component,
        source: source.to_owned(),
    }))
}

/// A payload for an event, mostly a good one.
pub(crate) fn payload(event: &str, random: &mut Random) -> Option<Doc> {
    if random.below(25) == 0 {
        return Some(Doc::new(json!({ "size": "much", "n": -1, "parts": 0 })));
    }
    match event {
        "go" | "later" => Some(Doc::new(json!({ "n": random.below(100) }))),
        "resize" | "grow" => Some(Doc::new(json!({ "size": 1 + random.below(40) }))),
        "walk" => Some(Doc::new(json!({ "parts": 1 + random.below(5) }))),
        "lift" => {
            let ship = ["ship/a", "ship/b", "ship/c"][usize::try_from(random.below(3)).unwrap_or(0)];
            Some(Doc::new(json!({ "ship": ship })))
        }
        // Around the time that a run begins at: some are past, some far ahead.
        "book" => Some(Doc::new(json!({ "at": 1_700_000_000_000 + random.below(600_000) }))),
        _ => None,
    }
}

/// What a client may want of a machine.
pub(crate) fn desired(machine: &str, random: &mut Random) -> Doc {
    if random.below(20) == 0 {
        return Doc::new(json!({ "colour": 7 }));
    }
    match machine {
        "pool" => Doc::new(json!({ "image": format!("v{}", random.below(6)) })),
        _ => Doc::new(json!({ "level": random.below(6) })),
    }
}
