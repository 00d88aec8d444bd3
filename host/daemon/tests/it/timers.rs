//! Timers over the API: what a deploy says of their calendars, and what an entity shows of them.

use crate::site::Site;
use serde_json::json;

fn machine(holidays: &str) -> String {
    format!(
        r#"
        machine = "clock"
        owner   = "tests <tests@example.com>"
        initial = "waiting"
        desired.schema = false
        data.schema    = {{}}
        outputs.schema = false
        [states.waiting]
        kind  = "rest"
        after = {{ name = "daily", every = "business day", at = "09:00", zone = "Europe/Berlin", {holidays} set = {{ "data.days" = {{ increment = 1 }} }} }}
        "#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_timer_shows_the_rule_behind_it() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let deployed = site.post("/v1/machines", json!({ "manifest": machine("") })).await?;
    assert_eq!((deployed.status, deployed.at("/warnings")), (201, &json!([])));
    site.post("/v1/entities", json!({ "machine": "clock", "key": "a" })).await?;
    let shown = site.get("/v1/entities/clock/a").await?;
    assert_eq!(shown.at("/timers/0/name"), "daily");
    assert_eq!(shown.at("/timers/0/rule"), "every business day, 09:00 Europe/Berlin");
    // Berlin is an hour or two ahead of what the API shows.
    let due = shown.at("/timers/0/due").as_str().unwrap_or_default().to_owned();
    assert!(due.ends_with("T07:00:00.000Z") || due.ends_with("T08:00:00.000Z"), "{due}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn holidays_that_have_run_out_are_a_warning_of_the_deploy_and_refuse_by_name() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let manifest = machine("holidays = [\"2001-01-01\"],");
    let deployed = site.post("/v1/machines", json!({ "manifest": manifest })).await?;
    assert_eq!((deployed.status, deployed.at("/warnings/0/code")), (201, &json!("holidays-end")));
    let refused = site.post("/v1/entities", json!({ "machine": "clock", "key": "a" })).await?;
    let line = refused.line();
    assert!(line.contains("invalid: timer daily of waiting: expected holidays that reach to "), "{line}");
    assert!(line.ends_with("got a list that ends on 2001-01-01"), "{line}");
    Ok(())
}
