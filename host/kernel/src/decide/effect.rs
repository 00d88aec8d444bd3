//! Effects: tries of what the outbox holds, and what comes of them.
//!
//! A try begins with a command and ends with one; between the two the host talks to the target. An effect that
//! nobody hears of again was perhaps done: it is tried again under the same key.

mod outbox;

pub(super) use outbox::Slots;

use super::draft::{Draft, Given, Tag};
use super::no_entity;
use crate::command::{Outcome, Said, Sending, Tried};
use crate::doc::{Digest, Doc};
use crate::ids::{EntityId, EventId, Name};
use crate::limits::EFFECT_RETRY_AFTER_MS_MAX;
use crate::machine::{EFFECT_DONE, EFFECT_FAILED, OnLate, Retry, Target};
use crate::record::{Cause, CauseKind, Effect, EffectWhat, FactKind, Key, Lease, Record, Stands, What};
use crate::rejection::{Code, Rejection, cut};
use crate::view::{Decision, Stop};
use serde_json::json;

/// A try begins: the effect is the first of its lane, due, and nobody newer acts by now.
pub(super) fn send(given: &Given<'_>, entity: &EntityId, number: u64) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    let now = given.now;
    let Some(session) = now.session.0 else { return Ok(Decision::plain(Outcome::Nothing)) };
    let Some(effect) = draft.effect(number)? else { return Ok(Decision::plain(Outcome::Nothing)) };
    match effect.stands {
        Stands::Due(at) if at <= now.store => {}
        // Asked again after a lost answer: the same try.
        Stands::InFlight(of) if of == session => {
            let Some(target) = draft.target(&effect) else { return Ok(Decision::plain(Outcome::Nothing)) };
            let sending = Sending { entity: entity.clone(), number, effect, target };
            return Ok(Decision::plain(Outcome::Sending(Box::new(sending))));
        }
        Stands::Due(_) | Stands::InFlight(_) | Stands::Waits | Stands::Dead { .. } => {
            return Ok(Decision::plain(Outcome::Nothing));
        }
    }
    // Nothing refuses below this line.
    if let Some(newer) = moved_on(given, &effect)? {
        draft.fenced(number, &effect, format!("unsent: {newer}"), None)?;
        return draft.over(Outcome::Nothing);
    }
    let Some(target) = draft.target(&effect) else {
        let reason = format!("target {} is no longer declared by {}", effect.target, entity.machine);
        draft.give_up(number, effect, "withdrawn", reason, None)?;
        return draft.over(Outcome::Nothing);
    };
    let effect = Effect { stands: Stands::InFlight(session), tries: effect.tries.saturating_add(1), ..effect };
    draft.keep_effect(number, effect.clone())?;
    draft.finish(Outcome::Sending(Box::new(Sending { entity: entity.clone(), number, effect, target })))
}

/// A newer grant of the lease that fences an effect: its receiver would refuse it.
fn moved_on(given: &Given<'_>, effect: &Effect) -> Result<Option<String>, Stop> {
    let Some(name) = &effect.lease else { return Ok(None) };
    let newest = match given.view.get(&Key::Lease(name.clone()))? {
        Some(Record::Lease(lease)) => {
            let Lease { granted, .. } = *lease;
            granted
        }
        _ => None,
    };
    Ok(newest
        .filter(|newest| *newest > effect.token)
        .map(|newest| format!("lease {name} was granted again, expected token {newest}, got {}", effect.token)))
}

/// What came of a try.
pub(super) fn settle(
    given: &Given<'_>,
    entity: &EntityId,
    number: u64,
    nth: u32,
    tried: &Tried,
) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    let flies = |effect: &Effect| matches!(effect.stands, Stands::InFlight(_)) && effect.tries == nth;
    let Some(effect) = draft.effect(number)?.filter(flies) else {
        draft.fact(FactKind::LateEffect, format!("try {nth} of effect {number} is over"), Tag::default());
        return draft.finish(Outcome::Nothing);
    };
    // Nothing refuses below this line.
    match tried {
        Tried::Done(said) => draft.done(number, effect, said)?,
        Tried::Fenced(said) => draft.fenced(number, &effect, format!("status {}", said.status), Some(said))?,
        Tried::Again { after_ms, reason, maybe_sent } => {
            let effect = Effect { maybe_sent: effect.maybe_sent || *maybe_sent, last: Some(cut(reason)), ..effect };
            match draft.target(&effect) {
                Some(target) if effect.tries < target.retry.attempts => {
                    let wait = wait_ms(&target.retry, &effect, *after_ms);
                    let stands = Stands::Due(given.now.store.plus(wait));
                    draft.keep_effect(number, Effect { stands, ..effect })?;
                }
                _ => {
                    let reason = format!("{} tries: {reason}", effect.tries);
                    draft.give_up(number, effect, "exhausted", reason, None)?;
                }
            }
        }
        Tried::Failed(said) => {
            let reason = format!("status {}", said.status);
            draft.give_up(number, Effect { maybe_sent: true, ..effect }, "refused", reason, Some(said))?;
        }
        Tried::Refused { reason } => draft.give_up(number, effect, "denied", cut(reason), None)?,
    }
    draft.over(Outcome::Nothing)
}

/// An effect was in flight when its session ended. Whether it was done nobody knows.
pub(super) fn resend(given: &Given<'_>, entity: &EntityId, number: u64) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    let orphan =
        |effect: &Effect| matches!(effect.stands, Stands::InFlight(session) if Some(session) != given.now.session.0);
    let Some(effect) = draft.effect(number)?.filter(orphan) else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    // Nothing refuses below this line. A try that its host did not survive is none of the target's.
    let last = Some("its host went away".to_owned());
    let (stands, tries) = (Stands::Due(given.now.store), effect.tries.saturating_sub(1));
    draft.keep_effect(number, Effect { stands, tries, maybe_sent: true, last, ..effect })?;
    draft.finish(Outcome::Nothing)
}

/// An operator has a given-up effect tried again, with fresh tries.
pub(super) fn retry(given: &Given<'_>, entity: &EntityId, number: u64) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::refused(no_entity(entity)));
    };
    let Some(effect) = draft.effect(number)? else {
        return draft.refuse(no_effect(entity, number));
    };
    if matches!(effect.stands, Stands::InFlight(_) | Stands::Waits) {
        let outcome = Outcome::Now { version: draft.head.version, state: draft.head.state.clone(), changed: false };
        return Ok(Decision::plain(outcome));
    }
    // Nothing refuses below this line.
    draft.tell(EffectWhat::Retried, &effect, number, String::new(), Tag::default());
    draft.keep_effect(number, Effect { stands: Stands::Due(given.now.store), tries: 0, ..effect })?;
    let outcome = Outcome::Now { version: draft.head.version, state: draft.head.state.clone(), changed: true };
    draft.finish(outcome)
}

/// An operator gives an effect up. One that is in flight is settled by its answer.
pub(super) fn abandon(given: &Given<'_>, entity: &EntityId, number: u64, reason: &str) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::refused(no_entity(entity)));
    };
    let Some(effect) = draft.effect(number)? else {
        return draft.refuse(no_effect(entity, number));
    };
    if matches!(effect.stands, Stands::InFlight(_)) {
        let subject = format!("effect {number} of {entity}");
        let refused = Rejection::new(Code::Busy, subject, "an effect that is not in flight", "one that is");
        return draft.refuse(refused.retry_after(crate::limits::BUSY_RETRY_MS));
    }
    // Nothing refuses below this line.
    draft.settled(number);
    let seen = if effect.maybe_sent { " (a try of it may have reached the target)" } else { "" };
    draft.tell(EffectWhat::Dropped, &effect, number, format!("{}{seen}", cut(reason)), Tag::default());
    let outcome = Outcome::Now { version: draft.head.version, state: draft.head.state.clone(), changed: true };
    draft.over(outcome)
}

fn no_effect(entity: &EntityId, number: u64) -> Rejection {
    Rejection::new(
        Code::NotFound,
        format!("effect {number} of {entity}"),
        "an unsettled effect",
        "none with this number",
    )
}

fn failed(code: &str, reason: &str, said: Option<&Said>) -> serde_json::Value {
    json!({
        "code": code,
        "reason": reason,
        "status": said.map(|said| said.status),
        "body": said.and_then(|said| said.body.as_ref()).map(Doc::value),
        "truncated": said.is_some_and(|said| said.truncated),
    })
}

impl Draft<'_> {
    /// The end of a decision that may have settled the last thing an entity waited for.
    fn over(mut self, outcome: Outcome) -> Result<Decision, Stop> {
        self.arrange();
        self.park_if_stranded("its last effect was settled");
        self.finish(outcome)
    }

    /// The target of an effect, by the revision that the entity follows.
    fn target(&self, effect: &Effect) -> Option<Target> {
        self.revision.machine.targets.get(&effect.target).cloned()
    }

    /// Whether the execution that asked for an effect is over.
    fn is_late(&self, effect: &Effect) -> bool {
        self.head.lock.as_ref().is_none_or(|lock| lock.ordinal != effect.execution)
    }

    fn done(&mut self, number: u64, effect: Effect, said: &Said) -> Result<(), Stop> {
        self.settled(number);
        let note = format!("status {}", said.status);
        let result = json!({
            "status": said.status,
            "body": said.body.as_ref().map(Doc::value),
            "truncated": said.truncated,
        });
        if !self.is_late(&effect) {
            return self.raise(&EFFECT_DONE, EffectWhat::Done, number, &effect, result, note);
        }
        let on_late = self.target(&effect).map_or(OnLate::Record, |target| target.on_late);
        match on_late {
            OnLate::Record => {
                self.tell(EffectWhat::Done, &effect, number, format!("{note}, after its execution"), Tag::default());
                Ok(())
            }
            OnLate::Event => self.raise(&EFFECT_DONE, EffectWhat::Done, number, &effect, result, note),
            OnLate::Compensate(undo) => {
                let note = match self.compensate(&undo, &effect, &result)? {
                    Some(undoing) => format!("{note}, after its execution; undone by effect {undoing} on {undo}"),
                    None => format!("{note}, after its execution; {undo} could not be asked to undo it"),
                };
                self.tell(EffectWhat::Done, &effect, number, note, Tag::default());
                Ok(())
            }
        }
    }

    /// Somebody newer acts, as the target or the host's own lease says: nothing is left to try, so nothing holds a lane.
    fn fenced(&mut self, number: u64, effect: &Effect, note: String, said: Option<&Said>) -> Result<(), Stop> {
        self.settled(number);
        if self.is_late(effect) {
            self.tell(EffectWhat::Fenced, effect, number, note, Tag::default());
            return Ok(());
        }
        let payload = failed("fenced", &note, said);
        self.raise(&EFFECT_FAILED, EffectWhat::Fenced, number, effect, payload, note)
    }

    /// An effect will not be done: the event, if the machine takes it, else it stands there until somebody acts.
    pub(super) fn give_up(
        &mut self,
        number: u64,
        effect: Effect,
        code: &str,
        reason: String,
        said: Option<&Said>,
    ) -> Result<(), Stop> {
        let late = self.is_late(&effect);
        if late || self.takes(&EFFECT_FAILED)? {
            self.settled(number);
            let payload = failed(code, &reason, said);
            let note = format!("{code}: {reason}");
            if late {
                self.tell(EffectWhat::Failed, &effect, number, format!("{note}, after its execution"), Tag::default());
                return Ok(());
            }
            return self.raise(&EFFECT_FAILED, EffectWhat::Failed, number, &effect, payload, note);
        }
        let note = format!("{code}: {reason}");
        self.tell(EffectWhat::Failed, &effect, number, note.clone(), Tag::default());
        let skips = self.target(&effect).is_some_and(|target| target.skips_dead);
        let subject = format!("effect {number} on {} {note}", effect.target);
        let stands = Stands::Dead { code: code.to_owned(), reason };
        self.keep_effect(number, Effect { stands, ..effect })?;
        // Its execution is not over, so the state is a working one.
        if !skips && self.head.park.is_none() {
            self.park("effect-failed", &subject, Tag::default());
        }
        Ok(())
    }

    fn takes(&self, event: &Name) -> Result<bool, Stop> {
        Ok(self.state()?.on.get(event).is_some_and(|moves| !moves.is_empty()))
    }

    /// Raises a result as an event. Not taken, it is on record all the same.
    fn raise(
        &mut self,
        event: &Name,
        what: EffectWhat,
        number: u64,
        effect: &Effect,
        result: serde_json::Value,
        note: String,
    ) -> Result<(), Stop> {
        let state = self.state()?;
        let mut payload = json!({
            "effect": effect.key,
            "number": number,
            "target": effect.target.as_str(),
            "execution": self.head.execution(&self.id, effect.execution).to_string(),
        });
        if let (Some(payload), serde_json::Value::Object(result)) = (payload.as_object_mut(), result) {
            payload.extend(result);
        }
        let moves = state.on.get(event).cloned().unwrap_or_default();
        let from = self.head.state.clone();
        let joined = self.head.lock.as_ref().map(|lock| lock.ordinal);
        let scope = self.scope(Some(Doc::new(payload)))?;
        let taken = match moves.is_empty() {
            true => Err("not waited for".to_owned()),
            false => match self.choose(&moves, &scope) {
                Ok(one) => {
                    let id: Option<EventId> = effect.key.parse().ok();
                    let at = self.now().wall;
                    let cause = Cause { kind: CauseKind::Effect, name: event.clone(), id, at, payload: false };
                    self.make(&one, cause, scope)?.map_err(|refused| refused.to_string())
                }
                Err(refused) => Err(refused.to_string()),
            },
        };
        match taken {
            Ok(()) => {
                let begun = self.head.lock.as_ref().and_then(|lock| lock.attempt);
                let begun = begun.filter(|open| open.token.get() == self.now().seq);
                let attempt = begun.map(|open| (open.ordinal, open.token));
                let tag = Tag { from: Some(from), execution: joined, attempt, ..Tag::default() };
                self.tell(what, effect, number, note, tag);
            }
            Err(why) => self.tell(what, effect, number, format!("{note}; {why}"), Tag::default()),
        }
        Ok(())
    }

    /// Puts on record what came of an effect.
    pub(super) fn tell(&mut self, what: EffectWhat, effect: &Effect, number: u64, note: String, tag: Tag) {
        self.record(What::Effect(what, effect.target.clone(), number, cut(&note)), tag);
    }
}

/// The wait before the next try: exponential, capped, spread by the effect's own key; at least what the target
/// asked for, within its bound.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a wait in ms is far below 2^53, and the result is clamped to 0..=max_ms"
)]
fn wait_ms(retry: &Retry, effect: &Effect, asked: Option<u64>) -> u64 {
    let asked = asked.unwrap_or(0).min(EFFECT_RETRY_AFTER_MS_MAX);
    let power = i32::try_from(effect.tries.saturating_sub(1)).unwrap_or(i32::MAX);
    let plain = (retry.first_ms as f64 * retry.factor.powi(power)).min(retry.max_ms as f64);
    let Digest(draw) = Digest::of(&[effect.key.as_bytes(), &effect.tries.to_be_bytes()]);
    let unit = f64::from(u16::from_be_bytes([draw[0], draw[1]])) / f64::from(u16::MAX);
    let spread = plain * (1.0 + retry.jitter * (2.0 * unit - 1.0));
    asked.max(spread.clamp(0.0, retry.max_ms as f64) as u64)
}
