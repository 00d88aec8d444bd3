//! The redb engine's batches: what waited together is committed together, within bounds.

use std::sync::mpsc;

use interlock_conformance::{Engine, Probe, RedbEngine, put, value};
use interlock_store::{Fate, Lane, Store, VALUE_BYTES};

/// Jobs of a batch, as the engine bounds it.
const BATCH_JOBS: u64 = 256;

/// Commits of `jobs` jobs that waited behind one commit, each writing `bytes`.
fn commits(jobs: u64, bytes: u64) -> u64 {
    let mut engine = RedbEngine::new();
    let store = engine.open_redb().unwrap();
    put(&*store, "before", "1").unwrap();
    engine.hold();
    let (settled, fates) = mpsc::channel();
    let first = Probe::boxed(0, &settled, |txn| txn.put(b"first", vec![1].into()));
    store.submit(Lane::Admission, first).unwrap();
    engine.wait_until_held();
    let before = store.stats().batches;
    for n in 0..jobs {
        let job =
            Probe::boxed(1, &settled, move |txn| txn.put(format!("k{n}").as_bytes(), vec![1; bytes as usize].into()));
        store.submit(Lane::Admission, job).unwrap();
    }
    engine.release();
    for (_, fate) in fates.iter().take(jobs as usize + 1) {
        assert!(matches!(fate, Fate::Committed(_)), "{fate:?}");
    }
    let stats = store.stats();
    assert_eq!(stats.committed, jobs + 2);
    stats.batches - before - 1
}

#[test]
fn jobs_that_waited_share_one_commit() {
    assert_eq!(commits(1, 1), 1);
    assert_eq!(commits(BATCH_JOBS, 1), 1);
}

#[test]
fn a_batch_is_bounded_in_jobs_and_bytes() {
    assert_eq!(commits(BATCH_JOBS + 1, 1), 2);
    // 8 MiB are 32 of the largest values; keys come on top.
    assert_eq!(commits(32, VALUE_BYTES.max), 1);
    assert_eq!(commits(33, VALUE_BYTES.max), 2);
}

#[test]
fn company_that_does_not_come_is_not_waited_for() {
    let mut engine = RedbEngine::new();
    let store = engine.open_redb().unwrap();
    // Time stands still here: an engine that waited for it would wait for ever.
    store.expect_company(1_000);
    for n in 0..20 {
        put(&*store, &format!("k{n}"), "v").unwrap();
    }
    assert_eq!(value(&*store, "k19").unwrap().as_deref(), Some("v"));
}
