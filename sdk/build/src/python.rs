//! Python: the build script that comes with its SDK, run by the interpreter beside componentize-py.

use crate::build::Recipe;
use crate::place::{Place, at};
use crate::script::{self, Made};
use crate::tools::{self, Needed};
use crate::{BuildError, Options, Source};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const COMPONENTIZE: Needed = Needed {
    name: "componentize-py",
    version: "0.25.1",
    purpose: "makes a component of the modules and an interpreter",
};

const PYTHON: Needed = Needed { name: "python3", version: "", purpose: "runs the build script" };

/// What builds a step.
#[derive(Debug)]
pub(crate) struct Tools {
    python: PathBuf,
    /// The folder that componentize-py is in.
    bin: PathBuf,
    /// Each with its release, for the cache.
    versions: Vec<String>,
}

impl Tools {
    /// Finds them, or says which is not there.
    pub(crate) fn find(source: &Source) -> Result<Self, BuildError> {
        let folder = source.folder.display();
        let install = format!(
            "python3 -m venv {folder}/.venv && {folder}/.venv/bin/pip install {}=={}",
            COMPONENTIZE.name, COMPONENTIZE.version
        );
        let Some(program) = componentize(&source.folder)? else {
            let got = "none in .venv of the folder or above, in $VIRTUAL_ENV, or on PATH";
            return Err(COMPONENTIZE.missing(source.language, got, install));
        };
        let version = tools::version(&program)?;
        if !COMPONENTIZE.fits(&version) {
            return Err(COMPONENTIZE.missing(source.language, &version, install));
        }
        let bin = program.parent().unwrap_or(Path::new(".")).to_owned();
        let beside = bin.join("python");
        let python = if beside.is_file() { Some(beside) } else { tools::on_path("python3") };
        let python = python.ok_or_else(|| {
            PYTHON.missing(source.language, "none on PATH", "apt-get install python3 python3-venv".to_owned())
        })?;
        let mut versions = vec![format!("{} {version}", COMPONENTIZE.name)];
        versions.extend(installed(&bin)?);
        Ok(Self { python, bin, versions })
    }
}

impl Recipe for Tools {
    fn versions(&self) -> &[String] {
        &self.versions
    }

    fn make(&self, source: &Source, place: &Place, options: Options) -> Result<Made, BuildError> {
        let script = place.sdk().join("build.py");
        let mut python = Command::new(&self.python);
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([self.bin.clone()].into_iter().chain(env::split_paths(&path)));
        python.arg(&script).env("PYTHONDONTWRITEBYTECODE", "1");
        if let Ok(path) = path {
            python.env("PATH", path);
        }
        script::run(python, source, place, options)
    }
}

/// Upwards from the folder in `.venv`, in the active environment, on `PATH`: the first that is there.
fn componentize(folder: &Path) -> Result<Option<PathBuf>, BuildError> {
    if let Some(own) = tools::upwards(folder, &format!(".venv/bin/{}", COMPONENTIZE.name))? {
        return Ok(Some(own));
    }
    let active = env::var_os("VIRTUAL_ENV").map(|venv| Path::new(&venv).join("bin").join(COMPONENTIZE.name));
    Ok(active.filter(|program| program.is_file()).or_else(|| tools::on_path(COMPONENTIZE.name)))
}

/// The packages of the environment, with their releases: what the step may import from there.
fn installed(bin: &Path) -> Result<Vec<String>, BuildError> {
    let lib = bin.with_file_name("lib");
    let mut names = Vec::new();
    for python in folder(&lib)? {
        for package in folder(&python.join("site-packages"))? {
            if package.extension().is_some_and(|end| end == "dist-info") {
                names.extend(package.file_name().map(|name| name.to_string_lossy().into_owned()));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// What is in a folder; nothing, if it is not there.
fn folder(path: &Path) -> Result<Vec<PathBuf>, BuildError> {
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(path).map_err(at(path))?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(at(path))).collect()
}
