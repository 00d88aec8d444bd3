//! The patterns on rows in `guests/`, one folder each: their scenarios are played with those of the other examples, and
//! every order of each is searched here.

use crate::scenarios::guest;
use crate::{Serving, declared, run};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// The folders, each with a machine, its tables, a step and scenarios.
pub(crate) const PATTERNS: [&str; 7] = [
    "process-event-once",
    "token-bucket",
    "rate-limit-per-key",
    "leader-lease",
    "queue",
    "stale-claim-recovery",
    "cross-execution-counter",
];

#[test]
fn every_pattern_holds_in_every_order() -> Result<()> {
    for name in PATTERNS {
        let folder = guest(name)?;
        let (code, out, err) = run("", &["explore", "--quiet", &folder.path().display().to_string()])?;
        println!("{name}\n{out}");
        assert_eq!(code, Some(0), "{name}\n{out}{err}");
        let begins = |word: &str| out.lines().filter(|line| line.trim_start().starts_with(word)).count();
        let scenarios = std::fs::read_dir(folder.path().join("scenarios"))?.count();
        assert_eq!((begins("holds "), begins("complete ")), (scenarios, scenarios), "{name}\n{out}");
    }
    Ok(())
}

#[test]
fn every_pattern_has_sound_manifests_and_a_page_of_one_screen_that_names_what_it_has() -> Result<()> {
    for name in PATTERNS {
        let folder = interlock_support::guest_folder(name);
        let (code, out, err) = run("", &["check", &folder.display().to_string()])?;
        assert!(
            code == Some(0) && out.contains(" is sound"),
            "{name}: nothing for `interlock check` to say\n{out}{err}"
        );
        let page = std::fs::read_to_string(folder.join("README.md"))?;
        assert!((10..=45).contains(&page.lines().count()), "{name}: {} lines", page.lines().count());
        for table in declared(&folder)? {
            assert!(page.contains(&format!("`{}.table.toml`", table.table.name)), "{name}: {}", table.table.name);
        }
        for file in std::fs::read_dir(folder.join("scenarios"))? {
            let file = file?.file_name().to_string_lossy().into_owned();
            let scenario = file.trim_end_matches(".scenario.toml").trim_end_matches(".transcript");
            assert!(page.contains(scenario), "{name}: no {scenario} in its page");
        }
        assert!(page.contains(&format!("`interlock explore guests/{name}`")), "{name}: how is it searched?");
    }
    Ok(())
}

/// A daemon, and what it answers.
struct Asked {
    serving: Serving,
}

impl Asked {
    fn done(&self, args: &[&str]) -> Result<String> {
        let (code, out, err) = run(&self.serving.url, &[args, &["--json"]].concat())?;
        ensure!(code == Some(0), "interlock {}: {code:?}\n{out}{err}", args.join(" "));
        Ok(out)
    }

    /// The value of a row.
    fn row(&self, table: &str, key: &str) -> Result<Value> {
        let told = self.done(&["row", "get", table, key])?;
        let row: Value = serde_json::from_str(&told).with_context(|| format!("expected JSON, got {told:?}"))?;
        Ok(row["value"].clone())
    }
}

#[test]
fn every_pattern_is_deployed_by_one_command_and_runs_on_a_daemon() -> Result<()> {
    let data = tempfile::tempdir()?;
    let asked = Asked { serving: Serving::start(&data.path().join("data"))? };
    for name in PATTERNS {
        asked.done(&["deploy", &guest(name)?.path().display().to_string()])?;
    }
    for entity in ["visit/a", "visit/b"] {
        asked.done(&["entity", "create", entity])?;
        asked.done(&["entity", "send", entity, "enter", r#"{"page": "home"}"#, "--wait"])?;
    }
    assert_eq!(asked.row("counters", "home")?, json!({ "count": 2 }));

    for entity in ["intake/a", "intake/b", "intake/a"] {
        asked.done(&["entity", "create", entity])?;
        let delivery = r#"{"id": "evt-1", "account": "rent", "amount": 5}"#;
        asked.done(&["entity", "send", entity, "deliver", delivery, "--wait"])?;
    }
    assert_eq!(asked.row("accounts", "rent")?, json!({ "balance": 5 }));

    // The operator allows no target: what is claimed is settled with that.
    asked.done(&["row", "put", "pending_ops", "op-1", r#"{"status": "pending", "payload": {}}"#])?;
    asked.done(&["entity", "create", "dispatcher/a"])?;
    asked.done(&["entity", "send", "dispatcher/a", "tick", "--wait"])?;
    let op = asked.row("pending_ops", "op-1")?;
    ensure!(op["status"] == "failed" && op["error"].is_string(), "{op}");
    Ok(())
}
