//! Scene 3: steps that do not behave ask for what is not theirs, and are refused or stopped.

use super::board::Board;
use super::lock::{event, fresh};
use super::stage::{Built, Guest, Stage};
use crate::failed::Failed;
use interlock_daemon::api::{CreateRequest, DeployRequest, EntityView, EntryView, Existing};
use interlock_daemon::base64;
use interlock_kernel::ids::EntityId;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Long enough for a loop to be in full swing before it loses its lock.
const SWING: Duration = Duration::from_millis(200);

pub(crate) async fn play(stage: &Stage<'_>, built: &Built, board: &mut Board) -> Result<(), Failed> {
    board.scene(3, "A step that does not behave (guests/hostile)");
    deploy(stage, &built.hostile).await?;
    spent(stage, board).await?;
    not_allowed(stage, board).await?;
    match &built.hostile_wasi {
        Ok(guest) => socket(stage, guest, board).await?,
        Err(why) => board.leave_out("a socket", why),
    }
    endless(stage, board).await?;
    fenced(stage, board).await
}

async fn deploy(stage: &Stage<'_>, guest: &Guest) -> Result<(), Failed> {
    let component = Some(base64::encode(&guest.component));
    stage.client.deploy(&DeployRequest { manifest: guest.manifest.clone(), component }).await.map(drop)
}

/// An entity of its own that attempts what the name says.
async fn begin(stage: &Stage<'_>, machine: &str, name: &str) -> Result<EntityId, Failed> {
    let entity: EntityId = format!("{machine}/{name}").parse().map_err(|why| Failed::Input(format!("{why}")))?;
    let request = CreateRequest {
        machine: machine.to_owned(),
        key: name.to_owned(),
        desired: None,
        labels: BTreeMap::new(),
        on_existing: Existing::Same,
        event: None,
    };
    stage.client.create(&request).await?;
    let payload = format!("{{\"name\":\"{name}\"}}");
    match event(stage, &entity, "attempt", &payload, &fresh(), None).await? {
        Ok(_) => Ok(entity),
        Err(problem) => Err(problem.into()),
    }
}

/// The same, until nothing works on it any more.
async fn through(stage: &Stage<'_>, machine: &str, name: &str) -> Result<(EntityId, EntityView), Failed> {
    let entity = begin(stage, machine, name).await?;
    let over = stage.once(&entity, |entity| entity.locked_by.is_none()).await?;
    Ok((entity, over))
}

/// What the step was told, as it says itself: `code: subject: expected ..., got ...`.
fn said(entity: &EntityView) -> String {
    let said = entity.data.as_ref().and_then(|data| data.0.value().get("said")?.get(0)?.as_str().map(str::to_owned));
    said.unwrap_or_default()
}

fn told(line: &str) -> (String, String) {
    let mut parts = line.splitn(3, ": ");
    let code = parts.next().unwrap_or_default().to_owned();
    (code, parts.nth(1).unwrap_or_default().to_owned())
}

async fn spent(stage: &Stage<'_>, board: &mut Board) -> Result<(), Failed> {
    let (entity, over) = through(stage, "hostile", "spent").await?;
    // It heard the no after its accepted transition, so only its log can tell.
    let line = stage.logged(|line| of(line, &entity) && message(line).starts_with("spent: ")).await;
    let (code, rest) = told(&line.as_ref().map(|line| message(line).to_owned()).unwrap_or_default());
    board.row("a second transition", "REFUSED", &format!("{code}   {rest}"));
    board.expect("a second transition hears spent", code == "spent");
    board.expect("its first transition stands", over.state == "calm" && over.version == 3);
    Ok(())
}

async fn not_allowed(stage: &Stage<'_>, board: &mut Board) -> Result<(), Failed> {
    let (_, over) = through(stage, "hostile", "not-allowed").await?;
    let (code, rest) = told(&said(&over));
    board.row("a state out of reach", "REFUSED", &format!("{code}   {rest}"));
    board.expect("a state out of reach hears not_allowed", code.starts_with("not") && over.state == "calm");
    Ok(())
}

async fn socket(stage: &Stage<'_>, guest: &Guest, board: &mut Board) -> Result<(), Failed> {
    deploy(stage, guest).await?;
    let (_, over) = through(stage, "hostile-wasi", "no-sockets").await?;
    board.row("a socket", "REFUSED", &format!("{}: a step has no network", said(&over)));
    board.expect("no socket was opened", over.state == "calm");
    Ok(())
}

async fn endless(stage: &Stage<'_>, board: &mut Board) -> Result<(), Failed> {
    let (entity, over) = through(stage, "hostile", "idle-deadline").await?;
    let entries = history(stage, &entity).await?;
    let failed = entries.iter().find(|entry| entry.failure.is_some());
    let code = failed.and_then(|entry| entry.failure.as_ref()).map(|failure| failure.code.clone()).unwrap_or_default();
    let began = entries.iter().find(|entry| entry.kind == "event");
    let token = began.and_then(|entry| entry.token).unwrap_or_default();
    let after = began.zip(failed).and_then(|(began, failed)| between(&began.at, &failed.at)).unwrap_or_default();
    let seconds = after.as_secs_f64();
    board.row("a loop without end", "STOPPED", &format!("{code} of 1 s, after {seconds:.1} s; token {token}"));
    board.expect("a loop meets its idle deadline", code == "idle-deadline" && over.state == "stopped");
    board.expect("it was not stopped early", after >= Duration::from_millis(950));
    Ok(())
}

/// A loop loses its lock to an operator's kill. Nothing it does counts from then on; how soon it is stopped as
/// well is in the daemon's log.
async fn fenced(stage: &Stage<'_>, board: &mut Board) -> Result<(), Failed> {
    let entity = begin(stage, "hostile", "fence-loop").await?;
    stage.once(&entity, |entity| entity.lock.as_ref().is_some_and(|lock| lock.token.is_some())).await?;
    tokio::time::sleep(SWING).await;
    stage.client.kill(&entity, "the demo takes its lock away").await?;
    let entries = history(stage, &entity).await?;
    let killed = entries.iter().find(|entry| entry.kind == "killed");
    let ended = stage.logged(|line| of(line, &entity) && message(line) == "attempt failed").await;
    let stopped = ended.as_ref().and_then(|line| line.get("timestamp")?.as_str());
    let after = killed.zip(stopped).and_then(|(killed, stopped)| between(&killed.at, stopped));
    let ms = after.map_or("?".to_owned(), |after| after.as_millis().to_string());
    board.row(
        "a loop after losing its lock",
        "STOPPED",
        &format!("{ms} ms after, the commit included (a loop is looked at every 10 ms)"),
    );
    board.expect("a loop that lost its lock is stopped", after.is_some_and(|after| after < Duration::from_millis(950)));
    let over = stage.entity(&entity).await?;
    board.expect("the loop changed nothing", over.state == "killed" && over.version == 3);
    Ok(())
}

async fn history(stage: &Stage<'_>, entity: &EntityId) -> Result<Vec<EntryView>, Failed> {
    let page = stage.client.history(entity, &[("limit", "100".to_owned())]).await?;
    Ok(page.entries.into_iter().rev().collect())
}

fn between(from: &str, to: &str) -> Option<Duration> {
    let (from, to): (Timestamp, Timestamp) = (from.parse().ok()?, to.parse().ok()?);
    Duration::try_from(to.duration_since(from)).ok()
}

fn message(line: &Value) -> &str {
    line.pointer("/fields/message").and_then(Value::as_str).unwrap_or_default()
}

fn of(line: &Value, entity: &EntityId) -> bool {
    line.pointer("/span/entity").and_then(Value::as_str) == Some(&entity.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_told_refusal_is_taken_apart() {
        let (code, rest) = told("not_allowed: hostile/x: expected calm or alarm, got root");
        assert_eq!((code.as_str(), rest.as_str()), ("not_allowed", "expected calm or alarm, got root"));
        let apart = between("2026-03-01T10:15:03.250Z", "2026-03-01T10:15:03.256789Z");
        assert_eq!(apart, Some(Duration::from_nanos(6_789_000)));
    }
}
