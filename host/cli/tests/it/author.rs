//! `interlock new` and `interlock dev`, as an author meets them.

use crate::{DOOR, interlock, run};
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Every language that `new` knows, and where its steps are.
pub(crate) const LANGUAGES: [(&str, &str); 5] =
    [("rust", "src/lib.rs"), ("js", "src/steps.js"), ("ts", "src/steps.ts"), ("python", "steps.py"), ("c", "steps.c")];

/// How long a line may be waited for: far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_new_folder_has_a_sound_machine_its_steps_and_scenarios_and_no_word_left_to_fill_in() -> Result<()> {
    for (language, steps) in LANGUAGES {
        let home = tempfile::tempdir()?;
        let folder = home.path().join("backup");
        let shown = folder.display().to_string();
        let (code, out, err) = run("", &["new", "backup", "--lang", language, "--folder", &shown])?;
        ensure!(code == Some(0), "{language}: {out}{err}");
        ensure!(out.contains(&format!("interlock test {shown}")), "{language}: what next? {out}");
        let (code, out, err) = run("", &["check", &shown])?;
        assert!(code == Some(0) && out.contains("backup is sound: 4 states"), "{language}: {out}{err}");
        assert!(folder.join(steps).is_file(), "{language}: no {steps}");
        assert_eq!(fs::read_dir(folder.join("scenarios"))?.count(), 3);
        whole(&folder)?;
    }
    Ok(())
}

#[test]
fn the_readme_shows_what_new_makes() -> Result<()> {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let readme = fs::read_to_string(interlock_support::guest_folder("../README.md"))?;
    for file in ["common/machine.toml", "common/scenarios/works.scenario.toml", "rust/src/lib.rs", "python/steps.py"] {
        let text = fs::read_to_string(templates.join(file))?.replace("{{name}}", "backup");
        ensure!(readme.contains(text.trim_end()), "expected README.md to show {file} as it is");
    }
    Ok(())
}

#[test]
fn a_new_folder_in_rust_passes_its_own_scenarios() -> Result<()> {
    passes("rust")
}

#[test]
fn a_new_folder_in_javascript_passes_its_own_scenarios() -> Result<()> {
    passes("js")
}

#[test]
fn a_new_folder_in_typescript_passes_its_own_scenarios() -> Result<()> {
    passes("ts")
}

#[test]
fn a_new_folder_in_python_passes_its_own_scenarios() -> Result<()> {
    passes("python")
}

#[test]
fn a_new_folder_in_c_passes_its_own_scenarios() -> Result<()> {
    passes("c")
}

/// Makes a folder, with the tools of this checkout in it, and plays its scenarios. Missing tools are told and the rest
/// passed over, but not where they are required.
fn passes(language: &str) -> Result<()> {
    let home = tempfile::tempdir()?;
    let folder = home.path().join("backup");
    let shown = folder.display().to_string();
    let (code, out, err) = run("", &["new", "backup", "--lang", language, "--folder", &shown])?;
    ensure!(code == Some(0), "{out}{err}");
    let checkout = interlock_support::guest_folder("..");
    match language {
        // So that what is fetched already will do.
        "rust" => drop(fs::copy(checkout.join("guests/Cargo.lock"), folder.join("Cargo.lock"))?),
        "js" | "ts" => symlink(checkout.join("sdk/js/node_modules"), folder.join("node_modules"))?,
        "python" => symlink(checkout.join("sdk/python/.venv"), folder.join(".venv"))?,
        _ => {}
    }
    let mut test = interlock("", &["test", &shown]);
    let tested = test.env("CARGO_TARGET_DIR", checkout.join("target/guests")).output()?;
    let (out, err) = (String::from_utf8(tested.stdout)?, String::from_utf8(tested.stderr)?);
    if err.contains("This installs what is needed") && std::env::var("INTERLOCK_TOOLS").as_deref() != Ok("required") {
        println!("passed over: {err}");
        return Ok(());
    }
    ensure!(tested.status.success() && out.contains("\n3 ok "), "{language}: {out}\n{err}");
    Ok(())
}

/// Nothing is left of a template's words.
fn whole(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            whole(&path)?;
        } else {
            let text = fs::read_to_string(&path)?;
            ensure!(!text.contains("{{") && !text.is_empty(), "{}: {text}", path.display());
        }
    }
    Ok(())
}

#[test]
fn nothing_that_is_there_is_written_over() -> Result<()> {
    let home = tempfile::tempdir()?;
    fs::write(home.path().join("notes"), "mine")?;
    let shown = home.path().display().to_string();
    let (code, out, err) = run("", &["new", "backup", "--lang", "c", "--folder", &shown])?;
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("expected no folder of this name, or an empty one, got one with files"), "{err}");
    assert_eq!(fs::read_dir(home.path())?.count(), 1);
    let (code, _, err) = run("", &["new", "Backup", "--lang", "c"])?;
    assert!(code == Some(2) && err.contains("expected 1 to 63 bytes of [a-z][a-z0-9-]*"), "{err}");
    let (code, _, err) = run("", &["new", "backup", "--lang", "cobol"])?;
    assert!(code == Some(2) && err.contains("[possible values: rust, js, ts, python, c]"), "{err}");
    let nowhere = home.path().join("sdk").display().to_string();
    let folder = home.path().join("b").display().to_string();
    let (code, _, err) = run("", &["new", "backup", "--lang", "rust", "--folder", &folder, "--sdk", &nowhere])?;
    assert!(code == Some(2) && err.contains("expected Interlock's Rust SDK in"), "{err}");
    assert!(!home.path().join("b").exists(), "nothing is made before everything is known");
    Ok(())
}

/// `interlock dev` with its output as lines.
struct Dev {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Dev {
    fn start(url: &str, args: &[&str]) -> Result<Self> {
        let mut child = interlock(url, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (to, lines) = channel();
        let out = child.stdout.take().context("standard output")?;
        let err = child.stderr.take().context("standard error")?;
        let from = to.clone();
        std::thread::spawn(move || {
            BufReader::new(out).lines().map_while(Result::ok).try_for_each(|line| from.send(line))
        });
        std::thread::spawn(move || {
            BufReader::new(err).lines().map_while(Result::ok).try_for_each(|line| to.send(line))
        });
        Ok(Self { child, lines, seen: Vec::new() })
    }

    /// A line with this text in it that nobody has asked for yet: what goes to the two outputs has no order.
    fn tells(&mut self, text: &str) -> Result<String> {
        loop {
            if let Some(at) = self.seen.iter().position(|line| line.contains(text)) {
                return Ok(self.seen.remove(at));
            }
            let line = self.lines.recv_timeout(PATIENCE);
            self.seen.push(line.with_context(|| format!("expected {text:?}, got {:#?}", self.seen))?);
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn dev_deploys_what_was_saved_while_its_daemon_was_away() -> Result<()> {
    let home = tempfile::tempdir()?;
    let serving = crate::Serving::start(&home.path().join("data"))?;
    let folder = home.path().join("door");
    fs::create_dir(&folder)?;
    fs::write(folder.join("machine.toml"), DOOR)?;
    let mut dev = Dev::start(&serving.url, &["dev", &folder.display().to_string()])?;
    dev.tells("door   revision 1 active")?;
    dev.tells("watching for changes")?;
    let (url, address) = (serving.url.clone(), serving.url.trim_start_matches("http://").to_owned());
    drop(serving);
    fs::write(folder.join("machine.toml"), DOOR.replace("1h", "2h"))?;
    dev.tells("not deployed: it will be once the daemon answers")?;
    let _again = crate::Serving::start_on(&home.path().join("data"), &address)?;
    dev.tells("door   revision 2 active")?;
    let (code, _, _) = run(&url, &["machine", "list"])?;
    assert_eq!(code, Some(0));
    Ok(())
}

#[test]
fn dev_leaves_no_daemon_behind_however_it_is_ended() -> Result<()> {
    for signal in ["-TERM", "-HUP", "-INT"] {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("machine.toml"), DOOR)?;
        let url = free()?;
        let mut dev = Dev::start(&url, &["dev", &folder.path().display().to_string()])?;
        dev.tells("door   revision 1 active")?;
        let sent = Command::new("kill").args([signal, &dev.child.id().to_string()]).status()?;
        ensure!(sent.success() && dev.child.wait()?.success(), "{signal}");
        let (code, _, _) = run(&url, &["machine", "list"])?;
        assert_eq!(code, Some(5), "{signal}: its daemon ends with it");
    }
    Ok(())
}

/// An address where nobody listens.
fn free() -> Result<String> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(format!("http://{}", taken.local_addr()?))
}

#[test]
fn dev_deploys_on_every_change_says_what_is_wrong_and_tells_what_happens() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let manifest = folder.path().join("machine.toml");
    fs::write(&manifest, DOOR)?;
    let url = free()?;
    let mut dev = Dev::start(&url, &["dev", &folder.path().display().to_string(), "--entity", "front"])?;
    dev.tells("nobody listened at")?;
    dev.tells("door   revision 1 active")?;
    dev.tells("watching for changes")?;
    dev.tells("created, shut")?;
    let (code, out, err) = run(&url, &["entity", "send", "door/front", "push"])?;
    ensure!(code == Some(0), "{out}{err}");
    dev.tells("push -> opening")?;

    fs::write(&manifest, DOOR.replace("to = \"opening\"", "to = \"openning\""))?;
    let wrong = dev.tells("openning")?;
    ensure!(wrong.contains("opening") || wrong.contains("openning"), "{wrong}");
    dev.tells("watching for changes")?;
    fs::write(&manifest, DOOR.replace("1h", "2h"))?;
    dev.tells("door   revision 2 active")?;
    let (code, _, err) = run(&url, &["entity", "send", "door/front", "stop"])?;
    ensure!(code == Some(0), "{err}");
    dev.tells("stop -> shut")?;

    let sent = Command::new("kill").args(["-INT", &dev.child.id().to_string()]).status()?;
    ensure!(sent.success(), "kill -INT");
    dev.tells("stopping the daemon that was started here")?;
    assert_eq!(dev.child.wait()?.code(), Some(0));
    let (code, _, _) = run(&url, &["machine", "list"])?;
    assert_eq!(code, Some(5), "its daemon ends with it");
    assert!(folder.path().join(".interlock/data").is_dir());
    Ok(())
}

#[test]
fn dev_uses_the_daemon_that_is_there_and_leaves_it() -> Result<()> {
    let home = tempfile::tempdir()?;
    let serving = crate::Serving::start(&home.path().join("data"))?;
    let folder = home.path().join("door");
    fs::create_dir(&folder)?;
    fs::write(folder.join("machine.toml"), DOOR)?;
    let mut dev = Dev::start(&serving.url, &["dev", &folder.display().to_string()])?;
    dev.tells("revision 1 active")?;
    dev.tells("watching for changes")?;
    ensure!(!dev.seen.iter().any(|line| line.contains("nobody listened")), "{:?}", dev.seen);
    let sent = Command::new("kill").args(["-INT", &dev.child.id().to_string()]).status()?;
    ensure!(sent.success() && dev.child.wait()?.success(), "it ends in good order");
    let (code, out, _) = run(&serving.url, &["machine", "list"])?;
    assert!(code == Some(0) && out.contains("door"), "{out}");
    assert!(!folder.join(".interlock").exists());
    Ok(())
}
