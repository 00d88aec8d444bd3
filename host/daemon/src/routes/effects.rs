//! Effects: what is not settled yet, and the operator's two verbs about it.

use super::entities::operate;
use crate::api::{DropRequest, EffectList, EffectRequestView, EffectView, NowView, StandsView};
use crate::app::Shared;
use crate::extract::{Body, EffectPath, EntityPath, Params};
use crate::limits::{PAGE_DEFAULT, PAGE_MAX};
use crate::problem::Problem;
use crate::views::{Clocks, rfc3339};
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use interlock_kernel::command::Verb;
use interlock_kernel::ids::{MachineName, Name, nearest};
use interlock_kernel::record::Stands;

/// What one look at the outbox reads at most, before it is filtered.
const LOOK_MAX: usize = 1_000;

/// Effects of all entities that are due, in flight or given up; those that wait behind them too, if asked for.
#[utoipa::path(
    get, path = "/v1/effects", tag = "effects", operation_id = "list_effects",
    params(
        ("machine" = Option<String>, Query, description = "Only this machine's"),
        ("target" = Option<String>, Query, description = "Only to this target"),
        ("stands" = Option<StandsView>, Query, description = "Only those that stand there; all but `waits` if not given"),
        ("limit" = Option<usize>, Query, description = "At most this many: 1 to 500, 100 if not given"),
    ),
    responses(
        (status = 200, description = "Effects", body = EffectList),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(State(app): State<Shared>, uri: Uri) -> Result<Json<EffectList>, Problem> {
    let params = Params::read(&uri, &["machine", "target", "stands", "limit"])?;
    let machine: Option<MachineName> = params.name("machine")?;
    let target: Option<Name> = params.name("target")?;
    let wanted = params.text("stands").map(stands_named).transpose()?;
    let limit = params.count("limit", PAGE_DEFAULT, PAGE_MAX)?;
    if let Some(machine) = &machine {
        app.machine(machine).await?;
    }
    let found = app.coordinator.effects(LOOK_MAX).await?;
    let clocks = app.now();
    let cut = found.len() >= LOOK_MAX;
    let mut effects: Vec<EffectView> = found
        .iter()
        .filter(|found| machine.as_ref().is_none_or(|machine| *machine == found.entity.machine))
        .filter(|found| target.as_ref().is_none_or(|target| *target == found.effect.target))
        .map(|found| view(found, clocks, Told::InShort))
        .filter(|view| wanted.map_or(view.stands != StandsView::Waits, |wanted| view.stands == wanted))
        .collect();
    let more = cut || effects.len() > limit;
    effects.truncate(limit);
    Ok(Json(EffectList { effects, more }))
}

fn stands_named(text: &str) -> Result<StandsView, Problem> {
    let words = || StandsView::ALL.into_iter().map(StandsView::as_str);
    StandsView::ALL.into_iter().find(|stands| stands.as_str() == text).ok_or_else(|| {
        let near = nearest(text, words()).map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
        let expected = format!("{}{near}", words().collect::<Vec<_>>().join(", "));
        Problem::invalid("query.stands", expected, format_args!("{text:?}"))
    })
}

/// One entity's effects that are not settled, in order, with what the step gave them.
#[utoipa::path(
    get, path = "/v1/entities/{machine}/{key}/effects", tag = "effects", operation_id = "list_entity_effects",
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
    ),
    responses(
        (status = 200, description = "Its effects", body = EffectList),
        (status = 404, description = "There is no such entity", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn of(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    uri: Uri,
) -> Result<Json<EffectList>, Problem> {
    Params::read(&uri, &[])?;
    let found = app.coordinator.effects_of(&entity).await?;
    if found.is_empty() && app.coordinator.entity(&entity).await?.is_none() {
        return Err(app.no_entity(&entity).await);
    }
    let clocks = app.now();
    let effects = found.iter().map(|found| view(found, clocks, Told::Whole)).collect();
    Ok(Json(EffectList { effects, more: false }))
}

/// Has an effect tried again at once, with fresh tries, under the same key. One that is in flight goes on as it is.
#[utoipa::path(
    post, path = "/v1/entities/{machine}/{key}/effects/{number}/retry", tag = "effects", operation_id = "retry_effect",
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
        ("number" = u64, Path, description = "The effect's number"),
    ),
    responses(
        (status = 200, description = "It is tried", body = NowView),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn retry(
    State(app): State<Shared>,
    EffectPath(entity, number): EffectPath,
) -> Result<Json<NowView>, Problem> {
    operate(&app, &entity, Verb::Retry(entity.clone(), number)).await
}

/// Gives an effect up: it is not tried any more, and those behind it in its lane go on.
#[utoipa::path(
    post, path = "/v1/entities/{machine}/{key}/effects/{number}/drop", tag = "effects", operation_id = "drop_effect", request_body = DropRequest,
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
        ("number" = u64, Path, description = "The effect's number"),
    ),
    responses(
        (status = 200, description = "It is given up", body = NowView),
        (status = 409, description = "It is in flight: its answer settles it", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn abandon(
    State(app): State<Shared>,
    EffectPath(entity, number): EffectPath,
    Body(request): Body<DropRequest>,
) -> Result<Json<NowView>, Problem> {
    if request.reason.trim().is_empty() {
        return Err(Problem::invalid("reason", "a reason for the record", "an empty one"));
    }
    operate(&app, &entity, Verb::Drop { entity: entity.clone(), number, reason: request.reason }).await
}

/// How much is told of an effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    InShort,
    Whole,
}

/// An effect, as it is told.
pub(crate) fn view(found: &interlock_coordinator::EffectView, clocks: Clocks, told: Told) -> EffectView {
    let interlock_coordinator::EffectView { entity, number, effect, incarnation, outstanding } = found;
    let (stands, due) = match &effect.stands {
        Stands::Waits => (StandsView::Waits, None),
        Stands::Due(at) => (StandsView::Due, Some(rfc3339(clocks.wall_of(*at)))),
        Stands::InFlight(_) => (StandsView::InFlight, None),
        Stands::Dead { .. } => (StandsView::Dead, None),
    };
    let (code, reason) = match &effect.stands {
        Stands::Dead { code, reason } => (Some(code.clone()), Some(reason.clone())),
        Stands::Waits | Stands::Due(_) | Stands::InFlight(_) => (None, None),
    };
    EffectView {
        entity: entity.to_string(),
        number: *number,
        target: effect.target.to_string(),
        url: effect.url.clone(),
        stands,
        due,
        tries: effect.tries,
        maybe_sent: effect.maybe_sent,
        last: effect.last.clone(),
        code,
        reason,
        key: effect.key.clone(),
        resource: effect.resource.clone(),
        token: effect.token.get(),
        version: effect.version.get(),
        attempt: effect.attempt,
        execution: format!("{entity}@{incarnation}.{}", effect.execution),
        outstanding: *outstanding,
        at: rfc3339(effect.at),
        request: (told == Told::Whole).then(|| EffectRequestView {
            params: effect.fill.clone(),
            headers: effect.headers.clone(),
            body: effect.body.clone().map(crate::api::Document),
        }),
    }
}
