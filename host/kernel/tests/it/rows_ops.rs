//! Operations on rows: which of several refusals is told, what they answer, what they write and what not.

use crate::build::{create, doc, entity, event_of, machine, name, rest};
use crate::lost::succeeded_by_another;
use crate::rows::{
    all, answers, asked, claim, client, entries, four, key, one, op, put, queue, refused, row, set, staging, status,
    step_asks, step_asks_as, step_verb, table_heads, table_name, taken, update, upsert, worker, working, working_with,
};
use crate::rows_walk::take;
use interlock_kernel::command::{Change, Outcome};
use interlock_kernel::limits::{DOCUMENT_BYTES_MAX, MUTATIONS_MAX, ROWS_MAX};
use interlock_kernel::record::{Key, RowWhat};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::rows::{Found, MemoName, Order, Require, RowAnswer, RowAsk, RowOp, RowsAsk};
use interlock_kernel::table::Right;
use interlock_kernel::value::{Filter, Mutation};
use std::collections::{BTreeMap, BTreeSet};

fn told(refused: &Rejection) -> (Code, &str, &str, &str) {
    (refused.code, &refused.subject, &refused.expected, &refused.got)
}

fn marking(changes: &[&str], limit: u32) -> RowOp {
    op(RowAsk::Claim { filter: None, set: Some(set(changes)), order: Order::default(), limit, delete: false })
}

// --- refusals

#[test]
fn what_a_put_expected_is_told_before_what_is_wrong_with_its_value() {
    let mut world = four(&queue(&[]));
    world.rules.0.push((1, "row.jobs", "a number n", |value| value["n"].is_number()));
    let ask = |expect| op(RowAsk::Put { key: key("a"), value: doc("{}"), fill: Vec::new(), expect: Some(expect) });
    assert_eq!(refused(&mut world, ask(Found::Absent)).code, Code::Conflict);
    let version = row(&world, "a").unwrap().version;
    assert_eq!(refused(&mut world, ask(Found::Version(version))).code, Code::Invalid);
}

#[test]
fn a_claim_that_would_change_nothing_is_told_before_its_limit() {
    let mut world = four(&queue(&[]));
    let nothing = refused(&mut world, marking(&[], 0));
    assert_eq!(told(&nothing), (Code::Invalid, "table jobs", "at least one change (set)", "none"));
    let limit = "a limit of 1 to 1000 rows (rows_max; 10 if none is given)";
    let over = refused(&mut world, marking(&["row.n = 1"], ROWS_MAX + 1));
    assert_eq!(told(&over), (Code::Limit, "table jobs", limit, "1001"));
}

#[test]
fn a_change_has_a_bounded_number_of_mutations() {
    let mut world = four(&queue(&[]));
    let counting = |count| update("a", Filter::default(), &vec!["row.n += 1"; count]);
    one(&mut world, counting(MUTATIONS_MAX));
    let over = refused(&mut world, counting(MUTATIONS_MAX + 1));
    assert_eq!(told(&over), (Code::Limit, "table jobs", "at most 64 changes (mutations_max)", "65"));
    assert_eq!(row(&world, "a").unwrap().value.text(), r#"{"n":65,"status":"pending"}"#);
}

#[test]
fn a_change_is_of_a_field_of_the_row() {
    let mut world = four(&queue(&[]));
    let other = refused(&mut world, update("a", Filter::default(), &["data.n = 1"]));
    assert_eq!(told(&other), (Code::Invalid, "jobs/a: data.n", "a field of the row", "data.n"));
}

#[test]
fn a_row_that_is_put_into_itself_is_bounded_at_each_change() {
    let mut world = four(&queue(&[]));
    let text = "x".repeat(150_000);
    one(&mut world, put("a", &format!(r#"{{"text":"{text}"}}"#)));
    let twice = ["row.a = row", "row.b = row", "row.a remove 0", "row.b remove 0"];
    let refused = refused(&mut world, update("a", Filter::default(), &twice));
    let expected = format!("at most {DOCUMENT_BYTES_MAX} bytes (document_bytes_max)");
    assert_eq!(told(&refused), (Code::Limit, "jobs/a: row.b", expected.as_str(), "300027 bytes"));
}

#[test]
fn a_claim_marks_a_row_with_a_value_that_may_stand_there() {
    let mut world = four(&queue(&[]));
    world.rules.0.push((1, "row.jobs", "a number n", |value| value["n"].is_number()));
    let broken = refused(&mut world, marking(&["row.n = \"one\""], 1));
    assert_eq!(
        (broken.code, broken.subject.as_str(), broken.expected.as_str()),
        (Code::Invalid, "jobs/d", "a number n")
    );
    assert_eq!(taken(&one(&mut world, claim(1))), ["d"]);
}

#[test]
fn each_right_of_a_machine_is_its_own() {
    let mut table = queue(&[]);
    table.access.machines = BTreeMap::from([("worker".parse().unwrap(), BTreeSet::from([Right::Get, Right::Claim]))]);
    let (mut world, id) = working(&table);
    step_asks(&mut world, &id, vec![claim(1)]).unwrap();
    let denied = step_asks(&mut world, &id, vec![put("x", "1")]).unwrap_err();
    let expected = "put among access.machines.worker of the table's declaration";
    assert_eq!(told(&denied), (Code::Denied, "table jobs", expected, "put, which is not granted"));
}

#[test]
fn a_step_without_its_lease_changes_no_row() {
    let ask = |claim| step_verb(claim, MemoName::Asked(0), vec![put("x", "1")]);
    let (mut world, id, _) = crate::lost::working();
    world.pass(9_000);
    let lost = world.refused(ask(world.claim(&id)));
    assert_eq!((lost.code, lost.expected.as_str()), (Code::Fenced, "lease quota, held"));
    let (mut world, _, old) = succeeded_by_another();
    world.pass(9_000);
    assert!(world.refused(ask(old)).expected.starts_with("attempt 2, token"), "the open one is told first");
}

#[test]
fn a_right_is_read_as_it_is_written() {
    for (text, right) in Right::ALL {
        assert_eq!((text.parse(), right.to_string().as_str()), (Ok(right), text));
    }
    let expected = r#"expected one of get, query, put, update, claim, upsert, delete, got "read""#;
    assert_eq!("read".parse::<Right>(), Err(expected.to_owned()));
}

// --- conditions

#[test]
fn a_condition_that_does_not_hold_says_what_was_expected_and_what_is_there() {
    let mut world = four(&queue(&[]));
    world.deploy(worker());
    world.create(create("worker/w")).unwrap();
    let of = |at: &str, present, filter| Require::Row { table: table_name("jobs"), key: key(at), present, filter };
    let is = |states: &[&str], filter| Require::Entity {
        entity: entity("worker/w"),
        states: states.iter().map(|state| name(state)).collect(),
        filter,
    };
    let none = Filter::default;
    for (require, subject, expected, got) in [
        (of("z", true, none()), "jobs/z", "a row", "no row"),
        (of("a", false, none()), "jobs/a", "no row", "a row"),
        (of("a", true, all("row.n eq 2")), "jobs/a", "row.n eq 2", "1"),
        (is(&["working", "done"], none()), "worker/w", "working or done", "idle"),
        (is(&[], all("data.x eq 1")), "worker/w", "data.x eq 1", "nothing"),
    ] {
        let ask = RowsAsk { require: vec![of("a", true, none()), require], ops: vec![] };
        let refused = world.refused(asked("client", None, ask));
        assert_eq!(told(&refused), (Code::Require, subject, expected, got));
        assert_eq!(refused.detail, Some(doc(r#"{"require":1}"#)));
    }
    let holds = vec![of("z", false, none()), of("a", true, none()), is(&[], none()), is(&["working", "idle"], none())];
    world.ok(asked("client", None, RowsAsk { require: holds, ops: vec![] }));
}

#[test]
fn a_step_may_put_conditions_on_entities_of_its_own_machine_and_hears_nothing_of_others() {
    let (mut world, id) = working(&queue(&[]));
    world.create(create("worker/v")).unwrap();
    let of = |text: &str| {
        let require = Require::Entity { entity: entity(text), states: vec![name("idle")], filter: Filter::default() };
        staging(vec![require], vec![])
    };
    world.deploy(machine("gate", "shut").state("shut", rest()));
    let none = world.transition(&id, "idle", of("gate/none")).unwrap_err();
    assert_eq!((none.code, none.got.as_str()), (Code::Denied, "gate"), "not even whether there is one");
    world.transition(&id, "idle", of("worker/v")).unwrap();
}

// --- answers

#[test]
fn a_put_says_whether_the_row_is_new() {
    let mut world = four(&queue(&[]));
    for (at, new) in [("z", true), ("z", false), ("a", false)] {
        assert!(matches!(one(&mut world, put(at, "1")), RowAnswer::Put { inserted, .. } if inserted == new), "{at}");
    }
}

#[test]
fn a_claim_that_must_take_something_and_does_is_answered() {
    let mut world = four(&queue(&[]));
    let must = |filter| RowOp { must: true, ..take(&filter, &Order::default(), 2) };
    assert_eq!(taken(&one(&mut world, must(status("pending")))), ["d", "a"]);
    let none = refused(&mut world, must(status("none")));
    assert_eq!(told(&none), (Code::Require, "table jobs", "at least one row that the claim matches (must)", "none"));
}

#[test]
fn a_claim_that_does_not_mark_rows_as_held_holds_none() {
    let mut world = four(&queue(&[]));
    assert_eq!(taken(&one(&mut world, marking(&["row.seen = true"], 1))), ["d"]);
    let d = row(&world, "d").unwrap();
    assert_eq!((d.value.text(), d.claim, d.claims), (r#"{"n":4,"seen":true,"status":"pending"}"#, None, 0));
    assert_eq!(table_heads(&world)[&table_name("jobs")].held, 0);
}

#[test]
fn a_claim_that_marks_rows_otherwise_settles_what_it_takes_from_others() {
    let mut world = four(&queue(&[]));
    one(&mut world, claim(1));
    let mark = Some(set(&["row.status = \"done\""]));
    let filter = Some(status("in_flight"));
    let over = RowAsk::Claim { filter, set: mark, order: Order::default(), limit: 9, delete: false };
    assert_eq!(
        taken(&answers(&mut world, asked("other", None, RowsAsk { require: vec![], ops: vec![op(over)] }))[0]),
        ["d"]
    );
    let last: Vec<_> = entries(&world).into_iter().map(|entry| (entry.what, entry.claimant.unwrap())).collect();
    let expected = [(RowWhat::Claimed, "client"), (RowWhat::Settled, "client"), (RowWhat::Claimed, "other")];
    assert_eq!(last, expected.map(|(what, by)| (what, by.to_owned())));
}

#[test]
fn the_record_of_a_claim_says_when_its_rows_were_deleted() {
    let mut world = four(&queue(&[]));
    let away = |delete| RowAsk::Claim { filter: None, set: None, order: Order::default(), limit: 1, delete };
    one(&mut world, op(away(true)));
    one(&mut world, op(away(false)));
    let told: Vec<_> = entries(&world).into_iter().map(|entry| (entry.what, entry.note)).collect();
    assert_eq!(told, [(RowWhat::Claimed, "and deleted".to_owned()), (RowWhat::Claimed, String::new())]);
}

// --- values

#[test]
fn values_of_a_step_come_from_the_payload_of_what_its_visit_began_with() {
    let mut world = four(&queue(&[]));
    world.deploy(worker());
    let id = entity("worker/w");
    world.create(create("worker/w")).unwrap();
    world.deliver(&id, event_of("go", "g1", r#"{"n":7}"#)).unwrap();
    let fill: Vec<Mutation> = set(&["row.n = event.n"]);
    step_asks(&mut world, &id, vec![op(RowAsk::Upsert { key: key("x"), insert: doc("{}"), fill, set: vec![] })])
        .unwrap();
    assert_eq!(row(&world, "x").unwrap().value.text(), r#"{"n":7}"#);
}

#[test]
fn values_of_what_a_commit_carries_come_from_what_it_proposes() {
    let (mut world, id) = working_with(&queue(&[]), worker().data(r#"{"n":1}"#));
    let ask = RowAsk::Upsert { key: key("x"), insert: doc("{}"), fill: set(&["row.n = data.n"]), set: vec![] };
    let change = Change { data: Some(doc(r#"{"n":2}"#)), ..staging(vec![], vec![op(ask)]) };
    world.transition(&id, "idle", change).unwrap();
    assert_eq!(row(&world, "x").unwrap().value.text(), r#"{"n":2}"#);
}

#[test]
fn an_execution_holds_rows_once_a_claim_of_its_took_one() {
    let (mut world, id) = working(&queue(&[]));
    step_asks(&mut world, &id, vec![take(&status("none"), &Order::default(), 1)]).unwrap();
    assert!(!world.head(&id).holds);
    step_asks_as(&mut world, &id, MemoName::Asked(1), vec![claim(1)]).unwrap();
    assert!(world.head(&id).holds);
}

// --- what is written

#[test]
fn what_changes_nothing_writes_nothing() {
    let mut world = four(&queue(&[("by-n", &["n"])]));
    let nothing = update("a", all("row.n eq 9"), &["row.n += 1"]);
    for ops in [
        vec![op(RowAsk::Get { key: key("a") })],
        vec![nothing],
        vec![upsert("a", "1", &[])],
        vec![take(&status("none"), &Order::default(), 9)],
    ] {
        world.ok(client(ops));
        assert_eq!(world.wrote.len(), 0, "{:?}", world.wrote);
    }
}

#[test]
fn a_change_of_a_row_writes_the_row_and_of_its_indexes_what_became_other() {
    let mut world = four(&queue(&[("by-n", &["n"]), ("by-status", &["status"])]));
    let mut wrote = |op| {
        one(&mut world, op);
        let kind = |(key, stays): (&Key, &bool)| match key {
            Key::Row(_, key) => format!("{key} {stays}"),
            Key::RowIndex(_, index, ..) => format!("index {index} {stays}"),
            Key::Table(_) => "table".to_owned(),
            other => panic!("{other:?}"),
        };
        world.wrote.iter().map(kind).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(wrote(update("a", Filter::default(), &["row.x = 1"])), "a true");
    assert_eq!(wrote(update("a", Filter::default(), &["row.n = 8"])), "a true, index 1 false, index 1 true");
    let gone = op(RowAsk::Delete { key: key("a"), filter: Filter::default() });
    assert_eq!(wrote(gone), "table, a false, index 0 false, index 1 false, index 2 false");
}

#[test]
fn what_is_only_read_is_not_remembered() {
    let mut world = four(&queue(&[]));
    let ask = |at: &str| {
        let ops = vec![op(RowAsk::Get { key: key(at) })];
        asked("client", Some("id-1"), RowsAsk { require: Vec::new(), ops })
    };
    for at in ["a", "a", "b"] {
        assert!(matches!(world.ok(ask(at)), Outcome::Rows { replayed: false, .. }), "{at}");
    }
    let (mut world, id) = working(&queue(&[]));
    for at in ["a", "b"] {
        step_asks(&mut world, &id, vec![op(RowAsk::Get { key: key(at) })]).unwrap();
        assert_eq!(world.head(&id).memos, 0);
    }
}
