//! The reconciler's command against planted mismatches: the head is the truth, the index is rebuilt, and
//! a head that contradicts itself is set aside. And theorems that would not see it, were they blind.

use crate::build::{create, doc, entity, event, name};
use crate::semantics::{idle, working};
use crate::world::World;
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::{FactKind, Head, Key, Park, Record};
use interlock_kernel::rejection::Code;
use interlock_kernel::time::{StoreTime, WallTime};
use interlock_kernel::{FencingToken, theorems};

/// Every index entry that names the entity.
fn found(world: &World, id: &EntityId) -> Vec<Key> {
    let names = |key: &Key| match key {
        Key::Due(_, of) | Key::Timer(_, of, _) | Key::Open(_, of) => of == id,
        _ => false,
    };
    world.records.keys().filter(|key| names(key)).cloned().collect()
}

pub(crate) fn audit(world: &mut World, id: &EntityId, abandoned: Option<FencingToken>) -> Vec<String> {
    let verb = Verb::Audit { entity: id.clone(), found: found(world, id), abandoned };
    match world.ok(verb) {
        Outcome::Repaired(what) => what,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn plant(world: &mut World, id: &EntityId, change: impl FnOnce(&mut Head)) {
    let mut head = world.head(id);
    change(&mut head);
    let key = Key::Head(id.clone());
    world.records.put(&key, &Record::Head(Box::new(head)));
}

#[test]
fn a_sound_entity_is_not_touched() {
    for (stand, mut world, id) in crate::lifecycle::stands() {
        assert_eq!(audit(&mut world, &id, None), Vec::<String>::new(), "{stand}");
        assert!(world.wrote.is_empty(), "{stand}");
    }
}

#[test]
fn s25_missing_index_entries_are_put_back() {
    let (mut world, id) = working();
    let session = world.head(&id).lock.unwrap().attempt.unwrap().session;
    world.records.remove(&Key::Open(session, id.clone()));
    assert_eq!(audit(&mut world, &id, None).len(), 1);
    assert_eq!(audit(&mut world, &id, None).len(), 0);
    world.fail(&id, "slow");
    world.records.remove(&Key::Due(world.head(&id).due.unwrap(), id.clone()));
    assert_eq!(audit(&mut world, &id, None).len(), 1);
    assert_eq!(world.head(&id).facts[&FactKind::Repaired], 2);
}

#[test]
fn s25_index_entries_without_cause_are_removed() {
    let (mut world, id) = idle();
    let extra = [
        Key::Due(StoreTime(5), id.clone()),
        Key::Timer(WallTime(5), id.clone(), name("bell")),
        Key::Open(world.open(), id.clone()),
    ];
    for key in &extra {
        world.records.put(key, &Record::Mark);
    }
    assert_eq!(audit(&mut world, &id, None).len(), 3);
    assert!(matches!(world.last_entry(&id).what, interlock_kernel::record::What::Fact(FactKind::Repaired, _)));
    let nobody = entity("job/nobody");
    let key = Key::Due(StoreTime(5), nobody.clone());
    world.records.put(&key, &Record::Mark);
    assert_eq!(audit(&mut world, &nobody, None).len(), 1);
    assert_eq!(audit(&mut world, &nobody, None).len(), 0);
}

#[test]
fn s25_an_attempt_that_nobody_runs_counts_as_lost() {
    let (mut world, id) = working();
    let old = world.claim(&id);
    assert_eq!(audit(&mut world, &id, Some(old.token)).len(), 1);
    let lock = world.head(&id).lock.unwrap();
    assert_eq!((lock.lost, lock.attempt.unwrap().ordinal), (1, 2));
    assert_eq!(audit(&mut world, &id, Some(old.token)).len(), 0, "its token is not the open one any more");
    assert_eq!(world.code(Verb::Transition(old, name("idle"), Box::default())), Code::Fenced);
}

type Planted = (&'static str, fn() -> (World, EntityId), fn(&mut Head));

/// Heads that contradict themselves.
const CONTRADICTIONS: [Planted; 7] = [
    ("lock_and_execution_agree", working, |head| head.lock = None),
    ("lock_and_execution_agree", working, |head| head.state = name("idle")),
    ("lock_and_execution_agree", working, |head| head.executions = 9),
    ("lock_and_execution_agree", idle, |head| head.state = name("working")),
    ("live_entity_has_a_wake_cause", working, |head| head.lock.as_mut().unwrap().attempt = None),
    ("live_entity_has_a_wake_cause", idle, |head| head.state = name("nowhere")),
    ("unlocked_means_a_new_operation_is_accepted", idle, |head| {
        head.park = Some(Park { code: "exhausted".to_owned(), reason: String::new(), since: WallTime(0) });
    }),
];

#[test]
fn s25_a_head_that_contradicts_itself_is_set_aside_and_only_kill_or_delete_moves_it() {
    for (theorem, stand, contradict) in CONTRADICTIONS {
        let (mut world, id) = stand();
        let mut head = world.head(&id);
        contradict(&mut head);
        let machine = world.machine(&id, 1);
        assert!(theorems::entity(&head, &machine).contains(&theorem), "{theorem}: {head:?}");
        plant(&mut world, &id, contradict);
        world.unchecked = true; // its history does not fold to it
        let repaired = audit(&mut world, &id, None).join("; ");
        assert!(repaired.contains(theorem), "{repaired}");
        let park = world.head(&id).park.unwrap();
        assert_eq!(park.code, Park::INCONSISTENT);
        assert!(park.reason.contains(theorem));
        assert_eq!(found(&world, &id), [], "nothing will wake it");
        assert_eq!(audit(&mut world, &id, None).len(), 0, "said once");
        let records = world.records.clone();
        assert_eq!(world.code(Verb::Unpark(id.clone())), Code::NotAllowed);
        if head.state != name("nowhere") {
            assert_eq!(world.deliver(&id, event("note", "n1")).unwrap_err().code, Code::Busy);
            world.ok(Verb::Continue(id.clone()));
            world.ok(Verb::Due(id.clone()));
            world.ok(Verb::Recover(id.clone()));
        }
        assert!(world.records == records, "{theorem}");
        let killed = world.ok(Verb::Kill { entity: id.clone(), reason: "mend".to_owned() });
        assert!(matches!(killed, Outcome::Now { changed: true, .. }));
        let head = world.head(&id);
        assert_eq!(theorems::entity(&head, &world.machine(&id, 1)), Vec::<&str>::new());
        world.ok(Verb::Delete(id.clone()));
        world.unchecked = false;
        world.create(create("job/a")).unwrap();
    }
}

#[test]
fn a_final_head_with_leftovers_is_seen() {
    let (mut world, id) = working();
    world.go(&id, "over");
    let machine = world.machine(&id, 1);
    let leftovers: [fn(&mut Head); 3] = [
        |head| head.deadline = Some(StoreTime(1)),
        |head| head.inbox.length = 1,
        |head| head.timers.push(interlock_kernel::record::Timer { name: name("bell"), due: WallTime(1), rule: None }),
    ];
    for plant in leftovers {
        let mut head = world.head(&id);
        plant(&mut head);
        assert!(!theorems::final_is_final(&head, &machine));
    }
}

#[test]
fn a_history_that_was_touched_does_not_fold() {
    let (mut world, id) = working();
    world.ok(Verb::Apply { entity: id.clone(), desired: doc("{}"), expect: None, checked: None });
    world.go(&id, "idle");
    let (head, entries) = (world.head(&id), world.history(&id, &world.head(&id)));
    let fold = |entries: &[_]| theorems::fold(&id, &head, entries);
    assert!(fold(&entries).is_ok());
    let number = |touched: &[_]| fold(touched).unwrap_err().0;
    assert_eq!(number(&entries[1..]), 2, "the first is missing");
    assert_eq!(number(&[&entries[..1], &entries[2..]].concat()), 3, "one is missing");
    let mut swapped = entries.clone();
    swapped.swap(1, 2);
    assert_eq!(number(&swapped), 3);
    let mut forged = entries.clone();
    forged[1].wall = WallTime(0);
    assert_eq!(number(&forged), 3, "the next entry knows another hash");
    let mut forged = entries.clone();
    forged[0].previous = doc("1").digest();
    assert_eq!(number(&forged), 1);
    let short = fold(&entries[..3]).unwrap();
    let digests = [None, None, None];
    assert!(!theorems::history_folds_to_entity(&head, &short, digests), "the last is missing");
}
