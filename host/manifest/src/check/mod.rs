//! What must hold between the parts of a manifest. Every rule looks at the whole draft and reports all
//! it finds; none relies on another having passed.

mod event;
mod field;
mod graph;
mod schema;
mod state;

use crate::draft::{Draft, FailureDraft, MoveDraft, SetDraft, StateDraft};
use crate::log::{Log, Spot};
use interlock_kernel::ids::Name;

pub(crate) fn draft(draft: &Draft<'_>, log: &mut Log<'_>) {
    schema::check(draft, log);
    event::check(draft, log);
    state::check(draft, log);
    graph::check(draft, log);
    field::check(draft, log);
}

impl StateDraft {
    /// Every move in the order of the kinds: a step's, events', timers'.
    fn moves(&self) -> impl Iterator<Item = &MoveDraft> {
        let events = self.on.iter().flat_map(|(_, moves)| moves);
        self.to.iter().chain(events).chain(self.after.iter().map(|timer| &timer.then))
    }

    /// The failure paths that are written.
    fn failures(&self) -> impl Iterator<Item = (Option<&Spot<Name>>, &[SetDraft])> {
        [&self.on_failure, &self.on_permanent, &self.on_exhausted].into_iter().flatten().filter_map(|path| match path {
            FailureDraft::Park => None,
            FailureDraft::To { to, set } => Some((to.as_ref(), set.as_slice())),
        })
    }

    /// Every state that may follow, itself included.
    fn targets(&self) -> impl Iterator<Item = &Spot<Name>> {
        self.moves().filter_map(|step| step.to.as_ref()).chain(self.failures().filter_map(|(to, _)| to))
    }
}
