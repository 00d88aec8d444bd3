//! The product from outside: a real daemon in a process of its own, a real file, real components, and
//! `kill -9` where a test says so. What needs a clock that moves by hand runs on the coordinator in this
//! process (`world.rs`).
//!
//! Read first: `host.rs` (the daemon and its requests), `ledger.rs` (what a history must add up to).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails, with the place where it stood")]

mod host;
mod ledger;
mod machines;
mod raw;
mod sink;
mod world;

mod build;
mod deploys;
mod effect_kills;
mod effect_limits;
mod effects;
mod events;
mod examples;
mod faults;
mod health;
mod json;
mod kills;
mod leases;
mod native;
mod pool;
mod recovery;
mod refusals;
mod restarts;
mod rows;
mod steps;
mod watches;
mod weathers;
mod why;
