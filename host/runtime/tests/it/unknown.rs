//! Writes of which nobody can say whether they were kept.

use crate::bed::{component, manifest};
use anyhow::{Context as _, Result};
use interlock_kernel::command::{Create, OnExisting, Verb};
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::{Expect, What};
use interlock_kernel::view::Event;
use interlock_lab::{Fault, Lab, Turn};
use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
use std::sync::Arc;

/// How an execution went.
#[derive(Debug, PartialEq, Eq)]
struct Walk {
    state: String,
    /// What attempts came to nothing, and whether for good.
    failures: Vec<(String, bool)>,
    transitions: usize,
}

/// An execution of five steps, the first of which meets the fault when it asks for its transition.
fn walk(fault: Fault) -> Result<Walk> {
    let folder = tempfile::tempdir()?;
    let engines = Engines::new(EngineOptions { executions_max: 2, guest_threads: 0, ..EngineOptions::default() })?;
    let library = Library::open(&engines, folder.path())?;
    let added = tokio::runtime::Runtime::new()?.block_on(library.add(component("noop")?))?;
    let source = manifest("noop")?;
    let report = interlock_manifest::parse("machine.toml", &source);
    let mut lab = Lab::new(Arc::new(Wasm::new(library)))?;
    lab.deploy(&report.manifest.context("a sound manifest")?, &source, Some(added.digest))?;
    let entity: EntityId = "noop/it".parse()?;
    let event =
        Event { id: "e1".parse()?, name: "go".parse()?, payload: None, expect: Expect::default(), checked: None };
    let create = Create {
        entity: entity.clone(),
        desired: None,
        labels: std::collections::BTreeMap::new(),
        on_existing: OnExisting::Fail,
        event: Some(event),
    };
    lab.submit(Principal::local(), Verb::Create(Box::new(create)))?;
    lab.fault(0, fault)?;
    lab.advance(10_000, &mut |_| Turn::Go)?;

    let id = entity.clone();
    let view = lab.read(|host| async move { host.entity(&id).await })?.context("an entity")?;
    let history = lab.read(|host| async move { host.history(&entity, None, None, 100).await })?;
    let entries = history.context("a history")?.entries;
    let failures = entries.iter().filter_map(|entry| match &entry.what {
        What::Ended(failure, _) => Some((failure.code.clone(), failure.permanent)),
        _ => None,
    });
    Ok(Walk {
        state: view.head.state.to_string(),
        failures: failures.collect(),
        transitions: entries.iter().filter(|entry| matches!(entry.what, What::Transition(_))).count(),
    })
}

#[test]
fn a_step_whose_write_may_be_lost_is_tried_again() -> Result<()> {
    let failures = vec![("unavailable".to_owned(), false)];
    let lost = walk(Fault::Unknown { kept: false })?;
    assert_eq!(lost, Walk { state: "idle".to_owned(), failures, transitions: 5 });
    Ok(())
}

#[test]
fn a_step_whose_write_was_kept_made_it_once() -> Result<()> {
    let kept = walk(Fault::Unknown { kept: true })?;
    assert_eq!(kept, Walk { state: "idle".to_owned(), failures: vec![], transitions: 5 });
    Ok(())
}
