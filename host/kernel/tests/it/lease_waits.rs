//! Leases while nothing runs: in a back-off, in a wait, parked; and those that run out meanwhile.

use crate::build::{entity, name};
use crate::leases::{lease, pool_machine, spec};
use crate::lost::{last_two, working};
use crate::world::{World, failure, permanent};
use interlock_kernel::command::Verb;
use interlock_kernel::machine::LeaseSpec;
use interlock_kernel::record::{BeginReason, Failure, LeaseWhat, What};
use interlock_kernel::time::StoreTime;

#[test]
fn during_back_off_a_lease_is_kept_until_the_next_attempt() {
    let (mut world, a, _) = working();
    let token = world.lease_token("quota");
    for _ in 0..2 {
        world.fail(&a, "slow");
        world.due(&a);
    }
    assert_eq!(world.lease_token("quota"), token);
}

#[test]
fn during_a_wait_a_lease_is_kept_to_its_deadline_and_at_most_to_its_bound() {
    let (mut world, a, _) = working();
    let token = world.lease_token("quota");
    world.go(&a, "hold");
    assert_eq!(world.lease("quota").holder.unwrap().until, StoreTime(309_000), "the deadline and a time to live");
    world.pass(299_999);
    world.send(&a, "on", "a2");
    assert_eq!(world.lease_token("quota"), token);
    assert_eq!(world.lease("quota").holder.unwrap().until, StoreTime(308_999), "from now on by progress again");
    world.go(&a, "hold");
    assert_eq!(world.lease("quota").holder.unwrap().until, StoreTime(600_000), "hold_max bounds all");
}

#[test]
fn a_lease_lost_while_nothing_ran_is_on_record_and_missed_where_it_is_required() {
    let machine = pool_machine().with(|machine| {
        let hold = machine.states.get_mut(&name("hold")).unwrap();
        hold.deadline_ms = Some(3_600_000);
    });
    let (mut world, a) = World::of(machine.grants("disk", LeaseSpec { hold_ms: 60_000, ..spec(9_000) }), "pool/a");
    world.send(&a, "plan", "a1");
    world.takes(&a, "disk");
    world.go(&a, "hold");
    assert_eq!(world.lease("disk").holder.unwrap().until, StoreTime(60_000));
    world.lapse("disk");
    world.lapse("disk");
    assert_eq!(world.last_entry(&a).what, What::LeaseLost(lease("disk")));
    assert!(world.head(&a).leases.is_empty() && world.head(&a).lock.is_some());
}

#[test]
fn a_parked_execution_keeps_its_leases_to_their_bound_and_kill_frees_them() {
    let (mut world, a, _) = working();
    world.end(&a, permanent("broken")).unwrap();
    assert!(world.head(&a).park.is_some());
    assert_eq!(world.lease("quota").holder.unwrap().until, StoreTime(600_000));
    world.ok(Verb::Kill { entity: a.clone(), reason: "enough".to_owned() });
    assert_eq!(world.holder("quota"), "nobody");
    assert_eq!(world.became("quota"), [LeaseWhat::Acquired, LeaseWhat::Released]);
}

#[test]
fn while_it_is_parked_its_deadline_bounds_no_lease() {
    let machine = pool_machine().with(|machine| {
        machine.states.get_mut(&name("work")).unwrap().deadline_ms = Some(20_000);
    });
    let (mut world, a) = World::of(machine, "pool/a");
    world.send(&a, "go", "a1");
    world.end(&a, permanent("broken")).unwrap();
    assert_eq!(world.lease("quota").holder.unwrap().until, StoreTime(600_000));
}

/// Both ran out while it waited, and nobody looked before another took them.
#[test]
fn a_wait_prolongs_nothing_that_another_has_taken_meanwhile() {
    let short = LeaseSpec { hold_ms: 60_000, ..spec(9_000) };
    let (mut world, a) = World::of(pool_machine().grants("quota", short).grants("d*", short), "pool/a");
    world.create(crate::build::create("pool/b")).unwrap();
    world.send(&a, "plan", "a1");
    world.takes(&a, "quota");
    world.takes(&a, "disk");
    world.go(&a, "hold");
    world.pass(60_000);
    world.send(&entity("pool/b"), "both", "b1");
    for name in ["quota", "disk"] {
        assert_eq!(world.lease(name).holder.unwrap().until, StoreTime(69_000), "{name}");
    }
}

#[test]
fn what_ran_out_during_a_back_off_and_is_not_needed_leaves_the_head_alone() {
    let machine = pool_machine().grants("disk", LeaseSpec { hold_ms: 60_000, ..spec(9_000) });
    let (mut world, a) = World::of(machine, "pool/a");
    world.send(&a, "plan", "a1");
    world.takes(&a, "disk");
    world.takes(&a, "quota");
    world.end(&a, Failure { retry_after_ms: Some(100_000), ..failure("slow") }).unwrap();
    world.due(&a);
    let head = world.head(&a);
    assert_eq!(head.leases, [lease("quota")]);
    assert_eq!(head.lock.unwrap().attempt.unwrap().ordinal, 2, "and fails no attempt that began without it");
    assert_eq!(last_two(&world, &a), [What::LeaseLost(lease("disk")), What::Begun(BeginReason::Retry)]);
}

#[test]
fn what_ran_out_while_it_waited_is_on_record_behind_what_ended_the_wait() {
    let machine = pool_machine().grants("disk", LeaseSpec { hold_ms: 60_000, ..spec(9_000) });
    let (mut world, a) = World::of(machine, "pool/a");
    world.send(&a, "plan", "a1");
    world.takes(&a, "disk");
    world.go(&a, "hold");
    world.pass(60_000);
    world.send(&a, "on", "a2");
    assert_eq!(last_two(&world, &a), [What::Event(name("on")), What::LeaseLost(lease("disk"))]);
    assert_eq!(world.head(&a).leases, [lease("quota")]);
}
