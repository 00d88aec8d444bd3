//! What becomes of rows without anybody asking: their time is over, their claim is stale, their execution has ended.

use super::super::draft::Given;
use super::draft::Tables;
use super::{Asker, values};
use crate::command::Outcome;
use crate::ids::{ExecutionId, RowKey, TableName};
use crate::limits::{ROW_WRITTEN_BYTES_MAX, TEND_MAX};
use crate::record::{Claimant, Key, Place, Record, Row, RowWhat};
use crate::view::{Decision, Span, Stop, Wake};

/// Store time has come to what the index says of a row: it is over, or its claim is stale.
pub(in crate::decide) fn due(given: &Given<'_>, name: &TableName, key: &RowKey) -> Result<Decision, Stop> {
    let mut tables = Tables::of(given);
    if tables.open(name)?.is_err() {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    let place = tables.place();
    let now = given.now.store;
    let table = tables.table(name)?;
    let there = table.row(key)?.is_some();
    let Some(row) = table.looked_at(key).cloned() else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    if !there {
        table.put(key, None);
        table.enter(RowWhat::Expired, std::slice::from_ref(key), row.claim.as_ref().map(|claim| &claim.by), "");
    } else if let Some(claim) = &row.claim
        && let Some(reaper) = table.spec.clone().table.claim.reaper.as_ref()
        && claim.at.plus(reaper.after_ms) <= now
    {
        let dead = reaper.attempts.is_some_and(|attempts| row.claims >= attempts);
        let what = if dead { RowWhat::Dead } else { RowWhat::Reaped };
        tables.give_back(name, key, row, what, place)?;
    } else {
        table.put(key, Some(row)); // its declaration says otherwise by now
    }
    let mut decision = Decision::plain(Outcome::Tended { done: 1, more: false });
    tables.finish(&mut decision);
    Ok(decision)
}

impl Tables<'_> {
    /// A row that somebody has, past its time or not. Of a table that goes nobody has any: its rows go with it.
    fn claimed_by(&mut self, name: &TableName, key: &RowKey, by: &Claimant) -> Result<Option<Row>, Stop> {
        if self.open(name)?.is_err() {
            return Ok(None);
        }
        let table = self.table(name)?;
        table.row(key)?;
        let has = |row: &&Row| row.claim.as_ref().is_some_and(|claim| claim.by == *by);
        Ok(table.looked_at(key).filter(has).cloned())
    }

    /// Ends a claim that its claimant did not settle.
    fn give_back(&mut self, name: &TableName, key: &RowKey, row: Row, what: RowWhat, place: Place) -> Result<(), Stop> {
        let table = self.table(name)?;
        let spec = table.spec.clone();
        let claimant = row.claim.as_ref().map(|claim| claim.by.clone());
        let set = match (what, &spec.table.claim.reaper) {
            (RowWhat::Dead, Some(reaper)) => &reaper.dead,
            _ => &spec.table.claim.release,
        };
        let label = claimant.as_ref().map(Claimant::to_string).unwrap_or_default();
        let asker = Asker::Client(&label);
        let changed = values::mutate(&row.value, set, &asker.roots(table.given.now), name, key);
        let changed = changed.and_then(|value| match table.judge(key, &value) {
            Some(refused) => Err(refused),
            None => Ok(value),
        });
        let (value, note) = match changed {
            Ok(value) => (value, String::new()),
            Err(refused) => (row.value.clone(), format!("left as it is: {refused}")),
        };
        let now = table.given.now;
        let row = Row {
            version: if value == row.value { row.version } else { place.seq },
            value,
            updated: place,
            updated_at: now.wall,
            claim: None,
            ..row
        };
        table.put(key, Some(row));
        table.enter(what, std::slice::from_ref(key), claimant.as_ref(), &note);
        Ok(())
    }
}

/// An execution has ended: what it has claimed is taken back, a bounded number at a time.
pub(in crate::decide) fn take_back(given: &Given<'_>, execution: &ExecutionId) -> Result<Decision, Stop> {
    let entity = &execution.entity;
    if let Some(Record::Head(head)) = given.view.get(&Key::Head(entity.clone()))?
        && head.locked_by(entity).as_ref() == Some(execution)
    {
        return Ok(Decision::plain(Outcome::Nothing)); // it goes on
    }
    let span = Span::RowsHeld(entity.clone(), execution.incarnation, execution.ordinal);
    let found = given.view.scan(&span, TEND_MAX)?;
    let mut more = found.len() >= TEND_MAX;
    let mut tables = Tables::of(given);
    let claimant = Claimant::Execution(execution.clone());
    let (mut done, mut astray) = (0_usize, Vec::new());
    for (at, _) in found {
        if tables.bytes() > ROW_WRITTEN_BYTES_MAX / 2 {
            more = true;
            break;
        }
        done = done.saturating_add(1);
        let Key::RowHeld(.., name, key) = &at else { continue };
        let place = tables.place();
        match tables.claimed_by(name, key, &claimant)? {
            Some(row) => tables.give_back(name, key, row, RowWhat::Released, place)?,
            None => astray.push((at, None)),
        }
    }
    let mut decision = Decision { writes: astray, ..Decision::plain(Outcome::Tended { done, more }) };
    tables.finish(&mut decision);
    if more {
        decision.wake.push(Wake::TakeBack(execution.clone()));
    }
    Ok(decision)
}
