//! The component that belongs to a manifest: found, or built from the Rust crate beside it.

use crate::failed::Failed;
use crate::out::Out;
use std::path::{Path, PathBuf};

/// When a Rust crate in the folder is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// If there is no component.
    IfMissing,
    /// If there is a crate.
    IfThere,
    /// In any case.
    Always,
}

/// The component's file: the one that the manifest names, or the one that the crate in its folder builds.
///
/// # Errors
/// [`Failed::Input`] with what was looked for, and where.
pub(crate) async fn component(folder: &Path, file: &str, build: Build, out: Out) -> Result<PathBuf, Failed> {
    let named = folder.join(file);
    let source = named.parent().unwrap_or(folder);
    match (build, named.is_file(), source.join("Cargo.toml").is_file()) {
        (Build::IfMissing, true, _) | (Build::IfThere, true, false) => Ok(named),
        (_, _, true) => self::build(source.to_owned(), out).await,
        (Build::Always, _, false) => {
            Err(Failed::Input(format!("--build: expected a Rust crate in {}, got no Cargo.toml", source.display())))
        }
        (Build::IfMissing | Build::IfThere, false, false) => Err(Failed::Input(format!(
            "{}: no such component, and no Cargo.toml in {} to build it from",
            named.display(),
            source.display()
        ))),
    }
}

/// The bytes of a component.
///
/// # Errors
/// [`Failed::Input`] with the file.
pub(crate) fn read_component(path: &Path) -> Result<Vec<u8>, Failed> {
    std::fs::read(path).map_err(|why| Failed::Input(format!("{}: {why}", path.display())))
}

/// Builds the Rust step in a folder.
async fn build(folder: PathBuf, out: Out) -> Result<PathBuf, Failed> {
    out.hint(&format!("building the step in {}", folder.display()));
    let built = tokio::task::spawn_blocking(move || interlock_build::build_rust(&folder, out.progress())).await;
    let built = built.map_err(anyhow::Error::from)?.map_err(|why| Failed::Input(why.to_string()))?;
    out.hint(&format!("built {} in {:.1} s", built.path.display(), built.took.as_secs_f64()));
    Ok(built.path)
}
