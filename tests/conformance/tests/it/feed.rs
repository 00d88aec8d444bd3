//! The change feed: order, resumption, and being told when a position is gone.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use interlock_conformance::{Engine, Probe, block_on, put, text};
use interlock_store::{
    Change, ChangesError, FEED_KEPT_ENTRIES, FEED_KEPT_MS, Halt, Lane, Position, Seq, Store, StoreError, TXN_WRITES,
    Txn, query, transact,
};

fn note(store: &dyn Store, payloads: &'static [&'static str]) -> u64 {
    let done = transact::<(), ()>(store, Lane::Admission, move |txn: &mut dyn Txn| {
        for payload in payloads {
            txn.note(text(payload))?;
        }
        Ok(())
    });
    block_on(done).unwrap().1.0
}

/// Reads on until `count` changes were seen.
fn read(store: &dyn Store, after: Position, count: usize) -> Vec<Change> {
    let mut changes = store.changes(after);
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.extend(block_on(changes.next()).unwrap());
    }
    assert_eq!(changes.position(), seen.last().unwrap().position);
    seen
}

fn payloads(changes: &[Change]) -> Vec<String> {
    changes.iter().map(|change| String::from_utf8_lossy(&change.payload).into_owned()).collect()
}

pub(crate) fn changes_come_in_commit_order<E: Engine>() {
    let mut engine = E::new();
    engine.clock().advance(Duration::from_millis(30));
    let store = engine.open().unwrap();
    engine.clock().advance(Duration::from_millis(20));
    engine.clock().set_wall(99);
    let first = note(&*store, &["a", "b"]);
    put(&*store, "k", "a job without notes").unwrap();
    let third = note(&*store, &["c"]);
    let seen = read(&*store, Position::START, 3);
    assert_eq!(payloads(&seen), ["a", "b", "c"]);
    let positions: Vec<_> = seen.iter().map(|c| c.position.to_string()).collect();
    assert_eq!(positions, [format!("{first}.0"), format!("{first}.1"), format!("{third}.0")]);
    assert_eq!((seen[0].store_ms, seen[0].wall_ms), (20, 99));
}

pub(crate) fn a_reader_resumes_where_it_stopped<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    for _ in 0..3 {
        note(&*store, &["a", "b"]);
    }
    let seen = read(&*store, Position::START, 6);
    block_on(store.close(Duration::ZERO)).unwrap();
    drop(store);
    let store = engine.open().unwrap();
    for (n, change) in seen.iter().enumerate().take(5) {
        // A client keeps the position as text.
        let position = change.position.to_string().parse().unwrap();
        assert_eq!(read(&*store, position, 5 - n), seen[n + 1..]);
    }
    for wrong in ["", "1", "1.", ".1", "1.2.3", "-1.0", "1.4294967296", "+1.0"] {
        let error = wrong.parse::<Position>().unwrap_err();
        assert!(error.to_string().contains("expected a position"));
    }
}

pub(crate) fn a_waiting_reader_hears_of_the_next_commit<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    note(&*store, &["old"]);
    let mut changes = store.changes(Position::after(Seq(store.now().seq)));
    let (heard, hearing) = mpsc::channel();
    let reader = thread::spawn(move || {
        loop {
            let answer = block_on(changes.next());
            let ended = answer.is_err();
            heard.send(answer).unwrap();
            if ended {
                return;
            }
        }
    });
    note(&*store, &["new"]);
    assert_eq!(payloads(&hearing.recv().unwrap().unwrap()), ["new"]);
    put(&*store, "k", "nothing noted").unwrap();
    note(&*store, &["newer"]);
    assert_eq!(payloads(&hearing.recv().unwrap().unwrap()), ["newer"]);
    block_on(store.close(Duration::ZERO)).unwrap();
    let ended = Err(ChangesError::Store(StoreError::Closed));
    assert_eq!(hearing.recv().unwrap(), ended);
    reader.join().unwrap();
}

pub(crate) fn refused_jobs_note_nothing<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    let (settled, fates) = mpsc::channel();
    let jobs = (0..3_usize).map(|n| {
        Probe::boxed(n, &settled, move |txn| {
            txn.note(text(&n.to_string()))?;
            match n {
                1 => Err(Halt::Abort),
                _ => Ok(()),
            }
        })
    });
    engine.submit_together(&*store, jobs.collect());
    assert_eq!(fates.iter().take(3).count(), 3);
    assert_eq!(payloads(&read(&*store, Position::START, 2)), ["0", "2"]);
}

/// Fills the feed beyond its window of entries.
fn overfill(store: &dyn Store) {
    let jobs = FEED_KEPT_ENTRIES.div_ceil(TXN_WRITES.max) + 1;
    for _ in 0..jobs {
        let done = transact::<(), ()>(store, Lane::Admission, |txn: &mut dyn Txn| {
            for _ in 0..TXN_WRITES.max {
                txn.note(text("filler"))?;
            }
            Ok(())
        });
        block_on(done).unwrap();
    }
}

pub(crate) fn an_old_position_is_gone<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    let first = note(&*store, &["first"]);
    overfill(&*store);
    engine.clock().advance(Duration::from_millis(FEED_KEPT_MS + 1));
    // Trimming is spread over the batches that follow.
    note(&*store, &["later"]);
    let mut changes = store.changes(Position { seq: first, n: 0 });
    let Err(ChangesError::Gone { oldest }) = block_on(changes.next()) else {
        panic!("expected the position to be gone");
    };
    assert!(oldest.seq > first, "{oldest}");
    let again = Position { n: oldest.n - 1, ..oldest };
    let seen = read(&*store, again, 1);
    assert_eq!(seen[0].position, oldest, "the oldest is where to go on");

    // What is in the window stays, whatever the number of batches.
    for _ in 0..60 {
        note(&*store, &["later"]);
    }
    let kept = count(&*store);
    assert!(kept >= FEED_KEPT_ENTRIES, "{kept} kept");
    assert!(kept < FEED_KEPT_ENTRIES + TXN_WRITES.max, "{kept} kept");
}

fn count(store: &dyn Store) -> u64 {
    let Err(ChangesError::Gone { oldest }) = block_on(store.changes(Position::START).next()) else {
        panic!("expected the start to be gone");
    };
    let mut changes = store.changes(oldest);
    let newest = store.now().seq;
    let mut count = 1;
    while changes.position().seq < newest {
        count += block_on(changes.next()).unwrap().len() as u64;
    }
    count
}

pub(crate) fn a_young_feed_is_not_trimmed<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    note(&*store, &["first"]);
    overfill(&*store);
    engine.clock().advance(Duration::from_millis(FEED_KEPT_MS - 1));
    note(&*store, &["later"]);
    assert_eq!(payloads(&read(&*store, Position::START, 1))[0], "first");
}

pub(crate) fn a_position_of_another_store_is_ahead<E: Engine>() {
    let store = E::new().open().unwrap();
    let newest = Position { seq: note(&*store, &["a"]), n: 0 };
    let far = Position { seq: 1 << 40, n: 0 };
    let answer = block_on(store.changes(far).next());
    assert_eq!(answer, Err(ChangesError::Ahead { newest }));
}

pub(crate) fn listing_then_watching_misses_nothing<E: Engine>() {
    let store = E::new().open().unwrap();
    note(&*store, &["listed"]);
    let listed = block_on(query(&*store, |at| Ok(at.stamp().seq))).unwrap();
    let next = note(&*store, &["watched"]);
    let seen = read(&*store, Position::after(Seq(listed)), 1);
    assert_eq!(payloads(&seen), ["watched"]);
    assert_eq!(seen[0].position.seq, next);
}
