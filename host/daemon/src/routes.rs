//! The routes: a request in, a command or a question to the coordinator, an answer out.

pub(crate) mod effects;
pub(crate) mod entities;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod leases;
pub(crate) mod machines;
pub(crate) mod rows;
pub(crate) mod schedules;
pub(crate) mod tables;
pub(crate) mod watch;
pub(crate) mod why;

use crate::app::Shared;
use crate::limits::DEPLOY_BODY_BYTES_MAX;
use crate::problem::{Problem, Reason};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, Uri};
use axum::{Json, Router};
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Interlock",
        description = "Guarded state machines on a durable store. Every refusal is a problem (RFC 9457) with a stable \
                       `code`; `Retry-After` stands wherever repeating makes sense. Requests refuse fields and \
                       parameters that they do not know."
    ),
    tags(
        (name = "machines", description = "Definitions and their revisions"),
        (name = "entities", description = "Durable subjects that follow a machine"),
        (name = "events", description = "What happens to them"),
        (name = "leases", description = "Named exclusive rights with a time to live"),
        (name = "tables", description = "Declarations of what rows are, and who may do what with them"),
        (name = "rows", description = "JSON values by key: read, checked and written in one transaction"),
        (name = "schedules", description = "Events that the host raises again and again"),
        (name = "effects", description = "Requests that entities have made to the outside"),
        (name = "watch", description = "What happened, told as it happens"),
        (name = "host", description = "The host itself")
    )
)]
struct Api;

/// Every route, and their description.
fn described() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(machines::deploy, machines::list))
        .routes(routes!(machines::show))
        .routes(routes!(machines::rollback))
        .routes(routes!(entities::create, entities::list))
        .routes(routes!(entities::show, entities::delete))
        .routes(routes!(entities::desired, entities::apply))
        .routes(routes!(entities::kill))
        .routes(routes!(entities::unpark))
        .routes(routes!(entities::unlock))
        .routes(routes!(entities::history))
        .routes(routes!(events::send))
        .routes(routes!(events::answer))
        .routes(routes!(leases::list))
        .routes(routes!(leases::acquire, leases::show))
        .routes(routes!(leases::extend))
        .routes(routes!(leases::release))
        .routes(routes!(why::lease))
        .routes(routes!(why::entity))
        .routes(routes!(watch::lease))
        .routes(routes!(tables::declare, tables::list))
        .routes(routes!(tables::show, tables::drop))
        .routes(routes!(rows::get, rows::put, rows::delete))
        .routes(routes!(rows::update))
        .routes(routes!(rows::upsert))
        .routes(routes!(rows::claim))
        .routes(routes!(rows::query))
        .routes(routes!(rows::transact))
        .routes(routes!(schedules::declare, schedules::list))
        .routes(routes!(schedules::show, schedules::drop))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(effects::list))
        .routes(routes!(effects::of))
        .routes(routes!(effects::retry))
        .routes(routes!(effects::abandon))
        .routes(routes!(watch::entity))
        .routes(routes!(watch::all))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::stats))
}

/// The API's description, as `GET /v1/openapi.json` answers it.
#[must_use]
pub fn openapi() -> Document {
    let (_, mut document) = described().split_for_parts();
    // The release is not part of the contract, so that the golden file changes only with it.
    document.info.version = "v1".to_owned();
    document.info.license = None;
    document.info.contact = None;
    document
}

/// The service without its outer layers.
pub(crate) fn router() -> Router<Shared> {
    let document = Arc::new(openapi());
    let (router, _) = described().split_for_parts();
    router
        .route("/v1/openapi.json", axum::routing::get(move || async move { Json((*document).clone()) }))
        .method_not_allowed_fallback(no_method)
        .fallback(no_route)
        .layer(DefaultBodyLimit::max(DEPLOY_BODY_BYTES_MAX))
}

async fn no_route(uri: Uri) -> Problem {
    Problem::new(Reason::NoRoute, uri.path(), "one of the paths in /v1/openapi.json", "another")
        .saying(format!("there is no {}", uri.path()))
}

async fn no_method(State(_): State<Shared>, method: Method, uri: Uri) -> Problem {
    Problem::new(Reason::NoMethod, uri.path(), "a method that the path has (header Allow)", method)
}
