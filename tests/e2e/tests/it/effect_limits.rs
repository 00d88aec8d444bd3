//! What effects may not do, whatever a machine declares: addresses, redirects, secrets; and what becomes of those
//! that are pending when somebody withdraws what they need.

use crate::effects::{ask, errands, manifest, operate, settled, to, until_first};
use crate::host::{Host, Setup, run, start_unkilled};
use crate::ledger::of_kind;
use crate::raw::{Bytes, Raw};
use crate::sink::{Answer, Sink, with_header};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;

/// Sends one effect whose failure the machine takes, and says with which code and reason it was given up.
async fn given_up(host: &Host, event: &str) -> Result<(String, String)> {
    let api = host.api();
    api.create("errand/one").await?;
    ask(api, "errand/one", event, json!([to("a")]), "minding").await?;
    reason(&settled(api, "errand/one").await?)
}

fn reason(entity: &Value) -> Result<(String, String)> {
    let text = |name: &str| entity["data"][name].as_str().map(str::to_owned).with_context(|| format!("{entity}"));
    Ok((text("code")?, text("reason")?))
}

#[test]
fn nothing_is_sent_that_no_operator_allows() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = start_unkilled(Setup::default()).await?;
        let deployed = host.api().deploy(&manifest(&sink, "")?, Some("errand")).await?;
        let warned = deployed["warnings"].as_array().context("warnings")?;
        let denied = warned.iter().find(|one| one["code"] == "target-not-allowed").context("a warning")?;
        ensure!(denied["severity"] == "warning" && denied["line"].as_u64() > Some(1), "{denied}");
        let (code, reason) = given_up(&host, "e1").await?;
        ensure!(code == "denied" && reason.contains("by the rule `allow`"), "{code} {reason}");
        // A rule for the URL is not one for the address.
        let without_network = sink.allowed("").replace("networks = [\"127.0.0.1\"]", "");
        host.configure(&without_network).await?;
        let (code, reason) = given_up(&host, "e2").await?;
        ensure!(code == "denied" && reason.contains("by the rule `networks`"), "{code} {reason}");
        ensure!(!reason.contains("127.0.0.1"), "{reason}");
        let other_method = sink.allowed("").replace("POST", "PUT");
        host.configure(&other_method).await?;
        let (code, reason) = given_up(&host, "e3").await?;
        ensure!(code == "denied" && reason.contains("by the rule `method`"), "{code} {reason}");
        ensure!(sink.seen().is_empty(), "{:?}", sink.seen());
        // A configuration that cannot be used leaves the one before; a good one holds from then on.
        host.configure("[[effects.allow]]\nurl = 7\n").await?;
        ensure!(host.said()?.contains("what was allowed before stays"));
        ensure!(given_up(&host, "e4").await?.1.contains("by the rule `method`"));
        host.configure(&sink.allowed("")).await?;
        ask(host.api(), "errand/one", "e5", json!([to("a")]), "waiting").await?;
        ensure!(settled(host.api(), "errand/one").await?["data"]["done"] == 1);
        Ok(())
    })
}

#[test]
fn a_redirect_widens_nothing() -> Result<()> {
    run(async {
        let (sink, other) = (Sink::start().await?, Sink::start().await?);
        let host = errands(&sink).await?;
        let elsewhere = format!("http://127.0.0.1:{}/a", other.port());
        for (nth, location) in
            ["http://10.0.0.1/a", "http://169.254.169.254/latest", &elsewhere].into_iter().enumerate()
        {
            sink.answers("/a", [with_header(307, "location", location)]);
            let (code, reason) = given_up(&host, &format!("e{nth}")).await?;
            ensure!(code == "refused" && reason == "status 307", "{location}: {code} {reason}");
        }
        ensure!(sink.at("/a").len() == 3 && other.seen().is_empty(), "{:?}", other.seen());
        // One that both sides allow is followed.
        sink.answers("/a", [with_header(308, "location", "/b")]);
        ask(host.api(), "errand/one", "followed", json!([to("a")]), "waiting").await?;
        ensure!(settled(host.api(), "errand/one").await?["data"]["done"] == 1);
        ensure!(sink.at("/b").len() == 1 && sink.at("/b")[0].key() == sink.at("/a")[3].key());
        Ok(())
    })
}

/// Whether any file of a folder has these bytes in it.
fn holds(folder: &Path, bytes: &[u8]) -> Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let found = match path.is_dir() {
            true => holds(&path, bytes)?,
            false => std::fs::read(&path)?.windows(bytes.len()).any(|window| window == bytes),
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

#[test]
fn a_secret_reaches_its_target_and_nothing_else() -> Result<()> {
    run(async {
        let (secret, marker) = ("tok-5f1c0ffee-never-shown", "marker-that-is-stored");
        let sink = Sink::start().await?;
        let mut host = start_unkilled(Setup { log: Some("trace"), ..Setup::default() }).await?;
        let file = host.config().with_file_name("ticket-secret");
        std::fs::write(&file, format!("{secret}\n"))?;
        let configured = sink.allowed("\"tickets\"") + "\n[effects.secrets.tickets]\nfile = \"ticket-secret\"\n";
        host.configure(&configured).await?;
        let with_secret = "{path}\"\nsecret  = { name = \"tickets\", prefix = \"Bearer \" }\n";
        let text = manifest(&sink, "")?.replacen("{path}\"\n", with_secret, 1);
        let api = host.api().clone();
        let mut answers = vec![api.deploy(&text, Some("errand")).await?];
        api.create("errand/one").await?;
        // A target that echoes what it got, in a failure and in a success.
        let echo = json!({ "you sent": format!("Bearer {secret}"), "note": marker });
        sink.answers("/a", [Answer::Says(503, vec![("retry-after", "3000".to_owned())], echo.clone())]);
        sink.answers("/a", [Answer::Says(200, Vec::new(), echo)]);
        answers.push(ask(&api, "errand/one", "e1", json!([to("a")]), "waiting").await?);
        answers.push(until_first(&api, "errand/one", |one| one["tries"] == 1 && one["stands"] == "due").await?);
        for path in ["/v1/effects", "/v1/entities/errand/one/effects", "/v1/entities/errand/one", "/v1/machines/errand"]
        {
            answers.push(api.get(path).await?.done()?);
        }
        answers.push(operate(&api, "errand/one", 1, "retry", Value::Null).await?);
        answers.push(settled(&api, "errand/one").await?);
        answers.extend(api.history("errand/one").await?);
        ensure!(sink.at("/a").iter().all(|seen| seen.header("authorization") == format!("Bearer {secret}")));
        host.stop().await?;
        let told = answers.iter().map(ToString::to_string).collect::<String>();
        ensure!(told.contains(marker) && told.contains("[secret tickets]"), "the answer is kept without it: {told}");
        ensure!(!told.contains(secret), "an answer of the API has it");
        ensure!(holds(&host.data(), marker.as_bytes())?, "the answer is in the store");
        ensure!(!holds(&host.data(), secret.as_bytes())?, "a file of the store has it");
        ensure!(!host.said()?.contains(secret), "the log has it");
        Ok(())
    })
}

#[test]
fn a_secret_that_goes_away_is_missed_by_name() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = start_unkilled(Setup::default()).await?;
        let configured = sink.allowed("\"tickets\"") + "\n[effects.secrets.tickets]\nfile = \"not-there\"\n";
        host.configure(&configured).await?;
        let text = manifest(&sink, "")?.replacen("{path}\"\n", "{path}\"\nsecret  = { name = \"tickets\" }\n", 1);
        let deployed = host.api().deploy(&text, Some("errand")).await?;
        ensure!(deployed["warnings"].to_string().contains("secret-missing"), "{deployed}");
        let (code, reason) = given_up(&host, "e1").await?;
        ensure!(
            code == "denied" && reason.contains("by the rule `secret`") && sink.seen().is_empty(),
            "{code} {reason}"
        );
        Ok(())
    })
}

#[test]
fn what_is_pending_when_its_operator_withdraws_it_is_given_up_by_name() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = errands(&sink).await?;
        let api = host.api();
        let pending = async |entity: &str| -> Result<()> {
            api.create(entity).await?;
            sink.answers("/a", [with_header(503, "retry-after", "3000")]);
            ask(api, entity, "e1", json!([to("a")]), "minding").await?;
            until_first(api, entity, |one| one["tries"] == 1 && one["stands"] == "due").await.map(drop)
        };
        pending("errand/denied").await?;
        host.configure("").await?;
        operate(api, "errand/denied", 1, "retry", Value::Null).await?;
        let (code, why) = reason(&settled(api, "errand/denied").await?)?;
        ensure!(code == "denied" && why.contains("by the rule `allow`"), "{code} {why}");
        ensure!(sink.at("/a").len() == 1, "nothing more was sent");
        Ok(())
    })
}

#[test]
fn what_is_no_answer_is_asked_for_again_as_often_as_its_target_says_and_told_plainly() -> Result<()> {
    run(async {
        let greeting = Bytes::Once(b"SSH-2.0-OpenSSH_9.6\r\n");
        let chunks = Bytes::Once(b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab");
        for (scheme, bytes, told) in [
            ("http", greeting, "expected an answer, got what is not HTTP"),
            ("http", Bytes::Once(b""), "expected an answer, got an end of the connection"),
            (
                "http",
                Bytes::Forever(b"HTTP/1.1 200 x\r\na: "),
                "expected an answer, got one whose status and headers are too large",
            ),
            ("http", chunks, "expected the rest of the answer, got an end of the connection"),
            ("https", greeting, "expected a TLS session, got what is not TLS"),
        ] {
            let (sink, strange) = (Sink::start().await?, Raw::start(bytes, false).await?);
            let (from, to) =
                (format!("http://127.0.0.1:{}", sink.port()), format!("{scheme}://127.0.0.1:{}", strange.port()));
            let host = start_unkilled(Setup::default()).await?;
            host.configure(&sink.allowed("").replace(&from, &to)).await?;
            host.api().deploy(&manifest(&sink, "")?.replace(&from, &to), Some("errand")).await?;
            let (code, reason) = given_up(&host, "e1").await?;
            ensure!(code == "exhausted" && reason == format!("4 tries: {told}"), "{code}: {reason}");
            ensure!(strange.seen().len() == 4, "{:?}", strange.seen());
        }
        Ok(())
    })
}

#[test]
fn an_effect_of_a_machine_that_no_longer_declares_its_target_is_withdrawn_by_name() -> Result<()> {
    run(async {
        let sink = Sink::start().await?;
        let host = errands(&sink).await?;
        let api = host.api();
        api.create("errand/one").await?;
        sink.answers("/a", [with_header(503, "retry-after", "3000")]);
        ask(api, "errand/one", "e1", json!([to("a")]), "idle").await?;
        until_first(api, "errand/one", |one| one["tries"] == 1 && one["stands"] == "due").await?;
        let other = manifest(&sink, "")?.replace("[targets.sink]", "[targets.elsewhere]");
        ensure!(api.deploy(&other, Some("errand")).await?["revision"] == 2);
        // The entity follows the revision with its next change, and so does what it has asked for.
        ask(api, "errand/one", "e2", json!([]), "idle").await?;
        operate(api, "errand/one", 1, "retry", Value::Null).await?;
        settled(api, "errand/one").await?;
        let history = api.history("errand/one").await?;
        let told = of_kind(&history, "effect-failed").iter().map(|one| one["what"].to_string()).collect::<String>();
        ensure!(told.contains("withdrawn: target sink is no longer declared by errand"), "{told}");
        ensure!(sink.at("/a").len() == 1, "nothing more was sent");
        Ok(())
    })
}
