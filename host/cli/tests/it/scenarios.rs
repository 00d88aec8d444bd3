//! `interlock test` as somebody meets it who writes scenarios: what is printed, how it ends.

use crate::patterns::PATTERNS;
use crate::{DOOR, ending, run};
use anyhow::{Context as _, Result, ensure};
use expect_test::{Expect, expect, expect_file};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

const PUSHED: &str = r#"
scenario = "a door that was pushed shuts by itself"

[given]
key = "front"

[[when]]
send   = "push"
answer = "accepted"
then   = { state = "opening", locked = true }

[[when]]
send   = "push"
answer = "refused busy"

[[when]]
advance = "1h"

[then]
state   = "shut"
version = 3
"#;

const STOPPED: &str = r#"
scenario = "a door that is stopped shuts at once"

[[when]]
send = "push"
[[when]]
send = "stop"

[then]
state = "shut"

[[always]]
name  = "is never left open for good"
state = ["shut", "opening"]
"#;

/// A machine's folder with these scenarios.
fn folder(scenarios: &[(&str, &str)]) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("machine.toml"), DOOR)?;
    for (name, text) in scenarios {
        std::fs::write(folder.path().join(format!("{name}.scenario.toml")), text)?;
    }
    Ok(folder)
}

/// Exit code, standard output and standard error of `interlock test`, without what differs from run to run: the
/// folder's name and the times that it took.
fn test(folder: &Path, more: &[&str]) -> Result<(Option<i32>, String, String)> {
    let path = folder.display().to_string();
    let (code, out, err) = run("", &[&["test", &path], more].concat())?;
    let plain = |text: String| took(&text.replace(&path, "door"));
    Ok((code, plain(out), plain(err)))
}

/// `in 0.42 s` becomes `in N s`.
fn took(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(" in ") {
        let digits = part.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.len());
        let timed = out.ends_with(" in ") && digits > 0 && part[digits..].starts_with(" s");
        out.push_str(if timed { "N" } else { "" });
        out.push_str(if timed { &part[digits..] } else { part });
    }
    out
}

fn check(folder: &Path, more: &[&str], ends: i32, told: Expect) -> Result<()> {
    let (code, out, err) = test(folder, more)?;
    told.assert_eq(&format!("{out}{err}"));
    assert_eq!(code, Some(ends));
    Ok(())
}

#[test]
fn scenarios_that_hold_take_a_line_each() -> Result<()> {
    let folder = folder(&[("pushed", PUSHED), ("stopped", STOPPED)])?;
    check(
        folder.path(),
        &[],
        0,
        expect![[r#"
        door   2 scenarios in door
          ok      a door that was pushed shuts by itself   1:00:00 in N s
          ok      a door that is stopped shuts at once     0:00 in N s

          covered of door
            states     2 of 2
            moves      3 of 3
            refusals   1 of 2
                not reached   stop refused not_allowed
            events     2 of 2

        2 ok   1:00:00 of virtual time in N s
    "#]],
    )
}

#[test]
fn a_scenario_that_does_not_hold_says_what_is_different_and_what_happened() -> Result<()> {
    let wrong = PUSHED
        .replace("advance = \"1h\"", "advance = \"30m\"")
        .replace("answer = \"refused busy\"", "answer = \"accepted\"");
    let folder = folder(&[("pushed", &wrong)])?;
    std::fs::write(folder.path().join("pushed.transcript"), "a door\n\n0:00  told otherwise\n")?;
    check(
        folder.path(),
        &["--filter", "pushed"],
        3,
        expect![[r#"
            door   1 scenario in door
              FAILED  a door that was pushed shuts by itself   30:00 in N s

                door/pushed.scenario.toml:12   the answer to push (e2)
                  expected   accepted
                  got        refused busy: expected unlocked, got locked by door/front@i1.1 for 0 ms, opening, waiting for a timer (started by push)

                door/pushed.scenario.toml:19   state of front, at 30:00
                  expected   shut
                  got        opening

                door/pushed.scenario.toml:19   version of front, at 30:00
                  expected   3
                  got        2

                in the end
                  front   opening, waits for the timer after in 30 min, or the event stop

                what happened
                  0:00  front   v1  created, shut
                        client  front: push (e1)   accepted
                        front   v2  push -> opening
                        client  front: push (e2)   REFUSED busy
                                  expected unlocked, got locked by door/front@i1.1 for 0 ms, opening, waiting for a timer (started by push)
                                  retry in 60 min


              covered of door
                states     2 of 2
                moves      1 of 3
                    not reached   opening: stop -> shut
                    not reached   opening: after -> shut
                refusals   1 of 2
                    not reached   stop refused not_allowed
                events     1 of 2
                    not reached   stop

            0 ok, 1 failed   30:00 of virtual time in N s
        "#]],
    )
}

#[test]
fn a_scenario_that_cannot_be_read_keeps_no_other_from_being_played() -> Result<()> {
    let folder = folder(&[("pushed", &PUSHED.replace("\"push\"", "\"psuh\"")), ("stopped", STOPPED)])?;
    check(
        folder.path(),
        &[],
        2,
        expect![[r#"
            door   1 scenario in door
              ok      a door that is stopped shuts at once   0:00 in N s

            1 ok, 1 unreadable   0:00 of virtual time in N s
            error[undeclared-event]: the machine declares no event `psuh`
             --> door/pushed.scenario.toml:8:10
              |
            8 | send   = "psuh"
              |          ^^^^^^
              |
              = help: did you mean `push`?

            error[undeclared-event]: the machine declares no event `psuh`
              --> door/pushed.scenario.toml:13:10
               |
            13 | send   = "psuh"
               |          ^^^^^^
               |
               = help: did you mean `push`?

            door/pushed.scenario.toml: 2 errors, 0 warnings
        "#]],
    )
}

#[test]
fn a_story_is_compared_with_the_transcript_beside_it() -> Result<()> {
    let folder = folder(&[("pushed", PUSHED), ("stopped", STOPPED)])?;
    let transcript = |name: &str| folder.path().join(format!("{name}.transcript"));
    assert_eq!(test(folder.path(), &["--update"])?.0, Some(0));
    assert!(!transcript("pushed").exists(), "only those that are there");
    let (code, out, _) = test(folder.path(), &["--update=all", "--filter", "pushed"])?;
    assert!(code == Some(0) && out.contains("transcript written") && !transcript("stopped").exists(), "{out}");
    expect![[r#"
        a door that was pushed shuts by itself

           0:00  front   v1  created, shut
                 client  front: push (e1)   accepted
                 front   v2  push -> opening
                 client  front: push (e2)   REFUSED busy
                           expected unlocked, got locked by door/front@i1.1 for 0 ms, opening, waiting for a timer (started by push)
                           retry in 60 min
        1:00:00  front   v3  after -> shut
    "#]].assert_eq(&std::fs::read_to_string(transcript("pushed"))?);

    let kept = std::fs::read_to_string(transcript("pushed"))?;
    assert_eq!(test(folder.path(), &[])?.0, Some(0));
    std::fs::write(transcript("pushed"), kept.replace("1:00:00", "2:00:00"))?;
    check(
        folder.path(),
        &["--filter", "pushed"],
        3,
        expect![[r#"
            door   1 scenario in door
              FAILED  a door that was pushed shuts by itself   1:00:00 in N s

                door/pushed.transcript   the story is another now; --update writes it anew
                    ...
                                       expected unlocked, got locked by door/front@i1.1 for 0 ms, opening, waiting for a timer (started by push)
                                       retry in 60 min
                  - 2:00:00  front   v3  after -> shut
                  + 1:00:00  front   v3  after -> shut


            0 ok, 1 failed   1:00:00 of virtual time in N s
        "#]],
    )?;
    assert_eq!(test(folder.path(), &["--update"])?.0, Some(0));
    assert_eq!(std::fs::read_to_string(transcript("pushed"))?, kept);
    Ok(())
}

#[test]
fn a_folder_without_scenarios_is_told_how_to_write_the_first() -> Result<()> {
    let folder = folder(&[])?;
    check(
        folder.path(),
        &[],
        2,
        expect![[r#"
        error: door: no scenarios yet. Write the first one, door/first.scenario.toml:

          scenario = "what it shows, in a sentence"
  
          [[when]]
          send    = "push"
          answer  = "accepted"
  
          [[when]]
          advance = "until-idle"
  
          [then]
          state = "shut"

        then: interlock test door
    "#]],
    )?;
    // The advice is good: what it says, written down, holds.
    let (_, _, advice) = test(folder.path(), &[])?;
    let text: Vec<&str> = advice.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    std::fs::write(folder.path().join("first.scenario.toml"), text.join("\n"))?;
    assert_eq!(test(folder.path(), &[])?.0, Some(0));
    Ok(())
}

#[test]
fn json_says_the_same() -> Result<()> {
    let folder = folder(&[("pushed", &PUSHED.replace("1h", "30m")), ("stopped", STOPPED)])?;
    let (code, out, err) = test(folder.path(), &["--json"])?;
    assert_eq!((code, err.as_str()), (Some(3), ""));
    let tested: serde_json::Value = serde_json::from_str(&out)?;
    assert_eq!((&tested["ok"], &tested["failed"], &tested["unreadable"]), (&1.into(), &1.into(), &0.into()));
    let [pushed, stopped] = [0, 1].map(|nth| &tested["machines"][0]["scenarios"][nth]);
    assert_eq!((&pushed["ok"], &pushed["virtual_ms"]), (&false.into(), &1_800_000.into()));
    assert_eq!(pushed["misses"][0]["what"], "state of front, at 30:00");
    assert_eq!((&pushed["misses"][0]["expected"], &pushed["misses"][0]["got"]), (&"shut".into(), &"opening".into()));
    assert!(pushed["story"].as_str().is_some_and(|story| story.contains("push -> opening")), "{pushed}");
    assert_eq!((&stopped["ok"], &stopped["story"]), (&true.into(), &serde_json::Value::Null));
    let moves = &tested["machines"][0]["coverage"][1];
    assert_eq!((&moves["what"], &moves["covered"], &moves["of"]), (&"moves".into(), &2.into(), &3.into()));
    assert_eq!(moves["missing"], serde_json::json!(["opening: after -> shut"]));
    Ok(())
}

#[test]
fn a_filter_that_fits_only_what_cannot_be_read_says_why_it_cannot() -> Result<()> {
    let folder = folder(&[("pushed", &PUSHED.replace("\"push\"", "\"psuh\"")), ("stopped", STOPPED)])?;
    let (code, out, err) = test(folder.path(), &["--filter", "pushed"])?;
    assert_eq!(code, Some(2), "{err}");
    assert!(out.ends_with("0 ok, 1 unreadable   0:00 of virtual time in N s\n"), "{out}");
    assert!(err.starts_with("error[undeclared-event]") && !err.contains("expected a scenario like"), "{err}");
    Ok(())
}

#[test]
fn quiet_keeps_cargo_quiet_too() -> Result<()> {
    let folder = folder(&[("stopped", STOPPED)])?;
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text);
    std::fs::create_dir(folder.path().join("src"))?;
    write("src/lib.rs", "")?;
    write("Cargo.toml", "[package]\nname = \"door\"\n[lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n")?;
    write("machine.toml", &DOOR.replacen("initial", "component = \"door.wasm\"\ninitial", 1))?;
    let (_, _, err) = test(folder.path(), &[])?;
    assert!(err.contains("building the step in door\n") && err.contains("Finished `release`"), "{err}");
    let (code, _, err) = test(folder.path(), &["--quiet"])?;
    assert_eq!(code, Some(2), "an empty crate is no step");
    assert!(err.starts_with("error: "), "{err}");
    Ok(())
}

#[test]
fn json_is_one_document_whatever_cannot_be_read() -> Result<()> {
    let folder = folder(&[("pushed", &PUSHED.replace("\"push\"", "\"psuh\"")), ("stopped", STOPPED)])?;
    let (code, out, err) = test(folder.path(), &["--json"])?;
    assert_eq!((code, err.as_str()), (Some(2), ""));
    let tested: serde_json::Value = serde_json::from_str(&out)?;
    assert_eq!((&tested["ok"], &tested["failed"], &tested["unreadable"]), (&1.into(), &0.into(), &1.into()));
    let unreadable = &tested["machines"][0]["unreadable"][0];
    assert_eq!(
        (&unreadable["problems"][0]["line"], &unreadable["problems"][0]["code"]),
        (&8.into(), &"undeclared-event".into())
    );
    assert_eq!(tested["machines"][0]["coverage"], serde_json::Value::Null, "it is of all scenarios, or of none");
    Ok(())
}

#[test]
fn a_scenario_is_found_from_where_one_stands() -> Result<()> {
    let folder = folder(&[("pushed", PUSHED)])?;
    let inner = folder.path().join("scenarios");
    std::fs::create_dir(&inner)?;
    std::fs::write(inner.join("stopped.scenario.toml"), STOPPED)?;
    let files = |from: &Path, args: &[&str]| -> Result<Vec<String>> {
        let mut command = crate::program();
        let out = command.args(["test", "--json"]).args(args).current_dir(from).output()?.stdout;
        let tested: serde_json::Value = serde_json::from_slice(&out)?;
        let scenarios = tested["machines"][0]["scenarios"].as_array().context("scenarios")?;
        Ok(scenarios.iter().filter_map(|one| one["file"].as_str()).map(str::to_owned).collect())
    };
    let both = ["pushed.scenario.toml", "scenarios/stopped.scenario.toml"];
    assert_eq!(files(folder.path(), &[])?, both);
    assert_eq!(files(folder.path(), &["pushed.scenario.toml"])?, ["pushed.scenario.toml"]);
    assert_eq!(files(&inner, &["stopped.scenario.toml"])?, ["stopped.scenario.toml"]);
    assert_eq!(files(&inner, &[".."])?, ["../pushed.scenario.toml", "../scenarios/stopped.scenario.toml"]);
    Ok(())
}

#[test]
fn wrong_arguments_are_named() -> Result<()> {
    let folder = folder(&[("pushed", PUSHED)])?;
    let refused = |args: &[&str]| {
        let (code, _, err) = run("", &[&["test"], args].concat())?;
        assert_eq!(code, Some(2), "{args:?}");
        anyhow::Ok(err.replace(&folder.path().display().to_string(), "door"))
    };
    let path = folder.path().display().to_string();
    let empty = tempfile::tempdir()?;
    assert_eq!(refused(&["no/such"])?, "error: no/such: expected a folder or a scenario, got nothing there\n");
    let other = refused(&[&format!("{path}/machine.toml")])?;
    assert!(other.ends_with("expected a folder or a scenario, NAME.scenario.toml, got another file\n"), "{other}");
    let none = refused(&[&empty.path().display().to_string()])?;
    assert!(none.ends_with("or of such folders with scenarios, got neither\n"), "{none}");
    let filter = refused(&[&path, "--filter", "nobody"])?;
    assert_eq!(filter, "error: expected a scenario like \"nobody\", got pushed\n");
    Ok(())
}

#[test]
fn whoever_watches_sees_the_next_change() -> Result<()> {
    let folder = folder(&[("pushed", &PUSHED.replace("1h", "30m"))])?;
    let mut command = crate::program();
    let mut child = command.args(["test", "--watch", "--quiet"]).arg(folder.path()).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
    let mut total = || -> Result<String> {
        let found = lines.by_ref().find(|line| line.as_ref().is_ok_and(|line| line.contains("of virtual time in")));
        Ok(found.context("a total")??)
    };
    let seen = total().and_then(|first| {
        std::fs::write(folder.path().join("pushed.scenario.toml"), PUSHED)?;
        Ok((first, total()?))
    });
    child.kill()?;
    child.wait()?;
    let (first, second) = seen?;
    assert!(first.starts_with("0 ok, 1 failed   30:00 of virtual time"), "{first}");
    assert!(second.starts_with("1 ok   1:00:00 of virtual time"), "{second}");
    Ok(())
}

/// The scenarios of a guest, with its real component, as somebody has them who cloned the repository.
pub(crate) fn guest(name: &str) -> Result<tempfile::TempDir> {
    let (source, folder) = (interlock_support::guest_folder(name), tempfile::tempdir()?);
    std::fs::copy(source.join("machine.toml"), folder.path().join("machine.toml"))?;
    std::fs::copy(interlock_support::guest(name)?, folder.path().join(format!("{name}.wasm")))?;
    for file in [ending(&source, ".table.toml")?, ending(&source, ".schedule.toml")?].concat() {
        let name = file.file_name().context("a file")?;
        std::fs::copy(&file, folder.path().join(name))?;
    }
    std::fs::create_dir(folder.path().join("scenarios"))?;
    for file in std::fs::read_dir(source.join("scenarios"))? {
        let file = file?;
        std::fs::copy(file.path(), folder.path().join("scenarios").join(file.file_name()))?;
    }
    Ok(folder)
}

/// What `guests/ticket` promises, wherever one fault can be.
#[test]
fn no_order_with_a_fault_opens_a_second_ticket() -> Result<()> {
    let folder = guest("ticket")?;
    let path = folder.path().display().to_string();
    for name in ["lost-answer", "late", "resolved"] {
        let (code, out, err) = run("", &["explore", &path, "--filter", name])?;
        let complete = out.contains("complete   every order with at most 1 fault");
        ensure!(code == Some(0) && out.contains(&format!("holds   {name}  ")) && complete, "{out}{err}");
        // The promise is one of each: a search without it would hold whatever happens.
        let scenario = std::fs::read_to_string(folder.path().join(format!("scenarios/{name}.scenario.toml")))?;
        ensure!(scenario.contains(r#"made = { target = "tickets", at_most = 1 }"#), "{scenario}");
    }
    Ok(())
}

#[test]
fn the_scenarios_of_the_examples_hold() -> Result<()> {
    for name in ["resource", "survey", "hostile", "ticket", "deploy"].into_iter().chain(PATTERNS) {
        let folder = guest(name)?;
        let path = folder.path().display().to_string();
        let (code, out, err) = run("", &["test", &path])?;
        let told = took(&out.replace(&path, &format!("guests/{name}")));
        expect_file![format!("golden/scenarios-{name}.txt")].assert_eq(&told);
        assert_eq!(code, Some(0), "{err}");
    }
    Ok(())
}
