//! The receiver's side on the real thing: SQLite files, a PostgreSQL cluster of its own, `node` and `python3`.
//! Where updates must not be lost, the same plan without the fence loses them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by stopping")]

mod cluster;
mod headers;
mod layer;
mod postgres;
mod problems;
mod recipes;
mod requests;
mod sqlite;
mod tools;
