//! What an attempt may ask: save, transition, end. Every one is judged by the token in the same
//! transaction that writes.

use super::arm::Entered;
use super::draft::{Draft, Given, Scope, Tag};
use super::enter::{Ending, Entry, denied, mutate, path};
use super::no_entity;
use crate::command::{Change, Outcome};
use crate::doc::Digest;
use crate::ids::{Name, nearest};
use crate::limits::{MUTATIONS_MAX, RETRY_AFTER_MS_MAX, SAVES_MAX};
use crate::machine::{FailurePath, Retry};
use crate::record::{Cause, CauseKind, FactKind, Failure, What};
use crate::rejection::{Code, Rejection, cut};
use crate::theorems;
use crate::value::Verdict;
use crate::view::{Claim, Decision, Documents, Stop};

/// A step's checkpoint: version + 1, same visit, attempt and token.
pub(super) fn save(given: &Given<'_>, claim: &Claim, change: &Change) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, &claim.execution.entity)? else {
        return Ok(Decision::refused(gone(claim)));
    };
    if let Some(refused) = fenced(&draft, claim) {
        return zombie(draft, claim, refused);
    }
    if let Some(refused) = draft.lost_lease(claim)? {
        return zombie(draft, claim, refused);
    }
    if let Some(refused) = stale(&draft, claim) {
        return draft.refuse(refused);
    }
    if let Some(refused) = draft.undeclared(&draft.head.state, &draft.state()?, &change.stage) {
        return draft.refuse(refused);
    }
    if let Some(refused) = denied(&change.set, &change.conditions) {
        return draft.refuse(refused);
    }
    let documents = match propose(&mut draft, change)? {
        Ok(documents) => documents,
        Err(refused) => return draft.refuse(refused),
    };
    let checked = change.checked.filter(|_| change.set.is_empty());
    if let Some(refused) = draft.check(&documents, checked)? {
        return draft.refuse(refused);
    }
    if let Err(refused) = draft.publish(&change.conditions)? {
        return draft.refuse(refused);
    }
    if let Some(refused) = draft.overstaged(&change.stage) {
        return draft.refuse(refused);
    }
    let effects = match draft.stage_effects(&change.stage, claim)? {
        Ok(effects) => effects,
        Err(refused) => return draft.refuse(refused),
    };
    let (tables, rows) = match draft.stage_rows(claim, &change.stage, &documents)? {
        Ok(staged) => staged,
        Err(refused) => return draft.refuse(refused),
    };
    let saves = draft.head.lock.as_ref().map_or(0, |lock| lock.saves);
    if saves >= SAVES_MAX {
        let expected = format!("at most {SAVES_MAX} saves in one visit (saves_max)");
        return draft.refuse(Rejection::new(Code::Limit, &claim.execution, expected, "one more"));
    }
    // Nothing refuses below this line.
    let old = draft.head.version;
    draft.keep(documents)?;
    draft.restage(&change.stage);
    draft.commit_effects(effects, old.next())?;
    draft.head.version = old.next();
    debug_assert!(theorems::version_grows_by_one(old, draft.head.version));
    let step = draft.state()?.step.unwrap_or_else(|| draft.head.state.clone());
    if let Some(lock) = draft.head.lock.as_mut() {
        lock.saves = saves.saturating_add(1);
        lock.base = draft.head.version;
        lock.progress = given.now.wall;
    }
    draft.renew_leases()?;
    draft.forget_memos()?;
    draft.record(What::Saved(step), tag(claim));
    let version = draft.head.version;
    let mut decision = draft.finish(Outcome::Written { version, rows })?;
    tables.finish(&mut decision);
    Ok(decision)
}

/// A step's move: one accepted transition per attempt.
pub(super) fn transition(given: &Given<'_>, claim: &Claim, to: &Name, change: &Change) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, &claim.execution.entity)? else {
        return Ok(Decision::refused(gone(claim)));
    };
    if let Some(refused) = fenced(&draft, claim) {
        return zombie(draft, claim, refused);
    }
    if let Some(refused) = draft.lost_lease(claim)? {
        return zombie(draft, claim, refused);
    }
    if let Some(refused) = stale(&draft, claim) {
        return draft.refuse(refused);
    }
    let state = draft.state()?;
    let Some(one) = state.to.iter().find(|one| one.to.as_ref() == Some(to)).cloned() else {
        let names: Vec<&str> = state.to.iter().filter_map(|one| one.to.as_ref()).map(Name::as_str).collect();
        let hint = nearest(to.as_str(), names.iter().copied())
            .map(|near| format!(" (did you mean {near}?)"))
            .unwrap_or_default();
        let refused = Rejection::new(Code::NotAllowed, &draft.id, names.join(" or "), format!("{to}{hint}"));
        return draft.refuse(refused);
    };
    if let Some(refused) = draft.machine().state(to).and_then(|there| draft.undeclared(to, there, &change.stage)) {
        return draft.refuse(refused);
    }
    let proposed = propose(&mut draft, change)?;
    let payload = draft.payload()?;
    let mut scope = draft.scope(payload)?;
    if let Some(refused) = draft.missing(draft.machine().requires(&draft.head.state, to), scope.event.clone())? {
        return draft.refuse(refused);
    }
    // A guard of a step's move judges what the step proposes, before the move's own `set`.
    if let Ok(documents) = &proposed {
        scope.documents = documents.clone();
    }
    if let Verdict::Fails { expected, got } = one.guard.judge(&scope.roots(given.now), &mut draft.mismatches) {
        let refused = Rejection::new(Code::Guard, &draft.id, expected, got);
        return draft.refuse(refused);
    }
    if let Some(refused) = denied(&change.set, &change.conditions) {
        return draft.refuse(refused);
    }
    let mut documents = match proposed {
        Ok(documents) => documents,
        Err(refused) => return draft.refuse(refused),
    };
    if let Err(refused) = mutate(&mut documents, &one.set, &scope, given.now) {
        return draft.refuse(refused);
    }
    let checked = change.checked.filter(|_| change.set.is_empty() && one.set.is_empty());
    let entered = Entered { documents: &documents, event: None, by: CauseKind::Transition, stage: &change.stage };
    let timers = match draft.ready(Some(to), &entered, checked)? {
        Ok(timers) => timers,
        Err(refused) => return draft.refuse(refused),
    };
    let effects = match draft.stage_effects(&change.stage, claim)? {
        Ok(effects) => effects,
        Err(refused) => return draft.refuse(refused),
    };
    if let Err(refused) = draft.publish(&change.conditions)? {
        return draft.refuse(refused);
    }
    let (tables, rows) = match draft.stage_rows(claim, &change.stage, &documents)? {
        Ok(staged) => staged,
        Err(refused) => return draft.refuse(refused),
    };
    // Nothing refuses below this line.
    let old = draft.head.version;
    draft.keep(documents)?;
    draft.renew_leases()?;
    draft.commit_effects(effects, old.next())?;
    let from = draft.head.state.clone();
    let step = state.step.unwrap_or_else(|| from.clone());
    let cause = Cause { kind: CauseKind::Transition, name: step.clone(), id: None, at: given.now.wall, payload: false };
    if let Some(lock) = draft.head.lock.as_mut() {
        lock.attempt = None;
    }
    let (stage, ends) = (change.stage.clone(), Ending::AsTheStateSays);
    draft.enter(Entry { to: to.clone(), cause, payload: None, timers, stage, ends })?;
    debug_assert!(theorems::version_grows_by_one(old, draft.head.version));
    draft.record(What::Transition(step), Tag { from: Some(from), ..tag(claim) });
    let version = draft.head.version;
    let mut decision = draft.finish(Outcome::Written { version, rows })?;
    tables.finish(&mut decision);
    Ok(decision)
}

/// An attempt that ended without a transition: retried, or its visit fails.
pub(super) fn end(given: &Given<'_>, claim: &Claim, failure: &Failure) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, &claim.execution.entity)? else {
        return Ok(Decision::refused(gone(claim)));
    };
    if let Some(refused) = fenced(&draft, claim) {
        return draft.refuse(refused);
    }
    // Nothing refuses below this line.
    let failure = Failure { code: cut(&failure.code), reason: cut(&failure.reason), ..failure.clone() };
    let machine = draft.machine();
    let state = draft.state()?;
    let path = path(&machine, &draft.head.state, failure.permanent);
    draft.failed(&state.retry, failure, path, claim)?;
    let (version, state) = (draft.head.version, draft.head.state.clone());
    draft.finish(Outcome::Now { version, state, changed: true })
}

pub(super) fn tag(claim: &Claim) -> Tag {
    Tag { execution: Some(claim.execution.ordinal), attempt: Some((claim.attempt, claim.token)), ..Tag::default() }
}

pub(super) fn gone(claim: &Claim) -> Rejection {
    Rejection { code: Code::Fenced, ..no_entity(&claim.execution.entity) }
}

impl Draft<'_> {
    /// An attempt has failed: its next one after a wait, or the visit's failure path.
    pub(super) fn failed(
        &mut self,
        retry: &Retry,
        failure: Failure,
        path: FailurePath,
        claim: &Claim,
    ) -> Result<(), Stop> {
        if !failure.permanent
            && self.head.lock.as_ref().is_some_and(|lock| lock.failed.saturating_add(1) < retry.attempts)
        {
            self.failed_once(retry, failure, claim);
            return Ok(());
        }
        let now = self.now();
        let Some(lock) = self.head.lock.as_mut() else {
            return Err(Stop::Corrupt(format!("{}: an open attempt without a lock", claim.execution)));
        };
        lock.attempt = None;
        lock.failed = lock.failed.saturating_add(1);
        lock.failure = Some(failure.clone());
        lock.progress = now.wall;
        let code = if failure.permanent { "permanent" } else { "exhausted" };
        self.fail(&path, failure, code, tag(claim))
    }

    /// An attempt has failed, and its next one comes after a wait; at once if there is none, to be told so then.
    pub(super) fn failed_once(&mut self, retry: &Retry, failure: Failure, claim: &Claim) {
        let now = self.now();
        let Some(lock) = self.head.lock.as_mut() else { return };
        lock.attempt = None;
        lock.failed = lock.failed.saturating_add(1);
        lock.failure = Some(failure.clone());
        lock.progress = now.wall;
        let wait = if lock.failed < retry.attempts { wait_ms(retry, lock.failed, &failure, claim) } else { 0 };
        lock.retry = Some(now.store.plus(wait));
        self.record(What::Ended(failure, Some(wait)), tag(claim));
    }

    /// The failure that used up the visit's attempts, if that was the loss of a lease: whoever noticed that could
    /// not decide what it leads to.
    pub(super) fn worn_out(&self) -> Result<Option<Failure>, Stop> {
        let attempts = self.state()?.retry.attempts;
        let lock = self.head.lock.as_ref().filter(|lock| lock.failed >= attempts);
        Ok(lock.and_then(|lock| lock.failure.clone()).filter(|failure| failure.code == LEASE_LOST))
    }
}

/// Why an attempt fails that loses a lease.
pub(super) const LEASE_LOST: &str = "lease-lost";

/// The attempt is not the open one.
pub(super) fn fenced(draft: &Draft<'_>, claim: &Claim) -> Option<Rejection> {
    let open = draft.head.lock.as_ref().and_then(|lock| lock.attempt);
    let holds = theorems::stale_token_never_writes(&draft.head, claim);
    if holds {
        return None;
    }
    let expected = match open {
        Some(open) => format!("attempt {}, token {}", open.ordinal, open.token),
        None => "no open attempt".to_owned(),
    };
    Some(Rejection::new(
        Code::Fenced,
        &claim.execution,
        expected,
        format!("attempt {}, token {}", claim.attempt, claim.token),
    ))
}

/// The version that was read is not the one that is there.
fn stale(draft: &Draft<'_>, claim: &Claim) -> Option<Rejection> {
    let got = draft.head.version;
    (got != claim.read).then(|| {
        Rejection::new(Code::Conflict, &draft.id, format!("version {}", claim.read), format!("version {got}"))
            .retry_after(0)
    })
}

pub(super) fn zombie(mut draft: Draft<'_>, claim: &Claim, refused: Rejection) -> Result<Decision, Stop> {
    let same = draft.head.incarnation == claim.execution.incarnation;
    draft.fact(FactKind::Fenced, refused.to_string(), if same { tag(claim) } else { Tag::default() });
    draft.refuse(refused)
}

/// The documents a step asks for.
fn propose(draft: &mut Draft<'_>, change: &Change) -> Result<Result<Documents, Rejection>, Stop> {
    if change.set.len() > MUTATIONS_MAX {
        let expected = format!("at most {MUTATIONS_MAX} mutations (mutations_max)");
        return Ok(Err(Rejection::new(Code::Limit, "set", expected, change.set.len())));
    }
    let mut documents = draft.documents()?;
    documents.data = change.data.clone().or(documents.data);
    documents.outputs = change.outputs.clone().or(documents.outputs);
    let scope = Scope {
        documents: documents.clone(),
        event: draft.payload()?,
        execution: draft.head.locked_by(&draft.id).map(|id| id.to_string()),
    };
    Ok(mutate(&mut documents, &change.set, &scope, draft.now()).map(|()| documents))
}

/// The wait before the next attempt: exponential, capped, spread by the attempt's own identity so that
/// the same records give the same wait; at least what the step asked for.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a wait in ms is far below 2^53, and the result is clamped to 0..=max_ms"
)]
fn wait_ms(retry: &Retry, failed: u32, failure: &Failure, claim: &Claim) -> u64 {
    let asked = failure.retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MS_MAX);
    let power = i32::try_from(failed.saturating_sub(1)).unwrap_or(i32::MAX);
    let plain = (retry.first_ms as f64 * retry.factor.powi(power)).min(retry.max_ms as f64);
    let Digest(draw) = Digest::of(&[claim.execution.to_string().as_bytes(), &claim.token.get().to_be_bytes()]);
    let unit = f64::from(u16::from_be_bytes([draw[0], draw[1]])) / f64::from(u16::MAX);
    let spread = plain * (1.0 + retry.jitter * (2.0 * unit - 1.0));
    asked.max(spread.clamp(0.0, retry.max_ms as f64) as u64)
}
