//! Effects on their way: to a receiver that remembers all it was asked, over crashes at every point.

use super::run;
use super::world::{accepted, command, deploy, parse, rest};
use crate::{Attempt, Coordinator, Courier, Ended, Executor, Options, SubmitError};
use interlock_kernel::command::{Change, Create, OnExisting, Said, Sending, Stage, StagedEffect, Tried, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::Expect;
use interlock_kernel::rejection::Code;
use interlock_kernel::view::Event;
use interlock_store::{BoxFuture, ManualClock, Mem, MemImage};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

const ASKING: &str = r#"
machine   = "pool"
owner     = "tests <tests@example.com>"
component = "asking.wasm"
initial   = "idle"
desired.schema = false
data.schema    = {}
outputs.schema = false
events.go.schema = {}

[targets.slow]
url     = "https://slow.example/{n}"
on_late = "event"
[targets.quick]
url     = "https://quick.example/{n}"
on_late = "event"

[states.idle]
kind  = "rest"
on.go = { to = "asking" }

[states.asking]
step     = "ask"
to       = ["waiting"]
deadline = "1h"
on.effect-done = { set = { "data.done" = { increment = 1 } } }

[states.waiting]
deadline = "1h"
on.effect-failed = { to = "idle", set = { "data.failed" = { from = "event.code" } } }

[[states.waiting.on.effect-done]]
to    = "idle"
guard = { all = [{ field = "data.done", op = "ge", value = 2 }] }
set   = { "data.done" = { increment = 1 } }

[[states.waiting.on.effect-done]]
set   = { "data.done" = { increment = 1 } }
"#;

/// Deaths that come before the end: all first ones of 144 pairs (six points, at each at once or with the next
/// commit), and the second ones that have so many points left to come.
const KILLED: usize = 216;

fn asked(target: &str, n: u64) -> StagedEffect {
    StagedEffect {
        target: parse(target),
        fill: BTreeMap::from([("n".to_owned(), n.to_string())]),
        headers: Vec::new(),
        body: Doc::parse(&format!("{{\"n\":{n}}}")).ok(),
    }
}

fn carrying(effects: Vec<StagedEffect>) -> Change {
    Change { stage: Stage { effects, ..Stage::default() }, ..Change::default() }
}

/// Asks once in a save, twice in its transition.
struct Asker;

impl Executor for Asker {
    fn start(&self, attempt: Attempt) {
        tokio::spawn(async move {
            let start = attempt.start();
            let saved = start.documents.data.as_ref().is_some_and(|data| data.value().get("saved").is_some());
            let key = start.claim.execution.entity.key.to_string();
            let target = key.split('-').next().unwrap_or_default().to_owned();
            if !saved {
                let data = Doc::parse(r#"{"saved":true,"done":0}"#).ok();
                let save = attempt.save(Change { data, ..carrying(vec![asked(&target, 1)]) }).await;
                assert!(save.is_ok(), "{save:?}");
            }
            loop {
                let effects = vec![asked(&target, 2), asked(&target, 3)];
                match attempt.transition(parse("waiting"), carrying(effects)).await {
                    Ok(_) => break,
                    // A result came in between.
                    Err(SubmitError::Rejected(no)) if no.code == Code::Conflict => {
                        let read = attempt.reload().await;
                        assert!(read.is_ok(), "{read:?}");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            attempt.finish(Ended::Returned);
        });
    }
}

/// One request as the receiver saw it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    number: u64,
    key: String,
    token: u64,
    body: String,
}

#[derive(Clone, Default)]
struct Receiver {
    seen: Arc<Mutex<Vec<Seen>>>,
    fuse: Arc<Mutex<Option<Fuse>>>,
}

/// How a host dies: at the n-th point that it comes to on its way with an effect.
struct Fuse {
    left: usize,
    /// With the next commit, which is kept, or at once.
    with_commit: bool,
    mem: Mem,
    dead: Arc<Notify>,
}

impl Receiver {
    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A point: the host may not get beyond it.
    async fn point(&self) {
        let dies = {
            let mut fuse = self.fuse.lock().unwrap_or_else(PoisonError::into_inner);
            match fuse.as_mut() {
                Some(fuse) if fuse.left > 0 => {
                    fuse.left -= 1;
                    false
                }
                Some(fuse) if fuse.with_commit => {
                    fuse.mem.die_after_commit();
                    false
                }
                Some(fuse) => {
                    fuse.dead.notify_one();
                    true
                }
                None => false,
            }
        };
        if dies {
            std::future::pending::<()>().await;
        }
    }
}

impl Courier for Receiver {
    fn send<'a>(&'a self, sending: &'a Sending) -> BoxFuture<'a, Tried> {
        Box::pin(async move {
            if sending.effect.target.as_str() == "slow" {
                std::future::pending::<()>().await;
            }
            self.point().await;
            let effect = &sending.effect;
            let seen = Seen {
                number: sending.number,
                key: effect.key.clone(),
                token: effect.token.get(),
                body: effect.body.as_ref().map(|body| body.text().to_owned()).unwrap_or_default(),
            };
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            self.point().await;
            Tried::Done(Said { status: 200, body: None, truncated: false })
        })
    }
}

async fn open(mem: Mem, receiver: &Receiver) -> Coordinator {
    let courier: Arc<dyn Courier> = Arc::new(receiver.clone());
    let options = Options { reconcile: false, courier: Some(courier), ..Options::default() };
    match Coordinator::open(Arc::new(mem), Arc::new(Asker), options).await {
        Ok(host) => host,
        Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string)),
    }
}

async fn go(host: &Coordinator, id: &EntityId) {
    let create = Create {
        entity: id.clone(),
        desired: None,
        labels: BTreeMap::new(),
        on_existing: OnExisting::Same,
        event: None,
    };
    accepted(host.submit(command(Verb::Create(Box::new(create)))).await);
    let event = Event { id: parse("go-1"), name: parse("go"), payload: None, expect: Expect::default(), checked: None };
    accepted(host.submit(command(Verb::Deliver { entity: id.clone(), event: Box::new(event) })).await);
}

async fn data(host: &Coordinator, id: &EntityId) -> Option<String> {
    let view = accepted(host.entity(id).await.map_err(SubmitError::from))?;
    let over = view.head.state.as_str() == "idle" && view.head.executions == 1;
    over.then(|| view.documents.data.map(|data| data.text().to_owned()).unwrap_or_default())
}

/// The data of an entity whose execution has ended.
async fn over(host: &Coordinator, id: &EntityId) -> String {
    for _ in 0..100 {
        if let Some(data) = data(host, id).await {
            return data;
        }
        rest().await;
    }
    panic!("{id} does not come to its end: {:?}", host.entity(id).await);
}

#[test]
fn effects_go_out_in_order_and_their_results_come_back() {
    run(async {
        let receiver = Receiver::default();
        let host = open(Mem::new(Arc::new(ManualClock::new())), &receiver).await;
        accepted(host.submit(deploy(ASKING, "asking")).await);
        let id = parse("pool/quick-1");
        go(&host, &id).await;
        assert_eq!(over(&host, &id).await, r#"{"done":3,"saved":true}"#);
        judge(&receiver.seen(), "one life");
        let view = accepted(host.entity(&id).await.map_err(SubmitError::from));
        assert_eq!(view.map(|view| (view.head.outbox.last, view.head.outbox.unsettled)), Some((3, 0)));
        assert_eq!(host.reconcile().await, Ok(Vec::new()));
    });
}

#[test]
fn a_target_that_hangs_holds_up_nothing_but_itself() {
    run(async {
        let receiver = Receiver::default();
        let host = open(Mem::new(Arc::new(ManualClock::new())), &receiver).await;
        accepted(host.submit(deploy(ASKING, "asking")).await);
        // More than may be under way of one target, and more than are read at a time.
        for nth in 0..40 {
            go(&host, &parse(&format!("pool/slow-{nth}"))).await;
        }
        rest().await;
        let id = parse("pool/quick-1");
        go(&host, &id).await;
        over(&host, &id).await;
        assert_eq!(host.stats().sent, 8 + 3, "of the target that hangs, its own bound");
        assert_eq!(accepted(host.effects(1_000).await.map_err(SubmitError::from)).len(), 40 * 3);
    });
}

/// Where a life ends, if it ends early.
#[derive(Clone, Copy, Debug)]
struct Death {
    point: usize,
    with_commit: bool,
}

/// Runs a host until everything is over, or until it dies: then everything of it but its store is gone.
fn life(image: &MemImage, clock: &ManualClock, receiver: &Receiver, death: Option<Death>) -> bool {
    let runtime = match tokio::runtime::Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime: {error}"),
    };
    let id: EntityId = parse("pool/quick-1");
    let over = runtime.block_on(async {
        let mem = match Mem::open(image.clone(), Arc::new(clock.clone())) {
            Ok(mem) => mem,
            Err(error) => panic!("{error}"),
        };
        let dead = Arc::new(Notify::new());
        let fuse = death.map(|Death { point, with_commit }| Fuse {
            left: point,
            with_commit,
            mem: mem.clone(),
            dead: dead.clone(),
        });
        *receiver.fuse.lock().unwrap_or_else(PoisonError::into_inner) = fuse;
        let host = open(mem, receiver).await;
        accepted(host.submit(deploy(ASKING, "asking")).await);
        go(&host, &id).await;
        let lives = async {
            loop {
                match host.entity(&id).await {
                    Ok(Some(view)) if view.head.state.as_str() == "idle" && view.head.executions == 1 => return true,
                    Ok(_) => rest().await,
                    Err(_died) => return false,
                }
            }
        };
        tokio::select! {
            biased;
            () = dead.notified() => false,
            over = lives => over,
        }
    });
    drop(runtime);
    *receiver.fuse.lock().unwrap_or_else(PoisonError::into_inner) = None; // it has the store in its hands
    over
}

#[test]
fn killed_at_every_point_between_an_effect_and_its_result_each_is_made_in_order_and_none_is_lost() {
    let deaths = || (0..6).flat_map(|point| [false, true].map(|with_commit| Death { point, with_commit }));
    let mut killed = 0;
    for first in deaths() {
        for second in deaths() {
            let (image, clock, receiver) = (MemImage::new(), ManualClock::new(), Receiver::default());
            let lives = [Some(first), Some(second), None];
            let died = lives.into_iter().take_while(|death| {
                let over = life(&image, &clock, &receiver, *death);
                // A wait that a lost attempt brings is over by the next life.
                clock.advance(Duration::from_secs(5));
                !over
            });
            killed += died.count();
            judge(&receiver.seen(), &format!("{first:?}, {second:?}"));
        }
    }
    assert_eq!(killed, KILLED, "of two deaths each, those that came before the end");
}

/// At least once, under one key, with one body and token, and never after a later one.
fn judge(seen: &[Seen], lives: &str) {
    let mut first: BTreeMap<u64, &Seen> = BTreeMap::new();
    let mut newest = 0;
    for one in seen {
        let known = first.entry(one.number).or_insert(one);
        assert_eq!(*known, one, "{lives}");
        assert!(one.number >= newest, "{lives}: {} after {newest}", one.number);
        newest = one.number;
    }
    let bodies: Vec<&str> = first.values().map(|one| one.body.as_str()).collect();
    assert_eq!(bodies, [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#], "{lives}");
    let later = first.values().zip(first.values().skip(1));
    assert!(later.into_iter().all(|(one, next)| one.token <= next.token && one.key != next.key), "{lives}");
}

#[test]
fn a_host_that_makes_no_requests_refuses_them_by_name() {
    run(async {
        let store = Arc::new(Mem::new(Arc::new(ManualClock::new())));
        let options = Options { reconcile: false, ..Options::default() };
        let Ok(host) = Coordinator::open(store, Arc::new(Asker), options).await else { panic!("no host") };
        accepted(host.submit(deploy(ASKING, "asking")).await);
        let id = parse("pool/quick-1");
        go(&host, &id).await;
        assert_eq!(over(&host, &id).await, r#"{"done":0,"failed":"denied","saved":true}"#);
    });
}
