//! Events over HTTP: races, repetitions, queues, lateness, waiting. One daemon each.

use crate::host::{Host, Reply, event, run, start};
use crate::ledger::{adds_up, count, of_kind};
use crate::machines::{COUNTED, DOOR};
use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

const RIVALS: usize = 16;

fn open() -> Value {
    json!({ "name": "open", "payload": { "times": 1 } })
}

/// Sends the same event under many ids, or one, at once.
async fn at_once(host: &Host, entity: &str, what: Value, id: impl Fn(usize) -> String) -> Result<Vec<Reply>> {
    let sends: Vec<_> = (0..RIVALS)
        .map(|nth| {
            let (api, entity, id, what) = (host.api().clone(), entity.to_owned(), id(nth), what.clone());
            tokio::spawn(async move { api.send(&entity, &id, what).await })
        })
        .collect();
    let mut replies = Vec::new();
    for send in sends {
        replies.push(send.await??);
    }
    Ok(replies)
}

/// dbos-java 226: two starts with one id at the same moment.
#[test]
fn two_starts_with_one_id_are_one_execution() -> Result<()> {
    run(async {
        let host = start().await?;
        host.api().deploy(COUNTED, Some("noop")).await?;
        host.api().create("counted/a").await?;
        let replies = at_once(&host, "counted/a", event("go"), |_| "the-one".to_owned()).await?;
        let first = replies.iter().find(|reply| !reply.replayed).context("nobody was first")?;
        ensure!(replies.iter().all(|reply| reply.status == 202 && reply.body == first.body), "{replies:?}");
        ensure!(replies.iter().filter(|reply| !reply.replayed).count() == 1, "{replies:?}");
        let end = host.api().settle("counted/a", "the-one", event("go")).await?.done()?;
        ensure!(end["execution"] == first.body["execution"], "{end}");
        let last = host.api().entity("counted/a").await?;
        ensure!(last["data"]["taken"] == 1 && last["data"]["s5"] == 1, "{last}");
        adds_up(&last, &host.api().history("counted/a").await?)
    })
}

#[test]
fn of_many_rivals_one_wins_and_the_others_hear_who_holds_it() -> Result<()> {
    run(async {
        let host = start().await?;
        host.api().deploy(DOOR, None).await?;
        host.api().create("door/a").await?;
        let replies = at_once(&host, "door/a", event("hold"), |nth| format!("rival-{nth}")).await?;
        let (won, lost): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 202);
        ensure!(won.len() == 1, "{won:?}");
        let holder = won[0].body["execution"].clone();
        for reply in lost {
            // Nobody knows when somebody lets go: it is worth another try, and no time is promised.
            ensure!(reply.retry_after.is_none(), "{reply:?}");
            let problem = reply.refused(409, "busy")?;
            ensure!(problem["holder"]["execution"] == holder && problem["retryable"] == true, "{problem}");
            ensure!(problem["holder"]["started_by"] == "hold" && problem["owner"] == "porter <porter@example.com>");
        }
        ensure!(host.api().entity("door/a").await?["locked_by"] == holder);
        Ok(())
    })
}

#[test]
fn a_queued_event_is_answered_when_its_turn_comes() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(DOOR, None).await?;
        api.create("door/a").await?;
        api.send("door/a", "e1", event("hold")).await?.done()?;
        let note = |text: &str| json!({ "name": "note", "payload": { "text": text } });
        let queued = api.send("door/a", "n1", note("one")).await?;
        ensure!(queued.status == 202 && queued.body["answer"] == "queued" && queued.body["execution"].is_null());
        ensure!(api.send("door/a", "n1", note("one")).await?.replayed);
        api.send("door/a", "n1", note("another")).await?.refused(422, "id_reused")?;
        ensure!(api.entity("door/a").await?["inbox"] == 1);
        let (clone, body) = (api.clone(), note("two"));
        let waiting = tokio::spawn(async move { clone.settle("door/a", "n2", body).await });
        api.until("door/a", |entity| entity["inbox"] == 2).await?;

        api.send("door/a", "e2", event("free")).await?.done()?;
        let waited = waiting.await??;
        ensure!(waited.status == 200 && waited.body["answer"] == "accepted", "{waited:?}");
        let known = api.get("/v1/entities/door/a/events/n1").await?.done()?;
        ensure!(known["answer"] == "accepted" && known["event"] == "n1", "{known}");
        // In the order of their arrival, in the transaction that came to rest.
        let last = api.entity("door/a").await?;
        ensure!(last["data"]["note"] == "two" && last["inbox"] == 0 && last["state"] == "shut", "{last}");
        let history = api.history("door/a").await?;
        adds_up(&last, &history)?;
        let noted: Vec<_> = of_kind(&history, "event").iter().map(|entry| entry["event"].clone()).collect();
        ensure!(noted == ["e1", "e2", "n1", "n2"], "{noted:?}");
        api.get("/v1/entities/door/a/events/nobody").await?.refused(404, "not_found").map(drop)
    })
}

#[test]
fn an_event_for_something_past_is_late_and_changes_nothing() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(DOOR, None).await?;
        api.create("door/a").await?;
        let first = api.send("door/a", "e1", event("hold")).await?.done()?;
        api.send("door/a", "e2", event("free")).await?.done()?;
        api.send("door/a", "e3", event("hold")).await?.done()?;
        let before = api.entity("door/a").await?;
        let late = [
            json!({ "execution": first["execution"] }),
            json!({ "visit": first["version"] }),
            json!({ "incarnation": 1 }),
        ];
        for (nth, expect) in late.iter().enumerate() {
            let body = json!({ "name": "free", "expect": expect });
            let id = format!("late-{nth}");
            let problem = api.send("door/a", &id, body.clone()).await?.refused(409, "late")?;
            ensure!(problem["answer"]["answer"] == "late", "{problem}");
            // A late answer is remembered.
            ensure!(api.send("door/a", &id, body).await?.replayed);
        }
        let stale = json!({ "name": "free", "expect": { "version": 1 } });
        api.send("door/a", "stale", stale.clone()).await?.refused(412, "conflict")?;
        let after = api.entity("door/a").await?;
        ensure!(after["version"] == before["version"] && after["state"] == "held", "{after}");
        let history = api.history("door/a").await?;
        adds_up(&after, &history)?;
        ensure!(of_kind(&history, "fact").len() == late.len(), "{history:?}");
        ensure!((0..late.len()).all(|nth| count(&history, "fact", &format!("late-{nth}")) == 1));
        // Over is late for everybody.
        api.killed("door/a", "no longer needed").await?.done()?;
        api.send("door/a", "after", event("free")).await?.refused(409, "late").map(drop)
    })
}

/// vercel workflow 2737: a reader with stale state races an append.
#[test]
fn one_of_many_writers_with_the_same_version_wins_and_the_others_can_go_on() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(DOOR, None).await?;
        api.create("door/a").await?;
        for round in 0..3 {
            let version = api.entity("door/a").await?["version"].clone();
            let stale = json!({ "name": "note", "payload": { "text": "x" }, "expect": { "version": version } });
            let replies = at_once(&host, "door/a", stale, |nth| format!("r{round}-{nth}")).await?;
            let won = replies.iter().filter(|reply| reply.status == 200).count();
            let lost = replies.iter().filter(|reply| reply.status == 412 && reply.body["code"] == "conflict").count();
            ensure!((won, lost) == (1, RIVALS - 1), "{replies:?}");
        }
        adds_up(&api.entity("door/a").await?, &api.history("door/a").await?)
    })
}

#[test]
fn a_wait_that_runs_out_says_where_it_stands() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(DOOR, None).await?;
        api.create("door/a").await?;
        let path = "/v1/entities/door/a/events?wait=50ms";
        let wait = |name: &str| api.request(Method::POST, path).header("Idempotency-Key", "e1").json(&event(name));
        let cut = api.ask(wait("hold")).await?;
        ensure!(cut.status == 202 && cut.body["outcome"] == "running" && cut.body["state"] == "held", "{cut:?}");
        let again = api.ask(wait("hold")).await?;
        ensure!(again.replayed && again.body["outcome"] == "running", "{again:?}");
        api.killed("door/a", "no longer needed").await?.done()?;
        let end = api.ask(wait("hold")).await?;
        ensure!(end.status == 200 && end.body["outcome"] == "failed" && end.body["state"] == "killed", "{end:?}");
        Ok(())
    })
}

#[test]
fn every_verb_twice_is_one_effect() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        let (once, twice) = (api.deploy(DOOR, None).await?, api.deploy(DOOR, None).await?);
        ensure!(once["new"] == true && twice["new"] == false && once["revision"] == twice["revision"]);
        ensure!(once["digest"] == twice["digest"]);

        let (once, twice) = (api.create("door/a").await?, api.create("door/a").await?);
        ensure!(once["new"] == true && twice["new"] == false && once["entity"] == twice["entity"]);

        let red = json!({ "colour": "red" });
        let once = api.apply("door/a", 0, red.clone()).await?.done()?;
        let twice = api.apply("door/a", 0, red).await?.done()?;
        ensure!(once == twice && once["generation"] == 1, "{once} {twice}");

        let (once, twice) = (api.send("door/a", "e1", open()).await?, api.send("door/a", "e1", open()).await?);
        ensure!(!once.replayed && twice.replayed && once.body == twice.body && once.status == twice.status);
        let end = api.settle("door/a", "e1", open()).await?.done()?;
        ensure!(end["outcome"] == "succeeded" && end["state"] == "shut", "{end}");

        let rest = api.post("/v1/entities/door/a/unpark", json!(null)).await?.done()?;
        ensure!(rest["changed"] == false && rest["state"] == "shut", "{rest}");

        let once = api.killed("door/a", "no longer needed").await?.done()?;
        let twice = api.killed("door/a", "no longer needed").await?.done()?;
        ensure!(once["changed"] == true && twice["changed"] == false && once["version"] == twice["version"]);

        let last = api.entity("door/a").await?;
        let history = api.history("door/a").await?;
        adds_up(&last, &history)?;
        ensure!(last["data"]["opened"] == 1 && last["generation"] == 1, "{last}");
        let kinds: Vec<_> = history.iter().filter_map(|entry| entry["kind"].as_str()).collect();
        ensure!(kinds == ["created", "applied", "event", "timer", "killed"], "{kinds:?}");

        let path = "/v1/entities/door/a";
        api.delete(path).await?.done()?;
        api.delete(path).await?.refused(404, "not_found")?;
        // A new one with the same key is another; its predecessor's answers are still known.
        let reborn = api.create("door/a").await?;
        ensure!(reborn["entity"]["incarnation"].as_u64() > last["incarnation"].as_u64());
        ensure!(reborn["entity"]["version"] == 1 && reborn["entity"]["data"]["opened"] == 0);
        ensure!(api.send("door/a", "e1", open()).await?.replayed);
        ensure!(api.entity("door/a").await?["state"] == "shut");

        // Back to a revision, twice: the second names what is active already.
        api.deploy(&DOOR.replace("porter", "janitor"), None).await?;
        let back = json!({ "to": 1 });
        let once = api.post("/v1/machines/door/rollback", back.clone()).await?.done()?;
        let twice = api.post("/v1/machines/door/rollback", back).await?.done()?;
        ensure!(
            once["new"] == true && twice["new"] == false && once["revision"] == twice["revision"],
            "{once} {twice}"
        );
        Ok(())
    })
}

#[test]
fn apply_needs_no_lock_and_disturbs_no_execution() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(DOOR, None).await?;
        api.create("door/a").await?;
        api.send("door/a", "e1", event("hold")).await?.done()?;
        let before = api.entity("door/a").await?;
        let applied = api.apply("door/a", 0, json!({ "colour": "green" })).await?.done()?;
        ensure!(applied["generation"] == 1 && applied["observed_generation"] == 0, "{applied}");
        let during = api.entity("door/a").await?;
        ensure!(during["version"] == before["version"] && during["locked_by"] == before["locked_by"]);
        api.apply("door/a", 0, json!({ "colour": "red" })).await?.refused(412, "conflict")?;
        api.send("door/a", "e2", event("free")).await?.done()?;
        let after = api.get("/v1/entities/door/a/desired").await?.done()?;
        ensure!(after["desired"]["colour"] == "green" && after["generation"] == 1, "{after}");
        Ok(())
    })
}
