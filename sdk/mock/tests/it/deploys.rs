//! Revisions, and more than one machine.

use crate::world::{ACTOR, STEPS, doing};
use interlock::to;
use interlock_mock::{MockHost, Steps, at};
use serde_json::json;

#[test]
fn an_attempt_ends_with_the_steps_it_began_with_and_the_next_has_the_new_ones() {
    let mut host = doing("fail-twice");
    host.run();
    let newer = Steps::one("act", |actor| Ok(actor.transition(to("waiting").set("data.note", "newer"))?));
    host.deploy(ACTOR, newer).accepted();
    host.until("a", "waiting");
    assert_eq!((host.entity("a").revision(), host.entity("a").data()["note"].as_str()), (2, Some("newer")));
    assert_eq!(host.ran().len(), 2);
}

#[test]
fn the_same_again_is_no_revision() {
    let mut host = MockHost::new(ACTOR, STEPS);
    assert_eq!(host.deploy(ACTOR, STEPS).to_string(), "revision 1, already active");
    let other = ACTOR.replace("90s", "10s");
    assert_eq!(host.deploy(&other, STEPS).to_string(), "revision 2");
}

#[test]
fn an_attempt_that_runs_keeps_its_revision() {
    let mut host = doing("wait");
    host.hold(at("act"));
    host.run();
    host.deploy(&ACTOR.replace("90s", "10s"), STEPS).accepted();
    host.let_go();
    host.until("a", "settling");
    assert_eq!((host.passed().as_secs(), host.entity("a").revision()), (10, 2), "the next visit is of the newest");
}

#[test]
fn entities_of_another_machine_are_named_with_it() {
    let mut host = MockHost::new(ACTOR, STEPS);
    let other = ACTOR.replace("machine   = \"actor\"", "machine   = \"other\"");
    host.deploy(&other, STEPS).accepted();
    host.create("other/a").accepted();
    host.create("other").accepted();
    host.send("other/a", "run", json!({ "act": "go" })).accepted();
    host.run();
    assert_eq!((host.entity("other/a").id(), host.entity("other").id()), ("other/a".into(), "actor/other".into()));
    assert_eq!(host.entity("other/a").data()["runs"], 1);
}

#[test]
fn a_manifest_that_is_not_sound_says_all_that_is_wrong() {
    let bad = ACTOR
        .replace("to = \"settling\"", "to = \"setling\"")
        .replace("initial   = \"idle\"", "initial   = \"acting\"");
    let panic = std::panic::catch_unwind(|| MockHost::new(&bad, STEPS)).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("error[unknown-state]") && text.contains("error[initial-not-rest]"), "{text}");
    assert!(text.contains("did you mean `settling`?"), "{text}");
}

#[test]
fn a_machine_may_have_no_steps() {
    let door = r#"
        machine = "door"
        owner = "tests <tests@example.com>"
        initial = "shut"
        desired.schema = false
        data.schema = false
        outputs.schema = false
        events.push.schema = false
        states.shut = { kind = "rest", on.push = { to = "open" } }
        states.open = { kind = "rest", on.push = { to = "shut" } }
    "#;
    let mut host = MockHost::new(door, &[]);
    host.create("front").accepted();
    host.send("front", "push", json!(null)).accepted();
    host.entity("front").state_is("open");
}

#[test]
fn a_folder_is_as_good_as_its_manifest() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("machine.toml"), ACTOR).unwrap();
    let mut host = MockHost::of_folder(folder.path(), STEPS);
    host.create("a").accepted();
    let panic = std::panic::catch_unwind(|| MockHost::of_folder("no/such/folder", STEPS)).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().starts_with("expected a machine at no/such/folder/machine.toml: "));
}
