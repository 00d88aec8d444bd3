//! Who stops a command when the process that holds its lease cannot: it was killed, or stands still.
//!
//! A second process of this program. The command runs in its process group, and it is told each time that the lease
//! is known to be held for longer. When its pipe ends, or the time that it was told is over, it kills the group,
//! itself included: nothing that the command started goes on.

use super::child::Signals;
use super::hold::Known;
use crate::failed::Failed;
use rustix::process::{Pid, Signal, kill_current_process_group};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;

/// Who kills a group dies with it; on a busy machine this may be told a little later.
const STRUCK_WITHIN: Duration = Duration::from_secs(1);

/// The guard of a command, as the process that started it sees it.
pub(super) struct Guard {
    child: Child,
    telling: JoinHandle<()>,
}

impl Guard {
    /// Starts one in a process group of its own, and waits until no signal but SIGKILL ends it.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn start(known: Known) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["lease", "guard"]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(told), Some(mut ready)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("expected pipes to it, got none"));
        };
        // A task of its own: a guard that reads nothing holds up no renewal.
        let telling = tokio::spawn(tell(told, known));
        ready.read_u8().await?;
        Ok(Self { child, telling })
    }

    /// The process group that it kills.
    pub(super) fn group(&self) -> Option<Pid> {
        self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
    }

    /// Whether it has killed the group: it does not outlive that, and ends by nothing else. A command that SIGKILL
    /// ended may be told before its guard is.
    pub(super) async fn has_struck(&mut self, command: ExitStatus) -> bool {
        let killed = Signal::KILL.as_raw();
        if command.signal() != Some(killed) {
            return false;
        }
        let ended = tokio::time::timeout(STRUCK_WITHIN, self.child.wait()).await;
        matches!(ended, Ok(Ok(status)) if status.signal() == Some(killed))
    }

    /// Ends it, and it alone: the command has ended, and what that left behind may go on.
    pub(super) async fn dismiss(mut self) {
        // It may be gone already, with its group. Its pipe ends after it does.
        let _ = self.child.kill().await;
        self.telling.abort();
    }
}

/// Writes how long the lease is known to be held, now and each time that this gets longer. The pipe stays open for as
/// long as this process is there.
async fn tell(mut to: ChildStdin, mut known: Known) {
    loop {
        let line = format!("{}\n", known.left().as_millis());
        if to.write_all(line.as_bytes()).await.is_err() || known.longer().await.is_none() {
            return std::future::pending().await;
        }
    }
}

/// Is the guard.
pub(super) async fn stand() -> Result<(), Failed> {
    let _taken = Signals::new()?;
    let mut ready = tokio::io::stdout();
    ready.write_all(b".").await?;
    ready.flush().await?;
    let mut told = BufReader::new(tokio::io::stdin()).lines();
    let mut left = Duration::MAX;
    while let Ok(Ok(Some(line))) = tokio::time::timeout(left, told.next_line()).await {
        // What is no number is from nobody who holds a lease.
        left = line.parse().map_or(Duration::ZERO, Duration::from_millis);
    }
    kill_current_process_group(Signal::KILL).map_err(io::Error::from)?;
    Ok(())
}
