//! A decided no: what it is about, what was expected and got, when to try again, who answers for it.

use super::{Paint, clock, fields, span};
use interlock_daemon::Problem;

/// A refusal as the demo shows it.
pub(crate) fn refusal(problem: &Problem, paint: Paint) -> String {
    let word = if problem.status == 500 { "FAULT" } else { "REFUSED" };
    format!("{}   {}: {}\n{}", paint.red(word), problem.code, problem.detail, fields("  ", &particulars(problem)))
}

/// The lines below the first.
pub(crate) fn particulars(problem: &Problem) -> Vec<(&'static str, String)> {
    vec![
        ("expected", problem.expected.clone()),
        ("got", problem.got.clone()),
        ("retry", retry(problem)),
        ("event", problem.event.clone().unwrap_or_default()),
        ("owner", problem.owner.clone().unwrap_or_default()),
    ]
}

fn retry(problem: &Problem) -> String {
    let when = match (problem.retryable, problem.retry_after_ms) {
        (true, Some(ms)) => format!("in {}", span(ms)),
        (true, None) => "later".to_owned(),
        (false, _) => return String::new(),
    };
    let until = problem.holder.as_ref().and_then(|holder| holder.until.as_deref().map(clock));
    match until {
        Some(until) => format!("{when}; this state ends no later than {until}"),
        None => when,
    }
}
