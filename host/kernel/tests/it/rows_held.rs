//! What an execution has claimed is found under its name for as long as it has it, in every table.

use crate::rows::{
    all, claim, declared, key, one, op, put, queue, reaped, row_key, step_asks, table_name, tended, update, upsert,
    working,
};
use crate::world::World;
use interlock_kernel::command::Verb;
use interlock_kernel::ids::{EntityId, ExecutionId};
use interlock_kernel::record::{Key, Record};
use interlock_kernel::rows::{Order, RowAsk, RowOp};
use interlock_kernel::table::{OnEnd, Table, Ttl};
use interlock_kernel::value::Filter;

/// A table whose claims stay, or go back, at the end of their execution; and after 30 seconds, and after a minute its
/// rows are gone.
fn table(on_end: OnEnd) -> Table {
    let mut table = Table { ttl: Some(Ttl { ms: 60_000, from_change: false }), ..reaped(Some(2)) };
    table.claim.on_end = on_end;
    table
}

/// The keys of the rows under an execution's name, all of the kind that its table asks for.
fn under(world: &World, by: &ExecutionId, on_end: OnEnd) -> Vec<String> {
    let theirs = |of: &EntityId, incarnation, ordinal| {
        *of == by.entity && (incarnation, ordinal) == (by.incarnation, by.ordinal)
    };
    let row = |at: &Key| match (at, on_end) {
        (Key::RowKept(of, i, n, _, row), OnEnd::Keep) | (Key::RowHeld(of, i, n, _, row), OnEnd::Release) => {
            theirs(of, *i, *n).then(|| row.to_string())
        }
        _ => None,
    };
    world.records.keys().filter_map(row).collect()
}

fn take(filter: Filter, delete: bool) -> RowOp {
    op(RowAsk::Claim { filter: Some(filter), set: None, order: Order::default(), limit: 1, delete })
}

/// What may become of the claimed row `d`, and whether its execution has it then.
type Fate = (&'static str, fn(&mut World, &EntityId), bool);

fn asks(world: &mut World, op: RowOp) {
    one(world, op);
}

fn looked_at(world: &mut World, after: u64) {
    world.pass(after);
    world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
}

const FATES: [Fate; 11] = [
    ("a heartbeat", |world, _| asks(world, update("d", Filter::default(), &["row.n += 1"])), true),
    ("a settlement", |world, _| asks(world, update("d", Filter::default(), &["row.status = \"done\""])), false),
    ("settled by an upsert", |world, _| asks(world, upsert("d", "1", &["row.status = \"done\""])), false),
    ("another value", |world, _| asks(world, put("d", "1")), false),
    ("a delete", |world, _| asks(world, op(RowAsk::Delete { key: key("d"), filter: Filter::default() })), false),
    ("claimed by a client", |world, _| asks(world, take(all("row.status eq \"in_flight\""), false)), false),
    ("claimed and deleted", |world, _| asks(world, take(all("row.status eq \"in_flight\""), true)), false),
    ("reaped", |world, _| looked_at(world, 30_000), false),
    ("expired", |world, _| looked_at(world, 60_000), false),
    ("the end of another execution", |world, id| drop(world.ok(Verb::TakeBack(other(world, id)))), true),
    (
        "the end of the table",
        |world, _| {
            world.ok(Verb::DropTable(table_name("jobs")));
            tended(world);
        },
        false,
    ),
];

fn other(world: &World, id: &EntityId) -> ExecutionId {
    let mine = world.claim(id).execution;
    ExecutionId { ordinal: mine.ordinal + 1, ..mine }
}

#[test]
fn an_execution_has_a_row_under_its_name_until_something_else_becomes_of_it() {
    for on_end in [OnEnd::Keep, OnEnd::Release] {
        for (title, fate, has) in FATES {
            let (mut world, id) = working(&table(on_end));
            let by = world.claim(&id).execution;
            step_asks(&mut world, &id, vec![claim(1)]).unwrap();
            assert_eq!(under(&world, &by, on_end), ["d"], "{title}");
            fate(&mut world, &id);
            let expected: &[&str] = if has { &["d"] } else { &[] };
            assert_eq!(under(&world, &by, on_end), expected, "{title}, {on_end:?}");
        }
    }
}

#[test]
fn what_stays_claimed_stays_under_the_name_of_the_execution_that_has_ended() {
    for (on_end, left) in [(OnEnd::Keep, &["a", "d"][..]), (OnEnd::Release, &[])] {
        let (mut world, id) = working(&table(on_end));
        let by = world.claim(&id).execution;
        step_asks(&mut world, &id, vec![claim(2)]).unwrap();
        world.go(&id, "idle");
        assert_eq!(under(&world, &by, on_end), left);
    }
}

#[test]
fn a_declaration_counts_for_claims_made_under_it() {
    let (mut world, id) = working(&table(OnEnd::Keep));
    let by = world.claim(&id).execution;
    step_asks(&mut world, &id, vec![claim(1)]).unwrap();
    world.ok(declared(&table(OnEnd::Release)));
    assert_eq!((under(&world, &by, OnEnd::Keep), under(&world, &by, OnEnd::Release).len()), (vec!["d".into()], 0));
    let again = take(all("row.status eq \"in_flight\""), false);
    crate::rows::step_asks_as(&mut world, &id, interlock_kernel::rows::MemoName::Asked(1), vec![again]).unwrap();
    assert_eq!((under(&world, &by, OnEnd::Keep).len(), under(&world, &by, OnEnd::Release)), (0, vec!["d".into()]));
}

#[test]
fn a_client_has_no_name_to_stand_under() {
    let mut world = crate::rows::four(&queue(&[]));
    one(&mut world, claim(2));
    assert!(world.records.keys().all(|key| !matches!(key, Key::RowHeld(..) | Key::RowKept(..))));
}

#[test]
fn what_was_claimed_before_there_were_names_is_used_like_any_other_row() {
    for (title, fate, _) in FATES {
        let (mut world, id) = working(&table(OnEnd::Keep));
        let by = world.claim(&id).execution;
        step_asks(&mut world, &id, vec![claim(1)]).unwrap();
        world.unchecked = true; // one entry less than its rows imply
        let entry = Key::RowKept(id.clone(), by.incarnation, by.ordinal, table_name("jobs"), row_key("d"));
        world.records.remove(&entry);
        fate(&mut world, &id);
        assert_eq!(under(&world, &by, OnEnd::Keep), Vec::<String>::new(), "{title}");
    }
}

#[test]
fn a_row_without_a_name_gets_one_with_its_next_claim() {
    let (mut world, id) = working(&table(OnEnd::Keep));
    let by = world.claim(&id).execution;
    step_asks(&mut world, &id, vec![claim(1)]).unwrap();
    let entry = Key::RowKept(id.clone(), by.incarnation, by.ordinal, table_name("jobs"), row_key("d"));
    world.unchecked = true;
    world.records.remove(&entry);
    one(&mut world, update("d", Filter::default(), &["row.status = \"pending\""]));
    crate::rows::step_asks_as(&mut world, &id, interlock_kernel::rows::MemoName::Asked(1), vec![claim(1)]).unwrap();
    assert!(world.records.iter().any(|(at, record)| *at == entry && *record == Record::Mark));
    world.unchecked = false;
    one(&mut world, update("d", Filter::default(), &["row.n += 1"]));
}
