//! Orders of events that seeds meet too rarely: set up by hand, with the same gate.

use crate::boot::{Boot, rest, runtime};
use crate::gated::{Gated, How};
use crate::guests::{Crew, Diary};
use crate::log::Log;
use crate::machines::Kind;
use crate::moods::Mood;
use crate::plant::Plant;
use interlock_coordinator::Options;
use interlock_kernel::command::{Command, Create, OnExisting, Verb};
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::Expect;
use interlock_kernel::view::Event;
use interlock_store::{ManualClock, Mem};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn id() -> EntityId {
    EntityId { machine: "desk".parse().unwrap(), key: "a".parse().unwrap() }
}

fn create() -> Verb {
    let (desired, event) = (None, None);
    Verb::Create(Box::new(Create {
        entity: id(),
        desired,
        labels: BTreeMap::new(),
        on_existing: OnExisting::Same,
        event,
    }))
}

fn ask() -> Verb {
    let payload = Some(interlock_kernel::doc::Doc::new(serde_json::json!({ "n": 1 })));
    let (name, id_of_event) = ("ask".parse().unwrap(), "e1".parse().unwrap());
    let event = Event { id: id_of_event, name, payload, expect: Expect::default(), checked: None };
    Verb::Deliver { entity: id(), event: Box::new(event) }
}

/// Runs every waiting job and query, in order.
async fn serve(boot: &mut Boot) {
    loop {
        rest().await;
        boot.take_host().await.unwrap();
        if !boot.gated.tell() && !boot.gated.ask(0, false) && boot.gated.run(0, How::Plain).is_none() {
            return;
        }
    }
}

fn asks(boot: &Boot, verb: Verb) {
    drop(boot.ask(0, 0, Command { by: Principal::local(), verb }));
}

#[test]
fn an_attempt_that_is_being_taken_in_is_not_lost() {
    let runtime = runtime().unwrap();
    let clock = ManualClock::new();
    let mem = Mem::new(Arc::new(clock.clone()));
    let gated = Gated::new(Arc::new(mem.clone()), Plant::Nothing);
    let diary = Diary::new(Log::new(false), 0, Arc::new(|_, _| Mood::Hangs));
    let crew = Crew::new(diary, Arc::new(clock.clone()));
    let mut boot = {
        let _inside = runtime.enter();
        Boot::begin(gated, crew, Options::default())
    };
    runtime.block_on(async {
        serve(&mut boot).await;
        asks(&boot, Kind::of("desk").unwrap().deploy(0));
        serve(&mut boot).await;
        asks(&boot, create());
        serve(&mut boot).await;
        // The reconciler has read every index, and reads heads next.
        for _ in 0..3 {
            clock.advance(Duration::from_secs(1));
            serve(&mut boot).await;
        }
        // An attempt begins, and nobody is told: the host looks at everything again. It reads slowly.
        boot.gated.hold_queries(true);
        asks(&boot, ask());
        rest().await;
        assert!(boot.gated.run(0, How::Unknown { kept: true }).is_some());
        boot.gated.tell();
        rest().await;
        let reads = boot.gated.queries();
        assert!(reads > 0);
        // Meanwhile the reconciler reads, and finds an open attempt that is not here.
        clock.advance(Duration::from_secs(1));
        rest().await;
        assert_eq!(boot.gated.queries(), reads + 1, "the reconciler is the only one who woke");
        boot.gated.ask(reads, false);
        rest().await;
        // It looks once more a second later, which is before the host has read its own.
        clock.advance(Duration::from_secs(1));
        rest().await;
        while boot.gated.run(0, How::Plain).is_some() {}
        boot.gated.hold_queries(false);
        for _ in 0..3 {
            serve(&mut boot).await;
            clock.advance(Duration::from_secs(1));
        }
        let stats = boot.host.as_ref().unwrap().stats();
        assert_eq!((stats.repaired, stats.dispatched, stats.running), (0, 1, 1));
    });
    mem.crash();
    boot.end(runtime);
}
