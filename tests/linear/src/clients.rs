//! Clients: what they ask at random, and what they write down of it.

use crate::history::{Ask, Event, Heard, Operation};
use anyhow::{Context as _, Result, anyhow};
use interlock_conformance::Random;
use interlock_support::api::{Api, Reply};
use interlock_support::kills::Boots;
use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Operations of one entity: enough for every path of it, few enough to search all orders.
const OPERATIONS: u64 = 40;
/// Entities that clients choose among at a time: fewer than clients, so that they meet.
const AT_A_TIME: usize = 4;
/// Event ids of one entity that are sent again now and then.
const IDS: u64 = 24;

/// One entity, and what is written down of it.
pub struct Key {
    name: String,
    left: AtomicU64,
    /// What somebody saw last: a guess for the next request.
    generation: AtomicU64,
    n: AtomicI64,
    operations: Mutex<Vec<Operation>>,
}

/// What the clients of a round share.
pub struct Shared {
    round: u64,
    keys: Mutex<Vec<Arc<Key>>>,
    origin: Instant,
    /// Set when nothing is killed any more.
    pub enough: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new(round: u64) -> Arc<Self> {
        Arc::new(Self { round, keys: Mutex::default(), origin: Instant::now(), enough: AtomicBool::new(false) })
    }

    /// Every entity's history, by its key.
    #[must_use]
    pub fn histories(&self) -> Vec<(String, Vec<Operation>)> {
        lock(&self.keys).iter().map(|key| (key.name.clone(), lock(&key.operations).clone())).collect()
    }

    /// An entity with operations left; a new one where there are too few.
    fn choose(&self, random: &mut Random) -> Arc<Key> {
        let mut keys = lock(&self.keys);
        let open: Vec<_> = keys.iter().rev().take(4 * AT_A_TIME).filter(|key| key.has_left()).cloned().collect();
        let at = usize::try_from(random.below(AT_A_TIME as u64)).unwrap_or_default();
        if let Some(key) = open.get(at) {
            return Arc::clone(key);
        }
        let key = Arc::new(Key {
            name: format!("r{}-{}", self.round, keys.len()),
            left: AtomicU64::new(OPERATIONS),
            generation: AtomicU64::new(0),
            n: AtomicI64::new(0),
            operations: Mutex::default(),
        });
        keys.push(Arc::clone(&key));
        key
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Key {
    fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
    }

    fn take_one(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn next(&self, random: &mut Random) -> Ask {
        let fresh = self.left.load(Ordering::Relaxed) + 1 == OPERATIONS;
        match random.below(100) {
            _ if fresh => Ask::Create(None),
            0..12 => Ask::Create(Some(7).filter(|_| random.below(4) == 0)),
            12..34 => Ask::Get,
            34..42 => Ask::Apply {
                over: self.generation.load(Ordering::Relaxed).saturating_sub(random.below(2)),
                desired: i64::try_from(random.below(4)).unwrap_or_default(),
            },
            42..45 => Ask::Delete,
            45..47 => Ask::Kill,
            _ => self.event(random),
        }
    }

    /// Few ids, and an id almost always means the same event: many are sent again, and some with another payload.
    fn event(&self, random: &mut Random) -> Ask {
        let id = random.below(IDS);
        let by = i64::try_from(id).unwrap_or_default();
        let event = match id % 12 {
            0..=2 => Event::Add(by + i64::from(random.below(12) == 0)),
            3..=5 => {
                // Believed by one who looked a while ago, and by chance the same again.
                let was = self.n.load(Ordering::Relaxed);
                return Ask::Event { id: format!("p{id}-{was}"), event: Event::Put { was, to: by + 1 } };
            }
            6 | 7 => Event::Work,
            8 => Event::Later,
            9 => Event::Hold,
            10 => Event::Nap,
            _ => return Ask::Event { id: format!("f{}", random.below(200)), event: Event::Free },
        };
        Ask::Event { id: format!("e{id}"), event }
    }

    fn learn(&self, ask: &Ask, heard: &Heard) {
        match (ask, heard) {
            (_, Heard::Entity(view)) => {
                self.generation.store(view.generation, Ordering::Relaxed);
                self.n.store(view.n, Ordering::Relaxed);
            }
            (_, Heard::Applied(generation)) => self.generation.store(*generation, Ordering::Relaxed),
            (Ask::Event { event: Event::Put { to, .. }, .. }, Heard::Answered { .. }) => {
                self.n.store(*to, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// One client: a request after another, until nothing is killed any more.
///
/// # Errors
/// An answer that no request should get.
pub async fn client(nth: u64, mut random: Random, mut boots: Boots, shared: Arc<Shared>) -> Result<()> {
    while !shared.enough.load(Ordering::Relaxed) {
        let key = shared.choose(&mut random);
        if key.take_one() {
            let ask = key.next(&mut random);
            operate(nth, &key, ask, &mut boots, &shared).await?;
        }
    }
    Ok(())
}

/// Reads every entity once more, after the last boot.
///
/// # Errors
/// An answer that no request should get.
pub async fn read_all(mut boots: Boots, shared: Arc<Shared>) -> Result<()> {
    let keys = lock(&shared.keys).clone();
    for key in keys {
        operate(u64::MAX, &key, Ask::Get, &mut boots, &shared).await?;
    }
    Ok(())
}

async fn operate(client: u64, key: &Key, ask: Ask, boots: &mut Boots, shared: &Shared) -> Result<()> {
    let api = boots.wait_for(Option::is_some).await?.clone().context("a boot")?;
    let request = request(&api, &key.name, &ask);
    let asked = shared.now();
    let reply = api.ask(request).await;
    let at = shared.now();
    let heard = match reply {
        Ok(Reply { status, replayed, body, .. }) => {
            Heard::read(&ask, status, replayed, &body).map_err(|why| anyhow!("{}: {why}", key.name))?
        }
        Err(error) => match error.downcast_ref::<reqwest::Error>() {
            // Nobody was there to hear it.
            Some(broken) if broken.is_connect() => {
                drop(tokio::time::timeout(Duration::from_millis(20), boots.changed()).await);
                return Ok(());
            }
            Some(_) => None,
            None => return Err(error),
        },
    };
    // Decided before anything was written: as if it had not been asked.
    if heard == Some(Heard::Refused("unavailable".to_owned())) {
        return Ok(());
    }
    if let Some(heard) = &heard {
        key.learn(&ask, heard);
    }
    lock(&key.operations).push(Operation { client, asked, heard: heard.map(|heard| (at, heard)), ask });
    Ok(())
}

fn request(api: &Api, key: &str, ask: &Ask) -> RequestBuilder {
    let path = format!("/v1/entities/tally/{key}");
    match ask {
        Ask::Create(desired) => {
            let mut body = json!({ "machine": "tally", "key": key });
            if let Some(desired) = desired {
                body["desired"] = json!(desired);
            }
            api.request(Method::POST, "/v1/entities").json(&body)
        }
        Ask::Event { id, event } => {
            let request = api.request(Method::POST, &format!("{path}/events"));
            request.header("Idempotency-Key", id).json(&event_body(event))
        }
        Ask::Apply { over, desired } => {
            let request = api.request(Method::PUT, &format!("{path}/desired"));
            request.header(header::IF_MATCH, format!("\"{over}\"")).json(&json!({ "desired": desired }))
        }
        Ask::Get => api.request(Method::GET, &path),
        Ask::Delete => api.request(Method::DELETE, &path),
        Ask::Kill => {
            api.request(Method::POST, &format!("{path}/kill")).json(&json!({ "reason": "as the client likes" }))
        }
    }
}

fn event_body(event: &Event) -> Value {
    match event {
        Event::Add(by) => json!({ "name": "add", "payload": { "by": by } }),
        Event::Put { was, to } => json!({ "name": "put", "payload": { "was": was, "to": to } }),
        Event::Work => json!({ "name": "work" }),
        Event::Later => json!({ "name": "later" }),
        Event::Hold => json!({ "name": "hold" }),
        Event::Nap => json!({ "name": "nap" }),
        Event::Free => json!({ "name": "free" }),
    }
}
