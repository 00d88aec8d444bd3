//! The examples against receivers. The ticket's counts by idempotency key: the daemon is killed wherever a request can
//! be, and one ticket is opened.

use crate::effects::{operate, until_first};
use crate::host::{Host, Setup, run, start_unkilled};
use crate::ledger::{adds_up, audit, of_kind};
use crate::raw::{Bytes, Raw};
use crate::sink::{Answer, Seen, Sink, allowed, with_header};
use anyhow::{Context as _, Result, ensure};
use interlock_support::guest_folder;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

const REQUEST: &str = "request/one";
const TICKETS: &str = "/v1/atlas/tickets";
const PROD: &str = "/v1/prod/image";

fn ticket() -> Answer {
    Answer::Says(201, Vec::new(), json!({ "id": "T-1" }))
}

/// A daemon with an example in which some words are others: where its service is, at least.
async fn example(name: &str, words: &[(&str, &str)], allowed: &str) -> Result<Host> {
    let host = start_unkilled(Setup::default()).await?;
    let mut text = std::fs::read_to_string(guest_folder(name).join("machine.toml"))?;
    for (there, here) in words {
        ensure!(text.contains(there), "{there} is not in the manifest any more");
        text = text.replace(there, here);
    }
    std::fs::write(host.config().with_file_name("secret"), "s3cret")?;
    host.configure(allowed).await?;
    let deployed = host.api().deploy(&text, Some(name)).await?;
    ensure!(deployed["warnings"] == json!([]), "{deployed}");
    Ok(host)
}

fn at(port: u16) -> String {
    format!("http://127.0.0.1:{port}/")
}

async fn desk(port: u16) -> Result<Host> {
    let allowed = allowed(port, "\"tickets\"") + "\n[effects.secrets.tickets]\nfile = \"secret\"\n";
    example("ticket", &[("https://tickets.example.com/", &at(port))], &allowed).await
}

/// The deployment controller, whose clusters are at a receiver.
async fn clusters(sink: &Sink, words: &[(&str, &str)]) -> Result<Host> {
    let allowed = sink.allowed("\"deploy\"").replace("POST", "PUT");
    let secret = "\n[effects.secrets.deploy]\nfile = \"secret\"\n";
    let here = at(sink.port());
    let words = [&[("https://deploy.example.com/", &*here)], words].concat();
    example("deploy", &words, &(allowed + secret)).await
}

/// Has a deployment want an image on the cluster.
async fn wants(host: &Host, deployment: &str, image: &str) -> Result<()> {
    host.api().create(deployment).await?;
    let wanted = json!({ "cluster": "cluster/prod", "image": image });
    host.api().apply(deployment, 0, wanted).await?.done().map(drop)
}

async fn ask(host: &Host) -> Result<()> {
    host.api().create(REQUEST).await?;
    let open = json!({ "name": "open", "payload": { "project": "atlas", "title": "the lift is stuck" } });
    host.api().send(REQUEST, "e1", open).await?.done()?;
    Ok(())
}

/// The tickets that a receiver has which knows its keys: one for each.
fn tickets<'k>(keys: impl IntoIterator<Item = &'k str>) -> usize {
    keys.into_iter().collect::<BTreeSet<_>>().len()
}

/// The key of each request, all of which asked for this ticket.
fn keys(sink: &Sink) -> Result<Vec<String>> {
    let seen = sink.seen();
    ensure!(seen.iter().all(|one| one.path == TICKETS && one.body["reference"] == REQUEST), "{seen:?}");
    ensure!(seen.iter().all(|one| one.header("authorization") == "Bearer s3cret"), "{seen:?}");
    Ok(seen.iter().map(|one| one.key().to_owned()).collect())
}

/// The rest of the story: the ticket is known, the answer comes, and the receiver has one ticket after so many requests.
async fn one_ticket(mut host: Host, requests: usize, keys: impl Fn() -> Result<Vec<String>>) -> Result<()> {
    let api = host.api();
    let open = api.until(REQUEST, |found| found["state"] == "open").await?;
    ensure!(open["data"]["ticket"] == "T-1" && open["outstanding"] == json!([]), "{open}");
    let answer = json!({ "name": "resolved", "payload": { "answer": "it moves" } });
    api.send(REQUEST, "e2", answer).await?.done()?;
    let done = api.until(REQUEST, |found| found["state"] == "done").await?;
    ensure!(done["outputs"] == json!({ "ticket": "T-1", "answer": "it moves" }), "{done}");
    adds_up(&done, &api.history(REQUEST).await?)?;
    let keys = keys()?;
    let opened = tickets(keys.iter().map(String::as_str));
    ensure!((keys.len(), opened) == (requests, 1), "expected {requests} requests for one ticket, got {keys:?}");
    host.stop().await?;
    ensure!(audit(&host.data()).await? == 1);
    Ok(())
}

#[test]
fn there_is_one_ticket_if_the_host_is_killed_before_its_request() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let mut host = desk(sink.port()).await?;
        // Whoever reads the secret waits until somebody writes it: the request is committed and begun, and not made.
        let secret = host.config().with_file_name("secret");
        std::fs::remove_file(&secret)?;
        ensure!(Command::new("mkfifo").arg(&secret).status()?.success(), "mkfifo");
        ask(&host).await?;
        loop {
            let begun = host.api().get("/v1/effects?stands=in-flight").await?.done()?;
            if begun["effects"].as_array().is_some_and(|effects| effects.len() == 1) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        host.kill().await?;
        ensure!(sink.seen().is_empty(), "{:?}", sink.seen());
        std::fs::remove_file(&secret)?;
        std::fs::write(&secret, "s3cret")?;
        sink.answers(TICKETS, [ticket()]);
        host.boot().await?;
        one_ticket(host, 1, || keys(&sink)).await
    })
}

#[test]
fn there_is_one_ticket_if_the_host_is_killed_while_its_request_is_under_way() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let mut host = desk(sink.port()).await?;
        sink.answers(TICKETS, [Answer::Held, Answer::Held, ticket()]);
        ask(&host).await?;
        for kill in 1..=2 {
            sink.until(TICKETS, kill).await;
            host.crash().await?;
        }
        one_ticket(host, 3, || keys(&sink)).await
    })
}

#[test]
fn there_is_one_ticket_if_the_host_is_killed_between_its_answer_and_its_record() -> Result<()> {
    run(async {
        let created = b"HTTP/1.1 201 Created\r\ncontent-length: 12\r\n\r\n{\"id\":\"T-1\"}";
        let mut receiver = Raw::start(Bytes::Once(created), true).await?;
        let mut host = desk(receiver.port()).await?;
        ask(&host).await?;
        while receiver.seen().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // The answer is written to its last byte while the host stands still: it has come, and is never read.
        host.freeze().await?;
        receiver.let_go();
        receiver.until_answered(1).await?;
        host.kill().await?;
        host.boot().await?;
        let key = |request: &String| -> Result<String> {
            let key = request.lines().find_map(|line| line.strip_prefix("idempotency-key: "));
            Ok(key.with_context(|| format!("no key in {request}"))?.to_owned())
        };
        one_ticket(host, 2, || receiver.seen().iter().map(key).collect()).await
    })
}

#[test]
fn a_ticket_that_was_opened_after_its_request_was_given_up_is_withdrawn_once() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let mut host = desk(sink.port()).await?;
        sink.answers(TICKETS, [Answer::Held, ticket()]);
        ask(&host).await?;
        sink.until(TICKETS, 1).await;
        host.api().killed(REQUEST, "nobody needs it any more").await?.done()?;
        host.crash().await?;
        let withdrawn = sink.until("/v1/atlas/withdrawals", 1).await;
        let opened = sink.at(TICKETS);
        ensure!((opened.len(), tickets(opened.iter().map(Seen::key))) == (2, 1), "{opened:?}");
        ensure!(withdrawn[0].body["undoes"] == opened[0].key(), "{withdrawn:?}");
        ensure!(withdrawn[0].body["result"]["body"]["id"] == "T-1", "{withdrawn:?}");
        let settled = |found: &Value| found["outbox"] == json!({ "unsettled": 0, "dead": 0 });
        host.api().until(REQUEST, settled).await.context("its withdrawal")?;
        ensure!(sink.at("/v1/atlas/withdrawals").len() == 1, "{:?}", sink.seen());
        Ok(())
    })
}

#[test]
fn a_rollout_that_its_operator_no_longer_allows_is_denied_by_name_and_the_cluster_is_free() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = clusters(&sink, &[]).await?;
        let api = host.api();
        sink.answers(PROD, [with_header(503, "retry-after", "3000")]);
        wants(&host, "deployment/web", "web:2").await?;
        until_first(api, "deployment/web", |one| one["tries"] == 1 && one["stands"] == "due").await?;
        let lease = api.get("/v1/leases/cluster%2Fprod").await?.done()?;
        let seen = sink.seen();
        ensure!(seen[0].header("interlock-fence-resource") == "cluster/prod", "{seen:?}");
        let token: u64 = seen[0].header("interlock-fencing-token").parse()?;
        ensure!(lease["holder"]["token"] == token, "{lease} {seen:?}");
        // Withdrawn while it is pending: the secret alone is enough.
        host.configure(&sink.allowed("").replace("POST", "PUT")).await?;
        operate(api, "deployment/web", 1, "retry", Value::Null).await?;
        let over = api.until("deployment/web", |found| found["state"] == "steady").await?;
        ensure!(over["data"]["why"] == "denied" && over["outbox"] == json!({ "unsettled": 0, "dead": 0 }), "{over}");
        let history = api.history("deployment/web").await?;
        let told = of_kind(&history, "effect-failed").iter().map(|one| one["what"].to_string()).collect::<String>();
        ensure!(told.contains("denied: by the rule `secret`"), "{told}");
        ensure!(api.get("/v1/leases/cluster%2Fprod").await?.done()?["holder"].is_null(), "{over}");
        ensure!(sink.seen().len() == 1, "nothing more was sent");
        Ok(())
    })
}

/// etcd 10811: an owner's request is long on its way, its lease is over meanwhile, and the next owner has written.
#[test]
fn a_late_owners_rollout_is_turned_away_by_its_receiver_and_counted() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        sink.fences();
        // Before the receiver looks at its token.
        sink.answers(PROD, [Answer::Held]);
        let short = [("ttl = \"30s\", hold_max = \"5m\"", "ttl = \"1s\", hold_max = \"1s\"")];
        let host = clusters(&sink, &short).await?;
        let api = host.api();
        wants(&host, "deployment/web", "web:2").await?;
        sink.until(PROD, 1).await;
        wants(&host, "deployment/shop", "shop:7").await?;
        sink.until(PROD, 2).await;
        let steady = |found: &Value| found["state"] == "steady" && found["generation"] == 1;
        let next = api.until("deployment/shop", steady).await?;
        ensure!(next["data"]["why"] == "the answer does not say what runs", "it was done: {next}");
        sink.let_go();
        let late = api.until("deployment/web", steady).await?;
        ensure!(late["data"]["why"] == "fenced" && late["outbox"] == json!({ "unsettled": 0, "dead": 0 }), "{late}");
        let tokens: Vec<u64> =
            sink.seen().iter().map(|seen| seen.header("interlock-fencing-token").parse()).collect::<Result<_, _>>()?;
        ensure!(tokens.len() == 2 && tokens[0] < tokens[1], "it was not tried again: {tokens:?}");
        let history = api.history("deployment/web").await?;
        ensure!(of_kind(&history, "effect-fenced").len() == 1, "{history:?}");
        for (what, count) in [("sent", 2), ("done", 1), ("fenced", 1), ("failed", 0)] {
            let counted = api.counter(&format!("effects_{what}")).await?;
            ensure!(counted == count, "effects_{what}: expected {count}, got {counted}");
        }
        ensure!(host.said()?.lines().any(|line| line.contains("WARN") && line.contains("what=fenced")), "in the log");
        adds_up(&late, &history)
    })
}
