//! What a transcript says: decisions in words, with tokens and incarnations told by their order and
//! not by their number.

use crate::{EntityView, Settled, SubmitError, Written};
use interlock_kernel::command::Outcome;
use interlock_kernel::record::{Answer, Entry, Failure, What};
use interlock_kernel::rejection::Rejection;
use interlock_kernel::view::Documents;
use std::collections::BTreeMap;

/// Numbers that hang on how many jobs ran before, by what stands before them.
const MINTED: [(&str, &str); 4] = [("token ", "t"), ("@", "i"), ("SessionId(", "s"), ("seed ", "r")];

#[derive(Default)]
pub(super) struct Words {
    seen: BTreeMap<(&'static str, String), usize>,
}

impl Words {
    /// Tokens become t1, t2, and so on, in the order of their appearance; incarnations i1, i2.
    pub(super) fn plain(&mut self, text: &str) -> String {
        MINTED.iter().fold(text.to_owned(), |text, (before, letter)| {
            let mut out = String::new();
            let mut rest = text.as_str();
            while let Some(at) = rest.find(before) {
                let (head, tail) = rest.split_at(at + before.len());
                let is_digit = |c: char| if *letter == "r" { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
                let digits = tail.find(|c: char| !is_digit(c)).unwrap_or(tail.len());
                let (number, tail) = tail.split_at(digits);
                out.push_str(head);
                if !number.is_empty() {
                    let next = self.seen.keys().filter(|(kind, _)| kind == letter).count() + 1;
                    let nth = self.seen.entry((letter, number.to_owned())).or_insert(next);
                    out.push_str(&format!("{letter}{nth}"));
                }
                rest = tail;
            }
            out + rest
        })
    }

    pub(super) fn outcome(answer: &Result<Outcome, SubmitError>) -> String {
        match answer {
            Err(error) => Self::error(error),
            Ok(Outcome::Answered { answer, replayed }) => Self::answer(answer, *replayed),
            Ok(Outcome::Created { incarnation, version, new, .. }) => {
                format!("{} @{incarnation} v{version}", if *new { "created" } else { "there already:" })
            }
            Ok(Outcome::Deployed { revision, new }) => {
                format!("revision {revision}{}", if *new { "" } else { ", already active" })
            }
            Ok(Outcome::Applied { generation }) => format!("generation {generation}"),
            Ok(Outcome::Now { version, state, changed }) => {
                format!("{state} v{version}{}", if *changed { "" } else { ", as before" })
            }
            Ok(other) => format!("{other:?}"),
        }
    }

    pub(super) fn answer(answer: &Answer, replayed: bool) -> String {
        let kind = format!("{:?}", answer.kind).to_lowercase();
        let execution = answer.execution.map(|n| format!(" @{}.{n}", answer.incarnation)).unwrap_or_default();
        let why = answer.rejection.as_ref().map(|no| format!(": {}", Self::rejection(no))).unwrap_or_default();
        let again = if replayed { " (replayed)" } else { "" };
        format!("{kind}{execution} v{} {}{again}{why}", answer.version, answer.state)
    }

    pub(super) fn written(written: &Result<Written, SubmitError>) -> String {
        match written {
            Ok(Written { version, .. }) => format!("committed v{version}"),
            Err(error) => Self::error(error),
        }
    }

    pub(super) fn error(error: &SubmitError) -> String {
        match error {
            SubmitError::Rejected(rejection) => format!("REFUSED {}", Self::rejection(rejection)),
            other => format!("FAILED {other}"),
        }
    }

    fn rejection(no: &Rejection) -> String {
        let retry = match (no.retryable, no.retry_after_ms) {
            (true, Some(ms)) => format!("; retry in {ms} ms"),
            (true, None) => "; retry".to_owned(),
            (false, _) => String::new(),
        };
        format!("{}: expected {}, got {}{retry}", no.code, no.expected, no.got)
    }

    pub(super) fn documents(documents: &Documents) -> String {
        let named = [("desired", &documents.desired), ("data", &documents.data), ("outputs", &documents.outputs)];
        let there: Vec<_> = named.iter().filter_map(|(name, doc)| Some(format!("{name} {}", doc.as_ref()?))).collect();
        there.join(" ")
    }

    pub(super) fn entity(view: &EntityView) -> Vec<String> {
        let head = &view.head;
        let mut first = format!(
            "{} v{} visit {} generation {} observed {}",
            head.state, head.version, head.visit, head.generation, head.observed
        );
        match &head.lock {
            None => first.push_str(" unlocked"),
            Some(lock) => {
                first.push_str(&format!(" locked by .{}", lock.ordinal));
                if let Some(open) = lock.attempt {
                    first.push_str(&format!(" attempt {} token {}", open.ordinal, open.token));
                }
                if let Some(phase) = view.phase {
                    first.push_str(&format!(" {phase:?}"));
                }
                if let Some(retry) = lock.retry {
                    first.push_str(&format!(" next attempt at {}", retry.0));
                }
                if lock.failed + lock.lost > 0 {
                    first.push_str(&format!(" failed {} lost {}", lock.failed, lock.lost));
                }
            }
        }
        for timer in &head.timers {
            first.push_str(&format!(" timer {} at {}", timer.name, timer.due.0));
        }
        if let Some(park) = &head.park {
            first.push_str(&format!(" PARKED {}: {}", park.code, park.reason));
        }
        if head.inbox.length > 0 {
            first.push_str(&format!(" inbox {}", head.inbox.length));
        }
        let mut lines = vec![first, Self::documents(&view.documents)];
        lines
            .extend(view.conditions.iter().map(|one| format!("condition {} {}: {}", one.kind, one.status, one.reason)));
        lines
    }

    pub(super) fn entry(entry: &Entry) -> String {
        let what = match &entry.what {
            What::Created => "created".to_owned(),
            What::Event(name) => format!("event {name}"),
            What::Queued(name) => format!("queued {name}"),
            What::Refused(name, no) => format!("refused {name}: {}", no.code),
            What::Applied(generation) => format!("applied generation {generation}"),
            What::DesiredChanged => "desired-changed".to_owned(),
            What::Transition(step) => format!("{step}"),
            What::Saved(step) => format!("{step} saved"),
            What::Timer(name) => format!("timer {name}"),
            What::Begun(reason) => format!("begun again: {reason:?}"),
            What::Ended(failure, retry) => format!("failed: {}, next in {retry:?} ms", Self::failure(failure)),
            What::FailurePath(failure) => format!("failure path: {}", Self::failure(failure)),
            What::Parked(code, reason) => format!("parked {code}: {reason}"),
            What::Unparked => "unparked".to_owned(),
            What::Killed(reason) => format!("killed: {reason}"),
            What::Deleted => "deleted".to_owned(),
            What::Leased(lease) => format!("took lease {lease}"),
            What::Returned(lease) => format!("gave lease {lease} back"),
            What::LeaseLost(lease) => format!("lost lease {lease}"),
            What::Awaits(lease) => format!("awaits lease {lease}"),
            What::Unlocked(reason, forced) => format!("unlocked (forced: {forced}): {reason}"),
            What::Effect(what, target, number, note) => format!("effect {number} on {target} {what}: {note}"),
            What::Fact(kind, text) => format!("fact {kind:?}: {text}"),
        };
        let moved =
            if entry.from == entry.to { entry.to.to_string() } else { format!("{} -> {}", entry.from, entry.to) };
        let attempt = match (entry.attempt, entry.token) {
            (Some(attempt), Some(token)) => format!(" attempt {attempt} token {token}"),
            _ => String::new(),
        };
        let execution = entry.execution.map(|n| format!(" .{n}")).unwrap_or_default();
        format!("h{} v{} {moved} | {what} |{execution}{attempt} by {}", entry.number, entry.version, entry.by)
    }

    fn failure(failure: &Failure) -> String {
        format!("{}{} ({})", if failure.permanent { "permanent " } else { "" }, failure.code, failure.reason)
    }

    pub(super) fn settled(settled: &Settled) -> String {
        match settled {
            Settled::Ended { succeeded, state, version, outputs, execution } => format!(
                "{} in {state} v{version} execution {execution:?} outputs {outputs:?}",
                if *succeeded { "succeeded" } else { "failed" }
            ),
            Settled::Parked { park, state, version, execution } => {
                format!("parked in {state} v{version} execution {execution}: {}", park.code)
            }
            Settled::Refused(answer) => Self::answer(answer, false),
            Settled::Gone => "gone".to_owned(),
            Settled::Pending { answer, state, version } => {
                format!("not yet: {}; now {state} v{version}", Self::answer(answer, false))
            }
        }
    }
}
