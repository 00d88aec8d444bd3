//! The short run: the corpus and some thousand inputs per target, the same ones every time; and that the search finds
//! what is there to be found.

use anyhow::{Result, ensure};
use interlock_fuzz::{
    Broken, Report, Seen, Target, Until, guarded, mutate, replay_line, search, shrink, target, targets,
};
use std::path::Path;

/// The seed of the short run.
const SEED: u64 = 20_26;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Runs the corpus and some inputs of a target; what breaks is named with its replay line.
fn check(name: &str, inputs: u64) -> Result<()> {
    let target = target(name).expect("a target of this name");
    let Report { inputs, pool, seen, failure } = search(target, SEED, Until::Inputs(inputs), folder())?;
    println!("{name}: {inputs} inputs, {} showed something new, {seen} things said", pool.len());
    if let Some(failure) = failure {
        panic!("{}\nagain: {}", failure.why.0, replay_line(target, &failure.path));
    }
    ensure!(pool.len() > 5, "the corpus shows next to nothing");
    Ok(())
}

#[test]
fn manifests_are_accepted_whole_or_refused_with_a_place_for_every_problem() -> Result<()> {
    check("manifest", 600)
}

#[test]
fn schedules_that_are_accepted_come_again() -> Result<()> {
    check("schedule", 300)
}

#[test]
fn tables_are_accepted_whole_and_what_they_claim_counts_as_claimed() -> Result<()> {
    check("table", 600)
}

#[test]
fn requests_on_rows_are_read_within_bounds_or_refused_with_a_place() -> Result<()> {
    check("rows", 4_000)
}

#[test]
fn documents_have_one_text_and_exact_integers() -> Result<()> {
    check("json", 6_000)
}

#[test]
fn names_paths_and_sources_are_shown_as_they_were_written() -> Result<()> {
    check("names", 4_000)
}

#[test]
fn guards_are_total_and_do_what_their_rules_say() -> Result<()> {
    check("guard", 4_000)
}

#[test]
fn changes_do_what_they_say_and_nothing_beside_it() -> Result<()> {
    check("change", 4_000)
}

#[test]
fn records_come_back_and_other_bytes_are_refused() -> Result<()> {
    check("records", 8_000)
}

#[test]
fn decisions_keep_every_theorem_whatever_is_asked() -> Result<()> {
    check("decide", 250)
}

#[test]
fn every_target_has_a_test_above() {
    let source = include_str!("it.rs");
    for target in targets() {
        assert!(source.contains(&format!("check(\"{}\", ", target.name())), "{}", target.name());
    }
}

/// Breaks on two words of its grammar in order, and panics on a third.
struct Planted;

impl Target for Planted {
    fn name(&self) -> &'static str {
        "json"
    }

    fn words(&self) -> &'static str {
        "open¦shut¦burn¦{¦}"
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let text = String::from_utf8_lossy(input);
        let mut seen = Seen::default();
        if let Some((_, behind)) = text.split_once("open") {
            seen.note("opened");
            if behind.contains("shut") {
                return Err("shut while open".into());
            }
        }
        assert!(!text.contains("burning"), "it burns");
        Ok(seen)
    }
}

#[test]
fn a_planted_fault_is_found_made_small_and_written_down() -> Result<()> {
    let report = search(&Planted, SEED, Until::Inputs(20_000), folder())?;
    let failure = report.failure.expect("the fault is found");
    assert_eq!((failure.why.0.as_str(), failure.input.as_slice()), ("shut while open", &b"openshut"[..]));
    assert_eq!(std::fs::read(&failure.path)?, failure.input);
    Ok(())
}

#[test]
fn a_panic_is_caught_with_its_words_and_shrinks_as_any_fault_does() {
    let why = guarded(&Planted, b"everything is burning here").expect_err("it panics");
    assert!(why.0.contains("it burns") && why.0.contains("it.rs"), "{}", why.0);
    assert_eq!(shrink(&Planted, b"everything is burning here".to_vec(), &why), b"burning");
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let pool = vec![b"one\ntwo 2\nthree".to_vec(), br#"{"a": [1, 2, 3]}"#.to_vec()];
    let inputs = |seed| {
        let mut random = interlock_conformance::Random::new(seed);
        (0..500).map(|_| mutate(&pool, &["word", "{}"], &mut random)).collect::<Vec<_>>()
    };
    assert_eq!(inputs(7), inputs(7));
    assert_ne!(inputs(7), inputs(8));
}
