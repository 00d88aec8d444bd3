//! The patterns on rows of `guests/`, as their authors would test them: the folder's own manifest, tables and steps.

use interlock_mock::{Fault, MockHost, Replies, Steps, at};
use serde_json::{Value, json};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

#[path = "../../../../guests/cross-execution-counter/src/lib.rs"]
mod cross_execution_counter;
#[path = "../../../../guests/leader-lease/src/lib.rs"]
mod leader_lease;
#[path = "../../../../guests/process-event-once/src/lib.rs"]
mod process_event_once;
#[path = "../../../../guests/queue/src/lib.rs"]
mod queue;
#[path = "../../../../guests/rate-limit-per-key/src/lib.rs"]
mod rate_limit_per_key;
#[path = "../../../../guests/stale-claim-recovery/src/lib.rs"]
mod stale_claim_recovery;
#[path = "../../../../guests/token-bucket/src/lib.rs"]
mod token_bucket;

/// A pattern's machine and tables, with these entities and no rows.
fn host(pattern: &str, steps: impl Into<Steps>, entities: &[&str]) -> MockHost {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests").join(pattern);
    let mut host = MockHost::of_folder(&folder, steps);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".table.toml") {
            host.table(&std::fs::read_to_string(path).unwrap()).accepted();
        }
    }
    for key in entities {
        host.create(*key).accepted();
    }
    host
}

/// The same, with these rows in one of its tables.
fn filled(pattern: &str, steps: impl Into<Steps>, entities: &[&str], table: &str, rows: &[(&str, Value)]) -> MockHost {
    let mut host = host(pattern, steps, entities);
    let path = format!("{}/../../guests/{pattern}/{table}.table.toml", env!("CARGO_MANIFEST_DIR"));
    host.filled(&std::fs::read_to_string(path).unwrap(), rows.iter().cloned()).accepted();
    host
}

fn value(host: &MockHost, table: &str, key: &str) -> Value {
    host.row(table, key).map_or(Value::Null, |row| row.value().clone())
}

/// How many of these are in a state.
fn count(host: &MockHost, entities: &[&str], state: &str) -> usize {
    entities.iter().filter(|key| host.entity(key).state() == state).count()
}

#[test]
fn an_event_that_is_delivered_twice_is_booked_once_and_a_crashed_attempt_books_it_all_the_same() {
    let mut host = host("process-event-once", process_event_once::STEPS, &["a", "b"]);
    host.fault(at("take").call(2), Fault::Crash);
    let delivery = json!({ "id": "evt-1", "account": "rent", "amount": 5 });
    host.send("a", "deliver", delivery.clone()).accepted();
    host.run();
    host.advance(MINUTE);
    for key in ["a", "b"] {
        host.send(key, "deliver", delivery.clone()).accepted();
        host.run();
    }
    assert_eq!(*host.entity("a").data(), json!({ "booked": 1, "skipped": 1 }));
    assert_eq!(*host.entity("b").data(), json!({ "booked": 0, "skipped": 1 }));
    assert_eq!(value(&host, "accounts", "rent"), json!({ "balance": 5 }));
    assert_eq!(value(&host, "processed_events", "evt-1")["by"], "intake/a");
}

#[test]
fn a_bucket_that_is_empty_is_filled_by_whoever_comes_after_its_minute() {
    let calls = ["a", "b", "c", "d", "e"];
    let mut host = host("token-bucket", token_bucket::STEPS, &calls);
    for key in calls {
        host.send(key, "go", json!(null)).accepted();
        host.run();
    }
    for (done, minutes) in [(2, 0), (4, 1), (5, 2)] {
        assert_eq!(count(&host, &calls, "done"), done, "after {minutes} minutes");
        assert_eq!(host.made().len(), done);
        host.advance(MINUTE);
    }
    assert_eq!(value(&host, "buckets", "service")["tokens"], 1);
}

#[test]
fn each_customer_gets_a_call_every_ten_seconds_and_no_more() {
    let (calls, other) = (["a", "b", "c"], "x");
    let mut host = host("rate-limit-per-key", rate_limit_per_key::STEPS, &[&calls[..], &[other]].concat());
    for key in calls {
        host.send(key, "go", json!({ "customer": "acme" })).accepted();
        host.run();
    }
    host.send(other, "go", json!({ "customer": "globex" })).accepted();
    host.run();
    host.entity(other).state_is("done");
    for done in 1..=3 {
        assert_eq!((count(&host, &calls, "done"), host.made().len()), (done, done + 1));
        host.advance(Duration::from_millis(9_999));
        assert_eq!((count(&host, &calls, "done"), host.made().len()), (done, done + 1));
        host.advance(Duration::from_millis(1));
    }
}

#[test]
fn a_leader_whose_row_expired_while_it_was_away_is_succeeded_and_does_nothing_more() {
    let mut host = host("leader-lease", leader_lease::STEPS, &["a", "b"]);
    host.hold(at("lead").of("a"));
    host.send("a", "by-row", json!(null)).accepted();
    host.run();
    host.send("b", "by-row", json!(null)).accepted();
    host.advance(Duration::from_secs(29));
    host.entity("b").state_is("following");
    host.advance(Duration::from_secs(1));
    host.entity("b").state_is("leading");
    host.let_go();
    host.run();
    host.entity("a").state_is("deposed");
    assert_eq!(value(&host, "leaders", "dispatcher")["rounds"], 0);
    host.advance(10 * MINUTE);
    host.entity("b").state_is("done");
    assert_eq!(value(&host, "leaders", "dispatcher"), Value::Null);
    assert_eq!((&host.entity("a").data()["rounds"], &host.entity("b").data()["rounds"]), (&json!(0), &json!(1)));
}

#[test]
fn a_lease_of_the_host_has_one_owner_and_the_next_one_waits_in_line() {
    let mut host = host("leader-lease", leader_lease::STEPS, &["a", "b"]);
    for key in ["a", "b"] {
        host.send(key, "by-lease", json!(null)).accepted();
        host.run();
    }
    assert_eq!((host.entity("a").state(), host.entity("b").state()), ("owned", "owning"));
    host.advance(10 * MINUTE);
    assert_eq!(count(&host, &["a", "b"], "done"), 2);
}

#[test]
fn operations_are_done_in_order_once_each_and_settled_by_who_has_them() {
    let pending = |amount: u32| json!({ "status": "pending", "payload": { "amount": amount } });
    let ops: Vec<(String, Value)> = (1..=12).map(|n| (format!("o{n:02}"), pending(n))).collect();
    let ops: Vec<(&str, Value)> = ops.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    let mut host = filled("queue", queue::STEPS, &["a", "b"], "pending_ops", &ops);
    host.replies_times("operations", 1, Replies::With(422, json!({ "error": "no such account" })));
    host.fault(at("claim").call(2), Fault::Crash);
    for key in ["a", "b"] {
        host.send(key, "tick", json!(null)).accepted();
    }
    host.advance(MINUTE);
    let of = |key: &str| -> Vec<u64> {
        let made = host.made();
        let own = made.iter().filter(|made| made.entity == format!("dispatcher/{key}"));
        own.filter_map(|made| made.body["amount"].as_u64()).collect()
    };
    assert_eq!((of("a"), of("b")), ((1..=10).collect(), vec![11, 12]));
    assert_eq!(value(&host, "pending_ops", "o01")["error"], "status 422");
    for (op, _) in ops {
        assert_eq!(value(&host, "pending_ops", op)["status"], if op == "o01" { "failed" } else { "done" });
    }
    assert_eq!(*host.entity("a").data(), json!({ "ops": [], "done": 9, "failed": 1 }));
}

#[test]
fn what_a_killed_dispatcher_was_at_is_done_again_by_nobody() {
    let ops = [("o1", json!({ "status": "pending", "payload": {} }))];
    let mut host = filled("queue", queue::STEPS, &["a", "b"], "pending_ops", &ops);
    host.replies_times("operations", 1, Replies::Hang);
    host.send("a", "tick", json!(null)).accepted();
    host.run();
    host.entity("a").state_is("delivering");
    host.kill("a", "stuck").accepted();
    host.advance(MINUTE);
    host.send("b", "tick", json!(null)).accepted();
    host.advance(MINUTE);
    assert_eq!((value(&host, "pending_ops", "o1")["status"].clone(), host.made().len()), (json!("in_flight"), 1));
    assert!(host.row("pending_ops", "o1").unwrap().claimed_by().is_some_and(|by| by.starts_with("dispatcher/a@")));
}

#[test]
fn a_job_whose_worker_was_killed_is_found_by_the_next_claim_once_it_is_stale() {
    let jobs = [("j1", json!({ "status": "pending" }))];
    let mut host = filled("stale-claim-recovery", stale_claim_recovery::STEPS, &["a", "b"], "jobs", &jobs);
    let work = |host: &mut MockHost, key: &str| {
        host.send(key, "work", json!({ "table": "jobs" })).accepted();
        host.run();
    };
    work(&mut host, "a");
    host.kill("a", "its machine is on fire").accepted();
    host.advance(5 * MINUTE);
    work(&mut host, "b");
    host.entity("b").state_is("idle");
    host.advance(Duration::from_millis(1));
    work(&mut host, "b");
    host.entity("b").state_is("working");
    host.advance(2 * MINUTE);
    assert_eq!(value(&host, "jobs", "j1")["status"], "done");
    assert_eq!((host.row("jobs", "j1").unwrap().claims(), &host.entity("b").data()["finished"]), (2, &json!(1)));
}

#[test]
fn a_worker_that_was_only_slow_learns_that_somebody_else_has_its_job() {
    let jobs = [("j1", json!({ "status": "pending" }))];
    let mut host = filled("stale-claim-recovery", stale_claim_recovery::STEPS, &["a", "b"], "jobs", &jobs);
    let work = json!({ "table": "jobs" });
    host.send("a", "work", work.clone()).accepted();
    host.run();
    host.crash();
    host.advance(6 * MINUTE);
    host.hold(at("finish").of("a"));
    host.boot();
    host.send("b", "work", work).accepted();
    host.run();
    host.entity("b").state_is("working");
    host.let_go();
    host.advance(2 * MINUTE);
    let counts = |key: &str| (host.entity(key).data()["finished"].clone(), host.entity(key).data()["lost"].clone());
    assert_eq!((counts("a"), counts("b")), ((json!(0), json!(1)), (json!(1), json!(0))));
    assert_eq!(value(&host, "jobs", "j1")["status"], "done");
}

#[test]
fn the_reaper_takes_a_job_back_and_gives_it_up_in_the_end() {
    let jobs = [("j1", json!({ "status": "pending" }))];
    let workers = ["a", "b"];
    let mut host = filled("stale-claim-recovery", stale_claim_recovery::STEPS, &workers, "reaped_jobs", &jobs);
    for (key, status) in workers.into_iter().zip(["pending", "dead"]) {
        host.send(key, "work", json!({ "table": "reaped_jobs" })).accepted();
        host.run();
        host.entity(key).state_is("working");
        host.kill(key, "its machine is on fire").accepted();
        host.advance(5 * MINUTE);
        assert_eq!(value(&host, "reaped_jobs", "j1")["status"], status);
    }
}

#[test]
fn no_visit_is_lost_whatever_happens_to_the_attempts_that_count_it() {
    let visits = ["a", "b", "c"];
    let mut host = host("cross-execution-counter", cross_execution_counter::STEPS, &visits);
    host.fault(at("count").of("a"), Fault::CrashBehind);
    host.fault(at("count").of("b"), Fault::Unknown { kept: false });
    for key in visits {
        host.send(key, "enter", json!({ "page": "home" })).accepted();
    }
    host.advance(MINUTE);
    assert_eq!(value(&host, "counters", "home"), json!({ "count": 3 }));
}
