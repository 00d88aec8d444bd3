//! An entity's outbox as one decision changes it: lanes in order, bounded, and only the first of each is tried.

use super::super::draft::Draft;
use crate::command::{Stage, StagedEffect};
use crate::doc::{Digest, Doc};
use crate::ids::{LeaseName, Name, nearest};
use crate::limits::{EFFECT_BYTES_MAX, EFFECT_HEADERS_MAX, EFFECTS_MAX, EFFECTS_STAGED_MAX, LANE_MAX};
use crate::number::{FencingToken, Version};
use crate::record::{Effect, EffectWhat, Key, Outbox, Owner, Record, Stands};
use crate::rejection::{Code, Rejection};
use crate::view::{Claim, Span, Stop, Wake};
use std::collections::{BTreeMap, BTreeSet};

/// One effect, as it was and as it is now.
pub(in crate::decide) struct Slot {
    was: Option<Effect>,
    now: Option<Effect>,
}

/// What the receiver of an effect fences, and by which token.
struct Fence {
    resource: String,
    lease: Option<LeaseName>,
    token: FencingToken,
}

/// What an entity has in its outbox, read when it is asked for.
#[derive(Default)]
pub(in crate::decide) struct Slots(Option<BTreeMap<u64, Slot>>);

impl Draft<'_> {
    fn slots(&mut self) -> Result<&mut BTreeMap<u64, Slot>, Stop> {
        if self.effects.0.is_none() {
            let Outbox { unsettled, dead, .. } = self.head.outbox;
            let found = match unsettled == 0 && dead == 0 {
                true => Vec::new(),
                false => self.given.view.scan(&Span::Effects(self.id.clone()), usize::MAX)?,
            };
            let slot = |(key, record)| match (key, record) {
                (Key::Effect(_, number), Record::Effect(effect)) => {
                    Some((number, Slot { was: Some((*effect).clone()), now: Some(*effect) }))
                }
                _ => None,
            };
            self.effects.0 = Some(found.into_iter().filter_map(slot).collect());
        }
        Ok(self.effects.0.get_or_insert_default())
    }

    /// An effect that is not settled.
    pub(in crate::decide) fn effect(&mut self, number: u64) -> Result<Option<Effect>, Stop> {
        Ok(self.slots()?.get(&number).and_then(|slot| slot.now.clone()))
    }

    /// Every effect that is not settled, in order.
    pub(in crate::decide) fn unsettled(&mut self) -> Result<Vec<(u64, Effect)>, Stop> {
        Ok(self.slots()?.iter().filter_map(|(number, slot)| Some((*number, slot.now.clone()?))).collect())
    }

    /// An effect as it is from now on.
    pub(in crate::decide) fn keep_effect(&mut self, number: u64, effect: Effect) -> Result<(), Stop> {
        let slot = self.slots()?.entry(number).or_insert(Slot { was: None, now: None });
        slot.now = Some(effect);
        Ok(())
    }

    /// An effect is settled: history says how.
    pub(in crate::decide) fn settled(&mut self, number: u64) {
        if let Some(slot) = self.effects.0.as_mut().and_then(|slots| slots.get_mut(&number)) {
            slot.now = None;
        }
    }

    /// What a step has staged, ready to be committed, or why it cannot be.
    pub(in crate::decide) fn stage_effects(
        &mut self,
        stage: &Stage,
        claim: &Claim,
    ) -> Result<Result<Vec<Effect>, Rejection>, Stop> {
        if stage.effects.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        if stage.effects.len() > EFFECTS_STAGED_MAX {
            let expected = format!("at most {EFFECTS_STAGED_MAX} effects of one commit (effects_staged_max)");
            return Ok(Err(Rejection::new(Code::Limit, "effects", expected, stage.effects.len())));
        }
        let mut ready = Vec::new();
        for (index, staged) in stage.effects.iter().enumerate() {
            match self.stage_one(staged, claim, index)? {
                Ok(effect) => ready.push(effect),
                Err(refused) => return Ok(Err(refused)),
            }
        }
        Ok(self.room_for(&ready)?.map_or(Ok(ready), Err))
    }

    fn stage_one(
        &mut self,
        staged: &StagedEffect,
        claim: &Claim,
        index: usize,
    ) -> Result<Result<Effect, Rejection>, Stop> {
        let machine = self.machine();
        let Some(target) = machine.targets.get(&staged.target) else {
            let names: Vec<&str> = machine.targets.keys().map(Name::as_str).collect();
            let hint = nearest(staged.target.as_str(), names.iter().copied());
            let hint = hint.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
            let expected = if names.is_empty() { "a machine with targets".to_owned() } else { names.join(" or ") };
            let got = format!("{}{hint}", staged.target);
            return Ok(Err(Rejection::new(
                Code::NotAllowed,
                format!("target of effect {}", index.saturating_add(1)),
                expected,
                got,
            )));
        };
        if let Some(refused) = oversize(staged) {
            return Ok(Err(refused));
        }
        let url = match self.given.rules.fill(&target.url, &staged.fill) {
            Ok(url) => url,
            Err(found) => {
                let subject = format!("url of {}{}", staged.target, found.path);
                return Ok(Err(Rejection::new(Code::Invalid, subject, &found.expected, &found.got)));
            }
        };
        let fence = match &target.fence {
            None => Ok(Fence { resource: self.id.to_string(), lease: None, token: claim.token }),
            Some(value) => {
                let payload = self.payload()?;
                self.fenced_by(value, payload, claim)?
            }
        };
        let Fence { resource, lease, token } = match fence {
            Ok(fence) => fence,
            Err(refused) => return Ok(Err(refused)),
        };
        let now = self.now();
        Ok(Ok(Effect {
            target: staged.target.clone(),
            revision: self.head.revision,
            fill: staged.fill.clone(),
            url,
            headers: staged.headers.clone(),
            body: staged.body.clone(),
            key: String::new(), // with its number
            resource,
            lease,
            token,
            execution: claim.execution.ordinal,
            version: self.head.version,
            visit: self.head.visit,
            attempt: Some(claim.attempt),
            at: now.wall,
            tries: 0,
            maybe_sent: false,
            last: None,
            stands: Stands::Waits,
        }))
    }

    /// The lease that fences an effect, which the execution has.
    fn fenced_by(
        &mut self,
        value: &crate::value::Value,
        payload: Option<Doc>,
        claim: &Claim,
    ) -> Result<Result<Fence, Rejection>, Stop> {
        let name = match self.names(std::slice::from_ref(value), payload)?.map(|mut names| names.pop()) {
            Ok(Some(name)) => name,
            Ok(None) => return Ok(Err(Rejection::new(Code::Require, &self.id, "the name of a lease", "none"))),
            Err(why) => return Ok(Err(Rejection::new(Code::Require, &self.id, "the name of a lease", why))),
        };
        let owner = Owner::Execution(claim.execution.clone());
        let lease = self.lease(&name)?;
        if !lease.is_held_by(&owner, None) {
            let expected = format!("lease {name}, held by the execution");
            let got = lease
                .holder()
                .map_or("held by nobody".to_owned(), |holder| format!("held by {}", holder.owner.shown(&holder.label)));
            return Ok(Err(Rejection::new(Code::Require, &self.id, expected, got)));
        }
        let token = lease.holder().map_or(claim.token, |holder| holder.token);
        Ok(Ok(Fence { resource: name.to_string(), lease: Some(name), token }))
    }

    /// Whether the lanes have room for more.
    fn room_for(&mut self, ready: &[Effect]) -> Result<Option<Rejection>, Stop> {
        let mut lanes: BTreeMap<String, usize> = BTreeMap::new();
        let mut all = ready.len();
        for (_, effect) in self.unsettled()? {
            all = all.saturating_add(1);
            let count = lanes.entry(effect.resource).or_default();
            *count = count.saturating_add(1);
        }
        for effect in ready {
            let count = lanes.entry(effect.resource.clone()).or_default();
            *count = count.saturating_add(1);
            if *count > LANE_MAX {
                let expected = format!("at most {LANE_MAX} unsettled effects of one lane (lane_max)");
                let subject = format!("lane {} of {}", effect.resource, self.id);
                let refused = Rejection::new(Code::OutboxFull, subject, expected, *count);
                return Ok(Some(refused.retry_after(crate::limits::BUSY_RETRY_MS)));
            }
        }
        let most = usize::try_from(EFFECTS_MAX).unwrap_or(usize::MAX);
        Ok((all > most).then(|| {
            let expected = format!("at most {EFFECTS_MAX} unsettled effects of one entity (effects_max)");
            Rejection::new(Code::OutboxFull, &self.id, expected, all).retry_after(crate::limits::BUSY_RETRY_MS)
        }))
    }

    /// Puts staged effects into the outbox, at this version.
    pub(in crate::decide) fn commit_effects(&mut self, ready: Vec<Effect>, version: Version) -> Result<(), Stop> {
        for effect in ready {
            self.put_effect(Effect { version, ..effect })?;
        }
        Ok(())
    }

    fn put_effect(&mut self, effect: Effect) -> Result<u64, Stop> {
        let number = self.head.outbox.last.saturating_add(1);
        self.head.outbox.last = number;
        let identity = format!("{}@{}", self.id, self.head.incarnation);
        let key = Digest::of(&[identity.as_bytes(), &number.to_be_bytes()]).to_string();
        let key = key.get(..32).unwrap_or(&key).to_owned();
        self.keep_effect(number, Effect { key, ..effect })?;
        Ok(number)
    }

    /// Asks a target to undo what came too late. None if it cannot be asked.
    pub(in crate::decide) fn compensate(
        &mut self,
        undo: &Name,
        done: &Effect,
        result: &serde_json::Value,
    ) -> Result<Option<u64>, Stop> {
        let machine = self.machine();
        let Some(target) = machine.targets.get(undo) else { return Ok(None) };
        let Ok(url) = self.given.rules.fill(&target.url, &done.fill) else { return Ok(None) };
        let body = serde_json::json!({
            "undoes": done.key,
            "target": done.target.as_str(),
            "result": result,
        });
        // Of whoever acts by now: under a token above an open attempt's, what that asks for later would be refused.
        let open = self.head.lock.as_ref().and_then(|lock| lock.attempt).map(|open| open.token);
        let effect = Effect {
            target: undo.clone(),
            revision: self.head.revision,
            url,
            headers: Vec::new(),
            body: Some(Doc::new(body)),
            token: open.unwrap_or_else(|| FencingToken::mint(self.now().seq)),
            version: self.head.version,
            visit: self.head.visit,
            attempt: None,
            at: self.now().wall,
            tries: 0,
            maybe_sent: false,
            last: None,
            stands: Stands::Waits,
            // By the entity: the lease of its execution is gone.
            resource: self.id.to_string(),
            lease: None,
            ..done.clone()
        };
        self.put_effect(effect).map(Some)
    }

    /// A failure takes back what no target can have seen; what was given up in the visit that is left goes too.
    pub(in crate::decide) fn leave_effects(&mut self, failed: bool) -> Result<(), Stop> {
        let Outbox { unsettled, dead, .. } = self.head.outbox;
        if unsettled == 0 && dead == 0 {
            return Ok(());
        }
        let running = self.head.lock.as_ref().map(|lock| lock.ordinal);
        for (number, effect) in self.unsettled()? {
            let unsent = failed && effect.is_unsent() && running == Some(effect.execution);
            if unsent || effect.is_dead() {
                self.settled(number);
                let note =
                    if effect.is_dead() { "given up, and its visit was left" } else { "unsent, its execution failed" };
                self.dropped.push((EffectWhat::Dropped, effect.target, number, note.to_owned()));
            }
        }
        Ok(())
    }

    /// One of each lane is in flight or is tried, the first of those that wait; the counts are those of what is there.
    /// One that is tried again behind its lane (its target skips what was given up) waits for the one in flight.
    pub(in crate::decide) fn arrange(&mut self) {
        let now = self.now().store;
        let targets = &self.revision.machine.targets;
        let Some(slots) = self.effects.0.as_mut() else { return };
        let there = slots.values().filter_map(|slot| slot.now.as_ref());
        let flying = there.filter(|effect| effect.is_in_flight()).map(|effect| effect.resource.clone());
        let mut busy: BTreeSet<String> = flying.collect();
        let (mut unsettled, mut dead) = (0_u32, 0_u32);
        for effect in slots.values_mut().filter_map(|slot| slot.now.as_mut()) {
            let skipped = targets.get(&effect.target).is_some_and(|target| !target.holds(effect));
            if effect.is_dead() {
                dead = dead.saturating_add(1);
            } else {
                unsettled = unsettled.saturating_add(1);
            }
            if skipped {
                continue;
            }
            let first = busy.insert(effect.resource.clone());
            match effect.stands {
                Stands::Waits if first => effect.stands = Stands::Due(now),
                Stands::Due(_) if !first => effect.stands = Stands::Waits,
                Stands::Waits | Stands::Due(_) | Stands::InFlight(_) | Stands::Dead { .. } => {}
            }
        }
        self.head.outbox.unsettled = unsettled;
        self.head.outbox.dead = dead;
    }

    /// The writes of the outbox: records and index.
    pub(in crate::decide) fn write_effects(&mut self) {
        self.arrange();
        let Some(slots) = self.effects.0.take() else { return };
        for (number, Slot { was, now }) in slots {
            if was == now {
                continue;
            }
            let index = |effect: &Option<Effect>| effect.as_ref().and_then(|effect| effect.index(&self.id, number));
            let (before, after) = (index(&was), index(&now));
            if before != after {
                self.writes.extend(before.map(|key| (key, None)));
                if let Some(key) = after {
                    if let Key::Outbox(_, _, at, ..) = &key {
                        self.wake.push(Wake::Send(*at));
                    }
                    self.writes.push((key, Some(Record::Mark)));
                }
            }
            let record = now.map(|effect| Record::Effect(Box::new(effect)));
            self.writes.push((Key::Effect(self.id.clone(), number), record));
        }
    }
}

/// More than an effect may carry.
fn oversize(staged: &StagedEffect) -> Option<Rejection> {
    let subject = || format!("effect on {}", staged.target);
    if staged.headers.len() > EFFECT_HEADERS_MAX {
        let expected = format!("at most {EFFECT_HEADERS_MAX} headers (effect_headers_max)");
        return Some(Rejection::new(Code::Limit, subject(), expected, staged.headers.len()));
    }
    let texts = staged.headers.iter().chain(&[]).map(|(name, value)| name.len().saturating_add(value.len()));
    let filled = staged.fill.iter().map(|(name, value)| name.len().saturating_add(value.len()));
    let bytes = texts.chain(filled).fold(0_usize, usize::saturating_add);
    if bytes > EFFECT_BYTES_MAX {
        let expected = format!("at most {EFFECT_BYTES_MAX} bytes besides the body (effect_bytes_max)");
        return Some(Rejection::new(Code::Limit, subject(), expected, format!("{bytes} bytes")));
    }
    staged.body.as_ref().and_then(|body| super::super::enter::oversize("body", body))
}
