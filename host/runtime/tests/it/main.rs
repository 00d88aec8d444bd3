//! The sandbox as a whole: real components, the real coordinator, a store in memory.

mod bed;
mod deploy;
mod hostile;
mod imports;
mod leases;
mod library;
mod speed;
mod timers;
mod unknown;
mod wasi;
mod weights;
