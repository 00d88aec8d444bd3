//! A state: its step, moves, deadlines, retries and failure paths.

use super::path::Paths;
use super::timer::{self, Calendar};
use super::{any_duration, choice, field, lease};
use crate::draft::{FailureDraft, GuardDraft, MoveDraft, StateDraft};
use crate::keys;
use crate::log::{Log, Spot, excerpt};
use crate::node::{Node, Table, name};
use crate::problem::Code;
use interlock_kernel::ids::Name;
use interlock_kernel::machine::{KILLED, Retry, StateKind};

/// Attempts in all: one is no retry; more than this is a loop nobody watches.
const ATTEMPTS_MAX: u64 = 1_000_000;
/// The most a wait may grow from one attempt to the next.
const FACTOR_MAX: f64 = 1_000.0;

/// What may stand in `kind`; `final` asks for an outcome too.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Rest,
    Working,
    Final,
}

pub(super) fn read(name: Spot<Name>, table: &Table<'_>, calendars: &[Calendar], log: &mut Log<'_>) -> StateDraft {
    let mut duration = |key: &str| table.get(key).and_then(|node| node.duration(any_duration(), log));
    let (deadline, idle, total) = (duration("deadline"), duration("idle"), duration("total"));
    StateDraft {
        name,
        kind: kind(table, log),
        written: table.written().into_iter().map(|key| Spot { value: key.value.to_owned(), at: key.at }).collect(),
        step: table.get("step").and_then(|node| node.name(log)),
        needs: table.get("needs").map(|node| lease::names(&node, log)).unwrap_or_default(),
        to: table.get("to").map(|node| transitions(&node, log)).unwrap_or_default(),
        on: table.get("on").map(|node| events(&node, log)).unwrap_or_default(),
        after: table.get("after").map(|node| timer::read(&node, calendars, log)).unwrap_or_default(),
        deadline,
        waits_forever: table.get("wait").is_some_and(|node| node.choice(&[("forever", ())], log).is_some()),
        idle,
        total,
        retry: table.get("retry").map(|node| retry(&node, log)).unwrap_or_default(),
        on_failure: failure(table, "on_failure", log),
        on_permanent: failure(table, "on_permanent", log),
        on_exhausted: failure(table, "on_exhausted", log),
    }
}

fn kind(table: &Table<'_>, log: &mut Log<'_>) -> StateKind {
    let kind = choice(table, "kind", &[("rest", Kind::Rest), ("final", Kind::Final), ("working", Kind::Working)], log);
    let outcomes = [("succeeded", StateKind::Succeeded), ("failed", StateKind::Failed)];
    match kind {
        Some(Kind::Final) => {
            let outcome = table.need("outcome", "say how it ended: outcome = \"succeeded\" or \"failed\"", log);
            outcome.and_then(|node| node.choice(&outcomes, log)).map_or(StateKind::Failed, |found| found.value)
        }
        Some(Kind::Rest) => StateKind::Rest,
        Some(Kind::Working) | None => StateKind::Working,
    }
}

/// A target, which may not be the host's own final state.
pub(super) fn target(node: &Node<'_>, log: &mut Log<'_>) -> Option<Spot<Name>> {
    let found: Spot<Name> = node.name(log)?;
    if found.value == *KILLED {
        let remedy = "use a final state of your own with outcome = \"failed\"; only an operator's kill enters `killed`";
        log.add(Code::ReservedName, &found.at, "`killed` belongs to the host", remedy);
        return None;
    }
    Some(found)
}

fn transitions(node: &Node<'_>, log: &mut Log<'_>) -> Vec<MoveDraft> {
    let Some(items) = node.as_items() else {
        node.wrong("an array", "write `to = [\"next\"]`, or `to = [{ to = \"next\", guard = ... }]`", log);
        return Vec::new();
    };
    if items.is_empty() {
        log.add(
            Code::BadValue,
            &node.at(),
            format!("`{}` is empty", node.path),
            "name the states the step may enter: to = [\"next\"]",
        );
    }
    items
        .iter()
        .filter_map(|item| {
            if item.as_text().is_some() {
                let to = target(item, log);
                return Some(MoveDraft {
                    at: item.at(),
                    to,
                    has_to: true,
                    guard: GuardDraft::None,
                    requires: Vec::new(),
                    set: Vec::new(),
                    has_set: false,
                });
            }
            let found = allowed(item, &keys::TRANSITION, log)?;
            if !found.has_to {
                log.add(
                    Code::MissingKey,
                    &found.at,
                    format!("`{}` has no `to`", item.path),
                    "name the state it enters",
                );
            }
            Some(found)
        })
        .collect()
}

fn events(node: &Node<'_>, log: &mut Log<'_>) -> Vec<(Spot<Name>, Vec<MoveDraft>)> {
    let mut found = Vec::new();
    for (key, node) in node.entries(log) {
        let moves = node.one_or_more().iter().filter_map(|item| allowed(item, &keys::MOVE, log)).collect();
        if let Some(name) = name::<Name>(&key, log) {
            found.push((name, moves));
        }
    }
    found
}

fn allowed(node: &Node<'_>, keys: &keys::Keys, log: &mut Log<'_>) -> Option<MoveDraft> {
    let table = node.table(keys, log)?;
    let (to, guard, set) = (table.get("to"), table.get("guard"), table.get("set"));
    let requires = if keys.names.contains(&"requires") { table.get("requires") } else { None };
    Some(MoveDraft {
        at: node.key.clone(),
        has_to: to.is_some(),
        to: to.and_then(|node| target(&node, log)),
        guard: guard.map_or(GuardDraft::None, |node| field::guard(Paths::Documents, &node, log)),
        requires: requires.map(|node| lease::names(&node, log)).unwrap_or_default(),
        has_set: set.is_some(),
        set: set.map(|node| field::set(Paths::Documents, &node, log)).unwrap_or_default(),
    })
}

pub(super) fn retry(node: &Node<'_>, log: &mut Log<'_>) -> Retry {
    let default = Retry::default();
    let Some(table) = node.table(&keys::RETRY, log) else { return default };
    let attempts = table.get("attempts").and_then(|node| node.integer(1..=ATTEMPTS_MAX, log));
    let first = table.get("first").and_then(|node| node.duration(any_duration(), log));
    let factor = table.get("factor").and_then(|node| node.number(1.0..=FACTOR_MAX, log));
    let max = table.get("max").and_then(|node| node.duration(any_duration(), log));
    let jitter = table.get("jitter").and_then(|node| node.number(0.0..=1.0, log));
    if let (Some(first), Some(max)) = (&first, &max)
        && first.value > max.value
    {
        let message = format!("`{}.first` is longer than `max`", table.path);
        log.add(Code::OutOfRange, &first.at, message, "make `first` shorter or `max` longer");
    }
    let first_ms = first.map_or(default.first_ms, |first| first.value);
    Retry {
        attempts: attempts.and_then(|count| u32::try_from(count.value).ok()).unwrap_or(default.attempts),
        first_ms,
        factor: factor.map_or(default.factor, |factor| factor.value),
        // A long `first` without `max` lengthens the default too.
        max_ms: max.map_or(default.max_ms.max(first_ms), |max| max.value),
        jitter: jitter.map_or(default.jitter, |jitter| jitter.value),
    }
}

fn failure(table: &Table<'_>, key: &str, log: &mut Log<'_>) -> Option<FailureDraft> {
    let node = table.get(key)?;
    match node.as_text() {
        Some("park") => return Some(FailureDraft::Park),
        Some(other) => {
            let message = format!("`{}` cannot be {:?}", node.path, excerpt(other));
            log.add(Code::BadChoice, &node.at(), message, "write \"park\", or { to = \"state\" } to enter a state")
                .got(excerpt(other));
            return None;
        }
        None if node.as_table().is_none() => {
            node.wrong("`park` or a table", "write \"park\", or { to = \"state\" } to enter a state", log);
            return None;
        }
        None => {}
    }
    let table = node.table(&keys::FAILURE, log)?;
    let to = table.need("to", "name the state it enters, or write \"park\" alone", log);
    Some(FailureDraft::To {
        to: to.and_then(|node| target(&node, log)),
        set: table.get("set").map(|node| field::set(Paths::Documents, &node, log)).unwrap_or_default(),
    })
}
