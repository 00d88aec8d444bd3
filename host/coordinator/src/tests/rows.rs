//! Rows on every engine, on several threads: each claimed once, no increment lost, indexes filled while all that goes on,
//! and again after a restart.

use super::world::{accepted, command, parse};
use crate::{Attempt, Coordinator, Executor, Filter as Watching, Of, Options};
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::TableName;
use interlock_kernel::record::{IndexStage, RowWhat};
use interlock_kernel::rows::{ClientRows, Declare, Order, OrderBy, QueryAsk, RowAnswer, RowAsk, RowOp, RowsAsk};
use interlock_kernel::table::{Access, ClaimSpec, IndexSpec, Right, Table, Tie};
use interlock_kernel::value::{Filter, Mutation, Operation, Value};
use interlock_store::{Mem, Position, Redb, Store, SystemClock};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ROWS: u64 = 400;
const CLAIMERS: u64 = 16;
const COUNTERS: u64 = 32;
const COUNTS: u64 = 8;

/// Runs nothing: these are clients.
struct Nobody;

impl Executor for Nobody {
    fn start(&self, attempt: Attempt) {
        panic!("{attempt:?}");
    }
}

fn threads<T>(future: impl Future<Output = T>) -> T {
    match tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_time().build() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => panic!("no runtime: {error}"),
    }
}

async fn open(store: Arc<dyn Store>) -> Arc<Coordinator> {
    match Coordinator::open(store, Arc::new(Nobody), Options::default()).await {
        Ok(host) => Arc::new(host),
        Err(error) => panic!("{error}"),
    }
}

fn got<T, E: std::fmt::Debug>(answer: Result<T, E>) -> T {
    match answer {
        Ok(value) => value,
        Err(error) => panic!("{error:?}"),
    }
}

fn jobs() -> TableName {
    parse("jobs")
}

fn table(indexes: &[(&str, &str)]) -> Verb {
    let every: BTreeSet<Right> = Right::ALL.into_iter().map(|(_, right)| right).collect();
    let index = |field: &str| IndexSpec { fields: vec![parse(field)], tie: Tie::Created };
    let table = Table {
        name: jobs(),
        owner: "tests".to_owned(),
        schema: None,
        indexes: indexes.iter().map(|(name, field)| (parse(name), index(field))).collect(),
        claim: ClaimSpec::standard(),
        ttl: None,
        access: Access { machines: BTreeMap::new(), clients: every },
    };
    let digest = Digest::of(&[format!("{table:?}").as_bytes()]);
    Verb::Declare(Box::new(Declare { table: Arc::new(table), digest, source: String::new() }))
}

fn json(value: serde_json::Value) -> Value {
    Value::Json(Doc::new(value))
}

fn op(what: RowAsk) -> RowOp {
    RowOp { table: jobs(), what, fields: Vec::new(), must: false }
}

async fn ask(host: &Coordinator, label: &str, ops: Vec<RowOp>) -> Vec<RowAnswer> {
    let ask = RowsAsk { require: Vec::new(), ops };
    let rows = ClientRows { ask, label: label.to_owned(), id: None };
    match accepted(host.submit(command(Verb::Rows(Box::new(rows)))).await) {
        Outcome::Rows { answers, .. } => answers,
        other => panic!("{other:?}"),
    }
}

fn put(key: &str, value: serde_json::Value) -> RowOp {
    op(RowAsk::Put { key: json(key.into()), value: Doc::new(value), fill: Vec::new(), expect: None })
}

/// Takes rows until there are none, and settles each; what it had, in order.
async fn drain(host: &Coordinator, nth: u64) -> Vec<u64> {
    let label = format!("claimer {nth}");
    let mut had = Vec::new();
    loop {
        let claim = RowAsk::Claim { filter: None, set: None, order: Order::default(), limit: 3, delete: false };
        let answer = ask(host, &label, vec![op(claim)]).await.remove(0);
        let RowAnswer::Claimed { rows, .. } = answer else { panic!("{answer:?}") };
        if rows.is_empty() {
            return had;
        }
        for row in rows {
            had.push(row.value.value()["n"].as_u64().unwrap_or(u64::MAX));
            let done = Mutation { field: parse("row.status"), operation: Operation::Set, value: json("done".into()) };
            let mine = interlock_kernel::value::Comparison {
                field: parse("row.claimed_by"),
                operator: parse("eq"),
                value: json(label.clone().into()),
            };
            let filter = Filter { any: vec![vec![mine]] };
            let settle = RowAsk::Update { key: json(row.key.as_str().into()), filter, set: vec![done] };
            let answer = ask(host, &label, vec![op(settle)]).await.remove(0);
            assert!(matches!(answer, RowAnswer::Updated { row: Some(_), .. }), "{answer:?}");
        }
    }
}

async fn count(host: &Coordinator) {
    for _ in 0..COUNTS {
        let more = Mutation { field: parse("row.n"), operation: Operation::Increment, value: json(1.into()) };
        let insert = Doc::new(serde_json::json!({ "n": 1 }));
        let upsert = RowAsk::Upsert { key: json("total".into()), insert, fill: Vec::new(), set: vec![more] };
        ask(host, "counter", vec![op(upsert)]).await;
    }
}

/// Waits until every index of the table can be used.
async fn built(host: &Coordinator) {
    let all = async {
        loop {
            let table = got(host.table(&jobs()).await);
            if table.is_some_and(|table| table.head.indexes.iter().all(|index| index.stage == IndexStage::Ready)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), all).await.is_ok(), "the index is never built");
}

fn query(filter: Filter, order: Order) -> QueryAsk {
    QueryAsk { table: jobs(), filter, order, limit: 1_000, after: None, fields: Vec::new() }
}

async fn works(open_store: impl Fn() -> Arc<dyn Store>) {
    let host = open(open_store()).await;
    accepted(host.submit(command(table(&[]))).await);
    for chunk in 0..ROWS / 20 {
        let one = |n: u64| put(&format!("j{n:04}"), serde_json::json!({ "n": n, "status": "pending" }));
        ask(&host, "producer", (chunk * 20..chunk * 20 + 20).map(one).collect()).await;
    }
    let mut drains = Vec::new();
    for nth in 0..CLAIMERS {
        let host = host.clone();
        drains.push(tokio::spawn(async move { drain(&host, nth).await }));
    }
    let mut counts = Vec::new();
    for _ in 0..COUNTERS {
        let host = host.clone();
        counts.push(tokio::spawn(async move { count(&host).await }));
    }
    // An index is declared in the middle of it.
    accepted(host.submit(command(table(&[("by-status", "row.status")]))).await);
    let mut had = Vec::new();
    for drain in drains {
        let Ok(own) = drain.await else { panic!("a claimer died") };
        assert!(own.windows(2).all(|pair| pair[0] < pair[1]), "not in the order of insertion: {own:?}");
        had.extend(own);
    }
    for count in counts {
        assert!(count.await.is_ok());
    }
    had.sort_unstable();
    assert_eq!(had, (0..ROWS).collect::<Vec<_>>(), "each row once");
    accepted(host.stop(Duration::from_secs(10)).await);
    drop(host);

    let host = open(open_store()).await;
    built(&host).await;
    let Some(shown) = got(host.table(&jobs()).await) else { panic!("no table") };
    assert_eq!((shown.head.rows, shown.head.held), (ROWS + 1, 0));
    let done = interlock_kernel::value::Comparison {
        field: parse("row.status"),
        operator: parse("eq"),
        value: json("done".into()),
    };
    let filter = Filter { any: vec![vec![done]] };
    for order in [OrderBy::Created, OrderBy::Index(parse("by-status"))] {
        let answer = accepted(host.query("client", query(filter.clone(), Order { by: order, descending: true })).await);
        let keys: Vec<&str> = answer.rows.iter().map(|row| row.key.as_str()).collect();
        let wanted: Vec<String> = (0..ROWS).rev().map(|n| format!("j{n:04}")).collect();
        assert_eq!(keys, wanted);
    }
    let total = got(host.row(&jobs(), &parse("total")).await).map(|row| row.value.text().to_owned());
    assert_eq!(total, Some(format!(r#"{{"n":{}}}"#, COUNTERS * COUNTS)), "no count is lost");
    let (mut watch, mut settled) = (host.watch(Watching::Table(jobs()), Some(Position::START)), 0);
    while settled < ROWS {
        for one in got(watch.next().await) {
            let Of::Rows { entry, .. } = one.of else { panic!("{one:?}") };
            settled += if entry.what == RowWhat::Settled { entry.count } else { 0 };
        }
    }
    accepted(host.submit(command(Verb::DropTable(jobs()))).await);
    let gone = async {
        while got(host.table(&jobs()).await).is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), gone).await.is_ok(), "the table never goes");
    accepted(host.stop(Duration::from_secs(10)).await);
}

#[test]
fn many_clients_on_many_threads_share_a_table_in_memory() {
    threads(async {
        let image = interlock_store::MemImage::new();
        works(|| match Mem::open(image.clone(), Arc::new(SystemClock::new())) {
            Ok(mem) => Arc::new(mem),
            Err(error) => panic!("{error}"),
        })
        .await;
    });
}

fn redb(dir: &Path) -> Arc<dyn Store> {
    match Redb::open(interlock_store::Options::new(dir)) {
        Ok(redb) => Arc::new(redb),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn many_clients_on_many_threads_share_a_table_on_redb() {
    let Ok(dir) = tempfile::tempdir() else { panic!("no folder") };
    threads(works(|| redb(dir.path())));
}

#[test]
fn many_clients_on_many_threads_share_a_table_on_a_hostile_store() {
    let Ok(dir) = tempfile::tempdir() else { panic!("no folder") };
    threads(works(|| Arc::new(interlock_conformance::Hostile::over(redb(dir.path())))));
}
