//! Closures as jobs: the two functions almost every caller wants.

use std::fmt;

use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::store::{Fate, Halt, Job, Lane, Query, Read, Seq, Store, Txn};

/// Why a closure given to [`transact`] stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abort<R> {
    /// It decided "no": none of its writes are kept.
    Refused(R),
    /// A call of the transaction failed; `?` makes this one.
    Halt(Halt),
}

impl<R> From<Halt> for Abort<R> {
    fn from(halt: Halt) -> Abort<R> {
        Abort::Halt(halt)
    }
}

impl<R> From<StoreError> for Abort<R> {
    fn from(error: StoreError) -> Abort<R> {
        Abort::Halt(Halt::Failed(error))
    }
}

/// Why [`transact`] wrote nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactError<R> {
    /// The closure decided "no"; what it read is durable.
    Refused {
        /// Its reason.
        reason: R,
        /// The number of the run that decided.
        seq: Seq,
    },
    /// The queue of the lane is full (or the store closing): the closure was not run.
    Full {
        /// The lane.
        lane: Lane,
        /// The limit.
        why: StoreError,
    },
    /// The store failed.
    Store(StoreError),
}

impl<R: fmt::Display> fmt::Display for TransactError<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransactError::Refused { reason, seq } => write!(f, "refused at {seq}: {reason}"),
            TransactError::Full { lane, why } => write!(f, "not queued as {lane:?}: {why}"),
            TransactError::Store(error) => error.fmt(f),
        }
    }
}

impl<R: fmt::Debug + fmt::Display> std::error::Error for TransactError<R> {}

struct OneShot<F, T, R> {
    body: F,
    last: Option<Result<T, Abort<R>>>,
    reply: oneshot::Sender<Result<(T, Seq), TransactError<R>>>,
}

impl<F, T, R> Job for OneShot<F, T, R>
where
    F: FnMut(&mut dyn Txn) -> Result<T, Abort<R>> + Send + 'static,
    T: Send + 'static,
    R: Send + 'static,
{
    fn run(&mut self, txn: &mut dyn Txn) -> Result<(), Halt> {
        self.last = None;
        let result = (self.body)(txn);
        let halted = match &result {
            Ok(_) => Ok(()),
            Err(Abort::Refused(_)) => Err(Halt::Abort),
            Err(Abort::Halt(halt)) => Err(halt.clone()),
        };
        self.last = Some(result);
        halted
    }

    fn settle(self: Box<Self>, fate: Fate) {
        let OneShot { last, reply, .. } = *self;
        let answer = match (fate, last) {
            (Fate::Committed(seq), Some(Ok(value))) => Ok((value, seq)),
            (Fate::Aborted(seq), Some(Err(Abort::Refused(reason)))) => Err(TransactError::Refused { reason, seq }),
            (Fate::Failed(error), _) => Err(TransactError::Store(error)),
            // `Halt::Abort` made up by the closure: a bug of the caller, told like a panic.
            (Fate::Committed(_) | Fate::Aborted(_), _) => Err(TransactError::Store(StoreError::Panicked {
                message: "the closure aborted without a reason".to_string(),
            })),
        };
        // The caller may have gone; the fate stands without a listener.
        let _ = reply.send(answer);
    }
}

/// Runs `body` as one serializable transaction and answers when its fate is durable.
///
/// `body` may run more than once. Write the closure's parameter as `|txn: &mut dyn Txn|`.
/// Dropping the future does not take the job back.
///
/// # Errors
/// [`TransactError::Refused`] with the closure's reason, [`TransactError::Full`] if the lane is
/// full, else what the store could not do.
pub async fn transact<T, R>(
    store: &dyn Store,
    lane: Lane,
    body: impl FnMut(&mut dyn Txn) -> Result<T, Abort<R>> + Send + 'static,
) -> Result<(T, Seq), TransactError<R>>
where
    T: Send + 'static,
    R: Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    let job = Box::new(OneShot { body, last: None, reply });
    if let Err(full) = store.submit(lane, job) {
        return Err(TransactError::Full { lane: full.lane, why: full.why });
    }
    answer.await.unwrap_or_else(|_| {
        Err(TransactError::Store(StoreError::Indeterminate {
            why: "the store went away before it settled the job".to_string(),
        }))
    })
}

struct Ask<F, T> {
    body: F,
    last: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> Query for Ask<F, T>
where
    F: FnMut(&mut dyn Read) -> Result<T, Halt> + Send + 'static,
    T: Send + 'static,
{
    fn run(&mut self, at: &mut dyn Read) -> Result<(), Halt> {
        self.last = None;
        self.last = Some((self.body)(at)?);
        Ok(())
    }

    fn settle(self: Box<Self>, result: Result<Seq, StoreError>) {
        let Ask { last, reply, .. } = *self;
        let answer = result.and_then(|_| {
            last.ok_or_else(|| StoreError::Unavailable { why: "the query stopped without an answer".to_string() })
        });
        let _ = reply.send(answer);
    }
}

/// Runs `body` on the last durable state. The snapshot's number is in [`Read::stamp`].
///
/// # Errors
/// What kept the store from reading.
pub async fn query<T>(
    store: &dyn Store,
    body: impl FnMut(&mut dyn Read) -> Result<T, Halt> + Send + 'static,
) -> Result<T, StoreError>
where
    T: Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    store.query(Box::new(Ask { body, last: None, reply }));
    answer.await.unwrap_or(Err(StoreError::Closed))
}
