//! The parts of the system that take input from outside, each with what must always hold of it.

pub(crate) mod change;
pub(crate) mod decide;
pub(crate) mod guard;
pub(crate) mod json;
pub(crate) mod manifest;
pub(crate) mod names;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod schedule;
mod script;
pub(crate) mod table;
mod world;

/// A property: what must hold, and what was there instead.
macro_rules! holds {
    ($what:expr, $($said:tt)+) => {
        if !$what {
            return Err($crate::target::Broken(format!($($said)+)));
        }
    };
}
pub(crate) use holds;
