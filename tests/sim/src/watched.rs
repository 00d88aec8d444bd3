//! Somebody who watches everything, over every boot, from where they stopped: each entry once, in order.

use crate::finding::{Finding, Held, ensure};
use crate::model::Model;
use interlock_coordinator::Of;
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::Key;
use interlock_store::Position;
use std::collections::BTreeSet;

/// See the module.
#[derive(Default)]
pub(crate) struct Watched {
    position: Option<Position>,
    met: BTreeSet<(EntityId, u64, u64)>,
}

impl Watched {
    /// Where to go on from.
    pub(crate) fn position(&self) -> Position {
        self.position.unwrap_or(Position::START)
    }

    /// More entries.
    pub(crate) fn hear(&mut self, entries: Vec<interlock_coordinator::Watched>, model: &Model) -> Held {
        let theorem = "a_watcher_sees_each_entry_once_in_order";
        for one in entries {
            let Of::Entity { entity, incarnation, entry } = one.of else { continue };
            let place = (entity.clone(), incarnation, entry.number);
            let name = format!("{entity}@{incarnation} entry {}", entry.number);
            let later = self.position.is_none_or(|position| one.position > position);
            ensure(later, theorem, &name, || format!("{} after {:?}", one.position, self.position))?;
            let same = model.log.get(&place) == Some(&*entry);
            ensure(same, theorem, &name, || format!("expected {:?}, got {entry:?}", model.log.get(&place)))?;
            ensure(self.met.insert(place), theorem, &name, || "twice".to_owned())?;
            self.position = Some(one.position);
        }
        Ok(())
    }

    /// Nothing was missed that is still on record.
    pub(crate) fn has_seen_all(&self, model: &Model) -> Held {
        let stored = |(entity, incarnation, number): &(EntityId, u64, u64)| {
            let incarnation = interlock_kernel::Incarnation::stored(*incarnation);
            model.records.contains_key(&Key::History(entity.clone(), incarnation, *number))
        };
        match model.log.keys().find(|place| stored(place) && !self.met.contains(*place)) {
            Some(missed) => {
                Err(Finding::new("a_watcher_sees_each_entry_once_in_order", format!("{missed:?}"), "missed"))
            }
            None => Ok(()),
        }
    }
}
