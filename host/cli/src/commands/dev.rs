//! `interlock dev`: builds and deploys a machine on every change of its folder, and tells what becomes of its entities.
//!
//! It deploys to the daemon at `--url`. If nobody listens there it starts one, whose log, and so what steps log, goes
//! to the same terminal, and which ends with it.

use super::deploy;
use super::files::Files;
use super::stage::manifest;
use crate::args::{Deploy, Dev};
use crate::client::Client;
use crate::failed::{Failed, Silence};
use crate::out::Out;
use crate::own::{self, Logs};
use interlock_daemon::api::{CreateRequest, Existing};
use interlock_kernel::ids::{EntityId, EntityKey, MachineName};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Child;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch::{Receiver, Sender, channel};

/// What a daemon of one's own logs, unless RUST_LOG says something else: what steps say, and what went wrong.
const LOGGED: &str = "warn,interlock::guest=trace,interlock::attempt=info";

/// How often it looks whether a daemon that went away is back.
const LOOK: Duration = Duration::from_secs(1);

/// Runs it until it is ended.
pub(crate) async fn run(args: Dev, client: &Client, out: Out) -> Result<(), Failed> {
    // Before anything is started, or a signal would end this process and leave that behind.
    let mut end = End::new()?;
    let mut own = match client.alive().await {
        Ok(_) => None,
        Err(Failed::Unreachable { why: Silence::Nobody, .. }) => Some(start(&args.path, client, out).await?),
        Err(failed) => return Err(failed),
    };
    let (named, machine) = channel(None);
    let done = tokio::select! {
        never = rebuilt(&args, client, &named, out) => never,
        failed = followed(args.entity.as_ref(), client, machine, out) => failed,
        died = exited(&mut own) => Err(died),
        () = end.asked() => Ok(()),
    };
    if let Some(child) = &mut own {
        out.hint("stopping the daemon that was started here");
        own::stop(child).await?;
    }
    done
}

/// What ends it: Ctrl-C, a supervisor, a terminal that is closed.
struct End([Signal; 3]);

impl End {
    fn new() -> Result<Self, Failed> {
        Ok(Self([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?]))
    }

    async fn asked(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// A daemon for this folder, at the address where one is looked for.
async fn start(path: &Path, client: &Client, out: Out) -> Result<Child, Failed> {
    let folder = if path.is_file() { path.parent().unwrap_or(Path::new(".")) } else { path };
    let data = folder.join(".interlock").join("data");
    std::fs::create_dir_all(&data).map_err(|why| Failed::Input(format!("{}: {why}", data.display())))?;
    let url = client.url();
    let listen = url.trim_start_matches("http://");
    let (child, started) = own::serve(&data, listen, Logs::Here(LOGGED)).await?;
    out.hint(&format!(
        "nobody listened at {url}: a daemon runs here now, data {}; it ends with this command",
        started.data
    ));
    Ok(child)
}

/// Waits for the end of the daemon that was started here; for ever if there is none.
async fn exited(own: &mut Option<Child>) -> Failed {
    match own {
        None => std::future::pending().await,
        Some(child) => {
            let how = child.wait().await.map_or_else(|why| why.to_string(), |status| status.to_string());
            Failed::Fault(anyhow::anyhow!("the daemon that was started here ended by itself: {how}"))
        }
    }
}

/// Deploys now and on every change; what is wrong may be what the next change mends.
async fn rebuilt(args: &Dev, client: &Client, named: &Sender<Option<MachineName>>, out: Out) -> Result<(), Failed> {
    let paths = [args.path.clone()];
    loop {
        let before = Files::of(&paths);
        match deployed(&args.path, client, out).await {
            Ok(machine) => drop(named.send_if_modified(|known| {
                let is_new = known.as_ref() != Some(&machine);
                *known = Some(machine);
                is_new
            })),
            Err(failed) => {
                out.failed(&failed);
                if let Failed::Unreachable { .. } = failed {
                    out.hint("not deployed: it will be once the daemon answers");
                    tokio::select! {
                        () = before.changed(&paths) => {}
                        () = answers(client) => {}
                    }
                    continue;
                }
            }
        }
        out.hint("watching for changes; Ctrl-C ends it");
        before.changed(&paths).await;
        out.hint("");
    }
}

/// Returns once a daemon answers.
async fn answers(client: &Client) {
    while client.alive().await.is_err() {
        tokio::time::sleep(LOOK).await;
    }
}

async fn deployed(path: &Path, client: &Client, out: Out) -> Result<MachineName, Failed> {
    let machine = manifest(path, out)?.machine.name;
    deploy::run(Deploy { path: PathBuf::from(path), component: None }, client, out).await?;
    Ok(machine)
}

/// Tells what becomes of the machine's entities, or of one of them, which is made if it is not there.
async fn followed(
    key: Option<&EntityKey>,
    client: &Client,
    mut machine: Receiver<Option<MachineName>>,
    out: Out,
) -> Result<(), Failed> {
    loop {
        let current = machine.borrow_and_update().clone();
        let Some(name) = current else {
            // Its other end lives as long as this does.
            if machine.changed().await.is_err() {
                return Ok(());
            }
            continue;
        };
        let entity = match key {
            Some(key) => Some(entity(name.clone(), key.clone(), client, out).await?),
            None => None,
        };
        let open = async |at: Option<&str>| client.watch(entity.as_ref(), entity.is_none().then_some(&name), at).await;
        tokio::select! {
            told = super::watch(None, out, open, super::entity::told) => match told {
                // Whoever deploys says so, and goes on once it is back; so does this.
                Err(Failed::Unreachable { .. }) => answers(client).await,
                told => return told,
            },
            changed = machine.changed() => if changed.is_err() { return Ok(()) },
        }
    }
}

/// The entity, with its history so far.
async fn entity(machine: MachineName, key: EntityKey, client: &Client, out: Out) -> Result<EntityId, Failed> {
    let request = CreateRequest {
        machine: machine.to_string(),
        key: key.to_string(),
        desired: None,
        labels: std::collections::BTreeMap::new(),
        on_existing: Existing::Use,
        event: None,
    };
    client.create(&request).await?;
    let entity = EntityId { machine, key };
    let page = client.history(&entity, &[]).await?;
    out.result(&page, |_| crate::show::history(&page, crate::show::When::Shown));
    Ok(entity)
}
