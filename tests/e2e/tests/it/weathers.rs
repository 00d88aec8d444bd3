//! The weathers of `interlock_support::weather`, each seen to come, whatever weather this process has.

use crate::host::{daemon, event, run};
use crate::ledger::{adds_up, audit, count};
use crate::machines::COUNTED;
use anyhow::{Result, ensure};
use interlock_support::host::{Host, Setup};
use interlock_support::weather::Weather;

/// How often it has to come.
const TIMES: u64 = 4;

async fn works_on_in(weather: Weather) -> Result<()> {
    let mut host = Host::start_in(weather, daemon(), Setup::default()).await?;
    let api = host.api().clone();
    api.deploy(COUNTED, Some("noop")).await?;
    api.create("counted/a").await?;
    let mut sent = 0;
    while host.came() < TIMES {
        let end = api.settle("counted/a", &format!("e{sent}"), event("go")).await?;
        ensure!(!end.replayed, "the first answer that is heard: {end:?}");
        ensure!(end.done()?["outcome"] == "succeeded", "{sent}");
        sent += 1;
    }
    let last = api.entity("counted/a").await?;
    ensure!(last["data"]["taken"] == sent && last["data"]["s5"] == sent, "{sent} were sent: {last}");
    let history = api.history("counted/a").await?;
    ensure!((0..sent).all(|nth| count(&history, "event", &format!("e{nth}")) == 1), "{history:?}");
    adds_up(&last, &history)?;
    host.stop().await?;
    ensure!(audit(&host.data()).await? == 1);
    Ok(())
}

#[test]
fn where_the_daemon_is_killed_at_any_moment_clients_hear_the_end_of_each_event_once() -> Result<()> {
    run(works_on_in(Weather::Killed))
}

#[test]
fn where_the_daemon_stands_still_again_and_again_clients_hear_the_end_of_each_event_once() -> Result<()> {
    run(works_on_in(Weather::Late))
}
