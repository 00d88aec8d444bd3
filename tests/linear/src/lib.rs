//! Linearizability over HTTP: whether everything that clients were told has one order that a single entity, asked by
//! one client after another, would have given.
//!
//! - [`model`]: that entity, written a second time and small: state, version, generation, data, inbox, remembered
//!   answers. It shares no code with the host.
//! - [`history`]: what clients asked, when, and what they heard; an answer that was lost is an operation that may take
//!   effect at any later time or never.
//! - [`checker`]: the search for an order (Wing and Gong 1993, with the memo of Lowe 2017), entity by entity, since
//!   entities do not share anything (the locality of Herlihy and Wing 1990).
//! - [`clients`] and [`rounds`]: many clients, short histories, a real daemon that is killed at random moments.
//!
//! Read next: `model.rs`, `checker.rs`.

pub mod checker;
pub mod clients;
pub mod history;
pub mod model;
pub mod rounds;
