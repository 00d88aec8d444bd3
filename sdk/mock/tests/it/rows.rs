//! Rows as steps use them: at once and remembered, or with the next commit; under the rights that a table grants.

use interlock::rows::{Answer, Deleted, Order, Updated};
use interlock::{Done, Entity, Failure, Rejection, checkpoint, field, from, to};
use interlock_mock::{Fault, MockHost, Steps, Told, at};
use serde_json::{Value, json};
use std::time::Duration;

const WORKER: &str = r#"
machine = "worker"
owner   = "tests <tests@example.com>"
initial = "idle"
component = "worker.wasm"
tables = ["jobs", "counters", "secrets", "missing"]
peers  = ["gate"]
desired.schema = false
outputs.schema = false
[data]
default = {}
schema = { type = "object" }
[events]
work.schema = { type = "object" }

[states.idle]
kind = "rest"
on.work = { to = "working" }

[states.working]
step = "work"
to   = ["idle"]
deadline = "10m"
retry = { attempts = 3, first = "1s", jitter = 0 }
on_failure = "park"
"#;

const GATE: &str = r#"
machine = "gate"
owner   = "tests <tests@example.com>"
initial = "open"
desired.schema = false
data.schema = false
outputs.schema = false
[events]
shut.schema = false
[states.open]
kind = "rest"
on.shut = { to = "shut" }
[states.shut]
kind = "rest"
"#;

const JOBS: &str = r#"
table = "jobs"
owner = "tests"
[schema]
type = "object"
properties.n = { type = "integer" }
[indexes]
by-status = ["status"]
by-n = ["status", "n"]
[access]
machines = { worker = ["get", "query", "put", "update", "claim", "upsert", "delete"] }
"#;

const COUNTERS: &str = r#"
table = "counters"
owner = "tests"
[access]
machines = { worker = ["update", "upsert"] }
"#;

const SECRETS: &str = r#"
table = "secrets"
owner = "tests"
"#;

fn pending(n: i64) -> Value {
    json!({ "status": "pending", "n": n })
}

/// Workers `a` and `b`, four pending jobs, and both at their first call.
fn workers(work: impl Fn(&Entity) -> Result<Done, Failure> + Send + Sync + 'static) -> MockHost {
    let mut host = MockHost::new(WORKER, Steps::one("work", work));
    let jobs = [("j1", pending(4)), ("j2", pending(3)), ("j3", pending(2)), ("j4", pending(1))];
    host.filled(JOBS, jobs).accepted();
    host.filled(COUNTERS, [("done", json!({ "n": 0 }))]).accepted();
    host.table(SECRETS).accepted();
    host.create("a").accepted();
    host.create("b").accepted();
    host
}

fn work(host: &mut MockHost, key: &str) {
    host.send(key, "work", json!({})).accepted();
    host.run();
}

fn idle(worker: &Entity) -> Result<Done, Failure> {
    Ok(worker.transition(to("idle"))?)
}

fn keys(rows: &[interlock::rows::Row]) -> Vec<String> {
    rows.iter().map(|row| row.key.clone()).collect()
}

/// A worker that notes what a request was answered or refused.
fn noting(ask: impl Fn(&Entity) -> Result<Value, Rejection> + Send + Sync + 'static) -> MockHost {
    workers(move |worker| {
        let said = ask(worker).unwrap_or_else(
            |no| json!({ "code": no.code, "subject": no.subject, "expected": no.expected, "got": no.got }),
        );
        Ok(worker.transition(to("idle").data(&json!({ "said": said })))?)
    })
}

fn said(host: &MockHost) -> Value {
    host.entity("a").data()["said"].clone()
}

#[test]
fn a_claim_takes_the_oldest_first_and_no_row_is_taken_twice() {
    let mut host = workers(|worker| {
        let taken = worker.rows("jobs").claim().limit(3).now()?;
        Ok(worker.transition(to("idle").data(&json!({ "taken": keys(&taken.rows) })))?)
    });
    work(&mut host, "a");
    work(&mut host, "b");
    assert_eq!(host.entity("a").data()["taken"], json!(["j1", "j2", "j3"]));
    assert_eq!(host.entity("b").data()["taken"], json!(["j4"]));
    let first = host.row("jobs", "j1").expect("a row");
    let by = first.value()["claimed_by"].as_str().expect("a claimant").to_owned();
    assert!(by.starts_with("worker/a@"), "{by}");
    assert_eq!((first.claimed_by(), first.claims()), (Some(by.as_str()), 1));
}

#[test]
fn rows_are_taken_in_the_order_of_an_index() {
    let mut host = noting(|worker| {
        let jobs = worker.rows("jobs");
        let pending = field("status").eq("pending");
        let low = jobs.claim().matching(pending.clone()).order(Order::index("by-n")).limit(1).now()?;
        let high = jobs.claim().matching(pending).order(Order::index("by-n").descending()).limit(1).now()?;
        Ok(json!([keys(&low.rows), keys(&high.rows)]))
    });
    work(&mut host, "a");
    assert_eq!(said(&host), json!([["j4"], ["j1"]]));
}

#[test]
fn what_an_attempt_claimed_the_next_one_has_again() {
    let mut host = workers(|worker| {
        let jobs = worker.rows("jobs");
        let (first, second) = (jobs.claim().limit(1).now()?, jobs.claim().limit(1).now()?);
        if worker.attempt() == 1 {
            return Err(Failure::retry("the first attempt comes to nothing"));
        }
        let taken = json!([keys(&first.rows), keys(&second.rows)]);
        Ok(worker.transition(to("idle").data(&json!({ "taken": taken })))?)
    });
    host.send("a", "work", json!({})).accepted();
    host.until_settled("a");
    assert_eq!(host.entity("a").data()["taken"], json!([["j1"], ["j2"]]), "{host}");
    assert_eq!(host.row("jobs", "j3").expect("a row").value()["status"], "pending");
    let ran = host.ran();
    let replayed = |nth: usize| {
        let told = |call: &&interlock_mock::Call| matches!(call.told, Some(Told::Rows(_, true)));
        ran[nth].calls().into_iter().filter(told).count()
    };
    assert_eq!((replayed(0), replayed(1)), (0, 2));
}

#[test]
fn a_claim_asked_again_names_what_somebody_else_has_by_now() {
    let mut host = workers(|worker| {
        let taken = worker.rows("jobs").claim().limit(2).now()?;
        if worker.attempt() == 1 {
            // Settled, and the answer lost with the attempt.
            worker.rows("jobs").update("j1").set("status", "done").now()?;
            return Err(Failure::retry("the first attempt comes to nothing"));
        }
        Ok(worker.transition(to("idle").data(&json!({ "has": keys(&taken.rows), "lost": taken.lost })))?)
    });
    host.send("a", "work", json!({})).accepted();
    host.until_settled("a");
    assert_eq!(host.entity("a").data(), &json!({ "has": ["j2"], "lost": ["j1"] }));
}

#[test]
fn a_save_begins_a_part_of_the_visit_whose_answers_are_its_own() {
    let mut host = workers(|worker| {
        let jobs = worker.rows("jobs");
        let claimed = worker.data::<Value>()?.get("first").cloned();
        if claimed.is_none() {
            let first = jobs.claim().limit(1).now()?;
            worker.save(checkpoint().data(&json!({ "first": keys(&first.rows) })))?;
        }
        let second = jobs.claim().limit(1).now()?;
        if worker.attempt() == 1 {
            return Err(Failure::retry("the first attempt comes to nothing"));
        }
        Ok(worker.transition(to("idle").set("data.second", json!(keys(&second.rows))))?)
    });
    host.send("a", "work", json!({})).accepted();
    host.until_settled("a");
    // The second attempt asks once, as the first did behind its save: the same answer.
    assert_eq!(host.entity("a").data(), &json!({ "first": ["j1"], "second": ["j2"] }), "{host}");
    assert_eq!(host.row("jobs", "j3").expect("a row").claims(), 0);
}

#[test]
fn an_answer_that_nobody_learned_is_there_for_whoever_asks_again() {
    for fault in [Fault::Unknown { kept: true }, Fault::Unknown { kept: false }, Fault::Unavailable] {
        let mut host = workers(|worker| {
            let claim = || worker.rows("jobs").claim().limit(1).now();
            let taken = claim().or_else(|no| if no.retryable { claim() } else { Err(no) })?;
            Ok(worker.transition(to("idle").data(&json!({ "taken": keys(&taken.rows) })))?)
        });
        host.fault(at("work"), fault);
        host.send("a", "work", json!({})).accepted();
        host.until_settled("a");
        assert_eq!(host.entity("a").data()["taken"], json!(["j1"]), "{fault:?}\n{host}");
        let claimed = host.rows("jobs").into_iter().filter(|row| row.claims() > 0).count();
        assert_eq!(claimed, 1, "{fault:?}\n{host}");
    }
}

#[test]
fn a_host_that_dies_behind_a_claim_gives_the_same_rows_to_the_next_attempt() {
    let mut host = workers(|worker| {
        let taken = worker.rows("jobs").claim().limit(2).now()?;
        for job in &taken.rows {
            worker.rows("jobs").update(&*job.key).set("status", "done").now()?;
        }
        // What an earlier attempt settled is lost to the claim, and was its own all the same.
        let count = taken.rows.len() + taken.lost.len();
        worker.rows("counters").update("done").increment("n", count as u64).must().stage()?;
        idle(worker)
    });
    host.fault(at("work"), Fault::CrashBehind);
    host.fault(at("work").call(2), Fault::CrashBehind);
    host.fault(at("work").call(3), Fault::Crash);
    host.send("a", "work", json!({})).accepted();
    host.until_settled("a");
    let done: Vec<String> = host
        .rows("jobs")
        .into_iter()
        .filter(|row| row.value()["status"] == "done")
        .map(|row| row.key().to_owned())
        .collect();
    assert_eq!(done, ["j1", "j2"], "{host}");
    assert_eq!(host.row("counters", "done").expect("a row").value(), &json!({ "n": 2 }));
}

#[test]
fn a_name_of_the_steps_own_stands_for_one_request() {
    let mut host = noting(|worker| {
        let jobs = worker.rows("jobs");
        let first = jobs.claim().limit(1).named("take").now()?;
        let again = jobs.claim().limit(1).named("take").now()?;
        let other = jobs.claim().limit(2).named("take").now().expect_err("another request");
        Ok(json!([keys(&first.rows), keys(&again.rows), other.code]))
    });
    work(&mut host, "a");
    assert_eq!(said(&host), json!([["j1"], ["j1"], "id_reused"]));
}

#[test]
fn a_name_has_its_bounds() {
    let mut host = noting(|worker| {
        let named = |name: String| worker.rows("jobs").claim().named(name).now();
        named("x".repeat(256))?;
        let long = named("x".repeat(257)).expect_err("too long");
        let empty = named(String::new()).expect_err("empty");
        Ok(json!([long.to_string(), empty.to_string()]))
    });
    work(&mut host, "a");
    let no = |got: u32| format!("invalid: op: expected 1 to 256 bytes (op_bytes_max), got {got} bytes");
    assert_eq!(said(&host), json!([no(257), no(0)]));
}

#[test]
fn a_guard_that_fails_and_a_row_that_is_absent_are_answers_that_say_which() {
    let mut host = noting(|worker| {
        let jobs = worker.rows("jobs");
        let done = field("status").eq("done");
        let mut said = Vec::new();
        for key in ["j1", "j9"] {
            match jobs.update(key).only_if(done.clone()).set("n", 0).now()? {
                Updated::Unmatched(miss) => said.push(json!([miss.key, miss.guard])),
                Updated::Changed(row) => said.push(json!(row.value)),
            }
            match jobs.delete(key).only_if(done.clone()).now()? {
                Deleted::Unmatched(miss) => said.push(json!([miss.key, miss.guard])),
                Deleted::Gone(key) => said.push(json!(key)),
            }
        }
        Ok(json!(said))
    });
    work(&mut host, "a");
    let guard = "row.status eq \"done\"";
    assert_eq!(said(&host), json!([["j1", guard], ["j1", guard], ["j9", null], ["j9", null]]));
    assert_eq!(host.rows("jobs").len(), 4);
}

#[test]
fn an_upsert_inserts_once_and_a_put_writes_what_it_expects() {
    let mut host = noting(|worker| {
        let jobs = worker.rows("jobs");
        let first = jobs.upsert(from("event.order"), &json!({ "n": 1 })).fill("at", from("now")).now()?;
        let second = jobs.upsert("o-7", &json!({ "n": 1 })).increment("n", 5).now()?;
        let taken = jobs.put("j1", &json!({})).if_absent().now().expect_err("it is there");
        let seen = jobs.get("j1").now()?.expect("it is there");
        jobs.put("j1", &json!({ "n": 9 })).if_still(&seen).now()?;
        let stale = jobs.put("j1", &json!({ "n": 10 })).if_still(&seen).now().expect_err("it changed");
        let n = |row: &interlock::rows::Row| serde_json::from_str::<Value>(&row.value).map(|value| value["n"].clone());
        Ok(json!([first.inserted, second.inserted, n(&second.row).ok(), taken.code, stale.code]))
    });
    host.send("a", "work", json!({ "order": "o-7" })).accepted();
    host.run();
    assert_eq!(said(&host), json!([true, false, 6, "conflict", "conflict"]));
    assert_eq!(host.row("jobs", "j1").expect("a row").value(), &json!({ "n": 9 }));
    let inserted = host.row("jobs", "o-7").expect("what the event says is its key");
    assert_eq!(inserted.value()["at"], json!(host.wall_ms()));
}

#[test]
fn a_query_is_read_a_page_at_a_time() {
    let mut host = noting(|worker| {
        let query = || worker.rows("jobs").query().matching(field("n").ge(2)).fields(["n"]).limit(2);
        let first = query().now()?;
        let second = query().after(first.next.clone().unwrap_or_default()).now()?;
        Ok(json!([keys(&first.rows), keys(&second.rows), second.next, first.rows[0].value]))
    });
    work(&mut host, "a");
    assert_eq!(said(&host), json!([["j1", "j2"], ["j3"], null, "{\"n\":4}"]));
}

#[test]
fn a_transaction_is_done_whole_or_not_at_all() {
    let mut host = noting(|worker| {
        let (jobs, counters) = (worker.rows("jobs"), worker.rows("counters"));
        let both = |key: &str| {
            worker
                .transact()
                .and(counters.update("done").increment("n", 1).must())
                .and(jobs.update(key).set("status", "done").must())
                .now()
        };
        let refused = both("j9").expect_err("there is no j9");
        let done = both("j1")?;
        Ok(json!([refused.code, refused.subject, done.len()]))
    });
    work(&mut host, "a");
    assert_eq!(said(&host), json!(["require", "jobs/j9", 2]));
    assert_eq!(host.row("counters", "done").expect("a row").value(), &json!({ "n": 1 }));
}

#[test]
fn what_is_staged_is_done_with_the_transition_and_answered_behind_it() {
    let mut host = workers(|worker| {
        worker.rows("jobs").claim().limit(1).stage()?;
        worker.rows("counters").update("done").increment("n", from("data.by")).stage()?;
        worker.rows("jobs").delete("j4").stage()?;
        let done = worker.transition(to("idle").data(&json!({ "by": 3 })))?;
        for answer in worker.row_answers() {
            interlock::log::info!("{answer:?}");
        }
        Ok(done)
    });
    host.send("a", "work", json!({})).accepted();
    assert_eq!(host.rows("jobs").len(), 4, "nothing is done before the commit");
    host.run();
    assert_eq!(host.row("jobs", "j1").expect("a row").claims(), 1);
    assert_eq!(host.row("jobs", "j4"), None);
    // What the transition writes is what values from the entity see.
    assert_eq!(host.row("counters", "done").expect("a row").value(), &json!({ "n": 3 }));
    let logs: Vec<String> = host.logs().into_iter().map(|log| log.message).collect();
    assert_eq!(logs.len(), 3);
    assert!(logs[0].starts_with("Claimed(Claimed { rows: [Row { key: \"j1\""), "{logs:?}");
    assert_eq!(logs[2], "Deleted(Gone(\"j4\"))");
}

#[test]
fn a_staged_operation_that_must_match_refuses_the_transition_and_is_dropped() {
    let mut host = workers(|worker| {
        worker.rows("counters").update("done").increment("n", 1).stage()?;
        worker.rows("jobs").update("j1").only_if(field("status").eq("done")).set("n", 0).must().stage()?;
        let refused = worker.transition(to("idle")).expect_err("j1 is not done");
        assert_eq!((refused.code.as_str(), refused.subject.as_str()), ("require", "jobs/j1"));
        idle(worker)
    });
    work(&mut host, "a");
    host.entity("a").state_is("idle");
    assert_eq!(host.row("counters", "done").expect("a row").value(), &json!({ "n": 0 }));
    assert_eq!(host.ran()[0].refused("require").expected, "row.status eq \"done\" (must)");
}

#[test]
fn a_reload_drops_what_was_staged() {
    let mut host = workers(|worker| {
        worker.rows("counters").update("done").increment("n", 1).stage()?;
        worker.rows("jobs").require("j9").stage()?;
        worker.reload()?;
        let done = idle(worker)?;
        assert_eq!(worker.row_answers(), []);
        Ok(done)
    });
    work(&mut host, "a");
    host.entity("a").state_is("idle");
    assert_eq!(host.row("counters", "done").expect("a row").value(), &json!({ "n": 0 }));
}

#[test]
fn a_saves_answers_are_those_of_the_newest_commit() {
    let mut host = workers(|worker| {
        worker.rows("counters").update("done").increment("n", 1).stage()?;
        worker.save(checkpoint())?;
        assert!(matches!(worker.row_answers().as_slice(), [Answer::Updated(Updated::Changed(_))]));
        worker.rows("jobs").delete("j1").stage()?;
        let done = idle(worker)?;
        assert_eq!(worker.row_answers(), [Answer::Deleted(Deleted::Gone("j1".to_owned()))]);
        Ok(done)
    });
    work(&mut host, "a");
    host.entity("a").state_is("idle");
}

#[test]
fn conditions_on_rows_and_entities_hold_or_refuse() {
    let mut host = workers(|worker| {
        worker.require("gate/g").state("open").stage()?;
        worker.rows("jobs").require("j1").only_if(field("status").eq("pending")).stage()?;
        worker.rows("jobs").require("j9").absent().stage()?;
        match idle(worker) {
            Err(failure) if failure.as_code() == "require" => {
                Ok(worker.transition(to("idle").data(&json!({ "refused": failure.reason() })))?)
            }
            done => done,
        }
    });
    host.deploy(GATE, &[]).accepted();
    host.create("gate/g").accepted();
    work(&mut host, "a");
    assert_eq!(host.entity("a").data(), &json!({}));
    host.send("gate/g", "shut", json!(null)).accepted();
    work(&mut host, "a");
    let refused = host.entity("a").data()["refused"].clone();
    assert_eq!(refused, "require: gate/g: expected open, got shut");
}

#[test]
fn an_entity_of_a_machine_that_is_no_peer_is_denied() {
    let mut host =
        noting(|worker| worker.transact().require(worker.require("stranger/x")).now().map(|_| json!("allowed")));
    work(&mut host, "a");
    assert_eq!(
        said(&host),
        json!({
            "code": "denied", "subject": "stranger/x",
            "expected": "a machine that the manifest of worker names in peers", "got": "stranger",
        })
    );
}

#[test]
fn what_a_table_does_not_grant_is_denied_by_name() {
    let mut host = noting(|worker| {
        let secret = worker.rows("secrets").get("x").now().expect_err("granted nothing");
        let counter = worker.rows("counters").claim().now().expect_err("granted no claim");
        let unnamed = worker.rows("others").get("x").now().expect_err("not declared");
        let missing = worker.rows("missing").get("x").now().expect_err("not declared");
        Ok(json!([secret.to_string(), counter.to_string(), unnamed.code, missing.code]))
    });
    work(&mut host, "a");
    assert_eq!(
        said(&host),
        json!([
            "denied: table secrets: expected get among access.machines.worker of the table's declaration, got get, \
             which is not granted",
            "denied: table counters: expected claim among access.machines.worker of the table's declaration, got \
             claim, which is not granted",
            "not_found",
            "not_found",
        ])
    );
}

#[test]
fn mistakes_in_a_request_say_where_they_are() {
    let mut host = noting(|worker| {
        let jobs = worker.rows("jobs");
        let refused = [
            jobs.get(json!(["a"])).now().expect_err("a list is no key"),
            worker.rows("No Name").get("a").now().expect_err("no name"),
            jobs.update("j1").now().expect_err("no change"),
            jobs.update("j1").increment("status", 1).now().expect_err("a text"),
            jobs.update("j1").set("n", "x").now().expect_err("the schema"),
            jobs.update("j1").set("a..b", 1).now().expect_err("no path"),
            jobs.update("j1").set("n", from("tomorrow")).now().expect_err("no source"),
            jobs.query().matching(field("n[x]").exists()).now().map(drop).expect_err("no path"),
            jobs.claim().order(Order::index("by-size")).now().map(drop).expect_err("no index"),
            jobs.claim().limit(1_001).now().map(drop).expect_err("over the maximum"),
        ];
        Ok(json!(refused.map(|no| format!("{} {}", no.code, no.subject))))
    });
    work(&mut host, "a");
    assert_eq!(
        said(&host),
        json!([
            "invalid table jobs",
            "invalid operations[0].table",
            "invalid table jobs",
            "invalid jobs/j1: row.status",
            "invalid jobs/j1/n",
            "invalid operations[0].set[0]",
            "invalid operations[0].set[0].value",
            "invalid where[0][0]",
            "invalid table jobs",
            "limit table jobs",
        ])
    );
}

#[test]
fn requests_have_their_bounds() {
    let mut host = noting(|worker| {
        let jobs = worker.rows("jobs");
        let mut said = Vec::new();
        let mut note = |refused: Result<Vec<Answer>, Rejection>| match refused {
            Ok(answers) => said.push(format!("{} answers", answers.len())),
            Err(no) => said.push(no.to_string()),
        };
        let gets = |count: usize| (0..count).fold(worker.transact(), |all, _| all.and(jobs.get("j1")));
        note(gets(64).now());
        note(gets(65).now());
        let required = |count: usize| (0..count).fold(worker.transact(), |all, _| all.require(jobs.require("j1")));
        note(required(32).now());
        note(required(33).now());
        let set = |count: usize| (0..count).fold(jobs.update("j1"), |update, n| update.set(format!("f{n}"), 1));
        note(worker.transact().and(set(64)).now());
        note(worker.transact().and(set(65)).now());
        let tests = |count: usize| {
            let all = (0..count).map(|_| field("n").gt(0)).reduce(|all, one| all.and(one)).unwrap_or_default();
            worker.transact().and(jobs.update("j1").only_if(all).set("n", 4))
        };
        note(tests(256).now());
        note(tests(257).now());
        note(worker.transact().and(jobs.get("k".repeat(1 << 20))).now());
        note(worker.transact().and(jobs.get("k".repeat(201))).now());
        let large = json!("v".repeat(200 * 1024));
        let puts =
            |count: usize| (0..count).fold(worker.transact(), |all, n| all.and(jobs.put(format!("p{n}"), &large)));
        note(puts(6).now());
        Ok(json!(said))
    });
    host.filled(&JOBS.replace("type = \"object\"\n", ""), Vec::<(&str, Value)>::new()).accepted();
    work(&mut host, "a");
    let said = said(&host);
    let starts = [
        "64 answers",
        "limit: operations: expected at most 64 (row_ops_max), got 65",
        "0 answers",
        "limit: requirements: expected at most 32 (requires_max), got 33",
        "1 answers",
        "limit: operations[0].set: expected at most 64 (mutations_max), got 65",
        "1 answers",
        "limit: operations[0].where: expected at most 256 (comparisons_max), got 257",
        "limit: operations[0].key: expected at most 1048576 bytes of texts in one request (rows_bytes_max), got",
        "invalid: table jobs: expected a row key of",
        "limit: operations[5].value: expected at most 1048576 bytes of texts in one request (rows_bytes_max), got",
    ];
    for (nth, start) in starts.into_iter().enumerate() {
        let said = said[nth].as_str().unwrap_or_default();
        assert!(said.starts_with(start), "{start}\n{said}");
    }
}

#[test]
fn what_is_staged_has_the_bounds_of_one_request() {
    let mut host = workers(|worker| {
        let jobs = worker.rows("jobs");
        for _ in 0..64 {
            jobs.get("j1").stage()?;
        }
        let over = jobs.get("j1").stage().expect_err("one too many");
        assert_eq!(over.to_string(), "limit: operations: expected at most 64 (row_ops_max), got 65");
        let done = idle(worker)?;
        assert_eq!(worker.row_answers().len(), 64, "what was staged before stays");
        Ok(done)
    });
    work(&mut host, "a");
    host.entity("a").state_is("idle");
}

#[test]
fn requests_of_one_attempt_are_counted_from_its_last_save() {
    let mut host = workers(|worker| {
        let ask = || worker.rows("jobs").get("j1").now();
        for _ in 0..1_000 {
            ask()?;
        }
        let over = ask().expect_err("one too many");
        assert_eq!((over.code.as_str(), over.got.as_str()), ("limit", "1001"));
        worker.save(checkpoint())?;
        ask()?;
        idle(worker)
    });
    work(&mut host, "a");
    host.entity("a").state_is("idle");
}

#[test]
fn a_step_that_lost_its_entity_touches_no_row() {
    let mut host = workers(|worker| {
        let no = worker.rows("jobs").claim().now().expect_err("fenced");
        assert_eq!(no.code, "fenced");
        Err(no.into())
    });
    host.fault(at("work"), Fault::Fenced);
    host.send("a", "work", json!({})).accepted();
    host.run();
    assert!(host.rows("jobs").iter().all(|row| row.claims() == 0), "{host}");
}

#[test]
fn a_spent_handle_touches_no_row() {
    let mut host = workers(|worker| {
        let done = idle(worker)?;
        assert_eq!(worker.rows("jobs").claim().now().expect_err("spent").code, "spent");
        Ok(done)
    });
    work(&mut host, "a");
    assert!(host.rows("jobs").iter().all(|row| row.claims() == 0));
}

#[test]
fn a_claim_is_taken_back_at_the_end_of_its_execution_where_the_table_says_so() {
    let claim = "[claim]\non_end = \"release\"\nrelease = { status = \"pending\", claimed_by = { remove = true } }\n";
    let released = format!("{JOBS}\n{claim}");
    let mut host = workers(|worker| {
        worker.rows("jobs").claim().limit(2).now()?;
        worker.rows("jobs").update("j1").set("status", "done").now()?;
        idle(worker)
    });
    host.table(&released).accepted();
    work(&mut host, "a");
    host.advance(Duration::from_secs(1));
    let stands: Vec<Value> = host.rows("jobs").iter().map(|row| row.value()["status"].clone()).collect();
    assert_eq!(stands, ["done", "pending", "pending", "pending"], "{host}");
}
