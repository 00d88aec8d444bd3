//! Golden scripts: commands in, decisions out. A script drives a coordinator on the store in memory, a
//! clock that moves only when told, and an executor whose every step is a line of the script. Each is played
//! again on a hostile store, which runs jobs more than once, and must tell the same.
//!
//! `UPDATE_EXPECT=1 cargo test -p interlock-coordinator` rewrites the transcripts.

mod asks;
mod codec;
mod crowd;
mod effects;
mod engines;
mod flagship;
mod leases;
mod lists;
mod memory;
mod pending;
mod repair;
mod rows;
mod say;
mod schedules;
mod time;
mod verbs;
mod world;

use expect_test::Expect;
use std::future::Future;

/// Plays a script and compares its transcript.
fn check(script: &str, expect: Expect) {
    let calm = told(script, world::Kept::AsItIs);
    expect.assert_eq(&calm);
    assert_eq!(told(script, world::Kept::Hostile), calm, "on a hostile store");
}

fn told(script: &str, kept: world::Kept) -> String {
    run(async {
        let mut world = world::World::new(kept).await;
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            world.play(line).await;
        }
        world.end().await
    })
}

/// One thread, so that the order of everything is the order of the script.
fn run<T>(future: impl Future<Output = T>) -> T {
    match tokio::runtime::Builder::new_current_thread().enable_time().build() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => panic!("no runtime: {error}"),
    }
}
