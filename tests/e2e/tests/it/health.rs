//! A host that is not well: one of its own tasks keeps dying, or its disk takes long. It says so, and nobody's
//! step pays for it.

use crate::machines::PLAIN;
use crate::world::{World, play};
use anyhow::{Context as _, Result, ensure};
use interlock_conformance::{SimDisk, redb_options};
use interlock_kernel::command::Change;
use interlock_kernel::record::What;
use interlock_store::{
    BoxFuture, Changes, Clock, Condition, Full, Health, Job, Lane, Mem, Position, Query, Redb, Stamp, Store, StoreError,
};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A step that may be idle for 5 s, and a wait of 30 s.
const KETTLE: &str = r#"
machine   = "kettle"
owner     = "interlock tests"
component = "noop.wasm"
initial   = "cold"

[events.start]

[states.cold]
kind     = "rest"
on.start = { to = "heating" }

[states.heating]
step     = "heat"
to       = ["brewing"]
idle     = "5s"
total    = "1h"
deadline = "2h"

[states.brewing]
after = { wait = "30s", to = "cold" }
"#;

/// A store on which whoever wants to sleep dies, as long as it is sick.
struct Sick {
    mem: Mem,
    sick: Arc<AtomicBool>,
}

impl Store for Sick {
    fn sleep_until_store(&self, store_ms: u64) -> BoxFuture<'static, ()> {
        assert!(!self.sick.load(Ordering::Relaxed), "sick, as the test says");
        self.mem.sleep_until_store(store_ms)
    }

    fn submit(&self, lane: Lane, job: Box<dyn Job>) -> Result<(), Full> {
        self.mem.submit(lane, job)
    }

    fn query(&self, query: Box<dyn Query>) {
        self.mem.query(query);
    }

    fn changes(&self, after: Position) -> Changes {
        self.mem.changes(after)
    }

    fn now(&self) -> Stamp {
        self.mem.now()
    }

    fn store_time_at(&self, monotonic: Duration) -> u64 {
        self.mem.store_time_at(monotonic)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.mem.clock()
    }

    fn health(&self) -> Health {
        self.mem.health()
    }

    fn expect_company(&self, running: usize) {
        self.mem.expect_company(running);
    }

    fn close(&self, drain: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        self.mem.close(drain)
    }
}

/// buzz 6490: background tasks die again and again while requests are still answered.
#[test]
fn a_host_whose_tasks_keep_dying_is_unready_by_name_and_ready_again_once_they_live() -> Result<()> {
    play(async {
        let mut world = World::new(&[KETTLE]).await?;
        let sick = Arc::new(AtomicBool::new(false));
        world.boot_on(Arc::new(Sick { mem: world.mem.clone(), sick: sick.clone() })).await?;
        world.create("kettle/a").await?;
        world.send("kettle/a", "e1", "start", Value::Null).await?;
        world.step("kettle/a", "brewing").await?;
        ensure!(world.host()?.health().ready);

        sick.store(true, Ordering::Relaxed);
        for _ in 0..60 {
            world.advance(SECOND).await;
        }
        let health = world.host()?.health();
        let failing: Vec<_> = health.tasks.iter().filter(|task| task.failing).map(|task| task.name).collect();
        ensure!(!health.ready && failing == ["timers"], "the one that sleeps until the timer: {health:?}");
        ensure!(matches!(health.store.condition, Condition::Ready) && world.host()?.stats().panics >= 3);

        sick.store(false, Ordering::Relaxed);
        for _ in 0..80 {
            world.advance(SECOND).await;
        }
        let health = world.host()?.health();
        ensure!(health.ready && health.tasks.iter().all(|task| task.deaths == 0), "{health:?}");
        // What fell due meanwhile was done, once.
        ensure!(world.state("kettle/a").await? == "cold");
        let fired = world.history("kettle/a").await?;
        ensure!(fired.iter().filter(|entry| matches!(entry.what, What::Timer(_))).count() == 1, "{fired:?}");
        world.agrees().await
    })
}

/// A commit that takes 10 s is the host's own time: no step is stopped for it, none is begun a second time.
#[test]
fn a_stalled_commit_decides_no_deadline_and_gives_nothing_away() -> Result<()> {
    play(async {
        let hasty = KETTLE.replace("\"kettle\"", "\"hasty\"").replace("\"1h\"", "\"7s\"").replace("\"2h\"", "\"8s\"");
        let disk = SimDisk::new();
        let mut world = World::new(&[]).await?;
        let store: Arc<dyn Store> = Arc::new(Redb::open_backend(disk.clone(), redb_options(&world.clock))?);
        world.boot_on(store).await?;
        for manifest in [KETTLE, &hasty, PLAIN] {
            world.deploy(manifest).await?;
        }
        for entity in ["kettle/saves", "hasty/moves"] {
            world.create(entity).await?;
            world.send(entity, "e1", "start", Value::Null).await?;
        }
        world.create("plain/a").await?;
        let (saves, moves) = (world.attempt("kettle/saves")?, world.attempt("hasty/moves")?);
        let token = saves.token();
        world.advance(SECOND).await;

        disk.hold();
        let saving = tokio::spawn(async move { (saves.save(Change::default()).await, saves) });
        world.rest().await;
        disk.wait_until_held();
        let moving = tokio::spawn(async move {
            moves.transition("brewing".parse()?, Change::default()).await.map_err(anyhow::Error::from)
        });
        let noting = {
            let (host, event) = (world.host()?, World::event("e1", "note", Value::Null)?);
            let verb = interlock_kernel::command::Verb::Deliver { entity: "plain/a".parse()?, event: Box::new(event) };
            let by = interlock_kernel::ids::Principal::local();
            tokio::spawn(async move { host.submit(interlock_kernel::command::Command { by, verb }).await })
        };
        // Past the idle deadlines of both, and past the whole time and the visit's deadline of the hasty one.
        for _ in 0..10 {
            world.advance(SECOND).await;
        }
        let (host, health) = (world.host()?, world.host()?.health());
        ensure!(health.ready && health.store.last_commit >= 10 * SECOND, "nobody can see it: {health:?}");
        ensure!(host.stats().deadlines == 0 && world.hands.count() == 0, "a deadline was decided meanwhile");
        ensure!(
            !saving.is_finished() && !moving.is_finished() && !noting.is_finished(),
            "answered before it is durable"
        );
        ensure!(world.state("plain/a").await? == "calm", "reads go on");

        disk.release();
        let (saved, saves) = saving.await?;
        saved.context("the save")?;
        moving.await?.context("the transition")?;
        noting.await?.context("the event")?;
        world.rest().await;
        ensure!(saves.gate().check().is_ok(), "it was stopped all the same");
        let lock = world.entity("kettle/saves").await?.head.lock.context("its lock")?;
        ensure!(lock.attempt.is_some_and(|open| open.token == token) && lock.failed + lock.lost == 0, "{lock:?}");
        ensure!(world.state("hasty/moves").await? == "brewing");
        ensure!(host.stats().deadlines == 0 && host.stats().failures == 0 && world.hands.count() == 0);
        // From here on its time runs again.
        for _ in 0..4 {
            world.advance(SECOND).await;
        }
        ensure!(saves.gate().check().is_ok());
        for _ in 0..3 {
            world.advance(SECOND).await;
        }
        ensure!(saves.gate().check().is_err() && host.stats().deadlines == 1, "an idle step is not stopped any more");
        drop(saves);
        Ok(())
    })
}
