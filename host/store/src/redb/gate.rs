//! The open database, or why there is none.
//!
//! redb latches on any I/O error: every later read and write of that handle fails until the file
//! is opened again. The gate lets readers take snapshots of whichever handle is open, makes them
//! wait (bounded) while the writer opens a new one, and turns redb's errors into ours.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redb::{Database, Durability, ReadOnlyTable, ReadTransaction, ReadableDatabase, TableDefinition};

use crate::error::StoreError;
use crate::overlay::{Base, Ends, Layer};
use crate::store::{Bytes, Condition, Each, Order};

const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("kv");

/// What redb said, reduced to what the engine must tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) why: String,
    pub(super) kind: FailureKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The handle is of no use any more; opening the file again may help.
    Latched,
    /// The same, and there is no room left.
    Full,
    /// The bytes are wrong; opening again will not help.
    Corrupt,
    /// Another handle holds the file.
    Held,
}

impl Failure {
    pub(super) fn of(error: impl Into<::redb::Error>) -> Failure {
        let error = error.into();
        let kind = match &error {
            ::redb::Error::Io(error) => match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                    FailureKind::Full
                }
                // An end that comes too soon: the file was cut.
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => FailureKind::Corrupt,
                _ => FailureKind::Latched,
            },
            ::redb::Error::Corrupted(_)
            | ::redb::Error::UpgradeRequired(_)
            | ::redb::Error::TableTypeMismatch { .. } => FailureKind::Corrupt,
            ::redb::Error::DatabaseAlreadyOpen => FailureKind::Held,
            _ => FailureKind::Latched,
        };
        Failure { why: error.to_string(), kind }
    }

    pub(super) fn of_io(error: io::Error) -> Failure {
        Failure::of(::redb::StorageError::Io(error))
    }

    pub(super) fn into_store_error(self) -> StoreError {
        match self.kind {
            FailureKind::Corrupt => {
                StoreError::Corrupt { expected: "a readable store file".to_string(), got: self.why }
            }
            FailureKind::Latched | FailureKind::Full | FailureKind::Held => StoreError::Unavailable { why: self.why },
        }
    }
}

/// Writes one sorted layer and makes it durable.
pub(super) fn write(db: &Database, layer: &Layer) -> Result<(), Failure> {
    let mut txn = db.begin_write().map_err(Failure::of)?;
    txn.set_durability(Durability::Immediate)
        .map_err(|error| Failure { why: error.to_string(), kind: FailureKind::Latched })?;
    {
        let mut table = txn.open_table(TABLE).map_err(Failure::of)?;
        for (key, value) in layer {
            match value {
                Some(value) => table.insert(&**key, &**value).map_err(Failure::of)?,
                None => table.remove(&**key).map_err(Failure::of)?,
            };
        }
    }
    txn.commit().map_err(Failure::of)
}

/// One consistent durable state of one open handle.
pub(super) struct Snapshot {
    table: Option<ReadOnlyTable<&'static [u8], &'static [u8]>>,
    _txn: ReadTransaction,
    pub(super) generation: u64,
    latched: RefCell<Option<Failure>>,
}

impl Snapshot {
    pub(super) fn of(db: &Database, generation: u64) -> Result<Snapshot, Failure> {
        Snapshot::from(db.begin_read().map_err(Failure::of)?, generation)
    }

    fn from(txn: ReadTransaction, generation: u64) -> Result<Snapshot, Failure> {
        let table = match txn.open_table(TABLE) {
            Ok(table) => Some(table),
            // Only before the very first commit.
            Err(::redb::TableError::TableDoesNotExist(_)) => None,
            Err(error) => return Err(Failure::of(error)),
        };
        Ok(Snapshot { table, _txn: txn, generation, latched: RefCell::new(None) })
    }

    /// Why the handle must be opened again, if a read found out.
    pub(super) fn latched(&self) -> Option<Failure> {
        self.latched.borrow().clone()
    }

    fn failed(&self, error: ::redb::StorageError) -> StoreError {
        let failure = Failure::of(error);
        if failure.kind != FailureKind::Corrupt {
            self.latched.borrow_mut().get_or_insert(failure.clone());
        }
        failure.into_store_error()
    }
}

impl Base for Snapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let Some(table) = &self.table else {
            return Ok(None);
        };
        let found = table.get(key).map_err(|error| self.failed(error))?;
        Ok(found.map(|value| value.value().into()))
    }

    fn walk(&self, ends: Ends<'_>, order: Order, each: Each<'_>) -> Result<(), StoreError> {
        let Some(table) = &self.table else {
            return Ok(());
        };
        let entries = table.range::<&[u8]>(ends).map_err(|error| self.failed(error))?;
        for entry in order.walk(entries) {
            let (key, value) = entry.map_err(|error| self.failed(error))?;
            if each(key.value(), value.value()).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Why there is no snapshot.
pub(super) enum NoSnapshot {
    /// The handle of that generation failed.
    Failed(u64, Failure),
    /// There is no handle.
    Refused(StoreError),
}

/// Shared by the writer, which opens and shuts it, and the readers.
pub(super) struct Gate {
    state: Mutex<State>,
    opened: Condvar,
}

struct State {
    db: Option<Arc<Database>>,
    condition: Condition,
    generation: u64,
}

impl Gate {
    pub(super) fn open(db: Database) -> Gate {
        Gate {
            state: Mutex::new(State { db: Some(Arc::new(db)), condition: Condition::Ready, generation: 1 }),
            opened: Condvar::new(),
        }
    }

    pub(super) fn condition(&self) -> Condition {
        self.lock().condition.clone()
    }

    /// There is room again; whatever else is the matter stays.
    pub(super) fn writable(&self) {
        let mut state = self.lock();
        if matches!(state.condition, Condition::ReadOnly { .. }) {
            state.condition = Condition::Ready;
        }
    }

    /// The handle that a reader found failed and that still is the current one.
    pub(super) fn suspicion(&self) -> Option<(u64, Failure)> {
        let state = self.lock();
        match &state.condition {
            Condition::Reopening { why, .. } => {
                Some((state.generation, Failure { why: why.clone(), kind: FailureKind::Latched }))
            }
            Condition::Ready | Condition::ReadOnly { .. } | Condition::Closed => None,
        }
    }

    /// A snapshot of the open handle; waits up to `wait` for one.
    pub(super) fn snapshot(&self, wait: Duration) -> Result<Snapshot, NoSnapshot> {
        let state = self.lock();
        let (state, _) = self
            .opened
            .wait_timeout_while(state, wait, |state| matches!(state.condition, Condition::Reopening { .. }))
            .unwrap_or_else(PoisonError::into_inner);
        let (begun, generation) = match (&state.condition, &state.db) {
            (Condition::Ready | Condition::ReadOnly { .. }, Some(db)) => (db.begin_read(), state.generation),
            (Condition::Reopening { why, .. }, _) => {
                return Err(NoSnapshot::Refused(StoreError::Unavailable {
                    why: format!("the store is being opened again after: {why}"),
                }));
            }
            (Condition::Closed, _) | (_, None) => {
                return Err(NoSnapshot::Refused(StoreError::Closed));
            }
        };
        // Opening the table may read from the disk: not under the lock.
        drop(state);
        begun
            .map_err(Failure::of)
            .and_then(|txn| Snapshot::from(txn, generation))
            .map_err(|failure| NoSnapshot::Failed(generation, failure))
    }

    /// The open handle, for the writer. It must be given up before [`Gate::shut`].
    pub(super) fn database(&self) -> Option<(Arc<Database>, u64)> {
        let state = self.lock();
        match state.condition {
            Condition::Ready | Condition::ReadOnly { .. } => Some((state.db.clone()?, state.generation)),
            Condition::Reopening { .. } | Condition::Closed => None,
        }
    }

    /// Makes new readers wait because the handle of `generation` failed. False if that handle
    /// was replaced already.
    pub(super) fn suspect(&self, generation: u64, since_ms: u64, why: &str) -> bool {
        let mut state = self.lock();
        if state.generation != generation || state.condition == Condition::Closed {
            return false;
        }
        if !matches!(state.condition, Condition::Reopening { .. }) {
            state.condition = Condition::Reopening { since_ms, why: why.to_string() };
        }
        true
    }

    /// Closes the handle and leaves `condition`. Snapshots still in use fail from now on.
    pub(super) fn shut(&self, condition: Condition) -> Result<(), Failure> {
        let db = {
            let mut state = self.lock();
            state.condition = condition;
            state.db.take()
        };
        self.opened.notify_all();
        match db.and_then(Arc::into_inner) {
            Some(db) => db.close().map_err(Failure::of),
            None => Ok(()),
        }
    }

    pub(super) fn reopen(&self, db: Database, condition: Condition) {
        let mut state = self.lock();
        state.db = Some(Arc::new(db));
        state.condition = condition;
        state.generation += 1;
        drop(state);
        self.opened.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_room_by_any_name_is_a_full_disk() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge] {
            assert_eq!(Failure::of_io(io::Error::from(kind)).kind, FailureKind::Full, "{kind}");
        }
    }
}
