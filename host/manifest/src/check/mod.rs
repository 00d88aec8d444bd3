//! What must hold between the parts of a manifest. Every rule looks at the whole draft and reports all
//! it finds; none relies on another having passed.

mod event;
pub(crate) mod field;
mod graph;
mod lease;
mod row;
pub(crate) mod schema;
mod state;
mod target;
mod timer;

use crate::draft::{Draft, FailureDraft, MoveDraft, SetDraft, StateDraft};
use crate::log::{Log, Span, Spot};
use interlock_kernel::ids::Name;
use interlock_kernel::time::WallTime;

pub(crate) fn draft(draft: &Draft<'_>, today: Option<WallTime>, log: &mut Log<'_>) {
    schema::check(draft, log);
    event::check(draft, log);
    state::check(draft, log);
    graph::check(draft, log);
    field::check(draft, log);
    timer::check(draft, today, log);
    target::check(draft, log);
    lease::check(draft, log);
    row::check(draft, log);
}

impl StateDraft {
    /// Where a key is written.
    fn written(&self, key: &str) -> Option<&Span> {
        self.written.iter().find(|written| written.value == key).map(|written| &written.at)
    }

    /// Whether some of its moves are written and could not be read: then nothing is known of where it
    /// may go.
    fn half_read(&self) -> bool {
        let paths = [
            ("on_failure", &self.on_failure),
            ("on_permanent", &self.on_permanent),
            ("on_exhausted", &self.on_exhausted),
        ];
        let lists = [("to", self.to.is_empty()), ("on", self.on.is_empty()), ("after", self.after.is_empty())];
        let moves = lists.into_iter().any(|(key, empty)| empty && self.written(key).is_some());
        let targets = self.moves().any(|one| one.has_to && one.to.is_none());
        let failures = paths.into_iter().any(|(key, path)| path.is_none() && self.written(key).is_some());
        moves || targets || failures || self.failures().any(|(to, _)| to.is_none())
    }

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
