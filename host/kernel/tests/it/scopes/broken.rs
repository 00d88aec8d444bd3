//! Kernels that are broken on purpose, by changing a decision before it is committed: the search finds
//! each, in as few steps as it takes.

use super::machines::{QUEUE, RETRIES, Scope, TIMES};
use super::search::{search, story};
use crate::world::{Records, Tamper};
use expect_test::expect_file;
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::record::{FactKind, Head, Key, Part, Record};
use interlock_kernel::rejection::Code;
use interlock_kernel::view::{Decision, View};
use std::fmt::Write;

/// The head that a decision writes.
fn head_of(decision: &mut Decision) -> Option<&mut Head> {
    decision.writes.iter_mut().find_map(|(_, record)| match record {
        Some(Record::Head(head)) => Some(head.as_mut()),
        _ => None,
    })
}

fn before(records: &Records, decision: &Decision) -> Option<Head> {
    let (key, _) = decision.writes.iter().find(|(key, _)| matches!(key, Key::Head(_)))?;
    match records.get(key) {
        Ok(Some(Record::Head(head))) => Some(*head),
        _ => None,
    }
}

/// A fault, and where it is searched for.
struct Fault {
    name: &'static str,
    scope: Scope,
    tamper: Tamper,
}

const FAULTS: [Fault; 12] = [
    Fault {
        name: "a save lets go of the lock",
        scope: QUEUE,
        tamper: |_, command, decision| {
            if let (Verb::Save(..), Some(head)) = (&command.verb, head_of(decision)) {
                head.lock = None;
            }
        },
    },
    Fault {
        name: "an answer is forgotten",
        scope: QUEUE,
        tamper: |_, command, decision| {
            if matches!(command.verb, Verb::Deliver { .. }) {
                decision.writes.retain(|(key, _)| !matches!(key, Key::Dedup(..)));
            }
        },
    },
    Fault {
        name: "the answer to an event that waited does not turn",
        scope: QUEUE,
        tamper: |_, command, decision| {
            if matches!(command.verb, Verb::Continue(_)) {
                decision.writes.retain(|(key, _)| !matches!(key, Key::Dedup(..)));
            }
        },
    },
    Fault {
        name: "a queued event is lost",
        scope: QUEUE,
        tamper: |_, _, decision| {
            decision.writes.retain(|(key, record)| record.is_none() || !matches!(key, Key::Inbox(..)))
        },
    },
    Fault {
        name: "an execution sees what was applied after it began",
        scope: RETRIES,
        tamper: |_, _, decision| decision.writes.retain(|(key, _)| !matches!(key, Key::Part(_, Part::Held))),
    },
    Fault {
        name: "an attempt that is over leaves its index entry",
        scope: RETRIES,
        tamper: |_, _, decision| {
            decision.writes.retain(|(key, record)| record.is_some() || !matches!(key, Key::Open(..)))
        },
    },
    Fault {
        name: "a zombie is told that it wrote",
        scope: RETRIES,
        tamper: |_, _, decision| {
            if decision.outcome.as_ref().is_err_and(|refused| refused.code == Code::Fenced) {
                decision.outcome = Ok(Outcome::Nothing);
            }
        },
    },
    Fault {
        name: "what is recovered keeps the token of the attempt before",
        scope: RETRIES,
        tamper: |records, command, decision| {
            let open = before(records, decision).and_then(|head| head.lock).and_then(|lock| lock.attempt);
            if let (Verb::Recover(_), Some(head), Some(open)) = (&command.verb, head_of(decision), open)
                && let Some(attempt) = head.lock.as_mut().and_then(|lock| lock.attempt.as_mut())
            {
                attempt.token = open.token;
            }
        },
    },
    Fault {
        name: "a back-off is not looked at",
        scope: RETRIES,
        tamper: |_, _, decision| {
            let due = head_of(decision).and_then(|head| head.due.take());
            decision.writes.retain(|(key, _)| due.is_none() || !matches!(key, Key::Due(..)));
        },
    },
    Fault {
        name: "a kill that is told again is recorded again",
        scope: RETRIES,
        tamper: |records, command, decision| {
            let Verb::Kill { entity, .. } = &command.verb else { return };
            let key = Key::Head(entity.clone());
            if let (true, Ok(Some(Record::Head(mut head)))) = (decision.writes.is_empty(), records.get(&key)) {
                head.facts.insert(FactKind::Denied, 1);
                decision.writes.push((key, Some(Record::Head(head))));
            }
        },
    },
    Fault {
        name: "a timer that fired stays",
        scope: TIMES,
        tamper: |records, command, decision| {
            let timers = before(records, decision).map(|head| head.timers);
            if let (Verb::Fire { .. }, Some(timers), Some(head)) = (&command.verb, timers, head_of(decision)) {
                head.timers = timers;
                decision.writes.retain(|(key, _)| !matches!(key, Key::Timer(..)));
            }
        },
    },
    Fault {
        name: "a revision is adopted without asking",
        scope: TIMES,
        tamper: |records, _, decision| {
            let Some(Key::Head(entity)) =
                decision.writes.iter().map(|(key, _)| key).find(|key| matches!(key, Key::Head(_)))
            else {
                return;
            };
            if let Ok(Some(Record::Machine(machine))) = records.get(&Key::Machine(entity.machine.clone()))
                && let Some(head) = head_of(decision)
            {
                head.revision = machine.active;
            }
        },
    },
];

#[test]
fn every_fault_is_found_in_as_few_steps_as_it_takes() {
    let mut stories = String::new();
    for Fault { name, scope, tamper } in &FAULTS {
        let mut start = (scope.start)();
        start.world.tamper = Some(*tamper);
        let seen = search(&start, scope.acts, scope.depth);
        let violation = seen.violation.unwrap_or_else(|| panic!("{name}: not found"));
        let story = story(&start, scope.acts, &violation);
        let _ = writeln!(stories, "{name}, in {}: found after {} steps\n{story}\n", scope.name, violation.path.len());
    }
    expect_file!["../golden/faults.txt"].assert_eq(&stories);
}

/// Not a fault, and not found: the wrapper itself breaks nothing.
#[test]
fn a_wrapper_that_changes_nothing_finds_nothing() {
    let mut start = (RETRIES.start)();
    start.world.tamper = Some(|_: &Records, _: &Command, _: &mut Decision| ());
    assert!(search(&start, RETRIES.acts, 3).violation.is_none());
}
