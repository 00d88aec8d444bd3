//! What is taken for a fence and what is not, the same in Rust and in both recipes: `recipes/headers.json`.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use interlock_fence::{BadHeader, Digest, Effect, Fault, Fence, Origin, Token, check};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    headers: Vec<(String, String)>,
    accept: Option<Accept>,
    refuse: Option<Refuse>,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Accept {
    key: String,
    resource: String,
    token: u64,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Refuse {
    header: String,
    got: String,
}

fn read(case: &Case) -> Result<Effect, BadHeader> {
    let mut headers = HeaderMap::new();
    for (name, value) in &case.headers {
        headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    Effect::read(&Method::POST, &Uri::from_static("/"), &headers, b"")
}

#[test]
fn every_case_is_read_as_it_says() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../recipes/headers.json")).unwrap();
    assert!(cases.iter().any(|case| case.accept.is_some()) && cases.iter().any(|case| case.refuse.is_some()));
    for case in cases {
        let (accepted, refused) = match read(&case) {
            Ok(Effect { key, fence: Fence { resource, token }, .. }) => {
                (Some(Accept { key: key.to_string(), resource: resource.to_string(), token: token.get() }), None)
            }
            Err(bad) => (None, Some(Refuse { header: bad.header.to_string(), got: bad.got })),
        };
        assert_eq!((accepted, refused), (case.accept, case.refuse), "{}", case.name);
    }
}

#[test]
fn a_fault_says_what_kind_it_is() {
    let mut headers = crate::requests::headers("e1", "pool/a", 5);
    let fault = |headers: &HeaderMap| Fence::read(headers).map_err(|bad| (bad.header.to_string(), bad.fault));
    let token = || "interlock-fencing-token".to_owned();
    headers.insert("interlock-fencing-token", "5x".parse().unwrap());
    assert_eq!(fault(&headers), Err((token(), Fault::Malformed)));
    headers.append("interlock-fencing-token", "6".parse().unwrap());
    assert_eq!(fault(&headers), Err((token(), Fault::Repeated)));
    headers.remove("interlock-fencing-token");
    assert_eq!(fault(&headers), Err((token(), Fault::Missing)));
    assert_eq!(
        Fence::read(&headers).unwrap_err().to_string(),
        "header interlock-fencing-token: expected a decimal integer below 2^53, got none"
    );
}

#[test]
fn what_is_long_is_cut_where_it_is_shown() {
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", "k".repeat(600).parse().unwrap());
    let bad = Effect::read(&Method::POST, &Uri::from_static("/"), &headers, b"").unwrap_err();
    assert_eq!(bad.got, format!("{:?}... (600 bytes)", "k".repeat(80)));
}

#[test]
fn the_origin_is_read_apart() {
    let mut headers = HeaderMap::new();
    for (name, value) in [("interlock-entity", "pool/a"), ("interlock-version", "12"), ("interlock-attempt", "2")] {
        headers.insert(name, value.parse().unwrap());
    }
    let origin = Origin { entity: "pool/a".to_owned(), version: 12, attempt: 2 };
    assert_eq!(Origin::read(&headers), Ok(origin));
    headers.remove("interlock-version");
    assert_eq!(Origin::read(&headers).unwrap_err().header, interlock_fence::VERSION);
}

#[test]
fn a_token_is_good_from_the_highest_on() {
    let fence = crate::requests::fence(6);
    let highest = |token| Some(Token::new(token).unwrap());
    assert_eq!(check(None, &fence), Ok(()));
    assert_eq!(check(highest(5), &fence), Ok(()));
    assert_eq!(check(highest(6), &fence), Ok(()));
    let stale = check(highest(7), &fence).unwrap_err();
    assert_eq!(stale.to_string(), "pool/gpu-7: expected a token of at least 7, got 6");
}

/// The digest of the recipes, so that all of them may share a table: SHA-256 of `METHOD target`, a line break, body.
#[test]
fn the_digest_tells_requests_apart() {
    let of = |method: &Method, target: &str, body: &str| Digest::of(method, &target.parse().unwrap(), body.as_bytes());
    let one = of(&Method::PUT, "/pools/a?dry=1", "{\"size\":4}");
    assert_eq!(format!("{one:?}"), "51012785f77a5df1ec3d1fdad4cbe7fa42bd42fb99cb877734080bd770e22988");
    assert_eq!(one, of(&Method::PUT, "http://receiver.example/pools/a?dry=1", "{\"size\":4}"));
    assert_ne!(one, of(&Method::POST, "/pools/a?dry=1", "{\"size\":4}"));
    assert_ne!(one, of(&Method::PUT, "/pools/a", "{\"size\":4}"));
    assert_ne!(one, of(&Method::PUT, "/pools/a?dry=1", "{\"size\":5}"));
}
