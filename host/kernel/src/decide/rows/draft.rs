//! Tables as one decision changes them: rows, and the index as the difference of what a row implied before and
//! implies now.

use super::super::corrupt;
use super::super::draft::Given;
use super::super::enter::{breach, oversize};
use super::order;
use crate::doc::Doc;
use crate::ids::{Name, RowKey, TableName};
use crate::limits::{ROW_ENTRIES_MAX, ROW_ENTRY_KEYS_MAX};
use crate::record::{Claimant, Index, IndexStage, Key, Place, Record, Row, RowEntry, RowWhat, TableHead, TableSpec};
use crate::rejection::{Code, Rejection, cut};
use crate::rows::RowShown;
use crate::table::Tie;
use crate::theorems;
use crate::time::StoreTime;
use crate::view::{Decision, Stop, Wake};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All tables that a decision has looked at.
pub(in crate::decide) struct Tables<'a> {
    pub(super) given: &'a Given<'a>,
    tables: BTreeMap<TableName, TableDraft<'a>>,
    /// Changes so far.
    places: u32,
    pub(super) wake: Vec<Wake>,
}

/// One table.
pub(in crate::decide) struct TableDraft<'a> {
    pub(super) given: &'a Given<'a>,
    pub(super) name: TableName,
    pub(super) head: TableHead,
    was: Option<TableHead>,
    pub(super) spec: Arc<TableSpec>,
    rows: BTreeMap<RowKey, Slot>,
    pub(super) entries: Vec<RowEntry>,
    /// Index entries that are written besides those of changed rows.
    pub(super) marks: Vec<(Key, Option<Record>)>,
}

#[derive(Clone)]
struct Slot {
    was: Option<Row>,
    now: Option<Row>,
}

/// The refusal of a table that is not there.
fn no_table(name: &TableName, got: &str) -> Rejection {
    Rejection::new(Code::NotFound, format!("table {name}"), "a declared table", got)
}

/// The head of a table, and the declaration in force.
pub(super) fn read(given: &Given<'_>, name: &TableName) -> Result<Option<(TableHead, Arc<TableSpec>)>, Stop> {
    let key = Key::Table(name.clone());
    let head = match given.view.get(&key)? {
        None => return Ok(None),
        Some(Record::Table(head)) => *head,
        Some(_) => return Err(corrupt(&key, "not a table")),
    };
    let at = Key::TableSpec(name.clone(), head.revision);
    match given.view.get(&at)? {
        Some(Record::TableSpec(spec)) => Ok(Some((head, spec))),
        _ => Err(corrupt(&key, "its declaration is not stored")),
    }
}

impl<'a> Tables<'a> {
    pub(in crate::decide) fn of(given: &'a Given<'a>) -> Self {
        Self { given, tables: BTreeMap::new(), places: 0, wake: Vec::new() }
    }

    /// A table that is there and not being dropped.
    pub(super) fn open(&mut self, name: &TableName) -> Result<Result<(), Rejection>, Stop> {
        if self.tables.contains_key(name) {
            return Ok(Ok(()));
        }
        let Some((head, spec)) = read(self.given, name)? else {
            return Ok(Err(no_table(name, "none with this name")));
        };
        if head.dropped {
            return Ok(Err(no_table(name, "one that is being dropped")));
        }
        self.enter(TableDraft::new(self.given, name.clone(), Some(head), spec));
        Ok(Ok(()))
    }

    pub(super) fn enter(&mut self, table: TableDraft<'a>) {
        self.tables.insert(table.name.clone(), table);
    }

    /// A table that was opened.
    pub(super) fn table(&mut self, name: &TableName) -> Result<&mut TableDraft<'a>, Stop> {
        self.tables.get_mut(name).ok_or_else(|| Stop::Corrupt(format!("table {name} was not opened")))
    }

    /// The place of one more change.
    pub(super) fn place(&mut self) -> Place {
        self.places = self.places.saturating_add(1);
        Place { seq: self.given.now.seq, n: self.places }
    }

    /// Records that it will write, as far as is known.
    pub(super) fn writes(&self) -> usize {
        self.tables.values().map(TableDraft::writes).fold(0, usize::saturating_add)
    }

    /// Bytes of the values that it will write.
    pub(super) fn bytes(&self) -> usize {
        self.tables.values().map(TableDraft::bytes).fold(0, usize::saturating_add)
    }

    /// The writes.
    pub(in crate::decide) fn finish(self, decision: &mut Decision) {
        decision.wake.extend(self.wake);
        for table in self.tables.into_values() {
            table.finish(decision);
        }
    }
}

impl<'a> TableDraft<'a> {
    pub(super) fn new(given: &'a Given<'a>, name: TableName, was: Option<TableHead>, spec: Arc<TableSpec>) -> Self {
        let now = given.now.wall;
        let head = was.clone().unwrap_or_else(|| TableHead {
            revision: spec.number,
            digest: crate::doc::Digest([0; 32]),
            rows: 0,
            held: 0,
            indexes: Vec::new(),
            next_index: 0,
            dropped: false,
            anew: None,
            first: 1,
            last: 0,
            created: now,
            declared: now,
        });
        Self { given, name, head, was, spec, rows: BTreeMap::new(), entries: Vec::new(), marks: Vec::new() }
    }

    pub(super) fn now(&self) -> StoreTime {
        self.given.now.store
    }

    /// A row as this decision has it; one that is past its time is not there.
    pub(super) fn row(&mut self, key: &RowKey) -> Result<Option<&Row>, Stop> {
        if !self.rows.contains_key(key) {
            let found = self.stored(key)?;
            self.know(key, found);
        }
        let now = self.now();
        Ok(self.rows.get(key).and_then(|slot| slot.now.as_ref()).filter(|row| row.is_there(now)))
    }

    fn stored(&self, key: &RowKey) -> Result<Option<Row>, Stop> {
        let at = Key::Row(self.name.clone(), key.clone());
        match self.given.view.get(&at)? {
            None => Ok(None),
            Some(Record::Row(row)) => Ok(Some(*row)),
            Some(_) => Err(corrupt(&at, "not a row")),
        }
    }

    /// A row that an index names, past its time or not.
    pub(super) fn named(&mut self, key: &RowKey) -> Result<&Row, Stop> {
        self.row(key)?;
        let at = Key::Row(self.name.clone(), key.clone());
        self.looked_at(key).ok_or_else(|| corrupt(&at, "an index names it, and it is not there"))
    }

    /// A row that was read from the store.
    pub(super) fn know(&mut self, key: &RowKey, row: Option<Row>) {
        self.rows.entry(key.clone()).or_insert_with(|| Slot { was: row.clone(), now: row });
    }

    /// A row that this decision has looked at, past its time or not.
    pub(super) fn looked_at(&self, key: &RowKey) -> Option<&Row> {
        self.rows.get(key)?.now.as_ref()
    }

    /// Rows that this decision has changed and not removed.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&RowKey, &Row)> {
        let changed = self.rows.iter().filter(|(_, slot)| slot.was != slot.now);
        changed.filter_map(|(key, slot)| Some((key, slot.now.as_ref()?)))
    }

    pub(super) fn is_changed(&self, key: &RowKey) -> bool {
        self.rows.get(key).is_some_and(|slot| slot.was != slot.now)
    }

    /// A value that may stand in a row.
    pub(super) fn judge(&self, key: &RowKey, value: &Doc) -> Option<Rejection> {
        let subject = format!("{}/{key}", self.name);
        if let Err(found) = self.given.rules.check_row(&self.name, self.spec.number, value) {
            return Some(breach(Code::Invalid, &subject, &found));
        }
        oversize(&subject, value)
    }

    /// Writes a row whose value was judged. What was taken and is not any more is settled.
    pub(super) fn write(&mut self, key: &RowKey, value: Doc, place: Place) -> Result<(), Stop> {
        let (now, ttl) = (self.given.now, self.spec.table.ttl);
        let is_held = self.spec.table.claim.is_held(value.value());
        let old = self.row(key)?.cloned();
        let settled = old.as_ref().and_then(|row| row.claim.clone()).filter(|_| !is_held);
        let until = |old: Option<StoreTime>| match ttl {
            Some(ttl) if ttl.from_change || old.is_none() => Some(now.store.plus(ttl.ms)),
            Some(_) => old,
            None => None,
        };
        let row = match old {
            Some(old) => Row {
                value,
                version: place.seq,
                updated: place,
                updated_at: now.wall,
                claim: old.claim.filter(|_| is_held),
                until: until(old.until),
                ..old
            },
            None => Row {
                value,
                version: place.seq,
                created: place,
                created_at: now.wall,
                updated: place,
                updated_at: now.wall,
                claim: None,
                claims: 0,
                until: until(None),
                due: None,
            },
        };
        self.put(key, Some(row));
        if let Some(claim) = settled {
            self.enter(RowWhat::Settled, std::slice::from_ref(key), Some(&claim.by), "");
        }
        Ok(())
    }

    /// Removes a row.
    pub(super) fn remove(&mut self, key: &RowKey) -> Result<(), Stop> {
        let claim = self.row(key)?.and_then(|row| row.claim.clone());
        self.put(key, None);
        if let Some(claim) = claim {
            self.enter(RowWhat::Settled, std::slice::from_ref(key), Some(&claim.by), "deleted");
        }
        Ok(())
    }

    /// A row as it is to be, whatever it was.
    pub(super) fn put(&mut self, key: &RowKey, row: Option<Row>) {
        let row = row.map(|row| Row { due: self.due(&row), ..row });
        if let Some(slot) = self.rows.get_mut(key) {
            slot.now = row;
        }
    }

    /// When store time will do something to a row.
    fn due(&self, row: &Row) -> Option<StoreTime> {
        let reaper = self.spec.table.claim.reaper.as_ref();
        let stale = row.claim.as_ref().zip(reaper).map(|(claim, reaper)| claim.at.plus(reaper.after_ms));
        [row.until, stale].into_iter().flatten().min()
    }

    /// One more entry of what became of rows.
    pub(super) fn enter(&mut self, what: RowWhat, keys: &[RowKey], claimant: Option<&Claimant>, note: &str) {
        if keys.is_empty() {
            return;
        }
        self.head.last = self.head.last.saturating_add(1);
        self.entries.push(RowEntry {
            number: self.head.last,
            what,
            keys: keys.iter().take(ROW_ENTRY_KEYS_MAX).cloned().collect(),
            count: keys.len() as u64,
            claimant: claimant.map(Claimant::to_string),
            note: cut(note),
            by: self.given.by.clone(),
            wall: self.given.now.wall,
            store: self.now(),
        });
    }

    /// A row as it is answered, with the fields asked for.
    pub(super) fn shown(&self, key: &RowKey, fields: &[String]) -> Option<RowShown> {
        self.looked_at(key).map(|row| shown(key, row, fields))
    }

    /// An index that is declared, by its name; one of an earlier declaration may still be going away.
    pub(super) fn index(&self, name: &Name) -> Option<&Index> {
        let declared = |index: &&Index| index.name.as_ref() == Some(name) && index.stage != IndexStage::Dropping;
        self.head.indexes.iter().find(declared)
    }

    fn writes(&self) -> usize {
        let changed = self.rows.values().filter(|slot| slot.was != slot.now).count();
        let each = self.head.indexes.len().saturating_mul(2).saturating_add(4);
        changed.saturating_mul(each).saturating_add(self.entries.len().saturating_mul(2))
    }

    fn bytes(&self) -> usize {
        let written = self.rows.values().filter(|slot| slot.was != slot.now);
        written.filter_map(|slot| slot.now.as_ref()).map(|row| row.value.text().len()).fold(0, usize::saturating_add)
    }

    /// The writes: rows, index, entries, head.
    fn finish(mut self, decision: &mut Decision) {
        for (key, Slot { was, now }) in std::mem::take(&mut self.rows) {
            if was == now {
                continue;
            }
            debug_assert_eq!(theorems::row(was.as_ref(), now.as_ref()), Vec::<&str>::new(), "{}/{key}", self.name);
            let count = |row: &Option<Row>| (u64::from(row.is_some()), u64::from(is_held(row)));
            let ((rows_before, held_before), (rows, held)) = (count(&was), count(&now));
            self.head.rows = self.head.rows.saturating_add(rows).saturating_sub(rows_before);
            self.head.held = self.head.held.saturating_add(held).saturating_sub(held_before);
            let implied = |row: &Option<Row>| row.as_ref().map(|row| self.implied(&key, row)).unwrap_or_default();
            let (before, after) = (implied(&was), implied(&now));
            decision.writes.extend(before.iter().filter(|key| !after.contains(key)).map(|key| (key.clone(), None)));
            for new in after.into_iter().filter(|key| !before.contains(key)) {
                if let Key::RowDue(due, ..) = new {
                    decision.wake.push(Wake::Row(due));
                }
                decision.writes.push((new, Some(Record::Mark)));
            }
            let record = now.map(|row| Record::Row(Box::new(row)));
            decision.writes.push((Key::Row(self.name.clone(), key), record));
        }
        for entry in std::mem::take(&mut self.entries) {
            let key = Key::RowEntry(self.name.clone(), entry.number);
            decision.writes.push((key, Some(Record::RowEntry(Box::new(entry)))));
        }
        while self.head.last.saturating_sub(self.head.first) >= ROW_ENTRIES_MAX {
            decision.writes.push((Key::RowEntry(self.name.clone(), self.head.first), None));
            self.head.first = self.head.first.saturating_add(1);
        }
        decision.writes.append(&mut self.marks);
        if self.was.as_ref() != Some(&self.head) {
            decision.writes.push((Key::Table(self.name.clone()), Some(Record::Table(Box::new(self.head)))));
        }
    }

    /// The index entries of a row.
    fn implied(&self, key: &RowKey, row: &Row) -> Vec<Key> {
        let live = self.head.indexes.iter().filter(|index| index.stage != IndexStage::Dropping);
        let mut keys: Vec<Key> = live.map(|index| self.entry(index, key, row)).collect();
        keys.extend(row.due.map(|due| Key::RowDue(due, self.name.clone(), key.clone())));
        if let Some(claim) = &row.claim
            && let Claimant::Execution(id) = &claim.by
        {
            let at = if claim.back { Key::RowHeld } else { Key::RowKept };
            keys.push(at(id.entity.clone(), id.incarnation, id.ordinal, self.name.clone(), key.clone()));
        }
        keys
    }

    /// The entry of a row in an index.
    pub(super) fn entry(&self, index: &Index, key: &RowKey, row: &Row) -> Key {
        let (bytes, place) = position(index, row);
        Key::RowIndex(self.name.clone(), index.number, bytes, place, key.clone())
    }
}

fn is_held(row: &Option<Row>) -> bool {
    row.as_ref().is_some_and(|row| row.claim.is_some())
}

/// Where a row stands in an index.
pub(super) fn position(index: &Index, row: &Row) -> (Vec<u8>, Place) {
    let mut bytes = Vec::new();
    for field in &index.spec.fields {
        order::put(field.find(row.value.value()), &mut bytes);
    }
    let place = match index.spec.tie {
        Tie::Created => row.created,
        Tie::Updated => row.updated,
    };
    (bytes, place)
}

/// A row as it is answered, with the fields asked for.
pub(super) fn shown(key: &RowKey, row: &Row, fields: &[String]) -> RowShown {
    let value = match row.value.value() {
        Json::Object(all) if !fields.is_empty() => {
            let kept: Map<String, Json> =
                all.iter().filter(|(name, _)| fields.contains(name)).map(|(a, b)| (a.clone(), b.clone())).collect();
            Doc::new(Json::Object(kept))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => {
            row.value.clone()
        }
    };
    RowShown {
        key: key.clone(),
        value,
        version: row.version,
        created: row.created_at,
        updated: row.updated_at,
        claims: row.claims,
        claimed_by: row.claim.as_ref().map(|claim| claim.by.to_string()),
    }
}
