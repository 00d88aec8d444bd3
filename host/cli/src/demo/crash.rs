//! Scene 2: `kill -9` in the middle of a step. The lock stays, the work goes on, nothing is done twice.

use super::board::Board;
use super::lock::{Sent, event, fresh, send};
use super::stage::{Stage, attempt, seconds};
use crate::client::line;
use crate::failed::Failed;
use interlock_daemon::api::{EntityView, ExecutionOutcome, WaitingFor};

pub(crate) async fn play(stage: &mut Stage<'_>, sent: &Sent, board: &mut Board) -> Result<(), Failed> {
    board.scene(2, "kill -9 in the middle of a step");
    let before = stage.entity(&sent.entity).await?;
    stage.kill().await?;
    board.killed();
    board.row("daemon killed", &format!("plan was running: {}", attempt(&before).replace("   ", ", ")), "");
    board.expect("the step was running when the daemon was killed", token(&before).is_some());

    let took = stage.start_again().await?;
    let recovered = stage.recovered().await?;
    let attempts = if recovered == 1 { "attempt" } else { "attempts" };
    let found = format!("{recovered} unfinished {attempts} found, without a scan");
    board.row(&format!("daemon back after {}", seconds(took)), &found, "");
    board.expect("the next boot finds the unfinished attempt", recovered == 1);

    let after = stage.entity(&sent.entity).await?;
    let holder = after.locked_by.as_deref().and_then(|id| id.rsplit('@').next()).unwrap_or("nobody");
    board.row(&sent.entity.to_string(), &format!("still locked by @{holder}   {}", attempt(&after)), "");
    board.expect("the lock outlived the host", after.locked_by == before.locked_by && after.locked_by.is_some());
    board.expect("the next attempt has a higher token", token(&after) > token(&before));

    let waiting = stage.once(&sent.entity, |entity| entity.state != "planning").await?;
    let more = format!("version {}   {}, waits 90 s (3 s in this demo)", waiting.version, waiting.state);
    board.row("plan", "committed", &more);
    board.expect("the plan was committed once", waiting.version == 3 && waiting.state == "provisioning");
    let waits = waiting.lock.as_ref().map(|lock| lock.waiting_for);
    board.expect("the lock stays while a timer runs", waits == Some(WaitingFor::Timer));

    match send(stage, &sent.entity, 8, &fresh()).await? {
        Ok(_) => board.expect("a resize is refused while the provider works", false),
        Err(problem) => {
            board.refusal("send resize {\"size\":8}", &problem);
            board.expect("that resize hears busy too", problem.code == "busy");
        }
    }
    verified(stage, sent, board).await?;

    match send(stage, &sent.entity, 4, &fresh()).await? {
        Ok(_) => board.expect("a resize to the size it has is refused", false),
        Err(problem) => {
            board.refusal("send resize {\"size\":4}", &problem);
            board.expect("that resize hears guard", problem.code == "guard");
        }
    }
    Ok(())
}

/// Asks with the first event's id again, and waits: whoever lost the answer gets the end.
async fn verified(stage: &Stage<'_>, sent: &Sent, board: &mut Board) -> Result<(), Failed> {
    let waited = event(stage, &sent.entity, "resize", "{\"size\":4}", &sent.id, Some("60s")).await?;
    let answered = match waited {
        Ok(answered) => answered,
        Err(problem) => return Err(problem.into()),
    };
    let now = stage.entity(&sent.entity).await?;
    let lock = if now.locked_by.is_none() { "unlocked" } else { "locked" };
    board.row("verify", "committed", &format!("version {}   {}, {lock}", now.version, now.state));
    board.detail("outputs", &now.outputs.as_ref().map(line).unwrap_or_default());
    board.expect("the execution succeeded", answered.answer.outcome == Some(ExecutionOutcome::Succeeded));
    board.expect("it is the execution that began before the kill", answered.answer.execution == sent.answer.execution);
    board.expect("it is at rest, unlocked, at version 5", now.version == 5 && now.locked_by.is_none());
    let size = now.outputs.as_ref().and_then(|outputs| outputs.0.value().get("size")?.as_u64());
    board.expect("its outputs promise the new size", size == Some(4));
    Ok(())
}

fn token(entity: &EntityView) -> Option<u64> {
    entity.lock.as_ref().and_then(|lock| lock.token)
}
