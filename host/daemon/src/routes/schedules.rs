//! Schedules: declare, list, show, pause, resume, drop.

use super::machines::finding_of_manifest;
use crate::api::{Finding, SchedulePage, ScheduleRequest, ScheduleView, Scheduled};
use crate::app::{App, Shared};
use crate::extract::{Body, Params, SchedulePath};
use crate::limits::{MANIFEST_BYTES_MAX, PAGE_DEFAULT, PAGE_MAX};
use crate::problem::{Problem, Reason};
use crate::views;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use interlock_coordinator::SubmitError;
use interlock_kernel::command::{Command, DeclareSchedule, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{Principal, ScheduleName, nearest};
use interlock_kernel::schedule::Schedule;
use interlock_kernel::time::WallTime;
use std::sync::Arc;

/// Times of a rule that a declaration is answered with.
const TIMES: usize = 3;

/// Declares a schedule, or declares it anew: from then on, not for what is past. The same manifest again changes
/// nothing.
///
/// Everything that is wrong with the manifest is in the problem's `findings`. The machine must be deployed, and know
/// the event.
#[utoipa::path(
    post, path = "/v1/schedules", tag = "schedules", operation_id = "declare_schedule", request_body = ScheduleRequest,
    params(("check_only" = Option<bool>, Query, description = "Says what is wrong with the manifest and changes nothing")),
    responses(
        (status = 200, description = "It was in force already, or was only checked", body = Scheduled),
        (status = 201, description = "It is in force", body = Scheduled),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn declare(
    State(app): State<Shared>,
    uri: Uri,
    Body(request): Body<ScheduleRequest>,
) -> Result<(StatusCode, Json<Scheduled>), Problem> {
    let check_only = Params::read(&uri, &["check_only"])?.flag("check_only")?;
    let (schedule, warnings) = sound(&request.manifest)?;
    let digest = Digest::of(&[request.manifest.as_bytes()]);
    let (name, owner, rule) = (schedule.name.clone(), schedule.owner.clone(), schedule.rule.clone());
    let (revision, new) = if check_only {
        (app.coordinator.schedule(&name).await?.map(|known| known.revision), false)
    } else {
        let machine = schedule.entity.machine.clone();
        let schedule = Arc::new(schedule);
        let verb = Verb::Schedule(Box::new(DeclareSchedule { schedule, digest, source: request.manifest }));
        let Outcome::Declared { revision, new } = app.submit(&machine, verb).await? else {
            return Err(Problem::internal("another outcome than a declaration's"));
        };
        (Some(revision), new)
    };
    let now = WallTime(app.coordinator.now().wall_ms);
    let times = interlock_manifest::times(&rule, now, TIMES).into_iter().map(views::rfc3339).collect();
    let body =
        Scheduled { schedule: name.to_string(), revision, new, owner, digest: digest.to_string(), times, warnings };
    Ok((if new { StatusCode::CREATED } else { StatusCode::OK }, Json(body)))
}

/// A schedule whose manifest has no errors, with its warnings.
fn sound(manifest: &str) -> Result<(Schedule, Vec<Finding>), Problem> {
    if manifest.len() > MANIFEST_BYTES_MAX {
        let expected = format!("at most {MANIFEST_BYTES_MAX} bytes (manifest_bytes_max)");
        return Err(Problem::new(Reason::TooLarge, "manifest", expected, format!("{} bytes", manifest.len())));
    }
    match interlock_manifest::parse_schedule("manifest", manifest) {
        Ok((schedule, report)) => Ok((schedule, report.problems.iter().map(finding_of_manifest).collect())),
        Err(report) => {
            let findings = report.problems.iter().map(finding_of_manifest).collect();
            Err(Problem::unsound("schedule", "a sound manifest", findings, report.left_out))
        }
    }
}

/// Schedules by name.
#[utoipa::path(
    get, path = "/v1/schedules", tag = "schedules", operation_id = "list_schedules",
    params(
        ("limit" = Option<usize>, Query, description = "At most this many: 1 to 500, 100 if not given"),
        ("after" = Option<String>, Query, description = "Those behind this one"),
    ),
    responses(
        (status = 200, description = "A page", body = SchedulePage),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(State(app): State<Shared>, uri: Uri) -> Result<Json<SchedulePage>, Problem> {
    let params = Params::read(&uri, &["limit", "after"])?;
    let limit = params.count("limit", PAGE_DEFAULT, PAGE_MAX)?;
    let found = app.coordinator.schedules(params.name("after")?, limit).await?;
    let next = found.last().filter(|_| found.len() >= limit).map(|last| last.schedule.name.to_string());
    Ok(Json(SchedulePage { schedules: found.iter().map(views::schedule_summary).collect(), next }))
}

/// One schedule: when it comes next, and what became of its last due times.
#[utoipa::path(
    get, path = "/v1/schedules/{schedule}", tag = "schedules", operation_id = "get_schedule",
    params(("schedule" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "The schedule", body = ScheduleView),
        (status = 404, description = "There is none", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn show(
    State(app): State<Shared>,
    SchedulePath(name): SchedulePath,
    uri: Uri,
) -> Result<Json<ScheduleView>, Problem> {
    Params::read(&uri, &[])?;
    found(&app, &name).await.map(Json)
}

/// Has a schedule stand still. Again it changes nothing.
#[utoipa::path(
    post, path = "/v1/schedules/{schedule}/pause", tag = "schedules", operation_id = "pause_schedule",
    params(("schedule" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "It stands still", body = ScheduleView),
        (status = 404, description = "There is none", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn pause(
    State(app): State<Shared>,
    SchedulePath(name): SchedulePath,
    uri: Uri,
) -> Result<Json<ScheduleView>, Problem> {
    Params::read(&uri, &[])?;
    submit(&app, &name, Verb::PauseSchedule { schedule: name.clone(), paused: true }).await?;
    found(&app, &name).await.map(Json)
}

/// Has a schedule go on, with the next due time from now. Again it changes nothing.
#[utoipa::path(
    post, path = "/v1/schedules/{schedule}/resume", tag = "schedules", operation_id = "resume_schedule",
    params(("schedule" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "It goes on", body = ScheduleView),
        (status = 404, description = "There is none", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn resume(
    State(app): State<Shared>,
    SchedulePath(name): SchedulePath,
    uri: Uri,
) -> Result<Json<ScheduleView>, Problem> {
    Params::read(&uri, &[])?;
    submit(&app, &name, Verb::PauseSchedule { schedule: name.clone(), paused: false }).await?;
    found(&app, &name).await.map(Json)
}

/// Drops a schedule. What it raised stays.
#[utoipa::path(
    delete, path = "/v1/schedules/{schedule}", tag = "schedules", operation_id = "drop_schedule",
    params(("schedule" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "It is gone; how it stood last", body = ScheduleView),
        (status = 404, description = "There is none", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn drop(
    State(app): State<Shared>,
    SchedulePath(name): SchedulePath,
    uri: Uri,
) -> Result<Json<ScheduleView>, Problem> {
    Params::read(&uri, &[])?;
    let last = found(&app, &name).await?;
    submit(&app, &name, Verb::DropSchedule(name.clone())).await?;
    Ok(Json(last))
}

async fn submit(app: &App, name: &ScheduleName, verb: Verb) -> Result<(), Problem> {
    match app.coordinator.submit(Command { by: Principal::local(), verb }).await {
        Ok(_) => Ok(()),
        Err(SubmitError::Rejected(rejection)) => {
            let problem = Problem::from(&*rejection);
            Err(if problem.status == 404 { none(app, name).await } else { problem })
        }
        Err(error) => Err(error.into()),
    }
}

async fn found(app: &App, name: &ScheduleName) -> Result<ScheduleView, Problem> {
    match app.coordinator.schedule(name).await? {
        Some(found) => Ok(views::schedule(&found)),
        None => Err(none(app, name).await),
    }
}

/// That there is no such schedule, and which is nearest.
async fn none(app: &App, name: &ScheduleName) -> Problem {
    let known = app.coordinator.schedules(None, PAGE_MAX).await.unwrap_or_default();
    let names = known.iter().map(|record| record.schedule.name.as_str());
    let expected = match (nearest(name.as_str(), names), known.len()) {
        (Some(near), _) => format!("a declared schedule (did you mean {near}?)"),
        (None, 0) => "a declared schedule (none is declared)".to_owned(),
        (None, _) => "a declared schedule".to_owned(),
    };
    Problem::not_found(format_args!("schedule {name}"), expected).saying(format!("there is no schedule {name}"))
}
