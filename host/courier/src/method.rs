//! The methods a target may declare.

use std::fmt;
use std::str::FromStr;

/// How a target is asked. `CONNECT`, `TRACE` and `OPTIONS` do nothing that an outbox is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Read.
    Get,
    /// Read the headers.
    Head,
    /// Create, or do.
    Post,
    /// Replace.
    Put,
    /// Change.
    Patch,
    /// Delete.
    Delete,
}

impl Method {
    /// Every one.
    pub const ALL: [Self; 6] = [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that is no [`Method`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadMethod(String);

impl fmt::Display for BadMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected GET, HEAD, POST, PUT, PATCH or DELETE, got {:?}", self.0)
    }
}

impl std::error::Error for BadMethod {}

impl FromStr for Method {
    type Err = BadMethod;

    fn from_str(text: &str) -> Result<Self, BadMethod> {
        Self::ALL.into_iter().find(|method| method.as_str() == text).ok_or_else(|| BadMethod(crate::url::excerpt(text)))
    }
}
