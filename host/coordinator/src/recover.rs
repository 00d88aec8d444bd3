//! Taking up what earlier boots left open, and what did not fit the queue: both are found by the index
//! of open attempts, never by looking at entities, and begun only as slots come free.

use crate::codec;
use crate::core::Core;
use crate::read::{head_in, look};
use crate::txn::{self, TxnView};
use futures_util::StreamExt;
use interlock_kernel::command::{Command, Verb};
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::Key;
use interlock_kernel::view::{Start, Stop};
use interlock_store::StoreError;
use std::sync::Arc;

/// Index entries read at a time.
const PAGE: usize = 256;

/// Orphans that wait for the store at a time; enough to fill a group commit.
const TOGETHER: usize = 64;

/// After a failed read.
const RETRY_MS: u64 = 1_000;

/// An orphan waits this long for room, then joins the queue all the same: new work must not starve it.
const ORPHAN_WAIT_MS: u64 = 100;

/// An attempt that is open and not here may be on its way here: it must be so twice, this far apart.
const DOUBT_MS: u64 = 1_000;

/// Begins every orphan again, oldest first; then takes in what did not fit, whenever there is room.
pub(crate) async fn fill(core: Arc<Core>) {
    core.dispatch().refilled(); // whatever an earlier life of this task was in the middle of
    orphans(&core).await;
    loop {
        if core.dispatch().wants_refill() {
            core.dispatch().refilling();
            refill(&core).await;
            core.dispatch().refilled();
        }
        core.dispatch().room.notified().await;
    }
}

/// Open attempts of other sessions.
async fn orphans(core: &Arc<Core>) {
    let Some(own) = core.session_id() else { return };
    let (mut from, to) = codec::open();
    loop {
        let start = from.clone();
        let end = to.clone();
        let page = look(core, move |view, _| {
            let mut page = Vec::new();
            for key in view.keys(&start, &end, PAGE)? {
                if let Key::Open(session, entity) = &key
                    && *session != own
                {
                    page.push((age(view, entity)?, entity.clone(), key));
                }
            }
            Ok(page)
        });
        let mut page = match page.await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "orphans could not be read");
                core.pause(RETRY_MS).await;
                continue;
            }
        };
        core.counters().scanned.add(page.len() as u64);
        let Some((.., last)) = page.last() else { return };
        from = behind(last);
        page.sort_by_key(|(age, ..)| *age);
        // In this order, so the oldest is decided first; together, so that a batch of them is one commit.
        let orphans = page.into_iter().map(|(_, entity, _)| entity);
        futures_util::stream::iter(orphans).for_each_concurrent(TOGETHER, |entity| recover(core, entity)).await;
    }
}

/// The token of the open attempt: tokens grow, so the lowest is the oldest.
fn age(view: &TxnView<'_>, entity: &EntityId) -> Result<u64, Stop> {
    let open = head_in(view, entity)?.and_then(|head| head.lock).and_then(|lock| lock.attempt);
    Ok(open.map_or(u64::MAX, |open| open.token.get()))
}

async fn recover(core: &Arc<Core>, entity: EntityId) {
    if !core.dispatch().has_room() {
        tokio::select! {
            biased;
            () = core.dispatch().room.notified() => {}
            () = core.pause(ORPHAN_WAIT_MS) => {}
        }
    }
    let command = Command { by: Principal::host(), verb: Verb::Recover(entity.clone()) };
    match core.insist(command).await {
        Some(Ok(_)) => core.counters().recovered.add(1),
        Some(Err(error)) => tracing::warn!(%entity, %error, "an orphan was not begun again"),
        None => {}
    }
}

/// Open attempts of this session that are not here.
async fn refill(core: &Arc<Core>) {
    let Some(own) = core.session_id() else { return };
    let (mut from, to) = codec::range(&interlock_kernel::view::Span::Open(own));
    loop {
        let (start, end) = (from.clone(), to.clone());
        let page = look(core, move |view, _| {
            let mut open = Vec::new();
            let keys = view.keys(&start, &end, PAGE)?;
            for key in &keys {
                let Key::Open(_, entity) = key else { continue };
                let attempt = head_in(view, entity)?.and_then(|head| head.lock).and_then(|lock| lock.attempt);
                open.extend(attempt.map(|attempt| (entity.clone(), attempt.token.get())));
            }
            Ok((open, keys.last().map(behind)))
        });
        match page.await {
            Ok((mut absent, next)) => {
                absent.retain(|(_, token)| !core.dispatch().has(*token));
                if !absent.is_empty() {
                    core.pause(DOUBT_MS).await;
                    take_in(core, absent).await;
                }
                let Some(next) = next else { return };
                from = next;
            }
            Err(error) => {
                tracing::warn!(%error, "open attempts could not be read");
                core.pause(RETRY_MS).await;
            }
        }
    }
}

/// Starts those that are still open and still not here.
async fn take_in(core: &Arc<Core>, absent: Vec<(EntityId, u64)>) {
    for (entity, token) in absent {
        if core.dispatch().has(token) {
            continue;
        }
        match start_of(core, entity).await {
            Ok(Some(start)) if start.claim.token.get() == token => core.push(Box::new(start)),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "an open attempt could not be read");
                core.dispatch().mark_overflow();
                return;
            }
        }
    }
}

async fn start_of(core: &Arc<Core>, entity: EntityId) -> Result<Option<Start>, StoreError> {
    let shared = core.clone();
    look(core, move |view, stamp| {
        interlock_kernel::start(view, shared.book(), txn::now(stamp, shared.session()), &entity)
    })
    .await
}

fn behind(key: &Key) -> Vec<u8> {
    let mut bytes = codec::encode(key);
    bytes.push(0);
    bytes
}
