//! Attempts that are handed out late: their leases are renewed first, or there is no handing out.

use crate::build::entity;
use crate::leases::{ask, lease, pool_machine, spec};
use crate::lost::{fenced, last_two, succeeded_by_another, working};
use crate::world::World;
use interlock_kernel::command::Verb;
use interlock_kernel::ids::ExecutionId;
use interlock_kernel::machine::LeaseSpec;
use interlock_kernel::record::{BeginReason, Entry, LeaseWhat, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::time::StoreTime;
use interlock_kernel::view::{Claim, Wake};

#[test]
fn a_late_dispatch_renews_first_and_is_handed_out_under_the_same_token() {
    let (mut world, a, _) = working();
    let start = world.starts[&a].clone();
    assert_eq!(start.renew_by, Some(StoreTime(9_000 - 3_000 - 500)), "an interval and a margin before the end");
    world.pass(8_000);
    world.ok(Verb::Renew(start.claim.clone()));
    let again = world.starts[&a].clone();
    assert_eq!((again.claim, again.renew_by), (start.claim, Some(StoreTime(13_500))));
}

#[test]
fn a_dispatch_that_is_too_late_is_not_handed_out() {
    let (mut world, a, _) = working();
    let claim = world.claim(&a);
    world.pass(9_000);
    assert_eq!(world.code(Verb::Renew(claim.clone())), Code::Fenced);
    assert!(fenced(&world) && !world.wakes.iter().any(|wake| matches!(wake, Wake::Run(_))));
    world.ok(Verb::Renew(claim.clone()));
    assert!(world.wakes.is_empty(), "of an attempt that is over nothing comes");
    let execution = ExecutionId { entity: entity("pool/none"), ..claim.execution.clone() };
    world.ok(Verb::Renew(Claim { execution, ..claim }));
    assert!(world.wrote.is_empty());
}

#[test]
fn a_dispatch_near_the_longest_a_lease_may_be_held_begins_again_with_a_new_grant() {
    let short = LeaseSpec { hold_ms: 10_000, ..spec(9_000) };
    let (mut world, a) = World::of(pool_machine().grants("quota", short), "pool/a");
    world.send(&a, "go", "a1");
    let (claim, token) = (world.claim(&a), world.lease_token("quota"));
    world.pass(8_000);
    world.ok(Verb::Renew(claim.clone()));
    assert!(world.claim(&a).token > claim.token && world.lease_token("quota") > token);
    assert!(world.starts[&a].renew_by.unwrap().0 > world.store, "which may be handed out as it is");
    assert_eq!(world.head(&a).lock.unwrap().failed, 0, "it is nobody's failure");
    assert_eq!(world.last_entry(&a).what, What::Begun(BeginReason::Leased));
    assert_eq!(world.became("quota"), [LeaseWhat::Acquired, LeaseWhat::Released, LeaseWhat::Acquired]);
}

#[test]
fn near_that_bound_whoever_waits_is_next() {
    let short = LeaseSpec { hold_ms: 10_000, ..spec(9_000) };
    let (mut world, a) = World::of(pool_machine().grants("quota", short), "pool/a");
    world.send(&a, "go", "a1");
    world.ok(ask("quota", "one", 5_000).waits(60_000).into());
    world.pass(8_000);
    let claim = world.claim(&a);
    world.ok(Verb::Renew(claim));
    assert_eq!((world.holder("quota").as_str(), world.head(&a).awaits), ("one", Some(lease("quota"))));
}

#[test]
fn a_dispatch_of_an_attempt_that_is_over_hands_out_no_other() {
    for ms in [0, 9_000] {
        let (mut world, _, old) = succeeded_by_another();
        world.pass(ms);
        world.ok(Verb::Renew(old));
        assert!(world.wakes.is_empty() && world.wrote.is_empty(), "after {ms} ms");
    }
}

#[test]
fn the_last_moment_to_begin_with_a_lease_is_too_late() {
    let machine = || pool_machine().grants("quota", LeaseSpec { hold_ms: 10_000, ..spec(9_000) });
    for (at, again) in [(6_499, false), (6_500, true)] {
        let (mut world, a) = World::of(machine(), "pool/a");
        world.send(&a, "go", "a1");
        let (claim, token) = (world.claim(&a), world.lease_token("quota"));
        world.pass(at);
        world.ok(Verb::Renew(claim));
        assert_eq!(world.lease_token("quota") > token, again, "{at}");
    }
}

#[test]
fn a_third_of_its_time_and_a_margin_is_left_to_renew_what_is_handed_out_late() {
    let cases = [
        (9_000, 600_000, 5_500),
        (1_000, 600_000, 1_000 - 333 - 333), // the margin is no more than the third
        (9_000, 4_000, 4_000 - 1_333 - 500), // of the longest it may be held
    ];
    for (ttl_ms, hold_ms, renew_by) in cases {
        let machine = pool_machine().grants("quota", LeaseSpec { hold_ms, ..spec(ttl_ms) });
        let (mut world, a) = World::of(machine, "pool/a");
        world.send(&a, "go", "a1");
        assert_eq!(world.starts[&a].renew_by, Some(StoreTime(renew_by)), "{ttl_ms} of {hold_ms}");
    }
}

#[test]
fn of_several_leases_the_one_that_runs_out_first_says_when_to_renew() {
    for (quota, disk) in [(9_000, 6_000), (6_000, 9_000)] {
        let machine = pool_machine().grants("quota", spec(quota)).grants("d*", spec(disk));
        let (mut world, a) = World::of(machine, "pool/a");
        world.send(&a, "both", "a1");
        assert_eq!(world.starts[&a].renew_by, Some(StoreTime(6_000 - 2_000 - 500)));
    }
}

#[test]
fn what_is_given_up_near_that_bound_is_lost_once() {
    let short = LeaseSpec { hold_ms: 10_000, ..spec(9_000) };
    let (mut world, a) = World::of(pool_machine().grants("quota", short), "pool/a");
    world.send(&a, "go", "a1");
    world.pass(8_000);
    let claim = world.claim(&a);
    world.ok(Verb::Renew(claim));
    assert_eq!(last_two(&world, &a), [What::LeaseLost(lease("quota")), What::Begun(BeginReason::Leased)]);
    let lost = |entry: &Entry| matches!(entry.what, What::LeaseLost(_));
    assert_eq!(world.history(&a, &world.head(&a)).iter().filter(|entry| lost(entry)).count(), 1);
}
