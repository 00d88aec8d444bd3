//! What a run met, in numbers.

use crate::moods::Mood;
use interlock_kernel::command::Outcome;
use interlock_kernel::record::{AnswerKind, LeaseWhat, What};
use interlock_kernel::rejection::Code;
use std::collections::BTreeMap;
use std::fmt;

/// Counted over one run, or over many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Runs.
    pub runs: u64,
    /// Steps of the scheduler.
    pub steps: u64,
    /// Commands decided, refusals included.
    pub decided: u64,
    /// Of those, how many wrote something, each checked as it was committed.
    pub commits: u64,
    /// Boots of a host.
    pub boots: u64,
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Refusals by code.
    pub rejections: BTreeMap<&'static str, u64>,
    /// Answers to events by kind.
    pub answers: BTreeMap<&'static str, u64>,
    /// History entries by kind.
    pub entries: BTreeMap<&'static str, u64>,
    /// Attempts by what they were up to.
    pub attempts: BTreeMap<String, u64>,
    /// What became of leases.
    pub leases: BTreeMap<&'static str, u64>,
    /// What became of effects.
    pub effects: BTreeMap<&'static str, u64>,
    /// What receivers did about requests, and what became of those that did not arrive.
    pub requests: BTreeMap<&'static str, u64>,
    /// Store time that passed, in ms.
    pub store_ms: u64,
}

impl Figures {
    pub(crate) fn fault(&mut self, kind: &'static str) {
        *self.faults.entry(kind).or_default() += 1;
    }

    pub(crate) fn refusals(&mut self, code: Code, count: u64) {
        if count > 0 {
            *self.rejections.entry(code.as_str()).or_default() += count;
        }
    }

    pub(crate) fn lease(&mut self, what: LeaseWhat) {
        *self.leases.entry(what.as_str()).or_default() += 1;
    }

    pub(crate) fn request(&mut self, came: &'static str) {
        *self.requests.entry(came).or_default() += 1;
    }

    pub(crate) fn answer(&mut self, outcome: &Outcome) {
        let kind = match outcome {
            Outcome::Answered { answer, replayed } => match (answer.kind, replayed) {
                (AnswerKind::Accepted, false) => "accepted",
                (AnswerKind::Queued, false) => "queued",
                (AnswerKind::Late, false) => "late",
                (AnswerKind::Refused, false) => "refused",
                (AnswerKind::Accepted, true) => "accepted, replayed",
                (AnswerKind::Queued, true) => "queued, replayed",
                (AnswerKind::Late, true) => "late, replayed",
                (AnswerKind::Refused, true) => "refused, replayed",
            },
            _ => return,
        };
        *self.answers.entry(kind).or_default() += 1;
    }

    pub(crate) fn entry(&mut self, what: &What) {
        if let What::Effect(what, ..) = what {
            *self.effects.entry(what.as_str()).or_default() += 1;
        }
        let kind = match what {
            What::Created => "created",
            What::Event(_) => "event",
            What::Queued(_) => "queued",
            What::Refused(..) => "refused",
            What::Applied(_) => "applied",
            What::DesiredChanged => "desired-changed",
            What::Transition(_) => "transition",
            What::Saved(_) => "saved",
            What::Timer(_) => "timer",
            What::Begun(_) => "begun",
            What::Ended(..) => "ended",
            What::FailurePath(_) => "failure-path",
            What::Parked(code, _) => match code.as_str() {
                "exhausted" => "parked: exhausted",
                "permanent" => "parked: permanent",
                "deadline" => "parked: deadline",
                "crash-loop" => "parked: crash-loop",
                "runaway" => "parked: runaway",
                "execution-limit" => "parked: execution-limit",
                "failure-path" => "parked: failure-path",
                "stranded" => "parked: stranded",
                "effect-failed" => "parked: effect-failed",
                _ => "parked: inconsistent",
            },
            What::Unparked => "unparked",
            What::Killed(_) => "killed",
            What::Deleted => "deleted",
            What::Leased(_) => "leased",
            What::Returned(_) => "returned",
            What::LeaseLost(_) => "lease-lost",
            What::Awaits(_) => "awaits",
            What::Unlocked(..) => "unlocked",
            What::Effect(..) => "effect",
            What::Fact(..) => "fact",
        };
        *self.entries.entry(kind).or_default() += 1;
    }

    pub(crate) fn moods(&mut self, moods: BTreeMap<Mood, u64>) {
        for (mood, count) in moods {
            *self.attempts.entry(format!("{mood:?}")).or_default() += count;
        }
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.decided += other.decided;
        self.commits += other.commits;
        self.boots += other.boots;
        self.store_ms += other.store_ms;
        merge(&mut self.faults, &other.faults);
        merge(&mut self.rejections, &other.rejections);
        merge(&mut self.answers, &other.answers);
        merge(&mut self.entries, &other.entries);
        merge(&mut self.attempts, &other.attempts);
        merge(&mut self.leases, &other.leases);
        merge(&mut self.effects, &other.effects);
        merge(&mut self.requests, &other.requests);
    }

    /// Faults of every kind.
    #[must_use]
    pub fn faults_in_all(&self) -> u64 {
        self.faults.values().sum()
    }
}

fn merge<K: Ord + Clone>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *into.entry(key.clone()).or_default() += count;
    }
}

fn list<K: fmt::Display>(counts: &BTreeMap<K, u64>) -> String {
    counts.iter().map(|(key, count)| format!("{key} {count}")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} runs, {} steps of the scheduler, {} boots, {} s of store time",
            self.runs,
            self.steps,
            self.boots,
            self.store_ms / 1_000
        )?;
        writeln!(
            f,
            "commands decided: {}, of which {} committed something and were checked",
            self.decided, self.commits
        )?;
        writeln!(f, "faults: {} ({})", self.faults_in_all(), list(&self.faults))?;
        writeln!(f, "rejections: {} codes ({})", self.rejections.len(), list(&self.rejections))?;
        writeln!(f, "answers to events: {}", list(&self.answers))?;
        writeln!(f, "history: {} kinds ({})", self.entries.len(), list(&self.entries))?;
        writeln!(f, "attempts: {} moods ({})", self.attempts.len(), list(&self.attempts))?;
        writeln!(f, "leases: {} things that become of them ({})", self.leases.len(), list(&self.leases))?;
        writeln!(f, "effects: {} things that become of them ({})", self.effects.len(), list(&self.effects))?;
        write!(f, "requests: {} things that become of them ({})", self.requests.len(), list(&self.requests))
    }
}
