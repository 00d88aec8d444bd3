//! From the source of a step to a component: runs cargo for a wasm target, gets the target if it
//! is missing, and lifts the core module that comes out.
//!
//! A crate of its own because both the command line (`interlock build`, the demo) and the tests
//! build guests, and neither may depend on the other. It knows no wasmtime, no manifest and no
//! host; whether a component may run is decided at deploy.
//!
//! ```no_run
//! let built = interlock_build::build_rust("guests/resource".as_ref(), interlock_build::Progress::Shown)?;
//! println!("{} {} bytes in {:.1?}", built.path.display(), built.bytes, built.took);
//! # Ok::<(), interlock_build::BuildError>(())
//! ```
//!
//! A crate names another target than `wasm32-unknown-unknown` in its own Cargo.toml:
//!
//! ```toml
//! [package.metadata.interlock]
//! target = "wasm32-wasip2"
//! ```
//!
//! Read next: `build.rs` for what happens in which order, `toolchain.rs` for the target.

mod build;
mod error;
mod lift;
mod toolchain;

pub use build::{Built, Progress, Workspace, build_rust};
pub use error::BuildError;
pub use lift::lift;
