//! Requests nobody would write, over a socket to a real daemon: an input is a few requests as text, changed at random
//! from a corpus (`tests/fuzz/corpus/http`). Whatever arrives, the daemon answers: a success, or a problem document
//! whose code and status are a row of the table; nothing panics, and memory stays bounded.
//!
//! `INTERLOCK_FUZZ_INPUTS=100000 cargo test -p interlock-daemon --test fuzz` runs for longer;
//! `INTERLOCK_FUZZ_REPLAY=FILE` runs one input again.

mod http;
mod site;

use anyhow::{Result, ensure};
use http::Http;
use interlock_daemon::limits::{BODY_BYTES_MAX, DISCARDED_BYTES_MAX};
use interlock_fuzz::{Report, Until, guarded, search};
use site::{Request, site};
use std::path::Path;
use std::sync::Mutex;

/// Inputs of the short run, beside the corpus.
const INPUTS: u64 = 1_500;
const SEED: u64 = 20_26;
/// What the process may grow by over the short run, in bytes: the store's cache and the corpus, many times over.
const GROWTH_BYTES_MAX: u64 = 192 * 1024 * 1024;

/// One test at a time: both look at the memory of the process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn every_request_is_answered_by_a_success_or_a_problem_of_the_table() -> Result<()> {
    if let Some(path) = std::env::var_os("INTERLOCK_FUZZ_REPLAY") {
        let input = std::fs::read(path)?;
        return guarded(&Http, &input).map(drop).map_err(|why| anyhow::anyhow!(why.0));
    }
    let inputs = std::env::var("INTERLOCK_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok());
    let _alone = ALONE.lock();
    site();
    let before = resident_bytes();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let report = search(&Http, SEED, Until::Inputs(inputs.unwrap_or(INPUTS)), folder)?;
    let Report { inputs, pool, seen, failure } = report;
    let grown = resident_bytes().saturating_sub(before);
    println!("http: {inputs} inputs, {} showed something new, {seen} things said, {grown} bytes more", pool.len());
    if let Some(failure) = failure {
        let path = failure.path.display();
        anyhow::bail!(
            "{}\nagain: INTERLOCK_FUZZ_REPLAY={path} cargo test -p interlock-daemon --test fuzz",
            failure.why.0
        );
    }
    ensure!(pool.len() > 20, "the corpus shows next to nothing");
    ensure!(grown < GROWTH_BYTES_MAX, "the process has grown by {grown} bytes");
    Ok(())
}

#[test]
fn a_body_without_an_end_is_refused_long_before_memory_is() -> Result<()> {
    let _alone = ALONE.lock();
    let most = BODY_BYTES_MAX + DISCARDED_BYTES_MAX;
    let request = Request::parse(b"POST /v1/entities\nContent-Type: application/json\n\n");
    let site = site();
    let before = resident_bytes();
    let (answer, taken) = site.endless(&request, 64 * most)?;
    let grown = resident_bytes().saturating_sub(before);
    ensure!(answer.status == 413, "{answer:?}");
    // What is behind the bound was on its way in the buffers of two sockets.
    ensure!(taken < 2 * most, "{taken} bytes were taken");
    ensure!(grown < most as u64, "{grown} bytes are kept of a body that was refused");
    Ok(())
}

/// Memory of this process; 0 where nobody says, and then nothing has grown.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}
