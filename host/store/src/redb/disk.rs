//! Where the engine's file lives: a locked data directory, or whatever a test plugs in.
//!
//! The directory holds `LOCK`, `store.redb` and `RESERVE`, a few MiB that are freed when the disk
//! is full, because opening the file again may have to write.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::redb::backends::FileBackend;
use ::redb::{BackendError, StorageBackend};

use crate::clock::Clock;
use crate::error::StoreError;

const LOCK_FILE: &str = "LOCK";
const STORE_FILE: &str = "store.redb";
/// The store until its first commit.
const NEW_STORE_FILE: &str = "store.redb.new";
const RESERVE_FILE: &str = "RESERVE";

/// Enough for the pages and headers that a repair and one small commit write.
const RESERVE_BYTES: usize = 4 * 1024 * 1024;

/// Supplies the engine's file, again after each I/O error.
pub trait Disk: Send + Sync + 'static {
    /// Opens the file as it was left; an empty one as long as [`Disk::created`] was not called.
    ///
    /// # Errors
    /// What the file system says.
    fn open(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// The new file holds a store from now on, durably. A crash before this leaves a torn file,
    /// which nobody could tell from a damaged one by looking.
    ///
    /// # Errors
    /// What the file system says.
    fn created(&self) -> io::Result<()>;

    /// Gives back the space kept for a full disk.
    ///
    /// # Errors
    /// What the file system says.
    fn free_reserve(&self) -> io::Result<()> {
        Ok(())
    }

    /// Takes that space again; success means that there is room to write.
    ///
    /// # Errors
    /// What the file system says.
    fn fill_reserve(&self) -> io::Result<()> {
        Ok(())
    }

    /// The name used in messages.
    fn name(&self) -> PathBuf {
        PathBuf::from("the given backend")
    }
}

/// A data directory, locked for as long as this lives.
#[derive(Debug)]
pub(super) struct Directory {
    dir: PathBuf,
    _lock: File,
}

impl Directory {
    pub(super) fn lock(dir: &Path) -> Result<Directory, StoreError> {
        let failed = |doing: &str, error: &io::Error| StoreError::io(format!("{doing} {}", dir.display()), error);
        fs::create_dir_all(dir).map_err(|e| failed("create the data directory", &e))?;
        if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_dir(parent).map_err(|e| failed("sync the parent of", &e))?;
        }
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(dir.join(LOCK_FILE))
            .map_err(|e| failed("open the lock file in", &e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let read = lock.read_to_string(&mut pid);
                return Err(StoreError::AlreadyOpen {
                    path: dir.to_path_buf(),
                    pid: read.ok().and_then(|_| pid.trim().parse().ok()),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock", &error)),
        }
        // The pid only serves the message above; on a full disk the lock holds without it.
        let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        sync_dir(dir).map_err(|e| failed("sync", &e))?;
        Ok(Directory { dir: dir.to_path_buf(), _lock: lock })
    }
}

impl Disk for Directory {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let store = self.dir.join(STORE_FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = if fs::exists(&store)? {
            let file = options.open(store)?;
            if file.metadata()?.len() == 0 {
                // redb would take it for a new one.
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{STORE_FILE} is empty")));
            }
            file
        } else if fs::exists(self.dir.join(RESERVE_FILE))? {
            // The reserve comes after the store. A new one would give out numbers again that were given out.
            let why = format!("{STORE_FILE} is gone and {RESERVE_FILE} is there: put it back, or empty the directory");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        } else {
            let new = self.dir.join(NEW_STORE_FILE);
            options.create(true).truncate(true).open(new)?
        };
        let backend = FileBackend::new(file).map_err(io::Error::other)?;
        Ok(Box::new(backend))
    }

    fn created(&self) -> io::Result<()> {
        let new = self.dir.join(NEW_STORE_FILE);
        fs::rename(new, self.dir.join(STORE_FILE))?;
        sync_dir(&self.dir)
    }

    fn free_reserve(&self) -> io::Result<()> {
        match fs::remove_file(self.dir.join(RESERVE_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync_dir(&self.dir),
        }
    }

    fn fill_reserve(&self) -> io::Result<()> {
        let path = self.dir.join(RESERVE_FILE);
        if fs::metadata(&path).is_ok_and(|meta| meta.len() == RESERVE_BYTES as u64) {
            return Ok(());
        }
        let filled = File::create(&path).and_then(|mut file| {
            file.write_all(&vec![0; RESERVE_BYTES])?;
            file.sync_all()
        });
        if filled.is_err() {
            // A part of the reserve would only make the disk fuller.
            let _ = fs::remove_file(&path);
        }
        filled.and_then(|()| sync_dir(&self.dir))
    }

    fn name(&self) -> PathBuf {
        self.dir.clone()
    }
}

/// Makes the directory's entries durable.
fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// What the file was asked to do.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) reads: AtomicU64,
    pub(super) read_bytes: AtomicU64,
    pub(super) written_bytes: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) sync_nanos: AtomicU64,
    pub(super) last_sync_nanos: AtomicU64,
}

/// Counts on the way through.
#[derive(Debug)]
pub(super) struct Metered {
    pub(super) inner: Box<dyn StorageBackend>,
    pub(super) meter: Arc<Meter>,
    pub(super) clock: Arc<dyn Clock>,
}

impl StorageBackend for Metered {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.meter.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = out.len() as u64;
        self.meter.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let began = self.clock.monotonic();
        let result = self.inner.sync_data();
        let nanos = nanos(self.clock.monotonic().saturating_sub(began));
        self.meter.syncs.fetch_add(1, Ordering::Relaxed);
        self.meter.sync_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.meter.last_sync_nanos.store(nanos, Ordering::Relaxed);
        result
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let bytes = data.len() as u64;
        self.meter.written_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    // Locks are the inner backend's: the defaults of the trait would silently drop them.

    fn try_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(from, to)
    }

    fn try_lock_shared_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(from, to)
    }

    fn lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(from, to)
    }

    fn lock_shared_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(from, to)
    }

    fn unlock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(from, to)
    }

    fn query_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(from, to)
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
