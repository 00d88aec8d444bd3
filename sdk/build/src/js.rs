//! JavaScript and TypeScript: the build script that comes with their SDK, run by node.
//!
//! The script finds its packages as node does, upwards from where it lies: in the step's folder or above.

use crate::build::Recipe;
use crate::place::{Place, at};
use crate::script::{self, Made};
use crate::tools::{self, Needed};
use crate::{BuildError, Language, Options, Source};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const NODE: Needed = Needed { name: "node", version: "", purpose: "runs the build script" };

const COMPONENTIZE: Needed =
    Needed { name: "@bytecodealliance/componentize-js", version: "0.23.0", purpose: "makes a component of the bundle" };

/// componentize-js imports it without naming it among what it depends on.
const SHIM: Needed =
    Needed { name: "@bytecodealliance/preview2-shim", version: "0.25.0", purpose: "is imported by componentize-js" };

const ESBUILD: Needed = Needed { name: "esbuild", version: "0.28.2", purpose: "bundles the step with what it imports" };

const TYPESCRIPT: Needed = Needed { name: "typescript", version: "7.0.2", purpose: "checks the types" };

/// What builds a step.
#[derive(Debug)]
pub(crate) struct Tools {
    node: PathBuf,
    /// Each with its release, for the cache.
    versions: Vec<String>,
}

impl Tools {
    /// Finds them, or says which is not there.
    pub(crate) fn find(source: &Source) -> Result<Self, BuildError> {
        let node = tools::on_path("node").ok_or_else(|| {
            let install = "apt-get install nodejs npm (or https://nodejs.org)".to_owned();
            NODE.missing(source.language, "none on PATH", install)
        })?;
        let mut versions = vec![format!("node {}", tools::version(&node)?)];
        let types = (source.language == Language::TypeScript).then_some(TYPESCRIPT);
        let packages: Vec<Needed> = [COMPONENTIZE, SHIM, ESBUILD].into_iter().chain(types).collect();
        for needed in &packages {
            versions.push(format!("{} {}", needed.name, package(source, *needed, &packages)?));
        }
        // What else the step imports from there.
        if let Some(lock) = tools::upwards(&source.folder, "node_modules/.package-lock.json")? {
            versions.push(blake3::hash(&fs::read(&lock).map_err(at(&lock))?).to_hex().to_string());
        }
        Ok(Self { node, versions })
    }
}

impl Recipe for Tools {
    fn versions(&self) -> &[String] {
        &self.versions
    }

    fn make(&self, source: &Source, place: &Place, options: Options) -> Result<Made, BuildError> {
        let script = place.sdk().join("build.mjs");
        let mut node = Command::new(&self.node);
        node.arg(&script);
        script::run(node, source, place, options)
    }
}

/// The release of a package that node would find from the step's folder.
fn package(source: &Source, needed: Needed, all: &[Needed]) -> Result<String, BuildError> {
    let install = || {
        let names: Vec<String> = all.iter().map(|needed| format!("{}@{}", needed.name, needed.version)).collect();
        let folder = source.folder.display();
        format!("npm install --prefix {folder} --save-dev --save-exact {}", names.join(" "))
    };
    let below = format!("node_modules/{}/package.json", needed.name);
    let Some(file) = tools::upwards(&source.folder, &below)? else {
        let got = "none in node_modules of the folder or above";
        return Err(needed.missing(source.language, got, install()));
    };
    let text = fs::read_to_string(&file).map_err(at(&file))?;
    let wrong = |why: serde_json::Error| BuildError::Manifest { path: file.clone(), problem: why.to_string() };
    let version = serde_json::from_str::<Value>(&text).map_err(wrong)?["version"].as_str().unwrap_or("?").to_owned();
    if needed.fits(&version) { Ok(version) } else { Err(needed.missing(source.language, &version, install())) }
}
