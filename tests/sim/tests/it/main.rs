//! The simulator's seeds, the faults it must find, and every point at which a host can die.

mod planted;
mod points;
mod seeds;
