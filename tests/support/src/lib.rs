//! What the tests share. Guests are built by a function and not by a build script, so that a
//! `cargo check` of the workspace starts no second cargo.
//!
//! ```no_run
//! let component = interlock_support::guest("noop")?;
//! let machine = interlock_support::guest_folder("noop").join("machine.toml");
//! # anyhow::Ok(())
//! ```

mod guests;

pub use guests::{guest, guest_folder, hostile_wat};
