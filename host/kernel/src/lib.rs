//! The kernel: pure decisions about guarded state machines.
pub mod command;
pub mod doc;
pub mod ids;
pub mod limits;
pub mod machine;
pub mod number;
pub mod record;
pub mod rejection;
pub mod time;
pub mod value;
pub mod view;
pub use number::{FencingToken, Incarnation, SessionId, Version};
