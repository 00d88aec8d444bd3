//! The check and the answers in a rusqlite transaction.
//!
//! Every function takes the transaction that does the work, because outside of it there is a gap between check and
//! write; the crate's front page says what gets lost in it.

use crate::effect::{Admission, Answer, Effect};
use crate::header::Fence;
use crate::problem::Problem;
use crate::sql::{self, ANSWERED, HIGHEST, RAISE, REMEMBER};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, ffi};
use std::time::Duration;

/// Why a transaction must not go on.
pub type Error = sql::Error<rusqlite::Error>;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.problem(),
            Error::Database(error) if is_busy(&error) => Self::database_busy(),
            Error::Database(_) | Error::Stored { .. } => Self::database_failed(),
        }
    }
}

/// Makes the two tables, where they are not there yet.
///
/// # Errors
/// The database's.
pub fn create_tables(db: &Connection) -> Result<(), Error> {
    Ok(db.execute_batch(sql::sqlite::TABLES)?)
}

/// Opens a transaction that is the one writer from its start (`BEGIN IMMEDIATE`).
///
/// A deferred one is as safe and fails later: when it wants to write after another has, it has to begin anew.
///
/// # Errors
/// The database's: busy, when another writer is longer than the connection's `busy_timeout`.
pub fn begin(db: &mut Connection) -> Result<Transaction<'_>, Error> {
    Ok(db.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

/// Whether to run an effect: not if it was done, not for a late owner. Call it first in the transaction.
///
/// What was done is answered again even to an owner that is late by now: it did happen, and its sender has to learn
/// so.
///
/// # Errors
/// [`Stale`](crate::Refusal::Stale), [`KeyReused`](crate::Refusal::KeyReused); the database's.
pub fn admit(tx: &Transaction<'_>, effect: &Effect) -> Result<Admission, Error> {
    let answered = tx.query_row(ANSWERED, [effect.key.as_str()], |row| {
        Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?))
    });
    if let Some((digest, status, body)) = answered.optional()? {
        return Error::replayed(effect, &digest, status, body);
    }
    raise(tx, &effect.fence)?;
    Ok(Admission::Run)
}

/// The fence alone: raises the resource's highest token to this one. Call it first in the transaction.
///
/// # Errors
/// [`Stale`](crate::Refusal::Stale); the database's.
pub fn raise(tx: &Transaction<'_>, fence: &Fence) -> Result<(), Error> {
    let (resource, token) = (fence.resource.as_str(), fence.token.to_sql());
    let accepted = tx.query_row(RAISE, (resource, token), |row| row.get::<_, i64>(0)).optional()?;
    if accepted.is_some() {
        return Ok(());
    }
    Err(Error::stale(fence, tx.query_row(HIGHEST, [resource], |row| row.get(0))?))
}

/// Remembers what is answered to an effect that [`admit`] let run. Then commit.
///
/// # Errors
/// The database's.
pub fn remember(tx: &Transaction<'_>, effect: &Effect, answer: &Answer) -> Result<(), Error> {
    let Effect { key, digest, .. } = effect;
    tx.execute(REMEMBER, (key.as_str(), digest.as_bytes(), answer.status, &answer.body))?;
    Ok(())
}

/// Deletes the answers that are older than this, which has to be longer than a sender asks again. How many went.
///
/// # Errors
/// The database's.
pub fn forget(db: &Connection, older_than: Duration) -> Result<usize, Error> {
    let seconds = i64::try_from(older_than.as_secs()).unwrap_or(i64::MAX);
    Ok(db.execute(sql::sqlite::FORGET, [seconds])?)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.code);
    matches!(code, Some(ffi::ErrorCode::DatabaseBusy | ffi::ErrorCode::DatabaseLocked))
}
