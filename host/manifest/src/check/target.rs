//! Targets undo each other by names that exist, and what is given up reaches somebody.

use crate::draft::Draft;
use crate::log::{Log, suggest};
use crate::problem::Code;
use interlock_kernel::machine::{EFFECT_DONE, EFFECT_FAILED, OnLate};

pub(super) fn check(draft: &Draft<'_>, log: &mut Log<'_>) {
    let names = || draft.targets.iter().map(|target| target.name.value.as_str());
    for target in &draft.targets {
        let name = target.name.value.as_str();
        if let (OnLate::Compensate(undo), Some(at)) = (&target.target.on_late, &target.compensates)
            && names().all(|known| known != undo.as_str())
        {
            let remedy = suggest(undo.as_str(), names(), "");
            let remedy = if remedy.starts_with("did") { remedy } else { format!("declare it: [targets.{undo}]") };
            log.add(Code::UnknownTarget, at, format!("`{name}` is undone by `{undo}`, which is not declared"), remedy);
        }
        let safe = matches!(target.target.method.as_str(), "GET" | "HEAD");
        if target.target.on_late == OnLate::Record && !safe {
            let message =
                format!("a late success of `{name}` is only put on record, and it may have changed something");
            let remedy = "say what it is used for: on_late = \"event\", or on_late = { compensate = \"undo\" }";
            log.add(Code::LateEffect, &target.name.at, message, remedy);
        }
    }
    let Some(first) = draft.targets.first() else { return };
    let taken =
        |event: &str| draft.states.iter().any(|state| state.on.iter().any(|(name, _)| name.value.as_str() == event));
    if !taken(EFFECT_FAILED.as_str()) {
        let message = "no state takes the event `effect-failed`: an effect that is given up parks its entity";
        let remedy = "take it where you wait for an effect, [states.x.on.effect-failed], or leave it to an operator";
        log.add(Code::UnusedEvent, &first.name.at, message, remedy);
    }
    if !taken(EFFECT_DONE.as_str()) {
        let message = "no state takes the event `effect-done`: results are only put on record";
        let remedy = "take it where you wait for an effect: [states.x.on.effect-done]";
        log.add(Code::UnusedEvent, &first.name.at, message, remedy);
    }
}
