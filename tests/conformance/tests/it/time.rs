//! Numbers only grow; store time only grows, and stands still while nobody has the store open.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

use interlock_conformance::{Engine, Probe, block_on, put, text};
use interlock_store::{Abort, Clock, Fate, Lane, Seq, Store, TransactError, Txn, transact};

const NO_DRAIN: Duration = Duration::ZERO;

fn refuse(store: &dyn Store) -> u64 {
    let refused = transact::<(), _>(store, Lane::Admission, |_: &mut dyn Txn| Err(Abort::Refused(())));
    match block_on(refused) {
        Err(TransactError::Refused { seq, .. }) => seq.0,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub(crate) fn numbers_grow_over_closes_and_crashes<E: Engine>() {
    let mut engine = E::new();
    let mut last = 0;
    for round in 0..6 {
        let store = engine.open().unwrap();
        for _ in 0..3 {
            let seq = put(&*store, "k", "v").unwrap();
            assert!(seq > last, "{seq} came after {last}");
            last = seq;
        }
        if round % 2 == 0 {
            block_on(store.close(NO_DRAIN)).unwrap();
        } else {
            engine.crash(store);
        }
    }
}

pub(crate) fn numbers_of_refusals_are_not_given_twice<E: Engine>() {
    let mut engine = E::new();
    let mut last = 0;
    for round in 0..4 {
        let store = engine.open().unwrap();
        // More in a row than a store would hand out without writing that down.
        for _ in 0..1_500 {
            let seq = refuse(&*store);
            assert!(seq > last, "{seq} came after {last}");
            last = seq;
        }
        if round % 2 == 0 {
            engine.crash(store);
        } else {
            block_on(store.close(NO_DRAIN)).unwrap();
        }
    }
}

pub(crate) fn store_time_stands_still_while_closed<E: Engine>() {
    let mut engine = E::new();
    let clock = engine.clock().clone();
    let store = engine.open().unwrap();
    assert_eq!(store.now().store_ms, 0);
    clock.advance(Duration::from_millis(1_500));
    assert_eq!(store.now().store_ms, 1_500);
    block_on(store.close(NO_DRAIN)).unwrap();
    drop(store);

    clock.advance(Duration::from_secs(3_600));
    let store = engine.open().unwrap();
    assert_eq!(store.now().store_ms, 1_500);
    clock.advance(Duration::from_millis(250));
    put(&*store, "k", "v").unwrap();
    clock.advance(Duration::from_millis(250));
    assert_eq!(store.now().store_ms, 2_000);

    // A crash takes it back to the last batch: late, never early.
    engine.crash(store);
    clock.advance(Duration::from_secs(3_600));
    let store = engine.open().unwrap();
    assert_eq!(store.now().store_ms, 1_750);
}

pub(crate) fn store_time_ignores_jumps_of_the_wall_clock<E: Engine>() {
    let mut engine = E::new();
    let clock = engine.clock().clone();
    let store = engine.open().unwrap();
    for wall_ms in [1_000_000, 5, 4_000_000_000_000, -7] {
        let before = store.now().store_ms;
        clock.set_wall(wall_ms);
        let now = store.now();
        assert_eq!((now.store_ms, now.wall_ms), (before, wall_ms));
        clock.advance(Duration::from_millis(10));
        assert_eq!(store.now().store_ms, before + 10);
    }
}

pub(crate) fn all_jobs_of_a_batch_have_one_time<E: Engine>() {
    let mut engine = E::new();
    let clock = engine.clock().clone();
    let store = engine.open().unwrap();
    clock.advance(Duration::from_millis(40));
    clock.set_wall(7_000);
    let (settled, fates) = mpsc::channel();
    let (stamps, taken) = mpsc::channel();
    let jobs = (0..5_usize).map(|n| {
        let stamps = stamps.clone();
        Probe::boxed(n, &settled, move |txn| {
            stamps.send((n, txn.stamp())).unwrap();
            txn.put(b"k", text("v"))
        })
    });
    engine.submit_together(&*store, jobs.collect());
    let fates: BTreeMap<_, _> = fates.iter().take(5).collect();
    // Of each the last run, which is the one that counts.
    let taken: BTreeMap<_, _> = taken.try_iter().collect();
    for (n, stamp) in taken {
        assert_eq!(fates.get(&n), Some(&Fate::Committed(Seq(stamp.seq))));
        assert_eq!((stamp.store_ms, stamp.wall_ms), (40, 7_000));
    }
    assert_eq!(fates.len(), 5);
}

pub(crate) fn sleeping_until_store_time_is_never_early<E: Engine>() {
    let mut engine = E::new();
    let clock = engine.clock().clone();
    clock.advance(Duration::from_millis(12_345));
    let store = engine.open().unwrap();
    let (woke, awake) = mpsc::channel();
    std::thread::scope(|scope| {
        let sleep = store.sleep_until_store(100);
        let woken = &store;
        scope.spawn(move || {
            block_on(sleep);
            woke.send(woken.now().store_ms).unwrap();
        });
        let deadline = clock.next_sleeper().expect("it sleeps");
        assert_eq!(store.store_time_at(deadline), 100);
        clock.advance(deadline - clock.monotonic() - Duration::from_millis(1));
        assert_eq!(store.now().store_ms, 99);
        assert_eq!(clock.next_sleeper(), Some(deadline), "it sleeps still");
        clock.advance(Duration::from_millis(1));
        assert_eq!(awake.recv().unwrap(), 100);
    });
    // The past is reached at once.
    block_on(store.sleep_until_store(1));
    assert_eq!(store.clock().monotonic(), clock.monotonic());
}
