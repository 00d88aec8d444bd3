//! A URL that may be asked: absolute, `http` or `https`, written in the one canonical way.
//!
//! What is refused is what two parsers could read differently, because the rule that allowed a URL and the
//! server that answers it are two parsers: user names, fragments, dot segments, encoded slashes, IPv4 in
//! anything but four decimal numbers. So nothing is normalised here, and comparing texts is comparing URLs.
//! The grammar is RFC 3986, narrowed to what the WHATWG URL standard would write out again unchanged.

use percent_encoding::percent_decode_str;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A URL in bytes: what servers commonly take in a request line.
pub const URL_BYTES_MAX: usize = 8 << 10;

/// How a target is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of a URL that names none.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name in small ASCII letters, still to be resolved.
    Name(String),
    /// Four decimal numbers.
    V4(Ipv4Addr),
    /// In brackets, without a zone.
    V6(Ipv6Addr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => write!(f, "[{address}]"),
        }
    }
}

/// A text that is no URL a request may go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadUrl {
    /// What should have stood there.
    pub expected: &'static str,
    /// What stood there.
    pub got: String,
}

impl fmt::Display for BadUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a URL to send to: expected {}, got {}", self.expected, self.got)
    }
}

impl std::error::Error for BadUrl {}

fn bad<T>(expected: &'static str, got: impl fmt::Debug) -> Result<T, BadUrl> {
    Err(BadUrl { expected, got: excerpt(&format!("{got:?}")) })
}

/// A text short enough to stand in a message.
pub(crate) fn excerpt(text: &str) -> String {
    const SHOWN: usize = 120;
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}

/// A URL that may be asked. Two are equal exactly if their texts are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    text: String,
    scheme: Scheme,
    host: Host,
    port: u16,
    path_at: usize,
}

impl Destination {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`BadUrl`]: it is none, or it could be read in two ways.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        if text.len() > URL_BYTES_MAX {
            return bad("at most 8 KiB", format_args!("{} bytes", text.len()));
        }
        let (scheme, rest) = scheme(text)?;
        let Some(slash) = rest.find('/') else {
            return bad("a path, at least `/`", rest);
        };
        let (authority, path) = rest.split_at(slash);
        let (host, port) = authority_of(authority, scheme)?;
        path_and_query(path)?;
        Ok(Self { text: text.to_owned(), scheme, host, port, path_at: text.len() - path.len() })
    }

    /// The whole of it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How it is spoken to.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Who answers.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Where they listen.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// `https://host`, with the port if it is not the scheme's own: all of it that may stand in a log.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.text.get(..self.path_at).unwrap_or_default()
    }

    /// `host`, with the port if it is not the scheme's own: the `Host` header.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.text.get(self.scheme.as_str().len() + "://".len()..self.path_at).unwrap_or_default()
    }

    /// Path and query: the request target.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        self.text.get(self.path_at..).unwrap_or_default()
    }

    /// The path, beginning with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path_and_query().split_once('?').map_or(self.path_and_query(), |(path, _)| path)
    }

    /// What follows `?`, if there is one.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.path_and_query().split_once('?').map(|(_, query)| query)
    }
}

impl FromStr for Destination {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        Self::parse(text)
    }
}

/// Without the query: it may hold what nobody should read in a log.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.origin(), self.path(), if self.query().is_some() { "?.." } else { "" })
    }
}

fn scheme(text: &str) -> Result<(Scheme, &str), BadUrl> {
    for scheme in [Scheme::Http, Scheme::Https] {
        if let Some(rest) = text.strip_prefix(scheme.as_str()).and_then(|rest| rest.strip_prefix("://")) {
            return Ok((scheme, rest));
        }
    }
    bad("`http://` or `https://`", text.split_inclusive("//").next().unwrap_or_default())
}

fn authority_of(text: &str, scheme: Scheme) -> Result<(Host, u16), BadUrl> {
    if text.contains('@') {
        // Not shown: it would be a password.
        return bad("no user name or password", format_args!("an `@`"));
    }
    let ends_in_bracket = text.ends_with(']');
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !ends_in_bracket => (host, Some(port)),
        _ => (text, None),
    };
    let port = port.map_or(Ok(scheme.port()), |port| port_of(port, scheme))?;
    Ok((host_of(host)?, port))
}

fn port_of(text: &str, scheme: Scheme) -> Result<u16, BadUrl> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    match text.parse::<u16>() {
        Ok(port) if plain && port != scheme.port() => Ok(port),
        Ok(port) if plain => bad("no port where it is the scheme's own", port),
        _ => bad("a port from 1 to 65535", text),
    }
}

fn host_of(text: &str) -> Result<Host, BadUrl> {
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return match inner.parse::<Ipv6Addr>() {
            Ok(address) if whatwg(address) == inner => Ok(Host::V6(address)),
            Ok(address) => bad("an IPv6 address in its short spelling", whatwg(address)),
            Err(_) => bad("an IPv6 address without a zone", inner),
        };
    }
    let last = text.rsplit('.').next().unwrap_or_default();
    // By the URL standard such a host is an IPv4 address or nothing: `1.2.3`, `0x7f.1`, `2130706433`.
    if last.starts_with("0x") || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())) {
        return match text.parse::<Ipv4Addr>() {
            Ok(address) => Ok(Host::V4(address)),
            Err(_) => bad("an IPv4 address as four decimal numbers", text),
        };
    }
    let label = |label: &str| {
        let letters = label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        letters && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    if text.len() > 253 || !text.split('.').all(label) {
        return bad("a host name in small ASCII letters, digits, `-` and `_`, without a dot at its end", text);
    }
    Ok(Host::Name(text.to_owned()))
}

/// An IPv6 address as the URL standard writes it: as RFC 5952 does, but never with an IPv4 tail.
fn whatwg(address: Ipv6Addr) -> String {
    match (address.to_ipv4_mapped(), address.segments()) {
        (Some(_), [.., high, low]) => format!("::ffff:{high:x}:{low:x}"),
        (None, _) => address.to_string(),
    }
}

fn path_and_query(text: &str) -> Result<(), BadUrl> {
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    for segment in path.split('/') {
        characters(segment, b"!$&'()*+,;=:@")?;
        path_segment(segment)?;
    }
    // `'` is left out: the URL standard writes it encoded in a query.
    query.map_or(Ok(()), |query| characters(query, b"!$&()*+,;=:@/?"))
}

fn characters(text: &str, also: &[u8]) -> Result<(), BadUrl> {
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next(), rest.next()];
            if !digits.iter().all(|digit| digit.is_some_and(|digit| digit.is_ascii_hexdigit())) {
                return bad("two hexadecimal digits after every `%`", text);
            }
        } else if byte == b'#' {
            return bad("no fragment", text);
        } else if !(byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte)) {
            return bad("characters of RFC 3986, every other one percent-encoded", text);
        }
    }
    Ok(())
}

/// A segment means one thing, however often and by whom it is decoded.
fn path_segment(segment: &str) -> Result<(), BadUrl> {
    let Ok(plain) = percent_decode_str(segment).decode_utf8() else {
        // Overlong encodings hide slashes and dots from one decoder and show them to another.
        return bad("percent-encoded UTF-8", segment);
    };
    if plain.chars().any(|c| c.is_control() || c == '/' || c == '\\') {
        return bad("no encoded slash, backslash or control character in the path", segment);
    }
    let pairs = plain.match_indices('%').filter_map(|(at, _)| plain.get(at + 1..at + 3));
    if pairs.into_iter().any(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return bad("nothing percent-encoded twice", segment);
    }
    // Some servers drop what follows `;` before they look for dots.
    if matches!(plain.split(';').next(), Some("." | "..")) {
        return bad("no dot segment", segment);
    }
    Ok(())
}
