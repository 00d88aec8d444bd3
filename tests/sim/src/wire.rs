//! The network between hosts and the receivers of effects. It outlives every host: what one has sent may arrive
//! after its death, and after what the next one sends.
//!
//! A request travels, arrives, and its answer travels back; each of these is one move of whoever drives the run.
//! Nobody here knows the store: what a host may send at all is checked by the model, against what is committed.

use crate::finding::Finding;
use crate::log::Log;
use crate::receiver::{Manners, Receiver, Whim};
use interlock_coordinator::Courier;
use interlock_kernel::command::{Sending, Tried};
use interlock_kernel::ids::EntityId;
use interlock_store::{BoxFuture, Clock, ManualClock};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// A request on its way, and who waits for the answer.
struct Packet {
    sending: Sending,
    back: Option<oneshot::Sender<Tried>>,
    /// Whether another one like it was sent: nobody can say then that it was not reached.
    doubled: bool,
    /// Whether it is on its way for long.
    slow: bool,
}

/// What becomes of a request, or of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It arrives, and its receiver is in this mood.
    Arrives(Whim),
    /// It arrives, and its answer is lost.
    Unheard(Whim),
    /// The receiver is not reached, and the host knows.
    Unreached,
    /// The operator does not allow it: it is not sent.
    Denied,
    /// It is lost on its way, and nobody knows.
    Lost,
    /// A copy of it stays on its way for long.
    Doubled,
    /// It stays on its way for long.
    Slow,
}

/// See the module. Clones are the same network.
#[derive(Clone)]
pub(crate) struct Wire(Arc<Mutex<Inner>>);

struct Inner {
    log: Log,
    packets: Vec<Packet>,
    answers: Vec<(oneshot::Sender<Tried>, Tried)>,
    /// What hosts have begun to send and nobody has looked at yet.
    begun: Vec<Sending>,
    receiver: Receiver,
    /// Whose requests stay on their way in calm.
    held: BTreeSet<EntityId>,
}

impl Wire {
    pub(crate) fn new(log: Log, manners: Manners) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            log,
            packets: Vec::new(),
            answers: Vec::new(),
            begun: Vec::new(),
            receiver: Receiver::new(manners),
            held: BTreeSet::new(),
        })))
    }

    /// The network of a run that goes on from here in another way. Nobody there waits for what is on its way here.
    pub(crate) fn fork(&self, log: Log) -> Self {
        let inner = self.lock();
        let copy = |packet: &Packet| Packet {
            sending: packet.sending.clone(),
            back: None,
            doubled: packet.doubled,
            slow: packet.slow,
        };
        Self(Arc::new(Mutex::new(Inner {
            log,
            packets: inner.packets.iter().map(copy).collect(),
            answers: Vec::new(),
            begun: Vec::new(),
            receiver: inner.receiver.clone(),
            held: inner.held.clone(),
        })))
    }

    /// Makes the requests of one boot.
    pub(crate) fn courier(&self, clock: &ManualClock) -> Arc<dyn Courier> {
        Arc::new(Carrier { wire: self.clone(), clock: clock.clone() })
    }

    /// Requests on their way.
    pub(crate) fn packets(&self) -> usize {
        self.lock().packets.len()
    }

    /// Requests on their way that are not slow, by place.
    pub(crate) fn quick(&self) -> Vec<usize> {
        let inner = self.lock();
        (0..inner.packets.len()).filter(|nth| inner.packets.get(*nth).is_some_and(|packet| !packet.slow)).collect()
    }

    /// Answers on their way.
    pub(crate) fn answers(&self) -> usize {
        self.lock().answers.len()
    }

    /// From now on this entity's requests stay on their way in calm.
    pub(crate) fn hold(&self, id: &EntityId) {
        self.lock().held.insert(id.clone());
    }

    /// From now on nobody's do.
    pub(crate) fn go(&self) {
        self.lock().held.clear();
    }

    /// The next request to be carried on in calm.
    pub(crate) fn next(&self) -> Option<(usize, Sending)> {
        let inner = self.lock();
        let mut packets = inner.packets.iter().enumerate();
        let next = packets.find(|(_, packet)| !inner.held.contains(&packet.sending.entity));
        next.map(|(nth, packet)| (nth, packet.sending.clone()))
    }

    /// What hosts have begun to send since the last look.
    pub(crate) fn take_begun(&self) -> Vec<Sending> {
        std::mem::take(&mut self.lock().begun)
    }

    /// What nobody waits for any more is lost.
    pub(crate) fn loses_strays(&self) {
        self.lock().packets.retain(|packet| packet.back.is_some());
    }

    /// Nobody waits any more for what is on its way.
    pub(crate) fn hears_nothing(&self) {
        let mut inner = self.lock();
        inner.answers.clear();
        inner.begun.clear();
        inner.packets.iter_mut().for_each(|packet| packet.back = None);
    }

    /// Looks at the receivers.
    pub(crate) fn ask<T>(&self, about: impl FnOnce(&Receiver) -> T) -> T {
        about(&self.lock().receiver)
    }

    /// Whether a request under this key is on its way.
    pub(crate) fn carries(&self, key: &str) -> bool {
        self.lock().packets.iter().any(|packet| packet.sending.effect.key == key)
    }

    /// Something becomes of the `nth` request on its way.
    ///
    /// # Errors
    /// What a receiver must never see.
    pub(crate) fn turn(&self, nth: usize, turn: Turn) -> Result<Option<&'static str>, Finding> {
        let mut inner = self.lock();
        if nth >= inner.packets.len() {
            return Ok(None);
        }
        let Packet { sending, back, doubled, slow } = inner.packets.remove(nth);
        let name = format!("{} effect {} try {}", sending.entity, sending.number, sending.effect.tries);
        let (answer, came) = match turn {
            Turn::Unreached | Turn::Denied if doubled => (None, "lost on its way"),
            Turn::Arrives(whim) | Turn::Unheard(whim) => {
                let (tried, came) = inner.receiver.arrives(&sending, whim)?;
                (matches!(turn, Turn::Arrives(_)).then_some(tried), came)
            }
            Turn::Unreached => {
                let reason = "expected a connection, got none".to_owned();
                (Some(Tried::Again { after_ms: None, reason, maybe_sent: false }), "not reached")
            }
            Turn::Denied => (Some(Tried::Refused { reason: "the simulator says so".to_owned() }), "denied"),
            Turn::Lost => (None, "lost on its way"),
            Turn::Doubled => {
                inner.packets.push(Packet { sending: sending.clone(), back: None, doubled: true, slow: true });
                inner.packets.push(Packet { sending, back, doubled: true, slow });
                inner.log.say(format!("  {name}: doubled"));
                return Ok(Some("doubled"));
            }
            Turn::Slow => {
                inner.packets.push(Packet { sending, back, doubled, slow: true });
                inner.log.say(format!("  {name}: slow"));
                return Ok(Some("slow"));
            }
        };
        inner.log.say(format!("  {name}: {came}, {turn:?}"));
        // Whose answer is lost waits until its timeout.
        if let (Some(answer), Some(back)) = (answer, back) {
            inner.answers.push((back, answer));
        }
        Ok(Some(came))
    }

    /// The `nth` answer on its way is heard; false if there is none.
    pub(crate) fn answer(&self, nth: usize) -> bool {
        let mut inner = self.lock();
        if nth >= inner.answers.len() {
            return false;
        }
        let (back, tried) = inner.answers.remove(nth);
        // Who waits no longer has given it up.
        let _ = back.send(tried);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests of one boot.
struct Carrier {
    wire: Wire,
    clock: ManualClock,
}

impl Courier for Carrier {
    fn send<'a>(&'a self, sending: &'a Sending) -> BoxFuture<'a, Tried> {
        let timeout = Duration::from_millis(sending.target.timeout_ms);
        let until = self.clock.monotonic().saturating_add(timeout);
        let (back, answer) = oneshot::channel();
        let mut inner = self.wire.lock();
        inner.begun.push(sending.clone());
        inner.packets.push(Packet { sending: sending.clone(), back: Some(back), doubled: false, slow: false });
        drop(inner);
        Box::pin(async move {
            tokio::select! {
                biased;
                Ok(tried) = answer => tried,
                () = self.clock.sleep_until(until) => {
                    let reason = "expected an answer in time, got none".to_owned();
                    Tried::Again { after_ms: None, reason, maybe_sent: true }
                }
            }
        })
    }
}
