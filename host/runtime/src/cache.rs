//! Machine code of components, kept between boots.
//!
//! It can always be made again: anything wrong with it means that it is. A file is named by the digest of
//! its component, in a folder named by everything else the code depends on; its own digest lies
//! beside it and is compared before it is mapped; so does what a run takes (`weights.rs`). Whoever may write to the data folder may run code
//! as this host: the folder is the host's alone.

use crate::engine::{Engines, Place};
use crate::files;
use interlock_kernel::doc::Digest;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use wasmtime::component::Component;

/// A folder of machine code.
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Opens it, or makes it.
    pub(crate) fn open(folder: &Path, engines: &Engines) -> io::Result<Self> {
        let folder = folder.join(engines.compatibility().to_hex().to_string());
        files::make_folder(&folder)?;
        Ok(Self { folder })
    }

    /// Removes what was not finished, and what other versions of the host left. The folder must be nobody else's now.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        files::tidy(&self.folder)?;
        let Some(all) = self.folder.parent() else { return Ok(()) };
        for entry in fs::read_dir(all)? {
            let entry = entry?;
            let path = entry.path();
            let is_other = entry.file_name().to_str().is_some_and(|name| name.parse::<Digest>().is_ok());
            if is_other
                && path != self.folder
                && let Err(why) = fs::remove_dir_all(&path)
            {
                tracing::warn!(folder = %path.display(), "machine code of another version stays: {why}");
            }
        }
        Ok(())
    }

    /// The folder of what this version of the host keeps.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps the code of a component. Failing to is no failure of anything else.
    pub(crate) fn keep(&self, digest: Digest, component: &Component) {
        let kept = component.serialize().map_err(|why| format!("{why:#}")).and_then(|code| {
            let sum = Digest::of(&[&code]).to_string();
            files::place(&self.folder, &sum_name(digest), sum.as_bytes())
                .and_then(|()| files::place(&self.folder, &code_name(digest), &code))
                .map_err(|why| why.to_string())
        });
        if let Err(why) = kept {
            tracing::warn!(component = %digest, "its machine code is not kept, the next boot compiles again: {why}");
        }
    }

    /// Removes everything about a component.
    pub(crate) fn forget(&self, digest: Digest) -> io::Result<()> {
        let own = digest.to_string();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(&own)) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// The component, from code that is known to be what was kept; none if there is none.
    pub(crate) fn load(&self, digest: Digest, engines: &Engines, place: Place) -> Option<(Place, Component)> {
        let path = self.folder.join(code_name(digest));
        let code = fs::read(&path).ok()?;
        let sum = fs::read_to_string(self.folder.join(sum_name(digest))).ok();
        if sum.and_then(|sum| sum.parse().ok()) != Some(Digest::of(&[&code])) {
            tracing::warn!(component = %digest, "its machine code is not what was kept: compiled again");
            return None;
        }
        drop(code);
        if place == Place::Pooled
            && engines.has_pool()
            && let Ok(component) = map(&path, engines, Place::Pooled)
        {
            return Some((Place::Pooled, component));
        }
        match map(&path, engines, Place::OnDemand) {
            Ok(component) => Some((Place::OnDemand, component)),
            Err(why) => {
                tracing::warn!(component = %digest, "its machine code does not load: compiled again: {why:#}");
                None
            }
        }
    }
}

fn code_name(digest: Digest) -> String {
    format!("{digest}.cwasm")
}

fn sum_name(digest: Digest) -> String {
    format!("{digest}.b3")
}

/// Maps machine code that this host wrote.
#[allow(
    unsafe_code,
    reason = "the one exception of this workspace: the code was made by this host from a component that it compiled, \
              in a folder only it may write to, and its digest has just been compared"
)]
fn map(path: &Path, engines: &Engines, place: Place) -> wasmtime::Result<Component> {
    // SAFETY: see the reason above. Files are replaced by renaming, never changed in place, so what is
    // mapped stays what it is.
    unsafe { Component::deserialize_file(engines.engine(place), path) }
}
