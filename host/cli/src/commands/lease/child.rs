//! A command that runs in the process group of its guard, and the signals on their way to it.

use crate::failed::Failed;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// What a shell answers for a command that is not there, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
pub(super) const NOT_RUN: u8 = 126;
/// What a shell adds to the number of the signal that ended a command.
const SIGNALLED: i32 = 128;

/// A command that runs.
pub(super) struct Running {
    child: Child,
    group: Pid,
}

impl Running {
    /// Starts a command in a process group.
    ///
    /// # Errors
    /// Why it does not run, and the exit code that says so.
    pub(super) fn start(command: &[OsString], env: &[(&str, String)], group: Pid) -> Result<Self, (String, u8)> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(("no command".to_owned(), NOT_FOUND));
        };
        let mut child = Command::new(program);
        child.args(arguments).env_remove("INTERLOCK_GRANT").process_group(group.as_raw_pid()).kill_on_drop(true);
        child.envs(env.iter().map(|(name, value)| (name, value)));
        let child = child.spawn().map_err(|why| {
            let code = if why.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
            (format!("{}: {why}", program.display()), code)
        })?;
        Ok(Self { child, group })
    }

    /// Ends when the command does. Cancel safe.
    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Sends a signal to the command and what it started.
    pub(super) fn signal(&self, signal: Signal) {
        // Where nobody is left, nobody has to be told.
        let _ = kill_process_group(self.group, signal);
    }
}

/// The exit code as a shell would say it.
pub(super) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|number| SIGNALLED + number));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The signals that a command is sent through the process that holds its lease.
pub(super) struct Signals(mpsc::Receiver<Signal>);

impl Signals {
    /// Takes them: from now on they do nothing by themselves. SIGTSTP is taken and goes nowhere: a holder that
    /// stands still renews nothing.
    pub(super) fn new() -> Result<Self, Failed> {
        drop(signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?);
        let (send, receive) = mpsc::channel(8);
        for kind in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2] {
            let mut arrived = signal(SignalKind::from_raw(kind.as_raw()))?;
            let send = send.clone();
            tokio::spawn(async move { while arrived.recv().await.is_some() && send.send(kind).await.is_ok() {} });
        }
        Ok(Self(receive))
    }

    /// The next one. Cancel safe.
    pub(super) async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

/// The exit code of a process that a signal ended.
pub(super) fn ended_by(signal: Signal) -> u8 {
    u8::try_from(SIGNALLED + signal.as_raw()).unwrap_or(1)
}
