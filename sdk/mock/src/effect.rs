//! Requests that steps have made: how targets reply in a test, and what has arrived there.

use crate::host::MockHost;
use interlock_kernel::doc::Doc;
use interlock_lab::{Reply, Request};
use serde_json::Value;
use std::fmt;

/// How a target replies.
#[derive(Clone, Debug, PartialEq)]
pub enum Replies {
    /// With this status and body; null is none. From 200 to 299 it has done what was asked.
    With(u16, Value),
    /// The same, and the answer is lost: the host asks again, under the same key.
    Lost(u16, Value),
    /// It is not reached.
    Down,
    /// Nobody answers within its timeout.
    Hang,
}

/// A request as its target knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Whose: `machine/key`.
    pub entity: String,
    /// The target.
    pub target: String,
    /// The method.
    pub method: String,
    /// The URL, filled.
    pub url: String,
    /// The body; null is none.
    pub body: Value,
    /// The `Idempotency-Key`: the same over all tries.
    pub key: String,
    /// The fencing token.
    pub token: u64,
    /// Times that it was sent.
    pub tries: u32,
    /// Whether the target has done it.
    pub done: bool,
}

impl From<Request> for Made {
    fn from(request: Request) -> Self {
        let Request { entity, target, method, url, body, key, token, tries, done, .. } = request;
        Self {
            entity: entity.to_string(),
            target: target.to_string(),
            method,
            url,
            body: body.map_or(Value::Null, |body| body.value().clone()),
            key,
            token: token.get(),
            tries,
            done,
        }
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, method, url, tries, done, .. } = self;
        let plural = if *tries == 1 { "try" } else { "tries" };
        write!(f, "{target} {method} {url} {}, {tries} {plural}, ", self.body)?;
        f.write_str(if *done { "done" } else { "not done" })
    }
}

impl From<Replies> for Reply {
    fn from(replies: Replies) -> Self {
        let body = |value: Value| (!value.is_null()).then(|| Doc::new(value));
        match replies {
            Replies::With(status, value) => Self::Answer { status, body: body(value) },
            Replies::Lost(status, value) => Self::Lost { status, body: body(value) },
            Replies::Down => Self::Down,
            Replies::Hang => Self::Hang,
        }
    }
}

/// Targets. One of which the test says nothing answers 200. As `sdk/fence` has real ones do, it does a request of one
/// key once, answers it the second time as the first, and refuses a token below the highest one with 412.
impl MockHost {
    /// A target answers so from now on: `host.answer("tickets", 201, json!({ "id": "T-1" }))`.
    pub fn answer(&mut self, target: &str, status: u16, body: Value) {
        self.replies(target, Replies::With(status, body));
    }

    /// A target replies so from now on.
    pub fn replies(&mut self, target: &str, replies: Replies) {
        self.lab.reply(target, replies.into(), None);
    }

    /// A target replies so for the next so many tries, then as before.
    pub fn replies_times(&mut self, target: &str, times: u32, replies: Replies) {
        if times > 0 {
            self.lab.reply(target, replies.into(), Some(times));
        }
    }

    /// Every request that was made so far, in the order of their first try. A retry is the same request.
    #[must_use]
    pub fn made(&self) -> Vec<Made> {
        self.lab.requests().into_iter().map(Made::from).collect()
    }
}
