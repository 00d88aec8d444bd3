//! What a state needs before its step begins: all or none, in order, in the transaction that begins it.

use crate::build::{create, doc, entity};
use crate::leases::{ask, lease, pool, pool_machine, spec};
use crate::world::World;
use interlock_kernel::command::{Change, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::{BUSY_RETRY_MS, LEASE_LINE_MAX};
use interlock_kernel::record::{BeginReason, What};
use interlock_kernel::time::StoreTime;
use interlock_kernel::view::Wake;

pub(crate) fn release(world: &mut World, name: &str, label: &str) {
    let token = world.lease_token(name).get();
    world.ok(Verb::Release { lease: lease(name), grant: label.parse().unwrap(), token });
}

pub(crate) fn attempt(world: &World, id: &EntityId) -> Option<u64> {
    world.head(id).lock.and_then(|lock| lock.attempt).map(|open| open.token.get())
}

pub(crate) fn awaits(world: &World, id: &EntityId) -> Option<String> {
    world.head(id).awaits.map(|name| name.to_string())
}

#[test]
fn what_is_free_is_granted_with_the_attempt() {
    let (mut world, a, _) = pool();
    world.send(&a, "both", "a1");
    assert_eq!(world.head(&a).leases, [lease("quota"), lease("disk")]);
    let tokens = ["quota", "disk"].map(|name| world.lease_token(name).get());
    assert_eq!(attempt(&world, &a), Some(tokens[0]));
    assert_eq!(tokens[0], tokens[1]);
}

#[test]
fn all_or_none_and_the_first_that_is_not_free_is_waited_for() {
    let (mut world, a, _) = pool();
    world.ok(ask("disk", "one", 60_000).into());
    world.send(&a, "both", "a1");
    assert_eq!((awaits(&world, &a).as_deref(), attempt(&world, &a)), (Some("disk"), None));
    assert_eq!(world.holder("quota"), "nobody", "none of them");
    assert_eq!(world.last_entry(&a).what, What::Awaits(lease("disk")));
    world.ok(ask("quota", "two", 60_000).into());
    release(&mut world, "disk", "one");
    world.due(&a);
    assert_eq!((awaits(&world, &a).as_deref(), world.holder("disk").as_str()), (Some("quota"), "nobody"));
    assert!(world.lease("disk").line.is_empty(), "it stands in one line at a time");
    release(&mut world, "quota", "two");
    world.due(&a);
    assert_eq!(world.head(&a).leases, [lease("quota"), lease("disk")]);
    assert_eq!(world.last_entry(&a).what, What::Begun(BeginReason::Leased));
}

#[test]
fn the_same_lease_named_twice_is_granted_once() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    let set = Change { data: Some(doc(r#"{"other":"quota"}"#)), ..Change::default() };
    world.transition(&a, "both", set).unwrap();
    assert_eq!(world.head(&a).leases, [lease("quota")]);
}

#[test]
fn a_lease_that_it_has_is_kept_and_only_the_others_are_wanted() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    let disk = world.takes(&a, "disk");
    world.ok(ask("quota", "one", 60_000).into());
    world.go(&a, "both");
    assert_eq!(awaits(&world, &a).as_deref(), Some("quota"));
    assert_eq!(world.lease_token("disk"), disk.token, "kept while it waits");
    release(&mut world, "quota", "one");
    world.due(&a);
    assert_eq!(world.lease_token("disk"), disk.token);
    assert_eq!(world.head(&a).leases, [lease("disk"), lease("quota")]);
}

/// Two leases are freed at once; whoever is first in one line needs the other too. Each lets none pass, and one of
/// them begins.
#[test]
fn those_who_need_two_leases_do_not_wait_for_each_other() {
    let machine = pool_machine().needs("work", &["data.other", r#""quota""#]);
    let (mut world, a) = World::of(machine, "pool/a");
    for key in ["pool/b", "pool/c", "pool/owner"] {
        world.create(create(key)).unwrap();
    }
    let [b, c, owner] = ["pool/b", "pool/c", "pool/owner"].map(entity);
    world.send(&owner, "both", "o1");
    world.send(&a, "both", "a1"); // quota, disk
    world.send(&b, "go", "b1"); // disk, quota
    world.send(&c, "both", "c1"); // quota, disk
    world.go(&owner, "idle");
    let waiting = [&a, &b, &c];
    let mut order = Vec::new();
    for _ in 0..6 {
        for id in waiting {
            if world.head(id).due.is_some_and(|due| due.0 <= world.store) {
                world.due(id);
            }
            if attempt(&world, id).is_some() {
                world.go(id, "idle");
                order.push(id.key.to_string());
            }
        }
    }
    order.sort();
    assert_eq!(order, ["a", "b", "c"]);
}

#[test]
fn no_transaction_begins_two_attempts() {
    let (mut world, a, b) = pool();
    let (c, owner) = (entity("pool/c"), entity("pool/owner"));
    for id in ["pool/c", "pool/owner"] {
        world.create(create(id)).unwrap();
    }
    world.send(&owner, "both", "o1");
    world.send(&a, "go", "a1");
    world.send(&b, "both", "b1");
    world.send(&c, "go", "c1");
    world.go(&owner, "idle");
    let begun = |world: &World| world.wakes.iter().filter(|wake| matches!(wake, Wake::Run(_))).count();
    assert_eq!(begun(&world), 0, "two leases are free, and whose turn it is looks in a transaction of its own");
    world.due(&a);
    assert_eq!(begun(&world), 1);
}

#[test]
fn a_full_line_is_asked_again_later_and_told_once() {
    let (mut world, a, _) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    for nth in 0..LEASE_LINE_MAX {
        world.ok(ask("quota", &format!("w{nth}"), 5_000).waits(1_500).into());
    }
    world.send(&a, "go", "a1");
    let entries = world.head(&a).history.last;
    assert_eq!(world.last_entry(&a).what, What::Awaits(lease("quota")));
    assert_eq!((awaits(&world, &a), world.head(&a).due), (None, Some(StoreTime(BUSY_RETRY_MS))));
    world.due(&a);
    assert_eq!((awaits(&world, &a), world.head(&a).history.last), (None, entries), "not told again");
    world.due(&a);
    assert_eq!(awaits(&world, &a).as_deref(), Some("quota"), "who had no patience is gone");
}

#[test]
fn whoever_stops_waiting_leaves_the_line() {
    let stops: [fn(&mut World, &EntityId); 4] = [
        |world, a| drop(world.ok(Verb::Kill { entity: a.clone(), reason: "enough".to_owned() })),
        |world, a| {
            drop(world.ok(Verb::Unlock {
                entity: a.clone(),
                to: crate::build::name("idle"),
                force: true,
                reason: "enough".to_owned(),
            }))
        },
        |world, a| drop(world.due(a)), // its deadline: the failure path
        |world, a| {
            world.pass(100_000);
            world.due(a); // the execution's limit: parked
            assert_eq!(world.head(a).park.unwrap().code, "execution-limit");
        },
    ];
    for (nth, stop) in stops.into_iter().enumerate() {
        let machine = pool_machine().with(|machine| {
            let work = machine.states.get_mut(&crate::build::name("work")).unwrap();
            work.deadline_ms = (nth == 2).then_some(20_000);
            machine.limits.execution_ms = (nth == 3).then_some(30_000);
        });
        let (mut world, a) = World::of(machine, "pool/a");
        world.ok(ask("quota", "one", 600_000).into());
        world.send(&a, "go", "a1");
        assert_eq!(world.lease("quota").line.len(), 1);
        stop(&mut world, &a);
        assert!(world.lease("quota").line.is_empty(), "{nth}");
        assert_eq!(awaits(&world, &a), None);
    }
}

#[test]
fn it_waits_through_a_restart_and_keeps_its_place() {
    let (mut world, a, b) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    world.send(&b, "go", "b1");
    world.reboot();
    assert_eq!(world.lease("quota").line.len(), 2);
    release(&mut world, "quota", "one");
    world.due(&a);
    assert_eq!(world.holder("quota"), "pool/a@3.1");
}

#[test]
fn a_name_that_is_no_lease_of_the_machine_parks_by_name() {
    for (other, why) in [
        (r#"{"other":"secret"}"#, "lease secret is not granted to pool"),
        (r#"{"other":7}"#, "expected the name of a lease at data.other, got 7"),
        ("{}", "expected the name of a lease at data.other, got nothing"),
        (r#"{"other":"no name"}"#, ""),
    ] {
        let (mut world, a, _) = pool();
        world.send(&a, "plan", "p");
        world.transition(&a, "both", Change { data: Some(doc(other)), ..Change::default() }).unwrap();
        let park = world.head(&a).park.unwrap();
        assert!(park.code == "needs" && park.reason.contains(why), "{park:?}");
        assert_eq!(world.last_entry(&a).what, What::Parked(park.code, park.reason));
        assert_eq!(world.holder("quota"), "nobody");
        world.ok(Verb::Unpark(a.clone()));
        assert_eq!(world.head(&a).park.unwrap().code, "needs", "and again, by name");
    }
}

#[test]
fn a_deploy_that_withdraws_a_lease_parks_who_waits_for_it_and_refuses_who_has_it() {
    let without = pool_machine().with(|machine| machine.leases.granted.retain(|pattern, _| pattern != "quota"));
    let (mut world, a, b) = pool();
    world.send(&a, "go", "a1");
    world.send(&b, "go", "b1");
    world.deploy(without);
    let held = interlock_kernel::view::LeaseClaim { lease: lease("quota"), token: world.lease_token("quota") };
    let extend =
        |world: &mut World| world.step_asks(&a, interlock_kernel::command::LeaseAsk::Extend(held.clone(), None));
    assert!(extend(&mut world).is_ok(), "an attempt is judged by the revision it began with");
    world.go(&a, "work");
    let park = world.head(&a).park.unwrap();
    assert_eq!((park.code.as_str(), park.reason.as_str()), ("needs", "lease quota is not granted to pool"));
    world.ok(Verb::Kill { entity: a.clone(), reason: "enough".to_owned() });
    world.due(&b);
    assert_eq!(world.head(&b).park.unwrap().reason, "lease quota is not granted to pool");
    world.deploy(pool_machine());
    world.ok(Verb::Unpark(b.clone()));
    assert_eq!(world.holder("quota"), "pool/b@4.1", "once it is granted again");
}

#[test]
fn the_longest_pattern_says_on_what_terms() {
    let machine = pool_machine().grants("dis*", spec(5_000)).grants("disk-1", spec(6_000));
    let (mut world, a) = World::of(machine, "pool/a");
    world.send(&a, "plan", "p");
    for (name, ttl_ms) in [("data", 9_000), ("disk", 5_000), ("disk-1", 6_000)] {
        world.takes(&a, name);
        assert_eq!(world.lease(name).holder.unwrap().terms.ttl_ms, ttl_ms);
    }
}

#[test]
fn a_lease_may_be_named_by_what_entered_the_visit() {
    let (mut world, a) = World::of(pool_machine().needs("work", &["event.which"]), "pool/a");
    world.send_of(&a, "go", "a1", r#"{"which":"disk"}"#);
    assert_eq!(world.head(&a).leases, [lease("disk")]);
}

#[test]
fn whoever_parks_as_it_was_to_begin_has_no_attempt_to_come() {
    let (mut world, a, b) = pool();
    world.send(&a, "go", "a1");
    world.send(&b, "go", "b1");
    world.go(&a, "idle");
    assert!(world.head(&b).lock.unwrap().retry.is_some(), "it is its turn");
    world.deploy(pool_machine().with(|machine| machine.leases.granted.retain(|pattern, _| pattern != "quota")));
    world.due(&b);
    let head = world.head(&b);
    assert_eq!((head.park.unwrap().code.as_str(), head.lock.unwrap().retry), ("needs", None));
}
