//! Clients' requests for leases that are under way, by grant.
//!
//! A client whose connection breaks asks again under the same grant, and the host may find the broken one out only
//! after it has answered the next. So a place in line, or what was granted meanwhile, is given back once the last
//! request of its grant is gone, and only if none of them was told that it has the lease. Who asks while it is being
//! given back waits for that.

use crate::core::Core;
use interlock_kernel::command::{Command, Verb};
use interlock_kernel::ids::{GrantId, LeaseName, Principal};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

type Of = (LeaseName, GrantId);

/// See the module.
#[derive(Default)]
pub(crate) struct Standings {
    table: Mutex<BTreeMap<Of, Standing>>,
    /// Told when something was given back.
    given_back: Notify,
}

#[derive(Default)]
struct Standing {
    requests: usize,
    /// One of them was told that it has it.
    told: bool,
    /// One of them has left a place.
    left: bool,
    giving_back: bool,
}

impl Standings {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Of, Standing>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request under way; over when this is dropped.
pub(crate) struct Asking {
    core: Arc<Core>,
    by: Principal,
    of: Of,
    in_line: bool,
}

impl Asking {
    /// Begins one.
    pub(crate) async fn begin(core: &Arc<Core>, by: Principal, lease: &LeaseName, grant: &GrantId) -> Self {
        let of = (lease.clone(), grant.clone());
        loop {
            let given_back = core.standings().given_back.notified();
            tokio::pin!(given_back);
            given_back.as_mut().enable();
            {
                let mut table = core.standings().lock();
                let standing = table.entry(of.clone()).or_default();
                if !standing.giving_back || core.is_refusing() {
                    standing.requests = standing.requests.saturating_add(1);
                    return Self { core: core.clone(), by, of, in_line: false };
                }
            }
            tokio::select! {
                biased;
                () = &mut given_back => {}
                () = core.stopped() => {}
            }
        }
    }

    /// It has a place in line, or has it no more.
    pub(crate) fn stands(&mut self, in_line: bool) {
        self.in_line = in_line;
    }

    /// It was told that it has the lease.
    pub(crate) fn told(&mut self) {
        self.in_line = false;
        if let Some(standing) = self.core.standings().lock().get_mut(&self.of) {
            standing.told = true;
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut table = self.core.standings().lock();
        let Some(standing) = table.get_mut(&self.of) else { return };
        standing.requests = standing.requests.saturating_sub(1);
        standing.left |= self.in_line;
        if standing.requests > 0 {
            return;
        }
        if !standing.left || standing.told {
            table.remove(&self.of);
            return;
        }
        standing.giving_back = true;
        let (core, by, of) = (self.core.clone(), self.by.clone(), self.of.clone());
        self.core.runtime().spawn(async move {
            let verb = Verb::Withdraw { lease: of.0.clone(), grant: of.1.clone() };
            core.insist(Command { by, verb }).await;
            core.standings().lock().remove(&of);
            core.standings().given_back.notify_waiters();
        });
    }
}
