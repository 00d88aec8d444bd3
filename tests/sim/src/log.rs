//! The transcript of a run: what was decided, in order. The same seed gives the same lines.

use interlock_kernel::doc::Digest;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lines that are kept for a failure's sake when the whole transcript is not asked for.
const TAIL: usize = 40;

/// The transcript. Clones write the same one.
#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<Inner>>);

struct Inner {
    whole: bool,
    lines: VecDeque<String>,
    digest: Digest,
}

impl Log {
    pub(crate) fn new(whole: bool) -> Self {
        Self(Arc::new(Mutex::new(Inner { whole, lines: VecDeque::new(), digest: Digest([0; 32]) })))
    }

    /// One more line.
    pub(crate) fn say(&self, line: impl Into<String>) {
        let line = line.into();
        let mut inner = self.lock();
        inner.digest = Digest::of(&[&inner.digest.0, line.as_bytes()]);
        inner.lines.push_back(line);
        if !inner.whole && inner.lines.len() > TAIL {
            inner.lines.pop_front();
        }
    }

    /// The lines, or the last of them.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lock().lines.iter().cloned().collect()
    }

    /// Over every line there was.
    pub(crate) fn digest(&self) -> Digest {
        self.lock().digest
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
