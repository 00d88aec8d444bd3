//! Leases: what clients and steps ask of them, and what store time does to them.
//!
//! A lease is decided in the transaction that touches it. An execution's head names the leases it has, the
//! lease says who has it; a write of the execution looks at both, so neither needs to be told in time.

mod audit;
mod draft;
mod needs;

pub(super) use audit::audit;
pub(super) use draft::LeaseDraft;

use super::attempt::{LEASE_LOST, fenced, gone, tag, zombie};
use super::draft::{Draft, Given, Tag};
use crate::command::{Acquire, LeaseAsk, Outcome};
use crate::ids::{ExecutionId, GrantId, LeaseName};
use crate::limits::{
    LEASE_DELAY_MS_MAX, LEASE_HOLD_MS_MAX, LEASE_TTL_MS_MAX, LEASE_TTL_MS_MIN, LEASE_WAIT_MS_MAX, LEASES_MAX,
};
use crate::machine::LeaseSpec;
use crate::record::{BeginReason, Failure, Owner, Terms, Waiter, What};
use crate::rejection::{Code, Rejection, cut};
use crate::time::Span;
use crate::view::{Claim, Decision, LeaseClaim, Stop};

impl LeaseDraft<'_> {
    fn answer(self, outcome: Outcome) -> Decision {
        let mut decision = Decision::plain(outcome);
        self.finish(&mut decision);
        decision
    }

    fn refuse(self, rejection: Rejection) -> Decision {
        let mut decision = Decision::refused(rejection);
        self.finish(&mut decision);
        decision
    }

    /// What a holder is told.
    fn leased(&self, new: bool) -> Option<Outcome> {
        let holder = self.holder()?;
        Some(Outcome::Leased {
            claim: LeaseClaim { lease: self.name.clone(), token: holder.token },
            new,
            ttl_ms: holder.until.since(self.now()),
            until: holder.until,
        })
    }

    fn told(self, new: bool) -> Decision {
        let outcome = self.leased(new).unwrap_or(Outcome::Nothing);
        self.answer(outcome)
    }
}

/// A number of ms within its bounds, or which bound it breaks.
fn bounded(lease: &LeaseName, what: &str, ms: u64, least: u64, most: (u64, &str)) -> Option<Rejection> {
    let expected = format!("{what} of {} to {} ({})", Span(least), Span(most.0), most.1);
    (ms < least || ms > most.0).then(|| Rejection::new(Code::Limit, format!("lease {lease}"), expected, Span(ms)))
}

/// A client asks for a lease: granted, renewed if it has it, in line, or refused.
pub(super) fn acquire(given: &Given<'_>, ask: &Acquire) -> Result<Decision, Stop> {
    let Terms { ttl_ms, hold_ms, delay_ms } = ask.terms;
    let broken = bounded(&ask.lease, "a ttl", ttl_ms, LEASE_TTL_MS_MIN, (LEASE_TTL_MS_MAX, "lease_ttl_ms_max"))
        .or_else(|| bounded(&ask.lease, "a hold_max", hold_ms, ttl_ms, (LEASE_HOLD_MS_MAX, "lease_hold_ms_max")))
        .or_else(|| bounded(&ask.lease, "a lock_delay", delay_ms, 0, (LEASE_DELAY_MS_MAX, "lease_delay_ms_max")))
        .or_else(|| bounded(&ask.lease, "a wait", ask.wait_ms?, 0, (LEASE_WAIT_MS_MAX, "lease_wait_ms_max")));
    if let Some(refused) = broken {
        return Ok(Decision::refused(refused));
    }
    let owner = Owner::Grant(ask.grant.clone());
    let label = cut(&ask.label);
    let mut lease = LeaseDraft::of(given, &ask.lease)?;
    if lease.is_held_by(&owner, None) {
        lease.extend(Some(ttl_ms));
        return Ok(lease.told(false));
    }
    if lease.is_open_to(&owner) {
        lease.grant(owner, &label, ask.terms);
        return Ok(lease.told(true));
    }
    let Some(wait_ms) = ask.wait_ms.filter(|wait_ms| *wait_ms > 0) else {
        let refused = lease.busy(&owner, &label);
        return Ok(lease.refuse(refused));
    };
    let waiter = Waiter {
        owner: owner.clone(),
        label: label.clone(),
        terms: ask.terms,
        since: given.now.wall,
        until: Some(given.now.store.plus(wait_ms)),
        session: given.now.session.0,
    };
    if !lease.stand_in_line(waiter) {
        let refused = lease.busy(&owner, &label);
        return Ok(lease.refuse(refused));
    }
    let before = lease.before(&owner).unwrap_or_default();
    Ok(lease.answer(Outcome::InLine { before }))
}

/// A client renews what it has.
pub(super) fn extend(
    given: &Given<'_>,
    lease: &LeaseName,
    grant: &GrantId,
    token: u64,
    ttl_ms: Option<u64>,
) -> Result<Decision, Stop> {
    let most = (LEASE_TTL_MS_MAX, "lease_ttl_ms_max");
    if let Some(refused) = ttl_ms.and_then(|ms| bounded(lease, "a ttl", ms, LEASE_TTL_MS_MIN, most)) {
        return Ok(Decision::refused(refused));
    }
    let owner = Owner::Grant(grant.clone());
    let mut lease = LeaseDraft::of(given, lease)?;
    if !lease.is_held_by(&owner, Some(token)) {
        let refused = lease.fenced(&owner, "", token);
        return Ok(lease.refuse(refused));
    }
    lease.extend(ttl_ms);
    Ok(lease.told(false))
}

/// A client gives back what it has.
pub(super) fn release(given: &Given<'_>, lease: &LeaseName, grant: &GrantId, token: u64) -> Result<Decision, Stop> {
    let owner = Owner::Grant(grant.clone());
    let mut lease = LeaseDraft::of(given, lease)?;
    if !lease.is_held_by(&owner, Some(token)) {
        let refused = lease.fenced(&owner, "", token);
        return Ok(lease.refuse(refused));
    }
    lease.release("given back");
    Ok(lease.answer(Outcome::Released))
}

/// A client that stood in line is gone: nobody would use what it gets.
pub(super) fn withdraw(given: &Given<'_>, lease: &LeaseName, grant: &GrantId) -> Result<Decision, Stop> {
    let owner = Owner::Grant(grant.clone());
    let mut lease = LeaseDraft::of(given, lease)?;
    if lease.is_held_by(&owner, None) {
        lease.release("its client had gone before it got it");
    } else if lease.before(&owner).is_some() {
        lease.leave(&owner);
    } else {
        return Ok(lease.answer(Outcome::Nothing));
    }
    Ok(lease.answer(Outcome::Released))
}

/// What a step asks of a lease. Each accepted request is progress.
pub(super) fn ask(given: &Given<'_>, claim: &Claim, ask: &LeaseAsk) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, &claim.execution.entity)? else {
        return Ok(Decision::refused(gone(claim)));
    };
    if let Some(refused) = fenced(&draft, claim) {
        return zombie(draft, claim, refused);
    }
    if let Some(refused) = draft.lost_lease(claim)? {
        return zombie(draft, claim, refused);
    }
    match ask {
        LeaseAsk::Acquire(lease, ttl_ms) => take(draft, claim, lease, *ttl_ms),
        LeaseAsk::Extend(held, ttl_ms) => prolong(draft, claim, held, *ttl_ms),
        LeaseAsk::Release(held) => give_back(draft, claim, held),
    }
}

/// The terms on which a machine was granted a lease, and what a step asks for within them.
fn terms(draft: &Draft<'_>, lease: &LeaseName, ttl_ms: Option<u64>) -> Result<Terms, Rejection> {
    let machine = draft.machine();
    let Some(LeaseSpec { ttl_ms: declared, ttl_ms_max, hold_ms, delay_ms }) = machine.lease(lease).copied() else {
        let names: Vec<&str> = machine.leases.granted.keys().map(String::as_str).collect();
        let expected =
            if names.is_empty() { "a machine with leases".to_owned() } else { format!("one of {}", names.join(", ")) };
        return Err(Rejection::new(
            Code::NotFound,
            format!("lease {lease}"),
            expected,
            format!("{lease}, not granted to {}", machine.name),
        ));
    };
    let asked = ttl_ms.unwrap_or(declared);
    match bounded(lease, "a ttl", asked, LEASE_TTL_MS_MIN, (ttl_ms_max, "the lease's max")) {
        Some(refused) => Err(refused),
        None => Ok(Terms { ttl_ms: asked, hold_ms, delay_ms }),
    }
}

fn take(mut draft: Draft<'_>, claim: &Claim, name: &LeaseName, ttl_ms: Option<u64>) -> Result<Decision, Stop> {
    let terms = match terms(&draft, name, ttl_ms) {
        Ok(terms) => terms,
        Err(refused) => return draft.refuse(refused),
    };
    let owner = Owner::Execution(claim.execution.clone());
    let count = draft.leases().len();
    let lease = draft.lease(name)?;
    if lease.is_held_by(&owner, None) {
        lease.extend(Some(terms.ttl_ms));
        let outcome = lease.leased(false).unwrap_or(Outcome::Nothing);
        draft.progressed()?;
        return draft.finish(outcome);
    }
    if count >= LEASES_MAX {
        let expected = format!("at most {LEASES_MAX} leases of an execution (leases_max)");
        return draft.refuse(Rejection::new(Code::Limit, format!("lease {name}"), expected, "one more"));
    }
    if !lease.is_open_to(&owner) {
        let refused = lease.busy(&owner, "");
        return draft.refuse(refused);
    }
    // Nothing refuses below this line.
    lease.grant(owner, "", terms);
    let outcome = lease.leased(true).unwrap_or(Outcome::Nothing);
    draft.head.leases.push(name.clone());
    draft.progressed()?;
    draft.record(What::Leased(name.clone()), tag(claim));
    draft.finish(outcome)
}

fn prolong(mut draft: Draft<'_>, claim: &Claim, held: &LeaseClaim, ttl_ms: Option<u64>) -> Result<Decision, Stop> {
    let owner = Owner::Execution(claim.execution.clone());
    let lease = draft.lease(&held.lease)?;
    if !lease.is_held_by(&owner, Some(held.token.get())) {
        let refused = lease.fenced(&owner, "", held.token.get());
        return draft.refuse(refused);
    }
    let terms = match terms(&draft, &held.lease, ttl_ms) {
        Ok(terms) => terms,
        Err(refused) => return draft.refuse(refused),
    };
    let lease = draft.lease(&held.lease)?;
    lease.extend(Some(terms.ttl_ms));
    let outcome = lease.leased(false).unwrap_or(Outcome::Nothing);
    draft.progressed()?;
    draft.finish(outcome)
}

fn give_back(mut draft: Draft<'_>, claim: &Claim, held: &LeaseClaim) -> Result<Decision, Stop> {
    let owner = Owner::Execution(claim.execution.clone());
    let lease = draft.lease(&held.lease)?;
    if !lease.is_held_by(&owner, Some(held.token.get())) {
        let refused = lease.fenced(&owner, "", held.token.get());
        return draft.refuse(refused);
    }
    // Nothing refuses below this line.
    lease.release("given back");
    draft.head.leases.retain(|other| *other != held.lease);
    draft.progressed()?;
    draft.record(What::Returned(held.lease.clone()), tag(claim));
    draft.finish(Outcome::Released)
}

/// Renews the leases of an attempt that is about to be handed out, and hands it out.
pub(super) fn renew(given: &Given<'_>, claim: &Claim) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, &claim.execution.entity)? else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    if fenced(&draft, claim).is_some() {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    if let Some(refused) = draft.lost_lease(claim)? {
        return zombie(draft, claim, refused);
    }
    // Nothing refuses below this line.
    draft.renew_leases()?;
    if draft.give_up_worn_leases(tag(claim))? {
        draft.fence("too little was left of a lease that it has");
        draft.begin_as(BeginReason::Leased)?;
    } else {
        draft.hand_out();
    }
    draft.finish(Outcome::Nothing)
}

/// Store time has come to what the index says of a lease.
pub(super) fn lapse(given: &Given<'_>, name: &LeaseName) -> Result<Decision, Stop> {
    let mut lease = LeaseDraft::of(given, name)?;
    if lease.is_forgotten() {
        let mut decision = Decision::plain(Outcome::Nothing);
        lease.forget(&mut decision);
        return Ok(decision);
    }
    lease.hand_on();
    Ok(lease.answer(Outcome::Nothing))
}

/// An execution has lost a lease: its attempt has failed, and nothing it does from now on counts. What a last
/// failure leads to is decided when its index entry comes up: here others may lose theirs as well, and one
/// transaction, which has one token to give, begins at most one attempt.
pub(super) fn lose(given: &Given<'_>, execution: &ExecutionId, name: &LeaseName) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, &execution.entity)? else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    let owner = Owner::Execution(execution.clone());
    let theirs = draft.head.locked_by(&draft.id).as_ref() == Some(execution) && draft.leases().contains(name);
    if !theirs || draft.lease(name)?.is_held_by(&owner, None) {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    // Nothing refuses below this line.
    draft.head.leases.retain(|other| other != name);
    let Some(open) = draft.head.lock.as_ref().and_then(|lock| lock.attempt) else {
        draft.record(What::LeaseLost(name.clone()), Tag::default());
        return draft.finish(Outcome::Nothing);
    };
    let retry = draft.state()?.retry;
    let claim =
        Claim { execution: execution.clone(), attempt: open.ordinal, token: open.token, read: draft.head.version };
    draft.fence("a lease was lost");
    let reason = format!("lease {name} was not renewed in time");
    let failure = Failure { permanent: false, code: LEASE_LOST.to_owned(), reason, retry_after_ms: None };
    draft.failed_once(&retry, failure, &claim);
    draft.finish(Outcome::Nothing)
}

/// It is the turn of an execution that stands in line: it looks whether its attempt can begin when its index
/// entry comes up, which is at once. If it is there no more, the next one has its turn.
pub(super) fn turn(given: &Given<'_>, execution: &ExecutionId, name: &LeaseName) -> Result<Decision, Stop> {
    let draft = Draft::of(given, &execution.entity)?;
    let waits = |draft: &Draft<'_>| {
        let awaits = draft.head.awaits.as_ref() == Some(name);
        awaits && draft.head.locked_by(&draft.id).as_ref() == Some(execution)
    };
    let Some(mut draft) = draft.filter(waits) else {
        let mut lease = LeaseDraft::of(given, name)?;
        lease.leave(&Owner::Execution(execution.clone()));
        return Ok(lease.answer(Outcome::Nothing));
    };
    // Nothing refuses below this line.
    let now = draft.now().store;
    if let Some(lock) = draft.head.lock.as_mut() {
        lock.retry.get_or_insert(now); // told before: it has not looked yet
    }
    draft.finish(Outcome::Nothing)
}
