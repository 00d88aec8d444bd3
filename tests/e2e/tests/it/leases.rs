//! Leases over HTTP, on a daemon in a process of its own: the cases of the lock that workers share, by name, and
//! an engine outside that holds one and passes its token on.

use crate::host::{Api, Host, Reply, run, start, start_unkilled};
use anyhow::{Context as _, Result, ensure};
use interlock_support::host::Setup;
use serde_json::{Value, json};
use std::time::Duration;

const JOB: &str = "/v1/leases/job";

/// A worker, and what it holds the lease under.
struct Worker<'a> {
    api: &'a Api,
    grant: String,
}

impl<'a> Worker<'a> {
    fn new(api: &'a Api, name: &str) -> Self {
        Self { api, grant: format!("secret of {name}") }
    }

    /// Asks for the lease, for so long that no test comes to its end.
    async fn acquire(&self, query: &str) -> Result<Reply> {
        self.acquire_for("1h", query).await
    }

    async fn acquire_for(&self, ttl: &str, query: &str) -> Result<Reply> {
        let label = self.grant.trim_start_matches("secret of ");
        let body = json!({ "grant": self.grant, "label": label, "ttl": ttl });
        self.api.post(&format!("{JOB}{query}"), body).await
    }

    async fn act(&self, verb: &str, token: &Value) -> Result<Reply> {
        self.api.post(&format!("{JOB}/{verb}"), json!({ "grant": self.grant, "token": token })).await
    }
}

async fn shown(api: &Api) -> Result<Value> {
    api.get(JOB).await?.done()
}

/// What became of the lease, oldest first.
fn entries(lease: &Value) -> Vec<&str> {
    let entries = lease["entries"].as_array().into_iter().flatten().rev();
    entries.filter_map(|entry| entry["what"].as_str()).collect()
}

#[test]
fn of_two_workers_at_once_one_holds_it_and_the_other_hears_who() -> Result<()> {
    run(async {
        let host = start().await?;
        for round in 0..20 {
            let (one, other) = (Worker::new(host.api(), "one"), Worker::new(host.api(), "other"));
            let (left, right) = tokio::try_join!(one.acquire(""), other.acquire(""))?;
            let (winner, held, lost) = if left.status == 201 { (one, left, right) } else { (other, right, left) };
            let held = held.done()?;
            let refused = lost.refused(409, "busy")?;
            ensure!(refused["lease"]["token"] == held["token"] && refused["retryable"] == true, "{round}: {refused}");
            let holder = refused["lease"]["owner"].as_str().context("an owner")?;
            ensure!(winner.grant.ends_with(holder), "{holder} is not who has it");
            winner.act("release", &held["token"]).await?.done()?;
        }
        Ok(())
    })
}

#[test]
fn another_owner_neither_releases_nor_extends_it() -> Result<()> {
    run(async {
        let host = start().await?;
        let (owner, other) = (Worker::new(host.api(), "owner"), Worker::new(host.api(), "other"));
        let held = owner.acquire("").await?.done()?;
        for verb in ["release", "extend"] {
            let refused = other.act(verb, &held["token"]).await?.refused(409, "fenced")?;
            ensure!(refused["expected"] == format!("token {} of owner", held["token"]), "{refused}");
        }
        let lease = shown(host.api()).await?;
        ensure!(lease["holder"]["token"] == held["token"], "{lease}");
        ensure!(entries(&lease) == ["acquired", "fenced", "fenced"], "{lease}");
        Ok(())
    })
}

#[test]
fn a_worker_that_crashed_loses_it_with_its_ttl_and_is_fenced_when_it_comes_back() -> Result<()> {
    run(async {
        let host = start().await?;
        let (crashed, next) = (Worker::new(host.api(), "crashed"), Worker::new(host.api(), "next"));
        let first = crashed.acquire_for("1s", "").await?.done()?;
        next.acquire("").await?.refused(409, "busy")?;
        // It does not renew, and gives nothing back.
        let second = next.acquire("?wait=1m").await?.done()?;
        ensure!(second["token"].as_u64() > first["token"].as_u64(), "{second} after {first}");
        crashed.act("extend", &first["token"]).await?.refused(409, "fenced")?;
        crashed.act("release", &first["token"]).await?.refused(409, "fenced")?;
        let lease = shown(host.api()).await?;
        ensure!(entries(&lease) == ["acquired", "contended", "expired", "acquired", "fenced", "fenced"], "{lease}");
        Ok(())
    })
}

#[test]
fn extensions_hold_it_beyond_its_ttl() -> Result<()> {
    run(async {
        let host = start().await?;
        let (owner, api) = (Worker::new(host.api(), "owner"), host.api().clone());
        let held = owner.acquire_for("3s", "").await?.done()?;
        let rival = tokio::spawn(async move { Worker::new(&api, "rival").acquire("?wait=1m").await });
        // Longer than it would be held.
        let began = tokio::time::Instant::now();
        while began.elapsed() < Duration::from_millis(3_500) {
            owner.act("extend", &held["token"]).await?.done()?;
            ensure!(!rival.is_finished(), "it was given away while it was extended");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        owner.act("release", &held["token"]).await?.done()?;
        let next = rival.await??.done()?;
        ensure!(next["token"].as_u64() > held["token"].as_u64(), "{next} after {held}");
        Ok(())
    })
}

#[test]
fn every_verb_twice_is_the_same_answer_or_a_typed_refusal() -> Result<()> {
    run(async {
        let host = start().await?;
        let worker = Worker::new(host.api(), "worker");
        let first = worker.acquire("").await?;
        ensure!(first.status == 201, "{first:?}");
        let token = first.body["token"].clone();
        let again = worker.acquire("").await?;
        ensure!(again.status == 200 && again.body["token"] == token && again.body["new"] == false, "{again:?}");
        for _ in 0..2 {
            let extended = worker.act("extend", &token).await?.done()?;
            ensure!(extended["token"] == token && extended["ttl_ms"] == 3_600_000, "{extended}");
        }
        worker.act("release", &token).await?.done()?;
        worker.act("release", &token).await?.refused(409, "fenced")?;
        worker.act("extend", &token).await?.refused(409, "fenced")?;
        Ok(())
    })
}

#[test]
fn a_lease_outlives_its_host_and_tokens_never_fall() -> Result<()> {
    run(async {
        let mut host: Host = start().await?;
        let long = json!({ "grant": "g", "label": "worker", "ttl": "1h" });
        let held = host.api().post(JOB, long.clone()).await?.done()?;
        host.crash().await?;
        Worker::new(host.api(), "other").acquire("").await?.refused(409, "busy")?;
        let renewed = host.api().post(JOB, long.clone()).await?.done()?;
        ensure!(renewed["token"] == held["token"] && renewed["new"] == false, "{renewed} is not {held}");
        let release = json!({ "grant": "g", "token": held["token"] });
        host.api().post(&format!("{JOB}/release"), release).await?.done()?;
        host.crash().await?;
        let next = host.api().post(JOB, long).await?.done()?;
        ensure!(next["token"].as_u64() > held["token"].as_u64(), "{next} after {held}");
        Ok(())
    })
}

/// The store that has the lock takes no writes: nobody is told that it holds something.
#[cfg(target_os = "linux")]
#[test]
fn where_the_store_is_out_it_is_unavailable_and_nothing_is_held() -> Result<()> {
    run(async {
        let host = start_unkilled(Setup { file_bytes_max: Some(12 << 20), ..Setup::default() }).await?;
        host.api().deploy(crate::machines::PLAIN, None).await?;
        let text = "x".repeat(200 << 10);
        let mut full = false;
        for nth in 0..1_000 {
            let body = json!({ "machine": "plain", "key": nth.to_string(), "desired": { "text": text } });
            full = host.api().post("/v1/entities", body).await?.status == 503;
            if full {
                break;
            }
        }
        ensure!(full, "the disk is never full");
        let worker = Worker::new(host.api(), "worker");
        // A small write may still find room in what is there already: until one does not.
        let mut held = Value::Null;
        let refused = loop {
            let reply = worker.acquire("").await?;
            if reply.status == 503 {
                break reply;
            }
            held = reply.done()?;
        };
        ensure!(
            ["unavailable", "indeterminate"].contains(&refused.body["code"].as_str().unwrap_or_default()),
            "{refused:?}"
        );
        let other = Worker::new(host.api(), "other").acquire("").await?;
        ensure!(other.status != 201 && other.status != 200, "{other:?}");
        host.make_room().await?;
        // The same request, until the host has noticed.
        let again = loop {
            let reply = worker.acquire("?wait=30s").await?;
            if reply.status != 503 {
                break reply.done()?;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        ensure!(held.is_null() || again["token"].as_u64() >= held["token"].as_u64(), "{again} after {held}");
        worker.act("release", &again["token"]).await?.done()?;
        Ok(())
    })
}

/// What an engine writes to: it remembers the highest token it has seen, and takes no lower one. `sdk/fence` is this
/// for databases.
#[derive(Default)]
struct Site {
    token: u64,
    content: String,
}

impl Site {
    fn put(&mut self, token: u64, content: &str) -> Result<(), u64> {
        if token < self.token {
            return Err(self.token);
        }
        self.token = token;
        content.clone_into(&mut self.content);
        Ok(())
    }
}

/// An engine that runs elsewhere and knows nothing of machines holds the lock under its own run's id.
#[test]
fn an_engine_outside_holds_it_under_its_runs_id_and_passes_the_token_on() -> Result<()> {
    run(async {
        let host = start().await?;
        let (api, mut site) = (host.api(), Site::default());
        let take = async |run: &str| -> Result<Value> {
            api.post("/v1/leases/deploy%2Fweb?wait=1m", json!({ "label": run, "ttl": "1s" })).await?.done()
        };
        let first = take("run 4711").await?;
        let token = |held: &Value| held["token"].as_u64().context("a token");
        ensure!(site.put(token(&first)?, "first").is_ok());
        let lease = api.get("/v1/leases/deploy%2Fweb").await?.done()?;
        ensure!(lease["holder"]["owner"] == "run 4711", "{lease}");
        // The run stands still; another one begins after its time.
        let second = take("run 4712").await?;
        ensure!(site.put(token(&second)?, "second").is_ok());
        // The first one goes on, as if nothing had happened: where it writes, it is refused.
        ensure!(site.put(token(&first)?, "late") == Err(token(&second)?) && site.content == "second");
        for held in [&first, &second] {
            let grant = held["grant"].as_str().context("a grant")?;
            ensure!(!host.said()?.contains(grant), "a grant is in the log");
            ensure!(!api.get("/v1/leases/deploy%2Fweb").await?.done()?.to_string().contains(grant));
        }
        Ok(())
    })
}
