//! `interlock lease run`: a command that runs only while its lease is held.

use super::child::{NOT_RUN, Running, Signals, code, ended_by};
use super::guard::Guard;
use super::hold::{Hold, Lost};
use crate::args::Run;
use crate::client::Client;
use crate::failed::Failed;
use crate::out::Out;
use interlock_kernel::value::parse_ms;
use rustix::process::Signal;
use std::ffi::OsString;
use std::time::Duration;

/// Runs it.
pub(crate) async fn run(args: Run, client: &Client, out: Out) -> Result<(), Failed> {
    let Run { lease, terms, grace, command } = args;
    let grace = parse_ms(&grace).map_err(|why| Failed::Input(format!("--grace: {why}")))?;
    let mut signals = Signals::new()?;
    let hold = tokio::select! {
        hold = Hold::take(client, &lease, &terms) => hold?,
        // The connection goes with it, and the host takes it out of the line.
        signal = signals.next() => return Err(Failed::Ended(ended_by(signal))),
    };
    out.hint(&format!("lease {lease} is held, token {}", hold.token()));
    let env = [("INTERLOCK_LEASE", lease.to_string()), ("INTERLOCK_FENCING_TOKEN", hold.token().to_string())];
    let (running, mut guard) = match start(&command, &env, &hold).await {
        Ok(started) => started,
        Err((why, code)) => {
            give_back(hold, out).await;
            out.alarm(&why);
            return Err(Failed::Ended(code));
        }
    };
    let over = together(running, &mut guard, &hold, &mut signals, Duration::from_millis(grace)).await;
    guard.dismiss().await;
    match over? {
        Over::Ended(code) => {
            give_back(hold, out).await;
            if code == 0 { Ok(()) } else { Err(Failed::Ended(code)) }
        }
        Over::Lost(lost) => {
            if let Lost::Unknown(_) = lost {
                // It may be held at the host still: whoever is next need not wait for its end.
                let _ = hold.release().await;
            }
            Err(Failed::Lost { lease: lease.to_string(), why: lost.to_string() })
        }
    }
}

/// A command and its guard, who is there before it.
async fn start(command: &[OsString], env: &[(&str, String)], hold: &Hold) -> Result<(Running, Guard), (String, u8)> {
    let unguarded = |why: String| (format!("a guard of the command: {why}"), NOT_RUN);
    let guard = Guard::start(hold.known()).await.map_err(|why| unguarded(why.to_string()))?;
    let Some(group) = guard.group() else { return Err(unguarded("it ended at once".to_owned())) };
    match Running::start(command, env, group) {
        Ok(running) => Ok((running, guard)),
        Err(why) => {
            guard.dismiss().await;
            Err(why)
        }
    }
}

/// How it ended.
enum Over {
    /// By itself.
    Ended(u8),
    /// It was stopped.
    Lost(Lost),
}

async fn together(
    mut running: Running,
    guard: &mut Guard,
    hold: &Hold,
    signals: &mut Signals,
    grace: Duration,
) -> Result<Over, Failed> {
    let lost = {
        let keep = hold.keep();
        tokio::pin!(keep);
        loop {
            tokio::select! {
                status = running.ended() => {
                    let status = status?;
                    if guard.has_struck(status).await {
                        let why = "this process was held up, and the guard stopped the command".to_owned();
                        return Ok(Over::Lost(Lost::Unknown(why)));
                    }
                    return Ok(Over::Ended(code(status)));
                }
                signal = signals.next() => running.signal(signal),
                lost = &mut keep => break lost,
            }
        }
    };
    running.signal(Signal::TERM);
    let patience = match lost {
        Lost::Refused(_) => grace,
        Lost::Unknown(_) => grace.min(hold.confirmed().over_at().saturating_sub(hold.now())),
    };
    // Whether it ends by then or not: nothing that it started may go on.
    let _ = tokio::time::timeout(patience, running.ended()).await;
    running.signal(Signal::KILL);
    running.ended().await?;
    Ok(Over::Lost(lost))
}

async fn give_back(hold: Hold, out: Out) {
    if let Err(why) = hold.release().await {
        out.hint(&format!("the lease was not given back and ends by itself: {why}"));
    }
}
