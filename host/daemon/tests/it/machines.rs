//! Deploy, list, show, roll back.

use crate::site::{DOOR, Site};
use expect_test::expect;
use interlock_daemon::base64;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_deploy_again_is_the_same_revision() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let first = site.post("/v1/machines", json!({ "manifest": DOOR })).await?;
    assert_eq!((first.status, first.at("/revision"), first.at("/new")), (201, &json!(1), &json!(true)));
    let again = site.post("/v1/machines", json!({ "manifest": DOOR })).await?;
    assert_eq!((again.status, again.at("/revision"), again.at("/new")), (200, &json!(1), &json!(false)));
    let changed = DOOR.replace("door@example.com", "doors@example.com");
    let second = site.post("/v1/machines", json!({ "manifest": changed })).await?;
    assert_eq!((second.status, second.at("/revision")), (201, &json!(2)));

    let list = site.get("/v1/machines").await?;
    assert_eq!(list.at("/machines/0/owner"), "facilities <doors@example.com>");
    let back = site.post("/v1/machines/door/rollback", json!({ "to": 1 })).await?;
    assert_eq!(
        (back.status, back.at("/revision"), back.at("/owner")),
        (201, &json!(3), &json!("facilities <door@example.com>"))
    );
    let twice = site.post("/v1/machines/door/rollback", json!({ "to": 1 })).await?;
    assert_eq!((twice.status, twice.at("/revision")), (200, &json!(3)));
    let shown = site.get("/v1/machines/door").await?;
    assert_eq!(shown.at("/active"), 3);
    assert_eq!(shown.at("/revisions/0/rollback_of"), 1);
    assert_eq!(shown.at("/manifest"), DOOR);
    let missing = site.post("/v1/machines/door/rollback", json!({ "to": 9 })).await?;
    assert_eq!(missing.line(), "404 not_found: door: expected a revision from 1 to 3, got revision 9");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_problem_is_told_at_once() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let manifest = DOOR.replace("to = \"shut\"", "to = \"shutt\"").replace("op = \"gt\"", "op = \"gtt\"");
    let component = interlock_support::hostile_wat("wasi-http")?;
    let body = json!({ "manifest": manifest, "component": base64::encode(&component) });
    let refused = site.post("/v1/machines", body).await?;
    assert_eq!((refused.status, refused.at("/code")), (400, &json!("invalid")));
    let findings = refused.at("/findings").as_array().cloned().unwrap_or_default();
    let codes: Vec<&str> = findings.iter().filter_map(|finding| finding.get("code").and_then(Value::as_str)).collect();
    expect!["no-schema no-schema no-schema bad-choice unknown-state unknown-import"].assert_eq(&codes.join(" "));
    assert_eq!(site.get("/v1/machines").await?.at("/machines"), &json!([]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_and_component_belong_together() -> anyhow::Result<()> {
    let site = Site::new().await?;
    let noop = std::fs::read_to_string(interlock_support::guest_folder("noop").join("machine.toml"))?;
    let without = site.post("/v1/machines", json!({ "manifest": noop })).await?;
    assert_eq!(without.line(), "400 invalid: component: expected the bytes of noop.wasm, got none");
    let component = std::fs::read(interlock_support::guest("noop")?)?;
    let with = site.post("/v1/machines", json!({ "manifest": noop, "component": base64::encode(&component) })).await?;
    assert_eq!(with.status, 201, "{}", with.body);
    let names = |pointer: &str| {
        let powers = with.at(pointer).as_array().cloned().unwrap_or_default();
        powers.iter().filter_map(|power| power.get("name")?.as_str().map(str::to_owned)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("/can"), "transition log");
    assert!(names("/cannot").contains("network files environment clock"), "{}", names("/cannot"));
    let superfluous = json!({ "manifest": DOOR, "component": base64::encode(&component) });
    assert_eq!(site.post("/v1/machines", superfluous).await?.at("/subject"), "component");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_machine_names_the_nearest() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    let line = async |path: &str| -> anyhow::Result<String> {
        let answer = site.get(path).await?;
        Ok(format!("{} (expected {})", answer.line(), answer.at("/expected").as_str().unwrap_or_default()))
    };
    let said = "404 not_found: there is no machine doro (expected a deployed machine (did you mean door?))";
    for path in ["/v1/machines/doro", "/v1/entities/doro/a", "/v1/entities?machine=doro", "/v1/watch?machine=doro"] {
        assert_eq!(line(path).await?, said, "{path}");
    }
    let created = site.post("/v1/entities", json!({ "machine": "doro", "key": "a" })).await?;
    assert_eq!(created.line(), "404 not_found: there is no machine doro");
    let malformed = site.get("/v1/machines/Door").await?;
    assert_eq!(malformed.line(), "400 invalid: machine name: expected 1 to 63 bytes of [a-z][a-z0-9-]*, got \"Door\"");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_follow_is_listed() -> anyhow::Result<()> {
    let site = Site::with_door().await?;
    site.send("door/a", "e1", "push", json!({ "force": 5 })).await?;
    let manifest = DOOR.replace("opening", "moving");
    let deployed = site.post("/v1/machines", json!({ "manifest": manifest })).await?;
    assert_eq!(deployed.status, 201, "{}", deployed.body);
    let shown = site.get("/v1/machines/door").await?;
    assert_eq!(shown.at("/held_back/0/entity"), "door/a");
    assert_eq!(shown.at("/held_back/0/can_move"), false);
    assert_eq!(shown.at("/held_back/0/why"), "its state opening is not in revision 2");
    Ok(())
}
