//! What the conformance suite drives the store with: the list of engines and a disk that fails.
//!
//! The clauses are in `tests/it`. An engine joins by implementing [`Engine`] and taking one line
//! in `tests/it/main.rs`; it then runs every clause, and runs it again as a [`Hostile`] store. Knows no entity.

mod disk;
mod engine;
mod hostile;
mod jobs;
mod random;

pub use disk::{CrashedDisk, SimDisk};
pub use engine::{Engine, MemEngine, RedbEngine, redb_options};
pub use hostile::{Hostile, HostileEngine};
pub use jobs::{Probe, Settled, block_on, put, text, value};
pub use random::Random;
