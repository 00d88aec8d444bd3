//! Runs one attempt of a step as a sandboxed WebAssembly component.
//!
//! The coordinator says what runs and judges what it asks for; this crate runs it: wasmtime, limits,
//! imports, and the library of components. It opens no transaction, and decides nothing that a
//! restart would have to remember.
//!
//! ```no_run
//! use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let engines = Engines::new(EngineOptions::default())?;
//! let library = Library::open(&engines, "data".as_ref())?;
//! let added = library.add(std::fs::read("resource.wasm")?).await?;
//! println!("{} can {:?}", added.digest, added.inspection.can);
//! let executor = Wasm::new(library);
//! # drop(executor);
//! # Ok(())
//! # }
//! ```
//!
//! Read next: `attempt.rs` for one run, `host/` for what guests import, `check.rs` for what is refused at deploy, `wasi.rs` for what WASI means here.

mod attempt;
mod bindings;
mod cache;
mod caps;
mod check;
mod component;
mod engine;
mod files;
mod fit;
mod guest;
mod host;
mod library;
pub mod limits;
mod linkers;
mod logs;
mod stopped;
mod wasi;
mod weights;

pub use attempt::{Runs, Wasm};
pub use check::{Inspection, Power, Powers, Problem, inspect, powers_of};
pub use engine::{EngineError, EngineOptions, Engines, Place};
pub use fit::fit;
pub use library::{Added, Counts, Library, LibraryError};
