//! What guests import, one file per interface of `wit/`. Each import begins with the gate.
//!
//! Nothing here decides: a request is parsed, handed to the coordinator, and its answer handed back.

mod fencing;
mod lease;
mod log;
mod transition;
pub(crate) mod types;
