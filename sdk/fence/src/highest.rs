//! Where the layer keeps the highest token of each resource.

use crate::effect::check;
use crate::header::{Fence, Resource, Token};
use crate::problem::Refusal;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

/// The highest token that was accepted, per resource.
pub trait Highest: Send + Sync + 'static {
    /// Accepts the token and keeps it as the resource's highest, in one step; or refuses it and keeps what there is.
    ///
    /// The layer calls it while no other request of the resource is at work. An implementation that cannot tell the highest, or cannot keep a new one, has to refuse: one that forgets lets
    /// a late owner in.
    ///
    /// # Errors
    /// [`Stale`](Refusal::Stale), [`Full`](Refusal::Full), [`Unavailable`](Refusal::Unavailable).
    fn raise(&self, fence: &Fence) -> impl Future<Output = Result<(), Refusal>> + Send;
}

/// In memory: gone at the next start, when the first token that comes is accepted, be it late or not. For tests and
/// demonstrations, or where every write checks again in its own transaction.
#[derive(Debug)]
pub struct InMemory {
    resources_max: usize,
    highest: Mutex<HashMap<Resource, Token>>,
}

impl InMemory {
    /// None yet. With `resources_max` resources it is full: a further one is refused (503), none is forgotten.
    #[must_use]
    pub fn new(resources_max: usize) -> Self {
        Self { resources_max, highest: Mutex::default() }
    }
}

impl Highest for InMemory {
    async fn raise(&self, fence: &Fence) -> Result<(), Refusal> {
        let mut highest = self.highest.lock().unwrap_or_else(PoisonError::into_inner);
        check(highest.get(&fence.resource).copied(), fence)?;
        if highest.len() >= self.resources_max && !highest.contains_key(&fence.resource) {
            return Err(Refusal::Full { limit: "fence.resources", max: self.resources_max });
        }
        highest.insert(fence.resource.clone(), fence.token);
        Ok(())
    }
}

#[cfg(feature = "sqlite")]
pub use durable::InSqlite;

#[cfg(feature = "sqlite")]
mod durable {
    use super::Highest;
    use crate::header::Fence;
    use crate::problem::Refusal;
    use crate::sqlite::{self, Error};
    use rusqlite::Connection;
    use std::sync::{Arc, Mutex, PoisonError};

    /// In a SQLite file, and so still there at the next start. As large as the disk lets it grow.
    #[derive(Debug)]
    pub struct InSqlite {
        db: Arc<Mutex<Connection>>,
    }

    impl InSqlite {
        /// In this database, in the table of [`sqlite::create_tables`].
        ///
        /// # Errors
        /// The database's, while the table is made.
        pub fn new(db: Connection) -> Result<Self, Error> {
            // The work it guards is kept elsewhere: a token that a power cut takes back would let a late owner in.
            db.pragma_update(None, "synchronous", "FULL")?;
            sqlite::create_tables(&db)?;
            Ok(Self { db: Arc::new(Mutex::new(db)) })
        }
    }

    impl Highest for InSqlite {
        async fn raise(&self, fence: &Fence) -> Result<(), Refusal> {
            let (db, fence) = (self.db.clone(), fence.clone());
            let raised = tokio::task::spawn_blocking(move || {
                let mut db = db.lock().unwrap_or_else(PoisonError::into_inner);
                let tx = sqlite::begin(&mut db)?;
                sqlite::raise(&tx, &fence)?;
                Ok::<_, Error>(tx.commit()?)
            });
            match raised.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(Error::Refused(refusal))) => Err(refusal),
                Ok(Err(Error::Database(error))) => Err(Refusal::Unavailable { why: error.to_string() }),
                Ok(Err(error @ Error::Stored { .. })) => Err(Refusal::Unavailable { why: error.to_string() }),
                Err(error) => Err(Refusal::Unavailable { why: error.to_string() }),
            }
        }
    }
}
