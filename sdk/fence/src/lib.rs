//! The receiver's side of fencing: refuses late owners in the transaction that would write.
//!
//! Interlock delivers an effect at least once, as an HTTP request that says who writes (`Interlock-Fence-Resource`),
//! since when (`Interlock-Fencing-Token`, which only grows per resource) and which effect it is (`Idempotency-Key`,
//! the same over all deliveries). A sender that was paused, partitioned or replaced may still have a request on its
//! way. Only the receiver can refuse it, and only where it writes:
//!
//! ```
//! use axum::{Router, body::Bytes, extract::State, http::{HeaderMap, Method, Uri}, response::Response, routing::put};
//! use interlock_fence::{Admission, Answer, Effect, Problem, sqlite};
//! use rusqlite::Connection;
//! use std::sync::{Arc, Mutex, PoisonError};
//!
//! type Db = Arc<Mutex<Connection>>;
//!
//! async fn resize(State(db): State<Db>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
//!     let write = move || {
//!         let mut db = db.lock().unwrap_or_else(PoisonError::into_inner);
//!         let effect = Effect::read(&method, &uri, &headers, &body)?;
//!         let tx = sqlite::begin(&mut db)?;
//!         if let Admission::Replay(answer) = sqlite::admit(&tx, &effect)? {
//!             return Ok(answer); // it was done: the same answer again
//!         }
//!         // Nobody else writes this resource from here to the commit.
//!         tx.execute("UPDATE pools SET size = ?1", [String::from_utf8_lossy(&body)])?;
//!         let answer = Answer { status: 200, body: body.to_vec() };
//!         sqlite::remember(&tx, &effect, &answer)?;
//!         tx.commit()?;
//!         Ok::<_, sqlite::Error>(answer)
//!     };
//!     match tokio::task::spawn_blocking(write).await {
//!         Ok(Ok(answer)) => answer.response(),
//!         Ok(Err(error)) => Problem::from(error).response(), // 412 for a late owner; log what the database said first
//!         Err(panic) => std::panic::resume_unwind(panic.into_panic()),
//!     }
//! }
//!
//! # fn main() -> Result<(), sqlite::Error> {
//! let db = Connection::open_in_memory()?;
//! sqlite::create_tables(&db)?; // or put `sql::sqlite::TABLES` among your migrations
//! db.execute_batch("CREATE TABLE pools (size INTEGER NOT NULL); INSERT INTO pools VALUES (0)")?;
//! let db: Db = Arc::new(Mutex::new(db));
//! let router: Router = Router::new().route("/pools/gpu-7", put(resize)).with_state(db.clone());
//!
//! # use tower_service::Service as _;
//! # let send = |key: &str, token: u64, size: &'static str| {
//! #     let request = axum::http::Request::put("/pools/gpu-7")
//! #         .header("Idempotency-Key", key)
//! #         .header("Interlock-Fence-Resource", "pool/gpu-7")
//! #         .header("Interlock-Fencing-Token", token);
//! #     let request = request.body(axum::body::Body::from(size)).expect("a request");
//! #     let mut router = router.clone();
//! #     let runtime = tokio::runtime::Runtime::new().expect("a runtime");
//! #     runtime.block_on(async move { router.call(request).await.expect("infallible").status().as_u16() })
//! # };
//! // Key, token, body; and the status that comes back.
//! assert_eq!(send("e1", 5, "4"), 200);
//! assert_eq!(send("e2", 7, "8"), 200); // a new owner
//! assert_eq!(send("e3", 5, "2"), 412); // the one before it, late
//! assert_eq!(send("e1", 5, "4"), 200); // was done when its owner was in time: answered again, not done again
//! assert_eq!(send("e1", 5, "9"), 422); // not what this key was first used for
//! let size: i64 = db.lock().unwrap_or_else(PoisonError::into_inner).query_row("SELECT size FROM pools", (), |row| row.get(0))?;
//! assert_eq!(size, 8);
//! # Ok(())
//! # }
//! ```
//!
//! # Why in the same transaction
//!
//! A check followed by a write leaves a gap, and a process can be paused in it for as long as it likes: the old owner
//! passes the check; the new owner passes the check, writes and is answered; the old owner wakes and writes over it.
//! The highest token was right at every moment, and the update is lost. In one transaction there is no gap: the
//! statement that compares the token also takes the lock on the resource's row (in SQLite: on the file), and keeps it
//! until the write is committed with it. Whoever comes meanwhile waits, and is compared with what was committed. The
//! tests play both: eight owners lose seven updates outside of the transaction and none inside.
//!
//! Two rules follow. **Check first**: in PostgreSQL's default isolation, what was read before the check is of before
//! the wait. **Keep the fences**: a highest token that was deleted lets a late owner in; only answers may be
//! forgotten.
//!
//! # What there is
//!
//! | feature | gives |
//! |---|---|
//! | (none) | [`Effect::read`], [`check`], [`Problem`], and the statements in [`sql`] for any driver |
//! | `sqlite` | `sqlite`: the same in a `rusqlite` transaction |
//! | `postgres` | `postgres`: the same in a `tokio-postgres` transaction |
//! | `tower` | `layer`: one request of a resource at a time through the response, in this process; weaker, see there |
//!
//! This crate knows nothing of the host: it depends on no crate of it, and the tables are the receiver's own.

mod effect;
mod header;
#[cfg(feature = "tower")]
mod highest;
#[cfg(feature = "tower")]
mod lanes;
#[cfg(feature = "tower")]
pub mod layer;
#[cfg(feature = "postgres")]
pub mod postgres;
mod problem;
pub mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use effect::{Admission, Answer, Digest, Effect, Stale, check};
pub use header::{
    ATTEMPT, BadHeader, ENTITY, Fault, Fence, IDEMPOTENCY_KEY, IdempotencyKey, NUMBER_MAX, Origin, RESOURCE, Resource,
    TEXT_BYTES_MAX, TOKEN, Token, VERSION,
};
#[cfg(all(feature = "tower", feature = "sqlite"))]
pub use highest::InSqlite;
#[cfg(feature = "tower")]
pub use highest::{Highest, InMemory};
pub use problem::{Problem, Refusal};
