//! What a history must add up to: seen from outside entry by entry, and folded in the file itself.

use anyhow::{Context as _, Result, bail, ensure};
use interlock_coordinator::{Attempt, Coordinator, Executor, Listing, Options, PAGE_MAX};
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::{Entry, Head};
use interlock_kernel::theorems;
use interlock_store::{Redb, Store, SystemClock};
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Numbers and versions without gaps, each entry from where the one before ended, tokens that never fall,
/// and an end that is the entity.
pub(crate) fn adds_up(entity: &Value, history: &[Value]) -> Result<()> {
    let (mut number, mut version, mut state, mut token) = (0, 0, None, 0);
    for entry in history {
        let bad = |why: &str| format!("{why}, after number {number}, version {version}: {entry}");
        ensure!(entry["number"] == number + 1, bad("a number is missing or given twice"));
        let now = entry["version"].as_u64().context("a version")?;
        ensure!(now == version || now == version + 1, bad("a version is missing"));
        ensure!(number == 0 || entry["from"].as_str() == state, bad("another state before"));
        let held = entry["token"].as_u64().unwrap_or(token);
        ensure!(held >= token || entry["kind"] == "fact", bad("a token fell"));
        (number, version, state, token) = (number + 1, now, entry["to"].as_str(), held.max(token));
    }
    ensure!(entity["version"] == version, "the history ends with version {version}: {entity}");
    ensure!(entity["state"].as_str() == state, "the history ends in {state:?}: {entity}");
    Ok(())
}

/// How often a kind of entry stands in a history, by event id.
pub(crate) fn count(history: &[Value], kind: &str, event: &str) -> usize {
    history.iter().filter(|entry| entry["kind"] == kind && entry["event"] == event).count()
}

/// Entries of a kind.
pub(crate) fn of_kind<'a>(history: &'a [Value], kind: &str) -> Vec<&'a Value> {
    history.iter().filter(|entry| entry["kind"] == kind).collect()
}

/// Opens the file of a daemon that is gone: every theorem holds for every entity, every history folds to
/// its entity, and the reconciler finds nothing. Gives the number of entities.
pub(crate) async fn audit(data: &Path) -> Result<usize> {
    let clock = Arc::new(SystemClock::new());
    audit_store(Arc::new(Redb::open(interlock_store::Options { clock, ..interlock_store::Options::new(data) })?)).await
}

/// The same on a store that nobody else uses.
pub(crate) async fn audit_store(store: Arc<dyn Store>) -> Result<usize> {
    let kept = Kept::default();
    let options = Options { executions_max: 1_000, reconcile: false, ..Options::default() };
    let host = Coordinator::open(store, Arc::new(kept.clone()), options).await?;
    let mut after = None;
    let mut looked_at = 0;
    loop {
        let page = host.entities(Listing { after, limit: PAGE_MAX, ..Listing::default() }).await?;
        for (id, _) in &page.entities {
            folds(&host, id).await.with_context(|| id.to_string())?;
        }
        looked_at += page.entities.len();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let repaired = host.reconcile().await?;
    ensure!(repaired.is_empty(), "the reconciler found something: {repaired:?}");
    kept.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    host.stop(Duration::ZERO).await?;
    Ok(looked_at)
}

async fn folds(host: &Coordinator, id: &EntityId) -> Result<()> {
    let view = host.entity(id).await?.context("it is gone")?;
    let broken = theorems::entity(&view.head, &view.revision.machine);
    ensure!(broken.is_empty(), "{broken:?} broken: {:?}", view.head);
    let entries = whole_history(host, id, &view.head).await?;
    let folded = match theorems::fold(id, &view.head, &entries) {
        Ok(folded) => folded,
        Err((number, why)) => bail!("entry {number}: {why}"),
    };
    let documents = [&view.documents.desired, &view.documents.data, &view.documents.outputs];
    let digests = documents.map(|doc| doc.as_ref().map(|doc| doc.digest()));
    ensure!(theorems::history_folds_to_entity(&view.head, &folded, digests), "{folded:?} is not {:?}", view.head);
    Ok(())
}

async fn whole_history(host: &Coordinator, id: &EntityId, head: &Head) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut before = None;
    loop {
        let page = host.history(id, Some(head.incarnation.get()), before, PAGE_MAX).await?.context("its history")?;
        entries.extend(page.entries);
        before = page.before;
        if before.is_none() {
            break;
        }
    }
    entries.reverse();
    Ok(entries)
}

/// Keeps what it is handed and runs nothing.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Attempt>>>);

impl Executor for Kept {
    fn start(&self, attempt: Attempt) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(attempt);
    }
}
