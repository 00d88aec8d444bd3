//! The example machines as files: sources in `guests/`, components in `target/guests/components/`.

use anyhow::{Context as _, Result, anyhow, ensure};
use interlock_build::{Progress, Workspace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The component of the package `guests/NAME`, built if need be.
///
/// A guest is built once per process; when nothing has changed that takes a fraction of a second.
///
/// # Errors
/// When it does not build; the message says what to do. When none is called that.
pub fn guest(name: &str) -> Result<PathBuf> {
    static BUILT: Mutex<BTreeMap<String, Result<PathBuf, String>>> = Mutex::new(BTreeMap::new());
    let folder = guest_folder(name);
    ensure!(folder.join("Cargo.toml").is_file(), "there is no guest {name:?} in guests/");
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let one = built.entry(name.to_owned()).or_insert_with(|| {
        let target_dir = Some(workspace().join("target/guests"));
        let components =
            Workspace { folder, target_dir, progress: Progress::Shown }.build().map_err(|e| e.to_string())?;
        components.into_iter().next().map(|one| one.path).ok_or_else(|| "nothing was built".to_owned())
    });
    one.clone().map_err(|e| anyhow!("guest {name}: {e}"))
}

/// The folder of a guest, with its `machine.toml`.
#[must_use]
pub fn guest_folder(name: &str) -> PathBuf {
    workspace().join("guests").join(name)
}

/// A component written by hand in `guests/hostile/wat/NAME.wat`, as bytes.
///
/// # Errors
/// When there is no such file, or its text is wrong.
pub fn hostile_wat(name: &str) -> Result<Vec<u8>> {
    let path = guest_folder("hostile").join("wat").join(format!("{name}.wat"));
    wat::parse_file(&path).with_context(|| format!("the text of {name}"))
}

/// What a step of [`step_wat`] does in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It loops for ever.
    Spins,
    /// It returns, without a transition.
    Returns,
}

/// A component whose step declares so much memory, in pages of 64 KiB, and grows by so much more when it is called.
///
/// # Errors
/// When the text that it is made from is another.
pub fn step_wat(pages: u32, grows: u32, then: Then) -> Result<Vec<u8>> {
    let path = guest_folder("hostile").join("wat/large-memory.wat");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let then = match then {
        Then::Spins => "(loop $again (br $again))",
        Then::Returns => "",
    };
    let called = format!("      (drop (memory.grow (i32.const {grows}))) {then} (i32.const 0)))");
    let step = text.replace("\"memory\") 5120)", &format!("\"memory\") {pages})"));
    let step = step.replace("      (i32.const 0)))", &called);
    ensure!(step.contains(&called) && step.contains(&format!(" {pages})")), "{} is another", path.display());
    Ok(wat::parse_str(step)?)
}

fn workspace() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        here.ancestors().nth(2).unwrap_or(here).to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::{guest_folder, hostile_wat};

    #[test]
    fn every_component_written_by_hand_is_wasm() -> anyhow::Result<()> {
        let mut names = Vec::new();
        for file in std::fs::read_dir(guest_folder("hostile").join("wat"))? {
            let path = file?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            assert!(hostile_wat(&name)?.starts_with(b"\0asm"), "{name}");
            names.push(name);
        }
        assert_eq!(names.len(), 12, "{names:?}");
        Ok(())
    }

    #[test]
    fn a_guest_that_does_not_exist_is_named() {
        let refused = super::guest("nobody").expect_err("no such guest");
        assert_eq!(refused.to_string(), "there is no guest \"nobody\" in guests/");
    }
}
