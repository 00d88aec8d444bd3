//! What must come to nothing. The README says what stops each.

use crate::{Answer, Behaviour, Went, expect_refused};
use interlock::{Entity, Failure, log, to};
use serde_json::{Value, json};
use std::hint::black_box;

pub(crate) const ALL: &[(&str, Behaviour)] = &[
    ("second-transition", second_transition),
    ("throws-on", throws_on),
    ("loops-on", loops_on),
    ("refused-often", refused_often),
    ("loop", |_, _| loop_for_ever()),
    ("all-memory", |_, _| all_memory()),
    ("log-flood", |_, _| log_flood()),
    ("large-document", |entity, _| {
        expect_refused(entity.transition(to("idle").set("data.saw", "x".repeat(300 * 1024))))
    }),
];

fn second_transition(entity: &Entity, _: &Value) -> Answer {
    let done = entity.transition(to("idle").set("data.saw", "the first"))?;
    match entity.transition(to("idle").set("data.saw", "the second")) {
        Err(no) => log::info!("heard {}", no.code),
        Ok(_) => log::error!("a second transition was accepted"),
    }
    Ok(done.into())
}

fn throws_on(entity: &Entity, _: &Value) -> Answer {
    let _done = entity.transition(to("idle").set("data.saw", "moved"))?;
    panic!("after its transition this changes nothing")
}

fn loops_on(entity: &Entity, _: &Value) -> Answer {
    let _done = entity.transition(to("idle").set("data.saw", "moved"))?;
    loop_for_ever()
}

fn refused_often(entity: &Entity, _: &Value) -> Answer {
    let heard = (0..40).filter(|_| entity.transition(to("nowhere")).is_err()).count();
    Ok(Went::Saw(json!(format!("{heard} refusals were answered"))))
}

fn loop_for_ever() -> ! {
    loop {
        black_box(0);
    }
}

fn all_memory() -> Answer {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    loop {
        taken.push(black_box(vec![1; 1 << 20]));
        if taken.len() > 1 << 16 {
            return Err(Failure::permanent("there was no end to the memory"));
        }
    }
}

/// Far past the budget of an attempt: the lines are dropped and counted, the step goes on.
fn log_flood() -> Answer {
    let line = "on and on ".repeat(100);
    for _ in 0..2_000 {
        log::info!("{line}");
    }
    Ok(Went::Saw(json!("still here")))
}
