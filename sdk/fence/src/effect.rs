//! One delivery of an effect, and what there is to decide about it: whether its owner is late, whether it was done.

use crate::header::{BadHeader, Fence, IdempotencyKey, Resource, Token};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::problem::Refusal;
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The token is lower than one that was accepted before it: a newer owner has the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// What is fenced.
    pub resource: Resource,
    /// The lowest token that would have been accepted: the highest that was seen.
    pub expected: Token,
    /// The one that came.
    pub got: Token,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected a token of at least {}, got {}", self.resource, self.expected, self.got)
    }
}

/// Whether a token may write where `highest` was accepted before it. The same token may write any number of times.
///
/// # Errors
/// When the token is lower.
pub fn check(highest: Option<Token>, fence: &Fence) -> Result<(), Stale> {
    match highest {
        Some(expected) if fence.token < expected => {
            Err(Stale { resource: fence.resource.clone(), expected, got: fence.token })
        }
        _ => Ok(()),
    }
}

/// What was asked, in 32 bytes: SHA-256 over method, target and body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a request: `METHOD target\n` and then the body. A target has no line break, so no two requests
    /// are one text.
    #[must_use]
    pub fn of(method: &Method, target: &Uri, body: &[u8]) -> Self {
        let target = target.path_and_query().map_or("/", |target| target.as_str());
        let mut hash = Sha256::new();
        hash.update(format!("{method} {target}\n"));
        hash.update(body);
        Self(hash.finalize().into())
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One delivery of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The effect's name, the same over all its deliveries.
    pub key: IdempotencyKey,
    /// Who writes.
    pub fence: Fence,
    /// What it asks.
    pub digest: Digest,
}

impl Effect {
    /// The effect that a request delivers.
    ///
    /// # Errors
    /// When one of its headers is missing, repeated or malformed.
    pub fn read(method: &Method, target: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<Self, BadHeader> {
        Ok(Self {
            key: IdempotencyKey::read(headers)?,
            fence: Fence::read(headers)?,
            digest: Digest::of(method, target, body),
        })
    }
}

/// What was answered to an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The same as a response.
    #[must_use]
    pub fn response<B: From<Vec<u8>>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response
    }
}

/// What to do with an effect that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an effect that was admitted has to be run, or its answer given again"]
pub enum Admission {
    /// It was not done yet: do it in this transaction, remember the answer, commit.
    Run,
    /// It was done: give this answer again. Nothing was written.
    Replay(Answer),
}

/// What a remembered answer means for this delivery.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn replay(effect: &Effect, digest: &[u8], answer: Answer) -> Result<Admission, Refusal> {
    if digest == effect.digest.as_bytes() {
        Ok(Admission::Replay(answer))
    } else {
        Err(Refusal::KeyReused { key: effect.key.clone() })
    }
}
