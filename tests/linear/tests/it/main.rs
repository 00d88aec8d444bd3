//! The checker finds an order where there is one, and only there; and the real daemon's histories have one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails, with the place where it stood")]

mod daemon;
mod made;
mod wrong;
