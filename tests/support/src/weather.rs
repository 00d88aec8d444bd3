//! What happens to every daemon that tests start, as `INTERLOCK_WEATHER` says it.
//!
//! | | |
//! |---|---|
//! | `doubled` | what is made once although it is asked for twice is asked for twice (`api.rs`) |
//! | `killed` | the daemon is killed with `SIGKILL` at seeded moments and booted on the same file; requests that lost their answer are made again |
//! | `late` | the daemon stands still again and again, so that what a timer causes comes late |
//!
//! The moments are drawn from the test's name and `INTERLOCK_SEED`. A test that kills, stops or boots its daemon by
//! itself has calm weather from then on.

use crate::api::Api;
use crate::host::{Launch, Running, signal_to};
use anyhow::{Context as _, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::process::Child;

/// What happens to a daemon beside what its test does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Nothing.
    Calm,
    /// What is made once is asked for twice.
    Doubled,
    /// It is killed and booted.
    Killed,
    /// It stands still again and again.
    Late,
}

/// Kills of one daemon: after that it lives on, so that every test comes to its end.
const KILLS: u64 = 6;

/// The shortest life before a kill, and how much longer it may be.
const LIFE_MS: u64 = 15;
const LIFE_MS_MORE: u64 = 500;

/// How long a daemon runs between two stands, and how long it stands still.
const RUNS_MS: u64 = 200;
const STANDS_MS: u64 = 240;

impl Weather {
    /// Of this process.
    ///
    /// # Panics
    /// If the environment says what is none: a weather that is not there would let every test pass.
    pub fn now() -> Self {
        static NOW: LazyLock<Weather> = LazyLock::new(|| match std::env::var("INTERLOCK_WEATHER").as_deref() {
            // `all` is another suite's: the scenarios of the examples.
            Err(_) | Ok("" | "calm" | "all") => Weather::Calm,
            Ok("doubled") => Weather::Doubled,
            Ok("killed") => Weather::Killed,
            Ok("late") => Weather::Late,
            Ok(other) => panic!("INTERLOCK_WEATHER: expected doubled, killed or late, got {other:?}"),
        });
        *NOW
    }
}

/// Moments drawn from a seed.
pub(crate) struct Moments(u64);

impl Moments {
    /// Those of the test that runs on this thread.
    pub(crate) fn of_this_test() -> Self {
        let seed = std::env::var("INTERLOCK_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or_default();
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default().bytes();
        // FNV-1a.
        Self(name.fold(0xcbf2_9ce4_8422_2325_u64 ^ seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        }))
    }

    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// The next life.
    pub(crate) fn life(&mut self) -> Duration {
        Duration::from_millis(LIFE_MS + self.below(LIFE_MS_MORE))
    }

    /// How long it runs, and how long it stands still then.
    pub(crate) fn standstill(&mut self) -> (Duration, Duration) {
        let ms = |most: u64, drawn: u64| Duration::from_millis(most / 2 + drawn);
        (ms(RUNS_MS, self.below(RUNS_MS)), ms(STANDS_MS, self.below(STANDS_MS)))
    }
}

/// Kills the daemon at seeded moments, some of them before anything was asked of a boot, and boots it each time.
pub(crate) async fn kill_at_moments(
    mut moments: Moments,
    launch: Launch,
    running: Running,
    api: Api,
    came: Arc<AtomicU64>,
) -> Result<()> {
    for _ in 0..KILLS {
        tokio::time::sleep(moments.life()).await;
        let calm = api.calm();
        let _calm = calm.write().await;
        let mut child = running.lock().await;
        let Some(mut killed) = child.take() else { return Ok(()) };
        killed.kill().await.context("kill it")?;
        let (booted, booting) = launch.start()?;
        *child = Some(booted);
        api.moves(booting.url().await?);
        came.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

/// Has the daemon stand still again and again.
pub(crate) async fn stand_still(mut moments: Moments, running: Running, came: Arc<AtomicU64>) -> Result<()> {
    loop {
        let (runs, stands) = moments.standstill();
        tokio::time::sleep(runs).await;
        let child = running.lock().await;
        let Some(pid) = child.as_ref().and_then(Child::id) else { return Ok(()) };
        signal_to(pid, "-STOP").await?;
        tokio::time::sleep(stands).await;
        signal_to(pid, "-CONT").await?;
        came.fetch_add(1, Ordering::SeqCst);
    }
}
