//! The reconciler's command for a lease against planted mismatches, of it and of the heads that name it.

use crate::audit::{audit, plant};
use crate::leases::{ask, lease, pool};
use crate::world::World;
use interlock_kernel::command::{LeaseAsk, Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::{Key, Lease, LeaseWhat, Record};
use interlock_kernel::time::StoreTime;

fn audit_lease(world: &mut World, name: &str, found: Vec<Key>, named_by: Option<&EntityId>) -> Vec<String> {
    world.unchecked = true;
    let verb = Verb::AuditLease { lease: lease(name), found, named_by: named_by.cloned() };
    let Outcome::Repaired(words) = world.ok(verb.clone()) else { panic!() };
    for id in world.heads().into_keys() {
        if world.head(&id).due.is_some_and(|due| due.0 <= world.store) {
            world.due(&id);
        }
    }
    world.check("repaired");
    let records = world.records.clone();
    assert_eq!(world.ok(verb), Outcome::Repaired(Vec::new()), "once");
    assert!(world.records == records);
    words
}

fn plant_lease(world: &mut World, name: &str, change: impl FnOnce(&mut Lease)) {
    let mut known = world.leases().remove(&lease(name)).unwrap_or_default();
    change(&mut known);
    world.records.put(&Key::Lease(lease(name)), &Record::Lease(Box::new(known)));
}

#[test]
fn a_sound_lease_is_not_touched_even_where_its_time_is_over() {
    let (mut world, a, _) = pool();
    world.send(&a, "go", "a1");
    world.pass(9_000);
    let records = world.records.clone();
    let verb = Verb::AuditLease { lease: lease("quota"), found: Vec::new(), named_by: Some(a.clone()) };
    assert_eq!(world.ok(verb), Outcome::Repaired(Vec::new()));
    assert!(world.records == records);
    let nothing = Verb::AuditLease { lease: lease("never"), found: Vec::new(), named_by: Some(a) };
    assert_eq!(world.ok(nothing), Outcome::Repaired(Vec::new()));
}

#[test]
fn the_index_of_a_lease_is_rebuilt_from_it() {
    let (mut world, a, _) = pool();
    world.send(&a, "go", "a1");
    let [right, wrong] = [9_000, 7].map(|due| Key::Lapse(StoreTime(due), lease("quota")));
    world.records.remove(&right);
    world.records.put(&wrong, &Record::Mark);
    let of_none = Key::Lapse(StoreTime(8), lease("never"));
    let words = audit_lease(&mut world, "quota", vec![wrong, right], None);
    assert!(
        words[0].starts_with("index entry without cause") && words[1].starts_with("missing index entry"),
        "{words:?}"
    );
    assert_eq!(world.became("quota").last(), Some(&LeaseWhat::Reconciled));
    world.records.put(&of_none, &Record::Mark);
    assert_eq!(audit_lease(&mut world, "never", vec![of_none], None).len(), 1);
}

#[test]
fn a_lease_of_an_execution_that_is_over_is_free() {
    let (mut world, a, b) = pool();
    world.send(&a, "go", "a1");
    let held = world.lease("quota").holder;
    world.go(&a, "idle");
    world.ok(ask("quota", "one", 5_000).into());
    world.send(&b, "go", "b1");
    plant_lease(&mut world, "quota", |known| known.holder = held);
    let words = audit_lease(&mut world, "quota", Vec::new(), None);
    assert_eq!(words, ["held by pool/a@3.1, which does not have it"]);
    assert_eq!(world.holder("quota"), "pool/b@4.1", "whoever waits is next");
}

#[test]
fn an_execution_that_names_a_lease_that_it_does_not_have_loses_it() {
    let (mut world, a, _) = pool();
    world.send(&a, "go", "a1");
    plant_lease(&mut world, "quota", |known| known.holder = None);
    let words = audit_lease(&mut world, "quota", Vec::new(), Some(&a));
    assert_eq!(words, ["pool/a@3.1 names it and does not have it"]);
    assert_eq!(world.head(&a).lock.unwrap().failure.unwrap().code, "lease-lost");
}

#[test]
fn places_in_line_that_no_head_knows_go_and_those_that_are_missing_are_taken_again() {
    let (mut world, a, b) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    world.send(&b, "go", "b1");
    let line = world.lease("quota").line;
    world.ok(Verb::Kill { entity: a.clone(), reason: "enough".to_owned() });
    plant_lease(&mut world, "quota", |known| known.line = line);
    let words = audit_lease(&mut world, "quota", Vec::new(), None);
    assert_eq!(words, ["pool/a@3.1 stands in line and does not wait for it"]);
    plant_lease(&mut world, "quota", |known| known.line.clear());
    let words = audit_lease(&mut world, "quota", Vec::new(), Some(&b));
    assert_eq!(words, ["pool/b@4.1 waits for it and does not stand in line"]);
    assert_eq!(world.lease("quota").line.len(), 1);
}

#[test]
fn an_execution_that_waits_in_line_as_it_says_is_sound() {
    let (mut world, a, _) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    let records = world.records.clone();
    let verb = Verb::AuditLease { lease: lease("quota"), found: Vec::new(), named_by: Some(a) };
    assert_eq!(world.ok(verb), Outcome::Repaired(Vec::new()));
    assert!(world.records == records);
}

#[test]
fn a_lease_of_an_execution_that_does_not_name_it_is_free() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    let disk = world.takes(&a, "disk");
    let held = world.lease("disk").holder;
    world.step_asks(&a, LeaseAsk::Release(disk)).unwrap();
    plant_lease(&mut world, "disk", |known| known.holder = held);
    let words = audit_lease(&mut world, "disk", Vec::new(), None);
    assert_eq!(words, ["held by pool/a@3.1, which does not have it"]);
}

#[test]
fn a_lease_of_an_earlier_execution_is_its_successors_only_by_another_grant() {
    let (mut world, a, _) = pool();
    world.send(&a, "go", "a1");
    let held = world.lease("quota").holder;
    world.go(&a, "idle");
    world.send(&a, "go", "a2");
    plant_lease(&mut world, "quota", |known| known.holder = held);
    let words = audit_lease(&mut world, "quota", Vec::new(), Some(&a));
    assert_eq!(words, ["held by pool/a@3.1, which does not have it", "pool/a@3.2 names it and does not have it"]);
}

#[test]
fn a_place_in_the_line_of_another_lease_than_the_awaited_one_goes() {
    let (mut world, a, _) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.ok(ask("disk", "two", 60_000).into());
    world.send(&a, "go", "a1");
    let line = world.lease("quota").line;
    plant_lease(&mut world, "disk", |known| known.line = line);
    let words = audit_lease(&mut world, "disk", Vec::new(), None);
    assert_eq!(words, ["pool/a@3.1 stands in line and does not wait for it"]);
}

#[test]
fn a_head_that_was_set_aside_is_not_believed_about_its_leases() {
    let (mut world, a, _) = pool();
    world.send(&a, "go", "a1");
    plant(&mut world, &a, |head| head.executions = 9);
    world.unchecked = true; // its history does not fold to it
    assert_eq!(audit(&mut world, &a, None).len(), 1);
    plant_lease(&mut world, "quota", |known| known.holder = None);
    let verb = Verb::AuditLease { lease: lease("quota"), found: Vec::new(), named_by: Some(a) };
    assert_eq!(world.ok(verb), Outcome::Repaired(Vec::new()));
}

#[test]
fn an_execution_that_ends_gives_back_only_what_it_has() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    world.ok(ask("disk", "one", 60_000).into());
    plant(&mut world, &a, |head| head.leases.push(lease("disk")));
    world.unchecked = true;
    world.ok(Verb::Kill { entity: a, reason: "enough".to_owned() });
    assert_eq!(world.holder("disk"), "one");
}

#[test]
fn a_place_that_is_missing_in_a_line_of_others_is_taken_again() {
    let (mut world, a, b) = pool();
    world.ok(ask("quota", "one", 60_000).into());
    world.send(&a, "go", "a1");
    world.send(&b, "go", "b1");
    plant_lease(&mut world, "quota", |known| drop(known.line.remove(0)));
    let words = audit_lease(&mut world, "quota", Vec::new(), Some(&a));
    assert_eq!(words, ["pool/a@3.1 waits for it and does not stand in line"]);
    assert_eq!(world.lease("quota").line.len(), 2);
}
