//! Jobs behave as if they ran one after another; queries see one durable state.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;

use interlock_conformance::{Engine, Probe, Random, block_on, put, text, value};
use interlock_store::{Abort, Fate, Halt, Lane, Read, SCAN_ENTRIES, Span, Store, TransactError, Txn, query, transact};

/// Competing threads: more than cores, so that they do interleave.
const THREADS: usize = 8;

/// Key and value.
type Entry = (Vec<u8>, Vec<u8>);

fn number(at: &mut dyn Read, key: &[u8]) -> Result<u64, Halt> {
    let found = at.get(key)?;
    Ok(found.map_or(0, |value| String::from_utf8_lossy(&value).parse().expect("a number")))
}

fn all(at: &mut dyn Read, span: Span<'_>) -> Vec<Entry> {
    first(at, span, SCAN_ENTRIES.max as usize).unwrap()
}

fn first(at: &mut dyn Read, span: Span<'_>, limit: usize) -> Result<Vec<Entry>, Halt> {
    let mut found = Vec::new();
    at.scan(span, limit, &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Calls `body` from many threads, with the thread's number.
fn contend(body: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for n in 0..THREADS {
            let body = &body;
            scope.spawn(move || body(n));
        }
    });
}

pub(crate) fn a_job_sees_its_own_writes<E: Engine>() {
    let store = E::new().open().unwrap();
    put(&*store, "k", "old").unwrap();
    let seen = transact::<_, ()>(&*store, Lane::Admission, |txn: &mut dyn Txn| {
        txn.put(b"k", text("new"))?;
        let rewritten = txn.get(b"k")?;
        txn.delete(b"k")?;
        Ok((rewritten, txn.get(b"k")?))
    });
    assert_eq!(block_on(seen).unwrap().0, (Some(text("new")), None));
}

pub(crate) fn jobs_of_one_batch_see_each_other_in_order<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    let (settled, fates) = mpsc::channel();
    let jobs = (0..50_usize).map(|n| {
        Probe::boxed(n, &settled, move |txn| {
            let count = number(txn, b"count")?;
            assert_eq!(count, n as u64, "submitted in order, run in order");
            txn.put(b"count", text(&(count + 1).to_string()))
        })
    });
    engine.submit_together(&*store, jobs.collect());
    let mut told: Vec<_> = fates.iter().take(50).collect();
    told.sort_by_key(|(n, _)| *n);
    let seqs: Vec<_> = told
        .into_iter()
        .map(|(_, fate)| match fate {
            Fate::Committed(seq) => seq,
            other => panic!("expected a commit, got {other:?}"),
        })
        .collect();
    assert!(seqs.is_sorted_by(|earlier, later| earlier < later), "submitted in order, numbered in order");
    assert_eq!(value(&*store, "count").unwrap().as_deref(), Some("50"));
}

/// Two rows, each written by who read both: their sum must never fall below zero.
pub(crate) fn write_skew_is_impossible<E: Engine>() {
    let store = E::new().open().unwrap();
    put(&*store, "x", "20").unwrap();
    put(&*store, "y", "20").unwrap();
    contend(|n| {
        for _ in 0..20 {
            let own: &[u8] = if n % 2 == 0 { b"x" } else { b"y" };
            let withdrawn = transact(&*store, Lane::Admission, move |txn: &mut dyn Txn| {
                let sum = number(txn, b"x")? + number(txn, b"y")?;
                let mine = number(txn, own)?;
                if sum == 0 || mine == 0 {
                    return Err(Abort::Refused("empty"));
                }
                txn.put(own, text(&(mine - 1).to_string()))?;
                Ok(())
            });
            match block_on(withdrawn) {
                Ok(_) | Err(TransactError::Refused { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    });
    let sum = query(&*store, |at| Ok(number(at, b"x")? + number(at, b"y")?));
    assert_eq!(block_on(sum).unwrap(), 0, "160 tries for 40: all are gone, none twice");
}

/// Everyone counts a range and adds to it below a bound: the bound must hold.
pub(crate) fn phantoms_are_impossible<E: Engine>() {
    let store = E::new().open().unwrap();
    contend(|n| {
        for i in 0..10 {
            let key = format!("seat/{n}/{i}");
            let booked = transact(&*store, Lane::Admission, move |txn: &mut dyn Txn| {
                if all(txn, Span::prefix(b"seat/")).len() == 13 {
                    return Err(Abort::Refused("full"));
                }
                txn.put(key.as_bytes(), text("taken"))?;
                Ok(())
            });
            match block_on(booked) {
                Ok(_) | Err(TransactError::Refused { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    });
    let seats = query(&*store, |at| Ok(all(at, Span::prefix(b"seat/")).len()));
    assert_eq!(block_on(seats).unwrap(), 13);
}

pub(crate) fn one_of_many_creators_wins<E: Engine>() {
    let store = E::new().open().unwrap();
    for round in 0..10 {
        let winners = mpsc::channel();
        contend(|n| {
            let key = format!("entity-{round}");
            let created = transact(&*store, Lane::Admission, move |txn: &mut dyn Txn| {
                if let Some(winner) = txn.get(key.as_bytes())? {
                    return Err(Abort::Refused(winner));
                }
                txn.put(key.as_bytes(), text(&n.to_string()))?;
                Ok(())
            });
            let winner = match block_on(created) {
                Ok(_) => text(&n.to_string()),
                Err(TransactError::Refused { reason, .. }) => reason,
                Err(other) => panic!("expected a winner or a refusal, got {other:?}"),
            };
            winners.0.send(winner).unwrap();
        });
        let told: Vec<_> = winners.1.try_iter().collect();
        assert_eq!(told.len(), THREADS);
        assert!(told.iter().all(|winner| *winner == told[0]), "{told:?}");
    }
}

/// N threads x M swaps: each swap that was told "done" is in the sum.
pub(crate) fn compare_and_swap_loses_no_update<E: Engine>() {
    let store = E::new().open().unwrap();
    let swap = |store: &dyn Store, expected: u64| {
        block_on(transact(store, Lane::Admission, move |txn: &mut dyn Txn| {
            let found = number(txn, b"version")?;
            if found != expected {
                return Err(Abort::Refused(found));
            }
            txn.put(b"version", text(&(found + 1).to_string()))?;
            Ok(())
        }))
    };
    contend(|_| {
        let mut expected = 0;
        let mut done = 0;
        while done < 25 {
            match swap(&*store, expected) {
                Ok(_) => {
                    done += 1;
                    expected += 1;
                }
                Err(TransactError::Refused { reason, .. }) => expected = reason,
                Err(other) => panic!("{other}"),
            }
        }
    });
    let version = value(&*store, "version").unwrap();
    assert_eq!(version, Some((THREADS * 25).to_string()));
}

/// Random writes and scans of jobs in batches, against a map: durable entries, the batch's and
/// the job's own, with removals in each, must merge to what one ordered map holds.
pub(crate) fn scans_agree_with_a_model_over_all_layers<E: Engine>() {
    for seed in 0..8_u64 {
        let mut engine = E::new();
        let store = engine.open().unwrap();
        let mut random = Random::new(seed);
        for _ in 0..6 {
            let (settled, fates) = mpsc::channel();
            let jobs = (0..6).map(|n| {
                let mut random = Random::new(random.number());
                Probe::boxed(n, &settled, move |txn| {
                    // What the earlier layers hold is the model's start.
                    let mut model: BTreeMap<_, _> = all(txn, Span::all()).into_iter().collect();
                    for _ in 0..12 {
                        step(&mut random, txn, &mut model)?;
                    }
                    assert_eq!(all(txn, Span::all()), model.into_iter().collect::<Vec<_>>(), "seed {seed}");
                    Ok(())
                })
            });
            engine.submit_together(&*store, jobs.collect());
            for (_, fate) in fates.iter().take(6) {
                assert!(matches!(fate, Fate::Committed(_)), "seed {seed}: {fate:?}");
            }
        }
    }
}

fn step(random: &mut Random, txn: &mut dyn Txn, model: &mut BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), Halt> {
    let mut key = || format!("k{:02}", random.below(40)).into_bytes();
    let (one, other) = (key(), key());
    match random.below(4) {
        0 | 1 => {
            let value = random.number().to_string().into_bytes();
            txn.put(&one, value.clone().into())?;
            model.insert(one, value);
        }
        2 => {
            txn.delete(&one)?;
            model.remove(&one);
        }
        _ => {
            let limit = random.below(12) as usize;
            let entry = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
            let between = || model.iter().filter(|(key, _)| **key >= one && **key < other).map(entry);
            let span = Span::between(&one, &other);
            assert_eq!(first(txn, span.clone(), limit)?, between().take(limit).collect::<Vec<_>>());
            assert_eq!(first(txn, span.back(), limit)?, between().rev().take(limit).collect::<Vec<_>>());
            let above = model.iter().filter(|(key, _)| **key > one).map(entry);
            assert_eq!(all(txn, Span::prefix(b"k").after(&one)), above.collect::<Vec<_>>());
            let below = model.iter().filter(|(key, _)| **key < one).map(entry);
            assert_eq!(all(txn, Span::prefix(b"k").back().after(&one)), below.rev().collect::<Vec<_>>());
            assert_eq!(txn.get(&one)?.as_deref(), model.get(&one).map(|v| &**v));
        }
    }
    Ok(())
}

/// Up and down, over entries of each layer with removals in between, ended by the limit or by who reads.
pub(crate) fn a_walk_in_pages_is_the_whole_walk<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    for key in ["a", "b", "c", "d", "e"] {
        put(&*store, key, "durable").unwrap();
    }
    let (settled, fates) = mpsc::channel();
    let below = Probe::boxed(0, &settled, |txn| {
        txn.delete(b"b")?;
        txn.put(b"c", text("batch"))?;
        txn.put(b"f", text("batch"))?;
        txn.put(b"g", text("batch"))
    });
    let own = Probe::boxed(1, &settled, |txn| {
        txn.delete(b"d")?;
        txn.delete(b"f")?;
        txn.put(b"e", text("own"))?;
        txn.put(b"h", text("own"))?;
        paged(txn)
    });
    engine.submit_together(&*store, vec![below, own]);
    for (n, fate) in fates.iter().take(2) {
        assert!(matches!(fate, Fate::Committed(_)), "{n}: {fate:?}");
    }
    block_on(query(&*store, paged)).unwrap();
}

fn paged(at: &mut dyn Read) -> Result<(), Halt> {
    let inner = Span::between(b"b", b"h");
    for (span, whole) in [
        (Span::all(), "a c e g h"),
        (Span::all().back(), "h g e c a"),
        (inner.clone(), "c e g"),
        (inner.back(), "g e c"),
    ] {
        for page in 1..=6 {
            assert_eq!(in_pages(at, &span, page, usize::MAX)?, whole, "limited to {page}");
            assert_eq!(in_pages(at, &span, 9, page)?, whole, "broken off at {page}");
        }
    }
    Ok(())
}

/// The keys of `span`, read by one walk after the other; each stops at `limit`, and is broken off at `enough`.
fn in_pages(at: &mut dyn Read, span: &Span<'_>, limit: usize, enough: usize) -> Result<String, Halt> {
    let mut found: Vec<String> = Vec::new();
    // As many as the smallest pages need, and one that finds nothing: a walk that does not resume ends too.
    for _ in 0..6 {
        let before = found.len();
        let last = found.last().cloned();
        let rest = match &last {
            Some(last) => span.clone().after(last.as_bytes()),
            None => span.clone(),
        };
        at.scan(rest, limit, &mut |key, _| {
            found.push(String::from_utf8_lossy(key).into_owned());
            if found.len() - before == enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if found.len() - before < limit.min(enough) {
            break;
        }
    }
    Ok(found.join(" "))
}

pub(crate) fn a_query_sees_one_durable_state<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    let first = put(&*store, "a", "1").unwrap();
    engine.hold();
    let (settled, fates) = mpsc::channel();
    let job = Probe::boxed(0, &settled, |txn| {
        txn.put(b"a", text("2"))?;
        txn.put(b"b", text("2"))
    });
    engine.submit_together(&*store, vec![job]);
    engine.wait_until_held();
    let seen = query(&*store, |at| Ok((at.stamp().seq, all(at, Span::all()).len(), at.get(b"a")?)));
    assert_eq!(block_on(seen).unwrap(), (first, 1, Some(text("1"))));
    engine.release();
    assert!(matches!(fates.recv().unwrap().1, Fate::Committed(_)));
    assert_eq!(value(&*store, "b").unwrap().as_deref(), Some("2"));
}

pub(crate) fn odd_spans_are_walked_or_empty<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    let keys: [&[u8]; 5] = [&[2], b"a", &[254, 255], &[255], &[255, 255, 1]];
    let (settled, fates) = mpsc::channel();
    // Half of them durable, half in the job's own layer.
    for key in [&keys[..3], &keys[3..]].map(|part| part.to_vec()) {
        let job = Probe::boxed(0, &settled, move |txn| {
            for key in &key {
                txn.put(key, text("v"))?;
            }
            let mut count = |span: Span<'_>| {
                let (found, mut back) = (all(txn, span.clone()), all(txn, span.back()));
                back.reverse();
                assert_eq!(found, back);
                found.len()
            };
            let here = count(Span::all());
            assert_eq!(count(Span::prefix(b"")), here);
            assert_eq!(count(Span::starting(&[])), here);
            assert_eq!(count(Span::prefix(&[1])), 0, "the store's own");
            assert_eq!(count(Span::between(b"b", b"a")), 0, "inverted");
            assert_eq!(count(Span::between(b"a", b"a")), 0);
            assert_eq!(count(Span::between(b"", b"").after(b"")), 0);
            assert_eq!(count(Span::between(b"a", b"b").after(b"z")), 0);
            assert_eq!(count(Span::prefix(b"a").after(b"a")), 0);
            assert_eq!(count(Span::between(b"", b"").back().after(b"")), 0);
            assert_eq!(count(Span::between(b"a", b"b").back().after(b"a")), 0);
            assert_eq!(count(Span::between(b"a", b"b").back().after(b"")), 0);
            assert_eq!(count(Span::all().back().after(&[2])), 0, "nothing of the store's own");
            assert_eq!(count(Span::all().back().after(&[1, 1])), 0);
            assert_eq!(count(Span::prefix(&[254, 255])), 1);
            let above = here - 3;
            assert_eq!(count(Span::prefix(&[255])), above);
            assert_eq!(count(Span::prefix(&[255, 255])), above.saturating_sub(1));
            Ok(())
        });
        engine.submit_together(&*store, vec![job]);
        let fate = fates.recv().unwrap().1;
        assert!(matches!(fate, Fate::Committed(_)), "{fate:?}");
    }
}
