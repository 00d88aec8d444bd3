//! Theorems that are true of everything the kernel does say nothing if they are true of everything: here
//! is what each of them must not be true of, one broken thing at a time.

use crate::build::{machine, name, rest, step, succeeded, to, wait};
use crate::leases::{ask, lease, pool};
use crate::semantics::{idle, working};
use crate::world::World;
use interlock_kernel::Incarnation;
use interlock_kernel::command::Verb;
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::{
    Claimant, Claimed, Delay, Entry, FactKind, Head, Lease, Park, Part, Place, Row, Timer, What,
};
use interlock_kernel::theorems::{
    self, Folded, entity, final_is_final, fold, history_folds_to_entity, is_fact, lease_and_execution_agree,
    lease_has_one_holder, lease_token_never_falls, live_entity_has_a_wake_cause, lock_and_execution_agree,
    stale_token_never_writes, token_never_falls, unlocked_means_a_new_operation_is_accepted, version_grows_by_one,
};
use interlock_kernel::time::{StoreTime, WallTime};
use interlock_kernel::view::Claim;

fn park() -> Option<Park> {
    Some(Park { code: "exhausted".to_owned(), reason: String::new(), since: WallTime(0) })
}

#[test]
fn a_version_grows_by_exactly_one() {
    let (mut world, id) = idle();
    let mut versions = vec![world.head(&id).version];
    for note in ["n1", "n2"] {
        versions.push(world.send(&id, "note", note).version);
    }
    let [one, two, three] = versions[..] else { panic!() };
    assert!(version_grows_by_one(one, two) && version_grows_by_one(two, three));
    for (old, new) in [(one, one), (one, three), (two, one)] {
        assert!(!version_grows_by_one(old, new), "{old} {new}");
    }
}

#[test]
fn a_later_token_is_higher_and_never_the_same() {
    let (mut world, id) = working();
    let old = world.claim(&id).token;
    world.reboot();
    let new = world.claim(&id).token;
    assert!(token_never_falls(None, new) && token_never_falls(Some(old), new));
    assert!(!token_never_falls(Some(new), old) && !token_never_falls(Some(new), new));
}

/// Who may not write, and what is wrong with the claim.
type Stale = (&'static str, fn(&mut Claim, &mut Head));

const STALE: [Stale; 6] = [
    ("of another incarnation", |claim, _| claim.execution.incarnation = Incarnation::stored(9)),
    ("of another execution", |claim, _| claim.execution.ordinal += 1),
    ("another attempt of the visit", |claim, _| claim.attempt += 1),
    ("with the token of an attempt that is over", |_, head| head.lock.as_mut().unwrap().attempt = None),
    ("without a lock", |_, head| head.lock = None),
    ("of an execution before this one", |_, head| head.lock.as_mut().unwrap().ordinal += 1),
];

#[test]
fn only_the_open_attempt_may_write() {
    let (mut world, id) = working();
    let (claim, head) = (world.claim(&id), world.head(&id));
    assert!(stale_token_never_writes(&head, &claim));
    for (who, change) in STALE {
        let (mut claim, mut head) = (claim.clone(), head.clone());
        change(&mut claim, &mut head);
        assert!(!stale_token_never_writes(&head, &claim), "{who}");
    }
    world.reboot();
    let new = world.claim(&id);
    assert!(!stale_token_never_writes(&world.head(&id), &claim) && stale_token_never_writes(&world.head(&id), &new));
    let other = Claim { token: claim.token, ..new };
    assert!(!stale_token_never_writes(&world.head(&id), &other), "with another token");
}

#[test]
fn exactly_the_working_states_are_locked_by_the_newest_execution() {
    let (world, id) = working();
    let (locked, machine) = (world.head(&id), world.machine(&id, 1));
    assert!(lock_and_execution_agree(&locked, &machine));
    let at = |state: &str, head: &Head| Head { state: name(state), ..head.clone() };
    let free = Head { lock: None, ..locked.clone() };
    for (holds, head) in [
        (false, free.clone()),
        (true, at("idle", &free)),
        (true, at("over", &free)),
        (false, at("idle", &locked)),
        (false, at("over", &locked)),
        (false, Head { executions: 2, ..locked.clone() }),
    ] {
        assert_eq!(lock_and_execution_agree(&head, &machine), holds, "{head:?}");
    }
}

#[test]
fn a_rest_has_neither_lock_nor_park() {
    let (world, id) = working();
    let (locked, machine) = (world.head(&id), world.machine(&id, 1));
    let resting = Head { state: name("idle"), lock: None, ..locked.clone() };
    assert!(unlocked_means_a_new_operation_is_accepted(&resting, &machine));
    let with_lock = Head { lock: locked.lock.clone(), ..resting.clone() };
    assert!(!unlocked_means_a_new_operation_is_accepted(&with_lock, &machine));
    assert!(!unlocked_means_a_new_operation_is_accepted(&Head { park: park(), ..resting }, &machine));
    assert!(unlocked_means_a_new_operation_is_accepted(&Head { park: park(), ..locked }, &machine), "it works");
}

/// A waiting entity of this machine, with nothing that would move it.
fn stranded(forever: bool, runs: bool) -> (Head, std::sync::Arc<interlock_kernel::machine::Machine>) {
    let mut waiting = if runs { step("work") } else { wait() };
    if forever {
        waiting = waiting.forever();
    }
    let (mut world, id) = World::of(
        machine("job", "idle")
            .event("run")
            .state("idle", rest().on("run", to("waiting")))
            .state("waiting", waiting.to(to("idle")).deadline(1_000)),
        "job/a",
    );
    world.send(&id, "run", "r1");
    let mut head = world.head(&id);
    head.deadline = None;
    head.lock.as_mut().unwrap().attempt = None;
    (head, world.machine(&id, 1))
}

#[test]
fn each_wake_cause_is_enough_and_none_is_not() {
    let (bare, machine) = stranded(false, true);
    assert!(!live_entity_has_a_wake_cause(&bare, &machine));
    let open = {
        let (world, id) = working();
        world.head(&id).lock.unwrap().attempt
    };
    let mut causes = vec![bare.clone(); 5];
    causes[0].lock.as_mut().unwrap().attempt = open;
    causes[1].lock.as_mut().unwrap().retry = Some(StoreTime(5));
    causes[2].timers.push(Timer { name: name("bell"), due: WallTime(5), rule: None });
    causes[3].deadline = Some(StoreTime(5));
    causes[4].park = park();
    for head in &causes {
        assert!(live_entity_has_a_wake_cause(head, &machine), "{head:?}");
    }
    let mut limited = bare.clone();
    limited.lock.as_mut().unwrap().limit = Some(StoreTime(5));
    assert!(!live_entity_has_a_wake_cause(&limited, &machine), "the execution's limit only parks");
    assert!(live_entity_has_a_wake_cause(&Head { lock: None, ..bare.clone() }, &machine), "it rests");
    assert!(!live_entity_has_a_wake_cause(&Head { state: name("nowhere"), lock: None, ..bare }, &machine));
}

#[test]
fn only_a_wait_may_wait_forever() {
    for (forever, runs, lives) in [(true, false, true), (true, true, false), (false, false, false)] {
        let (head, machine) = stranded(forever, runs);
        assert_eq!(live_entity_has_a_wake_cause(&head, &machine), lives, "forever {forever}, runs {runs}");
    }
}

#[test]
fn a_final_state_has_nothing_left() {
    let (mut world, id) = working();
    let locked = world.head(&id).lock;
    world.go(&id, "over");
    let (over, machine) = (world.head(&id), world.machine(&id, 1));
    assert!(final_is_final(&over, &machine) && entity(&over, &machine).is_empty());
    let mut broken = vec![over.clone(); 4];
    broken[0].lock = locked;
    broken[1].timers.push(Timer { name: name("bell"), due: WallTime(5), rule: None });
    broken[2].deadline = Some(StoreTime(5));
    broken[3].inbox.length = 1;
    for head in &broken {
        assert!(!final_is_final(head, &machine), "{head:?}");
        assert!(entity(head, &machine).contains(&"final_is_final"), "{head:?}");
    }
    let resting = Head { state: name("idle"), inbox: broken[3].inbox, ..over };
    assert!(final_is_final(&resting, &machine), "it is not final");
}

/// A short life with an event, a fact, `desired`, data and outputs.
fn life() -> (World, EntityId, Head, Vec<Entry>) {
    let (mut world, id) = working();
    world.ok(Verb::Apply { entity: id.clone(), desired: crate::build::doc("{}"), expect: None, checked: None });
    let outputs = interlock_kernel::command::Change { outputs: Some(crate::build::doc("1")), ..Default::default() };
    world.transition(&id, "idle", outputs).unwrap();
    world.deliver(&id, crate::build::event("stop", "s1")).unwrap_err(); // a fact
    world.send(&id, "note", "n1");
    let head = world.head(&id);
    let entries = world.history(&id, &head);
    (world, id, head, entries)
}

/// The entries from `from` on, chained anew after something was changed: the hashes give nothing away.
fn chained(id: &EntityId, head: &Head, mut entries: Vec<Entry>) -> Vec<Entry> {
    for index in 1..entries.len() {
        let before = &entries[index - 1];
        let key = interlock_kernel::record::Key::History(id.clone(), head.incarnation, before.number);
        entries[index].previous = before.hash(&key);
    }
    entries
}

/// What is wrong with a history whose hashes are right, the entry, and what is said of it.
type Forged = (fn(&mut Vec<Entry>), u64, &'static str);

#[test]
fn a_history_whose_hashes_are_right_may_still_be_wrong() {
    let (world, id, head, entries) = life();
    let two = entries[1].version; // the event's
    let kinds: Vec<bool> = entries.iter().map(is_fact).collect();
    assert_eq!(kinds, [false, false, false, false, true, false]);
    assert_eq!(fold(&id, &head, &entries).unwrap().last, 6);
    let table: [Forged; 6] = [
        (|all| all[3].number = 9, 9, "expected entry 4, got 9"),
        (|all| drop(all.remove(2)), 4, "expected entry 3, got 4"),
        (|all| all[5].version = all[1].version, 6, "expected version 3 or one more, got 2"),
        (|all| all[1].version = all[5].version, 2, "expected version 1 or one more, got 4"),
        (|all| all[3].from = name("over"), 4, "expected to start from working, got over"),
        (|all| all[4].to = name("over"), 5, "expected a fact to change nothing"),
    ];
    for (forge, number, why) in table {
        let mut forged = entries.clone();
        forge(&mut forged);
        let found = fold(&id, &head, &chained(&id, &head, forged)).unwrap_err();
        assert_eq!(found, (number, why.to_owned()));
    }
    let mut forged = entries.clone();
    forged[4].version = head.version; // a fact that moves the version
    let found = fold(&id, &head, &chained(&id, &head, forged)).unwrap_err();
    assert_eq!(found, (5, "expected a fact to change nothing".to_owned()));
    // What was trimmed away is not missed: a fact may be the oldest entry that is kept.
    let trimmed = Head { history: interlock_kernel::record::HistoryHead { first: 5, ..head.history }, ..head.clone() };
    let folded = fold(&id, &trimmed, &entries[4..]).unwrap();
    assert!(history_folds_to_entity(&trimmed, &folded, [None; 3]), "older digests are unknown");
    assert_eq!((two.get(), world.head(&id).version.get()), (2, 4));
}

#[test]
fn two_things_wrong_are_told_in_order() {
    let (_, id, head, entries) = life();
    let said = |forge: fn(&mut Vec<Entry>)| {
        let mut forged = entries.clone();
        forge(&mut forged);
        fold(&id, &head, &forged).unwrap_err().1
    };
    // The number before the hash, the hash before the version, the version before the state, that before the fact.
    assert!(said(|all| (all[3].number, all[3].previous) = (9, Digest([9; 32]))).contains("entry 4"));
    assert!(said(|all| (all[3].version, all[3].previous) = (all[0].version, Digest([9; 32]))).contains("hash"));
    assert!(said(|all| (all[3].version, all[3].from) = (all[0].version, name("over"))).contains("version"));
    assert!(said(|all| (all[4].from, all[4].to) = (name("over"), name("working"))).contains("start from"));
}

#[test]
fn a_history_folds_to_its_entity_and_to_no_other() {
    let (world, id, head, entries) = life();
    let digest = |part| world.part(&id, part).map(|doc| doc.digest());
    let digests = [digest(Part::Desired), digest(Part::Data), digest(Part::Outputs)];
    let folded = fold(&id, &head, &entries).unwrap();
    assert!(digests.iter().all(Option::is_some) && history_folds_to_entity(&head, &folded, digests));
    let mut wrong = vec![folded.clone(); 4];
    wrong[0].last += 1;
    wrong[1].version += 1;
    wrong[2].state = "over".to_owned();
    wrong[3].hash = Some(Digest([9; 32]));
    for folded in &wrong {
        assert!(!history_folds_to_entity(&head, folded, digests), "{folded:?}");
    }
    assert!(!history_folds_to_entity(&head, &Folded::default(), [None; 3]));
    for part in 0..3 {
        let mut other = digests;
        other[part] = None;
        assert!(!history_folds_to_entity(&head, &folded, other), "part {part}");
    }
}

#[test]
fn only_a_fact_is_a_fact() {
    let (_, _, _, entries) = life();
    let facts: Vec<&What> = entries.iter().filter(|entry| is_fact(entry)).map(|entry| &entry.what).collect();
    assert!(matches!(facts[..], [What::Fact(FactKind::NotAllowed, _)]));
}

#[test]
fn a_machine_of_rests_and_ends_has_no_theorem_to_break() {
    let (world, id) = World::of(machine("job", "idle").state("idle", rest()).state("over", succeeded()), "job/a");
    assert_eq!(entity(&world.head(&id), &world.machine(&id, 1)), Vec::<&str>::new());
}

/// A lease with a holder and one waiter, to be broken.
fn contended() -> Lease {
    let (mut world, ..) = pool();
    world.ok(ask("quota", "one", 5_000).into());
    world.ok(ask("quota", "two", 5_000).waits(60_000).into());
    world.lease("quota")
}

#[test]
fn a_lease_has_one_holder_who_does_not_wait_and_a_line_of_owners_once_each() {
    let sound = contended();
    assert!(lease_has_one_holder(&sound) && lease_has_one_holder(&Lease { holder: None, ..sound.clone() }));
    let of_holder = sound.holder.clone().unwrap();
    let breaks: [fn(&mut Lease); 5] = [
        |lease| lease.line[0].owner = lease.holder.clone().unwrap().owner,
        |lease| lease.holder.as_mut().unwrap().hold_until = StoreTime(4_999),
        |lease| {
            let owner = lease.holder.clone().unwrap().owner;
            lease.delay = Some(Delay { owner, until: StoreTime(9) });
        },
        |lease| lease.line.push(lease.line[0].clone()),
        |lease| {
            lease.holder = None;
            lease.line.push(lease.line[0].clone());
        },
    ];
    for (nth, change) in breaks.into_iter().enumerate() {
        let mut broken = sound.clone();
        change(&mut broken);
        assert!(!lease_has_one_holder(&broken), "{nth}: {broken:?}");
        assert_eq!(theorems::lease(None, &broken), ["lease_has_one_holder"], "{nth}");
    }
    let bare = Lease { holder: None, line: Vec::new(), ..sound };
    assert!(lease_has_one_holder(&Lease {
        delay: Some(Delay { owner: of_holder.owner, until: StoreTime(9) }),
        ..bare
    }));
}

#[test]
fn a_lease_goes_to_another_only_with_a_higher_token() {
    let granted = |skipped: u64, label: &str| {
        let mut world = pool().0;
        world.seq += skipped;
        world.ok(ask("quota", label, 5_000).into());
        world.lease("quota")
    };
    let older = granted(1, "one");
    let free = Lease { holder: None, ..older.clone() };
    for (was, is, holds) in [
        (None, &older, true),
        (Some(&free), &older, true),
        (Some(&older), &free, true),
        (Some(&older), &older, true),
        (Some(&older), &granted(2, "one"), true),
        (Some(&older), &granted(1, "three"), false),
        (Some(&older), &granted(0, "one"), false),
    ] {
        assert_eq!(lease_token_never_falls(was, is), holds, "{is:?}");
        assert_eq!(theorems::lease(was, is).is_empty(), holds, "{is:?}");
    }
}

#[test]
fn a_lease_and_a_head_agree_only_if_each_says_what_the_other_says() {
    let (mut world, a, b) = pool();
    world.send(&a, "go", "a1");
    world.send(&b, "go", "b1");
    let (name, known) = (lease("quota"), world.lease("quota"));
    let agree = |known: &Lease, id: &EntityId, head: &Head| lease_and_execution_agree(&name, known, id, Some(head));
    for id in [&a, &b] {
        let head = world.head(id);
        assert!(agree(&known, id, &head));
        let (of_nobody, says_nothing) = (Lease::default(), Head { leases: Vec::new(), awaits: None, ..head.clone() });
        assert!(!agree(&of_nobody, id, &head) && !agree(&known, id, &says_nothing), "{id}");
        assert!(agree(&of_nobody, id, &says_nothing));
    }
}

/// In words; a row before and after one decision; what is not so of it.
type Becomes<'a> = (&'a str, Option<&'a Row>, Option<Row>, &'a [&'a str]);

/// What a row may not become in one decision.
#[test]
fn a_row_keeps_its_version_its_claims_and_one_claimant() {
    let mut world = crate::rows::four(&crate::rows::queue(&[]));
    crate::rows::one(&mut world, crate::rows::claim(1));
    let was = Row { claims: 2, ..crate::rows::row(&world, "d").unwrap() };
    let held = was.claim.clone().unwrap();
    let by = |claim: Claimed, claims| Row { claim: Some(claim), claims, ..was.clone() };
    let value = Doc::new(true.into());
    let free = Row { claim: None, ..was.clone() };
    let next = Place { seq: held.number.seq + 1, ..held.number };
    let again = Claimed { number: next, ..held.clone() };
    let other = Claimed { by: Claimant::Client("other".to_owned()), ..held.clone() };
    let anew = Row { created: next, claims: 0, version: 0, value: value.clone(), ..free.clone() };
    let one = ["row_has_one_claimant"];
    let cases: [Becomes<'_>; 15] = [
        ("nothing", None, None, &[]),
        ("as it was", Some(&was), Some(was.clone()), &[]),
        ("removed", Some(&was), None, &[]),
        ("changed", Some(&was), Some(Row { value: value.clone(), version: was.version + 1, ..was.clone() }), &[]),
        ("an old version", Some(&was), Some(Row { value, ..was.clone() }), &["row_version_grows"]),
        ("given back", Some(&was), Some(free.clone()), &[]),
        ("fewer claims", Some(&was), Some(Row { claims: 1, ..was.clone() }), &["row_claims_never_fall"]),
        ("claimed again", Some(&was), Some(by(again.clone(), 3)), &[]),
        ("claimed again, and not counted", Some(&was), Some(by(again, 2)), &one),
        ("somebody else's", Some(&was), Some(by(other, 2)), &one),
        ("claimed", Some(&free), Some(by(held.clone(), 3)), &[]),
        ("claimed, and not counted", Some(&free), Some(by(held.clone(), 2)), &one),
        ("inserted anew", Some(&was), Some(anew), &[]),
        ("new and free", None, Some(Row { claims: 0, ..free.clone() }), &[]),
        ("new, and never claimed", None, Some(by(held, 0)), &["row_claim_is_counted"]),
    ];
    for (what, was, now, broken) in cases {
        assert_eq!(theorems::row(was, now.as_ref()), broken, "{what}");
    }
}
