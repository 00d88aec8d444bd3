//! What steps log is kept, as the host's log would show it.

use crate::world::{ACTOR, doing};
use interlock::{log, to};
use interlock_mock::{Fault, Log, MockHost, Steps, at};
use serde_json::json;

fn logging(step: impl Fn() + Send + Sync + 'static) -> MockHost {
    let steps = Steps::one("act", move |actor| {
        step();
        Ok(actor.transition(to("idle"))?)
    });
    let mut host = MockHost::new(ACTOR, steps);
    host.create("a").accepted();
    host.send("a", "run", json!({})).accepted();
    host.run();
    host
}

#[test]
fn lines_are_kept_in_order_with_level_and_fields() {
    let host = logging(|| {
        log::info!("found {} nodes", 4);
        log::warn!(nodes = 4, zone = "b", "slow");
    });
    let lines: Vec<String> = host.logs().iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["info: found 4 nodes", "warn: slow  nodes=4 zone=b"]);
    assert_eq!(
        host.ran()[0].logs()[1],
        &Log { level: log::Level::Warn, message: "slow".to_owned(), fields: "nodes=4 zone=b".to_owned() }
    );
}

#[test]
fn control_characters_are_escaped_and_long_lines_cut() {
    let host = logging(|| log::info!("one\nERROR forged\u{1b}[2J{}", "x".repeat(64 << 10)));
    let line = &host.logs()[0].message;
    assert!(line.starts_with("one\\nERROR forged\\u{1b}[2Jxxx"), "{line}");
    assert!(line.len() < 5_000);
}

#[test]
fn lines_past_the_budget_are_dropped() {
    let host = logging(|| (0..1_200).for_each(|n| log::debug!("{n}")));
    assert_eq!(host.logs().len(), 1_000);
}

#[test]
fn a_step_that_lost_its_entity_logs_nothing_more() {
    let steps = Steps::one("act", |actor| {
        let answer = actor.transition(to("idle"));
        log::info!("attempt {} was told", actor.attempt());
        Ok(answer?)
    });
    let mut host = MockHost::new(ACTOR, steps);
    host.create("a").accepted();
    host.send("a", "run", json!({})).accepted();
    host.fault(at("act"), Fault::Fenced);
    let ran = host.step("a");
    let _ = ran.failed("fenced");
    assert!(host.logs().is_empty(), "reading is a call that ends it too");
}

#[test]
fn the_panic_is_the_last_line() {
    let mut host = doing("panic");
    host.run();
    assert_eq!(host.logs()[0].level, log::Level::Error);
}
