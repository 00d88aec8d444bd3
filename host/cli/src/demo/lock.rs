//! Scene 1: one operation at a time, and everybody else is told who, since when and until when.

use super::ENTITY;
use super::board::Board;
use super::stage::{Built, Stage, attempt};
use crate::client::Answered;
use crate::commands::input::document;
use crate::failed::Failed;
use crate::show;
use interlock_daemon::api::{
    AnswerKind, AnswerView, CreateRequest, DeployRequest, EventRequest, Existing, ExpectView, Kind,
};
use interlock_daemon::{Problem, base64};
use interlock_kernel::ids::EntityId;
use std::collections::BTreeMap;

/// What the manifest says of the provider, and what this demo makes of it: nobody watches for 90 s.
const WAIT: (&str, &str) = ("wait = \"90s\"", "wait = \"3s\"");

/// The event of this scene that later ones come back to.
pub(crate) struct Sent {
    pub(crate) entity: EntityId,
    pub(crate) id: String,
    pub(crate) answer: AnswerView,
}

pub(crate) async fn play(stage: &Stage<'_>, built: &Built, board: &mut Board) -> Result<Sent, Failed> {
    board.scene(1, "One operation at a time");
    deploy(stage, built, board).await?;
    let entity: EntityId = ENTITY.parse().map_err(|why| Failed::Input(format!("{why}")))?;
    create(stage, &entity, board).await?;
    let id = uuid::Uuid::now_v7().to_string();

    let first = send(stage, &entity, 4, &id).await?;
    let answer = match first {
        Ok(answered) => answered.answer,
        Err(problem) => return Err(problem.into()),
    };
    let now = stage.entity(&entity).await?;
    let execution = answer.execution.clone().unwrap_or_default();
    board.row(
        "send resize {\"size\":4}",
        answer.answer.as_str(),
        &format!("{execution}   {}   {}", now.state, attempt(&now)),
    );
    board.expect("the first resize is accepted", answer.answer == AnswerKind::Accepted);
    board.expect("its execution holds the lock", now.locked_by == answer.execution);
    board.expect("its step runs", now.state == "planning" && now.lock.is_some_and(|lock| lock.token.is_some()));

    match send(stage, &entity, 8, &fresh()).await? {
        Ok(_) => board.expect("a second resize is refused", false),
        Err(problem) => {
            board.refusal("send resize {\"size\":8}", &problem);
            board.expect("the second resize hears busy", problem.code == "busy" && problem.retryable);
            board.expect(
                "it hears who holds the lock",
                problem.holder.is_some_and(|holder| holder.execution == execution),
            );
        }
    }

    match send(stage, &entity, 4, &id).await? {
        Ok(Answered { answer: again, replayed }) => {
            board.row("send resize {\"size\":4}", "same event id again: the same answer, nothing new", "");
            board.expect("the same event id gets the same answer", replayed && again == answer);
        }
        Err(problem) => return Err(problem.into()),
    }
    Ok(Sent { entity, id, answer })
}

async fn deploy(stage: &Stage<'_>, built: &Built, board: &mut Board) -> Result<(), Failed> {
    let manifest = built.resource.manifest.replace(WAIT.0, WAIT.1);
    board.expect("the manifest's wait could be shortened", manifest != built.resource.manifest);
    let component = Some(base64::encode(&built.resource.component));
    let deployed = stage.client.deploy(&DeployRequest { manifest, component }).await?;
    let names = |powers: &[interlock_daemon::api::PowerView]| {
        powers.iter().map(|power| power.name.clone()).collect::<Vec<_>>().join(", ")
    };
    let size = show::bytes(deployed.component_bytes.unwrap_or_default());
    let (can, cannot) = (names(&deployed.can), names(&deployed.cannot));
    board.row("deploy guests/resource", &format!("revision {}", deployed.revision), &format!("{size}   can: {can}"));
    board.detail("cannot", &cannot);
    board.expect("the step can ask for transitions", deployed.can.iter().any(|power| power.name == "transition"));
    board.expect("the step has no network", deployed.cannot.iter().any(|power| power.name == "network"));
    Ok(())
}

async fn create(stage: &Stage<'_>, entity: &EntityId, board: &mut Board) -> Result<(), Failed> {
    let request = CreateRequest {
        machine: entity.machine.to_string(),
        key: entity.key.to_string(),
        desired: None,
        labels: BTreeMap::new(),
        on_existing: Existing::Same,
        event: None,
    };
    let created = stage.client.create(&request).await?;
    let now = match created.entity {
        Some(now) => now,
        None => stage.entity(entity).await?,
    };
    let size = now.data.as_ref().and_then(|data| data.0.value().get("size").cloned()).unwrap_or_default();
    board.row(
        &format!("create {entity}"),
        &format!("version {}", now.version),
        &format!("{}   size {size}", now.state),
    );
    board.expect("a new entity rests, unlocked", created.new && now.kind == Kind::Rest && now.locked_by.is_none());
    Ok(())
}

/// An id for one more event.
pub(crate) fn fresh() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Sends a resize: the answer, or the decided no.
pub(crate) async fn send(
    stage: &Stage<'_>,
    entity: &EntityId,
    size: u32,
    id: &str,
) -> Result<Result<Answered, Problem>, Failed> {
    event(stage, entity, "resize", &format!("{{\"size\":{size}}}"), id, None).await
}

/// Sends an event: the answer, or the decided no.
pub(crate) async fn event(
    stage: &Stage<'_>,
    entity: &EntityId,
    name: &str,
    payload: &str,
    id: &str,
    wait: Option<&str>,
) -> Result<Result<Answered, Problem>, Failed> {
    let payload = Some(document("payload", payload)?);
    let request = EventRequest { name: name.to_owned(), payload, expect: ExpectView::default() };
    match stage.client.send(entity, &request, id, wait).await {
        Ok(answered) => Ok(Ok(answered)),
        Err(Failed::Problem(problem)) => Ok(Err(*problem)),
        Err(other) => Err(other),
    }
}
