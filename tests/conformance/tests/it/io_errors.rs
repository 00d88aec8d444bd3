//! The redb engine on a disk that fails, fills up and stalls: reads go on, writes are
//! unavailable, and it recovers without a restart.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use interlock_conformance::{Engine, Probe, RedbEngine, SimDisk, block_on, put, redb_options, text, value};
use interlock_store::{
    Condition, Fate, LIMITS, Lane, ManualClock, Options, QUEUE_ADMISSIONS, QUEUE_QUERIES, Query, Read, Redb, Seq,
    Store, StoreError,
};

fn open() -> (RedbEngine, Arc<Redb>) {
    let mut engine = RedbEngine::new();
    let store = engine.open_redb().unwrap();
    put(&*store, "before", "1").unwrap();
    (engine, store)
}

fn is_unavailable(result: &Result<u64, StoreError>) -> bool {
    matches!(result, Err(error @ StoreError::Unavailable { .. }) if error.is_retryable())
}

#[test]
fn a_failed_write_fails_its_jobs_and_the_next_ones_commit() {
    let (engine, store) = open();
    for round in 1..=3 {
        engine.disk().fail_writes(1);
        let failed = put(&*store, "k", "v");
        assert!(is_unavailable(&failed), "{failed:?}");
        // The query waits for the file to be open again.
        assert_eq!(value(&*store, "k").unwrap(), None);
        assert_eq!(store.health().condition, Condition::Ready);
        assert_eq!(store.stats().reopenings, round);
        put(&*store, "other", "1").unwrap();
    }
}

#[test]
fn a_failed_sync_is_answered_by_what_the_reopened_file_says() {
    let (engine, store) = open();
    engine.disk().fail_next_sync(false);
    let lost = put(&*store, "lost", "v");
    assert!(is_unavailable(&lost), "{lost:?}");
    assert_eq!(value(&*store, "lost").unwrap(), None);

    engine.disk().fail_next_sync(true);
    let seq = put(&*store, "kept", "v").unwrap();
    assert_eq!(store.now().seq, seq);
    assert_eq!(value(&*store, "kept").unwrap().as_deref(), Some("v"));
}

#[test]
fn every_operation_of_a_commit_may_fail_once() {
    let (engine, store) = open();
    let before = engine.disk().operations();
    put(&*store, "probe", "v").unwrap();
    let writes = engine.disk().operations() - before;
    assert!(writes > 3, "{writes} operations");
    for n in 1..=20 {
        engine.disk().fail_write_after(n % writes);
        let key = format!("k{n}");
        match put(&*store, &key, "v") {
            Ok(_) => assert_eq!(value(&*store, &key).unwrap().as_deref(), Some("v")),
            failed => {
                assert!(is_unavailable(&failed), "{failed:?}");
                assert_eq!(value(&*store, &key).unwrap(), None, "half written");
            }
        }
        engine.disk().fail_writes(0);
        put(&*store, "next", "v").unwrap();
    }
}

#[test]
fn a_failed_read_is_read_again_from_the_reopened_file() {
    let clock = ManualClock::new();
    let disk = SimDisk::new();
    let options = Options {
        // No page stays in memory, so that a look-up reads the disk.
        cache_bytes: 0,
        ..redb_options(&clock)
    };
    let store = Redb::open_backend(disk.clone(), options).unwrap();
    for n in 0..200 {
        put(&store, &format!("k{n:03}"), &"v".repeat(500)).unwrap();
    }
    disk.fail_reads(1);
    assert!(value(&store, "k100").unwrap().is_some());
    assert_eq!(store.stats().reopenings, 1);
    assert_eq!(store.health().condition, Condition::Ready);

    // A job meets it: nothing of its batch is kept.
    let (settled, fates) = mpsc::channel();
    let job = Probe::boxed(0, &settled, move |txn| {
        disk.fail_reads(1);
        txn.put(b"half", text("v"))?;
        txn.get(b"k150").map(|_| ())
    });
    store.submit(Lane::Admission, job).unwrap();
    let (_, fate) = fates.recv().unwrap();
    assert!(matches!(fate, Fate::Failed(StoreError::Unavailable { .. })), "{fate:?}");
    assert_eq!(value(&store, "half").unwrap(), None);
    put(&store, "half", "whole").unwrap();
}

#[test]
fn a_disk_that_is_away_for_long_makes_reads_and_writes_unavailable_and_comes_back() {
    let clock = ManualClock::new();
    let disk = SimDisk::new();
    let options = Options { reads_wait: Duration::ZERO, ..redb_options(&clock) };
    let store = Redb::open_backend(disk.clone(), options).unwrap();
    put(&store, "before", "1").unwrap();
    disk.fail_next_sync(false);
    disk.fail_opens(u64::MAX);
    let first = put(&store, "k", "v").unwrap_err();
    assert!(matches!(first, StoreError::Indeterminate { .. }), "{first}");
    let read = value(&store, "before").unwrap_err();
    assert!(matches!(read, StoreError::Unavailable { .. }), "{read}");
    let failed = put(&store, "k", "v");
    assert!(is_unavailable(&failed), "{failed:?}");
    let Condition::Reopening { why, .. } = store.health().condition else {
        panic!("{:?}", store.health());
    };
    assert!(why.contains("planted"), "{why}");

    disk.fail_opens(0);
    // Commands go through again as soon as it is open; until then each is told so.
    let mut tries = 0;
    while let Err(error) = put(&store, "k", "v") {
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
        tries += 1;
        assert!(tries < 3, "each attempt to open answers all who wait");
    }
    assert_eq!(value(&store, "before").unwrap().as_deref(), Some("1"));
    assert_eq!(store.health().condition, Condition::Ready);
}

#[test]
fn a_full_disk_is_read_only_until_there_is_room() {
    let (mut engine, store) = open();
    engine.disk().set_room(Some(0));
    let failed = put(&*store, "k", "v");
    assert!(is_unavailable(&failed), "{failed:?}");
    for _ in 0..3 {
        assert_eq!(value(&*store, "before").unwrap().as_deref(), Some("1"));
        assert_eq!(value(&*store, "k").unwrap(), None);
        let failed = put(&*store, "k", "v");
        assert!(is_unavailable(&failed), "{failed:?}");
        engine.clock().advance(Duration::from_secs(1));
    }
    let Condition::ReadOnly { .. } = store.health().condition else {
        panic!("{:?}", store.health());
    };
    assert_eq!(store.stats().reopenings, 1, "a full disk is not opened again and again");

    engine.disk().set_room(None);
    engine.clock().advance(Duration::from_secs(1));
    put(&*store, "k", "v").unwrap();
    assert_eq!(store.health().condition, Condition::Ready);
    drop(store);
    let store = engine.open_redb().unwrap();
    assert_eq!(value(&*store, "k").unwrap().as_deref(), Some("v"));
}

#[test]
fn a_stalled_sync_lets_reads_go_on_and_loses_nothing() {
    let (engine, store) = open();
    engine.hold();
    let (settled, fates) = mpsc::channel();
    let first = Probe::boxed(0, &settled, |txn| txn.put(b"first", text("1")));
    store.submit(Lane::Completion, first).unwrap();
    engine.wait_until_held();
    let mut queued = 0;
    let refused = loop {
        let job = Probe::boxed(1, &settled, |txn| {
            let count = txn.get(b"count")?.map_or(0, |value| {
                let text = String::from_utf8_lossy(&value).into_owned();
                text.parse::<u64>().expect("a number")
            });
            txn.put(b"count", text(&(count + 1).to_string()))
        });
        match store.submit(Lane::Admission, job) {
            Ok(()) => queued += 1,
            Err(full) => break full,
        }
    };
    assert_eq!(queued, QUEUE_ADMISSIONS.max);
    assert!(refused.why.is_retryable());
    // What runs already can still report, and is run before what came earlier.
    let completion = Probe::boxed(2, &settled, |txn| {
        assert_eq!(txn.get(b"count")?, None, "completions go first");
        txn.put(b"completed", text("1"))
    });
    store.submit(Lane::Completion, completion).unwrap();
    let health = store.health();
    assert_eq!((health.completions, health.admissions), (1, queued as usize));
    engine.clock().advance(Duration::from_secs(10));
    assert_eq!(value(&*store, "before").unwrap().as_deref(), Some("1"));
    assert_eq!(value(&*store, "first").unwrap(), None);
    assert!(fates.try_recv().is_err(), "nobody is answered");

    engine.release();
    for (n, fate) in fates.iter().take(queued as usize + 2) {
        assert!(matches!(fate, Fate::Committed(_)), "job {n}: {fate:?}");
    }
    assert_eq!(value(&*store, "count").unwrap(), Some(queued.to_string()));
}

#[test]
fn a_close_that_cannot_finish_says_so() {
    let (engine, store) = open();
    engine.hold();
    let (settled, _fates) = mpsc::channel();
    let job = Probe::boxed(0, &settled, |txn| txn.put(b"k", text("1")));
    store.submit(Lane::Completion, job).unwrap();
    engine.wait_until_held();
    let close = store.close(Duration::from_secs(1));
    engine.clock().advance(Duration::from_secs(60));
    let error = block_on(close).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    engine.release();
}

/// Keeps a reader busy until told to go on.
struct Blocked {
    running: mpsc::Sender<()>,
    go: mpsc::Receiver<()>,
}

impl Query for Blocked {
    fn run(&mut self, _at: &mut dyn Read) -> Result<(), interlock_store::Halt> {
        let _ = self.running.send(());
        let _ = self.go.recv();
        Ok(())
    }

    fn settle(self: Box<Self>, _result: Result<Seq, StoreError>) {}
}

struct Told(mpsc::Sender<Result<Seq, StoreError>>);

impl Query for Told {
    fn run(&mut self, _at: &mut dyn Read) -> Result<(), interlock_store::Halt> {
        Ok(())
    }

    fn settle(self: Box<Self>, result: Result<Seq, StoreError>) {
        let _ = self.0.send(result);
    }
}

#[test]
fn the_queue_of_queries_holds_its_maximum_and_refuses_one_more() {
    assert!(LIMITS.contains(&QUEUE_QUERIES));
    let (_engine, store) = open();
    let (running, is_running) = mpsc::channel();
    let mut gates = Vec::new();
    // As many as there are readers: one more would queue and never run.
    for _ in 0..2 {
        let (go, gate) = mpsc::channel();
        let running = running.clone();
        store.query(Box::new(Blocked { running, go: gate }));
        is_running.recv().unwrap();
        gates.push(go);
    }
    let (told, answers) = mpsc::channel();
    for _ in 0..QUEUE_QUERIES.max {
        store.query(Box::new(Told(told.clone())));
    }
    assert!(answers.try_recv().is_err(), "all wait");
    store.query(Box::new(Told(told.clone())));
    assert_eq!(
        answers.recv().unwrap(),
        Err(StoreError::Limit { name: QUEUE_QUERIES.name, max: QUEUE_QUERIES.max, got: QUEUE_QUERIES.max + 1 })
    );
    drop(gates);
    let answered = answers.iter().take(QUEUE_QUERIES.max as usize);
    assert!(answered.into_iter().all(|answer| answer.is_ok()));
}
