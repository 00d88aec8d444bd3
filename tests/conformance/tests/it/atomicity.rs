//! All of a job or nothing of it.

use std::sync::mpsc;

use interlock_conformance::{Engine, Probe, block_on, put, text, value};
use interlock_store::{Abort, Fate, Halt, Job, Lane, StoreError, TransactError, Txn, VALUE_BYTES, transact};

pub(crate) fn a_job_commits_all_of_its_writes<E: Engine>() {
    let store = E::new().open().unwrap();
    put(&*store, "old", "1").unwrap();
    let done = transact::<_, ()>(&*store, Lane::Admission, |txn: &mut dyn Txn| {
        txn.delete(b"old")?;
        txn.put(b"a", text("1"))?;
        txn.put(b"b", text("2"))?;
        Ok("done")
    });
    let (answer, seq) = block_on(done).unwrap();
    assert_eq!(answer, "done");
    assert_eq!(store.now().seq, seq.0);
    assert_eq!(value(&*store, "a").unwrap().as_deref(), Some("1"));
    assert_eq!(value(&*store, "b").unwrap().as_deref(), Some("2"));
    assert_eq!(value(&*store, "old").unwrap(), None);
}

pub(crate) fn a_refusal_leaves_no_trace_and_the_others_commit<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    let fates = three_with_a_bad_second(&engine, &*store, |_| Err(Halt::Abort));
    assert!(matches!(fates[1], Fate::Aborted(_)), "{:?}", fates[1]);

    let refused = transact::<(), _>(&*store, Lane::Admission, |txn: &mut dyn Txn| {
        txn.put(b"x", text("refused"))?;
        Err(Abort::Refused("sold out"))
    });
    match block_on(refused) {
        Err(TransactError::Refused { reason, .. }) => assert_eq!(reason, "sold out"),
        other => panic!("expected a refusal, got {other:?}"),
    }
    assert_eq!(value(&*store, "x").unwrap(), None);
}

pub(crate) fn a_panic_leaves_no_trace_and_the_others_commit<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    let fates = three_with_a_bad_second(&engine, &*store, |_| panic!("planted"));
    let message = "planted".to_string();
    assert_eq!(fates[1], Fate::Failed(StoreError::Panicked { message }));
}

pub(crate) fn a_job_that_swallows_a_failed_call_fails<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    let fates = three_with_a_bad_second(&engine, &*store, |txn| {
        let too_long = vec![0; VALUE_BYTES.max as usize + 1];
        let _ = txn.put(b"big", too_long.into());
        Ok(())
    });
    let Fate::Failed(StoreError::Limit { name, .. }) = &fates[1] else {
        panic!("expected a limit, got {:?}", fates[1]);
    };
    assert_eq!(*name, VALUE_BYTES.name);
}

/// Runs three jobs in one batch. Each writes; the second then does `bad`. The first and third
/// must commit and nothing of the second may be left.
fn three_with_a_bad_second<E: Engine>(
    engine: &E,
    store: &dyn interlock_store::Store,
    bad: fn(&mut dyn Txn) -> Result<(), Halt>,
) -> Vec<Fate> {
    let (settled, fates) = mpsc::channel();
    let jobs = (0..3).map(|n| {
        Probe::boxed(n, &settled, move |txn| {
            assert_eq!(
                txn.get(b"shared")?.map(|value| value.len()),
                (n > 0).then_some(1),
                "the second job's write is not seen by the third"
            );
            txn.put(format!("own-{n}").as_bytes(), text("1"))?;
            if n == 1 {
                txn.put(b"shared", text("torn"))?;
                return bad(txn);
            }
            txn.put(b"shared", text("1"))
        })
    });
    engine.submit_together(store, jobs.collect());
    let mut by_job: Vec<_> = fates.iter().take(3).collect();
    by_job.sort_by_key(|(n, _)| *n);
    let fates: Vec<Fate> = by_job.into_iter().map(|(_, fate)| fate).collect();
    assert!(matches!(fates[0], Fate::Committed(_)), "{:?}", fates[0]);
    assert!(matches!(fates[2], Fate::Committed(_)), "{:?}", fates[2]);
    assert_eq!(value(store, "own-0").unwrap().as_deref(), Some("1"));
    assert_eq!(value(store, "own-1").unwrap(), None);
    assert_eq!(value(store, "own-2").unwrap().as_deref(), Some("1"));
    assert_eq!(value(store, "shared").unwrap().as_deref(), Some("1"));
    fates
}

struct PanicsWhenSettled;

impl Job for PanicsWhenSettled {
    fn run(&mut self, txn: &mut dyn Txn) -> Result<(), Halt> {
        txn.put(b"kept", text("1"))
    }

    fn settle(self: Box<Self>, _fate: Fate) {
        panic!("planted");
    }
}

pub(crate) fn a_panic_while_settling_harms_nobody<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    engine.submit_together(&*store, vec![Box::new(PanicsWhenSettled)]);
    put(&*store, "after", "1").unwrap();
    assert_eq!(value(&*store, "kept").unwrap().as_deref(), Some("1"));
}
