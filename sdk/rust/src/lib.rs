//! For step authors: a step is one function on typed data that ends by asking for a transition.
//!
//! The host owns the entity's state. A step reads a snapshot of it, does its work and asks; the
//! host decides inside one transaction and answers. [`Done`] comes only from an accepted
//! transition, so a step that forgets to ask for one does not compile.
//!
//! ```
//! use interlock_sdk::{Done, Entity, Failure, steps, to}; // `interlock` under the name that guests give it
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Data {
//!     size: u32,
//!     target: u32,
//! }
//!
//! fn resize(pool: &Entity) -> Result<Done, Failure> {
//!     let mut data: Data = pool.data()?;
//!     if data.target > 64 {
//!         return Err(Failure::permanent("no pool has more than 64 nodes").code("too-large"));
//!     }
//!     data.size = data.target;
//!     Ok(pool.transition(to("ready").data(&data))?)
//! }
//!
//! steps!(resize);
//! # fn main() {}
//! ```
//!
//! In a manifest: `interlock = { package = "interlock-sdk", path = ".." }` and a `cdylib`.
//!
//! `?` turns a [`Rejection`] into a [`Failure`]: retryable becomes a retry, the rest is
//! permanent. A step that wants to decide for itself matches on the rejection first; after a
//! `conflict` it calls [`Entity::reload`] and decides again.
//!
//! A step runs at least once and its accepted transition happens exactly once: whatever it does
//! outside must bear repetition, and should carry [`fencing::token`] so that a receiver can
//! refuse a late owner. What several machines share is guarded by a [`Lease`], whose token goes along as well, or
//! stands in [`rows`] that the host changes for them.
//!
//! This crate knows no rule: what is allowed is decided by the host alone. Everything it asks
//! goes through the trait [`Host`], which is the component's imports in production and can be
//! anything under test. Read next: `entity.rs`, then `host.rs`; the contract is in `wit/`.

#![allow(clippy::result_large_err, reason = "a rejection says all it knows; asking costs far more than moving it")]

#[cfg(any(test, all(target_arch = "wasm32", not(target_feature = "atomics"), feature = "arena")))]
mod arena;
mod change;
mod effect;
mod entity;
mod event;
#[cfg(all(target_arch = "wasm32", feature = "log"))]
mod facade;
mod failure;
pub mod fencing;
mod filter;
mod host;
mod lease;
pub mod log;
mod rejection;
mod row;
pub mod rows;
mod steps;
mod timer;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod wasm;
#[cfg(target_arch = "wasm32")]
mod wasm_rows;

#[cfg(test)]
mod tests;

pub use change::{Change, Checkpoint, Condition, Draft, Move, Mutation, Status, Stay, Value};
pub use change::{checkpoint, from, to};
pub use effect::{Effect, EffectResult, Request};
pub use entity::{Done, Entity};
pub use event::{Event, EventKind};
pub use failure::Failure;
pub use filter::{Comparison, Field, Filter, Operator, field};
pub use host::Host;
#[doc(hidden)]
pub use lease::Held;
pub use lease::{HostLease, Lease};
pub use rejection::{Rejection, RejectionKind};
pub use steps::{Run, Step, run};
pub use timer::Timer;
