//! The two bounded lanes in front of the writer, and what else wakes it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::StoreError;
use crate::limits::{QUEUE_ADMISSIONS, QUEUE_COMPLETIONS};
use crate::store::{Full, Job, Lane};

/// Jobs of one batch: settling more at once costs latency and no longer saves pages.
pub(super) const BATCH_JOBS: usize = 256;

pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    completions: VecDeque<Box<dyn Job>>,
    admissions: VecDeque<Box<dyn Job>>,
    /// Jobs that must be waiting before the writer is worth waking; above any queue while it is
    /// awake.
    wake_at: usize,
    suspected: bool,
    closing: Option<Duration>,
    closed: bool,
}

/// Why the writer woke.
pub(super) enum Wake {
    Jobs,
    /// A reader found that the handle failed; the gate knows why.
    Suspected,
    /// Nothing to do, and closing.
    Close,
    /// The time given passed.
    Idle,
}

impl State {
    fn waiting(&self) -> usize {
        self.completions.len() + self.admissions.len()
    }
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue {
            state: Mutex::new(State {
                completions: VecDeque::new(),
                admissions: VecDeque::new(),
                wake_at: usize::MAX,
                suspected: false,
                closing: None,
                closed: false,
            }),
            wake: Condvar::new(),
        }
    }

    pub(super) fn push(&self, lane: Lane, job: Box<dyn Job>) -> Result<(), Full> {
        let mut state = self.lock();
        if state.closing.is_some() || state.closed {
            let why = StoreError::Closed;
            return Err(Full { job, lane, why });
        }
        let (queue, limit) = match lane {
            Lane::Completion => (&mut state.completions, QUEUE_COMPLETIONS),
            Lane::Admission => (&mut state.admissions, QUEUE_ADMISSIONS),
        };
        if let Err(why) = limit.check(queue.len() as u64 + 1) {
            return Err(Full { job, lane, why });
        }
        queue.push_back(job);
        if state.waiting() >= state.wake_at {
            state.wake_at = usize::MAX;
            drop(state);
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Waits for something to do, for up to `idle`.
    pub(super) fn wait(&self, idle: Duration) -> Wake {
        let mut state = self.lock();
        state.wake_at = 1;
        let (mut state, _) = self
            .wake
            .wait_timeout_while(state, idle, |state| {
                state.waiting() == 0 && !state.suspected && state.closing.is_none()
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.wake_at = usize::MAX;
        if std::mem::take(&mut state.suspected) {
            return Wake::Suspected;
        }
        match (state.waiting(), state.closing) {
            (0, Some(_)) => Wake::Close,
            (0, None) => Wake::Idle,
            _ => Wake::Jobs,
        }
    }

    /// Waits until `jobs` are queued, for up to `linger`.
    pub(super) fn linger(&self, jobs: usize, linger: Duration) {
        let mut state = self.lock();
        state.wake_at = jobs;
        let (mut state, _) = self
            .wake
            .wait_timeout_while(state, linger, |state| state.waiting() < jobs && state.closing.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        state.wake_at = usize::MAX;
    }

    /// Waits out a back-off; closing cuts it short.
    pub(super) fn back_off(&self, pause: Duration) {
        let state = self.lock();
        let _ = self.wake.wait_timeout_while(state, pause, |state| state.closing.is_none());
    }

    /// Moves up to a batch of jobs to `into`, completions first.
    pub(super) fn take(&self, into: &mut VecDeque<Box<dyn Job>>) {
        let mut state = self.lock();
        let state = &mut *state;
        for queue in [&mut state.completions, &mut state.admissions] {
            let room = BATCH_JOBS.saturating_sub(into.len()).min(queue.len());
            into.extend(queue.drain(..room));
        }
    }

    pub(super) fn lengths(&self) -> (usize, usize) {
        let state = self.lock();
        (state.completions.len(), state.admissions.len())
    }

    pub(super) fn suspect(&self) {
        self.lock().suspected = true;
        self.wake.notify_one();
    }

    /// Takes no more jobs; the writer ends when none is left or at `deadline`.
    pub(super) fn close(&self, deadline: Duration) {
        let mut state = self.lock();
        let earlier = state.closing.map_or(deadline, |known| known.min(deadline));
        state.closing = Some(earlier);
        drop(state);
        self.wake.notify_one();
    }

    pub(super) fn closing(&self) -> Option<Duration> {
        self.lock().closing
    }

    /// Everything that is left, for good.
    pub(super) fn end(&self) -> Vec<Box<dyn Job>> {
        self.lock().closed = true;
        self.take_all()
    }

    /// Everything that waits now.
    pub(super) fn take_all(&self) -> Vec<Box<dyn Job>> {
        let mut state = self.lock();
        let state = &mut *state;
        let completions = state.completions.drain(..);
        completions.chain(state.admissions.drain(..)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
