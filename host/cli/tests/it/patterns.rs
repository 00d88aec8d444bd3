//! The patterns on rows in `guests/`, one folder each: their scenarios are played with those of the other examples, and
//! every order of each is searched here.

use crate::scenarios::guest;
use crate::{declared, run};
use anyhow::Result;

/// The folders, each with a machine, its tables, a step and scenarios.
pub(crate) const PATTERNS: [&str; 4] =
    ["process-event-once", "token-bucket", "rate-limit-per-key", "cross-execution-counter"];

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
