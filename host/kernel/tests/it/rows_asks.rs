//! Requests of several operations, their bounds, who may ask, and what is asked again.

use crate::build::{create, entity, name};
use crate::rows::{
    all, answers, asked, claim, client, four, key, one, op, put, queue, refused, row, step_asks, table_name, taken,
    update, worker, working, working_with,
};
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::limits::ROW_OPS_MAX;
use interlock_kernel::record::Key;
use interlock_kernel::rejection::Code;
use interlock_kernel::rows::{Order, Require, RowAnswer, RowAsk, RowOp, RowsAsk};
use interlock_kernel::table::Right;
use interlock_kernel::value::Filter;
use std::collections::BTreeSet;

// --- several in one transaction

#[test]
fn several_operations_see_each_other_and_hold_together() {
    let mut world = four(&queue(&[("by-status", &["status"])]));
    let done = answers(
        &mut world,
        client(vec![
            put("e", r#"{"n":5,"status":"pending"}"#),
            update("d", Filter::default(), &["row.status = \"done\""]),
            claim(10),
            op(RowAsk::Get { key: key("e") }),
        ]),
    );
    assert_eq!(taken(&done[2]), ["a", "c", "b", "e"]);
    let RowAnswer::Got { row: Some(e), .. } = &done[3] else { panic!() };
    assert_eq!(e.claimed_by.as_deref(), Some("client"));
}

#[test]
fn conditions_on_rows_and_entities_hold_or_nothing_is_done() {
    let mut world = four(&queue(&[]));
    world.deploy(worker());
    world.create(create("worker/w")).unwrap();
    let on = |require: Require| {
        asked(
            "client",
            None,
            RowsAsk { require: vec![require], ops: vec![update("a", Filter::default(), &["row.n += 1"])] },
        )
    };
    let jobs = || table_name("jobs");
    let there = |present, filter| Require::Row { table: jobs(), key: key("b"), present, filter };
    let of = |state: &str, filter| Require::Entity { entity: entity("worker/w"), states: vec![name(state)], filter };
    world.ok(on(there(true, all("row.n eq 2"))));
    world.ok(on(of("idle", Filter::default())));
    for require in [
        there(false, Filter::default()),
        there(true, all("row.n eq 3")),
        Require::Row { table: jobs(), key: key("z"), present: true, filter: Filter::default() },
        of("working", Filter::default()),
        of("idle", all("data.x eq 1")),
        Require::Entity { entity: entity("worker/none"), states: vec![], filter: Filter::default() },
    ] {
        assert_eq!(world.refused(on(require)).code, Code::Require);
    }
    world.ok(on(Require::Row { table: jobs(), key: key("z"), present: false, filter: Filter::default() }));
    assert_eq!(row(&world, "a").unwrap().value.text(), r#"{"n":4,"status":"pending"}"#);
}

#[test]
fn a_request_has_a_bounded_number_of_operations() {
    let mut world = four(&queue(&[]));
    let many = |n: usize| client(vec![op(RowAsk::Get { key: key("a") }); n]);
    assert_eq!(answers(&mut world, many(ROW_OPS_MAX)).len(), ROW_OPS_MAX);
    assert_eq!(world.refused(many(ROW_OPS_MAX + 1)).code, Code::Limit);
}

#[test]
fn a_request_writes_a_bounded_number_of_bytes() {
    let mut world = four(&queue(&[]));
    let text = "x".repeat(250_000);
    let large = |n: usize| (0..n).map(|nth| put(&format!("l{nth}"), &format!("\"{text}\""))).collect::<Vec<_>>();
    world.ok(client(large(25)));
    let refused = world.refused(client(large(26)));
    assert_eq!((refused.code, refused.subject.as_str()), (Code::Limit, "rows"));
    assert!(refused.expected.contains("row_written_bytes_max"), "{refused}");
}

#[test]
fn a_claim_says_that_there_is_more_where_its_bytes_end() {
    let mut world = four(&queue(&[]));
    let text = "x".repeat(250_000);
    for nth in 0..6 {
        one(&mut world, put(&format!("l{nth}"), &format!(r#"{{"status":"pending","text":"{text}"}}"#)));
    }
    let answer = one(&mut world, claim(100));
    assert!(matches!(&answer, RowAnswer::Claimed { more: true, .. }));
    assert_eq!(taken(&answer).len(), 4 + 4, "the last that fits in a mebibyte");
    let answer = one(&mut world, claim(100));
    assert!(matches!(&answer, RowAnswer::Claimed { more: false, .. }));
    assert_eq!(taken(&answer).len(), 2);
}

#[test]
fn what_is_claimed_and_deleted_is_no_more_than_can_be_remembered() {
    let (mut world, id) = working(&queue(&[]));
    let long = "k".repeat(190);
    let ops = |from: usize| -> Vec<RowOp> {
        (from..from + 50).map(|n| put(&format!("{long}{n:04}"), r#"{"status":"pending"}"#)).collect()
    };
    for from in 0..20 {
        world.ok(client(ops(from * 50)));
    }
    let take = |delete| op(RowAsk::Claim { filter: None, set: None, order: Order::default(), limit: 1_000, delete });
    let (answers, _) = step_asks(&mut world, &id, vec![take(true)]).unwrap();
    assert!(matches!(&answers[0], RowAnswer::Claimed { more: true, rows, .. } if rows.len() > 300));
    let (answers, _) = step_asks(&mut world, &id, vec![take(false)]).unwrap();
    assert!(matches!(&answers[0], RowAnswer::Claimed { rows, .. } if rows.len() > 500));
    for (key, bytes) in world.records.bytes() {
        assert!(bytes.len() < 256 * 1024, "{key:?}: {} bytes", bytes.len());
    }
}

#[test]
fn answers_that_are_remembered_together_are_bounded() {
    let (mut world, id) = working(&queue(&[]));
    let text = format!("\"{}\"", "x".repeat(100_000));
    step_asks(&mut world, &id, vec![put("one", &text)]).unwrap();
    let refused = step_asks(&mut world, &id, vec![put("one", &text), put("two", &text)]).unwrap_err();
    assert!(refused.code == Code::Limit && refused.got.ends_with("ask for fewer fields"), "{refused}");
    assert_eq!(row(&world, "two"), None);
}

// --- who may

#[test]
fn what_was_not_granted_is_denied_by_name() {
    let mut table = queue(&[]);
    table.access.clients = BTreeSet::from([Right::Get, Right::Put, Right::Claim]);
    let mut world = four(&table);
    let denied = refused(&mut world, update("a", Filter::default(), &["row.n += 1"]));
    assert_eq!((denied.code, denied.subject.as_str()), (Code::Denied, "table jobs"));
    assert_eq!(denied.got, "update, which is not granted");
    let take = RowAsk::Claim { filter: None, set: None, order: Order::default(), limit: 2, delete: true };
    assert_eq!(refused(&mut world, op(take)).got, "delete, which is not granted");
    let none = RowOp { table: table_name("none"), ..put("a", "1") };
    assert_eq!(refused(&mut world, none).code, Code::NotFound);
}

#[test]
fn a_step_needs_the_table_in_its_manifest_and_the_machine_in_the_table() {
    let (mut world, id) = working(&queue(&[]));
    step_asks(&mut world, &id, vec![put("x", "1")]).unwrap();
    let without = worker().with(|machine| machine.tables.clear());
    let (mut world, id) = working_with(&queue(&[]), without);
    let denied = step_asks(&mut world, &id, vec![put("x", "1")]).unwrap_err();
    assert_eq!(denied.expected, "a machine whose manifest names it in tables, as that of worker does not");
    let mut table = queue(&[]);
    table.access.machines.clear();
    let (mut world, id) = working(&table);
    let denied = step_asks(&mut world, &id, vec![put("x", "1")]).unwrap_err();
    assert_eq!(denied.expected, "put among access.machines.worker of the table's declaration");
}

// --- clients

#[test]
fn a_client_asks_again_under_its_id_and_gets_the_same_answer() {
    let mut world = four(&queue(&[]));
    let count = |by: &str| {
        let ops = vec![update("a", Filter::default(), &[by])];
        asked("client", Some("id-1"), RowsAsk { require: Vec::new(), ops })
    };
    let first = answers(&mut world, count("row.n += 1"));
    assert!(matches!(world.ok(count("row.n += 1")), Outcome::Rows { answers, replayed: true } if answers == first));
    assert_eq!(world.refused(count("row.n += 2")).code, Code::IdReused);
    world.pass(86_400_001);
    assert!(matches!(world.ok(count("row.n += 2")), Outcome::Rows { replayed: false, .. }));
    world.ok(Verb::Sweep);
    assert!(matches!(world.ok(count("row.n += 2")), Outcome::Rows { replayed: true, .. }), "used again since");
    world.pass(86_400_001);
    world.ok(Verb::Sweep);
    assert!(world.records.keys().all(|key| !matches!(key, Key::Answered(_))));
}
