//! A request as it is written to the wire.

use crate::header::host_may_set;
use crate::method::Method;
use crate::outbound::{Outbound, Refusal, Rule};
use crate::secret::Secret;
use crate::url::Destination;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Request, Uri};
use http_body_util::Full;
use std::fmt::Display;

/// The request for one destination.
pub(crate) fn build(
    outbound: &Outbound,
    url: &Destination,
    secret: Option<&Secret>,
) -> Result<Request<Full<Bytes>>, Refusal> {
    let mut headers = HeaderMap::new();
    for (name, value) in &outbound.headers {
        let (name, value) = (header_name(name)?, header_value(name, value.as_bytes())?);
        headers.append(name, value);
    }
    if let (Some(usage), Some(secret)) = (&outbound.secret, secret) {
        let name = header_name(&usage.header)?;
        if headers.contains_key(&name) {
            return Err(refused(name.as_str(), "only the secret in it", "another value, too"));
        }
        let mut value = header_value(name.as_str(), &[usage.prefix.as_bytes(), secret.reveal()].concat())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("interlock/", env!("CARGO_PKG_VERSION"))));
    headers.insert(HOST, header_value("host", url.authority().as_bytes())?);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let body = outbound.body.clone().unwrap_or_default();
    // RFC 9110, 8.6: these methods mean a body, if an empty one.
    if outbound.body.is_some() || matches!(outbound.method, Method::Post | Method::Put | Method::Patch) {
        headers.insert(CONTENT_LENGTH, body.len().into());
    }
    let uri: Uri = url.path_and_query().parse().map_err(|error| refused("the request line", "a URL", error))?;
    let method = outbound.method.as_str();
    let request = Request::builder().method(method).uri(uri).body(Full::new(body));
    let mut request = request.map_err(|error| refused("the request line", "a request", error))?;
    *request.headers_mut() = headers;
    Ok(request)
}

fn header_name(name: &str) -> Result<HeaderName, Refusal> {
    host_may_set(name).map_err(|why| refused(name, "a header that may be set", why))?;
    name.parse().map_err(|error| refused(name, "a header's name", error))
}

fn header_value(name: &str, value: &[u8]) -> Result<HeaderValue, Refusal> {
    HeaderValue::from_bytes(value).map_err(|_| refused(name, "a value without control characters", "one with some"))
}

fn refused(name: &str, expected: &str, got: impl Display) -> Refusal {
    Refusal::new(Rule::Header, format!("for `{}` {expected}", crate::url::excerpt(name)), got.to_string())
}
