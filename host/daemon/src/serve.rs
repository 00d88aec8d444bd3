//! From a data folder to a listening daemon, and back in good order.

use crate::app::{Answered, App, Shared};
use crate::effects::{Carrier, Configuration};
use crate::limits::{RECOVERY_LOOK, STOP_WITHIN};
use crate::problem::{Problem, Reason};
use crate::routes;
use anyhow::{Context, bail};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use futures_util::FutureExt;
use interlock_coordinator::Coordinator;
use interlock_kernel::rejection::Code;
use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
use interlock_store::{Clock, Redb, SystemClock};
use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Where a daemon listens if nothing else is said.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7117);

/// How a daemon runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the store and the components are kept; made if it is not there.
    pub data_dir: PathBuf,
    /// A loopback address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Attempts that run at a time.
    pub executions_max: u32,
    /// Memory for them, in bytes: what is expected to take more than is free waits.
    pub guest_memory_bytes: u64,
    /// How long a stop waits for what is running.
    pub stop_within: Duration,
    /// What the operator allows effects to do; without a file, nothing.
    pub config: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("interlock-data"),
            listen: LISTEN,
            executions_max: interlock_runtime::limits::EXECUTIONS_MAX,
            guest_memory_bytes: interlock_runtime::limits::GUEST_MEMORY_BYTES,
            stop_within: STOP_WITHIN,
            config: None,
        }
    }
}

/// A daemon that can be started.
#[derive(Debug)]
pub struct Daemon;

/// A daemon that runs.
pub struct Running {
    addr: SocketAddr,
    app: Shared,
    unfinished: u64,
    opened_in: Duration,
    stop_within: Duration,
    config: Option<PathBuf>,
    stopping: watch::Sender<bool>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Daemon {
    /// Opens the data folder, takes up what the boot before left, and listens. Engines are made for this daemon.
    ///
    /// # Errors
    /// An address that is not loopback or not free; a data folder that another process has open or that cannot be
    /// read.
    pub async fn start(options: Options) -> anyhow::Result<Running> {
        let Options { executions_max, guest_memory_bytes, .. } = options;
        let engine_options = EngineOptions { executions_max, guest_memory_bytes, ..EngineOptions::default() };
        let engines = Engines::new(engine_options).context("WebAssembly cannot run here")?;
        Self::start_on(&engines, options).await
    }

    /// The same on engines that there are: a process makes them once, since each reserves address space. The memory for
    /// guests is what they were made for.
    ///
    /// # Errors
    /// As [`Daemon::start`].
    pub async fn start_on(engines: &Engines, options: Options) -> anyhow::Result<Running> {
        if !options.listen.ip().is_loopback() {
            bail!(
                "{} is not a loopback address: until authentication exists a daemon listens on 127.0.0.1 or ::1 only",
                options.listen
            );
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let began = clock.monotonic();
        let configuration = configuration(options.config.as_ref()).await?;
        tracing::info!("effects: {configuration}");
        let carrier = Arc::new(Carrier::new(configuration, Arc::clone(&clock))?);
        let listener =
            TcpListener::bind(options.listen).await.with_context(|| format!("cannot listen on {}", options.listen))?;
        let addr = listener.local_addr().context("the address that was taken")?;
        let folder = options.data_dir.clone();
        let opened = {
            let (folder, clock) = (folder.clone(), Arc::clone(&clock));
            tokio::task::spawn_blocking(move || {
                Redb::open(interlock_store::Options { clock, ..interlock_store::Options::new(folder) })
            })
        };
        let store =
            Arc::new(opened.await?.with_context(|| format!("the store in {} does not open", folder.display()))?);
        let library = Library::open(engines, &folder)
            .with_context(|| format!("the components in {} cannot be read", folder.display()))?;
        let wasm = Wasm::new(library.clone());
        let slots = usize::try_from(options.executions_max).unwrap_or(usize::MAX);
        let coordinator_options = interlock_coordinator::Options {
            executions_max: slots,
            courier: Some(carrier.clone()),
            ..interlock_coordinator::Options::default()
        };
        let coordinator = Coordinator::open(store.clone(), Arc::new(wasm.clone()), coordinator_options)
            .await
            .context("the store takes no session")?;
        let opened_in = clock.monotonic().saturating_sub(began);
        let (stopping, told) = watch::channel(false);
        let answered = Answered::default();
        let app = App { coordinator, library, wasm, store, carrier, clock, began, stopping: told, answered };
        let app: Shared = Arc::new(app);
        let serving = tokio::spawn(serve(listener, service(&app), stopping.subscribe()));
        let unfinished = unfinished(&app).await;
        tracing::info!(%addr, data = %folder.display(), unfinished, "listening");
        let Options { stop_within, config, .. } = options;
        Ok(Running { addr, app, unfinished, opened_in, stop_within, config, stopping, serving })
    }
}

/// What the operator allows. Off the runtime's threads: a file system may hang.
async fn configuration(file: Option<&PathBuf>) -> anyhow::Result<Configuration> {
    let Some(file) = file.cloned() else { return Ok(Configuration::default()) };
    tokio::task::spawn_blocking(move || Configuration::read(&file)).await?
}

/// Attempts that the boot before left, as far as they are taken up within a moment: the rest follows as slots come
/// free, and `GET /v1/stats` counts them all.
async fn unfinished(app: &Shared) -> u64 {
    let mut counted = 0;
    for _ in 0..10 {
        tokio::time::sleep(RECOVERY_LOOK / 10).await;
        let now = app.coordinator.stats().recovered;
        if now == counted && now > 0 {
            break;
        }
        counted = now;
    }
    counted
}

async fn serve(listener: TcpListener, service: Router, mut stopping: watch::Receiver<bool>) -> std::io::Result<()> {
    // Answers are small and wanted at once.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
    });
    axum::serve(listener, service)
        .with_graceful_shutdown(async move {
            // Ends as well when the sender is gone.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        })
        .await
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// This boot's session.
    #[must_use]
    pub fn session(&self) -> u64 {
        self.app.coordinator.health().session.unwrap_or_default()
    }

    /// Attempts that the boot before left unfinished and that were taken up at once.
    #[must_use]
    pub fn unfinished(&self) -> u64 {
        self.unfinished
    }

    /// How long it took from the first look at the data folder until requests could be taken.
    #[must_use]
    pub fn opened_in(&self) -> Duration {
        self.opened_in
    }

    /// What the operator allows now.
    #[must_use]
    pub fn configuration(&self) -> Configuration {
        self.app.carrier.configuration()
    }

    /// Reads the operator's configuration again: it holds from the next try of an effect on.
    ///
    /// # Errors
    /// What is wrong with it; the one before stays.
    pub async fn reload(&self) -> anyhow::Result<Configuration> {
        let configuration = configuration(self.config.as_ref()).await?;
        let (carrier, next) = (Arc::clone(&self.app.carrier), configuration.clone());
        // It reads the file of certificates.
        tokio::task::spawn_blocking(move || carrier.replace(next)).await??;
        Ok(configuration)
    }

    /// The same for a process that was told to: what came of it is logged.
    pub async fn reload_and_log(&self) {
        let Some(file) = &self.config else {
            return tracing::warn!("told to read the configuration again, and there is none: start with --config FILE");
        };
        match self.reload().await {
            Ok(configuration) => tracing::info!(config = %file.display(), "configuration read again: {configuration}"),
            Err(error) => tracing::error!(
                config = %file.display(),
                error = format!("{error:#}"),
                "the configuration cannot be used: what was allowed before stays"
            ),
        }
    }

    /// Stops in good order within the stated time: takes no new connections, ends streams, answers what was asked,
    /// lets steps finish or stops them without counting it against them, closes the store.
    ///
    /// # Errors
    /// What the store could not do; the next boot then takes up what was left.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stopping.send_replace(true);
        let mut serving = self.serving;
        // A quarter each for requests and for steps; the rest is for what the coordinator and the store have to write.
        let quarter = self.stop_within / 4;
        if tokio::time::timeout(quarter, &mut serving).await.is_err() {
            tracing::warn!("requests were still open after {quarter:?} and are cut off");
            serving.abort();
        }
        let stopped = tokio::time::timeout(self.stop_within - quarter, self.app.coordinator.stop(quarter)).await;
        stopped
            .with_context(|| {
                format!("it did not stop within {:?}; the next boot takes up what was left", self.stop_within)
            })?
            .context("the store was not closed in good order")
    }
}

/// The service with its outer layers: panics become problems, foreign pages are kept out, answers are counted.
fn service(app: &Shared) -> Router {
    routes::router()
        .layer(middleware::from_fn(same_origin))
        .layer(middleware::from_fn(contained))
        .layer(middleware::from_fn_with_state(Arc::clone(app), counted))
        .with_state(Arc::clone(app))
}

/// Counts and logs what was answered.
async fn counted(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let asked = app.clock.monotonic();
    let response = next.run(request).await;
    let took = app.clock.monotonic().saturating_sub(asked);
    tracing::debug!(%method, path, status = response.status().as_u16(), ?took, "answered");
    app.answered.count(response.status());
    response
}

/// A panic of a handler is that request's fault alone.
async fn contained(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(%method, path, "a request's handler panicked");
        Problem::internal("a panic in the handler; the log has more").into_response()
    })
}

/// Without authentication the loopback address is the only lock on the door. A web page must not turn the key: its
/// requests carry its own origin, or reach this address under a foreign name.
async fn same_origin(request: Request, next: Next) -> Result<Response, Problem> {
    refuse_foreign(request.uri(), request.headers())?;
    Ok(next.run(request).await)
}

fn refuse_foreign(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let denied = |name: &str, expected: &str, got: &str| {
        Err(Problem::new(Reason::Decided(Code::Denied), name, expected, got)
            .saying("requests are taken from this machine's own programs only, not from web pages"))
    };
    let mut hosts: Vec<&str> =
        headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or("unreadable")).collect();
    hosts.extend(uri.authority().map(Authority::as_str));
    if let Some(foreign) = hosts.iter().find(|host| !is_loopback(host)) {
        return denied("Host", "a loopback address", foreign);
    }
    let host = hosts.first().copied();
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("unreadable"));
    match origin {
        Some(origin) if origin.strip_prefix("http://") != host => {
            denied("Origin", "none, or this daemon's own", origin)
        }
        Some(_) | None => Ok(()),
    }
}

fn is_loopback(authority: &str) -> bool {
    let port = authority.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = port.map_or(authority, |(name, _)| name);
    let ip: Option<IpAddr> = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inner) => inner.parse().ok().filter(IpAddr::is_ipv6),
        None => name.parse().ok().filter(IpAddr::is_ipv4),
    };
    name.eq_ignore_ascii_case("localhost") || ip.is_some_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn bad() -> &'static str {
        panic!("a handler may panic")
    }

    #[tokio::test]
    async fn a_panic_is_one_requests_fault() -> anyhow::Result<()> {
        let router = Router::new()
            .route("/bad", axum::routing::get(bad))
            .route("/good", axum::routing::get(|| async { "good" }))
            .layer(middleware::from_fn(contained));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let serving = tokio::spawn(async move { axum::serve(listener, router).await });
        let http = reqwest::Client::builder().no_proxy().build()?;
        let bad = http.get(format!("http://{addr}/bad")).send().await?;
        assert_eq!(bad.status().as_u16(), 500);
        let problem: Problem = serde_json::from_str(&bad.text().await?)?;
        assert_eq!(problem.code, "internal");
        let good = http.get(format!("http://{addr}/good")).send().await?;
        assert_eq!(good.text().await?, "good");
        serving.abort();
        Ok(())
    }

    #[test]
    fn web_pages_are_kept_out() {
        let check = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().expect("a header"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().expect("a header"));
            }
            refuse_foreign(&Uri::from_static("/v1/machines"), &headers).map_err(|problem| problem.subject)
        };
        assert_eq!(check("127.0.0.1:7117", None), Ok(()));
        assert_eq!(check("localhost:7117", None), Ok(()));
        assert_eq!(check("[::1]:7117", None), Ok(()));
        assert_eq!(check("127.0.0.1:7117", Some("http://127.0.0.1:7117")), Ok(()));
        assert_eq!(check("evil.example", None), Err("Host".to_owned()));
        for like in
            ["127.0.0.1.evil.example:7117", "127.0.0.1:80@evil.example", "[::1].evil.example", "[::1", "::1", ""]
        {
            assert_eq!(check(like, None), Err("Host".to_owned()), "{like}");
        }
        let absolute = Uri::from_static("http://evil.example/v1/machines");
        let mut two = HeaderMap::new();
        two.insert(header::HOST, "127.0.0.1:7117".parse().expect("a header"));
        assert!(refuse_foreign(&absolute, &two).is_err());
        two.append(header::HOST, "evil.example".parse().expect("a header"));
        assert!(refuse_foreign(&Uri::from_static("/v1/machines"), &two).is_err());
        assert_eq!(check("127.0.0.1:7117", Some("http://evil.example")), Err("Origin".to_owned()));
        assert_eq!(check("127.0.0.1:7117", Some("null")), Err("Origin".to_owned()));
    }
}
