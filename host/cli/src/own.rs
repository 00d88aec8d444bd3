//! A daemon of one's own, as a child process: for the demo, and for `dev`.

use crate::failed::{Failed, Silence};
use anyhow::Context as _;
use serde::Deserialize;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// How long a start may take: far above what a loaded machine needs.
const START: Duration = Duration::from_secs(60);
/// How long a stop in good order may take: the daemon's own bound is 10 s.
const STOP: Duration = Duration::from_secs(15);

/// Where its log goes.
pub(crate) enum Logs {
    /// To a file, as JSON, of what this filter lets through.
    File(File, &'static str),
    /// To this process's standard error, of what RUST_LOG lets through, or else this filter.
    Here(&'static str),
}

/// The line that `serve --json` prints, as far as it is needed.
#[derive(Deserialize)]
pub(crate) struct Started {
    pub(crate) url: String,
    pub(crate) data: String,
}

/// Starts it, and returns once it listens.
///
/// # Errors
/// [`Failed::Unreachable`] with what it said instead.
pub(crate) async fn serve(data: &Path, listen: &str, logs: Logs) -> Result<(Child, Started), Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["serve", "--json", "--listen", listen, "--data"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    match logs {
        Logs::File(file, filter) => {
            command.args(["--log-format", "json"]).env("RUST_LOG", filter).env("NO_COLOR", "1").stderr(file);
        }
        Logs::Here(filter) => {
            if std::env::var_os("RUST_LOG").is_none() {
                command.env("RUST_LOG", filter);
            }
        }
    }
    // A group of its own: Ctrl-C reaches this process, which ends what it started.
    let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
    let stdout = child.stdout.take().context("the daemon's output")?;
    let mut line = String::new();
    let read = tokio::time::timeout(START, BufReader::new(stdout).read_line(&mut line)).await;
    let started = read.ok().and_then(Result::ok).and_then(|_| serde_json::from_str::<Started>(&line).ok());
    match started {
        Some(started) => Ok((child, started)),
        None => {
            child.kill().await?;
            let why = Silence::Broken(format!("the daemon did not start: {}", line.trim()));
            Err(Failed::Unreachable { url: listen.to_owned(), why })
        }
    }
}

/// Ends it in good order, or at once if that takes too long.
///
/// # Errors
/// [`Failed::Fault`] if it cannot be ended.
pub(crate) async fn stop(child: &mut Child) -> Result<(), Failed> {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        // One that has ended meanwhile is ended.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
    match tokio::time::timeout(STOP, child.wait()).await {
        Ok(ended) => drop(ended?),
        Err(_) => child.kill().await?,
    }
    Ok(())
}
