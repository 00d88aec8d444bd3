//! A daemon on a folder of its own, and short ways to ask it.

use anyhow::Context;
use interlock_daemon::{Daemon, Options, Running};
use interlock_runtime::{EngineOptions, Engines};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

/// A machine without steps: its working state waits for an hour or an event.
pub(crate) const DOOR: &str = r#"
machine = "door"
owner   = "facilities <door@example.com>"
initial = "shut"

[desired]
schema = { type = "object", required = ["colour"], additionalProperties = false, properties.colour = { type = "string" } }
[data]
default = { force = 0 }
schema  = { type = "object", required = ["force"], additionalProperties = false, properties.force = { type = "integer" } }
[outputs]
schema = false

[events.push]
[events.push.schema]
type = "object"
required = ["force"]
additionalProperties = false
properties.force = { type = "integer", minimum = 0, maximum = 100 }
[events.knock]
on_busy = "queue"
[events.stop]
[events.slam]

[states.shut]
kind = "rest"
[states.shut.on.push]
to    = "opening"
guard = { all = [{ field = "event.force", op = "gt", value = { from = "data.force" } }] }
[states.shut.on.knock]
set = { "data.force" = 1 }

[states.opening]
after = { wait = "1h", to = "open" }
[states.opening.on.stop]
to = "shut"
[states.opening.on.slam]
to = "broken"

[states.open]
kind = "rest"
[states.open.on.slam]
to = "broken"

[states.broken]
kind    = "final"
outcome = "failed"
"#;

/// One daemon.
pub(crate) struct Site {
    folder: TempDir,
    running: Option<Running>,
    http: reqwest::Client,
}

/// An answer: status, the headers asked for, the body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

/// Room for one step that takes 40 MiB, not for two.
pub(crate) const GUEST_MEMORY_BYTES: u64 = 64 << 20;

fn engines() -> anyhow::Result<Engines> {
    static ENGINES: OnceLock<Engines> = OnceLock::new();
    if let Some(engines) = ENGINES.get() {
        return Ok(engines.clone());
    }
    let options = EngineOptions { executions_max: 8, guest_threads: 2, guest_memory_bytes: GUEST_MEMORY_BYTES };
    let made = Engines::new(options)?;
    Ok(ENGINES.get_or_init(|| made).clone())
}

impl Site {
    pub(crate) async fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let mut site = Self { folder, running: None, http };
        site.start().await?;
        Ok(site)
    }

    /// With the door deployed and one entity, `door/a`.
    pub(crate) async fn with_door() -> anyhow::Result<Self> {
        let site = Self::new().await?;
        let deployed = site.post("/v1/machines", json!({ "manifest": DOOR })).await?;
        anyhow::ensure!(deployed.status == 201, "{}", deployed.body);
        let created = site.post("/v1/entities", json!({ "machine": "door", "key": "a" })).await?;
        anyhow::ensure!(created.status == 201, "{}", created.body);
        Ok(site)
    }

    pub(crate) async fn start(&mut self) -> anyhow::Result<()> {
        let options = Options {
            data_dir: self.folder.path().to_owned(),
            listen: "127.0.0.1:0".parse()?,
            executions_max: 4,
            stop_within: Duration::from_secs(4),
            config: Some(self.config()).filter(|file| file.is_file()),
            ..Options::default()
        };
        self.running = Some(Daemon::start_on(&engines()?, options).await?);
        Ok(())
    }

    /// Where a test writes the operator's configuration.
    pub(crate) fn config(&self) -> std::path::PathBuf {
        self.folder.path().join("interlock.toml")
    }

    /// The daemon itself.
    pub(crate) fn running(&self) -> anyhow::Result<&Running> {
        self.running.as_ref().context("a running daemon")
    }

    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        self.running.take().context("a running daemon")?.stop().await
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> anyhow::Result<RequestBuilder> {
        let addr = self.running.as_ref().context("a running daemon")?.addr();
        Ok(self.http.request(method, format!("http://{addr}{path}")))
    }

    pub(crate) async fn ask(&self, request: RequestBuilder) -> anyhow::Result<Answer> {
        Answer::read(request.send().await?).await
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.ask(self.request(Method::GET, path)?).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> anyhow::Result<Answer> {
        self.ask(self.request(Method::POST, path)?.json(&body)).await
    }

    /// Sends an event with an id.
    pub(crate) async fn send(&self, entity: &str, id: &str, name: &str, payload: Value) -> anyhow::Result<Answer> {
        let request = self.request(Method::POST, &format!("/v1/entities/{entity}/events"))?;
        let request = request.header("Idempotency-Key", id).json(&json!({ "name": name, "payload": payload }));
        self.ask(request).await
    }
}

impl Answer {
    pub(crate) async fn read(response: Response) -> anyhow::Result<Self> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        let body = serde_json::from_str(&text).with_context(|| format!("status {status}, body {text:?}"))?;
        Ok(Self { status, headers, body })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// `409 busy: door/a is being modified, try again shortly`
    pub(crate) fn line(&self) -> String {
        match (self.body.get("code"), self.body.get("detail")) {
            (Some(code), Some(detail)) => {
                let text = |value: &Value| value.as_str().map(str::to_owned).unwrap_or_default();
                format!("{} {}: {}", self.status, text(code), text(detail))
            }
            _ => self.status.to_string(),
        }
    }

    /// A field by its JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> &Value {
        self.body.pointer(pointer).unwrap_or(&Value::Null)
    }
}
