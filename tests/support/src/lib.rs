//! What the tests share. Guests are built by a function and not by a build script, so that a
//! `cargo check` of the workspace starts no second cargo.
//!
//! ```no_run
//! let component = interlock_support::guest("noop")?;
//! let machine = interlock_support::guest_folder("noop").join("machine.toml");
//! # anyhow::Ok(())
//! ```
//!
//! With the feature `host`: a daemon in a process of its own (`host.rs`) and the requests that tests make of it
//! (`api.rs`), also while it is killed again and again (`kills.rs`), and in every weather (`weather.rs`).

#[cfg(feature = "host")]
pub mod api;
mod guests;
#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "host")]
pub mod kills;
#[cfg(feature = "host")]
pub mod weather;

pub use guests::{Then, guest, guest_folder, hostile_wat, step_wat};
