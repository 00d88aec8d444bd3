//! Effects that a lease fences: its token, and who has it by the time they are sent.

use crate::build::{name, value};
use crate::effects::{asked, carrying, effect, ticket, try_it, whats};
use crate::world::World;
use interlock_kernel::command::{Acquire, LeaseAsk, Outcome, Verb};
use interlock_kernel::ids::{EntityId, LeaseName};
use interlock_kernel::machine::LeaseSpec;
use interlock_kernel::record::{CauseKind, EffectWhat, Terms};
use interlock_kernel::rejection::Code;

fn leased() -> (World, EntityId, LeaseName) {
    let fenced = ticket().with(|machine| {
        machine.leases.granted.insert("cluster/*".to_owned(), LeaseSpec::default());
        machine.targets.get_mut(&name("tickets")).unwrap().fence = Some(value("\"cluster/eu\""));
    });
    let (mut world, id) = World::of(fenced, "ticket/a");
    world.send(&id, "open", "o1");
    (world, id, "cluster/eu".parse().unwrap())
}

fn rival(lease: LeaseName) -> Acquire {
    let terms = Terms { ttl_ms: 30_000, hold_ms: 60_000, delay_ms: 0 };
    Acquire { lease, grant: "g1".parse().unwrap(), label: "rival".to_owned(), terms, wait_ms: None }
}

#[test]
fn an_effect_that_a_lease_fences_carries_its_token() {
    let (mut world, id, lease) = leased();
    let without = world.save(&id, carrying(vec![asked("tickets")])).unwrap_err();
    assert_eq!(without.code, Code::Require);
    let claim = world.claim(&id);
    let Outcome::Leased { claim: held, .. } = world.ok(Verb::Lease(claim, LeaseAsk::Acquire(lease, None))) else {
        panic!()
    };
    world.transition(&id, "waiting", carrying(vec![asked("tickets")])).unwrap();
    let made = effect(&world, &id, 1).unwrap();
    assert_eq!((made.resource.as_str(), made.token), ("cluster/eu", held.token));
}

#[test]
fn an_effect_fenced_by_a_lease_that_has_moved_on_is_settled_as_fenced_and_never_sent() {
    let (mut world, id, lease) = leased();
    let claim = world.claim(&id);
    world.ok(Verb::Lease(claim, LeaseAsk::Acquire(lease.clone(), None)));
    world.transition(&id, "idle", carrying(vec![asked("tickets")])).unwrap();
    // Released with its execution: nobody newer acts, so it may still be sent.
    let mut peaceful = world.clone();
    assert!(try_it(&mut peaceful, &id, 1).is_some());
    world.ok(Verb::Acquire(Box::new(rival(lease))));
    assert_eq!(try_it(&mut world, &id, 1), None);
    let (what, _, note) = whats(&world, &id).pop().unwrap();
    assert_eq!(what, EffectWhat::Fenced);
    assert!(note.starts_with("unsent: lease cluster/eu was granted again"), "{note}");
}

/// Two effects of an execution that waits in `state` and whose lease a rival has by now.
fn moved_on(state: &str) -> (World, EntityId) {
    let (mut world, id, lease) = leased();
    let claim = world.claim(&id);
    world.ok(Verb::Lease(claim, LeaseAsk::Acquire(lease.clone(), None)));
    world.transition(&id, state, carrying(vec![asked("tickets"), asked("tickets")])).unwrap();
    world.pass(LeaseSpec::default().hold_ms);
    world.ok(Verb::Acquire(Box::new(rival(lease))));
    (world, id)
}

#[test]
fn unsent_because_its_lease_moved_on_it_is_the_event_of_one_that_its_receiver_refused() {
    let (mut world, id) = moved_on("waiting");
    assert_eq!(try_it(&mut world, &id, 1), None);
    assert_eq!((world.data(&id).as_str(), world.head(&id).state.as_str()), (r#"{"failed":"fenced"}"#, "idle"));
    assert_eq!(world.head(&id).cause.kind, CauseKind::Effect);
    assert_eq!(try_it(&mut world, &id, 2), None);
    let told = whats(&world, &id);
    let first = told.iter().map(|(what, number, _)| (*what, *number)).collect::<Vec<_>>();
    assert_eq!(first, [(EffectWhat::Fenced, 1), (EffectWhat::Fenced, 2)]);
    assert!(told[0].2.starts_with("unsent: lease cluster/eu was granted again, expected token "), "{told:?}");
}

#[test]
fn unsent_where_no_state_takes_it_it_holds_nobody_up_and_strands_nobody_silently() {
    let (mut world, id) = moved_on("blind");
    assert_eq!(try_it(&mut world, &id, 1), None);
    assert_eq!((effect(&world, &id, 1), world.head(&id).park), (None, None), "another is under way");
    assert_eq!(try_it(&mut world, &id, 2), None);
    assert!(whats(&world, &id)[1].2.ends_with("; not waited for"));
    assert_eq!(world.head(&id).park.unwrap().code, "stranded");
}

#[test]
fn a_newer_owner_is_told_before_a_target_that_is_withdrawn() {
    let (mut world, id, lease) = leased();
    let claim = world.claim(&id);
    world.ok(Verb::Lease(claim, LeaseAsk::Acquire(lease.clone(), None)));
    world.transition(&id, "idle", carrying(vec![asked("tickets")])).unwrap();
    let withdrawn = ticket().with(|machine| drop(machine.targets.remove(&name("tickets"))));
    world.deploy(withdrawn);
    world.send(&id, "open", "o2"); // which follows the newest revision
    assert_eq!(world.head(&id).revision, 2);
    world.ok(Verb::Acquire(Box::new(rival(lease))));
    assert_eq!(try_it(&mut world, &id, 1), None);
    assert_eq!(whats(&world, &id).pop().unwrap().0, EffectWhat::Fenced);
}

#[test]
fn the_lease_that_fences_an_effect_may_be_named_by_what_entered_the_visit() {
    let fenced = ticket().with(|machine| {
        machine.leases.granted.insert("cluster/*".to_owned(), LeaseSpec::default());
        machine.targets.get_mut(&name("tickets")).unwrap().fence = Some(value("event.cluster"));
    });
    let (mut world, id) = World::of(fenced, "ticket/a");
    world.send_of(&id, "open", "o1", r#"{"cluster":"cluster/eu"}"#);
    let claim = world.claim(&id);
    world.ok(Verb::Lease(claim, LeaseAsk::Acquire("cluster/eu".parse().unwrap(), None)));
    world.transition(&id, "waiting", carrying(vec![asked("tickets")])).unwrap();
    assert_eq!(effect(&world, &id, 1).unwrap().resource, "cluster/eu");
}
