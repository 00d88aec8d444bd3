//! Golden scripts: commands in, decisions out. A script drives a coordinator on the store in memory, a
//! clock that moves only when told, and an executor whose every step is a line of the script.
//!
//! `UPDATE_EXPECT=1 cargo test -p interlock-coordinator` rewrites the transcripts.

mod codec;
mod crowd;
mod engines;
mod flagship;
mod lists;
mod pending;
mod repair;
mod say;
mod time;
mod verbs;
mod world;

use expect_test::Expect;
use std::future::Future;

/// Plays a script and compares its transcript.
fn check(script: &str, expect: Expect) {
    expect.assert_eq(&run(async {
        let mut world = world::World::new().await;
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            world.play(line).await;
        }
        world.end().await
    }));
}

/// One thread, so that the order of everything is the order of the script.
fn run<T>(future: impl Future<Output = T>) -> T {
    match tokio::runtime::Builder::new_current_thread().enable_time().build() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => panic!("no runtime: {error}"),
    }
}
