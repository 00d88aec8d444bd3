//! Every state has what its kind needs and nothing it cannot have.

use crate::draft::{Draft, StateDraft};
use crate::log::Log;
use crate::problem::Code;
use interlock_kernel::machine::StateKind;
use interlock_kernel::time;

pub(super) fn check(draft: &Draft<'_>, log: &mut Log<'_>) {
    for state in &draft.states {
        kind(state, log);
        moves(state, log);
        if state.kind == StateKind::Working {
            working(state, log);
            times(state, log);
        } else if state.kind == StateKind::Rest && state.written("on").is_none() && state.written("after").is_none() {
            let message =
                format!("the rest state `{}` takes no event: an entity stays in it for good", state.name.value);
            log.add(
                Code::RestsForGood,
                &state.name.at,
                message,
                "give it events, [states.x.on.event], or make it final",
            );
        }
    }
    let step = draft.states.iter().find_map(|state| state.step.as_ref());
    match (step, &draft.component) {
        (Some(step), None) if !draft.has_component => {
            let remedy = "name the file that has the steps, at the top: component = \"step.wasm\"";
            log.add(Code::NoComponent, &step.at, format!("no component runs the step `{}`", step.value), remedy);
        }
        (None, Some(component)) => {
            log.add(
                Code::UnusedKey,
                &component.at,
                "no state has a step: the component never runs",
                "give a working state a step, or take `component` out",
            );
        }
        _ => {}
    }
}

fn kind(state: &StateDraft, log: &mut Log<'_>) {
    let (kind, fits): (&str, &[&str]) = match state.kind {
        StateKind::Rest => ("rest", &["kind", "on", "after"]),
        StateKind::Succeeded | StateKind::Failed => ("final", &["kind", "outcome"]),
        StateKind::Working => ("working", &[]),
    };
    for key in &state.written {
        let wrong =
            if state.kind == StateKind::Working { key.value == "outcome" } else { !fits.contains(&key.value.as_str()) };
        // A key no state has was reported as unknown.
        if !wrong || !crate::keys::STATE.names.contains(&key.value.as_str()) {
            continue;
        }
        let remedy = match (state.kind, key.value.as_str()) {
            (StateKind::Working, _) => "take it out, or make the state final: kind = \"final\"".to_owned(),
            (StateKind::Rest, "step") => "give the step a state of its own and enter that by an event".to_owned(),
            (StateKind::Rest, "wait") => "take it out: a rest state may wait for ever anyway".to_owned(),
            (StateKind::Rest, "to") => "take it out: a rest state is left by events, [states.x.on.event]".to_owned(),
            (StateKind::Rest, _) => "take it out, or take `kind` out: then it is a working state".to_owned(),
            _ => "take it out: nothing happens in a final state".to_owned(),
        };
        log.add(
            Code::WrongKind,
            &key.at,
            format!("the {kind} state `{}` cannot have `{}`", state.name.value, key.value),
            remedy,
        );
    }
}

fn moves(state: &StateDraft, log: &mut Log<'_>) {
    for (index, one) in state.to.iter().enumerate() {
        let same = |other: &&crate::draft::MoveDraft| {
            other.to.as_ref().map(|to| &to.value) == one.to.as_ref().map(|to| &to.value)
        };
        if let Some(to) = one.to.as_ref().filter(|_| state.to.iter().take(index).any(|other| same(&other))) {
            let message = format!("`{}` has two transitions to `{}`", state.name.value, to.value);
            log.add(Code::DuplicateMove, &to.at, message, "keep one; put both guards into it with `any`");
        }
    }
    for (index, timer) in state.after.iter().enumerate() {
        if state.after.iter().take(index).any(|other| other.name.value == timer.name.value) {
            let message = format!("`{}` has two timers named `{}`", state.name.value, timer.name.value);
            log.add(Code::DuplicateTimer, &timer.name.at, message, "give each a name of its own: name = \"remind\"");
        }
    }
    let events = state.on.iter().flat_map(|(_, moves)| moves);
    for one in events.chain(state.after.iter().map(|timer| &timer.then)) {
        if !one.has_to && !one.has_set {
            let message = format!("a move of `{}` neither enters a state nor sets a field", state.name.value);
            log.add(Code::EmptyMove, &one.at, message, "give it `to`, `set` or both");
        }
    }
}

/// Keys that only say something about a step's attempts.
const OF_A_STEP: [&str; 4] = ["retry", "idle", "total", "on_permanent"];

fn working(state: &StateDraft, log: &mut Log<'_>) {
    let name = &state.name.value;
    match (state.written("step"), state.written("to")) {
        (Some(step), None) => {
            log.add(
                Code::StepWithoutTo,
                step,
                format!("the step of `{name}` may enter no state"),
                "name the states it may enter: to = [\"next\"]",
            );
        }
        (None, Some(to)) => {
            let remedy = "add the step that asks for them, or use `on` and `after`";
            log.add(
                Code::ToWithoutStep,
                to,
                format!("`{name}` has no step: nothing asks for these transitions"),
                remedy,
            );
        }
        _ => {}
    }
    let unread = state.written("after").is_some() && state.after.is_empty();
    let timer = unread || state.after.iter().any(|timer| timer.then.has_to);
    if state.written("deadline").is_none() && state.written("wait").is_none() && !timer {
        let remedy = "say how long it may last, deadline = \"15m\", add a timer, or say wait = \"forever\"";
        log.add(Code::NoDeadline, &state.name.at, format!("nothing bounds how long `{name}` may last"), remedy);
    }
    let mut unused = |key: &str, why: &str| {
        if let Some(at) = state.written(key) {
            log.add(Code::UnusedKey, at, format!("`{key}` of `{name}` has no effect: {why}"), "take it out");
        }
    };
    if state.written("step").is_none() {
        for key in OF_A_STEP {
            unused(key, "there is no step");
        }
        if state.written("deadline").is_none() {
            unused("on_failure", "there is neither step nor deadline");
            unused("on_exhausted", "there is neither step nor deadline");
        }
    }
    if state.written("on_permanent").is_some() && state.written("on_exhausted").is_some() {
        unused("on_failure", "`on_permanent` and `on_exhausted` say all");
    }
}

fn times(state: &StateDraft, log: &mut Log<'_>) {
    let total_ms = state.total_ms();
    let total = time::Span(total_ms);
    if let Some(idle) = state
        .idle
        .as_ref()
        .filter(|idle| idle.value > total_ms && (state.total.is_some() || state.written("total").is_none()))
    {
        let given = if state.total.is_some() { "" } else { ", the default" };
        log.add(
            Code::IdleOverTotal,
            &idle.at,
            format!(
                "an attempt in `{}` may be idle for {} and last {total}{given}",
                state.name.value,
                time::Span(idle.value)
            ),
            "make `idle` shorter or `total` longer",
        )
        .expected(format!("at most {total}"))
        .got(time::Span(idle.value).to_string());
    }
    // Against the default it says nothing: a short deadline is a bound like any other.
    if let (Some(deadline), Some(total)) = (&state.deadline, &state.total)
        && deadline.value < total.value
    {
        log.add(
            Code::DeadlineUnderTotal,
            &deadline.at,
            format!(
                "the visit of `{}` ends after {}, before one attempt of {} may",
                state.name.value,
                time::Span(deadline.value),
                time::Span(total.value)
            ),
            "make `deadline` longer or `total` shorter",
        );
    }
}
