//! What the check of a manifest or a component found.

use super::Paint;
use interlock_daemon::api::{Finding, Severity};
use interlock_manifest::Report;

/// A manifest's problems with the lines they are about, or what it is if there are none.
pub(crate) fn report(report: &Report, paint: Paint) -> String {
    let problems = interlock_manifest::render(report, paint == Paint::On);
    match &report.manifest {
        Some(manifest) if problems.is_empty() => {
            let machine = &manifest.machine;
            let (states, events) = (count(machine.states.len(), "state"), count(machine.events.len(), "event"));
            format!("{}: {} is sound: {states}, {events}\n", report.name, machine.name)
        }
        _ => problems,
    }
}

/// `1 event`, `2 events`.
fn count(number: usize, name: &str) -> String {
    if number == 1 { format!("1 {name}") } else { format!("{number} {name}s") }
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
