//! What a folder's scenarios are played with: its machine, its component on a real runtime, and the scenarios
//! themselves, all of it checked.

mod kept;

use super::component::{component, no_steps, read_component};
use super::{first, input};
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show;
use interlock_lab::scenario::{self, Declared, Scenario, Stage};
use interlock_manifest::{Manifest, Report};
use interlock_runtime::{EngineOptions, Engines, Library, LibraryError, Wasm};
use kept::Kept;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Attempts at a time in all hosts that are played at once: more than scenarios have entities.
const ATTEMPTS_MAX: u32 = 64;

/// A component of this size takes long enough to compile for somebody to wonder, in bytes.
const LARGE_BYTES: usize = 1 << 20;

/// A file that holds a scenario ends like this.
const ENDING: &str = ".scenario.toml";

/// A machine's folder and its scenarios.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The folder with the manifest.
    pub(crate) folder: PathBuf,
    /// The scenarios, by name.
    pub(crate) scenarios: Vec<PathBuf>,
}

/// The folders and scenarios that arguments stand for: a scenario, a machine's folder with those in it and in
/// its folder `scenarios`, or a folder of such folders.
///
/// # Errors
/// [`Failed::Input`] with what was expected and what was found.
pub(crate) fn find(paths: &[PathBuf]) -> Result<Vec<Found>, Failed> {
    let mut all: Vec<Found> = Vec::new();
    for path in paths {
        if !path.exists() {
            return Err(Failed::Input(format!(
                "{}: expected a folder or a scenario, got nothing there",
                path.display()
            )));
        }
        for found in find_at(path)? {
            match all.iter_mut().find(|known| known.folder == found.folder) {
                Some(known) => {
                    known.scenarios.extend(found.scenarios);
                    known.scenarios.sort();
                    known.scenarios.dedup();
                }
                None => all.push(found),
            }
        }
    }
    Ok(all)
}

fn find_at(path: &Path) -> Result<Vec<Found>, Failed> {
    let is_machine = |folder: &Path| folder.join("machine.toml").is_file();
    if path.is_file() {
        if !path.to_string_lossy().ends_with(ENDING) {
            let path = path.display();
            return Err(Failed::Input(format!(
                "{path}: expected a folder or a scenario, NAME{ENDING}, got another file"
            )));
        }
        let here = parent(path);
        let folder = [here.clone(), parent(&here)].into_iter().find(|folder| is_machine(folder));
        let folder = folder.ok_or_else(|| {
            let path = path.display();
            Failed::Input(format!("{path}: expected a machine.toml beside it or in the folder above, got none"))
        })?;
        return Ok(vec![Found { folder, scenarios: vec![path.to_owned()] }]);
    }
    if is_machine(path) {
        return Ok(vec![Found { folder: path.to_owned(), scenarios: scenarios(path)? }]);
    }
    let mut below = Vec::new();
    for folder in entries(path)?.into_iter().filter(|entry| is_machine(entry)) {
        let scenarios = scenarios(&folder)?;
        if !scenarios.is_empty() {
            below.push(Found { folder, scenarios });
        }
    }
    if below.is_empty() {
        let path = path.display();
        return Err(Failed::Input(format!(
            "{path}: expected a folder with a machine.toml, or of such folders with scenarios, got neither"
        )));
    }
    Ok(below)
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        // The folder of `.` has no name in it.
        Some(_) if path == Path::new(".") => PathBuf::from(".."),
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => path.join(".."),
    }
}

/// The scenarios of a machine's folder.
fn scenarios(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let mut found = entries(folder)?;
    let inner = below(folder, "scenarios");
    if inner.is_dir() {
        found.extend(entries(&inner)?);
    }
    found.retain(|path| path.is_file() && path.to_string_lossy().ends_with(ENDING));
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let failed = |why: std::io::Error| Failed::Input(format!("{}: {why}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        found.push(below(folder, entry.map_err(failed)?.file_name()));
    }
    found.sort();
    Ok(found)
}

/// What is in a folder, by name: `./x` for `x` is longer and says no more.
fn below(folder: &Path, name: impl AsRef<Path>) -> PathBuf {
    if folder == Path::new(".") { name.as_ref().to_owned() } else { folder.join(name) }
}

/// The runtime that all scenarios of this process share.
pub(crate) struct Theatre {
    library: Library,
    executor: Arc<Wasm>,
    /// Where the components are kept.
    _kept: Kept,
}

/// A machine that can be played.
pub(crate) struct Staged {
    /// Machine and component.
    pub(crate) stage: Stage,
    /// Whether its steps can read fencing tokens.
    pub(crate) sees_tokens: bool,
}

impl Theatre {
    /// A runtime with no component yet.
    ///
    /// # Errors
    /// [`Failed::Fault`] if this machine cannot run WebAssembly.
    pub(crate) fn open() -> Result<Self, Failed> {
        // Steps run where the host runs that plays the scenario: on one thread, one after another.
        let options = EngineOptions { executions_max: ATTEMPTS_MAX, guest_threads: 0, ..EngineOptions::default() };
        let engines = Engines::new(options).map_err(anyhow::Error::from)?;
        let (kept, library) = Kept::open(&engines)?;
        Ok(Self { executor: Arc::new(Wasm::new(library.clone())), library, _kept: kept })
    }

    /// The machine of a folder: its component, or the one that is given for it, built, compiled and judged.
    ///
    /// # Errors
    /// [`Failed::Input`] if there is no component, or it cannot run here; [`Failed::Shown`] once it has been shown
    /// what is wrong with a table.
    pub(crate) async fn stage(
        &self,
        folder: &Path,
        manifest: Manifest,
        given: Option<&Path>,
        out: Out,
    ) -> Result<Staged, Failed> {
        let mut stage =
            Stage { manifest, component: None, tables: tables(folder, out)?, executor: self.executor.clone() };
        let mut sees_tokens = false;
        if let Some(file) = &stage.manifest.component {
            let path = component(folder, file, given, out).await?;
            let component = read_component(&path)?;
            if component.len() > LARGE_BYTES {
                out.hint(&format!("compiling {} unless it is known", show::bytes(component.len() as u64)));
            }
            let added = self.library.add(component).await.map_err(|why| unfit(&path, why))?;
            sees_tokens = added.inspection.can.iter().any(|power| power.name == "fencing");
            stage.component = Some(added.digest);
        } else if let Some(given) = given {
            return Err(no_steps(&stage.manifest.machine.name, given));
        }
        Ok(Staged { stage, sees_tokens })
    }
}

fn unfit(path: &Path, why: LibraryError) -> Failed {
    match why {
        LibraryError::Unfit(problems) => {
            let problems: String = problems.iter().map(|problem| format!("\n  {problem}")).collect();
            Failed::Input(format!("{} cannot run here:{problems}", path.display()))
        }
        other => Failed::Fault(other.into()),
    }
}

/// The manifest of a folder; everything that is wrong with it is shown.
///
/// # Errors
/// [`Failed::Input`], or [`Failed::Shown`] once it has been shown.
pub(crate) fn manifest(folder: &Path, out: Out) -> Result<Manifest, Failed> {
    let (path, text) = input::manifest(folder)?;
    let report = interlock_manifest::parse(&path.display().to_string(), &text);
    if report.manifest.is_none() {
        out.findings_of(&report);
    }
    report.manifest.ok_or(Failed::Shown(Code::Input))
}

/// The tables that are declared in a machine's folder; everything that is wrong with them is shown.
fn tables(folder: &Path, out: Out) -> Result<Vec<Declared>, Failed> {
    let files = input::manifests(folder, input::TABLE_ENDING)?;
    let (mut tables, mut sound) = (Vec::new(), true);
    for file in files {
        let source = input::read(&file)?;
        match interlock_manifest::parse_table(&file.display().to_string(), &source) {
            Ok((table, _)) => tables.push(Declared { table, source }),
            Err(report) => {
                out.findings_of(&report);
                sound = false;
            }
        }
    }
    if sound { Ok(tables) } else { Err(Failed::Shown(Code::Input)) }
}

/// What can be read of a folder's scenarios, and every problem of those that cannot.
///
/// # Errors
/// [`Failed::Input`] if a file cannot be opened, or there is none.
pub(crate) fn scenarios_of(found: &Found, manifest: &Manifest) -> Result<(Vec<Scenario>, Vec<Report>), Failed> {
    if found.scenarios.is_empty() {
        return Err(Failed::Input(first::advice(&found.folder, &manifest.machine)));
    }
    let (mut readable, mut unreadable) = (Vec::new(), Vec::new());
    for file in &found.scenarios {
        match scenario::read(&file.display().to_string(), &input::read(file)?, &manifest.machine) {
            Ok(scenario) => readable.push(scenario),
            Err(report) => unreadable.push(*report),
        }
    }
    Ok((readable, unreadable))
}

/// Does work that blocks, with a host of its own, off the threads that answer.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failed> {
    tokio::task::spawn_blocking(work).await.map_err(|why| Failed::Fault(why.into()))
}

/// The name by which a scenario is called on the command line: its file without the ending.
pub(crate) fn short(scenario: &Scenario) -> String {
    let name = Path::new(&scenario.file).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    name.strip_suffix(ENDING).unwrap_or(&name).to_owned()
}

/// Only those whose file or sentence has this text in it; how many others there were.
///
/// # Errors
/// [`Failed::Input`] if there is none, and it cannot be one of those that are unreadable.
pub(crate) fn only(scenarios: &mut Vec<Scenario>, text: &str, unreadable: &[Report]) -> Result<usize, Failed> {
    let names: Vec<String> = scenarios.iter().map(short).collect();
    scenarios.retain(|scenario| short(scenario).contains(text) || scenario.name.contains(text));
    if scenarios.is_empty() && unreadable.is_empty() {
        return Err(Failed::Input(format!("expected a scenario like {text:?}, got {}", show::list(&names))));
    }
    Ok(names.len().saturating_sub(scenarios.len()))
}
