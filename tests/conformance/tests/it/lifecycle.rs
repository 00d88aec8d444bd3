//! Opening, closing, and who may.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use interlock_conformance::{Engine, Probe, block_on, put, text, value};
use interlock_store::{Condition, Fate, Halt, Job, Lane, Store, StoreError, TransactError, Txn, transact};

const LONG: Duration = Duration::from_secs(60);

pub(crate) fn what_was_written_is_there_after_a_close<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    put(&*store, "k", "v").unwrap();
    block_on(store.close(LONG)).unwrap();
    drop(store);
    let store = engine.open().unwrap();
    assert_eq!(value(&*store, "k").unwrap().as_deref(), Some("v"));
    // Dropping without closing keeps it too.
    drop(store);
    let store = engine.open().unwrap();
    assert_eq!(value(&*store, "k").unwrap().as_deref(), Some("v"));
}

pub(crate) fn a_close_drains_the_queue<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    put(&*store, "before", "1").unwrap();
    engine.hold();
    let (settled, fates) = mpsc::channel();
    let first = Probe::boxed(0, &settled, |txn| txn.put(b"first", text("1")));
    engine.submit_together(&*store, vec![first]);
    engine.wait_until_held();
    for n in 1..100 {
        let job = Probe::boxed(n, &settled, |txn| txn.put(b"last", text("1")));
        store.submit(Lane::Admission, job).unwrap();
    }
    engine.release();
    block_on(store.close(LONG)).unwrap();
    let told: Vec<_> = fates.try_iter().collect();
    assert_eq!(told.len(), 100, "all are settled before close returns");
    for (n, fate) in told {
        assert!(matches!(fate, Fate::Committed(_)), "job {n}: {fate:?}");
    }
    drop(store);
    let store = engine.open().unwrap();
    assert_eq!(value(&*store, "last").unwrap().as_deref(), Some("1"));
}

pub(crate) fn a_closed_store_refuses<E: Engine>() {
    let store = E::new().open().unwrap();
    assert_eq!(store.health().condition, Condition::Ready);
    block_on(store.close(LONG)).unwrap();
    block_on(store.close(LONG)).unwrap();
    assert_eq!(store.health().condition, Condition::Closed);
    let refused = transact::<(), ()>(&*store, Lane::Completion, |_: &mut dyn Txn| Ok(()));
    assert_eq!(block_on(refused), Err(TransactError::Full { lane: Lane::Completion, why: StoreError::Closed }));
    assert_eq!(value(&*store, "k"), Err(StoreError::Closed));
}

pub(crate) fn a_second_open_is_refused<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    match engine.open() {
        Err(StoreError::AlreadyOpen { .. }) => {}
        Err(other) => panic!("expected it to be open already, got {other}"),
        Ok(_) => panic!("two stores on one place"),
    }
    put(&*store, "k", "the first one goes on").unwrap();
    block_on(store.close(LONG)).unwrap();
    engine.open().unwrap();
}

pub(crate) fn a_newer_format_is_refused<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    put(&*store, "k", "v").unwrap();
    block_on(store.close(LONG)).unwrap();
    drop(store);
    engine.set_format(9);
    let Err(error) = engine.open() else {
        panic!("expected a refusal");
    };
    let expected = StoreError::NewerFormat { found: 9, supported: 1 };
    assert_eq!(error, expected);
    engine.set_format(1);
    let store = engine.open().unwrap();
    assert_eq!(value(&*store, "k").unwrap().as_deref(), Some("v"));
}

/// Submits the next of a chain when it is settled.
struct Chain {
    store: Arc<dyn Store>,
    left: u32,
    done: mpsc::Sender<()>,
}

impl Job for Chain {
    fn run(&mut self, txn: &mut dyn Txn) -> Result<(), Halt> {
        txn.put(b"left", text(&self.left.to_string()))
    }

    fn settle(self: Box<Self>, fate: Fate) {
        assert!(matches!(fate, Fate::Committed(_)));
        if self.left == 0 {
            self.done.send(()).unwrap();
            return;
        }
        let next = Chain { store: self.store.clone(), left: self.left - 1, done: self.done.clone() };
        self.store.submit(Lane::Completion, Box::new(next)).unwrap();
    }
}

pub(crate) fn settling_may_submit<E: Engine>() {
    let mut engine = E::new();
    let store = engine.open().unwrap();
    let (done, ended) = mpsc::channel();
    let first = Chain { store: store.clone(), left: 2_000, done };
    // Deeper than a stack: an engine must not settle by recursion.
    let submitting = thread::Builder::new().stack_size(256 * 1024);
    submitting
        .spawn({
            let store = store.clone();
            move || store.submit(Lane::Admission, Box::new(first)).unwrap()
        })
        .unwrap()
        .join()
        .unwrap();
    ended.recv().unwrap();
    assert_eq!(value(&*store, "left").unwrap().as_deref(), Some("0"));
}
