//! Watching: the history entries of an entity, a machine, or all, in commit order, from a position on.

use crate::codec;
use crate::core::Core;
use crate::read::look;
use crate::txn::TxnView;
use interlock_kernel::ids::{EntityId, LeaseName, MachineName, TableName};
use interlock_kernel::record::{Entry, Key, LeaseEntry, Record, RowEntry};
use interlock_kernel::view::{Stop, View};
use interlock_store::{Change, Changes, ChangesError, Position, StoreError};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Whose changes to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// Everybody's.
    #[default]
    All,
    /// A machine's entities.
    Machine(MachineName),
    /// One entity's.
    Entity(EntityId),
    /// What becomes of one lease.
    Lease(LeaseName),
    /// What becomes of one table's rows.
    Table(TableName),
}

/// An entry as it was committed.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Where it is in the stream: watch from behind it by this.
    pub position: Position,
    /// What it is an entry of.
    pub of: Of,
}

/// What a watched entry is of.
#[derive(Clone, Debug)]
pub enum Of {
    /// An entity's history.
    Entity {
        /// The entity.
        entity: EntityId,
        /// Its incarnation.
        incarnation: u64,
        /// The entry.
        entry: Box<Entry>,
    },
    /// What became of a lease.
    Lease {
        /// The lease.
        lease: LeaseName,
        /// The entry.
        entry: Box<LeaseEntry>,
    },
    /// What became of rows.
    Rows {
        /// Their table.
        table: TableName,
        /// The entry.
        entry: Box<RowEntry>,
    },
}

/// Why a watch ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchError {
    /// The position fell out of what the store keeps: list again and watch from there.
    Gone {
        /// The oldest position there is.
        oldest: Position,
    },
    /// The position is of another store, or of one that was restored since.
    Ahead {
        /// The newest position there is.
        newest: Position,
    },
    /// What kept the store from reading; [`StoreError::Closed`] at its end.
    Store(StoreError),
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { oldest } => write!(f, "expected a position from {oldest} on, got an older one: list again"),
            Self::Ahead { newest } => write!(f, "expected a position up to {newest}, got a later one: list again"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WatchError {}

/// A running watch. Dropping it is enough to end it.
pub struct Watch {
    core: Arc<Core>,
    filter: Filter,
    changes: Changes,
    /// Taken from the feed, not handed out yet: a dropped `next` loses nothing.
    pending: VecDeque<(Change, Key)>,
    position: Position,
}

impl Watch {
    pub(crate) fn new(core: Arc<Core>, filter: Filter, after: Position) -> Self {
        let changes = core.store().changes(after);
        Self { core, filter, changes, pending: VecDeque::new(), position: after }
    }

    /// Everything up to here was handed out or did not pass the filter.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// The next entries, at least one; waits for them. Cancel safe. Entries whose retention is over are
    /// left out.
    ///
    /// # Errors
    /// [`WatchError`], after which the watch is over.
    pub async fn next(&mut self) -> Result<Vec<Watched>, WatchError> {
        loop {
            if self.pending.is_empty() {
                let changes = self.changes.next().await.map_err(|error| match error {
                    ChangesError::Gone { oldest } => WatchError::Gone { oldest },
                    ChangesError::Ahead { newest } => WatchError::Ahead { newest },
                    ChangesError::Store(error) => WatchError::Store(error),
                })?;
                for change in changes {
                    let key = codec::decode(&change.payload).map_err(|why| {
                        WatchError::Store(StoreError::Corrupt {
                            expected: "a note that names a history entry".to_owned(),
                            got: why.to_string(),
                        })
                    })?;
                    if self.filter.takes(&key) {
                        self.pending.push_back((change, key));
                    }
                }
            }
            let keys: Vec<Key> = self.pending.iter().map(|(_, key)| key.clone()).collect();
            let entries = match keys.is_empty() {
                true => Vec::new(),
                false => look(&self.core, move |view, _| read_all(view, &keys)).await.map_err(WatchError::Store)?,
            };
            self.position = self.changes.position();
            let watched: Vec<Watched> = self
                .pending
                .drain(..)
                .zip(entries)
                .filter_map(|((change, key), record)| {
                    let of = match (key, record?) {
                        (Key::History(entity, incarnation, _), Record::Entry(entry)) => {
                            Of::Entity { entity, incarnation: incarnation.get(), entry }
                        }
                        (Key::LeaseEntry(lease, _), Record::LeaseEntry(entry)) => Of::Lease { lease, entry },
                        (Key::RowEntry(table, _), Record::RowEntry(entry)) => Of::Rows { table, entry },
                        _ => return None,
                    };
                    Some(Watched { position: change.position, of })
                })
                .collect();
            if !watched.is_empty() {
                return Ok(watched);
            }
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("filter", &self.filter).field("position", &self.position).finish_non_exhaustive()
    }
}

impl Filter {
    fn takes(&self, key: &Key) -> bool {
        match (self, key) {
            (Self::All, Key::History(..) | Key::LeaseEntry(..) | Key::RowEntry(..)) => true,
            (Self::Machine(machine), Key::History(entity, ..)) => entity.machine == *machine,
            (Self::Entity(wanted), Key::History(entity, ..)) => entity == wanted,
            (Self::Lease(wanted), Key::LeaseEntry(lease, _)) => lease == wanted,
            (Self::Table(wanted), Key::RowEntry(table, _)) => table == wanted,
            _ => false,
        }
    }
}

fn read_all(view: &TxnView<'_>, keys: &[Key]) -> Result<Vec<Option<Record>>, Stop> {
    keys.iter().map(|key| view.get(key)).collect()
}
