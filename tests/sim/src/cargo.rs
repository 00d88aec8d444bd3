//! What steps carry: where a good one goes, what its move sets, and what it stages on its handle.

use interlock_conformance::Random;
use interlock_kernel::command::{Stage, StagedDue, StagedEffect, StagedTimer};
use interlock_kernel::doc::Doc;
use interlock_kernel::time::WallTime;
use interlock_kernel::value::{Mutation, Operation, Value};
use interlock_kernel::view::Start;
use serde_json::json;
use std::collections::BTreeMap;

/// Where a good step goes from a state.
pub(crate) fn target(start: &Start) -> &'static str {
    match start.state.as_str() {
        "s1" => "s2",
        "s2" => "s3",
        "verifying" => "ready",
        "serving" => "open",
        "lifting" => "told",
        "writing" => "posting",
        "planning" if start.claim.execution.entity.machine.as_str() == "bell" => "waiting",
        "planning" => "provisioning",
        _ => "idle",
    }
}

/// What a move into a state sets besides.
pub(crate) fn promises(to: &str) -> Vec<Mutation> {
    let from = |source: &str| match source.parse() {
        Ok(source) => Value::From(source),
        Err(why) => unreachable!("{why}"),
    };
    match to {
        "ready" => vec![set("data.size", from("data.target")), set("outputs.size", from("data.target"))],
        _ => Vec::new(),
    }
}

/// What a step stages for a save (no target) or a move: requests that carry its mark, and timers. What and how
/// many hangs on the version alone, so that a host that dies on the way changes nothing of it.
pub(crate) fn stage(start: &Start, to: Option<&str>, mark: u64, seed: u64) -> Stage {
    let random = &mut Random::new(seed ^ start.claim.read.get().wrapping_mul(0x9e37_79b9));
    let names: &[&str] = match (start.state.as_str(), to) {
        ("lifting", Some("told")) => &["tower"],
        ("stowing", Some("idle")) if random.below(2) == 0 => &["tower"],
        ("writing", None) => &["note"],
        ("writing", Some("posting")) => match random.below(3) {
            0 => &["letter", "note"],
            1 => &["note", "letter", "note"],
            _ => &["letter"],
        },
        _ => &[],
    };
    let effects = names.iter().zip(0..).map(|(target, nth)| request(target, mark, nth)).collect();
    let timers = if to == Some("waiting") { timers(random) } else { Vec::new() };
    Stage { timers, effects, ..Stage::default() }
}

/// A request that carries the mark of the write that asks for it.
pub(crate) fn request(target: &str, mark: u64, nth: u64) -> StagedEffect {
    let place = if target == "tower" { "ship" } else { "box" };
    StagedEffect {
        target: name(target),
        fill: BTreeMap::from([(place.to_owned(), format!("n{}", mark % 7))]),
        headers: Vec::new(),
        body: Some(Doc::new(json!({ "mark": mark, "nth": nth }))),
    }
}

/// The mark of the write that asked for a request.
pub(crate) fn mark_of(body: Option<&Doc>) -> Option<u64> {
    body?.value().get("mark")?.as_u64()
}

fn timers(random: &mut Random) -> Vec<StagedTimer> {
    let due = |random: &mut Random| match random.below(8) {
        0 => StagedDue::At(WallTime(1)),
        1 => StagedDue::Cancelled,
        _ => StagedDue::After(500 + random.below(20_000)),
    };
    ["wake", "nudge"].into_iter().map(|timer| StagedTimer { name: name(timer), due: due(random) }).collect()
}

fn name(text: &str) -> interlock_kernel::ids::Name {
    text.parse().unwrap_or_else(|_| unreachable!("{text} is a name"))
}

pub(crate) fn set(field: &str, value: Value) -> Mutation {
    change(field, Operation::Set, value)
}

pub(crate) fn increment(field: &str, by: impl Into<serde_json::Value>) -> Mutation {
    change(field, Operation::Increment, Value::Json(Doc::new(by.into())))
}

fn change(field: &str, operation: Operation, value: Value) -> Mutation {
    match field.parse() {
        Ok(field) => Mutation { field, operation, value },
        Err(why) => unreachable!("{why}"),
    }
}
