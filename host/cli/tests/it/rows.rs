//! `interlock table` and `interlock row`, as a script and a person meet them.

use super::{Serving, run};
use anyhow::{Context as _, ensure};
use expect_test::expect;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

const JOBS: &str = r#"
table = "jobs"
owner = "payments <pay@example.com>"
[indexes]
by-status = ["status"]
[claim]
reaper = { after = "5m", attempts = 5, dead = { status = "dead" } }
[ttl]
after = "1d"
from  = "change"
[access]
clients = ["get", "query", "put", "update", "claim", "upsert", "delete"]
machines = { dispatcher = ["claim", "update"] }
"#;

/// What a command prints, without what no two runs share.
fn said(url: &str, args: &[&str]) -> anyhow::Result<String> {
    let (code, out, err) = run(url, args)?;
    let mut text = format!("$ interlock {}\n{out}{err}", args.join(" "));
    if code != Some(0) {
        let _ = writeln!(text, "exit {}", code.context("an exit code")?);
    }
    let lines = text.lines().map(blank).collect::<Vec<_>>();
    Ok(lines.join("\n") + "\n")
}

/// Versions, times and how long ago become stars of the same width.
fn blank(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut after_version = false;
    for word in line.split(' ') {
        let is_time = word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        words.push(match is_time || (is_number && after_version) {
            true => "*".repeat(word.len()),
            false => word.to_owned(),
        });
        after_version = word == "version";
    }
    words.join(" ")
}

fn folder(at: &Path) -> anyhow::Result<String> {
    std::fs::write(at.join("jobs.table.toml"), JOBS)?;
    Ok(at.display().to_string())
}

#[test]
fn rows_are_written_claimed_and_settled_by_hand() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let serving = Serving::start(&data.path().join("data"))?;
    let url = &serving.url;
    let tables = folder(data.path())?;
    let (code, _, err) = run(url, &["table", "create", &tables])?;
    ensure!(code == Some(0), "{err}");
    let mut all = String::new();
    let commands: [&[&str]; 16] = [
        &["table", "list", "--json"],
        &["row", "put", "jobs", "a", r#"{"status": "pending", "n": 1}"#, "--if-absent"],
        &["row", "put", "jobs", "a", "{}", "--if-absent"],
        &["row", "put", "jobs", "b/c", r#"{"status": "pending", "n": 2}"#],
        &["row", "update", "jobs", "a", "--where", "n>=1", "--set", "n+=41", "--set", "at=now", "--return", "n"],
        &["row", "update", "jobs", "a", "--where", "status=done", "--set", "n-=1"],
        &["row", "update", "jobs", "nobody", "--set", "n=1", "--must"],
        &["row", "upsert", "jobs", "c", "--insert", r#"{"status": "done"}"#, "--set", "n+=1"],
        &["row", "claim", "jobs", "--as", "worker", "--limit", "1", "--id", "first", "--return", "status"],
        &["row", "claim", "jobs", "--as", "worker", "--limit", "1", "--id", "first", "--return", "n"],
        &["row", "query", "jobs", "--where", "status=in_flight", "--where", "claimed_by=worker", "--return", "n"],
        &["row", "update", "jobs", "a", "--set", "status+=1"],
        &["row", "delete", "jobs", "a", "--where", "status=pending"],
        &["row", "delete", "jobs", "a", "--where", "status=in_flight"],
        &["row", "get", "jobs", "a"],
        &[
            "row",
            "transact",
            r#"{"require": [{"row": "jobs", "key": "b/c"}],
                "ops": [{"get": "jobs", "key": "x"}, {"upsert": "jobs", "key": "d", "insert": {"n": 7}},
                        {"claim": "jobs", "limit": 5, "delete": true, "return": ["n"]}]}"#,
        ],
    ];
    for args in commands {
        all.push_str(&said(url, args)?);
    }
    expect![[""]].assert_eq(&all);
    Ok(())
}

#[test]
fn a_row_shows_who_has_it_and_a_table_who_may() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let serving = Serving::start(&data.path().join("data"))?;
    let url = &serving.url;
    run(url, &["table", "create", &folder(data.path())?])?;
    run(url, &["row", "put", "jobs", "a", r#"{"status": "pending"}"#])?;
    run(url, &["row", "claim", "jobs", "--as", "worker", "--set", "status=in_flight"])?;
    let (_, out, _) = run(url, &["row", "get", "jobs", "a", "--json"])?;
    let row: Value = serde_json::from_str(&out)?;
    ensure!(row["claimed_by"] == "worker" && row["claimed_since"].is_string(), "{row}");
    let text = said(url, &["row", "get", "jobs", "a"])?;
    ensure!(text.contains("claimed by worker for ") && text.contains("since"), "{text}");
    let text = said(url, &["table", "show", "jobs"])?;
    let shown: Vec<&str> = text.lines().skip(1).collect();
    expect![[""]].assert_eq(&shown.join("\n"));
    let (_, out, _) = run(url, &["table", "show", "jobs", "--manifest"])?;
    ensure!(out == JOBS, "{out}");
    let dropped = said(url, &["table", "drop", "jobs"])?;
    ensure!(dropped.ends_with("jobs   goes, with 1 row\n"), "{dropped}");
    Ok(())
}

#[test]
fn tables_of_a_folder_are_checked_and_declared_before_its_machine() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let serving = Serving::start(&data.path().join("data"))?;
    let folder = folder(data.path())?;
    std::fs::write(data.path().join("machine.toml"), super::DOOR)?;
    let (code, out, err) = run("", &["check", &folder])?;
    ensure!(code == Some(0), "{err}");
    let checked: Vec<_> = out.lines().filter_map(|line| line.split_once(": ")).map(|(_, said)| said).collect();
    assert_eq!(checked, ["table jobs is sound: 1 index", "door is sound: 2 states, 2 events"]);
    let (code, out, err) = run(&serving.url, &["deploy", &folder])?;
    ensure!(code == Some(0), "{err}");
    assert_eq!(out, "jobs   declaration 1 in force\ndoor   revision 1 active\n");
    // A mistake in a table keeps the machine from being deployed, too.
    let wrong = JOBS.replace("machines = {", "machine = {");
    std::fs::write(data.path().join("jobs.table.toml"), wrong)?;
    let (code, out, _) = run(&serving.url, &["check", &format!("{folder}/jobs.table.toml")])?;
    ensure!(code == Some(2) && out.contains("did you mean `machines`?"), "{out}");
    let (code, out, err) = run(&serving.url, &["deploy", &folder])?;
    ensure!(code == Some(2) && out.is_empty() && err.contains("did you mean `machines`?"), "{out}{err}");
    let (code, _, err) = run(&serving.url, &["table", "create", &format!("{folder}/data")])?;
    ensure!(code == Some(2) && err.contains("expected NAME.table.toml, got none"), "{err}");
    Ok(())
}
