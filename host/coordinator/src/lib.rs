//! The only place where kernel meets store.
//!
//! The kernel decides and knows no bytes, no clock and no task; the store keeps bytes and knows no
//! entity. Here a command becomes one decision in one transaction (`submit`), what a decision asks
//! to look at is looked at once it is durable (`core`), and what nobody asked for is noticed: time
//! that has come (`scheduler`), attempts that wait for a slot (`dispatch`), attempts of an earlier
//! boot (`recover`), records that disagree (`reconcile`). It runs no step: an [`Executor`] does, and hands
//! it what [`contract`] allows.
//!
//! Start with [`Coordinator::open`]; write through [`Coordinator::submit`]; read on durable snapshots
//! through the other methods.
//!
//! ```
//! use interlock_coordinator::{Attempt, Coordinator, Ended, Executor, Options};
//! use interlock_kernel::command::Change;
//! use interlock_store::{Mem, SystemClock};
//! use std::sync::Arc;
//!
//! /// Every step of every machine asks for the state `done`.
//! struct Eager;
//!
//! impl Executor for Eager {
//!     fn start(&self, attempt: Attempt) {
//!         tokio::spawn(async move {
//!             if let Ok(done) = "done".parse() {
//!                 let _ = attempt.transition(done, Change::default()).await;
//!             }
//!             attempt.finish(Ended::Returned);
//!         });
//!     }
//! }
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let store = Arc::new(Mem::new(Arc::new(SystemClock::new())));
//! let host = Coordinator::open(store, Arc::new(Eager), Options::default()).await?;
//! assert!(host.health().ready);
//! assert!(host.entity(&"door/front".parse()?).await?.is_none());
//! host.stop(std::time::Duration::from_secs(1)).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alarm;
mod claims;
mod codec;
mod coming;
pub mod contract;
mod coordinator;
mod core;
mod counters;
mod deadline;
mod dispatch;
mod error;
mod executor;
mod gate;
mod leases;
mod outbox;
mod precheck;
mod probe;
mod queue;
mod read;
mod reconcile;
mod recover;
mod scheduler;
mod schedules;
mod standing;
mod submit;
mod supervise;
mod tables;
mod txn;
mod views;
mod wait;
mod watch;

#[cfg(test)]
mod tests;

pub use claims::{ClaimedRow, ClaimedRows};
pub use codec::{BadKey, decode as decode_key};
pub use coming::{Awaited, Coming};
pub use coordinator::{Coordinator, Health, OpenError, Options};
pub use counters::Stats;
pub use dispatch::{AttemptView, Phase};
pub use error::SubmitError;
pub use executor::{Attempt, Ended, Executor, HeldLease, Snapshot, Written};
pub use gate::{Closed, Gate};
pub use leases::LeaseView;
pub use outbox::{Courier, EffectView};
pub use probe::{Call, Probe, Reply};
pub use supervise::TaskHealth;
pub use tables::TableView;
pub use views::{Behind, EntityView, History, Listing, MachineView, PAGE_MAX, Page, entity_of};
pub use wait::Settled;
pub use watch::{Filter, Of, Watch, WatchError, Watched};
