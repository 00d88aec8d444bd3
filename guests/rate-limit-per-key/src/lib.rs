//! The steps of a request: reserve the next slot of its customer, and call when it has come.

use interlock::{Done, Entity, Failure, Mutation, from, steps, to};
use serde::Deserialize;
use serde_json::json;

const INTERVAL_MS: i64 = 10_000;

#[derive(Deserialize)]
struct Data {
    customer: String,
}

#[derive(Deserialize)]
struct Slots {
    next: i64,
}

/// One operation reserves the slot: the next free one is now or what was reserved up to, whichever is later, so that a
/// customer who was quiet for long does not save up calls. A second attempt is told of the slot that the first got.
fn reserve(request: &Entity) -> Result<Done, Failure> {
    let Data { customer } = request.data()?;
    let slots = request.rows("slots").upsert(customer, &json!({})).fill("next", from("now+10s"));
    let slots = slots.mutation(Mutation::Max("next".into(), from("now"))).increment("next", INTERVAL_MS);
    let Slots { next } = slots.now()?.row.value()?;

    request.timer("slot").at_ms(next - INTERVAL_MS)?;
    Ok(request.transition(to("waiting"))?)
}

/// The slot has come, and nobody else has it.
fn call(request: &Entity) -> Result<Done, Failure> {
    let Data { customer } = request.data()?;
    request.effect("service").param("customer", customer).body(&json!({ "for": request.id() })).request()?;
    Ok(request.transition(to("asking"))?)
}

steps!(reserve, call);
