//! Leases as clients read them. A grant is nowhere in here: who has a lease is told by its label.

use super::{Clocks, lease_entry, rfc3339};
use crate::api::{LeaseBusyView, LeaseDelayView, LeaseHolderView, LeaseSummary, LeaseView, LeaseWaiterView};
use interlock_coordinator::LeaseView as Found;
use interlock_kernel::record::{Delay, Holder, Owner, Waiter};
use interlock_kernel::time::WallTime;

/// One lease, with what became of it.
pub(crate) fn lease(found: &Found, clocks: Clocks) -> LeaseView {
    let delay = found.lease.delay.as_ref().filter(|delay| delay.until > found.at);
    LeaseView {
        lease: found.name.to_string(),
        holder: found.lease.held(found.at).map(|held| holder(held, clocks)),
        delay: delay.map(|Delay { owner, until }| LeaseDelayView {
            owner: owner.shown(""),
            until: rfc3339(clocks.wall_of(*until)),
        }),
        line: waiting(found).map(|one| waiter(one, clocks)).collect(),
        entries: found.entries.iter().map(lease_entry).collect(),
    }
}

/// One lease in a list.
pub(crate) fn lease_summary(found: &Found, clocks: Clocks) -> LeaseSummary {
    LeaseSummary {
        lease: found.name.to_string(),
        holder: found.lease.held(found.at).map(|held| holder(held, clocks)),
        in_line: waiting(found).count(),
    }
}

/// Those whose patience is not over.
pub(crate) fn waiting(found: &Found) -> impl Iterator<Item = &Waiter> {
    let at = found.at;
    found.lease.line.iter().filter(move |waiter| waiter.until.is_none_or(|until| until > at))
}

/// Who has a lease.
pub(crate) fn holder(holder: &Holder, clocks: Clocks) -> LeaseHolderView {
    LeaseHolderView {
        owner: holder.owner.shown(&holder.label),
        execution: matches!(holder.owner, Owner::Execution(_)),
        token: holder.token.get(),
        since: rfc3339(holder.since),
        renewed: rfc3339(holder.renewed),
        until: rfc3339(clocks.wall_of(holder.until)),
        hold_until: rfc3339(clocks.wall_of(holder.hold_until)),
        ttl_ms: holder.terms.ttl_ms,
    }
}

fn waiter(waiter: &Waiter, clocks: Clocks) -> LeaseWaiterView {
    LeaseWaiterView {
        owner: waiter.owner.shown(&waiter.label),
        since: rfc3339(waiter.since),
        until: waiter.until.map(|until| rfc3339(clocks.wall_of(until))),
    }
}

impl LeaseBusyView {
    /// Reads what the kernel says of a lease in a refusal.
    pub(crate) fn read(detail: &serde_json::Value) -> Option<Self> {
        let number = |name: &str| detail.get(name)?.as_u64();
        let time = |name: &str| detail.get(name)?.as_i64().map(|ms| rfc3339(WallTime(ms)));
        Some(Self {
            in_line: number("in_line")?,
            owner: detail.get("owner").and_then(|owner| owner.as_str()).map(str::to_owned),
            token: number("token"),
            since: time("since_ms"),
            renewed: time("renewed_ms"),
            left_ms: number("left_ms").or_else(|| number("delay_ms")),
        })
    }
}
