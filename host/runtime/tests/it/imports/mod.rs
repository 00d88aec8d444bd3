//! A guest written by hand that calls every import with whatever a script says, and scripts nobody would write: from
//! well-formed calls with hostile words in them to arbitrary numbers and memory. The attempt ends by a transition, or
//! failed with a code of its own; the host goes on as if nothing had been.
//!
//! The corpus is `tests/fuzz/corpus/imports`. `INTERLOCK_FUZZ_INPUTS=50000 cargo test -p interlock-runtime imports`
//! runs for longer; `INTERLOCK_FUZZ_REPLAY=FILE` runs one script again.

mod script;

use crate::bed::{Bed, Time};
use anyhow::{Context as _, Result, ensure};
use interlock_conformance::Random;
use interlock_fuzz::{Broken, Report, Seen, Target, Until, guarded, search};
use interlock_kernel::ids::EntityId;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::runtime::Runtime;

const MACHINE: &str = r#"
machine   = "caller"
owner     = "interlock tests"
component = "caller.wasm"
initial   = "calm"
tables    = ["jobs"]
desired.schema = false
data    = { default = {}, schema = { type = "object", properties.n = { type = "integer" } } }
outputs.schema = { type = "object" }
events.call = { dedup = "1m", schema = { type = "object", required = ["s"], properties.s = { type = "string" } } }

[states.calm]
kind = "rest"
on.call = { to = "calling" }

[states.calling]
step       = "call"
to         = ["calm"]
deadline   = "1h"
retry      = { attempts = 1 }
on_failure = { to = "stopped" }

[states.stopped]
kind = "rest"
on.call = { to = "calling" }

[limits]
memory = "16MiB"
"#;

const TABLE: &str = r#"
table = "jobs"
owner = "interlock tests"
indexes.by-n = ["n"]
access.machines.caller = ["get", "query", "put", "update", "claim", "upsert", "delete"]
"#;

/// Inputs of the short run, beside the corpus.
const INPUTS: u64 = 600;
const SEED: u64 = 20_26;
/// Well-formed scripts that the search begins from.
const SEEDS: u64 = 400;
/// How an attempt may end without its transition: what the guest did, never what became of the host.
const CODES: [&str; 6] = ["trap", "no-transition", "refusals", "out-of-memory", "step-failed", "fenced"];

/// The host, and one entity on it.
struct Caller {
    runtime: Runtime,
    bed: Bed,
    entity: EntityId,
    sent: AtomicU64,
    /// Whether some script has written a row.
    wrote: AtomicBool,
    ended: Mutex<BTreeMap<String, u64>>,
}

impl Caller {
    fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (bed, entity) = runtime.block_on(async {
            let bed = Bed::new().await?;
            bed.declare(TABLE).await?;
            bed.deploy(MACHINE, &component()?).await?;
            let entity = bed.create("caller/a", "call", Some(r#"{"s":"0000"}"#)).await?;
            bed.ending(&entity, "first", Time::BetweenAttempts).await?;
            anyhow::Ok((bed, entity))
        })?;
        Ok(Self {
            runtime,
            bed,
            entity,
            sent: AtomicU64::new(0),
            wrote: AtomicBool::new(false),
            ended: Mutex::default(),
        })
    }

    fn call(&self, script: &[u8]) -> Result<Seen> {
        let hex: String = script.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = format!("s{}", self.sent.fetch_add(1, Ordering::Relaxed));
        let payload = format!(r#"{{"s":"{hex}"}}"#);
        let ending = self.runtime.block_on(async {
            self.bed.send(&self.entity, "call", Some(&payload), &id).await?;
            let ending = self.bed.ending(&self.entity, &id, Time::BetweenAttempts).await?;
            let rows = self.bed.coordinator.rows_of(&"jobs".parse()?, None, 1).await?;
            self.wrote.fetch_or(!rows.is_empty(), Ordering::Relaxed);
            anyhow::Ok(ending)
        })?;
        let stats = self.bed.coordinator.stats();
        ensure!(stats.panics == 0, "the host panicked: {ending:?}");
        // Failures of earlier executions stand in the history, too: the newest is the last.
        let code = if ending.state == "calm" { "transition" } else { ending.code() };
        ensure!(ending.state == "calm" || CODES.contains(&code), "expected one of {CODES:?}, got {ending:?}");
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner).entry(code.to_owned()).or_default() += 1;
        let mut seen = Seen::default();
        seen.note(code);
        if ending.state != "calm" {
            seen.say(ending.reason());
        }
        let refused: u64 = stats.refused.iter().map(|(_, count)| count).sum();
        seen.size("refused", usize::try_from(refused).unwrap_or(usize::MAX));
        Ok(seen)
    }
}

/// The guest, lifted to a component by its world.
fn component() -> Result<Vec<u8>> {
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit"))?;
    let world = resolve.select_world(&[package], Some("step-with-rows"))?;
    let mut module = wat::parse_str(include_str!("caller.wat"))?;
    wit_component::embed_component_metadata(&mut module, &resolve, world, wit_component::StringEncoding::UTF8)?;
    wit_component::ComponentEncoder::default().module(&module)?.validate(true).encode()
}

struct Imports(Caller);

impl Target for Imports {
    fn name(&self) -> &'static str {
        "imports"
    }

    fn words(&self) -> &'static str {
        script::WORDS
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        (0..SEEDS).map(|seed| script::well_formed(&mut Random::new(seed))).collect()
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        self.0.call(input).map_err(|why| Broken(format!("{why:#}")))
    }
}

#[test]
fn whatever_a_guest_hands_to_an_import_ends_its_attempt_at_most() -> Result<()> {
    let target = Imports(Caller::new()?);
    if let Some(path) = std::env::var_os("INTERLOCK_FUZZ_REPLAY") {
        return guarded(&target, &std::fs::read(path)?).map(drop).map_err(|why| anyhow::anyhow!(why.0));
    }
    let inputs = std::env::var("INTERLOCK_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(INPUTS);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Report { inputs, pool, seen, failure } = search(&target, SEED, Until::Inputs(inputs), folder)?;
    let ended = target.0.ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
    println!("imports: {inputs} scripts, {} showed something new, {seen} things said, ended {ended:?}", pool.len());
    let refused: Vec<_> =
        target.0.bed.coordinator.stats().refused.into_iter().filter(|(_, count)| *count > 0).collect();
    println!("refused {refused:?}");
    if let Some(failure) = failure {
        let path = failure.path.display();
        anyhow::bail!("{}\nagain: INTERLOCK_FUZZ_REPLAY={path} cargo test -p interlock-runtime imports", failure.why.0);
    }
    for code in ["transition", "trap", "no-transition"] {
        ensure!(ended.get(code).is_some_and(|count| *count > 10), "next to none ended by {code}: {ended:?}");
    }
    ensure!(target.0.wrote.load(Ordering::Relaxed), "no script wrote a row");
    let found = target.0.runtime.block_on(target.0.bed.coordinator.reconcile())?;
    ensure!(found.is_empty(), "{found:?}");
    target.0.runtime.block_on(target.0.bed.coordinator.entity(&target.0.entity))?.context("the entity is there")?;
    Ok(())
}
