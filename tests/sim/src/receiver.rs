//! The receivers of effects, as `sdk/fence` makes them: a request under a key that was done is answered as before
//! and done no second time, and one with a lower fencing token than the highest of its resource changes nothing.
//!
//! What it applies is written down in the order in which it does, for the model to compare. A receiver without
//! one of its two manners must be caught by the checks: hosts send twice, and late.

use crate::finding::{Finding, Held, ensure};
use interlock_conformance::Random;
use interlock_kernel::command::{Said, Sending, Tried};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::EntityId;
use serde_json::json;
use std::collections::BTreeMap;

/// What a receiver does about requests that come twice, or late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manners {
    /// It remembers the keys of what it has done.
    pub(crate) remembers: bool,
    /// It turns away a lower token than the highest.
    pub(crate) fences: bool,
}

impl Manners {
    pub(crate) const GOOD: Self = Self { remembers: true, fences: true };
}

/// What a receiver would do with a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whim {
    /// Does it.
    Does,
    /// Refuses it for good.
    Refuses,
    /// Cannot, just now.
    Fails,
    /// Asks for a pause first.
    Busy,
}

/// A request, by its key, over all tries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) entity: EntityId,
    pub(crate) number: u64,
    pub(crate) target: String,
    pub(crate) resource: String,
    pub(crate) token: u64,
    url: String,
    method: String,
    body: Option<Doc>,
    /// Times that it was done.
    pub(crate) done: u64,
    /// Times that it was turned away for its token.
    pub(crate) fenced: u64,
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Receiver {
    manners: Manners,
    known: BTreeMap<String, Known>,
    /// The highest token that each target has done something under, by resource.
    highest: BTreeMap<(String, String), u64>,
    /// Keys in the order in which they were done.
    done: Vec<String>,
}

impl Receiver {
    pub(crate) fn new(manners: Manners) -> Self {
        Self { manners, known: BTreeMap::new(), highest: BTreeMap::new(), done: Vec::new() }
    }

    /// A request as it is known.
    pub(crate) fn known(&self, key: &str) -> Option<&Known> {
        self.known.get(key)
    }

    /// Keys in the order in which they were done.
    pub(crate) fn done(&self) -> &[String] {
        &self.done
    }

    /// A request arrives: what is answered, and what came of it in a word.
    ///
    /// # Errors
    /// Two requests under one key, something done twice, a late owner's.
    pub(crate) fn arrives(&mut self, sending: &Sending, whim: Whim) -> Result<(Tried, &'static str), Finding> {
        let effect = &sending.effect;
        let name = format!("{} effect {}", sending.entity, sending.number);
        let seen = Known {
            entity: sending.entity.clone(),
            number: sending.number,
            target: effect.target.to_string(),
            resource: effect.resource.clone(),
            token: effect.token.get(),
            url: effect.url.clone(),
            method: sending.target.method.clone(),
            body: effect.body.clone(),
            done: 0,
            fenced: 0,
        };
        let place = (seen.target.clone(), seen.resource.clone());
        let known = self.known.entry(effect.key.clone()).or_insert_with(|| seen.clone());
        let same = Known { done: known.done, fenced: known.fenced, ..seen };
        ensure(*known == same, "every_try_is_the_same_request", &name, || format!("expected {known:?}, got {same:?}"))?;
        if known.done > 0 && self.manners.remembers {
            return Ok((done(&effect.key), "done before"));
        }
        let highest = self.highest.get(&place).copied().unwrap_or_default();
        if known.token < highest && self.manners.fences {
            known.fenced += 1;
            return Ok((Tried::Fenced(said(412)), "fenced"));
        }
        match whim {
            Whim::Does => {}
            Whim::Refuses => return Ok((Tried::Failed(said(422)), "refused")),
            Whim::Fails => return Ok((again(503, None), "failed")),
            Whim::Busy => return Ok((again(429, Some(2_500)), "put off")),
        }
        known.done += 1;
        let known = known.clone();
        nothing_twice(&known, &name)?;
        ensure(known.token >= highest, "a_late_owner_changes_nothing", &name, || {
            format!("{} of {}: token {} was done after {highest}", known.target, known.resource, known.token)
        })?;
        self.highest.insert(place, known.token.max(highest));
        self.done.push(effect.key.clone());
        Ok((done(&effect.key), "done"))
    }
}

fn nothing_twice(known: &Known, name: &str) -> Held {
    ensure(known.done == 1, "an_effect_is_done_once", name, || format!("done {} times: {known:?}", known.done))
}

fn done(key: &str) -> Tried {
    Tried::Done(Said { body: Some(Doc::new(json!({ "id": key.get(..8) }))), ..said(201) })
}

fn said(status: u16) -> Said {
    Said { status, body: None, truncated: false }
}

fn again(status: u16, after_ms: Option<u64>) -> Tried {
    Tried::Again { after_ms, reason: format!("status {status}"), maybe_sent: true }
}

impl Whim {
    /// Mostly it does what it is asked for.
    pub(crate) fn of(random: &mut Random, bad: u64) -> Self {
        match (random.below(1_000) < bad, random.below(4)) {
            (false, _) => Self::Does,
            (true, 0) => Self::Refuses,
            (true, 1) => Self::Busy,
            (true, _) => Self::Fails,
        }
    }
}
