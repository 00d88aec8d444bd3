//! Tables as clients see them, and what the host does to them on its own: indexes that are filled, claims that are
//! taken back.

use crate::codec;
use crate::core::Core;
use crate::error::SubmitError;
use crate::read::look;
use crate::txn;
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, ExecutionId, Principal, RowKey, TableName};
use interlock_kernel::record::{IndexStage, Key, Memo, Record, Row, RowEntry, TableHead, TableSpec};
use interlock_kernel::rows::{QueryAnswer, QueryAsk, Reader};
use interlock_kernel::view::{Claim, View};
use interlock_store::{Span, StoreError};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Entries shown with one table.
const ENTRIES_MAX: usize = 64;

/// Tables of one page.
const PAGE_MAX: usize = 1_000;

/// Claims of ended executions looked for at a time.
const PAGE: usize = 256;

/// After a failed read.
const RETRY_MS: u64 = 1_000;

/// A table, its record and the declaration in force.
#[derive(Clone, Debug)]
pub struct TableView {
    /// Its name.
    pub name: TableName,
    /// What changes while it is used.
    pub head: TableHead,
    /// The declaration.
    pub spec: Arc<TableSpec>,
    /// What became of its rows, newest first; only where one table is asked for.
    pub entries: Vec<RowEntry>,
}

/// All tables in the order of their names, from behind one.
pub(crate) async fn list(
    core: &Arc<Core>,
    after: Option<TableName>,
    limit: usize,
) -> Result<Vec<TableView>, StoreError> {
    look(core, move |view, _| {
        let (mut from, to) = codec::tables();
        if let Some(after) = &after {
            from = codec::behind_table(after);
        }
        let mut found = Vec::new();
        while found.len() < limit.min(PAGE_MAX) {
            let Some(Key::Table(name)) = view.keys(&from, &to, 1)?.pop() else { break };
            from = codec::behind_table(&name);
            found.extend(table_in(view, &name)?);
        }
        Ok(found)
    })
    .await
}

/// One table, with what became of its rows.
pub(crate) async fn show(core: &Arc<Core>, name: TableName) -> Result<Option<TableView>, StoreError> {
    look(core, move |view, _| {
        let Some(mut found) = table_in(view, &name)? else { return Ok(None) };
        let (from, to) = codec::row_entries(&name, found.head.last);
        view.walk(Span::between(&from, &to), ENTRIES_MAX, &mut |key, bytes| {
            if let Record::RowEntry(entry) = txn::TxnView::decode(&key, bytes)? {
                found.entries.push(*entry);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Some(found))
    })
    .await
}

fn table_in(view: &txn::TxnView<'_>, name: &TableName) -> Result<Option<TableView>, interlock_kernel::view::Stop> {
    let Some(Record::Table(head)) = view.get(&Key::Table(name.clone()))? else { return Ok(None) };
    let at = Key::TableSpec(name.clone(), head.revision);
    let Some(Record::TableSpec(spec)) = view.get(&at)? else {
        return Err(interlock_kernel::view::Stop::Corrupt(format!("{at:?}: not stored")));
    };
    Ok(Some(TableView { name: name.clone(), head: *head, spec, entries: Vec::new() }))
}

/// One row, as it is stored: for operators.
pub(crate) async fn row(core: &Arc<Core>, table: TableName, key: RowKey) -> Result<Option<Row>, StoreError> {
    look(core, move |view, stamp| {
        let now = interlock_kernel::time::StoreTime(stamp.store_ms);
        Ok(match view.get(&Key::Row(table.clone(), key.clone()))? {
            Some(Record::Row(row)) if row.is_there(now) => Some(*row),
            _ => None,
        })
    })
    .await
}

/// Rows as they are stored, by key, from behind one: for operators.
pub(crate) async fn rows(
    core: &Arc<Core>,
    table: TableName,
    after: Option<RowKey>,
    limit: usize,
) -> Result<Vec<(RowKey, Row)>, StoreError> {
    look(core, move |view, stamp| {
        let now = interlock_kernel::time::StoreTime(stamp.store_ms);
        let span = interlock_kernel::view::Span::Rows(table.clone(), after.clone());
        let found = view.scan(&span, limit.min(PAGE_MAX))?;
        let row = |(key, record)| match (key, record) {
            (Key::Row(_, key), Record::Row(row)) if row.is_there(now) => Some((key, *row)),
            _ => None,
        };
        Ok(found.into_iter().filter_map(row).collect())
    })
    .await
}

/// What is remembered for an entity's open visit: a step that asks again is answered from this.
pub(crate) async fn memos(core: &Arc<Core>, entity: EntityId) -> Result<Vec<(Digest, Memo)>, StoreError> {
    look(core, move |view, _| {
        let found = view
            .scan(&interlock_kernel::view::Span::Memos(entity.clone()), interlock_kernel::limits::MEMOS_MAX as usize)?;
        let memo = |(key, record)| match (key, record) {
            (Key::Memo(_, name), Record::Memo(memo)) => Some((name, *memo)),
            _ => None,
        };
        Ok(found.into_iter().filter_map(memo).collect())
    })
    .await
}

/// Who reads rows.
#[derive(Clone, Debug)]
pub(crate) enum By {
    /// A client, by what it calls itself.
    Client(String),
    /// A step.
    Step(Claim),
}

/// Rows by filter.
pub(crate) async fn query(core: &Arc<Core>, by: By, ask: QueryAsk) -> Result<QueryAnswer, SubmitError> {
    let shared = core.clone();
    let answer = look(core, move |view, stamp| {
        let now = txn::now(stamp, shared.session());
        let reader = match &by {
            By::Client(label) => Reader::Client(label),
            By::Step(claim) => Reader::Step(claim),
        };
        interlock_kernel::query(view, shared.book(), now, reader, &ask)
    });
    match answer.await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(rejection)) => {
            core.counters().refuse(rejection.code);
            Err(rejection.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes up what an earlier boot was in the middle of; again whenever a commit's fate is unknown.
pub(crate) async fn run(core: Arc<Core>) {
    loop {
        resume(&core).await;
        core.alarms().tables_changed.notified().await;
    }
}

/// Goes on with what a table's declaration asks for, until there is nothing left.
pub(crate) fn tend(core: &Arc<Core>, table: TableName) {
    if let Some(again) = core.tended().get_mut(&table) {
        *again = true; // a task is at it, and looks once more before it ends
        return;
    }
    core.tended().insert(table.clone(), false);
    let shared = core.clone();
    core.runtime().spawn(async move {
        loop {
            let verb = Verb::Tend(table.clone());
            match shared.insist(Command { by: Principal::host(), verb }).await {
                Some(Ok(Outcome::Tended { more: true, .. })) => continue,
                Some(Err(error)) => tracing::warn!(%table, %error, "a table could not be tended"),
                Some(Ok(_)) | None => {}
            }
            let mut tended = shared.tended();
            match tended.get_mut(&table) {
                Some(again) if *again => *again = false,
                _ => {
                    tended.remove(&table);
                    return;
                }
            }
        }
    });
}

/// Goes on taking back what an execution had claimed, until there is nothing left.
pub(crate) fn take_back(core: &Arc<Core>, execution: ExecutionId) {
    let shared = core.clone();
    core.runtime().spawn(async move { all_back(&shared, execution).await });
}

async fn all_back(core: &Arc<Core>, execution: ExecutionId) {
    loop {
        let verb = Verb::TakeBack(execution.clone());
        match core.insist(Command { by: Principal::host(), verb }).await {
            Some(Ok(Outcome::Tended { more: true, .. })) => {}
            Some(Err(error)) => {
                tracing::warn!(%execution, %error, "claims could not be taken back");
                return;
            }
            Some(Ok(_)) | None => return,
        }
    }
}

/// What an earlier boot was in the middle of: tables that want tending, claims of executions that have ended.
async fn resume(core: &Arc<Core>) {
    let mut after = None;
    loop {
        match list(core, after.clone(), PAGE).await {
            Ok(page) => {
                let Some(last) = page.last() else { break };
                after = Some(last.name.clone());
                let wants = |table: &&TableView| wants_tending(&table.head);
                page.iter().filter(wants).for_each(|table| tend(core, table.name.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "tables could not be read");
                core.pause(RETRY_MS).await;
            }
        }
    }
    let (mut from, to) = codec::rows_held();
    loop {
        let (start, end) = (from.clone(), to.clone());
        let page = look(core, move |view, _| {
            let mut ended = BTreeSet::new();
            let keys = view.keys(&start, &end, PAGE)?;
            for key in &keys {
                let Key::RowHeld(entity, incarnation, ordinal, ..) = key else { continue };
                let lock = match view.get(&Key::Head(entity.clone()))? {
                    Some(Record::Head(head)) => head.locked_by(entity),
                    _ => None,
                };
                let id = ExecutionId { entity: entity.clone(), incarnation: *incarnation, ordinal: *ordinal };
                if lock.as_ref() != Some(&id) {
                    ended.insert((entity.clone(), *incarnation, *ordinal));
                }
            }
            Ok((ended, keys.last().cloned()))
        });
        match page.await {
            Ok((_, None)) => return,
            Ok((ended, Some(last))) => {
                for (entity, incarnation, ordinal) in ended {
                    all_back(core, ExecutionId { entity, incarnation, ordinal }).await;
                }
                from = codec::encode(&last);
                from.push(0);
            }
            Err(error) => {
                tracing::warn!(%error, "claims could not be read");
                core.pause(RETRY_MS).await;
            }
        }
    }
}

fn wants_tending(head: &TableHead) -> bool {
    head.dropped || head.anew.is_some() || head.indexes.iter().any(|index| index.stage != IndexStage::Ready)
}
