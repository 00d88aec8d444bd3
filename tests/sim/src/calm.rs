//! Calm: everything there is to run is run, and time passes until nothing moves any more.

use crate::boot::{Boot, WATCHES_AGAIN};
use crate::finding::{Finding, Held, ensure};
use crate::gated::How;
use crate::ledger::Request;
use crate::world::{Death, Exit, World};
use interlock_coordinator::{Listing, PAGE_MAX};
use interlock_kernel::ids::EntityId;
use interlock_kernel::machine::StateKind;
use interlock_kernel::record::{AnswerKind, Head, Record, Stands};
use interlock_store::{Clock, Store, StoreError};
use std::collections::BTreeMap;
use std::time::Duration;

/// Times the clock is moved while the world comes to rest; far more than any machine needs.
const PATIENCE: usize = 5_000;
/// The shortest time that passes while it does, in ms.
const PASSES_MS: u64 = 50;
/// And the longest.
const PASSES_MS_MAX: u64 = 600_000;

impl World {
    /// Runs everything there is to run.
    pub(crate) async fn serve(&mut self, boot: &mut Boot) -> Result<Option<Exit>, Finding> {
        loop {
            if let Some(exit) = self.listen(boot).await? {
                return Ok(Some(exit));
            }
            let gated = boot.gated.clone();
            if gated.tell() || gated.ask(0, false) || self.carries_on()? {
                continue;
            }
            let nth = self.runs;
            if self.death == Some(Death::Before(nth)) && gated.jobs() > 0 {
                return Ok(Some(Exit::Died));
            }
            let Some(ran) = gated.run(0, How::Plain) else { return Ok(None) };
            self.runs += 1;
            if ran.kept.is_none() {
                self.in_flight = Some(ran);
                return Ok(Some(Exit::Died));
            }
            self.ran(&ran, How::Plain)?;
            if self.death == Some(Death::Committed(nth)) {
                return Ok(Some(Exit::Died));
            }
            if self.death == Some(Death::Told(nth)) {
                while gated.tell() {}
                self.listen(boot).await?;
                return Ok(Some(Exit::Died));
            }
        }
    }

    /// The first request on its way arrives and is done, and its answer is heard.
    fn carries_on(&mut self) -> Result<bool, Finding> {
        if self.wire.answer(0) {
            return Ok(true);
        }
        let Some((nth, sending)) = self.wire.next() else { return Ok(false) };
        let turn = (self.fates)(&sending);
        self.turn(nth, turn)?;
        Ok(true)
    }

    /// The same, and lets time pass, until nothing moves any more.
    pub(crate) async fn settle(&mut self, boot: &mut Boot) -> Result<Option<Exit>, Finding> {
        for _ in 0..PATIENCE {
            if let Some(exit) = self.serve(boot).await? {
                return Ok(Some(exit));
            }
            if boot.host.is_some() && self.nothing_moves(boot)? {
                return Ok(None);
            }
            self.pass_to_the_next_cause(boot.gated.now().store_ms);
        }
        let moving: Vec<String> = self
            .model
            .heads()
            .filter(|(id, head)| !self.rests(id, head).unwrap_or(false))
            .map(|(id, head)| format!("{id} in {}: {:?}", head.state, head.lock))
            .collect();
        Err(Finding::new("everything_comes_to_rest", "the world", format!("still moving: {moving:?}")))
    }

    fn nothing_moves(&self, boot: &Boot) -> Result<bool, Finding> {
        let Some(host) = &boot.host else { return Ok(false) };
        if self.ledger.requests.iter().any(Request::is_waiting) || !host.attempts(1).is_empty() {
            return Ok(false);
        }
        for (id, head) in self.model.heads() {
            if !self.rests(id, head)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether nothing but a client or an operator moves it, or time that may take for ever.
    fn rests(&self, id: &EntityId, head: &Head) -> Result<bool, Finding> {
        let machine = self.model.machine(id, head)?;
        let Some(state) = machine.state(&head.state) else { return Ok(false) };
        let sent =
            self.model.effects(id).any(|(_, effect)| matches!(effect.stands, Stands::Due(_) | Stands::InFlight(_)));
        let waits = head.timers.is_empty() && head.deadline.is_none() && head.due.is_none() && !sent;
        Ok(match state.kind {
            StateKind::Rest => waits,
            StateKind::Succeeded | StateKind::Failed => !sent,
            StateKind::Working => waits && (head.park.is_some() || state.waits_forever && state.step.is_none()),
        })
    }

    /// To the next thing in an index, or a little further.
    fn pass_to_the_next_cause(&mut self, store_ms: u64) {
        let wall = self.clock.wall_ms();
        let timers =
            self.model.heads().flat_map(|(_, head)| &head.timers).map(|timer| timer.due.0.saturating_sub(wall));
        let dues = self.model.heads().filter_map(|(_, head)| head.due).map(|due| due.0.saturating_sub(store_ms));
        // Whoever stands in line for a lease waits for what becomes of it; so does who waits for its next try.
        let lapses = self.model.leases().filter(|(_, lease)| !lease.line.is_empty()).filter_map(|(_, lease)| lease.due);
        let tries = self.model.tries();
        let more = lapses.chain(tries).map(|due| due.0.saturating_sub(store_ms));
        let indexed = timers.map(|by| u64::try_from(by).unwrap_or(0)).chain(dues).chain(more).min();
        let now = self.clock.monotonic();
        let sleeper = self.clock.next_sleeper().map(|next| next.saturating_sub(now));
        let sleeper = sleeper.map(|by| u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
        // Nothing runs: nothing can happen before what an index says. What runs may be woken by anything.
        let runs = self.model.heads().any(|(_, head)| head.lock.as_ref().is_some_and(|lock| lock.attempt.is_some()))
            || self
                .model
                .records
                .values()
                .any(|record| matches!(record, Record::Effect(effect) if effect.is_in_flight()));
        let by = indexed.filter(|_| !runs).or(sleeper).unwrap_or(PASSES_MS);
        self.clock.advance(Duration::from_millis(by.clamp(PASSES_MS, PASSES_MS_MAX)));
    }

    /// Every queued event has had its turn, but for those of entities that wait for an operator.
    pub(crate) fn answers_have_turned(&self) -> Held {
        for ((entity, event), turns) in &self.model.turns {
            let Some(last) = turns.last().filter(|last| last.answer.kind == AnswerKind::Queued) else { continue };
            let waits = self.model.inbox(entity).any(|(_, queued)| queued.id == *event);
            ensure(waits, "queued_answers_resolve", entity, || format!("{event}: {:?}", last.answer))?;
            let head = self.model.head(entity);
            let held = head.is_some_and(|head| head.lock.is_some());
            ensure(held, "queued_answers_resolve", entity, || format!("{event} waits, and nobody holds the lock"))?;
        }
        Ok(())
    }

    /// What the host shows is what is stored, and its reconciler finds nothing.
    pub(crate) async fn the_host_agrees(&mut self, boot: &mut Boot) -> Held {
        let theorem = "the_host_shows_what_is_stored";
        let Some(host) = boot.host.clone() else { return Ok(()) };
        let failed = |error: StoreError| Finding::new(theorem, "the host", error);
        let looking = tokio::spawn(async move {
            let page = host.entities(Listing { limit: PAGE_MAX, ..Listing::default() }).await?;
            Ok::<_, StoreError>((page, host.reconcile().await?))
        });
        while !looking.is_finished() {
            self.serve(boot).await?;
        }
        let looked = looking.await.map_err(|error| Finding::new(theorem, "the host", error))?;
        let (page, repaired) = looked.map_err(failed)?;
        ensure(repaired.is_empty(), "the_reconciler_finds_nothing", "the host", || format!("{repaired:?}"))?;
        let shown: BTreeMap<&EntityId, &Head> = page.entities.iter().map(|(id, head)| (id, head)).collect();
        let stored: BTreeMap<&EntityId, &Head> = self.model.heads().collect();
        for id in shown.keys().chain(stored.keys()) {
            let (expected, got) = (stored.get(*id), shown.get(*id));
            ensure(expected == got, theorem, id, || format!("expected {expected:?}, got {got:?}"))?;
        }
        // Whoever watches may be about to begin again after a read that failed.
        self.clock.advance(WATCHES_AGAIN);
        self.serve(boot).await?;
        Ok(())
    }
}
