//! Counts visits on a row that all of them share: reads it, adds one, writes it back. Two that read the same number
//! write the same number.

use interlock::{Done, Entity, Failure, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Counter {
    count: u32,
}

pub(crate) fn count(visit: &Entity) -> Result<Done, Failure> {
    let counters = visit.rows("counters");
    let counter = counters.get("home").now()?.map(|row| row.value()).transpose()?.unwrap_or(Counter { count: 0 });
    counters.put("home", &Counter { count: counter.count + 1 }).stage()?;
    Ok(visit.transition(to("counted"))?)
}

/// Has the host add: nobody has to know what is there.
pub(crate) fn count_mended(visit: &Entity) -> Result<Done, Failure> {
    let counters = visit.rows("counters");
    counters.upsert("home", &Counter { count: 1 }).increment("count", 1).stage()?;
    Ok(visit.transition(to("counted"))?)
}
