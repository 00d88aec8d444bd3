//! Events: send one, and ask what became of it.

use crate::api::{AnswerKind, AnswerView, Document, EventRequest, ExecutionOutcome, ExpectView};
use crate::app::{App, Shared};
use crate::extract::{Body, EntityPath, EventPath, Params, event_id};
use crate::limits::WAIT_MAX;
use crate::problem::Problem;
use crate::views;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use interlock_coordinator::Settled;
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::ids::{EntityId, EventId, ExecutionRef};
use interlock_kernel::record::{Answer, Expect};
use interlock_kernel::view::Event;
use std::time::Duration;

/// Said of an answer that was given before.
const REPLAYED: &str = "idempotent-replayed";

/// Sends an event. The same id again gets the same answer and changes nothing.
///
/// With `wait` the answer comes when the execution that the event started, joined or waits to start has ended
/// or parked (200), or at the limit (202, with where it stands).
#[utoipa::path(
    post, path = "/v1/entities/{machine}/{key}/events", tag = "events", operation_id = "send_event", request_body = EventRequest,
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
        ("wait" = Option<String>, Query, description = "Wait at most this long, such as `30s`; cut to 5 minutes"),
        ("Idempotency-Key" = Option<String>, Header, description = "The event's id, 1 to 200 bytes; minted if not given"),
    ),
    responses(
        (status = 200, description = "It is done", body = AnswerView,
            headers(("Idempotent-Replayed" = String, description = "`true` if this answer was given before"))),
        (status = 202, description = "It is taken, and goes on", body = AnswerView,
            headers(("Idempotent-Replayed" = String, description = "`true` if this answer was given before"))),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn send(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    uri: Uri,
    headers: HeaderMap,
    Body(request): Body<EventRequest>,
) -> Result<Response, Problem> {
    let wait = Params::read(&uri, &["wait"])?.span("wait", WAIT_MAX)?;
    let event = event(&entity, event_id(&headers)?, request.name, request.payload, request.expect)?;
    let id = event.id.clone();
    let verb = Verb::Deliver { entity: entity.clone(), event: Box::new(event) };
    let outcome = app.submit(&entity.machine, verb).await.map_err(|problem| problem.of_event(&id))?;
    let Outcome::Answered { answer, replayed } = outcome else {
        return Err(Problem::internal("another outcome than an event's"));
    };
    let mut response = answered(&app, &entity, &answer, wait).await?;
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// A kernel's event from a request's parts; an id is minted if there is none.
pub(crate) fn event(
    entity: &EntityId,
    id: Option<EventId>,
    name: String,
    payload: Option<Document>,
    expect: ExpectView,
) -> Result<Event, Problem> {
    let id = match id {
        Some(id) => id,
        None => uuid::Uuid::now_v7().to_string().parse()?,
    };
    let name = name.parse().map_err(|bad| Problem::bad_name("name", bad))?;
    let payload = payload.map(|payload| payload.0);
    Ok(Event { id, name, payload, expect: expectation(entity, expect)?, checked: None })
}

fn expectation(entity: &EntityId, expect: ExpectView) -> Result<Expect, Problem> {
    let mut wanted = Expect {
        incarnation: expect.incarnation,
        execution: None,
        visit: expect.visit,
        generation: expect.generation,
        version: expect.version,
    };
    if let Some(text) = expect.execution {
        let named: ExecutionRef = text.parse().map_err(|bad| Problem::bad_name("expect.execution", bad))?;
        let other_incarnation = expect.incarnation.is_some_and(|incarnation| incarnation != named.incarnation);
        if named.entity != *entity || other_incarnation {
            return Err(Problem::invalid("expect.execution", format_args!("an execution of {entity}"), text));
        }
        wanted.incarnation = Some(named.incarnation);
        wanted.execution = Some(named.ordinal);
    }
    Ok(wanted)
}

/// The response for an answer: at once, or when what it speaks of has ended.
async fn answered(app: &App, entity: &EntityId, answer: &Answer, wait: Option<Duration>) -> Result<Response, Problem> {
    let body = views::answer(entity, answer);
    let Some(wait) = wait else {
        return respond(app, entity, answer, body).await;
    };
    let mut stopping = app.stopping.clone();
    let in_time = tokio::select! {
        settled = app.coordinator.settled(entity, answer, wait) => Some(settled?),
        _ = stopping.wait_for(|stopping| *stopping) => None,
    };
    let settled = match in_time {
        Some(settled) => settled,
        // The daemon stops: say where it stands rather than be cut off.
        None => app.coordinator.settled(entity, answer, Duration::ZERO).await?,
    };
    let body = match settled {
        Settled::Ended { succeeded, state, version, outputs, execution } => AnswerView {
            answer: AnswerKind::Accepted,
            execution: execution.map(|ordinal| format!("{entity}@{}.{ordinal}", answer.incarnation)),
            state: state.to_string(),
            version: version.get(),
            outcome: Some(if succeeded { ExecutionOutcome::Succeeded } else { ExecutionOutcome::Failed }),
            outputs: outputs.map(Document),
            ..body
        },
        Settled::Parked { state, version, execution, .. } => AnswerView {
            answer: AnswerKind::Accepted,
            execution: Some(format!("{entity}@{}.{execution}", answer.incarnation)),
            state: state.to_string(),
            version: version.get(),
            outcome: Some(ExecutionOutcome::Parked),
            ..body
        },
        Settled::Refused(refused) => return respond(app, entity, &refused, views::answer(entity, &refused)).await,
        // It was taken, and what it did to is gone: the answer stands, without how it ended.
        Settled::Gone => {
            let known = app.coordinator.answer(entity, &answer.event).await?.map(|known| known.answer);
            let answer = known.as_ref().unwrap_or(answer);
            return respond(app, entity, answer, views::answer(entity, answer)).await;
        }
        Settled::Pending { answer, state, version } => {
            let body = AnswerView {
                state: state.to_string(),
                version: version.get(),
                outcome: Some(ExecutionOutcome::Running),
                ..views::answer(entity, &answer)
            };
            return Ok((StatusCode::ACCEPTED, Json(body)).into_response());
        }
    };
    Ok((StatusCode::OK, Json(body)).into_response())
}

async fn respond(app: &App, entity: &EntityId, answer: &Answer, body: AnswerView) -> Result<Response, Problem> {
    Ok(match (body.answer, &answer.rejection) {
        (AnswerKind::Refused | AnswerKind::Late, Some(rejection)) => {
            let mut problem = app.explain(&entity.machine, Problem::from(rejection)).await.of_event(&body.event);
            problem.answer = Some(Box::new(body));
            problem.into_response()
        }
        // Accepted without an execution is done: nothing goes on.
        (AnswerKind::Accepted, _) if body.execution.is_none() => (StatusCode::OK, Json(body)).into_response(),
        _ => (StatusCode::ACCEPTED, Json(body)).into_response(),
    })
}

/// What became of an event, as long as its id is remembered.
#[utoipa::path(
    get, path = "/v1/entities/{machine}/{key}/events/{id}", tag = "events", operation_id = "get_event_answer",
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
        ("id" = String, Path, description = "The event's id, percent-encoded"),
    ),
    responses(
        (status = 200, description = "Its answer so far", body = AnswerView),
        (status = 404, description = "It is not remembered", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn answer(
    State(app): State<Shared>,
    EventPath(entity, id): EventPath,
    uri: Uri,
) -> Result<Json<AnswerView>, Problem> {
    Params::read(&uri, &[])?;
    match app.coordinator.answer(&entity, &id).await? {
        Some(known) => Ok(Json(views::answer(&entity, &known.answer))),
        None => {
            let problem = Problem::not_found(format_args!("{entity} event {id}"), "an event id that is remembered");
            Err(app.explain(&entity.machine, problem).await)
        }
    }
}
