//! A store of bytes in memory, clocks that the test moves, and every theorem after every command.

use crate::build::{Mc, event, event_of, name};
use crate::show;
use interlock_kernel::command::{Change, Command, Create, Deploy, Outcome, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{EntityId, LeaseName, MachineName, Principal, TableName};
use interlock_kernel::limits::{INBOX_MAX, LEASES_MAX};
use interlock_kernel::machine::{Machine, Revision, StateKind};
use interlock_kernel::record::{
    Answer, AnswerKind, Condition, Dedup, Effect, Entry, Expires, Failure, Head, Key, Lease, Owner, Part, Place,
    Record, Stands,
};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::schedule::Recurrence;
use interlock_kernel::theorems;
use interlock_kernel::time::{Now, Session, StoreTime, WallTime};
use interlock_kernel::timer::CalendarRule;
use interlock_kernel::view::{Breach, Claim, Decision, Event, Rules, Schema, Span, Start, Stop, View, Wake};
use interlock_kernel::{SessionId, decide};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Leases that one job may find lost, or hand on.
#[allow(clippy::cast_possible_truncation, reason = "a small constant")]
const LEASES: u32 = LEASES_MAX as u32;

pub(crate) type Answered = Result<Outcome, Rejection>;

/// The records: as bytes, and as what the bytes mean.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Records {
    all: BTreeMap<Key, Arc<(Vec<u8>, Record)>>,
    /// Without the bytes: for searches that hold many worlds.
    pub(crate) lean: bool,
}

impl Records {
    /// Writes bytes and reads them again.
    pub(crate) fn put(&mut self, key: &Key, record: &Record) {
        if self.lean {
            self.all.insert(key.clone(), Arc::new((Vec::new(), record.clone())));
            return;
        }
        let bytes = record.encode(key);
        let read = Record::decode(key, &bytes).unwrap_or_else(|corrupt| panic!("{key:?}: {corrupt}"));
        assert_eq!(read, *record, "{key:?} does not come back");
        self.all.insert(key.clone(), Arc::new((bytes, read)));
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        self.all.remove(key);
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> + Clone {
        self.all.keys()
    }

    pub(crate) fn bytes(&self) -> impl Iterator<Item = (&Key, &[u8])> {
        self.all.iter().map(|(key, stored)| (key, stored.0.as_slice()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Record)> {
        self.all.iter().map(|(key, stored)| (key, &stored.1))
    }
}

impl View for Records {
    fn get(&self, key: &Key) -> Result<Option<Record>, Stop> {
        Ok(self.all.get(key).map(|stored| stored.1.clone()))
    }

    fn scan(&self, span: &Span, limit: usize) -> Result<Vec<(Key, Record)>, Stop> {
        let within = |key: &Key| match (span, key) {
            (Span::Sessions, Key::Session(_)) => true,
            (Span::Open(session), Key::Open(of, _)) => session == of,
            (Span::Expired(until), Key::Expiry(due, ..)) => due <= until,
            (Span::Inbox(entity), Key::Inbox(of, _)) => entity == of,
            (Span::Effects(entity), Key::Effect(of, _)) => entity == of,
            (Span::Memos(entity), Key::Memo(of, _)) => entity == of,
            (Span::Rows(table, after), Key::Row(of, key)) => table == of && after.as_ref().is_none_or(|at| key > at),
            (Span::RowsDue(until), Key::RowDue(due, ..)) => due <= until,
            (Span::RowsHeld(entity, incarnation, n), Key::RowHeld(of, at, nth, ..)) => {
                entity == of && incarnation == at && n == nth
            }
            (Span::RowEntries(table), Key::RowEntry(of, _)) => table == of,
            (Span::TableSpecs(table), Key::TableSpec(of, _)) => table == of,
            (Span::RowIndex(span), Key::RowIndex(table, index, bytes, place, key)) => {
                let entry = (bytes.clone(), *place, key.clone());
                let behind = |after: &(_, _, _)| if span.back { entry < *after } else { entry > *after };
                span.table == *table
                    && span.index == *index
                    && span.from <= *bytes
                    && span.to.as_ref().is_none_or(|to| bytes < to)
                    && span.after.as_ref().is_none_or(behind)
            }
            (Span::History(entity, incarnation, from), Key::History(of, at, number)) => {
                entity == of && incarnation == at && number <= from
            }
            _ => false,
        };
        let found = self.all.range(bounds(span)).map(|(key, _)| key).filter(|key| within(key)).cloned();
        let back = matches!(span, Span::History(..)) || matches!(span, Span::RowIndex(span) if span.back);
        let keys: Vec<Key> = if back { found.rev().take(limit).collect() } else { found.take(limit).collect() };
        keys.into_iter().map(|key| Ok((key.clone(), self.get(&key)?.unwrap()))).collect()
    }
}

/// Where a scan begins and ends: of a table with many rows most is not looked at.
fn bounds(span: &Span) -> (Bound<Key>, Bound<Key>) {
    let entry = |table: &TableName, index, bytes: &[u8], place, key| {
        Key::RowIndex(table.clone(), index, bytes.to_vec(), place, key)
    };
    let first = || (Place { seq: 0, n: 0 }, "0".parse().unwrap());
    match span {
        Span::Rows(table, Some(after)) => (Bound::Excluded(Key::Row(table.clone(), after.clone())), Bound::Unbounded),
        Span::RowIndex(span) => {
            let end = entry(&span.table, span.index + 1, &[], first().0, first().1);
            let begin = match &span.after {
                Some((bytes, place, key)) if !span.back => entry(&span.table, span.index, bytes, *place, key.clone()),
                _ => entry(&span.table, span.index, &span.from, first().0, first().1),
            };
            (Bound::Included(begin), Bound::Excluded(end))
        }
        _ => (Bound::Unbounded, Bound::Unbounded),
    }
}

/// One schema: the revisions from which it holds, its name, the rule in words, the rule.
pub(crate) type Rule = (u64, &'static str, &'static str, fn(&serde_json::Value) -> bool);

/// A table of schemas; what is not in it accepts everything.
#[derive(Clone, Default)]
pub(crate) struct Table(pub(crate) Vec<Rule>);

impl Rules for Table {
    fn check_row(&self, table: &TableName, revision: u64, value: &Doc) -> Result<(), Breach> {
        let of = format!("row.{table}");
        match self.0.iter().find(|(from, name, _, rule)| *from <= revision && *name == of && !rule(value.value())) {
            None => Ok(()),
            Some((_, _, expected, _)) => {
                Err(Breach { path: String::new(), expected: (*expected).to_owned(), got: value.to_string() })
            }
        }
    }

    fn check(&self, _: &MachineName, revision: u64, schema: Schema<'_>, doc: &Doc) -> Result<(), Breach> {
        let schema = schema.to_string();
        match self.0.iter().find(|(from, of, _, rule)| *from <= revision && schema == *of && !rule(doc.value())) {
            None => Ok(()),
            Some((_, _, expected, _)) => {
                Err(Breach { path: String::new(), expected: (*expected).to_owned(), got: doc.to_string() })
            }
        }
    }

    /// `at 1000` is what an instant looks like here.
    fn instant(&self, text: &str) -> Option<WallTime> {
        text.strip_prefix("at ")?.parse().ok().map(WallTime)
    }

    /// Every rule comes at each whole minute; one with holidays has run out.
    fn next(&self, rule: &CalendarRule, after: WallTime) -> Result<WallTime, Breach> {
        match rule.holidays.last() {
            None => Ok(WallTime((after.0 / 60_000 + 1) * 60_000)),
            Some(last) => {
                let (expected, got) = ("holidays of this year".to_owned(), format!("a list that ends on {last}"));
                Err(Breach { path: String::new(), expected, got })
            }
        }
    }

    /// The rule is how many minutes lie between two times, counted from 1970; `never` comes never.
    fn following(&self, rule: &Recurrence, after: WallTime) -> Result<WallTime, Breach> {
        let each = every(rule)?;
        Ok(WallTime((after.0.div_euclid(each) + 1) * each))
    }

    fn latest(&self, rule: &Recurrence, up_to: WallTime) -> Result<WallTime, Breach> {
        let each = every(rule)?;
        Ok(WallTime(up_to.0.div_euclid(each) * each))
    }

    /// `{name}` stands for the value of `name`.
    fn fill(&self, pattern: &str, values: &BTreeMap<String, String>) -> Result<String, Breach> {
        let filled =
            values.iter().fold(pattern.to_owned(), |url, (name, value)| url.replace(&format!("{{{name}}}"), value));
        match filled.find('{') {
            None => Ok(filled),
            Some(at) => {
                Err(Breach { path: String::new(), expected: "a value".to_owned(), got: filled[at..].to_owned() })
            }
        }
    }
}

fn every(rule: &Recurrence) -> Result<i64, Breach> {
    let minutes: Option<i64> = rule.cron.parse().ok();
    let never =
        || Breach { path: String::new(), expected: "a rule that comes again".to_owned(), got: rule.to_string() };
    minutes.map(|minutes| minutes * 60_000).ok_or_else(never)
}

/// What is done to a decision, given the records before it and the command.
pub(crate) type Tamper = fn(&Records, &Command, &mut Decision);

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) records: Records,
    pub(crate) rules: Table,
    pub(crate) store: u64,
    pub(crate) wall: i64,
    pub(crate) seq: u64,
    pub(crate) session: Session,
    /// The session of the newest boot.
    pub(crate) boot: Option<SessionId>,
    pub(crate) by: Principal,
    /// The newest attempt that each entity was told to run.
    pub(crate) starts: BTreeMap<EntityId, Start>,
    /// What the last job woke.
    pub(crate) wakes: Vec<Wake>,
    /// Keys the last job wrote, with whether they stayed.
    pub(crate) wrote: BTreeMap<Key, bool>,
    pub(crate) mismatches: u32,
    /// Decisions of the last job.
    pub(crate) decisions: u32,
    /// Set while a long history is made, which would be folded over and over.
    pub(crate) unchecked: bool,
    /// Breaks a decision before it is committed: for tests that what checks can fail.
    pub(crate) tamper: Option<Tamper>,
    token: u64,
    /// The newest grant of each lease.
    grants: BTreeMap<LeaseName, (u64, String)>,
    transcript: String,
    /// Set where nobody reads a transcript.
    pub(crate) silent: bool,
}

impl World {
    /// Clocks at 0, no session.
    pub(crate) fn bare() -> Self {
        Self {
            records: Records::default(),
            rules: Table::default(),
            store: 0,
            wall: 1_000_000,
            seq: 0,
            session: Session::NONE,
            boot: None,
            by: Principal::local(),
            starts: BTreeMap::new(),
            wakes: Vec::new(),
            wrote: BTreeMap::new(),
            mismatches: 0,
            decisions: 0,
            unchecked: false,
            tamper: None,
            token: 0,
            grants: BTreeMap::new(),
            transcript: String::new(),
            silent: false,
        }
    }

    /// Session 1 is open and the machine deployed.
    pub(crate) fn with(machine: Mc) -> Self {
        let mut world = Self::bare();
        world.open();
        world.deploy(machine);
        world
    }

    /// The same with an entity.
    pub(crate) fn of(machine: Mc, entity: &str) -> (Self, EntityId) {
        let mut world = Self::with(machine);
        let id = crate::build::entity(entity);
        world.ok(Verb::Create(Box::new(crate::build::create(entity))));
        (world, id)
    }

    pub(crate) fn now(&self) -> Now {
        let (store, wall) = (StoreTime(self.store), WallTime(self.wall));
        Now { store, wall, seq: self.seq, session: self.session }
    }

    /// Both clocks go on.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.store += ms;
        self.wall += i64::try_from(ms).unwrap();
    }

    /// One job: the command and what follows it in the same transaction.
    pub(crate) fn run(&mut self, verb: Verb) -> Answered {
        let by = self.by.clone();
        self.run_as(by, verb)
    }

    pub(crate) fn run_as(&mut self, by: Principal, verb: Verb) -> Answered {
        self.seq += 1;
        self.wakes.clear();
        self.wrote.clear();
        self.decisions = 0;
        self.mismatches = 0;
        let title = show::verb(&verb);
        let mut next = VecDeque::from([Command { by, verb }]);
        let mut first = None;
        while let Some(command) = next.pop_front() {
            self.decisions += 1;
            assert!(self.decisions <= INBOX_MAX + 3 + 4 * LEASES, "a job that never ends: {title}");
            let mut decision = decide(&self.records, &self.rules, self.now(), &command)
                .unwrap_or_else(|stop| panic!("{title}: {stop}\n{}", self.transcript));
            if let Some(tamper) = self.tamper {
                tamper(&self.records, &command, &mut decision);
            }
            next.extend(decision.then.iter().cloned());
            let outcome = self.commit(decision);
            first.get_or_insert(outcome);
        }
        if !self.unchecked {
            self.check(&title);
        }
        let outcome = first.unwrap();
        if !self.silent {
            self.transcript.push_str(&show::job(self, &title, &outcome));
        }
        outcome
    }

    fn commit(&mut self, decision: Decision) -> Answered {
        let before = self.heads();
        let refused = decision.outcome.is_err();
        self.check_writes(&decision.writes);
        for (key, record) in &decision.writes {
            if let (Key::Lease(name), Some(Record::Lease(lease))) = (key, record) {
                self.check_tokens(name, lease);
            }
            self.wrote.insert(key.clone(), record.is_some());
            match record {
                None => self.records.remove(key),
                Some(record) => self.records.put(key, record),
            }
        }
        let heads = self.heads();
        let told = heads.iter().any(|(entity, head)| before.get(entity).is_some_and(|was| was.facts != head.facts));
        let of_lease = |(key, _): &(Key, _)| matches!(key, Key::Lease(_) | Key::LeaseEntry(..) | Key::Lapse(..));
        assert!(!refused || told || decision.writes.iter().all(of_lease), "refused without a fact, and written");
        for (entity, head) in heads {
            let was = before.get(&entity).filter(|was| was.incarnation == head.incarnation);
            if let Some(was) = was {
                let (old, new) = (was.version, head.version);
                assert!(old == new || theorems::version_grows_by_one(old, new), "{entity}: {old} to {new}");
                assert!(!refused || old == new, "{entity}: refused, and yet changed");
                let visit = head.visit != was.visit;
                assert!(!visit || head.visit == head.version, "{entity}: a visit not named by its version");
                assert!(was.generation <= head.generation && was.observed <= head.observed);
                assert!(was.executions <= head.executions && head.observed <= head.generation);
            }
        }
        self.mismatches += decision.mismatches;
        for wake in &decision.wake {
            if let Wake::Run(start) = wake {
                let token = start.claim.token.get();
                let entity = start.claim.execution.entity.clone();
                let handed_out_again = self.starts.get(&entity).is_some_and(|known| known.claim.token.get() == token);
                assert!(token > self.token || handed_out_again, "token {token} after {}", self.token);
                self.token = token.max(self.token);
                let again = interlock_kernel::start(&self.records, &self.rules, self.now(), &entity).unwrap().unwrap();
                assert_eq!(again.claim, start.claim);
                self.starts.insert(entity, start.as_ref().clone());
            }
        }
        self.wakes.extend(decision.wake);
        decision.outcome
    }

    /// A decision puts each key once, and no head or lease that is there already.
    fn check_writes(&self, writes: &[(Key, Option<Record>)]) {
        let mut met = BTreeSet::new();
        for (key, record) in writes {
            assert!(record.is_none() || met.insert(key), "{key:?} is written twice");
            if let (Key::Head(_) | Key::Lease(_), Some(record)) = (key, record) {
                assert_ne!(self.records.get(key).unwrap().as_ref(), Some(record), "{key:?} is written as it was");
            }
            assert!(!matches!(record, Some(Record::Conditions(none)) if none.is_empty()), "{key:?}: no conditions");
        }
    }

    /// Every theorem, of every entity.
    pub(crate) fn check(&self, title: &str) {
        self.check_records(title);
        for (entity, head) in &self.heads() {
            let entries = self.history(entity, head);
            let folded = theorems::fold(entity, head, &entries)
                .unwrap_or_else(|(number, why)| panic!("{title}: {entity} entry {number}: {why}"));
            let digests = self.digests(entity);
            assert!(theorems::history_folds_to_entity(head, &folded, digests), "{title}: {entity} {head:?} {folded:?}");
        }
    }

    /// Of desired, data and outputs.
    pub(crate) fn digests(&self, entity: &EntityId) -> [Option<Digest>; 3] {
        [Part::Desired, Part::Data, Part::Outputs].map(|part| self.part(entity, part).map(|doc| doc.digest()))
    }

    /// Every effect, by its entity.
    pub(crate) fn effects(&self) -> BTreeMap<EntityId, BTreeMap<u64, Effect>> {
        let mut found: BTreeMap<EntityId, BTreeMap<u64, Effect>> = BTreeMap::new();
        for (key, record) in self.records.iter() {
            if let (Key::Effect(entity, number), Record::Effect(effect)) = (key, record) {
                found.entry(entity.clone()).or_default().insert(*number, (**effect).clone());
            }
        }
        found
    }

    fn outbox_index(&self) -> Vec<Key> {
        let effects = self.effects();
        let of = |(entity, effects): (&EntityId, &BTreeMap<u64, Effect>)| -> Vec<Key> {
            effects.iter().filter_map(|(number, effect)| effect.index(entity, *number)).collect()
        };
        effects.iter().flat_map(of).collect()
    }

    /// One effect of a lane at most is tried, the first; the head counts what is there; no key is used twice.
    fn check_lanes(&self, title: &str) {
        let effects = self.effects();
        let mut keys = BTreeSet::new();
        for (entity, head) in self.heads() {
            let of = effects.get(&entity).cloned().unwrap_or_default();
            let dead = of.values().filter(|effect| effect.is_dead()).count();
            assert_eq!(head.outbox.dead as usize, dead, "{title}: {entity}: effects given up");
            assert_eq!(head.outbox.unsettled as usize, of.len() - dead, "{title}: {entity}: effects unsettled");
            let machine = self.machine(&entity, head.revision);
            let mut held = BTreeSet::new();
            for effect in of.values().filter(|effect| effect.is_in_flight()) {
                assert!(
                    held.insert(effect.resource.clone()),
                    "{title}: {entity}: two in flight in {}",
                    effect.resource
                );
            }
            for (number, effect) in &of {
                assert!(*number <= head.outbox.last && keys.insert(effect.key.clone()), "{title}: {entity} {number}");
                if effect.is_in_flight() {
                    continue;
                }
                if machine.targets.get(&effect.target).is_some_and(|target| !target.holds(effect)) {
                    continue;
                }
                let first = held.insert(effect.resource.clone());
                // One that its target's lane passed over and that is tried again may go before one given up meanwhile.
                let right = effect.is_dead() || first == matches!(effect.stands, Stands::Due(_));
                assert!(right, "{title}: {entity}: effect {number} stands {:?}", effect.stands);
            }
        }
        for entity in effects.keys() {
            assert!(self.find_head(entity).is_some(), "{title}: effects of no entity {entity}");
        }
    }

    /// The same but for the histories, whose length makes it long.
    pub(crate) fn check_records(&self, title: &str) {
        let heads = self.heads();
        for (entity, head) in &heads {
            let machine = self.machine(entity, head.revision);
            let broken = theorems::entity(head, &machine);
            assert!(broken.is_empty(), "{title}: {entity}: not so: {}, of {head:?}", broken.join(", "));
            if !head.is_inconsistent() {
                self.check_parts(title, entity, head, machine.state(&head.state).unwrap().kind);
            }
        }
        self.check_leases(title, &heads);
        let implied: BTreeSet<Key> = heads.iter().flat_map(|(entity, head)| head.index(entity)).collect();
        let implied: BTreeSet<Key> = implied.into_iter().chain(self.outbox_index()).collect();
        let indexed = |key: &&Key| {
            matches!(key, Key::Due(..) | Key::Timer(..) | Key::Open(..) | Key::Outbox(..) | Key::Flight(..))
        };
        let found: BTreeSet<Key> = self.records.keys().filter(indexed).cloned().collect();
        assert_eq!(found, implied, "{title}: index and heads");
        self.check_lanes(title);
        crate::schedules::check(self, title);
        crate::rows::check(self, title);
        for key in self.records.keys() {
            if let Key::Part(entity, _) | Key::Inbox(entity, _) = key {
                assert!(heads.contains_key(entity), "{title}: {key:?} of no entity");
            }
            if let Key::Dedup(entity, event) = key {
                let Some(Record::Dedup(dedup)) = self.records.get(key).unwrap() else { panic!() };
                let will = |record: Record| record == Record::Expires(Expires::Dedup(entity.clone(), event.clone()));
                let expires = self.records.keys().any(|at| {
                    matches!(at, Key::Expiry(due, ..) if *due == dedup.until)
                        && will(self.records.get(at).unwrap().unwrap())
                });
                assert!(expires || dedup.answer.kind == AnswerKind::Queued, "{title}: {key:?} never expires");
            }
        }
    }

    /// Whoever gets a lease gets it with a higher token than everybody before, over everything that is forgotten.
    fn check_tokens(&mut self, name: &LeaseName, lease: &Lease) {
        let Some(holder) = &lease.holder else { return };
        let grant = (holder.token.get(), format!("{:?}", holder.owner));
        let before = self.grants.insert(name.clone(), grant.clone());
        assert!(
            before.as_ref().is_none_or(|before| before.0 < grant.0 || *before == grant),
            "{name}: {before:?}, {grant:?}"
        );
    }

    /// Leases, their index, their entries, and what heads say of them.
    fn check_leases(&self, title: &str, heads: &BTreeMap<EntityId, Head>) {
        let (mut lapses, mut entries) = (BTreeSet::new(), BTreeSet::new());
        let leases = self.leases();
        for (name, lease) in &leases {
            assert_eq!(theorems::lease(None, lease), Vec::<&str>::new(), "{title}: {name} {lease:?}");
            lapses.extend(lease.due.map(|due| Key::Lapse(due, name.clone())));
            entries.extend((lease.first..=lease.last).map(|number| Key::LeaseEntry(name.clone(), number)));
            for owner in lease.holder.iter().map(|held| &held.owner).chain(lease.line.iter().map(|one| &one.owner)) {
                if let Owner::Execution(execution) = owner {
                    let agree = theorems::lease_and_execution_agree;
                    let head = heads.get(&execution.entity);
                    let set_aside = head.is_some_and(Head::is_inconsistent);
                    assert!(
                        set_aside || agree(name, lease, &execution.entity, head),
                        "{title}: {name} {lease:?} {head:?}"
                    );
                }
            }
        }
        for (entity, head) in heads.iter().filter(|(_, head)| !head.is_inconsistent()) {
            for name in head.leases.iter().chain(&head.awaits) {
                let lease = leases
                    .get(name)
                    .unwrap_or_else(|| panic!("{title}: {entity} names {name}, of which nothing is known"));
                assert!(
                    theorems::lease_and_execution_agree(name, lease, entity, Some(head)),
                    "{title}: {entity} {name} {lease:?}"
                );
            }
        }
        let found = |wanted: fn(&&Key) -> bool| self.records.keys().filter(wanted).cloned().collect::<BTreeSet<_>>();
        assert_eq!(found(|key| matches!(key, Key::Lapse(..))), lapses, "{title}: index and leases");
        assert_eq!(found(|key| matches!(key, Key::LeaseEntry(..))), entries, "{title}: entries and leases");
    }

    pub(crate) fn leases(&self) -> BTreeMap<LeaseName, Lease> {
        let leases = self.records.iter().filter_map(|(key, record)| match (key, record) {
            (Key::Lease(name), Record::Lease(lease)) => Some((name.clone(), lease.as_ref().clone())),
            _ => None,
        });
        leases.collect()
    }

    fn check_parts(&self, title: &str, entity: &EntityId, head: &Head, kind: StateKind) {
        let behind = head.lock.as_ref().is_some_and(|lock| lock.generation != head.generation);
        assert!(behind || self.part(entity, Part::Held).is_none(), "{title}: {entity} holds an old desired");
        assert_eq!(self.part(entity, Part::Cause).is_some(), head.cause.payload, "{title}: {entity} cause");
        let waiting = self.records.scan(&Span::Inbox(entity.clone()), usize::MAX).unwrap().len();
        assert_eq!(waiting, usize::try_from(head.inbox.length).unwrap(), "{title}: {entity} inbox");
        assert!(kind == StateKind::Working || waiting == 0, "{title}: {entity} at rest with a full inbox");
        let open = head.lock.as_ref().and_then(|lock| lock.attempt);
        assert!(open.is_none_or(|open| open.token.get() <= self.seq), "{title}: {entity} a token from the future");
    }

    pub(crate) fn heads(&self) -> BTreeMap<EntityId, Head> {
        let heads = self.records.keys().filter_map(|key| match key {
            Key::Head(entity) => Some((entity.clone(), self.head(entity))),
            _ => None,
        });
        heads.collect()
    }

    pub(crate) fn find_head(&self, entity: &EntityId) -> Option<Head> {
        match self.records.get(&Key::Head(entity.clone())).unwrap() {
            Some(Record::Head(head)) => Some(*head),
            _ => None,
        }
    }

    pub(crate) fn head(&self, entity: &EntityId) -> Head {
        self.find_head(entity).unwrap_or_else(|| panic!("no {entity}"))
    }

    pub(crate) fn machine(&self, entity: &EntityId, revision: u64) -> Arc<Machine> {
        let key = Key::Revision(entity.machine.clone(), revision);
        let Some(Record::Revision(revision)) = self.records.get(&key).unwrap() else { panic!("{key:?}") };
        revision.machine.clone()
    }

    pub(crate) fn part(&self, entity: &EntityId, part: Part) -> Option<Doc> {
        match self.records.get(&Key::Part(entity.clone(), part)).unwrap() {
            Some(Record::Doc(doc)) => Some(doc),
            _ => None,
        }
    }

    pub(crate) fn data(&self, entity: &EntityId) -> String {
        self.part(entity, Part::Data).map_or("none".to_owned(), |doc| doc.to_string())
    }

    pub(crate) fn conditions(&self, entity: &EntityId) -> Vec<Condition> {
        match self.records.get(&Key::Part(entity.clone(), Part::Conditions)).unwrap() {
            Some(Record::Conditions(conditions)) => conditions,
            _ => Vec::new(),
        }
    }

    pub(crate) fn dedup(&self, entity: &EntityId, id: &str) -> Option<Dedup> {
        match self.records.get(&Key::Dedup(entity.clone(), id.parse().unwrap())).unwrap() {
            Some(Record::Dedup(dedup)) => Some(dedup),
            _ => None,
        }
    }

    /// The kept entries, oldest first.
    pub(crate) fn history(&self, entity: &EntityId, head: &Head) -> Vec<Entry> {
        let span = Span::History(entity.clone(), head.incarnation, u64::MAX);
        let newest_first = self.records.scan(&span, usize::MAX).unwrap();
        let entries = newest_first.into_iter().rev().map(|(_, record)| match record {
            Record::Entry(entry) => *entry,
            other => panic!("{other:?}"),
        });
        entries.collect()
    }

    pub(crate) fn last_entry(&self, entity: &EntityId) -> Entry {
        self.history(entity, &self.head(entity)).pop().unwrap()
    }

    pub(crate) fn ok(&mut self, verb: Verb) -> Outcome {
        let title = show::verb(&verb);
        self.run(verb).unwrap_or_else(|refused| panic!("{title}: {refused}"))
    }

    pub(crate) fn refused(&mut self, verb: Verb) -> Rejection {
        let title = show::verb(&verb);
        match self.run(verb) {
            Err(refused) => refused,
            Ok(outcome) => panic!("{title}: expected a refusal, got {outcome:?}"),
        }
    }

    pub(crate) fn code(&mut self, verb: Verb) -> Code {
        self.refused(verb).code
    }

    /// The active revision's number.
    pub(crate) fn active(&self, machine: &MachineName) -> u64 {
        match self.records.get(&Key::Machine(machine.clone())).unwrap() {
            Some(Record::Machine(record)) => record.active,
            other => panic!("{machine}: {other:?}"),
        }
    }

    /// What a revision holds, whatever its number.
    pub(crate) fn revision_digest(&self, machine: &MachineName, number: u64) -> Digest {
        match self.records.get(&Key::Revision(machine.clone(), number)).unwrap() {
            Some(Record::Revision(revision)) => revision.digest,
            other => panic!("{machine} {number}: {other:?}"),
        }
    }

    /// A host boots.
    pub(crate) fn open(&mut self) -> SessionId {
        let nonce = format!("boot-{}", self.seq);
        let opened = self.ok(Verb::OpenSession { nonce, secret: [7; 32] });
        let Outcome::Session(id, _) = opened else { panic!("{opened:?}") };
        self.session = Session::of(id);
        self.boot = Some(id);
        id
    }

    pub(crate) fn deploy(&mut self, machine: Mc) -> u64 {
        let machine = Arc::new(machine.0);
        let deploy = Deploy { digest: digest(&machine), machine, component: None, source: String::new() };
        match self.ok(Verb::Deploy(Box::new(deploy))) {
            Outcome::Deployed { revision, .. } => revision,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn create(&mut self, create: Create) -> Answered {
        self.run(Verb::Create(Box::new(create)))
    }

    pub(crate) fn deliver(&mut self, entity: &EntityId, event: Event) -> Answered {
        self.run(Verb::Deliver { entity: entity.clone(), event: Box::new(event) })
    }

    /// An event that must be answered.
    pub(crate) fn send(&mut self, entity: &EntityId, text: &str, id: &str) -> Answer {
        match self.deliver(entity, event(text, id)) {
            Ok(Outcome::Answered { answer, .. }) => *answer,
            other => panic!("{text} {id}: {other:?}"),
        }
    }

    pub(crate) fn send_of(&mut self, entity: &EntityId, text: &str, id: &str, payload: &str) -> Answer {
        match self.deliver(entity, event_of(text, id, payload)) {
            Ok(Outcome::Answered { answer, .. }) => *answer,
            other => panic!("{text} {id}: {other:?}"),
        }
    }

    /// The newest attempt's right to write.
    pub(crate) fn claim(&self, entity: &EntityId) -> Claim {
        self.starts.get(entity).unwrap_or_else(|| panic!("no attempt of {entity} yet")).claim.clone()
    }

    pub(crate) fn transition(&mut self, entity: &EntityId, to: &str, change: Change) -> Answered {
        let claim = self.claim(entity);
        self.run_as(Principal::execution(&claim.execution), Verb::Transition(claim, name(to), Box::new(change)))
    }

    /// The step's move, without change, which must be accepted.
    pub(crate) fn go(&mut self, entity: &EntityId, to: &str) {
        self.transition(entity, to, Change::default()).unwrap();
    }

    pub(crate) fn save(&mut self, entity: &EntityId, change: Change) -> Answered {
        let claim = self.claim(entity);
        let saved = self.run_as(Principal::execution(&claim.execution), Verb::Save(claim, Box::new(change)));
        if let Ok(Outcome::Written { version, .. }) = saved {
            self.starts.get_mut(entity).unwrap().claim.read = version;
        }
        saved
    }

    pub(crate) fn end(&mut self, entity: &EntityId, failure: Failure) -> Answered {
        let claim = self.claim(entity);
        self.run_as(Principal::host(), Verb::End(claim, failure))
    }

    /// The attempt fails, worth another.
    pub(crate) fn fail(&mut self, entity: &EntityId, code: &str) {
        self.end(entity, failure(code)).unwrap();
    }

    /// Goes to the store time that the index names and looks at what is due.
    pub(crate) fn due(&mut self, entity: &EntityId) -> Outcome {
        let due = self.head(entity).due.unwrap_or_else(|| panic!("nothing is due")).0;
        self.pass(due.saturating_sub(self.store));
        self.run_as(Principal::host(), Verb::Due(entity.clone())).unwrap()
    }

    /// Goes to the time of a timer and fires it.
    pub(crate) fn fire(&mut self, entity: &EntityId, timer: &str) -> Verb {
        let due = self.head(entity).timers.iter().find(|set| set.name == name(timer)).unwrap().due;
        self.pass(due.since(WallTime(self.wall)));
        let verb = Verb::Fire { entity: entity.clone(), timer: name(timer), due };
        self.run_as(Principal::host(), verb.clone()).unwrap();
        verb
    }

    /// The host dies: another boots, and every orphan is taken up.
    pub(crate) fn reboot(&mut self) {
        self.open();
        self.recover();
    }

    pub(crate) fn recover(&mut self) {
        for entity in self.heads().into_keys() {
            self.run_as(Principal::host(), Verb::Recover(entity)).unwrap();
        }
    }

    /// What was done since the last time, for an expectation.
    pub(crate) fn transcript(&mut self) -> String {
        std::mem::take(&mut self.transcript)
    }

    /// One line: where an entity stands.
    pub(crate) fn at(&self, entity: &EntityId) -> String {
        self.find_head(entity).map_or("absent".to_owned(), |head| show::head(&head))
    }
}

/// Of a definition's stored bytes.
fn digest(machine: &Arc<Machine>) -> Digest {
    let revision = Revision {
        number: 0,
        digest: Digest([0; 32]),
        component: None,
        source: String::new(),
        rollback_of: None,
        deployed: WallTime(0),
        by: Principal::host(),
        machine: machine.clone(),
    };
    let key = Key::Revision(machine.name.clone(), 0);
    Digest::of(&[&Record::Revision(Arc::new(revision)).encode(&key)])
}

pub(crate) fn failure(code: &str) -> Failure {
    let reason = format!("because of {code}");
    Failure { permanent: false, code: code.to_owned(), reason, retry_after_ms: None }
}

pub(crate) fn permanent(code: &str) -> Failure {
    Failure { permanent: true, ..failure(code) }
}
