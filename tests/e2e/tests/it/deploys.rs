//! Deploys over HTTP: while entities are locked, onto a revision they cannot follow, and refused as a whole.

use crate::host::{deployment, event, run, run_within, start};
use crate::ledger::{adds_up, audit};
use crate::machines::{COUNTED, DOOR};
use anyhow::{Context as _, Result, ensure};
use interlock_conformance::Random;
use interlock_support::hostile_wat;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn a_deploy_while_locked_leaves_both_directions_of_the_lock_agreeing() -> Result<()> {
    run(async {
        let mut host = start().await?;
        host.api().deploy(DOOR, None).await?;
        for key in ["a", "b"] {
            host.api().create(&format!("door/{key}")).await?;
        }
        host.api().send("door/a", "e1", event("hold")).await?.done()?;
        let before = host.api().entity("door/a").await?;
        let next = DOOR.replace("porter", "janitor");
        ensure!(host.api().deploy(&next, None).await?["revision"] == 2);
        for boot in 0..2 {
            let api = host.api();
            let held = api.entity("door/a").await?;
            ensure!(held["locked_by"] == before["locked_by"] && held["version"] == before["version"], "{held}");
            let busy = api.send("door/a", "rival", event("hold")).await?.refused(409, "busy")?;
            ensure!(busy["holder"]["execution"] == before["locked_by"], "boot {boot}: {busy}");
            let listed = api.get("/v1/entities?state=held&machine=door").await?.done()?;
            ensure!(listed["entities"].as_array().is_some_and(|found| found.len() == 1), "{listed}");
            ensure!(listed["entities"][0]["locked_by"] == before["locked_by"], "{listed}");
            ensure!(api.entity("door/b").await?["locked_by"].is_null());
            host.crash().await?;
        }
        let freed = host.api().send("door/a", "e2", event("free")).await?.done()?;
        ensure!(freed["execution"] == before["locked_by"], "{freed}");
        let after = host.api().entity("door/a").await?;
        ensure!(after["revision"] == 2 && after["owner"] == "janitor <janitor@example.com>");
        adds_up(&after, &host.api().history("door/a").await?)?;
        ensure!(host.api().counter("repaired").await? == 0);
        host.stop().await?;
        ensure!(audit(&host.data()).await? == 2);
        Ok(())
    })
}

#[test]
fn an_entity_that_cannot_follow_a_revision_stays_and_is_named() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        api.deploy(DOOR, None).await?;
        api.create("door/a").await?;
        api.send("door/a", "e1", event("hold")).await?.done()?;
        // A revision that has no such state any more.
        let without = DOOR.replace("held", "kept");
        ensure!(api.deploy(&without, None).await?["revision"] == 2);
        let machine = api.get("/v1/machines/door").await?.done()?;
        let behind = &machine["held_back"][0];
        ensure!(behind["entity"] == "door/a" && behind["revision"] == 1 && behind["can_move"] == false, "{machine}");
        ensure!(behind["why"].as_str().is_some_and(|why| why.contains("held")), "{behind}");
        // It goes on by the revision it has, and follows once it can.
        api.send("door/a", "e2", event("free")).await?.done()?;
        api.send("door/a", "e3", event("hold")).await?.done()?;
        let after = api.entity("door/a").await?;
        ensure!(after["revision"] == 2 && after["state"] == "kept", "{after}");
        let machine = api.get("/v1/machines/door").await?.done()?;
        ensure!(machine["held_back"] == json!([]), "{machine}");
        adds_up(&after, &api.history("door/a").await?)
    })
}

/// Every file of a folder's subfolders, by name.
fn files(data: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in ["components", "compiled"] {
        let folder = data.join(folder);
        if folder.is_dir() {
            for file in std::fs::read_dir(folder)? {
                names.push(file?.file_name().to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    Ok(names)
}

#[test]
fn a_component_that_does_not_fit_is_refused_with_every_reason_and_leaves_nothing() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        let before = files(&host.data())?;
        let send = |manifest: &str, bytes: &[u8]| {
            api.post(
                "/v1/machines",
                json!({ "manifest": manifest, "component": interlock_daemon::base64::encode(bytes) }),
            )
        };
        for (name, wanted) in [
            ("wasi-http", vec!["wasi:http"]),
            ("unknown-interfaces", vec!["interlock:step/root", "acme:bank/transfers"]),
            ("unknown-function", vec!["interlock:step"]),
            ("no-run", vec!["run"]),
            ("other-run", vec!["run"]),
            ("wasip1-module", vec!["wasi"]),
        ] {
            let problem = send(COUNTED, &hostile_wat(name)?).await?.refused(400, "invalid")?;
            let findings = problem["findings"].as_array().context("findings")?;
            let errors: Vec<_> = findings.iter().filter(|finding| finding["severity"] == "error").collect();
            for word in wanted {
                let named = |finding: &&&Value| finding.to_string().contains(word);
                ensure!(errors.iter().find(named).is_some(), "{name}: {word} is not named: {problem}");
            }
            for finding in errors {
                ensure!(finding["remedy"].as_str().is_some_and(|say| !say.is_empty()), "no remedy: {finding}");
            }
        }
        // Both at once: a manifest with two mistakes and bytes that are no component.
        let bad = COUNTED.replace("\"s5\"]", "\"s6\"]").replace("initial   = \"idle\"", "initial = \"idel\"");
        let problem = send(&bad, b"not wasm").await?.refused(400, "invalid")?;
        let findings = problem["findings"].as_array().context("findings")?;
        let lines: Vec<_> = findings.iter().filter(|finding| finding["line"].is_u64()).collect();
        ensure!(!lines.is_empty() && findings.len() > lines.len(), "{problem}");
        ensure!(problem["findings"].to_string().contains("did you mean"), "{problem}");

        ensure!(api.get("/v1/machines").await?.done()?["machines"] == json!([]));
        ensure!(files(&host.data())? == before, "a refused deploy left {:?}", files(&host.data())?);
        api.deploy(COUNTED, Some("noop")).await?;
        // A bad second revision leaves the first as it was.
        send(COUNTED, &hostile_wat("wasi-http")?).await?.refused(400, "invalid")?;
        let machine = api.get("/v1/machines/counted").await?.done()?;
        ensure!(
            machine["active"] == 1 && machine["revisions"].as_array().is_some_and(|all| all.len() == 1),
            "{machine}"
        );
        Ok(())
    })
}

#[test]
fn a_manifest_and_its_component_belong_together() -> Result<()> {
    run(async {
        let host = start().await?;
        let api = host.api();
        let alone = api.post("/v1/machines", deployment(COUNTED, None)?).await?.refused(400, "invalid")?;
        ensure!(alone["subject"] == "component" && alone["expected"] == "the bytes of noop.wasm", "{alone}");
        let extra = api.post("/v1/machines", deployment(DOOR, Some("noop"))?).await?.refused(400, "invalid")?;
        ensure!(extra["subject"] == "component", "{extra}");
        let body = json!({ "manifest": COUNTED, "component": "%%%" });
        api.post("/v1/machines", body).await?.refused(400, "invalid")?;
        ensure!(api.get("/v1/machines").await?.done()?["machines"] == json!([]));
        ensure!(api.get("/v1/stats").await?.done()?["counters"]["committed"] != Value::Null);
        Ok(())
    })
}

/// The n-th of many revisions that every entity can follow, with bytes of its own: a component with one more
/// custom section is another component.
/// A machine that writes to a cluster's service, under this fence.
fn rollouts(name: &str, fence: &str) -> String {
    format!(
        "machine = \"{name}\"\nowner = \"tests\"\ninitial = \"idle\"\ncomponent = \"noop.wasm\"\ndata.schema = false\n\
         desired.schema = {{ type = \"object\" }}\noutputs.schema = false\n[events.go]\n\
         [states.idle]\nkind = \"rest\"\non.go = {{ to = \"s1\" }}\n\
         [states.s1]\nstep = \"s1\"\nto = [\"idle\"]\ndeadline = \"10m\"\n\
         [leases]\n\"cluster/*\" = {{ ttl = \"5m\" }}\n[targets.rollouts]\nmethod = \"PUT\"\n\
         url = \"https://deploy.example.com/v1/{{cluster}}/image\"\nfence = {fence}\non_late = \"record\"\n"
    )
}

#[test]
fn a_machine_that_writes_where_another_does_is_warned_unless_one_lease_fences_both() -> Result<()> {
    run(async {
        let host = start().await?;
        let warned = async |name: &str, fence: &str| -> Result<Vec<Value>> {
            let deployed = host.api().deploy(&rollouts(name, fence), Some("noop")).await?;
            let mut found = deployed["warnings"].as_array().context("warnings")?.clone();
            found.retain(|one| one["code"] == "unshared-fence");
            Ok(found)
        };
        ensure!(warned("deployment", "{ from = \"desired.cluster\" }").await?.is_empty(), "it is alone");
        ensure!(warned("migration", "\"cluster/prod\"").await?.is_empty(), "one lease may fence both");
        let told = warned("canary", "\"entity\"").await?;
        let named = |machine: &str| {
            told.iter()
                .any(|one| one["message"].as_str().is_some_and(|said| said.contains(&format!(": {machine} writes"))))
        };
        ensure!(told.len() == 2 && named("deployment") && named("migration"), "{told:?}");
        ensure!(told[0]["severity"] == "warning" && told[0]["line"].as_u64() > Some(1), "{told:?}");
        ensure!(host.api().get("/v1/machines/canary").await?.done()?["active"] == 1, "it is deployed all the same");
        // Whoever follows suit hears no more of it; the machines that are active count, not those before.
        ensure!(warned("canary", "\"cluster/prod\"").await?.is_empty());
        ensure!(warned("deployment", "\"cluster/prod\"").await?.is_empty());
        Ok(())
    })
}

fn nth_revision(nth: u64) -> Result<Value> {
    let manifest = COUNTED.replace("interlock tests", &format!("interlock tests {nth}"));
    let mut bytes = std::fs::read(interlock_support::guest("noop")?)?;
    bytes.extend([0, 9, 3]);
    bytes.extend(*b"nth");
    bytes.extend(format!("{nth:05}").into_bytes());
    Ok(json!({ "manifest": manifest, "component": interlock_daemon::base64::encode(&bytes) }))
}

#[test]
fn a_kill_around_a_deploy_leaves_the_old_revision_or_the_new_one_whole() -> Result<()> {
    const KILLS: u64 = 12;
    run_within(Duration::from_secs(180), async {
        let mut random = Random::new(4_83);
        let mut host = start().await?;
        let began = Instant::now();
        host.api().post("/v1/machines", nth_revision(0)?).await?.done()?;
        let took = u64::try_from(began.elapsed().as_micros())?;
        for key in ["a", "b"] {
            host.api().create(&format!("counted/{key}")).await?;
        }
        let (mut active, mut source) = (1, nth_revision(0)?["manifest"].clone());
        for nth in 1..=KILLS {
            // While an execution is under way.
            host.api().send("counted/a", &format!("a{nth}"), event("later")).await?.done()?;
            let (api, revision) = (host.api().clone(), nth_revision(nth)?);
            let wanted = revision["manifest"].clone();
            let deploying = tokio::spawn(async move { api.post("/v1/machines", revision).await });
            // Anywhere in it, and the last time just after it was answered.
            let answered = if nth == KILLS {
                Some(deploying.await??.done()?)
            } else {
                tokio::time::sleep(Duration::from_micros(random.below(took * 5 / 4))).await;
                host.kill().await?;
                deploying.await?.ok().map(crate::host::Reply::done).transpose()?
            };
            if nth == KILLS {
                host.kill().await?;
                // Nothing that a boot could compile again is left of it.
                std::fs::remove_dir_all(host.data().join("compiled"))?;
                // And half a file, as a kill while it was written would have left it.
                std::fs::write(host.data().join("components/half.1.new"), b"\0asm")?;
            }
            host.boot().await?;

            let api = host.api();
            let machine = api.get("/v1/machines/counted").await?.done()?;
            let now = machine["active"].as_u64().context("its active revision")?;
            ensure!(now == active || now == active + 1, "{active} before, {now} now");
            ensure!(answered.is_none_or(|answer| answer["revision"] == now), "acknowledged, and {now} is active");
            if now > active {
                source = wanted;
            }
            active = now;
            ensure!(machine["manifest"] == source && machine["revisions"][0]["number"] == active, "{machine}");
            let partial: Vec<_> = files(&host.data())?.into_iter().filter(|name| name.ends_with(".new")).collect();
            ensure!(partial.is_empty(), "half a file was left: {partial:?}");
            // Its component is whole, and both entities go on with it.
            let end = api.settle("counted/b", &format!("b{nth}"), event("go")).await?.done()?;
            ensure!(end["outcome"] == "succeeded" && api.entity("counted/b").await?["revision"] == active, "{end}");
        }
        let api = host.api();
        for key in ["counted/a", "counted/b"] {
            let last = api.until(key, |found| found["kind"] == "rest" && found["inbox"] == 0).await?;
            ensure!(last["data"]["taken"] == KILLS && last["data"]["s5"] == KILLS, "{last}");
            adds_up(&last, &api.history(key).await?)?;
        }
        println!("{} of {KILLS} deploys took effect", active - 1);
        ensure!(api.counter("repaired").await? == 0);
        host.stop().await?;
        ensure!(audit(&host.data()).await? == 2);
        Ok(())
    })
}
