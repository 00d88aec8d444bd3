//! Every named limit, from the list of limits itself: a new one without a probe fails here.

use std::ops::ControlFlow;
use std::sync::mpsc;

use interlock_conformance::{Engine, Probe, block_on, text, value};
use interlock_store::{
    Fate, Full, Halt, LIMITS, Lane, Limit, Read, Span, Store, StoreError, TransactError, Txn, VALUE_BYTES, query,
    transact,
};

pub(crate) fn every_limit_holds_at_its_maximum_and_refuses_one_more<E: Engine>() {
    for limit in LIMITS {
        let mut engine = E::new();
        let store = engine.open().unwrap();
        let probe: fn(&E, &dyn Store, u64) -> Result<(), StoreError> = match limit.name {
            "key.bytes" => |_, store, n| run(store, move |txn| txn.put(&vec![b'k'; n as usize], text("v"))),
            "value.bytes" => |_, store, n| {
                run(store, move |txn| txn.put(b"k", vec![0; n as usize].into()))?;
                run(store, move |txn| txn.note(vec![0; n as usize].into()))
            },
            "txn.writes" => |_, store, n| run(store, move |txn| write_and_note(txn, n)),
            "txn.bytes" => |_, store, n| run(store, move |txn| write_bytes(txn, n)),
            "scan.entries" => |_, store, n| {
                run(store, move |txn| scan(txn, n))?;
                block_on(query(store, move |at| scan(at, n)))
            },
            "queue.completions" => |engine, store, n| fill(engine, store, Lane::Completion, n),
            "queue.admissions" => |engine, store, n| fill(engine, store, Lane::Admission, n),
            // Queries on the engine in memory are answered before the call returns, so its
            // queue never fills; `io_errors` fills that of the redb engine.
            "queue.queries" => continue,
            other => panic!("limit {other} has no probe"),
        };
        if let Err(error) = probe(&engine, &*store, limit.max) {
            panic!("{} at its maximum: {error}", limit.name);
        }
        let error = probe(&engine, &*store, limit.max + 1).unwrap_err();
        assert_eq!(error, passed(limit, limit.max + 1));
        assert!(error.to_string().contains(limit.name));
    }
}

fn passed(limit: Limit, got: u64) -> StoreError {
    StoreError::Limit { name: limit.name, max: limit.max, got }
}

fn run(
    store: &dyn Store,
    mut body: impl FnMut(&mut dyn Txn) -> Result<(), Halt> + Send + 'static,
) -> Result<(), StoreError> {
    let done = transact::<(), ()>(store, Lane::Admission, move |txn: &mut dyn Txn| Ok(body(txn)?));
    match block_on(done) {
        Ok(_) => Ok(()),
        Err(TransactError::Store(error)) => Err(error),
        Err(other) => panic!("expected a commit or a limit, got {other:?}"),
    }
}

/// Puts, removals and notes count alike.
fn write_and_note(txn: &mut dyn Txn, n: u64) -> Result<(), Halt> {
    for i in 0..n {
        match i % 3 {
            0 => txn.put(format!("k{i}").as_bytes(), text("v"))?,
            1 => txn.delete(format!("k{i}").as_bytes())?,
            _ => txn.note(text("n"))?,
        }
    }
    Ok(())
}

fn write_bytes(txn: &mut dyn Txn, n: u64) -> Result<(), Halt> {
    let mut left = n;
    let mut i = 0_u8;
    while left > 0 {
        let key = [b'k', i];
        let value = (left - 2).min(VALUE_BYTES.max);
        txn.put(&key, vec![0; value as usize].into())?;
        // Never leave a rest too small for a key.
        left -= value + 2;
        if left == 1 {
            txn.note(vec![0].into())?;
            left = 0;
        }
        i += 1;
    }
    Ok(())
}

/// Up and down alike.
fn scan(at: &mut (impl Read + ?Sized), n: u64) -> Result<(), Halt> {
    let mut walk = |span: Span<'_>| at.scan(span, n as usize, &mut |_, _| ControlFlow::Continue(()));
    let (up, down) = (walk(Span::all()), walk(Span::all().back()));
    assert_eq!(up, down);
    down
}

/// One job stalls in its commit, `n` more wait behind it.
fn fill<E: Engine>(engine: &E, store: &dyn Store, lane: Lane, n: u64) -> Result<(), StoreError> {
    run(store, |txn| txn.put(b"k", text("u")))?;
    engine.hold();
    let (settled, fates) = mpsc::channel();
    let first = Probe::boxed(0, &settled, |txn| txn.put(b"k", text("v")));
    engine.submit_together(store, vec![first]);
    engine.wait_until_held();
    let mut submitted = 1;
    let mut result = Ok(());
    for i in 0..n {
        let job = Probe::boxed(1, &settled, |txn| txn.put(b"k", text("w")));
        match store.submit(lane, job) {
            Ok(()) => submitted += 1,
            Err(Full { why, lane: told, .. }) => {
                assert_eq!((i, told), (n - 1, lane), "full too early");
                assert!(why.is_retryable());
                result = Err(why);
            }
        }
    }
    engine.release();
    for (_, fate) in fates.iter().take(submitted) {
        assert!(matches!(fate, Fate::Committed(_)), "nothing is lost");
    }
    result
}

pub(crate) fn a_job_over_a_limit_fails_alone<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    let (settled, fates) = mpsc::channel();
    let jobs = (0..3_usize).map(|n| {
        Probe::boxed(n, &settled, move |txn| {
            let bytes = if n == 1 { VALUE_BYTES.max + 1 } else { 8 };
            txn.put(format!("k{n}").as_bytes(), vec![b'v'; bytes as usize].into())
        })
    });
    engine.submit_together(&*store, jobs.collect());
    for (n, fate) in fates.iter().take(3) {
        match n {
            1 => assert_eq!(fate, Fate::Failed(passed(VALUE_BYTES, VALUE_BYTES.max + 1))),
            _ => assert!(matches!(fate, Fate::Committed(_))),
        }
    }
    assert!(value(&*store, "k0").unwrap().is_some());
    assert!(value(&*store, "k1").unwrap().is_none());
}

pub(crate) fn reserved_keys_are_refused<E: Engine>() {
    let store = E::new().open().unwrap();
    for key in [&[][..], &[0], &[1], &[1, 255], &[0, 9]] {
        let refused = Err(StoreError::ReservedKey { key: key.to_vec() });
        let key = key.to_vec();
        assert_eq!(
            run(&*store, {
                let key = key.clone();
                move |txn| txn.put(&key, text("v"))
            }),
            refused
        );
        assert_eq!(
            run(&*store, {
                let key = key.clone();
                move |txn| txn.delete(&key)
            }),
            refused
        );
        let read = query(&*store, move |at| at.get(&key).map(|_| ()));
        assert_eq!(block_on(read), refused);
    }
    // The lowest allowed key, and no sight of what lies below it.
    run(&*store, |txn| {
        txn.note(text("n"))?;
        txn.put(&[2], text("v"))
    })
    .unwrap();
    let spans = [Span::all(), Span::starting(&[0]), Span::between(&[0], &[9])];
    for span in spans.clone().into_iter().chain(spans.map(Span::back)) {
        let (from_all, to_all) = (span, std::sync::Arc::new(std::sync::Mutex::new(Vec::new())));
        let seen = to_all.clone();
        let walk = query(&*store, move |at| {
            seen.lock().unwrap().clear();
            at.scan(from_all.clone(), 10, &mut |key, _| {
                seen.lock().unwrap().push(key.to_vec());
                ControlFlow::Continue(())
            })
        });
        block_on(walk).unwrap();
        assert_eq!(*to_all.lock().unwrap(), [vec![2]]);
    }
}
