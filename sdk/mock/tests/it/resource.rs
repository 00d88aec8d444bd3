//! The steps of `guests/resource`, as they are: the machine of the README along its paths, as its author would
//! test it.

use interlock_mock::{Fault, MockHost, New, at};
use serde_json::json;
use std::time::Duration;

#[path = "../../../../guests/resource/src/lib.rs"]
mod guest;

const MACHINE: &str = include_str!("../../../../guests/resource/machine.toml");

/// A pool that has its first node, of this image.
fn pool(image: &str) -> MockHost {
    let mut host = MockHost::new(MACHINE, guest::STEPS);
    host.create("gpu-7").accepted();
    host.apply("gpu-7", json!({ "image": image })).accepted();
    host.until_settled("gpu-7");
    host
}

#[test]
fn a_resize_plans_waits_and_verifies() {
    let mut host = pool("train");
    host.entity("gpu-7").state_is("ready");
    host.send("gpu-7", "resize", json!({ "size": 4 })).accepted();
    host.run();
    host.entity("gpu-7").state_is("provisioning");
    let no = host.send("gpu-7", "resize", json!({ "size": 8 })).refused("busy");
    assert!(no.got.contains("provisioning, waiting for a timer"), "{no}");

    host.advance(Duration::from_secs(90));
    let pool = host.entity("gpu-7");
    pool.state_is("ready");
    assert_eq!((pool.data()["size"].as_u64(), pool.data()["nodes"].as_array().map(Vec::len)), (Some(4), Some(4)));
    assert_eq!(*pool.outputs(), json!({ "size": 4, "endpoint": "gpu-7.pool.example" }));
    assert!(pool.locked_by().is_none());
    let planned: Vec<String> = host.logs().iter().map(|line| line.message.clone()).collect();
    assert_eq!(planned, ["found a place for 1", "found a place for 4"]);
    host.send("gpu-7", "resize", json!({ "size": 4 })).refused("guard");
}

#[test]
fn no_room_leaves_the_pool_as_it_was() {
    let mut host = pool("train");
    host.apply("gpu-7", json!({ "image": "train-512g" })).accepted();
    let ran = host.step("gpu-7");
    assert!(ran.failed("no-room").is_permanent());
    let pool = host.entity("gpu-7");
    pool.state_is("ready");
    assert_eq!((pool.data()["size"].as_u64(), pool.data()["target"].as_u64()), (Some(1), Some(1)));
    assert_eq!(pool.condition("interlock/execution"), Some("failed"));
}

#[test]
fn nodes_that_start_slowly_are_looked_at_again() {
    let host = pool("train-slow-start");
    let looks: Vec<u32> = host.ran().iter().filter(|ran| ran.step == "verify").map(|ran| ran.attempt).collect();
    assert_eq!(looks, [1, 2, 3]);
    host.entity("gpu-7").state_is("ready");
}

#[test]
fn nodes_that_never_start_wait_for_an_operator() {
    let mut host = pool("train-never-starts");
    assert_eq!(host.entity("gpu-7").parked(), Some("exhausted"));
    host.kill("gpu-7", "no such nodes").accepted();
    host.entity("gpu-7").state_is("killed");
}

#[test]
fn nodes_that_are_taken_back_are_a_lost_pool() {
    pool("train-withdrawn").entity("gpu-7").state_is("lost");
}

#[test]
fn a_host_that_dies_anywhere_plans_and_verifies_once() {
    for (step, fault) in [("plan", Fault::Crash), ("verify", Fault::Crash), ("plan", Fault::Unknown { kept: true })] {
        let mut host = MockHost::new(MACHINE, guest::STEPS);
        host.fault(at(step), fault);
        host.create(New::of("gpu-7").desired(json!({ "image": "train" }))).accepted();
        host.until_settled("gpu-7").state_is("ready");
        let moves = |line: &&String| line.contains("->");
        let history = host.entity("gpu-7").history();
        let moved: Vec<&String> = history.iter().filter(moves).collect();
        let expected = ["desired-changed -> planning", "plan -> provisioning", "after -> verifying", "verify -> ready"];
        assert_eq!(moved, expected, "{step}, {fault:?}");
    }
}
