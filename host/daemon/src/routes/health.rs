//! The host itself: alive, ready, and what it counted.

use crate::api::{Alive, BackgroundTask, ReadyView, StatsView, StoreCondition, StoreView};
use crate::app::Shared;
use crate::extract::Params;
use crate::limits::SLOW_COMMIT;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use interlock_coordinator::{Health, Stats};
use interlock_store::Condition;
use std::collections::BTreeMap;

/// Whether the daemon answers at all.
#[utoipa::path(
    get, path = "/healthz", tag = "host", operation_id = "is_alive",
    responses((status = 200, description = "It does", body = Alive))
)]
pub(crate) async fn alive(State(app): State<Shared>) -> Json<Alive> {
    let release = env!("CARGO_PKG_VERSION").to_owned();
    let session = app.coordinator.health().session.unwrap_or_default();
    Json(Alive { alive: true, release, session, up_ms: app.up_ms() })
}

/// Whether requests can be served: the store, and the host's background tasks.
#[utoipa::path(
    get, path = "/readyz", tag = "host", operation_id = "is_ready",
    responses(
        (status = 200, description = "They can", body = ReadyView),
        (status = 503, description = "They cannot, and why", body = ReadyView),
    )
)]
pub(crate) async fn ready(State(app): State<Shared>) -> (StatusCode, Json<ReadyView>) {
    let view = view(&app.coordinator.health());
    (if view.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, Json(view))
}

fn view(health: &Health) -> ReadyView {
    let store = &health.store;
    let (condition, why) = match &store.condition {
        Condition::Ready if store.last_commit >= SLOW_COMMIT => {
            (StoreCondition::Slow, Some(format!("a commit has taken {:.1} s", store.last_commit.as_secs_f64())))
        }
        Condition::Ready => (StoreCondition::Ready, None),
        Condition::Reopening { why, .. } => (StoreCondition::Reopening, Some(why.clone())),
        Condition::ReadOnly { why, .. } => (StoreCondition::ReadOnly, Some(why.clone())),
        Condition::Closed => (StoreCondition::Closed, Some("closed or closing".to_owned())),
    };
    let failing = health.tasks.iter().find(|task| task.failing);
    let why_not = match (health.stopping, failing) {
        (true, _) => Some("the host is stopping".to_owned()),
        (false, Some(task)) => Some(format!("the background task {} keeps dying", task.name)),
        (false, None) => why.clone(),
    };
    ReadyView {
        ready: health.ready,
        why: why_not,
        store: StoreView {
            condition,
            why,
            completions: store.completions,
            admissions: store.admissions,
            last_commit_us: u64::try_from(store.last_commit.as_micros()).unwrap_or(u64::MAX),
        },
        tasks: health
            .tasks
            .iter()
            .map(|task| BackgroundTask { name: task.name.to_owned(), alive: !task.failing, deaths: task.deaths })
            .collect(),
    }
}

/// What the host counted since its boot.
#[utoipa::path(
    get, path = "/v1/stats", tag = "host", operation_id = "get_stats",
    responses((status = 200, description = "The numbers", body = StatsView))
)]
pub(crate) async fn stats(State(app): State<Shared>, uri: Uri) -> Result<Json<StatsView>, Problem> {
    Params::read(&uri, &[])?;
    let stats = app.coordinator.stats();
    let runs = app.wasm.runs();
    let store = app.store.stats();
    let components = app.library.counts();
    let mut counters = counters(&stats);
    let more = [
        ("attempts_run", runs.runs),
        ("log_lines_dropped", runs.dropped_lines),
        ("components_compiled", components.compiled),
        ("components_loaded", components.loaded),
        ("store_batches", store.batches),
        ("store_jobs", store.jobs),
        ("store_file_bytes", store.file_bytes),
        ("store_syncs", store.syncs),
    ];
    counters.extend(more.map(|(name, count)| (name.to_owned(), count)));
    Ok(Json(StatsView {
        up_ms: app.up_ms(),
        running: stats.running,
        waiting: stats.waiting,
        slots: stats.slots,
        memory_held_bytes: stats.memory_held_bytes,
        memory_bytes_max: stats.memory_bytes_max,
        requests: app.answered.by_status(),
        refused: stats.refused.iter().map(|(code, count)| (code.as_str().to_owned(), *count)).collect(),
        counters,
    }))
}

fn counters(stats: &Stats) -> BTreeMap<String, u64> {
    let all = [
        ("decided", stats.decided),
        ("committed", stats.committed),
        ("entries", stats.entries),
        ("facts", stats.facts),
        ("failures", stats.failures),
        ("parked", stats.parked),
        ("contended", stats.contended),
        ("store_errors", stats.store_errors),
        ("type_mismatches", stats.type_mismatches),
        ("dispatched", stats.dispatched),
        ("deadlines", stats.deadlines),
        ("due", stats.due),
        ("timers", stats.timers),
        ("recovered", stats.recovered),
        ("swept", stats.swept),
        ("scanned", stats.scanned),
        ("audited", stats.audited),
        ("repaired", stats.repaired),
        ("clock_jumps", stats.clock_jumps),
        ("resyncs", stats.resyncs),
        ("panics", stats.panics),
        ("effects_sent", stats.sent),
    ];
    let effects = stats.effects.iter().map(|(what, count)| (format!("effects_{what}"), *count));
    let leases = stats.leases.iter().map(|(what, count)| (format!("leases_{what}"), *count));
    let rows = stats.rows.iter().map(|(what, count)| (format!("rows_{what}"), *count));
    let all = all.map(|(name, count)| (name.to_owned(), count)).into_iter();
    all.chain(effects).chain(leases).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::view;
    use crate::api::StoreCondition;
    use interlock_coordinator::{Health, TaskHealth};
    use interlock_store::Condition;
    use std::time::Duration;

    fn health(ready: bool, last_commit: Duration, deaths: u32) -> Health {
        let store = interlock_store::Health { condition: Condition::Ready, completions: 0, admissions: 0, last_commit };
        let tasks = vec![
            TaskHealth { name: "due", deaths: 0, failing: false },
            TaskHealth { name: "timers", deaths, failing: !ready },
        ];
        Health { ready, stopping: false, session: None, store, tasks }
    }

    #[test]
    fn a_task_that_keeps_dying_is_why_a_host_is_not_ready() {
        let dying = view(&health(false, Duration::ZERO, 3));
        assert!(!dying.ready);
        assert_eq!(dying.why.as_deref(), Some("the background task timers keeps dying"));
        assert_eq!(
            dying.tasks.iter().map(|task| (task.alive, task.deaths)).collect::<Vec<_>>(),
            [(true, 0), (false, 3)]
        );
    }

    #[test]
    fn a_commit_that_takes_long_is_slow_and_still_ready() {
        let slow = view(&health(true, Duration::from_secs(12), 0));
        assert!(slow.ready);
        assert_eq!(slow.store.condition, StoreCondition::Slow);
        assert_eq!(slow.why.as_deref(), Some("a commit has taken 12.0 s"));
        assert_eq!(view(&health(true, Duration::from_millis(999), 0)).store.condition, StoreCondition::Ready);
    }
}
