//! Guard mutation: every check of the kernel is removed or flipped, one at a time, and the kernel's own
//! tests must notice each.
//!
//! All mutants are compiled into one copy of the crate ([`copy`]); a variable of the environment switches
//! one on ([`find`] rewrites a check into one that asks). Each test runs in a process of its own, the ones
//! first that reach the check and little else ([`suite`]). What nothing notices needs a reason in
//! `reasons.toml` ([`reasons`]), and the list of all of them is `guards.md` ([`publish`]).
//!
//! `cargo run -p interlock-mutants` runs all of it.

pub mod copy;
mod edits;
pub mod find;
pub mod kernel;
pub mod publish;
pub mod reasons;
pub mod score;
mod shape;
pub mod suite;
