//! What a step can do, one behaviour each: `do` names it, README.md says what each does and answers. Other languages have
//! the same steps, and the same scenarios.

mod hostile;
mod moves;
mod powers;
mod reads;
mod rows;

use interlock::{Done, Entity, EventKind, Failure, Rejection, steps, to};
use serde::Deserialize;
use serde_json::{Value, json};

/// What the event asks for.
#[derive(Deserialize)]
struct Ask {
    what: String,
    #[serde(default)]
    value: Value,
}

/// What became of a behaviour.
enum Went {
    /// It has an answer, which goes into `data.saw` on the way to `idle`.
    Saw(Value),
    /// It has asked for its transition itself.
    Done(Done),
}

impl From<Done> for Went {
    fn from(done: Done) -> Self {
        Went::Done(done)
    }
}

type Answer = Result<Went, Failure>;

type Behaviour = fn(&Entity, &Value) -> Answer;

fn behave(entity: &Entity) -> Result<Done, Failure> {
    let ask: Ask = entity.event().payload()?.ok_or(Failure::permanent("an event without a payload"))?;
    let behaviour = find(&ask.what).ok_or_else(|| Failure::permanent(&ask.what).code("unknown-behaviour"))?;
    match behaviour(entity, &ask.value)? {
        Went::Saw(answer) => Ok(entity.transition(to("idle").set("data.saw", answer))?),
        Went::Done(done) => Ok(done),
    }
}

/// The second step: answers what entered its state.
fn look(entity: &Entity) -> Result<Done, Failure> {
    let event = entity.event();
    let mut saw = json!({ "kind": word(event.kind), "name": event.name, "payload": event.payload.is_some() });
    if event.kind == EventKind::Effect {
        let result = event.effect::<Value>()?;
        saw = json!({
            "kind": word(event.kind), "name": event.name,
            "target": result.target, "status": result.status, "body": result.body, "code": result.code,
        });
    }
    Ok(entity.transition(to("idle").set("data.saw", saw))?)
}

steps!(behave, look);

fn find(name: &str) -> Option<Behaviour> {
    let all = [reads::ALL, moves::ALL, powers::ALL, rows::ALL, hostile::ALL];
    all.into_iter().flatten().find(|(known, _)| *known == name).map(|(_, behaviour)| *behaviour)
}

/// A refusal as the behaviours answer it.
fn refused(no: &Rejection) -> Value {
    json!({
        "kind": no.kind.to_string(),
        "code": no.code,
        "subject": no.subject,
        "expected": no.expected,
        "got": no.got,
        "retryable": no.retryable,
    })
}

/// The answer of a behaviour that is to be refused.
fn expect_refused<T>(asked: Result<T, Rejection>) -> Answer {
    match asked {
        Ok(_) => Err(Failure::permanent("it was not refused").code("not-refused")),
        Err(no) => Ok(Went::Saw(refused(&no))),
    }
}

/// The kind of an event, as the contract spells it.
fn word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Signal => "signal",
        EventKind::Timer => "timer",
        EventKind::Transition => "transition",
        EventKind::Effect => "effect",
        _ => "another",
    }
}
