//! Whether a component is still what its source would give: everything that goes into it, in one digest.
//!
//! Cargo does this for Rust. For the other languages a build takes seconds, so it is worth knowing that it is not
//! needed.

use crate::place::{Place, at, sdk, write};
use crate::script::Made;
use crate::{BuildError, Language, Source, embedded};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Part of each digest: another number when this file, or how components are made, changes its meaning.
const FORMAT: &str = "interlock-build 1";

/// Folders whose files are no source, beside those that begin with a dot; what is installed is known by its releases.
const NO_SOURCE: [&str; 2] = ["node_modules", "__pycache__"];

/// Files of a machine's folder that no component is made of.
const NO_INPUT: [&str; 7] = [".md", ".pyc", ".scenario.toml", ".schedule.toml", ".table.toml", ".transcript", ".wasm"];

/// Folders below one another that are looked into.
const DEPTH_MAX: u32 = 32;

/// The digest of a folder's source, its SDK and its tools.
pub(crate) fn key(source: &Source, versions: &[String]) -> Result<String, BuildError> {
    let mut list = List::new(&[FORMAT, &source.name, &source.main, &sdk_key(source.language, versions)]);
    let mut files = Vec::new();
    collect(&source.folder, 0, &mut files)?;
    files.sort();
    for path in files {
        list.add(path.strip_prefix(&source.folder).unwrap_or(&path).as_os_str().as_encoded_bytes());
        list.add(&fs::read(&path).map_err(at(&path))?);
    }
    Ok(list.digest())
}

/// The digest of a language's SDK and tools.
pub(crate) fn sdk_key(language: Language, versions: &[String]) -> String {
    let mut list = List::new(&[FORMAT, language.name()]);
    versions.iter().for_each(|version| list.add(version.as_bytes()));
    for file in sdk(language).files.iter().chain(embedded::WIT) {
        list.add(file.path.as_bytes());
        list.add(file.bytes);
    }
    list.digest()
}

/// The digest of a list of bytes: with their lengths, so that no two lists read the same.
struct List(blake3::Hasher);

impl List {
    fn new(texts: &[&str]) -> Self {
        let mut list = Self(blake3::Hasher::new());
        texts.iter().for_each(|text| list.add(text.as_bytes()));
        list
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn digest(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

fn collect(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> Result<(), BuildError> {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let entry = entry.map_err(at(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            if depth < DEPTH_MAX && !NO_SOURCE.contains(&&*name) {
                collect(&path, depth + 1, files)?;
            }
        } else if path.is_file() && name != "machine.toml" && !NO_INPUT.iter().any(|end| name.ends_with(end)) {
            files.push(path);
        }
    }
    Ok(())
}

/// A component that need not be built again.
pub(crate) struct Kept {
    pub(crate) component: Vec<u8>,
    pub(crate) tool: String,
}

/// The component that is there, if it was built from what is there.
pub(crate) fn kept(source: &Source, place: &Place, key: &str) -> Option<Kept> {
    // Whatever is wrong with the record: building again mends it.
    let record: Value = serde_json::from_slice(&fs::read(place.record(&source.name)).ok()?).ok()?;
    let component = fs::read(place.component(&source.name)).ok()?;
    let is = |name: &str, value: &str| record[name].as_str() == Some(value);
    let mut inputs = record["inputs"].as_object()?.iter();
    let same = |(path, digest): (&String, &Value)| {
        fs::read(path).is_ok_and(|bytes| digest.as_str() == Some(&*blake3::hash(&bytes).to_hex()))
    };
    let current = is("key", key) && is("digest", &blake3::hash(&component).to_hex()) && inputs.all(same);
    current.then(|| Kept { component, tool: record["tool"].as_str().unwrap_or_default().to_owned() })
}

/// Puts a component into its place, and beside it what it was built from.
pub(crate) fn keep(source: &Source, place: &Place, key: &str, made: &Made, component: &[u8]) -> Result<(), BuildError> {
    let mut inputs = serde_json::Map::new();
    for path in &made.inputs {
        let bytes = fs::read(path).map_err(at(path))?;
        inputs.insert(path.to_string_lossy().into_owned(), blake3::hash(&bytes).to_hex().to_string().into());
    }
    write(&place.component(&source.name), component)?;
    let digest = blake3::hash(component).to_hex().to_string();
    let record = json!({ "key": key, "digest": digest, "tool": made.tool, "inputs": inputs });
    write(&place.record(&source.name), record.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect;
    use std::error::Error;

    #[test]
    fn what_goes_into_a_component_changes_its_key_and_nothing_else_does() -> Result<(), Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let write = |path: &str, text: &str| fs::write(folder.path().join(path), text);
        for below in ["src", "node_modules/left-pad", ".interlock/build", "scenarios", "__pycache__"] {
            fs::create_dir_all(folder.path().join(below))?;
        }
        write("package.json", r#"{"main": "src/steps.js"}"#)?;
        write("src/steps.js", "one")?;
        let tools = ["node 20".to_owned()];
        let source = detect(folder.path())?;
        let now = || key(&source, &tools);
        let first = now()?;
        for other in [
            "README.md",
            "machine.toml",
            "jobs.table.toml",
            "night.schedule.toml",
            "first.scenario.toml",
            "scenarios/first.transcript",
            "resize.wasm",
            "node_modules/left-pad/index.js",
            ".interlock/build/resize.json",
            ".env",
            "__pycache__/steps.pyc",
        ] {
            write(other, "anything")?;
            assert_eq!(now()?, first, "{other}");
        }
        let mut seen = vec![first.clone(), key(&source, &["node 22".to_owned()])?, key(&source, &[])?];
        seen.push(key(&Source { main: "src/other.js".to_owned(), ..source.clone() }, &tools)?);
        seen.push(key(&Source { language: Language::TypeScript, ..source.clone() }, &tools)?);
        for (path, text) in [
            ("src/steps.js", "two"),
            ("src/more.js", ""),
            ("src/text.json", "{}"),
            ("package.json", r#"{"main": "src/steps.js" }"#),
        ] {
            write(path, text)?;
            seen.push(now()?);
        }
        // The same bytes under another name are another source.
        fs::rename(folder.path().join("src/more.js"), folder.path().join("src/less.js"))?;
        seen.push(now()?);
        let different: std::collections::BTreeSet<&String> = seen.iter().collect();
        assert_eq!(different.len(), seen.len(), "{seen:?}");
        write("src/steps.js", "one")?;
        write("package.json", r#"{"main": "src/steps.js"}"#)?;
        fs::remove_file(folder.path().join("src/less.js"))?;
        fs::remove_file(folder.path().join("src/text.json"))?;
        assert_eq!(now()?, first, "all as it was");
        Ok(())
    }

    #[test]
    fn a_component_is_kept_as_long_as_all_it_was_built_from_is_the_same() -> Result<(), Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let shared = tempfile::NamedTempFile::new()?;
        fs::write(folder.path().join("steps.c"), "")?;
        let source = detect(folder.path())?;
        let place = Place::take(&source)?;
        let made = Made { module: Vec::new(), tool: "clang 1".to_owned(), inputs: vec![shared.path().to_owned()] };
        assert!(kept(&source, &place, "k").is_none(), "nothing there");
        keep(&source, &place, "k", &made, b"component")?;
        let tool = kept(&source, &place, "k").map(|kept| (kept.tool, kept.component));
        assert_eq!(tool, Some(("clang 1".to_owned(), b"component".to_vec())));
        assert!(kept(&source, &place, "another").is_none(), "another source");
        fs::write(shared.path(), "changed")?;
        assert!(kept(&source, &place, "k").is_none(), "a file outside of the folder has changed");
        keep(&source, &place, "k", &made, b"component")?;
        fs::write(place.component(&source.name), b"by hand")?;
        assert!(kept(&source, &place, "k").is_none(), "the component is another");
        keep(&source, &place, "k", &made, b"component")?;
        fs::write(place.record(&source.name), b"{")?;
        assert!(kept(&source, &place, "k").is_none(), "the record cannot be read");
        Ok(())
    }
}
