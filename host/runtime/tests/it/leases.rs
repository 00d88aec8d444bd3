//! Leases that a component takes, and what becomes of a component that loses one.

use crate::bed::{Bed, Ending, Time, logged};
use anyhow::{Context as _, Result, ensure};
use interlock_kernel::command::{Acquire, Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::Terms;
use interlock_store::{Clock as _, SystemClock};
use std::time::Duration;

const HOUR_MS: u64 = 3_600_000;

/// Real time in which a component has to be gone that the host ended: far more than its ticks of 10 ms.
const BOUND: Duration = Duration::from_secs(20);

async fn refused(bed: &Bed, name: &str, codes: &[&str]) -> Result<Ending> {
    let ending = bed.attempt("hostile", name, Time::BetweenAttempts).await?;
    ensure!(ending.state == "calm" && !ending.said.is_empty(), "{name}: {ending:?}");
    for said in &ending.said {
        let code = said.split(':').next().unwrap_or_default();
        ensure!(codes.contains(&code), "expected one of {codes:?}, heard {said:?}");
    }
    Ok(ending)
}

/// A client takes a lease, or hears why not.
async fn acquire(bed: &Bed, lease: &str) -> Result<Outcome> {
    let terms = Terms { ttl_ms: HOUR_MS, hold_ms: HOUR_MS, delay_ms: 0 };
    let (lease, grant) = (lease.parse()?, "rival".parse()?);
    bed.submit(Verb::Acquire(Box::new(Acquire { lease, grant, label: "rival".to_owned(), terms, wait_ms: None }))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_function_of_leases_does_what_the_contract_says() -> Result<()> {
    let bed = Bed::with("hostile").await?;
    let ending = bed.attempt("hostile", "lease-every-import", Time::BetweenAttempts).await?;
    let saw = [
        "named: true",
        "above the attempt's token: true",
        "the declared time: true",
        "the same token: true",
        "the time it asked for: true",
        "dropped and held: true",
        "extended: true",
        "as declared again: true",
        "held after its release: false",
        "fenced by another release: true",
        "a higher token: true",
    ];
    ensure!(ending.state == "calm" && ending.said == saw, "{ending:?}");
    ensure!(matches!(acquire(&bed, "desk").await?, Outcome::Leased { new: true, .. }), "it ended with its execution");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_none_are_invalid_and_times_beyond_every_bound_meet_their_limit() -> Result<()> {
    let bed = Bed::with("hostile").await?;
    refused(&bed, "lease-names", &["invalid"]).await?;
    let times = refused(&bed, "lease-times", &["limit"]).await?;
    ensure!(times.said.len() == 8, "{times:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_hears_who_has_a_lease() -> Result<()> {
    let bed = Bed::with("hostile").await?;
    acquire(&bed, "room-1").await?;
    let ending = refused(&bed, "lease-busy", &["busy"]).await?;
    ensure!(ending.said[0].contains("held by rival"), "{ending:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_leases_count_among_the_sixteen() -> Result<()> {
    let bed = Bed::with("hostile").await?;
    let ending = bed.attempt("hostile", "lease-refusals", Time::BetweenAttempts).await?;
    ensure!(ending.state == "stopped" && ending.code() == "refusals", "{ending:?}");
    Ok(())
}

/// Starts a component, and waits until it has the lease.
async fn holding(bed: &Bed, name: &str) -> Result<EntityId> {
    let payload = format!(r#"{{"name":"{name}"}}"#);
    let entity = bed.create(&format!("hostile/{name}"), "hold", Some(&payload)).await?;
    let desk = "desk".parse()?;
    while bed.coordinator.lease(&desk).await?.is_none_or(|view| view.lease.holder.is_none()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(entity)
}

/// A component that lost its lease (to time, and then to a rival) is gone within a bound, and left no trace.
/// It is what a holder did not do in consul 1843.
async fn is_stopped(name: &str) -> Result<Ending> {
    let bed = Bed::with("hostile").await?;
    let entity = holding(&bed, name).await?;
    let before = bed.coordinator.entity(&entity).await?.context("an entity")?.documents.data;
    bed.clock.advance(Duration::from_millis(1_000));
    ensure!(matches!(acquire(&bed, "desk").await?, Outcome::Leased { new: true, .. }), "the rival has it");
    let since = SystemClock::new();
    let ending = bed.ending(&entity, "first", Time::BetweenAttempts).await?;
    ensure!(since.monotonic() < BOUND, "{name}: {:?}", since.monotonic());
    let after = bed.coordinator.entity(&entity).await?.context("an entity")?;
    ensure!(after.documents.data == before && after.head.state.as_str() == "stopped", "{:?}", after.head);
    ensure!(ending.failures.iter().any(|failure| failure.code == "lease-lost"), "{ending:?}");
    Ok(ending)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_lost_its_lease_and_loops_on_is_stopped() -> Result<()> {
    is_stopped("lease-lost-loop").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_lost_its_lease_and_asks_on_is_fenced() -> Result<()> {
    is_stopped("lease-lost-calls").await?;
    let lines = logged("hostile/lease-lost-calls");
    let said = lines.iter().filter_map(|line| line["fields"]["message"].as_str());
    ensure!(!said.clone().any(|said| said.contains("was accepted")), "{:?}", said.collect::<Vec<_>>());
    Ok(())
}
