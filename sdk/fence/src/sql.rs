//! The statements, for any driver. `sqlite.rs` and `postgres.rs` run them through rusqlite and tokio-postgres.
//!
//! All of them belong into the transaction that does the work, and [`RAISE`] comes before anything is read that the
//! work depends on: from there to the commit nobody else passes it for the same resource.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use failure::Error;

/// `$1` resource, `$2` token. One row: the token was accepted, and the resource is locked until the transaction ends.
/// No row: a higher one was accepted before; [`HIGHEST`] says which.
pub const RAISE: &str = "\
INSERT INTO interlock_fences AS fence (resource, token) VALUES ($1, $2) \
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token \
RETURNING token";

/// `$1` resource. The highest token that was accepted.
pub const HIGHEST: &str = "SELECT token FROM interlock_fences WHERE resource = $1";

/// `$1` key. Digest, status and body of the answer, if it was given.
pub const ANSWERED: &str = "SELECT digest, status, body FROM interlock_answers WHERE key = $1";

/// `$1` key, `$2` digest, `$3` status, `$4` body.
pub const REMEMBER: &str = "INSERT INTO interlock_answers (key, digest, status, body) VALUES ($1, $2, $3, $4)";

/// What only PostgreSQL understands.
pub mod postgres {
    /// The tables, to be put among the receiver's own migrations.
    pub const TABLES: &str = include_str!("../sql/postgres.sql");

    /// `$1` key. False: another open transaction works on this effect. Held until the transaction ends.
    ///
    /// An advisory lock, because the row of an effect in work is not there for others to see; the constant ("Interloc") keeps the
    /// key apart from locks of the receiver's own.
    pub const CLAIM: &str = "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 5291294591267139427))";

    /// `$1` seconds, as double precision. Deletes the answers that are older.
    pub const FORGET: &str = "DELETE FROM interlock_answers WHERE at <= now() - make_interval(secs => $1)";
}

/// What only SQLite (3.38 or later) understands. It has one writer at a time, so it needs no claim: who holds the
/// transaction works on the effect.
pub mod sqlite {
    /// The tables, to be put among the receiver's own migrations.
    pub const TABLES: &str = include_str!("../sql/sqlite.sql");

    /// `$1` whole seconds. Deletes the answers that are older.
    pub const FORGET: &str = "DELETE FROM interlock_answers WHERE at <= unixepoch() - $1";
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod failure {
    use crate::effect::{Admission, Answer, Effect, Stale, replay};
    use crate::header::{BadHeader, Fence, Token};
    use crate::problem::Refusal;
    use std::fmt;

    /// Why a transaction must not go on: drop it, which rolls it back, and answer with the
    /// [`Problem`](crate::Problem) that this turns into.
    #[derive(Debug)]
    pub enum Error<E> {
        /// A decided no.
        Refused(Refusal),
        /// The database failed.
        Database(E),
        /// A number is stored that the tables' own checks rule out.
        Stored {
            /// Which.
            what: &'static str,
            /// The number.
            got: i64,
        },
    }

    impl<E> fmt::Display for Error<E> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Refused(refusal) => refusal.fmt(f),
                Self::Database(_) => f.write_str("the database failed"),
                Self::Stored { what, got } => write!(f, "stored {what}: expected one that fits, got {got}"),
            }
        }
    }

    impl<E: std::error::Error + 'static> std::error::Error for Error<E> {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            match self {
                Self::Database(error) => Some(error),
                Self::Refused(_) | Self::Stored { .. } => None,
            }
        }
    }

    impl<E> From<Refusal> for Error<E> {
        fn from(refusal: Refusal) -> Self {
            Self::Refused(refusal)
        }
    }

    impl<E> From<BadHeader> for Error<E> {
        fn from(bad: BadHeader) -> Self {
            Self::Refused(bad.into())
        }
    }

    impl<E> Error<E> {
        /// What [`HIGHEST`](super::HIGHEST) says after [`RAISE`](super::RAISE) gave no row.
        pub(crate) fn stale(fence: &Fence, highest: i64) -> Self {
            match u64::try_from(highest).ok().and_then(Token::new) {
                Some(expected) => {
                    Refusal::from(Stale { resource: fence.resource.clone(), expected, got: fence.token }).into()
                }
                None => Self::Stored { what: "token", got: highest },
            }
        }

        /// What [`ANSWERED`](super::ANSWERED) says, for this delivery.
        pub(crate) fn replayed(effect: &Effect, digest: &[u8], status: i64, body: Vec<u8>) -> Result<Admission, Self> {
            let status = u16::try_from(status).map_err(|_| Self::Stored { what: "status", got: status })?;
            Ok(replay(effect, digest, Answer { status, body })?)
        }
    }
}
