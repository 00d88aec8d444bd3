//! One machine with one of everything, whose step does what its event names.

use interlock::{Done, Entity, Failure, Mutation, checkpoint, fencing, steps, to};
use interlock_mock::{MockHost, Ran};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const ACTOR: &str = include_str!("actor.toml");

/// Does what the event names; what it was told is on record in `data.said` where it can be.
fn act(actor: &Entity) -> Result<Done, Failure> {
    let act: String = actor.event().payload::<Value>()?.unwrap_or_default()["act"].as_str().unwrap_or("go").to_owned();
    let data: Value = actor.data()?;
    let attempt = actor.attempt();
    match act.as_str() {
        "go" => Ok(actor.transition(to("idle").data(&counted(&data)))?),
        "save-and-go" => {
            actor.save(checkpoint().data(&counted(&data)))?;
            Ok(actor.transition(to("idle"))?)
        }
        "wait" => Ok(actor.transition(to("waiting"))?),
        "reload-after-conflict" => match actor.transition(to("idle").data(&counted(&data))) {
            Err(no) if no.code == "conflict" => {
                actor.reload()?;
                Ok(actor.transition(to("idle").data(&counted(&actor.data::<Value>()?)))?)
            }
            other => Ok(other?),
        },
        "fail-twice" if attempt < 3 => Err(Failure::retry(format!("not at attempt {attempt}")).code("early")),
        "fail-later" if attempt < 2 => Err(Failure::retry("in a while").after(Duration::from_secs(30))),
        "fail" => Err(Failure::retry("never")),
        "fail-for-good" => Err(Failure::permanent("no room").code("no-room")),
        "panic" if attempt < 2 => panic!("two\nlines"),
        "panic-after" => {
            let done = actor.transition(to("idle"));
            drop(done);
            panic!("after the end")
        }
        "fail-after" => {
            let _ = actor.transition(to("idle"))?;
            Err(Failure::permanent("after the end"))
        }
        "ask-again" => {
            let done = actor.transition(to("idle").data(&counted(&data)))?;
            interlock::log::info!("{}", actor.transition(to("alarm")).unwrap_err());
            interlock::log::info!("version {}", actor.version());
            let _ = actor.save(checkpoint());
            interlock::log::info!("a third call was answered");
            Ok(done)
        }
        "insist" => loop {
            let _ = actor.transition(to("nowhere"));
        },
        "still-holds" => {
            while fencing::still_holds(actor) {
                let _ = actor.reload();
            }
            let _ = fencing::still_holds(actor);
            Ok(actor.transition(to("idle"))?)
        }
        "go-on-when-fenced" => {
            // Told that it is fenced, it asks again, and gets no answer.
            Ok(actor.transition(to("idle")).or_else(|_| actor.transition(to("idle")))?)
        }
        "reload-for-ever" => loop {
            actor.reload()?;
        },
        "save-for-ever" => loop {
            actor.save(checkpoint())?;
        },
        _ => Ok(actor.transition(to("idle"))?),
    }
}

fn counted(data: &Value) -> Value {
    let mut data = data.clone();
    data["runs"] = json!(data["runs"].as_u64().unwrap_or(0) + 1);
    data
}

fn settle(actor: &Entity) -> Result<Done, Failure> {
    let draft = to("idle").mutation(Mutation::Increment("data.runs".to_owned(), 1.into()));
    Ok(actor.transition(draft.outputs(&json!({ "by": actor.event().name })))?)
}

steps!(act, settle);

/// A host with the actor `a` at rest.
pub(crate) fn host() -> MockHost {
    let mut host = MockHost::new(ACTOR, STEPS);
    host.create("a").accepted();
    host
}

/// The same, and its step about to do this.
pub(crate) fn doing(act: &str) -> MockHost {
    let mut host = host();
    host.send("a", "run", json!({ "act": act })).accepted();
    host
}

/// The codes of what it was refused, in order.
pub(crate) fn codes(ran: &Ran) -> Vec<&str> {
    ran.refusals().into_iter().map(|no| no.code.as_str()).collect()
}
