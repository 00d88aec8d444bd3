//! The mock host itself: that a step is told what the real rules say, that faults and time are what they claim,
//! and that a test that fails says why.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by stopping")]
#![allow(clippy::result_large_err, reason = "a refusal says all it knows")]

mod around;
mod crashes;
mod deploys;
mod effects;
mod events;
mod failures;
mod faults;
mod leases;
mod logs;
mod patterns;
mod refusals;
mod resource;
mod rows;
mod story;
mod time;
mod timers;
mod world;
