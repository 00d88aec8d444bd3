//! A host on a store, without HTTP: the no-op machine deployed, entities by number, and one client's
//! request.

use crate::spread::number;
use anyhow::{Context as _, Result, bail};
use interlock_coordinator::{Coordinator, Executor, Options, Settled, Stats};
use interlock_kernel::command::{Command, Create, Deploy, OnExisting, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, EventId, MachineName, Name, Principal};
use interlock_kernel::record::Expect;
use interlock_kernel::view::Event;
use interlock_store::{Redb, Store};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Long enough for any stall of a disk: a wait that is over has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Creates under way at once: fills the largest batch of the store several times over.
const CREATES: usize = 1_024;

pub(crate) const MACHINE: &str = "noop";

/// A coordinator with the no-op machine.
pub(crate) struct Bed {
    coordinator: Coordinator,
    machine: MachineName,
    go: Name,
    events: AtomicU64,
    /// Tells the events of this boot from those of another.
    boot: u64,
}

impl Bed {
    /// Opens a session on `store`.
    pub(crate) async fn open(store: Arc<dyn Store>, executor: Arc<dyn Executor>, slots: usize) -> Result<Arc<Self>> {
        let boot = store.now().seq;
        let options = Options { executions_max: slots, ..Options::default() };
        let coordinator = Coordinator::open(store, executor, options).await?;
        let machine = MACHINE.parse().context("the machine's name")?;
        let go = "go".parse().context("the event's name")?;
        Ok(Arc::new(Self { coordinator, machine, go, events: AtomicU64::new(0), boot }))
    }

    /// Deploys the no-op machine; its component is already in the library, or never asked for.
    pub(crate) async fn deploy(&self, component: Option<Digest>) -> Result<()> {
        let path = interlock_support::guest_folder(MACHINE).join("machine.toml");
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let report = interlock_manifest::parse("machine.toml", &text);
        let Some(manifest) = &report.manifest else {
            bail!("{}", interlock_manifest::render(&report, false));
        };
        let deploy = Deploy {
            machine: Arc::new(manifest.machine.clone()),
            digest: Digest::of(&[text.as_bytes(), component.as_ref().map_or(&[], |digest| &digest.0)]),
            component,
            source: text,
        };
        self.submit(Verb::Deploy(Box::new(deploy))).await?;
        Ok(())
    }

    /// The entity with this number.
    pub(crate) fn entity(&self, nth: usize) -> Result<EntityId> {
        // A step through the numbers that meets each once: neighbours by number are strangers by key.
        let key = format!("e{:08x}", (nth as u64).wrapping_mul(0x9E37_79B1) & 0xFFFF_FFFF);
        Ok(EntityId { machine: self.machine.clone(), key: key.parse().context("a key")? })
    }

    /// Creates entities up to, and without, a number, many at once.
    pub(crate) async fn fill(self: &Arc<Self>, from: usize, to: usize) -> Result<()> {
        let mut tasks = Vec::new();
        for nth in 0..CREATES.min(to.saturating_sub(from)) {
            let bed = self.clone();
            tasks.push(tokio::spawn(async move {
                for nth in (from + nth..to).step_by(CREATES) {
                    bed.create(nth).await?;
                }
                anyhow::Ok(())
            }));
        }
        for task in tasks {
            task.await.context("a creating client panicked")??;
        }
        Ok(())
    }

    async fn create(&self, nth: usize) -> Result<()> {
        let create = Create {
            entity: self.entity(nth)?,
            desired: None,
            labels: BTreeMap::new(),
            on_existing: OnExisting::Fail,
            event: None,
        };
        self.submit(Verb::Create(Box::new(create))).await?;
        Ok(())
    }

    /// Sends the event that starts five steps; comes back when it is durable.
    pub(crate) async fn go(&self, entity: &EntityId) -> Result<interlock_kernel::record::Answer> {
        let nth = self.events.fetch_add(1, Ordering::Relaxed);
        let id: EventId = format!("{:08x}-{nth:08x}", self.boot).parse().context("an event id")?;
        let event = Event { id, name: self.go.clone(), payload: None, expect: Expect::default(), checked: None };
        let deliver = Verb::Deliver { entity: entity.clone(), event: Box::new(event) };
        match self.submit(deliver).await? {
            Outcome::Answered { answer, replayed: false } => Ok(*answer),
            other => bail!("expected an answer to a new event, got {other:?}"),
        }
    }

    /// Sends the event and waits for the rest behind its five steps.
    pub(crate) async fn run_to_rest(&self, entity: &EntityId) -> Result<()> {
        let answer = self.go(entity).await?;
        match self.coordinator.settled(entity, &answer, PATIENCE).await? {
            Settled::Ended { succeeded: true, .. } => Ok(()),
            other => bail!("expected {entity} to come to rest, got {other:?}"),
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        self.coordinator.stats()
    }

    /// Closes session and store.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.coordinator.stop(Duration::from_secs(10)).await?;
        Ok(())
    }

    async fn submit(&self, verb: Verb) -> Result<Outcome> {
        Ok(self.coordinator.submit(Command { by: Principal::local(), verb }).await?)
    }
}

/// The embedded engine with its defaults.
pub(crate) fn redb(dir: &Path) -> Result<Arc<Redb>> {
    let options = interlock_store::Options::new(dir);
    Redb::open(options).map(Arc::new).with_context(|| format!("open a store in {}", dir.display()))
}

/// Jobs per batch since the store was opened.
///
/// # Errors
/// If there were fewer syncs than batches: then nothing that was measured was durable.
pub(crate) fn jobs_per_batch(store: &Redb, before: &interlock_store::Stats) -> Result<f64> {
    let now = store.stats();
    let (batches, syncs) = (now.batches - before.batches, now.syncs - before.syncs);
    if syncs < batches {
        bail!("expected a sync for each of {batches} batches, got {syncs}: these commits are not durable");
    }
    let count = |value: u64| number(usize::try_from(value).unwrap_or(usize::MAX));
    Ok(count(now.jobs - before.jobs) / count(batches).max(1.0))
}
