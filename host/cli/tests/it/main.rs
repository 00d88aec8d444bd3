//! The command as a script meets it: output, exit codes, signals.

mod author;
mod build;
mod c;
mod gallery;
mod languages;
mod leases;
mod patterns;
mod rows;
mod scenarios;
mod schedules;
mod weather;
mod wire;

use interlock_lab::scenario::Declared;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A machine without steps: its working state waits for an hour or an event.
const DOOR: &str = r#"
machine = "door"
owner   = "facilities <door@example.com>"
initial = "shut"
desired.schema = { type = "object" }
data.schema    = false
outputs.schema = false
events.push.schema = { type = "null" }
events.stop.schema = { type = "null" }
states.shut    = { kind = "rest", on.push = { to = "opening" } }
states.opening = { after = { wait = "1h", to = "shut" }, on.stop = { to = "shut" } }
"#;

/// The program. What its `test` and `explore` keep is not the developer's.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlock"));
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

fn interlock(url: &str, args: &[&str]) -> Command {
    let mut command = program();
    command.args(args).env("INTERLOCK_URL", url).env("TZ", "UTC").stdin(Stdio::null());
    command
}

/// Exit code, standard output, standard error.
fn run(url: &str, args: &[&str]) -> anyhow::Result<(Option<i32>, String, String)> {
    let Output { status, stdout, stderr } = interlock(url, args).output()?;
    Ok((status.code(), String::from_utf8(stdout)?, String::from_utf8(stderr)?))
}

/// The files of a folder whose names end so, by name.
fn ending(folder: &Path, end: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The tables of a machine's folder, about which there is nothing to say.
fn declared(folder: &Path) -> anyhow::Result<Vec<Declared>> {
    let declared = |path: &PathBuf| {
        let source = std::fs::read_to_string(path)?;
        let parsed = interlock_manifest::parse_table("table.toml", &source);
        let (table, report) = parsed.map_err(|report| anyhow::anyhow!("{}: {:?}", path.display(), report.problems))?;
        anyhow::ensure!(report.problems.is_empty(), "{}: {:?}", path.display(), report.problems);
        Ok(Declared { table, source })
    };
    ending(folder, ".table.toml")?.iter().map(declared).collect()
}

/// A daemon as a child process; killed if the test gives it up.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(data: &Path) -> anyhow::Result<Self> {
        Self::start_on(data, "127.0.0.1:0")
    }

    fn start_on(data: &Path, address: &str) -> anyhow::Result<Self> {
        let args = ["serve", "--json", "--listen", address, "--data"];
        let mut child = interlock("", &args).arg(data).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or_else(|| anyhow::anyhow!("no output"))?;
        BufReader::new(stdout).read_line(&mut line)?;
        let started: serde_json::Value = serde_json::from_str(&line)?;
        let url = started["url"].as_str().unwrap_or_default().to_owned();
        Ok(Self { child, url })
    }

    fn signal(&self, name: &str) -> anyhow::Result<()> {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status()?;
        anyhow::ensure!(sent.success(), "kill {name}");
        Ok(())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn door(folder: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.join("door.toml");
    std::fs::write(&path, DOOR)?;
    Ok(path)
}

#[test]
fn without_a_daemon_it_says_how_to_start_one() -> anyhow::Result<()> {
    // Port 1 is nobody's.
    let (code, out, err) = run("http://127.0.0.1:1", &["machine", "list"])?;
    assert_eq!((code, out.as_str()), (Some(5), ""));
    assert_eq!(err, "error: no daemon at http://127.0.0.1:1: start one with `interlock serve`\n");
    let (code, out, err) = run("http://127.0.0.1:1", &["machine", "list", "--json"])?;
    assert_eq!((code, err.as_str()), (Some(5), ""));
    let problem: serde_json::Value = serde_json::from_str(&out)?;
    assert_eq!((&problem["code"], &problem["retryable"]), (&"unreachable".into(), &true.into()));
    Ok(())
}

#[test]
fn wrong_input_is_two() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let sound = door(folder.path())?.display().to_string();
    let bad = folder.path().join("bad.toml");
    std::fs::write(&bad, DOOR.replace("to = \"opening\"", "to = \"openning\""))?;
    let bad = bad.display().to_string();
    let code = |args: &[&str]| anyhow::Ok(run("http://127.0.0.1:1", args)?.0);
    assert_eq!(code(&["check", &sound])?, Some(0));
    assert_eq!(code(&["check", &bad])?, Some(2));
    assert_eq!(code(&["deploy", &bad])?, Some(2));
    assert_eq!(code(&["inspect", &sound])?, Some(2));
    assert_eq!(code(&["entity", "get", "door"])?, Some(2));
    assert_eq!(code(&["entity", "send", "door/a", "push", "{"])?, Some(2));
    assert_eq!(code(&["--url", "ftp://nowhere", "machine", "list"])?, Some(2));
    let (code, _, err) = run("", &["serve", "--listen", "0.0.0.0:0", "--data", &folder.path().display().to_string()])?;
    assert_eq!(code, Some(2));
    assert!(err.contains("until authentication exists"), "{err}");
    Ok(())
}

/// A machine that writes to one place, fenced so.
fn writer(name: &str, fence: &str) -> String {
    format!(
        "machine = \"{name}\"\nowner = \"tests\"\ninitial = \"idle\"\n[states.idle]\nkind = \"rest\"\n\
         [leases]\n\"cluster/*\" = {{}}\n[targets.api]\nurl = \"https://api.example.com/prod\"\nfence = {fence}\n"
    )
}

#[test]
fn machines_that_are_checked_together_are_told_of_a_place_that_no_lease_fences_for_both() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str, fence: &str| -> anyhow::Result<String> {
        let path = folder.path().join(format!("{name}.toml"));
        std::fs::write(&path, writer(name, fence))?;
        Ok(path.display().to_string())
    };
    let leased = [file("a", "\"cluster/prod\"")?, file("b", "\"cluster/prod\"")?];
    let by_entity = file("c", "\"entity\"")?;
    let told = |files: &[&str]| -> anyhow::Result<Vec<String>> {
        let (code, out, err) = run("", &[&["check"], files].concat())?;
        anyhow::ensure!(code == Some(0), "warnings are no failure: {err}");
        Ok(out.lines().filter(|line| line.contains("unshared-fence")).map(str::to_owned).collect())
    };
    assert_eq!(told(&[&leased[0], &leased[1]])?, Vec::<String>::new());
    assert_eq!(told(&[&by_entity, &by_entity])?, Vec::<String>::new(), "one machine, given twice");
    let found = told(&[&leased[0], &leased[1], &by_entity])?;
    assert_eq!(found.len(), 4, "each of the two and the third hear of each other: {found:?}");
    Ok(())
}

#[test]
fn a_command_line_that_cannot_be_read_is_json_too_where_json_is_asked_for() -> anyhow::Result<()> {
    for (args, detail) in [
        (["entity", "get", "door", "--json"], "invalid value 'door' for '<ENTITY>': "),
        (["--json", "machine", "frob", "door"], "unrecognized subcommand 'frob'"),
        (["entity", "--json", "list", "--limit=x"], "invalid value 'x' for '--limit <N>': "),
    ] {
        let (code, out, err) = run("http://127.0.0.1:1", &args)?;
        assert_eq!((code, err.as_str()), (Some(2), ""), "{args:?}");
        let problem: serde_json::Value = serde_json::from_str(&out)?;
        assert_eq!(problem["code"], "invalid");
        assert!(problem["detail"].as_str().is_some_and(|said| said.starts_with(detail)), "{out}");
    }
    Ok(())
}

#[test]
fn a_script_can_branch_on_what_came_of_it() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let manifest = door(folder.path())?.display().to_string();
    let serving = Serving::start(&folder.path().join("data"))?;
    let ask = |args: &[&str]| run(&serving.url, args);
    let code = |args: &[&str]| anyhow::Ok(ask(args)?.0);
    assert_eq!(code(&["deploy", &manifest])?, Some(0));
    assert_eq!(code(&["entity", "create", "door/a"])?, Some(0));
    assert_eq!(code(&["entity", "create", "door/a", "--label", "x=y"])?, Some(3));
    assert_eq!(code(&["entity", "send", "door/a", "push", "--id", "e1"])?, Some(0));
    let (again, out, _) = ask(&["entity", "send", "door/a", "push", "--id", "e1"])?;
    assert!(again == Some(0) && out.contains("event e1   the same answer as before"), "{out}");
    let (busy, _, err) = ask(&["entity", "send", "door/a", "push"])?;
    assert_eq!(busy, Some(4), "{err}");
    assert!(err.starts_with("REFUSED   busy: door/a is being modified, try again shortly\n"), "{err}");
    assert!(err.contains("  owner      facilities <door@example.com>\n"), "{err}");
    assert_eq!(code(&["entity", "send", "door/a", "stop", "--wait", "5s"])?, Some(0));
    assert_eq!(code(&["entity", "apply", "door/a", "{}"])?, Some(2));
    assert_eq!(code(&["entity", "apply", "door/a", "{}", "--if-generation", "0"])?, Some(0));
    let (_, out, _) = ask(&["entity", "get", "door/a", "--json"])?;
    let entity: serde_json::Value = serde_json::from_str(&out)?;
    assert_eq!((&entity["state"], &entity["locked_by"]), (&"shut".into(), &serde_json::Value::Null));
    assert_eq!(code(&["entity", "delete", "door/a"])?, Some(0));
    assert_eq!(code(&["entity", "get", "door/a"])?, Some(3));
    Ok(())
}

#[test]
fn why_tells_an_entity_an_execution_and_a_lease_apart() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let manifest = door(folder.path())?.display().to_string();
    let serving = Serving::start(&folder.path().join("data"))?;
    let ask = |args: &[&str]| -> anyhow::Result<String> {
        let (code, out, err) = run(&serving.url, args)?;
        anyhow::ensure!(code == Some(0), "{args:?}: {code:?} {out}{err}");
        Ok(out)
    };
    ask(&["deploy", &manifest])?;
    ask(&["entity", "create", "door/a"])?;
    assert!(ask(&["why", "door/a"])?.starts_with("door/a   nothing holds it: it rests in shut, and takes push\n"));
    ask(&["entity", "send", "door/a", "push"])?;
    let said = ask(&["why", "door/a"])?;
    assert!(said.contains("  try        interlock entity send door/a stop\n"), "{said}");
    let entity: serde_json::Value = serde_json::from_str(&ask(&["entity", "get", "door/a", "--json"])?)?;
    let execution = entity["locked_by"].as_str().unwrap_or_default();
    assert!(ask(&["why", execution])?.starts_with(&format!("{execution}   it waits in opening for timer ")));
    // A lease may be called like an entity.
    ask(&["lease", "acquire", "door/a", "--label", "ci"])?;
    ask(&["lease", "acquire", "deploy/web", "--label", "ci"])?;
    assert!(ask(&["why", "deploy/web"])?.starts_with("lease deploy/web   it is held by ci, token "));
    assert!(ask(&["why", "door/a"])?.starts_with("door/a   it waits in opening"));
    assert!(ask(&["why", "door/a", "--lease"])?.starts_with("lease door/a   it is held by ci"));
    let (code, _, err) = run(&serving.url, &["why", "door/z"])?;
    assert!(code == Some(3) && err.contains("there is no entity door/z"), "{err}");

    let (code, _, err) = run(&serving.url, &["entity", "unlock", "door/a", "--to", "shut"])?;
    assert!(code == Some(4) && err.contains("a timer, an event can still move it"), "{err}");
    let forced = ["entity", "unlock", "door/a", "--to", "shut", "--force"];
    assert_eq!(run(&serving.url, &forced)?.0, Some(2));
    let forced = [&forced[..], &["--reason", "the motor was taken out"]].concat();
    assert!(ask(&forced)?.starts_with("door/a   shut   version "));
    assert!(ask(&forced)?.contains("as it was already"));
    assert!(ask(&["why", execution])?.starts_with(&format!("{execution}   it is over: it failed in shut at version")));
    Ok(())
}

#[test]
fn a_signal_stops_it_in_good_order_and_a_kill_does_no_harm() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (manifest, data) = (door(folder.path())?.display().to_string(), folder.path().join("data"));
    let serving = Serving::start(&data)?;
    assert_eq!(run(&serving.url, &["deploy", &manifest])?.0, Some(0));
    assert_eq!(run(&serving.url, &["entity", "create", "door/a"])?.0, Some(0));
    drop(serving);

    let mut serving = Serving::start(&data)?;
    assert_eq!(run(&serving.url, &["entity", "get", "door/a"])?.0, Some(0));
    let (second, _, err) = run("", &["serve", "--listen", "127.0.0.1:0", "--data", &data.display().to_string()])?;
    assert_eq!(second, Some(2), "{err}");
    serving.signal("-TERM")?;
    assert!(serving.child.wait()?.success());
    Ok(())
}

#[test]
fn a_file_that_may_not_grow_is_no_reason_to_die() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut serving = Serving::start(&folder.path().join("data"))?;
    // Linux sends it to whoever writes beyond `ulimit -f`.
    serving.signal("-XFSZ")?;
    let (code, _, err) = run(&serving.url, &["machine", "list"])?;
    assert_eq!(code, Some(0), "{err}");
    serving.signal("-TERM")?;
    assert_eq!(serving.child.wait()?.code(), Some(0));
    Ok(())
}

#[test]
fn the_demo_finds_everything_as_it_should_be() {
    let demo = std::process::Command::new(env!("CARGO_BIN_EXE_interlock")).arg("demo").output().expect("the demo runs");
    let told = String::from_utf8_lossy(&demo.stdout);
    assert!(demo.status.success(), "{told}\n{}", String::from_utf8_lossy(&demo.stderr));
    assert!(told.contains("As it should be: 6 refused, 2 stopped, 1 kill"), "{told}");
}
