//! Schedules as clients see them.

use crate::codec;
use crate::core::Core;
use crate::read::look;
use interlock_kernel::ids::ScheduleName;
use interlock_kernel::record::{Key, Record, ScheduleRecord};
use interlock_kernel::view::View;
use interlock_store::StoreError;
use std::sync::Arc;

/// Schedules of one page.
const PAGE_MAX: usize = 1_000;

/// All schedules in the order of their names, from behind one.
pub(crate) async fn list(
    core: &Arc<Core>,
    after: Option<ScheduleName>,
    limit: usize,
) -> Result<Vec<ScheduleRecord>, StoreError> {
    look(core, move |view, _| {
        let (mut from, to) = codec::schedules();
        if let Some(after) = after.clone() {
            from = codec::encode(&Key::Schedule(after));
            from.push(0);
        }
        let mut found = Vec::new();
        for key in view.keys(&from, &to, limit.min(PAGE_MAX))? {
            if let Some(Record::Schedule(record)) = view.get(&key)? {
                found.push(*record);
            }
        }
        Ok(found)
    })
    .await
}

/// One schedule.
pub(crate) async fn show(core: &Arc<Core>, name: ScheduleName) -> Result<Option<ScheduleRecord>, StoreError> {
    look(core, move |view, _| {
        Ok(match view.get(&Key::Schedule(name.clone()))? {
            Some(Record::Schedule(record)) => Some(*record),
            _ => None,
        })
    })
    .await
}
