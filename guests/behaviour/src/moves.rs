//! What a step asks for: transitions, saves, failures, and what it hears if it may not.

use crate::{Answer, Behaviour, Went, expect_refused, refused};
use interlock::{Condition, Entity, Failure, Mutation, RejectionKind, Status, Value as Put, checkpoint, from, to};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const ALL: &[(&str, Behaviour)] = &[
    ("change", change),
    ("mutations", mutations),
    ("look", |entity, _| Ok(entity.transition(to("looking"))?.into())),
    ("walk", walk),
    ("reload", reload),
    ("not-allowed", |entity, _| expect_refused(entity.transition(to("nowhere")))),
    ("guard", guard),
    ("schema", |entity, _| expect_refused(entity.transition(to("idle").set("data.count", "many")))),
    ("denied", |entity, _| expect_refused(entity.transition(to("idle").set("desired.size", 1)))),
    ("number", number),
    ("uncaught", |entity, _| Ok(entity.transition(to("nowhere"))?.into())),
    ("retry", retry),
    ("give-up", |_, _| Err(Failure::permanent("it is of no use").code("no-use"))),
    ("exception", |_, _| panic!("this step is broken")),
];

fn change(entity: &Entity, value: &Value) -> Answer {
    let change = to("idle")
        .data(&json!({ "what": "change", "saw": value, "count": 1 }))
        .outputs(&json!({ "result": value }))
        .condition(Condition::new("Ready", Status::True).because("AllThere", "everything is there"))
        .condition(Condition::new("Stale", Status::False))
        .condition(Condition::new("Reachable", Status::Unknown).because("NotAsked", "nobody has asked"));
    Ok(entity.transition(change)?.into())
}

fn mutations(entity: &Entity, _: &Value) -> Answer {
    let saw = json!({ "n": 1, "gone": true, "list": [1, 2], "high": 5, "low": 5 });
    let change = to("idle")
        .data(&json!({ "what": "mutations", "saw": saw }))
        .set("data.saw.made.on.the.way", true)
        .set("data.saw.null", Value::Null)
        .set("data.saw.event", from("event.value"))
        .mutation(Mutation::Increment("data.saw.n".to_owned(), 41.into()))
        .mutation(Mutation::Increment("data.saw.new".to_owned(), (-1).into()))
        .mutation(Mutation::Remove("data.saw.gone".to_owned()))
        .mutation(Mutation::Append("data.saw.list".to_owned(), 3.into(), 2))
        .mutation(Mutation::Max("data.saw.high".to_owned(), 9.into()))
        .mutation(Mutation::Min("data.saw.low".to_owned(), 9.into()));
    Ok(entity.transition(change)?.into())
}

/// Three parts, each saved; where it stands is read anew from what was saved.
fn walk(entity: &Entity, _: &Value) -> Answer {
    loop {
        let data: Value = entity.data()?;
        let done = data["saw"]["done"].as_u64().unwrap_or(0);
        if done == 3 {
            let walked = Condition::new("Walked", Status::True);
            return Ok(entity.transition(to("idle").outputs(&json!({ "result": done })).condition(walked))?.into());
        }
        let walked = Condition::new("Walked", Status::False).because("Walking", format!("{done} of 3"));
        let part = Mutation::Increment("data.saw.done".to_owned(), 1.into());
        entity.save(checkpoint().mutation(part).condition(walked))?;
    }
}

/// For a scenario in which another write gets in first.
fn reload(entity: &Entity, _: &Value) -> Answer {
    let before = entity.version();
    match entity.transition(to("idle").set("data.saw", "there was no conflict")) {
        Err(no) if no.kind == RejectionKind::Conflict => {
            entity.reload()?;
            let grown = entity.version() > before;
            Ok(Went::Saw(json!({ "kind": no.kind.to_string(), "grown": grown })))
        }
        asked => Ok(asked?.into()),
    }
}

/// Refused with 1; the handle is as good as before, and 2 is enough.
fn guard(entity: &Entity, _: &Value) -> Answer {
    let Err(no) = entity.transition(to("counted").set("data.count", 1)) else {
        return Err(Failure::permanent("the guard let it through"));
    };
    Ok(entity.transition(to("counted").set("data.count", 2).set("data.saw", refused(&no)))?.into())
}

/// 2^64 + 1 as an integer: no 64 bits hold it, and it must not be rounded.
fn number(entity: &Entity, _: &Value) -> Answer {
    let large = Put::Json("18446744073709551617".to_owned());
    match entity.transition(to("idle").set("data.saw", large)) {
        Err(no) => Ok(Went::Saw(json!({ "kind": no.kind.to_string() }))),
        Ok(_) => Err(Failure::permanent("a number past 64 bits was taken").code("not-refused")),
    }
}

fn retry(entity: &Entity, _: &Value) -> Answer {
    match entity.attempt() {
        1 => Err(Failure::retry("not yet there").code("not-yet").after(Duration::from_secs(30))),
        attempt => Ok(Went::Saw(json!({ "attempt": attempt }))),
    }
}
