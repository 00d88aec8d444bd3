//! A disk in memory that stalls, fails and loses what was not synced.
//!
//! It keeps a durable image and the writes since the last sync. A power cut keeps a seeded random
//! part of those, torn at sector borders; a killed process keeps them all, as a page cache does.

use std::fmt;
use std::io;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use interlock_store::Disk;
use redb::{BackendError, StorageBackend};

use crate::random::Random;

/// What a disk writes as one piece.
const SECTOR: usize = 512;
/// What freeing the reserve gives back on a full disk.
const RESERVE: u64 = 4 * 1024 * 1024;

/// Called once, when the disk dies.
type OnDeath = Box<dyn FnOnce() + Send>;

/// The disk. Clones are the same disk.
#[derive(Clone, Default)]
pub struct SimDisk {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    durable: Vec<u8>,
    current: Vec<u8>,
    unsynced: Vec<Change>,
    /// Writes, length changes, syncs and the renaming of a new file so far.
    operations: u64,
    crash_at: Option<u64>,
    /// What the disk was before the operation it died with.
    before_death: Option<Before>,
    dead: bool,
    on_death: Option<OnDeath>,
    held: bool,
    waiting_syncs: usize,
    fail_writes: u64,
    writes_until_failure: Option<u64>,
    fail_reads: u64,
    fail_syncs: Option<bool>,
    /// Syncs are answered and not done.
    lies: bool,
    fail_opens: u64,
    /// Bytes that still fit; `None` is endless.
    room: Option<u64>,
    reserve_held: bool,
    locked: bool,
    created: bool,
}

enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

#[derive(Clone)]
struct Before {
    current: Vec<u8>,
    created: bool,
}

/// What was left on a disk that lost its power or its process.
#[derive(Clone)]
pub struct CrashedDisk {
    current: Vec<u8>,
    durable: Vec<u8>,
    created: bool,
    before: Option<Before>,
    unsynced: Arc<Vec<Change>>,
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    /// An empty disk that says that it has synced, and has not.
    pub fn lying() -> SimDisk {
        let disk = SimDisk::new();
        disk.lock().lies = true;
        disk
    }

    fn holding(image: Vec<u8>, created: bool) -> SimDisk {
        let disk = SimDisk::new();
        {
            let mut state = disk.lock();
            state.current = image.clone();
            state.durable = image;
            state.created = created;
        }
        disk
    }

    /// Writes, length changes, syncs and the renaming of a new file so far.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Dies with operation number `operation`, and says so.
    pub fn crash_at(&self, operation: u64, on_death: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.crash_at = Some(operation);
        state.on_death = Some(Box::new(on_death));
    }

    /// Dies now: every later operation fails.
    pub fn die(&self) {
        self.lock().dead = true;
        self.shared.changed.notify_all();
    }

    /// What is left; the disk stays as it is.
    pub fn wreck(&self) -> CrashedDisk {
        let mut state = self.lock();
        state.dead = true;
        CrashedDisk {
            current: state.current.clone(),
            durable: state.durable.clone(),
            created: state.created,
            before: state.before_death.clone(),
            unsynced: Arc::new(std::mem::take(&mut state.unsynced)),
        }
    }

    /// Whether another disk would be found as this one is.
    pub fn holds_the_same(&self, other: &SimDisk) -> bool {
        if Arc::ptr_eq(&self.shared, &other.shared) {
            return true;
        }
        let (one, two) = (self.lock(), other.lock());
        one.created == two.created && one.current == two.current
    }

    /// Syncs wait from now on.
    pub fn hold(&self) {
        self.lock().held = true;
    }

    /// Waits until a sync waits.
    pub fn wait_until_held(&self) {
        let state = self.lock();
        drop(
            self.shared
                .changed
                .wait_while(state, |state| state.waiting_syncs == 0)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Syncs go on.
    pub fn release(&self) {
        self.lock().held = false;
        self.shared.changed.notify_all();
    }

    /// The next `count` writes fail.
    pub fn fail_writes(&self, count: u64) {
        let mut state = self.lock();
        state.fail_writes = count;
        state.writes_until_failure = None;
    }

    /// The write or length change behind the next `count` ones fails.
    pub fn fail_write_after(&self, count: u64) {
        let mut state = self.lock();
        state.writes_until_failure = Some(count);
    }

    /// The next `count` reads fail.
    pub fn fail_reads(&self, count: u64) {
        self.lock().fail_reads = count;
    }

    /// The next sync fails; what it should have made durable is `kept` or lost.
    pub fn fail_next_sync(&self, kept: bool) {
        self.lock().fail_syncs = Some(kept);
    }

    /// The next `count` attempts to open fail.
    pub fn fail_opens(&self, count: u64) {
        self.lock().fail_opens = count;
    }

    /// Bytes that can still be written; `None` for endless room.
    pub fn set_room(&self, room: Option<u64>) {
        self.lock().room = room;
    }

    /// The disk as redb wants it.
    pub fn handle(&self) -> impl StorageBackend + use<> {
        Handle { disk: self.clone(), locked: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CrashedDisk {
    /// After a power cut: a part of the unsynced writes, chosen by `seed`, torn at sectors.
    pub fn after_power_cut(&self, seed: u64) -> SimDisk {
        let mut random = Random::new(seed);
        let mut image = self.durable.clone();
        // Some seeds keep nearly all, some nearly nothing: both ends break in their own ways.
        let kept_of_8 = random.below(9);
        for change in self.unsynced.iter() {
            match change {
                Change::Length(length) => {
                    if random.below(8) < kept_of_8 {
                        image.resize(*length, 0);
                    }
                }
                Change::Write(offset, data) => {
                    for (n, sector) in data.chunks(SECTOR).enumerate() {
                        if random.below(8) < kept_of_8 {
                            write_at(&mut image, offset + n * SECTOR, sector);
                        }
                    }
                }
            }
        }
        SimDisk::holding(image, self.created)
    }

    /// After `kill -9`: every write reached the page cache.
    pub fn after_kill(&self) -> SimDisk {
        SimDisk::holding(self.current.clone(), self.created)
    }

    /// After a `kill -9` just before the operation that the disk died with.
    pub fn before_last(&self) -> SimDisk {
        match &self.before {
            Some(before) => SimDisk::holding(before.current.clone(), before.created),
            None => self.after_kill(),
        }
    }

    /// The same, and a part of that operation, chosen by `seed`, if it wrote something: some of its first sectors.
    pub fn torn_last(&self, seed: u64) -> SimDisk {
        let (Some(before), Some(Change::Write(offset, data))) = (&self.before, self.unsynced.last()) else {
            return self.before_last();
        };
        let mut image = before.current.clone();
        write_at(&mut image, *offset, head(data, &mut Random::new(seed)));
        SimDisk::holding(image, before.created)
    }

    /// After a power cut that kept nothing but what was synced.
    pub fn synced_only(&self) -> SimDisk {
        SimDisk::holding(self.durable.clone(), self.created)
    }

    /// After a power cut that kept the unsynced writes in their order up to one of them, chosen by `seed`, which
    /// is torn.
    pub fn after_ordered_power_cut(&self, seed: u64) -> SimDisk {
        let mut random = Random::new(seed);
        let mut image = self.durable.clone();
        let whole = random.below(self.unsynced.len() as u64) as usize;
        for (n, change) in self.unsynced.iter().enumerate().take(whole + 1) {
            match change {
                Change::Length(length) if n < whole => image.resize(*length, 0),
                Change::Length(_) => {}
                Change::Write(offset, data) if n < whole => write_at(&mut image, *offset, data),
                Change::Write(offset, data) => write_at(&mut image, *offset, head(data, &mut random)),
            }
        }
        SimDisk::holding(image, self.created)
    }
}

/// Some of the first sectors of a write, not all of them.
fn head<'a>(data: &'a [u8], random: &mut Random) -> &'a [u8] {
    let sectors = data.len().div_ceil(SECTOR);
    &data[..random.below(sectors as u64) as usize * SECTOR]
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("SimDisk")
            .field("bytes", &state.current.len())
            .field("operations", &state.operations)
            .field("dead", &state.dead)
            .finish_non_exhaustive()
    }
}

impl Disk for SimDisk {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let mut state = self.lock();
        state.alive()?;
        if state.fail_opens > 0 {
            state.fail_opens -= 1;
            self.shared.changed.notify_all();
            return Err(io::Error::other("planted: the disk does not answer"));
        }
        if !state.created {
            state.current.clear();
            state.durable.clear();
            state.unsynced.clear();
        }
        drop(state);
        Ok(Box::new(self.handle()))
    }

    fn created(&self) -> io::Result<()> {
        let mut state = self.lock();
        let dies = state.operate()?;
        state.created = true;
        if dies { state.alive() } else { Ok(()) }
    }

    fn free_reserve(&self) -> io::Result<()> {
        let mut state = self.lock();
        if std::mem::take(&mut state.reserve_held)
            && let Some(room) = &mut state.room
        {
            *room += RESERVE;
        }
        Ok(())
    }

    fn fill_reserve(&self) -> io::Result<()> {
        let mut state = self.lock();
        if !state.reserve_held {
            state.take_room(RESERVE)?;
            state.reserve_held = true;
        }
        Ok(())
    }

    fn name(&self) -> PathBuf {
        PathBuf::from("the simulated disk")
    }
}

impl State {
    fn alive(&self) -> io::Result<()> {
        if self.dead {
            return Err(io::Error::other("planted: the disk is dead"));
        }
        Ok(())
    }

    /// Counts an operation; true if the disk dies with it.
    fn operate(&mut self) -> io::Result<bool> {
        self.alive()?;
        self.operations += 1;
        if self.crash_at != Some(self.operations) {
            return Ok(false);
        }
        self.before_death = Some(Before { current: self.current.clone(), created: self.created });
        self.dead = true;
        if let Some(tell) = self.on_death.take() {
            tell();
        }
        Ok(true)
    }

    fn may_write(&mut self) -> io::Result<()> {
        if self.writes_until_failure == Some(0) {
            self.writes_until_failure = None;
            self.fail_writes += 1;
        }
        if let Some(left) = &mut self.writes_until_failure {
            *left -= 1;
        }
        if self.fail_writes > 0 {
            self.fail_writes -= 1;
            return Err(io::Error::other("planted: the write failed"));
        }
        Ok(())
    }

    fn take_room(&mut self, bytes: u64) -> io::Result<()> {
        match &mut self.room {
            Some(room) if *room < bytes => Err(io::ErrorKind::StorageFull.into()),
            Some(room) => {
                *room -= bytes;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn sync(&mut self) {
        if self.lies {
            return;
        }
        self.unsynced.clear();
        self.durable.clone_from(&self.current);
    }
}

/// One opening of the disk.
#[derive(Debug)]
struct Handle {
    disk: SimDisk,
    locked: AtomicBool,
}

impl StorageBackend for Handle {
    fn len(&self) -> io::Result<u64> {
        let state = self.disk.lock();
        state.alive()?;
        Ok(state.current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.alive()?;
        if state.fail_reads > 0 {
            state.fail_reads -= 1;
            return Err(io::Error::other("planted: a bad sector"));
        }
        let from = offset as usize;
        match state.current.get(from..from + out.len()) {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        let dies = state.operate()?;
        state.may_write()?;
        state.current.resize(len as usize, 0);
        state.unsynced.push(Change::Length(len as usize));
        if dies { state.alive() } else { Ok(()) }
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.lock();
        if state.held {
            state.waiting_syncs += 1;
            self.disk.shared.changed.notify_all();
            state = self
                .disk
                .shared
                .changed
                .wait_while(state, |state| state.held && !state.dead)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting_syncs -= 1;
        }
        if state.operate()? {
            // Power is lost during the sync: what it reached is for the wreck to decide.
            return state.alive();
        }
        match state.fail_syncs.take() {
            None => state.sync(),
            Some(kept) => {
                if kept {
                    state.sync();
                } else {
                    state.unsynced.clear();
                    state.current = state.durable.clone();
                }
                return Err(io::Error::other("planted: the sync failed"));
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        let dies = state.operate()?;
        state.may_write()?;
        state.take_room(data.len() as u64)?;
        write_at(&mut state.current, offset as usize, data);
        let change = Change::Write(offset as usize, data.to_vec());
        state.unsynced.push(change);
        if dies { state.alive() } else { Ok(()) }
    }

    fn close(&self) -> io::Result<()> {
        if self.locked.swap(false, Ordering::AcqRel) {
            self.disk.lock().locked = false;
        }
        Ok(())
    }

    /// The whole disk can be locked, no part of it.
    fn try_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
        let whole = matches!(from, Bound::Unbounded | Bound::Included(0)) && to == Bound::Unbounded;
        if !whole {
            return Err(BackendError::Unsupported);
        }
        let mut state = self.disk.lock();
        if state.locked {
            return Ok(false);
        }
        state.locked = true;
        self.locked.store(true, Ordering::Release);
        Ok(true)
    }

    fn unlock_range(&self, _from: Bound<u64>, _to: Bound<u64>) -> Result<(), BackendError> {
        Ok(self.close()?)
    }
}

fn write_at(image: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset..end].copy_from_slice(data);
}
