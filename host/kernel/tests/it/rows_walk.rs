//! Which rows a filter and an order come to, whatever index serves them: compared with a plain loop over all rows.

use crate::build::{comparison, name};
use crate::rows::{all, answers, asked, declared, index, op, put, queue, table_name, taken};
use crate::world::World;
use interlock_kernel::record::{Key, Record, Row};
use interlock_kernel::rejection::Rejection;
use interlock_kernel::rows::{Order, OrderBy, QueryAnswer, QueryAsk, Reader, RowAsk, RowOp, RowsAsk};
use interlock_kernel::table::{IndexSpec, Tie};
use interlock_kernel::value::{Filter, Roots, Verdict};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::cmp::Ordering;

/// Key, n and status.
type Few = (u8, Option<i8>, u8);

/// Rows with few different values, so that everything collides.
fn rows(dice: &mut StdRng) -> Vec<Few> {
    let one = |dice: &mut StdRng| {
        let n = dice.random_bool(0.7).then(|| dice.random_range(-2..3));
        (dice.random_range(0..20), n, dice.random_range(0..3))
    };
    (0..dice.random_range(1..40)).map(|_| one(dice)).collect()
}

fn filled(rows: &[Few], indexed: bool) -> World {
    let mut world = World::bare();
    world.open();
    let declared_indexes: &[(&str, &[&str])] =
        if indexed { &[("by-status", &["status"]), ("by-n", &["status", "n"]), ("n-only", &["n"])] } else { &[] };
    let mut table = queue(declared_indexes);
    if indexed {
        table.indexes.insert(name("touched"), IndexSpec { tie: Tie::Updated, ..index(&["status"]) });
    }
    world.ok(declared(&table));
    world.unchecked = true;
    world.silent = true;
    for (key, n, status) in rows {
        let n = n.map_or(String::new(), |n| format!(r#""n":{n},"#));
        let value = format!(r#"{{{n}"status":"{}"}}"#, ["pending", "in_flight", "done"][usize::from(*status)]);
        answers(
            &mut world,
            asked("client", None, RowsAsk { require: vec![], ops: vec![put(&format!("k{key}"), &value)] }),
        );
    }
    world.unchecked = false;
    crate::rows::check(&world, "filled");
    world
}

fn filter(dice: &mut StdRng) -> Filter {
    const COMPARISONS: [&str; 9] = [
        "row.status eq \"pending\"",
        "row.status eq \"done\"",
        "row.n gt 0",
        "row.n le 1",
        "row.n ge -1",
        "row.n lt 2",
        "row.n eq 1",
        "row.n exists false",
        "row.status gt \"e\"",
    ];
    let one = |dice: &mut StdRng| comparison(COMPARISONS[dice.random_range(0..COMPARISONS.len())]);
    let all = |dice: &mut StdRng| (0..dice.random_range(0..3)).map(|_| one(dice)).collect();
    Filter { any: (0..dice.random_range(0..3)).map(|_| all(dice)).collect() }
}

/// What one seed asks: the rows, a filter, an order, a limit.
fn asks() -> impl Iterator<Item = (u64, Vec<Few>, Filter, Order, u32)> {
    (0..60).map(|seed| {
        let mut dice = StdRng::seed_from_u64(seed);
        let (rows, filter) = (rows(&mut dice), filter(&mut dice));
        let order = order(dice.random_range(0..2), dice.random_bool(0.5));
        (seed, rows, filter, order, dice.random_range(1..7))
    })
}

fn order(by: u8, descending: bool) -> Order {
    let by = if by == 0 { OrderBy::Created } else { OrderBy::Updated };
    Order { by, descending }
}

/// A plain loop over everything.
fn expected(world: &World, filter: &Filter, order: &Order) -> Vec<String> {
    let mut found: Vec<(String, Row)> = Vec::new();
    for (key, record) in world.records.iter() {
        let (Key::Row(_, key), Record::Row(row)) = (key, record) else { continue };
        let roots = Roots { row: Some(row.value.value()), ..Roots::default() };
        if filter.judge(&roots, &mut 0) == Verdict::Holds {
            found.push((key.to_string(), (**row).clone()));
        }
    }
    found.sort_by(|(_, a), (_, b)| {
        let plain = match order.by {
            OrderBy::Updated => a.updated.cmp(&b.updated),
            _ => a.created.cmp(&b.created),
        };
        if order.descending { plain.reverse() } else { plain.then(Ordering::Equal) }
    });
    found.into_iter().map(|(key, _)| key).collect()
}

pub(crate) fn ask(filter: &Filter, order: &Order, limit: u32, after: Option<String>) -> QueryAsk {
    let (filter, order) = (filter.clone(), order.clone());
    QueryAsk { table: table_name("jobs"), filter, order, limit, after, fields: vec![] }
}

/// One page of a query.
pub(crate) fn page(world: &World, ask: &QueryAsk) -> Result<QueryAnswer, Rejection> {
    interlock_kernel::query(&world.records, &world.rules, world.now(), Reader::Client("client"), ask).unwrap()
}

/// The keys of a page.
pub(crate) fn keys(page: &QueryAnswer) -> Vec<String> {
    page.rows.iter().map(|row| row.key.to_string()).collect()
}

/// All pages of a query.
pub(crate) fn pages(world: &World, filter: &Filter, order: &Order, limit: u32) -> Vec<String> {
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let page = page(world, &ask(filter, order, limit, after)).unwrap();
        keys.extend(self::keys(&page));
        assert!(keys.len() < 20_000, "pages without end");
        after = page.next;
        if after.is_none() {
            return keys;
        }
    }
}

pub(crate) fn take(filter: &Filter, order: &Order, limit: u32) -> RowOp {
    let (filter, order) = (Some(filter.clone()), order.clone());
    op(RowAsk::Claim { filter, set: None, order, limit, delete: false })
}

#[test]
fn a_query_shows_what_matches_in_order_with_and_without_indexes() {
    for (seed, rows, filter, order, limit) in asks() {
        for indexed in [false, true] {
            let world = filled(&rows, indexed);
            assert_eq!(pages(&world, &filter, &order, limit), expected(&world, &filter, &order), "seed {seed}");
        }
    }
}

#[test]
fn a_claim_takes_what_a_query_shows() {
    for (seed, rows, filter, order, limit) in asks() {
        let mut world = filled(&rows, true);
        let first: Vec<String> = expected(&world, &filter, &order).into_iter().take(limit as usize).collect();
        let ask = RowsAsk { require: vec![], ops: vec![take(&filter, &order, limit)] };
        let answer = answers(&mut world, asked("client", None, ask)).remove(0);
        assert_eq!(taken(&answer), first, "seed {seed}");
    }
}

#[test]
fn two_claims_in_one_transaction_are_two_claims_after_each_other() {
    for (seed, rows, filter, order, limit) in asks() {
        let twice = |apart: bool| {
            let mut world = filled(&rows, true);
            let ask = |n| RowsAsk { require: vec![], ops: vec![take(&filter, &order, limit); n] };
            let mut done = answers(&mut world, asked("client", None, ask(if apart { 1 } else { 2 })));
            if apart {
                done.extend(answers(&mut world, asked("client", None, ask(1))));
            }
            done.iter().map(taken).collect::<Vec<_>>()
        };
        assert_eq!(twice(true), twice(false), "seed {seed}");
    }
}

#[test]
fn an_index_orders_by_its_fields_without_those_that_the_filter_fixes() {
    let rows: Vec<Few> =
        vec![(1, Some(2), 0), (2, Some(0), 1), (3, Some(1), 0), (4, None, 1), (5, Some(2), 1), (6, Some(1), 2)];
    let world = filled(&rows, true);
    let by = |descending| Order { by: OrderBy::Index(name("by-n")), descending };
    let open = Filter {
        any: vec![vec![comparison("row.status eq \"pending\"")], vec![comparison("row.status eq \"in_flight\"")]],
    };
    assert_eq!(pages(&world, &open, &by(false), 2), ["k4", "k2", "k3", "k1", "k5"]);
    assert_eq!(pages(&world, &open, &by(true), 2), ["k5", "k1", "k3", "k2", "k4"]);
    assert_eq!(pages(&world, &all("row.n ge 1"), &by(false), 2), ["k6", "k5", "k3", "k1"], "status, then n");
}
