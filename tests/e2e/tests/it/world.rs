//! A coordinator in this process, on the store in memory, with a clock that moves only when told and steps
//! that the test plays by hand: for what must not hang on real time. One thread, so that the order of
//! everything is the order of the test.

use anyhow::{Context as _, Result, bail, ensure};
use interlock_coordinator::{Attempt, Coordinator, EntityView, Executor, Options, SubmitError};
use interlock_kernel::command::{Change, Command, Create, Deploy, OnExisting, Outcome, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::{Answer, Entry, Expect, Failure};
use interlock_kernel::view::Event;
use interlock_store::{ManualClock, Mem, MemImage, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Enough for every background task to come to rest on one thread.
const YIELDS: usize = 256;

/// Plays a test on one thread.
pub(crate) fn play(test: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(test)
}

pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) mem: Mem,
    pub(crate) hands: Hands,
    slots: usize,
    image: MemImage,
    host: Option<Arc<Coordinator>>,
}

/// Attempts whose steps the test plays.
#[derive(Clone, Default)]
pub(crate) struct Hands(Arc<Mutex<Vec<Attempt>>>);

impl Executor for Hands {
    fn start(&self, attempt: Attempt) {
        self.lock().push(attempt);
    }
}

impl Hands {
    fn lock(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the oldest attempt of an entity that is held.
    pub(crate) fn take(&self, entity: &EntityId) -> Result<Attempt> {
        let mut held = self.lock();
        let at = held.iter().position(|attempt| attempt.start().claim.execution.entity == *entity);
        Ok(held.remove(at.with_context(|| format!("no attempt of {entity} runs"))?))
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Lets go of everything, as an executor that is told to stop does.
    pub(crate) fn drop_all(&self) {
        let held = std::mem::take(&mut *self.lock());
        drop(held);
    }
}

pub(crate) fn id(text: &str) -> Result<EntityId> {
    text.parse().with_context(|| text.to_owned())
}

impl World {
    pub(crate) async fn new(manifests: &[&str]) -> Result<World> {
        Self::with_slots(manifests, 4).await
    }

    pub(crate) async fn with_slots(manifests: &[&str], slots: usize) -> Result<World> {
        let (clock, image) = (ManualClock::new(), MemImage::new());
        let mem = Mem::open(image.clone(), Arc::new(clock.clone()))?;
        let mut world = World { clock, mem, hands: Hands::default(), slots, image, host: None };
        let store = Arc::new(world.mem.clone());
        world.boot_on(store).await?;
        for manifest in manifests {
            world.deploy(manifest).await?;
        }
        Ok(world)
    }

    pub(crate) fn host(&self) -> Result<Arc<Coordinator>> {
        self.host.clone().context("no host runs")
    }

    /// Opens a coordinator on a store.
    pub(crate) async fn boot_on(&mut self, store: Arc<dyn Store>) -> Result<()> {
        let options = Options { executions_max: self.slots, reconcile: true, ..Options::default() };
        let host = Coordinator::open(store, Arc::new(self.hands.clone()), options).await;
        self.host = Some(Arc::new(host.context("open")?));
        self.rest().await;
        Ok(())
    }

    /// The process is killed: what was not durable is gone, what steps do from now on reaches nothing.
    pub(crate) async fn kill(&mut self) {
        self.mem.crash();
        self.host = None;
        self.rest().await;
    }

    /// A new boot on what is durable.
    pub(crate) async fn boot(&mut self) -> Result<()> {
        self.mem = Mem::open(self.image.clone(), Arc::new(self.clock.clone()))?;
        self.boot_on(Arc::new(self.mem.clone())).await
    }

    /// Killed and booted; attempts of before stay in `hands` no longer.
    pub(crate) async fn crash(&mut self) -> Result<()> {
        self.kill().await;
        self.hands.drop_all();
        self.boot().await
    }

    /// Lets every task come to rest.
    pub(crate) async fn rest(&self) {
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.rest().await;
    }

    pub(crate) async fn submit(&self, by: Principal, verb: Verb) -> Result<Result<Outcome, SubmitError>> {
        let answer = self.host()?.submit(Command { by, verb }).await;
        self.rest().await;
        Ok(answer)
    }

    /// As a client or operator.
    pub(crate) async fn ask(&self, verb: Verb) -> Result<Outcome> {
        Ok(self.submit(Principal::local(), verb).await??)
    }

    pub(crate) async fn deploy(&self, source: &str) -> Result<Outcome> {
        let report = interlock_manifest::parse("machine.toml", source);
        let manifest = report.manifest.with_context(|| format!("{:?}", report.problems))?;
        self.ask(Verb::Deploy(Box::new(Deploy {
            machine: Arc::new(manifest.machine),
            digest: Digest::of(&[source.as_bytes()]),
            component: manifest.component.map(|name| Digest::of(&[name.as_bytes()])),
            source: source.to_owned(),
        })))
        .await
    }

    pub(crate) async fn create(&self, entity: &str) -> Result<()> {
        let create = Create {
            entity: id(entity)?,
            desired: None,
            labels: BTreeMap::new(),
            on_existing: OnExisting::Same,
            event: None,
        };
        self.ask(Verb::Create(Box::new(create))).await.map(drop)
    }

    pub(crate) fn event(id: &str, name: &str, payload: Value) -> Result<Event> {
        Ok(Event {
            id: id.parse()?,
            name: name.parse()?,
            payload: (!payload.is_null()).then(|| Doc::new(payload)),
            expect: Expect::default(),
            checked: None,
        })
    }

    /// Sends an event; whatever it is answered.
    pub(crate) async fn try_send(&self, entity: &str, event: Event) -> Result<Result<Outcome, SubmitError>> {
        let verb = Verb::Deliver { entity: id(entity)?, event: Box::new(event) };
        self.submit(Principal::local(), verb).await
    }

    /// Sends an event that is taken.
    pub(crate) async fn send(&self, entity: &str, event_id: &str, name: &str, payload: Value) -> Result<Answer> {
        match self.try_send(entity, Self::event(event_id, name, payload)?).await?? {
            Outcome::Answered { answer, .. } => Ok(*answer),
            other => bail!("an event answered {other:?}"),
        }
    }

    pub(crate) async fn entity(&self, entity: &str) -> Result<EntityView> {
        self.host()?.entity(&id(entity)?).await?.with_context(|| format!("{entity} is gone"))
    }

    pub(crate) async fn state(&self, entity: &str) -> Result<String> {
        Ok(self.entity(entity).await?.head.state.to_string())
    }

    /// The newest entries, oldest first.
    pub(crate) async fn history(&self, entity: &str) -> Result<Vec<Entry>> {
        let history = self.host()?.history(&id(entity)?, None, None, 500).await?.context("its history")?;
        Ok(history.entries.into_iter().rev().collect())
    }

    pub(crate) fn attempt(&self, entity: &str) -> Result<Attempt> {
        self.hands.take(&id(entity)?)
    }

    /// Plays the step of an entity's open attempt: it moves.
    pub(crate) async fn step(&self, entity: &str, to: &str) -> Result<()> {
        let attempt = self.attempt(entity)?;
        attempt.transition(to.parse()?, Change::default()).await?;
        drop(attempt);
        self.rest().await;
        Ok(())
    }

    /// The reconciler has nothing to say, every attempt in a slot or waiting for one is open, and no slot is
    /// free while one waits. One that did not fit, or whose commit had an unknown fate, may not be here yet.
    pub(crate) async fn agrees(&self) -> Result<()> {
        let host = self.host()?;
        let repaired = host.reconcile().await?;
        ensure!(repaired.is_empty(), "the reconciler found something: {repaired:?}");
        let page = host.entities(interlock_coordinator::Listing { limit: 500, ..Default::default() }).await?;
        let open =
            page.entities.iter().filter(|(_, head)| head.lock.as_ref().is_some_and(|lock| lock.attempt.is_some()));
        let (open, stats) = (open.count(), host.stats());
        ensure!(
            stats.running + stats.waiting <= open && stats.running == open.min(self.slots),
            "{open} open attempts, {} in slots, {} waiting",
            stats.running,
            stats.waiting
        );
        Ok(())
    }
}

/// A failure as a step reports it.
pub(crate) fn failure(code: &str) -> Failure {
    Failure { permanent: false, code: code.to_owned(), reason: "as the test says".to_owned(), retry_after_ms: None }
}
