//! Where `test` and `explore` keep compiled components: a folder of the user's own that lasts, since one in JavaScript or
//! Python takes seconds to compile; one that passes where there is none.

use crate::failed::Failed;
use interlock_runtime::{Engines, Library};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Components that are kept: those that somebody works on, at most 75 MB each as compiled today.
const KEPT_MAX: usize = 8;

/// A folder, for as long as this lives.
pub(super) enum Kept {
    /// It stays; this is its lock. Other processes that play share it, whoever has it alone tidies it.
    Lasting(#[allow(dead_code, reason = "held until the end")] File),
    /// It goes.
    Passing(#[allow(dead_code, reason = "held until the end")] TempDir),
}

impl Kept {
    /// The folder, and its library.
    ///
    /// # Errors
    /// [`Failed::Fault`] if no folder can be made at all, or what is in it cannot be read.
    pub(super) fn open(engines: &Engines) -> Result<(Self, Library), Failed> {
        if let Some(folder) = home()
            && let Some(lock) = lock(&folder)
        {
            let library = shared(engines, &folder, &lock)?;
            return Ok((Self::Lasting(lock), library));
        }
        let folder = tempfile::Builder::new().prefix("interlock-test-").tempdir()?;
        let library = Library::open(engines, folder.path()).map_err(anyhow::Error::from)?;
        Ok((Self::Passing(folder), library))
    }
}

/// By the XDG base directory specification.
fn home() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("interlock"))
}

/// The file by which processes agree; none where it cannot be made.
fn lock(folder: &Path) -> Option<File> {
    fs::create_dir_all(folder).ok()?;
    File::create(folder.join("lock")).ok()
}

fn shared(engines: &Engines, folder: &Path, lock: &File) -> Result<Library, Failed> {
    if lock.try_lock().is_ok() {
        let alone = Library::open(engines, folder).map_err(anyhow::Error::from)?;
        alone.forget_all_but(KEPT_MAX).map_err(anyhow::Error::from)?;
        lock.unlock()?;
    }
    lock.lock_shared()?;
    Ok(Library::open_beside(engines, folder).map_err(anyhow::Error::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_have_it_at_once_and_only_one_alone_tidies_it() -> anyhow::Result<()> {
        let home = tempfile::tempdir()?;
        let folder = home.path().join("interlock");
        let opened = || lock(&folder).ok_or_else(|| anyhow::anyhow!("no lock"));
        let engines = Engines::new(interlock_runtime::EngineOptions {
            executions_max: 1,
            guest_threads: 0,
            ..interlock_runtime::EngineOptions::default()
        })?;
        let open = |lock: &File| shared(&engines, &folder, lock).map_err(|why| anyhow::anyhow!("{why}"));
        let first = opened()?;
        let _library = open(&first)?;
        let unfinished = folder.join("components/x.1.new");
        fs::write(&unfinished, "")?;
        let second = opened()?;
        let _beside = open(&second)?;
        assert!(unfinished.exists(), "the first may be at it");
        drop((first, second));
        let third = opened()?;
        let _alone = open(&third)?;
        assert!(!unfinished.exists(), "nobody is at it");
        fs::write(home.path().join("file"), "")?;
        assert!(lock(&home.path().join("file")).is_none(), "no folder can be made there");
        Ok(())
    }
}
