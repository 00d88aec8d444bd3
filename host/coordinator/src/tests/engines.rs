//! The same on every engine, on several threads, with group commit where the engine has it.

use super::world::{accepted, command, deploy, parse};
use crate::{Attempt, Coordinator, Ended, Executor, Filter, Listing, Options, Settled};
use interlock_kernel::command::{Change, Create, OnExisting, Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::Expect;
use interlock_kernel::view::Event;
use interlock_store::{Mem, Position, Redb, Store, SystemClock};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const CHAIN: &str = r#"
    machine   = "pool"
    owner     = "platform-team <oncall@example.com>"
    component = "chain.wasm"
    initial   = "idle"
    desired.schema = false
    data.schema    = false
    outputs.schema = false
    events.go = { on_busy = "queue", schema = {} }
    states.idle  = { kind = "rest", on.go = { to = "first" } }
    states.first = { step = "walk", to = ["then"], deadline = "10m" }
    states.then  = { step = "walk", to = ["last"], deadline = "10m" }
    states.last  = { step = "walk", to = ["idle"], deadline = "10m" }
"#;

const ENTITIES: u64 = 24;
const ROUNDS: u64 = 6;

/// Walks the chain.
struct Walker;

impl Executor for Walker {
    fn start(&self, attempt: Attempt) {
        tokio::spawn(async move {
            let next = match attempt.start().state.as_str() {
                "first" => "then",
                "then" => "last",
                _ => "idle",
            };
            let moved = attempt.transition(parse(next), Change::default()).await;
            assert!(moved.is_ok(), "{moved:?}");
            attempt.finish(Ended::Returned);
        });
    }
}

fn threads<T>(future: impl Future<Output = T>) -> T {
    match tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_time().build() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => panic!("no runtime: {error}"),
    }
}

async fn open(store: Arc<dyn Store>) -> Coordinator {
    let options = Options { executions_max: 8, ..Options::default() };
    match Coordinator::open(store, Arc::new(Walker), options).await {
        Ok(host) => host,
        Err(error) => panic!("{error}"),
    }
}

fn id(nth: u64) -> EntityId {
    parse(&format!("pool/e{nth}"))
}

async fn rounds(host: &Coordinator, nth: u64) {
    let create =
        Create { entity: id(nth), desired: None, labels: BTreeMap::new(), on_existing: OnExisting::Same, event: None };
    accepted(host.submit(command(Verb::Create(Box::new(create)))).await);
    for round in 0..ROUNDS {
        let event = Event {
            id: parse(&format!("e{nth}-{round}")),
            name: parse("go"),
            payload: None,
            expect: Expect::default(),
            checked: None,
        };
        let verb = Verb::Deliver { entity: id(nth), event: Box::new(event) };
        let outcome = accepted(host.submit(command(verb)).await);
        let Outcome::Answered { answer, .. } = outcome else { panic!("{outcome:?}") };
        // Every other one is left to the queue.
        if round % 2 == 1 {
            let settled = host.settled(&id(nth), &answer, Duration::from_secs(60)).await;
            assert!(matches!(settled, Ok(Settled::Ended { succeeded: true, .. })), "{settled:?}");
        }
    }
}

async fn works(open_store: impl Fn() -> Arc<dyn Store>) {
    let host = Arc::new(open(open_store()).await);
    accepted(host.submit(deploy(CHAIN, "one")).await);
    let tasks: Vec<_> = (0..ENTITIES)
        .map(|nth| {
            let host = host.clone();
            tokio::spawn(async move { rounds(&host, nth).await })
        })
        .collect();
    for task in tasks {
        assert!(task.await.is_ok());
    }
    assert_eq!(host.reconcile().await, Ok(Vec::new()));
    let mut watch = host.watch(Filter::All, Some(Position::START));
    let mut met = 0;
    while met < host.stats().entries {
        match watch.next().await {
            Ok(page) => met += page.len() as u64,
            Err(error) => panic!("{error}"),
        }
    }
    accepted(host.stop(Duration::from_secs(10)).await);
    drop(host);

    let host = open(open_store()).await;
    let listing = Listing { limit: 100, ..Listing::default() };
    let page = match host.entities(listing).await {
        Ok(page) => page,
        Err(error) => panic!("{error}"),
    };
    assert_eq!((page.entities.len() as u64, page.next), (ENTITIES, None));
    for (id, head) in page.entities {
        // Created, then per round one event and three transitions.
        assert_eq!((head.state.as_str(), head.version.get()), ("idle", 1 + 4 * ROUNDS), "{id}");
        assert_eq!((head.executions, head.inbox.length, head.lock), (ROUNDS, 0, None), "{id}");
    }
    assert_eq!(host.reconcile().await, Ok(Vec::new()));
    assert_eq!(host.stats().recovered, 0);
    accepted(host.stop(Duration::from_secs(10)).await);
}

#[test]
fn many_executions_on_many_threads_end_where_they_should_in_memory() {
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
fn many_executions_on_many_threads_end_where_they_should_on_redb() {
    let dir = match tempfile::tempdir() {
        Ok(dir) => dir,
        Err(error) => panic!("{error}"),
    };
    threads(works(|| redb(dir.path())));
}

#[test]
fn many_executions_on_many_threads_end_where_they_should_on_a_hostile_store() {
    let dir = match tempfile::tempdir() {
        Ok(dir) => dir,
        Err(error) => panic!("{error}"),
    };
    threads(works(|| Arc::new(interlock_conformance::Hostile::over(redb(dir.path())))));
}

/// Panics before it has done anything with the attempt.
struct Clumsy;

impl Executor for Clumsy {
    fn start(&self, attempt: Attempt) {
        panic!("{attempt:?}");
    }
}

#[test]
fn an_executor_that_panics_fails_the_attempt_and_nobody_else() {
    let dir = match tempfile::tempdir() {
        Ok(dir) => dir,
        Err(error) => panic!("{error}"),
    };
    threads(async {
        let host = match Coordinator::open(redb(dir.path()), Arc::new(Clumsy), Options::default()).await {
            Ok(host) => host,
            Err(error) => panic!("{error}"),
        };
        accepted(host.submit(deploy(CHAIN, "one")).await);
        let event =
            Event { id: parse("e1"), name: parse("go"), payload: None, expect: Expect::default(), checked: None };
        let create = Create {
            entity: id(1),
            desired: None,
            labels: BTreeMap::new(),
            on_existing: OnExisting::Same,
            event: Some(event),
        };
        let mut watch = host.watch(Filter::Entity(id(1)), None);
        accepted(host.submit(command(Verb::Create(Box::new(create)))).await);
        let mut codes = Vec::new();
        while codes.is_empty() {
            let met = match watch.next().await {
                Ok(met) => met,
                Err(error) => panic!("{error}"),
            };
            codes.extend(met.into_iter().filter_map(|one| match one.of {
                crate::Of::Entity { entry, .. } => match entry.what {
                    interlock_kernel::record::What::Ended(failure, _) => Some(failure.code),
                    _ => None,
                },
                crate::Of::Lease { .. } | crate::Of::Rows { .. } => None,
            }));
        }
        assert_eq!(codes, ["executor-lost"]);
        assert!(host.health().ready);
        assert_eq!(host.stats().panics, 1);
        accepted(host.stop(Duration::ZERO).await);
    });
}
