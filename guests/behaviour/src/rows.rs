//! Rows: one at a time, many, several at once, and with the next commit.

use crate::{Answer, Behaviour, Went, expect_refused, refused};
use interlock::rows::{Answer as Did, Deleted, Order, Row, Updated};
use interlock::{Entity, Failure, Value as Put, checkpoint, field, from};
use serde_json::{Value, json};

pub(crate) const ALL: &[(&str, Behaviour)] = &[
    ("rows", one_at_a_time),
    ("rows-etag", etag),
    ("rows-query", query),
    ("rows-claim", claim),
    ("rows-take", take),
    ("rows-transact", transact),
    ("rows-must", must),
    ("rows-stage", stage),
    ("rows-require", require),
    ("rows-named", named),
    ("rows-remembered", remembered),
    ("rows-id-reused", id_reused),
    ("rows-denied", |entity, _| expect_refused(entity.rows("closed").get("a").now())),
];

fn value(row: &Row) -> Result<Value, Failure> {
    row.value()
}

fn values(rows: &[Row]) -> Result<Vec<Value>, Failure> {
    rows.iter().map(value).collect()
}

fn keys(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.key.as_str()).collect()
}

/// The value of a changed row, or the comparison that did not hold, or `absent`.
fn updated(updated: Updated) -> Result<Value, Failure> {
    match updated {
        Updated::Changed(row) => value(&row),
        Updated::Unmatched(miss) => Ok(json!(miss.guard.as_deref().unwrap_or("absent"))),
    }
}

fn one_at_a_time(entity: &Entity, _: &Value) -> Answer {
    let jobs = entity.rows("jobs");
    let put = jobs.put("a", &json!({ "status": "new", "n": 1 })).if_absent().now()?;
    let got = jobs.get("a").now()?.ok_or(Failure::permanent("a is not there"))?;
    let some = jobs.get("a").fields(["n"]).now()?.ok_or(Failure::permanent("a is not there"))?;
    let nobody = jobs.get("nobody").now()?;
    let is_new = || field("status").eq("new");
    let changed = jobs.update("a").only_if(is_new()).set("status", "old").increment("n", 1).now()?;
    let unmatched = jobs.update("a").only_if(is_new()).set("status", "older").now()?;
    let absent = jobs.update("nobody").set("status", "old").now()?;
    let added = jobs.upsert("a", &json!({ "status": "new", "n": 0 })).increment("n", 5).now()?;
    let filled = jobs.upsert("b", &json!({ "status": "new" })).fill("n", from("event.value")).now()?;
    let gone = jobs.delete("a").now()?;
    let again = jobs.delete("a").now()?;
    Ok(Went::Saw(json!({
        "put": put.inserted,
        "got": value(&got)?, "key": got.key, "claims": got.claims, "claimed": got.claimed_by.is_some(),
        "fields": value(&some)?,
        "nobody": nobody.is_none(),
        "changed": updated(changed)?,
        "unmatched": updated(unmatched)?,
        "absent": updated(absent)?,
        "added": { "inserted": added.inserted, "value": value(&added.row)? },
        "filled": { "inserted": filled.inserted, "value": value(&filled.row)? },
        "gone": [gone.is_gone(), matches!(again, Deleted::Gone(_))],
    })))
}

fn etag(entity: &Entity, _: &Value) -> Answer {
    let jobs = entity.rows("jobs");
    let first = jobs.put("a", &json!({ "status": "new", "n": 1 })).now()?.row;
    let second = jobs.put("a", &json!({ "status": "new", "n": 2 })).if_still(&first).now()?.row;
    let stale = jobs.put("a", &json!({ "status": "new", "n": 3 })).if_still(&first).now();
    let there = jobs.put("a", &json!({ "status": "new", "n": 4 })).if_absent().now();
    let code = |asked: Result<_, interlock::Rejection>| asked.err().map(|no| no.code);
    Ok(Went::Saw(json!({
        "n": value(&second)?["n"], "differ": first.etag != second.etag, "stale": code(stale), "there": code(there),
    })))
}

/// The rows with an `n` of 2 or more, the greatest first, two at a time and their `n` alone.
fn query(entity: &Entity, _: &Value) -> Answer {
    let two = || {
        let matching = entity.rows("jobs").query().matching(field("n").ge(2));
        matching.order(Order::index("by-n").descending()).limit(2).fields(["n"])
    };
    let first = two().now()?;
    let next = first.next.clone().ok_or(Failure::permanent("there is no second page"))?;
    let second = two().after(next).now()?;
    let either = entity.rows("jobs").query().matching(field("n").eq(1).or(field("status").starts_with("d"))).now()?;
    Ok(Went::Saw(json!({
        "first": keys(&first.rows), "values": values(&first.rows)?, "second": keys(&second.rows),
        "more": second.next.is_some(), "either": keys(&either.rows),
    })))
}

fn claim(entity: &Entity, _: &Value) -> Answer {
    let jobs = entity.rows("jobs");
    let taken = jobs.claim().limit(2).now()?;
    let first = taken.rows.first().ok_or(Failure::permanent("nothing was claimed"))?;
    let mine = field("claimed_by").eq(from("execution"));
    let settled = jobs.update(&*first.key).only_if(mine).set("status", "done").now()?;
    let rest = jobs.claim().now()?;
    let none = jobs.claim().now()?;
    Ok(Went::Saw(json!({
        "taken": keys(&taken.rows), "status": value(first)?["status"], "claims": first.claims,
        "mine": first.claimed_by.as_deref() == Some(&*entity.execution()),
        "settled": settled.row().is_some(), "rest": keys(&rest.rows), "none": keys(&none.rows),
    })))
}

fn take(entity: &Entity, _: &Value) -> Answer {
    let greatest = entity.rows("jobs").claim().matching(field("n").gt(1)).order(Order::index("by-n").descending());
    let taken = greatest.limit(1).and_delete().now()?;
    let marked =
        entity.rows("jobs").claim().matching(field("n").eq(1)).set("status", "mine").increment("n", 10).now()?;
    Ok(Went::Saw(json!({ "taken": keys(&taken.rows), "marked": values(&marked.rows)? })))
}

/// Three operations and two conditions, one transaction.
fn transact(entity: &Entity, _: &Value) -> Answer {
    let jobs = entity.rows("jobs");
    let answers = entity
        .transact()
        .and(jobs.put("x", &json!({ "status": "new", "n": 1 })))
        .and(jobs.update("x").increment("n", 1).must())
        .and(jobs.get("x"))
        .and(jobs.delete("a").only_if(field("n").lt(100)))
        .require(jobs.require("a").only_if(field("n").eq(7)))
        .require(jobs.require("z").absent())
        .now()?;
    match &answers[..] {
        [Did::Put(put), Did::Updated(Updated::Changed(row)), Did::Got(got), Did::Deleted(deleted)] => {
            let read = got.row.as_ref().map(value).transpose()?;
            Ok(Went::Saw(json!({
                "put": put.inserted, "changed": value(row)?, "got": read, "deleted": deleted.is_gone(),
            })))
        }
        other => Err(Failure::permanent(format!("expected four answers, got {other:?}"))),
    }
}

/// The second operation must match and does not: neither is done.
fn must(entity: &Entity, _: &Value) -> Answer {
    let jobs = entity.rows("jobs");
    let put = jobs.put("x", &json!({ "status": "new", "n": 1 }));
    expect_refused(entity.transact().and(put).and(jobs.update("nobody").increment("n", 1).must()).now())
}

/// With a save: conditions on a row and on an entity, and two changes.
fn stage(entity: &Entity, _: &Value) -> Answer {
    let jobs = entity.rows("jobs");
    jobs.require("a").only_if(field("status").eq("pending")).stage()?;
    entity.require(entity.id()).state(entity.state()).stage()?;
    jobs.update("a").set("n", from("data.saw.n")).must().stage()?;
    jobs.put("b", &json!({ "status": "new", "n": 2 })).stage()?;
    let before = jobs.get("b").now()?.is_some();
    entity.save(checkpoint().set("data.saw.n", 40))?;
    match &entity.row_answers()[..] {
        [Did::Updated(Updated::Changed(row)), Did::Put(put)] => {
            Ok(Went::Saw(json!({ "before": before, "a": value(row)?, "b": put.inserted })))
        }
        other => Err(Failure::permanent(format!("expected two answers, got {other:?}"))),
    }
}

/// A condition that does not hold refuses the save, and what was staged is dropped.
fn require(entity: &Entity, _: &Value) -> Answer {
    let jobs = entity.rows("jobs");
    jobs.require("a").only_if(field("n").gt(100)).stage()?;
    jobs.put("b", &json!({ "status": "new", "n": 2 })).stage()?;
    match entity.save(checkpoint().set("data.saw.n", 1)) {
        Err(no) => Ok(Went::Saw(refused(&no))),
        Ok(()) => Err(Failure::permanent("the requirement let it through")),
    }
}

/// Counts under a name of the request and fails; the second attempt, which asks for something else first, is told of it.
fn named(entity: &Entity, _: &Value) -> Answer {
    let jobs = entity.rows("jobs");
    if entity.attempt() > 1 {
        jobs.update("b").increment("n", 1).now()?;
    }
    let counted = jobs.update("a").increment("n", 1).named("count").now()?;
    match entity.attempt() {
        1 => Err(Failure::retry("counted, and failed")),
        attempt => Ok(Went::Saw(json!({ "attempt": attempt, "a": updated(counted)? }))),
    }
}

/// Counts twice and fails; the second attempt asks the same and counts no more.
fn remembered(entity: &Entity, _: &Value) -> Answer {
    let count = || entity.rows("jobs").update("a").increment("n", 1).now();
    let (first, second) = (count()?, count()?);
    match entity.attempt() {
        1 => Err(Failure::retry("counted, and failed")),
        attempt => Ok(Went::Saw(json!({ "attempt": attempt, "first": updated(first)?, "second": updated(second)? }))),
    }
}

fn id_reused(entity: &Entity, _: &Value) -> Answer {
    let jobs = entity.rows("jobs");
    jobs.update("a").increment("n", 1).named("count").now()?;
    expect_refused(jobs.update("a").increment("n", Put::from(2)).named("count").now())
}
