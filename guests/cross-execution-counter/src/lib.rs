//! The step of a visit: one more on the counter of its page.

use interlock::{Done, Entity, Failure, from, steps, to};
use serde_json::json;

/// One operation seeds the counter and counts on: no execution reads a number that another is about to write. Done by
/// the transition: whatever attempt it takes, a visit counts with the move that ends it, and once.
fn count(visit: &Entity) -> Result<Done, Failure> {
    let counters = visit.rows("counters");
    counters.upsert(from("event.page"), &json!({ "count": 1 })).increment("count", 1).stage()?;
    Ok(visit.transition(to("new"))?)
}

steps!(count);
