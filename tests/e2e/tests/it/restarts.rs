//! Boots, crashes and moved clocks on the coordinator: where the order of commits matters, or half an hour.
//! What the coordinator's own tests show is not shown again: clocks that jump, crash loops, conflicts, an attempt
//! dispatched twice.

use crate::machines::COUNTED;
use crate::world::{World, failure, id, play};
use anyhow::{Context as _, Result, ensure};
use interlock_coordinator::{Ended, SubmitError};
use interlock_kernel::command::{Change, Verb};
use interlock_kernel::ids::Principal;
use interlock_kernel::record::{FactKind, What};
use interlock_kernel::rejection::Code;
use interlock_store::Fault;
use serde_json::Value;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
/// Past the first back-offs, and short of every idle deadline.
const BACK_OFF: Duration = Duration::from_secs(5);

/// A step, and a wait that an event may end early.
const BREW: &str = r#"
machine   = "brew"
owner     = "interlock tests"
component = "noop.wasm"
initial   = "cold"

[events.start]
[events.enough]

[states.cold]
kind     = "rest"
on.start = { to = "heating" }

[states.heating]
step     = "heat"
to       = ["brewing"]
idle     = "30m"
total    = "1h"
deadline = "2h"
retry    = { attempts = 3, first = "1s", factor = 2.0 }

[states.brewing]
after     = { name = "done", wait = "5m", to = "cold" }
on.enough = { to = "cold" }
"#;

fn rejected(error: Result<impl std::fmt::Debug, SubmitError>) -> Result<Code> {
    let error = match error {
        Ok(written) => anyhow::bail!("expected a refusal, got {written:?}"),
        Err(error) => error,
    };
    Ok(error.rejection().with_context(|| error.to_string())?.code)
}

/// river 1258, graphile-worker 222: a job alive past every rescue, and a dead one beside it.
#[test]
fn the_living_are_never_rescued_and_the_dead_are_at_once() -> Result<()> {
    play(async {
        let mut world = World::new(&[BREW]).await?;
        for key in ["brew/dead", "brew/alive"] {
            world.create(key).await?;
        }
        world.send("brew/dead", "e1", "start", Value::Null).await?;
        let zombie = world.attempt("brew/dead")?;
        world.kill().await;
        world.boot().await?;
        let heir = world.attempt("brew/dead").context("begun again at once")?;
        ensure!(heir.token() > zombie.token() && heir.start().claim.attempt == 2);
        world.send("brew/alive", "e2", "start", Value::Null).await?;
        let alive = world.attempt("brew/alive")?;
        // Twenty-five minutes of a step that says nothing, the reconciler and every sweep running.
        for _ in 0..25 {
            world.advance(MINUTE).await;
        }
        ensure!(alive.gate().check().is_ok() && heir.gate().check().is_ok(), "a living step was stopped");
        ensure!(world.hands.count() == 0, "somebody was begun a second time");
        let locked = world.entity("brew/alive").await?.head.lock.context("its lock")?;
        ensure!(locked.attempt.is_some_and(|open| open.token == alive.token()) && locked.lost + locked.failed == 0);
        alive.transition("brewing".parse()?, Change::default()).await?;
        heir.transition("brewing".parse()?, Change::default()).await?;
        drop((alive, heir, zombie));
        world.advance(5 * MINUTE).await;
        ensure!(world.state("brew/alive").await? == "cold" && world.state("brew/dead").await? == "cold");
        world.agrees().await
    })
}

/// river 1302, n8n 32316: the rescuer read "running", the job ends before the rescuer writes.
#[test]
fn a_rescue_that_comes_after_the_end_changes_nothing() -> Result<()> {
    play(async {
        let mut world = World::new(&[BREW]).await?;
        world.create("brew/a").await?;
        world.send("brew/a", "e1", "start", Value::Null).await?;
        world.crash().await?;
        world.step("brew/a", "brewing").await?;
        let before = world.entity("brew/a").await?.head;
        let entity = id("brew/a")?;
        for verb in [Verb::Recover(entity.clone()), Verb::Due(entity.clone())] {
            world.submit(Principal::host(), verb).await??;
        }
        let open = Verb::Audit { entity: entity.clone(), found: Vec::new(), abandoned: None };
        world.submit(Principal::host(), open).await??;
        ensure!(world.entity("brew/a").await?.head == before, "a late rescue moved it");
        // The same for one that is open and alive, in this very session.
        world.advance(5 * MINUTE).await;
        world.send("brew/a", "e2", "start", Value::Null).await?;
        let before = world.entity("brew/a").await?.head;
        world.submit(Principal::host(), Verb::Recover(entity)).await??;
        ensure!(world.entity("brew/a").await?.head == before, "a living attempt was rescued");
        world.agrees().await
    })
}

/// hatchet 4494: dequeue and assignment are one transaction.
#[test]
fn slots_held_are_live_executions_after_every_crash_and_every_failed_commit() -> Result<()> {
    const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    play(async {
        let mut world = World::with_slots(&[COUNTED], 2).await?;
        for key in KEYS {
            world.create(&format!("counted/{key}")).await?;
        }
        let mut executions = [0_u64; KEYS.len()];
        for round in 0_usize..24 {
            // Whatever can move moves once, and one commit of it goes wrong.
            let fault = match round % 4 {
                0 => Some(Fault::Unavailable),
                1 => Some(Fault::Indeterminate { kept: true }),
                2 => Some(Fault::Indeterminate { kept: false }),
                _ => None,
            };
            if let Some(fault) = fault {
                world.mem.fail_next(fault);
            }
            for (nth, key) in KEYS.iter().enumerate() {
                let entity = format!("counted/{key}");
                let event = World::event(&format!("{key}-{round}"), "go", Value::Null)?;
                // Refused as busy, or lost: the answer may be anything, the records may not.
                let _ = world.try_send(&entity, event).await?;
                if let Ok(attempt) = world.attempt(&entity) {
                    let next = attempt.start().step.to_string();
                    let to = match next.as_str() {
                        "s1" => "s2",
                        "s2" => "s3",
                        "s3" => "s4",
                        "s4" => "s5",
                        _ => "idle",
                    };
                    // A step that hears "unavailable" fails and is tried again.
                    if attempt.transition(to.parse()?, Change::default()).await.is_err() {
                        attempt.finish(Ended::Failed(failure("unavailable")));
                    }
                    world.rest().await;
                }
                let view = world.entity(&entity).await?;
                executions[nth] = view.head.executions;
            }
            world.advance(BACK_OFF).await;
            world.agrees().await.with_context(|| format!("round {round}"))?;
            if round % 3 == 2 {
                world.crash().await?;
                world.advance(BACK_OFF).await;
                world.agrees().await.with_context(|| format!("round {round}, after the crash"))?;
            }
        }
        ensure!(executions.iter().sum::<u64>() >= KEYS.len() as u64, "{executions:?}");
        for key in KEYS {
            let view = world.entity(&format!("counted/{key}")).await?;
            let data = view.documents.data.context("data")?.value().clone();
            ensure!(data["taken"] == view.head.executions, "{data} after {} executions", view.head.executions);
        }
        Ok(())
    })
}

/// dbos 805: a crash between one execution's end and the next one's start, one at a time.
#[test]
fn an_inbox_drains_whatever_the_host_dies_between() -> Result<()> {
    const EVENTS: usize = 5;
    play(async {
        let mut world = World::new(&[COUNTED]).await?;
        world.create("counted/a").await?;
        for nth in 0..EVENTS {
            world.send("counted/a", &format!("e{nth}"), "later", Value::Null).await?;
        }
        for nth in 0..EVENTS {
            for to in ["s2", "s3", "s4", "s5", "idle"] {
                world.step("counted/a", to).await.with_context(|| format!("event {nth}, to {to}"))?;
                world.crash().await?;
                world.advance(BACK_OFF).await;
                world.agrees().await?;
            }
        }
        let view = world.entity("counted/a").await?;
        ensure!(view.head.state.as_str() == "idle" && view.head.inbox.length == 0 && view.head.lock.is_none());
        ensure!(view.head.executions == EVENTS as u64);
        let data = view.documents.data.context("data")?.value().clone();
        ensure!(data["taken"] == EVENTS && data["s5"] == EVENTS, "{data}");
        Ok(())
    })
}

/// restate 4750: a restart from the point where the guest drew random numbers.
#[test]
fn the_seed_of_a_steps_randomness_is_carried_over_a_restart() -> Result<()> {
    play(async {
        let mut world = World::new(&[BREW]).await?;
        for key in ["brew/a", "brew/b"] {
            world.create(key).await?;
            world.send(key, "e1", "start", Value::Null).await?;
        }
        let (first, other) = (world.attempt("brew/a")?, world.attempt("brew/b")?);
        let drawn = first.seed();
        ensure!(drawn != other.seed(), "two entities draw the same");
        world.kill().await;
        world.boot().await?;
        let again = world.attempt("brew/a")?;
        ensure!(again.seed() == drawn && again.token() > first.token(), "another seed after the restart");
        again.save(Change::default()).await?;
        let saved = again.seed();
        ensure!(saved != drawn, "the same seed after a save");
        drop((first, other, again));
        world.crash().await?;
        world.advance(BACK_OFF).await;
        ensure!(world.attempt("brew/a")?.seed() == saved, "another seed after save and restart");
        Ok(())
    })
}

/// restate 1029: a wait is ended, and its timer fires later.
#[test]
fn a_timer_of_a_visit_that_was_left_is_a_recorded_no_op() -> Result<()> {
    play(async {
        let world = World::new(&[BREW]).await?;
        world.create("brew/a").await?;
        world.send("brew/a", "e1", "start", Value::Null).await?;
        world.step("brew/a", "brewing").await?;
        let timer = world.entity("brew/a").await?.head.timers.first().cloned().context("a timer")?;
        world.send("brew/a", "e2", "enough", Value::Null).await?;
        let before = world.entity("brew/a").await?.head;
        world.advance(10 * MINUTE).await;
        ensure!(world.entity("brew/a").await?.head == before, "the index still had the timer");
        // A firing that was on its way meanwhile, twice.
        for _ in 0..2 {
            let fire = Verb::Fire { entity: id("brew/a")?, timer: timer.name.clone(), due: timer.due };
            world.submit(Principal::host(), fire).await??;
        }
        let after = world.entity("brew/a").await?.head;
        ensure!(after.state == before.state && after.version == before.version && after.timers.is_empty());
        let facts = world.history("brew/a").await?;
        let stale = facts.iter().filter(|entry| matches!(entry.what, What::Fact(FactKind::StaleTimer, _)));
        ensure!(stale.count() == 2);
        world.agrees().await
    })
}

/// The zombie of a killed host wakes up when its heir has begun, and again when it is done.
#[test]
fn a_zombie_hears_fenced_whatever_has_happened_since() -> Result<()> {
    play(async {
        let mut world = World::new(&[BREW]).await?;
        world.create("brew/a").await?;
        world.send("brew/a", "e1", "start", Value::Null).await?;
        // An idle deadline takes the attempt away while its step stalls.
        let zombie = world.attempt("brew/a")?;
        world.advance(31 * MINUTE).await;
        ensure!(zombie.gate().check().is_err(), "nobody stopped it");
        ensure!(rejected(zombie.save(Change::default()).await)? == Code::Fenced);
        world.advance(Duration::from_secs(2)).await;
        let heir = world.attempt("brew/a").context("its next attempt")?;
        ensure!(heir.token() > zombie.token());
        ensure!(rejected(zombie.transition("brewing".parse()?, Change::default()).await)? == Code::Fenced);
        heir.transition("brewing".parse()?, Change::default()).await?;
        drop(heir);
        ensure!(rejected(zombie.transition("brewing".parse()?, Change::default()).await)? == Code::Fenced);
        drop(zombie);
        world.rest().await;
        let facts = world.history("brew/a").await?;
        ensure!(facts.iter().filter(|entry| matches!(entry.what, What::Fact(FactKind::Fenced, _))).count() == 3);
        ensure!(world.state("brew/a").await? == "brewing");
        world.crash().await?;
        world.agrees().await
    })
}
