//! Files that are whole or not there: written beside, synced, renamed, the folder synced.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::path::Path;

/// How the name of a file ends that is not whole yet.
const PARTIAL: &str = "new";

/// A folder that only the host's own user may look into.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Removes what a process that was killed had not placed yet. The folder must be nobody else's now.
pub(crate) fn tidy(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == PARTIAL) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Puts a file in a folder. Once this returns it is there after a crash, too.
pub(crate) fn place(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let whole = folder.join(name);
    let partial = folder.join(format!("{name}.{}.{PARTIAL}", std::process::id()));
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let placed = written.and_then(|()| fs::rename(&partial, &whole));
    if placed.is_err() {
        // What could not be placed is of no use, and the first error is the one to tell.
        drop(fs::remove_file(&partial));
    }
    placed?;
    sync_folder(folder)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
