//! Targets undo each other by names that exist, and what is given up reaches somebody.

use super::lease::may_name;
use crate::draft::{Draft, StateDraft, TargetDraft};
use crate::log::{Log, Spot, suggest};
use crate::problem::Code;
use interlock_kernel::ids::Name;
use interlock_kernel::machine::{EFFECT_DONE, EFFECT_FAILED, OnLate, StateKind};

pub(super) fn check(draft: &Draft<'_>, log: &mut Log<'_>) {
    for target in &draft.targets {
        undone(draft, target, log);
        late(target, log);
        fence(draft, target, log);
    }
    results(draft, log);
    for state in &draft.states {
        waits_for_success(state, log);
    }
}

fn undone(draft: &Draft<'_>, target: &TargetDraft, log: &mut Log<'_>) {
    let (OnLate::Compensate(undo), Some(at)) = (&target.target.on_late, &target.compensates) else { return };
    let names = || draft.targets.iter().map(|target| target.name.value.as_str());
    if names().any(|known| known == undo.as_str()) || draft.unread.contains(&undo.as_str()) {
        return;
    }
    let remedy = suggest(undo.as_str(), names(), "");
    let remedy = if remedy.starts_with("did") { remedy } else { format!("declare it: [targets.{undo}]") };
    let message = format!("`{}` is undone by `{undo}`, which is not declared", target.name.value);
    log.add(Code::UnknownTarget, at, message, remedy);
}

fn late(target: &TargetDraft, log: &mut Log<'_>) {
    let safe = matches!(target.target.method.as_str(), "GET" | "HEAD");
    // Whoever wrote that it is put on record knows.
    if target.target.on_late == OnLate::Record && target.late_at.is_none() && !safe {
        let message = format!(
            "a late success of `{}` is only put on record, and it may have changed something",
            target.name.value
        );
        let remedy = "say what it is used for: on_late = \"record\", \"event\" or { compensate = \"undo\" }";
        log.add(Code::LateEffect, &target.name.at, message, remedy);
    }
}

/// Nobody could hold a fence that is not granted: every effect would be refused.
fn fence(draft: &Draft<'_>, target: &TargetDraft, log: &mut Log<'_>) {
    if let (Some(value), Some(at)) = (&target.target.fence, &target.fence_at) {
        may_name(draft, &Spot { value: value.clone(), at: at.clone() }, log);
    }
}

fn results(draft: &Draft<'_>, log: &mut Log<'_>) {
    let Some(first) = draft.targets.first() else { return };
    let taken = |event: &Name| draft.states.iter().any(|state| state.on.iter().any(|(name, _)| name.value == *event));
    if !taken(&EFFECT_FAILED) {
        let message = "no state takes the event `effect-failed`: an effect that is given up parks its entity";
        let remedy = "take it where you wait for an effect, [states.x.on.effect-failed], or leave it to an operator";
        log.add(Code::UnusedEvent, &first.name.at, message, remedy);
    }
    if !taken(&EFFECT_DONE) {
        let message = "no state takes the event `effect-done`: results are only put on record";
        let remedy = "take it where you wait for an effect: [states.x.on.effect-done]";
        log.add(Code::UnusedEvent, &first.name.at, message, remedy);
    }
}

/// A state without step or bound that a success alone leaves.
fn waits_for_success(state: &StateDraft, log: &mut Log<'_>) {
    let bounded = state.written("deadline").is_some() || state.after.iter().any(|timer| timer.then.has_to);
    if state.kind != StateKind::Working || state.written("step").is_some() || bounded {
        return;
    }
    let mut leaving = state.on.iter().filter(|(_, moves)| moves.iter().any(|one| one.has_to)).map(|(name, _)| name);
    if let (Some(only), None) = (leaving.next(), leaving.next())
        && only.value == *EFFECT_DONE
    {
        let name = &state.name.value;
        let message = format!("only `effect-done` leaves `{name}`: an effect that is not done leaves its entity there");
        let remedy = format!("take [states.{name}.on.effect-failed], or bound the wait: deadline = \"1d\"");
        log.add(Code::EffectWait, &only.at, message, remedy);
    }
}
