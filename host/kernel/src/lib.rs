//! The kernel of Interlock: pure decisions about guarded state machines.
//!
//! A [`Command`](command::Command) goes in with a [`View`](view::View) of the records inside one
//! transaction and the [`Now`](time::Now) of its job; a [`Decision`](view::Decision) comes out: what to
//! write, and an outcome or a [`Rejection`](rejection::Rejection). It refuses to know about clocks,
//! randomness, I/O, threads, WebAssembly and logging. Start reading at [`decide`].
//!
//! ```
//! use interlock_kernel::ids::EntityId;
//!
//! let entity: EntityId = "resource/gpu-7".parse()?;
//! assert_eq!(entity.machine.as_str(), "resource");
//! # Ok::<(), interlock_kernel::ids::BadName>(())
//! ```

#![deny(clippy::wildcard_enum_match_arm, clippy::arithmetic_side_effects)]

pub mod command;
mod decide;
pub mod doc;
pub mod ids;
pub mod limits;
pub mod machine;
pub mod number;
pub mod record;
pub mod rejection;
pub mod rows;
pub mod schedule;
pub mod table;
pub mod theorems;
pub mod time;
pub mod timer;
pub mod value;
pub mod view;

pub use decide::{cannot_move, decide, query, start};
pub use number::{FencingToken, Incarnation, SessionId, Version};
