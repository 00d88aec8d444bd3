//! The hand that holds attempts between two calls, and lets go of them one at a time.

use interlock_coordinator::{Attempt, Call, Ended, Executor, Probe, Reply, Snapshot, SubmitError, Written};
use interlock_kernel::command::{Change, LeaseAsk};
use interlock_kernel::ids::{EntityId, Name};
use interlock_kernel::rows::{QueryAnswer, QueryAsk, RowAnswer, StepRows};
use interlock_kernel::view::{Claim, LeaseClaim, Start};
use interlock_store::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// What an attempt asks for.
#[derive(Clone, Debug)]
pub enum Asked {
    /// A checkpoint.
    Save(Change),
    /// The next state.
    Transition(Name, Change),
    /// The entity, again.
    Reload,
    /// The entity after an accepted checkpoint, which the host reads for the step.
    LookAgain,
    /// Whether it is still the open one.
    StillHolds,
    /// Something about a lease.
    Lease(LeaseAsk),
    /// Whether a lease is still held under this grant.
    StillHoldsLease(LeaseClaim),
    /// Something of rows, at once.
    Rows(StepRows),
    /// Rows by filter.
    Query(QueryAsk),
}

impl Asked {
    pub(crate) fn of(call: &Call<'_>) -> Self {
        match call {
            Call::Save(change) => Self::Save((*change).clone()),
            Call::Transition(to, change) => Self::Transition((*to).clone(), (*change).clone()),
            Call::Reload => Self::Reload,
            Call::LookAgain => Self::LookAgain,
            Call::StillHolds => Self::StillHolds,
            Call::Lease(ask) => Self::Lease((*ask).clone()),
            Call::StillHoldsLease(claim) => Self::StillHoldsLease((*claim).clone()),
            Call::Rows(ask) => Self::Rows((*ask).clone()),
            Call::Query(ask) => Self::Query((*ask).clone()),
        }
    }

    /// Whether an answer of yes changes something.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self, Self::Save(_) | Self::Transition(..) | Self::Lease(_) | Self::Rows(_))
    }
}

/// What it was told.
#[derive(Clone, Debug)]
pub enum Told {
    /// A write was accepted.
    Written(Written),
    /// The entity as it is.
    Read(Box<Snapshot>),
    /// Whether it still holds.
    Holds(bool),
    /// A lease is held under this grant, for so many ms from the commit.
    Leased(LeaseClaim, u64),
    /// A lease is given back.
    Released,
    /// What was asked of rows is done; whether it had been before.
    Rows(Vec<RowAnswer>, bool),
    /// Rows were found.
    Found(QueryAnswer),
    /// Refused, or the store could not say.
    Refused(SubmitError),
}

impl Told {
    pub(crate) fn of(reply: Reply<'_>) -> Self {
        match reply {
            Reply::Written(done) => Self::Written(done.clone()),
            Reply::Read(snapshot) => Self::Read(Box::new(snapshot.clone())),
            Reply::Holds(holds) => Self::Holds(holds),
            Reply::Leased(claim, ttl_ms) => Self::Leased(claim.clone(), ttl_ms),
            Reply::Released => Self::Released,
            Reply::Rows(answers, replayed) => Self::Rows(answers.to_vec(), replayed),
            Reply::Found(found) => Self::Found(found.clone()),
            Reply::Refused(error) => Self::Refused(error.clone()),
        }
    }
}

/// An attempt that is about to ask.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its place among all attempts of this host, from 0: what names it to [`Lab`](crate::Lab).
    pub place: usize,
    /// Its entity.
    pub entity: EntityId,
    /// The step.
    pub step: Name,
    /// Its number in the visit.
    pub attempt: u32,
    /// The number of this call among the step's own in the attempt, from 1; what the host reads after a
    /// checkpoint has the checkpoint's.
    pub nth: u32,
    /// What it asks for.
    pub asked: Asked,
}

/// What was seen of attempts, in order.
#[derive(Clone, Debug)]
pub enum Seen {
    /// One began to run.
    Began {
        /// Its place.
        place: usize,
        /// What it started from.
        start: Box<Start>,
    },
    /// One was told something.
    Told {
        /// What it had asked for.
        held: Box<Held>,
        /// The answer.
        told: Told,
    },
    /// One is over; no ending if it vanished with its host.
    Over {
        /// Its place.
        place: usize,
        /// How it says that it ended.
        ended: Option<Ended>,
    },
}

/// Holds the attempts of one host. Clones are the same hand.
#[derive(Clone, Default)]
pub(crate) struct Hand(Arc<Inner>);

#[derive(Default)]
struct Inner {
    table: Mutex<Table>,
    /// Told with everything that happens here.
    stirred: Notify,
}

#[derive(Default)]
struct Table {
    slots: Vec<Slot>,
    seen: Vec<Seen>,
    /// Moves with everything that happens here.
    stir: u64,
}

struct Slot {
    claim: Claim,
    step: Name,
    calls: u32,
    doing: Doing,
    /// It computed for so long that nobody waits for it any more.
    given_up: bool,
}

enum Doing {
    Computing,
    Asking(Box<Asked>, Option<oneshot::Sender<()>>),
    Over,
}

impl Hand {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happens here.
    fn stirs(&self, table: &mut Table) {
        table.stir += 1;
        self.0.stirred.notify_one();
    }

    /// Something happens that is no attempt's.
    pub(crate) fn touch(&self) {
        let mut table = self.lock();
        self.stirs(&mut table);
    }

    /// Completes when something has happened since the last time that it did.
    pub(crate) async fn stirred(&self) {
        self.0.stirred.notified().await;
    }

    /// Moves whenever an attempt does something.
    pub(crate) fn stir(&self) -> u64 {
        self.lock().stir
    }

    /// Whether some attempt computes and is worth waiting for.
    pub(crate) fn is_computing(&self) -> bool {
        self.lock().slots.iter().any(|slot| matches!(slot.doing, Doing::Computing) && !slot.given_up)
    }

    /// Nobody waits any longer for those that compute now.
    pub(crate) fn give_up(&self) {
        for slot in &mut self.lock().slots {
            slot.given_up |= matches!(slot.doing, Doing::Computing);
        }
    }

    /// Attempts about to ask, in the order in which they began.
    pub(crate) fn held(&self) -> Vec<Held> {
        let table = self.lock();
        let asking = table.slots.iter().enumerate().filter_map(|(place, slot)| match &slot.doing {
            Doing::Asking(asked, Some(_)) => Some(held(place, slot, (**asked).clone())),
            _ => None,
        });
        asking.collect()
    }

    /// Attempts that compute without end, as far as anybody can tell.
    pub(crate) fn hung(&self) -> Vec<EntityId> {
        let table = self.lock();
        let hung = table.slots.iter().filter(|slot| slot.given_up && matches!(slot.doing, Doing::Computing));
        hung.map(|slot| slot.claim.execution.entity.clone()).collect()
    }

    /// The right to write of an attempt, as of what it read last.
    pub(crate) fn claim(&self, place: usize) -> Option<Claim> {
        self.lock().slots.get(place).map(|slot| slot.claim.clone())
    }

    /// Lets an attempt ask.
    pub(crate) fn let_go(&self, place: usize) {
        let mut table = self.lock();
        self.stirs(&mut table);
        if let Some(Slot { doing: Doing::Asking(_, go), .. }) = table.slots.get_mut(place)
            && let Some(go) = go.take()
        {
            // It may have been ended meanwhile.
            let _ = go.send(());
        }
    }

    /// What was seen since the last call.
    pub(crate) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.lock().seen)
    }
}

fn held(place: usize, slot: &Slot, asked: Asked) -> Held {
    Held {
        place,
        entity: slot.claim.execution.entity.clone(),
        step: slot.step.clone(),
        attempt: slot.claim.attempt,
        nth: slot.calls,
        asked,
    }
}

/// Hands attempts on, each with a hand on its shoulder.
pub(crate) struct Watched {
    pub(crate) inner: Arc<dyn Executor>,
    pub(crate) hand: Hand,
}

impl Executor for Watched {
    fn start(&self, attempt: Attempt) {
        let start = attempt.start().clone();
        let place = {
            let mut table = self.hand.lock();
            self.hand.stirs(&mut table);
            table.slots.push(Slot {
                claim: start.claim.clone(),
                step: start.step.clone(),
                calls: 0,
                doing: Doing::Computing,
                given_up: false,
            });
            let place = table.slots.len().saturating_sub(1);
            table.seen.push(Seen::Began { place, start: Box::new(start) });
            place
        };
        self.inner.start(attempt.watched_by(Arc::new(Grip { hand: self.hand.clone(), place })));
    }
}

/// The probe of one attempt.
struct Grip {
    hand: Hand,
    place: usize,
}

impl Grip {
    fn with<T>(&self, change: impl FnOnce(&mut Slot, &mut Vec<Seen>) -> T) -> Option<T> {
        let mut table = self.hand.lock();
        self.hand.stirs(&mut table);
        let Table { slots, seen, .. } = &mut *table;
        slots.get_mut(self.place).map(|slot| change(slot, seen))
    }
}

impl Probe for Grip {
    fn before<'a>(&'a self, _attempt: &'a Attempt, call: Call<'a>) -> BoxFuture<'a, ()> {
        let (go, gone) = oneshot::channel();
        self.with(|slot, _| {
            slot.calls += u32::from(!matches!(call, Call::LookAgain));
            slot.given_up = false;
            slot.doing = Doing::Asking(Box::new(Asked::of(&call)), Some(go));
        });
        Box::pin(async move {
            // Dropped with the whole hand: the host is gone, and this attempt with it.
            if gone.await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    fn after(&self, _attempt: &Attempt, call: Call<'_>, reply: Reply<'_>) {
        self.with(|slot, seen| {
            let told = Told::of(reply);
            match &told {
                Told::Written(done) => slot.claim.read = done.version,
                Told::Read(snapshot) => slot.claim.read = snapshot.version,
                Told::Holds(_)
                | Told::Leased(..)
                | Told::Released
                | Told::Rows(..)
                | Told::Found(_)
                | Told::Refused(_) => {}
            }
            let held = Box::new(held(self.place, slot, Asked::of(&call)));
            slot.doing = Doing::Computing;
            seen.push(Seen::Told { held, told });
        });
    }

    fn over(&self, ended: Option<&Ended>) {
        self.with(|slot, seen| {
            slot.doing = Doing::Over;
            seen.push(Seen::Over { place: self.place, ended: ended.cloned() });
        });
    }
}
