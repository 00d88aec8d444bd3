//! Entities: make, ask, list, write `desired`, and the operator's verbs.

use crate::api::{
    Applied, ApplyRequest, CreateRequest, Created, DesiredView, EntityPage, EntityView, Existing, FirstEvent,
    HistoryPage, KillRequest, NowView, UnlockRequest,
};
use crate::app::{App, Shared};
use crate::extract::{Body, EntityPath, Params, if_match};
use crate::limits::{PAGE_DEFAULT, PAGE_MAX};
use crate::problem::{Problem, Reason};
use crate::routes::{effects, events};
use crate::views::{self, Around, Dispatched};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use interlock_coordinator::Listing;
use interlock_kernel::command::{Create, OnExisting, Outcome, Verb};
use interlock_kernel::ids::{EntityId, Name, nearest};
use interlock_kernel::machine::{ApplyPolicy, Machine};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes an entity; the same request again is the existing one.
#[utoipa::path(
    post, path = "/v1/entities", tag = "entities", operation_id = "create_entity", request_body = CreateRequest,
    responses(
        (status = 200, description = "It was there already", body = Created),
        (status = 201, description = "It is there", body = Created),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn create(
    State(app): State<Shared>,
    Body(request): Body<CreateRequest>,
) -> Result<(StatusCode, Json<Created>), Problem> {
    let entity = EntityId { machine: request.machine.parse()?, key: request.key.parse()? };
    let event = request.event.map(|first| first_event(&entity, first)).transpose()?;
    let verb = Verb::Create(Box::new(Create {
        entity: entity.clone(),
        desired: request.desired.map(|desired| desired.0),
        labels: request.labels,
        on_existing: match request.on_existing {
            Existing::Same => OnExisting::Same,
            Existing::Fail => OnExisting::Fail,
            Existing::Use => OnExisting::Use,
            Existing::Recreate => OnExisting::Recreate,
        },
        event,
    }));
    let Outcome::Created { new, answer, .. } = app.submit(&entity.machine, verb).await? else {
        return Err(Problem::internal("another outcome than a create's"));
    };
    let created = Created {
        new,
        answer: answer.map(|answer| views::answer(&entity, &answer)),
        // Somebody may have taken it away by now: it was made all the same.
        entity: found(&app, &entity).await?,
    };
    Ok((if new { StatusCode::CREATED } else { StatusCode::OK }, Json(created)))
}

fn first_event(entity: &EntityId, first: FirstEvent) -> Result<interlock_kernel::view::Event, Problem> {
    let id = first.id.map(|id| id.parse()).transpose()?;
    events::event(entity, id, first.name, first.payload, first.expect)
}

/// Entities, by machine and key. A page may be shorter than `limit` and not be the last: `next` says.
#[utoipa::path(
    get, path = "/v1/entities", tag = "entities", operation_id = "list_entities",
    params(
        ("machine" = Option<String>, Query, description = "Only this machine's"),
        ("state" = Option<String>, Query, description = "Only those in this state"),
        ("parked" = Option<bool>, Query, description = "Only parked ones"),
        ("label" = Option<Vec<String>>, Query, description = "Only those with this label, `name=value`; may stand more than once"),
        ("limit" = Option<usize>, Query, description = "At most this many: 1 to 500, 100 if not given"),
        ("after" = Option<String>, Query, description = "Those behind this one, `machine/key`"),
    ),
    responses(
        (status = 200, description = "A page", body = EntityPage),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(State(app): State<Shared>, uri: Uri) -> Result<Json<EntityPage>, Problem> {
    let params = Params::read(&uri, &["machine", "state", "parked", "label", "limit", "after"])?;
    let listing = Listing {
        machine: params.name("machine")?,
        state: params.name("state")?,
        labels: labels(&params)?,
        parked: params.flag("parked")?,
        after: params.name("after")?,
        limit: params.count("limit", PAGE_DEFAULT, PAGE_MAX)?,
    };
    if let Some(name) = &listing.machine {
        let machine = app.machine(name).await?.revision.machine.clone();
        if let Some(state) = &listing.state {
            known_state(&machine, state)?;
        }
    }
    let page = app.coordinator.entities(listing).await?;
    let clocks = app.now();
    let mut machines: BTreeMap<(String, u64), Arc<Machine>> = BTreeMap::new();
    let mut entities = Vec::with_capacity(page.entities.len());
    for (id, head) in &page.entities {
        let key = (id.machine.to_string(), head.revision);
        let machine = match machines.get(&key) {
            Some(machine) => Arc::clone(machine),
            None => {
                let machine = Arc::clone(&app.revision(&id.machine, head.revision).await?.machine);
                machines.insert(key, Arc::clone(&machine));
                machine
            }
        };
        entities.push(Around { machine: &machine, clocks, dispatched: Dispatched::Yes }.summary(id, head));
    }
    Ok(Json(EntityPage { entities, next: page.next.map(|next| next.to_string()) }))
}

/// A state that the active revision has. Entities on an older one may be in others: then ask without it.
fn known_state(machine: &Machine, state: &Name) -> Result<(), Problem> {
    if machine.state(state).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = machine.states.keys().map(Name::as_str).collect();
    let hint = nearest(state.as_str(), names.iter().copied()).map(|near| format!(" (did you mean {near}?)"));
    let expected = format!("one of {}{}", names.join(", "), hint.unwrap_or_default());
    Err(Problem::invalid("query.state", expected, state))
}

fn labels(params: &Params) -> Result<BTreeMap<String, String>, Problem> {
    let pairs = params.all("label").map(|label| match label.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(Problem::invalid("query.label", "name=value", format_args!("{label:?}"))),
    });
    pairs.collect()
}

/// One entity, whole.
#[utoipa::path(
    get, path = "/v1/entities/{machine}/{key}", tag = "entities", operation_id = "get_entity",
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
    ),
    responses(
        (status = 200, description = "The entity", body = EntityView),
        (status = 404, description = "There is none", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn show(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    uri: Uri,
) -> Result<Json<EntityView>, Problem> {
    Params::read(&uri, &[])?;
    view(&app, &entity).await.map(Json)
}

/// An entity as it is now.
pub(crate) async fn view(app: &App, entity: &EntityId) -> Result<EntityView, Problem> {
    match found(app, entity).await? {
        Some(view) => Ok(view),
        None => Err(app.no_entity(entity).await),
    }
}

/// The same; none if it is not there.
async fn found(app: &App, entity: &EntityId) -> Result<Option<EntityView>, Problem> {
    let Some(found) = app.coordinator.entity(entity).await? else { return Ok(None) };
    let dispatched = Dispatched::of(found.phase);
    let around = Around { machine: &found.revision.machine, clocks: app.clocks(found.store_ms), dispatched };
    let mut view = around.entity(entity, &found.head, found.documents, &found.conditions);
    if found.head.outbox.unsettled > 0 || found.head.outbox.dead > 0 {
        let effects = app.coordinator.effects_of(entity).await?;
        let outstanding = effects.iter().filter(|effect| effect.outstanding);
        let told = outstanding.map(|effect| effects::view(effect, around.clocks, effects::Told::InShort));
        view.outstanding = told.collect();
    }
    Ok(Some(view))
}

/// What clients want, and whether the steps have seen it. The header `ETag` is the generation.
#[utoipa::path(
    get, path = "/v1/entities/{machine}/{key}/desired", tag = "entities", operation_id = "get_desired",
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
    ),
    responses(
        (status = 200, description = "What clients want", body = DesiredView),
        (status = 404, description = "There is no such entity", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn desired(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    uri: Uri,
) -> Result<([(header::HeaderName, String); 1], Json<DesiredView>), Problem> {
    Params::read(&uri, &[])?;
    let entity = view(&app, &entity).await?;
    let tag = format!("\"{}\"", entity.generation);
    let body = DesiredView {
        generation: entity.generation,
        observed_generation: entity.observed_generation,
        desired: entity.desired,
    };
    Ok(([(header::ETAG, tag)], Json(body)))
}

/// Writes `desired`. Needs no lock and never conflicts with a step.
///
/// `If-Match` names the generation it replaces; it may be left out only where the machine lets the last writer win.
#[utoipa::path(
    put, path = "/v1/entities/{machine}/{key}/desired", tag = "entities", operation_id = "apply_desired", request_body = ApplyRequest,
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
        ("If-Match" = Option<String>, Header, description = "The generation it replaces, in quotes"),
    ),
    responses(
        (status = 200, description = "It is written", body = Applied),
        (status = 412, description = "Another generation is there", body = Problem, content_type = "application/problem+json"),
        (status = 428, description = "If-Match is missing", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn apply(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    headers: HeaderMap,
    Body(request): Body<ApplyRequest>,
) -> Result<Json<Applied>, Problem> {
    let expect = if_match(&headers, "generation")?;
    if expect.is_none() {
        let Some(found) = app.coordinator.entity(&entity).await? else { return Err(app.no_entity(&entity).await) };
        if found.revision.machine.apply == ApplyPolicy::IfMatch {
            let expected = format!("If-Match: \"{}\", the generation it replaces", found.head.generation);
            return Err(Problem::new(Reason::NoPrecondition, &entity, expected, "no If-Match").owned_by(found.owner));
        }
    }
    let verb = Verb::Apply { entity: entity.clone(), desired: request.desired.0, expect, checked: None };
    let Outcome::Applied { generation } = app.submit(&entity.machine, verb).await? else {
        return Err(Problem::internal("another outcome than an apply's"));
    };
    // It may be gone by now; it was written.
    let seen = app.coordinator.entity(&entity).await?.map_or(0, |found| found.head.observed);
    Ok(Json(Applied { entity: entity.to_string(), generation, observed_generation: seen }))
}

/// Takes an entity away that is at rest or over. Its history stays for its retention.
#[utoipa::path(
    delete, path = "/v1/entities/{machine}/{key}", tag = "entities", operation_id = "delete_entity",
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
    ),
    responses(
        (status = 200, description = "It is gone", body = NowView),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    uri: Uri,
) -> Result<Json<NowView>, Problem> {
    Params::read(&uri, &[])?;
    operate(&app, &entity, Verb::Delete(entity.clone())).await
}

/// Ends whatever an entity does, for good: it is `killed`, a final state. Twice is once.
#[utoipa::path(
    post, path = "/v1/entities/{machine}/{key}/kill", tag = "entities", operation_id = "kill_entity", request_body = KillRequest,
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
    ),
    responses(
        (status = 200, description = "It is over", body = NowView),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn kill(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    Body(request): Body<KillRequest>,
) -> Result<Json<NowView>, Problem> {
    if request.reason.trim().is_empty() {
        return Err(Problem::invalid("reason", "a reason, for the record", "an empty text"));
    }
    operate(&app, &entity, Verb::Kill { entity: entity.clone(), reason: request.reason }).await
}

/// Has a parked entity tried again, with fresh budgets. Twice is once; what is not parked stays as it is.
#[utoipa::path(
    post, path = "/v1/entities/{machine}/{key}/unpark", tag = "entities", operation_id = "unpark_entity",
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
    ),
    responses(
        (status = 200, description = "It is tried again", body = NowView),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn unpark(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    uri: Uri,
) -> Result<Json<NowView>, Problem> {
    Params::read(&uri, &[])?;
    operate(&app, &entity, Verb::Unpark(entity.clone())).await
}

/// Ends the execution of an entity as a failure does, into a rest or a failed final state. Refused as `busy` while
/// something but an operator can still move it, which is named; `force` and a reason do it all the same.
#[utoipa::path(
    post, path = "/v1/entities/{machine}/{key}/unlock", tag = "entities", operation_id = "unlock_entity", request_body = UnlockRequest,
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
    ),
    responses(
        (status = 200, description = "It is unlocked", body = NowView),
        (status = 409, description = "Something can still move it, or nothing holds it", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn unlock(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    Body(request): Body<UnlockRequest>,
) -> Result<Json<NowView>, Problem> {
    let UnlockRequest { to, force, reason } = request;
    let to = to.parse().map_err(|bad| Problem::bad_name("to", bad))?;
    operate(&app, &entity, Verb::Unlock { entity: entity.clone(), to, force, reason }).await
}

/// An operator's verb about an entity.
pub(crate) async fn operate(app: &App, entity: &EntityId, verb: Verb) -> Result<Json<NowView>, Problem> {
    let Outcome::Now { version, state, changed } = app.submit(&entity.machine, verb).await? else {
        return Err(Problem::internal("another outcome than an operator's verb has"));
    };
    let (entity, state) = (entity.to_string(), state.to_string());
    Ok(Json(NowView { entity, state, version: version.get(), changed }))
}

/// What is on record of an entity, newest first; of a deleted one too, for its retention.
#[utoipa::path(
    get, path = "/v1/entities/{machine}/{key}/history", tag = "entities", operation_id = "get_history",
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
        ("limit" = Option<usize>, Query, description = "At most this many: 1 to 500, 100 if not given"),
        ("before" = Option<u64>, Query, description = "Only entries before this number"),
        ("incarnation" = Option<u64>, Query, description = "Of this incarnation; the newest if not given"),
    ),
    responses(
        (status = 200, description = "A page", body = HistoryPage),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn history(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    uri: Uri,
) -> Result<Json<HistoryPage>, Problem> {
    let params = Params::read(&uri, &["limit", "before", "incarnation"])?;
    let limit = params.count("limit", PAGE_DEFAULT, PAGE_MAX)?;
    let (before, incarnation) = (params.number("before")?, params.number("incarnation")?);
    let Some(found) = app.coordinator.history(&entity, incarnation, before, limit).await? else {
        return Err(app.no_entity(&entity).await);
    };
    let entries = found.entries.iter().map(|entry| views::entry(&entity, found.incarnation, entry));
    Ok(Json(HistoryPage {
        entity: entity.to_string(),
        incarnation: found.incarnation,
        entries: entries.collect(),
        next: found.before,
    }))
}
