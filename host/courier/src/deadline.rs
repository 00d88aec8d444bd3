//! One bound on all steps of a try.

use crate::outbound::{Fault, SendError, Sent, Step};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Sleep;

/// When a try is over, whatever it is doing.
pub(crate) struct Deadline<'s> {
    pub(crate) over: Pin<&'s mut Sleep>,
    pub(crate) timeout: Duration,
}

impl Deadline<'_> {
    /// What the step comes to, or none if the time is over first.
    pub(crate) async fn within<T>(&mut self, step: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = step => Some(done),
            () = &mut self.over => None,
        }
    }

    /// The error for a step that did not end in time.
    pub(crate) fn error(&self, step: Step, sent: Sent) -> SendError {
        let got = format!("none within {} ms", self.timeout.as_millis());
        SendError::Broken { step, fault: Fault::Timeout, got, sent }
    }
}
