//! Tables and peers are named where a step can use them.

use crate::draft::Draft;
use crate::log::Log;
use crate::problem::Code;

pub(super) fn check(draft: &Draft<'_>, log: &mut Log<'_>) {
    for peer in draft.peers.iter().filter(|peer| Some(&peer.value) == draft.machine.as_ref()) {
        let message = format!("`{}` is no peer of its own: its steps may put conditions on its entities", peer.value);
        log.add(Code::UnusedKey, &peer.at, message, "take it out");
    }
    // Steps alone use tables and put conditions. Which ones is not written here.
    if draft.states.is_empty() || draft.states.iter().any(|state| state.written("step").is_some()) {
        return;
    }
    let tables = draft.tables.iter().map(|table| (&table.at, format!("the table `{}`", table.value)));
    let peers = draft.peers.iter().map(|peer| (&peer.at, format!("the peer `{}`", peer.value)));
    for (at, what) in tables.chain(peers) {
        let message = format!("nothing uses {what}: no state has a step");
        log.add(Code::UnusedKey, at, message, "give a working state a step, or take it out");
    }
}
