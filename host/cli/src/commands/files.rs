//! Looking at files until one changes. Looking, not being told: it needs nothing of the system, works on every
//! file system, and a machine's folder has few files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How often it looks: a person does not notice the wait, the machine does not notice the looking.
const LOOK: Duration = Duration::from_millis(300);

/// Folders that are written by builds, or belong to tools.
const PASSED_OVER: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// Folders below one another that are looked into: no machine's folder is as deep.
const DEPTH_MAX: u32 = 12;

/// Files and when they changed last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Files(BTreeMap<PathBuf, (Option<SystemTime>, u64)>);

impl Files {
    /// As they are now: those in folders, and in the folders of files.
    pub(crate) fn of(paths: &[PathBuf]) -> Self {
        let mut found = BTreeMap::new();
        for path in paths {
            let folder = if path.is_file() { path.parent() } else { Some(path.as_path()) };
            look(folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")), 0, &mut found);
        }
        Self(found)
    }

    /// Returns once they are not as they were.
    pub(crate) async fn changed(&self, paths: &[PathBuf]) {
        while Self::of(paths) == *self {
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn look(folder: &Path, depth: u32, found: &mut BTreeMap<PathBuf, (Option<SystemTime>, u64)>) {
    // What cannot be read now is as good as not there; it is found once it can.
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let Ok(about) = entry.metadata() else { continue };
        // Transcripts are this command's own to write.
        if name.starts_with('.') || name.ends_with(".transcript") || PASSED_OVER.contains(&&*name) {
            continue;
        }
        if about.is_dir() {
            if depth < DEPTH_MAX {
                look(&path, depth + 1, found);
            }
        } else {
            found.insert(path, (about.modified().ok(), about.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_comes_or_goes_is_noticed() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let paths = [folder.path().to_owned()];
        std::fs::create_dir_all(folder.path().join("src"))?;
        std::fs::create_dir_all(folder.path().join("target"))?;
        std::fs::write(folder.path().join("src/lib.rs"), "one")?;
        let before = Files::of(&paths);
        std::fs::write(folder.path().join("target/out"), "built")?;
        std::fs::write(folder.path().join("a.transcript"), "told")?;
        assert_eq!(before, Files::of(&paths));
        std::fs::write(folder.path().join("src/lib.rs"), "another")?;
        let changed = Files::of(&paths);
        assert_ne!(before, changed);
        std::fs::write(folder.path().join("new.scenario.toml"), "")?;
        let more = Files::of(&paths);
        assert_ne!(changed, more);
        std::fs::remove_file(folder.path().join("new.scenario.toml"))?;
        assert_eq!(changed, Files::of(&paths));
        Ok(())
    }
}
