//! A host with one table, asked line by line.

use super::say;
use crate::tests::world::{accepted, command, deploy, parse, rest};
use crate::{Attempt, Coordinator, Executor, Options, SubmitError};
use interlock_conformance::Engine;
use interlock_kernel::command::{Change, Create, OnExisting, Outcome, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::limits::ROW_OPS_MAX;
use interlock_kernel::record::{Expect, IndexStage};
use interlock_kernel::rows::{ClientRows, Declare, MemoName, QueryAsk, RowAnswer, RowsAsk, StepRows};
use interlock_kernel::view::Event;
use interlock_manifest::rows::{self, Asks, Misread};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Wall time of every host, in ms: 2026-01-01T00:00:00Z.
const NOW: i64 = 1_767_225_600_000;

/// Everybody may do everything, and claims are as every table has them.
const JOBS: &str = r#"
table = "jobs"
owner = "tests"
indexes = INDEXES
[access]
clients = ["get", "query", "put", "update", "claim", "upsert", "delete"]
machines = { pool = ["get", "query", "put", "update", "claim", "upsert", "delete"] }
"#;

/// The indexes of a table that is not declared anew.
const INDEXES: &str = r#"{ by-n = ["n"], by-status = ["status", "n"] }"#;

/// The machine whose step asks.
const POOL: &str = r#"
machine   = "pool"
owner     = "tests"
component = "asks.wasm"
initial   = "idle"
tables    = ["jobs"]
desired.schema = {}
outputs.schema = false
data = { default = { key = "from-data", n = 3 }, schema = {} }
events.go.schema = {}
states.idle = { kind = "rest", on.go = { to = "asking" } }
states.asking = { step = "ask", to = ["idle"], deadline = "10m" }
"#;

/// Keeps the attempt that asks.
#[derive(Clone, Default)]
struct Step(Arc<Mutex<Option<Arc<Attempt>>>>);

impl Executor for Step {
    fn start(&self, attempt: Attempt) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(attempt));
    }
}

/// What is asked.
enum Ask {
    Rows(RowsAsk),
    Query(QueryAsk),
}

pub(super) struct Host<E> {
    engine: E,
    coordinator: Coordinator,
    step: Step,
    /// How often its step has asked something.
    asked: u32,
    /// Where the last query ended.
    next: Option<String>,
}

impl<E: Engine> Host<E> {
    pub(super) async fn new() -> Self {
        let mut engine = E::new();
        engine.clock().set_wall(NOW);
        let store = engine.open().unwrap_or_else(|error| panic!("{error}"));
        let step = Step::default();
        let coordinator = match Coordinator::open(store, Arc::new(step.clone()), Options::default()).await {
            Ok(coordinator) => coordinator,
            Err(error) => panic!("{error}"),
        };
        let host = Self { engine, coordinator, step, asked: 0, next: None };
        host.declare(INDEXES).await;
        host
    }

    /// Declares the table, and waits until its indexes can be used and those of earlier declarations are gone.
    async fn declare(&self, indexes: &str) {
        let source = JOBS.replace("INDEXES", indexes);
        let (table, _) = interlock_manifest::parse_table("jobs.table.toml", &source)
            .unwrap_or_else(|report| panic!("{}", interlock_manifest::render(&report, false)));
        let declare = Declare { table: Arc::new(table), digest: Digest::of(&[source.as_bytes()]), source };
        accepted(self.coordinator.submit(command(Verb::Declare(Box::new(declare)))).await);
        while !self.is_tended().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn is_tended(&self) -> bool {
        let table = accepted(self.coordinator.table(&parse("jobs")).await.map_err(SubmitError::Store));
        table.is_some_and(|table| table.head.indexes.iter().all(|index| index.stage == IndexStage::Ready))
    }

    /// What is answered to one line. What its step is called differs by engine.
    pub(super) async fn play(&mut self, line: &str) -> Vec<String> {
        let answers = self.answered(line).await;
        let Some(attempt) = self.held() else { return answers };
        let me = attempt.start().claim.execution.to_string();
        answers.into_iter().map(|answer| answer.replace(&me, "EXECUTION")).collect()
    }

    async fn answered(&mut self, line: &str) -> Vec<String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "row" => {
                let (key, value) = rest.split_once(' ').unwrap_or_else(|| panic!("row KEY VALUE, got {line}"));
                self.put(vec![(key.to_owned(), read(value))]).await;
                Vec::new()
            }
            "rows" => {
                let (count, value) = rest.split_once(' ').unwrap_or_else(|| panic!("rows N VALUE, got {line}"));
                let value = read(value);
                let all: Vec<_> = (0..parse::<usize>(count)).map(|nth| (format!("k{nth:04}"), value.clone())).collect();
                for rows in all.chunks(ROW_OPS_MAX) {
                    self.put(rows.to_vec()).await;
                }
                Vec::new()
            }
            "pass" => {
                self.engine.clock().advance(Duration::from_millis(parse(rest)));
                Vec::new()
            }
            "declare" => {
                self.declare(rest).await;
                Vec::new()
            }
            "save" => {
                let change = Change { data: Some(Doc::new(read(rest))), ..Change::default() };
                accepted(self.attempt().await.save(change).await);
                Vec::new()
            }
            "next" => {
                let mut query = read(rest);
                query["after"] = self.next.clone().into();
                self.page(&query.to_string()).await
            }
            "left" => self.left().await,
            "held" => self.held_rows().await,
            "step" => self.step(rest).await,
            _ if line.starts_with("{\"query\"") => self.page(line).await,
            _ => self.ask(line).await,
        }
    }

    /// A client's query, which the next one may go on with.
    async fn page(&mut self, text: &str) -> Vec<String> {
        let Ok(Ask::Query(ask)) = asked(text, Asks::Client) else { return self.ask(text).await };
        let answer = self.coordinator.query("client", ask).await;
        if let Ok(page) = &answer {
            self.next = page.next.clone();
        }
        said(answer, |page| say::page(&page))
    }

    async fn put(&self, rows: Vec<(String, Json)>) {
        let ops: Vec<Json> =
            rows.into_iter().map(|(key, value)| json!({"put": "jobs", "key": key, "value": value})).collect();
        let ask = rows::ask(&json!({ "ops": ops }), Asks::Client).unwrap_or_else(|why| panic!("{why}"));
        accepted(self.client(ask).await);
    }

    async fn client(&self, ask: RowsAsk) -> Result<Vec<RowAnswer>, SubmitError> {
        let rows = ClientRows { ask, label: "client".to_owned(), id: None };
        match self.coordinator.submit(command(Verb::Rows(Box::new(rows)))).await? {
            Outcome::Rows { answers, .. } => Ok(answers),
            other => panic!("{other:?}"),
        }
    }

    /// A client's request.
    pub(super) async fn ask(&self, text: &str) -> Vec<String> {
        match asked(text, Asks::Client) {
            Ok(Ask::Rows(ask)) => said(self.client(ask).await, |answers| say::answers(&answers)),
            Ok(Ask::Query(ask)) => said(self.coordinator.query("client", ask).await, |answer| say::page(&answer)),
            Err(why) => vec![format!("not read: {}", say::cut(&why.to_string()))],
        }
    }

    /// The same as the step asks it.
    async fn step(&mut self, text: &str) -> Vec<String> {
        let attempt = self.attempt().await;
        match asked(text, Asks::Step) {
            Ok(Ask::Rows(ask)) => {
                self.asked += 1;
                let answers = attempt.rows(StepRows { ask, memo: MemoName::Asked(self.asked) }).await;
                said(answers, |(answers, _)| say::answers(&answers))
            }
            Ok(Ask::Query(ask)) => said(attempt.query(ask).await, |answer| say::page(&answer)),
            Err(why) => vec![format!("not read: {}", say::cut(&why.to_string()))],
        }
    }

    /// The attempt that asks: of a step whose event, desired and data have something to read.
    async fn attempt(&self) -> Arc<Attempt> {
        if let Some(attempt) = self.held() {
            return attempt;
        }
        accepted(self.coordinator.submit(deploy(POOL, "asks")).await);
        let event = Event {
            id: parse("e1"),
            name: parse("go"),
            payload: Some(Doc::new(json!({"key": "from-event", "n": 7, "deep": {"list": [1, {"a.b": 2}]}}))),
            expect: Expect::default(),
            checked: None,
        };
        let create = Create {
            entity: parse("pool/w"),
            desired: Some(Doc::new(json!({"size": 2}))),
            labels: BTreeMap::new(),
            on_existing: OnExisting::Same,
            event: Some(event),
        };
        accepted(self.coordinator.submit(command(Verb::Create(Box::new(create)))).await);
        rest().await;
        self.held().unwrap_or_else(|| panic!("no attempt"))
    }

    fn held(&self) -> Option<Arc<Attempt>> {
        self.step.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the step has claimed and not settled.
    async fn held_rows(&self) -> Vec<String> {
        let claimed = self.coordinator.claimed_by(&parse("pool/w"), None).await;
        let claimed = accepted(claimed.map_err(SubmitError::Store));
        vec![say::claims(&claimed)]
    }

    /// What the table holds.
    async fn left(&self) -> Vec<String> {
        let rows = accepted(self.coordinator.rows_of(&parse("jobs"), None, 10).await.map_err(SubmitError::Store));
        let all: Vec<String> = rows.iter().map(|(key, row)| say::row(key.as_str(), &row.value)).collect();
        vec![if all.is_empty() { "left nothing".to_owned() } else { format!("left {}", all.join("; ")) }]
    }
}

fn asked(text: &str, asks: Asks) -> Result<Ask, Misread> {
    let json = read(text);
    if json.get("query").is_some() {
        return rows::query(&json, asks).map(Ask::Query);
    }
    if json.get("ops").is_some() || json.get("require").is_some() {
        return rows::ask(&json, asks).map(Ask::Rows);
    }
    Ok(Ask::Rows(RowsAsk { require: Vec::new(), ops: vec![rows::op(&json, asks)?] }))
}

fn said<T>(answer: Result<T, SubmitError>, say: impl FnOnce(T) -> Vec<String>) -> Vec<String> {
    match answer {
        Ok(answer) => say(answer),
        Err(error) => vec![say::refusal(&error)],
    }
}

/// JSON, with what is said to be repeated or long written out.
fn read(text: &str) -> Json {
    match rows::text(text) {
        Ok(json) => written_out(json),
        Err(why) => panic!("{text}: {why}"),
    }
}

fn written_out(json: Json) -> Json {
    match json {
        Json::Array(items) => Json::Array(items.into_iter().flat_map(repeated).map(written_out).collect()),
        Json::Object(fields) => match fields.get("#text").and_then(Json::as_u64) {
            Some(bytes) => "x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX)).into(),
            None => fields.into_iter().map(|(name, value)| (name, written_out(value))).collect(),
        },
        plain => plain,
    }
}

fn repeated(item: Json) -> Vec<Json> {
    match (item.get("#times").and_then(Json::as_u64), item.get("of")) {
        (Some(times), Some(of)) => (0..times).map(|nth| read(&of.to_string().replace('@', &nth.to_string()))).collect(),
        _ => vec![item],
    }
}
