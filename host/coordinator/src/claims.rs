//! What executions have claimed and not settled: from a claimed row one comes to its execution, and from an execution to
//! its rows.

use crate::codec;
use crate::core::Core;
use crate::read::look;
use crate::txn::TxnView;
use interlock_kernel::ids::{EntityId, ExecutionId, RowKey, TableName};
use interlock_kernel::record::{Claimant, Key, Record};
use interlock_kernel::time::{StoreTime, WallTime};
use interlock_kernel::view::{Stop, View};
use interlock_store::{Span, StoreError};
use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows that are shown.
const SHOWN_MAX: usize = 20;

/// Rows that are counted, of each kind of table: those of one execution are seldom more.
const COUNTED_MAX: usize = 5_000;

/// Rows that are claimed, the newest execution first, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimedRows {
    /// The first of them, by execution, table and key.
    pub rows: Vec<ClaimedRow>,
    /// So many more, counted up to 10,000.
    pub more: usize,
}

/// A row that an execution has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedRow {
    /// Whose claim it is.
    pub by: ExecutionId,
    /// Its table.
    pub table: TableName,
    /// Its key.
    pub key: RowKey,
    /// Since when.
    pub since: WallTime,
}

/// What executions of an entity have claimed and not settled, or one of them.
pub(crate) async fn of(
    core: &Arc<Core>,
    entity: EntityId,
    execution: Option<(u64, u64)>,
) -> Result<ClaimedRows, StoreError> {
    look(core, move |view, stamp| {
        let mut all = Vec::new();
        for (from, to) in codec::rows_claimed(&entity, execution) {
            // Backwards: if there are more than are counted, it is the old ones that are left out.
            view.walk(Span::between(&from, &to).back(), COUNTED_MAX, &mut |key, _| {
                if let Key::RowHeld(of, i, n, table, row) | Key::RowKept(of, i, n, table, row) = key {
                    all.push((ExecutionId { entity: of, incarnation: i, ordinal: n }, table, row));
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        all.sort_by_cached_key(|(by, table, key)| (Reverse((by.incarnation, by.ordinal)), table.clone(), key.clone()));
        let mut found = ClaimedRows::default();
        let mut rest = all.into_iter();
        while found.rows.len() < SHOWN_MAX
            && let Some((by, table, key)) = rest.next()
        {
            let since = since(view, &by, &table, &key, StoreTime(stamp.store_ms))?;
            found.rows.extend(since.map(|since| ClaimedRow { by, table, key, since }));
        }
        found.more = rest.len();
        Ok(found)
    })
    .await
}

/// Since when an execution has a row; none if its time is over.
fn since(
    view: &TxnView<'_>,
    by: &ExecutionId,
    table: &TableName,
    key: &RowKey,
    now: StoreTime,
) -> Result<Option<WallTime>, Stop> {
    let Some(Record::Row(row)) = view.get(&Key::Row(table.clone(), key.clone()))? else { return Ok(None) };
    let theirs = row.claim.as_ref().filter(|claim| claim.by == Claimant::Execution(by.clone()));
    Ok(theirs.filter(|_| row.is_there(now)).map(|claim| claim.since))
}
