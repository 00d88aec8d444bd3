//! Machines.

use super::{Paint, clock, fields, span, table};
use crate::commands::build::Component;
use interlock_daemon::api::{Deployed, MachineList, MachineView, PowerView};
use interlock_runtime::{Inspection, Power};
use std::collections::{BTreeMap, BTreeSet};

/// A size: `58 KB`, `12.3 MB`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{} KB", count / 1_000),
        _ => format!("{}.{} MB", count / 1_000_000, count / 100_000 % 10),
    }
}

/// A revision is active.
pub(crate) fn deployed(deployed: &Deployed, paint: Paint) -> String {
    let new = if deployed.new { paint.green("active") } else { "was active already".to_owned() };
    let size = deployed.component_bytes.map(|count| format!("   {}", bytes(count))).unwrap_or_default();
    let can = powers("can", &deployed.can);
    let cannot = powers("cannot", &deployed.cannot);
    format!("{}   revision {} {new}{size}{can}{cannot}\n", paint.bold(&deployed.machine), deployed.revision)
}

/// Powers in one line; nothing for a machine without steps.
pub(crate) fn powers(word: &str, powers: &[PowerView]) -> String {
    let names: Vec<&str> = powers.iter().map(|power| power.name.as_str()).collect();
    if names.is_empty() { String::new() } else { format!("   {word}: {}", names.join(", ")) }
}

/// What a component is and can do.
pub(crate) fn inspection(file: &str, inspection: &Inspection, paint: Paint) -> String {
    let mut text = format!("{}   {}   {}\n", paint.bold(file), bytes(inspection.bytes), inspection.digest);
    for (word, powers) in [("can", &inspection.can), ("cannot", &inspection.cannot)] {
        let word = if word == "can" { paint.green(word) } else { paint.dim(word) };
        text.push_str(&format!("{word}\n"));
        let pairs: Vec<_> = powers.iter().map(|power| (&*power.name, power.what.to_string())).collect();
        text.push_str(&fields("  ", &pairs));
    }
    if !inspection.wasi.is_empty() {
        text.push_str(&format!("WASI, linked and inert: {}\n", inspection.wasi.join(", ")));
    }
    let memory = bytes(inspection.memory_bytes);
    text.push_str(&format!("memory at its start {memory}, tables {}\n", inspection.tables));
    text
}

/// A component that was built, or was there already.
pub(crate) fn built(built: &Component, paint: Paint) -> String {
    let Component { name, language, tool, path, bytes: count, unchanged, took_ms, powers, .. } = built;
    let took = if *unchanged { paint.dim("unchanged") } else { span(*took_ms) };
    let names = |powers: &[Power]| powers.iter().map(|power| &*power.name).collect::<Vec<_>>().join(", ");
    let (can, cannot, size) = (names(&powers.can), names(&powers.cannot), bytes(*count));
    let mut text = format!("{}   {language}, {tool}   {size}   {took}\n", paint.bold(name));
    text.push_str(&format!("   can: {can}   cannot: {cannot}\n"));
    if !powers.wasi.is_empty() {
        let packages: BTreeSet<&str> = powers.wasi.iter().filter_map(|name| name.split('/').next()).collect();
        let packages: Vec<&str> = packages.into_iter().collect();
        text.push_str(&format!("   WASI, linked and inert: {}\n", packages.join(", ")));
    }
    text.push_str(&format!("   {path}\n"));
    text
}

/// Every machine.
pub(crate) fn machines(list: &MachineList) -> String {
    let row = |machine: &interlock_daemon::api::MachineSummary| {
        vec![
            machine.name.clone(),
            machine.active.to_string(),
            clock(&machine.deployed),
            machine.owner.clone(),
            labels(&machine.labels),
        ]
    };
    let rows: Vec<_> = list.machines.iter().map(row).collect();
    table(&["machine", "revision", "deployed", "owner", "labels"], &rows)
}

/// One machine.
pub(crate) fn machine(machine: &MachineView, paint: Paint) -> String {
    let mut text = format!("{}   revision {}\n", paint.bold(&machine.name), machine.active);
    text.push_str(&fields("", &[("owner", machine.owner.clone()), ("labels", labels(&machine.labels))]));
    let rows: Vec<_> = machine
        .revisions
        .iter()
        .map(|revision| {
            let what = match (revision.rollback_of, revision.number == machine.active) {
                (Some(old), true) => format!("active, brings back {old}"),
                (Some(old), false) => format!("brought back {old}"),
                (None, true) => "active".to_owned(),
                (None, false) => String::new(),
            };
            let digest: String = revision.digest.chars().take(12).collect();
            vec![revision.number.to_string(), clock(&revision.deployed), revision.by.clone(), digest, what]
        })
        .collect();
    text.push('\n');
    text.push_str(&table(&["revision", "deployed", "by", "digest", ""], &rows));
    if !machine.held_back.is_empty() {
        let rows: Vec<_> = machine
            .held_back
            .iter()
            .map(|held| vec![held.entity.clone(), held.revision.to_string(), held.why.clone()])
            .collect();
        text.push('\n');
        text.push_str(&table(&["not on the active revision", "follows", "because"], &rows));
    }
    text
}

/// Labels in one line.
pub(crate) fn labels(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
