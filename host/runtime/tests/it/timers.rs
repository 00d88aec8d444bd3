//! Timers that a component sets.

use crate::bed::{Bed, Time, component, library};
use anyhow::{Context as _, Result, ensure};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_component_sets_a_timer_of_the_state_it_enters_and_it_fires() -> Result<()> {
    let bed = Bed::with("hostile").await?;
    let ending = bed.attempt("hostile", "timer-set", Time::BetweenAttempts).await?;
    ensure!(ending.state == "calm" && ending.said == ["staged"], "{ending:?}");
    let entity = "hostile/timer-set".parse()?;
    let before = bed.coordinator.entity(&entity).await?.context("an entity")?.head;
    let timer = before.timers.first().context("a pending timer")?;
    ensure!(timer.name.as_str() == "bell" && timer.due == before.entered.plus(60_000), "{before:?}");
    bed.clock.advance(Duration::from_secs(60));
    loop {
        let view = bed.coordinator.entity(&entity).await?.context("an entity")?;
        if view.head.version > before.version {
            ensure!(view.head.timers.is_empty() && view.head.visit == before.visit, "{:?}", view.head);
            let data = view.documents.data.as_ref().map(|data| data.value()["name"].clone());
            ensure!(data == Some("bell".into()), "{data:?}");
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn setting_timers_is_a_power_that_inspect_names() -> Result<()> {
    let has = |powers: &[interlock_runtime::Power]| {
        powers.iter().find(|power| power.name == "timers").map(|power| power.functions.clone())
    };
    let sets = library().inspect(component("hostile")?).await?;
    ensure!(has(&sets.can).is_some_and(|functions| functions == ["after", "at", "cancel"]), "{sets:?}");
    // Built with the same SDK and never asking for it: the import is not there.
    let sets_none = library().inspect(component("resource")?).await?;
    ensure!(has(&sets_none.can).is_none() && has(&sets_none.cannot).is_some(), "{sets_none:?}");
    Ok(())
}
