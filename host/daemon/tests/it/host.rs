//! The host itself: alive, ready, counted, restarted.

use crate::site::Site;
use interlock_daemon::{Daemon, Options};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_host_says_that_it_is_alive_and_ready() -> anyhow::Result<()> {
    let site = Site::new().await?;
    assert_eq!(site.get("/healthz").await?.at("/alive"), true);
    let ready = site.get("/readyz").await?;
    assert_eq!((ready.status, ready.at("/ready"), ready.at("/store/condition")), (200, &json!(true), &json!("ready")));
    assert!(ready.at("/tasks").as_array().is_some_and(|tasks| tasks.len() >= 5), "{}", ready.body);
    let stats = site.get("/v1/stats").await?;
    assert_eq!(stats.at("/requests/200"), 2);
    assert_eq!(stats.at("/refused/busy"), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_there_after_a_restart() -> anyhow::Result<()> {
    let mut site = Site::with_door().await?;
    let answered = site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    site.stop().await?;
    site.start().await?;
    assert_eq!(site.get("/v1/entities/door/a").await?.at("/state"), "opening");
    assert_eq!(site.get("/v1/machines/door").await?.at("/active"), 1);
    assert_eq!(site.send("door/a", "e1", "push", json!({ "force": 5 })).await?.body, answered.body);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_loopback_is_listened_on() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let options = Options { data_dir: folder.path().to_owned(), listen: "0.0.0.0:0".parse()?, ..Options::default() };
    let refused = Daemon::start(options).await.err().map(|why| why.to_string()).unwrap_or_default();
    assert!(refused.contains("until authentication exists"), "{refused}");
    Ok(())
}
