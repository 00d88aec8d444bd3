//! What an entity asks of its host, as an object-safe trait: the component's imports in
//! production, a mock under test. Steps see neither.

use crate::lease::Held;
use crate::{Change, Checkpoint, Rejection, Request};

/// One attempt's handle on its entity. Each method is the function of the same name in
/// `wit/transition.wit`, `wit/lease.wit`, `wit/fencing.wit` (`timer_`) `wit/timers.wit` or
/// (`effect_`) `wit/effects.wit`, which says what it guarantees and refuses.
///
/// Implementing it is for hosts. A test of a step takes a mock host instead, which judges by the
/// real rules; an implementation that answers by rules of its own tests nothing.
#[expect(missing_docs, reason = "the words of the contract are in wit/, said once")]
pub trait Host {
    fn id(&self) -> String;
    fn key(&self) -> String;
    fn execution(&self) -> String;
    fn attempt(&self) -> u32;
    fn state(&self) -> String;
    fn version(&self) -> u64;
    fn desired(&self) -> Option<String>;
    fn data(&self) -> Option<String>;
    fn outputs(&self) -> Option<String>;
    fn cancel_requested(&self) -> bool;
    fn deadline_ms(&self) -> u64;
    fn reload(&self) -> Result<(), Rejection>;
    fn save(&self, checkpoint: Checkpoint) -> Result<(), Rejection>;
    fn transition(&self, change: Change) -> Result<(), Rejection>;
    fn token(&self) -> u64;
    fn still_holds(&self) -> bool;
    fn acquire(&self, name: &str, ttl_ms: Option<u64>) -> Result<Held, Rejection>;
    fn timer_after(&self, name: &str, ms: u64) -> Result<(), Rejection>;
    fn timer_at(&self, name: &str, unix_ms: i64) -> Result<(), Rejection>;
    fn timer_cancel(&self, name: &str) -> Result<(), Rejection>;
    fn effect_request(&self, request: Request) -> Result<(), Rejection>;
}
