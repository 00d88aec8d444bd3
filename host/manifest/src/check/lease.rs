//! Leases are granted before they are asked for, last as long as the step that has them may be idle, and
//! are not taken crosswise.

use super::field::Seen;
use crate::draft::{Draft, LeaseDraft, StateDraft};
use crate::log::{Log, Spot, suggest};
use crate::problem::Code;
use interlock_kernel::ids::Name;
use interlock_kernel::limits::LEASES_MAX;
use interlock_kernel::machine::StateKind;
use interlock_kernel::time;
use interlock_kernel::value::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(draft: &Draft<'_>, log: &mut Log<'_>) {
    for state in &draft.states {
        if let (StateKind::Working, None, Some(at)) = (state.kind, state.written("step"), state.written("needs")) {
            let message = format!("`{}` has no step: no attempt takes the leases it needs", state.name.value);
            log.add(Code::NeedsWithoutStep, at, message, "give the state a step, or take `needs` out");
        }
        for one in named(state) {
            may_name(draft, one, log);
        }
        idle(draft, state, log);
    }
    unused(draft, log);
    crosswise(draft, log);
}

/// What names a lease names one that is granted.
pub(super) fn may_name(draft: &Draft<'_>, one: &Spot<Value>, log: &mut Log<'_>) {
    match literal(&one.value) {
        Some(name) => granted(draft, name, one, log),
        None => is_a_name(draft, one, log),
    }
}

/// Every lease a state names.
fn named(state: &StateDraft) -> impl Iterator<Item = &Spot<Value>> {
    state.needs.iter().chain(state.to.iter().flat_map(|one| &one.requires))
}

fn literal(value: &Value) -> Option<&str> {
    match value {
        Value::Json(doc) => doc.value().as_str(),
        Value::From(_) => None,
    }
}

/// The terms of a name, as the kernel finds them.
fn terms<'d>(draft: &'d Draft<'_>, name: &str) -> Option<&'d LeaseDraft> {
    let exact = draft.leases.iter().find(|lease| lease.name.value == name);
    exact.or_else(|| {
        let covers =
            |lease: &&LeaseDraft| lease.name.value.strip_suffix('*').is_some_and(|text| name.starts_with(text));
        draft.leases.iter().filter(covers).max_by_key(|lease| lease.name.value.len())
    })
}

fn granted(draft: &Draft<'_>, name: &str, one: &Spot<Value>, log: &mut Log<'_>) {
    if terms(draft, name).is_some() {
        return;
    }
    let remedy = suggest(name, draft.leases.iter().map(|lease| lease.name.value.as_str()), "");
    let grant = || format!("grant it: [leases] {name:?} = {{ ttl = \"30s\" }}");
    let remedy = if remedy.starts_with("did") { remedy } else { grant() };
    log.add(Code::NotGranted, &one.at, format!("the lease `{name}` is not granted"), remedy);
}

/// The field of a name can hold one, and something is granted at all.
fn is_a_name(draft: &Draft<'_>, one: &Spot<Value>, log: &mut Log<'_>) {
    if draft.leases.is_empty() {
        let message = format!("{} names a lease, and none is granted", one.value);
        log.add(
            Code::NotGranted,
            &one.at,
            message,
            "grant what it may name: [leases] \"cluster-*\" = { ttl = \"30s\" }",
        );
    }
    let types = Seen { draft, event: None }.value(&one.value, &one.at, log);
    if let Some(types) = types.filter(|types| !types.has("string")) {
        let message = format!("{} is never the name of a lease", one.value);
        let remedy = "name a field with text, or correct the schema";
        log.add(Code::TypeMismatch, &one.at, message, remedy).expected("text").got(types.words());
    }
}

/// A step that may be idle for longer than its lease lasts loses it by doing what it may.
fn idle(draft: &Draft<'_>, state: &StateDraft, log: &mut Log<'_>) {
    let mut told = BTreeSet::new();
    for one in named(state) {
        let Some(lease) = literal(&one.value).and_then(|name| terms(draft, name)) else { continue };
        let (ttl, idle) = (lease.spec.ttl_ms, state.idle_ms());
        if ttl >= idle || !told.insert(&lease.name.value) {
            continue;
        }
        let (ttl, idle) = (time::Span(ttl), time::Span(idle));
        let message = format!(
            "a step in `{}` may be idle for {idle}, and after {ttl} without progress it loses the lease `{}` and its \
             attempt",
            state.name.value, lease.name.value
        );
        log.add(
            Code::LeaseUnderIdle,
            &one.at,
            message,
            format!("let `ttl` be at least {idle}, or `idle` at most {ttl}"),
        );
    }
}

/// Steps alone take leases. Which ones they ask for by themselves is not written here.
fn unused(draft: &Draft<'_>, log: &mut Log<'_>) {
    if draft.states.iter().any(|state| state.written("step").is_some()) {
        return;
    }
    for lease in &draft.leases {
        let message = format!("nothing takes the lease `{}`: no state has a step", lease.name.value);
        log.add(Code::UnusedKey, &lease.name.at, message, "give a working state a step, or take the lease out");
    }
}

/// A state waits for one lease while its execution has another, and a second state the other way round.
fn crosswise(draft: &Draft<'_>, log: &mut Log<'_>) {
    let waits = waits(draft);
    for (index, wait) in waits.iter().enumerate() {
        let crosses = |other: &&Wait<'_>| other.has == wait.wants && other.wants == wait.has;
        let Some(other) = waits.iter().skip(index + 1).find(crosses) else { continue };
        let (one, two) = (&wait.state.name, &other.state.name);
        let message = format!(
            "`{}` waits for the lease `{}` with `{}` in hand, `{}` the other way round: two executions may wait for \
             each other until a deadline ends it",
            one.value, wait.wants, wait.has, two.value
        );
        log.add(Code::HoldAndWait, &one.at, message, "need both in one state: it gets all of them or none");
    }
}

struct Wait<'d> {
    state: &'d StateDraft,
    has: &'d str,
    wants: &'d str,
}

/// Ways through the states that are looked at; a machine with more is not judged.
const WAYS_MAX: usize = 256;

/// Every state that waits, with a lease that its execution has by then and one it waits for. Leases end with the
/// execution; which ones a step takes and gives back by itself is not written here.
fn waits<'d>(draft: &'d Draft<'_>) -> Vec<Wait<'d>> {
    let states: BTreeMap<&Name, &StateDraft> = draft.states.iter().map(|state| (&state.name.value, state)).collect();
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    let mut next: Vec<(&Name, BTreeSet<&str>)> = states.keys().map(|name| (*name, BTreeSet::new())).collect();
    next.retain(|(name, _)| entered_from_rest(draft, name));
    while let Some((name, mut has)) = next.pop() {
        let Some(state) = states.get(name).filter(|state| state.kind == StateKind::Working) else { continue };
        // More than one execution can have, it never comes to.
        if has.len() > LEASES_MAX || !seen.insert((name, has.clone())) {
            continue;
        }
        if seen.len() > WAYS_MAX {
            return Vec::new();
        }
        let needs = state.needs.iter().filter_map(|one| literal(&one.value));
        let wanted: Vec<&str> = needs.filter(|name| !has.contains(name)).collect();
        found.extend(has.iter().flat_map(|has| wanted.iter().map(|wants| Wait { state, has, wants })));
        has.extend(wanted);
        next.extend(state.targets().map(|to| (&to.value, has.clone())));
    }
    found
}

/// An execution begins with this state, without a lease.
fn entered_from_rest(draft: &Draft<'_>, name: &Name) -> bool {
    let rests = draft.states.iter().filter(|state| state.kind == StateKind::Rest);
    rests.flat_map(StateDraft::targets).any(|to| to.value == *name)
}
