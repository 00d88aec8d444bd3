//! The lab itself: that it is a whole host, that nothing moves unless moved, and that what is made to
//! happen happens for real.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by stopping")]

mod contract;
mod effects;
mod explore;
mod lab;
mod leases;
mod player;
mod reader;
mod rows;
mod weather;
mod world;
