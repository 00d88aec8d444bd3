//! Attempts on tables: `ours` grants this machine everything, `theirs` nothing.

use crate::attempts::{all_refused, say};
use crate::bindings::Entity;
use crate::bindings::interlock::step::rows;
use crate::bindings::interlock::step::types::{Assignment, Comparison, Mutation, Operator, Rejection, Value};
use crate::{Went, change, heard, permanent};

fn json(text: &str) -> Value {
    Value::Json(text.to_owned())
}

fn assign(field: &str, value: Value) -> Assignment {
    Assignment { field: field.to_owned(), value }
}

fn put(entity: &Entity, table: &str, key: Value) -> Result<(), Rejection> {
    let putting = rows::Putting { key, value: "{}".to_owned(), fill: Vec::new(), expect: None, fields: Vec::new() };
    rows::put(entity, table, &putting, None).map(drop)
}

fn update(entity: &Entity, set: Vec<Mutation>) -> Result<(), Rejection> {
    let updating = rows::Updating { key: json("\"a\""), where_: Vec::new(), set, fields: Vec::new(), must: false };
    rows::update(entity, "ours", &updating, None).map(drop)
}

fn claiming(limit: Option<u32>) -> rows::Claiming {
    rows::Claiming { where_: None, set: None, order: None, limit, delete: false, fields: Vec::new(), must: false }
}

fn getting(key: &str) -> rows::Getting {
    rows::Getting { key: json(key), fields: Vec::new() }
}

fn query(entity: &Entity, field: &str, value: Value, times: usize) -> Result<(), Rejection> {
    let test = || Comparison { field: field.to_owned(), operator: Operator::Eq, value: value.clone() };
    let where_ = vec![(0..times).map(|_| test()).collect()];
    let asked = rows::Querying { where_, order: None, limit: None, after: None, fields: Vec::new() };
    rows::query(entity, "ours", &asked).map(drop)
}

/// A table that grants nothing, by every function; one that nobody declared; one that this machine does not name.
pub(crate) fn not_granted(entity: &Entity) -> Went {
    let get = |table: &str| rows::get(entity, table, &getting("\"a\"")).map(drop);
    let operation = || rows::Operation { table: "theirs".to_owned(), what: rows::Action::Get(getting("\"a\"")) };
    let where_ = Vec::new;
    let required =
        rows::RowRequirement { table: "theirs".to_owned(), key: json("\"a\""), present: false, where_: where_() };
    all_refused([
        get("theirs"),
        get("nowhere"),
        get("unnamed"),
        put(entity, "theirs", json("\"a\"")),
        rows::claim(entity, "theirs", &claiming(None), None).map(drop),
        rows::query(
            entity,
            "theirs",
            &rows::Querying { where_: where_(), order: None, limit: None, after: None, fields: Vec::new() },
        )
        .map(drop),
        rows::delete(entity, "theirs", &rows::Deleting { key: json("\"a\""), where_: where_(), must: false }, None)
            .map(drop),
        rows::transact(entity, &[operation()], &[], None).map(drop),
        rows::stage(entity, &operation()).and_then(|()| entity.transition(&change("alarm"))),
        rows::require_row(entity, &required).and_then(|()| entity.transition(&change("alarm"))),
    ])
}

/// Names and keys that are none, one of each a mebibyte; marks and names of requests that nobody gave.
pub(crate) fn names(entity: &Entity) -> Went {
    let long = "x".repeat(1 << 20);
    let quoted = format!("\"{long}\"");
    let etag = |etag: &str| {
        let expect = Some(rows::Expected::Etag(etag.to_owned()));
        let fields = Vec::new();
        let putting = rows::Putting { key: json("\"a\""), value: "{}".to_owned(), fill: Vec::new(), expect, fields };
        rows::put(entity, "ours", &putting, None).map(drop)
    };
    let op = |op: &str| rows::claim(entity, "ours", &claiming(None), Some(op)).map(drop);
    all_refused([
        put(entity, "", json("\"a\"")),
        put(entity, "../ours", json("\"a\"")),
        put(entity, &long, json("\"a\"")),
        put(entity, "ours", json("\"\"")),
        put(entity, "ours", json("[1]")),
        put(entity, "ours", json("{")),
        put(entity, "ours", json(&quoted)),
        put(entity, "ours", Value::From("event.nothing".to_owned())),
        etag("-1"),
        etag(&long),
        etag("7"),
        op(""),
        op(&long),
    ])
}

/// Paths, values and numbers of comparisons that are none or too many.
pub(crate) fn filters(entity: &Entity) -> Went {
    let long = format!("\"{}\"", "x".repeat(2 << 20));
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    all_refused([
        query(entity, "", json("1"), 1),
        query(entity, "a..b", json("1"), 1),
        query(entity, "a[x]", json("1"), 1),
        query(entity, &"a.".repeat(100_000), json("1"), 1),
        query(entity, "a", json("nul"), 1),
        query(entity, "a", json(&nested), 1),
        query(entity, "a", json(&long), 1),
        query(entity, "a", Value::From("row".repeat(1_000)), 1),
        query(entity, "a", json("1"), 257),
    ])
}

/// Changes of a row that are none, that overflow, or that are too many.
pub(crate) fn changes(entity: &Entity) -> Went {
    if let Err(e) = put(entity, "ours", json("\"a\"")) {
        return Went::Over(Err(permanent(heard(&e))));
    }
    let add = |by: &str| Mutation::Increment(assign("n", json(by)));
    all_refused([
        update(entity, Vec::new()),
        update(entity, vec![add("18446744073709551615"), add("1")]),
        update(entity, vec![add("\"one\"")]),
        update(entity, vec![add("1e999")]),
        update(entity, vec![Mutation::Set(assign("", json("7")))]),
        update(entity, vec![Mutation::Set(assign("n", Value::From("secret".to_owned())))]),
        update(entity, (0..65).map(|_| add("1")).collect()),
    ])
}

/// More than the bounds, of everything that is counted.
pub(crate) fn counts(entity: &Entity) -> Went {
    let claim = |limit: u32| rows::claim(entity, "ours", &claiming(Some(limit)), None).map(drop);
    let operation = || rows::Operation { table: "ours".to_owned(), what: rows::Action::Get(getting("\"a\"")) };
    let required = || {
        let (table, key) = ("ours".to_owned(), json("\"a\""));
        rows::Requirement::Row(rows::RowRequirement { table, key, present: false, where_: Vec::new() })
    };
    let operations = |count: usize| (0..count).map(|_| operation()).collect::<Vec<_>>();
    let requirements: Vec<_> = (0..33).map(|_| required()).collect();
    let fields = rows::Getting { key: json("\"a\""), fields: (0..65).map(|nth| format!("f{nth}")).collect() };
    let staged = (0..65).try_for_each(|_| rows::stage(entity, &operation()));
    all_refused([
        claim(0),
        claim(1_001),
        claim(u32::MAX),
        rows::transact(entity, &operations(65), &[], None).map(drop),
        rows::transact(entity, &operations(50_000), &[], None).map(drop),
        rows::transact(entity, &[], &requirements, None).map(drop),
        rows::get(entity, "ours", &fields).map(drop),
        staged,
    ])
}

/// What it is refused, 40 times.
pub(crate) fn refusals(entity: &Entity) -> Went {
    for _ in 0..40 {
        let _ = rows::claim(entity, "theirs", &claiming(None), None);
    }
    Went::Through("40 refusals were answered".to_owned())
}

/// Behind its accepted transition: it is told once, and trapped then.
pub(crate) fn after_the_end(entity: &Entity) -> Went {
    if let Err(e) = entity.transition(&change("calm")) {
        return Went::Over(Err(permanent(heard(&e))));
    }
    match put(entity, "ours", json("\"late\"")) {
        Ok(()) => say("a row was written behind the end"),
        Err(e) => say(&heard(&e)),
    }
    let _ = put(entity, "ours", json("\"later\""));
    say("a call behind the end was answered twice");
    Went::Over(Ok(()))
}
