//! `interlock table` and `interlock row`, as a script and a person meet them.

use super::{Serving, interlock, run};
use anyhow::{Context as _, ensure};
use expect_test::expect;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const JOBS: &str = r#"
table = "jobs"
owner = "payments <pay@example.com>"
[indexes]
by-status = ["status"]
[claim]
release = { status = "pending" }
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
    let mut text = format!("$ interlock {}\n", args.join(" "));
    let mut is_row = false;
    for line in out.lines().chain(err.lines()) {
        text.push_str(&blank(line, is_row));
        text.push('\n');
        is_row = line.starts_with("key ") || (is_row && !line.is_empty());
    }
    if code != Some(0) {
        let _ = writeln!(text, "exit {}", code.context("an exit code")?);
    }
    Ok(text)
}

/// Times and versions become stars; so does the second column of a list of rows.
fn blank(line: &str, is_row: bool) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let is_time = word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_digit() || b":,".contains(&byte));
        let is_version = (is_row && words.iter().filter(|word| !word.is_empty()).count() == 1)
            || words.last().is_some_and(|last| last == "version");
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        words.push(if is_time || (is_version && is_number) { "*".to_owned() } else { word.to_owned() });
    }
    // Columns are as wide as what was in them.
    if is_row { words.join(" ").split_whitespace().collect::<Vec<_>>().join("  ") } else { words.join(" ") }
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
        &["table", "list"],
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
                "ops": [{"get": "jobs", "key": "x"}, {"get": "jobs", "key": "c"}, {"upsert": "jobs", "key": "d", "insert": {"n": 7}},
                        {"claim": "jobs", "limit": 5, "delete": true, "return": ["n"]}]}"#,
        ],
    ];
    for args in commands {
        all.push_str(&said(url, args)?);
    }
    expect![[r#"
        $ interlock table list
        table  rows  claimed  declaration  declared  owner
        jobs   0     0        1            *  payments <pay@example.com>
        $ interlock row put jobs a {"status": "pending", "n": 1} --if-absent
        jobs/a   inserted   version *   {"n":1,"status":"pending"}
        $ interlock row put jobs a {} --if-absent
        REFUSED   conflict: jobs/a
          expected   no row
          got        version *
          retry      in 0 ms
          owner      payments <pay@example.com>
        exit 4
        $ interlock row put jobs b/c {"status": "pending", "n": 2}
        jobs/b/c   inserted   version *   {"n":2,"status":"pending"}
        $ interlock row update jobs a --where n>=1 --set n+=41 --set at=now --return n
        jobs/a   updated   version *   {"n":42}
        $ interlock row update jobs a --where status=done --set n-=1
        jobs/a   unchanged: row.status eq "done" does not hold
        $ interlock row update jobs nobody --set n=1 --must
        REFUSED   require: jobs/nobody
          expected   a row (must)
          got        none
          owner      payments <pay@example.com>
        exit 3
        $ interlock row upsert jobs c --insert {"status": "done"} --set n+=1
        jobs/c   inserted   version *   {"status":"done"}
        $ interlock row claim jobs --as worker --limit 1 --id first --return status
        key  version  updated   claimed by  value
        a  *  *  worker  {"status":"in_flight"}
        $ interlock row claim jobs --as worker --limit 1 --id first --return n
        REFUSED   id_reused: rows
          expected   the request it was used for
          got        another request under the same id
        exit 3
        $ interlock row query jobs --where status=in_flight --where claimed_by=worker --return n
        key  version  updated   claimed by  value
        a  *  *  worker  {"n":42}
        $ interlock row update jobs a --set status+=1
        REFUSED   invalid: jobs/a: row.status
          expected   a change that its value allows
          got        row.status: expected a number, got text
          owner      payments <pay@example.com>
        exit 2
        $ interlock row delete jobs a --where status=pending
        jobs/a   unchanged: row.status eq "pending" does not hold
        $ interlock row delete jobs a --where status=in_flight
        jobs/a   deleted
        $ interlock row get jobs a
        REFUSED   not_found: there is no row a in table jobs
          expected   a row with this key
          got        nothing of this name
          owner      payments <pay@example.com>
        exit 3
        $ interlock row transact {"require": [{"row": "jobs", "key": "b/c"}],
                        "ops": [{"get": "jobs", "key": "x"}, {"get": "jobs", "key": "c"}, {"upsert": "jobs", "key": "d", "insert": {"n": 7}},
                                {"claim": "jobs", "limit": 5, "delete": true, "return": ["n"]}]}
        jobs/x   not there
        jobs/c   version *
        created    *
        updated    *
        {
          "status": "done"
        }
        jobs/d   inserted   version *   {"n":7}
        key  version  updated   claimed by  value
        b/c  *  *  {"n":2}
    "#]].assert_eq(&all);
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
    let shown = said(url, &["table", "show", "jobs"])?;
    expect![[r#"
        $ interlock table show jobs
        jobs   1 row, 1 claimed
        owner      payments <pay@example.com>
        declared   * declaration 1
        claim      status = "in_flight", taken back after 5 min, given up after 5
        ttl        24 h from change
        index      by-status   status, then created
        may        clients: get, query, put, update, claim, upsert, delete
        may        dispatcher: update, claim

        no  when      what     rows  keys  claimed by  more  by
         1  *  claimed  1     a     worker            local
    "#]]
    .assert_eq(&shown);
    let (_, out, _) = run(url, &["table", "show", "jobs", "--manifest"])?;
    ensure!(out == JOBS, "{out}");
    let dropped = said(url, &["table", "drop", "jobs"])?;
    ensure!(dropped.ends_with("jobs   goes, with 1 row\n"), "{dropped}");
    Ok(())
}

#[test]
fn a_watch_tells_what_becomes_of_a_tables_claims() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let serving = Serving::start(&data.path().join("data"))?;
    let url = &serving.url;
    run(url, &["table", "create", &folder(data.path())?])?;
    run(url, &["row", "put", "jobs", "a", r#"{"status": "pending"}"#])?;
    run(url, &["row", "claim", "jobs", "--as", "worker"])?;
    run(url, &["row", "update", "jobs", "a", "--as", "worker", "--set", "status=done"])?;
    // Behind the beginning, so that nothing depends on when the watch is there.
    let mut child = interlock(url, &["table", "watch", "jobs", "--after", "0.0"]).stdout(Stdio::piped()).spawn()?;
    let out = BufReader::new(child.stdout.take().context("its output")?);
    let lines: Result<Vec<String>, _> = out.lines().take(2).collect();
    child.kill()?;
    child.wait()?;
    let lines = lines?;
    for (line, wanted) in lines.iter().zip(["claimed     1 row: a  worker", "settled     1 row: a  worker"]) {
        ensure!(line.contains("  jobs  ") && line.contains(wanted), "{line}");
    }
    ensure!(lines.len() == 2, "{lines:?}");
    Ok(())
}

#[test]
fn a_row_is_put_over_the_version_that_was_read_and_pages_go_on() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let serving = Serving::start(&data.path().join("data"))?;
    let url = &serving.url;
    run(url, &["table", "create", &folder(data.path())?])?;
    let put = |args: &[&str]| -> anyhow::Result<(Option<i32>, Value)> {
        let (code, out, _) = run(url, &[&["row", "put", "jobs", "--json"], args].concat())?;
        Ok((code, serde_json::from_str(&out)?))
    };
    let (_, first) = put(&["a", "{}"])?;
    let version = first["version"].to_string();
    let (code, second) = put(&["a", r#"{"n": 18446744073709551615}"#, "--if-version", &version])?;
    ensure!(code == Some(0) && second["value"]["n"] == u64::MAX, "{second}");
    let (code, stale) = put(&["a", "{}", "--if-version", &version])?;
    ensure!(code == Some(4) && stale["code"] == "conflict", "{code:?} {stale}");
    put(&["b", "{}"])?;
    let (_, out, err) = run(url, &["row", "query", "jobs", "--limit", "1", "--json"])?;
    let page: Value = serde_json::from_str(&out)?;
    let next = page["next"].as_str().context("a next")?;
    ensure!(page["rows"][0]["key"] == "a" && err.contains(&format!("--after '{next}'")), "{page} {err}");
    let (_, out, _) = run(url, &["row", "query", "jobs", "--limit", "1", "--after", next, "--json"])?;
    ensure!(serde_json::from_str::<Value>(&out)?["rows"][0]["key"] == "b", "{out}");
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

#[test]
fn the_page_on_rows_runs_as_printed() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let serving = Serving::start(&data.path().join("data"))?;
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rows.md"))?;
    let program = Path::new(env!("CARGO_BIN_EXE_interlock")).parent().context("its folder")?;
    let path = format!("{}:{}", program.display(), std::env::var("PATH")?);
    let blocks: Vec<_> = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    ensure!(blocks.len() == 2, "{blocks:?}");
    let mut told = String::new();
    for block in blocks {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-euc", block]).current_dir(data.path()).env("PATH", &path);
        let output = shell.env("INTERLOCK_URL", &serving.url).stdin(Stdio::null()).output()?;
        let said = String::from_utf8(output.stdout)?;
        ensure!(output.status.success(), "{block}\n{said}{}", String::from_utf8_lossy(&output.stderr));
        told.push_str(&said);
    }
    let parts = [
        "declaration 1 in force",
        "worker-1    {",
        r#"{"status":"done"}"#,
        "settled  1     order-1",
        "jobs/order-1   deleted",
    ];
    for part in parts {
        ensure!(told.contains(part), "{part} is not in {told}");
    }
    ensure!(told.ends_with("{\n  \"n\": 2\n}\n"), "{told}");
    Ok(())
}
