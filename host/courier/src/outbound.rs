//! What is sent, what came back, and why not.

use crate::method::Method;
use crate::pattern::Pattern;
use crate::url::Destination;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;

/// What is read of an answer's body when nobody says otherwise.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// One request.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// The target's name in its manifest, for errors and logs.
    pub target: String,
    /// What the manifest declares; the URL and every redirect must match it.
    pub declared: Pattern,
    /// How.
    pub method: Method,
    /// Where to.
    pub url: Destination,
    /// A guest's headers, each checked by [`guest_may_set`](crate::guest_may_set), and the host's own.
    /// The courier adds `Host`, `Content-Length`, `Connection: close` and, if it is missing, `User-Agent`.
    pub headers: Vec<(String, String)>,
    /// What is sent along.
    pub body: Option<Bytes>,
    /// The credential, by reference.
    pub secret: Option<SecretUse>,
    /// For all of it, from resolving to the last byte of the answer, redirects included.
    pub timeout: Duration,
    /// What is kept of the answer's body; the rest is cut.
    pub answer_bytes_max: usize,
}

/// How a secret is put into a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretUse {
    /// Its name in the operator's configuration.
    pub name: String,
    /// The header that holds it: `Authorization`.
    pub header: String,
    /// What stands before it: `Bearer `, with its blank.
    pub prefix: String,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers that say what the body is and what to do next, at most 1 KiB each; names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body, or its beginning. A secret that the target echoes is taken out of it.
    pub body: Bytes,
    /// Whether the body was longer, or (for a status that is no success) did not arrive whole.
    pub truncated: bool,
}

impl Answer {
    /// The value of a header, by its name in small letters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// Whether the target may have seen the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Not a byte of it left.
    Never,
    /// It may have arrived, and may have been done.
    Maybe,
}

/// Which rule denied a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The manifest's URL pattern.
    Declared,
    /// The operator's `effects.allow`.
    Allow,
    /// The methods of the rules that allow the URL.
    Method,
    /// Only public addresses, and those of `effects.networks`.
    Networks,
    /// The secret is not there, or may not go there.
    Secret,
    /// A header that is not the sender's to set, or that is none.
    Header,
}

impl Rule {
    /// Its stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::Allow => "allow",
            Self::Method => "method",
            Self::Networks => "networks",
            Self::Secret => "secret",
            Self::Header => "header",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A request that may not be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// By which rule.
    pub rule: Rule,
    /// What would have been allowed, or would allow it.
    pub expected: String,
    /// What was there instead.
    pub got: String,
}

impl Refusal {
    pub(crate) fn new(rule: Rule, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { rule, expected: expected.into(), got: got.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused by {}: expected {}, got {}", self.rule, self.expected, self.got)
    }
}

/// How far a try came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Reading the secret.
    Secret,
    /// From the host's name to addresses.
    Resolve,
    /// To one of the addresses.
    Connect,
    /// The TLS handshake.
    Tls,
    /// From the request to the status and headers of the answer.
    Head,
    /// To the end of the answer's body.
    Body,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secret => "the secret's value",
            Self::Resolve => "an address of the host",
            Self::Connect => "a connection",
            Self::Tls => "a TLS session",
            Self::Head => "an answer",
            Self::Body => "the rest of the answer",
        })
    }
}

/// What went wrong on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The time was over.
    Timeout,
    /// The name has no address, or nobody could say.
    NotResolved,
    /// Nobody listens there.
    ConnectionRefused,
    /// No way there, or another failure of the network.
    Unreachable,
    /// The target's certificate, or its TLS, is not one to trust.
    Tls,
    /// What came back is no TLS.
    NotTls,
    /// The connection ended too early.
    Reset,
    /// What came back is no HTTP.
    NotHttp,
    /// Status and headers of the answer are more than is read.
    TooLarge,
}

/// Why there is no answer. Its text is for operators: it may show addresses that a name resolves to. For a
/// guest, the rule or the fault is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// It may not be sent. Nothing was.
    Refused(Refusal),
    /// The target points elsewhere, and there it is not sent.
    Redirected {
        /// The status.
        status: u16,
        /// Where to, without its query.
        location: String,
        /// Why it is not followed.
        why: String,
    },
    /// It did not come through.
    Broken {
        /// What was waited for.
        step: Step,
        /// What kind of failure it was.
        fault: Fault,
        /// What was got instead, for people.
        got: String,
        /// Whether the target may have seen the request.
        sent: Sent,
    },
}

impl SendError {
    /// Whether the target may have seen the request.
    #[must_use]
    pub const fn sent(&self) -> Sent {
        match self {
            Self::Refused(_) => Sent::Never,
            // It was answered, if only by a redirect.
            Self::Redirected { .. } => Sent::Maybe,
            Self::Broken { sent, .. } => *sent,
        }
    }
}

impl From<Refusal> for SendError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Redirected { status, location, why } => {
                write!(f, "redirected by {status} to {location:?}, not followed: {why}")
            }
            Self::Broken { step, got, .. } => write!(f, "expected {step}, got {got}"),
        }
    }
}

impl std::error::Error for SendError {}
