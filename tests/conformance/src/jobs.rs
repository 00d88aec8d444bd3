//! Jobs as tests want them: a closure, and word of its fate.

use std::future::Future;
use std::sync::mpsc;

use interlock_store::{Bytes, Fate, Halt, Job, Lane, StoreError, Txn, transact};

/// A settled job: the number it was given, and its fate.
pub type Settled = (usize, Fate);

/// A job made of a closure that reports its fate to a channel.
pub struct Probe<F> {
    id: usize,
    body: F,
    settled: mpsc::Sender<Settled>,
}

impl<F> Probe<F>
where
    F: FnMut(&mut dyn Txn) -> Result<(), Halt> + Send + 'static,
{
    /// A job that reports as `id`.
    pub fn boxed(id: usize, settled: &mpsc::Sender<Settled>, body: F) -> Box<dyn Job> {
        Box::new(Probe { id, body, settled: settled.clone() })
    }
}

impl<F> Job for Probe<F>
where
    F: FnMut(&mut dyn Txn) -> Result<(), Halt> + Send + 'static,
{
    fn run(&mut self, txn: &mut dyn Txn) -> Result<(), Halt> {
        (self.body)(txn)
    }

    fn settle(self: Box<Self>, fate: Fate) {
        // A test that saw enough may have dropped the receiver.
        let _ = self.settled.send((self.id, fate));
    }
}

/// Drives a future on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime of one thread").block_on(future)
}

/// A value from text.
pub fn text(text: &str) -> Bytes {
    text.as_bytes().into()
}

/// Commits one put.
///
/// # Errors
/// What the store says.
pub fn put(store: &dyn interlock_store::Store, key: &str, value: &str) -> Result<u64, StoreError> {
    let (key, value) = (key.to_string(), text(value));
    let done =
        transact::<(), ()>(
            store,
            Lane::Admission,
            move |txn: &mut dyn Txn| Ok(txn.put(key.as_bytes(), value.clone())?),
        );
    match block_on(done) {
        Ok(((), seq)) => Ok(seq.0),
        Err(interlock_store::TransactError::Store(error)) => Err(error),
        Err(interlock_store::TransactError::Full { why, .. }) => Err(why),
        Err(interlock_store::TransactError::Refused { .. }) => Err(StoreError::Closed),
    }
}

/// The durable value of `key`, as text.
///
/// # Errors
/// What the store says.
pub fn value(store: &dyn interlock_store::Store, key: &str) -> Result<Option<String>, StoreError> {
    let key = key.to_string();
    block_on(interlock_store::query(store, move |at| {
        let found = at.get(key.as_bytes())?;
        Ok(found.map(|value| String::from_utf8_lossy(&value).into_owned()))
    }))
}
