//! `interlock lease ...`

mod child;
mod guard;
mod hold;
mod run;

use super::watch;
use crate::args::{Acquire, Lease, LeaseList, Right, Terms};
use crate::client::Client;
use crate::failed::Failed;
use crate::out::Out;
use crate::show;
use interlock_daemon::api::{AcquireRequest, ExtendRequest, ReleaseRequest, WatchLease};
use interlock_kernel::ids::LeaseName;

/// Runs it.
pub(crate) async fn run(args: Lease, client: &Client, out: Out) -> Result<(), Failed> {
    match args {
        Lease::Acquire(args) => acquire(args, client, out).await,
        Lease::Extend { lease, right: Right { grant, token }, ttl } => {
            let held = client.extend(&lease, &ExtendRequest { grant, token, ttl }).await?;
            out.result(&held, |paint| show::held(&held, paint));
            Ok(())
        }
        Lease::Release { lease, right: Right { grant, token } } => {
            let released = client.release(&lease, &ReleaseRequest { grant, token }).await?;
            out.result(&released, |_| format!("{lease}   given back   token {token} is over\n"));
            Ok(())
        }
        Lease::Show { lease } => {
            let found = client.lease(&lease).await?;
            out.result(&found, |paint| show::lease(&found, paint));
            Ok(())
        }
        Lease::List(args) => list(args, client, out).await,
        Lease::Watch { lease, after } => watch(after, out, async |at| client.watch_lease(&lease, at).await, told).await,
        Lease::Run(args) => run::run(args, client, out).await,
        Lease::Guard => guard::stand().await,
    }
}

/// A request on these terms, under a grant that only this process knows.
fn request(terms: &Terms, grant: String) -> AcquireRequest {
    AcquireRequest {
        ttl: Some(terms.ttl.clone()),
        hold_max: terms.hold_max.clone(),
        lock_delay: terms.lock_delay.clone(),
        label: Some(terms.label.clone().unwrap_or_else(myself)),
        grant: Some(grant),
    }
}

/// Random, as a secret has to be.
fn mint() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// What people are shown where nobody gave a label.
fn myself() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine = machine.trim();
    let at = if machine.is_empty() { String::new() } else { format!("@{machine}") };
    format!("interlock{at} pid {}", std::process::id())
}

async fn acquire(args: Acquire, client: &Client, out: Out) -> Result<(), Failed> {
    let Acquire { lease, terms, grant } = args;
    let request = request(&terms, grant.unwrap_or_else(mint));
    let held = client.acquire(&lease, &request, terms.wait.as_deref()).await?;
    out.result(&held, |paint| show::held(&held, paint));
    out.hint(&format!(
        "renew it in time: interlock lease extend {lease} --token {} (grant in INTERLOCK_GRANT)",
        held.token
    ));
    Ok(())
}

async fn list(args: LeaseList, client: &Client, out: Out) -> Result<(), Failed> {
    let mut query = vec![("limit", args.limit.to_string())];
    query.extend(args.prefix.map(|prefix| ("prefix", prefix)));
    query.extend(args.after.map(|after| ("after", after)));
    let page = client.leases(&query).await?;
    out.result(&page, |_| show::leases(&page));
    if let Some(next) = &page.next {
        out.hint(&format!("there may be more: --after {next}"));
    }
    Ok(())
}

fn told(name: &str, data: &str, out: Out) {
    let entry: Result<WatchLease, _> = serde_json::from_str(data);
    if let (Ok(entry), "lease") = (entry, name) {
        out.result(&entry, |_| show::watched_lease(&entry));
    }
}

/// A lease and the right to it, as long as a command runs.
pub(super) struct Grant {
    lease: LeaseName,
    grant: String,
    token: u64,
}
