//! What happened, told as it happens: server-sent events.
//!
//! A stream reads the feed only as fast as its reader takes it, so a slow one holds nothing but its own place;
//! one that is slower than the feed's window is told `gone`.

use crate::api::{WatchEntry, WatchLease, WatchRows};
use crate::app::Shared;
use crate::extract::{EntityPath, LeasePath, Params, header_text};
use crate::limits::KEEP_ALIVE;
use crate::problem::{Problem, Reason};
use crate::views;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, StreamExt, stream};
use interlock_coordinator::{Filter, Of, Watch, WatchError, Watched};
use interlock_store::{Position, StoreError};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;

/// How long the first look at a position may take before the stream begins without its judgement.
const FIRST_LOOK: Duration = Duration::from_millis(50);

/// What happens to one entity, as it happens; behind `Last-Event-ID` or `after`, or from now on.
///
/// Events are named `entry`, their data is an entry, their id its position; the first event is `from`, with the
/// position that the stream begins behind. `gone` says that the stream fell out of what is kept: list again.
#[utoipa::path(
    get, path = "/v1/entities/{machine}/{key}/watch", tag = "watch", operation_id = "watch_entity",
    params(
        ("machine" = String, Path, description = "The machine's name"),
        ("key" = String, Path, description = "The entity's key, percent-encoded"),
        ("after" = Option<String>, Query, description = "The position to begin behind; the header goes first"),
        ("Last-Event-ID" = Option<String>, Header, description = "The position to begin behind"),
    ),
    responses(
        (status = 200, description = "A stream", body = WatchEntry, content_type = "text/event-stream"),
        (status = 410, description = "The position is no longer kept", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn entity(
    State(app): State<Shared>,
    EntityPath(entity): EntityPath,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let params = Params::read(&uri, &["after"])?;
    // One that is not there yet may come; a machine that is not there is a mistake.
    app.machine(&entity.machine).await?;
    open(app, Filter::Entity(entity), &headers, &params).await
}

/// What becomes of one lease, as it happens. Events are named `lease`; see the watch of one entity.
#[utoipa::path(
    get, path = "/v1/leases/{name}/watch", tag = "watch", operation_id = "watch_lease",
    params(
        ("name" = String, Path, description = "The lease's name, percent-encoded"),
        ("after" = Option<String>, Query, description = "The position to begin behind; the header goes first"),
        ("Last-Event-ID" = Option<String>, Header, description = "The position to begin behind"),
    ),
    responses(
        (status = 200, description = "A stream", body = WatchLease, content_type = "text/event-stream"),
        (status = 410, description = "The position is no longer kept", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn lease(
    State(app): State<Shared>,
    LeasePath(lease): LeasePath,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let params = Params::read(&uri, &["after"])?;
    open(app, Filter::Lease(lease), &headers, &params).await
}

/// What happens to every entity, lease and claimed row, to every entity of a machine, or to the rows of a table.
///
/// Events are named `entry`, `lease` and `rows`; see the watch of one entity.
#[utoipa::path(
    get, path = "/v1/watch", tag = "watch", operation_id = "watch_all",
    params(
        ("machine" = Option<String>, Query, description = "Only this machine's"),
        ("table" = Option<String>, Query, description = "Only what becomes of this table's rows: events named `rows`"),
        ("after" = Option<String>, Query, description = "The position to begin behind; the header goes first"),
        ("Last-Event-ID" = Option<String>, Header, description = "The position to begin behind"),
    ),
    responses(
        (status = 200, description = "A stream", body = WatchEntry, content_type = "text/event-stream"),
        (status = 410, description = "The position is no longer kept", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn all(
    State(app): State<Shared>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let params = Params::read(&uri, &["machine", "table", "after"])?;
    let filter = match (params.name("machine")?, params.name("table")?) {
        (Some(_), Some(_)) => return Err(Problem::invalid("query.table", "a machine or a table", "both")),
        (Some(machine), None) => {
            app.machine(&machine).await?;
            Filter::Machine(machine)
        }
        (None, Some(table)) => match app.coordinator.table(&table).await? {
            Some(_) => Filter::Table(table),
            None => return Err(app.no_table(&table).await),
        },
        (None, None) => Filter::All,
    };
    open(app, filter, &headers, &params).await
}

async fn open(
    app: Shared,
    filter: Filter,
    headers: &HeaderMap,
    params: &Params,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, Problem> {
    let given = header_text(headers, "last-event-id")?.or(params.text("after"));
    let after: Option<Position> = given
        .map(|text| {
            text.parse()
                .map_err(|_| Problem::invalid("Last-Event-ID", "a position such as \"42.0\"", format_args!("{text:?}")))
        })
        .transpose()?;
    let mut watch = app.coordinator.watch(filter, after);
    let from = watch.position();
    // The first look judges a position that was given, while a status can still say so.
    let first = match given.map(|_| tokio::time::timeout(FIRST_LOOK, watch.next())) {
        None => Vec::new(),
        Some(look) => match look.await {
            Ok(Ok(entries)) => entries,
            Ok(Err(error)) => return Err(problem(error)),
            Err(_) => Vec::new(),
        },
    };
    let begin = Event::default().event("from").id(from.to_string()).data(format!("{{\"position\":\"{from}\"}}"));
    let told = stream::iter([begin]).chain(stream::iter(first.into_iter().map(|entry| told(&entry))));
    let rest = stream::unfold(Some((watch, app.stopping.clone())), next).flat_map(stream::iter);
    let events = told.chain(rest).map(Ok);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("still here")))
}

type Going = Option<(Watch, watch::Receiver<bool>)>;

/// The next events of a stream, and how it goes on; it ends when the daemon stops.
async fn next(going: Going) -> Option<(Vec<Event>, Going)> {
    let (mut watch, mut stopping) = going?;
    let entries = tokio::select! {
        entries = watch.next() => entries,
        // An error means that the daemon is gone altogether.
        _ = stopping.wait_for(|stopping| *stopping) => return None,
    };
    match entries {
        Ok(entries) => Some((entries.iter().map(told).collect(), Some((watch, stopping)))),
        Err(WatchError::Store(StoreError::Closed)) => None,
        Err(error) => {
            let problem = problem(error);
            let last = Event::default().event(problem.code.clone());
            let last = last.json_data(&problem).unwrap_or_else(|_| Event::default().event(problem.code));
            Some((vec![last], None))
        }
    }
}

fn told(watched: &Watched) -> Event {
    let position = watched.position.to_string();
    let (event, told) = match &watched.of {
        Of::Entity { entity, incarnation, entry } => {
            let body = WatchEntry {
                position: position.clone(),
                entity: entity.to_string(),
                incarnation: *incarnation,
                entry: views::entry(entity, *incarnation, entry),
            };
            let event = Event::default().event("entry").id(position);
            (event.clone(), event.json_data(&body))
        }
        Of::Lease { lease, entry } => {
            let entry = views::lease_entry(entry);
            let body = WatchLease { position: position.clone(), lease: lease.to_string(), entry };
            let event = Event::default().event("lease").id(position);
            (event.clone(), event.json_data(&body))
        }
        Of::Rows { table, entry } => {
            let entry = views::row_entry(entry);
            let body = WatchRows { position: position.clone(), table: table.to_string(), entry };
            let event = Event::default().event("rows").id(position);
            (event.clone(), event.json_data(&body))
        }
    };
    told.unwrap_or(event)
}

fn problem(error: WatchError) -> Problem {
    match error {
        WatchError::Gone { oldest } => {
            Problem::new(Reason::Gone, "Last-Event-ID", format_args!("a position from {oldest} on"), "an older one")
                .saying("what happened there is no longer kept: list again, and watch from now on")
        }
        WatchError::Ahead { newest } => Problem::new(
            Reason::Gone,
            "Last-Event-ID",
            format_args!("a position up to {newest}"),
            "a later one",
        )
        .saying("this store has not come that far, it was restored or is another: list again, and watch from now on"),
        WatchError::Store(error) => error.into(),
    }
}
