//! What an effect says of itself in its headers. Parse, don't validate: once a [`Fence`] exists it is well formed.

use http::{HeaderMap, HeaderName};
use std::fmt;
use std::sync::Arc;

/// The same over all deliveries of one effect, and no two effects share one.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// What the token fences: by default the sending entity, `machine/key`; or the name of a lease.
pub const RESOURCE: HeaderName = HeaderName::from_static("interlock-fence-resource");
/// A number that only grows per resource.
pub const TOKEN: HeaderName = HeaderName::from_static("interlock-fencing-token");
/// Which entity sent it, `machine/key`.
pub const ENTITY: HeaderName = HeaderName::from_static("interlock-entity");
/// The entity's version whose commit sent it.
pub const VERSION: HeaderName = HeaderName::from_static("interlock-version");
/// Which delivery this is, from 1.
pub const ATTEMPT: HeaderName = HeaderName::from_static("interlock-attempt");

/// The longest resource or key: the longest entity (`machine/key`, 264 bytes) and as much again.
pub const TEXT_BYTES_MAX: usize = 512;
/// The highest number that every language holds exactly: 2^53 - 1.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;

const TEXT: &str = "1 to 512 bytes of UTF-8 without control characters";
const NUMBER: &str = "a decimal integer below 2^53";

/// A header that is not what it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadHeader {
    /// Its name.
    pub header: HeaderName,
    /// In which way.
    pub fault: Fault,
    /// What would have been accepted.
    pub expected: &'static str,
    /// What was there.
    pub got: String,
}

/// In which way a header is not what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not there.
    Missing,
    /// It is there more than once, and no one of them can be meant.
    Repeated,
    /// Its value has another form.
    Malformed,
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "header {}: expected {}, got {}", self.header, self.expected, self.got)
    }
}

impl std::error::Error for BadHeader {}

/// What a token fences. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource(Arc<str>);

impl Resource {
    /// A resource of this name, if it is 1 to [`TEXT_BYTES_MAX`] bytes without control characters.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        is_text(name).then(|| Self(name.into()))
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A fencing token: at most [`NUMBER_MAX`], so that every language and both databases hold it exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

impl Token {
    /// This token, if it is at most [`NUMBER_MAX`].
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        if number <= NUMBER_MAX { Some(Self(number)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number as SQL has it.
    #[must_use]
    pub const fn to_sql(self) -> i64 {
        self.0.cast_signed()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who writes, and since when: a resource and the token that its owner holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// What is written.
    pub resource: Resource,
    /// The owner's token.
    pub token: Token,
}

impl Fence {
    /// The fence that a request carries.
    ///
    /// # Errors
    /// When one of its two headers is missing, repeated or malformed.
    pub fn read(headers: &HeaderMap) -> Result<Self, BadHeader> {
        let resource = Resource(text(headers, RESOURCE)?.into());
        Ok(Self { resource, token: Token(number(headers, TOKEN)?) })
    }
}

/// The name of one effect, the same over all its deliveries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Arc<str>);

impl IdempotencyKey {
    /// The key that a request carries.
    ///
    /// # Errors
    /// When the header is missing, repeated or malformed.
    pub fn read(headers: &HeaderMap) -> Result<Self, BadHeader> {
        Ok(Self(text(headers, IDEMPOTENCY_KEY)?.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Where an effect comes from: for logs and support, never for a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `machine/key`.
    pub entity: String,
    /// The version whose commit sent it.
    pub version: u64,
    /// Which delivery this is, from 1.
    pub attempt: u64,
}

impl Origin {
    /// Where a request says it comes from.
    ///
    /// # Errors
    /// When one of its three headers is missing, repeated or malformed.
    pub fn read(headers: &HeaderMap) -> Result<Self, BadHeader> {
        Ok(Self {
            entity: text(headers, ENTITY)?.to_owned(),
            version: number(headers, VERSION)?,
            attempt: number(headers, ATTEMPT)?,
        })
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Result<&str, BadHeader> {
    let bytes = only(headers, &name, TEXT)?;
    match std::str::from_utf8(bytes) {
        Ok(text) if is_text(text) => Ok(text),
        _ => Err(malformed(name, TEXT, bytes)),
    }
}

fn number(headers: &HeaderMap, name: HeaderName) -> Result<u64, BadHeader> {
    let bytes = only(headers, &name, NUMBER)?;
    // One number has one text: no sign, no leading zero, nothing that a parser elsewhere reads in another way.
    let plain = bytes.iter().all(u8::is_ascii_digit) && (bytes.first() != Some(&b'0') || bytes.len() == 1);
    let number = std::str::from_utf8(bytes).ok().filter(|_| plain).and_then(|text| text.parse().ok());
    number.filter(|number| *number <= NUMBER_MAX).ok_or_else(|| malformed(name, NUMBER, bytes))
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName, expected: &'static str) -> Result<&'a [u8], BadHeader> {
    let mut values = headers.get_all(name).iter();
    let bad = |fault, got: String| BadHeader { header: name.clone(), fault, expected, got };
    let first = values.next().ok_or_else(|| bad(Fault::Missing, "none".to_owned()))?;
    match values.count() {
        0 => Ok(first.as_bytes()),
        more => Err(bad(Fault::Repeated, format!("{} of them", more + 1))),
    }
}

fn malformed(header: HeaderName, expected: &'static str, bytes: &[u8]) -> BadHeader {
    BadHeader { header, fault: Fault::Malformed, expected, got: excerpt(bytes) }
}

/// The beginning of a value that may be long, and how long it is.
fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 80;
    match bytes.get(..SHOWN) {
        Some(start) if bytes.len() > SHOWN => {
            format!("{:?}... ({} bytes)", String::from_utf8_lossy(start), bytes.len())
        }
        _ => format!("{:?}", String::from_utf8_lossy(bytes)),
    }
}

fn is_text(text: &str) -> bool {
    (1..=TEXT_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}
