//! A small world, exhaustively: every order of a few commands of clients, steps, clocks, operators and
//! crashes, to a modest depth. The world checks every theorem after each; here is what must also hold.

use crate::build::{Mc, create, doc, event, machine, name, rest, stay, step, to, wait};
use crate::world::{World, failure};
use interlock_kernel::command::{Change, Create, OnExisting, Outcome, Verb};
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::{Head, Key, Record, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::time::WallTime;
use interlock_kernel::view::Claim;

/// Counts what happened to it in data: each event id at most once.
fn counter() -> Mc {
    machine("job", "idle")
        .event("run")
        .queued("later")
        .event("note")
        .event("stop")
        .data(r#"{"later":0,"note":0,"run":0}"#)
        .state(
            "idle",
            rest()
                .on("run", to("working").set("data.run += 1"))
                .on("later", to("working").set("data.later += 1"))
                .on("note", to("idle").set("data.note += 1"))
                .on("desired-changed", to("working")),
        )
        .state(
            "working",
            step("work")
                .to(to("idle"))
                .to(to("waiting"))
                .on("note", stay().set("data.note += 1"))
                .on("stop", to("idle"))
                .attempts(2),
        )
        .state("waiting", wait().after("bell", 1_000, to("working")).deadline(1_500).on_exhausted(to("idle")))
}

#[derive(Clone)]
struct Scene {
    world: World,
    id: EntityId,
    /// Every attempt there was, oldest first.
    claims: Vec<Claim>,
    creations: u64,
}

type Act = (&'static str, fn(&mut Scene));

const ACTS: [Act; 15] = [
    ("run", |scene| scene.send("run", "r1")),
    ("later", |scene| scene.send("later", "l1")),
    ("note", |scene| scene.send("note", "n1")),
    ("stop", |scene| scene.send("stop", "s1")),
    ("idle", |scene| scene.step(|claim| Verb::Transition(claim, name("idle"), Box::default()))),
    ("wait", |scene| scene.step(|claim| Verb::Transition(claim, name("waiting"), Box::default()))),
    ("save", |scene| {
        scene.step(|claim| Verb::Save(claim, Box::new(Change { outputs: Some(doc("1")), ..Change::default() })))
    }),
    ("fail", |scene| scene.step(|claim| Verb::End(claim, failure("slow")))),
    ("zombie", |scene| scene.zombie()),
    ("tick", |scene| scene.tick()),
    ("crash", |scene| {
        scene.world.open();
    }),
    ("recover", |scene| scene.world.recover()),
    ("kill", |scene| scene.run(Verb::Kill { entity: scene.id.clone(), reason: String::new() })),
    ("apply", |scene| {
        let generation = scene.world.find_head(&scene.id).map_or(0, |head| head.generation);
        let desired = doc(&generation.to_string());
        scene.run(Verb::Apply { entity: scene.id.clone(), desired, expect: None, checked: None });
    }),
    ("recreate", |scene| {
        let before = scene.world.records.clone();
        scene.run(Verb::Create(Box::new(Create { on_existing: OnExisting::Recreate, ..create("job/a") })));
        scene.creations += u64::from(scene.world.records != before);
    }),
];

impl Scene {
    fn new() -> Self {
        let (mut world, id) = World::of(counter(), "job/a");
        world.silent = true;
        Self { world, id, claims: Vec::new(), creations: 1 }
    }

    fn run(&mut self, verb: Verb) {
        drop(self.world.run(verb));
    }

    fn send(&mut self, text: &str, id: &str) {
        drop(self.world.deliver(&self.id.clone(), event(text, id)));
    }

    /// The newest attempt asks; it has read what is there.
    fn step(&mut self, verb: fn(Claim) -> Verb) {
        let Some(claim) = self.claims.last().cloned() else { return };
        let read = self.world.find_head(&self.id).map_or(claim.read, |head| head.version);
        self.asked(Claim { read, ..claim }, verb);
    }

    /// The oldest attempt asks, with what it read long ago.
    fn zombie(&mut self) {
        let Some(claim) = self.claims.first().cloned() else { return };
        self.asked(claim, |claim| Verb::Transition(claim, name("idle"), Box::default()));
    }

    /// Whoever is not the open attempt hears fenced and changes nothing but facts.
    fn asked(&mut self, claim: Claim, verb: fn(Claim) -> Verb) {
        let before = self.world.find_head(&self.id);
        let open = before.as_ref().and_then(|head| head.lock.as_ref()).and_then(|lock| lock.attempt);
        let holds = open.is_some_and(|open| open.token == claim.token);
        let answered = self.world.run_as(Principal::execution(&claim.execution), verb(claim));
        let after = self.world.find_head(&self.id);
        if holds {
            assert!(!matches!(&answered, Err(refused) if refused.code == Code::Fenced), "{answered:?}");
        } else {
            assert_eq!(answered.unwrap_err().code, Code::Fenced);
            let kept = |head: &Head| (head.version, head.lock.clone(), head.state.clone());
            assert_eq!(before.as_ref().map(kept), after.as_ref().map(kept));
        }
    }

    /// Time passes to the next thing that it causes.
    fn tick(&mut self) {
        let Some(head) = self.world.find_head(&self.id) else { return };
        let timer = head.timers.first().cloned();
        let store = head.due.map(|due| due.0.saturating_sub(self.world.store));
        let wall = timer.as_ref().map(|timer| timer.due.since(WallTime(self.world.wall)));
        let Some(wait) = store.into_iter().chain(wall).min() else { return };
        self.world.pass(wait);
        if let Some(timer) = timer.filter(|timer| timer.due.0 <= self.world.wall) {
            let fire = Verb::Fire { entity: self.id.clone(), timer: timer.name, due: timer.due };
            let fired = self.world.ok(fire.clone());
            assert_eq!(fired, Outcome::Nothing);
            let version = self.world.head(&self.id).version;
            self.world.ok(fire); // twice
            assert_eq!(self.world.head(&self.id).version, version);
        }
        self.world.ok(Verb::Due(self.id.clone()));
    }

    fn check(&mut self) {
        if let Some(start) = self.world.starts.get(&self.id)
            && self.claims.last().is_none_or(|last| last.token != start.claim.token)
        {
            self.claims.push(start.claim.clone());
        }
        assert!(self.claims.is_sorted_by(|one, two| one.token < two.token), "tokens only grow");
        let open = self.world.records.keys().filter(|key| matches!(key, Key::Open(..)));
        assert!(open.count() <= 1, "one lock, one open attempt");
        // Each event id has at most one effect, over every incarnation.
        let mut taken = std::collections::BTreeSet::new();
        for (_, record) in self.world.records.iter() {
            if let Record::Entry(entry) = record
                && let (What::Event(_), Some(event)) = (&entry.what, &entry.event)
            {
                assert!(taken.insert(event.clone()), "{event} was taken twice");
            }
        }
        let ids = self.world.heads().len();
        assert!(ids <= 1 && self.creations >= 1);
    }
}

/// Every order of acts from here; an act that changes nothing is the same as none.
fn explore(scene: &Scene, depth: u32, path: &mut Vec<&'static str>, met: &mut u64) {
    for (act, run) in ACTS {
        let mut next = scene.clone();
        path.push(act);
        let shown = Shown(path.clone());
        run(&mut next);
        next.check();
        std::mem::forget(shown);
        *met += 1;
        if depth > 1 && next.world.records != scene.world.records {
            explore(&next, depth - 1, path, met);
        }
        path.pop();
    }
}

/// Prints the path when the world stops the test.
struct Shown(Vec<&'static str>);

impl Drop for Shown {
    fn drop(&mut self) {
        eprintln!("after {:?}", self.0);
    }
}

#[test]
fn every_order_of_a_few_commands_keeps_every_theorem() {
    let mut met = 0;
    explore(&Scene::new(), 4, &mut Vec::new(), &mut met);
    assert!(met > 5_000, "{met}");
}

#[test]
fn every_order_from_a_running_step_with_a_full_house_does_too() {
    let mut scene = Scene::new();
    for act in ["run", "later", "apply", "crash"] {
        let (_, run) = ACTS.iter().find(|(name, _)| *name == act).unwrap();
        run(&mut scene);
        scene.check();
    }
    let mut met = 0;
    explore(&scene, 4, &mut Vec::new(), &mut met);
    assert!(met > 5_000, "{met}");
}
