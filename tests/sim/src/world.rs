//! What a driver of one run holds, whoever drives it: the clock, the model, the ledger, the transcript; and
//! how it hears what jobs, clients and guests have to say.

use crate::boot::{Boot, Word, rest};
use crate::figures::Figures;
use crate::finding::{Finding, Held, ensure};
use crate::gated::{How, Ran, Write};
use crate::guests::Diary;
use crate::ledger::{Ledger, Request, Told};
use crate::log::Log;
use crate::model::Model;
use crate::moods::Moods;
use crate::receiver::{Manners, Whim};
use crate::tenants::Beliefs;
use crate::watched::Watched;
use crate::wire::{Turn, Wire};
use interlock_coordinator::{Settled, decode_key};
use interlock_kernel::command::{Command, Sending};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::{FactKind, Key, Owner, What};
use interlock_store::{Clock, Fate, ManualClock};
use std::sync::Arc;
use tokio::task::AbortHandle;

/// Says what becomes of a request.
pub(crate) type Fates = Arc<dyn Fn(&Sending) -> Turn + Send + Sync>;

/// How a boot ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The host died.
    Died,
    /// It stopped in good order.
    Stopped,
    /// There is nothing more to do.
    Enough,
}

/// See the module.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) log: Log,
    pub(crate) diary: Arc<Diary>,
    pub(crate) model: Model,
    pub(crate) ledger: Ledger,
    pub(crate) wire: Wire,
    /// What becomes of requests in calm.
    pub(crate) fates: Fates,
    pub(crate) beliefs: Beliefs,
    pub(crate) figures: Figures,
    pub(crate) watched: Watched,
    pub(crate) on_their_way: Vec<(usize, usize, AbortHandle)>,
    /// The job that the store died over.
    pub(crate) in_flight: Option<Ran>,
    /// Jobs run in calm, over all boots.
    pub(crate) runs: u64,
    /// At which of them the host dies.
    pub(crate) death: Option<Death>,
    /// Whether somebody watches.
    pub(crate) watches: bool,
    pub(crate) step: u64,
}

/// A moment at which the host dies, by the number of a job run in calm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// Before it runs.
    Before(u64),
    /// After it was committed, before anybody is told.
    Committed(u64),
    /// After everybody was told.
    Told(u64),
}

impl World {
    pub(crate) fn new(log: Log, seed: u64, moods: Moods, manners: Manners) -> Self {
        let clock = ManualClock::new();
        clock.set_wall(1_700_000_000_000);
        Self {
            clock,
            diary: Diary::new(log.clone(), seed, moods),
            wire: Wire::new(log.clone(), manners),
            fates: Arc::new(|_| Turn::Arrives(Whim::Does)),
            beliefs: Beliefs::default(),
            log,
            model: Model::default(),
            ledger: Ledger::default(),
            figures: Figures { runs: 1, ..Figures::default() },
            watched: Watched::default(),
            on_their_way: Vec::new(),
            in_flight: None,
            runs: 0,
            death: None,
            watches: true,
            step: 0,
        }
    }

    /// The same world at the same time, to go on in another way.
    pub(crate) fn fork(&self) -> Self {
        let clock = ManualClock::new();
        clock.advance(self.clock.monotonic());
        clock.set_wall(self.clock.wall_ms());
        let log = Log::new(false);
        Self {
            clock,
            diary: self.diary.fork(log.clone()),
            wire: self.wire.fork(log.clone()),
            fates: self.fates.clone(),
            beliefs: self.beliefs.clone(),
            log,
            model: self.model.clone(),
            ledger: self.ledger.clone(),
            figures: Figures::default(),
            watched: Watched::default(),
            on_their_way: Vec::new(),
            in_flight: self.in_flight.clone(),
            runs: self.runs,
            death: None,
            watches: self.watches,
            step: self.step,
        }
    }

    /// The end of a boot, before what is left of it is dropped.
    pub(crate) fn count(&mut self, boot: &Boot) {
        let Some(host) = &boot.host else { return };
        let stats = host.stats();
        self.figures.decided += stats.decided;
        for (code, count) in stats.refused {
            self.figures.refusals(code, count);
        }
    }

    /// Nobody of a boot has anything to say any more.
    pub(crate) fn hears_nothing(&mut self) {
        self.on_their_way.clear();
        self.ledger.hears_nothing();
        self.wire.hears_nothing();
    }

    /// Lets every task run, and hears what they have to say.
    pub(crate) async fn listen(&mut self, boot: &mut Boot) -> Result<Option<Exit>, Finding> {
        rest().await;
        if boot.gated.is_dead() {
            return Ok(Some(Exit::Died));
        }
        match boot.take_host().await {
            Ok(true) => {
                self.log.say("  the host is open");
                if self.watches {
                    boot.watch(self.watched.position());
                }
                rest().await;
            }
            Ok(false) => {}
            // As a daemon does: it gives up, and whoever runs it starts it again.
            Err(error) => {
                self.log.say(format!("  the host did not open: {error}"));
                return Ok(Some(Exit::Died));
            }
        }
        let mut stopped = None;
        for word in boot.words.take() {
            match word {
                Word::Stopped(gracefully) => {
                    self.log.say(format!("  the host stopped: {gracefully}"));
                    stopped = Some(Exit::Stopped);
                }
                word => self.hear(word)?,
            }
        }
        self.diary.finding().map_or(Ok(()), Err)?;
        for taken in self.diary.take_taken() {
            let has = self.model.grants.has(&taken.lease, taken.token, &Owner::Execution(taken.execution.clone()));
            ensure(has, "what_is_told_is_true", &taken.execution, || format!("{taken:?} is on no record"))?;
        }
        for sending in self.wire.take_begun() {
            self.model.may_be_sent(&sending)?;
        }
        if let Some(host) = &boot.host {
            let stats = host.stats();
            ensure(stats.repaired == 0, "the_reconciler_finds_nothing", "the host", || self.what_was_repaired())?;
            ensure(stats.panics == 0, "no_task_panics", "the host", || format!("{stats:?}"))?;
        }
        Ok(stopped)
    }

    fn what_was_repaired(&self) -> String {
        let facts = self.model.log.iter().filter_map(|((id, ..), entry)| match &entry.what {
            What::Fact(FactKind::Repaired, text) => Some(format!("{id}: {text}")),
            _ => None,
        });
        facts.collect::<Vec<_>>().join("; ")
    }

    fn hear(&mut self, word: Word) -> Held {
        match word {
            Word::Answer(request, nth, told) => {
                if let Told::Done(outcome) = &told {
                    self.figures.answer(outcome);
                }
                self.log.say(format!("  request {request}.{nth}: {}", told.shown()));
                self.on_their_way.retain(|(of, try_number, _)| (*of, *try_number) != (request, nth));
                if let Some(asked) = self.ledger.requests.get(request) {
                    self.beliefs.hears(&asked.command.verb, (request, nth), &told);
                }
                self.ledger.hears(request, nth, told, &self.model)
            }
            Word::Seen(id, floor, seen) => {
                let Ok(seen) = seen else { return Ok(()) };
                let now = seen.map(|view| (view.head.incarnation.get(), view.head.version.get()));
                self.log.say(format!("  seen {id}: {now:?}"));
                let head = self.model.head(&id).map(|head| head.incarnation.get());
                let gone = floor.is_none_or(|(incarnation, _)| head.is_none_or(|now| now > incarnation));
                let holds = now.map_or(gone, |now| floor.is_none_or(|floor| now >= floor));
                ensure(holds, "a_read_sees_what_is_durable", &id, || format!("expected {floor:?} or more, got {now:?}"))
            }
            Word::Settled(id, settled) => self.settles(&id, settled.ok()),
            Word::Watched(entries) => self.watched.hear(entries, &self.model),
            Word::Stopped(_) => Ok(()),
        }
    }

    /// How an execution ended is how it ended.
    fn settles(&mut self, id: &EntityId, settled: Option<Settled>) -> Held {
        let Some(settled) = settled else { return Ok(()) };
        let Settled::Ended { state, version, execution: Some(execution), .. } = &settled else { return Ok(()) };
        self.log.say(format!("  settled {id}: execution {execution} in {state} v{version}"));
        let there = self
            .model
            .entries(id)
            .any(|(_, entry)| entry.execution == Some(*execution) && entry.version == *version && entry.to == *state);
        ensure(there, "an_execution_ended_as_told", id, || format!("{settled:?} is not in its history"))
    }

    /// A job ran: what it committed is taken in and checked.
    pub(crate) fn ran(&mut self, ran: &Ran, how: How) -> Held {
        let fate = match &ran.fate {
            Fate::Committed(seq) => format!("committed {seq}"),
            Fate::Aborted(seq) => format!("aborted {seq}"),
            Fate::Failed(error) => format!("failed: {error}"),
        };
        let parts: Vec<u8> = ran.writes.iter().filter(|write| !is_drawn(write)).flat_map(bytes).collect();
        let digest = Digest::of(&[&parts]).to_string();
        self.log.say(format!(
            "{} job {} {how:?} {fate}, {} writes {:.12}",
            self.step,
            ran.number,
            ran.writes.len(),
            digest
        ));
        let Some(stamp) = ran.stamp.filter(|_| ran.kept == Some(true) && !ran.writes.is_empty()) else {
            return Ok(());
        };
        self.figures.commits += 1;
        let committed = self.model.commit(stamp, &ran.writes)?;
        for ((id, _, entry), key) in committed.entries.iter().zip(&committed.effects) {
            self.figures.entry(&entry.what);
            if let Some(key) = key {
                self.model.is_as_the_receiver_says(id, entry, key, &self.wire)?;
            }
        }
        committed.leases.iter().for_each(|what| self.figures.lease(*what));
        let now_ms = self.monotonic_ms();
        committed.granted.iter().try_for_each(|(lease, holder)| self.beliefs.hold(lease, holder, now_ms))
    }

    /// What everybody's own clock says.
    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_millis()).unwrap_or(u64::MAX)
    }

    /// Something becomes of a request on its way.
    pub(crate) fn turn(&mut self, nth: usize, turn: Turn) -> Held {
        let Some(came) = self.wire.turn(nth, turn)? else { return Ok(()) };
        self.figures.request(came);
        if came == "done" { self.model.is_done_in_order(&self.wire) } else { Ok(()) }
    }

    /// Every request whose fate is not known is made again.
    pub(crate) fn ask_again_what_nobody_answered(&mut self, boot: &Boot) {
        let unknown: Vec<usize> = (0..self.ledger.requests.len())
            .filter(|nth| {
                self.ledger.requests.get(*nth).is_some_and(|request| {
                    let event = request.event().is_some_and(|(_, event)| event.name.as_str() != "note");
                    event && matches!(request.tries.last(), Some(Told::Unknown | Told::NotTaken))
                })
            })
            .collect();
        for request in unknown {
            self.try_again(boot, request);
        }
    }

    /// A client asks for something.
    pub(crate) fn request(&mut self, boot: &Boot, command: Command, now_ms: u64) {
        let request = self.ledger.requests.len();
        let text = format!("{:?}", command.verb);
        let end = text.char_indices().nth(240).map_or(text.len(), |(at, _)| at);
        self.log.say(format!("{} request {request}: {}", self.step, &text[..end]));
        self.ledger.requests.push(Request { command, tries: Vec::new(), since_ms: now_ms });
        self.try_again(boot, request);
    }

    /// Sends a request, once more or for the first time.
    pub(crate) fn try_again(&mut self, boot: &Boot, request: usize) {
        let Some(found) = self.ledger.requests.get_mut(request) else { return };
        let nth = found.tries.len();
        found.tries.push(Told::Waiting);
        self.log.say(format!("{} request {request}.{nth} is sent", self.step));
        let command = found.command.clone();
        self.beliefs.asks(&command.verb, (request, nth), self.monotonic_ms());
        if let Some(task) = boot.ask(request, nth, command) {
            self.on_their_way.push((request, nth, task.abort_handle()));
        }
    }
}

/// Whether a record holds what is drawn anew in every run: a session's nonce, the store's secret.
fn is_drawn((key, _): &Write) -> bool {
    matches!(decode_key(key), Ok(Key::Session(_) | Key::Secret))
}

fn bytes((key, value): &Write) -> Vec<u8> {
    let mut bytes = key.clone();
    match value {
        Some(value) => {
            bytes.push(1);
            bytes.extend_from_slice(&(value.len() as u64).to_be_bytes());
            bytes.extend_from_slice(value);
        }
        None => bytes.push(0),
    }
    bytes
}
