//! The step of an intake: book an event that nobody has booked, skip one that somebody has.

use interlock::{Done, Entity, Failure, from, steps, to};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize)]
struct Delivery {
    account: String,
    amount: u32,
}

#[derive(Serialize, Deserialize)]
struct Data {
    booked: u32,
    skipped: u32,
}

/// Whoever inserts the row has the event; with no change named, a row that is there is left alone. The answer is
/// remembered for the attempts after this one: they are told again that the event is theirs.
fn take(intake: &Entity) -> Result<Done, Failure> {
    let delivery: Delivery = intake.event().payload()?.ok_or_else(|| Failure::permanent("a delivery of nothing"))?;
    let mut data: Data = intake.data()?;

    let events = intake.rows("processed_events");
    let event = events.upsert(from("event.id"), &json!({ "by": intake.id() })).fill("at", from("now")).now()?;
    if !event.inserted {
        data.skipped += 1;
        return Ok(intake.transition(to("idle").data(&data))?);
    }

    // The work: booked in the transaction of the move that says so.
    let Delivery { account, amount } = delivery;
    intake.rows("accounts").upsert(account, &json!({ "balance": amount })).increment("balance", amount).stage()?;
    data.booked += 1;
    Ok(intake.transition(to("idle").data(&data))?)
}

steps!(take);
