//! What must hold of effects at every commit: one key each, lanes in order and one of each under way, nothing sent
//! that is not committed, nothing settled otherwise than its receiver says.

use crate::finding::{Finding, Held, ensure};
use crate::model::Model;
use crate::wire::Wire;
use interlock_kernel::command::Sending;
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::{Effect, EffectWhat, Entry, Head, Key, Owner, Record, Stands, What};
use interlock_kernel::time::StoreTime;
use std::collections::BTreeMap;

/// An effect over its whole life, by its key.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) entity: EntityId,
    pub(crate) number: u64,
    /// As it was first committed.
    pub(crate) first: Effect,
    /// Whether a try of it was ever begun.
    pub(crate) begun: bool,
    /// Whether it ever stood given up, or was settled otherwise than as done.
    pub(crate) given_up: bool,
    /// What became of it in the end.
    pub(crate) fate: Option<EffectWhat>,
}

/// Effects of one entity, by number.
pub(crate) type Effects = BTreeMap<u64, Effect>;

impl Model {
    /// An entity's effects that are not settled.
    pub(crate) fn effects(&self, id: &EntityId) -> impl Iterator<Item = (u64, &Effect)> {
        let span = Key::Effect(id.clone(), 0)..=Key::Effect(id.clone(), u64::MAX);
        self.records.range(span).filter_map(|(key, record)| match (key, record) {
            (Key::Effect(_, number), Record::Effect(effect)) => Some((*number, &**effect)),
            _ => None,
        })
    }

    /// When effects are tried next.
    pub(crate) fn tries(&self) -> impl Iterator<Item = StoreTime> {
        self.records.values().filter_map(|record| match record {
            Record::Effect(effect) => match effect.stands {
                Stands::Due(at) => Some(at),
                _ => None,
            },
            _ => None,
        })
    }

    /// Effects that wait for an operator.
    pub(crate) fn given_up(&self) -> Vec<(EntityId, u64)> {
        let dead = |(key, record): (&Key, &Record)| match (key, record) {
            (Key::Effect(id, number), Record::Effect(effect)) if effect.is_dead() => Some((id.clone(), *number)),
            _ => None,
        };
        self.records.iter().filter_map(dead).collect()
    }

    pub(crate) fn effects_before(&self, id: &EntityId) -> Effects {
        self.effects(id).map(|(number, effect)| (number, effect.clone())).collect()
    }

    /// The outbox of an entity that a job has touched is as it may be after what it was.
    pub(crate) fn outbox_holds(&mut self, id: &EntityId, was: &Effects, entries: &[&Entry]) -> Held {
        let is = self.effects_before(id);
        if was.is_empty() && is.is_empty() {
            return Ok(());
        }
        let head = self.head(id).cloned();
        for (number, effect) in &is {
            match was.get(number) {
                None => self.is_born(id, *number, effect)?,
                Some(before) => {
                    stays_itself(id, *number, before, effect)?;
                    self.goes_on(id, *number, before, effect, &is, head.as_ref())?;
                }
            }
        }
        for (number, effect) in was.iter().filter(|(number, _)| !is.contains_key(number)) {
            self.is_settled(id, *number, effect, entries)?;
        }
        self.counts_agree(id, head.as_ref(), &is)
    }

    /// A new effect has a number and a key of its own, and a token that does not fall in its lane.
    fn is_born(&mut self, id: &EntityId, number: u64, effect: &Effect) -> Held {
        let name = format!("{id} effect {number}");
        let known = self.lives.get(&effect.key);
        ensure(known.is_none(), "an_effect_has_a_key_of_its_own", &name, || format!("{known:?} has it, too"))?;
        let lane = |life: &&Life| life.entity == *id && life.first.resource == effect.resource;
        let highest = self.lives.values().filter(lane).map(|life| life.first.token.get()).max().unwrap_or_default();
        let token = effect.token.get();
        ensure(token >= highest, "token_never_falls", &name, || format!("expected {highest} or more, got {token}"))?;
        if let Some(lease) = &effect.lease {
            let execution = self.head(id).map(|head| head.execution(id, effect.execution));
            let theirs = execution.is_some_and(|theirs| self.grants.has(lease, token, &Owner::Execution(theirs)));
            ensure(theirs, "an_effect_carries_the_token_of_its_lease", &name, || format!("{lease} {token}"))?;
        }
        let entity = id.clone();
        let first = effect.clone();
        let life = Life { entity, number, first, begun: false, given_up: false, fate: None };
        self.lives.insert(effect.key.clone(), life);
        Ok(())
    }

    /// A try begins only for the first of its lane, with none before it under way.
    fn goes_on(
        &mut self,
        id: &EntityId,
        number: u64,
        before: &Effect,
        effect: &Effect,
        all: &Effects,
        head: Option<&Head>,
    ) -> Held {
        let Some(life) = self.lives.get_mut(&effect.key) else {
            return Err(Finding::new("an_effect_has_a_key_of_its_own", id, format!("{effect:?} was never new")));
        };
        life.begun |= effect.is_in_flight();
        life.given_up |= effect.is_dead();
        if before.is_in_flight() || !effect.is_in_flight() {
            return Ok(());
        }
        let machine = head.map(|head| self.machine(id, head)).transpose()?;
        let skips = |other: &Effect| {
            let target = machine.and_then(|machine| machine.targets.get(&other.target));
            target.is_some_and(|target| !target.holds(other))
        };
        let lane = || all.iter().filter(|(other, of)| **other != number && of.resource == effect.resource);
        let ahead = lane().find(|(other, of)| **other < number && !skips(of));
        let name = format!("{id} effect {number}");
        ensure(ahead.is_none(), "a_lane_is_in_order", &name, || format!("sent before {ahead:?}"))?;
        let flies = lane().find(|(_, of)| of.is_in_flight());
        ensure(flies.is_none(), "one_effect_of_a_lane_is_in_flight", name, || format!("beside {flies:?}"))
    }

    /// What is settled says how, once.
    fn is_settled(&mut self, id: &EntityId, number: u64, effect: &Effect, entries: &[&Entry]) -> Held {
        let name = format!("{id} effect {number}");
        let fates: Vec<EffectWhat> = entries.iter().filter_map(|entry| fate_of(entry, number)).collect();
        let [fate] = fates[..] else {
            return Err(Finding::new("an_effect_is_settled_on_record", name, format!("{effect:?}: {fates:?}")));
        };
        if let Some(life) = self.lives.get_mut(&effect.key) {
            ensure(life.fate.is_none(), "an_effect_is_settled_once", &name, || format!("{life:?}"))?;
            life.fate = Some(fate);
            life.given_up |= fate != EffectWhat::Done;
        }
        Ok(())
    }

    /// The head counts what is there, and only the first of each lane is in the index.
    fn counts_agree(&self, id: &EntityId, head: Option<&Head>, is: &Effects) -> Held {
        let dead = is.values().filter(|effect| effect.is_dead()).count();
        let (waiting, counts) = (is.len() - dead, head.map(|head| head.outbox));
        let agrees = counts.is_some_and(|counts| {
            (counts.unsettled as usize, counts.dead as usize) == (waiting, dead)
                && is.last_key_value().is_none_or(|(last, _)| *last <= counts.last)
        });
        let empty = counts.is_none() && is.is_empty();
        ensure(agrees || empty, "outstanding_is_named", id, || format!("{counts:?} and {is:?}"))
    }

    /// What a host sends is committed, as it is, under way, and this try of it.
    pub(crate) fn may_be_sent(&self, sending: &Sending) -> Held {
        let stored = self.effects(&sending.entity).find(|(number, _)| *number == sending.number);
        let same = stored.is_some_and(|(_, stored)| *stored == sending.effect && stored.is_in_flight());
        let name = format!("{} effect {}", sending.entity, sending.number);
        ensure(same, "what_is_sent_is_committed", name, || format!("sent {:?}, stored {stored:?}", sending.effect))
    }

    /// What was committed of effects in one job is what their receivers say.
    pub(crate) fn is_as_the_receiver_says(&self, id: &EntityId, entry: &Entry, key: &str, wire: &Wire) -> Held {
        let What::Effect(what, _, number, note) = &entry.what else { return Ok(()) };
        let name = format!("{id} effect {number}");
        let (done, fenced, arrived) =
            wire.ask(|receiver| receiver.known(key).map_or((0, 0, false), |known| (known.done, known.fenced, true)));
        match what {
            EffectWhat::Done => ensure(done == 1, "what_is_done_was_done", name, || format!("done {done} times")),
            EffectWhat::Fenced => {
                let unsent = note.starts_with("unsent");
                ensure(fenced > 0 || unsent, "what_is_fenced_was_refused", name, || note.clone())
            }
            EffectWhat::Dropped if note.starts_with("unsent") => {
                let free = !arrived && !wire.carries(key);
                ensure(free, "only_what_nobody_has_seen_is_taken_back", name, || note.clone())
            }
            EffectWhat::Dropped | EffectWhat::Failed | EffectWhat::Retried => Ok(()),
        }
    }

    /// A receiver does one lane's effects in the order in which they were asked for, but for what was given up.
    pub(crate) fn is_done_in_order(&self, wire: &Wire) -> Held {
        let theorem = "a_lane_is_done_in_order";
        let mut highest: BTreeMap<(&EntityId, &str, u64), u64> = BTreeMap::new();
        let done = wire.ask(|receiver| receiver.done().to_vec());
        for key in &done {
            let Some(life) = self.lives.get(key) else {
                return Err(Finding::new("an_effect_exists_if_its_commit_does", key, "done, and never committed"));
            };
            let incarnation = self.incarnation_of(life);
            let last = highest.entry((&life.entity, &life.first.resource, incarnation)).or_default();
            let late = life.number < *last && !life.given_up;
            ensure(!late, theorem, &life.entity, || format!("effect {} after {last}", life.number))?;
            *last = (*last).max(life.number);
        }
        Ok(())
    }

    /// Which incarnation asked for an effect: the newest that began before its commit.
    fn incarnation_of(&self, life: &Life) -> u64 {
        let born = self.born.get(&life.entity).into_iter().flatten();
        born.filter(|incarnation| **incarnation <= life.first.token.get()).max().copied().unwrap_or_default()
    }

    /// In the end nothing is left over, and what receivers did is what is on record.
    pub(crate) fn effects_are_over(&self, wire: &Wire) -> Held {
        for (key, life) in &self.lives {
            let name = format!("{} effect {}", life.entity, life.number);
            let done = wire.ask(|receiver| receiver.known(key).map_or(0, |known| known.done));
            ensure(life.fate.is_some(), "every_effect_is_settled", &name, || format!("{life:?}"))?;
            ensure(life.fate != Some(EffectWhat::Done) || done == 1, "what_is_done_was_done", &name, || {
                format!("done {done} times: {life:?}")
            })?;
            ensure(done == 0 || life.begun, "what_is_sent_is_committed", &name, || format!("{life:?}"))?;
        }
        self.is_done_in_order(wire)
    }
}

/// What an entry says became of an effect, if that settles it.
fn fate_of(entry: &Entry, number: u64) -> Option<EffectWhat> {
    match entry.what {
        What::Effect(EffectWhat::Retried, ..) => None,
        What::Effect(what, _, of, _) if of == number => Some(what),
        _ => None,
    }
}

/// What never changes of an effect, however often it is tried.
fn stays_itself(id: &EntityId, number: u64, was: &Effect, is: &Effect) -> Held {
    let (tries, maybe_sent, last, stands) = (is.tries, is.maybe_sent, is.last.clone(), is.stands.clone());
    let same = Effect { tries, maybe_sent, last, stands, ..was.clone() } == *is;
    ensure(same, "every_try_is_the_same_request", format!("{id} effect {number}"), || format!("{was:?}, {is:?}"))?;
    ensure(is.maybe_sent || !was.maybe_sent, "what_was_sent_was_sent", id, || format!("{was:?}, {is:?}"))
}

/// Keys of effects that a job removes, by entity and number.
pub(crate) fn keys_of(was: &BTreeMap<EntityId, Effects>, id: &EntityId, number: u64) -> Option<String> {
    was.get(id).and_then(|effects| effects.get(&number)).map(|effect| effect.key.clone())
}
