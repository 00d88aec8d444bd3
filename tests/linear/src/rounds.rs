//! A round: clients on a daemon that is killed, and a verdict about every entity.

use crate::checker::{Stuck, check};
use crate::clients::{Shared, client, read_all};
use crate::history::{Ask, Operation};
use crate::model::MACHINE;
use anyhow::{Context as _, Result, bail};
use interlock_conformance::Random;
use interlock_support::host::{Host, Program, Setup};
use interlock_support::kills::kill_again_and_again;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Clients of a round: more than the entities they choose among.
const CLIENTS: u64 = 8;

/// What a run does.
#[derive(Clone, Debug)]
pub struct Run {
    /// The daemon.
    pub program: Program,
    /// Rounds, each on a new daemon.
    pub rounds: u64,
    /// Kills of a round.
    pub kills: u64,
    /// A daemon lives at most this long, in ms.
    pub lives_ms: u64,
    /// What clients ask and when kills come; not how threads meet.
    pub seed: u64,
    /// Where a history without order is written.
    pub folder: PathBuf,
}

/// What a run found.
#[derive(Debug, Default)]
pub struct Report {
    /// Kills.
    pub kills: u64,
    /// Entities.
    pub entities: usize,
    /// Operations by what was asked, and how many of them were lost.
    pub operations: BTreeMap<&'static str, (usize, usize)>,
    /// Of them answered with a refusal.
    pub refused: usize,
    /// Answers given a second time.
    pub replayed: usize,
    /// Time that clients had.
    pub asking: Duration,
    /// Time that the search for orders took.
    pub checking: Duration,
    /// Places the searches looked at, in all and at most for one entity.
    pub places: (usize, usize),
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, lost) = self.operations.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        write!(f, "{all} operations on {} entities in {:.1?}, {} kills, ", self.entities, self.asking, self.kills)?;
        write!(f, "{lost} answers lost, {} refused, {} replayed; ", self.refused, self.replayed)?;
        write!(f, "every entity has an order, found in {:.1?} ({} places, ", self.checking, self.places.0)?;
        write!(f, "at most {} for one)", self.places.1)
    }
}

/// Runs every round; stops at the first entity without an order.
///
/// # Errors
/// A history without an order, written to the folder; a daemon that does not boot; an answer nobody should get.
pub async fn run(run: &Run) -> Result<Report> {
    let mut report = Report::default();
    let mut random = Random::new(run.seed);
    for nth in 0..run.rounds {
        let shared = Shared::new(nth);
        let began = Instant::now();
        let round = round(run, &mut random, &shared);
        round.await.with_context(|| format!("round {nth} of seed {}", run.seed))?;
        report.asking += began.elapsed();
        report.kills += run.kills;
        let began = Instant::now();
        for (key, history) in shared.histories() {
            judge(run, &key, &history, &mut report)?;
        }
        report.checking += began.elapsed();
    }
    Ok(report)
}

async fn round(run: &Run, random: &mut Random, shared: &std::sync::Arc<Shared>) -> Result<()> {
    let mut host = Host::start(run.program.clone(), Setup { slots: 4, ..Setup::default() }).await?;
    host.api().deploy(MACHINE, Some("noop")).await?;
    let (publish, boots) = watch::channel(Some(host.api().clone()));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|nth| tokio::spawn(client(nth, Random::new(random.number()), boots.clone(), shared.clone())))
        .collect();
    kill_again_and_again(&mut host, run.kills, run.lives_ms, &mut |bound| random.below(bound), &publish).await?;
    // The last boot has its share of clients too.
    tokio::time::sleep(Duration::from_millis(run.lives_ms)).await;
    shared.enough.store(true, Ordering::Relaxed);
    for client in clients {
        client.await??;
    }
    read_all(boots, shared.clone()).await?;
    host.stop().await
}

fn judge(run: &Run, key: &str, history: &[Operation], report: &mut Report) -> Result<()> {
    report.entities += 1;
    for operation in history {
        let (all, lost) = report.operations.entry(name(&operation.ask)).or_default();
        *all += 1;
        *lost += usize::from(operation.heard.is_none());
        match operation.heard.as_ref().map(|(_, heard)| heard) {
            Some(crate::history::Heard::Refused(_)) => report.refused += 1,
            Some(crate::history::Heard::Answered { replayed: true, .. }) => report.replayed += 1,
            _ => {}
        }
    }
    match check(history) {
        Ok(order) => {
            report.places.0 += order.places;
            report.places.1 = report.places.1.max(order.places);
            Ok(())
        }
        Err(stuck) => {
            let path = run.folder.join(format!("history-{}-{key}.json", run.seed));
            write(&path, history)?;
            let path = path.display();
            bail!(
                "tally/{key} has no order\n{}again: cargo run -p interlock-linear -- --check {path}",
                explain(history, &stuck)
            );
        }
    }
}

fn write(path: &Path, history: &[Operation]) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, serde_json::to_vec_pretty(history)?).with_context(|| path.display().to_string())
}

/// What was asked, for a table.
const fn name(ask: &Ask) -> &'static str {
    match ask {
        Ask::Create(_) => "create",
        Ask::Event { .. } => "event",
        Ask::Apply { .. } => "apply",
        Ask::Get => "get",
        Ask::Delete => "delete",
        Ask::Kill => "kill",
    }
}

/// The history in the order of its beginnings, with the longest order that agrees and where that ends.
#[must_use]
pub fn explain(history: &[Operation], stuck: &Stuck) -> String {
    let mut text = String::new();
    let mut places: Vec<usize> = (0..history.len()).collect();
    places.sort_by_key(|at| history[*at].asked);
    for at in places {
        let Operation { client, asked, heard, ask } = &history[at];
        let order = stuck.longest.iter().position(|one| *one == at).map_or("-".to_owned(), |n| (n + 1).to_string());
        let us = |ns: &u64| ns / 1_000;
        let said = match heard {
            Some((at, heard)) => format!("..{:>9} us  {ask:?} -> {heard:?}", us(at)),
            None => format!("..  (lost) us  {ask:?}"),
        };
        // Writing to a text does not fail.
        let _ = writeln!(text, "{order:>4}  client {client:>2} {:>9}{said}", us(asked));
    }
    if !stuck.complete {
        text.push_str("the search was given up: this is no verdict\n");
    }
    let _ = writeln!(text, "after the longest order: {:#?}", stuck.model);
    text
}
