//! Faults that a store must not have: with each of them a check fails, and says which.

use interlock_sim::plant::{Family, Plant};
use interlock_sim::{Outcome, Plan, run, shrink};
use std::ops::Range;
use std::process::Command;

const SEEDS: u64 = 6;
const STEPS: u64 = 200;
/// Seeds with leases and requests.
const LEASES: Range<u64> = 50..58;
/// Seeds in which a late owner's request comes behind that of the next.
const LATE: Range<u64> = 209..210;

fn plan(seed: u64, plant: Plant) -> Plan {
    Plan { seed, steps: STEPS, plant, ..Plan::default() }
}

/// Runs of a few seeds with a planted fault: those in which a check failed.
fn found(plant: Plant) -> Vec<Outcome> {
    let outcomes = seeds(plant).map(|seed| run(&plan(seed, plant)));
    outcomes.filter(|outcome| outcome.finding.is_some()).collect()
}

/// Seeds that come to what a fault is about.
fn seeds(plant: Plant) -> Range<u64> {
    match plant {
        Plant::Drop(Family::Lease | Family::Effect | Family::Outbox, _) | Plant::Forgetful => LEASES,
        Plant::Unfenced => LATE,
        _ => 0..SEEDS,
    }
}

fn theorem(outcome: &Outcome) -> &'static str {
    outcome.finding.as_ref().map_or("", |(finding, _)| finding.theorem)
}

/// A planted fault is found, and called by one of these names.
fn is_named(plant: Plant, names: &[&str]) {
    let found = found(plant);
    assert!(!found.is_empty(), "{plant}: no seed of {SEEDS} found it");
    for outcome in found {
        let name = theorem(&outcome);
        assert!(names.contains(&name), "{plant}: expected one of {names:?}, got {outcome}");
    }
}

#[test]
fn without_a_planted_fault_the_same_seeds_find_nothing() {
    assert!(found(Plant::Nothing).is_empty());
}

#[test]
fn a_lost_head_is_found() {
    let names = [
        "history_folds_to_entity",
        "the_store_holds_what_was_committed",
        "the_head_implies_its_index",
        "no_client_meets_rest_with_a_full_inbox", // what waits is counted in the head
        "the_host_shows_what_is_stored",          // of an entity that was just made, nothing else is told of
    ];
    is_named(Plant::Drop(Family::Head, 12), &names);
}

#[test]
fn a_lost_history_entry_is_found() {
    let names = ["the_store_holds_what_was_committed", "a_watcher_sees_each_entry_once_in_order"];
    is_named(Plant::Drop(Family::History, 12), &names);
}

#[test]
fn a_lost_document_is_found() {
    let names = ["the_store_holds_what_was_committed", "the_author_s_own_invariant", "history_folds_to_entity"];
    is_named(Plant::Drop(Family::Data, 6), &names);
}

#[test]
fn a_lost_answer_of_an_event_is_found() {
    let names = ["the_store_holds_what_was_committed", "queued_answers_resolve", "an_event_is_taken_once"];
    is_named(Plant::Drop(Family::Dedup, 5), &names);
}

#[test]
fn a_lost_queued_event_is_found() {
    let names = ["the_store_holds_what_was_committed", "the_reconciler_finds_nothing", "the_head_counts_its_inbox"];
    is_named(Plant::Drop(Family::Inbox, 3), &names);
}

#[test]
fn a_lost_index_entry_is_found() {
    let names = ["the_store_holds_what_was_committed", "the_reconciler_finds_nothing", "everything_comes_to_rest"];
    for family in [Family::Open, Family::Timer, Family::Due] {
        is_named(Plant::Drop(family, 2), &names);
    }
}

#[test]
fn a_lost_lease_is_found() {
    let names = [
        "what_became_of_a_lease_is_on_record",
        "a_lease_implies_its_index",
        "the_store_holds_what_was_committed",
        "lease_and_execution_agree",
        "what_is_told_is_true",
        "the_reconciler_finds_nothing",
    ];
    is_named(Plant::Drop(Family::Lease, 4), &names);
}

#[test]
fn a_lost_effect_is_found() {
    let names = [
        "the_head_implies_its_index",
        "what_is_sent_is_committed",
        "the_store_holds_what_was_committed",
        "outstanding_is_named",
        "the_reconciler_finds_nothing",
        "everything_comes_to_rest",
    ];
    is_named(Plant::Drop(Family::Effect, 3), &names);
    is_named(Plant::Drop(Family::Outbox, 2), &names);
}

#[test]
fn a_receiver_that_forgets_what_it_has_done_is_found() {
    is_named(Plant::Forgetful, &["an_effect_is_done_once"]);
}

#[test]
fn a_receiver_that_does_what_a_late_owner_asks_for_is_found() {
    is_named(Plant::Unfenced, &["a_late_owner_changes_nothing"]);
}

#[test]
fn a_commit_that_was_acknowledged_and_never_made_is_found() {
    let names = [
        "what_is_told_is_true",
        "same_dedup_id_same_answer",
        "a_step_s_write_is_there_as_told",
        "a_read_sees_what_is_durable",
        "everything_comes_to_rest",
        "the_reconciler_finds_nothing",
    ];
    is_named(Plant::Acknowledge(9), &names);
}

#[test]
fn a_job_that_was_applied_twice_is_found() {
    let names = [
        "a_step_s_write_is_there_as_told",
        "the_store_holds_what_was_committed",
        "the_reconciler_finds_nothing",
        "a_refusal_leaves_no_effect",
        "what_is_told_is_true",
        "what_was_told_is_there_once",
    ];
    is_named(Plant::Twice(14), &names);
}

#[test]
fn a_failing_run_is_made_small_and_prints_the_line_that_replays_it() {
    let failed = found(Plant::Drop(Family::Head, 12)).into_iter().next().unwrap_or_else(|| panic!("none failed"));
    let small = shrink(&failed);
    assert_eq!(theorem(&small), theorem(&failed));
    assert!(small.plan.steps < failed.plan.steps, "{small}");
    let replay = small.plan.replay();
    assert!(small.to_string().ends_with(&format!("again: {replay}")), "{small}");
    let words: Vec<&str> = replay.split_whitespace().skip_while(|word| *word != "--").skip(1).collect();
    let told = match Command::new(env!("CARGO_BIN_EXE_interlock-sim")).args(&words).output() {
        Ok(told) => told,
        Err(error) => panic!("{replay}: {error}"),
    };
    let (text, errors) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(!told.status.success() && errors.contains(theorem(&small)), "{replay}: {text}{errors}");
    assert!(text.contains(&format!("transcript {}", small.digest)), "the same bytes: {text}");
}
