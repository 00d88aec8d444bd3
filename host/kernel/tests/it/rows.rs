//! What tests of rows share: a table, short ways to ask, and what must hold of rows, indexes and counts after every job.

use crate::build::{Mc, comparison, create, doc, entity, machine, name, rest, step, to};
use crate::world::World;
use interlock_kernel::command::{Change, Outcome, Stage, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{EntityId, RowKey, TableName};
use interlock_kernel::limits::ROW_OPS_MAX;
use interlock_kernel::record::{Claimant, IndexStage, Key, Record, Row, RowEntry, TableHead};
use interlock_kernel::rejection::Rejection;
use interlock_kernel::rows::{
    ClientRows, Declare, MemoName, Order, Require, RowAnswer, RowAsk, RowOp, RowShown, RowsAsk, StepRows,
};
use interlock_kernel::table::{Access, ClaimSpec, IndexSpec, OnEnd, Reaper, Right, Table, Tie};
use interlock_kernel::value::{Filter, Mutation, Path, Value};
use interlock_kernel::view::Claim;
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
        if let Some(claim) = row.claim.as_ref().filter(|claim| !claim.back || !head.dropped)
            && let Claimant::Execution(id) = &claim.by
        {
            let entry = if claim.back { Key::RowHeld } else { Key::RowKept };
            implied.insert(entry(id.entity.clone(), id.incarnation, id.ordinal, table.clone(), at.clone()));
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
        key => matches!(key, Key::RowDue(..) | Key::RowKept(..)),
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

pub(crate) fn staging(require: Vec<Require>, ops: Vec<RowOp>) -> Change {
    Change { stage: Stage { rows: RowsAsk { require, ops }, ..Stage::default() }, ..Change::default() }
}

pub(crate) fn reaped(attempts: Option<u32>) -> Table {
    let mut table = queue(&[]);
    table.claim.reaper = Some(Reaper { after_ms: 30_000, attempts, dead: set(&["row.status = \"dead\""]) });
    table
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
