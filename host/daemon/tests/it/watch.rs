//! Streams: in order, from a position on, to a graceful end.

use crate::site::Site;
use anyhow::Context;
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// The next block of a stream that is not a comment; none at its end.
async fn next(stream: &mut Response, buffer: &mut String) -> anyhow::Result<Option<(String, String, Value)>> {
    loop {
        if let Some((block, rest)) = buffer.split_once("\n\n") {
            let (block, rest) = (block.to_owned(), rest.to_owned());
            *buffer = rest;
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
            };
            if !field("data:").is_empty() {
                return Ok(Some((field("event:"), field("id:"), serde_json::from_str(&field("data:"))?)));
            }
            continue;
        }
        match stream.chunk().await? {
            Some(chunk) => buffer.push_str(std::str::from_utf8(&chunk)?),
            None => return Ok(None),
        }
    }
}

async fn open(site: &Site, path: &str, position: Option<&str>) -> anyhow::Result<Response> {
    let mut request = site.request(Method::GET, path)?;
    if let Some(position) = position {
        request = request.header("Last-Event-ID", position);
    }
    Ok(request.send().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_behind_its_position() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let (mut stream, mut buffer) = (open(&site, "/v1/entities/door/a/watch", None).await?, String::new());
    let (name, from, _) = next(&mut stream, &mut buffer).await?.context("the first event")?;
    assert_eq!(name, "from");
    site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    let (name, pushed, body) = next(&mut stream, &mut buffer).await?.context("an entry")?;
    assert_eq!(
        (name.as_str(), &body["entity"], &body["entry"]["what"]),
        ("entry", &json!("door/a"), &json!("push -> opening"))
    );
    drop(stream);
    site.send("door/a", "e2", "stop", Value::Null).await?;

    let (mut again, mut buffer) = (open(&site, "/v1/watch?machine=door", Some(&pushed)).await?, String::new());
    next(&mut again, &mut buffer).await?.context("the first event")?;
    let (_, _, body) = next(&mut again, &mut buffer).await?.context("an entry")?;
    assert_eq!(body["entry"]["what"], "stop -> shut");
    let (mut all, mut buffer) = (open(&site, &format!("/v1/watch?after={from}"), None).await?, String::new());
    next(&mut all, &mut buffer).await?.context("the first event")?;
    let (_, _, body) = next(&mut all, &mut buffer).await?.context("an entry")?;
    assert_eq!(body["entry"]["what"], "push -> opening");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_of_another_store_is_gone() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let ahead = site.get("/v1/watch?after=1099511627776000.0").await?;
    assert_eq!((ahead.status, ahead.at("/code")), (410, &json!("gone")), "{}", ahead.body);
    let malformed = site.get("/v1/watch?after=yesterday").await?;
    assert_eq!((malformed.status, malformed.at("/subject")), (400, &json!("Last-Event-ID")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_streams_in_good_order() -> anyhow::Result<()> {
    let mut site = Site::with_door().await?;
    let (mut stream, mut buffer) = (open(&site, "/v1/watch", None).await?, String::new());
    next(&mut stream, &mut buffer).await?.context("the first event")?;
    site.stop().await?;
    assert_eq!(next(&mut stream, &mut buffer).await?, None);
    Ok(())
}
