//! Requests as a host sends them.

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Uri};
use interlock_fence::{Effect, Fence, Token};

pub(crate) const POOL: &str = "pool/gpu-7";

/// The headers of a delivery.
pub(crate) fn headers(key: &str, resource: &str, token: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", key.parse().unwrap());
    headers.insert("interlock-fence-resource", resource.parse().unwrap());
    headers.insert("interlock-fencing-token", token.into());
    headers
}

/// A delivery of the effect `key`.
pub(crate) fn effect(key: &str, token: u64, body: &str) -> Effect {
    let target = Uri::from_static("/pools/gpu-7");
    Effect::read(&Method::PUT, &target, &headers(key, POOL, token), body.as_bytes()).unwrap()
}

/// The fence of a delivery.
pub(crate) fn fence(token: u64) -> Fence {
    Fence::read(&headers("any", POOL, token)).unwrap()
}

/// A whole request.
pub(crate) fn request(resource: &str, token: u64) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.headers_mut() = headers("any", resource, token);
    request
}

pub(crate) fn token(number: u64) -> Token {
    Token::new(number).unwrap()
}
