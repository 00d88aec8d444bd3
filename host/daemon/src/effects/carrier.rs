//! Makes the coordinator's requests, by the operator's configuration.

use super::configuration::Configuration;
use super::outbound::{answer_bytes_max, outbound};
use super::result::{refused, tried};
use interlock_coordinator::Courier;
use interlock_courier::BadRoots;
use interlock_kernel::command::{Sending, Tried};
use interlock_store::{BoxFuture, Clock};
use std::sync::Arc;

/// Makes requests over HTTP.
#[derive(Debug)]
pub(crate) struct Carrier {
    courier: interlock_courier::Courier,
    clock: Arc<dyn Clock>,
}

impl Carrier {
    /// One that goes by this configuration.
    ///
    /// # Errors
    /// Certificates that it names and that cannot be used.
    pub(crate) fn new(configuration: Configuration, clock: Arc<dyn Clock>) -> Result<Self, BadRoots> {
        Ok(Self { courier: interlock_courier::Courier::new(configuration.0)?, clock })
    }

    /// Goes by another configuration from the next try on.
    ///
    /// # Errors
    /// As [`Carrier::new`]; the one before stays.
    pub(crate) fn replace(&self, configuration: Configuration) -> Result<(), BadRoots> {
        self.courier.replace(configuration.0)
    }

    /// What it goes by.
    pub(crate) fn configuration(&self) -> Configuration {
        Configuration((*self.courier.allowed()).clone())
    }

    async fn carry(&self, sending: &Sending) -> Tried {
        let Sending { entity, number, effect, .. } = sending;
        let began = self.clock.monotonic();
        let tried = match outbound(sending) {
            Ok(outbound) => {
                let made = self.courier.send(&outbound).await;
                tried(&made, self.clock.wall_ms(), answer_bytes_max(sending))
            }
            Err((rule, why)) => {
                tracing::warn!(%entity, number, target = %effect.target, %rule, why, "an effect is no request");
                refused(rule)
            }
        };
        let took = self.clock.monotonic().saturating_sub(began);
        let what = word(&tried);
        tracing::info!(%entity, number, effect = %effect.target, key = effect.key, nth = effect.tries, ?took, what, "effect tried");
        tried
    }
}

impl Courier for Carrier {
    fn send<'a>(&'a self, sending: &'a Sending) -> BoxFuture<'a, Tried> {
        Box::pin(self.carry(sending))
    }
}

fn word(tried: &Tried) -> &'static str {
    match tried {
        Tried::Done(_) => "done",
        Tried::Again { .. } => "again",
        Tried::Fenced(_) => "fenced",
        Tried::Failed(_) => "failed",
        Tried::Refused { .. } => "refused",
    }
}
