//! The component that belongs to a manifest: built from the source beside it, found, or given by name.

use crate::failed::Failed;
use crate::out::Out;
use interlock_build::{Again, BuildError, Built, Options, is_step};
use interlock_kernel::ids::MachineName;
use std::path::{Path, PathBuf};

/// The component's file. One that is given counts, be it a file or the folder of its source; else the one that the
/// source beside the manifest's builds, if there is such source; else the file that the manifest names.
///
/// # Errors
/// [`Failed::Input`] with what was looked for, and where.
pub(crate) async fn component(folder: &Path, file: &str, given: Option<&Path>, out: Out) -> Result<PathBuf, Failed> {
    let built = async |source: &Path| build(source, Again::IfChanged, out).await.map(|built| built.path);
    if let Some(given) = given {
        return if given.is_dir() { built(given).await } else { Ok(given.to_owned()) };
    }
    let named = folder.join(file);
    let source = match named.parent() {
        Some(source) if !source.as_os_str().is_empty() => source,
        _ => Path::new("."),
    };
    if is_step(source) {
        return built(source).await;
    }
    if named.is_file() {
        return Ok(named);
    }
    let why = BuildError::NoStep { folder: source.to_owned(), near: None };
    Err(Failed::Input(format!("{}: no such component, and nothing to build it from\n{why}", named.display())))
}

/// Refuses a component that is given for a machine without steps.
pub(crate) fn no_steps(machine: &MachineName, given: &Path) -> Failed {
    let given = given.display();
    Failed::Input(format!(
        "--component {given}: expected a machine with steps, got {machine}, which names no component"
    ))
}

/// The bytes of a component.
///
/// # Errors
/// [`Failed::Input`] with the file.
pub(crate) fn read_component(path: &Path) -> Result<Vec<u8>, Failed> {
    std::fs::read(path).map_err(|why| Failed::Input(format!("{}: {why}", path.display())))
}

/// Builds the step in a folder.
///
/// # Errors
/// [`Failed::Input`] with what is missing, or wrong in its source.
pub(crate) async fn build(folder: &Path, again: Again, out: Out) -> Result<Built, Failed> {
    out.hint(&format!("building the step in {}", folder.display()));
    let (folder, options) = (folder.to_owned(), Options { progress: out.progress(), again });
    let built = tokio::task::spawn_blocking(move || interlock_build::build(&folder, options)).await;
    let built = built.map_err(anyhow::Error::from)?;
    let built = built.map_err(|why| Failed::Input(format!("{:#}", anyhow::Error::from(why))))?;
    let path = built.path.display();
    match built.cached {
        true => out.hint(&format!("unchanged: {path}")),
        false => out.hint(&format!("built {path} in {:.1} s", built.took.as_secs_f64())),
    }
    Ok(built)
}
