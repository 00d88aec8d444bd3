//! The HTTP API over a coordinator, and the daemon that wires everything: store, components, steps, requests.
//!
//! Parses what arrives into the kernel's types, asks the coordinator, and answers; it decides nothing, and knows
//! no terminal. [`api`] has every body, [`Problem`] every refusal, `routes/` every path; [`Daemon::start`] is how
//! it begins.
//!
//! ```no_run
//! use interlock_daemon::{Daemon, Options};
//!
//! # async fn example() -> anyhow::Result<()> {
//! let running = Daemon::start(Options { data_dir: "data".into(), ..Options::default() }).await?;
//! println!("http://{}", running.addr());
//! running.stop().await
//! # }
//! ```

#![allow(clippy::result_large_err, reason = "a refusal is made once and sent over a network: its size costs nothing")]

pub mod api;
mod app;
pub mod base64;
pub mod effects;
mod extract;
pub mod limits;
mod problem;
mod routes;
mod serve;
mod views;

pub use problem::{Problem, Reason};
pub use routes::machines::{finding_of_component, finding_of_manifest};
pub use routes::openapi;
pub use serve::{Daemon, LISTEN, Options, Running};
