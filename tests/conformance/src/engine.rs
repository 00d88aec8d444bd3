//! The engines, seen alike: open, crash, stall and fail.

use std::sync::{Arc, Weak, mpsc};

use interlock_store::{Fault, Job, Lane, ManualClock, Mem, MemImage, Options, Redb, Store, StoreError};

use crate::disk::SimDisk;
use crate::jobs::Probe;

/// Pages that fit the caches of test stores; small enough to be evicted.
const CACHE_BYTES: usize = 8 * 1024 * 1024;
/// Openings that fail after an indeterminate commit: more than the engine waits for.
const FAILED_OPENS: u64 = 6;

/// A place where one store lives, and what can happen to it.
pub trait Engine: Send + 'static {
    /// A place nothing was stored in.
    fn new() -> Self;

    /// The clock its stores are opened with.
    fn clock(&self) -> &ManualClock;

    /// Opens the store.
    ///
    /// # Errors
    /// What the engine says.
    fn open(&mut self) -> Result<Arc<dyn Store>, StoreError>;

    /// Ends the open store as a power cut does.
    fn crash(&mut self, store: Arc<dyn Store>);

    /// Commits stall from now on.
    fn hold(&self);

    /// Waits until one does.
    fn wait_until_held(&self);

    /// They go on.
    fn release(&self);

    /// Makes the next commit fail.
    fn fail_next(&self, fault: Fault);

    /// Marks the place as written by a release with format `version`; the store is closed.
    fn set_format(&mut self, version: u32);

    /// Submits jobs such that an engine that forms batches runs them in one. Commit something
    /// before: the first number of a session costs a commit of its own.
    fn submit_together(&self, store: &dyn Store, jobs: Vec<Box<dyn Job>>);
}

fn submit_all(store: &dyn Store, jobs: Vec<Box<dyn Job>>) {
    for job in jobs {
        if let Err(full) = store.submit(Lane::Completion, job) {
            panic!("expected room in the queue, got {full:?}");
        }
    }
}

/// [`Mem`] on its image.
pub struct MemEngine {
    clock: ManualClock,
    image: MemImage,
    /// Not a handle: dropping the caller's must end the store.
    open: Weak<Mem>,
}

impl MemEngine {
    fn mem(&self) -> Arc<Mem> {
        self.open.upgrade().expect("an open store")
    }
}

impl Engine for MemEngine {
    fn new() -> MemEngine {
        MemEngine { clock: ManualClock::new(), image: MemImage::new(), open: Weak::new() }
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn open(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        let mem = Mem::open(self.image.clone(), Arc::new(self.clock.clone()))?;
        let mem = Arc::new(mem);
        self.open = Arc::downgrade(&mem);
        Ok(mem)
    }

    fn crash(&mut self, _store: Arc<dyn Store>) {
        self.mem().crash();
    }

    fn hold(&self) {
        self.mem().hold();
    }

    fn wait_until_held(&self) {
        // Submitting runs the job: whoever asks has already submitted.
    }

    fn release(&self) {
        self.mem().release();
    }

    fn fail_next(&self, fault: Fault) {
        self.mem().fail_next(fault);
    }

    fn set_format(&mut self, version: u32) {
        self.image.set_format(version);
    }

    fn submit_together(&self, store: &dyn Store, jobs: Vec<Box<dyn Job>>) {
        submit_all(store, jobs);
    }
}

/// [`Redb`] on a simulated disk.
pub struct RedbEngine {
    clock: ManualClock,
    disk: SimDisk,
}

/// Options for stores on a simulated disk.
pub fn redb_options(clock: &ManualClock) -> Options {
    Options { clock: Arc::new(clock.clone()), cache_bytes: CACHE_BYTES, ..Options::new("unused") }
}

impl RedbEngine {
    /// The disk it writes to.
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// Opens the store as what it is.
    ///
    /// # Errors
    /// What the engine says.
    pub fn open_redb(&mut self) -> Result<Arc<Redb>, StoreError> {
        Redb::open_backend(self.disk.clone(), redb_options(&self.clock)).map(Arc::new)
    }
}

impl Engine for RedbEngine {
    fn new() -> RedbEngine {
        RedbEngine { clock: ManualClock::new(), disk: SimDisk::new() }
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn open(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        let store: Arc<dyn Store> = self.open_redb()?;
        Ok(store)
    }

    fn crash(&mut self, store: Arc<dyn Store>) {
        let seed = self.disk.operations();
        let wreck = self.disk.wreck();
        self.disk.die();
        drop(store);
        self.disk = wreck.after_power_cut(seed);
    }

    fn hold(&self) {
        self.disk.hold();
    }

    fn wait_until_held(&self) {
        self.disk.wait_until_held();
    }

    fn release(&self) {
        self.disk.release();
    }

    fn fail_next(&self, fault: Fault) {
        match fault {
            Fault::Unavailable => self.disk.fail_writes(1),
            Fault::Indeterminate { kept } => {
                self.disk.fail_next_sync(kept);
                self.disk.fail_opens(FAILED_OPENS);
            }
        }
    }

    fn set_format(&mut self, version: u32) {
        use redb::{Database, TableDefinition};
        let db = Database::builder().create_with_backend(self.disk.handle()).expect("the file opens");
        let table: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("kv");
        let txn = db.begin_write().expect("a transaction");
        let mut format = b"ilkstore".to_vec();
        format.extend_from_slice(&version.to_be_bytes());
        txn.open_table(table)
            .expect("the table")
            .insert([0_u8].as_slice(), format.as_slice())
            .expect("the record is written");
        txn.commit().expect("a commit");
    }

    /// Keeps the writer busy with a job until all others are queued behind it.
    fn submit_together(&self, store: &dyn Store, jobs: Vec<Box<dyn Job>>) {
        let (running, is_running) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let (settled, _) = mpsc::channel();
        let plug = Probe::boxed(usize::MAX, &settled, move |_| {
            // Both ends outlive this call; an error only means that the test failed meanwhile.
            let _ = running.send(());
            let _ = gone.recv();
            Ok(())
        });
        submit_all(store, vec![plug]);
        is_running.recv().expect("the plug runs");
        submit_all(store, jobs);
        drop(go);
    }
}
