//! What the scenes play on: the guests of this checkout, a daemon of our own, its log.

use super::board::Board;
use crate::client::Client;
use crate::failed::{Failed, Silence};
use crate::out::Out;
use crate::own::{self, Logs, Started};
use crate::show;
use anyhow::Context;
use interlock_build::Workspace;
use interlock_daemon::api::EntityView;
use interlock_kernel::ids::EntityId;
use interlock_store::{Clock, SystemClock};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

use tokio::process::Child;

/// How long anything of the demo may take before it counts as not as it should be: far above what a loaded
/// machine needs.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the demo looks.
const LOOK: Duration = Duration::from_millis(10);

/// The checkout whose guests are played.
pub(crate) struct Checkout {
    root: PathBuf,
}

/// Its guests, built.
pub(crate) struct Built {
    pub(crate) resource: Guest,
    pub(crate) hostile: Guest,
    /// Needs a second target; why there is none, if there is none.
    pub(crate) hostile_wasi: Result<Guest, String>,
}

/// One guest: manifest and component.
pub(crate) struct Guest {
    pub(crate) manifest: String,
    pub(crate) component: Vec<u8>,
}

impl Checkout {
    /// Upwards from here, or where this binary was built.
    pub(crate) fn find() -> Result<Self, Failed> {
        let here = std::env::current_dir()?;
        let from = here.ancestors().chain(Path::new(env!("CARGO_MANIFEST_DIR")).ancestors());
        let root = from.into_iter().find(|folder| folder.join("guests/resource/machine.toml").is_file());
        root.map(|root| Self { root: root.to_owned() }).ok_or_else(|| {
            Failed::Input(
                "the demo builds its steps from source: run it inside a checkout (no guests/ here)".to_owned(),
            )
        })
    }

    /// Builds the guests; when they are built already that takes a moment.
    pub(crate) async fn build(&self, out: Out) -> Result<Built, Failed> {
        out.hint("building the steps in guests/ (a minute the first time, a moment later)");
        let hostile_wasi = match self.guest("hostile-wasi", out).await {
            Ok(guest) => Ok(guest),
            Err(Failed::Input(why)) => Err(why.lines().next().unwrap_or_default().to_owned()),
            Err(other) => return Err(other),
        };
        Ok(Built {
            resource: self.guest("resource", out).await?,
            hostile: self.guest("hostile", out).await?,
            hostile_wasi,
        })
    }

    async fn guest(&self, name: &str, out: Out) -> Result<Guest, Failed> {
        let folder = self.root.join("guests").join(name);
        let manifest = std::fs::read_to_string(folder.join("machine.toml"))?;
        let workspace =
            Workspace { folder, target_dir: Some(self.root.join("target/guests")), progress: out.progress() };
        let built = tokio::task::spawn_blocking(move || workspace.build()).await.map_err(anyhow::Error::from)?;
        let built = built.map_err(|why| Failed::Input(why.to_string()))?;
        let path = &built.first().with_context(|| format!("guests/{name} builds no component"))?.path;
        Ok(Guest { manifest, component: std::fs::read(path)? })
    }
}

/// A daemon of our own, as a child process, and how to reach it.
pub(crate) struct Stage<'a> {
    pub(crate) client: Client,
    pub(crate) clock: &'a SystemClock,
    child: Child,
    url: String,
    folder: TempDir,
}

impl<'a> Stage<'a> {
    /// Starts a daemon on a folder and a port of its own.
    pub(crate) async fn start(clock: &'a SystemClock) -> Result<Self, Failed> {
        let folder = tempfile::Builder::new().prefix("interlock-demo-").tempdir()?;
        let (child, started) = serve(folder.path(), "127.0.0.1:0").await?;
        Ok(Self { client: Client::new(&started.url)?, clock, child, url: started.url, folder })
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) -> Result<(), Failed> {
        self.child.kill().await?;
        Ok(())
    }

    /// Starts it again on the same folder and port; how long that took until it answered.
    pub(crate) async fn start_again(&mut self) -> Result<Duration, Failed> {
        let began = self.clock.monotonic();
        let listen = self.url.trim_start_matches("http://").to_owned();
        (self.child, _) = serve(self.folder.path(), &listen).await?;
        self.client.alive().await?;
        Ok(self.clock.monotonic().saturating_sub(began))
    }

    /// How many attempts of the boot before were begun again, once there is one.
    pub(crate) async fn recovered(&self) -> Result<u64, Failed> {
        let began = self.clock.monotonic();
        loop {
            let counted = self.client.stats().await?.counters.get("recovered").copied().unwrap_or_default();
            if counted > 0 || self.clock.monotonic().saturating_sub(began) > PATIENCE {
                return Ok(counted);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// An entity as it is now.
    pub(crate) async fn entity(&self, entity: &EntityId) -> Result<EntityView, Failed> {
        self.client.entity(entity).await
    }

    /// An entity once something is so; as it is when patience ends, which the caller's check then tells.
    pub(crate) async fn once(&self, entity: &EntityId, so: impl Fn(&EntityView) -> bool) -> Result<EntityView, Failed> {
        let began = self.clock.monotonic();
        loop {
            let seen = self.client.entity(entity).await?;
            if so(&seen) || self.clock.monotonic().saturating_sub(began) > PATIENCE {
                return Ok(seen);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The first line of the daemon's log that fits, waited for.
    pub(crate) async fn logged(&self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let began = self.clock.monotonic();
        loop {
            let text = std::fs::read_to_string(log_file(self.folder.path())).unwrap_or_default();
            let found = text.lines().filter_map(|line| serde_json::from_str(line).ok()).find(|line| fits(line));
            if found.is_some() || self.clock.monotonic().saturating_sub(began) > PATIENCE {
                return found;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The end of the daemon's log, for when something went wrong.
    pub(crate) fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(log_file(self.folder.path())).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(20);
        format!("the end of the daemon's log:\n{}", lines.get(from..).unwrap_or_default().join("\n"))
    }

    /// Ends the daemon and removes its folder.
    pub(crate) async fn end(mut self) -> Result<(), Failed> {
        self.kill().await?;
        self.folder.close()?;
        Ok(())
    }

    /// Leaves the daemon running, and says how to go on by hand.
    pub(crate) fn keep(self, board: &Board) {
        let pid = self.child.id().map(|pid| pid.to_string()).unwrap_or_default();
        let folder = self.folder.keep();
        let url = &self.url;
        board.line(&format!("\nIt still runs: {url}   process {pid}   data {}", folder.display()));
        board.line(&format!("   export INTERLOCK_URL={url}"));
        if let Some(command) = off_path() {
            board.line(&format!("   alias interlock={}", command.display()));
        }
        for command in [
            "interlock entity get resource/gpu-7",
            "interlock entity send resource/gpu-7 resize '{\"size\":8}' --wait",
            "interlock entity history resource/gpu-7",
            "interlock machine show resource",
            "interlock entity watch                  (until Ctrl-C)",
        ] {
            board.line(&format!("   {command}"));
        }
        board.line(&format!("To end it: kill {pid}; rm -r {}", folder.display()));
    }
}

/// This program, if a shell does not find it by its name.
fn off_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join("interlock").is_file());
    if found { None } else { std::env::current_exe().ok() }
}

async fn serve(folder: &Path, listen: &str) -> Result<(Child, Started), Failed> {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(log_file(folder))?;
    let logs = Logs::File(log, "info,interlock::attempt=debug");
    own::serve(&folder.join("data"), listen, logs).await.map_err(|failed| match failed {
        Failed::Unreachable { url, why: Silence::Broken(why) } => {
            let log = std::fs::read_to_string(log_file(folder)).unwrap_or_default();
            Failed::Unreachable { url, why: Silence::Broken(format!("{why}{log}")) }
        }
        other => other,
    })
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("daemon.log")
}

/// `attempt 2   token 8`, as the lock says it.
pub(crate) fn attempt(entity: &EntityView) -> String {
    let lock = entity.lock.as_ref();
    let number = |number: Option<u64>| number.map_or("none".to_owned(), |number| number.to_string());
    let attempt = number(lock.and_then(|lock| lock.attempt.map(u64::from)));
    format!("attempt {attempt}   token {}", number(lock.and_then(|lock| lock.token)))
}

/// `0.3 s`
pub(crate) fn seconds(duration: Duration) -> String {
    show::span(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
