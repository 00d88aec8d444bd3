//! `interlock schedule`, as a script and a person meet it.

use super::{Serving, run};
use anyhow::ensure;
use expect_test::expect;
use std::fmt::Write as _;

const DOOR: &str = r#"
machine = "door"
owner   = "facilities <door@example.com>"
initial = "shut"
desired.schema = false
data.schema    = false
outputs.schema = false
[events.knock]
schema = false
[states.shut]
kind = "rest"
on.knock = { to = "open" }
[states.open]
kind = "rest"
on.knock = { to = "shut" }
"#;

/// Not before the year 2028, so that it does not come while a test runs.
const KNOCK: &str = r#"
schedule = "knock"
owner    = "night watch <watch@example.com>"
cron     = "30 2 29 2 *"
zone     = "UTC"
entity   = "door/front"
event    = "knock"
create   = {}
"#;

#[test]
fn a_schedule_is_checked_declared_with_its_folder_shown_paused_and_dropped() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let serving = Serving::start(&data.path().join("data"))?;
    let folder = data.path().join("door");
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("machine.toml"), DOOR)?;
    std::fs::write(folder.join("knock.schedule.toml"), KNOCK)?;
    let path = folder.display().to_string();
    let mut all = String::new();
    for args in [
        &["check", &path] as &[&str],
        &["schedule", "list"],
        &["deploy", &path],
        &["schedule", "list"],
        &["schedule", "show", "knock"],
        &["schedule", "pause", "knock"],
        &["schedule", "resume", "knock"],
        &["schedule", "show", "knok"],
        &["schedule", "drop", "knock"],
        &["schedule", "drop", "knock"],
    ] {
        let (code, out, err) = run(&serving.url, args)?;
        let _ = write!(all, "$ interlock {}\n{out}{err}", args.join(" "));
        if code != Some(0) {
            let _ = writeln!(all, "exit {code:?}");
        }
    }
    // When it was declared, by this machine's clocks.
    let all: String =
        all.replace(&path, "FOLDER").lines().fold(String::new(), |text, line| match line.split_once("declared   ") {
            Some(("", _)) => text + "declared   HH:MM:SS, declaration 1\n",
            _ => text + line + "\n",
        });
    expect![[r#"
        $ interlock check FOLDER
        FOLDER/knock.schedule.toml: schedule knock is sound: 30 2 29 2 * UTC
        FOLDER/machine.toml: door is sound: 2 states, 1 event
        $ interlock schedule list
        schedule  rule  entity  event  next  last
        no schedule is declared: interlock schedule create FOLDER
        $ interlock deploy FOLDER
        door   revision 1 active
        knock   declaration 1 in force   comes 2028-02-29 02:30:00, 2032-02-29 02:30:00, 2036-02-29 02:30:00
        $ interlock schedule list
        schedule  rule             entity      event  next                 last
        knock     30 2 29 2 * UTC  door/front  knock  2028-02-29 02:30:00
        $ interlock schedule show knock
        knock   knock to door/front
        rule       30 2 29 2 * UTC
        next       2028-02-29 02:30:00
        entity     door/front, made if it is not there
        overlap    skip
        catch up   latest
        so far     0 raised, 0 passed
        owner      night watch <watch@example.com>
        declared   HH:MM:SS, declaration 1
        $ interlock schedule pause knock
        knock   knock to door/front   paused
        rule       30 2 29 2 * UTC
        next       paused
        entity     door/front, made if it is not there
        overlap    skip
        catch up   latest
        so far     0 raised, 0 passed
        owner      night watch <watch@example.com>
        declared   HH:MM:SS, declaration 1
        $ interlock schedule resume knock
        knock   knock to door/front
        rule       30 2 29 2 * UTC
        next       2028-02-29 02:30:00
        entity     door/front, made if it is not there
        overlap    skip
        catch up   latest
        so far     0 raised, 0 passed
        owner      night watch <watch@example.com>
        declared   HH:MM:SS, declaration 1
        $ interlock schedule show knok
        REFUSED   not_found: there is no schedule knok
          expected   a declared schedule (did you mean knock?)
          got        nothing of this name
        exit Some(3)
        $ interlock schedule drop knock
        knock   is gone; it had raised 0 events
        $ interlock schedule drop knock
        REFUSED   not_found: there is no schedule knock
          expected   a declared schedule (none is declared)
          got        nothing of this name
        exit Some(3)
    "#]]
    .assert_eq(&all);
    Ok(())
}

#[test]
fn what_is_wrong_with_a_schedule_is_shown_with_its_line_and_nothing_is_declared() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let serving = Serving::start(&data.path().join("data"))?;
    let bad = data.path().join("bad.schedule.toml");
    std::fs::write(&bad, KNOCK.replace("30 2 29 2 *", "30 2 31 2 *").replace("\"UTC\"", "\"UCT2\""))?;
    std::fs::write(data.path().join("good.schedule.toml"), KNOCK)?;
    let (code, _, err) = run(&serving.url, &["schedule", "create", &data.path().display().to_string()])?;
    ensure!(code == Some(2), "{code:?} {err}");
    expect![[r#"
        error[bad-value]: "30 2 31 2 *" never comes
         --> FOLDER/bad.schedule.toml:4:12
          |
        4 | cron     = "30 2 31 2 *"
          |            ^^^^^^^^^^^^^ got 30 2 31 2 *
          |
          = help: name a day that there is

        error[bad-choice]: there is no time zone "UCT2"
         --> FOLDER/bad.schedule.toml:5:12
          |
        5 | zone     = "UCT2"
          |            ^^^^^^ expected a zone of the IANA time zone database 2026f
          |
          = help: did you mean `UCT`?

        FOLDER/bad.schedule.toml: 2 errors, 0 warnings
    "#]]
    .assert_eq(&err.replace(&data.path().display().to_string(), "FOLDER"));
    let (_, out, _) = run(&serving.url, &["schedule", "list", "--json"])?;
    ensure!(out.trim() == r#"{"schedules":[],"next":null}"#, "{out}");

    let empty = tempfile::tempdir()?;
    let (code, _, err) = run(&serving.url, &["schedule", "create", &empty.path().display().to_string()])?;
    ensure!(code == Some(2) && err.contains("expected NAME.schedule.toml, got none"), "{code:?} {err}");
    Ok(())
}
