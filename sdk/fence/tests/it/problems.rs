//! Every refusal as the document that is sent. `UPDATE_EXPECT=1` rewrites `golden/problems.txt`.

use axum::http::Response;
use expect_test::expect_file;
use interlock_fence::{Fence, IdempotencyKey, Problem, Refusal, check};
use std::fmt::Write as _;

fn refusals() -> Vec<Refusal> {
    let headers = crate::requests::headers("e1", "pool/gpu-7", 6);
    let key = || IdempotencyKey::read(&headers).unwrap();
    let stale = check(Some(crate::requests::token(7)), &Fence::read(&headers).unwrap()).unwrap_err();
    let bad = Fence::read(&axum::http::HeaderMap::new()).unwrap_err();
    let all = vec![
        Refusal::Header(bad),
        Refusal::Stale(stale),
        Refusal::KeyReused { key: key() },
        Refusal::InProgress { key: key() },
        Refusal::Full { limit: "fence.resources", max: 1000 },
        Refusal::Unavailable { why: "disk I/O error".to_owned() },
    ];
    for refusal in &all {
        // A new kind of refusal does not compile here before it is in the list.
        match refusal {
            Refusal::Header(_)
            | Refusal::Stale(_)
            | Refusal::KeyReused { .. }
            | Refusal::InProgress { .. }
            | Refusal::Full { .. }
            | Refusal::Unavailable { .. } => {}
        }
    }
    all
}

#[test]
fn every_refusal_says_what_was_expected_and_what_was_got() {
    let mut text = String::new();
    for refusal in refusals() {
        let problem = Problem::from(refusal.clone());
        let response: Response<Vec<u8>> = problem.response();
        assert_eq!(response.status().as_u16(), problem.status);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(response.headers().contains_key("retry-after"), problem.retryable);
        assert_eq!(refusal.to_string(), format!("{}: {}", problem.code, problem.detail));
        writeln!(text, "{}", String::from_utf8(response.into_body()).unwrap()).unwrap();
    }
    expect_file!["golden/problems.txt"].assert_eq(&text);
}
