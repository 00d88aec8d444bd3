//! Machines: deploy, list, show, roll back.

use crate::api::{
    DeployRequest, Deployed, Finding, HeldBack, MachineList, MachineSummary, MachineView, PowerView, RollbackRequest,
    Severity,
};
use crate::app::{App, Shared};
use crate::base64;
use crate::effects::not_admitted;
use crate::extract::{Body, MachinePath, Params};
use crate::limits::{COMPONENT_BYTES_MAX, DEPLOY_BODY_BYTES_MAX, HELD_BACK_MAX, MANIFEST_BYTES_MAX, PAGE_MAX};
use crate::problem::{Problem, Reason};
use crate::views;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use interlock_kernel::command::{Deploy, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::MachineName;
use interlock_kernel::time::WallTime;
use interlock_manifest::Manifest;
use interlock_runtime::{Added, Inspection, LibraryError};
use std::sync::Arc;

/// Makes a machine's new revision active. The same manifest and component again change nothing.
///
/// The manifest is checked and the component compiled and judged before anything becomes active; everything
/// that is wrong with either is in the problem's `findings`.
#[utoipa::path(
    post, path = "/v1/machines", tag = "machines", operation_id = "deploy_machine", request_body = DeployRequest,
    responses(
        (status = 200, description = "It was active already", body = Deployed),
        (status = 201, description = "It is active", body = Deployed),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn deploy(
    State(app): State<Shared>,
    Body(request): Body<DeployRequest, DEPLOY_BODY_BYTES_MAX>,
) -> Result<(StatusCode, Json<Deployed>), Problem> {
    if request.manifest.len() > MANIFEST_BYTES_MAX {
        let expected = format!("at most {MANIFEST_BYTES_MAX} bytes (manifest_bytes_max)");
        let got = format!("{} bytes", request.manifest.len());
        return Err(Problem::new(Reason::TooLarge, "manifest", expected, got));
    }
    let today = WallTime(app.coordinator.now().wall_ms);
    let report = interlock_manifest::parse_as_of(today, "manifest", &request.manifest);
    let mut findings: Vec<Finding> = report.problems.iter().map(finding_of_manifest).collect();
    let bytes = request.component.as_deref().map(decode).transpose()?;
    let added = match bytes.map(|bytes| app.library.add(bytes)) {
        None => None,
        Some(adding) => match adding.await {
            Ok(added) => Some(added),
            Err(LibraryError::Unfit(problems)) => {
                findings.extend(problems.iter().map(finding_of_component));
                None
            }
            Err(error) => return Err(unreadable(&error)),
        },
    };
    let sound = !findings.iter().any(|finding| finding.severity == Severity::Error);
    let Some(manifest) = report.manifest.as_ref().filter(|_| sound) else {
        let expected = "a sound manifest and a component that can run here";
        return Err(Problem::unsound("machine", expected, findings, report.left_out));
    };
    if let Some(refused) = mismatched(manifest, added.is_some()) {
        return Err(refused);
    }
    findings.extend(unsendable(&app, manifest).await);
    findings.extend(unfenced(&app, manifest).await?);
    findings.extend(added.as_ref().and_then(|added| unfit(&added.inspection, &manifest.machine)));
    activate(&app, manifest, added, findings).await
}

/// Targets that the operator's configuration could never admit. Off the runtime's threads: secrets are files.
async fn unsendable(app: &App, manifest: &Manifest) -> Vec<Finding> {
    if manifest.machine.targets.is_empty() {
        return Vec::new();
    }
    let (configuration, manifest) = (app.carrier.configuration(), manifest.clone());
    let looking = move || not_admitted(&manifest.source, &manifest.machine, &configuration);
    let found = tokio::task::spawn_blocking(looking).await.unwrap_or_default();
    found.iter().map(finding_of_manifest).collect()
}

/// Targets that another machine writes to as well, with no lease that fences both.
async fn unfenced(app: &App, manifest: &Manifest) -> Result<Vec<Finding>, Problem> {
    if manifest.machine.targets.is_empty() {
        return Ok(Vec::new());
    }
    let machines = app.coordinator.machines().await?;
    let others = machines.iter().map(|found| found.revision.machine.as_ref());
    Ok(interlock_manifest::unshared_fences(manifest, others).iter().map(finding_of_manifest).collect())
}

fn decode(text: &str) -> Result<Vec<u8>, Problem> {
    let bytes = base64::decode(text)
        .ok_or_else(|| Problem::invalid("component", "base64 with padding (RFC 4648, section 4)", "another text"))?;
    if bytes.len() > COMPONENT_BYTES_MAX {
        let expected = format!("at most {COMPONENT_BYTES_MAX} bytes (component_bytes_max)");
        return Err(Problem::new(Reason::TooLarge, "component", expected, format!("{} bytes", bytes.len())));
    }
    Ok(bytes)
}

fn mismatched(manifest: &Manifest, component: bool) -> Option<Problem> {
    match (&manifest.component, component) {
        (Some(file), false) => Some(Problem::invalid("component", format!("the bytes of {file}"), "none")),
        (None, true) => Some(Problem::invalid(
            "component",
            "none, since the manifest names none",
            "bytes (add `component = \"FILE.wasm\"` to the manifest)",
        )),
        (Some(_), true) | (None, false) => None,
    }
}

/// What the component imports and the machine does not give, or the other way round.
fn unfit(inspection: &Inspection, machine: &interlock_kernel::machine::Machine) -> Option<Finding> {
    let found = interlock_runtime::fit(inspection, machine)?;
    Some(Finding { severity: Severity::Warning, ..finding_of_component(&found) })
}

async fn activate(
    app: &App,
    manifest: &Manifest,
    added: Option<Added>,
    warnings: Vec<Finding>,
) -> Result<(StatusCode, Json<Deployed>), Problem> {
    let component = added.as_ref().map(|added| added.digest);
    let component_text = component.map(|digest| digest.to_string()).unwrap_or_default();
    let digest = Digest::of(&[manifest.source.as_bytes(), component_text.as_bytes()]);
    let machine = &manifest.machine;
    let verb = Verb::Deploy(Box::new(Deploy {
        machine: Arc::new(machine.clone()),
        digest,
        component,
        source: manifest.source.clone(),
    }));
    let Outcome::Deployed { revision, new } = app.submit(&machine.name, verb).await? else {
        return Err(Problem::internal("another outcome than a deploy's"));
    };
    let inspection = added.as_ref().map(|added| &added.inspection);
    let (can, cannot) = inspection.map(powers).unwrap_or_default();
    let body = Deployed {
        machine: machine.name.to_string(),
        revision,
        new,
        owner: machine.owner.clone(),
        digest: digest.to_string(),
        component_bytes: inspection.map(|inspection| inspection.bytes),
        compile_ms: added.as_ref().map(|added| added.compile_ms),
        can,
        cannot,
        warnings,
    };
    Ok((if new { StatusCode::CREATED } else { StatusCode::OK }, Json(body)))
}

fn powers(inspection: &Inspection) -> (Vec<PowerView>, Vec<PowerView>) {
    let view = |powers: &[interlock_runtime::Power]| {
        powers.iter().map(|power| PowerView { name: power.name.to_string(), what: power.what.to_string() }).collect()
    };
    (view(&inspection.can), view(&inspection.cannot))
}

fn unreadable(error: &LibraryError) -> Problem {
    tracing::error!(error = error as &dyn std::error::Error, "a component could not be kept");
    match error {
        LibraryError::File { .. } => Problem::new(
            Reason::Decided(interlock_kernel::rejection::Code::Unavailable),
            "the data folder",
            "room and rights to keep a component",
            "a failure of its files; the log has more",
        )
        .retry_after(1_000),
        LibraryError::Unfit(_) | LibraryError::Missing(_) | LibraryError::Corrupt(_) | LibraryError::Interrupted(_) => {
            Problem::internal("a component that could not be compiled or read; the log has more")
        }
    }
}

/// Every machine.
#[utoipa::path(
    get, path = "/v1/machines", tag = "machines", operation_id = "list_machines",
    responses((status = 200, description = "By name", body = MachineList))
)]
pub(crate) async fn list(State(app): State<Shared>, uri: Uri) -> Result<Json<MachineList>, Problem> {
    Params::read(&uri, &[])?;
    let machines = app.coordinator.machines().await?;
    let machines = machines.iter().map(|found| MachineSummary {
        name: found.revision.machine.name.to_string(),
        owner: found.revision.machine.owner.clone(),
        active: found.record.active,
        latest: found.record.latest,
        labels: found.revision.machine.labels.clone(),
        deployed: views::rfc3339(found.revision.deployed),
    });
    Ok(Json(MachineList { machines: machines.collect() }))
}

/// One machine: its revisions, and the entities that do not follow the active one.
#[utoipa::path(
    get, path = "/v1/machines/{name}", tag = "machines", operation_id = "get_machine",
    params(("name" = String, Path, description = "The machine's name")),
    responses(
        (status = 200, description = "The machine", body = MachineView),
        (status = 404, description = "There is none", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn show(
    State(app): State<Shared>,
    MachinePath(name): MachinePath,
    uri: Uri,
) -> Result<Json<MachineView>, Problem> {
    Params::read(&uri, &[])?;
    let found = app.machine(&name).await?;
    let revisions = app.coordinator.revisions(&name, None, PAGE_MAX).await?;
    let (behind, _) = app.coordinator.behind(&name, None, HELD_BACK_MAX).await?;
    let lazily = "it moves with its next change";
    Ok(Json(MachineView {
        name: name.to_string(),
        owner: found.revision.machine.owner.clone(),
        active: found.record.active,
        labels: found.revision.machine.labels.clone(),
        revisions: revisions.iter().map(|revision| views::revision(revision)).collect(),
        held_back: behind
            .into_iter()
            .map(|behind| HeldBack {
                entity: behind.entity.to_string(),
                revision: behind.revision,
                can_move: behind.why.is_none(),
                why: behind.why.unwrap_or_else(|| lazily.to_owned()),
            })
            .collect(),
        manifest: found.revision.source.clone(),
    }))
}

/// Makes the content of an earlier revision active, as a new revision.
#[utoipa::path(
    post, path = "/v1/machines/{name}/rollback", tag = "machines", operation_id = "roll_back_machine", request_body = RollbackRequest,
    params(("name" = String, Path, description = "The machine's name")),
    responses(
        (status = 200, description = "It was active already", body = Deployed),
        (status = 201, description = "It is active", body = Deployed),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn rollback(
    State(app): State<Shared>,
    MachinePath(name): MachinePath,
    Body(request): Body<RollbackRequest>,
) -> Result<(StatusCode, Json<Deployed>), Problem> {
    let verb = Verb::Rollback { machine: name.clone(), to: request.to };
    let Outcome::Deployed { revision, new } = app.submit(&name, verb).await? else {
        return Err(Problem::internal("another outcome than a rollback's"));
    };
    let body = deployed_again(&app, &name, revision, new).await?;
    Ok((if new { StatusCode::CREATED } else { StatusCode::OK }, Json(body)))
}

async fn deployed_again(app: &App, name: &MachineName, revision: u64, new: bool) -> Result<Deployed, Problem> {
    let found = app.revision(name, revision).await?;
    let inspection = match found.component {
        None => None,
        // What is active already does not hang on this.
        Some(digest) => {
            app.library.inspection(digest).await.inspect_err(|why| tracing::warn!(%why, "no inspection")).ok()
        }
    };
    let (can, cannot) = inspection.as_ref().map(powers).unwrap_or_default();
    Ok(Deployed {
        machine: name.to_string(),
        revision,
        new,
        owner: found.machine.owner.clone(),
        digest: found.digest.to_string(),
        component_bytes: inspection.as_ref().map(|inspection| inspection.bytes),
        compile_ms: None,
        can,
        cannot,
        warnings: Vec::new(),
    })
}

/// A problem of a manifest, as the API tells it.
#[must_use]
pub fn finding_of_manifest(problem: &interlock_manifest::Problem) -> Finding {
    Finding {
        severity: match problem.severity {
            interlock_manifest::Severity::Error => Severity::Error,
            interlock_manifest::Severity::Warning => Severity::Warning,
        },
        code: problem.code.to_owned(),
        subject: "manifest".to_owned(),
        line: Some(problem.line),
        column: Some(problem.column),
        message: problem.message.clone(),
        expected: problem.expected.clone(),
        got: problem.got.clone(),
        remedy: problem.remedy.clone(),
    }
}

/// A problem of a component, as the API tells it.
#[must_use]
pub fn finding_of_component(problem: &interlock_runtime::Problem) -> Finding {
    Finding {
        severity: Severity::Error,
        code: problem.code.to_owned(),
        subject: problem.subject.clone(),
        line: None,
        column: None,
        message: format!("expected {}, got {}", problem.expected, problem.got),
        expected: Some(problem.expected.clone()),
        got: Some(problem.got.clone()),
        remedy: problem.remedy.clone(),
    }
}
