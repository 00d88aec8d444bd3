//! URLs that a target or a rule of the operator means.
//!
//! | written | matches |
//! |---|---|
//! | `https://a.example/tickets` | that URL |
//! | `https://a.example/tickets/{id}` | one segment that is not empty; `{id}.json` and the like, too |
//! | `https://a.example/find?q={words}` | these parameters, in this order |
//! | `https://a.example/tickets/*` | every path below, with any query |
//! | `https://*.a.example/` | names below `a.example`, however deep, not itself |
//!
//! Scheme, host and port are always exact. A pattern without `?` and without `*` at its end matches no query.

use crate::url::{BadUrl, Destination, Host, Scheme, excerpt};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;
use std::str::FromStr;

/// All but what RFC 3986 calls unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Which URLs are meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: String,
    scheme: Scheme,
    host: Hosts,
    port: u16,
    path: Vec<Piece>,
    rest: Rest,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Hosts {
    One(Host),
    /// `.a.example`
    Below(String),
}

/// What follows the segments that are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Rest {
    Nothing,
    Query(Vec<Piece>),
    /// At least one more segment, and any query.
    Anything,
}

/// A segment of the path, or a parameter of the query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Piece {
    before: String,
    hole: Option<Hole>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Hole {
    name: String,
    after: String,
}

/// A text that is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern {
    /// What should have stood there.
    pub expected: String,
    /// What stood there.
    pub got: String,
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a URL pattern: expected {}, got {}", self.expected, self.got)
    }
}

impl std::error::Error for BadPattern {}

impl From<BadUrl> for BadPattern {
    fn from(BadUrl { expected, got }: BadUrl) -> Self {
        Self { expected: expected.to_owned(), got }
    }
}

/// Why a pattern and these values make no URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfilled {
    /// It ends in `*` or begins with `*.`: it means URLs that no values name.
    Open,
    /// A placeholder without a value.
    Missing(String),
    /// A placeholder with an empty value: another URL than the pattern shows.
    Empty(String),
    /// The values make a URL that could be read in two ways.
    Bad(BadUrl),
}

impl fmt::Display for Unfilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("expected a pattern without `*`, got one that means many hosts or paths"),
            Self::Missing(name) => write!(f, "expected a value for {{{name}}}, got none"),
            Self::Empty(name) => write!(f, "expected a value for {{{name}}}, got an empty one"),
            Self::Bad(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for Unfilled {}

fn bad<T>(expected: impl Into<String>, got: &str) -> Result<T, BadPattern> {
    Err(BadPattern { expected: expected.into(), got: excerpt(&format!("{got:?}")) })
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`BadPattern`]: what should have been written.
    ///
    /// ```
    /// use interlock_courier::{Destination, Pattern};
    ///
    /// let tickets = Pattern::parse("https://tickets.example.com/v1/{project}/tickets")?;
    /// let url = tickets.fill(|name| (name == "project").then_some("a b"))?;
    /// assert_eq!(url.as_str(), "https://tickets.example.com/v1/a%20b/tickets");
    /// assert!(tickets.matches(&url));
    /// assert!(!tickets.matches(&Destination::parse("https://tickets.example.com/v1/tickets")?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let (head, open) = match text.strip_suffix("/*") {
            Some(head) => (format!("{head}/"), true),
            None => (text.to_owned(), false),
        };
        let at = head.find("://*.").map(|at| at + "://".len());
        let (sample, below) = match at {
            Some(at) => (format!("{}x{}", &head[..at], &head[at + 1..]), true),
            None => (head, false),
        };
        if sample.contains('*') {
            return bad("`*` only as the last segment, or as `*.` before a host", text);
        }
        // With its holes filled by something harmless, a pattern is a URL, and what no URL may have no
        // pattern may have either.
        let url = Destination::parse(&filled_with_x(&sample)?)?;
        let host = match (below, url.host()) {
            (false, host) => Hosts::One(host.clone()),
            (true, Host::Name(name)) if name.split('.').count() > 2 => Hosts::Below(name[1..].to_owned()),
            (true, _) => return bad("at least two labels after `*.`", text),
        };
        let after_host = &sample[url.origin().len()..]; // Nothing is filled in before the path.
        let (path, query) = match after_host.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (after_host, None),
        };
        let mut path: Vec<Piece> = path[1..].split('/').map(Piece::parse).collect::<Result<_, _>>()?;
        let rest = match (open, query) {
            (true, Some(_)) => return bad("`*` in the path, which then allows any query", text),
            (true, None) => {
                path.pop(); // The empty segment in place of the `*`.
                Rest::Anything
            }
            (false, None) => Rest::Nothing,
            (false, Some(query)) => Rest::Query(query.split('&').map(Piece::parse).collect::<Result<_, _>>()?),
        };
        let pattern = Self { text: text.to_owned(), scheme: url.scheme(), host, port: url.port(), path, rest };
        pattern.names_once().map(|()| pattern)
    }

    fn names_once(&self) -> Result<(), BadPattern> {
        let names: Vec<&str> = self.placeholders().collect();
        match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            Some((_, name)) => bad("each placeholder once", name),
            None => Ok(()),
        }
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names in braces, in their order.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.path.iter().chain(self.query()).filter_map(|piece| piece.hole.as_ref()).map(|hole| hole.name.as_str())
    }

    /// Whether it means more than its placeholders say: another host, or any path below.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.rest == Rest::Anything || matches!(self.host, Hosts::Below(_))
    }

    fn query(&self) -> &[Piece] {
        match &self.rest {
            Rest::Query(query) => query,
            Rest::Nothing | Rest::Anything => &[],
        }
    }

    /// Whether the URL is one of those meant.
    #[must_use]
    pub fn matches(&self, url: &Destination) -> bool {
        let host = match (&self.host, url.host()) {
            (Hosts::One(host), got) => host == got,
            (Hosts::Below(ending), Host::Name(name)) => name.ends_with(ending.as_str()),
            (Hosts::Below(_), Host::V4(_) | Host::V6(_)) => false,
        };
        if !host || self.scheme != url.scheme() || self.port != url.port() {
            return false;
        }
        let mut segments = url.path()[1..].split('/');
        if !self.path.iter().all(|piece| segments.next().is_some_and(|segment| piece.matches(segment))) {
            return false;
        }
        match (&self.rest, segments.next(), url.query()) {
            (Rest::Anything, more, _) => more.is_some(),
            (Rest::Nothing, None, None) => true,
            (Rest::Query(pieces), None, Some(query)) => {
                let mut parameters = query.split('&');
                pieces.iter().all(|piece| parameters.next().is_some_and(|parameter| piece.matches(parameter)))
                    && parameters.next().is_none()
            }
            (Rest::Nothing | Rest::Query(_), _, _) => false,
        }
    }

    /// Whether some URL could match both. May be wrong about two placeholders with different text around
    /// them, and then says yes: a `false` is sure.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let hosts = match (&self.host, &other.host) {
            (Hosts::One(one), Hosts::One(other)) => one == other,
            (Hosts::Below(ending), Hosts::One(Host::Name(name)))
            | (Hosts::One(Host::Name(name)), Hosts::Below(ending)) => name.ends_with(ending.as_str()),
            (Hosts::Below(one), Hosts::Below(other)) => one.ends_with(other.as_str()) || other.ends_with(one.as_str()),
            (Hosts::Below(_), Hosts::One(_)) | (Hosts::One(_), Hosts::Below(_)) => false,
        };
        let pieces = |one: &[Piece], other: &[Piece]| one.iter().zip(other).all(|(one, other)| one.overlaps(other));
        let same = |one: &[Piece], other: &[Piece]| one.len() == other.len() && pieces(one, other);
        let paths = match (&self.rest, &other.rest) {
            (Rest::Anything, Rest::Anything) => pieces(&self.path, &other.path),
            (Rest::Anything, _) => self.path.len() < other.path.len() && pieces(&self.path, &other.path),
            (_, Rest::Anything) => other.path.len() < self.path.len() && pieces(&self.path, &other.path),
            (Rest::Nothing, Rest::Nothing) => same(&self.path, &other.path),
            (Rest::Query(one), Rest::Query(another)) => same(&self.path, &other.path) && same(one, another),
            (Rest::Nothing, Rest::Query(_)) | (Rest::Query(_), Rest::Nothing) => false,
        };
        hosts && paths && self.scheme == other.scheme && self.port == other.port
    }

    /// The URL with these values in place of the placeholders, percent-encoded.
    ///
    /// # Errors
    /// [`Unfilled`]: a value is missing, empty, or one that a path cannot hold, such as `..` or one with `/`.
    pub fn fill<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Result<Destination, Unfilled> {
        if self.is_open() {
            return Err(Unfilled::Open);
        }
        let mut parts = self.text.split('{');
        let mut url = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, after) = part.split_once('}').unwrap_or((part, ""));
            match value(name) {
                None => return Err(Unfilled::Missing(name.to_owned())),
                Some("") => return Err(Unfilled::Empty(name.to_owned())),
                Some(value) => url.extend(utf8_percent_encode(value, ENCODED)),
            }
            url.push_str(after);
        }
        Destination::parse(&url).map_err(Unfilled::Bad)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Pattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        Self::parse(text)
    }
}

impl Piece {
    fn parse(text: &str) -> Result<Self, BadPattern> {
        let Some((before, rest)) = text.split_once('{') else {
            return Ok(Self { before: text.to_owned(), hole: None });
        };
        match rest.split_once('}') {
            Some((name, after)) if !after.contains('{') => Ok(Self {
                before: before.to_owned(),
                hole: Some(Hole { name: name.to_owned(), after: after.to_owned() }),
            }),
            _ => bad("at most one placeholder in a segment or parameter", text),
        }
    }

    fn matches(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(self.before.as_str()) else { return false };
        match &self.hole {
            None => rest.is_empty(),
            Some(hole) => rest.strip_suffix(hole.after.as_str()).is_some_and(|filled| !filled.is_empty()),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (&self.hole, &other.hole) {
            (_, None) => self.matches(&other.before),
            (None, _) => other.matches(&self.before),
            (Some(_), Some(_)) => true,
        }
    }
}

/// The pattern with `x` in place of every placeholder, none of which may stand in the host.
fn filled_with_x(text: &str) -> Result<String, BadPattern> {
    let path_at = text.find("://").and_then(|at| text[at + 3..].find('/').map(|slash| at + 3 + slash));
    let mut sample = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let named = rest[at..].strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let Some((name, after)) = named.filter(|(name, _)| is_name(name)) else {
            return bad("placeholders such as `{ticket-id}`: small letters, digits, `-` and `_`", text);
        };
        if path_at.is_none_or(|path_at| text.len() - rest.len() + at < path_at) {
            return bad("placeholders only in path and query", &format!("{{{name}}}"));
        }
        sample.push_str(&rest[..at]);
        sample.push('x');
        rest = after;
    }
    sample.push_str(rest);
    Ok(sample)
}

fn is_name(text: &str) -> bool {
    let mut letters = text.bytes();
    letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
        && text.len() <= 63
}
