//! `kill -9` at random moments, for tests whose clients go on meanwhile.

use crate::api::Api;
use crate::host::Host;
use anyhow::{Context as _, Result};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// One kill in so many hits a daemon that does not listen yet.
const IN_BOOT: u64 = 5;

/// The API of the boot that listens now; none while there is none.
pub type Boots = watch::Receiver<Option<Api>>;

/// Kills the daemon at random moments within `lives_ms` of its boot, and boots it; the last boot stays. `below` gives
/// random numbers below a bound.
pub async fn kill_again_and_again(
    host: &mut Host,
    kills: u64,
    lives_ms: u64,
    below: &mut (dyn FnMut(u64) -> u64 + Send),
    publish: &watch::Sender<Option<Api>>,
) -> Result<()> {
    let mut boot_took = Duration::from_millis(100);
    // Kept until its process is killed: a daemon that nobody listens to would end by itself.
    let mut unheard = None;
    for nth in 1..=kills {
        // The moment is the point of this test: anywhere in a life, or in a boot.
        tokio::time::sleep(Duration::from_micros(below(lives_ms * 1_000))).await;
        publish.send_replace(None);
        host.kill().await?;
        drop(unheard.take());
        let in_boot = nth < kills && below(IN_BOOT) == 0;
        let began = Instant::now();
        let booting = host.spawn().await?;
        let mut listening = Box::pin(booting.url());
        let url = match in_boot {
            true => {
                let moment = below(u64::try_from(boot_took.as_micros())?);
                tokio::time::timeout(Duration::from_micros(moment), &mut listening).await.ok()
            }
            false => Some((&mut listening).await),
        };
        unheard = Some(listening);
        if let Some(url) = url {
            let url = url.with_context(|| format!("boot {nth}"))?;
            boot_took = began.elapsed();
            publish.send_replace(Some(Api::new(url)?));
        }
    }
    // The last boot is never killed in its boot.
    let last = publish.borrow().clone();
    host.adopt(last.context("the last boot")?);
    Ok(())
}
