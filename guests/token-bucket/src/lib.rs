//! The step of a call: take a token of the bucket that all calls share, or wait until there are new ones.

use interlock::rows::{Answer, Updated};
use interlock::{Done, Entity, Failure, field, from, steps, to};
use serde::Deserialize;
use serde_json::json;

const BUCKET: &str = "service";
const CAPACITY: u32 = 2;
const REFILL_MS: i64 = 60_000;

#[derive(Deserialize)]
struct Bucket {
    refilled_at: i64,
}

/// Three operations, one transaction: make the bucket, fill it if its minute is over, take a token if there is one.
/// Nobody has to fill it on time, and nobody fills it twice.
fn take(call: &Entity) -> Result<Done, Failure> {
    let buckets = call.rows("buckets");
    let made = buckets.upsert(BUCKET, &json!({ "tokens": CAPACITY })).fill("refilled_at", from("now"));
    let filled = buckets.update(BUCKET).only_if(field("refilled_at").le(from("now-60s")));
    let filled = filled.set("tokens", CAPACITY).set("refilled_at", from("now"));
    let taken = buckets.update(BUCKET).only_if(field("tokens").gt(0)).increment("tokens", -1);

    match &call.transact().and(made).and(filled).and(taken).now()?[..] {
        [_, _, Answer::Updated(Updated::Changed(_))] => {
            call.effect("service").body(&json!({ "for": call.id() })).request()?;
            Ok(call.transition(to("calling"))?)
        }
        [Answer::Upserted(bucket), ..] => {
            let Bucket { refilled_at } = bucket.row.value()?;
            call.timer("refill").at_ms(refilled_at + REFILL_MS)?;
            Ok(call.transition(to("waiting"))?)
        }
        other => Err(Failure::permanent(format!("expected three answers, got {other:?}")).code("answers")),
    }
}

steps!(take);
