//! Requests that the host makes for a step.

use crate::change::unencodable;
use crate::{Entity, Event, EventKind, Failure, Rejection};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A request as the host takes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The target, as the machine declares it.
    pub target: String,
    /// What the placeholders of its URL stand for.
    pub params: Vec<(String, String)>,
    /// Headers to add.
    pub headers: Vec<(String, String)>,
    /// The body, as JSON text.
    pub body: Option<String>,
}

/// A request to a target that the machine declares. See [`Entity::effect`].
#[derive(Debug)]
#[must_use = "a request is staged by `request`"]
pub struct Effect<'a> {
    pub(crate) entity: &'a Entity,
    pub(crate) request: Request,
    pub(crate) body: Result<(), Rejection>,
}

impl Effect<'_> {
    /// What a placeholder of the target's URL stands for.
    pub fn param(mut self, name: &str, value: impl ToString) -> Self {
        self.request.params.push((name.to_owned(), value.to_string()));
        self
    }

    /// A header to add; credentials are the target's business.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The body, sent as JSON.
    pub fn body(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_string(body) {
            Ok(text) => self.request.body = Some(text),
            Err(why) => self.body = Err(unencodable("body", &why)),
        }
        self
    }

    /// Stages it: the next accepted transition or save carries it.
    ///
    /// # Errors
    /// Rejections: fenced, spent, invalid (a body that JSON cannot hold, too), denied, limit.
    pub fn request(self) -> Result<(), Rejection> {
        self.body?;
        self.entity.effect_request(self.request)
    }
}

/// What came of a request: the payload of an event of the kind [`EventKind::Effect`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EffectResult<B = serde_json::Value> {
    /// The `Idempotency-Key` it was sent under: the same over all tries.
    pub effect: String,
    /// Its number in its entity's outbox.
    pub number: u64,
    /// The target.
    pub target: String,
    /// The execution that asked for it.
    pub execution: String,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// The body of the answer: JSON as it is, else as text.
    pub body: Option<B>,
    /// Whether there was more of it than is kept.
    #[serde(default)]
    pub truncated: bool,
    /// Why it was given up: `refused`, `exhausted`, `denied`, `withdrawn`, `fenced`; none if it was done.
    pub code: Option<String>,
    /// The same for people.
    pub reason: Option<String>,
}

impl Event {
    /// What came of a request, if this event is about one.
    ///
    /// # Errors
    /// A permanent failure if it is about something else, or its body has another shape.
    pub fn effect<B: DeserializeOwned>(&self) -> Result<EffectResult<B>, Failure> {
        let none = || {
            let got = format!("expected the result of an effect, got {:?} {}", self.kind, self.name);
            Failure::permanent(got).code("no-effect")
        };
        if self.kind != EventKind::Effect {
            return Err(none());
        }
        self.payload()?.ok_or_else(none)
    }
}
