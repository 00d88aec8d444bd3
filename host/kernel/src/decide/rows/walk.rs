//! Which rows a filter matches, in an order, without looking at the others: one walk of an index for each of the
//! filter's alternatives, merged.

use super::draft::{TableDraft, position};
use super::order;
use crate::ids::RowKey;
use crate::limits::ROWS_SCANNED_MAX;
use crate::record::{Index, IndexStage, Key, Place, Record, Row};
use crate::rejection::{Code, Rejection};
use crate::rows::{Order, OrderBy};
use crate::table::Tie;
use crate::value::{Comparison, Filter, Operator, Path, Roots, Verdict};
use crate::view::{IndexSpan, Stop};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Entries read at a time.
const CHUNK: usize = 64;

/// Where a row stands in the order that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) bytes: Vec<u8>,
    pub(super) place: Place,
    pub(super) key: RowKey,
}

/// One alternative of a filter, with the index that serves it.
struct Plan {
    index: Index,
    /// The values of the index's first fields, as far as the alternative fixes them.
    fixed: Vec<Vec<u8>>,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    ranged: bool,
    sorted: bool,
}

/// A filter whose values are read once, as they are in this transaction.
pub(super) struct Wanted<'a> {
    pub(super) filter: &'a Filter,
    pub(super) order: &'a Order,
    pub(super) roots: Roots<'a>,
    /// Behind this one only.
    pub(super) after: Option<Rank>,
}

/// A walk over everything that matches, a row at a time.
pub(super) struct Walk {
    streams: Vec<Stream>,
    sorted: bool,
    back: bool,
    /// The index that says the order; none is the time alone.
    by: Option<Index>,
    tie: Tie,
    /// Fields of the index that the order leaves out, since the filter fixes them.
    skipped: usize,
    seen: BTreeSet<RowKey>,
    looked_at: usize,
    /// What was collected and sorted, where no index has the order.
    found: Option<std::vec::IntoIter<(Rank, RowKey)>>,
    after: Option<Rank>,
}

struct Stream {
    span: IndexSpan,
    head: std::collections::VecDeque<(Rank, RowKey)>,
    over: bool,
}

impl Wanted<'_> {
    /// Whether a row is meant.
    fn wants(&self, row: &Row, mismatches: &mut u32) -> bool {
        let roots = Roots { row: Some(row.value.value()), ..self.roots };
        self.filter.judge(&roots, mismatches) == Verdict::Holds
    }
}

/// The index whose order is asked for, or why there is none.
fn by(table: &TableDraft<'_>, order: &Order) -> Result<(Option<Index>, Tie), Rejection> {
    let OrderBy::Index(name) = &order.by else {
        let tie = if order.by == OrderBy::Updated { Tie::Updated } else { Tie::Created };
        return Ok((None, tie));
    };
    let declared: Vec<String> = table.spec.table.indexes.keys().map(|name| format!("index {name}")).collect();
    let expected = || {
        format!("an order by created, updated{}{}", if declared.is_empty() { "" } else { ", " }, declared.join(", "))
    };
    let subject = format!("table {}", table.name);
    match table.index(name) {
        Some(index) if index.stage == IndexStage::Ready => Ok((Some(index.clone()), index.spec.tie)),
        Some(index) if index.stage != IndexStage::Dropping => {
            let got = format!("index {name}, which is still being built");
            Err(Rejection::new(Code::Unavailable, subject, expected(), got).retry_after(crate::limits::BUSY_RETRY_MS))
        }
        _ => Err(Rejection::new(Code::Invalid, subject, expected(), format!("index {name}"))),
    }
}

fn plan(index: &Index, all: &[Comparison], roots: &Roots<'_>, by: Option<&Index>, tie: Tie) -> Plan {
    let on = |field: &Path, operators: &[Operator]| {
        let fits = move |one: &&Comparison| one.field == *field && operators.contains(&one.operator);
        all.iter().filter(fits).find_map(|one| Some((one.operator, roots.value(&one.value)?)))
    };
    let bytes = |value: &Json| {
        let mut out = Vec::new();
        order::put(Some(value), &mut out);
        out
    };
    let fixed: Vec<Vec<u8>> = index
        .spec
        .fields
        .iter()
        .map_while(|field| on(field, &[Operator::Eq]).map(|(_, value)| bytes(&value)))
        .collect();
    let prefix = fixed.concat();
    let (mut from, mut to, mut ranged) = (prefix.clone(), order::behind(&prefix), false);
    if let Some(field) = index.spec.fields.get(fixed.len()) {
        let (low, high) = (on(field, &[Operator::Gt, Operator::Ge]), on(field, &[Operator::Lt, Operator::Le]));
        let kinds = low.as_ref().or(high.as_ref()).and_then(|(_, value)| order::kind(value));
        if let Some((first, behind)) = kinds {
            ranged = true;
            let with = |bytes: &[u8]| [&prefix[..], bytes].concat();
            from = low.map_or_else(|| with(&[first]), |(_, value)| with(&bytes(&value)));
            to = match high {
                Some((_, value)) => order::behind(&with(&bytes(&value))),
                None => Some(with(&[behind])),
            };
        }
    }
    let whole = fixed.len() == index.spec.fields.len();
    let sorted = match by {
        Some(by) => by.number == index.number,
        None => whole && index.spec.tie == tie,
    };
    Plan { index: index.clone(), fixed, from, to, ranged, sorted }
}

impl Walk {
    /// Chooses the indexes.
    pub(super) fn of(table: &TableDraft<'_>, wanted: &Wanted<'_>) -> Result<Self, Rejection> {
        let (by, tie) = by(table, wanted.order)?;
        let everything = [Vec::new()];
        let alternatives: &[Vec<Comparison>] =
            if wanted.filter.any.is_empty() { &everything } else { &wanted.filter.any };
        let ready = || table.head.indexes.iter().filter(|index| index.stage == IndexStage::Ready);
        let mut plans: Vec<Plan> = Vec::new();
        for all in alternatives {
            let best = ready()
                .map(|index| plan(index, all, &wanted.roots, by.as_ref(), tie))
                .max_by_key(|plan| (plan.fixed.len(), plan.sorted, plan.ranged));
            plans.extend(best);
        }
        let sorted = plans.iter().all(|plan| plan.sorted);
        // What every alternative fixes says nothing about the order.
        let fixed = |plan: &Plan| {
            if by.as_ref().is_some_and(|by| by.number == plan.index.number) { plan.fixed.len() } else { 0 }
        };
        let skipped = plans.iter().map(fixed).min().unwrap_or_default();
        let back = wanted.order.descending;
        let mut streams: Vec<Stream> = Vec::new();
        for plan in plans {
            // What an earlier page ended with, as it stands in this index.
            let first = if by.is_some() { plan.fixed.iter().take(skipped).cloned().collect() } else { plan.fixed };
            let seek = |rank: &Rank| ([first.concat(), rank.bytes.clone()].concat(), rank.place, rank.key.clone());
            let span = IndexSpan {
                table: table.name.clone(),
                index: plan.index.number,
                from: plan.from,
                to: plan.to,
                after: wanted.after.as_ref().filter(|_| sorted).map(seek),
                back: sorted && back,
            };
            if streams.iter().all(|stream| stream.span != span) {
                streams.push(Stream { span, head: Default::default(), over: false });
            }
        }
        Ok(Self {
            streams,
            sorted,
            back,
            by,
            tie,
            skipped,
            seen: BTreeSet::new(),
            looked_at: 0,
            found: None,
            after: wanted.after.clone(),
        })
    }

    /// Where a row stands in the order.
    pub(super) fn rank(&self, key: &RowKey, row: &Row) -> Rank {
        let (bytes, place) = match &self.by {
            Some(by) => {
                let mut bytes = Vec::new();
                for field in by.spec.fields.iter().skip(self.skipped) {
                    order::put(field.find(row.value.value()), &mut bytes);
                }
                (bytes, position(by, row).1)
            }
            None => (Vec::new(), if self.tie == Tie::Updated { row.updated } else { row.created }),
        };
        Rank { bytes, place, key: key.clone() }
    }

    fn precedes(&self, a: &Rank, b: &Rank) -> bool {
        if self.back { a > b } else { a < b }
    }

    /// The next row that matches.
    pub(super) fn next(
        &mut self,
        table: &mut TableDraft<'_>,
        wanted: &Wanted<'_>,
        mismatches: &mut u32,
    ) -> Result<Result<Option<Rank>, Rejection>, Stop> {
        if !self.sorted {
            if self.found.is_none() {
                match self.collect(table, wanted, mismatches)? {
                    Ok(found) => self.found = Some(found.into_iter()),
                    Err(refused) => return Ok(Err(refused)),
                }
            }
            return Ok(Ok(self.found.as_mut().and_then(Iterator::next).map(|(rank, _)| rank)));
        }
        loop {
            if self.looked_at >= ROWS_SCANNED_MAX {
                return Ok(Err(self.too_far(table, wanted)));
            }
            match self.step(table, wanted, mismatches)? {
                Step::Over => return Ok(Ok(None)),
                Step::Passed => {}
                Step::Met(rank) => return Ok(Ok(Some(rank))),
            }
        }
    }

    /// Looks at one row of the stream whose turn it is.
    fn step(&mut self, table: &mut TableDraft<'_>, wanted: &Wanted<'_>, mismatches: &mut u32) -> Result<Step, Stop> {
        self.fill(table)?;
        let mut first: Option<usize> = None;
        for (at, stream) in self.streams.iter().enumerate() {
            let Some((rank, _)) = stream.head.front() else { continue };
            let best = first.and_then(|first| self.streams.get(first)?.head.front());
            if best.is_none_or(|(best, _)| self.precedes(rank, best)) {
                first = Some(at);
            }
        }
        let Some((rank, key)) = first.and_then(|at| self.streams.get_mut(at)?.head.pop_front()) else {
            return Ok(Step::Over);
        };
        self.looked_at = self.looked_at.saturating_add(1);
        if self.after.as_ref().is_some_and(|after| !self.precedes(after, &rank)) || !self.seen.insert(key.clone()) {
            return Ok(Step::Passed);
        }
        let row = table.row(&key)?.cloned();
        Ok(match row.filter(|row| wanted.wants(row, mismatches)) {
            Some(_) => Step::Met(rank),
            None => Step::Passed,
        })
    }

    /// Everything that matches, sorted.
    fn collect(
        &mut self,
        table: &mut TableDraft<'_>,
        wanted: &Wanted<'_>,
        mismatches: &mut u32,
    ) -> Result<Result<Vec<(Rank, RowKey)>, Rejection>, Stop> {
        let mut found = Vec::new();
        let after = self.after.take();
        loop {
            if self.looked_at >= ROWS_SCANNED_MAX {
                return Ok(Err(self.too_far(table, wanted)));
            }
            match self.step(table, wanted, mismatches)? {
                Step::Over => break,
                Step::Passed => {}
                Step::Met(rank) => found.push((rank.clone(), rank.key)),
            }
        }
        if let Some(after) = &after {
            found.retain(|(rank, _)| self.precedes(after, rank));
        }
        found.sort_unstable_by(|a, b| if self.back { b.cmp(a) } else { a.cmp(b) });
        Ok(Ok(found))
    }

    /// Reads on where a stream has been used up. Rows that this decision has changed stand elsewhere than the store
    /// says: they are a stream of their own.
    fn fill(&mut self, table: &mut TableDraft<'_>) -> Result<(), Stop> {
        if self.looked_at == 0 && self.streams.iter().all(|stream| !stream.over && stream.head.is_empty()) {
            let changed: Vec<(RowKey, Row)> =
                table.changed().filter_map(|(key, row)| Some((key.clone(), row?.clone()))).collect();
            let mut own: Vec<(Rank, RowKey)> =
                changed.iter().map(|(key, row)| (self.rank(key, row), key.clone())).collect();
            own.sort_unstable_by(|a, b| if self.back { b.cmp(a) } else { a.cmp(b) });
            if let Some(first) = self.streams.first()
                && !own.is_empty()
            {
                let span = first.span.clone();
                self.streams.push(Stream { span, head: own.into(), over: true });
            }
        }
        for at in 0..self.streams.len() {
            let Some(stream) = self.streams.get(at) else { continue };
            if stream.over || !stream.head.is_empty() {
                continue;
            }
            let entries = table.given.view.scan(&crate::view::Span::RowIndex(Box::new(stream.span.clone())), CHUNK)?;
            let over = entries.len() < CHUNK;
            let mut last = None;
            let mut head = std::collections::VecDeque::new();
            for (entry, _) in entries {
                let Key::RowIndex(_, _, bytes, place, key) = entry else { continue };
                last = Some((bytes, place, key.clone()));
                if table.is_changed(&key) {
                    continue;
                }
                let at = Key::Row(table.name.clone(), key.clone());
                let Some(Record::Row(row)) = table.given.view.get(&at)? else {
                    return Err(super::super::corrupt(&at, "an index names it, and it is not there"));
                };
                head.push_back((self.rank(&key, &row), key.clone()));
                table.know(&key, Some(*row));
            }
            if let Some(stream) = self.streams.get_mut(at) {
                stream.head = head;
                stream.over = over;
                if last.is_some() {
                    stream.span.after = last;
                }
            }
        }
        // A chunk may hold nothing but rows that were changed here.
        if self.streams.iter().any(|stream| !stream.over && stream.head.is_empty()) {
            return self.fill(table);
        }
        Ok(())
    }

    /// No index serves the filter, and the bound on looking for it is reached.
    fn too_far(&self, table: &TableDraft<'_>, wanted: &Wanted<'_>) -> Rejection {
        let fixed = |one: &&Comparison| one.operator == Operator::Eq;
        let mut fields: Vec<String> = Vec::new();
        for one in wanted.filter.any.iter().flat_map(|all| all.iter().filter(fixed)) {
            let name = one.field.to_string();
            let name = name.strip_prefix("row.").unwrap_or(&name).to_owned();
            if !fields.contains(&name) {
                fields.push(name);
            }
        }
        let ranged = wanted.filter.any.iter().flatten().find(|one| order_matters(one.operator));
        if let Some(one) = ranged.filter(|_| fields.is_empty()) {
            let name = one.field.to_string();
            fields.push(name.strip_prefix("row.").unwrap_or(&name).to_owned());
        }
        let help = match fields.is_empty() {
            true => "a filter that compares a field with a value, and an index on that field".to_owned(),
            false => format!("an index on [{}]", fields.join(", ")),
        };
        let expected = format!("at most {ROWS_SCANNED_MAX} rows to look at (rows_scanned_max): {help} would help");
        Rejection::new(Code::Limit, format!("table {}", table.name), expected, "more, and not enough of them match")
    }
}

fn order_matters(operator: Operator) -> bool {
    matches!(operator, Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge)
}

enum Step {
    Over,
    Passed,
    Met(Rank),
}
