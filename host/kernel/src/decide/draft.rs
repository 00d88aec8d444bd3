//! An entity as one decision changes it. Whatever a verb does, the writes come from here: the head,
//! its documents, its history, and the index as the difference of what the head implied before and
//! implies now.

use super::arm::Entered;
use super::corrupt;
use super::effect::Slots;
use super::lease::LeaseDraft;
use crate::command::{Command, Outcome, Stage, Verb};
use crate::doc::{Digest, Doc};
use crate::ids::{EntityId, EventId, ExecutionId, LeaseName, Name, Principal};
use crate::limits::{FACTS_MAX, INLINE_BYTES_MAX, TRIM_MAX};
use crate::machine::{Machine, Revision, Revisions, State};
use crate::number::FencingToken;
use crate::record::{
    CauseKind, Changed, Condition, EffectWhat, Entry, FactKind, Head, Inbox, Key, Lock, MachineRecord, Part, Queued,
    Record, What,
};
use crate::rejection::Rejection;
use crate::theorems;
use crate::time::{Now, StoreTime};
use crate::value::Roots;
use crate::view::{Claim, Decision, Documents, Event, Rules, Schema, Span, Start, Stop, View, Wake};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What every verb is given.
pub(super) struct Given<'a> {
    pub(super) view: &'a dyn View,
    pub(super) rules: &'a dyn Rules,
    pub(super) now: Now,
    pub(super) by: &'a Principal,
}

impl Given<'_> {
    pub(super) fn machine(&self, name: &crate::ids::MachineName) -> Result<Option<MachineRecord>, Stop> {
        let key = Key::Machine(name.clone());
        match self.view.get(&key)? {
            None => Ok(None),
            Some(Record::Machine(record)) => Ok(Some(record)),
            Some(_) => Err(corrupt(&key, "not a machine")),
        }
    }

    pub(super) fn revision(&self, name: &crate::ids::MachineName, number: u64) -> Result<Option<Arc<Revision>>, Stop> {
        let key = Key::Revision(name.clone(), number);
        match self.view.get(&key)? {
            None => Ok(None),
            Some(Record::Revision(revision)) => Ok(Some(revision)),
            Some(_) => Err(corrupt(&key, "not a revision")),
        }
    }
}

/// A document being changed.
struct Slot {
    now: Option<Doc>,
    changed: bool,
    unrecorded: bool,
}

/// See the module.
pub(super) struct Draft<'a> {
    pub(super) given: &'a Given<'a>,
    pub(super) id: EntityId,
    pub(super) head: Head,
    pub(super) revision: Arc<Revision>,
    was: Option<Head>,
    parts: BTreeMap<Part, Slot>,
    conditions: Option<Vec<Condition>>,
    pub(super) writes: Vec<(Key, Option<Record>)>,
    pub(super) wake: Vec<Wake>,
    pub(super) mismatches: u32,
    expiries: u32,
    begun: bool,
    /// What was decided while a visit was entered: recorded after the entry that entered it.
    pub(super) afterwards: Vec<What>,
    /// The entity's outbox.
    pub(super) effects: Slots,
    /// What became of effects while a visit was entered: recorded after the entry that entered it.
    pub(super) dropped: Vec<(EffectWhat, Name, u64, String)>,
    /// The leases that this decision has looked at.
    pub(super) touched: Vec<LeaseDraft<'a>>,
    /// An execution that has ended, and whose claims are taken back.
    pub(super) ended: Option<ExecutionId>,
    /// The revision that judges: entering a visit may adopt a newer one afterwards.
    judged: u64,
}

/// When a newer revision is considered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// While the visit goes on.
    Staying,
    /// As the visit is entered: nothing of it exists yet.
    Entering,
}

/// The identity an entry carries besides who asked.
#[derive(Clone, Default)]
pub(super) struct Tag {
    pub(super) from: Option<Name>,
    pub(super) execution: Option<u64>,
    pub(super) attempt: Option<(u32, FencingToken)>,
    pub(super) event: Option<EventId>,
    /// Who asked, if it was not who asks now.
    pub(super) by: Option<Principal>,
}

impl<'a> Draft<'a> {
    /// An entity that is there.
    pub(super) fn of(given: &'a Given<'a>, id: &EntityId) -> Result<Option<Self>, Stop> {
        let key = Key::Head(id.clone());
        let head = match given.view.get(&key)? {
            None => return Ok(None),
            Some(Record::Head(head)) => *head,
            Some(_) => return Err(corrupt(&key, "not a head")),
        };
        let revision =
            given.revision(&id.machine, head.revision)?.ok_or_else(|| corrupt(&key, "its revision is not stored"))?;
        Ok(Some(Self::new(given, id, head.clone(), Some(head), revision)))
    }

    /// An entity that is not there yet.
    pub(super) fn new(
        given: &'a Given<'a>,
        id: &EntityId,
        head: Head,
        was: Option<Head>,
        revision: Arc<Revision>,
    ) -> Self {
        Self {
            given,
            id: id.clone(),
            head,
            judged: revision.number,
            revision,
            was,
            parts: BTreeMap::new(),
            conditions: None,
            writes: Vec::new(),
            wake: Vec::new(),
            mismatches: 0,
            expiries: 0,
            begun: false,
            afterwards: Vec::new(),
            effects: Slots::default(),
            dropped: Vec::new(),
            touched: Vec::new(),
            ended: None,
        }
    }

    pub(super) fn now(&self) -> Now {
        self.given.now
    }

    pub(super) fn machine(&self) -> Arc<Machine> {
        Arc::clone(&self.revision.machine)
    }

    /// The state it is in, of the revision it follows.
    pub(super) fn state(&self) -> Result<State, Stop> {
        self.revision
            .machine
            .state(&self.head.state)
            .cloned()
            .ok_or_else(|| corrupt(&Key::Head(self.id.clone()), "its state is not in its revision"))
    }

    pub(super) fn doc(&mut self, part: Part) -> Result<Option<Doc>, Stop> {
        if let Some(slot) = self.parts.get(&part) {
            return Ok(slot.now.clone());
        }
        let key = Key::Part(self.id.clone(), part);
        let found = match (&self.was, self.given.view.get(&key)) {
            (None, _) => None,
            (Some(_), read) => match read? {
                None => None,
                Some(Record::Doc(doc)) => Some(doc),
                Some(_) => return Err(corrupt(&key, "not a document")),
            },
        };
        self.parts.insert(part, Slot { now: found.clone(), changed: false, unrecorded: false });
        Ok(found)
    }

    /// The payload of what entered the visit.
    pub(super) fn payload(&mut self) -> Result<Option<Doc>, Stop> {
        if self.head.cause.payload { self.doc(Part::Cause) } else { Ok(None) }
    }

    pub(super) fn put(&mut self, part: Part, doc: Option<Doc>) -> Result<(), Stop> {
        if self.doc(part)? != doc {
            self.parts.insert(part, Slot { now: doc, changed: true, unrecorded: true });
        }
        Ok(())
    }

    /// Writes a part without reading it first: where a change is certain or harmless.
    pub(super) fn overwrite(&mut self, part: Part, doc: Option<Doc>) {
        self.parts.insert(part, Slot { now: doc, changed: true, unrecorded: true });
    }

    /// `desired` as the running execution sees it: of the moment it left rest.
    pub(super) fn desired(&mut self) -> Result<Option<Doc>, Stop> {
        let held = self.head.lock.as_ref().is_some_and(|lock| lock.generation != self.head.generation);
        self.doc(if held { Part::Held } else { Part::Desired })
    }

    /// The documents that guards, values and steps read.
    pub(super) fn documents(&mut self) -> Result<Documents, Stop> {
        Ok(Documents { desired: self.desired()?, data: self.doc(Part::Data)?, outputs: self.doc(Part::Outputs)? })
    }

    pub(super) fn conditions(&mut self) -> Result<Vec<Condition>, Stop> {
        if let Some(known) = &self.conditions {
            return Ok(known.clone());
        }
        let key = Key::Part(self.id.clone(), Part::Conditions);
        match (&self.was, self.given.view.get(&key)?) {
            (None, _) | (_, None) => Ok(Vec::new()),
            (_, Some(Record::Conditions(known))) => Ok(known),
            (_, Some(_)) => Err(corrupt(&key, "not conditions")),
        }
    }

    pub(super) fn set_conditions(&mut self, conditions: Vec<Condition>) {
        self.conditions = Some(conditions);
    }

    /// An expiry key for a remembered event that no other write of this job has: one decision counts
    /// them, and the decisions of one job (see [`Decision::then`]) each start from a longer history.
    pub(super) fn expiry(&mut self, due: StoreTime) -> Key {
        self.expiries = self.expiries.saturating_add(1);
        let start = self.was.as_ref().map_or(0, |was| was.history.last & 0xFFFF);
        let start = u32::try_from(start).unwrap_or_default() << 8;
        Key::Expiry(due, self.now().seq, start | self.expiries)
    }

    /// The expiry key of a deleted entity's history: one job deletes at most one.
    pub(super) fn history_expiry(&self, due: StoreTime) -> Key {
        Key::Expiry(due, self.now().seq, u32::MAX)
    }

    /// Follows the newest revision if it may: between attempts, and if everything is valid there.
    pub(super) fn adopt(&mut self) -> Result<(), Stop> {
        if let Some(next) = self.successor(Moment::Staying)? {
            self.follow(next);
        }
        self.judged = self.head.revision;
        Ok(())
    }

    /// The same for a visit that is being entered. The move into it was judged by the revision before.
    pub(super) fn adopt_at_entry(&mut self, by: CauseKind, event: Option<&Doc>, stage: &Stage) -> Result<(), Stop> {
        let Some(next) = self.successor(Moment::Entering)? else { return Ok(()) };
        let documents = self.documents()?;
        // One whose timers cannot be set is not followed: the revision before has set its own.
        if let Ok(timers) =
            self.arm(&next.machine, &self.head.state, &Entered { documents: &documents, event, by, stage })
        {
            self.head.timers = timers;
            self.follow(next);
        }
        Ok(())
    }

    fn follow(&mut self, next: Arc<Revision>) {
        self.head.revision = next.number;
        self.revision = next;
    }

    /// The newest revision, if there is one and it may be followed now.
    fn successor(&mut self, moment: Moment) -> Result<Option<Arc<Revision>>, Stop> {
        // An attempt is judged by the revision it began with.
        if self.head.lock.as_ref().is_some_and(|lock| lock.attempt.is_some()) {
            return Ok(None);
        }
        let Some(next) = self.newer()? else { return Ok(None) };
        Ok(self.obstacle(&next, moment)?.is_none().then_some(next))
    }

    /// The active revision, if it is another than the one it follows.
    fn newer(&self) -> Result<Option<Arc<Revision>>, Stop> {
        match self.given.machine(&self.id.machine)? {
            Some(record) if record.active != self.head.revision => self.given.revision(&self.id.machine, record.active),
            _ => Ok(None),
        }
    }

    /// Why it does not follow the active revision; none if it does, or will between attempts.
    pub(super) fn cannot_move(&mut self) -> Result<Option<String>, Stop> {
        match self.newer()? {
            Some(next) => self.obstacle(&next, Moment::Staying),
            None => Ok(None),
        }
    }

    fn obstacle(&mut self, next: &Revision, moment: Moment) -> Result<Option<String>, Stop> {
        if self.revision.machine.revisions == Revisions::Pinned {
            return Ok(Some("pinned to the revision it began with".to_owned()));
        }
        if let Some(why) = self.state_obstacle(next, moment)? {
            return Ok(Some(why));
        }
        if let Some(why) = self.document_obstacle(next)? {
            return Ok(Some(why));
        }
        self.inbox_obstacle(next)
    }

    /// The state exists there with the same kind. A visit that goes on also keeps its way on: its step
    /// or its wait, its timers, and something that wakes it.
    fn state_obstacle(&self, next: &Revision, moment: Moment) -> Result<Option<String>, Stop> {
        let (state, name) = (self.state()?, &self.head.state);
        let Some(there) = next.machine.state(name) else {
            return Ok(Some(format!("its state {name} is not in revision {}", next.number)));
        };
        if there.kind != state.kind {
            return Ok(Some(format!("its state {name} is {:?} there, not {:?}", there.kind, state.kind)));
        }
        if moment == Moment::Entering {
            return Ok(None);
        }
        if there.step.is_some() != state.step.is_some() {
            return Ok(Some(format!("its state {name} has a step in one revision and waits in the other")));
        }
        let lost = self.head.timers.iter().find(|timer| there.after.iter().all(|spec| spec.name != timer.name));
        if let Some(timer) = lost {
            return Ok(Some(format!("its timer {} is not there", timer.name)));
        }
        // A step is woken by its attempts; a wait by what its machine says.
        let woken = state.step.is_some() || theorems::live_entity_has_a_wake_cause(&self.head, &next.machine);
        Ok((!woken).then(|| format!("nothing would wake it in {name} there")))
    }

    fn document_obstacle(&mut self, next: &Revision) -> Result<Option<String>, Stop> {
        let documents = [
            (self.doc(Part::Desired)?, Schema::Desired),
            (self.desired()?, Schema::Desired), // as the execution sees it
            (self.doc(Part::Data)?, Schema::Data),
            (self.doc(Part::Outputs)?, Schema::Outputs),
        ];
        let rules = self.given.rules;
        Ok(documents.iter().find_map(|(doc, schema)| {
            let found = rules.check(&self.id.machine, next.number, *schema, doc.as_ref()?).err()?;
            Some(format!("{schema}{}: expected {}, got {}", found.path, found.expected, found.got))
        }))
    }

    fn inbox_obstacle(&self, next: &Revision) -> Result<Option<String>, Stop> {
        if self.head.inbox.length == 0 {
            return Ok(None);
        }
        Ok(self.waiting()?.into_iter().find_map(|(_, queued)| {
            let event = Event::queued(queued);
            let why = super::event::malformed(self.given, &next.machine, next.number, &event)?;
            Some(format!("its waiting event {} ({}): {why}", event.name, event.id))
        }))
    }

    /// The events in the inbox, oldest first, without one that this decision has taken out.
    pub(super) fn waiting(&self) -> Result<Vec<(Key, Queued)>, Stop> {
        let Inbox { next, length } = self.head.inbox;
        let first = next.saturating_sub(u64::from(length));
        let found = self.given.view.scan(&Span::Inbox(self.id.clone()), usize::MAX)?;
        let waits = |key: &Key| matches!(key, Key::Inbox(_, place) if *place >= first);
        found
            .into_iter()
            .filter(|(key, _)| waits(key))
            .map(|(key, record)| {
                let Record::Queued(queued) = record else { return Err(corrupt(&key, "not a queued event")) };
                Ok((key, queued))
            })
            .collect()
    }

    /// One more entry of history, with every document change since the last one.
    pub(super) fn record(&mut self, what: What, tag: Tag) {
        let number = self.head.history.last.saturating_add(1);
        let mut changed = |part| {
            let slot = self.parts.get_mut(&part).filter(|slot| slot.unrecorded)?;
            slot.unrecorded = false;
            let inline = slot.now.as_ref().map(|doc| doc.text()).filter(|text| text.len() <= INLINE_BYTES_MAX);
            Some(Changed { digest: slot.now.as_ref().map(Doc::digest), inline: inline.map(str::to_owned) })
        };
        let (desired, data, outputs) = (changed(Part::Desired), changed(Part::Data), changed(Part::Outputs));
        let lock = self.head.lock.as_ref();
        let entry = Entry {
            number,
            version: self.head.version,
            what,
            from: tag.from.unwrap_or_else(|| self.head.state.clone()),
            to: self.head.state.clone(),
            execution: tag.execution.or(lock.map(|lock| lock.ordinal)),
            attempt: tag.attempt.map(|(ordinal, _)| ordinal),
            token: tag.attempt.map(|(_, token)| token),
            by: tag.by.unwrap_or_else(|| self.given.by.clone()),
            revision: self.judged,
            event: tag.event,
            wall: self.now().wall,
            store: self.now().store,
            previous: self.head.history.hash,
            desired,
            data,
            outputs,
        };
        let key = Key::History(self.id.clone(), self.head.incarnation, number);
        let record = Record::Entry(Box::new(entry));
        self.head.history.hash = Digest::of(&[&record.encode(&key)]);
        self.head.history.last = number;
        self.writes.push((key, Some(record)));
    }

    /// Records that something changed nothing; beyond a bound it is only counted.
    pub(super) fn fact(&mut self, kind: FactKind, text: String, tag: Tag) {
        let met = self.head.facts.entry(kind).or_default();
        *met = met.saturating_add(1);
        if *met <= FACTS_MAX {
            self.record(What::Fact(kind, text), tag);
        }
    }

    /// Opens the next attempt of the visit: whatever its state needs is there.
    pub(super) fn open_attempt(&mut self) {
        let now = self.now();
        let Some(lock) = self.head.lock.as_mut() else {
            return;
        };
        let Some(session) = now.session.0 else { return };
        let token = FencingToken::mint(now.seq);
        debug_assert!(theorems::token_never_falls(lock.attempt.map(|attempt| attempt.token), token));
        lock.attempts = lock.attempts.saturating_add(1);
        lock.attempt = Some(crate::record::OpenAttempt { ordinal: lock.attempts, token, session });
        lock.retry = None;
        lock.progress = now.wall;
        self.begun = true;
    }

    /// Who stood in line for what before this decision.
    pub(super) fn stood(&self) -> Option<(ExecutionId, LeaseName)> {
        let was = self.was.as_ref()?;
        Some((was.locked_by(&self.id)?, was.awaits.clone()?))
    }

    /// Has the host take the open attempt in hand.
    pub(super) fn hand_out(&mut self) {
        self.begun = true;
    }

    /// Ends the open attempt, if there is one, for a reason that is not its own.
    pub(super) fn fence(&mut self, why: &'static str) {
        let open = self.head.lock.as_mut().and_then(|lock| lock.attempt.take());
        if let Some(open) = open {
            self.wake.push(Wake::Fence { entity: self.id.clone(), token: open.token, why });
        }
    }

    /// What a host needs to run the open attempt.
    pub(super) fn start(&mut self) -> Result<Option<Start>, Stop> {
        let Some(lock) = self.head.lock.clone() else {
            return Ok(None);
        };
        let Some(open) = lock.attempt else {
            return Ok(None);
        };
        let state = self.state()?;
        let Some(step) = state.step.clone() else {
            return Ok(None);
        };
        Ok(Some(Start {
            claim: Claim {
                execution: self.head.execution(&self.id, lock.ordinal),
                attempt: open.ordinal,
                token: open.token,
                read: self.head.version,
            },
            revision: self.head.revision,
            component: self.revision.component,
            state: self.head.state.clone(),
            step,
            visit: self.head.visit,
            base: lock.base,
            cause: self.head.cause.clone(),
            payload: self.payload()?,
            documents: self.documents()?,
            renew_by: self.renew_by()?,
            idle_ms: state.idle_ms,
            total_ms: state.total_ms,
            deadline: self.head.deadline,
            memory_bytes: self.revision.machine.limits.memory_bytes,
        }))
    }

    /// Only what `fact` wrote.
    pub(super) fn refuse(self, rejection: Rejection) -> Result<Decision, Stop> {
        let facts = self.was.as_ref().is_some_and(|was| was.facts != self.head.facts);
        if !facts {
            let mut decision = Decision { mismatches: self.mismatches, ..Decision::refused(rejection) };
            self.touched.into_iter().for_each(|lease| lease.finish(&mut decision));
            return Ok(decision);
        }
        let mut decision = self.finish(Outcome::Nothing)?;
        decision.outcome = Err(rejection);
        Ok(decision)
    }

    /// The writes: documents, head, index.
    pub(super) fn finish(mut self, outcome: Outcome) -> Result<Decision, Stop> {
        for what in std::mem::take(&mut self.afterwards) {
            self.record(what, Tag::default());
        }
        for (what, target, number, note) in std::mem::take(&mut self.dropped) {
            self.record(What::Effect(what, target, number, note), Tag::default());
        }
        self.leave_line()?;
        self.stretch_leases()?;
        self.write_effects();
        self.trim()?;
        self.look_at();
        if self.begun
            && let Some(start) = self.start()?
        {
            self.wake.push(Wake::Run(Box::new(start)));
        }
        debug_assert_eq!(theorems::entity(&self.head, &self.revision.machine), Vec::<&str>::new(), "{}", self.id);
        let before = self.was.as_ref().map(|was| was.index(&self.id)).unwrap_or_default();
        let after = self.head.index(&self.id);
        for gone in before.iter().filter(|key| !after.contains(key)) {
            self.writes.push((gone.clone(), None));
        }
        for new in after.iter().filter(|key| !before.contains(key)) {
            self.writes.push((new.clone(), Some(Record::Mark)));
            match new {
                Key::Due(due, _) => self.wake.push(Wake::Due(*due)),
                Key::Timer(due, ..) => self.wake.push(Wake::Timer(*due)),
                Key::Machine(_)
                | Key::Revision(..)
                | Key::Head(_)
                | Key::Part(..)
                | Key::Inbox(..)
                | Key::History(..)
                | Key::Dedup(..)
                | Key::Open(..)
                | Key::Session(_)
                | Key::Expiry(..)
                | Key::Secret
                | Key::Lease(_)
                | Key::LeaseEntry(..)
                | Key::Lapse(..)
                | Key::Effect(..)
                | Key::Outbox(..)
                | Key::Flight(..)
                | Key::Table(_)
                | Key::TableSpec(..)
                | Key::Row(..)
                | Key::RowIndex(..)
                | Key::RowDue(..)
                | Key::RowHeld(..)
                | Key::RowKept(..)
                | Key::RowEntry(..)
                | Key::Memo(..)
                | Key::Answered(_)
                | Key::Schedule(_)
                | Key::ScheduleDue(..) => {}
            }
        }
        for (part, slot) in std::mem::take(&mut self.parts) {
            if slot.changed {
                self.writes.push((Key::Part(self.id.clone(), part), slot.now.map(Record::Doc)));
            }
        }
        if let Some(conditions) = self.conditions.take() {
            let record = (!conditions.is_empty()).then_some(Record::Conditions(conditions));
            self.writes.push((Key::Part(self.id.clone(), Part::Conditions), record));
        }
        let taken = self.ended.take().map(|ended| Command { by: Principal::host(), verb: Verb::TakeBack(ended) });
        let then = taken.into_iter().chain(self.follows()?).collect();
        if self.was.as_ref() != Some(&self.head) {
            self.writes.push((Key::Head(self.id.clone()), Some(Record::Head(Box::new(self.head)))));
        }
        let mut decision =
            Decision { writes: self.writes, outcome: Ok(outcome), wake: self.wake, then, mismatches: self.mismatches };
        self.touched.into_iter().for_each(|lease| lease.finish(&mut decision));
        Ok(decision)
    }

    /// Coming to rest is followed by the next queued event, then by `desired-changed`.
    fn follows(&self) -> Result<Option<Command>, Stop> {
        if self.head.is_inconsistent() {
            return Ok(None);
        }
        let state = self.state()?;
        let changed = self.was.as_ref().is_none_or(|was| {
            was.version != self.head.version || was.generation != self.head.generation || was.inbox != self.head.inbox
        });
        let behind =
            self.head.generation > self.head.observed && state.on.contains_key(&*crate::machine::DESIRED_CHANGED);
        let more = self.head.inbox.length > 0 || behind;
        let rest = state.kind == crate::machine::StateKind::Rest;
        Ok((rest && changed && more).then(|| Command { by: Principal::host(), verb: Verb::Continue(self.id.clone()) }))
    }

    /// One index entry per entity: the earliest cause, rewritten only when it gets earlier.
    fn look_at(&mut self) {
        let parked = self.head.park.is_some();
        let lock = self.head.lock.as_ref();
        let of_lock = |time: fn(&Lock) -> Option<StoreTime>| lock.and_then(time).filter(|_| !parked);
        let needed =
            [self.head.deadline, of_lock(|lock| lock.retry), of_lock(|lock| lock.limit)].into_iter().flatten().min();
        self.head.due = match (needed, self.head.due) {
            (None, old) => old.filter(|_| lock.is_some()),
            (Some(needed), Some(old)) if old <= needed => Some(old),
            (Some(needed), _) => Some(needed),
        };
    }

    /// Lets go of history that is older than the machine keeps it, a little whenever sixteen more were written.
    fn trim(&mut self) -> Result<(), Stop> {
        let sixteenths = |head: &Head| head.history.last / 16;
        if self.was.as_ref().is_none_or(|was| sixteenths(was) == sixteenths(&self.head)) {
            return Ok(());
        }
        let keep = self.revision.machine.limits.history_ms;
        for _ in 0..TRIM_MAX {
            let key = Key::History(self.id.clone(), self.head.incarnation, self.head.history.first);
            match self.given.view.get(&key)? {
                Some(Record::Entry(entry)) if self.now().wall.since(entry.wall) > keep => {}
                _ => break,
            }
            self.writes.push((key, None));
            self.head.history.first = self.head.history.first.saturating_add(1);
        }
        Ok(())
    }
}

/// Borrows documents as the roots of guards and values.
pub(super) struct Scope {
    pub(super) documents: Documents,
    pub(super) event: Option<Doc>,
    pub(super) execution: Option<String>,
}

impl Scope {
    pub(super) fn roots(&self, now: Now) -> Roots<'_> {
        Roots {
            event: self.event.as_ref().map(Doc::value),
            desired: self.documents.desired.as_ref().map(Doc::value),
            data: self.documents.data.as_ref().map(Doc::value),
            outputs: self.documents.outputs.as_ref().map(Doc::value),
            row: None,
            execution: self.execution.as_deref(),
            now: Some(now.wall),
        }
    }
}
