//! Seeded simulation and crash-point exhaustion of coordinator, kernel and store.
//!
//! [`run()`] plays one plan: the real coordinator and the real kernel on the real engine in memory, behind a
//! store that waits to be told (`gated`), with guests that are functions (`guests`), clients and operators
//! (`clients`, `tenants`), receivers of effects behind a network (`wire`, `receiver`) and a scheduler (`sim`) that draws from a seed what happens next and what goes wrong. Every
//! commit is checked as it is made (`commit`), every answer as it is heard (`ledger`); in the end the world
//! must come to rest by itself, and everything is looked at once more (`run`). The same plan is the same run,
//! byte for byte; a failing one is made small by [`shrink()`].
//!
//! [`points`] has a host die at every point of a few scenarios, on the embedded engine and in memory, and looks
//! at what is left.
//!
//! [`plant`] holds faults that the checks must find. This crate links no WebAssembly.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that cannot go on fails, with the place where it stood"))]

mod author;
mod boot;
mod calm;
mod cargo;
mod clients;
mod commit;
mod figures;
mod finding;
mod gated;
mod guests;
mod leases;
mod ledger;
mod log;
mod machines;
mod model;
mod moods;
mod outbox;
mod plan;
pub mod plant;
pub mod points;
#[cfg(test)]
mod races;
mod receiver;
mod report;
mod run;
mod shrink;
mod sim;
mod tenants;
mod watched;
mod weather;
mod whole;
mod wire;
mod world;

pub use figures::Figures;
pub use finding::Finding;
pub use plan::{Plan, Steps};
pub use report::Report;
pub use run::{Outcome, run};
pub use shrink::shrink;
