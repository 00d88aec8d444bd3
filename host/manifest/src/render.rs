//! Problems as people read them: the line, a mark under the place, the remedy.

use crate::parse::Report;
use crate::problem::{Problem, Severity};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// Every problem with its line and remedy, and a last line that counts them; empty if there are none.
/// `color` adds terminal colours.
#[must_use]
pub fn render(report: &Report, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for problem in &report.problems {
        out.push_str(&one(report, problem, &renderer));
        out.push_str("\n\n");
    }
    if report.left_out > 0 {
        out.push_str(&format!("and {} more\n", report.left_out));
    }
    if report.incomplete {
        out.push_str("the rest is checked once the text can be read as TOML\n");
    }
    let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
    if errors + warnings > 0 {
        out.push_str(&format!("{}: {}, {}\n", report.name, count(errors, "error"), count(warnings, "warning")));
    }
    out
}

fn one(report: &Report, problem: &Problem, renderer: &Renderer) -> String {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let label = match (&problem.expected, &problem.got) {
        (Some(expected), _) => format!("expected {expected}"),
        (None, Some(got)) => format!("got {got}"),
        (None, None) => String::new(),
    };
    let mark = AnnotationKind::Primary.span(problem.span.clone());
    let mark = if label.is_empty() { mark } else { mark.label(label) };
    let snippet = Snippet::source(report.text.as_str()).path(report.name.as_str()).annotation(mark);
    let group = level.primary_title(problem.message.as_str()).id(problem.code).element(snippet);
    renderer.render(&[group.element(Level::HELP.message(problem.remedy.as_str()))])
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
