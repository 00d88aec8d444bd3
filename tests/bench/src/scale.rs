//! A store that grows, killed at each size: restart, cost per transition and memory, by entities.

use crate::report::{Group, Row};
use crate::spread::number;
use crate::stage::{Boot, Grown, Restart};
use anyhow::{Context as _, Result, bail};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) const RESTART: &str = "restart after kill -9, by entities (the page cache of the system is warm)";
pub(crate) const COST: &str = "transitions of random entities, 64 clients, by entities";
pub(crate) const MEMORY: &str = "resident memory, by entities";

/// One in this many entities has an attempt under way when the host is killed.
const IN_FLIGHT: usize = 100;

/// The three measurements, from one series of boots.
pub(crate) fn measure(dir: &Path, sizes: &[usize], load: Duration) -> Result<[Group; 3]> {
    let (mut restarts, mut costs, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    let (mut from, mut orphans) = (0, 0);
    let nexts = sizes.iter().copied().map(Some).chain([None]);
    for to in nexts {
        let in_flight = to.unwrap_or(0) / IN_FLIGHT;
        let boot = boot(dir, from, orphans, to, load, in_flight)?;
        if from > 0 {
            restarts.push(restart(from, orphans, &boot.restart));
        }
        if let (Some(to), Some(grown)) = (to, &boot.grown) {
            costs.push(cost(to, grown));
            memory.push(resident(from, to, grown));
            (from, orphans) = (to, in_flight);
        }
    }
    let note = "open: redb's repair reads the whole file; first step: from the start to an orphan's durable transition";
    Ok([
        Group { title: RESTART, note: note.to_owned(), rows: restarts },
        Group {
            title: COST,
            note: "without WebAssembly; each client its own share of entities".to_owned(),
            rows: costs,
        },
        Group {
            title: MEMORY,
            note: "growth: of the second half of the filling, when the cache of 128 MiB has its size".to_owned(),
            rows: memory,
        },
    ])
}

/// One process: boots, grows, and is killed with work in flight.
fn boot(dir: &Path, from: usize, orphans: usize, to: Option<usize>, load: Duration, in_flight: usize) -> Result<Boot> {
    let mut command = Command::new(std::env::current_exe().context("this program's path")?);
    command.arg("stage").arg("--dir").arg(dir);
    let numbers = [("--from", from), ("--orphans", orphans), ("--in-flight", in_flight)];
    for (name, value) in numbers {
        command.arg(name).arg(value.to_string());
    }
    command.arg("--load-ms").arg(load.as_millis().to_string());
    if let Some(to) = to {
        command.arg("--to").arg(to.to_string());
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("start a host")?;
    let mut line = String::new();
    let read = match child.stdout.take() {
        Some(out) => BufReader::new(out).read_line(&mut line),
        None => Ok(0),
    };
    // SIGKILL: nothing is closed.
    child.kill().context("kill the host")?;
    child.wait().context("wait for the host")?;
    read.context("read what the host found")?;
    if line.is_empty() {
        bail!("the host with {from} entities ended without a word; its reason stands above");
    }
    serde_json::from_str(&line).context("read what the host found")
}

pub(crate) fn row_name(entities: usize) -> String {
    match entities {
        millions if millions >= 1_000_000 => format!("{}M entities", millions / 1_000_000),
        thousands => format!("{}k entities", thousands / 1_000),
    }
}

fn restart(entities: usize, orphans: usize, found: &Restart) -> Row {
    let name = format!("{}, {orphans} in flight", row_name(entities));
    Row::new(
        name,
        &[
            ("file_mib", found.file_mib),
            ("open_ms", found.open_ms),
            ("reads", found.reads),
            ("read_mib", found.read_mib),
            ("session_ms", found.session_ms),
            ("first_step_ms", found.first_step_ms.unwrap_or(f64::NAN)),
            ("all_rest_ms", found.all_ms),
            ("scanned", found.scanned),
        ],
    )
}

fn cost(entities: usize, grown: &Grown) -> Row {
    Row::new(
        row_name(entities),
        &[
            ("us_per_transition", 1e6 / grown.steps_per_s),
            ("steps_per_s", grown.steps_per_s),
            ("p50_us", grown.p50_us),
            ("p99_us", grown.p99_us),
            ("jobs_per_batch", grown.jobs_per_batch),
        ],
    )
}

fn resident(from: usize, to: usize, grown: &Grown) -> Row {
    let [before, half, full] = grown.resident_kib;
    let second_half = number(to - from.midpoint(to));
    Row::new(
        row_name(to),
        &[
            ("before_mib", before / 1024.0),
            ("half_mib", half / 1024.0),
            ("filled_mib", full / 1024.0),
            ("loaded_mib", grown.resident_loaded_kib / 1024.0),
            ("growth_bytes_per_entity", (full - half) * 1024.0 / second_half),
            ("creates_per_s", grown.creates_per_s),
        ],
    )
}
