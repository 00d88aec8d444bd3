//! The components of a data folder, and those of them that are ready to run.
//!
//! A component is a file named by its digest, synced before anybody names it. It is compiled once,
//! loaded when a step first needs it, and kept ready for as long as it is among the last used.

use crate::bindings::StepWithEverythingPre as StepPre;
use crate::cache::Cache;
use crate::check::{self, Checked, Inspection, Problem, check};
use crate::component;
use crate::engine::{Engines, Place};
use crate::files;
use crate::guest::Guest;
use crate::limits::{POOL_MEMORY_BYTES_MAX, PREPARED_MAX};
use crate::linkers::Linkers;
use interlock_kernel::doc::Digest;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// The components of one data folder. Clones are the same library.
#[derive(Clone)]
pub struct Library {
    shelves: Arc<Shelves>,
}

struct Shelves {
    engines: Engines,
    linkers: Linkers,
    components: PathBuf,
    cache: Cache,
    ready: Mutex<Ready>,
    /// Compiling uses every processor there is; two at once only make both late.
    turn: Semaphore,
}

/// A component that was added.
#[derive(Clone, Debug, Serialize)]
pub struct Added {
    /// Names it from now on.
    #[serde(serialize_with = "as_text")]
    pub digest: Digest,
    /// What it can do.
    pub inspection: Inspection,
    /// How long it took to compile and judge, in ms.
    pub compile_ms: u64,
}

/// Why there is no component.
#[derive(Debug)]
pub enum LibraryError {
    /// It cannot run here; all reasons.
    Unfit(Vec<Problem>),
    /// The data folder has none of this digest.
    Missing(Digest),
    /// The file of this digest holds something else.
    Corrupt(Digest),
    /// A file could not be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The host is stopping, or broke while it compiled.
    Interrupted(String),
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(problems) => {
                f.write_str("the component cannot run here")?;
                problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
            Self::Missing(digest) => write!(f, "expected component {digest} in the data folder, got none"),
            Self::Corrupt(digest) => write!(f, "expected component {digest}, got a file of another digest"),
            Self::File { path, .. } => write!(f, "{} cannot be read or written", path.display()),
            Self::Interrupted(why) => write!(f, "compiling was interrupted: {why}"),
        }
    }
}

impl std::error::Error for LibraryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::Unfit(_) | Self::Missing(_) | Self::Corrupt(_) | Self::Interrupted(_) => None,
        }
    }
}

impl LibraryError {
    /// A short stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unfit(_) => "component-unfit",
            Self::Missing(_) => "component-missing",
            Self::Corrupt(_) => "component-corrupt",
            Self::File { .. } => "component-unreadable",
            Self::Interrupted(_) => "component-interrupted",
        }
    }
}

/// A component with its imports resolved.
pub(crate) struct Prepared {
    pub(crate) pre: StepPre<Guest>,
    pub(crate) place: Place,
}

impl Library {
    /// Opens, or makes, the components of a data folder.
    ///
    /// # Errors
    /// [`LibraryError::File`]; [`LibraryError::Unfit`] if the host does not link its own interfaces.
    pub fn open(engines: &Engines, data_folder: &Path) -> Result<Self, LibraryError> {
        let linkers = Linkers::new(engines).map_err(|why| LibraryError::Unfit(vec![check::no_linker(&why)]))?;
        let components = data_folder.join("components");
        files::make_folder(&components).and_then(|()| files::tidy(&components)).map_err(at(&components))?;
        let compiled = data_folder.join("compiled");
        let cache = Cache::open(&compiled, engines).map_err(at(&compiled))?;
        Ok(Self {
            shelves: Arc::new(Shelves {
                engines: engines.clone(),
                linkers,
                components,
                cache,
                ready: Mutex::default(),
                turn: Semaphore::new(1),
            }),
        })
    }

    /// Takes in a component, or a core module with its component type. Once this returns it is on disk.
    ///
    /// The same bytes again are the same component.
    ///
    /// # Errors
    /// [`LibraryError::Unfit`] with every problem; [`LibraryError::File`].
    pub async fn add(&self, bytes: impl Into<Vec<u8>>) -> Result<Added, LibraryError> {
        let bytes = bytes.into();
        self.in_turn(move |shelves| shelves.add(&bytes)).await
    }

    /// What a component can do, without taking it in.
    ///
    /// # Errors
    /// [`LibraryError::Unfit`] with every problem.
    pub async fn inspect(&self, bytes: impl Into<Vec<u8>>) -> Result<Inspection, LibraryError> {
        let bytes = bytes.into();
        self.in_turn(move |shelves| shelves.check(&bytes).map(|checked| checked.inspection)).await
    }

    /// What the component of this digest can do.
    ///
    /// # Errors
    /// [`LibraryError`] if it is not there, or not what it was.
    pub async fn inspection(&self, digest: Digest) -> Result<Inspection, LibraryError> {
        self.in_turn(move |shelves| shelves.check(&shelves.read(digest)?).map(|checked| checked.inspection)).await
    }

    /// The bytes of the component of this digest.
    ///
    /// # Errors
    /// [`LibraryError`] if it is not there, or not what it was.
    pub async fn get(&self, digest: Digest) -> Result<Vec<u8>, LibraryError> {
        let shelves = Arc::clone(&self.shelves);
        joined(tokio::task::spawn_blocking(move || shelves.read(digest)).await)
    }

    /// Loads the component of this digest, so that its first attempt does not wait for that.
    ///
    /// # Errors
    /// [`LibraryError`] if it is not there, or not what it was.
    pub async fn warm(&self, digest: Digest) -> Result<(), LibraryError> {
        self.prepared(digest, 0).await.map(drop)
    }

    /// The component of this digest, ready for attempts of this much memory.
    pub(crate) async fn prepared(&self, digest: Digest, memory_bytes: u64) -> Result<Arc<Prepared>, LibraryError> {
        let place = if memory_bytes > POOL_MEMORY_BYTES_MAX { Place::OnDemand } else { Place::Pooled };
        if let Some(prepared) = self.shelves.ready().get(digest, place) {
            return Ok(prepared);
        }
        self.in_turn(move |shelves| shelves.prepare(digest, place)).await
    }

    /// The engines its components run on.
    pub(crate) fn engines(&self) -> &Engines {
        &self.shelves.engines
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shelves) -> Result<T, LibraryError> + Send + 'static,
    ) -> Result<T, LibraryError> {
        let shelves = Arc::clone(&self.shelves);
        let _turn = self.shelves.turn.acquire().await.map_err(|why| LibraryError::Interrupted(why.to_string()))?;
        joined(tokio::task::spawn_blocking(move || work(&shelves)).await)
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("components", &self.shelves.components).finish_non_exhaustive()
    }
}

impl Shelves {
    fn check(&self, bytes: &[u8]) -> Result<Checked, LibraryError> {
        let component = component::component(bytes).map_err(|problem| LibraryError::Unfit(vec![problem]))?;
        check(&self.engines, &self.linkers, &component).map_err(LibraryError::Unfit)
    }

    fn add(&self, bytes: &[u8]) -> Result<Added, LibraryError> {
        let began = self.engines.uptime();
        let component = component::component(bytes).map_err(|problem| LibraryError::Unfit(vec![problem]))?;
        let checked = check(&self.engines, &self.linkers, &component).map_err(LibraryError::Unfit)?;
        let compile_ms = u64::try_from(self.engines.uptime().saturating_sub(began).as_millis()).unwrap_or(u64::MAX);
        let Checked { digest, component: compiled, inspection } = checked;
        if self.read(digest).is_err() {
            files::place(&self.components, &file_name(digest), &component).map_err(at(&self.components))?;
        }
        self.cache.keep(digest, &compiled);
        drop(compiled);
        // Its first attempt does not wait for this.
        self.prepare(digest, Place::Pooled)?;
        Ok(Added { digest, inspection, compile_ms })
    }

    /// The file of this digest, which is what its name says.
    fn read(&self, digest: Digest) -> Result<Vec<u8>, LibraryError> {
        let path = self.components.join(file_name(digest));
        let bytes = fs::read(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => LibraryError::Missing(digest),
            _ => LibraryError::File { path, source },
        })?;
        if Digest::of(&[&bytes]) != digest {
            return Err(LibraryError::Corrupt(digest));
        }
        Ok(bytes)
    }

    fn prepare(&self, digest: Digest, wanted: Place) -> Result<Arc<Prepared>, LibraryError> {
        // Somebody else may have been faster.
        if let Some(prepared) = self.ready().get(digest, wanted) {
            return Ok(prepared);
        }
        let (place, component) = match self.cache.load(digest, &self.engines, wanted) {
            Some(loaded) => loaded,
            None => {
                let checked = check(&self.engines, &self.linkers, &self.read(digest)?).map_err(LibraryError::Unfit)?;
                self.cache.keep(digest, &checked.component);
                match self.cache.load(digest, &self.engines, wanted) {
                    Some(loaded) => loaded,
                    None => (checked.inspection.place, checked.component),
                }
            }
        };
        let unfit = |why: wasmtime::Error| LibraryError::Unfit(vec![check::no_linker(&why)]);
        component.initialize_copy_on_write_image().map_err(unfit)?;
        let pre = self.linkers.prepare(place, &component).map_err(unfit)?;
        let prepared = Arc::new(Prepared { pre, place });
        self.ready().put(digest, wanted, Arc::clone(&prepared));
        Ok(prepared)
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The components used last, by digest and the place that was wanted for them.
#[derive(Default)]
struct Ready {
    uses: u64,
    by_digest: HashMap<(Digest, Place), (u64, Arc<Prepared>)>,
}

impl Ready {
    fn get(&mut self, digest: Digest, place: Place) -> Option<Arc<Prepared>> {
        self.uses += 1;
        let (used, prepared) = self.by_digest.get_mut(&(digest, place))?;
        *used = self.uses;
        Some(Arc::clone(prepared))
    }

    fn put(&mut self, digest: Digest, place: Place, prepared: Arc<Prepared>) {
        if self.by_digest.len() >= PREPARED_MAX {
            let oldest = self.by_digest.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key);
            oldest.and_then(|key| self.by_digest.remove(&key));
        }
        self.uses += 1;
        self.by_digest.insert((digest, place), (self.uses, prepared));
    }
}

fn file_name(digest: Digest) -> String {
    format!("{digest}.wasm")
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> LibraryError {
    let path = path.to_owned();
    move |source| LibraryError::File { path, source }
}

fn joined<T>(done: Result<Result<T, LibraryError>, tokio::task::JoinError>) -> Result<T, LibraryError> {
    done.unwrap_or_else(|why| Err(LibraryError::Interrupted(why.to_string())))
}

fn as_text<S: serde::Serializer>(digest: &Digest, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(digest)
}
