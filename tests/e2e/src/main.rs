//! The process that the tests start, kill and stop. It is the daemon and nothing else: no terminal, no
//! signals, few slots, so that it starts fast. It stops in good order when its standard input ends, and so
//! never outlives a test.
//!
//! Read next: `tests/it/host.rs`, which is its other end.

use anyhow::{Context as _, Result, bail};
use interlock_build::Workspace;
use interlock_daemon::{Daemon, Options};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let verb = arguments.next().unwrap_or_default();
    let folder = PathBuf::from(arguments.next().context("serve or build, and a folder")?);
    match verb.to_str() {
        Some("serve") => {
            let mut number = |name: &str| -> Result<u32> {
                let text = arguments.next().with_context(|| format!("the {name}"))?;
                text.to_string_lossy().parse().with_context(|| format!("the {name}"))
            };
            let (slots, stop_ms) = (number("number of slots")?, number("time of a stop")?);
            serve(folder, slots, Duration::from_millis(stop_ms.into()))
        }
        Some("build") => build(folder),
        _ => bail!("serve or build, not {}", verb.display()),
    }
}

/// Says where it listens in its first line, and serves until standard input ends.
fn serve(data_dir: PathBuf, slots: u32, stop_within: Duration) -> Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listen = ([127, 0, 0, 1], 0).into();
        let options = Options { data_dir, listen, executions_max: slots, stop_within };
        let running = Daemon::start(options).await?;
        let mut out = std::io::stdout();
        writeln!(out, "http://{}", running.addr())?;
        out.flush()?;
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        running.stop().await
    })
}

/// Builds the guests of a folder with whatever toolchain the environment shows.
fn build(folder: PathBuf) -> Result<()> {
    let target_dir = Some(folder.join("target"));
    for built in (Workspace { folder, target_dir }).build()? {
        println!("{}", built.name);
    }
    Ok(())
}
