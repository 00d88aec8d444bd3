//! Which headers a guest may set on its request. What frames the request, says who sends it, or changes
//! what was allowed is the host's to write.

use std::fmt;

/// Why a guest may not set a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forbidden {
    /// It is no header name.
    NoName,
    /// It frames the message or belongs to one connection (RFC 9110, 7.6.1); a second framing is how
    /// requests are smuggled.
    Framing,
    /// The host says it: fencing, idempotency, whose request this is.
    Hosts,
    /// Credentials come by reference: a header of a guest is stored.
    Credential,
    /// It asks some servers for another method or path than the one that was allowed.
    Override,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoName => "it is not a header's name",
            Self::Framing => "it frames the request",
            Self::Hosts => "the host sets it",
            Self::Credential => "credentials come as a secret, by reference",
            Self::Override => "it would ask for another method or path than the allowed one",
        })
    }
}

impl std::error::Error for Forbidden {}

/// Small and in full; `_` is written `-`, since CGI gives both the same variable.
const NAMES: &[(&str, Forbidden)] = &[
    ("connection", Forbidden::Framing),
    ("content-length", Forbidden::Framing),
    ("expect", Forbidden::Framing),
    ("host", Forbidden::Framing),
    ("http2-settings", Forbidden::Framing),
    ("keep-alive", Forbidden::Framing),
    ("proxy-connection", Forbidden::Framing),
    ("te", Forbidden::Framing),
    ("trailer", Forbidden::Framing),
    ("transfer-encoding", Forbidden::Framing),
    ("upgrade", Forbidden::Framing),
    // Answers are not decompressed, so none is asked for.
    ("accept-encoding", Forbidden::Framing),
    ("forwarded", Forbidden::Hosts),
    ("idempotency-key", Forbidden::Hosts),
    ("via", Forbidden::Hosts),
    ("x-idempotency-key", Forbidden::Hosts),
    ("x-real-ip", Forbidden::Hosts),
    ("authorization", Forbidden::Credential),
    ("cookie", Forbidden::Credential),
    ("proxy-authenticate", Forbidden::Credential),
    ("proxy-authorization", Forbidden::Credential),
    ("x-http-method", Forbidden::Override),
    ("x-http-method-override", Forbidden::Override),
    ("x-method-override", Forbidden::Override),
    ("x-original-url", Forbidden::Override),
    ("x-rewrite-url", Forbidden::Override),
];

const BEGINNINGS: &[(&str, Forbidden)] = &[
    ("interlock-", Forbidden::Hosts),
    ("x-interlock-", Forbidden::Hosts),
    ("x-forwarded-", Forbidden::Hosts),
    ("sec-", Forbidden::Hosts),
];

/// Whether a guest may set the header.
///
/// # Errors
/// Why not.
///
/// ```
/// use interlock_courier::{Forbidden, guest_may_set};
///
/// assert_eq!(guest_may_set("Content-Type"), Ok(()));
/// assert_eq!(guest_may_set("Idempotency_Key"), Err(Forbidden::Hosts));
/// ```
pub fn guest_may_set(name: &str) -> Result<(), Forbidden> {
    match verdict(name) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

/// Whether whoever hands the courier a request may set the header: all but what the courier writes itself.
#[cfg(feature = "client")]
pub(crate) fn host_may_set(name: &str) -> Result<(), Forbidden> {
    match verdict(name) {
        Some(why @ (Forbidden::NoName | Forbidden::Framing)) => Err(why),
        _ => Ok(()),
    }
}

fn verdict(name: &str) -> Option<Forbidden> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Some(Forbidden::NoName);
    }
    let name = name.to_ascii_lowercase().replace('_', "-");
    let whole = NAMES.iter().find(|(forbidden, _)| *forbidden == name);
    let beginning = || BEGINNINGS.iter().find(|(beginning, _)| name.starts_with(beginning));
    whole.or_else(beginning).map(|(_, why)| *why)
}
