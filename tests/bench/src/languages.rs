//! The same five steps that do nothing, in each language: what a component of it costs the host.
//!
//! Each language runs on engines of its own, so that what one left resident is not another's.

use crate::bed::{Bed, MACHINE, redb};
use crate::hardware::proportional_kib;
use crate::load::{self, Pick, STEPS};
use crate::report::{Group, Row};
use crate::spread::{Times, bytes, number, rate};
use crate::transitions::WARM_UP;
use anyhow::{Context as _, Result, ensure};
use interlock_build::{BuildError, Options, Progress};
use interlock_coordinator::{Attempt, Call, Ended, Executor, Probe, Reply};
use interlock_kernel::doc::Digest;
use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
use interlock_store::{BoxFuture, Mem, Store, SystemClock};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};

const TITLE: &str = "the no-op steps in each language";

/// Entities that run at once; how many of their steps do is the budget's to say.
const ENTITIES: usize = 64;

/// Runs that are held at once while memory is read, if the budget lets them.
const HELD: usize = 16;

/// The languages, and where their steps are from the top of this repository.
const LANGUAGES: [(&str, &str); 4] = [
    ("Rust", "guests/noop"),
    ("C", "sdk/c/examples/noop"),
    ("JavaScript", "sdk/js/examples/noop"),
    ("Python", "sdk/python/examples/noop"),
];

/// Builds and measures each of them; what cannot be built here says what is missing instead of figures.
pub(crate) async fn measure(dir: &Path, starts: usize, within: Duration) -> Result<Group> {
    let mut rows = Vec::new();
    for (language, folder) in LANGUAGES {
        let folder = repository()?.join(folder);
        match interlock_build::build(&folder, Options { progress: Progress::Silent, ..Options::default() }) {
            Ok(built) => {
                let dir = dir.join(format!("language-{language}"));
                rows.push(one(language, &built.path, &dir, starts, within).await?);
            }
            Err(missing @ (BuildError::Missing { .. } | BuildError::NoTarget { .. })) => {
                let missing = missing.to_string().replace('\n', "; ");
                rows.push(Row::new(format!("{language}: not measured: {missing}"), &[]));
            }
            Err(other) => return Err(other).with_context(|| format!("build the no-op steps in {language}")),
        }
    }
    Ok(Group {
        title: TITLE,
        note: format!(
            "start: from the slot to the step's request; run: all of it without the commit, one at a time on the store in \
             memory; steps/s: durable, {ENTITIES} entities x {STEPS} steps; resident: growth of Pss for each of up to \
             {HELD} runs that are held in their request, on fresh engines; weight: what the host counts of \
             --guest-memory, 0 if it does not"
        ),
        rows,
    })
}

async fn one(language: &str, component: &Path, dir: &Path, starts: usize, within: Duration) -> Result<Row> {
    let component = std::fs::read(component).with_context(|| format!("read {}", component.display()))?;
    let guest = Guest::new(&component, dir).await?;
    let resident_kib = guest.resident_kib().await?;
    let (start, run) = guest.alone(starts).await?;
    let steps_per_s = guest.durable(&dir.join("store"), within).await?;
    let (start, run) = (start.spread(), run.spread());
    Ok(Row::new(
        language,
        &[
            ("component_kib", number(component.len()) / 1024.0),
            ("compile_ms", guest.compile_ms),
            ("start_p50_us", start.p50_us),
            ("start_p99_us", start.p99_us),
            ("run_p50_us", run.p50_us),
            ("steps_per_s", steps_per_s),
            ("resident_kib", resident_kib),
            ("weight_mib", bytes(guest.wasm.weight_bytes(Some(guest.digest))) / f64::from(1 << 20)),
        ],
    ))
}

/// One component on engines of its own.
struct Guest {
    wasm: Wasm,
    digest: Digest,
    compile_ms: f64,
}

impl Guest {
    async fn new(component: &[u8], dir: &Path) -> Result<Self> {
        let executions_max = u32::try_from(ENTITIES)?;
        let engines = Engines::new(EngineOptions { executions_max, ..EngineOptions::default() })?;
        let library = Library::open(&engines, dir)?;
        let began = Instant::now();
        let added = library.add(component).await?;
        let compile_ms = began.elapsed().as_secs_f64() * 1e3;
        ensure!(
            library.counts().compiled == 1,
            "expected a component that was not compiled yet: {:?}",
            library.counts()
        );
        Ok(Self { wasm: Wasm::new(library), digest: added.digest, compile_ms })
    }

    async fn bed(&self, store: Arc<dyn Store>, executor: Arc<dyn Executor>, entities: usize) -> Result<Arc<Bed>> {
        let bed = Bed::open(store, executor, entities).await?;
        bed.deploy(Some(self.digest)).await?;
        bed.fill(0, entities).await?;
        Ok(bed)
    }

    /// What one more running step keeps in memory: runs are held in their first request while the process is read.
    async fn resident_kib(&self) -> Result<f64> {
        let eye = Eye::new(self.wasm.clone());
        let bed = self.bed(memory(), Arc::new(eye.clone()), HELD).await?;
        // What the first run of a component brings for all of them is there.
        bed.run_to_rest(&bed.entity(0)?).await?;
        let fits = self.wasm.memory_bytes_max() / self.wasm.weight_bytes(Some(self.digest)).max(1);
        let held = HELD.min(usize::try_from(fits)?);
        let before = proportional_kib().context("Pss of this process")?;
        eye.hold();
        let mut rests = Vec::new();
        for nth in 0..held {
            let (bed, entity) = (bed.clone(), bed.entity(nth)?);
            rests.push(tokio::spawn(async move { bed.run_to_rest(&entity).await }));
        }
        eye.held(held).await?;
        let during = proportional_kib().context("Pss of this process")?;
        eye.release();
        for rest in rests {
            rest.await.context("a client panicked")??;
        }
        bed.stop().await?;
        Ok(bytes(during.saturating_sub(before)) / number(held))
    }

    /// One step at a time: until its request, and its whole run less what it waited for answers.
    async fn alone(&self, executions: usize) -> Result<(Times, Times)> {
        let eye = Eye::new(self.wasm.clone());
        let bed = self.bed(memory(), Arc::new(eye.clone()), 1).await?;
        let entity = bed.entity(0)?;
        let mut runs = Times::default();
        for nth in 0..executions + executions / 10 {
            let before = self.wasm.runs();
            bed.run_to_rest(&entity).await?;
            // The last attempt is counted right behind the news of the rest.
            while self.wasm.runs().runs < before.runs + STEPS as u64 {
                tokio::task::yield_now().await;
            }
            let now = self.wasm.runs();
            if nth >= executions / 10 {
                runs.push((now.ran - before.ran).saturating_sub(now.waited - before.waited) / STEPS as u32);
            } else {
                eye.take();
            }
        }
        bed.stop().await?;
        Ok((eye.take(), runs))
    }

    async fn durable(&self, dir: &Path, within: Duration) -> Result<f64> {
        let bed = self.bed(redb(dir)?, Arc::new(self.wasm.clone()), ENTITIES).await?;
        load::run(&bed, ENTITIES, Pick::Own, WARM_UP).await?;
        let ran = load::run(&bed, ENTITIES, Pick::Own, within).await?;
        bed.stop().await?;
        Ok(rate(ran.steps(), ran.took))
    }
}

fn memory() -> Arc<dyn Store> {
    Arc::new(Mem::new(Arc::new(SystemClock::new())))
}

/// Sees each attempt start and come to its first request; holds it there if told to. Clones are the same one.
#[derive(Clone)]
struct Eye {
    wasm: Wasm,
    seen: Arc<Seen>,
}

struct Seen {
    starts: Mutex<Times>,
    /// Whether requests are held.
    holding: watch::Sender<bool>,
    /// A permit for each request that is held.
    held: Semaphore,
}

impl Eye {
    fn new(wasm: Wasm) -> Self {
        let seen = Seen { starts: Mutex::default(), holding: watch::Sender::new(false), held: Semaphore::new(0) };
        Self { wasm, seen: Arc::new(seen) }
    }

    fn take(&self) -> Times {
        std::mem::take(&mut self.seen.starts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn hold(&self) {
        self.seen.holding.send_replace(true);
    }

    fn release(&self) {
        self.seen.holding.send_replace(false);
    }

    /// Waits until so many requests are held.
    async fn held(&self, count: usize) -> Result<()> {
        self.seen.held.acquire_many(u32::try_from(count)?).await?.forget();
        Ok(())
    }
}

impl Executor for Eye {
    fn start(&self, attempt: Attempt) {
        let look = Look { seen: Arc::clone(&self.seen), began: Instant::now() };
        self.wasm.start(attempt.watched_by(Arc::new(look)));
    }

    fn memory_bytes_max(&self) -> u64 {
        self.wasm.memory_bytes_max()
    }

    fn weight_bytes(&self, component: Option<Digest>) -> u64 {
        self.wasm.weight_bytes(component)
    }
}

/// The probe of one attempt; a no-op step has one request.
struct Look {
    seen: Arc<Seen>,
    began: Instant,
}

impl Probe for Look {
    fn before<'a>(&'a self, _attempt: &'a Attempt, _call: Call<'a>) -> BoxFuture<'a, ()> {
        self.seen.starts.lock().unwrap_or_else(PoisonError::into_inner).push(self.began.elapsed());
        Box::pin(async move {
            let mut holding = self.seen.holding.subscribe();
            if *holding.borrow() {
                self.seen.held.add_permits(1);
                // Ends as well when the sender is gone.
                let _ = holding.wait_for(|holding| !*holding).await;
            }
        })
    }

    fn after(&self, _attempt: &Attempt, _call: Call<'_>, _reply: Reply<'_>) {}

    fn over(&self, _ended: Option<&Ended>) {}
}

fn repository() -> Result<PathBuf> {
    let guest = interlock_support::guest_folder(MACHINE);
    Ok(guest.ancestors().nth(2).context("the folder of guests")?.to_owned())
}
