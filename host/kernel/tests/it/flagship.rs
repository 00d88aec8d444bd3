//! The flagship on paper (#1 to #17 of the design's walk through one entity's records), as a transcript.

use crate::build::{Mc, create, doc, entity, event_of, machine, rest, step, succeeded, to, wait};
use crate::world::{World, failure};
use expect_test::expect_file;
use interlock_kernel::command::{Change, Verb};
use interlock_kernel::machine::ApplyPolicy;
use interlock_kernel::rejection::Code;
use interlock_kernel::time::Session;

/// A GPU whose size is changed: plan, wait for the provider, verify.
pub(crate) fn resource() -> Mc {
    let planning = || to("planning").when("event.size ne data.size").set("data.target = event.size");
    let behind = || to("planning").when("desired.size ne data.size").set("data.target = desired.size");
    machine("resource", "ready")
        .event("resize")
        .event("retire")
        .data(r#"{"size":1}"#)
        .with(|machine| machine.apply = ApplyPolicy::IfMatch)
        .state("ready", rest().on("resize", planning()).on("desired-changed", behind()).on("retire", to("lost")))
        .state("planning", step("plan").to(to("provisioning")))
        .state("provisioning", wait().after("provisioned", 90_000, to("verifying")))
        .state("verifying", step("verify").to(to("ready")).deadline(600_000).on_permanent(to("lost")))
        .state("lost", succeeded())
}

#[test]
fn flagship_is_as_on_paper() {
    let mut world = World::bare();
    let id = entity("resource/gpu-7");
    world.open(); // #1
    world.deploy(resource()); // #2
    world.create(create("resource/gpu-7")).unwrap(); // #3
    world.deliver(&id, event_of("resize", "e1", r#"{"size":4}"#)).unwrap(); // #4
    world.pass(2_000);
    let busy = world.deliver(&id, event_of("resize", "e2", r#"{"size":8}"#)).unwrap_err(); // #5
    assert_eq!((busy.code, busy.retryable), (Code::Busy, true));
    world.session = Session::NONE; // kill -9
    world.open(); // #6
    world.recover(); // #7
    let replayed = world.deliver(&id, event_of("resize", "e1", r#"{"size":4}"#)).unwrap(); // #8
    assert!(matches!(replayed, interlock_kernel::command::Outcome::Answered { replayed: true, .. }));
    let nodes = Change { data: Some(doc(r#"{"nodes":["n1"],"size":1,"target":4}"#)), ..Change::default() };
    world.transition(&id, "provisioning", nodes).unwrap(); // #9
    let busy = world.deliver(&id, event_of("resize", "e3", r#"{"size":8}"#)).unwrap_err(); // #10
    assert!(busy.got.contains("waiting for a timer"), "{busy}");
    world
        .run(Verb::Apply { entity: id.clone(), desired: doc(r#"{"size":8}"#), expect: Some(0), checked: None })
        .unwrap(); // #11
    world.fire(&id, "provisioned"); // #12
    world.pass(30_000);
    let zombie = world.claim(&id);
    world.end(&id, failure("idle")).unwrap(); // #13
    let late = world.run(Verb::Transition(zombie, "ready".parse().unwrap(), Box::default())).unwrap_err(); // #14
    assert_eq!((late.expected.as_str(), late.got.as_str()), ("no open attempt", "attempt 1, token 12"));
    let busy = world.deliver(&id, event_of("resize", "e4", r#"{"size":8}"#)).unwrap_err(); // #15
    assert!(busy.got.contains("back-off, next attempt in 1 s"), "{busy}");
    world.due(&id); // #16
    let size = Change {
        data: Some(doc(r#"{"nodes":["n1"],"size":4,"target":4}"#)),
        outputs: Some(doc(r#"{"address":"10.0.0.4"}"#)),
        ..Change::default()
    };
    world.transition(&id, "ready", size).unwrap(); // #17
    assert_eq!(world.decisions, 2, "verify, then desired-changed, in one commit");
    let transcript = world.transcript();
    let history: String =
        world.history(&id, &world.head(&id)).iter().map(|entry| crate::show::entry(entry) + "\n").collect();
    expect_file!["golden/flagship.txt"].assert_eq(&format!("{transcript}\n{history}"));
}

#[test]
fn exhausted_flagship_parks_and_permanent_loses_it() {
    for (kind, code) in [(failure("no-route"), "exhausted"), (crate::world::permanent("burnt"), "permanent")] {
        let (mut world, id) = World::of(resource(), "resource/gpu-7");
        world.send_of(&id, "resize", "e1", r#"{"size":4}"#);
        world.go(&id, "provisioning");
        world.fire(&id, "provisioned");
        let attempts = if kind.permanent { 1 } else { 5 };
        for attempt in 1..=attempts {
            world.end(&id, kind.clone()).unwrap();
            if attempt < attempts {
                world.due(&id);
            }
        }
        let head = world.head(&id);
        if kind.permanent {
            assert_eq!((head.state.as_str(), head.lock.is_none()), ("lost", true));
        } else {
            assert_eq!(head.park.unwrap().code, code);
            let busy = world.deliver(&id, event_of("resize", "e2", r#"{"size":8}"#)).unwrap_err();
            assert!(busy.got.contains("parked: exhausted") && !busy.retryable, "{busy}");
        }
    }
}
