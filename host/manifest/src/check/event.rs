//! Events are declared, taken somewhere, and every move of one can be chosen.

use crate::draft::{Draft, GuardDraft};
use crate::log::{Log, suggest};
use crate::problem::Code;
use interlock_kernel::machine::HOST_EVENTS;

pub(super) fn check(draft: &Draft<'_>, log: &mut Log<'_>) {
    let declared = || draft.events.iter().map(|event| event.name.value.as_str());
    for state in &draft.states {
        for (event, moves) in &state.on {
            let name = event.value.as_str();
            if !HOST_EVENTS.contains(&event.value)
                && !draft.unread.contains(&name)
                && declared().all(|known| known != name)
            {
                let remedy =
                    suggest(name, declared().chain(HOST_EVENTS.iter().map(interlock_kernel::ids::Name::as_str)), "");
                let remedy = if remedy.starts_with("did") { remedy } else { format!("declare it: [events.{name}]") };
                log.add(
                    Code::UndeclaredEvent,
                    &event.at,
                    format!("`{}` takes the event `{name}`, which is not declared", state.name.value),
                    remedy,
                );
            }
            let free = moves.iter().position(|one| matches!(one.guard, GuardDraft::None));
            for shadowed in free.map(|free| moves.iter().skip(free + 1)).into_iter().flatten() {
                log.add(
                    Code::ShadowedMove,
                    &shadowed.at,
                    format!("`{name}` never takes this move: an earlier one has no guard"),
                    "put the move without guard last",
                );
            }
        }
    }
    for event in &draft.events {
        let taken = draft.states.iter().any(|state| state.on.iter().any(|(name, _)| name.value == event.name.value));
        if !taken {
            let name = &event.name.value;
            log.add(
                Code::UnusedEvent,
                &event.name.at,
                format!("no state takes the event `{name}`"),
                format!("take it in a state, [states.x.on.{name}], or take it out"),
            );
        }
    }
}
