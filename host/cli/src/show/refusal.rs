//! A decided no: what it is about, what was expected and got, when to try again, who answers for it.

use super::{Paint, clock, fields, span};
use interlock_daemon::Problem;

/// A refusal as the demo shows it.
pub(crate) fn refusal(problem: &Problem, paint: Paint) -> String {
    let word = if problem.status == 500 { "FAULT" } else { "REFUSED" };
    format!("{}   {}: {}\n{}", paint.red(word), problem.code, sentence(problem), fields("  ", &particulars(problem)))
}

/// The sentence without what the lines below it say again.
fn sentence(problem: &Problem) -> &str {
    let again = format!("expected {}, got {}", problem.expected, problem.got);
    let short = problem.detail.strip_suffix(&again).map(|rest| rest.trim_end_matches([':', ' ']));
    short.filter(|rest| !rest.is_empty()).unwrap_or(&problem.detail)
}

/// The lines below the first.
pub(crate) fn particulars(problem: &Problem) -> Vec<(&'static str, String)> {
    vec![
        ("at", problem.pointer.clone().filter(|at| *at != problem.subject).unwrap_or_default()),
        ("expected", problem.expected.clone()),
        ("got", problem.got.clone()),
        ("retry", retry(problem)),
        ("try", remedy(problem).unwrap_or_default()),
        ("event", problem.event.clone().unwrap_or_default()),
        ("owner", problem.owner.clone().unwrap_or_default()),
    ]
}

/// The command that helps, where there is one.
fn remedy(problem: &Problem) -> Option<String> {
    let Problem { subject, expected, .. } = problem;
    match problem.code.as_str() {
        // What is busy and not for now waits for an operator.
        "busy" if !problem.retryable => {
            Some(format!("interlock entity unpark {subject}, or entity kill {subject} --reason WHY"))
        }
        "not_found" if expected.starts_with("an entity") => Some(format!("interlock entity create {subject}")),
        "conflict" if expected == "no entity with this key" => {
            Some("--on-existing use, which takes the one that is there".to_owned())
        }
        "precondition_required" => {
            Some(format!("--if-generation N, the generation that you have read (interlock entity get {subject})"))
        }
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use interlock_daemon::Reason;
    use interlock_kernel::rejection::Code;

    #[test]
    fn a_refusal_says_each_thing_once() {
        let busy = Problem {
            detail: "resource/gpu-7 is being modified, try again shortly".to_owned(),
            ..Problem::new(Reason::Decided(Code::Busy), "resource/gpu-7", "unlocked", "locked by resource/gpu-7@3.1")
        };
        let busy = busy.retry_after(2_900).owned_by("platform-team").of_event("e1");
        let invalid = Problem::invalid("event.resize/size", "at most 64", "400");
        let parked = Problem::new(Reason::Decided(Code::Busy), "pool/a", "unlocked", "locked by pool/a@3.1, parked");
        let missing = Problem::new(Reason::Decided(Code::NotFound), "pool/b", "an entity", "none with this key");
        let fault = Problem::internal("a panic in the handler; the log has more");
        let all = [&busy, &invalid, &parked, &missing, &fault].map(|problem| refusal(problem, Paint::Off)).concat();
        expect![[r#"
            REFUSED   busy: resource/gpu-7 is being modified, try again shortly
              expected   unlocked
              got        locked by resource/gpu-7@3.1
              retry      in 2.9 s
              event      e1
              owner      platform-team
            REFUSED   invalid: event.resize/size
              expected   at most 64
              got        400
            REFUSED   busy: pool/a
              expected   unlocked
              got        locked by pool/a@3.1, parked
              try        interlock entity unpark pool/a, or entity kill pool/a --reason WHY
            REFUSED   not_found: pool/b
              expected   an entity
              got        none with this key
              try        interlock entity create pool/b
            FAULT   internal: the host
              expected   an answer
              got        a panic in the handler; the log has more
        "#]]
        .assert_eq(&all);
    }
}
