//! One host in memory for each test: engines and components are shared by the process, the clock only
//! moves when told, so no deadline passes because a machine is slow.

use anyhow::{Context as _, Result, anyhow, bail};
use interlock_coordinator::{Coordinator, Options, Settled};
use interlock_kernel::command::{Command, Create, Deploy, OnExisting, Outcome, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::{Expect, Failure, What};
use interlock_kernel::rows::Declare;
use interlock_kernel::view::Event;
use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
use interlock_store::{Clock as _, ManualClock, Mem};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// The engines of this process: each pool takes address space for all of its slots.
pub(crate) fn engines() -> &'static Engines {
    static ENGINES: LazyLock<Engines> = LazyLock::new(|| {
        let options = EngineOptions { executions_max: 16, ..EngineOptions::default() };
        Engines::new(options).expect("this machine runs WebAssembly")
    });
    &ENGINES
}

/// The components of this process.
pub(crate) fn library() -> &'static Library {
    static LIBRARY: LazyLock<(tempfile::TempDir, Library)> = LazyLock::new(|| {
        let folder = tempfile::tempdir().expect("a folder for components");
        let library = Library::open(engines(), folder.path()).expect("a library in it");
        (folder, library)
    });
    &LIBRARY.1
}

/// When the clock moves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// While no attempt runs: back-off passes, no deadline does.
    BetweenAttempts,
    /// All the time, far faster than real time.
    Always,
}

/// A host.
pub(crate) struct Bed {
    pub(crate) coordinator: Coordinator,
    pub(crate) clock: ManualClock,
    pub(crate) wasm: Wasm,
    library: Library,
}

/// How an execution came to its end.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) state: String,
    /// `data.said`, what the guest heard.
    pub(crate) said: Vec<String>,
    /// The attempts that failed.
    pub(crate) failures: Vec<Failure>,
}

impl Ending {
    pub(crate) fn code(&self) -> &str {
        self.failures.last().map_or("no failure", |failure| failure.code.as_str())
    }

    pub(crate) fn reason(&self) -> &str {
        self.failures.last().map_or("no failure", |failure| failure.reason.as_str())
    }
}

impl Bed {
    pub(crate) async fn new() -> Result<Self> {
        Self::on(library()).await
    }

    /// A host on other engines than those of this process.
    pub(crate) async fn on(library: &Library) -> Result<Self> {
        capture();
        let clock = ManualClock::new();
        clock.set_wall(1_700_000_000_000);
        let store = Arc::new(Mem::new(Arc::new(clock.clone())));
        let wasm = Wasm::new(library.clone());
        let options = Options { executions_max: 8, reconcile: false, ..Options::default() };
        let coordinator = Coordinator::open(store, Arc::new(wasm.clone()), options).await?;
        Ok(Self { coordinator, clock, wasm, library: library.clone() })
    }

    /// A host with the machine of `guests/NAME`.
    pub(crate) async fn with(guest: &str) -> Result<Self> {
        let bed = Self::new().await?;
        bed.deploy(&manifest(guest)?, &component(guest)?).await?;
        Ok(bed)
    }

    pub(crate) async fn deploy(&self, manifest: &str, component: &[u8]) -> Result<Digest> {
        let report = interlock_manifest::parse("machine.toml", manifest);
        let Some(manifest) = report.manifest else { bail!("{:?}", report.problems) };
        let added = self.library.add(component).await?;
        let digest = Digest::of(&[manifest.source.as_bytes(), &added.digest.0]);
        let machine = Arc::new(manifest.machine);
        let deploy = Deploy { machine, digest, component: Some(added.digest), source: manifest.source };
        self.submit(Verb::Deploy(Box::new(deploy))).await?;
        Ok(added.digest)
    }

    /// Declares a table.
    pub(crate) async fn declare(&self, source: &str) -> Result<()> {
        let (table, _) = interlock_manifest::parse_table("a table", source).map_err(|report| anyhow!("{report:?}"))?;
        let (digest, source) = (Digest::of(&[source.as_bytes()]), source.to_owned());
        self.submit(Verb::Declare(Box::new(Declare { table: Arc::new(table), digest, source }))).await?;
        Ok(())
    }

    pub(crate) async fn submit(&self, verb: Verb) -> Result<Outcome> {
        Ok(self.coordinator.submit(Command { by: Principal::local(), verb }).await?)
    }

    /// Makes an entity and sends it its first event.
    pub(crate) async fn create(&self, entity: &str, event: &str, payload: Option<&str>) -> Result<EntityId> {
        let entity: EntityId = entity.parse()?;
        let event = event_of(event, payload, "first")?;
        let create = Create {
            entity: entity.clone(),
            desired: None,
            labels: std::collections::BTreeMap::new(),
            on_existing: OnExisting::Fail,
            event: Some(event),
        };
        self.submit(Verb::Create(Box::new(create))).await?;
        Ok(entity)
    }

    /// Sends another event.
    pub(crate) async fn send(&self, entity: &EntityId, event: &str, payload: Option<&str>, id: &str) -> Result<()> {
        let event = Box::new(event_of(event, payload, id)?);
        self.submit(Verb::Deliver { entity: entity.clone(), event }).await?;
        Ok(())
    }

    /// Waits until the execution of this event is over, and nothing runs any more.
    pub(crate) async fn ending(&self, entity: &EntityId, event: &str, time: Time) -> Result<Ending> {
        let ending = self.settled(entity, event, time).await?;
        self.idle().await;
        Ok(ending)
    }

    /// Waits until the execution of this event is over.
    pub(crate) async fn settled(&self, entity: &EntityId, event: &str, time: Time) -> Result<Ending> {
        let dedup = self.coordinator.answer(entity, &event.parse()?).await?.context("an answer")?;
        let settled = tokio::select! {
            settled = self.coordinator.settled(entity, &dedup.answer, Duration::from_secs(1 << 30)) => settled?,
            never = self.drive(time) => never,
        };
        let Settled::Ended { state, .. } = settled else { bail!("it did not end: {settled:?}") };
        let view = self.coordinator.entity(entity).await?.context("an entity")?;
        let said = view.documents.data.as_ref().and_then(|data| data.value().get("said").cloned());
        let history = self.coordinator.history(entity, None, None, 1_000).await?.context("a history")?;
        let ends = history.entries.into_iter().rev();
        let failures = ends.filter_map(|entry| match entry.what {
            What::Ended(failure, _) | What::FailurePath(failure) => Some(failure),
            _ => None,
        });
        Ok(Ending {
            state: state.to_string(),
            said: said.and_then(|said| serde_json::from_value(said).ok()).unwrap_or_default(),
            failures: failures.collect(),
        })
    }

    /// One attempt of a hostile guest, from event to end.
    pub(crate) async fn attempt(&self, machine: &str, name: &str, time: Time) -> Result<Ending> {
        let payload = format!(r#"{{"name":"{name}"}}"#);
        let entity = self.create(&format!("{machine}/{name}"), "attempt", Some(&payload)).await?;
        self.ending(&entity, "first", time).await
    }

    /// Store time, in ms.
    pub(crate) fn clock_ms(&self) -> u128 {
        self.clock.monotonic().as_millis()
    }

    /// Waits until nothing runs.
    pub(crate) async fn idle(&self) {
        while !self.coordinator.attempts(1).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn drive<T>(&self, time: Time) -> T {
        loop {
            if time == Time::Always || self.coordinator.attempts(1).is_empty() {
                self.clock.advance(Duration::from_millis(20));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn event_of(name: &str, payload: Option<&str>, id: &str) -> Result<Event> {
    Ok(Event {
        id: id.parse()?,
        name: name.parse()?,
        payload: payload.map(Doc::parse).transpose()?,
        expect: Expect::default(),
        checked: None,
    })
}

/// The manifest of `guests/NAME`.
pub(crate) fn manifest(guest: &str) -> Result<String> {
    let path = interlock_support::guest_folder(guest).join("machine.toml");
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The component of `guests/NAME`.
pub(crate) fn component(guest: &str) -> Result<Vec<u8>> {
    read(&interlock_support::guest(guest)?)
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}

/// The lines that this process logged about an entity, as JSON.
pub(crate) fn logged(entity: &str) -> Vec<serde_json::Value> {
    let text = LINES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let lines = String::from_utf8_lossy(&text).into_owned();
    let lines = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.filter(|line| line["span"]["entity"] == entity).collect()
}

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Everything logged goes to [`LINES`].
fn capture() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let subscriber = tracing_subscriber::fmt().json().with_writer(Lines).with_env_filter("interlock=debug,warn");
        // Only this function sets one.
        let _ = subscriber.try_init();
    });
}

struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}
