//! What must hold of a whole store: histories fold to their entities, and whatever hangs together is all
//! there or all gone. Needs nothing but the records, so that a store that was opened after a crash can be
//! looked at, too.

use crate::finding::{Finding, Held, ensure};
use crate::model::{Model, about};
use interlock_kernel::ids::{EntityId, EventId};
use interlock_kernel::record::{AnswerKind, Entry, Expires, Head, Key, Part, Record};
use interlock_kernel::theorems;
use std::collections::BTreeSet;

impl Model {
    /// Every theorem about every record.
    ///
    /// # Errors
    /// The first that does not hold.
    pub(crate) fn holds(&self) -> Held {
        for (id, head) in self.heads() {
            let broken = theorems::entity(head, self.machine(id, head)?);
            if let Some(theorem) = broken.first() {
                return Err(Finding::new(theorem, id, format!("{head:?}")));
            }
            self.folds(id, head)?;
            self.numbers_hold(id, head)?;
        }
        for (name, lease) in self.leases() {
            if let Some(theorem) = theorems::lease(None, lease).first() {
                return Err(Finding::new(theorem, name, format!("{lease:?}")));
            }
        }
        let everybody = self.heads().map(|(id, _)| id.clone()).collect();
        self.leases_and_heads_agree(&everybody)?;
        self.nothing_is_stray()
    }

    /// The stored history of an entity adds up to its head and documents.
    fn folds(&self, id: &EntityId, head: &Head) -> Held {
        let theorem = "history_folds_to_entity";
        let (first, last) = (head.history.first, head.history.last);
        let stored: Vec<Entry> = (first..=last)
            .filter_map(|number| match self.records.get(&Key::History(id.clone(), head.incarnation, number)) {
                Some(Record::Entry(entry)) => Some((**entry).clone()),
                _ => None,
            })
            .collect();
        let folded = theorems::fold(id, head, &stored)
            .map_err(|(number, why)| Finding::new(theorem, id, format!("entry {number}: {why}")))?;
        let digest = |part| match self.records.get(&Key::Part(id.clone(), part)) {
            Some(Record::Doc(doc)) => Some(doc.digest()),
            _ => None,
        };
        let digests = [Part::Desired, Part::Data, Part::Outputs].map(digest);
        let folds = theorems::history_folds_to_entity(head, &folded, digests);
        ensure(folds, theorem, id, || format!("{folded:?} and {digests:?} are not {head:?}"))
    }

    /// What was minted is below what will be; index and inbox are what the head says.
    fn numbers_hold(&self, id: &EntityId, head: &Head) -> Held {
        let implied = self.implied(id, head);
        let found = self.index.get(id).cloned().unwrap_or_default();
        ensure(implied == found, "the_head_implies_its_index", id, || format!("expected {implied:?}, got {found:?}"))?;
        let waiting = self.inbox(id).count();
        ensure(waiting == head.inbox.length as usize, "the_head_counts_its_inbox", id, || {
            format!("expected {}, got {waiting}", head.inbox.length)
        })?;
        let revision = self.records.get(&Key::Machine(id.machine.clone()));
        let known = matches!(revision, Some(Record::Machine(machine)) if head.revision <= machine.latest);
        ensure(known, "a_head_follows_a_stored_revision", id, || format!("{revision:?} and {}", head.revision))
    }

    /// Index entries, queued events, answers and what is to expire: each belongs to something.
    fn nothing_is_stray(&self) -> Held {
        let theorem = "nothing_is_stray";
        let mut expires_events: BTreeSet<(&EntityId, &EventId, u64)> = BTreeSet::new();
        let mut expires_history: Vec<(&EntityId, u64, u64, u64)> = Vec::new();
        for (key, record) in &self.records {
            match (key, record) {
                (Key::Expiry(due, ..), Record::Expires(Expires::Dedup(id, event))) => {
                    expires_events.insert((id, event, due.0));
                }
                (Key::Expiry(..), Record::Expires(Expires::History(id, incarnation, first, last))) => {
                    expires_history.push((id, incarnation.get(), *first, *last));
                }
                _ => {}
            }
        }
        for (key, record) in &self.records {
            let belongs = match (key, record) {
                (
                    Key::Due(_, id)
                    | Key::Timer(_, id, _)
                    | Key::Open(_, id)
                    | Key::Part(id, _)
                    | Key::Inbox(id, _)
                    | Key::Outbox(_, _, _, id, _)
                    | Key::Flight(_, id, _),
                    _,
                ) => self.head(id).is_some(),
                (Key::Effect(id, number), _) => self.head(id).is_some_and(|head| *number <= head.outbox.last),
                (Key::Lapse(due, lease), _) => self.lease(lease).is_some_and(|lease| lease.due == Some(*due)),
                (Key::Lease(lease), Record::Lease(found)) => {
                    let due = found.due.is_some_and(|due| self.records.contains_key(&Key::Lapse(due, lease.clone())));
                    let kept = |number| self.records.contains_key(&Key::LeaseEntry(lease.clone(), number));
                    due && (found.first..=found.last).all(kept)
                }
                (Key::LeaseEntry(lease, number), _) => {
                    self.lease(lease).is_some_and(|lease| (lease.first..=lease.last).contains(number))
                }
                (Key::Dedup(id, event), Record::Dedup(dedup)) => {
                    let waits = self.inbox(id).any(|(_, queued)| queued.id == *event);
                    let queued = dedup.answer.kind == AnswerKind::Queued;
                    // One that waits is remembered for as long as it waits, whatever its window.
                    waits == queued && (queued || expires_events.contains(&(id, event, dedup.until.0)))
                }
                (Key::History(id, incarnation, number), _) => {
                    let current = self.head(id).is_some_and(|head| head.incarnation == *incarnation);
                    let expires = expires_history.iter().any(|(other, of, first, last)| {
                        *other == id && *of == incarnation.get() && (first..=last).contains(&number)
                    });
                    current || expires
                }
                _ => true,
            };
            ensure(belongs, theorem, about(key), || format!("{record:?}"))?;
        }
        Ok(())
    }
}
