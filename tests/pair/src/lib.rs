//! Two workers add to one set through a service, each under a lease, and one of them pauses for longer than its lease
//! lasts between what it read and what it writes.
//!
//! Without the fence the late write takes back what the other was told is there; with it, the service refuses the
//! late worker, which reads again. Nothing is played: a real daemon grants the leases, a real service on a real
//! database keeps the set, and a pause ends when the other has written, however long that takes.

mod service;
mod worker;

use anyhow::Result;
use interlock_support::host::{Host, Program, Setup};
use service::Service;
use std::collections::BTreeSet;
use std::fmt;
use worker::Worker;

/// Whether the service looks at the fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// It writes whatever it is sent.
    Absent,
    /// It refuses a token below the highest it has seen, in the transaction that writes.
    Present,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Additions that a worker was told are there.
    pub acknowledged: usize,
    /// Of those, the ones that are not.
    pub lost: usize,
    /// Writes that the service refused.
    pub refused: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, lost, refused } = self;
        write!(f, "{acknowledged} additions acknowledged, {lost} of them lost; {refused} late writes refused")
    }
}

/// Plays it so many rounds.
///
/// # Errors
/// Whatever keeps the daemon, the service or a worker from going on.
pub async fn run(program: Program, rounds: usize, fence: Fence) -> Result<Report> {
    let mut host = Host::start(program.clone(), Setup::default()).await?;
    let folder = program.folder()?;
    let service = Service::start(&folder.path().join("set.sqlite"), fence).await?;
    let (slow, quick) = (Worker::new(&host, &service, "slow")?, Worker::new(&host, &service, "quick")?);
    let mut acknowledged = BTreeSet::new();
    let mut refused = 0;
    for round in 0..rounds {
        let (element, other) = (format!("slow-{round}"), format!("quick-{round}"));
        let held = slow.take().await?;
        let read = slow.read().await?;
        // It pauses here. The other waits in line, gets the lease when it runs out, and writes.
        let late = quick.take().await?;
        anyhow::ensure!(late.token > held.token, "expected a token above {}, got {}", held.token, late.token);
        let seen = quick.read().await?;
        anyhow::ensure!(quick.write(&late, seen, &other).await?, "the owner of the lease was refused");
        acknowledged.insert(other);
        quick.give_back(&late).await?;
        // It wakes up, and writes what it made of what it had read.
        if !slow.write(&held, read, &element).await? {
            refused += 1;
            let held = slow.take().await?;
            let read = slow.read().await?;
            anyhow::ensure!(slow.write(&held, read, &element).await?, "the owner of the lease was refused");
            slow.give_back(&held).await?;
        }
        acknowledged.insert(element);
    }
    let there = slow.read().await?;
    host.stop().await?;
    Ok(Report { acknowledged: acknowledged.len(), lost: acknowledged.difference(&there).count(), refused })
}
