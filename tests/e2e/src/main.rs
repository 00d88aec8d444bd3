//! The process that the tests start, kill and stop. It is the daemon and nothing else: no terminal, no
//! signals, few slots, so that it starts fast. It stops in good order when its standard input ends, and so
//! never outlives a test.
//!
//! Read next: `tests/support/src/host.rs`, which is both of its ends.

use anyhow::{Context as _, Result, bail};
use interlock_build::{Progress, Workspace};
use std::path::PathBuf;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let verb = arguments.next().unwrap_or_default();
    match verb.to_str() {
        Some("serve") => interlock_support::host::serve(arguments),
        Some("build") => build(arguments.next().context("a folder")?.into()),
        _ => bail!("serve or build, not {}", verb.display()),
    }
}

/// Builds the guests of a folder with whatever toolchain the environment shows.
fn build(folder: PathBuf) -> Result<()> {
    let target_dir = Some(folder.join("target"));
    for built in (Workspace { folder, target_dir, progress: Progress::Shown }).build()? {
        println!("{}", built.name);
    }
    Ok(())
}
