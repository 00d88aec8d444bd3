//! The requests that tests make of a daemon.

use crate::weather::Weather;
use anyhow::{Context as _, Result, bail, ensure};
use reqwest::{Client, Method, Request, StatusCode, header};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// An answer that takes this long will not come: longer than the longest `wait` a test asks for.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// Before a request is made again that was cut off.
const AGAIN: Duration = Duration::from_millis(10);

/// The HTTP API of a daemon. Clones follow it to wherever it listens next.
#[derive(Clone, Debug)]
pub struct Api {
    http: Client,
    base: Arc<RwLock<String>>,
    insists: Arc<AtomicBool>,
    unheard: Arc<Mutex<BTreeMap<String, bool>>>,
    calm: Arc<tokio::sync::RwLock<()>>,
}

/// An answer, whatever it says.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Whether it was given before.
    pub replayed: bool,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// The body.
    pub body: Value,
}

impl Reply {
    /// The body of a request that was done.
    pub fn done(self) -> Result<Value> {
        if !(200..300).contains(&self.status) {
            bail!("expected it to be done, got {} {}", self.status, self.body);
        }
        Ok(self.body)
    }

    /// The problem of a request that was refused with this status and code.
    pub fn refused(self, status: u16, code: &str) -> Result<Value> {
        if (self.status, self.body["code"].as_str()) != (status, Some(code)) {
            bail!("expected {status} {code}, got {} {}", self.status, self.body);
        }
        Ok(self.body)
    }
}

/// What is made once although it is asked for twice, and by what that shows.
#[derive(Clone, Copy, Debug)]
enum Twice {
    /// An event or a request on rows, with an id: the remembered answer.
    Event,
    /// A deploy, a create or an apply: what is there already, by this number.
    There(&'static str),
    /// A kill: it is over.
    Over,
    /// A delete: it is gone.
    Gone,
}

impl Twice {
    /// None: events without an id, `recreate`, rollbacks and unparks, which do twice what they are asked for twice.
    fn of(request: &Request) -> Option<Self> {
        let path: Vec<&str> = request.url().path().trim_matches('/').split('/').collect();
        let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        match (request.method().as_str(), path.as_slice()) {
            ("POST", ["v1", "machines"] | ["v1", "tables"]) => Some(Self::There("/revision")),
            ("POST", ["v1", "entities"]) if body["on_existing"].is_null() => Some(Self::There("/entity/incarnation")),
            ("PUT", ["v1", "entities", _, _, "desired"]) => Some(Self::There("/generation")),
            ("POST", ["v1", "entities", _, _, "events"]) if request.headers().contains_key("idempotency-key") => {
                Some(Self::Event)
            }
            ("POST", ["v1", "tables", _, _] | ["v1", "transact"])
            | ("PUT" | "DELETE", ["v1", "tables", _, "rows", _])
                if request.headers().contains_key("idempotency-key") =>
            {
                Some(Self::Event)
            }
            ("POST", ["v1", "entities", _, _, "kill"]) => Some(Self::Over),
            ("DELETE", ["v1", "entities", _, _]) => Some(Self::Gone),
            _ => None,
        }
    }

    fn judge(self, first: &Reply, second: &Reply) -> Result<()> {
        let done = (200..300).contains(&second.status);
        let same = match self {
            Self::Event => done && second.replayed,
            Self::There(number) => {
                done && first.body.pointer(number).is_some()
                    && first.body.pointer(number) == second.body.pointer(number)
            }
            Self::Over => done,
            Self::Gone => done || second.status == 404,
        };
        ensure!(same, "expected {self:?} as by {}, got {} {}", first.body, second.status, second.body);
        Ok(())
    }
}

impl Api {
    /// Of a daemon that listens at this URL.
    pub fn new(base: String) -> Result<Api> {
        let http = Client::builder().no_proxy().timeout(ANSWER_MAX).build()?;
        let (base, insists) = (Arc::new(RwLock::new(base)), Arc::default());
        Ok(Api { http, base, insists, unheard: Arc::default(), calm: Arc::default() })
    }

    /// Whether what is cut off is asked again: while others than the test kill the daemon.
    pub(crate) fn insists(&self, insists: bool) {
        self.insists.store(insists, Ordering::SeqCst);
    }

    /// The daemon listens here from now on.
    pub(crate) fn moves(&self, base: String) {
        *self.base.write().unwrap_or_else(PoisonError::into_inner) = base;
    }

    /// Nothing is under way while this is held that cannot be asked again.
    pub(crate) fn calm(&self) -> Arc<tokio::sync::RwLock<()>> {
        self.calm.clone()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A request of a path.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, self.url(path))
    }

    /// Sends a request; what comes back has the type that its status says. In doubled weather what was done and is
    /// made once is asked for again, and must be answered as what is there already. Where the daemon is killed, what
    /// may be asked again is asked until it is answered.
    pub async fn ask(&self, request: reqwest::RequestBuilder) -> Result<Reply> {
        let request = request.build()?;
        let twice = Twice::of(&request);
        if self.insists.load(Ordering::SeqCst) {
            return self.insist(request, twice).await;
        }
        let again = twice.filter(|_| Weather::now() == Weather::Doubled);
        let again = again.and_then(|twice| Some((twice, request.try_clone()?)));
        let reply = self.once(request).await?;
        if let Some((twice, request)) = again
            && (200..300).contains(&reply.status)
        {
            let what = format!("{} {}", request.method(), request.url().path());
            twice.judge(&reply, &self.once(request).await?).with_context(|| format!("{what}, asked twice"))?;
        }
        Ok(reply)
    }

    /// Asks as a client does that may lose its daemon at any time: until it is answered, if it may ask twice; else
    /// while nobody kills it.
    async fn insist(&self, request: Request, twice: Option<Twice>) -> Result<Reply> {
        if !may_be_asked_again(&request, twice) {
            let _calm = self.calm.read().await;
            return self.once(self.where_it_is(request)?).await;
        }
        let key = request.headers().get("idempotency-key").map(|id| format!("{} {id:?}", request.url().path()));
        loop {
            let again = request.try_clone().context("a request that can be made again")?;
            match self.once(self.where_it_is(again)?).await {
                Ok(reply) => return Ok(self.first_is_first(reply, key)),
                Err(error) if is_cut_off(&error) && self.insists.load(Ordering::SeqCst) => {}
                Err(error) => return Err(error),
            }
            if let Some(key) = &key {
                self.unheard().entry(key.clone()).or_insert(true);
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Of an event whose answer was lost the first one that is heard is its first.
    fn first_is_first(&self, reply: Reply, key: Option<String>) -> Reply {
        let Some(key) = key.filter(|_| (200..300).contains(&reply.status)) else { return reply };
        let was_unheard = self.unheard().insert(key, false) == Some(true);
        Reply { replayed: reply.replayed && !was_unheard, ..reply }
    }

    fn unheard(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.unheard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same request where the daemon listens now.
    fn where_it_is(&self, mut request: Request) -> Result<Request> {
        let query = request.url().query().map(|query| format!("?{query}")).unwrap_or_default();
        let url = self.url(&format!("{}{query}", request.url().path()));
        *request.url_mut() = url.parse().with_context(|| url.clone())?;
        Ok(request)
    }

    async fn once(&self, request: Request) -> Result<Reply> {
        let response = self.http.execute(request).await?;
        let status = response.status();
        let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let retry_after = text("retry-after");
        let replayed = text("idempotent-replayed").as_deref() == Some("true");
        let kind = text(header::CONTENT_TYPE.as_str()).unwrap_or_default();
        let expected = if status.is_success() { "application/json" } else { "application/problem+json" };
        // 503 of readiness is the state of the host, not a problem.
        if kind != expected && status != StatusCode::SERVICE_UNAVAILABLE {
            bail!("{status} as {kind}: {}", response.text().await?);
        }
        let body = response.json().await?;
        Ok(Reply { status: status.as_u16(), replayed, retry_after, body })
    }

    /// Asks for a path.
    pub async fn get(&self, path: &str) -> Result<Reply> {
        self.ask(self.request(Method::GET, path)).await
    }

    /// Posts a body.
    pub async fn post(&self, path: &str, body: Value) -> Result<Reply> {
        self.ask(self.request(Method::POST, path).json(&body)).await
    }

    /// Deletes a path.
    pub async fn delete(&self, path: &str) -> Result<Reply> {
        self.ask(self.request(Method::DELETE, path)).await
    }

    /// Deploys a manifest, with the component of a guest.
    pub async fn deploy(&self, manifest: &str, guest: Option<&str>) -> Result<Value> {
        self.post("/v1/machines", deployment(manifest, guest)?).await?.done()
    }

    /// Makes an entity.
    pub async fn create(&self, entity: &str) -> Result<Value> {
        let (machine, key) = entity.split_once('/').context("machine/key")?;
        self.post("/v1/entities", json!({ "machine": machine, "key": key })).await?.done()
    }

    /// Sends an event.
    pub async fn send(&self, entity: &str, id: &str, event: Value) -> Result<Reply> {
        self.send_waiting(entity, id, event, "").await
    }

    /// Sends an event and waits for its end.
    pub async fn settle(&self, entity: &str, id: &str, event: Value) -> Result<Reply> {
        self.send_waiting(entity, id, event, "?wait=30s").await
    }

    async fn send_waiting(&self, entity: &str, id: &str, event: Value, query: &str) -> Result<Reply> {
        let request = self.request(Method::POST, &format!("/v1/entities/{entity}/events{query}"));
        self.ask(request.header("Idempotency-Key", id).json(&event)).await
    }

    /// An entity that is there.
    pub async fn entity(&self, entity: &str) -> Result<Value> {
        self.get(&format!("/v1/entities/{entity}")).await?.done()
    }

    /// Writes `desired` over a generation.
    pub async fn apply(&self, entity: &str, generation: u64, desired: Value) -> Result<Reply> {
        let request = self.request(Method::PUT, &format!("/v1/entities/{entity}/desired"));
        self.ask(request.header(header::IF_MATCH, format!("\"{generation}\"")).json(&json!({ "desired": desired })))
            .await
    }

    /// Kills an entity.
    pub async fn killed(&self, entity: &str, reason: &str) -> Result<Reply> {
        self.post(&format!("/v1/entities/{entity}/kill"), json!({ "reason": reason })).await
    }

    /// Every history entry, oldest first, read in pages.
    pub async fn history(&self, entity: &str) -> Result<Vec<Value>> {
        self.history_by(entity, 100).await
    }

    /// The same in pages of another length.
    pub async fn history_by(&self, entity: &str, limit: usize) -> Result<Vec<Value>> {
        let mut entries = Vec::new();
        let mut before = String::new();
        loop {
            let path = format!("/v1/entities/{entity}/history?limit={limit}{before}");
            let mut page = self.get(&path).await?.done()?;
            let Value::Array(found) = page["entries"].take() else { bail!("no entries: {page}") };
            if found.len() > limit {
                bail!("a page of {} where {limit} was the most", found.len());
            }
            entries.extend(found);
            match page["next"].as_u64() {
                Some(next) => before = format!("&before={next}"),
                None => break,
            }
        }
        entries.reverse();
        Ok(entries)
    }

    /// One of the host's counters.
    pub async fn counter(&self, name: &str) -> Result<u64> {
        let stats = self.get("/v1/stats").await?.done()?;
        stats["counters"][name].as_u64().with_context(|| format!("the counter {name}: {stats}"))
    }

    /// Waits until no step runs. The bound of the test is the bound of the wait.
    pub async fn idle(&self) -> Result<()> {
        loop {
            let stats = self.get("/v1/stats").await?.done()?;
            if stats["running"] == 0 && stats["waiting"] == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Asks for an entity until it is as wanted. The bound of the test is the bound of the wait.
    pub async fn until(&self, entity: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        loop {
            let found = self.entity(entity).await?;
            if wanted(&found) {
                return Ok(found);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Whether a request does the same twice and is answered the same, so that its answer may be lost. What waits for a
/// lease is asked again under its grant; it would hold off every kill until its turn.
fn may_be_asked_again(request: &Request, twice: Option<Twice>) -> bool {
    match twice {
        Some(Twice::Event | Twice::There(_)) => true,
        // The second hears that nothing changed, or is there.
        Some(Twice::Over | Twice::Gone) => false,
        None => request.method() == Method::GET || request.url().query().is_some_and(|query| query.contains("wait=")),
    }
}

/// Whether a request failed because its daemon went away.
fn is_cut_off(error: &anyhow::Error) -> bool {
    error.downcast_ref::<reqwest::Error>().is_some_and(|error| !error.is_timeout() && !error.is_builder())
}

/// The body of a deploy.
pub fn deployment(manifest: &str, guest: Option<&str>) -> Result<Value> {
    let bytes = guest.map(|name| anyhow::Ok(std::fs::read(crate::guest(name)?)?)).transpose()?;
    Ok(json!({ "manifest": manifest, "component": bytes.map(|bytes| interlock_daemon::base64::encode(&bytes)) }))
}

/// An event without a payload.
pub fn event(name: &str) -> Value {
    json!({ "name": name })
}
