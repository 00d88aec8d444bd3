//! Watching over server-sent events, and reading in pages.

use crate::host::{Api, Setup, event, run, start, start_unkilled};
use crate::ledger::adds_up;
use crate::machines::{COUNTED, DOOR};
use anyhow::{Context as _, Result, bail, ensure};
use reqwest::{Method, Response};
use serde_json::Value;
use std::time::Duration;

/// A stream of server-sent events, read one at a time.
struct Stream {
    response: Response,
    text: String,
}

/// One event: its name, id and data.
#[derive(Debug, Default)]
struct Told {
    name: String,
    id: String,
    data: Value,
}

impl Stream {
    async fn open(api: &Api, path: &str, behind: Option<&str>) -> Result<Stream> {
        let mut request = api.request(Method::GET, path);
        if let Some(behind) = behind {
            request = request.header("Last-Event-ID", behind);
        }
        let response = request.send().await?;
        ensure!(response.status() == 200, "{}: {}", response.status(), response.text().await?);
        Ok(Stream { response, text: String::new() })
    }

    /// The next event; none at the end of the stream, however it came.
    async fn next(&mut self) -> Result<Option<Told>> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                match told(&event)? {
                    Some(told) => return Ok(Some(told)),
                    None => continue,
                }
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.text.push_str(std::str::from_utf8(&chunk)?),
                // A killed host cuts the connection in the middle of a chunk.
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    /// The next entries, as many as asked for.
    async fn entries(&mut self, count: usize) -> Result<Vec<Told>> {
        let mut entries = Vec::new();
        while entries.len() < count {
            let told = self.next().await?.with_context(|| format!("the end after {entries:?}"))?;
            match told.name.as_str() {
                "entry" => entries.push(told),
                "from" => {}
                _ => bail!("{told:?}"),
            }
        }
        Ok(entries)
    }
}

/// An event of its lines; none if it is only a comment.
fn told(text: &str) -> Result<Option<Told>> {
    let mut told = Told::default();
    for line in text.lines() {
        match line.split_once(':') {
            Some(("event", name)) => told.name = name.trim().to_owned(),
            Some(("id", id)) => told.id = id.trim().to_owned(),
            Some(("data", data)) => told.data = serde_json::from_str(data)?,
            Some(("", _comment)) => {}
            _ => bail!("not a line of an event: {line:?}"),
        }
    }
    Ok((!told.name.is_empty()).then_some(told))
}

fn numbers(entries: &[Told]) -> Vec<u64> {
    entries.iter().filter_map(|told| told.data["entry"]["number"].as_u64()).collect()
}

/// Runs executions one after another.
async fn work(api: &Api, from: usize, to: usize) -> Result<()> {
    for nth in from..to {
        api.settle("counted/a", &format!("e{nth}"), event("go")).await?.done()?;
    }
    Ok(())
}

#[test]
fn a_watch_goes_on_over_kills_without_losing_or_doubling_an_entry() -> Result<()> {
    const ROUNDS: usize = 4;
    run(async {
        let mut host = start_unkilled(Setup::default()).await?;
        host.api().deploy(COUNTED, Some("noop")).await?;
        let path = "/v1/entities/counted/a/watch";
        let mut stream = Stream::open(host.api(), path, None).await?;
        let mut behind = stream.next().await?.context("where it begins")?.id;
        host.api().create("counted/a").await?;
        let mut seen = Vec::new();
        for round in 0..ROUNDS {
            work(host.api(), round * 4, round * 4 + 2).await?;
            // Some of it is heard before the kill, the rest only by who comes back.
            let heard = stream.entries(5).await?;
            behind = heard.last().map_or(behind, |told| told.id.clone());
            seen.extend(numbers(&heard));
            host.crash().await?;
            work(host.api(), round * 4 + 2, round * 4 + 4).await?;
            stream = Stream::open(host.api(), path, Some(&behind)).await?;
        }
        let last = host.api().entity("counted/a").await?;
        let history = host.api().history("counted/a").await?;
        adds_up(&last, &history)?;
        let heard = stream.entries(history.len() - seen.len()).await?;
        seen.extend(numbers(&heard));
        ensure!(seen == (1..=history.len() as u64).collect::<Vec<_>>(), "{seen:?}");
        for (told, entry) in heard.iter().rev().zip(history.iter().rev()) {
            ensure!(told.data["entry"] == *entry && told.data["entity"] == "counted/a", "{told:?} is not {entry}");
        }
        // In good order the stream ends by itself.
        host.stop().await?;
        ensure!(stream.next().await?.is_none());
        Ok(())
    })
}

#[test]
fn a_watch_of_a_machine_tells_of_its_entities_only_and_in_order() -> Result<()> {
    run(async {
        let host = start_unkilled(Setup::default()).await?;
        let api = host.api();
        api.deploy(DOOR, None).await?;
        api.deploy(&DOOR.replace("\"door\"", "\"gate\""), None).await?;
        let mut stream = Stream::open(api, "/v1/watch?machine=gate", None).await?;
        let first = stream.next().await?.context("where it begins")?;
        ensure!(first.name == "from" && first.data["position"] == first.id.as_str(), "{first:?}");
        for entity in ["door/a", "gate/a", "door/b", "gate/b"] {
            api.create(entity).await?;
            api.send(entity, "e1", event("hold")).await?.done()?;
        }
        let heard = stream.entries(4).await?;
        let heard: Vec<_> =
            heard.iter().map(|told| format!("{} {}", told.data["entity"], told.data["entry"]["kind"])).collect();
        ensure!(
            heard == [r#""gate/a" "created""#, r#""gate/a" "event""#, r#""gate/b" "created""#, r#""gate/b" "event""#]
        );
        Ok(())
    })
}

#[test]
fn a_position_that_was_never_given_is_refused() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(DOOR, None).await?;
        api.create("door/a").await?;
        let watch = |behind: &'static str| {
            api.ask(api.request(Method::GET, "/v1/entities/door/a/watch").header("Last-Event-ID", behind))
        };
        watch("999999999.0").await?.refused(410, "gone")?;
        watch("yesterday").await?.refused(400, "invalid")?;
        api.get("/v1/watch?machine=dor").await?.refused(404, "not_found").map(drop)
    })
}

#[test]
fn pages_join_without_gap_or_overlap() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(COUNTED, Some("noop")).await?;
        for key in 0..7 {
            api.create(&format!("counted/{key}")).await?;
        }
        api.create("counted/a").await?;
        work(api, 0, 3).await?;
        let whole = api.history_by("counted/a", 500).await?;
        adds_up(&api.entity("counted/a").await?, &whole)?;
        for limit in [1, 2, 7, whole.len(), whole.len() + 1] {
            ensure!(api.history_by("counted/a", limit).await? == whole, "in pages of {limit}");
        }
        for limit in [1, 3, 8, 9] {
            let mut keys = Vec::new();
            let mut after = String::new();
            loop {
                let page = api.get(&format!("/v1/entities?machine=counted&limit={limit}{after}")).await?.done()?;
                let entities = page["entities"].as_array().context("entities")?;
                ensure!(entities.len() <= limit, "{page}");
                keys.extend(entities.iter().filter_map(|entity| entity["id"].as_str().map(str::to_owned)));
                match page["next"].as_str() {
                    Some(next) => after = format!("&after={next}"),
                    None => break,
                }
            }
            let wanted: Vec<_> = ["0", "1", "2", "3", "4", "5", "6", "a"].map(|key| format!("counted/{key}")).into();
            ensure!(keys == wanted, "in pages of {limit}: {keys:?}");
        }
        Ok(())
    })
}

#[test]
fn a_reader_that_never_reads_holds_nobody_up() -> Result<()> {
    run(async {
        let host = start_unkilled(Setup::default()).await?;
        host.api().deploy(COUNTED, Some("noop")).await?;
        host.api().create("counted/a").await?;
        let stuck = Stream::open(host.api(), "/v1/watch", None).await?;
        tokio::time::timeout(Duration::from_secs(60), work(host.api(), 0, 40)).await??;
        drop(stuck);
        Ok(())
    })
}
