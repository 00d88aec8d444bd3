//! Records in memory, schemas as the host compiles them, clocks moved by hand, and every theorem after every command.

use super::holds;
use crate::target::Broken;
use interlock_kernel::command::{Command, Deploy, Outcome, Verb};
use interlock_kernel::decide;
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::limits::{DEPTH_MAX, DOCUMENT_BYTES_MAX, INBOX_MAX};
use interlock_kernel::machine::{Machine, Revision, StateKind};
use interlock_kernel::record::{Entry, Head, Key, Part, Record};
use interlock_kernel::rejection::Rejection;
use interlock_kernel::theorems;
use interlock_kernel::time::{Now, Session, StoreTime, WallTime};
use interlock_kernel::view::{Decision, Rules as _, Schema, Span, Start, Stop, View, Wake};
use interlock_manifest::RuleBook;
use interlock_store::{TXN_BYTES, TXN_WRITES, VALUE_BYTES};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, LazyLock};

/// What became of a job: its outcome, and whether the store was asked to write.
pub(super) type Answered = Result<Outcome, Rejection>;

#[derive(Clone, Default, PartialEq)]
pub(super) struct Records(pub(super) BTreeMap<Key, Record>);

impl View for Records {
    fn get(&self, key: &Key) -> Result<Option<Record>, Stop> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(&self, span: &Span, limit: usize) -> Result<Vec<(Key, Record)>, Stop> {
        let within = |key: &Key| match (span, key) {
            (Span::Sessions, Key::Session(_)) => true,
            (Span::Open(session), Key::Open(of, _)) => session == of,
            (Span::Expired(until), Key::Expiry(due, ..)) => due <= until,
            (Span::Inbox(entity), Key::Inbox(of, _)) => entity == of,
            (Span::Effects(entity), Key::Effect(of, _)) => entity == of,
            (Span::Memos(entity), Key::Memo(of, _)) => entity == of,
            (Span::History(entity, incarnation, from), Key::History(of, at, number)) => {
                entity == of && incarnation == at && number <= from
            }
            _ => false,
        };
        let mut found: Vec<_> =
            self.0.iter().filter(|(key, _)| within(key)).map(|(key, record)| (key.clone(), record.clone())).collect();
        if matches!(span, Span::History(..)) {
            found.reverse();
        }
        found.truncate(limit);
        Ok(found)
    }
}

/// Compiled schemas are the same for every input: made once.
static BOOK: LazyLock<RuleBook> = LazyLock::new(RuleBook::new);

/// A revision as it is stored.
pub(super) fn revision(machine: Machine) -> Revision {
    Revision {
        number: 1,
        digest: Digest([0; 32]),
        component: None,
        source: String::new(),
        rollback_of: None,
        deployed: WallTime(0),
        by: Principal::host(),
        machine: Arc::new(machine),
    }
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) records: Records,
    pub(super) store: u64,
    pub(super) wall: i64,
    pub(super) seq: u64,
    pub(super) session: Session,
    /// The newest attempt of each entity, and the oldest, which is a zombie by now.
    pub(super) newest: BTreeMap<EntityId, Start>,
    pub(super) oldest: BTreeMap<EntityId, Start>,
    pub(super) token: u64,
    /// Stored bytes were changed: only that nothing panics is left to hold.
    pub(super) spoiled: bool,
    /// Played a second time: what must hold was looked at the first time.
    pub(super) unchecked: bool,
    /// Every record that was ever written, if they are kept.
    pub(super) wrote: Option<Vec<(Key, Record)>>,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            records: Records::default(),
            store: 0,
            wall: 1_000_000,
            seq: 0,
            session: Session::NONE,
            newest: BTreeMap::new(),
            oldest: BTreeMap::new(),
            token: 0,
            spoiled: false,
            unchecked: false,
            wrote: Some(Vec::new()),
        }
    }

    pub(super) fn open(&mut self) -> Result<(), Broken> {
        let opened = self.run(Principal::host(), Verb::OpenSession { nonce: "boot".to_owned(), secret: [7; 32] })?;
        if let Ok(Outcome::Session(id, _)) = opened {
            self.session = Session::of(id);
        }
        Ok(())
    }

    pub(super) fn deploy(&mut self, machine: &Arc<Machine>, digest: u8) -> Result<Answered, Broken> {
        let digest = Digest([digest; 32]);
        let deploy = Deploy { machine: machine.clone(), digest, component: None, source: "as written".to_owned() };
        self.run(Principal::local(), Verb::Deploy(Box::new(deploy)))
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.store = self.store.saturating_add(ms);
        self.wall = self.wall.saturating_add_unsigned(ms);
    }

    fn now(&self) -> Now {
        Now { store: StoreTime(self.store), wall: WallTime(self.wall), seq: self.seq, session: self.session }
    }

    /// One job: a command, and what follows it in the same transaction.
    pub(super) fn run(&mut self, by: Principal, verb: Verb) -> Result<Answered, Broken> {
        self.seq += 1;
        let (mut next, mut first, mut decisions) = (VecDeque::from([Command { by, verb }]), None, 0);
        let (mut writes, mut bytes) = (0, 0);
        while let Some(command) = next.pop_front() {
            decisions += 1;
            holds!(decisions <= INBOX_MAX + 3, "a job of {decisions} decisions: {command:?}");
            let decision = match decide(&self.records, &*BOOK, self.now(), &command) {
                Ok(decision) => decision,
                Err(stop) if self.spoiled => {
                    return Ok(Err(Rejection::new(interlock_kernel::rejection::Code::Unavailable, "", "", stop)));
                }
                Err(stop) => return Err(Broken(format!("{command:?}: {stop}"))),
            };
            next.extend(decision.then.iter().cloned());
            writes += decision.writes.len() as u64;
            bytes += self.commit(&decision)?;
            first.get_or_insert(decision.outcome);
        }
        holds!(self.spoiled || writes <= TXN_WRITES.max, "{writes} writes of one job");
        holds!(self.spoiled || bytes <= TXN_BYTES.max, "{bytes} bytes of one job");
        if !self.spoiled && !self.unchecked {
            self.check()?;
        }
        first.ok_or(Broken("a job without a decision".to_owned()))
    }

    /// Puts what was decided; gives the number of bytes.
    fn commit(&mut self, decision: &Decision) -> Result<u64, Broken> {
        let before = if self.unchecked { BTreeMap::new() } else { self.heads() };
        let mut bytes = 0;
        for (key, record) in &decision.writes {
            let Some(record) = record else {
                self.records.0.remove(key);
                continue;
            };
            let written = record.encode(key);
            holds!(
                self.spoiled || written.len() as u64 <= VALUE_BYTES.max,
                "{key:?} is {} bytes: the store does not take it",
                written.len()
            );
            bytes += written.len() as u64;
            let read = Record::decode(key, &written).map_err(|corrupt| format!("{key:?}: {corrupt}"))?;
            holds!(read == *record, "{key:?} does not come back: {record:?}");
            if let Record::Revision(revision) = &read {
                BOOK.ensure(revision).map_err(|why| why.to_string())?;
            }
            self.wrote.iter_mut().for_each(|wrote| wrote.push((key.clone(), read.clone())));
            self.records.0.insert(key.clone(), read);
        }
        if !self.spoiled && !self.unchecked {
            self.moved(&before, decision.outcome.is_err())?;
        }
        for wake in &decision.wake {
            if let Wake::Run(start) = wake {
                let token = start.claim.token.get();
                holds!(self.spoiled || token > self.token, "token {token} after {}", self.token);
                self.token = token;
                let entity = start.claim.execution.entity.clone();
                self.oldest.entry(entity.clone()).or_insert_with(|| start.as_ref().clone());
                self.newest.insert(entity, start.as_ref().clone());
            }
        }
        Ok(bytes)
    }

    /// What a decision may do to a head.
    fn moved(&self, before: &BTreeMap<EntityId, Head>, refused: bool) -> Result<(), Broken> {
        for (entity, head) in self.heads() {
            let Some(was) = before.get(&entity).filter(|was| was.incarnation == head.incarnation) else { continue };
            let (old, new) = (was.version, head.version);
            holds!(old == new || theorems::version_grows_by_one(old, new), "{entity}: version {old} to {new}");
            holds!(!refused || old == new, "{entity}: refused, and yet version {old} to {new}");
            holds!(head.visit == was.visit || head.visit == new, "{entity}: a visit not named by its version");
            holds!(
                was.generation <= head.generation && was.observed <= head.observed && head.observed <= head.generation,
                "{entity}: generation {} of {}, after {} of {}",
                head.observed,
                head.generation,
                was.observed,
                was.generation
            );
        }
        Ok(())
    }

    /// Every theorem about one moment, of every entity.
    fn check(&self) -> Result<(), Broken> {
        let heads = self.heads();
        for (entity, head) in &heads {
            let revision =
                self.revision(entity, head.revision).ok_or(format!("{entity}: its revision is not there"))?;
            let broken = theorems::entity(head, &revision.machine);
            holds!(broken.is_empty(), "{entity}: {broken:?}: {head:?}");
            self.check_documents(entity, head, revision)?;
        }
        let implied: BTreeSet<Key> = heads.iter().flat_map(|(entity, head)| head.index(entity)).collect();
        let indexed = |key: &&Key| matches!(key, Key::Due(..) | Key::Timer(..) | Key::Open(..));
        let found: BTreeSet<Key> = self.records.0.keys().filter(indexed).cloned().collect();
        holds!(found == implied, "index and heads differ: {found:?}, {implied:?}");
        Ok(())
    }

    /// Every history adds up to its entity.
    pub(super) fn folds(&self) -> Result<(), Broken> {
        for (entity, head) in &self.heads() {
            let span = Span::History(entity.clone(), head.incarnation, u64::MAX);
            let entries: Vec<Entry> = self.scan(&span).into_iter().rev().filter_map(entry).collect();
            let folded = theorems::fold(entity, head, &entries).map_err(|(at, why)| format!("{entity} {at}: {why}"))?;
            let digest = |part| self.part(entity, part).map(|doc| doc.digest());
            let digests = [Part::Desired, Part::Data, Part::Outputs].map(digest);
            let folds = theorems::history_folds_to_entity(head, &folded, digests);
            holds!(folds, "{entity}: {folded:?} is not {head:?}");
        }
        Ok(())
    }

    /// Documents keep to their bounds and, but for those a revision change left as they were, to their schemas.
    fn check_documents(&self, entity: &EntityId, head: &Head, revision: &Revision) -> Result<(), Broken> {
        for (part, schema) in
            [(Part::Desired, Schema::Desired), (Part::Data, Schema::Data), (Part::Outputs, Schema::Outputs)]
        {
            let Some(doc) = self.part(entity, part) else { continue };
            holds!(doc.text().len() <= DOCUMENT_BYTES_MAX, "{entity} {schema}: {} bytes", doc.text().len());
            holds!(doc.depth() <= DEPTH_MAX, "{entity} {schema}: {} levels", doc.depth());
            let judged = BOOK.check(&entity.machine, revision.number, schema, &doc);
            holds!(judged.is_ok(), "{entity} {schema} of revision {}: {judged:?}", revision.number);
        }
        let waiting = self.scan(&Span::Inbox(entity.clone())).len() as u64;
        holds!(waiting == u64::from(head.inbox.length), "{entity}: {waiting} in an inbox of {}", head.inbox.length);
        let kind = revision.machine.state(&head.state).map(|state| state.kind);
        holds!(kind == Some(StateKind::Working) || waiting == 0, "{entity}: at rest with {waiting} in its inbox");
        Ok(())
    }

    fn scan(&self, span: &Span) -> Vec<Record> {
        self.records.scan(span, usize::MAX).unwrap_or_default().into_iter().map(|(_, record)| record).collect()
    }

    pub(super) fn heads(&self) -> BTreeMap<EntityId, Head> {
        let heads = self.records.0.iter().filter_map(|(key, record)| match (key, record) {
            (Key::Head(entity), Record::Head(head)) => Some((entity.clone(), head.as_ref().clone())),
            _ => None,
        });
        heads.collect()
    }

    pub(super) fn head(&self, entity: &EntityId) -> Option<&Head> {
        match self.records.0.get(&Key::Head(entity.clone())) {
            Some(Record::Head(head)) => Some(head),
            _ => None,
        }
    }

    pub(super) fn revision(&self, entity: &EntityId, number: u64) -> Option<&Arc<Revision>> {
        match self.records.0.get(&Key::Revision(entity.machine.clone(), number)) {
            Some(Record::Revision(revision)) => Some(revision),
            _ => None,
        }
    }

    fn part(&self, entity: &EntityId, part: Part) -> Option<interlock_kernel::doc::Doc> {
        match self.records.0.get(&Key::Part(entity.clone(), part)) {
            Some(Record::Doc(doc)) => Some(doc.clone()),
            _ => None,
        }
    }
}

fn entry(record: Record) -> Option<Entry> {
    match record {
        Record::Entry(entry) => Some(*entry),
        _ => None,
    }
}
