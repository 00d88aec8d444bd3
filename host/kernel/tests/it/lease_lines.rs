//! Lines and delays: who is next, who may pass, and who alone may take a lease again.

use crate::build::name;
use crate::leases::{ask, lease, pool, pool_machine};
use crate::needs::{attempt, awaits, release};
use crate::world::World;
use interlock_kernel::command::{Change, Outcome, Verb};
use interlock_kernel::limits::{BUSY_RETRY_MS, LEASE_KEPT_MS};
use interlock_kernel::record::What;
use interlock_kernel::rejection::Code;
use interlock_kernel::time::StoreTime;
use interlock_kernel::view::Wake;

#[test]
fn first_come_first_served_and_who_only_tries_does_not_pass() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000));
    for (before, label) in ["two", "three"].into_iter().enumerate() {
        assert_eq!(world.ok(ask("build", label, 5_000).waits(60_000).into()), Outcome::InLine { before });
    }
    assert_eq!(world.ok(ask("build", "two", 5_000).waits(60_000).into()), Outcome::InLine { before: 0 }, "once");
    world.release("build", "one", token).unwrap();
    assert_eq!(world.holder("build"), "two", "in the transaction that gave it back");
    assert_eq!(world.code(ask("build", "one", 5_000).into()), Code::Busy);
    world.lapse("build");
    assert_eq!(world.holder("build"), "three", "in the one that found it over");
    assert!(world.lease("build").line.is_empty());
}

#[test]
fn who_goes_away_leaves_the_line_or_gives_back_what_it_got() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 5_000));
    for label in ["two", "three"] {
        world.ok(ask("build", label, 5_000).waits(60_000).into());
    }
    assert_eq!(world.withdraw("build", "two"), Outcome::Released);
    world.lapse("build");
    assert_eq!(world.holder("build"), "three");
    assert_eq!(world.withdraw("build", "three"), Outcome::Released);
    assert_eq!(world.holder("build"), "nobody");
    assert_eq!(world.withdraw("build", "three"), Outcome::Nothing);
}

#[test]
fn patience_ends_at_its_time() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 5_000));
    world.ok(ask("build", "two", 5_000).waits(1_000).into());
    assert_eq!(world.lease("build").due, Some(StoreTime(1_000)));
    world.pass(999);
    world.ok(Verb::Lapse(lease("build")));
    assert_eq!(world.lease("build").line.len(), 1);
    world.lapse("build");
    assert!(world.lease("build").line.is_empty());
    assert_eq!(world.code(ask("build", "two", 5_000).waits(0).into()), Code::Busy, "no patience is no place");
}

/// Found by the simulator: delay and patience were over by one look, nobody had the lease or wanted it any more, and its
/// record went without a word to the client that still waited.
#[test]
fn who_stood_in_line_is_told_also_when_nobody_is_left_to_have_it() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 5_000).delayed(3_000));
    world.pass(5_000);
    world.ok(Verb::Lapse(lease("build")));
    assert!(matches!(world.ok(ask("build", "two", 5_000).waits(2_000).into()), Outcome::InLine { .. }));
    world.pass(60_000);
    world.ok(Verb::Lapse(lease("build")));
    assert!(
        world.wakes.iter().any(|wake| matches!(wake, Wake::Granted(name) if *name == lease("build"))),
        "{:?}",
        world.wakes
    );
    let left = world.lease("build");
    assert!(left.line.is_empty() && left.holder.is_none() && left.delay.is_none(), "{left:?}");
    assert_eq!(left.due, Some(StoreTime(world.store + LEASE_KEPT_MS)), "kept from now on");
}

#[test]
fn after_a_loss_only_the_former_owner_may_take_it_until_the_delay_is_over() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000).delayed(3_000));
    world.ok(ask("build", "two", 5_000).waits(60_000).into());
    world.pass(5_000);
    let refused = world.refused(ask("build", "three", 5_000).into());
    assert_eq!(
        (refused.code, refused.got.as_str()),
        (Code::Busy, "lost by its owner, who alone may take it again for 3 s")
    );
    let (again, new, _) = world.granted(ask("build", "one", 5_000).delayed(3_000));
    assert!(new && again > token, "past whoever stands in line");
    world.pass(5_000);
    world.ok(Verb::Lapse(lease("build")));
    world.pass(2_999);
    world.ok(Verb::Lapse(lease("build")));
    assert_eq!(world.holder("build"), "nobody");
    world.lapse("build");
    assert_eq!((world.holder("build"), world.store), ("two".to_owned(), 13_000));
}

#[test]
fn giving_back_is_no_loss_and_has_no_delay() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000).delayed(3_000));
    world.release("build", "one", token).unwrap();
    world.granted(ask("build", "two", 5_000));
}

#[test]
fn clients_and_executions_stand_in_one_line() {
    let (mut world, a, b) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    assert_eq!(world.ok(ask("quota", "two", 60_000).waits(60_000).into()), Outcome::InLine { before: 1 });
    world.send(&b, "go", "b1");
    release(&mut world, "quota", "one");
    assert_eq!(world.holder("quota"), "nobody", "kept for whose turn it is");
    assert_eq!(world.code(ask("quota", "three", 60_000).into()), Code::Busy);
    assert_eq!(world.head(&a).due, Some(StoreTime(world.store)), "which is told at once");
    world.due(&a);
    assert_eq!(world.holder("quota"), "pool/a@3.1");
    world.go(&a, "idle");
    assert_eq!(world.holder("quota"), "two", "in the transaction that ended the execution");
    release(&mut world, "quota", "two");
    world.due(&b);
    assert_eq!(world.holder("quota"), "pool/b@4.1");
}

#[test]
fn a_turn_told_twice_or_late_changes_nothing() {
    let (mut world, a, _) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    let turn = Verb::Turn(world.head(&a).locked_by(&a).unwrap(), lease("quota"));
    release(&mut world, "quota", "one");
    let records = world.records.clone();
    world.ok(turn.clone());
    assert!(world.records == records, "it has been told");
    world.ok(Verb::Lapse(lease("quota")));
    world.due(&a);
    let records = world.records.clone();
    world.ok(turn.clone());
    assert!(world.records == records, "it has had its turn");
    world.ok(Verb::Kill { entity: a, reason: "enough".to_owned() });
    let records = world.records.clone();
    world.ok(turn);
    assert!(world.records == records, "it is over");
}

#[test]
fn a_turn_that_is_lost_is_told_again() {
    let (mut world, a, _) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    release(&mut world, "quota", "one");
    assert_eq!(world.lease("quota").due, Some(StoreTime(world.store)).map(|now| now.plus(BUSY_RETRY_MS)));
    world.lapse("quota");
    world.due(&a);
    assert!(attempt(&world, &a).is_some());
}

#[test]
fn within_its_delay_a_lost_lease_is_refused_to_everybody_else_also_where_nobody_stands_in_line() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 5_000).delayed(3_000));
    world.pass(5_000);
    let refused = world.refused(ask("build", "two", 5_000).into());
    assert_eq!(refused.got, "lost by its owner, who alone may take it again for 3 s");
    world.pass(2_999);
    assert_eq!(world.code(ask("build", "two", 5_000).into()), Code::Busy);
    world.pass(1);
    world.granted(ask("build", "two", 5_000));
}

#[test]
fn a_look_that_comes_before_its_end_forgets_no_delay() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 5_000).delayed(30_000));
    world.lapse("build");
    world.ok(ask("build", "two", 5_000).waits(10_000).into());
    world.withdraw("build", "two");
    assert_eq!(world.lease("build").due, Some(StoreTime(15_000)), "the time of a patience that nobody has any more");
    world.lapse("build");
    assert_eq!(world.lease("build").due, Some(StoreTime(35_000)));
    assert_eq!(world.code(ask("build", "two", 5_000).into()), Code::Busy);
}

#[test]
fn whoever_is_first_in_line_and_asks_again_is_granted_what_is_free() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 5_000));
    world.ok(ask("build", "two", 5_000).waits(60_000).into());
    world.pass(5_000);
    assert!(world.granted(ask("build", "two", 5_000).waits(60_000)).1, "and not told how long its line is");
}

#[test]
fn whose_patience_ends_is_told() {
    let mut world = World::with(pool_machine());
    world.granted(ask("build", "one", 5_000));
    world.ok(ask("build", "two", 5_000).waits(1_000).into());
    world.lapse("build");
    assert!(world.wakes.iter().any(|wake| matches!(wake, Wake::Granted(name) if *name == lease("build"))));
}

#[test]
fn whoever_comes_while_another_has_its_turn_stands_behind() {
    let (mut world, a, b) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    release(&mut world, "quota", "one");
    world.send(&b, "go", "b1");
    assert_eq!((world.holder("quota").as_str(), awaits(&world, &b).as_deref()), ("nobody", Some("quota")));
    world.due(&a);
    assert_eq!(world.holder("quota"), "pool/a@3.1");
}

#[test]
fn a_turn_told_to_whoever_is_not_first_lets_it_pass_nobody() {
    let (mut world, a, b) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    world.send(&b, "go", "b1");
    let entries = world.head(&b).history.last;
    release(&mut world, "quota", "one");
    world.ok(Verb::Turn(world.head(&b).locked_by(&b).unwrap(), lease("quota")));
    world.due(&b);
    assert_eq!((world.holder("quota").as_str(), awaits(&world, &b).as_deref()), ("nobody", Some("quota")));
    assert_eq!(world.head(&b).history.last, entries, "it waits as before, which is on record");
    world.due(&a);
    assert_eq!(world.holder("quota"), "pool/a@3.1");
}

#[test]
fn a_turn_of_an_execution_that_is_over_is_not_its_successors() {
    let (mut world, a, _) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    let turn = Verb::Turn(world.head(&a).locked_by(&a).unwrap(), lease("quota"));
    world.ok(Verb::Unlock { entity: a.clone(), to: name("idle"), force: true, reason: "again".to_owned() });
    world.send(&a, "go", "a2");
    let records = world.records.clone();
    world.ok(turn);
    assert!(world.records == records);
}

/// Nobody has looked yet at what has just run out, and a client is first in line for it.
#[test]
fn whoever_has_its_turn_elsewhere_passes_no_client() {
    let (mut world, a, _) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.ok(ask("disk", "two", 5_000).into());
    world.ok(ask("disk", "three", 5_000).waits(60_000).into());
    world.send(&a, "both", "a1");
    world.pass(5_000);
    release(&mut world, "quota", "one");
    world.due(&a);
    assert_eq!((world.holder("disk").as_str(), awaits(&world, &a).as_deref()), ("three", Some("disk")));
}

#[test]
fn whose_turn_it_is_is_told_once() {
    let (mut world, a, _) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    release(&mut world, "quota", "one");
    assert_eq!(world.decisions, 2, "with the lease that was given back");
    assert_eq!(world.code(ask("quota", "two", 5_000).into()), Code::Busy);
    assert_eq!(world.decisions, 1, "and not with every request after it");
}

#[test]
fn whoever_comes_to_wait_after_a_back_off_is_on_record_as_waiting() {
    let (mut world, a, b) = pool();
    world.send(&a, "go", "a1");
    world.send(&b, "go", "b1");
    world.lapse("quota");
    world.due(&b);
    world.due(&a);
    assert_eq!(world.last_entry(&a).what, What::Awaits(lease("quota")));
}

#[test]
fn of_a_lease_that_was_only_looked_at_nothing_is_kept() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    assert_eq!(world.transition(&a, "hold", Change::default()).unwrap_err().code, Code::Require);
    assert!(world.leases().is_empty() && world.wrote.is_empty());
}

#[test]
fn a_lease_that_was_only_looked_at_is_not_written() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    world.granted(ask("disk", "one", 60_000));
    assert_eq!(world.transition(&a, "hold", Change::default()).unwrap_err().code, Code::Require);
    assert!(world.wrote.is_empty());
}

#[test]
fn a_lease_at_rest_is_kept_for_its_day_whoever_is_refused_meanwhile() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000));
    world.release("build", "one", token).unwrap();
    world.pass(60_000);
    assert_eq!(world.extend("build", "one", token, None).unwrap_err().code, Code::Fenced);
    assert_eq!(world.lease("build").due, Some(StoreTime(LEASE_KEPT_MS)));
}
