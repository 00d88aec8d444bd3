//! Queries and feed reads, on threads of their own: they never wait for a commit.
//!
//! A read that meets an I/O error asks the writer to open the file again and is run once more on
//! the new handle.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Shared;
use super::gate::{NoSnapshot, Snapshot};
use crate::error::StoreError;
use crate::feed::{self, ChangesError, FeedReply, Position};
use crate::limits::QUEUE_QUERIES;
use crate::meta::BatchRecord;
use crate::overlay::run_query;
use crate::store::{Query, Seq};

/// Runs of one query: the first, and one after the file was opened again.
const RUNS: usize = 2;

pub(super) enum Ask {
    Query(Box<dyn Query>),
    Feed { after: Position, reply: FeedReply },
}

/// What waits for a reader.
pub(super) struct Asks {
    state: Mutex<State>,
    arrived: Condvar,
}

struct State {
    waiting: VecDeque<Ask>,
    closed: bool,
}

impl Asks {
    pub(super) fn new() -> Asks {
        Asks { state: Mutex::new(State { waiting: VecDeque::new(), closed: false }), arrived: Condvar::new() }
    }

    /// Queues `ask`, or settles it at once with why it was not.
    pub(super) fn push(&self, ask: Ask) {
        let mut state = self.lock();
        let why = if state.closed {
            StoreError::Closed
        } else if let Err(full) = QUEUE_QUERIES.check(state.waiting.len() as u64 + 1) {
            full
        } else {
            state.waiting.push_back(ask);
            drop(state);
            self.arrived.notify_one();
            return;
        };
        drop(state);
        refuse(ask, why);
    }

    /// Ends the readers; what waits is told that the store is closed.
    pub(super) fn close(&self) {
        let left = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.waiting)
        };
        self.arrived.notify_all();
        for ask in left {
            refuse(ask, StoreError::Closed);
        }
    }

    fn pop(&self) -> Option<Ask> {
        let state = self.lock();
        let mut state = self
            .arrived
            .wait_while(state, |state| state.waiting.is_empty() && !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        state.waiting.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The life of one reader thread.
pub(super) fn serve(shared: &Arc<Shared>) {
    while let Some(ask) = shared.asks.pop() {
        match ask {
            Ask::Query(mut query) => {
                let result = read(shared, |snapshot| {
                    let record = BatchRecord::load(snapshot)?;
                    let stamp = shared.time.stamp(record.seq);
                    run_query(&mut *query, snapshot, stamp).map(|()| Seq(record.seq))
                });
                settle(query, result);
            }
            Ask::Feed { after, reply } => {
                let result = read(shared, |snapshot| match feed::read(snapshot, after) {
                    Err(ChangesError::Store(error)) => Err(error),
                    answer => Ok(answer),
                });
                // The watcher may have gone.
                let _ = reply.send(result.unwrap_or_else(|error| Err(ChangesError::Store(error))));
            }
        }
    }
}

fn read<T>(shared: &Shared, mut body: impl FnMut(&Snapshot) -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut result = Err(StoreError::Closed);
    for _ in 0..RUNS {
        let snapshot = match shared.gate.snapshot(shared.reads_wait) {
            Ok(snapshot) => snapshot,
            Err(NoSnapshot::Refused(error)) => return Err(error),
            Err(NoSnapshot::Failed(generation, failure)) => {
                shared.suspect(generation, &failure);
                result = Err(failure.into_store_error());
                continue;
            }
        };
        result = body(&snapshot);
        match snapshot.latched() {
            Some(failure) => shared.suspect(snapshot.generation, &failure),
            None => return result,
        }
    }
    result
}

fn refuse(ask: Ask, why: StoreError) {
    match ask {
        Ask::Query(query) => settle(query, Err(why)),
        Ask::Feed { reply, .. } => {
            let _ = reply.send(Err(ChangesError::Store(why)));
        }
    }
}

fn settle(query: Box<dyn Query>, result: Result<Seq, StoreError>) {
    if catch_unwind(AssertUnwindSafe(|| query.settle(result))).is_err() {
        tracing::error!("a query panicked while it was settled");
    }
}
