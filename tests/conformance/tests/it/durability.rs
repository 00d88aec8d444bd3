//! What was answered is durable, a "no" included; what failed left nothing.

use std::sync::mpsc;

use interlock_conformance::{Engine, Probe, Settled, put, text, value};
use interlock_store::{Fate, Fault, Halt, StoreError};

/// The fates of `count` jobs by their numbers: in which order they are told is not said.
fn by_number(fates: &mpsc::Receiver<Settled>, count: usize) -> Vec<Settled> {
    let mut told: Vec<_> = fates.iter().take(count).collect();
    told.sort_by_key(|(n, _)| *n);
    told
}

pub(crate) fn a_refusal_waits_for_the_writes_of_its_batch<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    put(&*store, "before", "1").unwrap();
    engine.hold();
    let (settled, fates) = mpsc::channel();
    let jobs = vec![
        Probe::boxed(0, &settled, |txn| txn.put(b"lock", text("held"))),
        Probe::boxed(1, &settled, |txn| {
            assert_eq!(txn.get(b"lock")?, Some(text("held")));
            Err(Halt::Abort)
        }),
        Probe::boxed(2, &settled, |txn| txn.get(b"lock").map(|_| ())),
    ];
    engine.submit_together(&*store, jobs);
    engine.wait_until_held();
    assert_eq!(fates.try_recv(), Err(mpsc::TryRecvError::Empty), "nobody is answered before the lock is durable");
    assert_eq!(value(&*store, "lock").unwrap(), None);
    engine.release();
    let told = by_number(&fates, 3);
    assert!(matches!(told[0], (0, Fate::Committed(_))), "{told:?}");
    assert!(matches!(told[1], (1, Fate::Aborted(_))), "{told:?}");
    assert!(matches!(told[2], (2, Fate::Committed(_))), "{told:?}");
}

pub(crate) fn a_batch_without_writes_answers_at_once<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    put(&*store, "lock", "held").unwrap();
    engine.hold();
    let (settled, fates) = mpsc::channel();
    let jobs = vec![
        Probe::boxed(0, &settled, |txn| {
            txn.put(b"lock", text("mine"))?;
            Err(Halt::Abort)
        }),
        Probe::boxed(1, &settled, |txn| txn.get(b"lock").map(|_| ())),
    ];
    engine.submit_together(&*store, jobs);
    let told = by_number(&fates, 2);
    engine.release();
    assert!(matches!(told[0], (0, Fate::Aborted(_))), "{told:?}");
    assert!(matches!(told[1], (1, Fate::Committed(_))), "{told:?}");
}

pub(crate) fn a_failed_commit_leaves_no_trace<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    put(&*store, "k", "before").unwrap();
    engine.fail_next(Fault::Unavailable);
    let error = put(&*store, "k", "after").unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "got {error:?}");
    assert!(error.is_retryable());
    assert_eq!(value(&*store, "k").unwrap().as_deref(), Some("before"));
    put(&*store, "k", "again").unwrap();
    assert_eq!(value(&*store, "k").unwrap().as_deref(), Some("again"));
}

pub(crate) fn an_indeterminate_commit_is_all_or_nothing<E: Engine>() {
    for kept in [false, true] {
        let mut engine = E::new();
        let store = engine.open().unwrap();
        put(&*store, "k", "before").unwrap();
        engine.fail_next(Fault::Indeterminate { kept });
        let error = put(&*store, "k", "after").unwrap_err();
        assert!(matches!(error, StoreError::Indeterminate { .. }), "got {error:?}");
        assert!(!error.is_retryable(), "read before deciding again");
        let expected = if kept { "after" } else { "before" };
        assert_eq!(value(&*store, "k").unwrap().as_deref(), Some(expected));
        put(&*store, "k", "again").unwrap();
        assert_eq!(value(&*store, "k").unwrap().as_deref(), Some("again"));
    }
}

pub(crate) fn a_crash_takes_back_nothing_that_was_acknowledged<E: Engine>() {
    let mut engine = E::new();
    for round in 0..5 {
        let store = engine.open().unwrap();
        for earlier in 0..round {
            let found = value(&*store, &format!("k{earlier}")).unwrap();
            assert_eq!(found.as_deref(), Some("kept"));
        }
        put(&*store, &format!("k{round}"), "kept").unwrap();
        // Not acknowledged when the power goes: there or not, but never answered.
        engine.hold();
        let (settled, _fates) = mpsc::channel();
        let job = Probe::boxed(0, &settled, |txn| txn.put(b"maybe", text("1")));
        engine.submit_together(&*store, vec![job]);
        engine.wait_until_held();
        engine.crash(store);
    }
}
