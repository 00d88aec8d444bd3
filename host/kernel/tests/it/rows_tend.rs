//! What a declaration asks of the host: its bounds, what is done a few rows at a time, and a table that goes.

use crate::build::name;
use crate::rows::{
    claim, client, declared, four, index, key, many, one, op, put, queue, reaped, row, row_key, step_asks, table_heads,
    table_name, tended, update, working,
};
use crate::world::World;
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::limits::{INDEXES_MAX, TEND_MAX};
use interlock_kernel::record::{IndexStage, Key, TableHead};
use interlock_kernel::rejection::Code;
use interlock_kernel::rows::RowAsk;
use interlock_kernel::table::{OnEnd, Table, Ttl};
use interlock_kernel::time::StoreTime;
use interlock_kernel::value::Filter;
use interlock_kernel::view::Wake;

/// Indexes from `first` on, so many.
fn indexed(first: usize, count: usize) -> Table {
    let mut table = queue(&[]);
    table.indexes = (first..first + count).map(|nth| (name(&format!("i{nth}")), index(&["n"]))).collect();
    table
}

fn head(world: &World) -> TableHead {
    table_heads(world).remove(&table_name("jobs")).unwrap()
}

fn tend(world: &mut World) -> Outcome {
    world.ok(Verb::Tend(table_name("jobs")))
}

/// Whether the last job asks for tending.
fn wants_tending(world: &World) -> bool {
    world.wakes.iter().any(|wake| matches!(wake, Wake::Tend(_)))
}

fn bare() -> World {
    let mut world = World::bare();
    world.open();
    world
}

#[test]
fn a_declaration_has_a_bounded_number_of_indexes() {
    let mut world = bare();
    let refused = world.refused(declared(&indexed(0, INDEXES_MAX + 1)));
    assert_eq!((refused.code, refused.subject.as_str()), (Code::Limit, "table jobs"));
    assert_eq!((refused.expected.as_str(), refused.got.as_str()), ("at most 8 indexes (indexes_max)", "9"));
    world.ok(declared(&indexed(0, INDEXES_MAX)));
}

#[test]
fn indexes_that_are_going_away_count_until_they_are_gone() {
    let mut world = four(&indexed(0, INDEXES_MAX));
    world.ok(declared(&indexed(100, INDEXES_MAX - 1)));
    assert_eq!(head(&world).indexes.len(), 2 * INDEXES_MAX);
    world.ok(declared(&indexed(200, 1)));
    assert_eq!(head(&world).indexes.len(), 2 * INDEXES_MAX + 1);
    assert_eq!(world.ok(declared(&indexed(200, 1))), Outcome::Declared { revision: 3, new: false }, "nothing new");
    let refused = world.refused(declared(&indexed(300, 1)));
    assert_eq!((refused.code, refused.expected.as_str()), (Code::Busy, "a table at rest"));
    tended(&mut world);
    world.ok(declared(&indexed(300, 1)));
}

#[test]
fn only_what_has_something_to_do_is_tended() {
    let mut world = bare();
    world.ok(declared(&indexed(0, 1)));
    assert!(!wants_tending(&world), "a new table");
    world.ok(declared(&indexed(1, 1)));
    assert!(wants_tending(&world), "an index to be removed");
    assert_eq!(tend(&mut world), Outcome::Tended { done: 0, more: false });
    assert!(!wants_tending(&world));
    let timed = Table { ttl: Some(Ttl { ms: 10_000, from_change: false }), ..reaped(None) };
    world.ok(declared(&Table { indexes: indexed(1, 1).indexes, ..timed.clone() }));
    assert!(!wants_tending(&world), "no row to be looked at");
    one(&mut world, put("a", "1"));
    world.ok(declared(&Table { indexes: indexed(1, 1).indexes, ..queue(&[]) }));
    assert!(wants_tending(&world), "a row to be looked at");
    assert_eq!(tend(&mut world), Outcome::Tended { done: 1, more: false });
    assert_eq!(tend(&mut world), Outcome::Tended { done: 0, more: false });
    assert_eq!(head(&world).anew, None);
    let mut other = indexed(1, 1);
    other.claim.on_end = OnEnd::Release;
    world.ok(declared(&other));
    assert!(!wants_tending(&world), "nothing of its time");
    world.ok(Verb::DropTable(table_name("jobs")));
    world.ok(Verb::DropTable(table_name("jobs")));
    assert!(wants_tending(&world), "asked again, it goes on all the same");
    tended(&mut world);
    assert_eq!(world.ok(Verb::Tend(table_name("jobs"))), Outcome::Nothing);
}

#[test]
fn rows_are_looked_at_anew_a_few_at_a_time() {
    let mut world = four(&queue(&[]));
    many(&mut world, TEND_MAX, r#"{"status":"pending"}"#);
    one(&mut world, claim(1_000));
    world.ok(declared(&reaped(None)));
    for (done, more) in [(TEND_MAX, true), (4, false)] {
        assert_eq!(tend(&mut world), Outcome::Tended { done, more });
        assert_eq!(wants_tending(&world), more);
        let due = world.records.keys().filter(|key| matches!(key, Key::RowDue(..))).count();
        assert_eq!(due, if more { TEND_MAX } else { TEND_MAX + 4 });
    }
    assert_eq!(tend(&mut world), Outcome::Tended { done: 0, more: false });
}

#[test]
fn an_index_is_filled_and_emptied_a_few_rows_at_a_time() {
    let mut world = four(&queue(&[]));
    many(&mut world, TEND_MAX, r#"{"n":1}"#);
    world.ok(declared(&indexed(0, 1)));
    let entries = |world: &World| world.records.keys().filter(|key| matches!(key, Key::RowIndex(_, 1, ..))).count();
    let building = |done| Outcome::Tended { done, more: true };
    assert_eq!((tend(&mut world), entries(&world)), (building(TEND_MAX), TEND_MAX));
    assert!(matches!(head(&world).indexes[1].stage, IndexStage::Building { done: 256, .. }));
    assert_eq!(tend(&mut world), Outcome::Tended { done: 4, more: false });
    world.ok(declared(&queue(&[])));
    assert_eq!((tend(&mut world), entries(&world)), (building(TEND_MAX), 4));
    assert_eq!(tend(&mut world), Outcome::Tended { done: 4, more: false });
    let numbers: Vec<u32> = head(&world).indexes.iter().map(|index| index.number).collect();
    assert_eq!(numbers, [0], "the index goes with its last entries, and no other");
}

#[test]
fn a_time_to_live_declared_later_counts_from_then() {
    let ttl = |ms: Option<u64>| Table { ttl: ms.map(|ms| Ttl { ms, from_change: false }), ..queue(&[]) };
    let mut world = four(&ttl(None));
    let until = |world: &World, at| row(world, at).unwrap().until;
    world.pass(1_000);
    world.ok(declared(&ttl(Some(60_000))));
    tended(&mut world);
    assert_eq!(until(&world, "a"), Some(StoreTime(61_000)));
    world.pass(1_000);
    world.ok(declared(&ttl(Some(100_000))));
    tended(&mut world);
    assert_eq!(until(&world, "a"), Some(StoreTime(61_000)), "a longer one is of what is written from then on");
    world.ok(declared(&ttl(Some(10_000))));
    tended(&mut world);
    assert_eq!(until(&world, "a"), Some(StoreTime(12_000)), "a shorter one is of all");
    world.ok(declared(&Table { ttl: None, ..reaped(None) }));
    tended(&mut world);
    assert_eq!((until(&world, "a"), row(&world, "a").unwrap().due), (None, None), "what has no time stays");
}

#[test]
fn what_is_past_its_time_does_not_come_back_with_another_declaration() {
    let mut world = four(&Table { ttl: Some(Ttl { ms: 10_000, from_change: false }), ..queue(&[]) });
    world.pass(10_000);
    world.ok(declared(&queue(&[])));
    tended(&mut world);
    assert!(matches!(
        one(&mut world, op(RowAsk::Get { key: key("a") })),
        interlock_kernel::rows::RowAnswer::Got { row: None, .. }
    ));
    world.ok(Verb::RowDue(table_name("jobs"), row_key("a")));
    assert_eq!(row(&world, "a"), None);
}

// --- a table that goes

fn of_the_table(world: &World) -> usize {
    world.records.keys().filter(|key| !matches!(key, Key::Session(_) | Key::Secret)).count()
}

#[test]
fn a_table_that_goes_takes_rows_first_then_all_the_rest_a_few_at_a_time() {
    let mut world = four(&indexed(0, 1));
    many(&mut world, TEND_MAX - 4, r#"{"n":1}"#);
    world.ok(declared(&queue(&[])));
    for nth in 0..40 {
        one(&mut world, update("a", Filter::default(), &["row.status = \"pending\""]));
        one(&mut world, claim(1));
        assert_eq!(world.wrote.keys().filter(|key| matches!(key, Key::RowEntry(..))).count(), 1, "{nth}");
    }
    world.ok(Verb::DropTable(table_name("jobs")));
    assert!(wants_tending(&world));
    let going = |done| Outcome::Tended { done, more: true };
    assert_eq!(tend(&mut world), going(TEND_MAX), "the rows");
    assert_eq!((head(&world).rows, head(&world).held), (0, 0));
    assert!(wants_tending(&world));
    assert_eq!(tend(&mut world), going(TEND_MAX), "entries of the index that was to be removed");
    let rest = of_the_table(&world);
    assert_eq!(tend(&mut world), Outcome::Tended { done: rest - 2, more: false }, "the rest, and the table");
    assert!(!wants_tending(&world));
    assert_eq!(of_the_table(&world), 0);
}

#[test]
fn a_table_goes_however_often_it_was_declared() {
    let mut world = bare();
    let times = TEND_MAX + 1;
    world.unchecked = true;
    for nth in 0..times {
        world.ok(declared(&Table { owner: format!("owner {nth}"), ..queue(&[]) }));
    }
    world.ok(Verb::DropTable(table_name("jobs")));
    assert_eq!(tend(&mut world), Outcome::Tended { done: times - 1, more: true });
    assert_eq!(of_the_table(&world), 2, "the declaration in force is what the table is read by");
    assert_eq!(tend(&mut world), Outcome::Tended { done: 0, more: false });
    assert_eq!(of_the_table(&world), 0);
}

#[test]
fn a_table_that_goes_is_asked_nothing() {
    let mut table = reaped(None);
    table.claim.on_end = OnEnd::Release;
    let (mut world, id) = working(&table);
    step_asks(&mut world, &id, vec![claim(2)]).unwrap();
    world.ok(Verb::DropTable(table_name("jobs")));
    assert_eq!(world.refused(declared(&table)).code, Code::Busy, "the same declaration too");
    assert_eq!(world.refused(client(vec![put("x", "1")])).got, "one that is being dropped");
    world.pass(30_000);
    assert_eq!(world.ok(Verb::RowDue(table_name("jobs"), row_key("d"))), Outcome::Nothing);
    let execution = world.claim(&id).execution;
    world.go(&id, "idle");
    assert!(world.records.keys().all(|key| !matches!(key, Key::RowHeld(..))), "nothing is given back to it");
    assert_eq!(world.ok(Verb::TakeBack(execution)), Outcome::Tended { done: 0, more: false });
    tended(&mut world);
    assert!(world.records.keys().all(|key| !matches!(key, Key::Row(..) | Key::Table(_))));
}
