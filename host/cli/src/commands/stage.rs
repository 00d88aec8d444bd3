//! What a folder's scenarios are played with: its machine, its component on a real runtime, and the
//! scenarios themselves, all of it checked.

use super::deploy::component;
use super::input::{manifest, read};
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show;
use interlock_lab::scenario::{self, Scenario, Stage};
use interlock_manifest::parse;
use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Attempts that run at a time: scenarios have few entities, and a small pool is made faster.
const EXECUTIONS_MAX: u32 = 16;

/// A file that holds a scenario ends like this.
pub(crate) const SCENARIO: &str = ".scenario.toml";

/// A folder, ready to be played.
pub(crate) struct Staged {
    /// Machine and component.
    pub(crate) stage: Stage,
    /// Its scenarios, in order of their files.
    pub(crate) scenarios: Vec<Scenario>,
    /// Whether its steps can read fencing tokens.
    pub(crate) sees_tokens: bool,
    /// Where the component is kept for as long as this lives.
    _kept: TempDir,
}

/// Reads, checks and compiles what is in a folder; or in the folder of one scenario, and that one alone.
///
/// # Errors
/// [`Failed::Input`], or [`Failed::Shown`] once everything that is wrong has been shown.
pub(crate) async fn staged(argument: &Path, out: Out) -> Result<Staged, Failed> {
    let one = argument.to_str().is_some_and(|name| name.ends_with(SCENARIO)) && argument.is_file();
    let folder = if one { folder_of(argument) } else { argument.to_owned() };
    let (path, text) = manifest(&folder)?;
    let report = parse(&path.display().to_string(), &text);
    out.findings_of(&report);
    let Some(manifest) = report.manifest else { return Err(Failed::Shown(Code::Input)) };
    let folder = folder_of(&path);
    let files = if one { vec![argument.to_owned()] } else { scenario_files(&folder)? };
    let scenarios = scenarios(&files, &manifest, out)?;

    let kept = tempfile::tempdir().map_err(anyhow::Error::from)?;
    // Steps run where the host runs that plays the scenario: on one thread, one after another.
    let options = EngineOptions { executions_max: EXECUTIONS_MAX, guest_threads: 0 };
    let engines = Engines::new(options).map_err(anyhow::Error::from)?;
    let library = Library::open(&engines, kept.path()).map_err(anyhow::Error::from)?;
    let mut stage = Stage { component: None, executor: Arc::new(Wasm::new(library.clone())), manifest };
    let mut sees_tokens = false;
    if let Some(file) = &stage.manifest.component {
        let file = component(&folder, file, false, out).await?;
        let bytes = std::fs::read(&file).map_err(|why| Failed::Input(format!("{}: {why}", file.display())))?;
        let added = library.add(bytes).await.map_err(|why| Failed::Input(format!("{}: {why}", file.display())))?;
        sees_tokens = added.inspection.can.iter().any(|power| power.name == "fencing");
        stage.component = Some(added.digest);
    }
    Ok(Staged { stage, scenarios, sees_tokens, _kept: kept })
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The scenarios of a folder, in order of their names.
fn scenario_files(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let unreadable = |why: std::io::Error| Failed::Input(format!("{}: {why}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_name().to_string_lossy().ends_with(SCENARIO) {
            files.push(entry.path());
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Failed::Input(format!(
            "{}: expected at least one NAME{SCENARIO}, got none; the README's \"Test it\" shows a first one",
            folder.display()
        )));
    }
    Ok(files)
}

/// Reads them all; every problem of every one is shown.
fn scenarios(files: &[PathBuf], manifest: &interlock_manifest::Manifest, out: Out) -> Result<Vec<Scenario>, Failed> {
    let mut scenarios = Vec::new();
    let mut failed = false;
    for file in files {
        match scenario::read(&file.display().to_string(), &read(file)?, &manifest.machine) {
            Ok(scenario) => scenarios.push(scenario),
            Err(report) => {
                failed = true;
                out.findings_of(&report);
            }
        }
    }
    if failed { Err(Failed::Shown(Code::Input)) } else { Ok(scenarios) }
}

/// Does work that blocks, with a host of its own, off the threads that answer.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failed> {
    tokio::task::spawn_blocking(work).await.map_err(|why| Failed::Fault(why.into()))
}

/// The name by which a scenario is called on the command line: its file without the ending.
pub(crate) fn short(scenario: &Scenario) -> String {
    let name = Path::new(&scenario.file).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    name.strip_suffix(SCENARIO).unwrap_or(&name).to_owned()
}

/// Only those whose file or sentence has this text in it.
pub(crate) fn only(scenarios: &mut Vec<Scenario>, text: &str) -> Result<(), Failed> {
    let names: Vec<String> = scenarios.iter().map(short).collect();
    scenarios.retain(|scenario| short(scenario).contains(text) || scenario.name.contains(text));
    if scenarios.is_empty() {
        return Err(Failed::Input(format!("expected a scenario like {text:?}, got {}", show::list(&names))));
    }
    Ok(())
}
