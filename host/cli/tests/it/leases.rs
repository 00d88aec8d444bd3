//! Leases on the command line, and a command that runs only while its lease is held: over a wire that loses what
//! is sent, the owner has stopped before a rival begins.

use crate::wire::Wire;
use crate::{Serving, interlock, run};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Says its process id, and does not listen to anybody: only SIGKILL ends it. What it starts does not either.
const STUBBORN: &str = r#"trap "" TERM; echo $$; while :; do sleep 0.05; done"#;
/// Says its process id, and goes on until its input ends.
const PATIENT: &str = "echo $$; read line";

/// A command under a lease.
struct Owner {
    child: Child,
    out: BufReader<ChildStdout>,
    /// The process id of the command itself.
    pid: String,
}

impl Owner {
    /// Starts one and waits until its command runs.
    fn start(url: &str, options: &[&str], script: &str) -> Result<Self> {
        let mut command = interlock(url, &["lease", "run", "job"]);
        command.args(options).args(["--", "sh", "-c", script]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut out = BufReader::new(child.stdout.take().context("its output")?);
        let mut pid = String::new();
        out.read_line(&mut pid)?;
        Ok(Self { child, out, pid: pid.trim().to_owned() })
    }

    fn signal(&self, name: &str) -> Result<()> {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status()?;
        ensure!(sent.success(), "kill {name}");
        Ok(())
    }

    /// Whether the command itself is gone.
    fn is_stopped(&self) -> Result<bool> {
        Ok(!Command::new("kill").args(["-0", &self.pid]).stderr(Stdio::null()).status()?.success())
    }

    /// Exit code, the rest of its output, standard error.
    fn end(mut self) -> Result<(Option<i32>, String, String)> {
        drop(self.child.stdin.take());
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out)?;
        self.child.stderr.take().context("its errors")?.read_to_string(&mut err)?;
        let status = self.child.wait()?;
        self.pid.clear();
        Ok((status.code(), out, err))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // A command that is to go on for ever does, if a test fails: `end` has met the end of any other.
        if !self.pid.is_empty() {
            let _ = Command::new("kill").args(["-9", &self.pid]).stderr(Stdio::null()).status();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn daemon() -> Result<(tempfile::TempDir, Serving)> {
    let folder = tempfile::tempdir()?;
    let serving = Serving::start(&folder.path().join("data"))?;
    Ok((folder, serving))
}

fn shown(url: &str) -> Result<Value> {
    let (code, out, err) = run(url, &["lease", "show", "job", "--json"])?;
    ensure!(code == Some(0), "{out}{err}");
    Ok(serde_json::from_str(&out)?)
}

fn count(lease: &Value, what: &str) -> usize {
    lease["entries"].as_array().into_iter().flatten().filter(|entry| entry["what"] == what).count()
}

/// Asks for the lease until it is as wanted. The bound of the test is the bound of the wait.
fn until(url: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    loop {
        let lease = shown(url)?;
        if wanted(&lease) {
            return Ok(lease);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_command_is_told_its_lease_and_token_and_not_the_grant() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let script = "echo $INTERLOCK_LEASE $INTERLOCK_FENCING_TOKEN ${INTERLOCK_GRANT-no grant}; exit 7";
    let once = || -> Result<u64> {
        let mut command = interlock(&serving.url, &["lease", "run", "job", "--", "sh", "-c", script]);
        let output = command.env("INTERLOCK_GRANT", "of another lease").output()?;
        let out = String::from_utf8(output.stdout)?;
        ensure!(output.status.code() == Some(7), "{out}{}", String::from_utf8_lossy(&output.stderr));
        let words: Vec<_> = out.split_whitespace().collect();
        ensure!(words.first() == Some(&"job") && words.get(2..) == Some(&["no", "grant"]), "{out}");
        Ok(words.get(1).context("a token")?.parse()?)
    };
    let (first, second) = (once()?, once()?);
    ensure!(first < second, "{first} and then {second}");
    ensure!(shown(&serving.url)?["holder"].is_null(), "it was not given back");
    Ok(())
}

#[test]
fn a_command_that_cannot_be_run_gives_the_lease_back() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let (code, _, err) = run(&serving.url, &["lease", "run", "job", "--", "/no/such/program"])?;
    ensure!(code == Some(127) && err.contains("/no/such/program: "), "{code:?} {err}");
    let (code, _, err) = run(&serving.url, &["lease", "run", "job", "--", "/"])?;
    ensure!(code == Some(126), "{code:?} {err}");
    ensure!(shown(&serving.url)?["holder"].is_null());
    Ok(())
}

#[test]
fn a_lease_is_renewed_for_as_long_as_the_command_runs() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let owner = Owner::start(&serving.url, &["--ttl", "3s", "--label", "nightly"], PATIENT)?;
    // More thirds of its time than it has.
    let lease = until(&serving.url, |lease| count(lease, "extended") >= 4)?;
    ensure!(lease["holder"]["owner"] == "nightly" && count(&lease, "expired") == 0, "{lease}");
    let (code, _, err) = owner.end()?;
    ensure!(code == Some(1), "{code:?} {err}"); // `read` met the end of its input
    ensure!(shown(&serving.url)?["holder"].is_null());
    Ok(())
}

#[test]
fn signals_go_to_the_command_which_ends_as_it_likes() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let tidy = r#"trap "echo tidied; exit 3" TERM; echo $$; while :; do sleep 0.05; done"#;
    let owner = Owner::start(&serving.url, &[], tidy)?;
    owner.signal("-TERM")?;
    let (code, out, err) = owner.end()?;
    ensure!(code == Some(3) && out == "tidied\n", "{code:?} {out}{err}");
    let owner = Owner::start(&serving.url, &[], "echo $$; while :; do sleep 0.05; done")?;
    owner.signal("-INT")?;
    let (code, _, err) = owner.end()?;
    ensure!(code == Some(130), "{code:?} {err}");
    ensure!(shown(&serving.url)?["holder"].is_null());
    Ok(())
}

#[test]
fn who_waits_is_interrupted_and_out_of_the_line() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let owner = Owner::start(&serving.url, &[], PATIENT)?;
    let mut waiting = interlock(&serving.url, &["lease", "run", "job", "--wait", "5m", "--", "true"]).spawn()?;
    until(&serving.url, |lease| lease["line"].as_array().is_some_and(|line| line.len() == 1))?;
    ensure!(Command::new("kill").args(["-INT", &waiting.id().to_string()]).status()?.success());
    ensure!(waiting.wait()?.code() == Some(130));
    until(&serving.url, |lease| lease["line"].as_array().is_some_and(Vec::is_empty))?;
    owner.end()?;
    Ok(())
}

#[test]
fn who_waited_longer_than_the_ttl_holds_it_for_a_whole_ttl() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let first = Owner::start(&serving.url, &["--ttl", "3s"], PATIENT)?;
    let args = ["lease", "run", "job", "--ttl", "3s", "--wait", "1m", "--", "echo", "mine"];
    let second = interlock(&serving.url, &args).stdout(Stdio::piped()).spawn()?;
    until(&serving.url, |lease| count(lease, "extended") >= 4)?;
    first.end()?;
    let second = second.wait_with_output()?;
    ensure!(second.status.success() && second.stdout == b"mine\n", "{second:?}");
    Ok(())
}

/// etcd 6127, consul 18271.
#[test]
fn renewals_that_vanish_stop_the_owner_before_a_rival_begins() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let wire = Wire::to(&serving.url)?;
    let owner = Owner::start(&wire.url, &["--ttl", "6s", "--grace", "1h"], STUBBORN)?;
    wire.lose_requests(true);
    wire.lose_answers(true);
    let rival = run(&serving.url, &["lease", "run", "job", "--wait", "1m", "--", "kill", "-0", &owner.pid])?;
    ensure!(rival.0 == Some(1), "the owner still runs: {rival:?}");
    ensure!(owner.is_stopped()?);
    let (code, _, err) = owner.end()?;
    ensure!(code == Some(124) && err.contains("lease job was lost and the command stopped"), "{code:?} {err}");
    ensure!(count(&shown(&serving.url)?, "expired") == 1);
    Ok(())
}

/// kubernetes 23731, oban 1488: the host has renewed it and the owner is not told, so it does not go by it.
#[test]
fn renewals_whose_answers_hang_stop_the_owner_although_they_are_written() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let wire = Wire::to(&serving.url)?;
    let owner = Owner::start(&wire.url, &["--ttl", "6s", "--grace", "1h"], STUBBORN)?;
    wire.lose_answers(true);
    let lease = until(&serving.url, |lease| count(lease, "extended") >= 1)?;
    ensure!(!lease["holder"].is_null(), "{lease}");
    let rival = run(&serving.url, &["lease", "run", "job", "--wait", "1m", "--", "kill", "-0", &owner.pid])?;
    ensure!(rival.0 == Some(1), "the owner still runs: {rival:?}");
    let (code, _, err) = owner.end()?;
    ensure!(code == Some(124) && err.contains("no renewal is known to be written"), "{code:?} {err}");
    Ok(())
}

/// consul 912.
#[test]
fn a_renewal_that_is_lost_is_asked_for_again() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let wire = Wire::to(&serving.url)?;
    let owner = Owner::start(&wire.url, &["--ttl", "6s"], PATIENT)?;
    wire.lose_requests(true);
    while wire.lost() == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    wire.lose_requests(false);
    until(&serving.url, |lease| count(lease, "extended") >= 2)?;
    let (code, _, err) = owner.end()?;
    ensure!(code == Some(1), "{code:?} {err}");
    ensure!(count(&shown(&serving.url)?, "expired") == 0);
    Ok(())
}

/// consul 912, of the daemon itself.
#[test]
fn a_short_outage_of_the_daemon_costs_no_lease() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let first = Serving::start(&data)?;
    let address = first.url.trim_start_matches("http://").to_owned();
    let owner = Owner::start(&first.url, &["--ttl", "30s"], PATIENT)?;
    drop(first);
    let again = Serving::start_on(&data, &address)?;
    let lease = until(&again.url, |lease| count(lease, "extended") >= 1)?;
    ensure!(count(&lease, "expired") == 0, "{lease}");
    let (code, _, err) = owner.end()?;
    ensure!(code == Some(1), "{code:?} {err}");
    Ok(())
}

#[test]
fn a_command_and_what_it_started_end_with_the_process_that_holds_their_lease() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let with_more = format!("(trap '' TERM; while :; do sleep 0.05; done) & {STUBBORN}");
    let mut owner = Owner::start(&serving.url, &["--ttl", "5m"], &with_more)?;
    owner.signal("-KILL")?;
    // It ends when nobody is left who has it: the command, what it started, and their guard.
    let mut out = String::new();
    owner.out.read_to_string(&mut out)?;
    ensure!(!shown(&serving.url)?["holder"].is_null(), "the lease itself ends by its time");
    Ok(())
}

#[test]
fn a_holder_that_stands_still_has_lost_its_command_before_a_rival_begins() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let owner = Owner::start(&serving.url, &["--ttl", "3s", "--grace", "1h"], STUBBORN)?;
    until(&serving.url, |lease| count(lease, "extended") >= 4)?; // longer than it was told at first
    ensure!(!owner.is_stopped()?);
    owner.signal("-STOP")?;
    // Its parent stands still and does not take note of its end: it is a zombie.
    let rival = ["ps", "-o", "stat=", "-p", &owner.pid];
    let (code, out, err) = run(&serving.url, &[&["lease", "run", "job", "--wait", "1m", "--"], &rival[..]].concat())?;
    ensure!(code == Some(0) && out.trim().starts_with('Z'), "the owner still runs: {code:?} {out}{err}");
    owner.signal("-CONT")?;
    let (code, _, err) = owner.end()?;
    ensure!(code == Some(124) && err.contains("held up"), "{code:?} {err}");
    Ok(())
}

#[test]
fn a_lease_that_may_not_be_held_longer_stops_its_command() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let owner =
        Owner::start(&serving.url, &["--ttl", "1s", "--hold-max", "2s"], "echo $$; while :; do sleep 0.05; done")?;
    let (code, _, err) = owner.end()?;
    ensure!(code == Some(124), "{code:?} {err}");
    Ok(())
}

#[test]
fn leases_are_taken_renewed_read_and_given_back_by_hand() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let ask = |args: &[&str]| run(&serving.url, args);
    let (code, out, _) = ask(&["lease", "acquire", "deploy/web", "--label", "ci", "--ttl", "1m", "--json"])?;
    let held: Value = serde_json::from_str(&out)?;
    ensure!(code == Some(0) && held["new"] == true && held["ttl_ms"] == 60_000, "{out}");
    let grant = held["grant"].as_str().context("a grant")?.to_owned();
    let token = held["token"].to_string();
    let (busy, _, err) = ask(&["lease", "acquire", "deploy/web"])?;
    ensure!(
        busy == Some(4) && err.starts_with("REFUSED   busy: lease deploy/web is not free: held by ci for "),
        "{err}"
    );
    let with = |verb: &str, grant: &str, token: &str| -> Result<(Option<i32>, String)> {
        let output = interlock(&serving.url, &["lease", verb, "deploy/web"])
            .envs([("INTERLOCK_GRANT", grant), ("INTERLOCK_FENCING_TOKEN", token)])
            .output()?;
        Ok((output.status.code(), String::from_utf8([output.stdout, output.stderr].concat())?))
    };
    let (fenced, said) = with("release", "somebody", &token)?;
    ensure!(fenced == Some(3) && said.starts_with("REFUSED   fenced: lease deploy/web\n"), "{said}");
    ensure!(with("extend", &grant, &token)?.0 == Some(0));
    let (_, shown, _) = ask(&["lease", "show", "deploy/web"])?;
    ensure!(shown.starts_with("deploy/web   held by ci for ") && !shown.contains(&grant), "{shown}");
    let (_, listed, _) = ask(&["lease", "list", "deploy/"])?;
    ensure!(listed.contains("deploy/web") && listed.contains("ci") && !listed.contains(&grant), "{listed}");
    ensure!(with("release", &grant, &token)?.0 == Some(0));
    let (twice, said) = with("release", &grant, &token)?;
    ensure!(twice == Some(3) && said.contains("no grant: the lease is free"), "{said}");
    Ok(())
}

#[test]
fn what_becomes_of_a_lease_is_told_by_its_watch_and_by_no_other() -> Result<()> {
    let (folder, serving) = daemon()?;
    let manifest = crate::door(folder.path())?.display().to_string();
    ensure!(run(&serving.url, &["deploy", &manifest])?.0 == Some(0));
    let watch = |args: &[&str]| -> Result<(Child, BufReader<ChildStdout>)> {
        let mut child = interlock(&serving.url, args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = BufReader::new(child.stdout.take().context("its output")?);
        Ok((child, out))
    };
    let line = |from: &mut BufReader<ChildStdout>| -> Result<String> {
        let mut line = String::new();
        from.read_line(&mut line)?;
        Ok(line)
    };
    // Behind the beginning, so that nothing depends on when the watch is there.
    let (leases, mut lease_out) = watch(&["lease", "watch", "job", "--after", "0.0"])?;
    let (entities, mut entity_out) = watch(&["entity", "watch", "--after", "0.0"])?;
    ensure!(run(&serving.url, &["lease", "run", "job", "--label", "ci", "--", "true"])?.0 == Some(0));
    ensure!(run(&serving.url, &["entity", "create", "door/a"])?.0 == Some(0));
    let told = [line(&mut lease_out)?, line(&mut lease_out)?];
    ensure!(
        told[0].contains("acquired") && told[1].contains("released") && told[1].contains("ci: given back"),
        "{told:?}"
    );
    let told = line(&mut entity_out)?;
    ensure!(told.contains("door/a") && told.contains("created"), "{told}");
    for mut child in [leases, entities] {
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}

#[test]
fn the_page_on_leases_runs_as_printed() -> Result<()> {
    let (_folder, serving) = daemon()?;
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/leases.md"))?;
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_interlock")).parent().context("its folder")?;
    let path = format!("{}:{}", program.display(), std::env::var("PATH")?);
    let blocks: Vec<_> = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    ensure!(blocks.len() == 2, "{blocks:?}");
    let mut told = String::new();
    for block in blocks {
        let mut shell = Command::new("sh");
        let shell =
            shell.args(["-euc", block]).env("PATH", &path).env("INTERLOCK_URL", &serving.url).stdin(Stdio::null());
        let output = shell.output()?;
        let said = String::from_utf8(output.stdout)?;
        ensure!(output.status.success(), "{block}\n{said}{}", String::from_utf8_lossy(&output.stderr));
        told.push_str(&said);
    }
    for part in ["deploy/web is mine, with token ", "held by run 4712 for ", "renewed for 60 s", "given back", "free"] {
        ensure!(told.contains(part), "{part} is not in {told}");
    }
    Ok(())
}
