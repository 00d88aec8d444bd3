//! When two scenes are one state. The key is everything a decision, a check or an act can tell apart.
//! Numbers that only grow are replaced by how they compare with what they are ever compared with:
//!
//! - **Tokens** are compared with the open attempt's, **versions** that somebody has read with the
//!   entity's, of the same incarnation: what is past stays past.
//! - **Sessions and incarnations** are told by their rank among those that are written; a new one is above
//!   all of them, in both scenes.
//! - **Executions and generations** are told by their distance to the newest, a generation also by whether
//!   there is one at all. The number of an attempt decides nothing that its token does not.
//! - **Times** are only compared with now: what is left until then says the same, and what is over is over.
//!   Of what is remembered it is enough whether that is over: one act ends it, and passes the whole window.
//! - **Revisions** are looked up by number and compared with the active one: their content and that
//!   comparison say the same.
//! - **Answers** are compared with what the sender was told: their kind and that comparison say the same.
//!
//! Left out is what no decision reads: history but for its end, which is folded after every act; what is
//! shown and not compared (when and by what a visit was entered, since when the lock is held, the last
//! failure, how the last execution ended); the visit's and the base's version, which no act names; and
//! three counters whose bounds no search of this depth comes near (facts, saves, entries of history).
//!
//! That this is right is tested, not only argued: `equal_states_stay_equal` gives every act to both of
//! two scenes with one key and compares the keys after it.

use super::scene::Scene;
use interlock_kernel::doc::Digest;
use interlock_kernel::record::{AnswerKind, Expect, Expires, Head, Key, Lock, Record};
use interlock_kernel::time::StoreTime;
use interlock_kernel::view::Claim;
use std::collections::BTreeSet;
use std::fmt::{Result, Write};

/// What two scenes that are one state share.
pub(crate) fn of(scene: &Scene) -> [u8; 32] {
    Digest::of(&[text(scene).as_bytes()]).0
}

/// The key before it is hashed: for people who wonder why two scenes are one, or are not.
pub(crate) fn text(scene: &Scene) -> String {
    let mut text = String::new();
    let written = Reader::of(scene).all(&mut text);
    assert!(written.is_ok(), "a string takes every text");
    text
}

fn distance(newest: u64, from: u64) -> i128 {
    i128::from(newest) - i128::from(from)
}

struct Reader<'a> {
    scene: &'a Scene,
    head: Option<Head>,
    sessions: BTreeSet<u64>,
    incarnations: BTreeSet<u64>,
}

impl<'a> Reader<'a> {
    fn of(scene: &'a Scene) -> Self {
        let (mut sessions, mut incarnations) = (BTreeSet::new(), BTreeSet::new());
        for (key, record) in scene.world.records.iter() {
            match (key, record) {
                (Key::Session(session), _) => drop(sessions.insert(session.get())),
                (_, Record::Head(head)) => {
                    incarnations.insert(head.incarnation.get());
                    let open = head.lock.as_ref().and_then(|lock| lock.attempt);
                    sessions.extend(open.map(|open| open.session.get()));
                }
                (_, Record::Expires(Expires::History(_, incarnation, ..))) => {
                    incarnations.insert(incarnation.get());
                }
                _ => {}
            }
        }
        sessions.extend(scene.world.boot.map(|boot| boot.get()));
        Self { scene, head: scene.head(), sessions, incarnations }
    }

    fn all(&self, text: &mut String) -> Result {
        for (key, record) in self.scene.world.records.iter() {
            self.record(text, key, record)?;
        }
        let Scene { claims, answers, taken, seen, left, desired, .. } = self.scene;
        for claim in claims {
            self.claim(text, claim)?;
        }
        for (id, told) in answers {
            let remembered = self.scene.world.dedup(&self.scene.id, id);
            let same = remembered.is_some_and(|remembered| remembered.answer == *told);
            writeln!(text, "told {id} {:?} {same}", told.kind)?;
        }
        let running = self.head.as_ref().and_then(|head| head.locked_by(&self.scene.id)).map(|id| id.to_string());
        let sees = desired.as_ref().filter(|(of, _)| Some(of) == running.as_ref()).map(|(_, sees)| sees);
        let session = self.scene.world.boot.map(|boot| rank(&self.sessions, boot.get()));
        let seen = seen.map(|(incarnation, version)| self.is_read(incarnation, version));
        writeln!(text, "{taken:?} sees {sees:?} seen {seen:?} {left:?} {session:?}")
    }

    /// Whether what somebody has read is what is there; none of another incarnation. It is never again once
    /// it is not: versions only grow, and whoever names one names its incarnation too.
    fn is_read(&self, incarnation: u64, version: u64) -> Option<bool> {
        let head = self.head.as_ref().filter(|head| head.incarnation.get() == incarnation)?;
        Some(head.version.get() == version)
    }

    fn claim(&self, text: &mut String, claim: &Claim) -> Result {
        let Some(head) = self.head.as_ref() else { return writeln!(text, "claim of nothing") };
        let token = head.lock.as_ref().and_then(|lock| lock.attempt).map(|open| claim.token.cmp(&open.token));
        let incarnation = claim.execution.incarnation;
        let execution = (incarnation == head.incarnation).then(|| distance(head.executions, claim.execution.ordinal));
        let read = self.is_read(incarnation.get(), claim.read.get());
        writeln!(text, "claim {execution:?} token {token:?} read {read:?}")
    }

    fn until(&self, time: Option<StoreTime>) -> Option<u64> {
        time.map(|time| time.0.saturating_sub(self.scene.world.store))
    }

    fn is_over(&self, time: StoreTime) -> bool {
        time.0 <= self.scene.world.store
    }

    fn record(&self, text: &mut String, key: &Key, record: &Record) -> Result {
        let world = &self.scene.world;
        match (key, record) {
            (Key::Machine(name), Record::Machine(machine)) => {
                writeln!(text, "machine {}", world.revision_digest(name, machine.active))
            }
            (Key::Head(_), Record::Head(head)) => self.entity(text, head),
            (Key::Part(_, part), Record::Doc(doc)) => writeln!(text, "{part:?} {doc}"),
            (Key::Part(..), Record::Conditions(conditions)) => {
                let kinds: Vec<_> = conditions.iter().map(|one| (&one.kind, &one.status)).collect();
                writeln!(text, "conditions {kinds:?}")
            }
            (Key::Inbox(..), Record::Queued(queued)) => {
                assert_eq!(queued.expect, Expect::default(), "no act queues an event that expects something");
                writeln!(text, "waits {} {} {:?}", queued.name, queued.id, queued.payload)
            }
            (Key::Dedup(_, id), Record::Dedup(dedup)) => {
                let waits = dedup.answer.kind == AnswerKind::Queued;
                writeln!(text, "remembered {id} {:?} {}", dedup.answer.kind, !waits && self.is_over(dedup.until))
            }
            (Key::Session(session), Record::Session(record)) => {
                writeln!(text, "session {} {:?}", rank(&self.sessions, session.get()), record.closed)
            }
            (Key::Expiry(due, ..), Record::Expires(Expires::Dedup(_, id))) => {
                writeln!(text, "expires {id} {}", self.is_over(*due))
            }
            (Key::Expiry(due, ..), Record::Expires(Expires::History(_, incarnation, ..))) => {
                let rank = rank(&self.incarnations, incarnation.get());
                writeln!(text, "expires history {rank} {}", self.is_over(*due))
            }
            // The index follows from the head, and is checked against it after every act; an entry of
            // history is folded as it is written; a revision is told by its content.
            _ => Ok(()),
        }
    }

    fn entity(&self, text: &mut String, head: &Head) -> Result {
        let (world, machine) = (&self.scene.world, &self.scene.id.machine);
        writeln!(text, "@{} {}", rank(&self.incarnations, head.incarnation.get()), head.state)?;
        let active = world.active(machine) == head.revision;
        writeln!(text, "follows {} {active}", world.revision_digest(machine, head.revision))?;
        let behind = distance(head.generation, head.observed);
        writeln!(text, "behind {behind} {} payload {}", head.generation > 0, head.cause.payload)?;
        for timer in &head.timers {
            writeln!(text, "timer {} {}", timer.name, (timer.due.0 - world.wall).max(0))?;
        }
        let [deadline, due] = [head.deadline, head.due].map(|time| self.until(time));
        let park = head.park.as_ref().map(|park| &park.code);
        writeln!(text, "deadline {deadline:?} due {due:?} park {park:?} inbox {}", head.inbox.length)?;
        head.lock.as_ref().map_or(Ok(()), |lock| self.lock(text, head, lock))
    }

    fn lock(&self, text: &mut String, head: &Head, lock: &Lock) -> Result {
        let open = lock.attempt.map(|open| (lock.attempts == open.ordinal, rank(&self.sessions, open.session.get())));
        let (execution, generation) =
            (distance(head.executions, lock.ordinal), distance(head.generation, lock.generation));
        let [retry, limit] = [lock.retry, lock.limit].map(|time| self.until(time));
        let counters = [("chain", lock.chain), ("failed", lock.failed), ("lost", lock.lost)];
        writeln!(text, "lock {execution} {generation} {counters:?} open {open:?} retry {retry:?} limit {limit:?}")
    }
}

/// How many are below it.
fn rank(all: &BTreeSet<u64>, number: u64) -> usize {
    all.range(..number).count()
}
