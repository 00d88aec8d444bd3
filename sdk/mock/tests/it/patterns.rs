//! The patterns on rows of `guests/`, as their authors would test them: the folder's own manifest, tables and steps.

use interlock_mock::{Fault, MockHost, Steps, at};
use serde_json::{Value, json};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

#[path = "../../../../guests/cross-execution-counter/src/lib.rs"]
mod cross_execution_counter;
#[path = "../../../../guests/process-event-once/src/lib.rs"]
mod process_event_once;
#[path = "../../../../guests/rate-limit-per-key/src/lib.rs"]
mod rate_limit_per_key;
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
