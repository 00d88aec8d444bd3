//! The check and the answers in a tokio-postgres transaction.
//!
//! Every function takes the transaction that does the work, because outside of it there is a gap between check and
//! write; the crate's front page says what gets lost in it. With the check first, every isolation level is safe.
//! `READ COMMITTED`, which is the default, lets who has to wait go on afterwards; the stricter ones end him with
//! `could not serialize access`, a [`Problem`] of status 503, and the sender asks again.

use crate::effect::{Admission, Answer, Effect};
use crate::header::Fence;
use crate::problem::{Problem, Refusal};
use crate::sql::{self, ANSWERED, HIGHEST, RAISE, REMEMBER};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Transaction};

/// Why a transaction must not go on.
pub type Error = sql::Error<tokio_postgres::Error>;

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.problem(),
            Error::Database(error) if passes(&error) => Self::database_busy(),
            Error::Database(_) | Error::Stored { .. } => Self::database_failed(),
        }
    }
}

/// Makes the two tables, where they are not there yet.
///
/// # Errors
/// The database's.
pub async fn create_tables(db: &impl GenericClient) -> Result<(), Error> {
    Ok(db.batch_execute(sql::postgres::TABLES).await?)
}

/// Whether to run an effect: not if it was done, not while it is being done, not for a late owner. Call it first in
/// the transaction.
///
/// What was done is answered again even to an owner that is late by now: it did happen, and its sender has to learn
/// so.
///
/// # Errors
/// [`Stale`](Refusal::Stale), [`KeyReused`](Refusal::KeyReused), [`InProgress`](Refusal::InProgress); the database's.
pub async fn admit(tx: &Transaction<'_>, effect: &Effect) -> Result<Admission, Error> {
    let key = effect.key.as_str();
    // Two statements: the second has to see what was committed until the lock was free.
    let claim = tx.query_typed_one(sql::postgres::CLAIM, &[(&key, Type::TEXT)]).await?;
    if !claim.try_get::<_, bool>(0)? {
        return Err(Refusal::InProgress { key: effect.key.clone() }.into());
    }
    if let Some(row) = tx.query_typed_opt(ANSWERED, &[(&key, Type::TEXT)]).await? {
        let (digest, status, body) = (row.try_get(0)?, row.try_get::<_, i32>(1)?, row.try_get(2)?);
        return Error::replayed(effect, digest, status.into(), body);
    }
    raise(tx, &effect.fence).await?;
    Ok(Admission::Run)
}

/// The fence alone: raises the resource's highest token to this one. Call it first in the transaction: it waits for
/// who writes the resource now, and what was read before the wait is of before the wait.
///
/// # Errors
/// [`Stale`](Refusal::Stale); the database's.
pub async fn raise(tx: &Transaction<'_>, fence: &Fence) -> Result<(), Error> {
    let (resource, token) = (fence.resource.as_str(), fence.token.to_sql());
    let accepted = tx.query_typed_opt(RAISE, &[(&resource, Type::TEXT), (&token, Type::INT8)]).await?;
    if accepted.is_some() {
        return Ok(());
    }
    let highest = tx.query_typed_one(HIGHEST, &[(&resource, Type::TEXT)]).await?;
    Err(Error::stale(fence, highest.try_get(0)?))
}

/// Remembers what is answered to an effect that [`admit`] let run. Then commit.
///
/// # Errors
/// The database's.
pub async fn remember(tx: &Transaction<'_>, effect: &Effect, answer: &Answer) -> Result<(), Error> {
    let (key, digest, status) = (effect.key.as_str(), effect.digest.as_bytes().as_slice(), i32::from(answer.status));
    let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] =
        [(&key, Type::TEXT), (&digest, Type::BYTEA), (&status, Type::INT4), (&answer.body, Type::BYTEA)];
    tx.execute_typed(REMEMBER, &values).await?;
    Ok(())
}

/// Deletes the answers that are older than this, which has to be longer than a sender asks again. How many went.
///
/// # Errors
/// The database's.
pub async fn forget(db: &impl GenericClient, older_than: Duration) -> Result<u64, Error> {
    Ok(db.execute_typed(sql::postgres::FORGET, &[(&older_than.as_secs_f64(), Type::FLOAT8)]).await?)
}

/// Whether the same transaction, begun anew, may well go through.
fn passes(error: &tokio_postgres::Error) -> bool {
    let again = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE];
    error.is_closed() || error.code().is_some_and(|code| again.contains(code))
}
