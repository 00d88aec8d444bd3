//! Every scenario of the examples in every weather: locks lost, commits unheard, attempts fenced, deliveries doubled,
//! timers late and twice. What it expects holds, and what is left of each entity is the same as in calm weather.

use crate::declared;
use crate::patterns::PATTERNS;
use anyhow::{Context as _, Result, ensure};
use interlock_lab::explore::Recall;
use interlock_lab::scenario::{self, Played, Scenario, Stage, Weather, play_in};
use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Machines with their scenarios: the folder, and the guest that its steps are in.
const SHOWN: [(&str, &str); 17] = [
    ("resource", "resource"),
    ("survey", "survey"),
    ("hostile", "hostile"),
    ("ticket", "ticket"),
    ("deploy", "deploy"),
    ("faulty/asked-again-mended", "faulty"),
    ("faulty/check-then-act-mended", "faulty"),
    ("faulty/desired-unseen-mended", "faulty"),
    ("faulty/event-twice-mended", "faulty"),
    ("faulty/first-try-mended", "faulty"),
    ("faulty/forgotten-path-mended", "faulty"),
    ("faulty/late-payment-mended", "faulty"),
    ("faulty/lost-update-mended", "faulty"),
    ("faulty/memory-mended", "faulty"),
    ("faulty/promised-early-mended", "faulty"),
    ("faulty/resent-mended", "faulty"),
    ("faulty/save-then-retry-mended", "faulty"),
];

/// Scenarios whose step plans anew again and again, a second each time: played if `INTERLOCK_WEATHER` is `all`.
const LONG: [&str; 4] = ["busy", "crash", "never-starts", "resize"];

/// The scenarios of a machine: beside it, or in its folder of scenarios.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in [folder.to_owned(), folder.join("scenarios")].iter().filter(|folder| folder.is_dir()) {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(".scenario.toml") {
                found.push(path);
            }
        }
    }
    found.sort();
    let all = std::env::var("INTERLOCK_WEATHER").is_ok_and(|asked| asked == "all");
    let is_long =
        |path: &PathBuf| LONG.iter().any(|name| path.ends_with(format!("resource/scenarios/{name}.scenario.toml")));
    found.retain(|path| all || !is_long(path));
    Ok(found)
}

/// A machine's scenarios, and what they are played with.
struct Shown {
    stage: Stage,
    /// A step that begins from the same and is told the same is run once, over all weathers.
    recall: Recall,
    scenarios: Vec<Scenario>,
}

fn shown(folder: &str, guest: &str, library: &Library) -> Result<Shown> {
    let component = std::fs::read(interlock_support::guest(guest)?)?;
    let component = tokio::runtime::Runtime::new()?.block_on(library.add(component))?;
    let folder = interlock_support::guest_folder(folder);
    let tables = declared(&folder)?;
    let report = interlock_manifest::parse("machine.toml", &std::fs::read_to_string(folder.join("machine.toml"))?);
    let manifest = report.manifest.context("a manifest")?;
    let sees_tokens = component.inspection.can.iter().any(|power| power.name == "fencing");
    let recall = Recall::new(Arc::new(Wasm::new(library.clone())), sees_tokens);
    let stage = Stage { manifest, component: Some(component.digest), tables, executor: Arc::new(recall.clone()) };
    let mut scenarios = Vec::new();
    for file in files(&folder)? {
        let name = file.display().to_string();
        let read = scenario::read(&name, &std::fs::read_to_string(&file)?, &stage.manifest.machine);
        scenarios.push(read.map_err(|report| anyhow::anyhow!("{name}: {:?}", report.problems))?);
    }
    ensure!(!scenarios.is_empty(), "no scenarios in {}", folder.display());
    Ok(Shown { stage, recall, scenarios })
}

impl Shown {
    fn play(&self, scenario: &Scenario, weather: Weather) -> Result<Played> {
        loop {
            let played = play_in(scenario, &self.stage, weather)?;
            if !self.recall.missed() {
                return Ok(played);
            }
        }
    }

    /// What is not as the scenario says, or not as in calm weather.
    fn wrong(&self, scenario: &Scenario) -> Result<Vec<String>> {
        let calm = self.play(scenario, Weather::Calm)?;
        let mut wrong = Vec::new();
        for weather in Weather::ALL {
            let played = if weather == Weather::Calm { calm.clone() } else { self.play(scenario, weather)? };
            if !played.misses.is_empty() || played.ends != calm.ends {
                let (misses, ends, before) = (&played.misses, &played.ends, &calm.ends);
                let story = played.told("  ");
                let file = &scenario.file;
                wrong.push(format!("{file}, {weather}\n{misses:#?}\nin calm {before:#?}\nnow {ends:#?}\n{story}"));
            }
        }
        Ok(wrong)
    }
}

#[test]
fn every_scenario_holds_in_every_weather_and_leaves_the_same() -> Result<()> {
    let kept = tempfile::tempdir()?;
    let engines = Engines::new(EngineOptions { executions_max: 2, guest_threads: 0, ..EngineOptions::default() })?;
    let library = Library::open(&engines, kept.path())?;
    let mut wrong = Vec::new();
    let mut played = 0;
    for (folder, guest) in SHOWN.into_iter().chain(PATTERNS.map(|name| (name, name))) {
        let shown = shown(folder, guest, &library)?;
        for scenario in &shown.scenarios {
            wrong.extend(shown.wrong(scenario)?);
            played += 1;
        }
    }
    println!("{played} scenarios, each in {} weathers", Weather::ALL.len());
    ensure!(wrong.is_empty(), "{} do not hold\n\n{}", wrong.len(), wrong.join("\n\n"));
    Ok(())
}
