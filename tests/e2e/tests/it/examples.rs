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

fn ticket() -> Answer {
    Answer::Says(201, Vec::new(), json!({ "id": "T-1" }))
}

/// A daemon with an example as it is, whose service is at a port of this machine.
async fn example(name: &str, service: &str, port: u16, allowed: &str) -> Result<Host> {
    let host = start_unkilled(Setup::default()).await?;
    let text = std::fs::read_to_string(guest_folder(name).join("machine.toml"))?;
    ensure!(text.contains(service), "{service} is not in the manifest any more");
    let here = text.replace(service, &format!("http://127.0.0.1:{port}/"));
    std::fs::write(host.config().with_file_name("secret"), "s3cret")?;
    host.configure(allowed).await?;
    let deployed = host.api().deploy(&here, Some(name)).await?;
    ensure!(deployed["warnings"] == json!([]), "{deployed}");
    Ok(host)
}

async fn desk(port: u16) -> Result<Host> {
    let allowed = allowed(port, "\"tickets\"") + "\n[effects.secrets.tickets]\nfile = \"secret\"\n";
    example("ticket", "https://tickets.example.com/", port, &allowed).await
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
        let allowed = sink.allowed("\"deploy\"").replace("POST", "PUT");
        let secret = "\n[effects.secrets.deploy]\nfile = \"secret\"\n";
        let host = example("deploy", "https://deploy.example.com/", sink.port(), &(allowed + secret)).await?;
        let api = host.api();
        sink.answers("/v1/prod/image", [with_header(503, "retry-after", "3000")]);
        api.create("deployment/web").await?;
        let wanted = json!({ "cluster": "cluster/prod", "image": "web:2" });
        api.apply("deployment/web", 0, wanted).await?.done()?;
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
