//! Why something stands where it stands.

use crate::site::{Answer, GUEST_MEMORY_BYTES, Site};
use expect_test::expect;
use interlock_daemon::base64;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What is said of something, without its times.
fn told(asked: &str, answer: &Answer) -> String {
    if answer.status != 200 {
        return format!("{asked}\n    {}\n", answer.line());
    }
    let word = |name: &str| answer.at(&format!("/{name}")).as_str().unwrap_or("-").to_owned();
    let mut text = format!("{asked}\n    {}: {}\n", word("because"), word("sentence"));
    if let Some(holder) = answer.at("/holder").as_str() {
        let _ = writeln!(text, "    held by {holder}");
        assert!(answer.at("/since").is_string() && answer.at("/progress").is_string(), "{}", answer.body);
    }
    for next in answer.at("/next").as_array().into_iter().flatten() {
        let when = if next["at"].is_string() { "then" } else { "also" };
        let _ = writeln!(text, "    {when} {}", next["what"].as_str().unwrap_or_default());
    }
    for command in answer.at("/operator").as_array().into_iter().flatten() {
        let _ = writeln!(text, "    $ {}", command.as_str().unwrap_or_default());
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_says_what_it_waits_for_and_what_can_be_done() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let why = async |query: &str| -> anyhow::Result<String> {
        let answer = site.get(&format!("/v1/entities/door/a/why{query}")).await?;
        assert!(answer.status != 200 || answer.at("/owner") == "facilities <door@example.com>", "{}", answer.body);
        Ok(told(query, &answer))
    };
    let mut said = why("").await?;
    site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    let entity = site.get("/v1/entities/door/a").await?;
    let execution = entity.at("/locked_by").as_str().unwrap_or_default().to_owned();
    said += &why("").await?;
    let of_execution = why(&format!("?execution={execution}")).await?;
    assert!(of_execution.contains("timer: it waits in opening for timer"), "{of_execution}");
    site.send("door/a", "e2", "stop", Value::Null).await?;
    said += &why(&format!("?execution={execution}")).await?;
    said += &why(&format!("?execution={}", execution.replace(".1", ".2"))).await?;
    said += &why("?execution=door/b@1.1").await?;
    said += &why("?execution=soon").await?;
    site.send("door/a", "e3", "push", json!({ "force": 5 })).await?;
    site.send("door/a", "e4", "slam", Value::Null).await?;
    said += &why("").await?;
    said += &told("door/z", &site.get("/v1/entities/door/z/why").await?);
    expect![[r#"

            free: nothing holds it: it rests in shut, and takes knock, push

            timer: it waits in opening for timer after, or an event: slam, stop
            held by door/a@4.1
            then timer after -> open
            $ interlock entity send door/a slam
            $ interlock entity send door/a stop
            $ interlock entity unlock door/a --to shut --force --reason WHY
            $ interlock entity kill door/a --reason WHY
        ?execution=door/a@4.1
            over: it is over: it succeeded in shut at version 3
            $ interlock entity history door/a
        ?execution=door/a@4.2
            404 not_found: there is no execution door/a@4.2
        ?execution=door/b@1.1
            400 invalid: query.execution: expected an execution of door/a, got one of door/b
        ?execution=soon
            400 invalid: query.execution: expected machine/key@incarnation.number, got "soon"

            over: it is over: broken is a final state
            $ interlock entity delete door/a
        door/z
            404 not_found: there is no entity door/z
    "#]]
    .assert_eq(&said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_says_who_has_it_and_who_is_next() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let mut said = told("nobody", &site.get("/v1/leases/a%2Fb/why").await?);
    let held = site.post("/v1/leases/a%2Fb", json!({ "label": "ci", "grant": "g" })).await?;
    let token = held.at("/token").to_string();
    let url = "/v1/leases/a%2Fb?wait=1m";
    let waiting = tokio::spawn(site.request(reqwest::Method::POST, url)?.json(&json!({ "label": "nightly" })).send());
    let answer = loop {
        let answer = site.get("/v1/leases/a%2Fb/why").await?;
        if answer.body.to_string().contains("place 1") {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    said += &told("held", &answer).replace(&format!("token {token}"), "token N");
    site.post("/v1/leases/a%2Fb/release", json!({ "grant": "g", "token": held.at("/token") })).await?;
    let next = Answer::read(waiting.await??).await?;
    let (grant, token) = (next.at("/grant"), next.at("/token"));
    site.post("/v1/leases/a%2Fb/release", json!({ "grant": grant, "token": token })).await?;
    said += &told("free", &site.get("/v1/leases/a%2Fb/why").await?);
    expect![[r#"
        nobody
            404 not_found: nobody has lease a/b, waits for it, or has asked for it lately
        held
            held: it is held by ci, token N
            held by ci
            then it ends, unless it is renewed
            then it ends, however often it is renewed
            also place 1 in line: nightly
        free
            free: nobody has it
    "#]]
    .assert_eq(&said);
    Ok(())
}

/// What is said of the rows that something has, without its times.
fn rows(answer: &Answer) -> String {
    let mut text = String::new();
    for row in answer.at("/rows").as_array().into_iter().flatten() {
        let word = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
        assert!(word("since").ends_with('Z'), "{row}");
        let _ = writeln!(text, "    {}/{} of {}", word("table"), word("key"), word("claimed_by"));
    }
    let _ = writeln!(text, "    and {} more", answer.at("/rows_more"));
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_says_which_rows_it_has_and_since_when() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let folder = interlock_support::guest_folder("stale-claim-recovery");
    for table in ["jobs", "reaped_jobs"] {
        let manifest = std::fs::read_to_string(folder.join(format!("{table}.table.toml")))?;
        site.post("/v1/tables", json!({ "manifest": manifest })).await?;
    }
    let manifest = std::fs::read_to_string(folder.join("machine.toml"))?;
    let component = base64::encode(&std::fs::read(interlock_support::guest("stale-claim-recovery")?)?);
    site.post("/v1/machines", json!({ "manifest": manifest, "component": component })).await?;
    for job in ["job-1", "job-2"] {
        let put = site.request(reqwest::Method::PUT, &format!("/v1/tables/jobs/rows/{job}"))?;
        site.ask(put.json(&json!({ "status": "pending" }))).await?;
    }
    site.post("/v1/entities", json!({ "machine": "worker", "key": "a" })).await?;
    let why = async |query: &str| site.get(&format!("/v1/entities/worker/a/why{query}")).await;
    let mut said = rows(&why("").await?);
    let mut executions = Vec::new();
    for (nth, job) in ["job-1", "job-2"].into_iter().enumerate() {
        let event = json!({ "table": "jobs" });
        assert!(site.send("worker/a", &format!("e{nth}"), "work", event).await?.status < 300);
        let working = loop {
            let working = why("").await?;
            if working.at("/because") == "timer" {
                break working;
            }
            tokio::task::yield_now().await;
        };
        let execution = working.at("/holder").as_str().unwrap_or_default().to_owned();
        said += &format!("{job} is worked on\n{}", rows(&working).replace(&execution, "this execution"));
        executions.push(execution);
        let kill = site.post("/v1/entities/worker/a/unlock", json!({ "to": "idle", "force": true, "reason": "test" }));
        let killed = kill.await?;
        assert_eq!(killed.status, 200, "{}", killed.body);
    }
    said += &format!("at rest\n{}", rows(&why("").await?));
    for execution in &executions {
        said += &format!("of {execution}\n{}", rows(&why(&format!("?execution={execution}")).await?));
    }
    let row = site.get("/v1/tables/jobs/rows/job-1").await?;
    assert_eq!(row.at("/claimed_by"), &json!(executions[0]), "and from the row one comes to its execution");
    let put = site.request(reqwest::Method::PUT, "/v1/tables/jobs/rows/job-1")?;
    site.ask(put.json(&json!({ "status": "done" }))).await?;
    said += &format!("job-1 is done\n{}", rows(&why("").await?));
    // An incarnation is a job's number, and the host has jobs of its own meanwhile.
    for (execution, name) in executions.iter().zip(["the first", "the second"]) {
        said = said.replace(execution.as_str(), name);
    }
    expect![[r#"
            and 0 more
        job-1 is worked on
            jobs/job-1 of this execution
            and 0 more
        job-2 is worked on
            jobs/job-2 of this execution
            jobs/job-1 of the first
            and 0 more
        at rest
            jobs/job-2 of the second
            jobs/job-1 of the first
            and 0 more
        of the first
            jobs/job-1 of the first
            and 0 more
        of the second
            jobs/job-2 of the second
            and 0 more
        job-1 is done
            jobs/job-2 of the second
            and 0 more
    "#]]
    .assert_eq(&said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_waits_for_memory_says_so() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let folder = interlock_support::guest_folder("hostile");
    let manifest = std::fs::read_to_string(folder.join("machine.toml"))?;
    let manifest = manifest.replace("idle       = \"1s\"\ntotal      = \"5s\"", "total = \"1h\"\nidle = \"1h\"");
    let manifest = manifest.replace("deadline   = \"1m\"", "deadline = \"2h\"");
    let component = base64::encode(&interlock_support::step_wat(640, 0, interlock_support::Then::Spins)?);
    let deployed = site.post("/v1/machines", json!({ "manifest": manifest, "component": component })).await?;
    anyhow::ensure!(deployed.status == 201, "{}", deployed.body);
    for (key, waits_for) in [("a", "step"), ("b", "memory")] {
        let entity = format!("hostile/{key}");
        site.post("/v1/entities", json!({ "machine": "hostile", "key": key })).await?;
        site.send(&entity, "e1", "attempt", json!({ "name": "it" })).await?;
        loop {
            let seen = site.get(&format!("/v1/entities/{entity}")).await?;
            if seen.at("/lock/waiting_for") == waits_for {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
    let why = site.get("/v1/entities/hostile/b/why").await?;
    let sentence = "attempt 1 of attempt waits for memory that other running steps hold";
    assert_eq!((why.at("/because"), why.at("/sentence")), (&json!("memory"), &json!(sentence)), "{}", why.body);
    let stats = site.get("/v1/stats").await?;
    assert_eq!(stats.at("/memory_held_bytes"), 40 << 20, "{}", stats.body);
    assert_eq!(stats.at("/memory_bytes_max"), GUEST_MEMORY_BYTES, "{}", stats.body);
    assert_eq!((stats.at("/running"), stats.at("/waiting")), (&json!(1), &json!(1)), "{}", stats.body);
    for key in ["b", "a"] {
        let killed = site.post(&format!("/v1/entities/hostile/{key}/kill"), json!({ "reason": "enough" })).await?;
        assert_eq!(killed.at("/state"), "killed", "{}", killed.body);
    }
    Ok(())
}
