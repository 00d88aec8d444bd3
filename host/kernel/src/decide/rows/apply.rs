//! The operations: each one line of refusals after the other, then what it writes.

use super::draft::Tables;
use super::walk::{Walk, Wanted};
use super::{Asker, values};
use crate::doc::Doc;
use crate::ids::{RowKey, TableName};
use crate::limits::{CLAIM_DEFAULT, MEMO_BYTES_MAX, ROW_WRITES_MAX, ROWS_BYTES_MAX, ROWS_MAX};
use crate::record::{ClaimMemo, Claimant, Claimed, Row, RowWhat};
use crate::rejection::{Code, Rejection};
use crate::rows::{Found, Order, RowAnswer, RowAsk, RowOp, Unmatched};
use crate::table::{OnEnd, Right};
use crate::value::{Filter, Mutation, Roots, Verdict};
use crate::view::Stop;

/// What is remembered of a row besides its key, and its value if it is gone, in bytes: numbers and times.
const KEPT_BYTES: usize = 16;
const SHOWN_BYTES: usize = 320;

/// What was asked of one operation comes to: an answer, or why not.
type Done = Result<Result<RowAnswer, Rejection>, Stop>;

/// What a request's claims are remembered by.
pub(super) type Claims = Vec<ClaimMemo>;

impl Tables<'_> {
    /// One operation.
    pub(super) fn apply(&mut self, asker: &Asker<'_>, op: &RowOp, claims: &mut Claims, mismatches: &mut u32) -> Done {
        for right in rights(&op.what) {
            if let Some(refused) = self.allowed(asker, &op.table, right)? {
                return Ok(Err(refused));
            }
        }
        if let Some(refused) = malformed(op) {
            return Ok(Err(refused));
        }
        match &op.what {
            RowAsk::Claim { filter, set, order, limit, delete } => {
                let how =
                    Taking { filter: filter.as_ref(), set: set.as_deref(), order, limit: *limit, delete: *delete };
                self.claim(asker, op, &how, claims, mismatches)
            }
            RowAsk::Get { key }
            | RowAsk::Put { key, .. }
            | RowAsk::Update { key, .. }
            | RowAsk::Upsert { key, .. }
            | RowAsk::Delete { key, .. } => {
                let key = match values::key(key, &asker.roots(self.given.now), &op.table) {
                    Ok(key) => key,
                    Err(refused) => return Ok(Err(refused)),
                };
                self.one(asker, op, key, mismatches)
            }
        }
    }

    /// An operation on one row.
    fn one(&mut self, asker: &Asker<'_>, op: &RowOp, key: RowKey, mismatches: &mut u32) -> Done {
        let found = self.table(&op.table)?.row(&key)?.cloned();
        match &op.what {
            RowAsk::Get { .. } => {
                let row = found.and(self.table(&op.table)?.shown(&key, &op.fields));
                Ok(Ok(RowAnswer::Got { key, row }))
            }
            RowAsk::Put { value, fill, expect, .. } => {
                if let Some(refused) = expect.and_then(|expect| unexpected(&op.table, &key, expect, found.as_ref())) {
                    return Ok(Err(refused));
                }
                if let Err(refused) = self.set(asker, op, &key, value, fill)? {
                    return Ok(Err(refused));
                }
                let row = self.answered(op, &key)?;
                Ok(Ok(RowAnswer::Put { inserted: found.is_none(), row }))
            }
            RowAsk::Upsert { insert, fill, set, .. } => {
                let (value, set) = found.as_ref().map_or((insert, fill), |row| (&row.value, set));
                if found.is_some() && set.is_empty() {
                    let row = self.answered(op, &key)?;
                    return Ok(Ok(RowAnswer::Upserted { inserted: false, row }));
                }
                if let Err(refused) = self.set(asker, op, &key, value, set)? {
                    return Ok(Err(refused));
                }
                let row = self.answered(op, &key)?;
                Ok(Ok(RowAnswer::Upserted { inserted: found.is_none(), row }))
            }
            RowAsk::Update { filter, set, .. } => {
                let unmatched = self.guard(asker, filter, found.as_ref(), mismatches);
                if let Some(found) = found.filter(|_| unmatched.is_none()) {
                    if let Err(refused) = self.set(asker, op, &key, &found.value, set)? {
                        return Ok(Err(refused));
                    }
                    let row = Some(self.answered(op, &key)?);
                    return Ok(Ok(RowAnswer::Updated { key, row, unmatched: None }));
                }
                Ok(must(op, &key, unmatched).map(|unmatched| RowAnswer::Updated { key, row: None, unmatched }))
            }
            RowAsk::Delete { filter, .. } => {
                let unmatched = self.guard(asker, filter, found.as_ref(), mismatches);
                if unmatched.is_none() {
                    self.table(&op.table)?.remove(&key)?;
                    return Ok(Ok(RowAnswer::Deleted { key, deleted: true, unmatched: None }));
                }
                Ok(must(op, &key, unmatched).map(|unmatched| RowAnswer::Deleted { key, deleted: false, unmatched }))
            }
            RowAsk::Claim { .. } => Err(Stop::Corrupt("a claim is not of one row".to_owned())),
        }
    }

    fn answered(&mut self, op: &RowOp, key: &RowKey) -> Result<crate::rows::RowShown, Stop> {
        let shown = self.table(&op.table)?.shown(key, &op.fields);
        shown.ok_or_else(|| Stop::Corrupt(format!("{}/{key}: written, and not there", op.table)))
    }

    /// Why a guard keeps a row as it is.
    fn guard(
        &self,
        asker: &Asker<'_>,
        filter: &Filter,
        found: Option<&Row>,
        mismatches: &mut u32,
    ) -> Option<Unmatched> {
        let Some(row) = found else { return Some(Unmatched::Absent) };
        let roots = Roots { row: Some(row.value.value()), ..asker.roots(self.given.now) };
        match filter.judge(&roots, mismatches) {
            Verdict::Holds => None,
            // What stood there is not told: whoever may change a row need not be allowed to read it.
            Verdict::Fails { expected, .. } => Some(Unmatched::Guard(expected)),
        }
    }

    /// Writes a row: a value, changed.
    fn set(
        &mut self,
        asker: &Asker<'_>,
        op: &RowOp,
        key: &RowKey,
        value: &Doc,
        set: &[Mutation],
    ) -> Result<Result<(), Rejection>, Stop> {
        let value = match values::mutate(value, set, &asker.roots(self.given.now), &op.table, key) {
            Ok(value) => value,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Some(refused) = self.table(&op.table)?.judge(key, &value) {
            return Ok(Err(refused));
        }
        let place = self.place();
        self.table(&op.table)?.write(key, value, place)?;
        Ok(Ok(()))
    }

    /// Takes rows that match, in order, each marked as it is taken.
    fn claim(
        &mut self,
        asker: &Asker<'_>,
        op: &RowOp,
        how: &Taking<'_>,
        claims: &mut Claims,
        mismatches: &mut u32,
    ) -> Done {
        let number = self.place();
        let spec = self.table(&op.table)?.spec.clone();
        let claim = &spec.table.claim;
        let (filter, set) = (how.filter.unwrap_or(&claim.filter), how.set.unwrap_or(&claim.set));
        let roots = asker.roots(self.given.now);
        let wanted = Wanted { filter, order: how.order, roots, after: None };
        let mut walk = match Walk::of(self.table(&op.table)?, &wanted) {
            Ok(walk) => walk,
            Err(refused) => return Ok(Err(refused)),
        };
        let (mut rows, mut more) = (Vec::new(), false);
        // Of the answer, and of what is remembered of it.
        let (mut bytes, mut kept) = (0_usize, 0_usize);
        let mut memo = ClaimMemo { number, rows: Vec::new() };
        let limit = usize::try_from(how.limit).unwrap_or(usize::MAX);
        while rows.len() < limit {
            let key = match walk.next(self.table(&op.table)?, &wanted, mismatches)? {
                Ok(Some(rank)) => rank.key,
                Ok(None) => break,
                Err(refused) if rows.is_empty() => return Ok(Err(refused)),
                // What was found so far is taken; the next claim begins behind it.
                Err(_) => {
                    more = true;
                    break;
                }
            };
            let size = self.table(&op.table)?.looked_at(&key).map_or(0, |row| row.value.text().len());
            bytes = bytes.saturating_add(size);
            let remembered = if how.delete { size.saturating_add(SHOWN_BYTES) } else { KEPT_BYTES };
            kept = kept.saturating_add(remembered).saturating_add(key.as_str().len());
            let cut = bytes > ROWS_BYTES_MAX || kept > MEMO_BYTES_MAX || self.writes() > ROW_WRITES_MAX;
            if !rows.is_empty() && cut {
                more = true;
                break;
            }
            if let Err(refused) = self.take(asker, op, &key, (set, how.delete), &mut rows, &mut memo)? {
                return Ok(Err(refused));
            }
        }
        let keys: Vec<RowKey> = memo.rows.iter().map(|(key, _)| key.clone()).collect();
        let note = if how.delete { "and deleted" } else { "" };
        self.table(&op.table)?.enter(RowWhat::Claimed, &keys, Some(&asker.claimant()), note);
        if rows.is_empty() && op.must {
            let expected = "at least one row that the claim matches (must)";
            return Ok(Err(Rejection::new(Code::Require, format!("table {}", op.table), expected, "none")));
        }
        claims.push(memo);
        Ok(Ok(RowAnswer::Claimed { rows, more, lost: Vec::new() }))
    }

    fn take(
        &mut self,
        asker: &Asker<'_>,
        op: &RowOp,
        key: &RowKey,
        (set, delete): (&[Mutation], bool),
        rows: &mut Vec<crate::rows::RowShown>,
        memo: &mut ClaimMemo,
    ) -> Result<Result<(), Rejection>, Stop> {
        let now = self.given.now;
        if delete {
            let table = self.table(&op.table)?;
            rows.extend(table.shown(key, &op.fields));
            let version = table.looked_at(key).map_or(0, |row| row.version);
            memo.rows.push((key.clone(), version));
            table.put(key, None);
            return Ok(Ok(()));
        }
        let value = self.table(&op.table)?.looked_at(key).map(|row| row.value.clone());
        let value = value.ok_or_else(|| Stop::Corrupt(format!("{}/{key}: met, and not there", op.table)))?;
        let value = match values::mutate(&value, set, &asker.roots(now), &op.table, key) {
            Ok(value) => value,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Some(refused) = self.table(&op.table)?.judge(key, &value) {
            return Ok(Err(refused));
        }
        let place = self.place();
        let by = asker.claimant();
        let table = self.table(&op.table)?;
        let spec = table.spec.clone();
        table.write(key, value, place)?;
        let held = table.looked_at(key).cloned();
        let Some(row) = held else { return Ok(Ok(())) };
        let back = spec.table.claim.on_end == OnEnd::Release && matches!(by, Claimant::Execution(_));
        let claim = Claimed { number: memo.number, by, since: now.wall, at: now.store, back };
        let claim = spec.table.claim.is_held(row.value.value()).then_some(claim);
        let claims = row.claims.saturating_add(u32::from(claim.is_some()));
        table.put(key, Some(Row { claim, claims, ..row }));
        memo.rows.push((key.clone(), place.seq));
        rows.extend(table.shown(key, &op.fields));
        Ok(Ok(()))
    }

    /// Whether somebody may do something with a table; opens it.
    pub(super) fn allowed(
        &mut self,
        asker: &Asker<'_>,
        name: &TableName,
        right: Right,
    ) -> Result<Option<Rejection>, Stop> {
        if let Err(refused) = self.open(name)? {
            return Ok(Some(refused));
        }
        let spec = self.table(name)?.spec.clone();
        Ok(asker.denied(&spec.table, right))
    }
}

/// How rows are taken.
struct Taking<'a> {
    filter: Option<&'a Filter>,
    set: Option<&'a [Mutation]>,
    order: &'a Order,
    limit: u32,
    delete: bool,
}

/// What an operation takes to be allowed.
fn rights(what: &RowAsk) -> Vec<Right> {
    match what {
        RowAsk::Get { .. } => vec![Right::Get],
        RowAsk::Put { .. } => vec![Right::Put],
        RowAsk::Update { .. } => vec![Right::Update],
        RowAsk::Upsert { .. } => vec![Right::Upsert],
        RowAsk::Claim { delete: false, .. } => vec![Right::Claim],
        RowAsk::Claim { delete: true, .. } => vec![Right::Claim, Right::Delete],
        RowAsk::Delete { .. } => vec![Right::Delete],
    }
}

/// What is wrong with an operation whatever stands in the table.
fn malformed(op: &RowOp) -> Option<Rejection> {
    let subject = || format!("table {}", op.table);
    let (filter, sets): (Option<&Filter>, Vec<&[Mutation]>) = match &op.what {
        RowAsk::Get { .. } => (None, Vec::new()),
        RowAsk::Put { fill, .. } => (None, vec![fill]),
        RowAsk::Upsert { fill, set, .. } => (None, vec![fill, set]),
        RowAsk::Update { filter, set, .. } => (Some(filter), vec![set]),
        RowAsk::Delete { filter, .. } => (Some(filter), Vec::new()),
        RowAsk::Claim { filter, set, .. } => (filter.as_ref(), set.iter().map(Vec::as_slice).collect()),
    };
    let empty = match &op.what {
        RowAsk::Update { set, .. } => set.is_empty(),
        RowAsk::Claim { set: Some(set), delete: false, .. } => set.is_empty(),
        RowAsk::Claim { .. }
        | RowAsk::Get { .. }
        | RowAsk::Put { .. }
        | RowAsk::Upsert { .. }
        | RowAsk::Delete { .. } => false,
    };
    if empty {
        return Some(Rejection::new(Code::Invalid, subject(), "at least one change (set)", "none"));
    }
    if let RowAsk::Claim { limit, .. } = &op.what
        && !(1..=ROWS_MAX).contains(limit)
    {
        let expected = format!("a limit of 1 to {ROWS_MAX} rows (rows_max; {CLAIM_DEFAULT} if none is given)");
        return Some(Rejection::new(Code::Limit, subject(), expected, limit));
    }
    let over = sets.into_iter().find_map(values::overlong);
    over.or_else(|| filter.and_then(values::overcompared)).map(|refused| Rejection { subject: subject(), ..refused })
}

/// Nothing matched: an answer, unless it must.
fn must(op: &RowOp, key: &RowKey, unmatched: Option<Unmatched>) -> Result<Option<Unmatched>, Rejection> {
    let Some(why) = unmatched.as_ref().filter(|_| op.must) else { return Ok(unmatched) };
    let (expected, got) = match why {
        Unmatched::Absent => ("a row (must)".to_owned(), "none".to_owned()),
        Unmatched::Guard(guard) => (format!("{guard} (must)"), "a row of which that does not hold".to_owned()),
    };
    Err(Rejection::new(Code::Require, format!("{}/{key}", op.table), expected, got))
}

fn unexpected(table: &TableName, key: &RowKey, expect: Found, found: Option<&Row>) -> Option<Rejection> {
    let got = found.map(|row| row.version);
    let expected = match expect {
        Found::Absent if got.is_none() => return None,
        Found::Version(version) if got == Some(version) => return None,
        Found::Absent => "no row".to_owned(),
        Found::Version(version) => format!("version {version}"),
    };
    let got = got.map_or("no row".to_owned(), |version| format!("version {version}"));
    Some(Rejection::new(Code::Conflict, format!("{table}/{key}"), expected, got).retry_after(0))
}
