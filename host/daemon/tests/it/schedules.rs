//! Schedules over HTTP: declared with what is wrong in them, shown with when they come, paused, dropped.

use crate::site::{DOOR, Site};
use interlock_daemon::api::ScheduleView;
use reqwest::Method;
use serde_json::{Value, json};

/// Once a year, so that it does not come while a test runs.
const KNOCK: &str = r#"
schedule = "knock"
owner    = "night watch <watch@example.com>"
cron     = "30 2 29 2 *"
zone     = "Europe/Berlin"
entity   = "door/front"
event    = "push"
payload  = { force = 7 }
overlap  = "queue"
catch_up = { all = "2d" }
"#;

async fn site() -> anyhow::Result<Site> {
    let site = Site::new().await?;
    let deployed = site.post("/v1/machines", json!({ "manifest": DOOR })).await?;
    anyhow::ensure!(deployed.status == 201, "{}", deployed.body);
    Ok(site)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_declared_once_and_shows_when_it_comes() -> anyhow::Result<()> {
    let site = site().await?;
    let checked = site.post("/v1/schedules?check_only=true", json!({ "manifest": KNOCK })).await?;
    assert_eq!((checked.status, checked.at("/revision"), checked.at("/new")), (200, &Value::Null, &json!(false)));
    assert_eq!(site.get("/v1/schedules").await?.at("/schedules"), &json!([]));

    let declared = site.post("/v1/schedules", json!({ "manifest": KNOCK })).await?;
    assert_eq!((declared.status, declared.at("/revision"), declared.at("/new")), (201, &json!(1), &json!(true)));
    let times: Vec<String> = serde_json::from_value(declared.at("/times").clone())?;
    assert_eq!(times.len(), 3);
    assert!(times.iter().all(|time| time.ends_with("-02-29T01:30:00.000Z")), "{times:?}");
    let again = site.post("/v1/schedules", json!({ "manifest": KNOCK })).await?;
    assert_eq!((again.status, again.at("/revision"), again.at("/new")), (200, &json!(1), &json!(false)));

    let shown: ScheduleView = serde_json::from_value(site.get("/v1/schedules/knock").await?.body)?;
    assert_eq!((shown.summary.entity.as_str(), shown.summary.event.as_str()), ("door/front", "push"));
    assert_eq!(shown.summary.due.as_ref(), times.first());
    assert_eq!((shown.overlap.as_str(), shown.catch_up.as_str()), ("queue", "all of the last 2 d"));
    assert_eq!((shown.raised, shown.passed, shown.firings.len(), shown.creates), (0, 0, 0, false));
    assert_eq!(shown.manifest, KNOCK);
    let list = site.get("/v1/schedules").await?;
    assert_eq!((list.at("/schedules/0/schedule"), list.at("/next")), (&json!("knock"), &Value::Null));
    let page = site.get("/v1/schedules?limit=1").await?;
    assert_eq!(page.at("/next"), "knock");
    assert_eq!(site.get("/v1/schedules?limit=1&after=knock").await?.at("/schedules"), &json!([]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_schedule_is_told_with_its_place() -> anyhow::Result<()> {
    let site = site().await?;
    let bad = KNOCK.replace("30 2 29 2 *", "30 2 29 2").replace("Berlin", "Berln");
    let refused = site.post("/v1/schedules", json!({ "manifest": bad })).await?;
    assert_eq!((refused.status, refused.at("/findings/0/line")), (400, &json!(4)));
    assert_eq!(refused.at("/findings/1/line"), &json!(5));
    let remedy = refused.at("/findings/1/remedy").as_str().unwrap_or_default();
    assert!(remedy.contains("Europe/Berlin"), "{}", refused.body);

    let unknown = KNOCK.replace("\"push\"", "\"pusch\"");
    let refused = site.post("/v1/schedules", json!({ "manifest": unknown })).await?;
    assert_eq!((refused.status, refused.at("/got")), (400, &json!("pusch (did you mean push?)")));
    assert_eq!(refused.at("/owner"), "facilities <door@example.com>");
    let nowhere = KNOCK.replace("door/front", "dor/front");
    let refused = site.post("/v1/schedules", json!({ "manifest": nowhere })).await?;
    assert_eq!((refused.status, refused.at("/expected")), (404, &json!("a deployed machine (did you mean door?)")));
    let heavy = KNOCK.replace("force = 7", "force = 700");
    let refused = site.post("/v1/schedules", json!({ "manifest": heavy })).await?;
    assert_eq!((refused.status, refused.at("/code")), (400, &json!("invalid")));
    let refused = site.post("/v1/schedules", json!({ "manifesto": KNOCK })).await?;
    assert_eq!(refused.status, 400);
    assert_eq!(site.get("/v1/schedules").await?.at("/schedules"), &json!([]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_paused_resumed_and_dropped() -> anyhow::Result<()> {
    let site = site().await?;
    let declared = site.post("/v1/schedules", json!({ "manifest": KNOCK })).await?;
    let first = declared.at("/times/0").clone();
    for _ in 0..2 {
        let paused = site.post("/v1/schedules/knock/pause", json!({})).await?;
        assert_eq!((paused.status, paused.at("/paused"), paused.at("/due")), (200, &json!(true), &Value::Null));
    }
    for _ in 0..2 {
        let resumed = site.post("/v1/schedules/knock/resume", json!({})).await?;
        assert_eq!((resumed.status, resumed.at("/paused"), resumed.at("/due")), (200, &json!(false), &first));
    }
    let dropped = site.ask(site.request(Method::DELETE, "/v1/schedules/knock")?).await?;
    assert_eq!((dropped.status, dropped.at("/schedule")), (200, &json!("knock")));
    for (method, path) in [
        (Method::DELETE, "/v1/schedules/knock"),
        (Method::GET, "/v1/schedules/knock"),
        (Method::POST, "/v1/schedules/knock/pause"),
        (Method::POST, "/v1/schedules/knock/resume"),
    ] {
        let gone = site.ask(site.request(method, path)?).await?;
        assert_eq!((gone.status, gone.at("/expected")), (404, &json!("a declared schedule (none is declared)")));
    }
    site.post("/v1/schedules", json!({ "manifest": KNOCK })).await?;
    let near = site.get("/v1/schedules/knok").await?;
    assert_eq!((near.status, near.at("/expected")), (404, &json!("a declared schedule (did you mean knock?)")));
    Ok(())
}
