//! The kernel, proved by tables: one helper ([`world::World`]), machines built in Rust, transcripts.
//! `UPDATE_EXPECT=1` rewrites what a transcript expects.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by stopping")]

mod audit;
mod boots;
mod build;
mod clocks;
mod codes;
mod dedup;
mod deploy;
mod desired;
mod docs;
mod due;
mod effect_leases;
mod effects;
mod flagship;
mod format;
mod guards;
mod ladders;
mod lease_audit;
mod lease_bounds;
mod lease_dispatch;
mod lease_lines;
mod lease_waits;
mod leases;
mod lifecycle;
mod limits;
mod lost;
mod mutations;
mod needs;
mod outbox;
mod retries;
mod rows;
mod rows_back;
mod rows_bounds;
mod rows_far;
mod rows_ops;
mod rows_query;
mod rows_tend;
mod rows_walk;
mod schedules;
mod scopes;
mod semantics;
mod sentences;
mod show;
mod staged;
mod theorems;
mod timers;
mod twice;
mod unlock;
mod world;
