//! Rows: what each operation does and refuses, who may, what is remembered, and what store time does.

use crate::build::{Mc, comparison, create, doc, entity, machine, name, rest, step, to};
use crate::world::World;
use interlock_kernel::command::{Change, Outcome, Stage, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{EntityId, RowKey, TableName};
use interlock_kernel::limits::{MEMOS_MAX, ROW_OPS_MAX, ROWS_MAX};
use interlock_kernel::record::{Claimant, IndexStage, Key, Record, Row, RowEntry, RowWhat, TableHead};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::rows::{
    ClientRows, Declare, Found, MemoName, Order, OrderBy, Require, RowAnswer, RowAsk, RowOp, RowShown, RowsAsk,
    StepRows, Unmatched,
};
use interlock_kernel::table::{Access, ClaimSpec, IndexSpec, OnEnd, Reaper, Right, Table, Tie, Ttl};
use interlock_kernel::value::{Filter, Mutation, Path, Value};
use interlock_kernel::view::{Claim, Wake};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) fn table_name(text: &str) -> TableName {
    text.parse().unwrap()
}

pub(crate) fn row_key(text: &str) -> RowKey {
    text.parse().unwrap()
}

/// `row.status eq "pending"`; several are joined by `and`.
pub(crate) fn all(text: &str) -> Filter {
    Filter { any: vec![text.split(" and ").map(comparison).collect()] }
}

pub(crate) fn set(texts: &[&str]) -> Vec<Mutation> {
    texts.iter().map(|text| crate::build::mutation(text)).collect()
}

pub(crate) fn index(fields: &[&str]) -> IndexSpec {
    let path = |field: &&str| format!("row.{field}").parse::<Path>().unwrap();
    IndexSpec { fields: fields.iter().map(path).collect(), tie: Tie::Created }
}

/// A table that everybody may do everything with.
pub(crate) fn queue(indexes: &[(&str, &[&str])]) -> Table {
    let every: BTreeSet<Right> = Right::ALL.into_iter().map(|(_, right)| right).collect();
    Table {
        name: table_name("jobs"),
        owner: "tests".to_owned(),
        schema: None,
        indexes: indexes.iter().map(|(text, fields)| (name(text), index(fields))).collect(),
        claim: ClaimSpec::standard(),
        ttl: None,
        access: Access { machines: BTreeMap::from([("worker".parse().unwrap(), every.clone())]), clients: every },
    }
}

pub(crate) fn declared(table: &Table) -> Verb {
    let digest = Digest::of(&[format!("{table:?}").as_bytes()]);
    Verb::Declare(Box::new(Declare { table: Arc::new(table.clone()), digest, source: String::new() }))
}

pub(crate) fn key(text: &str) -> Value {
    Value::Json(Doc::new(text.into()))
}

pub(crate) fn op(what: RowAsk) -> RowOp {
    RowOp { table: table_name("jobs"), what, fields: Vec::new(), must: false }
}

pub(crate) fn put(at: &str, value: &str) -> RowOp {
    op(RowAsk::Put { key: key(at), value: doc(value), fill: Vec::new(), expect: None })
}

pub(crate) fn update(at: &str, filter: Filter, changes: &[&str]) -> RowOp {
    op(RowAsk::Update { key: key(at), filter, set: set(changes) })
}

pub(crate) fn upsert(at: &str, insert: &str, changes: &[&str]) -> RowOp {
    op(RowAsk::Upsert { key: key(at), insert: doc(insert), fill: Vec::new(), set: set(changes) })
}

pub(crate) fn claim(limit: u32) -> RowOp {
    op(RowAsk::Claim { filter: None, set: None, order: Order::default(), limit, delete: false })
}

pub(crate) fn client(ops: Vec<RowOp>) -> Verb {
    asked("client", None, RowsAsk { require: Vec::new(), ops })
}

pub(crate) fn asked(label: &str, id: Option<&str>, ask: RowsAsk) -> Verb {
    Verb::Rows(Box::new(ClientRows { ask, label: label.to_owned(), id: id.map(|id| id.parse().unwrap()) }))
}

/// The answers to a client's request.
pub(crate) fn answers(world: &mut World, verb: Verb) -> Vec<RowAnswer> {
    match world.ok(verb) {
        Outcome::Rows { answers, .. } => answers,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn one(world: &mut World, op: RowOp) -> RowAnswer {
    answers(world, client(vec![op])).remove(0)
}

pub(crate) fn refused(world: &mut World, op: RowOp) -> Rejection {
    world.refused(client(vec![op]))
}

/// The keys that a claim took.
pub(crate) fn taken(answer: &RowAnswer) -> Vec<String> {
    match answer {
        RowAnswer::Claimed { rows, .. } => rows.iter().map(|row| row.key.to_string()).collect(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn value(row: &RowShown) -> &str {
    row.value.text()
}

pub(crate) fn row(world: &World, at: &str) -> Option<Row> {
    world.records.iter().find_map(|(of, record)| match (of, record) {
        (Key::Row(_, of), Record::Row(row)) if of.as_str() == at => Some((**row).clone()),
        _ => None,
    })
}

pub(crate) fn entries(world: &World) -> Vec<RowEntry> {
    let entry = |(_, record): (&Key, &Record)| match record {
        Record::RowEntry(entry) => Some((**entry).clone()),
        _ => None,
    };
    world.records.iter().filter_map(entry).collect()
}

pub(crate) fn table_heads(world: &World) -> BTreeMap<TableName, TableHead> {
    let head = |(key, record): (&Key, &Record)| match (key, record) {
        (Key::Table(name), Record::Table(head)) => Some((name.clone(), (**head).clone())),
        _ => None,
    };
    world.records.iter().filter_map(head).collect()
}

/// Index entries, counts and claims are what the rows say.
pub(crate) fn check(world: &World, title: &str) {
    let heads = table_heads(world);
    let mut implied = BTreeSet::new();
    let mut counts: BTreeMap<&TableName, (u64, u64)> = BTreeMap::new();
    for (key, record) in world.records.iter() {
        let (Key::Row(table, at), Record::Row(row)) = (key, record) else { continue };
        let head = heads.get(table).unwrap_or_else(|| panic!("{title}: a row of no table {table}"));
        let count = counts.entry(table).or_default();
        *count = (count.0 + 1, count.1 + u64::from(row.claim.is_some()));
        assert!(row.claim.is_none() || row.claims > 0, "{title}: {table}/{at}: claimed, and never was");
        // Who ends while a table is being dropped has nothing to give back to it.
        if let Some(claim) = row.claim.as_ref().filter(|claim| claim.back && !head.dropped)
            && let Claimant::Execution(id) = &claim.by
        {
            let entity = id.entity.clone();
            implied.insert(Key::RowHeld(entity, id.incarnation, id.ordinal, table.clone(), at.clone()));
        }
        implied.extend(row.due.map(|due| Key::RowDue(due, table.clone(), at.clone())));
        for index in head.indexes.iter().filter(|index| index.stage == IndexStage::Ready) {
            let place = if index.spec.tie == Tie::Created { row.created } else { row.updated };
            let stands = world.records.keys().any(|key| {
                matches!(key, Key::RowIndex(of, n, _, at_place, of_row)
                    if of == table && *n == index.number && of_row == at && *at_place == place)
            });
            assert!(stands, "{title}: {table}/{at} is not in index {}", index.number);
        }
    }
    for (table, head) in &heads {
        let (rows, held) = counts.get(table).copied().unwrap_or_default();
        assert_eq!((head.rows, head.held), (rows, held), "{title}: counts of {table}");
        for index in head.indexes.iter().filter(|index| index.stage == IndexStage::Ready) {
            let all = world
                .records
                .keys()
                .filter(|key| matches!(key, Key::RowIndex(of, n, ..) if of == table && *n == index.number));
            assert_eq!(all.count() as u64, rows, "{title}: {table}: entries of index {}", index.number);
        }
    }
    let kept = |key: &&Key| match key {
        Key::RowHeld(.., table, _) => heads.get(table).is_none_or(|head| !head.dropped),
        key => matches!(key, Key::RowDue(..)),
    };
    let found: BTreeSet<Key> = world.records.keys().filter(kept).cloned().collect();
    assert_eq!(found, implied, "{title}: what store time and executions have to do with rows");
    for (entity, head) in world.heads() {
        let memos = world.records.keys().filter(|key| matches!(key, Key::Memo(of, _) if *of == entity)).count();
        assert_eq!(head.memos as usize, memos, "{title}: {entity}: remembered answers");
    }
}

/// A table in which four jobs wait.
pub(crate) fn four(table: &Table) -> World {
    let mut world = World::bare();
    world.open();
    world.ok(declared(table));
    for (at, n) in [("d", 4), ("a", 1), ("c", 3), ("b", 2)] {
        one(&mut world, put(at, &format!(r#"{{"n":{n},"status":"pending"}}"#)));
    }
    world
}

/// So many rows `j000`, `j001`, and so on.
pub(crate) fn many(world: &mut World, count: usize, value: &str) {
    let all: Vec<RowOp> = (0..count).map(|nth| put(&format!("j{nth:03}"), value)).collect();
    for ops in all.chunks(ROW_OPS_MAX) {
        world.ok(client(ops.to_vec()));
    }
}

/// Everything that a table's declaration asks for is done.
pub(crate) fn tended(world: &mut World) {
    for _ in 0..100 {
        if !matches!(world.ok(Verb::Tend(table_name("jobs"))), Outcome::Tended { more: true, .. }) {
            return;
        }
    }
    panic!("a table that wants tending for ever");
}

pub(crate) fn status(filter: &str) -> Filter {
    all(&format!("row.status eq \"{filter}\""))
}

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

// --- claim

#[test]
fn a_claim_takes_pending_rows_in_the_order_of_their_insertion_and_marks_them() {
    let mut world = four(&queue(&[("by-status", &["status"])]));
    let answer = one(&mut world, claim(3));
    assert_eq!(taken(&answer), ["d", "a", "c"]);
    let RowAnswer::Claimed { rows, more: false, lost } = answer else { panic!() };
    assert_eq!(lost, []);
    let expected = format!(r#"{{"claimed_at":{},"claimed_by":"client","n":4,"status":"in_flight"}}"#, world.wall);
    assert_eq!((value(&rows[0]), rows[0].claimed_by.as_deref(), rows[0].claims), (&*expected, Some("client"), 1));
    assert_eq!(taken(&one(&mut world, claim(3))), ["b"]);
    assert_eq!(taken(&one(&mut world, claim(3))), Vec::<String>::new(), "nothing is no error");
    let told: Vec<_> = entries(&world).iter().map(|entry| (entry.what, entry.count)).collect();
    assert_eq!(told, [(RowWhat::Claimed, 3), (RowWhat::Claimed, 1)]);
}

#[test]
fn pending_or_stale_is_one_claim() {
    let mut world = four(&queue(&[("by-status", &["status"])]));
    one(&mut world, claim(2));
    world.pass(60_000);
    one(&mut world, claim(1));
    let stale = vec![comparison("row.status eq \"in_flight\""), comparison("row.claimed_at lt now-30s")];
    let filter = Some(Filter { any: vec![vec![comparison("row.status eq \"pending\"")], stale] });
    let ask = RowAsk::Claim { filter, set: None, order: Order::default(), limit: 10, delete: false };
    assert_eq!(taken(&one(&mut world, op(ask))), ["d", "a", "b"], "by insertion, whatever they are");
    assert_eq!(row(&world, "d").unwrap().claims, 2);
}

#[test]
fn a_claim_goes_by_a_stored_priority() {
    let mut world = four(&queue(&[("by-priority", &["status", "n"])]));
    let by = |descending| Order { by: OrderBy::Index(name("by-priority")), descending };
    let ask = |order| op(RowAsk::Claim { filter: None, set: None, order, limit: 2, delete: false });
    assert_eq!(taken(&one(&mut world, ask(by(true)))), ["d", "c"]);
    assert_eq!(taken(&one(&mut world, ask(by(false)))), ["a", "b"]);
    let unknown = Order { by: OrderBy::Index(name("none")), descending: false };
    let refused = refused(&mut world, ask(unknown));
    assert_eq!(refused.expected, "an order by created, updated, index by-priority");
}

#[test]
fn a_claim_may_delete_what_it_takes() {
    let mut world = four(&queue(&[]));
    let ask = RowAsk::Claim { filter: None, set: None, order: Order::default(), limit: 2, delete: true };
    let answer = one(&mut world, op(ask));
    assert_eq!(taken(&answer), ["d", "a"]);
    assert_eq!((row(&world, "d"), row(&world, "a")), (None, None));
}

#[test]
fn a_limit_over_the_maximum_is_refused_and_not_clamped() {
    let mut world = four(&queue(&[]));
    for limit in [0, ROWS_MAX + 1] {
        let refused = refused(&mut world, claim(limit));
        assert_eq!((refused.code, refused.got), (Code::Limit, limit.to_string()));
    }
    assert_eq!(taken(&one(&mut world, claim(ROWS_MAX))).len(), 4);
}

#[test]
fn a_claim_that_would_change_nothing_is_refused() {
    let mut world = four(&queue(&[]));
    let ask = RowAsk::Claim { filter: None, set: Some(vec![]), order: Order::default(), limit: 2, delete: false };
    assert_eq!(refused(&mut world, op(ask)).code, Code::Invalid);
    let nothing =
        RowAsk::Claim { filter: Some(status("none")), set: None, order: Order::default(), limit: 1, delete: false };
    let must = RowOp { must: true, ..op(nothing) };
    assert_eq!(refused(&mut world, must).code, Code::Require);
}

#[test]
fn what_is_claimed_is_settled_by_a_change_of_its_status() {
    let mut world = four(&queue(&[]));
    one(&mut world, claim(2));
    let held = all("row.claimed_by eq execution");
    one(&mut world, update("d", held.clone(), &["row.claimed_at = now"]));
    assert!(row(&world, "d").unwrap().claim.is_some(), "a heartbeat settles nothing");
    one(&mut world, update("d", held, &["row.status = \"done\""]));
    assert_eq!(row(&world, "d").unwrap().claim, None);
    one(&mut world, op(RowAsk::Delete { key: key("a"), filter: Filter::default() }));
    let told: Vec<_> = entries(&world).iter().map(|entry| (entry.what, entry.keys[0].to_string())).collect();
    let expected = [(RowWhat::Claimed, "d"), (RowWhat::Settled, "d"), (RowWhat::Settled, "a")];
    assert_eq!(told, expected.map(|(what, key)| (what, key.to_owned())));
    let client = Some("client".to_owned());
    assert!(entries(&world).iter().all(|entry| entry.claimant == client));
}

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

// --- steps

pub(crate) fn worker() -> Mc {
    machine("worker", "idle")
        .event("go")
        .state("idle", rest().on("go", to("working")))
        .state("working", step("work").to(to("idle")).to(to("working")).attempts(3))
        .with(|machine| machine.tables = BTreeSet::from([table_name("jobs")]))
}

pub(crate) fn working_with(table: &Table, machine: Mc) -> (World, EntityId) {
    let mut world = four(table);
    world.deploy(machine);
    let id = entity("worker/w");
    world.create(create("worker/w")).unwrap();
    world.send(&id, "go", "g1");
    (world, id)
}

pub(crate) fn working(table: &Table) -> (World, EntityId) {
    working_with(table, worker())
}

pub(crate) fn step_verb(claim: Claim, memo: MemoName, ops: Vec<RowOp>) -> Verb {
    Verb::StepRows(claim, Box::new(StepRows { ask: RowsAsk { require: Vec::new(), ops }, memo }))
}

pub(crate) fn step_asks(
    world: &mut World,
    id: &EntityId,
    ops: Vec<RowOp>,
) -> Result<(Vec<RowAnswer>, bool), Rejection> {
    step_asks_as(world, id, MemoName::Asked(0), ops)
}

pub(crate) fn step_asks_as(
    world: &mut World,
    id: &EntityId,
    memo: MemoName,
    ops: Vec<RowOp>,
) -> Result<(Vec<RowAnswer>, bool), Rejection> {
    let claim = world.claim(id);
    match world.run(step_verb(claim, memo, ops))? {
        Outcome::Rows { answers, replayed } => Ok((answers, replayed)),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn again(world: &mut World, id: &EntityId) {
    world.fail(id, "slow");
    world.pass(60_000);
    world.due(id);
}

#[test]
fn a_retried_attempt_gets_the_same_answer_and_changes_nothing_again() {
    let (mut world, id) = working(&queue(&[]));
    let count = || vec![upsert("n", "1", &["row += 1"])];
    let first = step_asks(&mut world, &id, count()).unwrap();
    assert!(!first.1);
    again(&mut world, &id);
    assert_eq!(step_asks(&mut world, &id, count()).unwrap(), (first.0, true));
    assert_eq!(row(&world, "n").unwrap().value.text(), "1");
    let (answers, replayed) = step_asks_as(&mut world, &id, MemoName::Asked(1), count()).unwrap();
    assert!(!replayed && matches!(&answers[0], RowAnswer::Upserted { inserted: false, .. }));
    world.save(&id, Change::default()).unwrap();
    assert!(!step_asks(&mut world, &id, count()).unwrap().1, "a save is where the next attempt begins");
    assert_eq!(row(&world, "n").unwrap().value.text(), "3");
}

#[test]
fn a_step_may_name_what_is_remembered() {
    let (mut world, id) = working(&queue(&[]));
    let named = || MemoName::Named("count".to_owned());
    step_asks_as(&mut world, &id, named(), vec![upsert("n", "1", &["row += 1"])]).unwrap();
    again(&mut world, &id);
    assert!(step_asks_as(&mut world, &id, named(), vec![upsert("n", "1", &["row += 1"])]).unwrap().1);
    let other = step_asks_as(&mut world, &id, named(), vec![upsert("n", "1", &["row += 2"])]).unwrap_err();
    assert_eq!((other.code, other.subject.as_str()), (Code::IdReused, "op"));
}

#[test]
fn a_remembered_claim_shows_what_is_still_held_and_names_what_is_lost() {
    let (mut world, id) = working(&queue(&[]));
    let (first, _) = step_asks(&mut world, &id, vec![claim(3)]).unwrap();
    assert_eq!(taken(&first[0]), ["d", "a", "c"]);
    one(&mut world, update("a", Filter::default(), &["row.n = 10"]));
    one(&mut world, update("c", Filter::default(), &["row.status = \"done\""]));
    again(&mut world, &id);
    let (second, replayed) = step_asks(&mut world, &id, vec![claim(3)]).unwrap();
    let RowAnswer::Claimed { rows, lost, .. } = &second[0] else { panic!() };
    assert!(replayed);
    assert_eq!(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["d", "a"]);
    assert!(value(&rows[1]).contains("\"n\":10"), "as it is now");
    assert_eq!(lost, &[row_key("c")]);
    assert_eq!(row(&world, "b").unwrap().claims, 0, "nothing else was taken");
}

#[test]
fn what_a_claim_deleted_is_remembered_as_it_was() {
    let (mut world, id) = working(&queue(&[]));
    let take = || vec![op(RowAsk::Claim { filter: None, set: None, order: Order::default(), limit: 2, delete: true })];
    let (first, _) = step_asks(&mut world, &id, take()).unwrap();
    again(&mut world, &id);
    assert_eq!(step_asks(&mut world, &id, take()).unwrap(), (first, true));
}

#[test]
fn a_visit_remembers_a_bounded_number_of_requests() {
    let (mut world, id) = working(&queue(&[]));
    for nth in 0..MEMOS_MAX {
        step_asks_as(&mut world, &id, MemoName::Asked(nth), vec![upsert("n", "1", &["row += 1"])]).unwrap();
    }
    let one_more = MemoName::Asked(MEMOS_MAX);
    let refused = step_asks_as(&mut world, &id, one_more, vec![upsert("n", "1", &["row += 1"])]).unwrap_err();
    assert_eq!(refused.code, Code::Limit);
    let only_read = vec![op(RowAsk::Get { key: key("n") })];
    step_asks_as(&mut world, &id, MemoName::Asked(99), only_read).unwrap();
    world.go(&id, "working");
    assert_eq!(world.head(&id).memos, 0);
}

#[test]
fn a_zombie_changes_no_row() {
    let (mut world, id) = working(&queue(&[]));
    let stale = world.claim(&id);
    again(&mut world, &id);
    let refused = world.refused(step_verb(stale, MemoName::Asked(0), vec![put("x", "1")]));
    assert_eq!(refused.code, Code::Fenced);
    assert_eq!(row(&world, "x"), None);
}

pub(crate) fn staging(require: Vec<Require>, ops: Vec<RowOp>) -> Change {
    Change { stage: Stage { rows: RowsAsk { require, ops }, ..Stage::default() }, ..Change::default() }
}

#[test]
fn what_a_transition_carries_is_committed_with_it_or_not_at_all() {
    let (mut world, id) = working(&queue(&[]));
    let none = Require::Row { table: table_name("jobs"), key: key("z"), present: true, filter: Filter::default() };
    let refused = world.transition(&id, "idle", staging(vec![none], vec![put("x", "1")])).unwrap_err();
    assert_eq!((refused.code, row(&world, "x")), (Code::Require, None));
    let ops = vec![put("x", "1"), update("z", Filter::default(), &["row = 1"]), claim(1)];
    let Outcome::Written { rows, .. } = world.transition(&id, "idle", staging(vec![], ops)).unwrap() else { panic!() };
    assert!(matches!(&rows[1], RowAnswer::Updated { row: None, .. }), "what matches nothing does not refuse it");
    assert_eq!(taken(&rows[2]), ["d"]);
    assert_eq!(row(&world, "x").unwrap().value.text(), "1");
}

#[test]
fn a_step_puts_conditions_on_entities_of_its_peers_only() {
    let (mut world, id) = working(&queue(&[]));
    world.deploy(machine("gate", "shut").state("shut", rest()));
    world.create(create("gate/g")).unwrap();
    let shut = || Require::Entity { entity: entity("gate/g"), states: vec![name("shut")], filter: Filter::default() };
    let refused = world.transition(&id, "idle", staging(vec![shut()], vec![])).unwrap_err();
    assert_eq!((refused.code, refused.got.as_str()), (Code::Denied, "gate"));
    let peer = worker().with(|machine| machine.peers = BTreeSet::from(["gate".parse().unwrap()]));
    let (mut world, id) = working_with(&queue(&[]), peer);
    world.deploy(machine("gate", "shut").state("shut", rest()));
    world.create(create("gate/g")).unwrap();
    world.transition(&id, "idle", staging(vec![shut()], vec![])).unwrap();
}

#[test]
fn values_of_a_step_come_from_its_event_and_documents() {
    let with = worker().data(r#"{"key":"x1","by":7}"#);
    let (mut world, id) = working_with(&queue(&[]), with);
    let ask = RowAsk::Upsert {
        key: crate::build::value("data.key"),
        insert: doc("{}"),
        fill: set(&["row.by = execution", "row.n = data.by"]),
        set: Vec::new(),
    };
    step_asks(&mut world, &id, vec![op(ask)]).unwrap();
    let execution = world.claim(&id).execution;
    assert_eq!(row(&world, "x1").unwrap().value.text(), format!(r#"{{"by":"{execution}","n":7}}"#));
}

// --- the end of an execution

#[test]
fn what_an_execution_claimed_stays_or_is_taken_back_as_the_table_says() {
    for (on_end, status) in [(OnEnd::Keep, "in_flight"), (OnEnd::Release, "pending")] {
        let mut table = queue(&[]);
        table.claim.on_end = on_end;
        let (mut world, id) = working(&table);
        step_asks(&mut world, &id, vec![claim(2)]).unwrap();
        one(&mut world, update("a", Filter::default(), &["row.status = \"done\""]));
        world.go(&id, "idle");
        let now = row(&world, "d").unwrap();
        assert!(now.value.text().contains(&format!(r#""status":"{status}""#)), "{}", now.value);
        assert_eq!(now.claim.is_some(), on_end == OnEnd::Keep);
        assert!(row(&world, "a").unwrap().value.text().contains("done"));
    }
}

#[test]
fn many_claims_are_taken_back_a_few_at_a_time() {
    let mut table = queue(&[]);
    table.claim.on_end = OnEnd::Release;
    let (mut world, id) = working(&table);
    many(&mut world, 300, r#"{"status":"pending"}"#);
    step_asks(&mut world, &id, vec![claim(300)]).unwrap();
    let execution = world.claim(&id).execution;
    world.go(&id, "idle");
    let woken = |wake: &Wake| matches!(wake, Wake::TakeBack(of) if *of == execution);
    assert!(world.wakes.iter().any(woken));
    assert_eq!(table_heads(&world)[&table_name("jobs")].held, 300 - 256);
    world.ok(Verb::TakeBack(execution));
    assert_eq!(table_heads(&world)[&table_name("jobs")].held, 0);
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

// --- store time

#[test]
fn a_row_is_there_for_its_time_and_not_after() {
    let table = Table { ttl: Some(Ttl { ms: 10_000, from_change: false }), ..queue(&[]) };
    let mut world = four(&table);
    world.pass(9_999);
    one(&mut world, update("a", Filter::default(), &["row.n += 1"]));
    assert!(matches!(one(&mut world, op(RowAsk::Get { key: key("a") })), RowAnswer::Got { row: Some(_), .. }));
    world.pass(1);
    assert!(matches!(one(&mut world, op(RowAsk::Get { key: key("a") })), RowAnswer::Got { row: None, .. }));
    assert_eq!(taken(&one(&mut world, claim(10))), Vec::<String>::new());
    let answer = one(&mut world, upsert("a", r#"{"n":9}"#, &["row.n += 1"]));
    assert!(matches!(&answer, RowAnswer::Upserted { inserted: true, row } if value(row) == r#"{"n":9}"#));
    world.ok(Verb::RowDue(table_name("jobs"), row_key("a")));
    assert!(row(&world, "a").is_some(), "the new one is not over");
    world.ok(Verb::RowDue(table_name("jobs"), row_key("b")));
    assert_eq!(row(&world, "b"), None);
    assert_eq!(entries(&world).last().map(|entry| entry.what), Some(RowWhat::Expired));
}

#[test]
fn a_time_to_live_may_count_from_the_last_change() {
    let table = Table { ttl: Some(Ttl { ms: 10_000, from_change: true }), ..queue(&[]) };
    let mut world = four(&table);
    world.pass(9_999);
    one(&mut world, update("a", Filter::default(), &["row.n += 1"]));
    world.pass(9_999);
    assert!(matches!(one(&mut world, op(RowAsk::Get { key: key("a") })), RowAnswer::Got { row: Some(_), .. }));
}

pub(crate) fn reaped(attempts: Option<u32>) -> Table {
    let mut table = queue(&[]);
    table.claim.reaper = Some(Reaper { after_ms: 30_000, attempts, dead: set(&["row.status = \"dead\""]) });
    table
}

#[test]
fn a_stale_claim_is_taken_back_and_after_so_many_given_up() {
    let mut world = four(&reaped(Some(2)));
    for (nth, what) in [RowWhat::Reaped, RowWhat::Dead].into_iter().enumerate() {
        let took = taken(&one(&mut world, claim(1)));
        assert_eq!(took, ["d"], "try {nth}");
        world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
        assert!(row(&world, "d").unwrap().claim.is_some(), "not yet stale");
        world.pass(30_000);
        world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
        assert_eq!(entries(&world).last().map(|entry| entry.what), Some(what));
    }
    let dead = row(&world, "d").unwrap();
    assert!(dead.value.text().contains(r#""status":"dead""#) && dead.claim.is_none() && dead.due.is_none());
    assert_eq!(taken(&one(&mut world, claim(1))), ["a"]);
}

#[test]
fn a_heartbeat_that_claims_again_is_not_stale() {
    let mut world = four(&reaped(None));
    one(&mut world, claim(1));
    world.pass(29_000);
    let mine = Some(all("row.claimed_by eq execution"));
    let beat = RowAsk::Claim { filter: mine, set: None, order: Order::default(), limit: 10, delete: false };
    assert_eq!(taken(&one(&mut world, op(beat))), ["d"]);
    world.pass(29_000);
    world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
    assert!(row(&world, "d").unwrap().claim.is_some());
}

#[test]
fn a_reaper_that_is_declared_later_takes_back_what_was_claimed_before() {
    let mut world = four(&queue(&[]));
    one(&mut world, claim(1));
    world.pass(60_000);
    world.ok(declared(&reaped(None)));
    assert!(world.wakes.iter().any(|wake| matches!(wake, Wake::Tend(_))));
    world.ok(Verb::Tend(table_name("jobs")));
    assert!(row(&world, "d").unwrap().due.is_some());
    world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
    assert!(row(&world, "d").unwrap().claim.is_none());
}

#[test]
fn what_cannot_be_taken_back_is_left_and_told() {
    let mut table = reaped(None);
    table.claim.release = set(&["row.n += \"text\""]);
    let mut world = four(&table);
    one(&mut world, claim(1));
    world.pass(30_000);
    world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
    let entry = entries(&world).pop().unwrap();
    assert!(entry.note.starts_with("left as it is: invalid: jobs/d: row.n"), "{}", entry.note);
    assert!(row(&world, "d").unwrap().claim.is_none());
}

// --- declarations

#[test]
fn the_same_declaration_twice_is_one() {
    let mut world = four(&queue(&[]));
    let declare = declared(&queue(&[]));
    assert_eq!(world.ok(declare), Outcome::Declared { revision: 1, new: false });
    let other = declared(&queue(&[("by-n", &["n"])]));
    assert_eq!(world.ok(other), Outcome::Declared { revision: 2, new: true });
}

#[test]
fn an_index_is_filled_while_the_table_is_used() {
    let mut world = four(&queue(&[]));
    many(&mut world, 600, r#"{"n":0,"status":"later"}"#);
    world.ok(declared(&queue(&[("by-n", &["n"])])));
    let by = || Order { by: OrderBy::Index(name("by-n")), descending: true };
    let ask = || op(RowAsk::Claim { filter: None, set: None, order: by(), limit: 2, delete: false });
    let refused = refused(&mut world, ask());
    assert_eq!((refused.code, refused.retryable), (Code::Unavailable, true));
    assert_eq!(world.ok(Verb::Tend(table_name("jobs"))), Outcome::Tended { done: 256, more: true });
    one(&mut world, update("a", Filter::default(), &["row.n = 9"]));
    one(&mut world, update("j599", Filter::default(), &["row.n = 8", "row.status = \"pending\""]));
    one(&mut world, op(RowAsk::Delete { key: key("j000"), filter: Filter::default() }));
    world.ok(Verb::Tend(table_name("jobs")));
    assert!(matches!(world.ok(Verb::Tend(table_name("jobs"))), Outcome::Tended { more: false, .. }));
    assert_eq!(taken(&one(&mut world, ask())), ["a", "j599"]);
    world.ok(declared(&queue(&[])));
    tended(&mut world);
    let left = world.records.keys().filter(|key| matches!(key, Key::RowIndex(_, 1, ..))).count();
    assert_eq!(left, 0, "its entries go with the index");
}

#[test]
fn a_dropped_table_goes_with_all_it_had() {
    let mut world = four(&reaped(None));
    one(&mut world, claim(2));
    world.ok(Verb::DropTable(table_name("jobs")));
    assert_eq!(refused(&mut world, put("x", "1")).got, "one that is being dropped");
    assert_eq!(world.refused(declared(&queue(&[]))).code, Code::Busy);
    tended(&mut world);
    let rest: Vec<&Key> = world.records.keys().filter(|key| !matches!(key, Key::Session(_) | Key::Secret)).collect();
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(world.refused(Verb::DropTable(table_name("jobs"))).code, Code::NotFound);
    world.ok(declared(&queue(&[])));
}

#[test]
fn a_value_keeps_to_the_schema() {
    let mut world = four(&queue(&[]));
    world.rules.0.push((1, "row.jobs", "a number n", |value| value["n"].is_number()));
    let refused = refused(&mut world, put("x", r#"{"n":"one"}"#));
    assert_eq!((refused.code, refused.expected.as_str()), (Code::Invalid, "a number n"));
    let away = update("a", Filter::default(), &["row.n = \"one\""]);
    assert_eq!(self::refused(&mut world, away).code, Code::Invalid);
}

/// Every kind of record that tables have.
pub(crate) fn every_record() -> World {
    let mut table = reaped(Some(2));
    table.claim.on_end = OnEnd::Release;
    table.indexes.insert(name("by-status"), IndexSpec { tie: Tie::Updated, ..index(&["status", "n"]) });
    let (mut world, id) = working(&table);
    step_asks(&mut world, &id, vec![claim(2), upsert("n", "1", &["row += 1"])]).unwrap();
    let ops = vec![update("b", Filter::default(), &["row.n += 1"]), claim(1)];
    world.ok(asked("someone", Some("id-1"), RowsAsk { require: Vec::new(), ops }));
    world
}
