//! A daemon in a process of its own, and the requests that tests make of it.

use anyhow::{Context as _, Result, bail, ensure};
use reqwest::{Client, Method, StatusCode, header};
use serde_json::{Value, json};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// No test may take longer; the crash run says its own bound.
const TEST_MAX: Duration = Duration::from_secs(90);
/// A boot that takes this long will not come.
const BOOT_MAX: Duration = Duration::from_secs(30);
/// An answer that takes this long will not come: longer than the longest `wait` a test asks for.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// Plays a test, bounded in time, on a runtime of its own.
pub(crate) fn run(test: impl Future<Output = Result<()>>) -> Result<()> {
    run_within(TEST_MAX, test)
}

/// The same with another bound.
pub(crate) fn run_within(max: Duration, test: impl Future<Output = Result<()>>) -> Result<()> {
    // Built before the clock runs: the first build of a machine takes minutes.
    for name in ["noop", "survey", "resource", "hostile", "hostile-wasi"] {
        interlock_support::guest(name)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async { timeout(max, test).await.with_context(|| format!("the test took longer than {max:?}"))? })
}

/// A new folder on the disk of the build, gone with the test.
pub(crate) fn folder() -> Result<TempDir> {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(tmp)?;
    tempfile::Builder::new().prefix("e2e-").tempdir_in(tmp).context("a folder for the test")
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// What a daemon is started with.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) slots: u32,
    pub(crate) stop_within: Duration,
    /// No file of the daemon may grow past this, as on a disk that is full.
    pub(crate) file_bytes_max: Option<u64>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { slots: 8, stop_within: Duration::from_secs(4), file_bytes_max: None }
    }
}

/// A daemon and its data folder. Dropped, the daemon is killed and the folder removed.
pub(crate) struct Host {
    folder: TempDir,
    setup: Setup,
    child: Option<Child>,
    api: Api,
}

impl Host {
    /// A daemon on a new folder.
    pub(crate) async fn start() -> Result<Host> {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Result<Host> {
        let mut host = Host { folder: folder()?, setup, child: None, api: Api::new(String::new())? };
        host.boot().await?;
        Ok(host)
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    /// A host on a copy of the data folder, which is moved to another place and boots there. The daemon must be gone.
    pub(crate) async fn moved(&self) -> Result<Host> {
        ensure!(self.child.is_none(), "the daemon still runs");
        let mut host = Host { folder: folder()?, setup: self.setup, child: None, api: Api::new(String::new())? };
        copy(&self.data(), &host.data())?;
        host.boot().await?;
        Ok(host)
    }

    /// What the daemon has logged.
    pub(crate) fn said(&self) -> Result<String> {
        std::fs::read_to_string(self.log()).context("the daemon's log")
    }

    /// The boot listens here: for a test that read that by itself.
    pub(crate) fn adopt(&mut self, api: Api) {
        self.api = api;
    }

    /// The data folder of the daemon.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts a process on the folder and does not wait for it: it may be killed before it listens.
    pub(crate) fn spawn(&mut self) -> Result<Booting> {
        let log = std::fs::File::options().create(true).append(true).open(self.log())?;
        let program = env!("CARGO_BIN_EXE_interlock-e2e");
        let mut command = match self.setup.file_bytes_max {
            None => Command::new(program),
            Some(max) => {
                let mut shell = Command::new("sh");
                // In blocks of 512 bytes; the signal ignored, a write says that it failed.
                let limited = format!("trap '' XFSZ; ulimit -S -f {}; exec \"$0\" \"$@\"", max / 512);
                shell.args(["-c", &limited, program]);
                shell
            }
        };
        let mut child = command
            .arg("serve")
            .arg(self.data())
            .arg(self.setup.slots.to_string())
            .arg(self.setup.stop_within.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("start the daemon")?;
        let out = child.stdout.take().context("its standard output")?;
        self.child = Some(child);
        Ok(Booting(BufReader::new(out)))
    }

    /// Boots on the folder and waits until it listens.
    pub(crate) async fn boot(&mut self) -> Result<()> {
        let booting = self.spawn()?;
        let url = booting.url().await?;
        self.api = Api::new(url)?;
        Ok(())
    }

    /// The disk has room again.
    #[cfg(target_os = "linux")]
    pub(crate) async fn make_room(&self) -> Result<()> {
        let pid = self.child.as_ref().and_then(Child::id).context("a daemon that runs")?;
        let status = Command::new("prlimit").args(["--pid", &pid.to_string(), "--fsize=unlimited"]).status().await;
        ensure!(status.context("prlimit, of util-linux")?.success(), "the limit of {pid} stays");
        Ok(())
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        let mut child = self.child.take().context("a daemon that runs")?;
        child.kill().await.context("kill it")
    }

    /// `kill -9` and a new boot.
    pub(crate) async fn crash(&mut self) -> Result<()> {
        self.kill().await?;
        self.boot().await
    }

    /// A stop in good order.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        let mut child = self.child.take().context("a daemon that runs")?;
        drop(child.stdin.take());
        let bound = self.setup.stop_within * 2 + Duration::from_secs(10);
        let status = timeout(bound, child.wait()).await.context("the daemon does not stop")??;
        if !status.success() {
            bail!("the daemon stopped with {status}");
        }
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.log()).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(40).collect();
            eprintln!("--- the daemon's last words");
            lines.iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}

/// A process that has not said yet where it listens.
pub(crate) struct Booting(BufReader<tokio::process::ChildStdout>);

impl Booting {
    /// Where it listens, once it does.
    pub(crate) async fn url(mut self) -> Result<String> {
        let mut line = String::new();
        timeout(BOOT_MAX, self.0.read_line(&mut line)).await.context("the daemon does not come up")??;
        if line.is_empty() {
            bail!("the daemon ended before it listened");
        }
        Ok(line.trim().to_owned())
    }
}

/// The HTTP API of one boot.
#[derive(Clone)]
pub(crate) struct Api {
    http: Client,
    base: String,
}

/// An answer, whatever it says.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) replayed: bool,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Value,
}

impl Reply {
    /// The body of a request that was done.
    pub(crate) fn done(self) -> Result<Value> {
        if !(200..300).contains(&self.status) {
            bail!("expected it to be done, got {} {}", self.status, self.body);
        }
        Ok(self.body)
    }

    /// The problem of a request that was refused with this status and code.
    pub(crate) fn refused(self, status: u16, code: &str) -> Result<Value> {
        if (self.status, self.body["code"].as_str()) != (status, Some(code)) {
            bail!("expected {status} {code}, got {} {}", self.status, self.body);
        }
        Ok(self.body)
    }
}

impl Api {
    pub(crate) fn new(base: String) -> Result<Api> {
        let http = Client::builder().no_proxy().timeout(ANSWER_MAX).build()?;
        Ok(Api { http, base })
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    pub(crate) async fn ask(&self, request: reqwest::RequestBuilder) -> Result<Reply> {
        let response = request.send().await?;
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

    pub(crate) async fn get(&self, path: &str) -> Result<Reply> {
        self.ask(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<Reply> {
        self.ask(self.request(Method::POST, path).json(&body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Reply> {
        self.ask(self.request(Method::DELETE, path)).await
    }

    /// Deploys a manifest, with the component of a guest.
    pub(crate) async fn deploy(&self, manifest: &str, guest: Option<&str>) -> Result<Value> {
        self.post("/v1/machines", deployment(manifest, guest)?).await?.done()
    }

    /// Makes an entity.
    pub(crate) async fn create(&self, entity: &str) -> Result<Value> {
        let (machine, key) = entity.split_once('/').context("machine/key")?;
        self.post("/v1/entities", json!({ "machine": machine, "key": key })).await?.done()
    }

    /// Sends an event.
    pub(crate) async fn send(&self, entity: &str, id: &str, event: Value) -> Result<Reply> {
        self.send_waiting(entity, id, event, "").await
    }

    /// Sends an event and waits for its end.
    pub(crate) async fn settle(&self, entity: &str, id: &str, event: Value) -> Result<Reply> {
        self.send_waiting(entity, id, event, "?wait=30s").await
    }

    async fn send_waiting(&self, entity: &str, id: &str, event: Value, query: &str) -> Result<Reply> {
        let request = self.request(Method::POST, &format!("/v1/entities/{entity}/events{query}"));
        self.ask(request.header("Idempotency-Key", id).json(&event)).await
    }

    pub(crate) async fn entity(&self, entity: &str) -> Result<Value> {
        self.get(&format!("/v1/entities/{entity}")).await?.done()
    }

    pub(crate) async fn apply(&self, entity: &str, generation: u64, desired: Value) -> Result<Reply> {
        let request = self.request(Method::PUT, &format!("/v1/entities/{entity}/desired"));
        self.ask(request.header(header::IF_MATCH, format!("\"{generation}\"")).json(&json!({ "desired": desired })))
            .await
    }

    pub(crate) async fn killed(&self, entity: &str, reason: &str) -> Result<Reply> {
        self.post(&format!("/v1/entities/{entity}/kill"), json!({ "reason": reason })).await
    }

    /// Every history entry, oldest first, read in pages.
    pub(crate) async fn history(&self, entity: &str) -> Result<Vec<Value>> {
        self.history_by(entity, 100).await
    }

    pub(crate) async fn history_by(&self, entity: &str, limit: usize) -> Result<Vec<Value>> {
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

    pub(crate) async fn counter(&self, name: &str) -> Result<u64> {
        let stats = self.get("/v1/stats").await?.done()?;
        stats["counters"][name].as_u64().with_context(|| format!("the counter {name}: {stats}"))
    }

    /// Waits until no step runs. The bound of the test is the bound of the wait.
    pub(crate) async fn idle(&self) -> Result<()> {
        loop {
            let stats = self.get("/v1/stats").await?.done()?;
            if stats["running"] == 0 && stats["waiting"] == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Asks for an entity until it is as wanted. The bound of the test is the bound of the wait.
    pub(crate) async fn until(&self, entity: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        loop {
            let found = self.entity(entity).await?;
            if wanted(&found) {
                return Ok(found);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The body of a deploy.
pub(crate) fn deployment(manifest: &str, guest: Option<&str>) -> Result<Value> {
    let bytes = guest.map(|name| anyhow::Ok(std::fs::read(interlock_support::guest(name)?)?)).transpose()?;
    Ok(json!({ "manifest": manifest, "component": bytes.map(|bytes| interlock_daemon::base64::encode(&bytes)) }))
}

/// An event without a payload.
pub(crate) fn event(name: &str) -> Value {
    json!({ "name": name })
}
