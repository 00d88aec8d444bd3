//! Rows: read, check and write in one transaction.
//!
//! What requests and answers look like is `interlock_manifest::rows`'; who may ask is the table's declaration's.

mod ask;

use self::ask::{Caller, NOBODY, ask, misread, named, of_path, on_row};
use crate::api::{
    ClaimRequest, QueryRequest, RowDeleted, RowPage, RowUpdated, RowView, RowWritten, RowsClaimed, TransactRequest,
    Transacted, UpdateRequest, UpsertRequest,
};
use crate::app::{App, Shared};
use crate::extract::{AnyJson, Params, RowPath, TablePath, header_text, if_match, if_none};
use crate::problem::Problem;
use crate::views;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use interlock_coordinator::SubmitError;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::TableName;
use interlock_kernel::rows::{Found, RowAnswer, RowAsk, RowShown, RowsAsk};
use interlock_kernel::value::Filter;
use interlock_manifest::rows::{self, Asks};
use serde_json::Value;

async fn one(app: &App, (kind, table): (&str, &TableName), caller: Caller, body: Value) -> Result<Response, Problem> {
    let op = rows::op(&of_path(body, kind, table)?, Asks::Client).map_err(misread)?;
    let answered = ask(app, caller, RowsAsk { require: Vec::new(), ops: vec![op] }).await.map_err(whole)?;
    let answer = answered.one()?.clone();
    Ok(answered.respond(StatusCode::OK, &rows::answer(&answer)))
}

/// A refusal of a request that is one operation: which one goes without saying.
fn whole(refused: Problem) -> Problem {
    Problem { pointer: None, ..refused }
}

fn tag(version: u64) -> Result<HeaderValue, Problem> {
    HeaderValue::try_from(format!("\"{version}\"")).map_err(|_| Problem::internal("a version that is no header"))
}

/// A row.
#[utoipa::path(
    get, path = "/v1/tables/{table}/rows/{key}", tag = "rows", operation_id = "get_row",
    params(
        ("table" = String, Path, description = "The table's name"),
        ("key" = String, Path, description = "The row's key, percent-encoded: a `/` in it is `%2F`"),
    ),
    responses(
        (status = 200, description = "The row", body = RowView,
            headers(("ETag" = String, description = "Its version, for `If-Match`"))),
        (status = 404, description = "There is none", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get(
    State(app): State<Shared>,
    RowPath(table, key): RowPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Params::read(&uri, &[])?;
    let caller = Caller { label: NOBODY.to_owned(), id: None };
    let answered = ask(&app, caller, on_row(&table, RowAsk::Get { key: named(&key) })).await.map_err(whole)?;
    let RowAnswer::Got { row: Some(row), .. } = answered.one()? else {
        let missing = Problem::not_found(format_args!("{table}/{key}"), "a row with this key");
        return Err(app.explain_on(&table, missing.saying(format!("there is no row {key} in table {table}"))).await);
    };
    let mut body = rows::row(row);
    if let Some(since) = since(&app, &table, row).await? {
        body["claimed_since"] = since.into();
    }
    let mut response = Json(body).into_response();
    response.headers_mut().insert(header::ETAG, tag(row.version)?);
    Ok(response)
}

/// Since when a row is claimed, unless it was changed meanwhile.
async fn since(app: &App, table: &TableName, shown: &RowShown) -> Result<Option<String>, Problem> {
    if shown.claimed_by.is_none() {
        return Ok(None);
    }
    let found = app.coordinator.row(table, &shown.key).await?.filter(|row| row.version == shown.version);
    Ok(found.and_then(|row| row.claim).map(|claim| views::rfc3339(claim.since)))
}

/// Writes a whole row: the body is its value.
#[utoipa::path(
    put, path = "/v1/tables/{table}/rows/{key}", tag = "rows", operation_id = "put_row",
    request_body(content = crate::api::Document, description = "The row's value, any JSON"),
    params(
        ("table" = String, Path, description = "The table's name"),
        ("key" = String, Path, description = "The row's key, percent-encoded"),
        ("as" = Option<String>, Query, description = "What the client calls itself"),
        ("If-Match" = Option<String>, Header, description = "The version that it replaces, such as `\"42\"`"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is none"),
        ("Idempotency-Key" = Option<String>, Header, description = "Asked again under the same id within a day, it is answered the same and done once"),
    ),
    responses(
        (status = 200, description = "It is written over the one that was there", body = RowWritten,
            headers(("ETag" = String, description = "Its version"), ("Idempotent-Replayed" = String, description = "`true` if this answer was given before"))),
        (status = 201, description = "It is new", body = RowWritten,
            headers(("ETag" = String, description = "Its version"), ("Idempotent-Replayed" = String, description = "`true` if this answer was given before"))),
        (status = 412, description = "Another version is there, or one where none was to be", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn put(
    State(app): State<Shared>,
    RowPath(table, key): RowPath,
    caller: Caller,
    headers: HeaderMap,
    AnyJson(value): AnyJson,
) -> Result<Response, Problem> {
    let expect = match (if_match(&headers, "version")?, if_none(&headers)?) {
        (Some(_), true) => return Err(Problem::invalid("If-None-Match", "If-Match or If-None-Match", "both")),
        (Some(version), false) => Some(Found::Version(version)),
        (None, true) => Some(Found::Absent),
        (None, false) => None,
    };
    let what = RowAsk::Put { key: named(&key), value: Doc::new(value), fill: Vec::new(), expect };
    let answered = ask(&app, caller, on_row(&table, what)).await.map_err(whole)?;
    let (status, version, body) = match answered.one()? {
        answer @ RowAnswer::Put { inserted, row } => {
            let status = if *inserted { StatusCode::CREATED } else { StatusCode::OK };
            (status, row.version, rows::answer(answer))
        }
        _ => return Err(Problem::internal("another answer than a put's")),
    };
    let mut response = answered.respond(status, &body);
    response.headers_mut().insert(header::ETAG, tag(version)?);
    Ok(response)
}

/// Removes a row. One that is not there is no error: `deleted` says which.
#[utoipa::path(
    delete, path = "/v1/tables/{table}/rows/{key}", tag = "rows", operation_id = "delete_row",
    params(
        ("table" = String, Path, description = "The table's name"),
        ("key" = String, Path, description = "The row's key, percent-encoded"),
        ("as" = Option<String>, Query, description = "What the client calls itself"),
        ("Idempotency-Key" = Option<String>, Header, description = "Asked again under the same id within a day, it is answered the same and done once"),
    ),
    responses(
        (status = 200, description = "It is gone", body = RowDeleted,
            headers(("Idempotent-Replayed" = String, description = "`true` if this answer was given before"))),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete(
    State(app): State<Shared>,
    RowPath(table, key): RowPath,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // Unread it would delete what it was to keep.
    if let Some(text) = header_text(&headers, "if-match")? {
        let expected = "none: a condition of a delete is the `where` of a delete in /v1/transact";
        return Err(Problem::invalid("If-Match", expected, text));
    }
    let what = RowAsk::Delete { key: named(&key), filter: Filter::default() };
    let answered = ask(&app, caller, on_row(&table, what)).await.map_err(whole)?;
    let body = rows::answer(answered.one()?);
    Ok(answered.respond(StatusCode::OK, &body))
}

/// Changes one row if a guard holds; never creates it. That it matches nothing is no error: `unmatched` says why.
#[utoipa::path(
    post, path = "/v1/tables/{table}/update", tag = "rows", operation_id = "update_row", request_body = UpdateRequest,
    params(
        ("table" = String, Path, description = "The table's name"),
        ("as" = Option<String>, Query, description = "What the client calls itself: what `{\"from\": \"execution\"}` is to it"),
        ("Idempotency-Key" = Option<String>, Header, description = "Asked again under the same id within a day, it is answered the same and done once"),
    ),
    responses(
        (status = 200, description = "It is decided", body = RowUpdated,
            headers(("Idempotent-Replayed" = String, description = "`true` if this answer was given before"))),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn update(
    State(app): State<Shared>,
    TablePath(table): TablePath,
    caller: Caller,
    AnyJson(body): AnyJson,
) -> Result<Response, Problem> {
    one(&app, ("update", &table), caller, body).await
}

/// Inserts a row if it is absent, changes it otherwise. An empty `set` leaves a row alone that is there.
#[utoipa::path(
    post, path = "/v1/tables/{table}/upsert", tag = "rows", operation_id = "upsert_row", request_body = UpsertRequest,
    params(
        ("table" = String, Path, description = "The table's name"),
        ("as" = Option<String>, Query, description = "What the client calls itself: what `{\"from\": \"execution\"}` is to it"),
        ("Idempotency-Key" = Option<String>, Header, description = "Asked again under the same id within a day, it is answered the same and done once"),
    ),
    responses(
        (status = 200, description = "It is there", body = RowWritten,
            headers(("Idempotent-Replayed" = String, description = "`true` if this answer was given before"))),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn upsert(
    State(app): State<Shared>,
    TablePath(table): TablePath,
    caller: Caller,
    AnyJson(body): AnyJson,
) -> Result<Response, Problem> {
    one(&app, ("upsert", &table), caller, body).await
}

/// Takes rows that nobody else takes, in order, marked as they are taken.
///
/// With `Idempotency-Key` the same request gets the rows that it still has, as they are now, and the keys of those that it
/// has lost; without it a request that is sent again takes more.
#[utoipa::path(
    post, path = "/v1/tables/{table}/claim", tag = "rows", operation_id = "claim_rows", request_body = ClaimRequest,
    params(
        ("table" = String, Path, description = "The table's name"),
        ("as" = Option<String>, Query, description = "What the client calls itself: the `claimed_by` of the rows"),
        ("Idempotency-Key" = Option<String>, Header, description = "Asked again under the same id within a day, it is answered with the same claim"),
    ),
    responses(
        (status = 200, description = "What it took", body = RowsClaimed,
            headers(("Idempotent-Replayed" = String, description = "`true` if this claim was answered before"))),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn claim(
    State(app): State<Shared>,
    TablePath(table): TablePath,
    caller: Caller,
    AnyJson(body): AnyJson,
) -> Result<Response, Problem> {
    one(&app, ("claim", &table), caller, body).await
}

/// Reads rows by filter, on one snapshot of the store.
///
/// A filter that no index serves looks at 10,000 rows at most, and is then refused with the index that would help.
#[utoipa::path(
    post, path = "/v1/tables/{table}/query", tag = "rows", operation_id = "query_rows", request_body = QueryRequest,
    params(
        ("table" = String, Path, description = "The table's name"),
        ("as" = Option<String>, Query, description = "What the client calls itself: what `{\"from\": \"execution\"}` is to it"),
    ),
    responses(
        (status = 200, description = "A page", body = RowPage),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn query(
    State(app): State<Shared>,
    TablePath(table): TablePath,
    caller: Caller,
    AnyJson(body): AnyJson,
) -> Result<Json<Value>, Problem> {
    let ask = rows::query(&of_path(body, "query", &table)?, Asks::Client).map_err(misread)?;
    match app.coordinator.query(&caller.label, ask).await {
        Ok(answer) => Ok(Json(rows::found(&answer))),
        Err(SubmitError::Rejected(refused)) => Err(app.explain_on(&table, Problem::from(&*refused)).await),
        Err(error) => Err(error.into()),
    }
}

/// Several operations in one transaction, under conditions on other rows and entities: all of them, or nothing.
///
/// An operation that matches nothing does not keep the others from being done, unless it says `must`.
#[utoipa::path(
    post, path = "/v1/transact", tag = "rows", operation_id = "transact", request_body = TransactRequest,
    params(
        ("as" = Option<String>, Query, description = "What the client calls itself: what `{\"from\": \"execution\"}` is to it"),
        ("Idempotency-Key" = Option<String>, Header, description = "Asked again under the same id within a day, it is answered the same and done once"),
    ),
    responses(
        (status = 200, description = "All of it is done", body = Transacted,
            headers(("Idempotent-Replayed" = String, description = "`true` if this answer was given before"))),
        (status = 422, description = "A condition does not hold, or an operation that must match does not", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn transact(
    State(app): State<Shared>,
    caller: Caller,
    AnyJson(body): AnyJson,
) -> Result<Response, Problem> {
    let wanted = rows::ask(&body, Asks::Client).map_err(misread)?;
    let answered = ask(&app, caller, wanted).await?;
    let answers: Vec<Value> = answered.answers.iter().map(rows::answer).collect();
    Ok(answered.respond(StatusCode::OK, &serde_json::json!({ "answers": answers })))
}
