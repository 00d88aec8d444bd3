//! Who receives what a host requests: answers by a script, remembers what it has done, and turns late owners away.
//!
//! It does what `sdk/fence` has real receivers do: a request under a key that was done is answered as before and
//! done no second time, and one with a lower fencing token than the highest of its resource gets 412. A receiver
//! outlives the hosts that are killed around it.

use crate::hand::Hand;
use interlock_coordinator::Courier;
use interlock_kernel::FencingToken;
use interlock_kernel::command::{Said, Sending, Tried};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, Name};
use interlock_store::BoxFuture;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// An answer. A request that gets a status from 200 to 299 is done.
    Answer {
        /// The status.
        status: u16,
        /// The body.
        body: Option<Doc>,
    },
    /// The same, and the answer is lost on its way back.
    Lost {
        /// The status.
        status: u16,
        /// The body.
        body: Option<Doc>,
    },
    /// The target is not reached.
    Down,
    /// It arrives, is not done, and nobody answers until the target's timeout.
    Hang,
}

impl Default for Reply {
    fn default() -> Self {
        Self::Answer { status: 200, body: None }
    }
}

impl Reply {
    /// Whether somebody answers.
    #[must_use]
    pub fn is_an_answer(&self) -> bool {
        matches!(self, Self::Answer { .. } | Self::Lost { .. })
    }

    /// The same, and nobody hears of it.
    #[must_use]
    pub fn lost(self) -> Self {
        match self {
            Self::Answer { status, body } => Self::Lost { status, body },
            other => other,
        }
    }
}

/// One request as its receiver knows it: by its key, over all tries.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Whose.
    pub entity: EntityId,
    /// Its number there.
    pub number: u64,
    /// The target.
    pub target: Name,
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The body.
    pub body: Option<Doc>,
    /// The `Idempotency-Key`.
    pub key: String,
    /// What is fenced: the entity, or a lease.
    pub resource: String,
    /// The fencing token.
    pub token: FencingToken,
    /// Times that it was sent; also those that did not arrive.
    pub tries: u32,
    /// Times that it arrived.
    pub arrivals: u32,
    /// Whether it was done.
    pub done: bool,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.target, self.method, self.url)?;
        self.body.as_ref().map_or(Ok(()), |body| write!(f, " {body}"))
    }
}

/// A request that waits for somebody to say what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Which one.
    pub key: String,
    /// Whose.
    pub entity: EntityId,
    /// Its number there.
    pub number: u64,
    /// The target.
    pub target: Name,
    /// The number of the try, from 1.
    pub nth: u32,
}

/// Something that was seen at a receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The request.
    pub request: Request,
    /// What became of this try, in words.
    pub what: String,
}

/// The receivers of all targets.
#[derive(Clone, Default)]
pub(crate) struct Receivers(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    /// By target: what is answered, and how many times yet; none is for good.
    script: BTreeMap<String, VecDeque<(Reply, Option<u32>)>>,
    /// Whether each request waits for [`Receivers::settle`].
    held: bool,
    requests: Vec<Request>,
    /// What a key that was done is answered.
    answers: BTreeMap<String, (u16, Option<Doc>)>,
    /// The highest token of each resource that a target has seen.
    highest: BTreeMap<(String, String), FencingToken>,
    flights: Vec<Flight>,
    arrivals: Vec<Arrival>,
}

struct Flight {
    pending: Pending,
    /// When nobody waits for its answer any more, in ms of the lab's time; none while it is held.
    until_ms: Option<u64>,
    settle: oneshot::Sender<Tried>,
    sending: Sending,
}

impl Receivers {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a target replies so, `times` times and then as before, or for good.
    pub(crate) fn script(&self, target: &str, reply: Reply, times: Option<u32>) {
        let mut table = self.lock();
        let replies = table.script.entry(target.to_owned()).or_default();
        match times {
            Some(_) => {
                let at = replies.iter().position(|(_, times)| times.is_none()).unwrap_or(replies.len());
                replies.insert(at, (reply, times));
            }
            None => {
                replies.retain(|(_, times)| times.is_some());
                replies.push_back((reply, None));
            }
        }
    }

    /// From now on each request waits for [`Receivers::settle`].
    pub(crate) fn hold(&self) {
        self.lock().held = true;
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    pub(crate) fn take_arrivals(&self) -> Vec<Arrival> {
        std::mem::take(&mut self.lock().arrivals)
    }

    /// Requests that wait for somebody to say what becomes of them.
    pub(crate) fn pending(&self) -> Vec<Pending> {
        let table = self.lock();
        table.flights.iter().filter(|flight| flight.until_ms.is_none()).map(|flight| flight.pending.clone()).collect()
    }

    /// All that can tell one receiver from another later on: two that know the same reply the same.
    pub(crate) fn know(&self) -> String {
        let table = self.lock();
        let mut text = format!("{:?}", table.script);
        for request in &table.requests {
            let body = request.body.as_ref().map(Doc::text);
            let answer = table.answers.get(&request.key);
            let place = |(target, of): &(String, String)| *target == request.target.as_str() && *of == request.resource;
            let is_late = table.highest.iter().any(|(at, highest)| place(at) && *highest > request.token);
            let Request { entity, number, url, arrivals, .. } = request;
            let arrived = *arrivals > 0;
            text.push_str(&format!("|{entity} {number} {url} {body:?} {arrived} {answer:?} {is_late}"));
        }
        text
    }

    /// Requests that nobody answers, and when their timeouts are.
    pub(crate) fn hanging(&self) -> Vec<(Pending, u64)> {
        let table = self.lock();
        let hangs = table.flights.iter().filter_map(|flight| Some((flight.pending.clone(), flight.until_ms?)));
        hangs.collect()
    }

    /// What the next try of a target would get.
    pub(crate) fn next(&self, target: &str) -> Reply {
        let table = self.lock();
        table
            .script
            .get(target)
            .and_then(|replies| replies.front())
            .map_or_else(Reply::default, |(reply, _)| reply.clone())
    }

    /// Says what becomes of a request that waits: its script, or something else. False if there is none.
    pub(crate) fn settle(&self, key: &str, otherwise: Option<Reply>, now_ms: u64) -> bool {
        let mut table = self.lock();
        let waits = |flight: &Flight| flight.until_ms.is_none() && flight.pending.key == key;
        let Some(place) = table.flights.iter().position(waits) else { return false };
        let flight = table.flights.remove(place);
        table.land(flight, otherwise, now_ms);
        true
    }

    /// Has a request that waits arrive, and be done as its script says; nobody hears of it yet.
    pub(crate) fn arrive(&self, key: &str) {
        let mut table = self.lock();
        let found = table.flights.iter().find(|flight| flight.pending.key == key).map(|flight| flight.sending.clone());
        if let Some(sending) = found {
            let reply = table.draw(sending.effect.target.as_str());
            let _ = table.receive(&sending, reply);
        }
    }

    /// Time has come this far.
    pub(crate) fn reach(&self, now_ms: u64) {
        let mut table = self.lock();
        while let Some(place) = table.flights.iter().position(|f| f.until_ms.is_some_and(|until| until <= now_ms)) {
            let flight = table.flights.remove(place);
            let reason = format!("no answer within {}", interlock_kernel::time::Span(flight.sending.target.timeout_ms));
            // Whoever asked may be gone.
            let _ = flight.settle.send(Tried::Again { after_ms: None, reason, maybe_sent: true });
        }
    }

    /// The host is gone, and what it had under way with it.
    pub(crate) fn cut_off(&self) {
        self.lock().flights.clear();
    }

    fn send(&self, sending: &Sending, now_ms: u64) -> oneshot::Receiver<Tried> {
        let (settle, settled) = oneshot::channel();
        let mut table = self.lock();
        table.note(sending);
        let effect = &sending.effect;
        let pending = Pending {
            key: effect.key.clone(),
            entity: sending.entity.clone(),
            number: sending.number,
            target: effect.target.clone(),
            nth: effect.tries,
        };
        let flight = Flight { pending, until_ms: None, settle, sending: sending.clone() };
        match table.held {
            true => table.flights.push(flight),
            false => table.land(flight, None, now_ms),
        }
        settled
    }
}

impl Table {
    /// Takes a try down.
    fn note(&mut self, sending: &Sending) {
        let effect = &sending.effect;
        if let Some(known) = self.requests.iter_mut().find(|request| request.key == effect.key) {
            known.tries = known.tries.saturating_add(1);
            return;
        }
        self.requests.push(Request {
            entity: sending.entity.clone(),
            number: sending.number,
            target: effect.target.clone(),
            method: sending.target.method.clone(),
            url: effect.url.clone(),
            body: effect.body.clone(),
            key: effect.key.clone(),
            resource: effect.resource.clone(),
            token: effect.token,
            tries: 1,
            arrivals: 0,
            done: false,
        });
    }

    fn draw(&mut self, target: &str) -> Reply {
        let Some(replies) = self.script.get_mut(target) else { return Reply::default() };
        let Some((reply, times)) = replies.front_mut() else { return Reply::default() };
        let reply = reply.clone();
        if let Some(left) = times {
            *left = left.saturating_sub(1);
            if *left == 0 {
                replies.pop_front();
            }
        }
        reply
    }

    /// What becomes of a try.
    fn land(&mut self, flight: Flight, otherwise: Option<Reply>, now_ms: u64) {
        let reply = otherwise.unwrap_or_else(|| self.draw(flight.pending.target.as_str()));
        if reply == Reply::Hang {
            let until_ms = now_ms.saturating_add(flight.sending.target.timeout_ms);
            self.tell(&flight.pending.key, true, "nobody answers".to_owned());
            self.flights.push(Flight { until_ms: Some(until_ms), ..flight });
            return;
        }
        let tried = self.receive(&flight.sending, reply);
        // Whoever asked may be gone.
        let _ = flight.settle.send(tried);
    }

    fn receive(&mut self, sending: &Sending, reply: Reply) -> Tried {
        let effect = &sending.effect;
        let (status, body, lost) = match reply {
            Reply::Answer { status, body } => (status, body, false),
            Reply::Lost { status, body } => (status, body, true),
            Reply::Down | Reply::Hang => {
                self.tell(&effect.key, false, "is not reached".to_owned());
                return Tried::Again {
                    after_ms: None,
                    reason: "the target is not reached".to_owned(),
                    maybe_sent: false,
                };
            }
        };
        let place = (effect.target.to_string(), effect.resource.clone());
        let highest = self.highest.get(&place).copied().filter(|highest| *highest > effect.token);
        let known = self.answers.get(&effect.key).cloned();
        let (status, body, word) = match (highest, known) {
            (Some(_), _) => (412, None, " a higher token was here"),
            (None, Some((status, body))) => (status, body, ", as before"),
            (None, None) => (status, body, ""),
        };
        if highest.is_none() {
            self.highest.insert(place, effect.token);
        }
        if (200..300).contains(&status) {
            self.answers.insert(effect.key.clone(), (status, body.clone()));
            if let Some(request) = self.requests.iter_mut().find(|request| request.key == effect.key) {
                request.done = true;
            }
        }
        let word = if highest.is_some() { format!(":{word}") } else { word.to_owned() };
        let gone = if lost { ", and the answer is lost" } else { "" };
        self.tell(&effect.key, true, format!("{status}{word}{gone}"));
        match lost {
            true => Tried::Again { after_ms: None, reason: "the answer was lost".to_owned(), maybe_sent: true },
            false => tried(status, body, sending.target.answer_bytes_max),
        }
    }

    fn tell(&mut self, key: &str, arrived: bool, what: String) {
        if let Some(request) = self.requests.iter_mut().find(|request| request.key == key) {
            request.arrivals = request.arrivals.saturating_add(u32::from(arrived));
            self.arrivals.push(Arrival { request: request.clone(), what });
        }
    }
}

/// What a status means for the outbox, as the courier classifies it.
fn tried(status: u16, body: Option<Doc>, most: u64) -> Tried {
    let whole = |doc: &Doc| u64::try_from(doc.text().len()).is_ok_and(|bytes| bytes <= most);
    let truncated = body.as_ref().is_some_and(|body| !whole(body));
    let said = Said { status, body: body.filter(whole), truncated };
    match status {
        200..=299 => Tried::Done(said),
        412 => Tried::Fenced(said),
        408 | 425 | 429 | 500..=599 => {
            Tried::Again { after_ms: None, reason: format!("status {status}"), maybe_sent: true }
        }
        _ => Tried::Failed(said),
    }
}

/// The way from one boot of a host to the receivers.
pub(crate) struct Road {
    pub(crate) receivers: Receivers,
    pub(crate) hand: Hand,
    pub(crate) clock: interlock_store::ManualClock,
}

impl Courier for Road {
    fn send<'a>(&'a self, sending: &'a Sending) -> BoxFuture<'a, Tried> {
        use interlock_store::Clock as _;
        let now_ms = u64::try_from(self.clock.monotonic().as_millis()).unwrap_or(u64::MAX);
        let settled = self.receivers.send(sending, now_ms);
        self.hand.touch();
        Box::pin(async move {
            match settled.await {
                Ok(tried) => {
                    self.hand.touch();
                    tried
                }
                // Cut off with its host.
                Err(_) => std::future::pending().await,
            }
        })
    }
}
