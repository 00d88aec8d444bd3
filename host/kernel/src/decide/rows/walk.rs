//! Which rows a filter matches, in an order, without looking at the others: one walk of an index for each of the
//! filter's alternatives, merged.

use super::draft::{TableDraft, position};
use super::order;
use crate::ids::{RowKey, TableName};
use crate::limits::{INDEX_FIELDS_MAX, ROWS_SCANNED_MAX};
use crate::record::{Index, IndexStage, Key, Place, Row};
use crate::rejection::{Code, Rejection};
use crate::rows::{Order, OrderBy};
use crate::table::Tie;
use crate::value::{Comparison, Filter, Operator, Path, Root, Roots, Verdict};
use crate::view::{IndexSpan, Span, Stop};
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};

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
    ranking: Ranking,
    sorted: bool,
    seen: BTreeSet<RowKey>,
    looked_at: usize,
    /// What was collected and sorted, where no index has the order.
    found: Option<std::vec::IntoIter<Rank>>,
}

/// The order that was asked for.
struct Ranking {
    /// The index that says the order; none is the time alone.
    by: Option<Index>,
    tie: Tie,
    /// Fields of the index that the order leaves out, since the filter fixes them.
    skipped: usize,
    back: bool,
}

/// Rows in order: what was read, and where to read on.
struct Stream {
    head: VecDeque<Rank>,
    rest: Option<IndexSpan>,
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
        Some(_) => {
            let got = format!("index {name}, which is still being built");
            Err(Rejection::new(Code::Unavailable, subject, expected(), got).retry_after(crate::limits::BUSY_RETRY_MS))
        }
        None => Err(Rejection::new(Code::Invalid, subject, expected(), format!("index {name}"))),
    }
}

/// What an alternative compares a field with, in one of these ways.
fn compared(all: &[Comparison], roots: &Roots<'_>, field: &Path, operators: &[Operator]) -> Option<Json> {
    let fits = |one: &&Comparison| one.field == *field && operators.contains(&one.operator);
    all.iter().filter(fits).find_map(|one| roots.value(&one.value))
}

fn bytes(value: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    order::put(Some(value), &mut out);
    out
}

/// The values of an index's first fields, as far as an alternative fixes them.
fn fixed(index: &Index, all: &[Comparison], roots: &Roots<'_>) -> Vec<Vec<u8>> {
    let value = |field| compared(all, roots, field, &[Operator::Eq]);
    index.spec.fields.iter().map_while(|field| value(field).map(|value| bytes(&value))).collect()
}

fn plan(index: &Index, all: &[Comparison], roots: &Roots<'_>, by: Option<&Index>, tie: Tie) -> Plan {
    let fixed = fixed(index, all, roots);
    let prefix = fixed.concat();
    let (mut from, mut to, mut ranged) = (prefix.clone(), order::behind(&prefix), false);
    if let Some(field) = index.spec.fields.get(fixed.len()) {
        let on = |operators: &[Operator]| compared(all, roots, field, operators);
        let (low, high) = (on(&[Operator::Gt, Operator::Ge]), on(&[Operator::Lt, Operator::Le]));
        let kinds = low.as_ref().or(high.as_ref()).and_then(order::kind);
        if let Some((first, behind)) = kinds {
            ranged = true;
            let with = |bytes: &[u8]| [&prefix[..], bytes].concat();
            from = low.map_or_else(|| with(&[first]), |value| with(&bytes(&value)));
            to = match high {
                Some(value) => order::behind(&with(&bytes(&value))),
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
        // What every alternative fixes says nothing about the order, whichever indexes serve them.
        let fixes = |by: &Index| alternatives.iter().map(|all| fixed(by, all, &wanted.roots).len()).min();
        let skipped = by.as_ref().and_then(fixes).unwrap_or_default();
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
                back: wanted.order.descending,
            };
            if streams.iter().all(|stream| stream.rest.as_ref() != Some(&span)) {
                streams.push(Stream { head: VecDeque::new(), rest: Some(span) });
            }
        }
        let ranking = Ranking { by, tie, skipped, back: wanted.order.descending };
        // Rows that this decision has changed stand elsewhere than the store says.
        let mut own: Vec<Rank> = table.changed().map(|(key, row)| ranking.of(key, row)).collect();
        own.sort_unstable_by(|a, b| ranking.compare(a, b));
        streams.push(Stream { head: own.into(), rest: None });
        Ok(Self { streams, ranking, sorted, seen: BTreeSet::new(), looked_at: 0, found: None })
    }

    /// What the order is by, as long as its index is not declared anew: a rank is one of this order only.
    pub(super) fn order(&self) -> String {
        let Ranking { by, tie, skipped, .. } = &self.ranking;
        match (by, tie) {
            (Some(by), _) => format!("{}-{skipped}", by.number),
            (None, Tie::Created) => "created".to_owned(),
            (None, Tie::Updated) => "updated".to_owned(),
        }
    }

    /// The next row that matches.
    pub(super) fn next(
        &mut self,
        table: &mut TableDraft<'_>,
        wanted: &Wanted<'_>,
        mismatches: &mut u32,
    ) -> Result<Result<Option<Rank>, Rejection>, Stop> {
        if self.sorted {
            return self.meet(table, wanted, mismatches);
        }
        if self.found.is_none() {
            match self.collect(table, wanted, mismatches)? {
                Ok(found) => self.found = Some(found.into_iter()),
                Err(refused) => return Ok(Err(refused)),
            }
        }
        Ok(Ok(self.found.as_mut().and_then(Iterator::next)))
    }

    /// Everything that matches, sorted.
    fn collect(
        &mut self,
        table: &mut TableDraft<'_>,
        wanted: &Wanted<'_>,
        mismatches: &mut u32,
    ) -> Result<Result<Vec<Rank>, Rejection>, Stop> {
        let mut found = Vec::new();
        loop {
            match self.meet(table, wanted, mismatches)? {
                Ok(Some(rank)) => found.push(rank),
                Ok(None) => break,
                Err(refused) => return Ok(Err(refused)),
            }
        }
        if let Some(after) = &wanted.after {
            found.retain(|rank| self.ranking.compare(after, rank) == Ordering::Less);
        }
        found.sort_unstable_by(|a, b| self.ranking.compare(a, b));
        Ok(Ok(found))
    }

    /// The next row that matches, as the indexes have them.
    fn meet(
        &mut self,
        table: &mut TableDraft<'_>,
        wanted: &Wanted<'_>,
        mismatches: &mut u32,
    ) -> Result<Result<Option<Rank>, Rejection>, Stop> {
        loop {
            self.fill(table)?;
            let Some(rank) = self.first() else { return Ok(Ok(None)) };
            if self.looked_at >= ROWS_SCANNED_MAX {
                return Ok(Err(too_far(&table.name, wanted.filter)));
            }
            self.looked_at = self.looked_at.saturating_add(1);
            if !self.seen.insert(rank.key.clone()) {
                continue;
            }
            if table.row(&rank.key)?.is_some_and(|row| wanted.wants(row, mismatches)) {
                return Ok(Ok(Some(rank)));
            }
        }
    }

    /// The row whose turn it is among the streams.
    fn first(&mut self) -> Option<Rank> {
        let read = self.streams.iter_mut().filter(|stream| !stream.head.is_empty());
        read.min_by(|a, b| self.ranking.compare(&a.head.front(), &b.head.front()))?.head.pop_front()
    }

    /// Reads on where a stream has been used up; rows that this decision has changed are in a stream of their own.
    fn fill(&mut self, table: &mut TableDraft<'_>) -> Result<(), Stop> {
        for stream in &mut self.streams {
            while stream.head.is_empty()
                && let Some(span) = stream.rest.take()
            {
                let entries = table.given.view.scan(&Span::RowIndex(Box::new(span.clone())), CHUNK)?;
                let full = entries.len() >= CHUNK;
                let (mut head, mut last) = (VecDeque::new(), None);
                for (entry, _) in entries {
                    let Key::RowIndex(_, _, bytes, place, key) = entry else { continue };
                    if !table.is_changed(&key) {
                        head.push_back(self.ranking.of(&key, table.named(&key)?));
                    }
                    last = Some((bytes, place, key));
                }
                stream.head = head;
                if full {
                    stream.rest = Some(IndexSpan { after: last, ..span });
                }
            }
        }
        Ok(())
    }
}

impl Ranking {
    /// Where a row stands in the order.
    fn of(&self, key: &RowKey, row: &Row) -> Rank {
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

    fn compare<T: Ord>(&self, a: &T, b: &T) -> Ordering {
        if self.back { b.cmp(a) } else { a.cmp(b) }
    }
}

/// No index serves the filter, and the bound on looking for it is reached.
fn too_far(table: &TableName, filter: &Filter) -> Rejection {
    let mut indexes: Vec<String> = Vec::new();
    let mut serve = !filter.any.is_empty();
    for all in &filter.any {
        let fields = served_by(all);
        serve &= !fields.is_empty();
        let index = format!("an index on [{}]", fields.join(", "));
        if !indexes.contains(&index) {
            indexes.push(index);
        }
    }
    let help = match serve {
        false => "a filter that compares a field with a value, and an index on that field".to_owned(),
        true => indexes.join(" and "),
    };
    let expected = format!("at most {ROWS_SCANNED_MAX} rows to look at (rows_scanned_max): {help} would help");
    Rejection::new(Code::Limit, format!("table {table}"), expected, "more, and not enough of them match")
}

/// The fields of an index that would serve one alternative, as a declaration writes them.
fn served_by(all: &[Comparison]) -> Vec<String> {
    // Of the row, and not the whole of it: nothing else can be in an index.
    let in_row = |one: &&Comparison| one.field.root == Root::Row && !one.field.segments.is_empty();
    let mut fields: Vec<String> = Vec::new();
    let fixed = all.iter().filter(in_row).filter(|one| one.operator == Operator::Eq);
    for name in fixed.map(|one| name(&one.field)) {
        if fields.len() < INDEX_FIELDS_MAX && !fields.contains(&name) {
            fields.push(name);
        }
    }
    if fields.is_empty() {
        let ranged = all.iter().filter(in_row).find(|one| has_order(one.operator));
        fields.extend(ranged.map(|one| name(&one.field)));
    }
    fields
}

/// A field of the row without `row.`, unless it would be read as the row itself.
fn name(field: &Path) -> String {
    let text = field.to_string();
    let short = text.strip_prefix("row.").unwrap_or(&text);
    let is_row = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    if short.strip_prefix("row").is_some_and(is_row) { text } else { short.to_owned() }
}

fn has_order(operator: Operator) -> bool {
    matches!(operator, Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge)
}
