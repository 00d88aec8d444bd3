//! Three actors around one entity, what each of them remembers, and what they were promised.

use crate::build::{doc, event};
use crate::world::{Answered, World};
use interlock_kernel::Incarnation;
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::decide;
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, Name, Principal};
use interlock_kernel::machine::StateKind;
use interlock_kernel::record::{Answer, AnswerKind, Entry, Expect, Head, HistoryHead, Key, Record, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::theorems;
use interlock_kernel::time::WallTime;
use interlock_kernel::view::{Claim, Event, View};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One thing an actor does. It says whether there was anything to do.
pub(crate) struct Act {
    pub(crate) actor: &'static str,
    pub(crate) what: &'static str,
    pub(crate) run: fn(&mut Scene) -> bool,
}

/// How often something may happen that would otherwise happen without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// Hosts that die or stop.
    pub(crate) hosts: u8,
    /// Deaths of the entity: kill, delete, recreate.
    pub(crate) deaths: u8,
    /// Deploys and rollbacks.
    pub(crate) deploys: u8,
    /// Days that pass: everything remembered is forgotten.
    pub(crate) days: u8,
}

#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) id: EntityId,
    /// The newest attempt, last, and the one before it: a host that is thought dead may still run it.
    pub(crate) claims: Vec<Claim>,
    /// What the sender of each event id was told last, while it is remembered.
    pub(crate) answers: BTreeMap<String, Answer>,
    /// How often each event id was taken since it was forgotten the last time.
    pub(crate) taken: BTreeMap<String, u32>,
    /// What the history has told so far; older entries than its newest are let go.
    told: Told,
    /// For theorems that want a head where only its history matters.
    any: Arc<Head>,
    /// `desired` as the first attempt of an execution saw it, by the execution's id.
    pub(crate) desired: Option<(String, String)>,
    /// The incarnation and version that client A looked at.
    pub(crate) seen: Option<(u64, u64)>,
    pub(crate) left: Left,
}

/// A history as far as it was read: folded a little at a time, so that scenes stay small.
#[derive(Clone, Default)]
struct Told {
    incarnation: Option<Incarnation>,
    newest: Option<Entry>,
    digests: [Option<Digest>; 3],
    /// Entries of each event and timer.
    counts: BTreeMap<Name, u64>,
}

impl Scene {
    pub(crate) fn of(mut world: World, id: EntityId, left: Left) -> Self {
        (world.silent, world.unchecked, world.records.lean) = (true, true, true);
        let (claims, answers, taken, told) = (Vec::new(), BTreeMap::new(), BTreeMap::new(), Told::default());
        let any = Arc::new(world.head(&id));
        drop(world.transcript()); // the story begins here
        let mut scene = Self { world, id, claims, answers, taken, told, any, desired: None, seen: None, left };
        scene.check();
        scene
    }

    pub(crate) fn head(&self) -> Option<Head> {
        self.world.find_head(&self.id)
    }

    /// Takes one of a budget.
    pub(crate) fn spend(&mut self, of: fn(&mut Left) -> &mut u8) -> bool {
        let left = of(&mut self.left);
        let some = *left > 0;
        *left = left.saturating_sub(1);
        some
    }

    pub(crate) fn ask(&mut self, verb: Verb) -> Answered {
        let before = self.head();
        let answered = self.world.run(verb);
        if let Err(refused) = &answered
            && refused.code == Code::Busy
        {
            let head = before.expect("busy, and not there");
            let holder = head.locked_by(&self.id).expect("busy, and nobody holds the lock");
            let said = refused.detail.as_ref().map(|detail| detail.value()["execution"].clone());
            assert_eq!(said, Some(holder.to_string().into()), "busy names another than who holds the lock");
        }
        answered
    }

    /// An event of a client, once more if it was sent before.
    pub(crate) fn send(&mut self, name: &str, id: &str) -> bool {
        self.send_expecting(name, id, Expect::default())
    }

    pub(crate) fn send_expecting(&mut self, name: &str, id: &str, expect: Expect) -> bool {
        let sent = Event { expect, ..event(name, id) };
        let answered = self.ask(Verb::Deliver { entity: self.id.clone(), event: Box::new(sent) });
        let told = self.answers.get(id);
        match (answered, told) {
            (Ok(Outcome::Answered { answer, replayed }), told) => {
                assert_eq!(replayed, told.is_some(), "{id}: remembered is replayed, and nothing else is");
                if let Some(told) = told {
                    same_answer(id, told, &answer);
                }
                self.answers.insert(id.to_owned(), *answer);
            }
            (Ok(other), _) => panic!("{id}: {other:?}"),
            (Err(refused), Some(_)) => assert_eq!(refused.code, Code::NotFound, "{id} was answered before"),
            (Err(_), None) => {}
        }
        true
    }

    /// The newest attempt asks with what it has read; after a conflict it reads again.
    pub(crate) fn step(&mut self, verb: fn(Claim) -> Verb) -> bool {
        let Some(claim) = self.claims.last().cloned() else { return false };
        let answered = self.asked(claim, verb);
        let version = match answered {
            Ok(Outcome::Written { version, .. }) => Some(version),
            Err(refused) if refused.code == Code::Conflict => self.head().map(|head| head.version),
            Ok(_) | Err(_) => None,
        };
        if let (Some(version), Some(newest)) = (version, self.claims.last_mut()) {
            newest.read = version;
        }
        true
    }

    /// The attempt before the newest asks, whatever became of it.
    pub(crate) fn zombie(&mut self, verb: fn(Claim) -> Verb) -> bool {
        match self.claims.as_slice() {
            [old, _] => {
                let old = old.clone();
                self.asked(old, verb).is_err()
            }
            _ => false,
        }
    }

    /// Whoever is not the open attempt hears fenced and changes nothing but facts.
    fn asked(&mut self, claim: Claim, verb: fn(Claim) -> Verb) -> Answered {
        let before = self.head();
        let open = before.as_ref().and_then(|head| head.lock.as_ref()).and_then(|lock| lock.attempt);
        let holds = open.is_some_and(|open| open.token == claim.token);
        let conflict = before.as_ref().is_some_and(|head| head.version != claim.read);
        let verb = verb(claim.clone());
        let ends = matches!(verb, Verb::End(..));
        let answered = self.world.run_as(Principal::execution(&claim.execution), verb);
        let code = answered.as_ref().err().map(|refused| refused.code);
        if !holds {
            assert_eq!(code, Some(Code::Fenced), "an attempt that is not the open one was heard");
            let kept = |head: Head| Head { facts: BTreeMap::new(), history: before_any(), ..head };
            assert_eq!(before.map(kept), self.head().map(kept), "a fenced attempt changed something");
        } else {
            let expected = if conflict && !ends { Some(Code::Conflict) } else { None };
            assert_eq!(code.filter(|code| matches!(code, Code::Fenced | Code::Conflict)), expected);
        }
        answered
    }

    /// Time passes to the next thing that it causes, and nobody has looked yet.
    pub(crate) fn pass(&mut self) -> bool {
        let Some(head) = self.head() else { return false };
        let timers = head.timers.iter().map(|timer| timer.due.since(WallTime(self.world.wall)));
        let due = head.due.map(|due| due.0.saturating_sub(self.world.store));
        let Some(wait) = timers.chain(due).filter(|wait| *wait > 0).min() else { return false };
        self.world.pass(wait);
        true
    }

    /// The host fires a timer that is over: the one that was due first, or last. It is told twice.
    pub(crate) fn fire(&mut self, which: fn(usize) -> usize) -> bool {
        let Some(head) = self.head() else { return false };
        let mut over: Vec<_> = head.timers.into_iter().filter(|timer| timer.due.0 <= self.world.wall).collect();
        over.sort_by_key(|timer| timer.due);
        if over.is_empty() {
            return false;
        }
        let timer = over.swap_remove(which(over.len()));
        self.twice(Verb::Fire { entity: self.id.clone(), timer: timer.name, due: timer.due });
        true
    }

    /// The host looks at what is due: deadlines, back-off, the execution's limit.
    pub(crate) fn look(&mut self) -> bool {
        let now = self.world.store;
        if self.head().is_none_or(|head| head.due.is_none_or(|due| due.0 > now)) {
            return false;
        }
        self.twice(Verb::Due(self.id.clone()));
        let head = self.head().expect("time deletes nothing");
        let over = |at: Option<interlock_kernel::time::StoreTime>| at.is_some_and(|at| at.0 <= now);
        assert!(!over(head.deadline), "a deadline is over and nothing came of it");
        let lock = head.lock.filter(|_| head.park.is_none());
        assert!(lock.is_none_or(|lock| !over(lock.retry) && !over(lock.limit)), "time is over and nothing came of it");
        true
    }

    /// What the host does once more by mistake has no second effect.
    pub(crate) fn twice(&mut self, verb: Verb) {
        self.world.ok(verb.clone());
        self.check();
        let once = self.head().map(|head| (head.version, head.state, head.lock, head.park));
        self.world.ok(verb);
        let twice = self.head().map(|head| (head.version, head.state, head.lock, head.park));
        assert_eq!(once, twice, "told twice, done twice");
    }

    /// The host dies; another takes the store. What the dead one ran may run on.
    pub(crate) fn crash(&mut self) -> bool {
        let may = self.spend(|left| &mut left.hosts);
        if may {
            self.world.open();
        }
        may
    }

    pub(crate) fn recover(&mut self) -> bool {
        if self.head().is_none() {
            return false;
        }
        self.twice(Verb::Recover(self.id.clone()));
        let session = self.world.session;
        let of_others =
            |key: &Key| matches!(key, Key::Open(of, _) if interlock_kernel::time::Session::of(*of) != session);
        assert!(!self.world.records.keys().any(of_others), "an attempt of a session that is over is still open");
        true
    }

    /// A day passes; what was remembered is forgotten, but for what still waits.
    pub(crate) fn day(&mut self) -> bool {
        if !self.spend(|left| &mut left.days) {
            return false;
        }
        self.world.pass(interlock_kernel::limits::DEDUP_MS_DEFAULT);
        while matches!(self.world.ok(Verb::Sweep), Outcome::Swept { more: true, .. }) {}
        for id in self.answers.keys().cloned().collect::<Vec<_>>() {
            let waits = self.answers[&id].kind == AnswerKind::Queued && self.world.dedup(&self.id, &id).is_some();
            if !waits {
                assert!(self.world.dedup(&self.id, &id).is_none(), "{id} is remembered longer than its window");
                self.answers.remove(&id);
                self.taken.remove(&id);
            }
        }
        true
    }

    /// What must hold wherever the scene stands.
    pub(crate) fn check(&mut self) {
        self.remember_attempt();
        self.world.wakes = Vec::new();
        self.world.wrote.clear();
        assert!(self.world.records.keys().filter(|key| matches!(key, Key::Open(..))).count() <= 1, "two open attempts");
        self.world.check_records("then");
        self.read_history();
        for (id, taken) in &self.taken {
            assert!(*taken <= 1, "{id} was taken {taken} times");
        }
        self.check_waiting();
        let Some(head) = self.head() else { return };
        let lock = head.lock.as_ref().filter(|_| head.park.is_none());
        let causes = [head.deadline, lock.and_then(|lock| lock.retry), lock.and_then(|lock| lock.limit)];
        if let Some(first) = causes.into_iter().flatten().min() {
            let due = head.due.unwrap_or_else(|| panic!("nothing looks at {} at {}", self.id, first.0));
            assert!(due <= first, "looked at only at {}, and something is due at {}", due.0, first.0);
        }
    }

    /// Whose answer is that it waits, waits; and the other way round.
    fn check_waiting(&self) {
        let ids = |wanted: fn(&Record) -> Option<String>| -> BTreeSet<String> {
            self.world.records.iter().filter_map(|(_, record)| wanted(record)).collect()
        };
        let told = ids(|record| match record {
            Record::Dedup(dedup) if dedup.answer.kind == AnswerKind::Queued => Some(dedup.answer.event.to_string()),
            _ => None,
        });
        let waits = ids(|record| match record {
            Record::Queued(queued) => Some(queued.id.to_string()),
            _ => None,
        });
        assert_eq!(told, waits, "told to wait, and waiting");
    }

    /// Reads the entries that are new, folds them, and lets go of those before the newest, as a retention
    /// that is over does.
    fn read_history(&mut self) {
        let keys = self.world.records.keys().filter(|key| matches!(key, Key::History(..)));
        let mut histories: BTreeMap<Incarnation, Vec<Key>> = BTreeMap::new();
        for key in keys {
            if let Key::History(_, incarnation, _) = key {
                histories.entry(*incarnation).or_default().push(key.clone());
            }
        }
        for (incarnation, keys) in histories {
            let same = self.told.incarnation == Some(incarnation);
            if self.told.incarnation.is_some_and(|newest| incarnation < newest) {
                keys.iter().for_each(|key| self.world.records.remove(key));
                continue;
            }
            if !same {
                self.told = Told { incarnation: Some(incarnation), ..Told::default() };
            }
            let entries = keys.iter().map(|key| match self.world.records.get(key) {
                Ok(Some(Record::Entry(entry))) => *entry,
                other => panic!("{key:?}: {other:?}"),
            });
            let read = self.told.newest.as_ref().map_or(0, |newest| newest.number);
            let new: Vec<Entry> = entries.filter(|entry| entry.number > read).collect();
            let from: Vec<Entry> = self.told.newest.iter().chain(&new).cloned().collect();
            assert!(same || from.first().is_some_and(|entry| entry.number == 1), "a history without its beginning");
            self.fold(incarnation, &from);
            new.iter().for_each(|entry| self.hear(entry));
            let (_, older) = keys.split_last().expect("a key made it");
            older.iter().for_each(|key| self.world.records.remove(key));
        }
        let Some(mut head) = self.head() else { return };
        let newest = self.told.newest.as_ref().expect("an entity has a history");
        assert_eq!((newest.number, newest.version), (head.history.last, head.version), "the history ends elsewhere");
        assert_eq!((&newest.to, self.told.digests), (&head.state, self.world.digests(&self.id)), "it tells of another");
        if head.history.first != head.history.last {
            head.history.first = head.history.last;
            self.world.records.put(&Key::Head(self.id.clone()), &Record::Head(Box::new(head)));
        }
        self.check_counters();
    }

    fn fold(&self, incarnation: Incarnation, entries: &[Entry]) {
        let first = entries.first().map_or(1, |entry| entry.number);
        let history = HistoryHead { first, ..before_any() };
        let head = Head { incarnation, history, ..self.any.as_ref().clone() };
        if let Err((number, why)) = theorems::fold(&self.id, &head, entries) {
            panic!("entry {number}: {why}");
        }
    }

    fn hear(&mut self, entry: &Entry) {
        for (digest, changed) in self.told.digests.iter_mut().zip([&entry.desired, &entry.data, &entry.outputs]) {
            if let Some(changed) = changed {
                *digest = changed.digest;
            }
        }
        if let What::Event(name) | What::Timer(name) = &entry.what {
            *self.told.counts.entry(name.clone()).or_default() += 1;
        }
        if let (What::Event(_), Some(id)) = (&entry.what, &entry.event) {
            *self.taken.entry(id.to_string()).or_default() += 1;
        }
        self.told.newest = Some(entry.clone());
    }

    /// Data counts what was taken: each counter is the number of entries of that event or timer.
    fn check_counters(&self) {
        let data = self.world.part(&self.id, interlock_kernel::record::Part::Data);
        for (name, counter) in data.iter().filter_map(|data| data.value().as_object()).flatten() {
            let counted = self.told.counts.iter().find(|(of, _)| of.as_str() == name).map_or(0, |(_, count)| *count);
            assert_eq!(counter.as_u64(), Some(counted), "{name} in data and in history");
        }
    }

    /// Attempts are remembered as they begin: tokens grow, and an execution sees one `desired`.
    fn remember_attempt(&mut self) {
        let Some(start) = self.world.starts.get(&self.id).cloned() else { return };
        if self.claims.last().is_some_and(|last| last.token == start.claim.token) {
            return;
        }
        assert!(self.claims.last().is_none_or(|last| last.token < start.claim.token), "a token fell");
        let execution = start.claim.execution.to_string();
        let sees = start.documents.desired.as_ref().map_or_else(String::new, ToString::to_string);
        match &self.desired {
            Some((of, saw)) if *of == execution => assert_eq!(*saw, sees, "{execution} sees another desired"),
            _ => self.desired = Some((execution, sees)),
        }
        self.claims.push(start.claim);
        if self.claims.len() > 2 {
            self.claims.remove(0);
        }
    }

    /// What changes nothing wherever it comes, asked of every state that is new.
    pub(crate) fn probe(&self) {
        let Some(head) = self.head() else { return };
        let mut idle = vec![Verb::Continue(self.id.clone()), self.audit()];
        if head.due.is_none_or(|due| due.0 > self.world.store) {
            idle.push(Verb::Due(self.id.clone()));
        }
        for timer in head.timers.iter().filter(|timer| timer.due.0 > self.world.wall) {
            idle.push(Verb::Fire { entity: self.id.clone(), timer: timer.name.clone(), due: timer.due });
        }
        if head.park.is_none() {
            idle.push(Verb::Unpark(self.id.clone()));
        }
        for verb in idle {
            let decision = self.decide(verb.clone());
            assert!(decision.writes.is_empty(), "{verb:?} writes {:?}", decision.writes);
            assert!(decision.outcome.is_ok(), "{verb:?}: {:?}", decision.outcome);
        }
        let machine = self.world.machine(&self.id, head.revision);
        let state = machine.state(&head.state).expect("its state is there");
        if state.kind != StateKind::Rest {
            return;
        }
        for name in state.on.keys().filter(|name| machine.events.contains_key(name)) {
            let deliver = Verb::Deliver { entity: self.id.clone(), event: Box::new(event(name.as_str(), "probe")) };
            let decision = self.decide(deliver);
            let accepted = matches!(&decision.outcome, Ok(Outcome::Answered { answer, .. }) if answer.kind == AnswerKind::Accepted);
            assert!(accepted, "at rest, and {name} is refused: {:?}", decision.outcome);
        }
    }

    fn audit(&self) -> Verb {
        let found =
            self.world.records.keys().filter(|key| matches!(key, Key::Due(..) | Key::Timer(..) | Key::Open(..)));
        Verb::Audit { entity: self.id.clone(), found: found.cloned().collect(), abandoned: None }
    }

    fn decide(&self, verb: Verb) -> interlock_kernel::view::Decision {
        let now = interlock_kernel::time::Now { seq: self.world.seq + 1, ..self.world.now() };
        decide(&self.world.records, &self.world.rules, now, &Command { by: Principal::local(), verb })
            .unwrap_or_else(|stop| panic!("{stop}"))
    }

    pub(crate) fn apply(&mut self, text: &str) -> bool {
        if self.world.part(&self.id, interlock_kernel::record::Part::Desired) == Some(doc(text)) {
            return false;
        }
        drop(self.ask(Verb::Apply { entity: self.id.clone(), desired: doc(text), expect: None, checked: None }));
        true
    }

    /// An operator's verb, which told again answers what it left.
    pub(crate) fn operate(&mut self, verb: Verb) -> bool {
        if self.head().is_none() {
            return false;
        }
        let first = self.ask(verb.clone());
        let records = self.world.records.clone();
        let again = self.ask(verb);
        assert_eq!(first.is_ok(), again.is_ok(), "{first:?}, and again {again:?}");
        assert!(self.world.records == records, "told twice, done twice");
        true
    }

    pub(crate) fn is_there(&self) -> bool {
        self.world.records.get(&Key::Head(self.id.clone())).is_ok_and(|head| head.is_some())
    }
}

/// A history that is compared with none.
fn before_any() -> HistoryHead {
    HistoryHead { first: 1, last: 0, hash: Digest([0; 32]) }
}

/// The same id is the same answer; only a queued one turns, once, into accepted or refused.
fn same_answer(id: &str, told: &Answer, now: &Answer) {
    if told.kind == AnswerKind::Queued && now.kind != AnswerKind::Queued {
        assert!(
            matches!(now.kind, AnswerKind::Accepted | AnswerKind::Refused),
            "{id} was queued, and is {:?}",
            now.kind
        );
    } else {
        assert_eq!(told, now, "{id} has another answer than before");
    }
}
