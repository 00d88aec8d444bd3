//! That a hostile store is one: what it does to jobs, queries, settlements and sleepers, and that it loses nothing.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use interlock_conformance::{Engine, Hostile, HostileEngine, MemEngine, Probe, RedbEngine, block_on, put, text, value};
use interlock_store::{Fate, Fault, Lane, ManualClock, Mem, Span, Store, Txn, query, transact};

fn hostile() -> Hostile {
    Hostile::over(Arc::new(Mem::new(Arc::new(ManualClock::new()))))
}

#[test]
fn a_job_runs_three_times_and_only_the_last_run_counts() {
    let store = hostile();
    let mut run = 0;
    let done = transact::<_, ()>(&store, Lane::Admission, move |txn: &mut dyn Txn| {
        run += 1;
        assert_eq!(txn.get(b"own")?, None, "nothing is left of run {}", run - 1);
        txn.put(b"own", text(&run.to_string()))?;
        txn.put(format!("of-{run}").as_bytes(), text("1"))?;
        txn.note(text(&run.to_string()))?;
        Ok(run)
    });
    assert_eq!(block_on(done).unwrap().0, 3);
    assert_eq!(value(&store, "own").unwrap().as_deref(), Some("3"));
    assert_eq!(value(&store, "of-1").unwrap(), None);
    assert_eq!(value(&store, "of-2").unwrap(), None);
    let noted = block_on(store.changes(interlock_store::Position::START).next()).unwrap();
    assert_eq!(noted.len(), 1, "one note, of the last run");
}

#[test]
fn a_job_that_counts_on_running_once_is_seen_through() {
    let store = hostile();
    let mut given = 10;
    let sold = transact::<_, ()>(&store, Lane::Admission, move |txn: &mut dyn Txn| {
        // What a careless job does: it changes something beside its transaction.
        given -= 1;
        txn.put(b"left", text(&given.to_string()))?;
        Ok(given)
    });
    assert_eq!(block_on(sold).unwrap().0, 7, "one was sold, and three are gone");
}

#[test]
fn the_first_run_may_meet_a_state_that_is_old() {
    let mut engine = HostileEngine::<MemEngine>::new();
    let store = engine.open().unwrap();
    put(&*store, "k", "old").unwrap();
    engine.hold();
    let (settled, fates) = mpsc::channel();
    let first = Probe::boxed(0, &settled, |txn| txn.put(b"k", text("new")));
    store.submit(Lane::Admission, first).unwrap();
    let (met, seen) = mpsc::channel();
    let second = Probe::boxed(1, &settled, move |txn| {
        met.send(txn.get(b"k")?).unwrap();
        Ok(())
    });
    store.submit(Lane::Admission, second).unwrap();
    engine.release();
    assert_eq!(fates.iter().take(2).count(), 2);
    let seen: Vec<_> = seen.iter().map(Option::unwrap).collect();
    assert_eq!(seen, [text("old"), text("new"), text("new")]);
}

#[test]
fn settlements_are_held_back_and_come_last_first() {
    let mut engine = HostileEngine::<RedbEngine>::new();
    let store = engine.open().unwrap();
    put(&*store, "before", "1").unwrap();
    let (settled, fates) = mpsc::channel();
    let jobs = (0..5).map(|n| Probe::boxed(n, &settled, |txn| txn.put(b"k", text("v"))));
    engine.submit_together(&*store, jobs.collect());
    let order: Vec<_> = fates.iter().take(5).map(|(n, _)| n).collect();
    assert_eq!(order, [4, 3, 2, 1, 0]);
}

#[test]
fn one_that_waits_for_a_slow_job_is_not_held_back_for_ever() {
    let mut engine = HostileEngine::<MemEngine>::new();
    let store = engine.open().unwrap();
    let (settled, fates) = mpsc::channel();
    // A job that the store never settles: it is killed with it.
    put(&*store, "k", "v").unwrap();
    let refused = Probe::boxed(0, &settled, |_| Err(interlock_store::Halt::Abort));
    engine.hold();
    store.submit(Lane::Admission, Probe::boxed(1, &settled, |txn| txn.put(b"k", text("w")))).unwrap();
    store.submit(Lane::Completion, refused).unwrap();
    assert!(fates.try_recv().is_err());
    engine.crash(store);
    assert!(fates.try_recv().is_err(), "both died with their store, without a fate");
    let store = engine.open().unwrap();
    engine.fail_next(Fault::Unavailable);
    assert!(put(&*store, "k", "x").is_err());
    put(&*store, "k", "y").unwrap();
}

#[test]
fn a_query_runs_twice() {
    let store = hostile();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    block_on(query(&store, move |_| Ok(counted.fetch_add(1, Ordering::Relaxed)))).unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

#[test]
fn a_sleeper_wakes_late_and_never_early() {
    let clock = ManualClock::new();
    let store = Hostile::over(Arc::new(Mem::new(Arc::new(clock.clone()))));
    let sleep = store.sleep_until_store(100);
    clock.advance(Duration::from_millis(100));
    block_on(async {
        let mut sleep = std::pin::pin!(sleep);
        let mut looks = 0;
        loop {
            tokio::select! {
                biased;
                () = &mut sleep => break,
                () = tokio::task::yield_now() => looks += 1,
            }
        }
        assert!(looks > 1, "it was due and woke at once");
    });
    assert_eq!(store.now().store_ms, 100);
}

#[test]
fn what_a_dropped_run_writes_it_reads_back() {
    let store = hostile();
    put(&store, "a", "1").unwrap();
    put(&store, "b", "1").unwrap();
    put(&store, "d", "1").unwrap();
    let walked = transact::<_, ()>(&store, Lane::Admission, |txn: &mut dyn Txn| {
        txn.delete(b"a")?;
        txn.put(b"c", text("2"))?;
        let mut walk = |span: Span<'_>, limit| {
            let mut keys = String::new();
            txn.scan(span, limit, &mut |key, _| {
                keys.push_str(&String::from_utf8_lossy(key));
                ControlFlow::Continue(())
            })?;
            Ok::<_, interlock_store::Halt>(keys)
        };
        let found = [
            walk(Span::all(), 9)?,
            walk(Span::all(), 2)?,
            walk(Span::prefix(b"c"), 9)?,
            walk(Span::between(b"a", b"c"), 9)?,
            walk(Span::starting(b"b").after(b"b"), 9)?,
            walk(Span::all().back(), 9)?,
            walk(Span::all().back(), 2)?,
            walk(Span::starting(b"b").back().after(b"d"), 9)?,
        ];
        // In every run, the dropped ones too.
        assert_eq!(found, ["bcd", "bc", "c", "b", "cd", "dcb", "dc", "cb"]);
        Ok(())
    });
    let done = block_on(walked);
    assert!(matches!(done, Ok(((), _))), "{done:?}");
}

#[test]
fn a_full_queue_hands_the_job_back_as_it_was() {
    let mut engine = HostileEngine::<MemEngine>::new();
    let store = engine.open().unwrap();
    block_on(store.close(Duration::ZERO)).unwrap();
    let (settled, fates) = mpsc::channel();
    let job = Probe::boxed(7, &settled, |_| Ok(()));
    let full = store.submit(Lane::Admission, job).unwrap_err();
    full.job.settle(Fate::Failed(full.why));
    assert_eq!(fates.recv().unwrap(), (7, Fate::Failed(interlock_store::StoreError::Closed)));
}
