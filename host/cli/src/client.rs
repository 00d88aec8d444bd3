//! The HTTP API, typed. Plain HTTP to a loopback daemon; TLS comes with authentication.
//!
//! A request is sent again only if it is idempotent and the failure says that again is sensible: nobody
//! answered, or the store was unavailable. A decided no is an answer and goes to the caller.

mod lease;
mod row;
mod schedule;
mod stream;

pub(crate) use row::{Asking, Expected};
pub(crate) use stream::Stream;

use crate::failed::{Failed, Silence};
use interlock_daemon::api::{
    Alive, AnswerView, Applied, ApplyRequest, CreateRequest, Created, DeployRequest, Deployed, DropRequest, EffectList,
    EntityPage, EntityView, EventRequest, Existing, HistoryPage, KillRequest, MachineList, MachineView, NowView,
    RollbackRequest, StatsView, UnlockRequest, WhyView,
};
use interlock_daemon::{Problem, Reason};
use interlock_kernel::ids::{EntityId, MachineName};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::time::Duration;

/// Tries of an idempotent request in all.
const TRIES: u32 = 4;
/// The pause before a second try, doubled before each further one.
const PAUSE: Duration = Duration::from_millis(200);
/// No pause that a daemon asks for is longer than this: a person waits.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A client of one daemon.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
}

/// An answer, and whether it is the remembered one of an earlier delivery.
pub(crate) struct Answered {
    pub(crate) answer: AnswerView,
    pub(crate) replayed: bool,
}

/// Whether a request may be sent twice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Yes,
    No,
}

impl Client {
    /// A client for the daemon at this address.
    ///
    /// # Errors
    /// [`Failed::Input`] if it is no `http` address.
    pub(crate) fn new(url: &str) -> Result<Self, Failed> {
        let bad = |why: &str| Failed::Input(format!("--url: expected http://HOST:PORT, got {url:?} ({why})"));
        let base: Url = url.parse().map_err(|why| bad(&format!("{why}")))?;
        if base.scheme() != "http" || base.cannot_be_a_base() {
            return Err(bad("only http is spoken"));
        }
        let http = reqwest::Client::builder().no_proxy().connect_timeout(Duration::from_secs(5)).build();
        Ok(Self { http: http.map_err(anyhow::Error::from)?, base })
    }

    /// The daemon's address.
    pub(crate) fn url(&self) -> String {
        self.base.as_str().trim_end_matches('/').to_owned()
    }

    pub(crate) async fn alive(&self) -> Result<Alive, Failed> {
        self.json(self.to(Method::GET, &["healthz"]), Again::No).await
    }

    pub(crate) async fn stats(&self) -> Result<StatsView, Failed> {
        self.json(self.to(Method::GET, &["v1", "stats"]), Again::Yes).await
    }

    pub(crate) async fn deploy(&self, request: &DeployRequest) -> Result<Deployed, Failed> {
        self.json(self.to(Method::POST, &["v1", "machines"]).json(request), Again::Yes).await
    }

    pub(crate) async fn machines(&self) -> Result<MachineList, Failed> {
        self.json(self.to(Method::GET, &["v1", "machines"]), Again::Yes).await
    }

    pub(crate) async fn machine(&self, name: &MachineName) -> Result<MachineView, Failed> {
        self.json(self.to(Method::GET, &["v1", "machines", name.as_str()]), Again::Yes).await
    }

    pub(crate) async fn rollback(&self, name: &MachineName, to: u64) -> Result<Deployed, Failed> {
        let request = self.to(Method::POST, &["v1", "machines", name.as_str(), "rollback"]);
        self.json(request.json(&RollbackRequest { to }), Again::No).await
    }

    pub(crate) async fn create(&self, request: &CreateRequest) -> Result<Created, Failed> {
        // Only this policy makes the same request twice one entity.
        let again = if request.on_existing == Existing::Same { Again::Yes } else { Again::No };
        self.json(self.to(Method::POST, &["v1", "entities"]).json(request), again).await
    }

    pub(crate) async fn entity(&self, entity: &EntityId) -> Result<EntityView, Failed> {
        self.json(self.of(Method::GET, entity, &[]), Again::Yes).await
    }

    pub(crate) async fn entities(&self, query: &[(&str, String)]) -> Result<EntityPage, Failed> {
        self.json(self.to(Method::GET, &["v1", "entities"]).query(query), Again::Yes).await
    }

    pub(crate) async fn apply(
        &self,
        entity: &EntityId,
        request: &ApplyRequest,
        generation: Option<u64>,
    ) -> Result<Applied, Failed> {
        let mut put = self.of(Method::PUT, entity, &["desired"]).json(request);
        if let Some(generation) = generation {
            put = put.header("If-Match", format!("\"{generation}\""));
        }
        // Sent twice it would name a generation that its own first arrival replaced.
        self.json(put, Again::No).await
    }

    pub(crate) async fn send(
        &self,
        entity: &EntityId,
        request: &EventRequest,
        id: &str,
        wait: Option<&str>,
    ) -> Result<Answered, Failed> {
        let mut post = self.of(Method::POST, entity, &["events"]).json(request).header("Idempotency-Key", id);
        if let Some(wait) = wait {
            post = post.query(&[("wait", wait)]);
        }
        let response = self.patiently(post, Again::Yes).await?;
        let replayed = response.headers().contains_key("idempotent-replayed");
        let answer = self.good(response).await?;
        Ok(Answered { answer, replayed })
    }

    pub(crate) async fn history(&self, entity: &EntityId, query: &[(&str, String)]) -> Result<HistoryPage, Failed> {
        self.json(self.of(Method::GET, entity, &["history"]).query(query), Again::Yes).await
    }

    pub(crate) async fn delete(&self, entity: &EntityId) -> Result<NowView, Failed> {
        self.json(self.of(Method::DELETE, entity, &[]), Again::No).await
    }

    pub(crate) async fn kill(&self, entity: &EntityId, reason: &str) -> Result<NowView, Failed> {
        let request = KillRequest { reason: reason.to_owned() };
        self.json(self.of(Method::POST, entity, &["kill"]).json(&request), Again::Yes).await
    }

    pub(crate) async fn unpark(&self, entity: &EntityId) -> Result<NowView, Failed> {
        self.json(self.of(Method::POST, entity, &["unpark"]), Again::Yes).await
    }

    pub(crate) async fn unlock(&self, entity: &EntityId, request: &UnlockRequest) -> Result<NowView, Failed> {
        self.json(self.of(Method::POST, entity, &["unlock"]).json(request), Again::Yes).await
    }

    /// Why an entity, or one of its executions, stands where it stands.
    pub(crate) async fn why(&self, entity: &EntityId, execution: Option<&str>) -> Result<WhyView, Failed> {
        let query = execution.map(|execution| ("execution", execution));
        self.json(self.of(Method::GET, entity, &["why"]).query(&query.as_slice()), Again::Yes).await
    }

    pub(crate) async fn effects(&self, query: &[(&str, String)]) -> Result<EffectList, Failed> {
        self.json(self.to(Method::GET, &["v1", "effects"]).query(query), Again::Yes).await
    }

    pub(crate) async fn effects_of(&self, entity: &EntityId) -> Result<EffectList, Failed> {
        self.json(self.of(Method::GET, entity, &["effects"]), Again::Yes).await
    }

    pub(crate) async fn retry_effect(&self, entity: &EntityId, number: u64) -> Result<NowView, Failed> {
        // Twice would give it fresh tries twice.
        self.json(self.of(Method::POST, entity, &["effects", &number.to_string(), "retry"]), Again::No).await
    }

    pub(crate) async fn drop_effect(&self, entity: &EntityId, number: u64, reason: &str) -> Result<NowView, Failed> {
        let request = DropRequest { reason: reason.to_owned() };
        let path = ["effects", &number.to_string(), "drop"];
        self.json(self.of(Method::POST, entity, &path).json(&request), Again::No).await
    }

    /// What happens to one entity, or to all, behind a position or from now on.
    pub(crate) async fn watch(
        &self,
        entity: Option<&EntityId>,
        machine: Option<&MachineName>,
        after: Option<&str>,
    ) -> Result<Stream, Failed> {
        let mut get = match entity {
            Some(entity) => self.of(Method::GET, entity, &["watch"]),
            None => self.to(Method::GET, &["v1", "watch"]),
        };
        if let Some(machine) = machine {
            get = get.query(&[("machine", machine.as_str())]);
        }
        self.stream(get, after).await
    }

    async fn stream(&self, mut get: RequestBuilder, after: Option<&str>) -> Result<Stream, Failed> {
        if let Some(position) = after {
            get = get.header("Last-Event-ID", position);
        }
        let response = self.patiently(get, Again::Yes).await?;
        if !response.status().is_success() {
            return Err(self.problem(response).await);
        }
        Ok(Stream::new(response))
    }

    fn to(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // Each is encoded, a `/` in a key included.
            segments.pop_if_empty().extend(path);
        }
        self.http.request(method, url)
    }

    fn of(&self, method: Method, entity: &EntityId, path: &[&str]) -> RequestBuilder {
        let whole = ["v1", "entities", entity.machine.as_str(), entity.key.as_str()];
        self.to(method, &[&whole, path].concat())
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder, again: Again) -> Result<T, Failed> {
        let response = self.patiently(request, again).await?;
        self.good(response).await
    }

    async fn patiently(&self, request: RequestBuilder, again: Again) -> Result<Response, Failed> {
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            let Some(copy) = request.try_clone().filter(|_| again == Again::Yes) else { break };
            let wait = match self.once(copy).await {
                Ok(response) if response.status().as_u16() == 503 => retry_after(&response).unwrap_or(pause),
                Err(Failed::Unreachable { why: Silence::Broken(_), .. }) => pause,
                answered => return answered,
            };
            tokio::time::sleep(wait.min(PAUSE_MAX)).await;
            pause *= 2;
        }
        self.once(request).await
    }

    async fn once(&self, request: RequestBuilder) -> Result<Response, Failed> {
        request.send().await.map_err(|error| {
            let why = if error.is_connect() { Silence::Nobody } else { Silence::Broken(innermost(&error)) };
            Failed::Unreachable { url: self.url(), why }
        })
    }

    async fn good<T: DeserializeOwned>(&self, response: Response) -> Result<T, Failed> {
        if !response.status().is_success() {
            return Err(self.problem(response).await);
        }
        self.read(response).await
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, Failed> {
        let broken =
            |error: reqwest::Error| Failed::Unreachable { url: self.url(), why: Silence::Broken(innermost(&error)) };
        let bytes = response.bytes().await.map_err(broken)?;
        serde_json::from_slice(&bytes).map_err(|why| {
            Failed::Fault(anyhow::anyhow!(
                "{} does not answer as an interlock daemon of this release: {why}",
                self.url()
            ))
        })
    }

    async fn problem(&self, response: Response) -> Failed {
        let status = response.status().as_u16();
        let text = response.text().await.unwrap_or_default();
        serde_json::from_str(&text).map_or_else(
            |_| {
                let got = format!("status {status}: {text:.200}");
                let problem = Problem::new(Reason::Internal, self.url(), "a problem of an interlock daemon", got);
                Failed::from(Problem { status, ..problem })
            },
            |problem: Problem| problem.into(),
        )
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get("retry-after")?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn innermost(error: &dyn Error) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}

/// A body as `--json` prints it.
pub(crate) fn line(body: &impl Serialize) -> String {
    serde_json::to_string(body).unwrap_or_default()
}
