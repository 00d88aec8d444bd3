//! What a step reads.

use crate::{Answer, Behaviour, Went, word};
use interlock::{Entity, checkpoint};
use serde_json::{Value, json};

pub(crate) const ALL: &[(&str, Behaviour)] =
    &[("read", read), ("read-nothing", read_nothing), ("echo", echo), ("nulls", nulls)];

fn read(entity: &Entity, _: &Value) -> Answer {
    let event = entity.event();
    Ok(Went::Saw(json!({
        "id": entity.id(),
        "key": entity.key(),
        "execution": entity.execution().starts_with(&format!("{}@", entity.id())),
        "attempt": entity.attempt(),
        "state": entity.state(),
        "version": entity.version(),
        "desired": entity.desired::<Value>()?,
        "data": entity.data::<Value>()?,
        "outputs": entity.outputs::<Value>()?,
        "cancel": entity.cancel_requested(),
        "time": !entity.time_left().is_zero(),
        "event": {
            "id": event.id,
            "kind": word(event.kind),
            "name": event.name,
            "payload": event.payload::<Value>()?,
            "at": event.at_ms > 0,
        },
    })))
}

fn read_nothing(entity: &Entity, _: &Value) -> Answer {
    let (desired, outputs) = (entity.desired::<Value>()?, entity.outputs::<Value>()?);
    Ok(Went::Saw(json!({ "desired": desired.is_none(), "outputs": outputs.is_none() })))
}

fn echo(_: &Entity, value: &Value) -> Answer {
    Ok(Went::Saw(value.clone()))
}

/// Null is a value; a field that is not there is none. Both are read back from what was saved.
fn nulls(entity: &Entity, _: &Value) -> Answer {
    entity.save(checkpoint().set("data.saw", json!({ "null": null, "list": [null] })))?;
    let data: Value = entity.data()?;
    let word = |field: &str| match data["saw"].get(field) {
        None => "missing",
        Some(Value::Null) => "null",
        Some(_) => "there",
    };
    Ok(Went::Saw(json!({ "null": word("null"), "other": word("other"), "list": word("list") })))
}
