//! `interlock entity ...`

use super::input::document;
use crate::args::{Apply, Create, Entity, History, List, Send, Watch};
use crate::client::Client;
use crate::failed::{Failed, Silence};
use crate::out::Out;
use crate::show;
use interlock_daemon::api::{
    ApplyRequest, CreateRequest, EventRequest, ExecutionOutcome, ExpectView, FirstEvent, NowView, UnlockRequest,
    WatchEntry,
};
use std::collections::BTreeMap;

/// Runs it.
pub(crate) async fn run(args: Entity, client: &Client, out: Out) -> Result<(), Failed> {
    match args {
        Entity::Create(args) => create(args, client, out).await,
        Entity::Get { entity } => {
            let entity = client.entity(&entity).await?;
            out.result(&entity, |paint| show::entity(&entity, paint));
            Ok(())
        }
        Entity::List(args) => list(args, client, out).await,
        Entity::Apply(args) => apply(args, client, out).await,
        Entity::Send(args) => send(args, client, out).await,
        Entity::History(args) => history(args, client, out).await,
        Entity::Watch(args) => watch(args, client, out).await,
        Entity::Delete { entity } => {
            let now = client.delete(&entity).await?;
            out.result(&now, |_| format!("{entity} is deleted\n"));
            Ok(())
        }
        Entity::Kill { entity, reason } => {
            let now = client.kill(&entity, &reason).await?;
            out.result(&now, |_| stands(&now));
            Ok(())
        }
        Entity::Unpark { entity } => {
            let now = client.unpark(&entity).await?;
            out.result(&now, |_| stands(&now));
            Ok(())
        }
        Entity::Unlock { entity, to, force, reason } => {
            let request = UnlockRequest { to: to.to_string(), force, reason: reason.unwrap_or_default() };
            let now = client.unlock(&entity, &request).await?;
            out.result(&now, |_| stands(&now));
            Ok(())
        }
    }
}

/// Where an entity stands after an operator's verb.
pub(super) fn stands(now: &NowView) -> String {
    let already = if now.changed { "" } else { "   as it was already" };
    format!("{}   {}   version {}{already}\n", now.entity, now.state, now.version)
}

async fn create(args: Create, client: &Client, out: Out) -> Result<(), Failed> {
    let id = args.id.unwrap_or_else(mint);
    let mut labels = BTreeMap::new();
    for (name, value) in args.labels {
        if let Some(old) = labels.insert(name.clone(), value.clone()) {
            return Err(Failed::Input(format!("--label: expected {name} once, got {name}={old} and {name}={value}")));
        }
    }
    let first = |name| -> Result<FirstEvent, Failed> {
        let payload = args.payload.as_deref().map(|text| document("payload", text)).transpose()?;
        Ok(FirstEvent { id: Some(id), name, payload, expect: ExpectView::default() })
    };
    let request = CreateRequest {
        machine: args.entity.machine.to_string(),
        key: args.entity.key.to_string(),
        desired: args.desired.as_deref().map(|text| document("desired", text)).transpose()?,
        labels,
        on_existing: args.on_existing.into(),
        event: args.event.map(first).transpose()?,
    };
    let created = client.create(&request).await?;
    let id = format!("{}/{}", request.machine, request.key);
    out.result(&created, |paint| {
        let was = if created.new { paint.green("created") } else { "was there already".to_owned() };
        let mut text = match &created.entity {
            Some(entity) => format!("{id}   {was}   {}   version {}\n", entity.state, entity.version),
            None => format!("{id}   {was}   gone again\n"),
        };
        if let Some(answer) = &created.answer {
            text.push_str(&show::answer(&id, answer, false, paint));
        }
        text
    });
    Ok(())
}

async fn list(args: List, client: &Client, out: Out) -> Result<(), Failed> {
    let mut query = vec![("limit", args.limit.to_string())];
    query.extend(args.machine.map(|machine| ("machine", machine.to_string())));
    query.extend(args.state.map(|state| ("state", state)));
    query.extend(args.labels.into_iter().map(|(name, value)| ("label", format!("{name}={value}"))));
    query.extend(args.after.map(|after| ("after", after)));
    let page = client.entities(&query).await?;
    out.result(&page, |_| show::entities(&page));
    if let Some(next) = &page.next {
        out.hint(&format!("there may be more: --after {next}"));
    }
    Ok(())
}

async fn apply(args: Apply, client: &Client, out: Out) -> Result<(), Failed> {
    let request = ApplyRequest { desired: document("desired", &args.desired)? };
    let applied = client.apply(&args.entity, &request, args.if_generation).await?;
    out.result(&applied, |_| {
        let seen = applied.observed_generation;
        format!("{}   generation {}, steps have seen {seen}\n", applied.entity, applied.generation)
    });
    Ok(())
}

async fn send(args: Send, client: &Client, out: Out) -> Result<(), Failed> {
    let id = args.id.unwrap_or_else(mint);
    let request = EventRequest {
        name: args.event,
        payload: args.payload.as_deref().map(|text| document("payload", text)).transpose()?,
        expect: ExpectView {
            version: args.expect_version,
            generation: args.expect_generation,
            execution: args.expect_execution,
            ..ExpectView::default()
        },
    };
    let answered = match client.send(&args.entity, &request, &id, args.wait.as_deref()).await {
        Ok(answered) => answered,
        Err(failed) => {
            if let Failed::Unreachable { why: Silence::Broken(_), .. } = failed {
                out.hint(&format!("whether it was taken is not known; the same id is safe to send again: --id {id}"));
            }
            return Err(failed);
        }
    };
    let entity = args.entity.to_string();
    out.result(&answered.answer, |paint| show::answer(&entity, &answered.answer, answered.replayed, paint));
    match answered.answer.outcome {
        Some(ExecutionOutcome::Failed | ExecutionOutcome::Parked) => Out::over(crate::failed::Code::Refused),
        Some(ExecutionOutcome::Running) => Out::over(crate::failed::Code::RefusedForNow),
        Some(ExecutionOutcome::Succeeded) | None => Ok(()),
    }
}

/// An id for one occurrence of an event: it begins with the time, so ids sort as they were made.
fn mint() -> String {
    uuid::Uuid::now_v7().to_string()
}

async fn history(args: History, client: &Client, out: Out) -> Result<(), Failed> {
    let mut query = vec![("limit", args.limit.to_string())];
    query.extend(args.before.map(|before| ("before", before.to_string())));
    let page = client.history(&args.entity, &query).await?;
    out.result(&page, |_| show::history(&page, show::When::Shown));
    if let Some(next) = page.next {
        out.hint(&format!("older entries: --before {next}"));
    }
    Ok(())
}

/// What becomes of leases is told by their own watch.
async fn watch(args: Watch, client: &Client, out: Out) -> Result<(), Failed> {
    let Watch { entity, machine, after } = args;
    let open = async |at: Option<&str>| client.watch(entity.as_ref(), machine.as_ref(), at).await;
    super::watch(after, out, open, told).await
}

/// Tells one entry of a stream.
pub(super) fn told(name: &str, data: &str, out: Out) {
    let entry: Result<WatchEntry, _> = serde_json::from_str(data);
    if let (Ok(entry), "entry") = (entry, name) {
        out.result(&entry, |_| show::watched(&entry));
    }
}
