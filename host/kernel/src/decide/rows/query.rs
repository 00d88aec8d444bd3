//! Reading rows by filter, a page at a time.

use super::super::attempt::{fenced, gone};
use super::super::draft::{Draft, Given};
use super::Asker;
use super::draft::{Tables, shown};
use super::values::overcompared;
use super::walk::{Rank, Walk, Wanted};
use crate::limits::{ROWS_BYTES_MAX, ROWS_MAX};
use crate::record::Place;
use crate::rejection::{Code, Rejection};
use crate::rows::{QueryAnswer, QueryAsk, Reader};
use crate::table::Right;
use crate::view::Stop;

/// See [`crate::query`].
pub(in crate::decide) fn query(
    given: &Given<'_>,
    by: Reader<'_>,
    ask: &QueryAsk,
) -> Result<Result<QueryAnswer, Rejection>, Stop> {
    match by {
        Reader::Client(label) => page(given, &Asker::Client(label), ask),
        Reader::Step(claim) => {
            let Some(mut draft) = Draft::of(given, &claim.execution.entity)? else { return Ok(Err(gone(claim))) };
            if let Some(refused) = fenced(&draft, claim) {
                return Ok(Err(refused));
            }
            // As for whatever else it asks: its event, and its documents as they are now.
            let payload = draft.payload()?;
            let scope = draft.scope(payload)?;
            let machine = draft.machine();
            let (tables, peers) = (&machine.tables, &machine.peers);
            page(given, &Asker::Step { execution: &claim.execution, tables, peers, scope: &scope }, ask)
        }
    }
}

/// The rows that somebody may read.
fn page(given: &Given<'_>, asker: &Asker<'_>, ask: &QueryAsk) -> Result<Result<QueryAnswer, Rejection>, Stop> {
    let mut tables = Tables::of(given);
    if let Some(refused) = tables.allowed(asker, &ask.table, Right::Query)? {
        return Ok(Err(refused));
    }
    let subject = || format!("table {}", ask.table);
    if !(1..=ROWS_MAX).contains(&ask.limit) {
        let expected = format!("a limit of 1 to {ROWS_MAX} rows (rows_max)");
        return Ok(Err(Rejection::new(Code::Limit, subject(), expected, ask.limit)));
    }
    if let Some(refused) = overcompared(&ask.filter) {
        return Ok(Err(Rejection { subject: subject(), ..refused }));
    }
    let (order, after) = match ask.after.as_deref().map(parse).transpose() {
        Ok(after) => after.unzip(),
        Err(got) => {
            let expected = "the `next` of an earlier answer to the same query";
            return Ok(Err(Rejection::new(Code::Invalid, subject(), expected, got)));
        }
    };
    let roots = asker.roots(given.now);
    let wanted = Wanted { filter: &ask.filter, order: &ask.order, roots, after };
    let table = tables.table(&ask.table)?;
    let mut walk = match Walk::of(table, &wanted) {
        Ok(walk) => walk,
        Err(refused) => return Ok(Err(refused)),
    };
    if order.is_some_and(|order| order != walk.order()) {
        let expected = "a `next` of this order, by indexes as they are declared now: begin again, without `after`";
        let got = "one of another order, or of an index that was declared anew since";
        return Ok(Err(Rejection::new(Code::Invalid, subject(), expected, got)));
    }
    let (mut answer, mut bytes, mut mismatches) = (QueryAnswer::default(), 0_usize, 0);
    let mut last: Option<Rank> = None;
    loop {
        let rank = match walk.next(table, &wanted, &mut mismatches)? {
            Ok(Some(rank)) => rank,
            Ok(None) => return Ok(Ok(answer)),
            Err(refused) if last.is_none() => return Ok(Err(refused)),
            Err(_) => break,
        };
        let Some(row) = table.row(&rank.key)? else { continue };
        bytes = bytes.saturating_add(row.value.text().len());
        let full = answer.rows.len() >= usize::try_from(ask.limit).unwrap_or(usize::MAX);
        if full || bytes > ROWS_BYTES_MAX {
            break;
        }
        answer.rows.push(shown(&rank.key, row, &ask.fields));
        last = Some(rank);
    }
    answer.next = last.map(|rank| write(&walk.order(), &rank));
    Ok(Ok(answer))
}

/// An order and a place in it, as a text for whoever comes back with it.
fn write(order: &str, rank: &Rank) -> String {
    let bytes: String = rank.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{order}.{bytes}.{}.{}.{}", rank.place.seq, rank.place.n, rank.key)
}

fn parse(text: &str) -> Result<(String, Rank), String> {
    let bad = || format!("{:?}", crate::rejection::cut(text));
    let mut parts = text.splitn(5, '.');
    let mut next = || parts.next().ok_or_else(bad);
    let (order, digits, seq, n, key) = (next()?, next()?, next()?, next()?, next()?);
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at.saturating_add(2))?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    let rank = Rank {
        bytes: bytes.ok_or_else(bad)?,
        place: Place { seq: seq.parse().map_err(|_| bad())?, n: n.parse().map_err(|_| bad())? },
        key: key.parse().map_err(|_| bad())?,
    };
    Ok((order.to_owned(), rank))
}
