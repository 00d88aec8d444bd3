//! A whole host on one thread, in memory, under time that somebody moves.
//!
//! [`Lab`] is the real coordinator and the real kernel on the engine in memory: no rule is written here a
//! second time, no answer is scripted. What is added is a hand on everything that is left to chance
//! elsewhere: time stands still until it is moved, an attempt is held before each call until it is let go,
//! and the host is killed, or its store fails, where somebody says so. Tests of steps, scenarios and
//! searches are built on it; it knows no WebAssembly, an [`Executor`](interlock_coordinator::Executor) does.
//!
//! Read next: `lab.rs` for what can be done, `hand.rs` for how attempts are held.

pub mod explore;
mod hand;
mod lab;
mod receiver;
pub mod scenario;
pub mod story;
mod table;

pub use hand::{Asked, Held, Seen, Told};
pub use lab::{Fault, Lab, LabError, Turn, WALL_MS};
pub use receiver::{Arrival, Pending, Reply, Request};
pub use table::TableRows;
