//! Every point at which a host can die, of every canonical scenario. Every one on the engine in memory, some of
//! them on the embedded one: `cargo run --release -p interlock-sim -- points` has the host die at all of them.

use interlock_sim::points::{Broken, Covered, SCENARIOS, Sample, on_lying_disks, on_mem, on_redb};

/// Each so-manieth operation of the embedded engine.
const EACH: u64 = 25;

fn covered(came: Result<Covered, Box<Broken>>) -> Covered {
    match came {
        Ok(covered) => covered,
        Err(broken) => panic!("{broken}"),
    }
}

#[test]
fn every_scenario_ends_the_same_wherever_the_host_dies_between_two_jobs() {
    for scenario in &SCENARIOS {
        let covered = covered(on_mem(scenario));
        assert!(covered.points > 20 && covered.is_all(), "{covered:?}");
    }
}

#[test]
fn every_scenario_ends_the_same_wherever_the_disk_dies() {
    let (mut points, mut endings) = (0, 0);
    for scenario in &SCENARIOS {
        let covered = covered(on_redb(scenario, Sample::Each(EACH)));
        // The first, the last, and each so-manieth between them; and the host has died at every one that was tried.
        assert!(covered.points > 60 && covered.met.len() as u64 >= covered.points / EACH, "{covered:?}");
        assert!(covered.met.contains(&1) && covered.met.contains(&covered.points), "{covered:?}");
        assert!(covered.twice > 0, "{covered:?}");
        points += covered.met.len();
        endings += covered.endings;
    }
    println!("{points} points, {endings} endings");
}

#[test]
fn one_scenario_is_covered_at_every_write_and_sync() {
    let covered = covered(on_redb(&SCENARIOS[6], Sample::Every));
    assert!(covered.is_all(), "{covered:?}");
}

#[test]
fn a_disk_that_only_says_that_it_has_synced_is_found() {
    let Err(broken) = on_lying_disks(&SCENARIOS[1], Sample::Each(5)) else {
        panic!("nobody noticed");
    };
    let names = ["the_store_holds_what_was_committed", "a_store_opens_again"];
    assert!(names.contains(&broken.finding.theorem), "{broken}");
    assert!(broken.to_string().contains("cargo run -p interlock-sim -- points --engine redb --only"), "{broken}");
}
