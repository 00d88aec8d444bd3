//! What is on record, in a few words: the same on the command line, over HTTP and in the stories of tests.

use super::{BeginReason, Entry, FactKind, Failure, What};
use crate::time::Span;

/// The code of a failure that a step gave none.
const NO_CODE: &str = "failed";
/// How much of a failure's reason stands in a line: a table stays a table.
const REASON_CHARS_MAX: usize = 48;

impl Entry {
    /// What happened, in a few words for people.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { to, attempt, .. } = self;
        let attempt_number = attempt.unwrap_or_default();
        let arrow = |name: &dyn std::fmt::Display| {
            let stays = self.from == *to && attempt.is_none();
            if stays { format!("{name}, stays {to}") } else { format!("{name} -> {to}") }
        };
        match &self.what {
            What::Created => format!("created, {to}"),
            What::Event(name) => arrow(name),
            What::Queued(name) => format!("{name} queued"),
            What::Refused(name, rejection) => format!("{name} refused when its turn came: {}", rejection.code),
            What::Applied(generation) => format!("desired written, generation {generation}"),
            What::DesiredChanged => arrow(&"desired-changed"),
            What::Transition(step) => format!("{step} -> {to}"),
            What::Saved(step) => format!("{step} saved"),
            What::Timer(name) => arrow(name),
            What::Begun(BeginReason::Retry) => format!("attempt {attempt_number} begun"),
            What::Begun(BeginReason::LostWithHost) => {
                format!("attempt {} lost with its host, begun again", attempt_number.saturating_sub(1))
            }
            What::Begun(BeginReason::HostStopped) => {
                format!("attempt {} stopped with its host, begun again", attempt_number.saturating_sub(1))
            }
            What::Begun(BeginReason::Leased) => format!("attempt {attempt_number} begun, its leases granted"),
            What::Leased(lease) => format!("took lease {lease}"),
            What::Returned(lease) => format!("gave lease {lease} back"),
            What::LeaseLost(lease) => format!("lost lease {lease}"),
            What::Awaits(lease) => format!("waits for lease {lease}"),
            What::Unlocked(reason, forced) => {
                format!("{} to {to}: {reason}", if *forced { "unlocked by force" } else { "unlocked" })
            }
            What::Effect(what, target, number, note) => {
                let moved = if self.from == *to { String::new() } else { format!(" -> {to}") };
                let note = if note.is_empty() { String::new() } else { format!(": {note}") };
                format!("effect {number} on {target} {what}{note}{moved}")
            }
            What::Begun(BeginReason::Unparked) => format!("attempt {attempt_number} begun after unpark"),
            What::Ended(failure, next) => {
                let then = next.map_or(String::new(), |ms| format!(", next in {}", Span(ms)));
                format!("attempt {attempt_number} failed: {}{then}", failure.short())
            }
            What::FailurePath(failure) => format!("failed: {} -> {to}", failure.short()),
            What::Parked(code, _) => format!("parked: {code}"),
            What::Unparked => "unparked".to_owned(),
            What::Killed(reason) => format!("killed: {reason}"),
            What::Deleted => "deleted".to_owned(),
            What::Fact(kind, text) => {
                let (words, code) = kind.words();
                // The text of a refusal has its code in it, which the words say already.
                format!("{words}: {}", text.replacen(&format!("{code}: "), "", 1))
            }
        }
    }
}

impl Failure {
    /// What it is called in a line: its code, or where a step gave it none, the beginning of its reason.
    #[must_use]
    pub fn short(&self) -> String {
        if self.code != NO_CODE {
            return self.code.clone();
        }
        let line = self.reason.lines().next().unwrap_or_default();
        match line.char_indices().nth(REASON_CHARS_MAX) {
            Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
            None if line.is_empty() => NO_CODE.to_owned(),
            None => line.to_owned(),
        }
    }
}

impl FactKind {
    /// How a fact begins, and the code that a refusal's text has for the same.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Fenced => ("fenced", "fenced"),
            Self::Late => ("late", "late"),
            Self::Denied => ("denied", "denied"),
            Self::NotAllowed => ("not allowed", "not_allowed"),
            Self::StaleTimer => ("stale timer", "stale timer"),
            Self::Repaired => ("repaired", "repaired"),
            Self::LateEffect => ("late effect", "late effect"),
        }
    }
}
