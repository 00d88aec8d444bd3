//! Ordered keys and serializable transactions on a durable store; knows no entity.
//!
//! A job reads and writes through [`Txn`] and is settled once its fate is durable; a query reads
//! a durable snapshot; the change feed tells watchers what was committed. Two engines, one
//! contract: [`Mem`] is the executable specification, [`Redb`] is the embedded default. Every
//! clause of the contract is a test in `tests/conformance` and runs on both.
//!
//! What a refusal read is durable before it is answered: a job that wrote nothing is settled
//! after the batch it shares, and a batch that wrote nothing at all answers at once.
//!
//! ```
//! use interlock_store::{Abort, Lane, ManualClock, Mem, Txn, query, transact};
//! use std::sync::Arc;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let store = Mem::new(Arc::new(ManualClock::new()));
//! let (left, _seq) = transact(&store, Lane::Admission, |txn: &mut dyn Txn| {
//!     let stock = txn.get(b"stock")?.map_or(3, |value| value[0]);
//!     if stock == 0 {
//!         return Err(Abort::Refused("sold out"));
//!     }
//!     txn.put(b"stock", [stock - 1].into())?;
//!     txn.note(b"sold one".as_slice().into())?;
//!     Ok(stock - 1)
//! })
//! .await?;
//! assert_eq!(left, 2);
//!
//! let stock = query(&store, |at| at.get(b"stock")).await?;
//! assert_eq!(stock.as_deref(), Some([2].as_slice()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod error;
mod limits;
mod store;
mod transact;

mod feed;
mod meta;
mod overlay;

mod batch;
mod mem;
mod redb;

pub use crate::redb::{Disk, Options, Redb, Stats};
pub use clock::{BoxFuture, Clock, ManualClock, SystemClock};
pub use error::StoreError;
pub use feed::{Change, Changes, ChangesError, FEED_KEPT_ENTRIES, FEED_KEPT_MS, NotAPosition, Position};
pub use limits::{
    KEY_BYTES, LIMITS, Limit, QUEUE_ADMISSIONS, QUEUE_COMPLETIONS, QUEUE_QUERIES, SCAN_ENTRIES, TXN_BYTES, TXN_WRITES,
    VALUE_BYTES,
};
pub use mem::{Fault, Mem, MemImage};
pub use store::{
    Bytes, Condition, Each, Fate, Full, Halt, Health, Job, Lane, Order, Query, Read, Seq, Span, Stamp, Store, Txn,
    USER_KEYS_FROM,
};
pub use transact::{Abort, TransactError, query, transact};
