//! The gate of an attempt: open while it may go on, closed once and for good.
//!
//! Closing is not what makes a late write harmless (its token does that, in the transaction); it is
//! what makes the guest stop soon.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// Whether an attempt may go on. Clones are the same gate.
#[derive(Clone, Default)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    closed: OnceLock<Closed>,
    notify: Notify,
}

/// Why an attempt may not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// A short stable name: `fenced`, `idle-deadline`, `total-deadline`, `shutdown`.
    pub why: &'static str,
    /// For people.
    pub text: Cow<'static, str>,
}

impl Closed {
    /// Somebody else may write now.
    pub const FENCED: &'static str = "fenced";
    /// Too long without progress.
    pub const IDLE_DEADLINE: &'static str = "idle-deadline";
    /// Too long in all.
    pub const TOTAL_DEADLINE: &'static str = "total-deadline";
    /// The host stops.
    pub const SHUTDOWN: &'static str = "shutdown";
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.why, self.text)
    }
}

impl std::error::Error for Closed {}

impl Gate {
    /// Passes while the gate is open. Cheap: call it before every import.
    ///
    /// # Errors
    /// [`Closed`], for good.
    pub fn check(&self) -> Result<(), Closed> {
        self.inner.closed.get().map_or(Ok(()), |closed| Err(closed.clone()))
    }

    /// Completes when the gate closes. Cancel safe.
    pub async fn closed(&self) -> Closed {
        loop {
            let notified = self.inner.notify.notified();
            if let Some(closed) = self.inner.closed.get() {
                return closed.clone();
            }
            notified.await;
        }
    }

    /// Closes it; false if it was closed already, for whatever reason.
    pub(crate) fn close(&self, why: &'static str, text: impl Into<Cow<'static, str>>) -> bool {
        let first = self.inner.closed.set(Closed { why, text: text.into() }).is_ok();
        self.inner.notify.notify_waiters();
        first
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("closed", &self.inner.closed.get()).finish()
    }
}
