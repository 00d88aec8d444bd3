//! A mock host for step authors: `cargo test` for a step, without WebAssembly and without a daemon.
//!
//! [`MockHost`] is the real kernel and the real coordinator on a store in memory, under time that the test moves.
//! No rule is written here a second time and no answer is scripted: what a step is told in a test is what it
//! would be told in production. Steps are the plain functions that they are.
//!
//! ```
//! use interlock::{Done, Entity, Failure, steps, to}; // as in the step's own crate
//! use interlock_mock::{Fault, MockHost, at};
//! use serde::{Deserialize, Serialize};
//! use serde_json::json;
//! use std::time::Duration;
//!
//! const DOOR: &str = r#"
//! machine   = "door"
//! owner     = "facilities <door@example.com>"
//! component = "door.wasm"
//! initial   = "shut"
//! desired.schema = false
//! outputs.schema = false
//! [data]
//! default = { opened = 0 }
//! schema  = { type = "object", properties.opened = { type = "integer", maximum = 2 } }
//! [events.push]
//! schema = false
//! [states.shut]
//! kind = "rest"
//! on.push = { to = "opening" }
//! [states.opening]
//! step = "open"
//! to = ["open"]
//! deadline = "1m"
//! on_failure = "park"
//! [states.open]
//! after = { wait = "20s", to = "shut" }
//! "#;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Data {
//!     opened: u32,
//! }
//!
//! fn open(door: &Entity) -> Result<Done, Failure> {
//!     let mut data: Data = door.data()?;
//!     data.opened += 1;
//!     Ok(door.transition(to("open").data(&data))?)
//! }
//!
//! steps!(open);
//!
//! # fn main() {
//! // A whole machine: commands in, time by hand, and what came of it.
//! let mut host = MockHost::new(DOOR, STEPS);
//! host.create("front");
//! host.send("front", "push", json!(null)).accepted();
//! host.run(); // all that can happen without time passing
//! host.entity("front").state_is("open");
//! host.send("front", "push", json!(null)).refused("busy");
//! host.advance(Duration::from_secs(20));
//! host.entity("front").state_is("shut");
//! assert_eq!(host.entity("front").data()["opened"], 1);
//!
//! // The host dies before the step's first call, and the step is begun again: one push, counted once.
//! host.fault(at("open"), Fault::Crash);
//! host.send("front", "push", json!(null)).accepted();
//! host.advance(Duration::from_secs(20));
//! assert_eq!(host.entity("front").data()["opened"], 2);
//!
//! // One attempt: what it asked for, and what it was told.
//! host.send("front", "push", json!(null)).accepted();
//! let ran = host.step("front");
//! assert_eq!(ran.refused("invalid").subject, "data/opened");
//!
//! // One step by itself: given data, desired and event; then transition, data, outputs, refusals.
//! let ran = MockHost::around("open", open).to(["open"]).data(json!({ "opened": 7 })).run();
//! assert_eq!((ran.to(), ran.data()), ("open", json!({ "opened": 8 })));
//! # }
//! ```
//!
//! In a step's `Cargo.toml`, which the build for WebAssembly does not look at:
//!
//! ```toml
//! [dev-dependencies]
//! interlock-mock = { path = "/path/to/interlock/sdk/mock" }
//! serde_json = "1"
//! ```
//!
//! A test that fails prints the story so far: every command and answer, what each attempt asked and was told and
//! logged, and where each entity stands, with its history.
//!
//! **Time.** [`MockHost::run`] lets everything run without time passing, [`MockHost::advance`] moves time and
//! stops at all that it brings, [`MockHost::until`] goes as far as a state. A step is begun at once and held before
//! its first call, so that what is sent right after comes before it.
//!
//! **Faults.** [`MockHost::fault`] has something happen [`at`] a call: a conflict, a lost attempt, a store that
//! takes nothing, an answer that nobody learns, a crash. [`MockHost::hold`] keeps a step there for as long as the
//! test likes, [`MockHost::crash`] and [`MockHost::boot`] come when they are called.
//!
//! **Leases.** A step takes, extends and gives back the leases that its machine was granted, as a component does.
//! [`MockHost::acquire`] has a client take one under a name, so that the step meets somebody who has it,
//! [`MockHost::lease`] says who has it, and [`Fault::LeaseLost`] has a step lose what it holds before a call.
//!
//! **Targets.** What steps have requested goes to receivers in the test: [`MockHost::answer`] says what they answer,
//! [`MockHost::replies`] that one is down, loses its answer or never gives one, [`MockHost::made`] lists what arrived.
//!
//! **Tables.** [`MockHost::table`] declares one from the text of its `*.table.toml`, [`MockHost::filled`] with rows in
//! it; [`MockHost::rows`] and [`MockHost::row`] say what stands there and who has claimed it. Steps use those that
//! their manifest names, under the rights that the table grants.
//!
//! **What differs from a component.** A step has this program's threads, clocks and files; a component has none.
//! It computes in real time, which the host's clock does not count: only one that computes for longer than
//! [`MockHost::patience`] is not waited for, and ended by its deadline. A thread ends at its next call and not within 10 ms, and destructors run as
//! it unwinds; what they ask for is not asked. Memory and stack are not bounded. For all of that, and for steps in
//! other languages, the component itself is to be run.
//!
//! Read next: `host.rs`; below it are the crates `interlock-lab`, which plays time and crashes, and
//! `interlock-coordinator`, whose `contract` says what a step is told.

#![allow(
    clippy::result_large_err,
    reason = "as in the step author's crate: asking costs far more than moving a refusal"
)]

mod answer;
mod around;
mod command;
mod convert;
mod convert_rows;
mod effect;
mod fault;
mod host;
mod lease;
mod native;
mod ran;
mod story;
mod table;
mod thread;
mod view;

pub use answer::Answer;
pub use around::Around;
pub use command::{New, Signal};
pub use effect::{Made, Replies};
pub use fault::{At, at};
pub use host::MockHost;
pub use interlock_kernel::command::OnExisting;
pub use interlock_lab::Fault;
pub use lease::LeaseView;
pub use native::{Native, Steps};
pub use ran::{Asked, Call, End, Log, Ran, TimerDue, Told};
pub use table::RowView;
pub use view::View;
