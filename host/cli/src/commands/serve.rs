//! `interlock serve`: the daemon in this process.

use crate::args::{LogFormat, Serve};
use crate::failed::Failed;
use crate::out::Out;
use interlock_daemon::{Daemon, Options};
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// "File size limit exceeded" has this number on every platform that the host runs on.
const SIGXFSZ: i32 = 25;

/// What is printed once it listens; with `--json` the one line that a supervisor reads.
#[derive(Serialize)]
struct Started {
    url: String,
    data: String,
    session: u64,
    unfinished: u64,
    open_ms: u64,
}

/// Runs it until SIGTERM or SIGINT; the second one ends it at once.
pub(crate) async fn run(args: Serve, out: Out) -> Result<(), Failed> {
    log(args.log_format);
    let mut stop = Stop::new()?;
    // Taken once is taken for good: a file that may not grow is then an error of its write, not the process's end.
    drop(signal(SignalKind::from_raw(SIGXFSZ))?);
    // Taken before anything runs: without it the signal would end the process.
    let mut again = signal(SignalKind::hangup())?;
    let options = Options {
        data_dir: args.data.clone(),
        listen: args.listen,
        config: args.config,
        guest_memory_bytes: args.guest_memory,
        ..Options::default()
    };
    let running = Daemon::start(options).await.map_err(|why| {
        let taken = |io: &std::io::Error| io.kind() == std::io::ErrorKind::AddrInUse;
        let hint = match why.root_cause().downcast_ref() {
            Some(io) if taken(io) => ": another daemon may run there; --listen takes another address",
            Some(_) | None => "",
        };
        Failed::Input(format!("{why:#}{hint}"))
    })?;
    let started = Started {
        url: format!("http://{}", running.addr()),
        data: args.data.display().to_string(),
        session: running.session(),
        unfinished: running.unfinished(),
        open_ms: u64::try_from(running.opened_in().as_millis()).unwrap_or(u64::MAX),
    };
    out.result(&started, |_| {
        let Started { url, data, session, unfinished, open_ms } = &started;
        let attempts = if *unfinished == 1 { "attempt" } else { "attempts" };
        format!("listening on {url}   data {data}   session {session}   {unfinished} unfinished {attempts} found   open after {open_ms} ms\n")
    });
    let signal = loop {
        tokio::select! {
            signal = stop.asked() => break signal,
            _ = again.recv() => running.reload_and_log().await,
        }
    };
    tracing::info!(signal, "stopping; the same again stops at once");
    tokio::select! {
        stopped = running.stop() => stopped.map_err(Failed::from)?,
        signal = stop.asked() => {
            tracing::warn!(signal, "stopping at once; the next boot takes up what was left");
            std::process::exit(130);
        }
    }
    tracing::info!("stopped");
    Ok(())
}

struct Stop {
    term: Signal,
    int: Signal,
}

impl Stop {
    fn new() -> Result<Self, Failed> {
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    async fn asked(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}

fn log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            let paint = crate::show::Paint::of(&std::io::stderr());
            builder.with_ansi(paint == crate::show::Paint::On).init();
        }
        LogFormat::Json => builder.json().init(),
    }
}
