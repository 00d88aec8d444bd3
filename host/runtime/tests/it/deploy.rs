//! What is refused before anything runs: every problem at once, by name, with what to do.

use crate::bed::{component, engines, library};
use anyhow::{Context as _, Result, bail, ensure};
use interlock_runtime::{Library, LibraryError, Place, Problem, inspect};
use interlock_support::hostile_wat;

async fn problems(name: &str) -> Result<Vec<Problem>> {
    refused(library(), hostile_wat(name)?).await
}

async fn refused(library: &Library, bytes: Vec<u8>) -> Result<Vec<Problem>> {
    match library.add(bytes).await {
        Err(LibraryError::Unfit(problems)) => Ok(problems),
        other => bail!("expected it to be refused, got {other:?}"),
    }
}

#[tokio::test]
async fn unknown_interfaces_are_all_named_at_once() -> Result<()> {
    let problems = problems("unknown-interfaces").await?;
    let mut named: Vec<&str> = problems.iter().map(|problem| problem.subject.as_str()).collect();
    named.sort_unstable();
    ensure!(named == ["acme:bank/transfers@1.0.0", "interlock:step/root@0.1.0"], "{problems:?}");
    ensure!(problems.iter().all(|problem| problem.code == "unknown-import" && !problem.remedy.is_empty()));
    Ok(())
}

#[tokio::test]
async fn an_unknown_function_of_a_known_interface_is_named() -> Result<()> {
    let problems = problems("unknown-function").await?;
    let subjects: Vec<&str> = problems.iter().map(|problem| problem.subject.as_str()).collect();
    ensure!(subjects == ["interlock:step/transition@0.1.0 [method]entity.set-version"], "{problems:?}");
    Ok(())
}

#[tokio::test]
async fn wasi_http_is_refused_with_what_to_do_instead() -> Result<()> {
    let problems = problems("wasi-http").await?;
    let problem = problems.first().context("a problem")?;
    ensure!(problem.subject == "wasi:http/outgoing-handler@0.2.0", "{problem}");
    ensure!(problem.remedy.contains("declare an effect instead"), "{problem}");
    Ok(())
}

#[tokio::test]
async fn a_wasip1_module_is_refused_with_what_to_build_for() -> Result<()> {
    let problems = problems("wasip1-module").await?;
    let problem = problems.first().context("a problem")?;
    ensure!(problem.code == "wasip1" && problem.remedy.contains("wasm32-wasip2"), "{problem}");
    Ok(())
}

#[tokio::test]
async fn a_component_without_run_is_no_step() -> Result<()> {
    let problems = problems("no-run").await?;
    ensure!(problems.iter().map(|problem| problem.code).eq(["no-run"]), "{problems:?}");
    Ok(())
}

#[tokio::test]
async fn a_run_of_another_type_is_refused() -> Result<()> {
    let problems = problems("other-run").await?;
    println!("other-run: {}", problems.first().context("a problem")?);
    ensure!(problems.iter().map(|problem| problem.code).eq(["wrong-type"]), "{problems:?}");
    Ok(())
}

#[tokio::test]
async fn a_table_of_ten_million_elements_is_too_large() -> Result<()> {
    let problems = problems("large-table").await?;
    ensure!(problems.iter().map(|problem| problem.code).eq(["too-large"]), "{problems:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_no_wasm_says_what_it_is() -> Result<()> {
    for (bytes, code, got) in [
        (&b""[..], "not-wasm", "nothing"),
        (b"#!/bin/sh", "not-wasm", "begins with"),
        (b"(component)", "not-wasm", "WebAssembly text"),
        (b"\0asm\x02\0\0\0", "not-wasm", "another version"),
        (b"\0asm\x01\0\0\0", "no-component-type", "without it"),
        (b"\0asm\x0d\0\x01\0\xff", "not-compilable", "0x8"),
    ] {
        let problems = refused(library(), bytes.to_vec()).await?;
        let problem = problems.first().context("a problem")?;
        ensure!(problem.code == code && problem.got.contains(got), "{bytes:?}: {problem}");
    }
    Ok(())
}

#[tokio::test]
async fn a_steps_powers_are_its_imports() -> Result<()> {
    let inspection = library().inspect(component("noop")?).await?;
    println!("{}", serde_json::to_string_pretty(&inspection)?);
    let names = |powers: &[interlock_runtime::Power]| -> Vec<String> {
        powers.iter().map(|power| power.name.to_string()).collect()
    };
    ensure!(names(&inspection.can).contains(&"transition".to_owned()));
    let cannot = names(&inspection.cannot);
    ensure!(["network", "files", "environment", "clock"].iter().all(|name| cannot.contains(&(*name).to_owned())));
    ensure!(inspection.wasi.is_empty() && inspection.place == Place::Pooled, "{inspection:?}");
    Ok(())
}

#[tokio::test]
async fn a_steps_wasi_imports_are_named() -> Result<()> {
    let inspection = inspect(engines(), &component("hostile-wasi")?).map_err(LibraryError::Unfit)?;
    ensure!(inspection.wasi.iter().any(|name| name.starts_with("wasi:sockets/tcp@0.2.")), "{inspection:?}");
    Ok(())
}

#[tokio::test]
async fn a_core_module_with_its_component_type_is_lifted() -> Result<()> {
    let module = core_module("noop")?;
    let lifted = library().add(module).await?;
    let whole = library().add(component("noop")?).await?;
    ensure!(lifted.inspection.can == whole.inspection.can, "{lifted:?}");
    Ok(())
}

/// The module that cargo wrote, before it was lifted.
fn core_module(guest: &str) -> Result<Vec<u8>> {
    let component = interlock_support::guest(guest)?;
    let target = component.ancestors().nth(2).context("the guests' target folder")?;
    crate::bed::read(&target.join("wasm32-unknown-unknown/release").join(format!("{guest}.wasm")))
}
