//! Leases: take, renew, give back, read. A grant goes in by a body and comes out once: it is the client's
//! secret, and no address, list or log has it.

use crate::api::{AcquireRequest, ExtendRequest, LeaseHeld, LeasePage, LeaseReleased, LeaseView, ReleaseRequest};
use crate::app::{App, Shared};
use crate::extract::{Body, LeasePath, Params};
use crate::limits::{LEASE_WAIT_MAX, PAGE_DEFAULT, PAGE_MAX};
use crate::problem::Problem;
use crate::views;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use interlock_coordinator::SubmitError;
use interlock_kernel::command::{Acquire, Command, Outcome, Verb};
use interlock_kernel::ids::{GrantId, LeaseName, Principal};
use interlock_kernel::limits::{LEASE_HOLD_MS_DEFAULT, LEASE_TTL_MS_DEFAULT};
use interlock_kernel::record::Terms;
use interlock_kernel::rejection::Code;
use interlock_kernel::value::parse_ms;

/// Takes a lease, or renews it for the grant that has it. Somebody else's is refused as `busy`, with who has it.
///
/// With `wait` the request stands in line, first come first served. A client that goes away meanwhile is out of
/// the line, and what it was granted in that moment is free again.
#[utoipa::path(
    post, path = "/v1/leases/{name}", tag = "leases", operation_id = "acquire_lease", request_body = AcquireRequest,
    params(
        ("name" = String, Path, description = "The lease's name, percent-encoded: a `/` in it is `%2F`"),
        ("wait" = Option<String>, Query, description = "Stand in line at most this long, such as `30s`; cut to 5 minutes"),
    ),
    responses(
        (status = 200, description = "It is renewed: this grant had it", body = LeaseHeld),
        (status = 201, description = "It is granted", body = LeaseHeld),
        (status = 409, description = "Somebody else has it, or is next", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn acquire(
    State(app): State<Shared>,
    LeasePath(lease): LeasePath,
    uri: Uri,
    Body(request): Body<AcquireRequest>,
) -> Result<(StatusCode, Json<LeaseHeld>), Problem> {
    let wait = Params::read(&uri, &["wait"])?.span("wait", LEASE_WAIT_MAX)?;
    let ttl_ms = length("ttl", request.ttl.as_deref())?.unwrap_or(LEASE_TTL_MS_DEFAULT);
    let terms = Terms {
        ttl_ms,
        hold_ms: length("hold_max", request.hold_max.as_deref())?.unwrap_or(LEASE_HOLD_MS_DEFAULT),
        delay_ms: length("lock_delay", request.lock_delay.as_deref())?.unwrap_or_default(),
    };
    let grant = match &request.grant {
        Some(grant) => grant_of(grant)?,
        None => uuid::Uuid::new_v4().to_string().parse()?,
    };
    let ask = Acquire {
        lease: lease.clone(),
        grant: grant.clone(),
        label: request.label.unwrap_or_default(),
        terms,
        wait_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
    };
    let mut stopping = app.stopping.clone();
    let outcome = tokio::select! {
        outcome = app.coordinator.acquire(Principal::local(), ask) => outcome?,
        // Out of the line, told rather than cut off.
        _ = stopping.wait_for(|stopping| *stopping) => return Err(stops()),
    };
    let held = held(&app, outcome)?;
    let status = if held.new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(LeaseHeld { grant: Some(grant.to_string()), ..held })))
}

fn stops() -> Problem {
    let reason = crate::problem::Reason::Decided(Code::Unavailable);
    Problem::new(reason, "the host", "one that stays", "one that is stopping").retry_after(1_000)
}

fn held(app: &App, outcome: Outcome) -> Result<LeaseHeld, Problem> {
    let Outcome::Leased { claim, new, ttl_ms, until } = outcome else {
        return Err(Problem::internal("another outcome than a lease's"));
    };
    let until = views::rfc3339(app.now().wall_of(until));
    Ok(LeaseHeld { lease: claim.lease.to_string(), grant: None, token: claim.token.get(), ttl_ms, until, new })
}

fn length(field: &str, text: Option<&str>) -> Result<Option<u64>, Problem> {
    let bad =
        |text: &str| Problem::invalid(field, "a duration such as 500ms, 30s, 5m, 2h or 7d", format_args!("{text:?}"));
    text.map(|text| parse_ms(text).map_err(|_| bad(text))).transpose()
}

/// A grant as a client names it. What is no grant may be a mistyped one: it is not said back.
fn grant_of(text: &str) -> Result<GrantId, Problem> {
    text.parse().map_err(|bad: interlock_kernel::ids::BadName| Problem::invalid("grant", bad.expected, "another text"))
}

async fn submit(app: &App, verb: Verb) -> Result<Outcome, SubmitError> {
    app.coordinator.submit(Command { by: Principal::local(), verb }).await
}

/// Renews a lease: whoever does not have it, or not any more, is told `fenced`.
#[utoipa::path(
    post, path = "/v1/leases/{name}/extend", tag = "leases", operation_id = "extend_lease", request_body = ExtendRequest,
    params(("name" = String, Path, description = "The lease's name, percent-encoded")),
    responses(
        (status = 200, description = "It is renewed", body = LeaseHeld),
        (status = 409, description = "It is not held under this grant and token", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn extend(
    State(app): State<Shared>,
    LeasePath(lease): LeasePath,
    uri: Uri,
    Body(request): Body<ExtendRequest>,
) -> Result<Json<LeaseHeld>, Problem> {
    Params::read(&uri, &[])?;
    let ttl_ms = length("ttl", request.ttl.as_deref())?;
    let verb = Verb::Extend { lease, grant: grant_of(&request.grant)?, token: request.token, ttl_ms };
    let outcome = submit(&app, verb).await?;
    held(&app, outcome).map(Json)
}

/// Gives a lease back. Whoever does not have it, or not any more, is told `fenced`.
#[utoipa::path(
    post, path = "/v1/leases/{name}/release", tag = "leases", operation_id = "release_lease", request_body = ReleaseRequest,
    params(("name" = String, Path, description = "The lease's name, percent-encoded")),
    responses(
        (status = 200, description = "It is free", body = LeaseReleased),
        (status = 409, description = "It is not held under this grant and token", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not now", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn release(
    State(app): State<Shared>,
    LeasePath(lease): LeasePath,
    uri: Uri,
    Body(request): Body<ReleaseRequest>,
) -> Result<Json<LeaseReleased>, Problem> {
    Params::read(&uri, &[])?;
    let token = request.token;
    let verb = Verb::Release { lease: lease.clone(), grant: grant_of(&request.grant)?, token };
    match submit(&app, verb).await? {
        Outcome::Released => Ok(Json(LeaseReleased { lease: lease.to_string(), token })),
        _ => Err(Problem::internal("another outcome than a release's")),
    }
}

/// One lease: who has it, who is next, what became of it lately.
#[utoipa::path(
    get, path = "/v1/leases/{name}", tag = "leases", operation_id = "get_lease",
    params(("name" = String, Path, description = "The lease's name, percent-encoded")),
    responses(
        (status = 200, description = "The lease", body = LeaseView),
        (status = 404, description = "Nobody has it, wants it, or has asked for it lately", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn show(
    State(app): State<Shared>,
    LeasePath(lease): LeasePath,
    uri: Uri,
) -> Result<Json<LeaseView>, Problem> {
    Params::read(&uri, &[])?;
    let found = app.coordinator.lease(&lease).await?.ok_or_else(|| unknown(&lease))?;
    Ok(Json(views::lease(&found, app.clocks(found.at.0))))
}

/// That nothing is known of a lease. It can be taken all the same.
pub(crate) fn unknown(lease: &LeaseName) -> Problem {
    Problem::not_found(format_args!("lease {lease}"), "a lease that somebody has, waits for, or has asked for lately")
        .saying(format!("nobody has lease {lease}, waits for it, or has asked for it lately"))
}

/// Leases by name: those that somebody has, waits for, or has asked for lately.
#[utoipa::path(
    get, path = "/v1/leases", tag = "leases", operation_id = "list_leases",
    params(
        ("prefix" = Option<String>, Query, description = "Only those whose names begin so"),
        ("limit" = Option<usize>, Query, description = "At most this many: 1 to 500, 100 if not given"),
        ("after" = Option<String>, Query, description = "Those behind this one"),
    ),
    responses(
        (status = 200, description = "A page", body = LeasePage),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(State(app): State<Shared>, uri: Uri) -> Result<Json<LeasePage>, Problem> {
    let params = Params::read(&uri, &["prefix", "limit", "after"])?;
    let limit = params.count("limit", PAGE_DEFAULT, PAGE_MAX)?;
    let after = params.name("after")?;
    let beginning = params.text("prefix").unwrap_or_default();
    let (found, next) = app.coordinator.leases(beginning, after, limit).await?;
    let leases = found.iter().map(|lease| views::lease_summary(lease, app.clocks(lease.at.0))).collect();
    Ok(Json(LeasePage { leases, next: next.map(|next| next.to_string()) }))
}
