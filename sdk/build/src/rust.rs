//! One `cargo build` per target, then the lift of what came out.
//!
//! Cargo's own fingerprints decide what is built again: they know path dependencies, features and
//! toolchains. A build of nothing new takes a fraction of a second.

use crate::build::{Again, Built, Options, Progress};
use crate::detect::{Language, Source};
use crate::place::{Place, at, write};
use crate::toolchain::Toolchain;
use crate::tools::run;
use crate::{BuildError, lift};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

/// The target of a step that asks for no other: no WASI, so smaller and faster to start.
const TARGET: &str = "wasm32-unknown-unknown";

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

/// Builds the one step of a folder and puts a copy of its component into its place.
pub(crate) fn build(source: &Source, place: &Place, options: Options) -> Result<Built, BuildError> {
    let folder = source.folder.clone();
    let workspace = Workspace { folder: folder.clone(), target_dir: None, progress: options.progress };
    let plan = workspace.plan()?;
    let names: Vec<String> = plan.by_target.values().flatten().cloned().collect();
    if names.len() > 1 {
        return Err(BuildError::Several { folder, names });
    }
    if options.again == Again::Always {
        workspace.forget(&plan)?;
    }
    let one = workspace.follow(&plan)?.pop().ok_or(BuildError::NoComponent { folder })?;
    write(&place.component(&one.name), &fs::read(&one.path).map_err(at(&one.path))?)?;
    Ok(one)
}

impl Workspace {
    /// Builds every step in it, by name. Two processes that build the same one take turns.
    ///
    /// # Errors
    /// [`BuildError`] says which part failed and what to do.
    pub fn build(&self) -> Result<Vec<Built>, BuildError> {
        self.follow(&self.plan()?)
    }

    fn follow(&self, plan: &Plan) -> Result<Vec<Built>, BuildError> {
        let start = Instant::now();
        let components = plan.target_dir.join("components");
        fs::create_dir_all(&components).map_err(at(&components))?;
        let turn = components.join(".lock");
        let turn = File::create(&turn).and_then(|file| file.lock().map(|()| file)).map_err(at(&turn))?;

        let mut built = BTreeMap::new();
        for (target, packages) in &plan.by_target {
            let toolchain = Toolchain::with(target)?;
            let tool = toolchain.release()?;
            for module in self.compile(&toolchain, target, packages, &plan.target_dir)? {
                let path = components.join(format!("{}.wasm", module.package));
                let component = lift(&fs::read(&module.path).map_err(at(&module.path))?)?;
                let cached = module.fresh && path.exists();
                write(&path, &component)?;
                let one = Built::new(&module.package, Language::Rust, tool.clone(), &component, cached);
                built.insert(module.package, Built { path, ..one });
            }
        }
        drop(turn);
        if built.is_empty() {
            return Err(BuildError::NoComponent { folder: self.folder.clone() });
        }
        let took = start.elapsed();
        Ok(built.into_values().map(|component| Built { took, ..component }).collect())
    }

    /// Has cargo forget what it has built of the packages, so that they are built again.
    fn forget(&self, plan: &Plan) -> Result<(), BuildError> {
        for (target, packages) in &plan.by_target {
            let mut cargo = Toolchain::own().cargo();
            cargo.args(["clean", "--release", "--quiet", "--target", target, "--target-dir"]).arg(&plan.target_dir);
            cargo.args(packages.iter().flat_map(|package| ["--package", package])).current_dir(&self.folder);
            run(&mut cargo)?;
        }
        Ok(())
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
        toolchain: &Toolchain,
        target: &str,
        packages: &[String],
        target_dir: &Path,
    ) -> Result<Vec<Module>, BuildError> {
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
                let fresh = message["fresh"].as_bool().unwrap_or(false);
                modules.push(Module { package: package.clone(), path: module, fresh });
            }
        }
        Ok(modules)
    }
}

/// What cargo made of one package.
struct Module {
    package: String,
    path: PathBuf,
    /// Whether it was there already.
    fresh: bool,
}

struct Plan {
    by_target: BTreeMap<String, Vec<String>>,
    target_dir: PathBuf,
}
