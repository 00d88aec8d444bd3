//! Leases that are lost: while an attempt runs, while none does, at the longest they may be held, several at once.

use crate::build::{entity, name, path as failure_path, stay, step, to};
use crate::leases::{ask, lease, pool, pool_machine, spec};
use crate::world::World;
use interlock_kernel::command::{Change, LeaseAsk, Verb};
use interlock_kernel::ids::{EntityId, ExecutionId};
use interlock_kernel::machine::LeaseSpec;
use interlock_kernel::record::{BeginReason, FactKind, LeaseWhat, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::time::StoreTime;
use interlock_kernel::view::{Claim, Wake};

pub(crate) fn working() -> (World, EntityId, EntityId) {
    let (mut world, a, b) = pool();
    world.send(&a, "go", "a1");
    (world, a, b)
}

pub(crate) fn last_two(world: &World, id: &EntityId) -> [What; 2] {
    let mut entries = world.history(id, &world.head(id)).into_iter().rev().map(|entry| entry.what);
    let [last, before] = [(); 2].map(|()| entries.next().unwrap());
    [before, last]
}

pub(crate) fn fenced(world: &World) -> bool {
    world.wakes.iter().any(|wake| matches!(wake, Wake::Fence { why: "a lease was lost", .. }))
}

#[test]
fn a_late_holder_is_fenced_in_the_transaction_of_its_write() {
    let calls: [fn(&mut World, &EntityId) -> Code; 3] = [
        |world, a| world.save(a, Change::default()).unwrap_err().code,
        |world, a| world.transition(a, "idle", Change::default()).unwrap_err().code,
        |world, a| world.step_asks(a, LeaseAsk::Acquire(lease("disk"), None)).unwrap_err().code,
    ];
    for call in calls {
        let (mut world, a, _) = working();
        let version = world.head(&a).version;
        world.pass(9_000);
        assert_eq!(call(&mut world, &a), Code::Fenced);
        assert!(fenced(&world), "and is stopped");
        let head = world.head(&a);
        let lock = head.lock.unwrap();
        assert_eq!((head.version, lock.attempt, lock.failed), (version, None, 1));
        assert_eq!(lock.failure.unwrap().code, "lease-lost");
        assert_eq!(head.facts[&FactKind::Fenced], 1);
        assert_eq!(world.became("quota"), [LeaseWhat::Acquired, LeaseWhat::Expired]);
        assert_eq!(call(&mut world, &a), Code::Fenced, "whatever it does from now on");
        world.due(&a);
        assert_eq!(world.holder("quota"), "pool/a@3.1", "the next attempt has it again");
    }
}

#[test]
fn what_is_renewed_by_progress_in_time_is_not_lost() {
    let (mut world, a, _) = working();
    for _ in 0..5 {
        world.pass(8_999);
        world.save(&a, Change::default()).unwrap();
    }
    assert_eq!(world.holder("quota"), "pool/a@3.1");
}

#[test]
fn an_idle_owner_loses_it_to_the_next_in_line_and_both_are_told_in_one_transaction() {
    let (mut world, a, b) = working();
    world.send(&b, "go", "b1");
    world.lapse("quota");
    assert!(fenced(&world));
    assert_eq!((world.holder("quota"), world.head(&a).lock.unwrap().attempt), ("nobody".to_owned(), None));
    world.due(&b);
    assert_eq!(world.holder("quota"), "pool/b@4.1");
    world.due(&a);
    assert_eq!(world.head(&a).awaits, Some(lease("quota")), "behind whoever has it now");
}

#[test]
fn a_retry_reclaims_within_the_lock_delay_with_a_higher_token() {
    let kept = LeaseSpec { delay_ms: 30_000, ..spec(9_000) };
    let (mut world, a) = World::of(pool_machine().grants("quota", kept), "pool/a");
    world.send(&a, "go", "a1");
    let token = world.lease_token("quota");
    world.ok(ask("quota", "one", 5_000).waits(60_000).into());
    world.lapse("quota");
    assert_eq!(world.code(ask("quota", "two", 5_000).into()), Code::Busy);
    world.due(&a);
    assert_eq!(world.holder("quota"), "pool/a@3.1");
    assert!(world.lease_token("quota") > token);
    assert_eq!(world.lease("quota").line.len(), 1, "who stands in line stands there still");
}

#[test]
fn losses_are_failures_and_the_last_one_takes_the_failure_path_when_it_is_due() {
    let machine = pool_machine().with(|machine| {
        let state = machine.states.get_mut(&name("work")).unwrap();
        state.on_exhausted = failure_path(to("plan"));
    });
    let (mut world, a) = World::of(machine, "pool/a");
    world.send(&a, "go", "a1");
    for failed in 1..=3 {
        world.lapse("quota");
        assert_eq!(world.head(&a).lock.unwrap().failed, failed);
        assert!(world.head(&a).lock.unwrap().attempt.is_none(), "nothing begins in the transaction of a loss");
        world.due(&a);
    }
    assert_eq!(world.head(&a).state.as_str(), "plan");
    assert!(matches!(world.last_entry(&a).what, What::FailurePath(failure) if failure.code == "lease-lost"));
}

#[test]
fn losses_without_a_failure_path_park_in_plain_sight_and_unpark_begins_anew() {
    let (mut world, a, _) = working();
    for _ in 0..3 {
        world.lapse("quota");
        world.due(&a);
    }
    let park = world.head(&a).park.unwrap();
    assert!(park.code == "exhausted" && park.reason.starts_with("lease-lost: lease quota"), "{park:?}");
    world.ok(Verb::Unpark(a.clone()));
    assert_eq!(world.holder("quota"), "pool/a@3.1");
}

#[test]
fn two_leases_lost_in_one_transaction_are_one_failure() {
    let (mut world, a, _) = pool();
    world.send(&a, "both", "a1");
    world.pass(9_000);
    assert_eq!(world.save(&a, Change::default()).unwrap_err().code, Code::Fenced);
    let head = world.head(&a);
    assert_eq!((head.leases, head.lock.unwrap().failed), (Vec::new(), 1));
    for name in ["quota", "disk"] {
        assert_eq!(world.became(name), [LeaseWhat::Acquired, LeaseWhat::Expired]);
    }
    assert_eq!(world.last_entry(&a).what, What::LeaseLost(lease("disk")));
}

#[test]
fn two_owners_that_lose_theirs_in_one_transaction_both_lose_their_attempts() {
    let (mut world, a, b) = pool();
    let c = entity("pool/c");
    world.create(crate::build::create("pool/c")).unwrap();
    world.send(&a, "plan", "a1");
    world.takes(&a, "disk");
    world.send(&b, "go", "b1");
    world.pass(9_000);
    world.send(&c, "both", "c1");
    for id in [&a, &b] {
        assert!(world.head(id).lock.unwrap().attempt.is_none(), "{id}");
    }
    assert_eq!(world.head(&c).leases, [lease("quota"), lease("disk")]);
}

#[test]
fn after_a_crash_the_attempt_is_begun_again_with_what_it_had() {
    let (mut world, ..) = working();
    let token = world.lease_token("quota");
    world.pass(8_000);
    world.reboot();
    assert_eq!(world.lease_token("quota"), token);
    assert_eq!(world.lease("quota").holder.unwrap().until, StoreTime(17_000), "renewed with its new attempt");
}

#[test]
fn a_crash_that_lasts_past_the_lease_loses_it_and_the_new_attempt_gets_another_grant() {
    let (mut world, a, _) = working();
    let token = world.lease_token("quota");
    world.pass(9_000);
    world.reboot();
    assert!(world.lease_token("quota") > token);
    assert_eq!(world.became("quota"), [LeaseWhat::Acquired, LeaseWhat::Expired, LeaseWhat::Acquired]);
    assert!(world.head(&a).lock.unwrap().attempt.is_some(), "what became of the old grant does not end it");
}

#[test]
fn a_loss_that_is_none_changes_nothing() {
    let (mut world, a, b) = working();
    world.send(&b, "plan", "b1");
    let theirs = world.head(&a).locked_by(&a).unwrap();
    let records = world.records.clone();
    for (execution, name) in [
        (theirs.clone(), "quota"),
        (theirs.clone(), "disk"),
        (ExecutionId { ordinal: 9, ..theirs.clone() }, "quota"),
        (ExecutionId { entity: entity("pool/none"), ..theirs.clone() }, "quota"),
    ] {
        world.ok(Verb::Lose(execution, lease(name)));
        assert!(world.records == records);
    }
}

/// The compensation begins because the work lost its lease; the work is still at it.
#[test]
fn compensation_does_not_race_with_the_work_it_undoes() {
    let machine = pool_machine().with(|machine| {
        let state = machine.states.get_mut(&name("work")).unwrap();
        state.retry.attempts = 1;
        state.on_exhausted = failure_path(to("both"));
    });
    let (mut world, a) = World::of(machine, "pool/a");
    world.send(&a, "go", "a1");
    let work = world.claim(&a);
    world.lapse("quota");
    world.due(&a);
    assert_eq!(world.head(&a).state.as_str(), "both");
    let late = Verb::Transition(work, name("idle"), Box::default());
    assert_eq!(world.code(late), Code::Fenced);
    world.go(&a, "idle");
}

/// The host boots and begins the attempt again while the old one, thought dead, reports its failure.
#[test]
fn a_resume_that_races_a_retry_is_one_attempt() {
    let (mut world, a, _) = working();
    let old = world.claim(&a);
    world.reboot();
    let renewed = world.claim(&a);
    assert_eq!(world.code(Verb::End(old.clone(), crate::world::failure("slow"))), Code::Fenced);
    assert_eq!(world.code(Verb::Lease(old, LeaseAsk::Acquire(lease("quota"), None))), Code::Fenced);
    assert_eq!(world.claim(&a), renewed);
    world.go(&a, "idle");
}

/// The attempt of before: its execution has begun another since.
pub(crate) fn succeeded_by_another() -> (World, EntityId, Claim) {
    let (mut world, a, _) = working();
    let old = world.claim(&a);
    world.fail(&a, "slow");
    world.due(&a);
    (world, a, old)
}

#[test]
fn an_attempt_that_is_over_hears_of_the_open_one_before_a_lost_lease() {
    let verbs: [fn(Claim) -> Verb; 3] = [
        |old| Verb::Save(old, Box::default()),
        |old| Verb::Transition(old, name("idle"), Box::default()),
        |old| Verb::Lease(old, LeaseAsk::Acquire(lease("disk"), None)),
    ];
    for verb in verbs {
        let (mut world, _, old) = succeeded_by_another();
        world.pass(9_000);
        let refused = world.refused(verb(old));
        assert!(refused.expected.starts_with("attempt 2, token"), "{refused}");
    }
}

#[test]
fn a_lost_lease_is_told_before_a_conflict() {
    let noting = || step("work").to(to("idle")).on("on", stay());
    for moves in [false, true] {
        let (mut world, a) = World::of(pool_machine().state("work", noting()), "pool/a");
        world.send(&a, "go", "a1");
        world.send(&a, "on", "a2"); // the version moves on
        world.pass(9_000);
        let answer = match moves {
            true => world.transition(&a, "idle", Change::default()),
            false => world.save(&a, Change::default()),
        };
        assert_eq!(answer.unwrap_err().expected, "lease quota, held");
    }
}

#[test]
fn a_lease_that_was_lost_and_is_taken_again_at_once_was_lost() {
    let (mut world, a, _) = working();
    world.pass(9_000);
    world.reboot();
    let begun = BeginReason::LostWithHost;
    assert_eq!(last_two(&world, &a), [What::LeaseLost(lease("quota")), What::Begun(begun)]);
    assert_eq!(world.holder("quota"), "pool/a@3.1");
}

#[test]
fn what_a_step_asks_of_a_lease_is_progress_of_its_visit() {
    let (mut world, a, _) = working();
    world.pass(5_000);
    world.takes(&a, "disk");
    assert_eq!(world.head(&a).lock.unwrap().progress.0, world.wall);
}

#[test]
fn the_loss_that_uses_up_the_attempts_is_followed_up_at_once() {
    let machine = pool_machine().with(|machine| machine.states.get_mut(&name("work")).unwrap().retry.attempts = 1);
    let (mut world, a) = World::of(machine, "pool/a");
    world.send(&a, "go", "a1");
    world.lapse("quota");
    assert_eq!(world.head(&a).due, Some(StoreTime(world.store)));
}

/// What a loss leads to is decided later; what any other failure leads to has been decided when it was reported.
#[test]
fn a_failure_is_not_judged_again_by_a_revision_with_fewer_attempts() {
    let (mut world, a, _) = working();
    world.fail(&a, "slow");
    let fewer = pool_machine().with(|machine| machine.states.get_mut(&name("work")).unwrap().retry.attempts = 1);
    world.deploy(fewer);
    world.due(&a);
    let head = world.head(&a);
    assert_eq!((head.revision, head.lock.unwrap().attempt.unwrap().ordinal), (2, 2));
}
