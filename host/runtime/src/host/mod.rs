//! What guests import, one file per interface of `wit/`.
//!
//! Nothing here decides, nor does it know in which order a guest is answered: a request is put into the words
//! of the coordinator's `contract`, handed over, and its answer handed back.

mod effects;
mod fencing;
mod lease;
mod log;
mod row_types;
mod rows;
mod timers;
mod transition;
pub(crate) mod types;
