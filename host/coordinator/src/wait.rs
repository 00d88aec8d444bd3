//! Waiting for the end of what an event started, without asking the store again and again.

use crate::core::Core;
use crate::read::{self, head_in};
use crate::txn::TxnView;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, EventId, Name};
use interlock_kernel::record::{Answer, AnswerKind, Head, Key, Park, Part, Record, What};
use interlock_kernel::view::{Span, Stop, View};
use interlock_kernel::{Incarnation, Version};
use interlock_store::{SCAN_ENTRIES, StoreError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Who waits for which entity, or lease.
pub(crate) struct Waiters<K> {
    count: AtomicUsize,
    waiting: Mutex<BTreeMap<K, Waiter>>,
}

impl<K> Default for Waiters<K> {
    fn default() -> Self {
        Self { count: AtomicUsize::new(0), waiting: Mutex::default() }
    }
}

#[derive(Default)]
struct Waiter {
    notify: Arc<Notify>,
    count: usize,
}

impl<K: Ord + Clone> Waiters<K> {
    /// What is waited for may have happened: an execution of this entity ended or parked, an answer turned.
    pub(crate) fn wake(&self, entity: &K) {
        // Mostly nobody waits: one load.
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(waiter) = self.lock().get(entity) {
            waiter.notify.notify_waiters();
        }
    }

    pub(crate) fn wake_all(&self) {
        for waiter in self.lock().values() {
            waiter.notify.notify_waiters();
        }
    }

    pub(crate) fn join(&self, entity: &K) -> Arc<Notify> {
        self.count.fetch_add(1, Ordering::SeqCst);
        let mut waiting = self.lock();
        let waiter = waiting.entry(entity.clone()).or_default();
        waiter.count += 1;
        waiter.notify.clone()
    }

    pub(crate) fn leave(&self, entity: &K) {
        let mut waiting = self.lock();
        if let Some(waiter) = waiting.get_mut(entity) {
            waiter.count -= 1;
            if waiter.count == 0 {
                waiting.remove(entity);
            }
        }
        self.count.fetch_sub(1, Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Waiter>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Place {
    core: Arc<Core>,
    entity: EntityId,
    notify: Arc<Notify>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.core.waiters().leave(&self.entity);
    }
}

/// Where an awaited execution, or event, stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// The execution ended, or the event was taken without starting one.
    Ended {
        /// Not by a failure path, kill or unlock.
        succeeded: bool,
        /// The state it ended in.
        state: Name,
        /// The version it ended with.
        version: Version,
        /// What the entity promises now.
        outputs: Option<Doc>,
        /// The execution's number; none if the event started none.
        execution: Option<u64>,
    },
    /// Nothing is tried any more until an operator decides.
    Parked {
        /// Why.
        park: Park,
        /// The state it is in.
        state: Name,
        /// The entity's version.
        version: Version,
        /// The execution's number.
        execution: u64,
    },
    /// The event waited and was refused when its turn came, or came too late.
    Refused(Box<Answer>),
    /// The entity is gone, or how the execution ended is no longer on record.
    Gone,
    /// The time was up: where it stands.
    Pending {
        /// The answer as it is now: still queued, or the execution that goes on.
        answer: Box<Answer>,
        /// The state the entity is in.
        state: Name,
        /// The entity's version.
        version: Version,
    },
}

/// Waits until what an answer speaks of has ended or parked, at most `within` of store time.
pub(crate) async fn settled(
    core: &Arc<Core>,
    entity: &EntityId,
    answer: &Answer,
    within: Duration,
) -> Result<Settled, StoreError> {
    let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
    let until = core.store().now().store_ms.saturating_add(within_ms);
    let timeout = core.store().sleep_until_store(until);
    tokio::pin!(timeout);
    let notify = core.waiters().join(entity);
    let place = Place { core: core.clone(), entity: entity.clone(), notify };
    loop {
        let woken = place.notify.notified();
        tokio::pin!(woken);
        // Counted from here on: a commit between the look and the wait wakes.
        woken.as_mut().enable();
        let (id, answer) = (entity.clone(), answer.clone());
        let now = read::look(core, move |view, _| stands(view, &id, &answer)).await?;
        if !matches!(now, Settled::Pending { .. }) {
            return Ok(now);
        }
        tokio::select! {
            biased;
            () = &mut woken => {}
            () = &mut timeout => return Ok(now),
            () = core.stopped() => return Err(StoreError::Closed),
        }
    }
}

fn stands(view: &TxnView<'_>, entity: &EntityId, answer: &Answer) -> Result<Settled, Stop> {
    let answer = match answer.kind {
        AnswerKind::Queued => remembered(view, entity, &answer.event)?.unwrap_or_else(|| answer.clone()),
        AnswerKind::Accepted | AnswerKind::Refused | AnswerKind::Late => answer.clone(),
    };
    let head = head_in(view, entity)?.filter(|head| head.incarnation == answer.incarnation);
    if matches!(answer.kind, AnswerKind::Refused | AnswerKind::Late) {
        return Ok(Settled::Refused(Box::new(answer)));
    }
    let Some(head) = head else { return Ok(Settled::Gone) };
    let pending =
        |answer| Settled::Pending { answer: Box::new(answer), state: head.state.clone(), version: head.version };
    let Some(execution) = answer.execution else {
        return Ok(match answer.kind {
            AnswerKind::Queued => pending(answer),
            AnswerKind::Accepted | AnswerKind::Refused | AnswerKind::Late => Settled::Ended {
                succeeded: true,
                state: answer.state,
                version: answer.version,
                outputs: outputs(view, entity)?,
                execution: None,
            },
        });
    };
    if head.lock.as_ref().is_some_and(|lock| lock.ordinal == execution) {
        return Ok(match head.park {
            Some(park) => Settled::Parked { park, state: head.state, version: head.version, execution },
            None => pending(answer),
        });
    }
    ended(view, entity, &head, execution)
}

fn ended(view: &TxnView<'_>, entity: &EntityId, head: &Head, execution: u64) -> Result<Settled, Stop> {
    let outputs = outputs(view, entity)?;
    if let Some(last) = head.last.as_ref().filter(|last| last.ordinal == execution) {
        return Ok(Settled::Ended {
            succeeded: last.succeeded,
            state: last.state.clone(),
            version: last.version,
            outputs,
            execution: Some(execution),
        });
    }
    // Later executions ended since: its own end stands in the history, as long as that goes back so far.
    Ok(match last_move(view, entity, head.incarnation, head.history.last, execution)? {
        Some((succeeded, state, version)) => {
            Settled::Ended { succeeded, state, version, outputs, execution: Some(execution) }
        }
        None => Settled::Gone,
    })
}

/// The last entry of an execution that moved the entity.
fn last_move(
    view: &TxnView<'_>,
    entity: &EntityId,
    incarnation: Incarnation,
    newest: u64,
    execution: u64,
) -> Result<Option<(bool, Name, Version)>, Stop> {
    let limit = usize::try_from(SCAN_ENTRIES.max).unwrap_or(usize::MAX);
    let entries = view.scan(&Span::History(entity.clone(), incarnation, newest), limit)?;
    Ok(entries.into_iter().find_map(|(_, record)| match record {
        Record::Entry(entry) if entry.execution == Some(execution) && moves(&entry.what) => {
            let failed = matches!(entry.what, What::FailurePath(_) | What::Killed(_) | What::Unlocked(..));
            Some((!failed, entry.to, entry.version))
        }
        _ => None,
    }))
}

fn moves(what: &What) -> bool {
    match what {
        What::Event(_)
        | What::Transition(_)
        | What::Timer(_)
        | What::FailurePath(_)
        | What::Killed(_)
        | What::Unlocked(..) => true,
        What::Created
        | What::Queued(_)
        | What::Refused(..)
        | What::Applied(_)
        | What::DesiredChanged
        | What::Saved(_)
        | What::Begun(_)
        | What::Ended(..)
        | What::Parked(..)
        | What::Unparked
        | What::Deleted
        | What::Leased(_)
        | What::Returned(_)
        | What::LeaseLost(_)
        | What::Awaits(_)
        | What::Effect(..)
        | What::Fact(..) => false,
    }
}

fn outputs(view: &TxnView<'_>, entity: &EntityId) -> Result<Option<Doc>, Stop> {
    Ok(match view.get(&Key::Part(entity.clone(), Part::Outputs))? {
        Some(Record::Doc(doc)) => Some(doc),
        _ => None,
    })
}

/// The answer that is remembered for an event id.
pub(crate) fn remembered(view: &TxnView<'_>, entity: &EntityId, event: &EventId) -> Result<Option<Answer>, Stop> {
    Ok(match view.get(&Key::Dedup(entity.clone(), event.clone()))? {
        Some(Record::Dedup(dedup)) => Some(dedup.answer),
        _ => None,
    })
}
