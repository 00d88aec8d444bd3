//! Every attempt of `guests/hostile-wasi` by name: WASI is linked, and reaches nothing.

use crate::bed::{Bed, Ending, Time, logged};
use anyhow::{Context as _, Result, ensure};
use interlock_store::{Clock as _, SystemClock};

async fn nothing_reached(name: &str) -> Result<Ending> {
    let ending = Bed::with("hostile-wasi").await?.attempt("hostile-wasi", name, Time::BetweenAttempts).await?;
    ensure!(ending.state == "calm", "{name}: {ending:?}");
    Ok(ending)
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_files() -> Result<()> {
    nothing_reached("no-files").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_sockets() -> Result<()> {
    nothing_reached("no-sockets").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_environment() -> Result<()> {
    nothing_reached("no-environment").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_is_closed() -> Result<()> {
    nothing_reached("no-stdin").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_threads() -> Result<()> {
    nothing_reached("no-threads").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleep_moves_the_clock_and_takes_no_time() -> Result<()> {
    let since = SystemClock::new();
    nothing_reached("virtual-clock").await?;
    println!("a guest slept 2 s in {:?}", since.monotonic());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sleeping_past_the_deadline_is_a_timers_job() -> Result<()> {
    let bed = Bed::with("hostile-wasi").await?;
    let ending = bed.attempt("hostile-wasi", "sleep-past-deadline", Time::BetweenAttempts).await?;
    ensure!(ending.state == "stopped" && ending.code() == "slept", "{ending:?}");
    ensure!(ending.reason().contains("use a timer"), "{}", ending.reason());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_draws_the_same_and_the_next_visit_another() -> Result<()> {
    let bed = Bed::with("hostile-wasi").await?;
    let payload = Some(r#"{"name":"seeded-random"}"#);
    let entity = bed.create("hostile-wasi/random", "attempt", payload).await?;
    let first = bed.ending(&entity, "first", Time::BetweenAttempts).await?;
    ensure!(first.state == "calm", "{first:?}");
    let drawn = first.said.first().context("what it drew")?;
    ensure!(first.failures.iter().map(|failure| &failure.reason).eq([drawn]), "{first:?}");

    bed.send(&entity, "attempt", payload, "second").await?;
    let second = bed.ending(&entity, "second", Time::BetweenAttempts).await?;
    ensure!(second.said.first().is_some_and(|again| again != drawn), "{second:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_standard_output_is_dropped_and_counted() -> Result<()> {
    let bed = Bed::with("hostile-wasi").await?;
    let ending = bed.attempt("hostile-wasi", "stdout-flood", Time::BetweenAttempts).await?;
    ensure!(ending.state == "calm", "{ending:?}");
    ensure!(bed.wasm.runs().dropped_lines > 19_000, "{:?}", bed.wasm.runs());
    let lines = logged("hostile-wasi/stdout-flood");
    ensure!(lines.iter().any(|line| line["fields"]["stream"] == "stderr"), "no line of standard error");
    let escaped = |line: &serde_json::Value| {
        line["fields"]["message"].as_str().is_some_and(|text| !text.contains(char::is_control))
    };
    ensure!(lines.iter().all(escaped), "a control character reached the log");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_by_exit_is_a_failed_attempt() -> Result<()> {
    for (name, code, reason) in
        [("exit", "exit", "exit(0)"), ("exit-failed", "exit", "exit("), ("abort", "trap", "unreachable")]
    {
        let ending = Bed::with("hostile-wasi").await?.attempt("hostile-wasi", name, Time::BetweenAttempts).await?;
        ensure!(ending.state == "stopped" && ending.code() == code, "{name}: {ending:?}");
        ensure!(ending.reason().contains(reason), "{name}: {}", ending.reason());
        ensure!(ending.failures.len() == 2, "{name} is tried again: {ending:?}");
    }
    Ok(())
}
