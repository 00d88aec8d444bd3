//! Components on disk and their machine code beside them.

use crate::bed::{Bed, Time, component, engines, library, manifest};
use anyhow::{Context as _, Result, bail, ensure};
use interlock_kernel::doc::Digest;
use interlock_runtime::limits::PREPARED_MAX;
use interlock_runtime::{Counts, Library, LibraryError, Place};
use std::path::{Path, PathBuf};

fn only_file(folder: &Path, extension: &str) -> Result<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                return Ok(path);
            }
        }
    }
    bail!("no .{extension} in {}", folder.display())
}

#[tokio::test]
async fn the_same_bytes_are_the_same_component() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let library = Library::open(engines(), folder.path())?;
    let bytes = component("noop")?;
    let (first, second) = (library.add(bytes.clone()).await?, library.add(bytes.clone()).await?);
    ensure!(first.digest == second.digest && first.digest == Digest::of(&[&bytes]));
    ensure!(library.get(first.digest).await? == bytes);
    Ok(())
}

#[tokio::test]
async fn a_component_that_is_not_there_or_not_the_same_is_an_error_by_name() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let library = Library::open(engines(), folder.path())?;
    let missing = library.get(Digest([7; 32])).await;
    ensure!(matches!(missing, Err(LibraryError::Missing(_))), "{missing:?}");

    let added = library.add(component("noop")?).await?;
    std::fs::write(only_file(folder.path(), "wasm")?, b"something else")?;
    let corrupt = library.get(added.digest).await;
    ensure!(matches!(corrupt, Err(LibraryError::Corrupt(_))), "{corrupt:?}");
    // Adding it again mends it.
    library.add(component("noop")?).await?;
    ensure!(library.get(added.digest).await.is_ok());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn machine_code_that_was_changed_is_compiled_again() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let added = Library::open(engines(), folder.path())?.add(component("noop")?).await?;
    let code = only_file(folder.path(), "cwasm")?;
    let kept = std::fs::read(&code)?;
    for spoilt in [kept.iter().rev().copied().collect(), kept.get(..100).context("some code")?.to_vec(), Vec::new()] {
        // In place of the old file, as a faulty disk or a hand would leave it; never through the map.
        std::fs::remove_file(&code)?;
        std::fs::write(&code, spoilt)?;
        let library = Library::open(engines(), folder.path())?;
        library.warm(added.digest).await?;
        ensure!(std::fs::read(&code)? == kept, "the code was not made again");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn machine_code_that_is_gone_is_compiled_again() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let added = Library::open(engines(), folder.path())?.add(component("noop")?).await?;
    std::fs::remove_file(only_file(folder.path(), "b3")?)?;
    Library::open(engines(), folder.path())?.warm(added.digest).await?;
    only_file(folder.path(), "b3")?;
    Ok(())
}

#[tokio::test]
async fn machine_code_of_another_host_is_removed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let other = folder.path().join("compiled").join(Digest([7; 32]).to_string());
    std::fs::create_dir_all(&other)?;
    Library::open(engines(), folder.path())?;
    ensure!(!other.exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_too_large_for_the_pool_runs_on_demand() -> Result<()> {
    let bytes = interlock_support::hostile_wat("large-memory")?;
    let added = library().add(bytes.clone()).await?;
    ensure!(added.inspection.place == Place::OnDemand, "{:?}", added.inspection);

    // With room for it, it runs, and returns without a transition.
    let bed = Bed::new().await?;
    let manifest = manifest("hostile")?.replace("memory = \"64MiB\"", "memory = \"512MiB\"");
    bed.deploy(&manifest, &bytes).await?;
    let ending = bed.attempt("hostile", "large-memory-on-demand", Time::BetweenAttempts).await?;
    ensure!(ending.code() == "no-transition", "{ending:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_more_memory_than_the_pool_has_runs_on_demand() -> Result<()> {
    let bed = Bed::new().await?;
    let manifest = manifest("hostile")?.replace("memory = \"64MiB\"", "memory = \"300MiB\"");
    bed.deploy(&manifest, &component("hostile")?).await?;
    let ending = bed.attempt("hostile", "memory-limit", Time::BetweenAttempts).await?;
    ensure!(ending.code() == "memory-limit" && ending.reason().contains("314572800"), "{ending:?}");
    Ok(())
}

/// The same component under another digest: a section that nothing reads.
fn another(component: &[u8], number: u8) -> Vec<u8> {
    [component, &[0, 3, 1, b'n', number]].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_is_compiled_once_however_many_ask_for_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let library = Library::open(engines(), folder.path())?;
    let bytes = component("noop")?;
    let asks: Vec<_> = (0..8)
        .map(|_| {
            let (library, bytes) = (library.clone(), bytes.clone());
            tokio::spawn(async move { library.add(bytes).await.map(|added| added.digest) })
        })
        .collect();
    let mut digests = Vec::new();
    for ask in asks {
        digests.push(ask.await??);
    }
    let digest = *digests.first().context("an answer")?;
    ensure!(library.counts().compiled == 1, "{:?}", library.counts());
    // What it can do is read from its machine code.
    ensure!(library.inspection(digest).await? == library.inspect(bytes).await?);
    ensure!(library.counts().compiled == 1, "{:?}", library.counts());

    // The same for a host that finds the component and no machine code.
    std::fs::remove_file(only_file(folder.path(), "cwasm")?)?;
    let library = Library::open(engines(), folder.path())?;
    let asks: Vec<_> = (0..8)
        .map(|_| {
            let library = library.clone();
            tokio::spawn(async move { library.warm(digest).await })
        })
        .collect();
    for ask in asks {
        ask.await??;
    }
    ensure!(library.counts().compiled == 1 && library.counts().ready == 1, "{:?}", library.counts());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_nothing_is_loaded_before_it_is_needed_and_nothing_is_compiled() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bytes = component("noop")?;
    let first = Library::open(engines(), folder.path())?;
    let added = first.add(bytes.clone()).await?;
    first.add(another(&bytes, 1)).await?;
    ensure!(first.counts() == Counts { compiled: 2, loaded: 2, ready: 2 }, "{:?}", first.counts());

    let second = Library::open(engines(), folder.path())?;
    ensure!(second.counts() == Counts::default(), "{:?}", second.counts());
    second.warm(added.digest).await?;
    second.warm(added.digest).await?;
    ensure!(second.counts() == Counts { compiled: 0, loaded: 1, ready: 1 }, "{:?}", second.counts());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_component_used_longest_ago_makes_room_and_is_mapped_again() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let library = Library::open(engines(), folder.path())?;
    let bytes = interlock_support::hostile_wat("garbage-answer")?;
    let mut digests = Vec::new();
    for number in 0..=u8::try_from(PREPARED_MAX)? {
        digests.push(library.add(another(&bytes, number)).await?.digest);
        // Used again and again, the second one stays.
        if let Some(second) = digests.get(1) {
            library.warm(*second).await?;
        }
    }
    let before = library.counts();
    ensure!(before.ready == PREPARED_MAX, "{before:?}");
    library.warm(digests[1]).await?;
    ensure!(library.counts() == before, "{:?}", library.counts());
    library.warm(digests[0]).await?;
    ensure!(library.counts() == Counts { loaded: before.loaded + 1, ..before }, "{:?}", library.counts());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn components_are_forgotten_but_for_those_that_came_last() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let library = Library::open(engines(), folder.path())?;
    let (first, second) = (library.add(component("noop")?).await?, library.add(component("resource")?).await?);
    library.forget_all_but(2)?;
    ensure!(library.get(first.digest).await.is_ok(), "two are kept");
    library.forget_all_but(1)?;
    let gone = library.get(first.digest).await;
    ensure!(matches!(gone, Err(LibraryError::Missing(_))), "{gone:?}");
    ensure!(library.get(second.digest).await.is_ok());

    let again = Library::open(engines(), folder.path())?;
    again.add(component("resource")?).await?;
    ensure!(again.counts().compiled == 0, "its machine code is kept");
    again.add(component("noop")?).await?;
    ensure!(again.counts().compiled == 1, "nothing is left of the one that was forgotten");
    Ok(())
}
