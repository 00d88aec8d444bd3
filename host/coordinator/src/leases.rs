//! Leases as clients see them: taken, waited for, read.

use crate::codec;
use crate::core::Core;
use crate::error::SubmitError;
use crate::read::look;
use crate::standing::Asking;
use interlock_kernel::command::{Acquire, Command, Outcome, Verb};
use interlock_kernel::ids::{LeaseName, Principal};
use interlock_kernel::record::{Key, Lease, LeaseEntry, Owner, Record};
use interlock_kernel::time::StoreTime;
use interlock_kernel::view::{LeaseClaim, View};
use interlock_store::{Span, StoreError};
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::{Notify, oneshot};

/// Entries shown with one lease.
const ENTRIES_MAX: usize = 64;

/// Leases of one page.
const PAGE_MAX: usize = 1_000;

/// A lease, its record and the store time it was read at.
#[derive(Clone, Debug)]
pub struct LeaseView {
    /// Its name.
    pub name: LeaseName,
    /// Who has it, and who waits for it.
    pub lease: Lease,
    /// When this was so.
    pub at: StoreTime,
    /// What became of it, newest first; only where one lease is asked for.
    pub entries: Vec<LeaseEntry>,
}

/// Who waits for a lease is woken while this lives.
struct Place {
    core: Arc<Core>,
    lease: LeaseName,
    notify: Arc<Notify>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.core.lines().leave(&self.lease);
    }
}

/// Takes a lease, standing in line as long as the request says. Dropping the future gives the place, or
/// what was granted meanwhile, back, unless another request under the same grant goes on or was told of it.
pub(crate) async fn acquire(core: &Arc<Core>, by: Principal, ask: Acquire) -> Result<Outcome, SubmitError> {
    let asking = Asking::begin(core, by.clone(), &ask.lease, &ask.grant).await;
    // In a task of its own: whoever goes away before the answer would leave a place that nobody knows of.
    let (tell, told) = oneshot::channel();
    let (core_of, asked, asker) = (core.clone(), ask.clone(), by.clone());
    core.runtime().spawn(async move { drop(tell.send(stand(&core_of, asker, asked, asking).await)) });
    let (first, mut asking, place) = told.await.map_err(|_| StoreError::Closed)??;
    let Some(place) = place else { return Ok(first) };
    loop {
        let woken = place.notify.notified();
        tokio::pin!(woken);
        // Counted from here on: a commit between the look and the wait wakes.
        woken.as_mut().enable();
        match stands(core, &ask).await? {
            Stands::Has(outcome) => {
                asking.told();
                return Ok(outcome);
            }
            Stands::InLine => {}
            Stands::Out => break,
        }
        tokio::select! {
            biased;
            () = &mut woken => {}
            () = core.stopped() => return Err(StoreError::Closed.into()),
        }
    }
    asking.stands(false);
    drop(place);
    // Its patience is over: the last word is the kernel's, with who has it.
    let last = core.submit(Command { by, verb: Verb::Acquire(Box::new(Acquire { wait_ms: None, ..ask })) }).await;
    if last.is_ok() {
        asking.told();
    }
    last
}

/// The first answer, and the place in line if there is one.
async fn stand(
    core: &Arc<Core>,
    by: Principal,
    ask: Acquire,
    mut asking: Asking,
) -> Result<(Outcome, Asking, Option<Place>), SubmitError> {
    let lease = ask.lease.clone();
    let first = core.submit(Command { by, verb: Verb::Acquire(Box::new(ask)) }).await?;
    if !matches!(first, Outcome::InLine { .. }) {
        asking.told();
        return Ok((first, asking, None));
    }
    asking.stands(true);
    let notify = core.lines().join(&lease);
    Ok((first, asking, Some(Place { core: core.clone(), lease, notify })))
}

enum Stands {
    Has(Outcome),
    InLine,
    Out,
}

async fn stands(core: &Arc<Core>, ask: &Acquire) -> Result<Stands, StoreError> {
    let (name, owner) = (ask.lease.clone(), Owner::Grant(ask.grant.clone()));
    look(core, move |view, stamp| {
        let Some(Record::Lease(lease)) = view.get(&Key::Lease(name.clone()))? else { return Ok(Stands::Out) };
        let now = StoreTime(stamp.store_ms);
        if let Some(holder) = lease.held(now).filter(|holder| holder.owner == owner) {
            let claim = LeaseClaim { lease: name.clone(), token: holder.token };
            let (ttl_ms, until) = (holder.until.since(now), holder.until);
            return Ok(Stands::Has(Outcome::Leased { claim, new: true, ttl_ms, until }));
        }
        let waits = lease.line.iter().any(|waiter| waiter.owner == owner);
        Ok(if waits { Stands::InLine } else { Stands::Out })
    })
    .await
}

/// One lease, with what became of it.
pub(crate) async fn lease(core: &Arc<Core>, name: LeaseName) -> Result<Option<LeaseView>, StoreError> {
    look(core, move |view, stamp| {
        let Some(Record::Lease(lease)) = view.get(&Key::Lease(name.clone()))? else { return Ok(None) };
        let mut entries = Vec::new();
        let (from, to) = codec::lease_entries(&name, lease.last);
        view.walk(Span::between(&from, &to), ENTRIES_MAX, &mut |key, bytes| {
            if let Record::LeaseEntry(entry) = crate::txn::TxnView::decode(&key, bytes)? {
                entries.push(*entry);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Some(LeaseView { name: name.clone(), lease: *lease, at: StoreTime(stamp.store_ms), entries }))
    })
    .await
}

/// Leases in order of their names, and where the list goes on.
pub(crate) async fn leases(
    core: &Arc<Core>,
    beginning: String,
    after: Option<LeaseName>,
    limit: usize,
) -> Result<(Vec<LeaseView>, Option<LeaseName>), StoreError> {
    let limit = limit.clamp(1, PAGE_MAX);
    look(core, move |view, stamp| {
        let (mut from, to) = codec::leases(&beginning);
        if let Some(after) = &after {
            from = from.max(codec::behind_lease(after));
        }
        let mut found: Vec<LeaseView> = Vec::new();
        // From one lease's record straight to the next one's: what became of it is not read.
        while found.len() < limit {
            let mut next = None;
            view.walk(Span::between(&from, &to), 1, &mut |key, bytes| {
                if let (Key::Lease(name), Record::Lease(lease)) = (&key, crate::txn::TxnView::decode(&key, bytes)?) {
                    let at = StoreTime(stamp.store_ms);
                    next = Some(LeaseView { name: name.clone(), lease: *lease, at, entries: Vec::new() });
                }
                Ok(ControlFlow::Break(()))
            })?;
            let Some(lease) = next else { return Ok((found, None)) };
            from = codec::behind_lease(&lease.name);
            found.push(lease);
        }
        let next = found.last().map(|lease| lease.name.clone());
        Ok((found, next))
    })
    .await
}
