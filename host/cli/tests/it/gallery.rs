//! The gallery of planted faults, `guests/faulty`: each passes its scenario; a search finds it, tells it, and tells
//! it again, and finds nothing in the same machine once it is mended.
//!
//! What is told of each is kept in `golden/gallery/`; `UPDATE_EXPECT=1` writes it anew.

use crate::declared;
use anyhow::{Context as _, Result, ensure};
use expect_test::expect_file;
use interlock_lab::scenario::{self, Stage, play};
use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Each fault, and the promise by which it is found.
const FAULTS: [(&str, &str); 16] = [
    ("asked-again", "one ticket at most"),
    ("check-then-act", "never more is spent than there is"),
    ("desired-unseen", "what clients want is what runs"),
    ("double-claim", "no order is packed twice"),
    ("event-twice", "the deposit is booked once"),
    ("first-try", "what runs has a disk"),
    ("forgotten-path", "nothing is left parked"),
    ("late-payment", "no ticket is shipped for a seat that was given back"),
    ("lease-outlasted", "what is sent has the channel"),
    ("lease-remembered", "nobody empties a mailbox without its lease"),
    ("lost-count", "no visit is lost"),
    ("lost-update", "no usage is lost"),
    ("memory", "every row is counted"),
    ("promised-early", "a pool has the size that it promises"),
    ("resent", "no parcel is packed twice"),
    ("save-then-retry", "nobody gets it twice"),
];

/// A copy of the gallery with its component, as it is in the repository once that is built.
fn root() -> Result<&'static Path> {
    static ROOT: OnceLock<Result<tempfile::TempDir, String>> = OnceLock::new();
    let root = ROOT.get_or_init(|| copy().map_err(|why| format!("{why:#}")));
    root.as_ref().map(tempfile::TempDir::path).map_err(|why| anyhow::anyhow!("{why}"))
}

fn copy() -> Result<tempfile::TempDir> {
    let root = tempfile::tempdir()?;
    let gallery = root.path().join("guests/faulty");
    for case in cases()? {
        let copy = gallery.join(&case);
        std::fs::create_dir_all(&copy)?;
        for file in std::fs::read_dir(source().join(&case))? {
            let file = file?;
            std::fs::copy(file.path(), copy.join(file.file_name()))?;
        }
    }
    std::fs::copy(interlock_support::guest("faulty")?, gallery.join("faulty.wasm"))?;
    Ok(root)
}

fn source() -> PathBuf {
    interlock_support::guest_folder("faulty")
}

/// The folders with a machine.
fn cases() -> Result<BTreeSet<String>> {
    let mut cases = BTreeSet::new();
    for entry in std::fs::read_dir(source())? {
        let entry = entry?;
        if entry.path().join("machine.toml").is_file() {
            cases.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(cases)
}

/// Exit code and standard output of the command, with the gallery in its folder.
fn interlock(args: &[&str]) -> Result<(Option<i32>, String)> {
    let mut command = crate::program();
    let Output { status, stdout, stderr } = command.args(args).current_dir(root()?).output()?;
    let (out, err) = (String::from_utf8(stdout)?, String::from_utf8(stderr)?);
    ensure!(!out.is_empty(), "interlock {}: {status}\n{err}", args.join(" "));
    Ok((status.code(), out))
}

/// A search, in words.
fn explore(case: &str, more: &[&str]) -> Result<(Option<i32>, String)> {
    let folder = format!("guests/faulty/{case}");
    interlock(&[&["explore", &folder], more].concat())
}

/// What a search says of a fault: all of it, and the story alone, without what was looked at on the way.
fn told(case: &str) -> Result<(String, String)> {
    static TOLD: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if !told.contains_key(case) {
        let (code, text) = explore(case, &[])?;
        assert_eq!(code, Some(3), "{case}\n{text}");
        told.insert(case.to_owned(), text);
    }
    let whole = told.get(case).cloned().unwrap_or_default();
    let story = whole.split("   until then ").next().unwrap_or_default().to_owned();
    Ok((whole, story))
}

/// The rest of the first line that begins so.
fn behind<'t>(text: &'t str, word: &str) -> Result<&'t str> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(word));
    Ok(line.with_context(|| format!("no line {word} in\n{text}"))?.trim_start())
}

#[test]
fn every_planted_fault_is_found_and_told() -> Result<()> {
    for (case, promise) in FAULTS {
        let (_, story) = told(case)?;
        let (_, found) = behind(&story, "promise")?.split_once(": ").context("of an entity")?;
        assert_eq!(found, promise, "{case}\n{story}");
        expect_file![format!("golden/gallery/{case}.txt")].assert_eq(&story);
    }
    Ok(())
}

#[test]
fn every_machine_passes_its_own_scenario_faulty_or_not() -> Result<()> {
    let kept = tempfile::tempdir()?;
    let engines = Engines::new(EngineOptions { executions_max: 2, guest_threads: 0, ..EngineOptions::default() })?;
    let library = Library::open(&engines, kept.path())?;
    let component = std::fs::read(root()?.join("guests/faulty/faulty.wasm"))?;
    let component = Some(tokio::runtime::Runtime::new()?.block_on(library.add(component))?.digest);
    for case in cases()? {
        let text = |file: &str| std::fs::read_to_string(source().join(&case).join(file));
        let report = interlock_manifest::parse(&case, &text("machine.toml")?);
        assert!(report.problems.is_empty(), "{case}: nothing for `interlock check` to say: {:?}", report.problems);
        let manifest = report.manifest.context("a manifest")?;
        let file = format!("{}.scenario.toml", case.trim_end_matches("-mended"));
        let scenario = scenario::read(&file, &text(&file)?, &manifest.machine);
        let scenario = scenario.map_err(|report| anyhow::anyhow!("{case}: {:?}", report.problems))?;
        let stage = Stage {
            manifest,
            component,
            tables: declared(&source().join(&case))?,
            executor: Arc::new(Wasm::new(library.clone())),
        };
        let misses = play(&scenario, &stage)?.misses;
        assert!(misses.is_empty(), "{case}: {misses:?}");
    }
    Ok(())
}

#[test]
fn the_same_search_twice_gives_the_same_bytes() -> Result<()> {
    for case in ["memory", "resent"] {
        assert_eq!(explore(case, &[])?.1, told(case)?.0, "{case}");
    }
    let whole = || explore("late-payment-mended", &[]);
    assert_eq!(whole()?, whole()?);
    Ok(())
}

#[test]
fn every_story_is_told_again_by_the_command_that_it_ends_with() -> Result<()> {
    for (case, _) in FAULTS {
        let (_, story) = told(case)?;
        let args: Vec<&str> = behind(&story, "replay     interlock")?.split_whitespace().collect();
        assert_eq!(interlock(&args)?, (Some(3), story), "{case}");
    }
    Ok(())
}

#[test]
fn a_replay_says_what_of_the_order_it_passed_over() -> Result<()> {
    let replay = |order: &str| explore("save-then-retry-mended", &["--replay", &format!("save-then-retry:{order}")]);
    let (code, said) = replay("a1-g1-g2-g1-a9-x")?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("passed over 2 choices of that order: not possible where it stands\n"), "{said}");
    let (_, said) = replay("a1-g1-g1-x")?;
    assert!(!said.contains("passed over"), "{said}");
    Ok(())
}

#[test]
fn every_mended_machine_holds_in_every_order_with_two_faults() -> Result<()> {
    for (case, _) in FAULTS {
        let (code, said) = explore(&format!("{case}-mended"), &["--faults", "2"])?;
        assert_eq!(code, Some(0), "{case}\n{said}");
        assert!(said.starts_with("holds "), "{said}");
        assert!(behind(&said, "complete")?.starts_with("every order with at most 2 faults,"), "{said}");
    }
    Ok(())
}

#[test]
fn a_mended_machine_differs_in_what_was_mended_alone() -> Result<()> {
    let named = FAULTS.iter().flat_map(|(case, _)| [(*case).to_owned(), format!("{case}-mended")]);
    assert_eq!(cases()?, named.collect(), "one folder a case, and one for each mended");
    let readme = std::fs::read_to_string(source().join("README.md"))?;
    for (case, promise) in FAULTS {
        let read = |folder: &str, file: &str| std::fs::read_to_string(source().join(folder).join(file));
        let mended = format!("{case}-mended");
        let scenario = format!("{case}.scenario.toml");
        assert_eq!(read(case, &scenario)?, read(&mended, &scenario)?, "{case}: the same scenario");
        assert_eq!(declared(&source().join(case))?, declared(&source().join(&mended))?, "{case}: the same tables");
        let lines = |text: String| text.lines().skip(1).map(str::to_owned).collect::<BTreeSet<_>>();
        let (before, after) = (lines(read(case, "machine.toml")?), lines(read(&mended, "machine.toml")?));
        let changed = before.symmetric_difference(&after).count();
        assert!((1..=4).contains(&changed), "{case}: {changed} lines of the manifest differ");
        assert!(readme.contains(&format!("`{case}`")) && readme.contains(promise), "{case}: not in the README");
    }
    Ok(())
}
