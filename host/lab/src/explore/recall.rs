//! Remembering what steps do: a step that starts from the same and is told the same does the same, so a
//! search that plays an order again need not run it again.
//!
//! What a step can see is in the key: its documents, event, seed, version, moment, and every answer. Its
//! fencing token is, too, unless the component cannot read one.

use crate::hand::{Asked, Told};
use interlock_coordinator::{Attempt, Call, Ended, Executor, Probe, Reply, Snapshot, SubmitError, Written};
use interlock_kernel::doc::Digest;
use interlock_kernel::record::Failure;
use interlock_store::BoxFuture;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a step does next.
#[derive(Clone, Debug)]
enum Next {
    Asks(Asked),
    Ends(Ended),
}

#[derive(Default)]
struct Memory {
    next: HashMap<Digest, Next>,
    /// Beginnings that are run once more, since they were told something new.
    live: HashSet<Digest>,
    missed: bool,
    runs: usize,
}

/// Runs each attempt once, and plays it from memory from then on. Clones remember together.
#[derive(Clone)]
pub struct Recall {
    inner: Arc<dyn Executor>,
    sees_tokens: bool,
    memory: Arc<Mutex<Memory>>,
}

impl Recall {
    /// Over an executor. Whether steps see their tokens says what they import.
    pub fn new(inner: Arc<dyn Executor>, sees_tokens: bool) -> Self {
        Self { inner, sees_tokens, memory: Arc::default() }
    }

    /// Whether an attempt was told what none like it was told before: what was played since this was last
    /// asked has to be played again.
    #[must_use]
    pub fn missed(&self) -> bool {
        std::mem::take(&mut lock(&self.memory).missed)
    }

    /// Attempts that were run and not remembered.
    #[must_use]
    pub fn runs(&self) -> usize {
        lock(&self.memory).runs
    }
}

impl std::fmt::Debug for Recall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recall").field("sees_tokens", &self.sees_tokens).finish_non_exhaustive()
    }
}

impl Executor for Recall {
    fn start(&self, attempt: Attempt) {
        let begin = begins(&attempt, self.sees_tokens);
        let known = {
            let mut memory = lock(&self.memory);
            let known = memory.next.contains_key(&begin) && !memory.live.remove(&begin);
            memory.runs = memory.runs.saturating_add(usize::from(!known));
            known
        };
        if known {
            tokio::spawn(again(self.memory.clone(), begin, attempt));
        } else {
            let recorder = Recorder { memory: self.memory.clone(), at: Mutex::new(begin) };
            self.inner.start(attempt.watched_by(Arc::new(recorder)));
        }
    }
}

/// Plays an attempt from memory; like a runtime, ends it when its gate closes.
async fn again(memory: Arc<Mutex<Memory>>, begin: Digest, attempt: Attempt) {
    let gate = attempt.gate();
    let ended = tokio::select! {
        biased;
        closed = gate.closed() => Some(Ended::Failed(Failure {
            permanent: false,
            code: closed.why.to_owned(),
            reason: closed.text.into_owned(),
            retry_after_ms: None,
        })),
        ended = recite(&memory, begin, &attempt) => ended,
    };
    match ended {
        Some(ended) => attempt.finish(ended),
        None => {
            // Nobody can go on in the middle of a step: it is given up, and the whole world with it.
            let mut memory = lock(&memory);
            memory.live.insert(begin);
            memory.missed = true;
        }
    }
}

/// How it ends; none if nothing like it was told this before.
async fn recite(memory: &Mutex<Memory>, begin: Digest, attempt: &Attempt) -> Option<Ended> {
    let mut at = begin;
    loop {
        let next = lock(memory).next.get(&at).cloned();
        let told = match next? {
            Next::Ends(ended) => return Some(ended),
            Next::Asks(Asked::Save(change)) => written(attempt.save(change).await),
            Next::Asks(Asked::Transition(to, change)) => written(attempt.transition(to, change).await),
            Next::Asks(Asked::Reload) => read(attempt.reload().await),
            Next::Asks(Asked::LookAgain) => read(attempt.look_again().await),
            Next::Asks(Asked::StillHolds) => match attempt.still_holds().await {
                Ok(holds) => Told::Holds(holds),
                Err(error) => Told::Refused(error.into()),
            },
            Next::Asks(Asked::Lease(ask)) => match attempt.lease(ask).await {
                Ok(Some(held)) => Told::Leased(held.claim, held.ttl_ms),
                Ok(None) => Told::Released,
                Err(error) => Told::Refused(error),
            },
            Next::Asks(Asked::Rows(ask)) => match attempt.rows(ask).await {
                Ok((answers, replayed)) => Told::Rows(answers, replayed),
                Err(error) => Told::Refused(error),
            },
            Next::Asks(Asked::Query(ask)) => match attempt.query(ask).await {
                Ok(found) => Told::Found(found),
                Err(error) => Told::Refused(error),
            },
            Next::Asks(Asked::StillHoldsLease(claim)) => match attempt.still_holds_lease(&claim).await {
                Ok(holds) => Told::Holds(holds),
                Err(error) => Told::Refused(error.into()),
            },
        };
        at = after(at, &told, attempt.left_ms());
    }
}

fn written(answer: Result<Written, SubmitError>) -> Told {
    match answer {
        Ok(done) => Told::Written(done),
        Err(error) => Told::Refused(error),
    }
}

fn read(answer: Result<Snapshot, SubmitError>) -> Told {
    match answer {
        Ok(snapshot) => Told::Read(Box::new(snapshot)),
        Err(error) => Told::Refused(error),
    }
}

fn begins(attempt: &Attempt, sees_tokens: bool) -> Digest {
    let start = attempt.start();
    let token = sees_tokens.then_some(start.claim.token);
    let claim = (&start.claim.execution, start.claim.attempt, start.claim.read, token);
    let text = format!(
        "{claim:?} {} {:?} {} {} {} {} {:?} {:?} {:?} {:?} {}",
        start.revision,
        start.component,
        start.state,
        start.step,
        start.visit,
        start.base,
        start.cause,
        start.payload,
        start.documents,
        attempt.started(),
        attempt.left_ms()
    );
    Digest::of(&[text.as_bytes(), &attempt.seed()])
}

/// What a step knows once it was told something, `left_ms` before its deadline.
fn after(at: Digest, told: &Told, left_ms: u64) -> Digest {
    Digest::of(&[&at.0, format!("{told:?} {left_ms}").as_bytes()])
}

/// Writes down what an attempt does.
struct Recorder {
    memory: Arc<Mutex<Memory>>,
    at: Mutex<Digest>,
}

impl Recorder {
    fn note(&self, next: Next) {
        let at = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        // Whatever ends it from outside does so between two things that it does, and replaces none.
        lock(&self.memory).next.entry(at).or_insert(next);
    }
}

impl Probe for Recorder {
    fn before<'a>(&'a self, _attempt: &'a Attempt, call: Call<'a>) -> BoxFuture<'a, ()> {
        self.note(Next::Asks(Asked::of(&call)));
        Box::pin(std::future::ready(()))
    }

    fn after(&self, attempt: &Attempt, _call: Call<'_>, reply: Reply<'_>) {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        *at = after(*at, &Told::of(reply), attempt.left_ms());
    }

    fn over(&self, ended: Option<&Ended>) {
        // Without an ending its host was killed, or it vanished: nothing is known of what it would have done.
        if let Some(ended) = ended {
            self.note(Next::Ends(ended.clone()));
        }
    }
}

fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
