//! A copy of the kernel with every mutant in it, in a workspace of its own under the target folder, and
//! its test binary, built once.

use crate::find::{Mutant, asks, find};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The exit code of a process that evaluated more checks than it may.
pub const LIMIT_EXIT: i32 = 86;

const SWITCH: &str = include_str!("switch.rs.txt");

/// What is mutated: one crate, and the test binary that must notice.
pub struct Subject {
    /// The workspace it belongs to.
    pub workspace: PathBuf,
    /// The crate's folder in it.
    pub folder: String,
    /// The crate's name.
    pub package: String,
    /// The integration test.
    pub test: String,
}

/// A built copy.
pub struct Copy {
    /// Every mutant in it, in the order of files and lines.
    pub mutants: Vec<Mutant>,
    /// The test binary.
    pub binary: PathBuf,
    /// The copied workspace: test data is read from there.
    pub root: PathBuf,
    /// The crate's folder in it.
    pub crate_root: PathBuf,
}

/// A source file, from the crate's `src`, and its text with the mutants in it.
pub type Rewritten = (PathBuf, String);

/// Every mutant of a crate, without building anything, and its rewritten files.
///
/// # Errors
/// When a source file cannot be read, or is not Rust.
pub fn scan(subject: &Subject) -> Result<(Vec<Mutant>, Vec<Rewritten>)> {
    let source = subject.workspace.join(&subject.folder).join("src");
    let mut files = Vec::new();
    list(&source, Path::new(""), &mut files)?;
    let mut known = BTreeSet::new();
    let mut texts = Vec::new();
    for file in files.into_iter().filter(|file| file.extension().is_some_and(|is| is == "rs")) {
        let text = fs::read_to_string(source.join(&file)).with_context(|| format!("cannot read {}", file.display()))?;
        known.extend(asks(&text)?);
        texts.push((file, text));
    }
    let (mut mutants, mut rewritten, mut next) = (Vec::new(), Vec::new(), 0);
    for (file, text) in texts {
        let (found, text) = find(&file.to_string_lossy(), &text, &known, &mut next)?;
        mutants.extend(found);
        rewritten.push((file, text));
    }
    Ok((mutants, rewritten))
}

/// Copies into a folder, rewrites, and builds in a target folder.
///
/// # Errors
/// When something cannot be copied, or the copy does not build: the compiler's words are in the error.
pub fn build(subject: &Subject, root: &Path, target: &Path) -> Result<Copy> {
    let (mutants, rewritten) = scan(subject)?;
    ensure!(!mutants.is_empty(), "no check was found in {}", subject.folder);
    let (from, crate_root) = (subject.workspace.join(&subject.folder), root.join(&subject.folder));
    let mut written = BTreeSet::new();
    let mut write = |path: PathBuf, bytes: &[u8]| -> Result<()> {
        if fs::read(&path).ok().as_deref() != Some(bytes) {
            let parent = path.parent().context("a file has a folder")?;
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
        written.insert(path);
        Ok(())
    };
    for (file, text) in rewritten {
        let module = if file == Path::new("lib.rs") { "\nmod interlock_mutants;\n" } else { "" };
        write(crate_root.join("src").join(file), format!("{text}{module}").as_bytes())?;
    }
    let sites = mutants.iter().map(|mutant| mutant.id).max().unwrap_or_default() + 1;
    let switch = format!("{SWITCH}\nconst SITES: usize = {sites};\nconst LIMIT_EXIT: i32 = {LIMIT_EXIT};\n");
    write(crate_root.join("src/interlock_mutants.rs"), switch.as_bytes())?;
    write(root.join("Cargo.toml"), workspace_manifest(subject)?.as_bytes())?;
    write(crate_root.join("Cargo.toml"), &fs::read(from.join("Cargo.toml"))?)?;
    let mut tests = Vec::new();
    list(&from.join("tests"), Path::new(""), &mut tests)?;
    for file in tests {
        let bytes = fs::read(from.join("tests").join(&file))?;
        write(crate_root.join("tests").join(file), &bytes)?;
    }
    remove_the_rest(&crate_root, &written)?;
    // The same versions of everything as the workspace has; cargo leaves out what the copy does not use.
    if !root.join("Cargo.lock").exists() && subject.workspace.join("Cargo.lock").exists() {
        fs::copy(subject.workspace.join("Cargo.lock"), root.join("Cargo.lock"))?;
    }
    let binary = compile(subject, root, target)?;
    Ok(Copy { mutants, binary, root: root.to_owned(), crate_root })
}

/// Files below a folder, as paths from it, sorted.
fn list(folder: &Path, below: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let here = folder.join(below);
    let read = fs::read_dir(&here).with_context(|| format!("cannot list {}", here.display()))?;
    let mut entries = read.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(folder, &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// A file that an earlier copy had and this one has not.
fn remove_the_rest(crate_root: &Path, written: &BTreeSet<PathBuf>) -> Result<()> {
    for folder in ["src", "tests"] {
        let mut files = Vec::new();
        list(&crate_root.join(folder), Path::new(""), &mut files)?;
        for file in files.into_iter().map(|file| crate_root.join(folder).join(file)) {
            if !written.contains(&file) {
                fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
            }
        }
    }
    Ok(())
}

/// The workspace's own manifest with one member, a profile for many short runs, and no lints: the
/// rewritten sources are for no reader.
fn workspace_manifest(subject: &Subject) -> Result<String> {
    let text = fs::read_to_string(subject.workspace.join("Cargo.toml"))?;
    let read: toml::Table = text.parse().context("the workspace's manifest")?;
    let mut workspace = read.get("workspace").and_then(toml::Value::as_table).cloned().context("no [workspace]")?;
    workspace.insert("members".to_owned(), vec![subject.folder.clone()].into());
    for gone in ["default-members", "exclude", "lints"] {
        workspace.remove(gone);
    }
    if let Some(dependencies) = workspace.get_mut("dependencies").and_then(toml::Value::as_table_mut) {
        dependencies.retain(|_, of| of.get("path").is_none());
    }
    let quiet: toml::Table = "rust.warnings = \"allow\"".parse()?;
    workspace.insert("lints".to_owned(), toml::Value::Table(quiet));
    // Dependencies as the workspace builds them, so that they are built already.
    let mut profile = read.get("profile").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let dev = profile.entry("dev").or_insert_with(|| toml::Value::Table(toml::Table::new()));
    let dev = dev.as_table_mut().context("[profile.dev] is a table")?;
    dev.insert("opt-level".to_owned(), 1.into());
    dev.insert("debug".to_owned(), false.into());
    dev.insert("incremental".to_owned(), false.into());
    let whole = [("workspace", workspace), ("profile", profile)];
    let whole = whole.map(|(name, table)| (name.to_owned(), toml::Value::Table(table)));
    Ok(toml::to_string(&toml::Table::from_iter(whole))?)
}

fn compile(subject: &Subject, root: &Path, target: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .current_dir(root)
        .args(["test", "--no-run", "--offline", "--message-format=json-render-diagnostics"])
        .args(["--package", &subject.package, "--test", &subject.test, "--target-dir"])
        .arg(target)
        .env_remove("RUSTFLAGS")
        .output()
        .context("cannot run cargo")?;
    if !built.status.success() {
        bail!("the copy with the mutants does not build:\n{}", String::from_utf8_lossy(&built.stderr));
    }
    let binary = String::from_utf8_lossy(&built.stdout).lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_it = message.pointer("/target/name")? == subject.test.as_str();
        let path = message.get("executable")?.as_str()?;
        is_it.then(|| PathBuf::from(path))
    });
    binary.with_context(|| format!("cargo built no test called {}", subject.test))
}
