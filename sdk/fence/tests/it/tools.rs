//! Tools that not every machine has.

use std::env;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Where a program is, by `PATH` or in one of these folders.
pub(crate) fn find(program: &str, also: &[PathBuf]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).chain(also.iter().cloned()).collect();
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Says that a test did not run, and why, past the test runner that keeps what passing tests print. With
/// `INTERLOCK_TOOLS=required`, as in `.ci/run`, it is a failure.
#[allow(clippy::explicit_write, reason = "the test runner keeps what `eprintln!` says")]
pub(crate) fn missing(what: &str, remedy: &str) {
    let message = format!("interlock-fence: NOT TESTED, {what} is missing: {remedy}");
    assert!(env::var("INTERLOCK_TOOLS").as_deref() != Ok("required"), "{message}");
    writeln!(io::stderr(), "{message}").unwrap();
}
