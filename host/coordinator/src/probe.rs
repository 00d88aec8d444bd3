//! Looking on while an attempt runs: what it asks for, before and after it is answered.
//!
//! A host that plays time and crashes itself (tests, scenarios, searches) holds an attempt here, between
//! two calls, and lets go of it when its turn has come. A probe answers nothing: whatever a call gets, the
//! kernel said.

use crate::error::SubmitError;
use crate::executor::{Attempt, Ended, Snapshot, Written};
use interlock_kernel::command::{Change, LeaseAsk};
use interlock_kernel::ids::Name;
use interlock_kernel::rows::{QueryAnswer, QueryAsk, RowAnswer, StepRows};
use interlock_kernel::view::LeaseClaim;
use interlock_store::BoxFuture;

/// What an attempt asks its host for. What it only reads from its snapshot is no call.
#[derive(Clone, Debug)]
pub enum Call<'a> {
    /// A checkpoint.
    Save(&'a Change),
    /// The next state.
    Transition(&'a Name, &'a Change),
    /// The entity, again.
    Reload,
    /// The entity as it is after an accepted checkpoint: no call of the step's own, the host reads it for it.
    LookAgain,
    /// Whether it is still the open one.
    StillHolds,
    /// Something about a lease.
    Lease(&'a LeaseAsk),
    /// Whether a lease is still held under this grant.
    StillHoldsLease(&'a LeaseClaim),
    /// Something of rows, at once.
    Rows(&'a StepRows),
    /// Rows by filter.
    Query(&'a QueryAsk),
}

/// What a call was answered.
#[derive(Clone, Debug)]
pub enum Reply<'a> {
    /// A write was accepted.
    Written(&'a Written),
    /// The entity as it is.
    Read(&'a Snapshot),
    /// Whether it still holds.
    Holds(bool),
    /// A lease is held under this grant, for so many ms from the commit.
    Leased(&'a LeaseClaim, u64),
    /// A lease is given back.
    Released,
    /// What was asked of rows is done, or was done before.
    Rows(&'a [RowAnswer], bool),
    /// Rows were found.
    Found(&'a QueryAnswer),
    /// Refused, or the store could not say.
    Refused(&'a SubmitError),
}

/// Looks on.
pub trait Probe: Send + Sync + 'static {
    /// An attempt is about to ask. It asks once this completes; time until then is the step's own.
    fn before<'a>(&'a self, attempt: &'a Attempt, call: Call<'a>) -> BoxFuture<'a, ()>;

    /// It was answered.
    fn after(&self, attempt: &Attempt, call: Call<'_>, reply: Reply<'_>);

    /// It is over: it came to its end, or its executor gave it up (`None`).
    fn over(&self, ended: Option<&Ended>);
}
