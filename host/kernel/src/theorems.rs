//! Invariants, as functions named as theorems. Debug assertions, the conformance suite, the
//! reconciler and `doctor` call them.

use crate::doc::Digest;
use crate::ids::{EntityId, LeaseName};
use crate::machine::{Machine, StateKind};
use crate::number::{FencingToken, Version};
use crate::record::{Claimed, Entry, Head, Key, Lease, Owner, Row, What};
use crate::view::Claim;

/// Each accepted change moves the version by one.
#[must_use]
pub fn version_grows_by_one(old: Version, new: Version) -> bool {
    old.next() == new
}

/// A later grant has a higher token.
#[must_use]
pub fn token_never_falls(old: Option<FencingToken>, new: FencingToken) -> bool {
    old.is_none_or(|old| old < new)
}

/// An attempt may write only if it is the open one of the execution that holds the lock.
#[must_use]
pub fn stale_token_never_writes(head: &Head, claim: &Claim) -> bool {
    let lock = head.lock.as_ref();
    head.incarnation == claim.execution.incarnation
        && lock.is_some_and(|lock| lock.ordinal == claim.execution.ordinal)
        && lock
            .and_then(|lock| lock.attempt)
            .is_some_and(|open| open.token == claim.token && open.ordinal == claim.attempt)
}

/// Exactly the working states are locked.
#[must_use]
pub fn lock_and_execution_agree(head: &Head, machine: &Machine) -> bool {
    let working = machine.state(&head.state).is_some_and(|state| state.kind == StateKind::Working);
    working == head.lock.is_some() && head.lock.as_ref().is_none_or(|lock| lock.ordinal == head.executions)
}

/// `locked_by` is empty exactly in rest and final states, and a rest has no park and an empty inbox
/// once its transaction is over.
#[must_use]
pub fn unlocked_means_a_new_operation_is_accepted(head: &Head, machine: &Machine) -> bool {
    let rest = machine.state(&head.state).is_some_and(|state| state.kind == StateKind::Rest);
    !rest || (head.lock.is_none() && head.park.is_none())
}

/// A working entity has something that will move it.
#[must_use]
pub fn live_entity_has_a_wake_cause(head: &Head, machine: &Machine) -> bool {
    let Some(state) = machine.state(&head.state) else {
        return false;
    };
    let Some(lock) = &head.lock else { return true };
    lock.attempt.is_some()
        || lock.retry.is_some()
        || head.awaits.is_some()
        || head.outbox.unsettled > 0
        || !head.timers.is_empty()
        || head.deadline.is_some()
        || head.park.is_some()
        || (state.waits_forever && state.step.is_none())
}

/// A final state has no lock, timer, deadline or waiting event.
#[must_use]
pub fn final_is_final(head: &Head, machine: &Machine) -> bool {
    let over = machine.state(&head.state).is_some_and(|state| state.kind.is_final());
    !over || (head.lock.is_none() && head.timers.is_empty() && head.deadline.is_none() && head.inbox.length == 0)
}

/// Nobody stands in line for what it has, or twice, and no time is promised beyond the bound in all.
#[must_use]
pub fn lease_has_one_holder(lease: &Lease) -> bool {
    let waits = |owner: &Owner| lease.line.iter().filter(|waiter| waiter.owner == *owner).count();
    let holder = lease.holder.as_ref();
    holder.is_none_or(|holder| waits(&holder.owner) == 0 && holder.until <= holder.hold_until)
        && (holder.is_none() || lease.delay.is_none())
        && lease.line.iter().all(|waiter| waits(&waiter.owner) == 1)
}

/// Each grant of a lease has a higher token than the one before.
#[must_use]
pub fn lease_token_never_falls(was: Option<&Lease>, is: &Lease) -> bool {
    let token = |lease: &Lease| lease.holder.as_ref().map(|holder| (holder.token, holder.owner.clone()));
    match (was.and_then(token), token(is)) {
        (Some(was), Some(is)) => was == is || token_never_falls(Some(was.0), is.0),
        (None, _) | (_, None) => true,
    }
}

/// An execution has the leases that its head names, and waits for the one that its head says, in line.
#[must_use]
pub fn lease_and_execution_agree(name: &LeaseName, lease: &Lease, entity: &EntityId, head: Option<&Head>) -> bool {
    let theirs = |owner: &Owner| match owner {
        Owner::Execution(execution) => execution.entity == *entity,
        Owner::Grant(_) => false,
    };
    let running = head.and_then(|head| head.locked_by(entity)).map(Owner::Execution);
    let holds = lease.holder.as_ref().map(|holder| &holder.owner).filter(|owner| theirs(owner));
    let waits = lease.line.iter().map(|waiter| &waiter.owner).find(|owner| theirs(owner));
    let named = head.is_some_and(|head| head.leases.contains(name));
    let awaited = head.is_some_and(|head| head.awaits.as_ref() == Some(name));
    holds == running.as_ref().filter(|_| named) && waits == running.as_ref().filter(|_| awaited)
}

/// Every theorem about one lease that does not hold.
#[must_use]
pub fn lease(was: Option<&Lease>, is: &Lease) -> Vec<&'static str> {
    [("lease_has_one_holder", lease_has_one_holder(is)), ("lease_token_never_falls", lease_token_never_falls(was, is))]
        .into_iter()
        .filter(|(_, holds)| !holds)
        .map(|(name, _)| name)
        .collect()
}

/// Every theorem about one entity that does not hold.
#[must_use]
pub fn entity(head: &Head, machine: &Machine) -> Vec<&'static str> {
    if head.is_inconsistent() {
        return Vec::new(); // known, and an operator's to decide
    }
    [
        ("lock_and_execution_agree", lock_and_execution_agree(head, machine)),
        ("unlocked_means_a_new_operation_is_accepted", unlocked_means_a_new_operation_is_accepted(head, machine)),
        ("live_entity_has_a_wake_cause", live_entity_has_a_wake_cause(head, machine)),
        ("final_is_final", final_is_final(head, machine)),
    ]
    .into_iter()
    .filter(|(_, holds)| !holds)
    .map(|(name, _)| name)
    .collect()
}

/// What folding a history gives: compared with the head and its documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// The newest entry's number.
    pub last: u64,
    /// The version it ends with.
    pub version: u64,
    /// The state it ends in.
    pub state: String,
    /// Digests of desired, data and outputs.
    pub digests: [Option<Digest>; 3],
    /// The newest entry's hash.
    pub hash: Option<Digest>,
}

/// Folds the entries that are kept, oldest first, checking numbers, chain, versions and states on the way.
///
/// # Errors
/// The number of the first entry that does not follow from the one before, and why.
pub fn fold(entity: &EntityId, head: &Head, entries: &[Entry]) -> Result<Folded, (u64, String)> {
    let mut folded = Folded::default();
    let mut before = head.history.first.saturating_sub(1);
    for entry in entries {
        let bad = |why: String| Err((entry.number, why));
        let (version, from) = (entry.version.get(), entry.from.as_str());
        let expected = before.saturating_add(1);
        if entry.number != expected {
            return bad(format!("expected entry {expected}, got {}", entry.number));
        }
        if folded.hash.or((expected == 1).then_some(Digest([0; 32]))).is_some_and(|hash| hash != entry.previous) {
            return bad("expected the hash of the entry before, got another".to_owned());
        }
        if folded.hash.is_some() && version != folded.version && version != folded.version.saturating_add(1) {
            return bad(format!("expected version {} or one more, got {version}", folded.version));
        }
        if folded.hash.is_some() && from != folded.state {
            return bad(format!("expected to start from {}, got {from}", folded.state));
        }
        if is_fact(entry) && (version, entry.to.as_str()) != (folded.version, from) && folded.hash.is_some() {
            return bad("expected a fact to change nothing".to_owned());
        }
        before = entry.number;
        folded.last = entry.number;
        folded.version = version;
        folded.state = entry.to.to_string();
        for (slot, changed) in folded.digests.iter_mut().zip([&entry.desired, &entry.data, &entry.outputs]) {
            if let Some(changed) = changed {
                *slot = changed.digest;
            }
        }
        folded.hash = Some(entry.hash(&Key::History(entity.clone(), head.incarnation, entry.number)));
    }
    Ok(folded)
}

/// The history of an entity adds up to the entity.
#[must_use]
pub fn history_folds_to_entity(head: &Head, folded: &Folded, digests: [Option<Digest>; 3]) -> bool {
    let whole = head.history.first == 1;
    folded.last == head.history.last
        && folded.version == head.version.get()
        && folded.state == head.state.as_str()
        && folded.hash == Some(head.history.hash)
        && (!whole || folded.digests == digests)
}

/// Whether an entry records something that changed nothing.
#[must_use]
pub fn is_fact(entry: &Entry) -> bool {
    matches!(entry.what, What::Fact(..))
}

/// What must be true of a row that was changed: the names of what is not.
#[must_use]
pub fn row(was: Option<&Row>, now: Option<&Row>) -> Vec<&'static str> {
    let mut broken = Vec::new();
    let mut must = |name, holds: bool| {
        if !holds {
            broken.push(name);
        }
    };
    // One that is past its time may be inserted anew.
    if let (Some(was), Some(now)) = (was, now)
        && was.created == now.created
    {
        must("row_version_grows", now.version > was.version || was.value == now.value);
        must("row_claims_never_fall", now.claims >= was.claims);
        let same = |a: &Claimed, b: &Claimed| a.number == b.number && a.by == b.by;
        let taken = now.claim.as_ref().filter(|claim| was.claim.as_ref().is_none_or(|old| !same(old, claim)));
        must("row_has_one_claimant", taken.is_none() || now.claims > was.claims);
    }
    if let Some(now) = now {
        must("row_claim_is_counted", now.claim.is_none() || now.claims > 0);
    }
    broken
}
