//! The steps of a candidate: be elected and lead by a row, or own by a lease of the host.

use interlock::rows::Updated;
use interlock::{Done, Entity, Failure, RejectionKind, field, from, steps, to};
use serde::Deserialize;
use serde_json::json;

const LEADER: &str = "dispatcher";
const ROUNDS: u32 = 1;

#[derive(Deserialize)]
struct Data {
    rounds: u32,
}

#[derive(Deserialize)]
struct Leader {
    holder: String,
    expires_at: i64,
}

/// The first inserts the row; another takes over once it has expired, if it is still as it was read.
fn elect(candidate: &Entity) -> Result<Done, Failure> {
    let leaders = candidate.rows("leaders");
    let seat = leaders.upsert(LEADER, &json!({ "holder": candidate.execution(), "rounds": 0 }));
    let seat = seat.fill("expires_at", from("now+30s")).now()?;
    if seat.inserted {
        return Ok(candidate.transition(to("leading"))?);
    }

    let Leader { holder, expires_at } = seat.row.value()?;
    let as_read = field("holder").eq(holder).and(field("expires_at").eq(expires_at));
    let expired = field("expires_at").le(from("now"));
    let takeover = leaders.update(LEADER).only_if(as_read.and(expired)).set("holder", from("execution"));
    if let Updated::Changed(_) = takeover.set("expires_at", from("now+30s")).now()? {
        return Ok(candidate.transition(to("leading"))?);
    }
    candidate.timer("expiry").at_ms(expires_at)?;
    Ok(candidate.transition(to("following"))?)
}

/// A round of work, in the transaction that looks whether this execution still leads.
fn lead(candidate: &Entity) -> Result<Done, Failure> {
    let Data { rounds } = candidate.data()?;
    let leaders = candidate.rows("leaders");
    let mine = || field("holder").eq(from("execution"));
    if rounds == ROUNDS {
        leaders.delete(LEADER).only_if(mine()).stage()?; // resigns, if there is something to resign
        return Ok(candidate.transition(to("done"))?);
    }
    leaders.update(LEADER).only_if(mine()).set("expires_at", from("now+30s")).increment("rounds", 1).must().stage()?;
    match candidate.transition(to("leading")) {
        Err(refused) if refused.kind == RejectionKind::Guard => Ok(candidate.transition(to("deposed"))?),
        moved => Ok(moved?),
    }
}

/// The host has taken the lease, renews it, and ends this attempt if it is lost.
fn own(candidate: &Entity) -> Result<Done, Failure> {
    let Data { rounds } = candidate.data()?;
    Ok(candidate.transition(to(if rounds == ROUNDS { "done" } else { "owned" }))?)
}

steps!(elect, lead, own);
