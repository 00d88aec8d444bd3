//! The components of a data folder, and those of them that are ready to run.
//!
//! A component is a file named by its digest, synced before anybody names it. It is compiled once,
//! loaded when a step first needs it, and kept ready for as long as it is among the last used.

use crate::bindings::StepWithEverythingPre as StepPre;
use crate::cache::Cache;
use crate::check::{self, Checked, Inspection, Problem};
use crate::component;
use crate::engine::{Engines, Place};
use crate::files;
use crate::guest::Guest;
use crate::limits::{POOL_MEMORY_BYTES_MAX, PREPARED_MAX};
use crate::linkers::Linkers;
use crate::weights::Weights;
use interlock_kernel::doc::Digest;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use wasmtime::component::Component;

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
    weights: Weights,
    compiled: AtomicU64,
    loaded: AtomicU64,
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

/// What a library did so far, and has at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Components compiled: each once, as long as its machine code is kept.
    pub compiled: u64,
    /// Times that machine code was mapped from where it is kept.
    pub loaded: u64,
    /// Components that are ready to run now.
    pub ready: usize,
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
    pub(crate) digest: Digest,
    pub(crate) pre: StepPre<Guest>,
    pub(crate) place: Place,
}

impl Library {
    /// Opens, or makes, the components of a data folder that nobody else has open. What others left unfinished, and
    /// the machine code of other versions of the host, is removed.
    ///
    /// # Errors
    /// [`LibraryError::File`]; [`LibraryError::Unfit`] if the host does not link its own interfaces.
    pub fn open(engines: &Engines, data_folder: &Path) -> Result<Self, LibraryError> {
        let library = Self::open_beside(engines, data_folder)?;
        let Shelves { components, cache, .. } = &*library.shelves;
        files::tidy(components).map_err(at(components))?;
        cache.tidy().map_err(at(cache.folder()))?;
        Ok(library)
    }

    /// The same for a folder that other processes may have open, too: files are placed whole and never changed, so they
    /// only ever add to it.
    ///
    /// # Errors
    /// As [`Library::open`].
    pub fn open_beside(engines: &Engines, data_folder: &Path) -> Result<Self, LibraryError> {
        let linkers = Linkers::new(engines).map_err(|why| LibraryError::Unfit(vec![check::no_linker(&why)]))?;
        let components = data_folder.join("components");
        files::make_folder(&components).map_err(at(&components))?;
        let compiled = data_folder.join("compiled");
        let cache = Cache::open(&compiled, engines).map_err(at(&compiled))?;
        let weights = Weights::open(cache.folder()).map_err(at(&compiled))?;
        Ok(Self {
            shelves: Arc::new(Shelves {
                engines: engines.clone(),
                linkers,
                components,
                cache,
                ready: Mutex::default(),
                weights,
                compiled: AtomicU64::new(0),
                loaded: AtomicU64::new(0),
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
        self.in_turn(move |shelves| shelves.inspect(&bytes)).await
    }

    /// What the component of this digest can do.
    ///
    /// # Errors
    /// [`LibraryError`] if it is not there, or not what it was.
    pub async fn inspection(&self, digest: Digest) -> Result<Inspection, LibraryError> {
        self.in_turn(move |shelves| shelves.inspect(&shelves.read(digest)?)).await
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

    /// Removes components, and what was made of them, but for as many of those that came last: for a folder whose
    /// components nobody names any more.
    ///
    /// # Errors
    /// [`LibraryError::File`].
    pub fn forget_all_but(&self, kept: usize) -> Result<(), LibraryError> {
        let Shelves { components, cache, .. } = &*self.shelves;
        let mut all = Vec::new();
        for entry in fs::read_dir(components).map_err(at(components))? {
            let entry = entry.map_err(at(components))?;
            let name = entry.file_name();
            let digest = name.to_str().and_then(|name| name.strip_suffix(".wasm")?.parse::<Digest>().ok());
            if let Some(digest) = digest {
                let came = entry.metadata().and_then(|about| about.modified()).map_err(at(&entry.path()))?;
                all.push((came, digest, entry.path()));
            }
        }
        all.sort_by_key(|(came, ..)| std::cmp::Reverse(*came));
        for (_, digest, path) in all.into_iter().skip(kept) {
            fs::remove_file(&path).map_err(at(&path))?;
            cache.forget(digest).map_err(at(cache.folder()))?;
        }
        Ok(())
    }

    /// What it did so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let Shelves { compiled, loaded, .. } = &*self.shelves;
        let ready = self.shelves.ready().by_digest.len();
        Counts { compiled: compiled.load(Ordering::Relaxed), loaded: loaded.load(Ordering::Relaxed), ready }
    }

    /// What a run of this component is expected to take of the memory for guests, in bytes; 0 if it is not weighed.
    pub(crate) fn weight_bytes(&self, digest: Digest) -> u64 {
        self.shelves.weights.of(digest)
    }

    /// A run of this component took this much memory.
    pub(crate) fn took(&self, digest: Digest, bytes: u64) {
        if self.shelves.weights.at_least(digest, bytes) {
            let shelves = Arc::clone(&self.shelves);
            drop(tokio::task::spawn_blocking(move || shelves.weights.keep(digest)));
        }
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

/// Where machine code came from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    Kept,
    New,
}

impl Shelves {
    fn inspect(&self, bytes: &[u8]) -> Result<Inspection, LibraryError> {
        let component = component::component(bytes).map_err(|problem| LibraryError::Unfit(vec![problem]))?;
        self.check(&component).map(|(checked, _)| checked.inspection)
    }

    /// Judges a component, compiled only if its machine code is not kept.
    fn check(&self, bytes: &[u8]) -> Result<(Checked, Code), LibraryError> {
        let Some((place, component)) = self.load(Digest::of(&[bytes]), Place::Pooled) else {
            return Ok((self.compile(bytes)?, Code::New));
        };
        let checked = check::judged(&self.linkers, bytes, place, component).map_err(LibraryError::Unfit)?;
        Ok((checked, Code::Kept))
    }

    fn compile(&self, bytes: &[u8]) -> Result<Checked, LibraryError> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        check::check(&self.engines, &self.linkers, bytes).map_err(LibraryError::Unfit)
    }

    fn load(&self, digest: Digest, place: Place) -> Option<(Place, Component)> {
        let loaded = self.cache.load(digest, &self.engines, place)?;
        self.loaded.fetch_add(1, Ordering::Relaxed);
        Some(loaded)
    }

    fn add(&self, bytes: &[u8]) -> Result<Added, LibraryError> {
        let began = self.engines.uptime();
        let component = component::component(bytes).map_err(|problem| LibraryError::Unfit(vec![problem]))?;
        let (checked, code) = self.check(&component)?;
        let compile_ms = u64::try_from(self.engines.uptime().saturating_sub(began).as_millis()).unwrap_or(u64::MAX);
        let Checked { digest, component: compiled, inspection } = checked;
        if self.read(digest).is_err() {
            files::place(&self.components, &file_name(digest), &component).map_err(at(&self.components))?;
        }
        if code == Code::New {
            self.cache.keep(digest, &compiled);
        }
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
        let (place, component) = match self.load(digest, wanted) {
            Some(loaded) => loaded,
            None => {
                let checked = self.compile(&self.read(digest)?)?;
                self.cache.keep(digest, &checked.component);
                match self.load(digest, wanted) {
                    Some(loaded) => loaded,
                    None => (checked.inspection.place, checked.component),
                }
            }
        };
        let unfit = |why: wasmtime::Error| LibraryError::Unfit(vec![check::no_linker(&why)]);
        component.initialize_copy_on_write_image().map_err(unfit)?;
        let pre = self.linkers.prepare(place, &component).map_err(unfit)?;
        if self.weights.at_least(digest, check::declared_bytes(&component)) {
            self.weights.keep(digest);
        }
        let prepared = Arc::new(Prepared { digest, pre, place });
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
