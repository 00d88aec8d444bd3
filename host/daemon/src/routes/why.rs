//! Why: the one question of whoever is called at night.

use crate::api::{Because, WhyView};
use crate::app::{App, Shared};
use crate::extract::{EntityPath, LeasePath, Params};
use crate::problem::Problem;
use crate::routes::leases::unknown;
use crate::views::Dispatched;
use crate::views::why::{self, Looked};
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use interlock_coordinator::EntityView;
use interlock_kernel::ids::{EntityId, ExecutionRef};

/// Why an entity stands where it stands: what it waits for or who holds it, since when, what comes next and when,
/// what an operator can do. With `execution`, of that execution: over, or what the entity waits for.
#[utoipa::path(
    get, path = "/v1/entities/{machine}/{key}/why", tag = "entities", operation_id = "why_entity",
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
        ("execution" = Option<String>, Query, description = "Of this execution, `machine/key@incarnation.number`"),
    ),
    responses(
        (status = 200, description = "Why", body = WhyView),
        (status = 404, description = "There is none", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn entity(
    State(app): State<Shared>,
    EntityPath(id): EntityPath,
    uri: Uri,
) -> Result<Json<WhyView>, Problem> {
    let params = Params::read(&uri, &["execution"])?;
    let asked: Option<ExecutionRef> = params.name("execution")?;
    if let Some(asked) = asked.as_ref().filter(|asked| asked.entity != id) {
        let expected = format!("an execution of {id}");
        return Err(Problem::invalid("query.execution", expected, format_args!("one of {}", asked.entity)));
    }
    let Some(found) = app.coordinator.entity(&id).await? else { return Err(app.no_entity(&id).await) };
    let now = looked(&app, &id, &found, asked.as_ref()).await?;
    match asked {
        Some(asked) if !is_current(&found, &asked) => past(&id, &found, &asked, now).map(Json),
        asked => Ok(Json(WhyView { subject: subject(&id, asked.as_ref()), ..now })),
    }
}

async fn looked(
    app: &App,
    id: &EntityId,
    found: &EntityView,
    asked: Option<&ExecutionRef>,
) -> Result<WhyView, Problem> {
    let awaits = match &found.head.awaits {
        Some(name) => app.coordinator.lease(name).await?,
        None => None,
    };
    let mut leases = Vec::new();
    for name in &found.head.leases {
        leases.extend(app.coordinator.lease(name).await?);
    }
    let outbox = found.head.outbox;
    let effects = match outbox.unsettled > 0 || outbox.dead > 0 {
        true => app.coordinator.effects_of(id).await?,
        false => Vec::new(),
    };
    let rows = app.coordinator.claimed_by(id, asked.map(|asked| (asked.incarnation, asked.ordinal))).await?;
    let looked = Looked {
        id,
        head: &found.head,
        machine: &found.revision.machine,
        clocks: app.clocks(found.store_ms),
        dispatched: Dispatched::of(found.phase),
        awaits: awaits.as_ref(),
        leases: &leases,
        effects: &effects,
        rows: &rows,
    };
    Ok(looked.why())
}

fn subject(id: &EntityId, asked: Option<&ExecutionRef>) -> String {
    asked.map_or_else(|| id.to_string(), |asked| format!("{id}@{}.{}", asked.incarnation, asked.ordinal))
}

fn is_current(found: &EntityView, asked: &ExecutionRef) -> bool {
    let lock = found.head.lock.as_ref();
    asked.incarnation == found.head.incarnation.get() && lock.is_some_and(|lock| lock.ordinal == asked.ordinal)
}

/// An execution that does not hold the entity: it has ended, or never was.
fn past(id: &EntityId, found: &EntityView, asked: &ExecutionRef, now: WhyView) -> Result<WhyView, Problem> {
    let (head, subject) = (&found.head, subject(id, Some(asked)));
    let incarnation = head.incarnation.get();
    let is_known =
        asked.incarnation < incarnation || (asked.incarnation == incarnation && asked.ordinal <= head.executions);
    if !is_known || asked.ordinal == 0 {
        let expected = format!("an execution up to {id}@{incarnation}.{}", head.executions);
        return Err(Problem::not_found(&subject, expected).saying(format!("there is no execution {subject}")));
    }
    let last = head.last.as_ref().filter(|last| asked.incarnation == incarnation && last.ordinal == asked.ordinal);
    let sentence = match last {
        Some(last) => {
            let how = if last.succeeded { "succeeded" } else { "failed" };
            format!("it is over: it {how} in {} at version {}", last.state, last.version)
        }
        None => "it is over; the history of its entity has how it ended".to_owned(),
    };
    let operator = vec![format!("interlock entity history {id}")];
    Ok(WhyView {
        subject,
        because: Because::Over,
        sentence,
        holder: None,
        since: None,
        progress: None,
        failure: None,
        awaits: None,
        leases: Vec::new(),
        next: Vec::new(),
        operator,
        ..now
    })
}

/// Why a lease stands where it stands: who has it or is next, since when, until when.
#[utoipa::path(
    get, path = "/v1/leases/{name}/why", tag = "leases", operation_id = "why_lease",
    params(("name" = String, Path, description = "The lease's name, percent-encoded")),
    responses(
        (status = 200, description = "Why", body = WhyView),
        (status = 404, description = "Nobody has it, wants it, or has asked for it lately", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn lease(
    State(app): State<Shared>,
    LeasePath(name): LeasePath,
    uri: Uri,
) -> Result<Json<WhyView>, Problem> {
    Params::read(&uri, &[])?;
    let found = app.coordinator.lease(&name).await?.ok_or_else(|| unknown(&name))?;
    Ok(Json(why::lease(&found, app.clocks(found.at.0))))
}
