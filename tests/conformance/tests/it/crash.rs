//! The redb engine dies at every write and every sync of a scripted workload.
//!
//! After each death the disk keeps a seeded part of what was not synced (or all of it, as after
//! `kill -9`), the store is opened again, and then: every acknowledged job is there, no job is
//! half there, and the feed, the counter and the numbers agree with the jobs that are.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc;

use interlock_conformance::{Engine, Probe, RedbEngine, Settled, SimDisk, block_on, put, redb_options, text};
use interlock_store::{Fate, Halt, Job, ManualClock, Position, Read, Redb, Span, Store, Txn, query};

/// Batches by their number of jobs: lone ones, and some that share a commit.
const BATCHES: [usize; 6] = [1, 3, 1, 8, 1, 5];
/// Power cuts tried per point of death, beside `kill -9`.
const CUTS: u64 = 3;

/// What a run learns, in the order it happened.
enum Word {
    Settled(Settled),
    Died,
}

/// Each job writes far-apart keys, raises a counter, removes its predecessor's mark and notes
/// itself: a half-applied one cannot hide.
fn job(n: usize, words: &mpsc::Sender<Word>) -> Box<dyn Job> {
    let (settled, fates) = mpsc::channel();
    let words = words.clone();
    std::thread::spawn(move || {
        for fate in fates {
            // A run that has ended listens no more.
            let _ = words.send(Word::Settled(fate));
        }
    });
    Probe::boxed(n, &settled, move |txn: &mut dyn Txn| -> Result<(), Halt> {
        let counter = txn.get(b"counter")?.map_or(0, |value| value[0]);
        txn.put(b"counter", [counter + 1].into())?;
        txn.put(format!("a/{n:03}").as_bytes(), vec![n as u8; 700].into())?;
        txn.put(format!("z/{n:03}").as_bytes(), vec![n as u8; 3_000].into())?;
        if let Some(before) = n.checked_sub(1) {
            txn.delete(format!("mark/{before:03}").as_bytes())?;
        }
        txn.put(format!("mark/{n:03}").as_bytes(), text("last"))?;
        txn.note(text(&n.to_string()))
    })
}

/// Runs the script until its end or the disk's death; tells which jobs were acknowledged.
fn run(engine: &mut RedbEngine, crash_at: Option<u64>) -> BTreeSet<usize> {
    let (words, heard) = mpsc::channel();
    if let Some(operation) = crash_at {
        let words = words.clone();
        engine.disk().crash_at(operation, move || {
            let _ = words.send(Word::Died);
        });
    }
    let mut acknowledged = BTreeSet::new();
    let Ok(store) = engine.open() else {
        return acknowledged;
    };
    let mut submitted = 0;
    'script: for size in BATCHES {
        let jobs = (submitted..submitted + size).map(|n| job(n, &words));
        engine.submit_together(&*store, jobs.collect());
        submitted += size;
        let mut left = size;
        while left > 0 {
            match heard.recv().unwrap() {
                Word::Settled((n, Fate::Committed(_))) => {
                    acknowledged.insert(n);
                    left -= 1;
                }
                Word::Settled((_, Fate::Failed(_))) => left -= 1,
                Word::Settled((n, Fate::Aborted(_))) => panic!("job {n} did not refuse"),
                Word::Died => break 'script,
            }
        }
    }
    drop(store);
    drop(words);
    // Jobs that were committed just before the death may be told only now.
    for word in heard {
        if let Word::Settled((n, Fate::Committed(_))) = word {
            acknowledged.insert(n);
        }
    }
    acknowledged
}

#[derive(Debug, PartialEq, Eq)]
struct Found {
    jobs: Vec<usize>,
    counter: usize,
    marks: Vec<usize>,
    feed: Vec<usize>,
}

fn numbers(at: &mut dyn Read, prefix: &[u8], value_len: usize) -> Result<Vec<usize>, Halt> {
    let mut found = Vec::new();
    at.scan(Span::prefix(prefix), 1_000, &mut |key, value| {
        let n: usize = String::from_utf8_lossy(&key[prefix.len()..]).parse().expect("a number");
        assert_eq!(value.len(), value_len, "job {n} of {prefix:?} is torn");
        found.push(n);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Opens what the crash left and checks that it is the state after some number of whole jobs.
fn check(disk: &SimDisk, acknowledged: &BTreeSet<usize>, replay: &str) {
    let clock = ManualClock::new();
    let store = match Redb::open_backend(disk.clone(), redb_options(&clock)) {
        Ok(store) => Arc::new(store),
        Err(error) => panic!("{replay}: the store does not open: {error}"),
    };
    let found = block_on(query(&*store, |at| {
        let jobs = numbers(at, b"a/", 700)?;
        assert_eq!(jobs, numbers(at, b"z/", 3_000)?, "a job is half there");
        Ok(Found {
            jobs,
            counter: at.get(b"counter")?.map_or(0, |value| value[0].into()),
            marks: numbers(at, b"mark/", 4)?,
            feed: Vec::new(),
        })
    }))
    .unwrap();
    let mut feed = Vec::new();
    if found.counter > 0 {
        let changes = block_on(store.changes(Position::START).next()).unwrap();
        feed.extend(changes.iter().map(|change| {
            let text = String::from_utf8_lossy(&change.payload).into_owned();
            text.parse::<usize>().expect("a number")
        }));
    }
    let found = Found { feed, ..found };
    let whole: Vec<usize> = (0..found.counter).collect();
    let expected = Found {
        counter: whole.len(),
        marks: whole.last().copied().into_iter().collect(),
        feed: whole.clone(),
        jobs: whole.clone(),
    };
    assert_eq!(found, expected, "{replay}");
    let lost: Vec<_> = acknowledged.iter().filter(|n| !whole.contains(n)).collect();
    assert!(lost.is_empty(), "{replay}: acknowledged and lost: {lost:?}");
    let mut ends = BATCHES.iter().scan(0, |end, size| {
        *end += size;
        Some(*end)
    });
    assert!(
        found.counter == 0 || ends.any(|end| end == found.counter),
        "{replay}: {} jobs are a part of a batch",
        found.counter
    );
    put(&*store, "after", "the crash").unwrap();
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_applied_at_any_point_of_death() {
    let mut engine = RedbEngine::new();
    let all = run(&mut engine, None);
    assert_eq!(all.len(), BATCHES.iter().sum::<usize>());
    let operations = engine.disk().operations();
    assert!(operations > 60, "a script of {operations} operations");

    for operation in 1..=operations {
        let mut engine = RedbEngine::new();
        let acknowledged = run(&mut engine, Some(operation));
        let wreck = engine.disk().wreck();
        let replay = format!("killed at operation {operation}");
        check(&wreck.after_kill(), &acknowledged, &replay);
        for cut in 0..CUTS {
            let seed = operation * CUTS + cut;
            let replay = format!("power cut at operation {operation}, seed {seed}");
            check(&wreck.after_power_cut(seed), &acknowledged, &replay);
        }
    }
}
