//! A request on rows: who asks, in which words, and how a refusal says where it is wrong.

use crate::app::App;
use crate::extract::{Params, event_id};
use crate::problem::Problem;
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use interlock_coordinator::SubmitError;
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EventId, ExecutionRef, Principal, RowKey, TableName};
use interlock_kernel::limits::KEY_BYTES_MAX;
use interlock_kernel::rejection::Rejection;
use interlock_kernel::rows::{ClientRows, Require, RowAnswer, RowAsk, RowOp, RowsAsk};
use interlock_manifest::rows::Misread;
use serde_json::Value;

/// Said of an answer that was given before.
const REPLAYED: &str = "idempotent-replayed";

/// What clients are called that do not say.
pub(super) const NOBODY: &str = "local";

/// Who asks, and under which id.
pub(crate) struct Caller {
    pub(super) label: String,
    pub(super) id: Option<EventId>,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let params = Params::read(&parts.uri, &["as"])?;
        Ok(Self { label: label(&params)?, id: event_id(&parts.headers)? })
    }
}

/// What a client calls itself.
fn label(params: &Params) -> Result<String, Problem> {
    let label = params.text("as").unwrap_or(NOBODY);
    // What an execution has claimed is its own to settle: nobody else may be called so.
    let good = (1..=KEY_BYTES_MAX).contains(&label.len())
        && !label.chars().any(char::is_control)
        && label.parse::<ExecutionRef>().is_err();
    if !good {
        let expected = format!("1 to {KEY_BYTES_MAX} bytes without control characters that are no execution's id");
        return Err(Problem::invalid("query.as", expected, format_args!("{label:?}")));
    }
    Ok(label.to_owned())
}

/// What was answered, and whether it had been before.
pub(super) struct Answered {
    pub(super) answers: Vec<RowAnswer>,
    replayed: bool,
}

impl Answered {
    pub(super) fn respond(self, status: StatusCode, body: &Value) -> Response {
        let mut response = (status, Json(body)).into_response();
        if self.replayed {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }

    /// The answer to the only operation.
    pub(super) fn one(&self) -> Result<&RowAnswer, Problem> {
        self.answers.first().ok_or_else(|| Problem::internal("no answer to an operation on rows"))
    }
}

/// Asks for what a request says; a refusal says who answers for the table.
pub(super) async fn ask(app: &App, caller: Caller, ask: RowsAsk) -> Result<Answered, Problem> {
    let tables = tables(&ask);
    let verb = Verb::Rows(Box::new(ClientRows { ask, label: caller.label, id: caller.id }));
    match app.coordinator.submit(Command { by: Principal::local(), verb }).await {
        Ok(Outcome::Rows { answers, replayed }) => Ok(Answered { answers, replayed }),
        Ok(_) => Err(Problem::internal("another outcome than that of a request on rows")),
        Err(SubmitError::Rejected(refused)) => Err(refusal(app, &refused, &tables).await),
        Err(error) => Err(error.into()),
    }
}

fn tables(ask: &RowsAsk) -> Vec<TableName> {
    let required = ask.require.iter().filter_map(|require| match require {
        Require::Row { table, .. } => Some(table),
        Require::Entity { .. } => None,
    });
    required.chain(ask.ops.iter().map(|op| &op.table)).cloned().collect()
}

/// A refusal with who answers for the table that it is about.
async fn refusal(app: &App, refused: &Rejection, tables: &[TableName]) -> Problem {
    let mut problem = Problem::from(refused);
    problem.pointer = refused.detail.as_ref().and_then(|detail| place(detail.value()));
    let is_about = |table: &&TableName| {
        let subject = refused.subject.strip_prefix("table ").unwrap_or(&refused.subject);
        subject.strip_prefix(table.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match tables.iter().find(is_about) {
        Some(table) => app.explain_on(table, problem).await,
        None => problem,
    }
}

/// Which condition or operation of the request a refusal is about.
fn place(detail: &Value) -> Option<String> {
    ["require", "ops"].iter().find_map(|list| Some(format!("/{list}/{}", detail.get(list)?.as_u64()?)))
}

/// What cannot be read, with its place in the body.
pub(super) fn misread(why: Misread) -> Problem {
    let subject = if why.at.is_empty() { "body" } else { &why.at };
    Problem::invalid(subject, &why.expected, &why.got).at(why.at.clone())
}

/// The kinds of operations that a body could name beside its path.
const KINDS: [&str; 7] = ["claim", "delete", "get", "put", "query", "update", "upsert"];

/// A body whose operation and table are its path's, as the operation that it is.
pub(super) fn of_path(mut body: Value, kind: &str, table: &TableName) -> Result<Value, Problem> {
    let Some(fields) = body.as_object_mut() else {
        let got = Doc::new(body).text().chars().take(40).collect::<String>();
        return Err(Problem::invalid("body", "a JSON object", got).at(""));
    };
    // A claim has a field of the name `delete`.
    let named = |name: &&&str| fields.contains_key(**name) && (**name, kind) != ("delete", "claim");
    if let Some(name) = KINDS.iter().find(named) {
        let expected = format!("no field of this name: the path says {kind}, and of which table");
        return Err(Problem::invalid(format_args!("/{name}"), expected, "one").at(format!("/{name}")));
    }
    fields.insert(kind.to_owned(), table.as_str().into());
    Ok(body)
}

pub(super) fn on_row(table: &TableName, what: RowAsk) -> RowsAsk {
    let op = RowOp { table: table.clone(), what, fields: Vec::new(), must: false };
    RowsAsk { require: Vec::new(), ops: vec![op] }
}

pub(super) fn named(key: &RowKey) -> interlock_kernel::value::Value {
    interlock_kernel::value::Value::Json(Doc::new(key.as_str().into()))
}
