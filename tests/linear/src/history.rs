//! What clients asked and heard of one entity.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ask {
    /// Make the entity, with this `desired`.
    Create(Option<i64>),
    /// Send an event.
    Event {
        /// Its id.
        id: String,
        /// What it is.
        event: Event,
    },
    /// Write `desired` over a generation.
    Apply {
        /// `If-Match`.
        over: u64,
        /// What is wanted.
        desired: i64,
    },
    /// Read it.
    Get,
    /// Take it away.
    Delete,
    /// End it.
    Kill,
}

/// The events of the machine, with their payloads.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Event {
    /// Adds to `n`; waits its turn while the entity is busy.
    Add(i64),
    /// Sets `n`, if it is what the sender believes: compare and swap.
    Put {
        /// What it is believed to be.
        was: i64,
        /// What it becomes.
        to: i64,
    },
    /// A step runs, and counts itself.
    Work,
    /// The same, which waits its turn while the entity is busy.
    Later,
    /// Locks the entity until it is freed.
    Hold,
    /// Locks the entity for a moment.
    Nap,
    /// Ends a hold or a nap.
    Free,
}

/// What a client heard.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Heard {
    /// It is there; whether this request made it.
    Created {
        /// Made now.
        new: bool,
    },
    /// An event was answered.
    Answered {
        /// The answer.
        answer: Answer,
        /// Said to have been given before.
        replayed: bool,
    },
    /// `desired` has this generation.
    Applied(u64),
    /// The entity.
    Entity(Box<View>),
    /// Where it stands after an operator's verb.
    Now {
        /// Its state.
        state: String,
        /// Its version.
        version: u64,
        /// Whether the request changed it.
        changed: bool,
    },
    /// Refused, by code.
    Refused(String),
}

/// The answer to an event. The incarnation and the number of the execution are apart: the model foresees the second.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Answer {
    /// `accepted`, `queued`, `refused`, `late`.
    pub kind: String,
    /// The execution it started or joined: incarnation and number.
    pub execution: Option<(u64, u64)>,
    /// The version then.
    pub version: u64,
    /// The state then.
    pub state: String,
    /// Why not.
    pub code: Option<String>,
}

/// An entity as it is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct View {
    /// Tells it from an earlier one.
    pub incarnation: u64,
    /// Its state.
    pub state: String,
    /// Its version.
    pub version: u64,
    /// Counts writes of `desired`.
    pub generation: u64,
    /// What the steps have seen of that.
    pub observed: u64,
    /// What is wanted.
    pub desired: Option<i64>,
    /// What `add` and `put` made.
    pub n: i64,
    /// Steps that ran.
    pub done: i64,
    /// Events that wait.
    pub inbox: u64,
    /// The execution that holds the lock.
    pub locked_by: Option<(u64, u64)>,
}

/// One request. Times are of one clock, in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Who asked.
    pub client: u64,
    /// Before it was sent.
    pub asked: u64,
    /// After it was heard; none if nothing was: it may take effect at any later time, or never.
    pub heard: Option<(u64, Heard)>,
    /// What was asked.
    pub ask: Ask,
}

/// A number of an execution's id, `machine/key@incarnation.number`.
fn execution(text: &Value) -> Option<(u64, u64)> {
    let (incarnation, number) = text.as_str()?.rsplit_once('@')?.1.split_once('.')?;
    Some((incarnation.parse().ok()?, number.parse().ok()?))
}

impl Heard {
    /// Reads what a daemon said; none if it says nothing about whether the request was done.
    ///
    /// # Errors
    /// An answer that no request of these should get.
    pub fn read(ask: &Ask, status: u16, replayed: bool, body: &Value) -> Result<Option<Self>, String> {
        let code = body["code"].as_str();
        if code == Some("indeterminate") {
            return Ok(None);
        }
        let remembered = body.get("answer").filter(|answer| answer.is_object());
        let answered = match (ask, status, remembered) {
            (Ask::Event { .. }, 200 | 202, _) => Some(body),
            (Ask::Event { .. }, _, Some(answer)) => Some(answer),
            _ => None,
        };
        if let Some(said) = answered {
            return answer(said).map(|answer| Some(Self::Answered { answer, replayed }));
        }
        let heard = match (ask, status) {
            (_, 400..=499 | 503) => code.map(|code| Self::Refused(code.to_owned())),
            (Ask::Create(_), 200 | 201) => {
                body["new"].as_bool().filter(|new| *new == (status == 201)).map(|new| Self::Created { new })
            }
            (Ask::Apply { .. }, 200) => body["generation"].as_u64().map(Self::Applied),
            (Ask::Get, 200) => view(body).map(|view| Self::Entity(Box::new(view))),
            (Ask::Delete | Ask::Kill, 200) => now(body),
            _ => None,
        };
        heard.map(Some).ok_or_else(|| format!("{ask:?} was answered {status} {body}"))
    }
}

fn answer(said: &Value) -> Result<Answer, String> {
    let read = || {
        Some(Answer {
            kind: said["answer"].as_str()?.to_owned(),
            execution: execution(&said["execution"]),
            version: said["version"].as_u64()?,
            state: said["state"].as_str()?.to_owned(),
            code: said["rejection"]["code"].as_str().map(str::to_owned),
        })
    };
    read().ok_or_else(|| format!("no answer to an event: {said}"))
}

fn view(body: &Value) -> Option<View> {
    Some(View {
        incarnation: body["incarnation"].as_u64()?,
        state: body["state"].as_str()?.to_owned(),
        version: body["version"].as_u64()?,
        generation: body["generation"].as_u64()?,
        observed: body["observed_generation"].as_u64()?,
        desired: body["desired"].as_i64(),
        n: body["data"]["n"].as_i64()?,
        done: body["data"]["done"].as_i64()?,
        inbox: body["inbox"].as_u64()?,
        locked_by: execution(&body["locked_by"]),
    })
}

fn now(body: &Value) -> Option<Heard> {
    Some(Heard::Now {
        state: body["state"].as_str()?.to_owned(),
        version: body["version"].as_u64()?,
        changed: body["changed"].as_bool()?,
    })
}
