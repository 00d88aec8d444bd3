//! Declarations of tables, and what they ask of the host: indexes filled and emptied, rows of a dropped table gone, a
//! bounded number at a time.

use super::super::draft::Given;
use super::draft::{TableDraft, Tables, read};
use crate::command::Outcome;
use crate::ids::TableName;
use crate::limits::{BUSY_RETRY_MS, INDEXES_MAX, TEND_MAX};
use crate::record::{Index, IndexStage, Key, Record, Row, TableHead, TableSpec};
use crate::rejection::{Code, Rejection};
use crate::rows::Declare;
use crate::table::{IndexSpec, Table, Tie, Ttl};
use crate::time::{Now, StoreTime};
use crate::view::{Decision, IndexSpan, Span, Stop, Wake};
use std::sync::Arc;

/// A declaration comes into force.
pub(in crate::decide) fn declare(given: &Given<'_>, declare: &Declare) -> Result<Decision, Stop> {
    let table = &declare.table;
    let subject = format!("table {}", table.name);
    if table.indexes.len() > INDEXES_MAX {
        let expected = format!("at most {INDEXES_MAX} indexes (indexes_max)");
        return Ok(Decision::refused(Rejection::new(Code::Limit, subject, expected, table.indexes.len())));
    }
    let found = read(given, &table.name)?;
    if let Some((head, _)) = &found {
        if head.dropped {
            let refused = Rejection::new(Code::Busy, subject, "a name that is free", "a table that is being dropped");
            return Ok(Decision::refused(refused.retry_after(BUSY_RETRY_MS)));
        }
        if head.digest == declare.digest {
            return Ok(Decision::plain(Outcome::Declared { revision: head.revision, new: false }));
        }
        // Indexes that are going away count until they are gone: their numbers are bounded, and so is the work.
        if head.indexes.len() > INDEXES_MAX.saturating_mul(2) {
            let got = "indexes of earlier declarations that are still being removed";
            let refused = Rejection::new(Code::Busy, subject, "a table at rest", got).retry_after(BUSY_RETRY_MS);
            return Ok(Decision::refused(refused));
        }
    }
    // Nothing refuses below this line.
    let (was, old) = found.map(|(head, spec)| (Some(head), Some(spec))).unwrap_or_default();
    let number = was.as_ref().map_or(1, |head| head.revision.saturating_add(1));
    let spec =
        TableSpec { number, table: Table::clone(table), source: declare.source.clone(), declared: given.now.wall };
    let mut tables = Tables::of(given);
    let mut draft = TableDraft::new(given, table.name.clone(), was, Arc::new(spec.clone()));
    draft.head.revision = number;
    draft.head.digest = declare.digest;
    draft.head.declared = given.now.wall;
    index(&mut draft.head, table);
    let timed = |old: &TableSpec| old.table.claim.reaper != table.claim.reaper || old.table.ttl != table.ttl;
    if old.is_some_and(|old| timed(&old)) && draft.head.rows > 0 {
        draft.head.anew = Some(None);
    }
    let at = Key::TableSpec(table.name.clone(), number);
    draft.marks.push((at, Some(Record::TableSpec(Arc::new(spec)))));
    if wants_tending(&draft.head) {
        tables.wake.push(Wake::Tend(table.name.clone()));
    }
    tables.enter(draft);
    let mut decision = Decision::plain(Outcome::Declared { revision: number, new: true });
    tables.finish(&mut decision);
    Ok(decision)
}

/// What is to become of the indexes of a table that is declared like this.
fn index(head: &mut TableHead, table: &Table) {
    let empty = head.rows == 0;
    if head.indexes.is_empty() {
        let spec = IndexSpec { fields: Vec::new(), tie: Tie::Created };
        head.indexes.push(Index { number: 0, name: None, spec, stage: IndexStage::Ready });
        head.next_index = 1;
    }
    for index in &mut head.indexes {
        let declared = index.name.as_ref().and_then(|name| table.indexes.get(name));
        if index.name.is_some() && declared != Some(&index.spec) {
            index.stage = IndexStage::Dropping;
        }
    }
    for (name, spec) in &table.indexes {
        let live = |index: &Index| index.name.as_ref() == Some(name) && index.stage != IndexStage::Dropping;
        if head.indexes.iter().any(live) {
            continue;
        }
        let stage = if empty { IndexStage::Ready } else { IndexStage::Building { up_to: None, done: 0 } };
        head.indexes.push(Index { number: head.next_index, name: Some(name.clone()), spec: spec.clone(), stage });
        head.next_index = head.next_index.saturating_add(1);
    }
}

/// Whether there is something to do besides what requests do, while it is declared.
fn wants_tending(head: &TableHead) -> bool {
    head.anew.is_some() || head.indexes.iter().any(|index| index.stage != IndexStage::Ready)
}

/// Away with a table: nothing is asked of it from now on, and its rows go a few at a time.
pub(in crate::decide) fn drop_table(given: &Given<'_>, name: &TableName) -> Result<Decision, Stop> {
    let Some((head, spec)) = read(given, name)? else {
        let subject = format!("table {name}");
        return Ok(Decision::refused(Rejection::new(
            Code::NotFound,
            subject,
            "a declared table",
            "none with this name",
        )));
    };
    let mut tables = Tables::of(given);
    let mut draft = TableDraft::new(given, name.clone(), Some(head), spec);
    draft.head.dropped = true;
    tables.wake.push(Wake::Tend(name.clone()));
    tables.enter(draft);
    let mut decision = Decision::plain(Outcome::Tended { done: 0, more: true });
    tables.finish(&mut decision);
    Ok(decision)
}

/// A little of what a table's declaration asks for.
pub(in crate::decide) fn tend(given: &Given<'_>, name: &TableName) -> Result<Decision, Stop> {
    let Some((head, spec)) = read(given, name)? else { return Ok(Decision::plain(Outcome::Nothing)) };
    let mut draft = TableDraft::new(given, name.clone(), Some(head), spec);
    if draft.head.dropped {
        return clear(draft);
    }
    let emptied = draft.head.indexes.iter().find(|index| index.stage == IndexStage::Dropping).map(|one| one.number);
    let done = match emptied {
        Some(number) => empty(&mut draft, number)?,
        None => fill(&mut draft)?,
    };
    let more = wants_tending(&draft.head);
    let mut tables = Tables::of(given);
    if more {
        tables.wake.push(Wake::Tend(name.clone()));
    }
    tables.enter(draft);
    let mut decision = Decision::plain(Outcome::Tended { done, more });
    tables.finish(&mut decision);
    Ok(decision)
}

/// Removes entries of an index; the index with the last of them.
fn empty(draft: &mut TableDraft<'_>, number: u32) -> Result<usize, Stop> {
    let found = draft.given.view.scan(&entries_of(&draft.name, number), TEND_MAX)?;
    let done = found.len();
    draft.marks.extend(found.into_iter().map(|(key, _)| (key, None)));
    if done < TEND_MAX {
        draft.head.indexes.retain(|index| index.number != number);
    }
    Ok(done)
}

fn entries_of(table: &TableName, index: u32) -> Span {
    let (from, to) = (Vec::new(), None);
    Span::RowIndex(Box::new(IndexSpan { table: table.clone(), index, from, to, after: None, back: false }))
}

/// Goes on with the first index that is being built, and with rows that are to be looked at anew.
fn fill(draft: &mut TableDraft<'_>) -> Result<usize, Stop> {
    let target = draft.head.indexes.iter().find_map(|index| match &index.stage {
        IndexStage::Building { up_to, done } => Some((index.clone(), up_to.clone(), *done)),
        IndexStage::Ready | IndexStage::Dropping => None,
    });
    let after = match (&target, &draft.head.anew) {
        (Some((_, up_to, _)), _) => up_to.clone(),
        (None, Some(up_to)) => up_to.clone(),
        (None, None) => return Ok(0),
    };
    let found = draft.given.view.scan(&Span::Rows(draft.name.clone(), after), TEND_MAX)?;
    let over = found.len() < TEND_MAX;
    let (mut done, mut last) = (0_usize, None);
    for (at, record) in found {
        let (Key::Row(_, key), Record::Row(row)) = (at, record) else { continue };
        done = done.saturating_add(1);
        last = Some(key.clone());
        match &target {
            Some((index, ..)) => {
                let mark = (draft.entry(index, &key, &row), Some(Record::Mark));
                draft.marks.push(mark);
            }
            None => {
                let until = lives_until(&draft.given.now, &row, draft.spec.table.ttl);
                draft.know(&key, Some(Row::clone(&row)));
                draft.put(&key, Some(Row { until, ..*row }));
            }
        }
    }
    match target {
        Some((index, up_to, before)) => {
            let stage = match over {
                true => IndexStage::Ready,
                false => IndexStage::Building { up_to: last.or(up_to), done: before.saturating_add(done as u64) },
            };
            if let Some(one) = draft.head.indexes.iter_mut().find(|one| one.number == index.number) {
                one.stage = stage;
            }
        }
        None => draft.head.anew = (!over).then_some(last),
    }
    Ok(done)
}

/// Until when a row is there whose table says otherwise by now: a time to live that is declared later counts from
/// then on, a shorter one at the latest from then on, and without one it stays.
fn lives_until(now: &Now, row: &Row, ttl: Option<Ttl>) -> Option<StoreTime> {
    if !row.is_there(now.store) {
        return row.until;
    }
    let most = now.store.plus(ttl?.ms);
    Some(row.until.map_or(most, |until| until.min(most)))
}

/// Removes rows of a dropped table; then what is left of it.
fn clear(mut draft: TableDraft<'_>) -> Result<Decision, Stop> {
    let (given, name) = (draft.given, draft.name.clone());
    let found = given.view.scan(&Span::Rows(name.clone(), None), TEND_MAX)?;
    if found.is_empty() {
        return bury(&draft);
    }
    let done = found.len();
    for (at, record) in found {
        let (Key::Row(_, key), Record::Row(row)) = (at, record) else { continue };
        draft.know(&key, Some(*row));
        draft.put(&key, None);
    }
    let mut tables = Tables::of(given);
    tables.wake.push(Wake::Tend(name));
    tables.enter(draft);
    let mut decision = Decision::plain(Outcome::Tended { done, more: true });
    tables.finish(&mut decision);
    Ok(decision)
}

/// What a dropped table without rows still has: entries of indexes that were being emptied, what became of its rows,
/// its declarations; with the last of them the table, and the declaration in force, without which it cannot be read.
fn bury(draft: &TableDraft<'_>) -> Result<Decision, Stop> {
    let name = &draft.name;
    let in_force = Key::TableSpec(name.clone(), draft.head.revision);
    let indexes = draft.head.indexes.iter().map(|index| entries_of(name, index.number));
    let mut away: Vec<Key> = Vec::new();
    for span in indexes.chain([Span::RowEntries(name.clone()), Span::TableSpecs(name.clone())]) {
        let room = TEND_MAX.saturating_sub(away.len());
        let found = draft.given.view.scan(&span, room)?.into_iter().map(|(key, _)| key);
        away.extend(found.filter(|key| *key != in_force));
    }
    let done = away.len();
    let more = done >= TEND_MAX;
    let mut wake = Vec::new();
    if more {
        wake.push(Wake::Tend(name.clone()));
    } else {
        away.extend([in_force, Key::Table(name.clone())]);
    }
    let writes = away.into_iter().map(|key| (key, None)).collect();
    Ok(Decision { writes, wake, ..Decision::plain(Outcome::Tended { done, more }) })
}
