//! Where `test` and `explore` keep compiled components: a folder of the user's own that lasts, since one in JavaScript or
//! Python takes seconds to compile; one that passes where there is none, or while another process has it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Components that are kept: those that somebody works on, at most 75 MB each as compiled today.
pub(super) const KEPT_MAX: usize = 8;

/// A folder for this process alone.
pub(super) enum Kept {
    /// It stays; the lock ends with the process.
    Lasting { folder: PathBuf, _lock: File },
    /// It goes.
    Passing(TempDir),
}

impl Kept {
    /// The user's folder if nobody else has it, else a new one.
    ///
    /// # Errors
    /// If no folder can be made at all.
    pub(super) fn open() -> std::io::Result<Self> {
        match home().and_then(|folder| taken(&folder).map(|lock| Self::Lasting { folder, _lock: lock })) {
            Some(lasting) => Ok(lasting),
            None => Ok(Self::Passing(tempfile::Builder::new().prefix("interlock-test-").tempdir()?)),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::Lasting { folder, .. } => folder,
            Self::Passing(folder) => folder.path(),
        }
    }
}

/// By the XDG base directory specification.
fn home() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("interlock"))
}

/// Its lock; none while another process has it, and where it cannot be made.
fn taken(folder: &Path) -> Option<File> {
    fs::create_dir_all(folder).ok()?;
    let lock = File::create(folder.join("lock")).ok()?;
    lock.try_lock().ok().map(|()| lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_processs_at_a_time() -> anyhow::Result<()> {
        let home = tempfile::tempdir()?;
        let folder = home.path().join("interlock");
        let lock = taken(&folder).ok_or_else(|| anyhow::anyhow!("nobody has it"))?;
        assert!(taken(&folder).is_none(), "one has it");
        drop(lock);
        assert!(taken(&folder).is_some(), "nobody has it any more");
        fs::write(home.path().join("file"), "")?;
        assert!(taken(&home.path().join("file")).is_none(), "no folder can be made there");
        Ok(())
    }
}
