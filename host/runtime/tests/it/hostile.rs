//! Every attempt of `guests/hostile` by name: what it may not do, and what stops it.

use crate::bed::{Bed, Ending, Time, logged};
use anyhow::{Result, ensure};
use interlock_coordinator::contract::LOG_LINES_MAX;
use interlock_kernel::command::Verb;
use interlock_store::{Clock as _, SystemClock};
use std::time::Duration;

/// Runs an attempt that is to be refused: the guest is told, and goes to `calm` by itself.
async fn refused(name: &str) -> Result<Ending> {
    let ending = Bed::with("hostile").await?.attempt("hostile", name, Time::BetweenAttempts).await?;
    ensure!(ending.state == "calm", "{name}: {ending:?}");
    Ok(ending)
}

/// Runs an attempt that the host is to stop, with this code.
async fn stopped(name: &str, code: &str, time: Time) -> Result<Ending> {
    let ending = Bed::with("hostile").await?.attempt("hostile", name, time).await?;
    ensure!(ending.state == "stopped" && ending.code() == code, "{name}: {ending:?}");
    Ok(ending)
}

/// Every answer began with one of these codes.
fn heard(ending: &Ending, codes: &[&str]) -> Result<()> {
    ensure!(!ending.said.is_empty(), "{ending:?}");
    for said in &ending.said {
        let code = said.split(':').next().unwrap_or_default();
        ensure!(codes.contains(&code), "expected one of {codes:?}, heard {said:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_transition_is_spent() -> Result<()> {
    refused("spent").await?;
    let lines = logged("hostile/spent");
    ensure!(lines.iter().any(|line| line["fields"]["message"].as_str().is_some_and(|m| m.starts_with("spent: "))));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_transition_traps() -> Result<()> {
    refused("spent-then-trap").await?;
    let lines = logged("hostile/spent-then-trap");
    ensure!(!lines.iter().any(|line| line["fields"]["message"] == "a third call was answered"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_after_the_accepted_transition_changes_anything() -> Result<()> {
    for name in ["after-the-end-loop", "after-the-end-panic", "after-the-end-failure"] {
        let ending = refused(name).await?;
        ensure!(ending.failures.is_empty(), "{name}: {ending:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_call_after_sixteen_refusals_traps() -> Result<()> {
    let ending = stopped("refusal-limit", "refusals", Time::BetweenAttempts).await?;
    ensure!(ending.reason().contains("16 refusals"), "{}", ending.reason());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn undeclared_targets_are_not_allowed() -> Result<()> {
    heard(&refused("not-allowed").await?, &["not_allowed"])
}

#[tokio::test(flavor = "multi_thread")]
async fn returning_without_a_transition_is_a_failed_attempt() -> Result<()> {
    stopped("no-transition", "no-transition", Time::BetweenAttempts).await.map(drop)
}

/// Takes the entity away from a guest that runs, and waits for the guest's end.
async fn taken_away(name: &str) -> Result<()> {
    let bed = Bed::with("hostile").await?;
    let entity = bed.create(&format!("hostile/{name}"), "attempt", Some(&format!(r#"{{"name":"{name}"}}"#))).await?;
    bed.submit(Verb::Kill { entity: entity.clone(), reason: "a test".to_owned() }).await?;
    let since = SystemClock::new();
    bed.idle().await;
    println!("{name}: ended {:?} after its gate closed", since.monotonic());
    let view = bed.coordinator.entity(&entity).await?;
    ensure!(view.is_some_and(|view| view.head.state.as_str() == "killed"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_guest_that_loops_is_ended() -> Result<()> {
    taken_away("fence-loop").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_guest_that_calls_is_ended() -> Result<()> {
    taken_away("fence-calls").await
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_that_nobody_granted_are_not_found() -> Result<()> {
    heard(&refused("lease-not-granted").await?, &["not_found", "invalid"])
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_under_names_that_are_none_are_invalid() -> Result<()> {
    heard(&refused("timer-names").await?, &["invalid"])
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_that_no_state_leaves_to_steps_are_not_allowed() -> Result<()> {
    heard(&refused("timer-not-declared").await?, &["not_allowed"])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seventeenth_timer_meets_its_limit_and_the_others_are_judged() -> Result<()> {
    heard(&refused("timer-count").await?, &["limit", "not_allowed"])
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_beyond_every_bound_meet_their_limit() -> Result<()> {
    heard(&refused("timer-times").await?, &["limit"])
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_what_is_no_name_of_a_target_are_invalid() -> Result<()> {
    heard(&refused("effect-names").await?, &["invalid"])
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_are_not_a_steps_to_set_are_denied_and_none_ends_a_line() -> Result<()> {
    heard(&refused("effect-headers").await?, &["denied", "invalid", "limit"])
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_of_requests_are_bounded_and_have_one_value_each() -> Result<()> {
    heard(&refused("effect-params").await?, &["limit", "invalid"])
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_requests_are_json_within_its_bounds() -> Result<()> {
    heard(&refused("effect-body").await?, &["invalid", "limit"])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seventeenth_request_meets_its_limit_and_the_others_are_judged() -> Result<()> {
    heard(&refused("effect-count").await?, &["limit", "not_allowed"])
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_undeclared_targets_are_not_allowed() -> Result<()> {
    heard(&refused("effect-not-declared").await?, &["not_allowed"])
}

/// A host with the tables that the attempts on rows speak of.
async fn with_tables() -> Result<Bed> {
    let bed = Bed::with("hostile").await?;
    let everything = "machines.hostile = [\"get\", \"query\", \"put\", \"update\", \"claim\", \"upsert\", \"delete\"]";
    for (name, access) in [("ours", everything), ("theirs", ""), ("unnamed", everything)] {
        bed.declare(&format!("table = \"{name}\"\nowner = \"tests\"\n[access]\n{access}\n")).await?;
    }
    Ok(bed)
}

async fn refused_rows(name: &str, codes: &[&str]) -> Result<()> {
    let ending = with_tables().await?.attempt("hostile", name, Time::BetweenAttempts).await?;
    ensure!(ending.state == "calm", "{name}: {ending:?}");
    heard(&ending, codes)
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_grant_nothing_are_denied() -> Result<()> {
    refused_rows("rows-not-granted", &["denied", "not_found"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_rows_under_names_that_are_none_are_invalid() -> Result<()> {
    refused_rows("rows-names", &["invalid", "limit", "conflict"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_that_are_none_are_invalid() -> Result<()> {
    refused_rows("rows-filters", &["invalid", "limit"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_row_that_are_none_are_invalid() -> Result<()> {
    refused_rows("rows-changes", &["invalid", "limit"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_on_rows_meet_their_limits() -> Result<()> {
    refused_rows("rows-counts", &["invalid", "limit"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_rows_count_among_the_sixteen() -> Result<()> {
    let ending = with_tables().await?.attempt("hostile", "rows-refusals", Time::BetweenAttempts).await?;
    ensure!(ending.state == "stopped" && ending.code() == "refusals", "{ending:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_written_behind_the_accepted_transition() -> Result<()> {
    let bed = with_tables().await?;
    let ending = bed.attempt("hostile", "rows-after-the-end", Time::BetweenAttempts).await?;
    ensure!(ending.state == "calm", "{ending:?}");
    let lines = logged("hostile/rows-after-the-end");
    let said = |start: &str| {
        lines.iter().any(|line| line["fields"]["message"].as_str().is_some_and(|message| message.starts_with(start)))
    };
    ensure!(said("spent: ") && !said("a call behind the end") && !said("a row was written"), "{lines:?}");
    let rows = bed.coordinator.rows_of(&"ours".parse()?, None, 10).await?;
    ensure!(rows.is_empty(), "{rows:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn desired_and_events_are_not_a_steps_to_write() -> Result<()> {
    heard(&refused("desired-is-for-clients").await?, &["denied", "invalid"])
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_tokens_and_locks_are_no_fields() -> Result<()> {
    heard(&refused("version-is-for-the-host").await?, &["denied", "invalid"])
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_of_the_host_are_denied() -> Result<()> {
    heard(&refused("condition-of-the-host").await?, &["denied"])
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_are_no_json_are_invalid() -> Result<()> {
    heard(&refused("not-json").await?, &["invalid"])
}

#[tokio::test(flavor = "multi_thread")]
async fn data_against_its_schema_is_invalid() -> Result<()> {
    heard(&refused("schema").await?, &["invalid"])
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_do_not_fit_are_invalid() -> Result<()> {
    heard(&refused("numbers").await?, &["invalid"])
}

#[tokio::test(flavor = "multi_thread")]
async fn increments_past_every_bound_are_invalid() -> Result<()> {
    heard(&refused("increment-overflow").await?, &["invalid"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_too_large_meets_its_limit() -> Result<()> {
    heard(&refused("document-size").await?, &["limit"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_too_deep_is_refused_and_the_stack_holds() -> Result<()> {
    heard(&refused("document-depth").await?, &["invalid", "limit"])
}

#[tokio::test(flavor = "multi_thread")]
async fn twelve_megabytes_in_one_call_end_the_attempt() -> Result<()> {
    let ending = stopped("hostcall-size", "trap", Time::BetweenAttempts).await?;
    println!("hostcall-size: {}", ending.reason());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn control_characters_reach_no_log_line() -> Result<()> {
    heard(
        &refused("control-characters").await?,
        &["invalid", "one\nERROR forged line\r\u{1b}[2Jcleared\0\u{202e}reversed"],
    )?;
    let lines = logged("hostile/control-characters");
    let texts = lines.iter().flat_map(|line| line["fields"].as_object().into_iter().flatten());
    let texts: Vec<&str> = texts.filter_map(|(_, value)| value.as_str()).collect();
    ensure!(texts.iter().any(|text| text.contains("\\nERROR forged line")), "{texts:?}");
    ensure!(texts.iter().all(|text| !text.contains(|c: char| c.is_control() || c == '\u{202e}')), "{texts:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_too_long_is_cut() -> Result<()> {
    let ending = Bed::with("hostile").await?.attempt("hostile", "failure-size", Time::BetweenAttempts).await?;
    ensure!(ending.state == "stopped", "{ending:?}");
    ensure!(ending.code().len() <= 1_024 && ending.reason().len() <= 1_024);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_mutations_meet_their_limit() -> Result<()> {
    heard(&refused("list-size").await?, &["limit"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_loops_is_stopped_by_its_idle_deadline() -> Result<()> {
    stopped("idle-deadline", "idle-deadline", Time::Always).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_is_no_progress() -> Result<()> {
    stopped("idle-deadline-calls", "idle-deadline", Time::Always).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_is_progress_until_the_total_deadline() -> Result<()> {
    let bed = Bed::with("hostile").await?;
    let ending = bed.attempt("hostile", "total-deadline", Time::Always).await?;
    // How many saves fit into 5 s of a clock that runs ahead is the machine's to say.
    ensure!(ending.state == "stopped" && ending.code().ends_with("-deadline"), "{ending:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn saves_meet_their_limit() -> Result<()> {
    let ending = refused("save-limit").await?;
    ensure!(ending.said.first().map(String::as_str) == Some("save 1001"), "{ending:?}");
    ensure!(ending.said.get(1).is_some_and(|said| said.starts_with("limit:")), "{ending:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_log_lines_is_dropped_and_counted() -> Result<()> {
    let bed = Bed::with("hostile").await?;
    let ending = bed.attempt("hostile", "log-budget", Time::BetweenAttempts).await?;
    ensure!(ending.state == "calm", "{ending:?}");
    let lines = logged("hostile/log-budget");
    ensure!(lines.len() <= LOG_LINES_MAX as usize + 10, "{} lines", lines.len());
    let dropped = lines.iter().find_map(|line| line["fields"]["dropped"].as_u64());
    ensure!(dropped == Some(bed.wasm.runs().dropped_lines), "{dropped:?}");
    // Its ten thousand lines are cut to 4 KiB, and 256 KiB are kept.
    ensure!(dropped == Some(10_000 - 64), "{dropped:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_past_the_machines_limit_ends_the_attempt() -> Result<()> {
    let ending = stopped("memory-limit", "memory-limit", Time::BetweenAttempts).await?;
    ensure!(ending.reason().contains("at most 67108864 bytes"), "{}", ending.reason());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_without_end_ends_the_attempt() -> Result<()> {
    // Rust keeps large values on a stack of its own, in memory, which is full first.
    stopped("stack-limit", "trap", Time::BetweenAttempts).await?;

    let text = std::fs::read_to_string(interlock_support::guest_folder("hostile").join("wat/start-loops.wat"))?;
    let deeper = text.replace("(loop $again (br $again))", "(call $for-ever)");
    let bed = Bed::new().await?;
    bed.deploy(&crate::bed::manifest("hostile")?, &wat::parse_str(deeper)?).await?;
    let ending = bed.attempt("hostile", "deeper", Time::BetweenAttempts).await?;
    ensure!(ending.code() == "stack-overflow", "{ending:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_fails_its_attempt_and_nothing_else() -> Result<()> {
    let bed = Bed::with("hostile").await?;
    let ending = bed.attempt("hostile", "panic", Time::BetweenAttempts).await?;
    ensure!(ending.state == "stopped" && ending.code() == "trap", "{ending:?}");
    println!("panic: {}", ending.reason());
    let after = bed.attempt("hostile", "not-allowed", Time::BetweenAttempts).await?;
    ensure!(after.state == "calm", "{after:?}");
    Ok(())
}

/// Runs a component written by hand as the hostile machine's.
async fn by_hand(name: &str, time: Time) -> Result<Ending> {
    let bed = Bed::new().await?;
    bed.deploy(&crate::bed::manifest("hostile")?, &interlock_support::hostile_wat(name)?).await?;
    bed.attempt("hostile", name, time).await
}

#[tokio::test(flavor = "multi_thread")]
async fn handles_that_nobody_gave_trap_before_the_hosts_code() -> Result<()> {
    for name in ["forged-handle", "dropped-handle"] {
        let ending = by_hand(name, Time::BetweenAttempts).await?;
        ensure!(ending.code() == "trap" && ending.reason().contains("unknown handle index"), "{name}: {ending:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_outside_of_its_memory_traps() -> Result<()> {
    let ending = by_hand("garbage-answer", Time::BetweenAttempts).await?;
    ensure!(ending.code() == "trap", "{ending:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn starting_an_instance_is_part_of_the_attempt() -> Result<()> {
    let ending = by_hand("start-loops", Time::Always).await?;
    ensure!(ending.code() == "idle-deadline", "{ending:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_declared_past_the_machines_limit_fails_by_name() -> Result<()> {
    let ending = by_hand("large-memory", Time::BetweenAttempts).await?;
    ensure!(ending.code() == "memory-limit" && ending.reason().contains("335544320"), "{ending:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_guests_that_loop_leave_the_host_alone() -> Result<()> {
    let bed = Bed::with("hostile").await?;
    let mut looping = Vec::new();
    for n in 0..6 {
        let key = format!("hostile/loop-{n}");
        looping.push(bed.create(&key, "attempt", Some(r#"{"name":"idle-deadline"}"#)).await?);
    }
    let entity = bed.create("hostile/between", "attempt", Some(r#"{"name":"not-allowed"}"#)).await?;
    let ending = bed.settled(&entity, "first", Time::BetweenAttempts).await?;
    ensure!(ending.state == "calm", "{ending:?}");
    bed.clock.advance(Duration::from_secs(2));
    for entity in looping {
        let ending = bed.settled(&entity, "first", Time::BetweenAttempts).await?;
        ensure!(ending.code() == "idle-deadline", "{ending:?}");
    }
    Ok(())
}
