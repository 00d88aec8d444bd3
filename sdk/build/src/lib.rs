//! From the source of a step to a component, whatever language it is in.
//!
//! A folder says by what is in it which language that is ([`Language`]). Rust is built by cargo for a wasm target and
//! the module lifted; C by clang, likewise; JavaScript, TypeScript and Python by the build script of their SDK, which
//! this crate carries and puts into the folder. Tools are found, never installed.
//!
//! A crate of its own because both the command line (`interlock build`, the demo) and the tests build guests, and
//! neither may depend on the other. It knows no wasmtime, no manifest and no host; whether a component may run is
//! decided at deploy.
//!
//! ```no_run
//! let built = interlock_build::build("guests/resource".as_ref(), interlock_build::Options::default())?;
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
//! Read next: `build.rs` for what happens in which order, `detect.rs` for the languages, then a file for each of them.

mod build;
mod c;
mod cache;
mod detect;
mod embedded;
mod error;
mod js;
mod lift;
mod place;
mod python;
mod rust;
mod script;
mod toolchain;
mod tools;

pub use build::{Again, Built, Options, Progress, build};
pub use detect::{Language, Source, detect, is_step};
pub use error::{BuildError, Problem};
pub use lift::{imports, lift};
pub use rust::Workspace;
