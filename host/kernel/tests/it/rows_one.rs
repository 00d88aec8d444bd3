//! Operations on one row: update, upsert, put, get, delete.

use crate::build::doc;
use crate::rows::{all, client, four, key, one, op, put, queue, refused, row, set, update, upsert, value};
use interlock_kernel::rejection::Code;
use interlock_kernel::rows::{Found, RowAnswer, RowAsk, RowOp, Unmatched};
use interlock_kernel::value::{Filter, Value};

// --- update

#[test]
fn an_update_changes_a_row_whose_guard_holds_and_answers_with_the_new_value() {
    let mut world = four(&queue(&[]));
    let answer = one(&mut world, update("a", all("row.n eq 1"), &["row.n += 5", "row.seen = true"]));
    let RowAnswer::Updated { row: Some(row), unmatched: None, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(value(&row), r#"{"n":6,"seen":true,"status":"pending"}"#);
}

#[test]
fn an_update_whose_guard_fails_says_which_and_not_what_stood_there() {
    let mut world = four(&queue(&[]));
    let version = row(&world, "a").unwrap().version;
    let answer = one(&mut world, update("a", all("row.n gt 5"), &["row.n += 1"]));
    let RowAnswer::Updated { row: None, unmatched: Some(Unmatched::Guard(why)), .. } = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(why, "row.n gt 5");
    assert_eq!(row(&world, "a").unwrap().version, version);
}

#[test]
fn an_update_never_creates_a_row() {
    let mut world = four(&queue(&[]));
    let answer = one(&mut world, update("z", Filter::default(), &["row.n += 1"]));
    assert!(matches!(answer, RowAnswer::Updated { row: None, unmatched: Some(Unmatched::Absent), .. }), "{answer:?}");
    assert_eq!(row(&world, "z"), None);
}

#[test]
fn a_change_of_the_wrong_type_names_path_and_type_and_changes_nothing() {
    let mut world = four(&queue(&[]));
    let refused = refused(&mut world, update("a", Filter::default(), &["row.n += 1", "row.status += 1"]));
    assert_eq!((refused.code, refused.subject.as_str()), (Code::Invalid, "jobs/a: row.status"));
    assert_eq!(refused.got, "row.status: expected a number, got text");
    assert_eq!(row(&world, "a").unwrap().value.text(), r#"{"n":1,"status":"pending"}"#);
}

#[test]
fn an_update_without_a_change_is_refused() {
    let mut world = four(&queue(&[]));
    assert_eq!(refused(&mut world, update("a", Filter::default(), &[])).code, Code::Invalid);
}

#[test]
fn an_update_that_must_match_refuses_the_whole_request() {
    let mut world = four(&queue(&[]));
    let must = |op| RowOp { must: true, ..op };
    let first = update("a", Filter::default(), &["row.n += 1"]);
    let absent = world.refused(client(vec![first.clone(), must(update("z", Filter::default(), &["row.n += 1"]))]));
    assert_eq!((absent.code, absent.subject.as_str(), absent.got.as_str()), (Code::Require, "jobs/z", "none"));
    let guarded = world.refused(client(vec![first, must(update("b", all("row.n eq 9"), &["row.n += 1"]))]));
    assert_eq!((guarded.code, guarded.expected.as_str()), (Code::Require, "row.n eq 9 (must)"));
    assert_eq!(row(&world, "a").unwrap().value.text(), r#"{"n":1,"status":"pending"}"#);
}

#[test]
fn the_next_free_slot_is_reserved_by_one_update() {
    let mut world = four(&queue(&[]));
    one(&mut world, put("slot", r#"{"next":0}"#));
    let take = || update("slot", Filter::default(), &["row.next max now", "row.next += 1000"]);
    let wall = world.wall;
    for nth in 1..=3 {
        let RowAnswer::Updated { row: Some(row), .. } = one(&mut world, take()) else { panic!() };
        assert_eq!(value(&row), format!(r#"{{"next":{}}}"#, wall + nth * 1_000));
    }
    world.pass(60_000);
    let RowAnswer::Updated { row: Some(row), .. } = one(&mut world, take()) else { panic!() };
    assert_eq!(value(&row), format!(r#"{{"next":{}}}"#, wall + 61_000), "what is stale is not caught up with");
}

// --- upsert

#[test]
fn an_upsert_inserts_or_changes_and_says_which() {
    let mut world = four(&queue(&[]));
    let answer = one(&mut world, upsert("x", r#"{"n":1}"#, &["row.n += 1"]));
    assert!(matches!(&answer, RowAnswer::Upserted { inserted: true, row } if value(row) == r#"{"n":1}"#), "{answer:?}");
    let answer = one(&mut world, upsert("x", r#"{"n":1}"#, &["row.n += 1"]));
    assert!(
        matches!(&answer, RowAnswer::Upserted { inserted: false, row } if value(row) == r#"{"n":2}"#),
        "{answer:?}"
    );
    let version = row(&world, "x").unwrap().version;
    let answer = one(&mut world, upsert("x", r#"{"n":7}"#, &[]));
    assert!(
        matches!(&answer, RowAnswer::Upserted { inserted: false, row } if value(row) == r#"{"n":2}"#),
        "{answer:?}"
    );
    assert_eq!(row(&world, "x").unwrap().version, version, "no change leaves it alone");
}

#[test]
fn what_an_upsert_inserts_is_filled_in_with_what_only_the_transaction_knows() {
    let mut world = four(&queue(&[]));
    let fill = set(&["row.at = now", "row.by = execution"]);
    let ask = RowAsk::Upsert { key: key("x"), insert: doc("{}"), fill, set: Vec::new() };
    let RowAnswer::Upserted { row, .. } = one(&mut world, op(ask)) else { panic!() };
    assert_eq!(value(&row), format!(r#"{{"at":{},"by":"client"}}"#, world.wall));
}

// --- put, get, delete

#[test]
fn a_put_may_expect_what_is_there() {
    let mut world = four(&queue(&[]));
    let expecting =
        |expect| op(RowAsk::Put { key: key("a"), value: doc("{}"), fill: Vec::new(), expect: Some(expect) });
    let version = row(&world, "a").unwrap().version;
    let got = refused(&mut world, expecting(Found::Absent));
    assert_eq!((got.code, got.expected.as_str(), got.got), (Code::Conflict, "no row", format!("version {version}")));
    assert_eq!(refused(&mut world, expecting(Found::Version(version + 1))).code, Code::Conflict);
    one(&mut world, expecting(Found::Version(version)));
    assert_eq!(refused(&mut world, expecting(Found::Version(version))).code, Code::Conflict);
    one(&mut world, op(RowAsk::Delete { key: key("a"), filter: Filter::default() }));
    assert_eq!(refused(&mut world, expecting(Found::Version(version))).got, "no row");
    one(&mut world, expecting(Found::Absent));
    assert!(row(&world, "a").unwrap().version > version, "a version comes back for no other content");
}

#[test]
fn a_delete_removes_a_row_whose_guard_holds() {
    let mut world = four(&queue(&[]));
    let delete = |filter| op(RowAsk::Delete { key: key("a"), filter });
    let answer = one(&mut world, delete(all("row.n eq 2")));
    assert!(matches!(answer, RowAnswer::Deleted { deleted: false, unmatched: Some(Unmatched::Guard(_)), .. }));
    assert!(matches!(one(&mut world, delete(all("row.n eq 1"))), RowAnswer::Deleted { deleted: true, .. }));
    let answer = one(&mut world, delete(Filter::default()));
    assert!(matches!(answer, RowAnswer::Deleted { deleted: false, unmatched: Some(Unmatched::Absent), .. }));
}

#[test]
fn an_answer_has_the_fields_that_were_asked_for() {
    let mut world = four(&queue(&[]));
    let get = RowOp { fields: vec!["n".to_owned(), "none".to_owned()], ..op(RowAsk::Get { key: key("a") }) };
    let RowAnswer::Got { row: Some(row), .. } = one(&mut world, get) else { panic!() };
    assert_eq!(value(&row), r#"{"n":1}"#);
    let answer = one(&mut world, op(RowAsk::Get { key: key("z") }));
    assert!(matches!(answer, RowAnswer::Got { row: None, .. }));
}

#[test]
fn a_key_is_text_or_an_integer() {
    let mut world = four(&queue(&[]));
    let get = |value: &str| op(RowAsk::Get { key: Value::Json(doc(value)) });
    one(&mut world, put("7", "{}"));
    assert!(matches!(one(&mut world, get("7")), RowAnswer::Got { row: Some(_), .. }));
    assert_eq!(refused(&mut world, get("7.5")).got, "7.5");
    assert_eq!(refused(&mut world, get(r#""""#)).code, Code::Invalid);
    let missing = op(RowAsk::Get { key: crate::build::value("row.x") });
    assert_eq!(refused(&mut world, missing).got, "nothing at row.x");
}
