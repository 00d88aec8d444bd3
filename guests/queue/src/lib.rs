//! The steps of a dispatcher: claim operations, have one after the other done, settle each with what came of it.

use interlock::{Done, Entity, Failure, field, from, steps, to};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Serialize, Deserialize)]
struct Data {
    /// What is claimed and not settled; the request of the first is under way.
    ops: Vec<Op>,
    done: u32,
    failed: u32,
}

#[derive(Serialize, Deserialize)]
struct Op {
    key: String,
    payload: Value,
}

#[derive(Deserialize)]
struct Row {
    payload: Value,
}

/// The ten that wait longest. They are this execution's until their status changes, over all its steps; a second attempt
/// is told of the claim that the first made.
fn claim(dispatcher: &Entity) -> Result<Done, Failure> {
    let data: Data = dispatcher.data()?;
    let mut ops = Vec::new();
    for row in dispatcher.rows("pending_ops").claim().limit(10).now()?.rows {
        let Row { payload } = row.value()?;
        ops.push(Op { key: row.key, payload });
    }
    if ops.is_empty() {
        return Ok(dispatcher.transition(to("idle"))?);
    }
    next(dispatcher, &Data { ops, ..data })
}

/// Settled in the transaction of the move, and only if the operation is still this execution's.
fn settle(dispatcher: &Entity) -> Result<Done, Failure> {
    let mut data: Data = dispatcher.data()?;
    let Op { key, .. } = data.ops.remove(0);
    let settled = dispatcher.rows("pending_ops").update(key).only_if(field("claimed_by").eq(from("execution")));
    match dispatcher.event().effect::<Value>()?.reason {
        None => {
            settled.set("status", "done").stage()?;
            data.done += 1;
        }
        Some(reason) => {
            settled.set("status", "failed").set("error", reason).stage()?;
            data.failed += 1;
        }
    }
    next(dispatcher, &data)
}

/// Asks for the first that is left, or for more.
fn next(dispatcher: &Entity, data: &Data) -> Result<Done, Failure> {
    let Some(Op { key, payload }) = data.ops.first() else {
        return Ok(dispatcher.transition(to("claiming").data(data))?);
    };
    dispatcher.effect("operations").param("op", key).body(payload).request()?;
    Ok(dispatcher.transition(to("delivering").data(data))?)
}

steps!(claim, settle);
