//! From a committed effect to its target and back: one try is two commands with the request between them.
//!
//! What is due is read by target, no more of each than may be under way at a time: a target that is down or slow
//! holds up nothing but itself.

use crate::codec;
use crate::core::Core;
use crate::read::look;
use crate::scheduler::Stuck;
use crate::txn::TxnView;
use futures_util::FutureExt;
use interlock_kernel::command::{Command, Outcome, Sending, Tried, Verb};
use interlock_kernel::ids::{EntityId, MachineName, Name, Principal};
use interlock_kernel::record::{Effect, Key, Record};
use interlock_kernel::view::{Span, Stop, View};
use interlock_store::{BoxFuture, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Tries under way at a time, for one target.
const OF_TARGET_MAX: usize = 8;

/// Tries under way at a time.
const FLIGHTS_MAX: usize = 64;

/// After a failed read.
const RETRY_MS: u64 = 1_000;

/// Effects of one listing.
const LIST_MAX: usize = 1_000;

/// Makes requests.
pub trait Courier: Send + Sync + 'static {
    /// Makes one, once, and says what came of it. Called inside the runtime that the coordinator was opened in.
    fn send<'a>(&'a self, sending: &'a Sending) -> BoxFuture<'a, Tried>;
}

/// Refuses all of them.
pub(crate) struct NoCourier;

impl Courier for NoCourier {
    fn send<'a>(&'a self, _sending: &'a Sending) -> BoxFuture<'a, Tried> {
        let reason = "expected a host that is configured to make requests, got one that makes none".to_owned();
        Box::pin(std::future::ready(Tried::Refused { reason }))
    }
}

/// An effect that is not settled.
#[derive(Clone, Debug)]
pub struct EffectView {
    /// Whose.
    pub entity: EntityId,
    /// Its number there.
    pub number: u64,
    /// The effect.
    pub effect: Effect,
    /// The incarnation of its entity.
    pub incarnation: u64,
    /// Whether the execution that asked for it is over.
    pub outstanding: bool,
}

type TargetOf = (MachineName, Name);

/// What is under way.
pub(crate) struct Flights {
    courier: Arc<dyn Courier>,
    table: Mutex<Table>,
    /// Told when one is over.
    over: Notify,
}

#[derive(Default)]
struct Table {
    targets: BTreeMap<TargetOf, usize>,
    effects: BTreeSet<(EntityId, u64)>,
}

impl Flights {
    pub(crate) fn new(courier: Arc<dyn Courier>) -> Self {
        Self { courier, table: Mutex::default(), over: Notify::new() }
    }

    /// Completes when nothing is under way.
    pub(crate) async fn landed(&self) {
        loop {
            let over = self.over.notified();
            if self.lock().effects.is_empty() {
                return;
            }
            over.await;
        }
    }

    /// How many more of a target may be under way.
    fn room(&self, target: &TargetOf) -> usize {
        let table = self.lock();
        let left = FLIGHTS_MAX.saturating_sub(table.effects.len());
        OF_TARGET_MAX.saturating_sub(table.targets.get(target).copied().unwrap_or_default()).min(left)
    }

    fn is_under_way(&self, effect: &(EntityId, u64)) -> bool {
        self.lock().effects.contains(effect)
    }

    /// False if it is under way already.
    fn begin(&self, target: &TargetOf, effect: &(EntityId, u64)) -> bool {
        let mut table = self.lock();
        let new = table.effects.insert(effect.clone());
        if new {
            *table.targets.entry(target.clone()).or_default() += 1;
        }
        new
    }

    fn end(&self, target: &TargetOf, effect: &(EntityId, u64)) {
        let mut table = self.lock();
        table.effects.remove(effect);
        if let Some(count) = table.targets.get_mut(target) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                table.targets.remove(target);
            }
        }
        drop(table);
        self.over.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is to be tried now, and when the next is.
#[derive(Default)]
struct Agenda {
    due: Vec<Key>,
    next: Option<u64>,
}

/// Tries what is due, as long as the host runs.
pub(crate) async fn run(core: Arc<Core>) {
    recover(&core).await;
    let mut stuck = Stuck::default();
    loop {
        core.alarms().arm_send();
        let over = core.flights().over.notified();
        tokio::pin!(over);
        over.as_mut().enable();
        let now = core.store().now().store_ms;
        let agenda = match agenda(&core, now).await {
            Ok(agenda) => agenda,
            Err(error) => {
                tracing::warn!(%error, "the outbox could not be read");
                core.pause(RETRY_MS).await;
                continue;
            }
        };
        for key in stuck.sift(agenda.due, now) {
            let Key::Outbox(machine, target, _, entity, number) = key else { continue };
            let (target, effect) = ((machine, target), (entity, number));
            if !core.is_refusing() && core.flights().begin(&target, &effect) {
                let core = core.clone();
                core.runtime().clone().spawn(async move {
                    let _flight = Flight { core: core.clone(), target, effect: effect.clone() };
                    carry(&core, effect).await;
                });
            }
        }
        let next = agenda.next.unwrap_or(u64::MAX).min(stuck.until());
        core.alarms().set_send(next);
        tokio::select! {
            biased;
            () = core.alarms().send_changed.notified() => {}
            () = &mut over => {}
            () = core.store().sleep_until_store(next) => {}
        }
    }
}

/// An effect under way; its place is free when this is dropped.
struct Flight {
    core: Arc<Core>,
    target: TargetOf,
    effect: (EntityId, u64),
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.core.flights().end(&self.target, &self.effect);
    }
}

/// One try.
async fn carry(core: &Arc<Core>, (entity, number): (EntityId, u64)) {
    let by = Principal::host();
    let begun = core.insist(Command { by: by.clone(), verb: Verb::Send(entity.clone(), number) }).await;
    let sending = match begun {
        Some(Ok(Outcome::Sending(sending))) => sending,
        Some(Err(error)) => return tracing::warn!(%entity, number, %error, "an effect could not be tried"),
        Some(Ok(_)) | None => return,
    };
    core.counters().sent.add(1);
    let made = AssertUnwindSafe(core.flights().courier.send(&sending)).catch_unwind().await;
    let tried = made.unwrap_or_else(|_| {
        core.counters().panics.add(1);
        Tried::Again { after_ms: None, reason: "the courier panicked".to_owned(), maybe_sent: true }
    });
    let nth = sending.effect.tries;
    core.insist(Command { by, verb: Verb::Settle { entity, number, nth, tried } }).await;
}

/// What earlier boots had under way was perhaps done: it is tried again.
async fn recover(core: &Arc<Core>) {
    let Some(session) = core.session_id() else { return };
    loop {
        let found = look(core, move |view, _| {
            let (from, to) = codec::flights();
            let keys = view.keys(&from, &to, LIST_MAX)?;
            Ok(keys
                .into_iter()
                .filter_map(|key| match key {
                    Key::Flight(of, entity, number) if of != session => Some((entity, number)),
                    _ => None,
                })
                .collect::<Vec<_>>())
        })
        .await;
        match found {
            Ok(found) if found.is_empty() => return,
            Ok(found) => {
                for (entity, number) in found {
                    core.insist(Command { by: Principal::host(), verb: Verb::Resend(entity, number) }).await;
                }
            }
            Err(error) => tracing::warn!(%error, "the effects in flight could not be read"),
        }
        if core.is_refusing() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// By target, no more than may be under way: whatever one of them does, the next is read.
async fn agenda(core: &Arc<Core>, now: u64) -> Result<Agenda, StoreError> {
    let shared = core.clone();
    look(core, move |view, _| {
        let (mut from, to) = codec::outbox();
        let mut agenda = Agenda::default();
        while let Some(Key::Outbox(machine, target, ..)) = view.keys(&from, &to, 1)?.pop() {
            let of = (machine, target);
            let behind = codec::behind_target(&of.0, &of.1);
            let room = shared.flights().room(&of);
            let mut taken = 0_usize;
            // Those under way stand first, still: their commands may be.
            for key in view.keys(&from, &behind, room.saturating_add(OF_TARGET_MAX).saturating_add(1))? {
                shared.counters().scanned.add(1);
                let Key::Outbox(_, _, due, entity, number) = &key else { continue };
                if due.0 > now {
                    agenda.next = Some(agenda.next.map_or(due.0, |next| next.min(due.0)));
                    break;
                }
                if taken < room && !shared.flights().is_under_way(&(entity.clone(), *number)) {
                    agenda.due.push(key);
                    taken = taken.saturating_add(1);
                }
            }
            from = behind;
        }
        Ok(agenda)
    })
    .await
}

fn effects_in(view: &TxnView<'_>, entity: &EntityId) -> Result<Vec<EffectView>, Stop> {
    let head = crate::read::head_in(view, entity)?;
    let incarnation = head.as_ref().map_or(0, |head| head.incarnation.get());
    let running = head.and_then(|head| head.lock).map(|lock| lock.ordinal);
    Ok(view
        .scan(&Span::Effects(entity.clone()), LIST_MAX)?
        .into_iter()
        .filter_map(|(key, record)| match (key, record) {
            (Key::Effect(entity, number), Record::Effect(effect)) => {
                let outstanding = running != Some(effect.execution);
                Some(EffectView { entity, number, effect: *effect, incarnation, outstanding })
            }
            _ => None,
        })
        .collect())
}

/// An entity's unsettled effects.
pub(crate) async fn of(core: &Arc<Core>, entity: EntityId) -> Result<Vec<EffectView>, StoreError> {
    look(core, move |view, _| effects_in(view, &entity)).await
}

/// Unsettled effects of all entities that have one due, in flight or given up.
pub(crate) async fn all(core: &Arc<Core>, limit: usize) -> Result<Vec<EffectView>, StoreError> {
    let limit = limit.clamp(1, LIST_MAX);
    look(core, move |view, _| {
        let mut entities = BTreeSet::new();
        for (from, to) in [codec::flights(), codec::outbox()] {
            for key in view.keys(&from, &to, limit)? {
                entities.extend(crate::views::entity_of(key));
            }
        }
        let mut found = Vec::new();
        for entity in entities {
            found.extend(effects_in(view, &entity)?);
        }
        found.truncate(limit);
        Ok(found)
    })
    .await
}
