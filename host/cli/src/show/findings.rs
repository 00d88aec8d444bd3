//! What the check of a manifest or a component found.

use super::{Paint, count};
use interlock_daemon::api::{Finding, Severity};
use interlock_kernel::schedule::Schedule;
use interlock_kernel::table::Table;
use interlock_manifest::Report;

/// What a file without errors holds, besides a machine.
pub(crate) enum Sound {
    /// `NAME.table.toml`.
    Table(Table),
    /// `NAME.schedule.toml`.
    Schedule(Schedule),
}

/// A manifest's problems with the lines they are about, or what it is if there are none.
pub(crate) fn report(report: &Report, sound: Option<&Sound>, paint: Paint) -> String {
    let problems = interlock_manifest::render(report, paint == Paint::On);
    match (&report.manifest, sound) {
        (None, Some(Sound::Table(table))) if problems.is_empty() => {
            let indexes = match table.indexes.len() {
                1 => "1 index".to_owned(),
                number => format!("{number} indexes"),
            };
            format!("{}: table {} is sound: {indexes}\n", report.name, table.name)
        }
        (None, Some(Sound::Schedule(schedule))) if problems.is_empty() => {
            format!("{}: schedule {} is sound: {}\n", report.name, schedule.name, schedule.rule)
        }
        (Some(manifest), _) if problems.is_empty() => {
            let machine = &manifest.machine;
            let (states, events) =
                (count(machine.states.len() as u64, "state"), count(machine.events.len() as u64, "event"));
            format!("{}: {} is sound: {states}, {events}\n", report.name, machine.name)
        }
        _ => problems,
    }
}

/// A finding on lines of its own.
pub(crate) fn finding(finding: &Finding, paint: Paint) -> String {
    let word = match finding.severity {
        Severity::Error => paint.red("error"),
        Severity::Warning => paint.yellow("warning"),
    };
    let place = match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("{}:{line}:{column}", finding.subject),
        _ => finding.subject.clone(),
    };
    let mut text = format!("{word}[{}]: {place}: {}\n", finding.code, finding.message);
    if let (Some(expected), Some(got)) = (&finding.expected, &finding.got)
        && !finding.message.contains(expected.as_str())
    {
        text.push_str(&format!("  expected {expected}, got {got}\n"));
    }
    text.push_str(&format!("  {}\n", finding.remedy));
    text
}
