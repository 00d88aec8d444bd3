//! States as a graph: every target exists, every state can be reached, and from every state there is a
//! way to rest.

use crate::draft::{Draft, StateDraft};
use crate::log::{Log, Spot, suggest};
use crate::problem::Code;
use interlock_kernel::ids::Name;
use interlock_kernel::machine::StateKind;
use std::collections::BTreeSet;

pub(super) fn check(draft: &Draft<'_>, log: &mut Log<'_>) {
    let mut whole = draft.unread.is_empty() && !draft.states.iter().any(StateDraft::half_read);
    for target in draft.states.iter().flat_map(StateDraft::targets) {
        whole &= exists(draft, target, log);
    }
    if let Some(initial) = &draft.initial {
        whole &= exists(draft, initial, log);
        if let Some(state) = state(draft, &initial.value).filter(|state| state.kind != StateKind::Rest) {
            let message = format!("`initial` is `{}`, which is not a rest state", state.name.value);
            log.add(
                Code::InitialNotRest,
                &initial.at,
                message,
                "name a state with kind = \"rest\"; a first event may leave it at once",
            );
        }
    }
    for state in draft.states.iter().filter(|state| state.kind == StateKind::Working && !state.half_read()) {
        way_out(state, log);
    }
    // With a target misspelt or unread, what it should have reached would be reported too.
    if whole {
        unreachable(draft, log);
        never_rests(draft, log);
    }
}

fn state<'d>(draft: &'d Draft<'_>, name: &Name) -> Option<&'d StateDraft> {
    draft.states.iter().find(|state| state.name.value == *name)
}

fn exists(draft: &Draft<'_>, target: &Spot<Name>, log: &mut Log<'_>) -> bool {
    let name = target.value.as_str();
    if draft.unread.contains(&name) || draft.states.is_empty() {
        return false;
    }
    let known = state(draft, &target.value).is_some();
    if !known {
        let remedy = suggest(name, draft.states.iter().map(|state| state.name.value.as_str()), "");
        log.add(Code::UnknownState, &target.at, format!("there is no state `{name}`"), remedy);
    }
    known
}

/// Something leads to another state: a move, or a failure path.
fn way_out(state: &StateDraft, log: &mut Log<'_>) {
    if state.targets().all(|to| to.value == state.name.value) {
        let remedy = "let a step, an event or a timer enter another state, or say where a failure goes";
        log.add(Code::NoWayOut, &state.name.at, format!("nothing leads out of `{}`", state.name.value), remedy);
    }
}

fn unreachable(draft: &Draft<'_>, log: &mut Log<'_>) {
    let Some(initial) = &draft.initial else { return };
    let mut reached = BTreeSet::from([&initial.value]);
    let mut next = vec![&initial.value];
    while let Some(name) = next.pop() {
        let targets = state(draft, name).into_iter().flat_map(StateDraft::targets);
        next.extend(targets.map(|to| &to.value).filter(|to| reached.insert(to)));
    }
    for state in draft.states.iter().filter(|state| !reached.contains(&state.name.value)) {
        log.add(
            Code::UnreachableState,
            &state.name.at,
            format!("no way leads from `{}` to `{}`", initial.value, state.name.value),
            "enter it from another state, or take it out; keep it if entities of an older revision are still in it",
        );
    }
}

fn never_rests(draft: &Draft<'_>, log: &mut Log<'_>) {
    let mut rests: BTreeSet<&Name> =
        draft.states.iter().filter(|state| state.kind != StateKind::Working).map(|state| &state.name.value).collect();
    loop {
        let before = rests.len();
        for state in &draft.states {
            if state.targets().any(|to| rests.contains(&to.value)) {
                rests.insert(&state.name.value);
            }
        }
        if rests.len() == before {
            break;
        }
    }
    for state in draft.states.iter().filter(|state| !rests.contains(&state.name.value)) {
        // One without any way out is reported for that.
        if state.targets().any(|to| to.value != state.name.value) {
            let message = format!(
                "from `{}` no rest or final state can be reached: the lock is never released",
                state.name.value
            );
            log.add(
                Code::NeverRests,
                &state.name.at,
                message,
                "let one of the states that follow enter a rest or final state",
            );
        }
    }
}
