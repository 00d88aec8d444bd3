//! The three machines, and what their actors do.

use super::scene::{Act, Left, Scene};
use crate::build::{Mc, create, doc, machine, name, rest, stay, step, succeeded, to, wait};
use crate::world::{World, failure, permanent};
use interlock_kernel::command::{Change, Create, OnExisting, Verb};
use interlock_kernel::record::Expect;
use interlock_kernel::view::Claim;

/// A machine, its actors, and how far the search goes when nobody says.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    pub(crate) name: &'static str,
    pub(crate) start: fn() -> Scene,
    pub(crate) acts: &'static [Act],
    pub(crate) depth: usize,
    /// So many there are at that depth: a search that lost its acts would not notice otherwise.
    pub(crate) states_at_least: usize,
    /// To this depth it is checked that equal states stay equal.
    pub(crate) twin_depth: usize,
}

fn to_idle(claim: Claim) -> Verb {
    Verb::Transition(claim, name("idle"), Box::default())
}

fn save(claim: Claim) -> Verb {
    Verb::Save(claim, Box::new(Change { outputs: Some(doc("1")), ..Change::default() }))
}

const A: &str = "client A";
const B: &str = "client B";
const OPERATOR: &str = "the operator";
const HOST: &str = "the host";
const STEP: &str = "the step";

const fn act(actor: &'static str, what: &'static str, run: fn(&mut Scene) -> bool) -> Act {
    Act { actor, what, run }
}

const CRASH: Act = act(HOST, "dies, and another boots", Scene::crash);
const RECOVER: Act = act(HOST, "takes up what the one before left open", Scene::recover);
const ZOMBIE: Act = act(STEP, "of the attempt before asks for idle", |scene| scene.zombie(to_idle));
const ZOMBIE_SAVES: Act = act(STEP, "of the attempt before saves", |scene| scene.zombie(save));
const SAVE: Act = act(STEP, "saves", |scene| scene.step(save));
const MOVE_TO_IDLE: Act = act(STEP, "moves to idle", |scene| scene.step(to_idle));
const FAIL: Act = act(STEP, "fails", |scene| scene.step(|claim| Verb::End(claim, failure("slow"))));
const PASS: Act = act("time", "passes to what is due next", Scene::pass);
const LOOK: Act = act(HOST, "looks at what is due", Scene::look);
const DAY: Act = act("time", "passes by a day", Scene::day);
const RUN_1: Act = act(A, "sends run as r1", |scene| scene.send("run", "r1"));
const RUN_2: Act = act(A, "sends run as r2", |scene| scene.send("run", "r2"));
const KILL: Act = act(OPERATOR, "kills it", |scene| {
    scene.is_there() && scene.spend(|left| &mut left.deaths) && {
        let verb = Verb::Kill { entity: scene.id.clone(), reason: "enough".to_owned() };
        scene.operate(verb)
    }
});
const UNPARK: Act = act(OPERATOR, "unparks it", |scene| {
    let parked = scene.head().is_some_and(|head| head.park.is_some());
    parked && scene.operate(Verb::Unpark(scene.id.clone()))
});
const RECREATE: Act = act(OPERATOR, "creates it again", |scene| {
    let before = scene.head().map(|head| head.incarnation);
    let recreate = Create { on_existing: OnExisting::Recreate, ..create("job/a") };
    scene.left.deaths > 0 && {
        drop(scene.ask(Verb::Create(Box::new(recreate))));
        scene.head().map(|head| head.incarnation) != before && scene.spend(|left| &mut left.deaths)
    }
});

/// One event, one step, and everything that can happen to its attempts: small enough to be searched whole.
fn trying() -> Mc {
    machine("job", "idle")
        .event("run")
        .data(r#"{"run":0}"#)
        .state("idle", rest().on("run", to("working").set("data.run += 1")))
        .state("working", step("work").to(to("idle")).attempts(2))
}

pub(crate) const ATTEMPTS: Scope = Scope {
    name: "attempts",
    start: || {
        let (world, id) = World::of(trying(), "job/a");
        Scene::of(world, id, Left { hosts: 2, deaths: 1, deploys: 0, days: 0 })
    },
    acts: &[RUN_1, MOVE_TO_IDLE, SAVE, FAIL, ZOMBIE, ZOMBIE_SAVES, PASS, LOOK, CRASH, RECOVER, KILL, UNPARK],
    depth: 64,
    states_at_least: 250,
    twin_depth: 64,
};

/// Events that wait their turn, one that ends the entity, duplicates of all of them, and `desired`.
fn queueing() -> Mc {
    machine("job", "idle")
        .event("run")
        .queued("later")
        .event("note")
        .queued("end")
        .data(r#"{"end":0,"later":0,"note":0,"run":0}"#)
        .state(
            "idle",
            rest()
                .on("run", to("working").set("data.run += 1"))
                .on("later", to("working").set("data.later += 1"))
                .on("note", to("idle").set("data.note += 1"))
                .on("end", to("over").set("data.end += 1"))
                .on("desired-changed", to("working")),
        )
        .state("working", step("work").to(to("idle")).on("note", stay().set("data.note += 1")))
        .state("over", succeeded())
}

pub(crate) const QUEUE: Scope = Scope {
    name: "queue",
    start: || {
        let (world, id) = World::of(queueing(), "job/a");
        Scene::of(world, id, Left { hosts: 2, deaths: 1, deploys: 0, days: 1 })
    },
    acts: &[
        RUN_1,
        RUN_2,
        act(A, "looks", |scene| {
            scene.seen = scene.head().map(|head| (head.incarnation.get(), head.version.get()));
            scene.seen.is_some()
        }),
        act(A, "sends note as n1, for the version it saw", |scene| {
            let Some((incarnation, version)) = scene.seen else { return false };
            let expect = Expect { incarnation: Some(incarnation), version: Some(version), ..Expect::default() };
            scene.send_expecting("note", "n1", expect)
        }),
        act(B, "sends later as l1", |scene| scene.send("later", "l1")),
        act(B, "sends later as l2", |scene| scene.send("later", "l2")),
        act(B, "sends end as e1", |scene| scene.send("end", "e1")),
        act(B, "applies 1", |scene| scene.apply("1")),
        act(B, "applies 2", |scene| scene.apply("2")),
        RECREATE,
        MOVE_TO_IDLE,
        SAVE,
        ZOMBIE,
        CRASH,
        RECOVER,
        DAY,
    ],
    depth: 4,
    states_at_least: 3_500,
    twin_depth: 3,
};

/// Attempts that fail, are lost, park and are unparked; a failure path into another step.
fn retrying() -> Mc {
    machine("job", "idle")
        .event("run")
        .event("stop")
        .data(r#"{"run":0,"stop":0}"#)
        .state("idle", rest().on("run", to("working").set("data.run += 1")).on("desired-changed", to("working")))
        .state(
            "working",
            step("work")
                .to(to("idle"))
                .on("stop", to("idle").set("data.stop += 1"))
                .attempts(2)
                .on_permanent(to("mending")),
        )
        .state("mending", step("mend").to(to("idle")).attempts(1))
}

pub(crate) const RETRIES: Scope = Scope {
    name: "retries",
    start: || {
        let (world, id) = World::of(retrying(), "job/a");
        Scene::of(world, id, Left { hosts: 3, deaths: 1, deploys: 0, days: 0 })
    },
    acts: &[
        RUN_1,
        RUN_2,
        act(A, "sends stop as s1", |scene| scene.send("stop", "s1")),
        act(B, "applies 1", |scene| scene.apply("1")),
        act(B, "applies 2", |scene| scene.apply("2")),
        KILL,
        UNPARK,
        RECREATE,
        MOVE_TO_IDLE,
        FAIL,
        act(STEP, "fails for good", |scene| scene.step(|claim| Verb::End(claim, permanent("burnt")))),
        ZOMBIE,
        act(STEP, "of the attempt before fails", |scene| scene.zombie(|claim| Verb::End(claim, failure("late")))),
        PASS,
        LOOK,
        CRASH,
        act(HOST, "stops in good order, and another boots", |scene| {
            scene.spend(|left| &mut left.hosts) && {
                scene.world.ok(Verb::CloseSession);
                scene.world.open();
                true
            }
        }),
        RECOVER,
        act(HOST, "finds that it runs no such attempt", |scene| {
            let open = scene.head().and_then(|head| head.lock).and_then(|lock| lock.attempt);
            open.is_some()
                && scene.operate(Verb::Audit {
                    entity: scene.id.clone(),
                    found: Vec::new(),
                    abandoned: open.map(|open| open.token),
                })
        }),
    ],
    depth: 5,
    states_at_least: 4_500,
    twin_depth: 3,
};

/// Two timers, deadlines, the execution's limit, and a revision that does not know one of the timers.
fn timing(gong: &str) -> Mc {
    let first = gong == "gong";
    machine("job", "idle")
        .event("run")
        .event("note")
        .data(r#"{"bell":0,"bong":0,"gong":0,"note":0,"run":0}"#)
        .state("idle", rest().on("run", to("waiting").set("data.run += 1")))
        .state(
            "waiting",
            wait()
                .after("bell", 1_000, stay().set("data.bell += 1"))
                .after(gong, 2_000, to("working").set(&format!("data.{gong} += 1")))
                .on("note", stay().set("data.note += 1"))
                .deadline(2_000),
        )
        .state(
            "working",
            step("work")
                .to(to("idle"))
                .to(to("waiting"))
                .deadline(if first { 1_500 } else { 500 })
                .on_exhausted(to("idle")),
        )
        .with(|machine| machine.limits.execution_ms = Some(6_000))
}

pub(crate) const TIMES: Scope = Scope {
    name: "times",
    start: || {
        let (world, id) = World::of(timing("gong"), "job/a");
        Scene::of(world, id, Left { hosts: 2, deaths: 1, deploys: 2, days: 0 })
    },
    acts: &[
        RUN_1,
        RUN_2,
        act(A, "sends note as n1", |scene| scene.send("note", "n1")),
        act(OPERATOR, "deploys the other revision", |scene| {
            scene.spend(|left| &mut left.deploys) && {
                let machine = scene.id.machine.clone();
                let first = scene.world.revision_digest(&machine, 1);
                let is_first = scene.world.revision_digest(&machine, scene.world.active(&machine)) == first;
                scene.world.deploy(timing(if is_first { "bong" } else { "gong" }));
                true
            }
        }),
        act(OPERATOR, "rolls back to revision 1", |scene| {
            let machine = scene.id.machine.clone();
            let [active, first] = [scene.world.active(&machine), 1].map(|of| scene.world.revision_digest(&machine, of));
            active != first && scene.operate(Verb::Rollback { machine, to: 1 })
        }),
        KILL,
        UNPARK,
        MOVE_TO_IDLE,
        act(STEP, "moves to waiting", |scene| {
            scene.step(|claim| Verb::Transition(claim, name("waiting"), Box::default()))
        }),
        FAIL,
        ZOMBIE,
        PASS,
        LOOK,
        act(HOST, "fires the timer that was due first", |scene| scene.fire(|_| 0)),
        act(HOST, "fires the timer that was due last", |scene| scene.fire(|over| over - 1)),
        CRASH,
        RECOVER,
    ],
    depth: 7,
    states_at_least: 2_500,
    twin_depth: 4,
};
