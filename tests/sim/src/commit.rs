//! What must hold at every single commit: the theorems of the kernel, and how a record may follow another.

use crate::author;
use crate::finding::{Finding, Held, ensure};
use crate::gated::Write;
use crate::leases::{Before, Touched};
use crate::model::{End, Model, decode};
use crate::outbox::{Effects, keys_of};
use interlock_coordinator::entity_of;
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, EventId, LeaseName, Name};
use interlock_kernel::machine::StateKind;
use interlock_kernel::record::{
    AnswerKind, Dedup, Entry, Head, Holder, Key, Lease, LeaseEntry, LeaseWhat, Part, Record, What,
};
use interlock_kernel::theorems;
use interlock_kernel::time::StoreTime;
use interlock_store::Stamp;
use std::collections::{BTreeMap, BTreeSet};

/// What one committed job did, in the order it did it.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// The entries it wrote.
    pub(crate) entries: Vec<(EntityId, u64, Entry)>,
    /// What became of leases.
    pub(crate) leases: Vec<LeaseWhat>,
    /// Leases that were granted.
    pub(crate) granted: Vec<(LeaseName, Holder)>,
    /// Keys of the effects that its entries are about, in the order of the entries.
    pub(crate) effects: Vec<Option<String>>,
}

/// What a job has touched, as it was before.
#[derive(Default)]
struct Was {
    heads: BTreeMap<EntityId, Head>,
    effects: BTreeMap<EntityId, Effects>,
    leases: BTreeMap<LeaseName, Option<Lease>>,
}

impl Model {
    /// Takes in what a job wrote, and checks that it could.
    ///
    /// # Errors
    /// The first theorem that does not hold.
    pub(crate) fn commit(&mut self, stamp: Stamp, writes: &[Write]) -> Result<Committed, Finding> {
        ensure(stamp.seq > self.seq, "numbers_grow", stamp.seq, || format!("expected above {}", self.seq))?;
        self.seq = stamp.seq;
        let mut committed = Committed::default();
        let mut touched = BTreeSet::new();
        let mut removed = Vec::new();
        let decoded = writes.iter().map(decode).collect::<Result<Vec<_>, Finding>>()?;
        let was = self.as_it_was(&decoded);
        let mut of_leases: BTreeMap<LeaseName, Vec<LeaseEntry>> = BTreeMap::new();
        for ((key, record), write) in decoded.into_iter().zip(writes) {
            match (&key, &record) {
                (Key::History(id, incarnation, number), Some(Record::Entry(entry))) => {
                    self.follows(id, incarnation.get(), *number, entry, stamp)?;
                    committed.entries.push((id.clone(), incarnation.get(), (**entry).clone()));
                }
                (Key::History(id, incarnation, number), None) => {
                    removed.push((id.clone(), *incarnation, *number));
                }
                (Key::Dedup(id, event), record) => {
                    let now = match record {
                        Some(Record::Dedup(dedup)) => Some(dedup),
                        _ => None,
                    };
                    self.answers_stay(id, event, now, stamp)?;
                }
                (Key::LeaseEntry(name, _), Some(Record::LeaseEntry(entry))) => {
                    of_leases.entry(name.clone()).or_default().push((**entry).clone());
                }
                _ => {}
            }
            touched.extend(entity_of(key.clone()));
            self.put(write, key, record);
        }
        for (id, incarnation, number) in removed {
            let current = self.head(&id).filter(|head| head.incarnation == incarnation);
            let old = current.is_none_or(|head| number < head.history.first);
            ensure(old, "only_old_history_is_removed", &id, || format!("entry {number} of {current:?}"))?;
        }
        for (name, lease) in &was.leases {
            let entries: Vec<&LeaseEntry> = of_leases.get(name).into_iter().flatten().collect();
            committed.leases.extend(entries.iter().map(|entry| entry.what));
            let granted = self.lease_holds(&Touched { name, was: lease.as_ref(), entries }, stamp)?;
            committed.granted.extend(granted.map(|holder| (name.clone(), holder)));
        }
        for id in &touched {
            self.entity_holds(&was, id, &committed, stamp)?;
        }
        if !touched.is_empty() || !was.leases.is_empty() {
            self.leases_and_heads_agree(&touched)?;
        }
        self.one_session()?;
        committed.effects = committed.entries.iter().map(|(id, _, entry)| self.effect_of(&was, id, entry)).collect();
        Ok(committed)
    }

    /// Everything that a job is about to touch.
    fn as_it_was(&self, writes: &[(Key, Option<Record>)]) -> Was {
        let mut was = Was::default();
        for (key, _) in writes {
            if let Key::Lease(name) | Key::LeaseEntry(name, _) | Key::Lapse(_, name) = key {
                was.leases.entry(name.clone()).or_insert_with(|| self.lease(name).cloned());
            }
            let Some(id) = entity_of(key.clone()) else { continue };
            if let Some(head) = self.head(&id).filter(|_| !was.heads.contains_key(&id)) {
                was.effects.insert(id.clone(), self.effects_before(&id));
                was.heads.insert(id, head.clone());
            }
        }
        was
    }

    /// The key of the effect that an entry is about.
    fn effect_of(&self, was: &Was, id: &EntityId, entry: &Entry) -> Option<String> {
        let What::Effect(_, _, number, _) = entry.what else { return None };
        let now = self.effects(id).find(|(other, _)| *other == number).map(|(_, effect)| effect.key.clone());
        now.or_else(|| keys_of(&was.effects, id, number))
    }

    /// An entry follows the one before: number, chain, version, state.
    fn follows(&mut self, id: &EntityId, incarnation: u64, number: u64, entry: &Entry, stamp: Stamp) -> Held {
        let theorem = "history_folds_to_entity";
        let name = format!("{id}@{incarnation} entry {number}");
        let place = (id.clone(), incarnation);
        let first = End { number: 0, version: 0, state: entry.from.clone(), hash: Digest([0; 32]) };
        let end = self.ends.get(&place).cloned().unwrap_or(first);
        let version = entry.version.get();
        let grown = version.wrapping_sub(end.version);
        ensure(number == entry.number && number == end.number + 1, theorem, &name, || {
            format!("expected number {}, got {}", end.number + 1, entry.number)
        })?;
        ensure(entry.previous == end.hash, theorem, &name, || "expected the hash of the entry before".to_owned())?;
        ensure(entry.from == end.state, theorem, &name, || format!("expected from {}, got {}", end.state, entry.from))?;
        ensure(grown <= 1, "version_grows_by_one", &name, || {
            format!("expected {} or one more, got {version}", end.version)
        })?;
        let still = grown == 0 && entry.from == entry.to;
        ensure(!theorems::is_fact(entry) || still, "a_fact_changes_nothing", &name, || format!("{entry:?}"))?;
        let same_time = entry.store.0 == stamp.store_ms && entry.wall.0 == stamp.wall_ms;
        ensure(same_time, "one_job_has_one_time", &name, || format!("expected {stamp:?}, got {entry:?}"))?;
        let key = Key::History(id.clone(), interlock_kernel::Incarnation::stored(incarnation), number);
        let end = End { number, version, state: entry.to.clone(), hash: entry.hash(&key) };
        self.ends.insert(place, end);
        self.log.insert((id.clone(), incarnation, number), entry.clone());
        Ok(())
    }

    /// A remembered answer is the answer, until it is forgotten; a queued one turns once.
    fn answers_stay(&mut self, id: &EntityId, event: &EventId, now: Option<&Dedup>, stamp: Stamp) -> Held {
        let theorem = "same_dedup_id_same_answer";
        let name = format!("{id} event {event}");
        let known = self.dedup(id, event).filter(|known| known.remembers(StoreTime(stamp.store_ms)));
        let Some(now) = now else {
            return ensure(known.is_none(), theorem, name, || format!("forgotten within its window: {known:?}"));
        };
        if let Some(known) = known {
            let turned = known.answer.kind == AnswerKind::Queued && now.answer.kind != AnswerKind::Queued;
            ensure(turned && known.digest == now.digest, theorem, &name, || {
                format!("expected {:?}, got {:?}", known.answer, now.answer)
            })?;
        }
        let turns = self.turns.entry((id.clone(), event.clone())).or_default();
        turns.push(now.clone());
        Ok(())
    }

    /// What must hold of an entity that a job has touched.
    fn entity_holds(&mut self, was: &Was, id: &EntityId, committed: &Committed, stamp: Stamp) -> Held {
        let before = was.heads.get(id);
        let entries: Vec<_> = committed.entries.iter().filter(|(entity, ..)| entity == id).collect();
        self.tokens_grow(before, id, stamp)?;
        let leases: Before<'_> = was.leases.iter().map(|(name, lease)| (name.clone(), lease.as_ref())).collect();
        for (_, incarnation, entry) in &entries {
            wrote_as_the_open_attempt(before, id, *incarnation, entry)?;
            if matches!(entry.what, What::Saved(_) | What::Transition(_)) {
                self.holds_its_leases(id, before, &leases, stamp.store_ms)?;
            }
            self.fires_in_time(before, id, entry, stamp)?;
        }
        let none = Effects::new();
        let of_effects: Vec<&Entry> = entries.iter().map(|(.., entry)| entry).collect();
        self.outbox_holds(id, was.effects.get(id).unwrap_or(&none), &of_effects)?;
        let Some(head) = self.head(id).cloned() else { return self.is_gone(id) };
        let same = before.filter(|before| before.incarnation == head.incarnation);
        if same.is_none() {
            let minted = head.incarnation.get() == stamp.seq;
            ensure(minted, "an_incarnation_is_new", id, || format!("{} at {stamp:?}", head.incarnation))?;
            self.born.entry(id.clone()).or_default().insert(head.incarnation.get());
        }
        self.history_ends_in(id, &head)?;
        let machine = self.machine(id, &head)?;
        let broken = theorems::entity(&head, machine);
        if let Some(theorem) = broken.first() {
            return Err(Finding::new(theorem, id, format!("{head:?}")));
        }
        if let Some(before) = same {
            let over = self.kind(id, before)?.is_final();
            let same = (&before.state, before.version) == (&head.state, head.version);
            ensure(!over || same, "final_is_final", id, || format!("{before:?} became {head:?}"))?;
            let steps = entries.iter().filter(|(.., entry)| entry.version > before.version).count();
            let grown = head.version.get().saturating_sub(before.version.get());
            ensure(grown <= steps as u64, "version_grows_by_one", id, || format!("by {grown} in {steps} entries"))?;
            let applied = entries.iter().filter(|(.., entry)| matches!(entry.what, What::Applied(_))).count();
            let grown = head.generation.saturating_sub(before.generation);
            ensure(grown == applied as u64, "a_generation_is_an_apply", id, || format!("by {grown} in {applied}"))?;
            timers_stay(id, before, &head, &of_effects)?;
        }
        self.index_agrees(id, &head)?;
        self.inbox_agrees(id, &head)?;
        let unlocked = self.entries(id).filter(|(incarnation, entry)| {
            *incarnation == head.incarnation.get() && matches!(entry.what, What::Unlocked(..))
        });
        let unlocked = i64::try_from(unlocked.count()).unwrap_or(i64::MAX);
        author::holds(id, &head, self.kind(id, &head)?, self.data(id), unlocked)
    }

    /// A new token is the number of the job that minted it, and above every other.
    fn tokens_grow(&mut self, before: Option<&Head>, id: &EntityId, stamp: Stamp) -> Held {
        let open = |head: &Head| head.lock.as_ref().and_then(|lock| lock.attempt);
        let (was, is) = (before.and_then(open), self.head(id).and_then(open));
        let Some(is) = is.filter(|is| was.is_none_or(|was| was.token != is.token)) else { return Ok(()) };
        let token = is.token.get();
        ensure(token == stamp.seq && token > self.token, "token_never_falls", id, || {
            format!("expected {} and above {}, got {token}", stamp.seq, self.token)
        })?;
        self.token = token;
        Ok(())
    }

    /// A timer fires once in its visit, when its visit has it, and not before its time.
    fn fires_in_time(&mut self, before: Option<&Head>, id: &EntityId, entry: &Entry, stamp: Stamp) -> Held {
        let What::Timer(name) = &entry.what else { return Ok(()) };
        let timer = before.and_then(|head| head.timers.iter().find(|timer| timer.name == *name));
        let due = timer.is_some_and(|timer| timer.due.0 <= stamp.wall_ms);
        ensure(due, "a_timer_fires_late_never_early", id, || format!("{timer:?} at {}", stamp.wall_ms))?;
        let place = before.map(|head| (id.clone(), head.incarnation.get(), head.visit.get(), name.clone()));
        let first = place.is_some_and(|place| self.fired.insert(place));
        ensure(first, "a_timer_fires_once", id, || format!("{name}: {before:?}"))
    }

    fn history_ends_in(&self, id: &EntityId, head: &Head) -> Held {
        let end = self.ends.get(&(id.clone(), head.incarnation.get()));
        let agrees = end.is_some_and(|end| {
            (end.number, end.version) == (head.history.last, head.version.get())
                && end.state == head.state
                && end.hash == head.history.hash
        });
        ensure(agrees, "history_folds_to_entity", id, || format!("{end:?} is not the end of {head:?}"))
    }

    fn index_agrees(&self, id: &EntityId, head: &Head) -> Held {
        let implied = self.implied(id, head);
        let found = self.index.get(id).cloned().unwrap_or_default();
        ensure(implied == found, "the_head_implies_its_index", id, || format!("expected {implied:?}, got {found:?}"))
    }

    /// The inbox holds what the head counts; at rest it is empty.
    fn inbox_agrees(&self, id: &EntityId, head: &Head) -> Held {
        let (next, length) = (head.inbox.next, u64::from(head.inbox.length));
        let places: Vec<u64> = self.inbox(id).map(|(place, _)| place).collect();
        let expected: Vec<u64> = (next.saturating_sub(length)..next).collect();
        ensure(places == expected, "the_head_counts_its_inbox", id, || {
            format!("expected {expected:?}, got {places:?}")
        })?;
        let rest = self.kind(id, head)? == StateKind::Rest;
        ensure(!rest || length == 0, "no_client_meets_rest_with_a_full_inbox", id, || format!("{length} wait"))
    }

    /// Queued events of an entity, by place.
    pub(crate) fn inbox(&self, id: &EntityId) -> impl Iterator<Item = (u64, &interlock_kernel::record::Queued)> {
        let span = Key::Inbox(id.clone(), 0)..=Key::Inbox(id.clone(), u64::MAX);
        self.records.range(span).filter_map(|(key, record)| match (key, record) {
            (Key::Inbox(_, place), Record::Queued(queued)) => Some((*place, queued)),
            _ => None,
        })
    }

    /// Nothing is left of a deleted entity but its history and the answers it gave.
    fn is_gone(&self, id: &EntityId) -> Held {
        let theorem = "a_deleted_entity_leaves_nothing_behind";
        let index = self.index.get(id).is_none_or(BTreeSet::is_empty);
        let part = Part::ALL.iter().find(|part| self.records.contains_key(&Key::Part(id.clone(), **part)));
        ensure(index && part.is_none(), theorem, id, || format!("{:?} {part:?}", self.index.get(id)))?;
        ensure(self.inbox(id).next().is_none(), theorem, id, || "queued events".to_owned())
    }

    /// Opening a session closes every other.
    fn one_session(&self) -> Held {
        let open = self.records.iter().filter(|(key, record)| {
            matches!((key, record), (Key::Session(_), Record::Session(session)) if session.closed.is_none())
        });
        let open = open.count();
        ensure(open <= 1, "one_session_is_open", "the store", || format!("{open} are open"))
    }
}

/// A timer that is set stays as it is while its visit lasts, but for what a step says with a save.
fn timers_stay(id: &EntityId, before: &Head, head: &Head, entries: &[&Entry]) -> Held {
    let saved = entries.iter().any(|entry| matches!(entry.what, What::Saved(_)));
    if before.visit != head.visit || saved {
        return Ok(());
    }
    let now = |name: &Name| head.timers.iter().find(|timer| timer.name == *name);
    let moved = before.timers.iter().find(|was| now(&was.name).is_some_and(|is| is.due != was.due));
    ensure(moved.is_none(), "a_timer_is_fixed_at_entry", id, || format!("{moved:?} became {:?}", head.timers))
}

/// Only the open attempt saves and moves.
fn wrote_as_the_open_attempt(before: Option<&Head>, id: &EntityId, incarnation: u64, entry: &Entry) -> Held {
    if !matches!(entry.what, What::Saved(_) | What::Transition(_)) {
        return Ok(());
    }
    let open = before
        .filter(|head| head.incarnation.get() == incarnation)
        .and_then(|head| head.lock.as_ref())
        .filter(|lock| Some(lock.ordinal) == entry.execution)
        .and_then(|lock| lock.attempt);
    let holds = open.is_some_and(|open| Some(open.token) == entry.token && Some(open.ordinal) == entry.attempt);
    ensure(holds, "stale_token_never_writes", id, || format!("{open:?} was open, and {entry:?} was written"))
}
