//! The tool itself: what it finds, that it can fail, and what it says of the kernel.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by stopping")]

mod find;
mod fixture;
mod kernel;
