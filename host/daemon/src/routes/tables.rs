//! Tables: declare, list, show, drop.

use super::machines::finding_of_manifest;
use crate::api::{DeclareRequest, Declared, Dropping, Finding, TablePage, TableView};
use crate::app::{App, Shared};
use crate::extract::{Body, Params, TablePath};
use crate::limits::{MANIFEST_BYTES_MAX, PAGE_DEFAULT, PAGE_MAX};
use crate::problem::{Problem, Reason};
use crate::views;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::rows::Declare;
use interlock_kernel::table::Table;
use std::sync::Arc;

/// Declares a table, or declares it anew. The same manifest again changes nothing.
///
/// Everything that is wrong with the manifest is in the problem's `findings`. Indexes are built and removed while the
/// table is used: `GET /v1/tables/{table}` says how far that is.
#[utoipa::path(
    post, path = "/v1/tables", tag = "tables", operation_id = "declare_table", request_body = DeclareRequest,
    params(("check_only" = Option<bool>, Query, description = "Says what is wrong and changes nothing")),
    responses(
        (status = 200, description = "It was in force already, or was only checked", body = Declared),
        (status = 201, description = "It is in force", body = Declared),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn declare(
    State(app): State<Shared>,
    uri: Uri,
    Body(request): Body<DeclareRequest>,
) -> Result<(StatusCode, Json<Declared>), Problem> {
    let check_only = Params::read(&uri, &["check_only"])?.flag("check_only")?;
    let (table, warnings) = sound(&request.manifest)?;
    let digest = Digest::of(&[request.manifest.as_bytes()]);
    let (name, owner) = (table.name.clone(), table.owner.clone());
    let (revision, new) = if check_only {
        let known = app.coordinator.table(&name).await?.filter(|known| !known.head.dropped);
        (known.map(|known| known.head.revision), false)
    } else {
        let verb = Verb::Declare(Box::new(Declare { table: Arc::new(table), digest, source: request.manifest }));
        let Outcome::Declared { revision, new } = app.submit_on(&name, verb).await? else {
            return Err(Problem::internal("another outcome than a declaration's"));
        };
        (Some(revision), new)
    };
    let body = Declared { table: name.to_string(), revision, new, owner, digest: digest.to_string(), warnings };
    Ok((if new { StatusCode::CREATED } else { StatusCode::OK }, Json(body)))
}

/// A table whose manifest has no errors, with its warnings.
fn sound(manifest: &str) -> Result<(Table, Vec<Finding>), Problem> {
    if manifest.len() > MANIFEST_BYTES_MAX {
        let expected = format!("at most {MANIFEST_BYTES_MAX} bytes (manifest_bytes_max)");
        return Err(Problem::new(Reason::TooLarge, "manifest", expected, format!("{} bytes", manifest.len())));
    }
    match interlock_manifest::parse_table("manifest", manifest) {
        Ok((table, report)) => Ok((table, report.problems.iter().map(finding_of_manifest).collect())),
        Err(report) => {
            let findings = report.problems.iter().map(finding_of_manifest).collect();
            Err(Problem::unsound("table", "a sound manifest", findings, report.left_out))
        }
    }
}

/// Tables by name.
#[utoipa::path(
    get, path = "/v1/tables", tag = "tables", operation_id = "list_tables",
    params(
        ("limit" = Option<usize>, Query, description = "At most this many: 1 to 500, 100 if not given"),
        ("after" = Option<String>, Query, description = "Those behind this one"),
    ),
    responses(
        (status = 200, description = "A page", body = TablePage),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(State(app): State<Shared>, uri: Uri) -> Result<Json<TablePage>, Problem> {
    let params = Params::read(&uri, &["limit", "after"])?;
    let limit = params.count("limit", PAGE_DEFAULT, PAGE_MAX)?;
    let found = app.coordinator.tables(params.name("after")?, limit).await?;
    let next = found.last().filter(|_| found.len() >= limit).map(|last| last.name.to_string());
    Ok(Json(TablePage { tables: found.iter().map(views::table_summary).collect(), next }))
}

/// One table: what it holds, its indexes and how far they are, who may do what, what became of its rows lately.
#[utoipa::path(
    get, path = "/v1/tables/{table}", tag = "tables", operation_id = "get_table",
    params(("table" = String, Path, description = "The table's name")),
    responses(
        (status = 200, description = "The table", body = TableView),
        (status = 404, description = "There is none", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn show(
    State(app): State<Shared>,
    TablePath(name): TablePath,
    uri: Uri,
) -> Result<Json<TableView>, Problem> {
    Params::read(&uri, &[])?;
    match app.coordinator.table(&name).await? {
        Some(found) => Ok(Json(views::table(&found))),
        None => Err(app.no_table(&name).await),
    }
}

/// Drops a table. Nothing can be asked of it from then on; its rows go a few at a time, and its name is free when the
/// last is gone.
#[utoipa::path(
    delete, path = "/v1/tables/{table}", tag = "tables", operation_id = "drop_table",
    params(("table" = String, Path, description = "The table's name")),
    responses(
        (status = 202, description = "It goes", body = Dropping),
        (status = 404, description = "There is none", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn drop(
    State(app): State<Shared>,
    TablePath(name): TablePath,
    uri: Uri,
) -> Result<(StatusCode, Json<Dropping>), Problem> {
    Params::read(&uri, &[])?;
    let rows = rows_of(&app, &name).await?;
    app.submit_on(&name, Verb::DropTable(name.clone())).await?;
    Ok((StatusCode::ACCEPTED, Json(Dropping { table: name.to_string(), rows })))
}

async fn rows_of(app: &App, name: &interlock_kernel::ids::TableName) -> Result<u64, Problem> {
    let found = app.coordinator.table(name).await?;
    Ok(found.map(|found| found.head.rows).unwrap_or_default())
}
