//! What a step may ask of leases.

use super::stopped::Stopped;
use super::{Handle, Refusal, words};
use crate::error::SubmitError;
use crate::executor::HeldLease;
use interlock_kernel::command::LeaseAsk;
use interlock_kernel::ids::LeaseName;
use interlock_kernel::rejection::Code;

/// A request for a lease that a step may make now.
#[derive(Debug)]
pub struct Wanted(LeaseName, Option<u64>);

impl Handle {
    /// A step's request for a lease, if it may make one and its name can be read.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn wanted(&mut self, name: &str, ttl_ms: Option<u64>) -> Result<Wanted, Refusal> {
        self.may_ask()?;
        words::lease(name).map(|name| Wanted(name, ttl_ms)).map_err(|no| self.refuse(no))
    }

    /// Tries to take a lease; one that the execution has is renewed.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn acquire(&mut self, Wanted(name, ttl_ms): Wanted) -> Result<HeldLease, Refusal> {
        self.lease(LeaseAsk::Acquire(name, ttl_ms)).await?.ok_or_else(never)
    }

    /// Renews a lease. If that is refused, or nobody can say, it ends when it would have ended.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn extend(&mut self, held: &HeldLease, ttl_ms: Option<u64>) -> Result<HeldLease, Refusal> {
        self.may_ask()?;
        self.lease(LeaseAsk::Extend(held.claim.clone(), ttl_ms)).await?.ok_or_else(never)
    }

    /// Gives a lease back.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn release(&mut self, held: HeldLease) -> Result<(), Refusal> {
        self.may_ask()?;
        self.lease(LeaseAsk::Release(held.claim)).await.map(drop)
    }

    /// Milliseconds left of a lease as it was last granted; 0 if it is over.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn lease_left_ms(&self, held: &HeldLease) -> Result<u64, Stopped> {
        self.pass().map(|()| self.running().lease_left_ms(held))
    }

    /// The token of a lease, to carry outside.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn lease_token(&self, held: &HeldLease) -> Result<u64, Stopped> {
        self.pass().map(|()| held.claim.token.get())
    }

    /// Whether a lease is still held under its grant. No is said once.
    ///
    /// # Errors
    /// Ends the attempt.
    pub async fn still_holds_lease(&mut self, held: &HeldLease) -> Result<bool, Stopped> {
        let holds = self.rights.may_hold(self.gate.check())? && {
            let held = self.attempt.still_holds_lease(&held.claim).await;
            held.map_err(|error| Stopped::Unavailable(error.to_string()))?
        };
        Ok(holds)
    }

    async fn lease(&mut self, ask: LeaseAsk) -> Result<Option<HeldLease>, Refusal> {
        match self.attempt.lease(ask).await {
            // A handle that outlived its grant: the attempt goes on. One that lost the entity is told so by its subject.
            Err(SubmitError::Rejected(no)) if no.code == Code::Fenced && no.subject.starts_with("lease ") => {
                self.rights.refused_grant();
                Err((*no).into())
            }
            done => done.map_err(|error| self.refuse_submit(error)),
        }
    }
}

/// Only a release answers without a lease.
fn never() -> Refusal {
    Stopped::Unavailable("a lease that was granted and is not there".to_owned()).into()
}
