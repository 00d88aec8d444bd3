//! What an entity asks of its host, as an object-safe trait: the component's imports in
//! production, a mock under test. Steps see neither.

use crate::lease::Held;
use crate::row::{
    Answer, Claimed, Claiming, Deleted, Deleting, EntityRequirement, Getting, Got, Operation, Page, Putting, Querying,
    Requirement, RowRequirement, Updated, Updating, Upserting, Written,
};
use crate::{Change, Checkpoint, Rejection, Request};

/// One attempt's handle on its entity. Each method is the function of the same name in
/// `wit/transition.wit`, `wit/lease.wit`, `wit/fencing.wit`, (`timer_`) `wit/timers.wit`,
/// (`effect_`) `wit/effects.wit` or (`row_`, `entity_`) `wit/rows.wit`, which says what it guarantees and refuses.
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
    fn row_get(&self, table: &str, getting: Getting) -> Result<Got, Rejection>;
    fn row_query(&self, table: &str, querying: Querying) -> Result<Page, Rejection>;
    fn row_put(&self, table: &str, putting: Putting, op: Option<&str>) -> Result<Written, Rejection>;
    fn row_update(&self, table: &str, updating: Updating, op: Option<&str>) -> Result<Updated, Rejection>;
    fn row_upsert(&self, table: &str, upserting: Upserting, op: Option<&str>) -> Result<Written, Rejection>;
    fn row_claim(&self, table: &str, claiming: Claiming, op: Option<&str>) -> Result<Claimed, Rejection>;
    fn row_delete(&self, table: &str, deleting: Deleting, op: Option<&str>) -> Result<Deleted, Rejection>;
    fn row_transact(
        &self,
        operations: Vec<Operation>,
        requirements: Vec<Requirement>,
        op: Option<&str>,
    ) -> Result<Vec<Answer>, Rejection>;
    fn row_stage(&self, operation: Operation) -> Result<(), Rejection>;
    fn row_require(&self, requirement: RowRequirement) -> Result<(), Rejection>;
    fn entity_require(&self, requirement: EntityRequirement) -> Result<(), Rejection>;
    fn row_answers(&self) -> Vec<Answer>;
}
