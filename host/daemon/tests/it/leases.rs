//! Leases over HTTP: taken, waited for, renewed, given back, read; and what a client keeps to itself.

use crate::site::{Answer, Site};
use anyhow::{Context as _, ensure};
use expect_test::expect;
use reqwest::Method;
use serde_json::{Value, json};
use std::fmt::Write as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// `deploy/web`, percent-encoded.
const WEB: &str = "/v1/leases/deploy%2Fweb";

async fn acquire(site: &Site, grant: &str, body: Value) -> anyhow::Result<Answer> {
    let mut body = body;
    body["grant"] = json!(grant);
    body["label"] = json!(format!("worker {grant}"));
    site.post(WEB, body).await
}

async fn act(site: &Site, verb: &str, grant: &str, token: &Value) -> anyhow::Result<Answer> {
    site.post(&format!("{WEB}/{verb}"), json!({ "grant": grant, "token": token })).await
}

/// Waits until so many stand in line.
async fn in_line(site: &Site, count: usize) -> anyhow::Result<()> {
    while site.get(WEB).await?.at("/line").as_array().map(Vec::len) != Some(count) {
        tokio::task::yield_now().await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_granted_renewed_and_given_back() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let granted = acquire(&site, "a", json!({ "ttl": "30s", "hold_max": "1h", "lock_delay": "5s" })).await?;
    assert_eq!((granted.status, granted.at("/lease")), (201, &json!("deploy/web")), "{}", granted.body);
    assert_eq!((granted.at("/new"), granted.at("/ttl_ms")), (&json!(true), &json!(30_000)));
    let token = granted.at("/token").clone();
    // Asked again under the same grant, as after a lost answer, it is renewed under the same token.
    let again = acquire(&site, "a", json!({ "ttl": "40s" })).await?;
    assert_eq!((again.status, again.at("/new"), again.at("/token")), (200, &json!(false), &token));
    let extended = act(&site, "extend", "a", &token).await?;
    assert_eq!((extended.status, extended.at("/ttl_ms"), extended.at("/grant")), (200, &json!(40_000), &Value::Null));
    let shown = site.get(WEB).await?;
    assert_eq!((shown.at("/holder/owner"), shown.at("/holder/token")), (&json!("worker a"), &token));
    assert_eq!(act(&site, "release", "a", &token).await?.body, json!({ "lease": "deploy/web", "token": token }));
    assert_eq!(site.get(WEB).await?.at("/holder"), &Value::Null);
    let next = acquire(&site, "b", json!({})).await?;
    assert!(next.at("/token").as_u64() > token.as_u64(), "{} after {token}", next.body);
    let what: Vec<_> = site.get(WEB).await?.at("/entries").as_array().into_iter().flatten().rev().cloned().collect();
    let what: Vec<_> = what.iter().filter_map(|entry| entry["what"].as_str()).collect();
    assert_eq!(what, ["acquired", "extended", "extended", "released", "acquired"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_lease_says_who_has_it_and_when_to_come_back() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let granted = acquire(&site, "a", json!({ "ttl": "20s" })).await?;
    let busy = acquire(&site, "b", json!({})).await?;
    assert_eq!((busy.status, busy.at("/code"), busy.at("/retryable")), (409, &json!("busy"), &json!(true)));
    assert_eq!(busy.at("/subject"), "lease deploy/web");
    assert_eq!(busy.at("/lease/owner"), "worker a");
    assert_eq!((busy.at("/lease/token"), busy.at("/lease/in_line")), (granted.at("/token"), &json!(0)));
    assert_eq!((busy.at("/holder"), busy.at("/owner")), (&Value::Null, &Value::Null));
    let seconds: u64 = busy.header("retry-after").context("Retry-After")?.parse()?;
    assert!((1..=20).contains(&seconds), "{seconds}");
    let detail = busy.at("/detail").as_str().unwrap_or_default().to_owned();
    assert!(detail.starts_with("lease deploy/web is not free: held by worker a for "), "{detail}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_hold_it_is_fenced() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let token = acquire(&site, "a", json!({})).await?.at("/token").clone();
    let number = token.as_u64().context("a token")?;
    let named = |refused: &Answer| {
        refused
            .line()
            .replace(&format!("token {number}"), "token N")
            .replace(&format!("token {}", number + 1), "token N+1")
    };
    let mut said = String::new();
    for (grant, token) in [("b", number), ("a", number + 1), ("a", 0)] {
        for verb in ["extend", "release"] {
            let refused = act(&site, verb, grant, &json!(token)).await?;
            let _ = writeln!(said, "{verb}: {}", named(&refused));
        }
    }
    act(&site, "release", "a", &token).await?;
    let twice = act(&site, "release", "a", &token).await?;
    let _ = writeln!(said, "release again: {}", named(&twice));
    expect![[r#"
        extend: 409 fenced: lease deploy/web: expected token N of worker a, got token N of a client
        release: 409 fenced: lease deploy/web: expected token N of worker a, got token N of a client
        extend: 409 fenced: lease deploy/web: expected token N of worker a, got token N+1 of a client
        release: 409 fenced: lease deploy/web: expected token N of worker a, got token N+1 of a client
        extend: 409 fenced: lease deploy/web: expected token N of worker a, got token 0 of a client
        release: 409 fenced: lease deploy/web: expected token N of worker a, got token 0 of a client
        release again: 409 fenced: lease deploy/web: expected no grant: the lease is free, got token N of a client
    "#]]
    .assert_eq(&said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_in_line_get_it_in_their_order() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let token = acquire(&site, "a", json!({})).await?.at("/token").clone();
    let wait = |grant: &str| {
        let request = site.request(Method::POST, &format!("{WEB}?wait=1m"));
        request.map(|request| tokio::spawn(request.json(&json!({ "grant": grant, "label": grant })).send()))
    };
    let second = wait("b")?;
    in_line(&site, 1).await?;
    let third = wait("c")?;
    in_line(&site, 2).await?;
    // Who does not wait does not get before those who do.
    act(&site, "release", "a", &token).await?;
    let second = Answer::read(second.await??).await?;
    assert_eq!((second.status, second.at("/new"), second.at("/grant")), (201, &json!(true), &json!("b")));
    in_line(&site, 1).await?;
    assert_eq!(acquire(&site, "d", json!({})).await?.status, 409);
    act(&site, "release", "b", second.at("/token")).await?;
    let third = Answer::read(third.await??).await?;
    assert_eq!((third.status, third.at("/grant")), (201, &json!("c")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn patience_that_is_over_says_who_still_has_it() -> anyhow::Result<()> {
    let site = Site::new().await?;
    acquire(&site, "a", json!({})).await?;
    let late = site.post(&format!("{WEB}?wait=50ms"), json!({})).await?;
    assert_eq!((late.status, late.at("/code"), late.at("/lease/owner")), (409, &json!("busy"), &json!("worker a")));
    in_line(&site, 0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_connection_breaks_is_out_of_the_line() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let token = acquire(&site, "a", json!({})).await?.at("/token").clone();
    let url = site.request(Method::POST, WEB)?.build()?.url().clone();
    let address = format!("{}:{}", url.host_str().context("host")?, url.port().context("port")?);
    let mut gone = TcpStream::connect(&address).await?;
    let body = json!({ "grant": "gone", "label": "gone" }).to_string();
    let request = format!(
        "POST {WEB}?wait=5m HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    gone.write_all(request.as_bytes()).await?;
    in_line(&site, 1).await?;
    drop(gone);
    in_line(&site, 0).await?;
    act(&site, "release", "a", &token).await?;
    // Nobody is before the next one, and nothing was granted to who is gone.
    assert_eq!(acquire(&site, "b", json!({})).await?.status, 201);
    let entries = site.get(WEB).await?.at("/entries").to_string();
    assert!(!entries.contains(r#""owner":"gone","token""#), "{entries}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_answers_those_in_line() -> anyhow::Result<()> {
    let mut site = Site::new().await?;
    acquire(&site, "a", json!({})).await?;
    let waiting = tokio::spawn(site.request(Method::POST, &format!("{WEB}?wait=5m"))?.json(&json!({})).send());
    in_line(&site, 1).await?;
    site.stop().await?;
    let answered = Answer::read(waiting.await??).await?;
    assert_eq!((answered.status, answered.at("/code")), (503, &json!("unavailable")), "{}", answered.body);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_come_in_pages_by_name() -> anyhow::Result<()> {
    let site = Site::new().await?;
    for name in ["b", "a%2F2", "a%2F1", "a%2F1%2Fx", "c"] {
        assert_eq!(site.post(&format!("/v1/leases/{name}"), json!({})).await?.status, 201, "{name}");
    }
    let names = |page: &Answer| -> Vec<String> {
        let leases = page.at("/leases").as_array().cloned().unwrap_or_default();
        leases.iter().filter_map(|lease| lease["lease"].as_str().map(str::to_owned)).collect()
    };
    for limit in [1, 2, 5, 6] {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = site.get(&format!("/v1/leases?limit={limit}{after}")).await?;
            ensure!(names(&page).len() <= limit, "{}", page.body);
            found.extend(names(&page));
            match page.at("/next").as_str() {
                Some(next) => after = format!("&after={}", next.replace('/', "%2F")),
                None => break,
            }
        }
        assert_eq!(found, ["a/1", "a/1/x", "a/2", "b", "c"], "in pages of {limit}");
    }
    assert_eq!(names(&site.get("/v1/leases?prefix=a%2F1").await?), ["a/1", "a/1/x"]);
    assert_eq!(names(&site.get("/v1/leases?prefix=a%2F&after=a%2F1%2Fx").await?), ["a/2"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_told_to_its_client_only() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let mut stream = site.request(Method::GET, "/v1/watch")?.send().await?;
    let minted = site.post(WEB, json!({})).await?;
    let grant = minted.at("/grant").as_str().context("a minted grant")?.to_owned();
    assert!(grant.len() >= 32, "{grant}");
    let busy = acquire(&site, "other-secret", json!({})).await?;
    let fenced = act(&site, "release", "other-secret", minted.at("/token")).await?;
    assert_eq!((busy.status, fenced.status), (409, 409));
    let mut told = [busy.body, fenced.body, site.get(WEB).await?.body, site.get("/v1/leases").await?.body]
        .map(|body| body.to_string())
        .concat();
    while !told.contains("\"what\":\"fenced\"") || !told.contains("event: lease") {
        told.push_str(std::str::from_utf8(&stream.chunk().await?.context("the stream ended")?)?);
    }
    for secret in [grant.as_str(), "other-secret"] {
        // The label that this test chose has it after a blank.
        let found = told.replace("worker other-secret", "").contains(secret);
        assert!(!found, "{secret} in {told}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_are_refused_by_name() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let mut said = String::new();
    let bodies = [
        json!({ "ttl": 30 }),
        json!({ "ttl": "soon" }),
        json!({ "ttl": "10ms" }),
        json!({ "ttl": "2h" }),
        json!({ "ttl": "1m", "hold_max": "30s" }),
        json!({ "lock_delay": "1d" }),
        json!({ "grant": "" }),
        json!({ "wait": "3s" }),
    ];
    for body in bodies {
        let _ = writeln!(said, "{body}\n    {}", site.post(WEB, body.clone()).await?.line());
    }
    for (path, body) in [("/v1/leases/a*", json!({})), ("/v1/leases/a?wait=soon", json!({}))] {
        let _ = writeln!(said, "{path}\n    {}", site.post(path, body).await?.line());
    }
    for path in ["/v1/leases/nobody", "/v1/leases?limit=0", "/v1/leases?name=a"] {
        let _ = writeln!(said, "{path}\n    {}", site.get(path).await?.line());
    }
    expect![[r#"
        {"ttl":30}
            400 invalid: ttl: expected a string, got invalid type: integer `30` at line 1 column 9
        {"ttl":"soon"}
            400 invalid: ttl: expected a duration such as 500ms, 30s, 5m, 2h or 7d, got "soon"
        {"ttl":"10ms"}
            413 limit: lease deploy/web: expected a ttl of 1 s to 60 min (lease_ttl_ms_max), got 10 ms
        {"ttl":"2h"}
            413 limit: lease deploy/web: expected a ttl of 1 s to 60 min (lease_ttl_ms_max), got 2 h
        {"hold_max":"30s","ttl":"1m"}
            413 limit: lease deploy/web: expected a hold_max of 60 s to 30 d (lease_hold_ms_max), got 30 s
        {"lock_delay":"1d"}
            413 limit: lease deploy/web: expected a lock_delay of 0 ms to 10 min (lease_delay_ms_max), got 24 h
        {"grant":""}
            400 invalid: grant: expected 1 to 200 bytes without control characters, got another text
        {"wait":"3s"}
            400 invalid: wait: expected one of `ttl`, `hold_max`, `lock_delay`, `label`, `grant`, got unknown field `wait` at line 1 column 7
        /v1/leases/a*
            400 invalid: lease name: expected 1 to 200 bytes without control characters or ['*'], got "a*"
        /v1/leases/a?wait=soon
            400 invalid: query.wait: expected a duration such as 500ms, 30s or 5m, got "soon"
        /v1/leases/nobody
            404 not_found: nobody has lease nobody, waits for it, or has asked for it lately
        /v1/leases?limit=0
            400 invalid: query.limit: expected 1 to 500, got "0"
        /v1/leases?name=a
            400 invalid: query.name: expected only prefix, limit, after, got "name"
    "#]]
    .assert_eq(&said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_leases_is_counted() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let token = acquire(&site, "a", json!({})).await?.at("/token").clone();
    acquire(&site, "b", json!({})).await?;
    act(&site, "extend", "a", &token).await?;
    act(&site, "release", "b", &token).await?;
    act(&site, "release", "a", &token).await?;
    let stats = site.get("/v1/stats").await?;
    let counted: Vec<_> = ["acquired", "contended", "extended", "fenced", "released", "expired", "reconciled"]
        .map(|what| format!("{what} {}", stats.at(&format!("/counters/leases_{what}"))))
        .into();
    assert_eq!(
        counted,
        ["acquired 1", "contended 1", "extended 1", "fenced 1", "released 1", "expired 0", "reconciled 0"]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_a_lease_is_told_behind_a_position() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let read = async |behind: Option<&str>, count: usize| -> anyhow::Result<(String, Vec<String>)> {
        let mut request = site.request(Method::GET, &format!("{WEB}/watch"))?;
        if let Some(behind) = behind {
            request = request.header("Last-Event-ID", behind);
        }
        let (mut stream, mut text) = (request.send().await?, String::new());
        if behind.is_none() {
            let token = acquire(&site, "a", json!({})).await?.at("/token").clone();
            site.post("/v1/leases/another", json!({})).await?;
            act(&site, "release", "a", &token).await?;
        }
        while text.matches("event: lease").count() < count || !text.ends_with("\n\n") {
            text.push_str(std::str::from_utf8(&stream.chunk().await?.context("the stream ended")?)?);
        }
        let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).skip(1);
        let told: Result<Vec<Value>, _> = data.map(serde_json::from_str).collect();
        let told = told?;
        let first = told.first().and_then(|told| told["position"].as_str()).unwrap_or_default().to_owned();
        Ok((first, told.iter().map(|told| format!("{} {}", told["lease"], told["entry"]["what"])).collect()))
    };
    let (first, told) = read(None, 2).await?;
    assert_eq!(told, [r#""deploy/web" "acquired""#, r#""deploy/web" "released""#]);
    let (_, again) = read(Some(&first), 1).await?;
    assert_eq!(again, [r#""deploy/web" "released""#]);
    Ok(())
}
