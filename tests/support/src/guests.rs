//! The example machines as files: sources in `guests/`, components in `target/guests/components/`.

use anyhow::{Context as _, Result, anyhow};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The component of the package `guests/NAME`, built if need be.
///
/// The first call of a process builds all of them in one go; when nothing has changed that takes
/// a fraction of a second.
///
/// # Errors
/// When the guests do not build; the message says what to do. When none is called that.
pub fn guest(name: &str) -> Result<PathBuf> {
    static BUILT: OnceLock<Result<Vec<interlock_build::Built>, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let folder = workspace().join("guests");
        let target_dir = Some(workspace().join("target/guests"));
        interlock_build::Workspace { folder, target_dir }.build().map_err(|e| e.to_string())
    });
    let built = built.as_ref().map_err(|e| anyhow!("the guests do not build: {e}"))?;
    let one = built.iter().find(|component| component.name == name);
    one.map(|component| component.path.clone()).with_context(|| {
        let names: Vec<_> = built.iter().map(|component| component.name.as_str()).collect();
        format!("there is no guest {name:?}; there are {}", names.join(", "))
    })
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
        assert!(refused.to_string().contains("there is no guest \"nobody\"; there are "), "{refused}");
    }
}
