//! A step that has the requests made that its event names, all in one commit: what the tests of effects run on.

use interlock::{Done, Entity, Failure, steps, to};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Errand {
    asks: Vec<Ask>,
    /// The state to go on in.
    then: String,
}

#[derive(Deserialize)]
struct Ask {
    target: String,
    #[serde(default)]
    params: BTreeMap<String, String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Option<serde_json::Value>,
}

fn ask(entity: &Entity) -> Result<Done, Failure> {
    let errand: Errand = entity.event().payload()?.ok_or(Failure::permanent("an event without a payload"))?;
    for ask in &errand.asks {
        let mut effect = entity.effect(&ask.target);
        for (name, value) in &ask.params {
            effect = effect.param(name, value);
        }
        for (name, value) in &ask.headers {
            effect = effect.header(name, value);
        }
        if let Some(body) = &ask.body {
            effect = effect.body(body);
        }
        effect.request()?;
    }
    Ok(entity.transition(to(errand.then))?)
}

steps!(ask);
