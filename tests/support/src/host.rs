//! A daemon in a process of its own, started, killed and stopped by tests; and the process's own side of it.

use crate::api::Api;
use crate::weather::{Moments, Weather, kill_at_moments, stand_still};
use anyhow::{Context as _, Result, bail, ensure};
use interlock_daemon::{Daemon, Options};
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tracing_subscriber::EnvFilter;

/// The file of the operator's configuration.
const CONFIG: &str = "interlock.toml";

/// A boot that takes this long will not come.
const BOOT_MAX: Duration = Duration::from_secs(30);

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

/// Which binary serves, and where the folders of its data are made: `env!` knows both where the tests are compiled.
#[derive(Clone, Debug)]
pub struct Program {
    /// The binary; it calls [`serve`].
    pub path: PathBuf,
    /// A folder on the disk of the build.
    pub tmp: PathBuf,
}

impl Program {
    /// A new folder, gone when it is dropped.
    pub fn folder(&self) -> Result<TempDir> {
        std::fs::create_dir_all(&self.tmp)?;
        tempfile::Builder::new().prefix("e2e-").tempdir_in(&self.tmp).context("a folder for the test")
    }
}

/// Serves on `FOLDER SLOTS STOP_MS CONFIG`: says where it listens in its first line, and ends when standard input does, so
/// that it never outlives a test.
pub fn serve(mut arguments: impl Iterator<Item = OsString>) -> Result<()> {
    let data_dir = PathBuf::from(arguments.next().context("the folder")?);
    let mut number = |name: &str| -> Result<u32> {
        let text = arguments.next().with_context(|| format!("the {name}"))?;
        text.to_string_lossy().parse().with_context(|| format!("the {name}"))
    };
    let (slots, stop_ms) = (number("number of slots")?, number("time of a stop")?);
    let config = Some(PathBuf::from(arguments.next().context("the configuration")?));
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let stop_within = Duration::from_millis(stop_ms.into());
        // Taken before anything listens: a test tells it to read the configuration again.
        let mut again = signal(SignalKind::hangup())?;
        let listen = ([127, 0, 0, 1], 0).into();
        let options = Options { data_dir, listen, executions_max: slots, stop_within, config, ..Options::default() };
        let running = Daemon::start(options).await?;
        let mut out = std::io::stdout();
        writeln!(out, "http://{}", running.addr())?;
        out.flush()?;
        let mut end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        loop {
            tokio::select! {
                ended = &mut end => {
                    ended??;
                    break;
                }
                _ = again.recv() => running.reload_and_log().await,
            }
        }
        running.stop().await
    })
}

/// What a daemon is started with.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Attempts that run at a time.
    pub slots: u32,
    /// How long a stop waits for what is running.
    pub stop_within: Duration,
    /// No file of the daemon may grow past this, as on a disk that is full.
    pub file_bytes_max: Option<u64>,
    /// What the daemon logs, as `RUST_LOG` says it; as the test's own environment says if it is none.
    pub log: Option<&'static str>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { slots: 8, stop_within: Duration::from_secs(4), file_bytes_max: None, log: None }
    }
}

/// A daemon and its data folder. Dropped, the daemon is killed and the folder removed.
#[derive(Debug)]
pub struct Host {
    program: Program,
    folder: TempDir,
    setup: Setup,
    child: Running,
    api: Api,
    weather: Option<AbortHandle>,
    came: Arc<AtomicU64>,
}

/// The process, if one runs; shared with whatever the weather does to it.
pub(crate) type Running = Arc<Mutex<Option<Child>>>;

impl Host {
    /// A daemon on a new folder, in the weather of this process.
    pub async fn start(program: Program, setup: Setup) -> Result<Host> {
        Self::start_in(Weather::now(), program, setup).await
    }

    /// The same, but no weather kills it: for what one boot counts, or cannot boot again.
    pub async fn start_unkilled(program: Program, setup: Setup) -> Result<Host> {
        let weather = Some(Weather::now()).filter(|weather| *weather != Weather::Killed);
        Self::start_in(weather.unwrap_or(Weather::Calm), program, setup).await
    }

    /// The same in a weather of its own.
    pub async fn start_in(weather: Weather, program: Program, setup: Setup) -> Result<Host> {
        let mut host = Self::down(program, setup)?;
        host.boot().await?;
        host.api.insists(weather == Weather::Killed);
        let (moments, running) = (Moments::of_this_test(), host.child.clone());
        let (launch, came, api) = (host.launch(), host.came.clone(), host.api.clone());
        host.weather = match weather {
            Weather::Calm | Weather::Doubled => None,
            Weather::Killed => Some(tokio::spawn(kill_at_moments(moments, launch, running, api, came)).abort_handle()),
            Weather::Late => Some(tokio::spawn(stand_still(moments, running, came)).abort_handle()),
        };
        Ok(host)
    }

    /// How often the weather came: kills, or stands.
    pub fn came(&self) -> u64 {
        self.came.load(Ordering::SeqCst)
    }

    fn down(program: Program, setup: Setup) -> Result<Host> {
        let (folder, api) = (program.folder()?, Api::new(String::new())?);
        std::fs::write(folder.path().join(CONFIG), "")?;
        Ok(Host { program, folder, setup, child: Running::default(), api, weather: None, came: Arc::default() })
    }

    /// The API of the daemon, wherever it listens.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// A host on a copy of the data folder, which is moved to another place and boots there. The daemon must be gone.
    pub async fn moved(&self) -> Result<Host> {
        ensure!(self.child.lock().await.is_none(), "the daemon still runs");
        let mut host = Self::down(self.program.clone(), self.setup)?;
        copy(&self.data(), &host.data())?;
        host.boot().await?;
        Ok(host)
    }

    /// What the daemon has logged.
    pub fn said(&self) -> Result<String> {
        std::fs::read_to_string(self.log()).context("the daemon's log")
    }

    /// The operator's configuration, beside the data folder.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join(CONFIG)
    }

    /// Writes the operator's configuration, and has a daemon that runs read it; back once it has said what came of it.
    pub async fn configure(&self, text: &str) -> Result<()> {
        std::fs::write(self.config(), text)?;
        // Held meanwhile: no other boot reads it.
        let child = self.child.lock().await;
        let Some(pid) = child.as_ref().and_then(Child::id) else { return Ok(()) };
        let said = |log: &str| log.matches("configuration read again").count() + log.matches("cannot be used").count();
        let before = said(&self.said()?);
        signal_to(pid, "-HUP").await?;
        let reading = async {
            while said(&self.said()?) == before {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Ok(())
        };
        timeout(BOOT_MAX, reading).await.context("the daemon does not read its configuration")?
    }

    /// The boot listens here: for a test that read that by itself.
    pub fn adopt(&mut self, api: Api) {
        self.api = api;
    }

    /// The data folder of the daemon.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn launch(&self) -> Launch {
        let (program, setup) = (self.program.path.clone(), self.setup);
        Launch { program, setup, data: self.data(), config: self.config(), log: self.log() }
    }

    /// Starts a process on the folder and does not wait for it: it may be killed before it listens.
    pub async fn spawn(&mut self) -> Result<Booting> {
        let (child, booting) = self.launch().start()?;
        *self.child.lock().await = Some(child);
        Ok(booting)
    }

    /// Boots on the folder and waits until it listens.
    pub async fn boot(&mut self) -> Result<()> {
        let url = self.spawn().await?.url().await?;
        self.api.moves(url);
        Ok(())
    }

    /// From now on the test alone says what happens to the daemon.
    async fn calm(&mut self) -> Result<Child> {
        // Not while a boot is under way, or a stand.
        let mut child = self.child.lock().await;
        if let Some(weather) = self.weather.take() {
            weather.abort();
        }
        self.api.insists(false);
        child.take().context("a daemon that runs")
    }

    /// The disk has room again.
    #[cfg(target_os = "linux")]
    pub async fn make_room(&self) -> Result<()> {
        let pid = self.child.lock().await.as_ref().and_then(Child::id).context("a daemon that runs")?;
        let status = Command::new("prlimit").args(["--pid", &pid.to_string(), "--fsize=unlimited"]).status().await;
        ensure!(status.context("prlimit, of util-linux")?.success(), "the limit of {pid} stays");
        Ok(())
    }

    /// Has the daemon stand still until it is killed.
    pub async fn freeze(&self) -> Result<()> {
        let child = self.child.lock().await;
        if let Some(weather) = &self.weather {
            weather.abort();
        }
        self.api.insists(false);
        signal_to(child.as_ref().and_then(Child::id).context("a daemon that runs")?, "-STOP").await
    }

    /// `kill -9`.
    pub async fn kill(&mut self) -> Result<()> {
        let mut child = self.calm().await?;
        child.kill().await.context("kill it")
    }

    /// `kill -9` and a new boot.
    pub async fn crash(&mut self) -> Result<()> {
        self.kill().await?;
        self.boot().await
    }

    /// A stop in good order.
    pub async fn stop(&mut self) -> Result<()> {
        let mut child = self.calm().await?;
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
        if let Some(weather) = self.weather.take() {
            weather.abort();
        }
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.log()).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(40).collect();
            eprintln!("--- the daemon's last words");
            lines.iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}

/// What a boot is started with.
pub(crate) struct Launch {
    program: PathBuf,
    setup: Setup,
    data: PathBuf,
    config: PathBuf,
    log: PathBuf,
}

impl Launch {
    pub(crate) fn start(&self) -> Result<(Child, Booting)> {
        let log = std::fs::File::options().create(true).append(true).open(&self.log)?;
        let mut command = match self.setup.file_bytes_max {
            None => Command::new(&self.program),
            Some(max) => {
                let mut shell = Command::new("sh");
                // In blocks of 512 bytes; the signal ignored, a write says that it failed.
                let limited = format!("trap '' XFSZ; ulimit -S -f {}; exec \"$0\" \"$@\"", max / 512);
                shell.args(["-c", &limited]).arg(&self.program);
                shell
            }
        };
        if let Some(log) = self.setup.log {
            command.env("RUST_LOG", log);
        }
        let mut child = command
            .arg("serve")
            .arg(&self.data)
            .arg(self.setup.slots.to_string())
            .arg(self.setup.stop_within.as_millis().to_string())
            .arg(&self.config)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("start the daemon")?;
        let out = child.stdout.take().context("its standard output")?;
        Ok((child, Booting(BufReader::new(out))))
    }
}

pub(crate) async fn signal_to(pid: u32, signal: &str) -> Result<()> {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status().await.context("kill")?;
    ensure!(status.success(), "no signal reaches {pid}");
    Ok(())
}

/// A process that has not said yet where it listens.
#[derive(Debug)]
pub struct Booting(BufReader<tokio::process::ChildStdout>);

impl Booting {
    /// Where it listens, once it does.
    pub async fn url(mut self) -> Result<String> {
        let mut line = String::new();
        timeout(BOOT_MAX, self.0.read_line(&mut line)).await.context("the daemon does not come up")??;
        if line.is_empty() {
            bail!("the daemon ended before it listened");
        }
        Ok(line.trim().to_owned())
    }
}
