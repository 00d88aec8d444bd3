//! The bounds of leases: each holds at its number and not one above, and the margins that follow from them.

use crate::leases::{ask, code, lease, owner, pool, pool_machine, spec};
use crate::world::{World, failure};
use interlock_kernel::command::{LeaseAsk, Outcome};
use interlock_kernel::limits::{
    FACTS_MAX, LEASE_DELAY_MS_MAX, LEASE_ENTRIES_MAX, LEASE_HOLD_MS_MAX, LEASE_LINE_MAX, LEASE_TTL_MS_MAX,
    LEASE_TTL_MS_MIN, LEASE_WAIT_MS_MAX, LEASES_MAX,
};
use interlock_kernel::machine::LeaseSpec;
use interlock_kernel::record::Failure;
use interlock_kernel::rejection::Code;
use interlock_kernel::time::StoreTime;

#[test]
fn each_bound_is_named_and_holds_at_the_number_and_not_one_above() {
    let mut world = World::with(pool_machine());
    let long = |hold_ms| ask("a", "one", LEASE_TTL_MS_MIN).held_at_most(hold_ms);
    let fits = [
        ask("a", "one", LEASE_TTL_MS_MIN),
        ask("b", "one", LEASE_TTL_MS_MAX).held_at_most(LEASE_TTL_MS_MAX),
        long(LEASE_HOLD_MS_MAX),
        ask("c", "one", 5_000).delayed(LEASE_DELAY_MS_MAX),
        ask("d", "one", 5_000).waits(LEASE_WAIT_MS_MAX),
    ];
    for ask in fits {
        assert!(world.granted(ask).2 >= LEASE_TTL_MS_MIN);
    }
    let broken = [
        (ask("a", "two", LEASE_TTL_MS_MIN - 1), "a ttl", "lease_ttl_ms_max"),
        (ask("a", "two", LEASE_TTL_MS_MAX + 1).held_at_most(LEASE_HOLD_MS_MAX), "a ttl", "lease_ttl_ms_max"),
        (ask("a", "two", 5_000).held_at_most(4_999), "a hold_max", "lease_hold_ms_max"),
        (long(LEASE_HOLD_MS_MAX + 1), "a hold_max", "lease_hold_ms_max"),
        (ask("a", "two", 5_000).delayed(LEASE_DELAY_MS_MAX + 1), "a lock_delay", "lease_delay_ms_max"),
        (ask("a", "two", 5_000).waits(LEASE_WAIT_MS_MAX + 1), "a wait", "lease_wait_ms_max"),
    ];
    for (ask, what, name) in broken {
        let refused = world.refused(ask.into());
        assert_eq!(refused.code, Code::Limit);
        assert!(refused.expected.starts_with(what) && refused.expected.contains(name), "{}", refused.expected);
        assert!(world.wrote.is_empty());
    }
    let token = world.lease_token("d").get();
    for ttl_ms in [LEASE_TTL_MS_MIN - 1, LEASE_TTL_MS_MAX + 1] {
        assert_eq!(code(world.extend("d", "one", token, Some(ttl_ms))), Code::Limit);
    }
    assert!(world.extend("d", "one", token, Some(LEASE_TTL_MS_MIN)).is_ok());
}

#[test]
fn a_line_has_room_for_so_many_and_the_next_is_refused() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 5_000));
    for nth in 0..LEASE_LINE_MAX {
        let place = world.ok(ask("build", &format!("w{nth}"), 5_000).waits(60_000).into());
        assert_eq!(place, Outcome::InLine { before: nth });
    }
    assert_eq!(world.code(ask("build", "late", 5_000).waits(60_000).into()), Code::Busy);
    assert_eq!(world.lease("build").line.len(), LEASE_LINE_MAX);
    world.withdraw("build", "w9");
    world.ok(ask("build", "late", 5_000).waits(60_000).into());
    assert_eq!(world.lease("build").line.last().unwrap().owner, owner("late"));
}

#[test]
fn whoever_renews_or_stands_in_a_full_line_is_not_refused() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 5_000));
    for nth in 0..LEASE_LINE_MAX {
        world.ok(ask("build", &format!("w{nth}"), 5_000).waits(60_000).into());
    }
    assert_eq!(world.ok(ask("build", "w3", 5_000).waits(60_000).into()), Outcome::InLine { before: 3 });
}

#[test]
fn an_execution_has_so_many_leases_and_not_one_more() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    for nth in 0..LEASES_MAX {
        world.takes(&a, &format!("d{nth}"));
    }
    let refused = world.step_asks(&a, LeaseAsk::Acquire(lease("d-more"), None)).unwrap_err();
    assert!(refused.code == Code::Limit && refused.expected.contains("leases_max"), "{refused}");
    world.takes(&a, "d0");
    world.go(&a, "idle");
    assert!((0..LEASES_MAX).all(|nth| world.holder(&format!("d{nth}")) == "nobody"), "free as the execution ends");
}

#[test]
fn the_bound_of_leases_is_told_before_who_has_the_next() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    for nth in 0..LEASES_MAX {
        world.takes(&a, &format!("d{nth}"));
    }
    world.granted(ask("d-more", "one", 60_000));
    assert_eq!(code(world.step_asks(&a, LeaseAsk::Acquire(lease("d-more"), None))), Code::Limit);
}

#[test]
fn refusals_beyond_the_bound_are_only_counted_and_entries_are_a_ring() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 60_000));
    for _ in 0..FACTS_MAX + 1 {
        world.code(ask("build", "two", 5_000).into());
        code(world.extend("build", "two", token, None));
    }
    let known = world.lease("build");
    assert_eq!((known.contended, known.last), (2 * (FACTS_MAX + 1), 1 + u64::from(FACTS_MAX)));
    assert_eq!(known.last - known.first + 1, LEASE_ENTRIES_MAX);
}

#[test]
fn contention_is_on_record_up_to_the_bound_and_not_one_more() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 60_000));
    for _ in 0..=FACTS_MAX {
        world.code(ask("build", "two", 5_000).into());
    }
    assert_eq!(world.lease("build").last, 1 + u64::from(FACTS_MAX));
}

#[test]
fn the_wait_that_a_refusal_names_is_within_bounds() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 600_000));
    assert_eq!(world.refused(ask("build", "two", 5_000).into()).retry_after_ms, Some(60_000));
    world.pass(599_900);
    assert_eq!(world.refused(ask("build", "two", 5_000).into()).retry_after_ms, Some(1_000));
}

#[test]
fn a_grant_is_never_promised_beyond_its_bound_in_all() {
    let (mut world, a) =
        World::of(pool_machine().grants("quota", LeaseSpec { hold_ms: 4_000, ..spec(9_000) }), "pool/a");
    world.send(&a, "go", "a1");
    assert_eq!(world.lease("quota").holder.unwrap().until, StoreTime(4_000));
}

#[test]
fn more_needs_than_one_execution_may_have_park_it() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    for nth in 0..LEASES_MAX {
        world.takes(&a, &format!("d{nth}"));
    }
    world.go(&a, "work");
    let park = world.head(&a).park.unwrap();
    assert!(park.code == "needs" && park.reason.contains("leases_max"), "{park:?}");
}

#[test]
fn as_many_leases_as_an_execution_may_have_may_be_needed() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    for nth in 1..LEASES_MAX {
        world.takes(&a, &format!("d{nth}"));
    }
    world.go(&a, "work");
    let head = world.head(&a);
    assert_eq!((head.leases.len(), head.park), (LEASES_MAX, None));
}

/// It ran out during a back-off, when nobody looked.
#[test]
fn a_lease_that_was_lost_and_is_taken_again_counts_once() {
    let machine = pool_machine().grants("quota", LeaseSpec { hold_ms: 60_000, ..spec(9_000) });
    let (mut world, a) = World::of(machine, "pool/a");
    world.send(&a, "plan", "p");
    for nth in 1..LEASES_MAX {
        world.takes(&a, &format!("d{nth}"));
    }
    world.go(&a, "work");
    let (token, named) = (world.lease_token("quota"), world.head(&a).leases);
    world.end(&a, Failure { retry_after_ms: Some(100_000), ..failure("slow") }).unwrap();
    world.due(&a);
    let head = world.head(&a);
    assert_eq!((head.park, head.leases), (None, named));
    assert!(world.lease_token("quota") > token);
}
