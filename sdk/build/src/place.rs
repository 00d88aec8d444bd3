//! What a build leaves in a step's folder, below `.interlock/`: the SDK for editors and tools, the component, and
//! what it was built from. All of it can be deleted at any time.

use crate::BuildError;
use crate::embedded::{self, File};
use crate::{Language, Source};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder `.interlock` of a step's folder, held by this process alone.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    sdk: Sdk,
    /// Unlocked when it is closed.
    _turn: fs::File,
}

impl Place {
    /// Makes it, waits until no other process builds there, and puts the language's SDK in.
    pub(crate) fn take(source: &Source) -> Result<Self, BuildError> {
        let folder = fs::canonicalize(&source.folder).map_err(at(&source.folder))?.join(".interlock");
        fs::create_dir_all(folder.join("build")).map_err(at(&folder))?;
        let turn = folder.join(".lock");
        let turn = fs::File::create(&turn).and_then(|file| file.lock().map(|()| file)).map_err(at(&turn))?;
        write(&folder.join(".gitignore"), b"*\n")?;
        let place = Self { folder, sdk: sdk(source.language), _turn: turn };
        if source.language != Language::Rust {
            fill(&place.sdk(), place.sdk.files)?;
            fill(&place.wit(), embedded::WIT)?;
        }
        Ok(place)
    }

    /// The language's SDK.
    pub(crate) fn sdk(&self) -> PathBuf {
        self.folder.join(self.sdk.name)
    }

    /// The files in it that end so.
    pub(crate) fn sdk_files(&self, ending: &str) -> impl Iterator<Item = PathBuf> {
        let files = self.sdk.files.iter().map(|file| self.sdk().join(file.path));
        files.filter(move |file| file.extension().is_some_and(|end| end == ending))
    }

    /// What was compiled of the SDK, under the digest of all that it depends on.
    pub(crate) fn objects(&self, key: &str) -> PathBuf {
        self.folder.join("objects").join(key)
    }

    /// Puts compiled objects there, in the place of those from an earlier release.
    pub(crate) fn keep_objects(&self, new: &Path, kept: &Path) -> Result<(), BuildError> {
        let all = self.folder.join("objects");
        if all.exists() {
            fs::remove_dir_all(&all).map_err(at(&all))?;
        }
        fs::create_dir(&all).map_err(at(&all))?;
        fs::rename(new, kept).map_err(at(kept))
    }

    /// The contract.
    pub(crate) fn wit(&self) -> PathBuf {
        self.folder.join("wit")
    }

    /// The component of that name.
    pub(crate) fn component(&self, name: &str) -> PathBuf {
        self.folder.join("build").join(format!("{name}.wasm"))
    }

    /// What the component of that name was built from.
    pub(crate) fn record(&self, name: &str) -> PathBuf {
        self.folder.join("build").join(format!("{name}.json"))
    }

    /// An empty folder for a build to work in.
    pub(crate) fn work(&self) -> Result<Work, BuildError> {
        let work = self.folder.join("work");
        if work.exists() {
            fs::remove_dir_all(&work).map_err(at(&work))?;
        }
        fs::create_dir(&work).map_err(at(&work))?;
        Ok(Work(work))
    }
}

/// A folder that is removed once the build is over, whatever came of it.
pub(crate) struct Work(PathBuf);

impl Work {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // What stays is removed by the next build.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The SDK of a language, as it is put into the folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sdk {
    name: &'static str,
    pub(crate) files: &'static [File],
}

/// The SDK of a language; cargo brings the one for Rust.
pub(crate) fn sdk(language: Language) -> Sdk {
    match language {
        Language::Rust => Sdk { name: "rust", files: &[] },
        Language::JavaScript | Language::TypeScript => Sdk { name: "js", files: embedded::JS },
        Language::Python => Sdk { name: "python", files: embedded::PYTHON },
        Language::C => Sdk { name: "c", files: embedded::C },
    }
}

/// Makes a folder hold these files and no others; those that are as they should be keep their time.
fn fill(folder: &Path, files: &[File]) -> Result<(), BuildError> {
    clear(folder, folder, files)?;
    for file in files {
        let path = folder.join(file.path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(at(parent))?;
        write(&path, file.bytes)?;
    }
    Ok(())
}

/// Removes what an earlier release left.
fn clear(folder: &Path, root: &Path, files: &[File]) -> Result<(), BuildError> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        if path.is_dir() {
            clear(&path, root, files)?;
        } else if !files.iter().any(|file| path == root.join(file.path)) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
    }
    Ok(())
}

/// Puts the file there whole; one that holds the same bytes is left alone, with its time.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let mut whole = path.as_os_str().to_owned();
    whole.push(".new");
    let whole = PathBuf::from(whole);
    fs::write(&whole, bytes).map_err(at(&whole))?;
    fs::rename(&whole, path).map_err(at(path))
}

/// An error of the file system, with the file.
pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> BuildError {
    let path = path.to_owned();
    move |source| BuildError::File { path, source }
}
