//! One `cargo build` per target, then the lift of what came out.
//!
//! Cargo's own fingerprints decide what is built again: they know path dependencies, features and
//! toolchains. A build of nothing new takes a fraction of a second.

use crate::toolchain::{Toolchain, run};
use crate::{BuildError, lift};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The target of a step that asks for no other: no WASI, so smaller and faster to start.
const TARGET: &str = "wasm32-unknown-unknown";

/// A component on disk.
#[derive(Clone, Debug)]
pub struct Built {
    /// The package it was built from.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// How large it is.
    pub bytes: u64,
    /// BLAKE3 of its bytes, as hexadecimal text.
    pub digest: String,
    /// How long the build that it was part of took.
    pub took: Duration,
}

/// A cargo workspace, or one package, whose `cdylib`s are steps.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The folder with its Cargo.toml.
    pub folder: PathBuf,
    /// Where cargo keeps what it builds; none takes cargo's own choice. The components go into its
    /// folder `components`.
    pub target_dir: Option<PathBuf>,
    /// Whether cargo tells how far it is.
    pub progress: Progress,
}

/// What cargo prints while it builds; warnings and errors it prints in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// What it is at.
    Shown,
    /// Nothing.
    Silent,
}

/// Builds the one step in this folder, into `components/NAME.wasm` of its target folder.
///
/// Compiler messages go to standard error as cargo prints them.
///
/// # Errors
/// [`BuildError`] says which part failed and what to do.
pub fn build_rust(folder: &Path, progress: Progress) -> Result<Built, BuildError> {
    let workspace = Workspace { folder: folder.to_owned(), target_dir: None, progress };
    let mut built = workspace.build()?;
    match (built.pop(), built.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(last), false) => {
            let names = built.into_iter().chain([last]).map(|component| component.name).collect();
            Err(BuildError::Several { folder: folder.to_owned(), names })
        }
        (None, _) => Err(BuildError::NoComponent { folder: folder.to_owned() }),
    }
}

impl Workspace {
    /// Builds every step in it, by name. Two processes that build the same one take turns.
    ///
    /// # Errors
    /// [`BuildError`] says which part failed and what to do.
    pub fn build(&self) -> Result<Vec<Built>, BuildError> {
        let start = Instant::now();
        let plan = self.plan()?;
        let components = plan.target_dir.join("components");
        fs::create_dir_all(&components).map_err(at(&components))?;
        let turn = components.join(".lock");
        let turn = File::create(&turn).and_then(|file| file.lock().map(|()| file)).map_err(at(&turn))?;

        let mut built = BTreeMap::new();
        for (target, packages) in &plan.by_target {
            for (name, module) in self.compile(target, packages, &plan.target_dir)? {
                let path = components.join(format!("{name}.wasm"));
                let component = lift(&fs::read(&module).map_err(at(&module))?)?;
                place(&path, &component)?;
                let bytes = component.len() as u64;
                let digest = blake3::hash(&component).to_hex().to_string();
                built.insert(name.clone(), Built { name, path, bytes, digest, took: Duration::ZERO });
            }
        }
        drop(turn);
        if built.is_empty() {
            return Err(BuildError::NoComponent { folder: self.folder.clone() });
        }
        let took = start.elapsed();
        Ok(built.into_values().map(|component| Built { took, ..component }).collect())
    }

    /// Which packages in the folder become components, for which target.
    fn plan(&self) -> Result<Plan, BuildError> {
        let mut metadata = Toolchain::own().cargo();
        metadata.args(["metadata", "--format-version=1", "--no-deps"]).current_dir(&self.folder);
        let folder = fs::canonicalize(&self.folder).map_err(at(&self.folder))?;
        let text = run(&mut metadata)?;
        let metadata: Value = serde_json::from_str(&text)
            .map_err(|e| BuildError::Tool { command: "cargo metadata".to_owned(), problem: e.to_string() })?;

        let mut by_target: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let inside = package["manifest_path"].as_str().is_some_and(|path| Path::new(path).starts_with(&folder));
            let kinds = package["targets"].as_array().into_iter().flatten().map(|target| &target["crate_types"]);
            let is_step = kinds.flat_map(|kinds| kinds.as_array()).flatten().any(|kind| kind == "cdylib");
            if inside && is_step {
                let target = package["metadata"]["interlock"]["target"].as_str().unwrap_or(TARGET);
                let name = package["name"].as_str().unwrap_or_default();
                by_target.entry(target.to_owned()).or_default().push(name.to_owned());
            }
        }
        let own_choice = || metadata["target_directory"].as_str().unwrap_or("target").into();
        Ok(Plan { by_target, target_dir: self.target_dir.clone().unwrap_or_else(own_choice) })
    }

    /// Runs cargo; gives the module of each package.
    fn compile(
        &self,
        target: &str,
        packages: &[String],
        target_dir: &Path,
    ) -> Result<Vec<(String, PathBuf)>, BuildError> {
        let toolchain = Toolchain::with(target)?;
        let mut cargo = toolchain.cargo();
        cargo.args(["build", "--release", "--message-format=json-render-diagnostics"]);
        if self.progress == Progress::Silent {
            cargo.arg("--quiet");
        }
        cargo.arg("--target-dir").arg(std::path::absolute(target_dir).map_err(at(target_dir))?);
        toolchain.aim(&mut cargo, target);
        for package in packages {
            cargo.args(["--package", package]);
        }
        cargo.current_dir(&self.folder).stderr(Stdio::inherit());
        let failed = |problem: String| BuildError::Tool { command: "cargo build".to_owned(), problem };
        let output = cargo.output().map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            return Err(BuildError::Compile { folder: self.folder.clone() });
        }

        let mut modules = Vec::new();
        for line in output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let message: Value = serde_json::from_slice(line).map_err(|e| failed(e.to_string()))?;
            // The spelling of a crate's name is not its package's: `hostile_wasi` is `hostile-wasi`.
            let name = message["target"]["name"].as_str().unwrap_or_default();
            let package = packages.iter().find(|package| package.replace('-', "_") == name.replace('-', "_"));
            let module = message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let module = module.map(PathBuf::from).find(|path| path.extension().is_some_and(|e| e == "wasm"));
            if let (Some(package), Some(module)) = (package, module) {
                modules.push((package.clone(), module));
            }
        }
        Ok(modules)
    }
}

struct Plan {
    by_target: BTreeMap<String, Vec<String>>,
    target_dir: PathBuf,
}

/// Puts the file there whole; one that holds the same bytes is left alone, with its time.
fn place(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let whole = path.with_extension("wasm.new");
    fs::write(&whole, bytes).map_err(at(&whole))?;
    fs::rename(&whole, path).map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> BuildError {
    let path = path.to_owned();
    move |source| BuildError::File { path, source }
}
