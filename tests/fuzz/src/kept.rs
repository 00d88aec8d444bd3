//! Inputs as files: the corpus that is checked in, and what a run found.

use crate::target::Target;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The inputs of a target's corpus folder, in the order of their names.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn corpus(target: &dyn Target) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name());
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    paths.into_iter().map(|path| fs::read(&path).map(|input| (path, input))).collect()
}

/// Writes an input to a folder, under a name that says what it holds.
///
/// # Errors
/// A folder or file that cannot be written.
pub fn keep(folder: &Path, target: &dyn Target, input: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let digest = interlock_kernel::doc::Digest::of(&[input]).to_string();
    let path = folder.join(format!("{}-{}", target.name(), digest.get(..12).unwrap_or_default()));
    fs::write(&path, input)?;
    Ok(path)
}

/// The command that runs one file again.
#[must_use]
pub fn replay_line(target: &dyn Target, path: &Path) -> String {
    format!("cargo run -p interlock-fuzz -- --target {} --replay {}", target.name(), path.display())
}
