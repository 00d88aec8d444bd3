//! Rows in stories and searches: what clients and steps do with them, and what time does.

use crate::world::stage_of;
use expect_test::expect;
use interlock_coordinator::{Attempt, Awaited, Ended, Executor, SubmitError};
use interlock_kernel::command::{Change, Stage as Staged};
use interlock_kernel::record::Failure;
use interlock_kernel::rows::{MemoName, QueryAsk, RowAnswer, RowsAsk, StepRows};
use interlock_lab::explore::{Found, Options, Stopped, explore, replay};
use interlock_lab::scenario::{Declared, Played, Scenario, Stage, play, read};
use interlock_manifest::rows::{Asks, ask, query};
use std::sync::Arc;

const WORKER: &str = r#"
machine = "worker"
owner   = "tests <tests@example.com>"
initial = "idle"
component = "worker.wasm"
tables  = ["jobs"]
desired.schema = false
data.schema = false
outputs.schema = false
events.work.schema = false

[states.idle]
kind = "rest"
on.work = { to = "working" }

[states.working]
step = "work"
to   = ["idle"]
deadline = "1h"
retry = { attempts = 3, first = "1s", jitter = 0 }
on_failure = { to = "idle" }
"#;

const JOBS: &str = r#"
table = "jobs"
owner = "tests"

[schema]
type = "object"
required = ["status"]
properties.times = { type = "integer" }

[indexes]
by-status = ["status"]

[claim]
release = { status = "pending", claimed_by = { remove = true }, claimed_at = { remove = true } }
reaper  = { after = "10s" }

[access]
machines.worker = ["query", "update", "claim"]
clients         = ["get", "put", "claim", "update"]
"#;

/// How a step takes a job.
#[derive(Clone, Copy)]
enum Takes {
    /// In one transaction.
    Claiming,
    /// Looks first, and marks then.
    Looking,
}

impl Executor for Takes {
    fn start(&self, attempt: Attempt) {
        let takes = *self;
        tokio::spawn(async move {
            let gate = attempt.gate();
            let done = tokio::select! {
                biased;
                closed = gate.closed() => Err(closed.why.to_owned()),
                done = work(&attempt, takes) => done.map_err(|no| no.rejection().map_or("store".to_owned(), |no| no.code.to_string())),
            };
            attempt.finish(match done {
                Ok(()) => Ended::Returned,
                Err(code) => {
                    let reason = "as it was told".to_owned();
                    Ended::Failed(Failure { permanent: false, code, reason, retry_after_ms: None })
                }
            });
        });
    }
}

/// What is asked, in the words of HTTP.
fn asks(json: &str) -> RowsAsk {
    let json = serde_json::from_str(json).unwrap();
    ask(&json, Asks::Step).unwrap()
}

async fn work(attempt: &Attempt, takes: Takes) -> Result<(), SubmitError> {
    let mut keys = Vec::new();
    match takes {
        Takes::Claiming => {
            let ask = asks(r#"{"ops": [{"claim": "jobs", "limit": 1}]}"#);
            let (answers, _) = attempt.rows(StepRows { ask, memo: MemoName::Asked(0) }).await?;
            let [RowAnswer::Claimed { rows, .. }] = answers.as_slice() else { panic!("{answers:?}") };
            keys.extend(rows.iter().map(|row| row.key.clone()));
        }
        Takes::Looking => {
            let pending: QueryAsk =
                query(&serde_json::json!({"query": "jobs", "where": {"status": "pending"}, "limit": 1}), Asks::Step)
                    .unwrap();
            for row in attempt.query(pending).await?.rows {
                let ask = asks(&format!(
                    r#"{{"ops": [{{"update": "jobs", "key": "{}", "set": {{"status": "taken"}}}}]}}"#,
                    row.key
                ));
                attempt.rows(StepRows { ask, memo: MemoName::Asked(0) }).await?;
                keys.push(row.key);
            }
        }
    }
    // What was claimed may have been taken back since.
    let mine = match takes {
        Takes::Claiming => r#""where": {"claimed_by": {"from": "execution"}},"#,
        Takes::Looking => "",
    };
    let set = r#""set": {"status": "done", "times": {"increment": 1}}"#;
    let done = |key| format!(r#"{{"update": "jobs", "key": "{key}", {mine} {set}}}"#);
    let ops: Vec<String> = keys.iter().map(done).collect();
    let rows = asks(&format!(r#"{{"ops": [{}]}}"#, ops.join(",")));
    let change = Change { stage: Staged { rows, ..Staged::default() }, ..Change::default() };
    attempt.transition("idle".parse().unwrap(), change).await.map(drop)
}

fn stage(takes: Takes) -> Stage {
    let (table, _) = interlock_manifest::parse_table("jobs.table.toml", JOBS).unwrap_or_else(|why| panic!("{why:?}"));
    let tables = vec![Declared { table, source: JOBS.to_owned() }];
    Stage { executor: Arc::new(takes), tables, ..stage_of(WORKER) }
}

fn scenario(text: &str, stage: &Stage) -> Scenario {
    let read = read("a.scenario.toml", text, &stage.manifest.machine);
    read.unwrap_or_else(|why| panic!("{}", interlock_manifest::render(&why, false)))
}

fn played(text: &str) -> Played {
    let stage = stage(Takes::Claiming);
    play(&scenario(text, &stage), &stage).unwrap()
}

fn told(text: &str) -> String {
    let played = played(text);
    let misses = played
        .misses
        .iter()
        .map(|miss| format!("line {}: {}: expected {}, got {}\n", miss.line, miss.what, miss.expected, miss.got));
    format!("{}{}", played.told(""), misses.collect::<String>())
}

fn found(takes: Takes, text: &str, options: Options) -> Found {
    let stage = stage(takes);
    explore(&scenario(text, &stage), &stage, options).unwrap()
}

const GIVEN: &str = r#"
scenario = "jobs are done once"
[[given]]
rows.jobs = { a = { status = "pending" }, b = { status = "pending" } }
"#;

const TWO: &str = r#"
[[when]]
send = "work"
[[when]]
rows = { claim = "jobs", limit = 1, set = { status = "done", times = { increment = 1 } } }
by = "rival"
[[always]]
name = "no job is done twice"
counts = { table = "jobs", where = { field = "times", operator = "gt", value = 1 }, is = 0 }
"#;

#[test]
fn clients_and_steps_share_what_is_given() {
    expect![[r#"
        0:00  it      v1  created, idle
              client  claim jobs, as rival (c1)   1 done
                        claimed a {"claimed_at":1767225600000,"claimed_by":"rival","status":"in_flight"}
              client  it: work (e1)   accepted
              it      v2  work -> working   attempt 1, token t1
              it      call 1 of work (claim jobs)
                        claimed b {"claimed_at":1767225600000,"claimed_by":"worker/it@i1.1","status":"in_flight"}
              it      call 2 of work (transition to idle): rows
                        updated b {"claimed_at":1767225600000,"claimed_by":"worker/it@i1.1","status":"done","times":1}
              it      v3  work -> idle
              client  claim jobs, as rival (c1)   1 done, again
                        claimed a {"claimed_at":1767225600000,"claimed_by":"rival","status":"in_flight"}
              client  update jobs/a and get jobs/z, as rival   2 done
                        updated a {"claimed_at":1767225600000,"claimed_by":"rival","status":"done"}
                        z is not there
              client  delete jobs/a, as client   REFUSED denied
                        expected delete among access.clients of the table's declaration, got delete, which is not granted
              client  put jobs/c, as client   REFUSED require
                        expected no row, got a row
    "#]].assert_eq(&told(&format!(
        "{GIVEN}{}",
        r#"
[[when]]
rows = { claim = "jobs", limit = 1 }
by = "rival"
id = "c1"
then = { rows.jobs = { a = { status = "in_flight", claimed_by = "rival" }, b = { status = "pending" }, c = false } }
[[when]]
send = "work"
[[when]]
rows = { claim = "jobs", limit = 1 }
by = "rival"
id = "c1"
answer = "accepted again"
[[when]]
rows = [{ update = "jobs", key = "a", where = { claimed_by = "rival" }, set = { status = "done" } }, { get = "jobs", key = "z" }]
by = "rival"
[[when]]
rows = { delete = "jobs", key = "a" }
answer = "refused denied"
[[when]]
rows = { require = [{ absent = "jobs", key = "a" }], ops = [{ put = "jobs", key = "c", value = { status = "pending" } }] }
answer = "refused require"
[[then]]
rows.jobs = { a = { status = "done" }, b = { status = "done", times = 1 } }
counts = { table = "jobs", where = { status = "done" }, is = 2 }
"#
    )));
}

#[test]
fn what_is_not_as_it_should_be_is_told_with_what_stands_there() {
    expect![[r#"
        0:00  it      v1  created, idle
              client  it: work (e1)   accepted
              it      v2  work -> working   attempt 1, token t1
              it      call 1 of work (claim jobs)
                        claimed a {"claimed_at":1767225600000,"claimed_by":"worker/it@i1.1","status":"in_flight"}
              it      call 2 of work (transition to idle): rows
                        updated a {"claimed_at":1767225600000,"claimed_by":"worker/it@i1.1","status":"done","times":1}
              it      v3  work -> idle
        line 11: always "nothing is ever done": table jobs, at 0:00: expected 0 rows of jobs where row.status eq "done", got a {"claimed_at":1767225600000,"claimed_by":"worker/it@i1.1","status":"done","times":1}
        line 8: the row jobs/a, at 0:00: expected {"status":"pending"}, got {"claimed_at":1767225600000,"claimed_by":"worker/it@i1.1","status":"done","times":1}
        line 8: the row jobs/b, at 0:00: expected no such row, got {"status":"pending"}
        line 8: the row jobs/c, at 0:00: expected {"status":"done"}, got no such row
        line 8: the number of rows in jobs, at 0:00: expected 2 rows of jobs where row.status eq "done", got a {"claimed_at":1767225600000,"claimed_by":"worker/it@i1.1","status":"done","times":1}
        line 8: the number of rows in jobs, at 0:00: expected at most 1 rows of jobs, got a {"claimed_at":1767225600000,"claimed_by":"worker/it@i1.1","status":"done","times":1} | b {"status":"pending"}
        line 8: the number of rows in jobs, at 0:00: expected at least 1 rows of jobs where row.status eq "lost", got none
    "#]].assert_eq(&told(&format!(
        "{GIVEN}{}",
        r#"
[[when]]
send = "work"
[[then]]
rows.jobs = { a = { status = "pending" }, b = false, c = { status = "done" } }
counts = [{ table = "jobs", where = { status = "done" }, is = 2 }, { table = "jobs", at_most = 1 }, { table = "jobs", where = { status = "lost" }, at_least = 1 }]
[[always]]
name = "nothing is ever done"
counts = { table = "jobs", where = { status = "done" }, is = 0 }
"#
    )));
}

#[test]
fn a_claim_that_is_too_old_is_taken_back_and_time_is_known_to_bring_it() {
    expect![[r#"
        0:00  it      v1  created, idle
              client  claim jobs, as client   1 done
                        claimed a {"claimed_at":1767225600000,"claimed_by":"client","status":"in_flight"} | b {"claimed_at":1767225600000,"claimed_by":"client","status":"in_flight"}
    "#]].assert_eq(&told(&format!(
        "{GIVEN}{}",
        r#"
[[when]]
rows = { claim = "jobs", limit = 2 }
[[when]]
advance = "9s"
then = { counts = { table = "jobs", where = { status = "in_flight" }, is = 2 } }
[[when]]
advance = "until-idle"
then = { counts = { table = "jobs", where = { status = "pending" }, is = 2 } }
"#
    )));
    let stage = stage(Takes::Claiming);
    let mut lab = stage.lab().unwrap();
    let text = r#"{"ops": [{"put": "jobs", "key": "a", "value": {"status": "pending"}}, {"claim": "jobs"}]}"#;
    let client = interlock_kernel::rows::ClientRows { ask: asks(text), label: "rival".to_owned(), id: None };
    lab.rows(client).unwrap();
    let coming: Vec<_> = lab.coming().unwrap().into_iter().map(|next| (next.in_ms, next.what)).collect();
    assert_eq!(coming, [(10_000, Awaited::Row("jobs".parse().unwrap(), "a".parse().unwrap()))]);
}

#[test]
fn a_search_finds_a_job_that_is_done_twice_and_tells_it() {
    let broken = found(Takes::Looking, &format!("{GIVEN}{TWO}"), Options::default()).broken.unwrap();
    assert_eq!(
        broken.broken.as_ref().map(ToString::to_string).unwrap(),
        "no job is done twice: table jobs: expected 0 rows of jobs where row.times gt 1, got a {\"status\":\"done\",\"times\":2}"
    );
    expect![[r#"
        0:00  it      v1  created, idle
              client  it: work (e1)   accepted
              it      v2  work -> working   attempt 1, token t1
              it      call 1 of work (query jobs)
                        found a {"status":"pending"}
              client  claim jobs, as rival   1 done
                        claimed a {"status":"done","times":1}
              it      call 2 of work (update jobs)
                        updated a {"status":"taken","times":1}
              it      call 3 of work (transition to idle): rows
                        updated a {"status":"done","times":2}
              it      v3  work -> idle
    "#]]
    .assert_eq(&broken.story.text(0..broken.story.lines().len(), ""));
    let stage = stage(Takes::Looking);
    let again = replay(&scenario(&format!("{GIVEN}{TWO}"), &stage), &stage, Options::default(), &broken.path).unwrap();
    assert_eq!(again.broken, broken.broken);
}

#[test]
fn where_jobs_are_claimed_every_order_with_two_faults_holds() {
    let found = found(Takes::Claiming, &format!("{GIVEN}{TWO}"), Options { faults: Some(2), ..Options::default() });
    assert_eq!(found.broken.map(|told| told.broken), None);
    assert_eq!((found.stopped, found.faults), (None, 2));
    assert!(found.counts.equal > 0 && found.counts.crash_points > 0, "{:?}", found.counts);
}

/// Two requests that change nothing are one world, whichever comes first: the jobs that they were are no part of it.
#[test]
fn worlds_that_differ_in_numbers_alone_are_equal() {
    let gets = |nth: &str| format!("[[when]]\nrows = {{ get = \"jobs\", key = \"{nth}\" }}\n");
    let found = found(
        Takes::Claiming,
        &format!("{GIVEN}{}{}", gets("a"), gets("b")),
        Options { faults: Some(0), ..Options::default() },
    );
    // None, either, both.
    assert_eq!((found.counts.states, found.counts.equal), (4, 1));
}

/// A claim that grows old is a choice beside what clients do: here it is taken back before the client is done.
#[test]
fn a_search_lets_time_take_a_claim_back() {
    let text = format!(
        "{GIVEN}{}",
        r#"
[[when]]
rows = { claim = "jobs", limit = 1 }
by = "rival"
[[eventually]]
name = "what is claimed stays so"
counts = { table = "jobs", where = { status = "in_flight" }, is = 1 }
"#
    );
    let found = found(Takes::Claiming, &text, Options { faults: Some(0), ..Options::default() });
    let broken = found.broken.and_then(|told| told.broken).unwrap();
    assert_eq!((broken.got.as_str(), found.stopped), ("none", None::<Stopped>));
}

#[test]
fn rows_of_a_table_that_nobody_declares_cannot_be_given() {
    let stage = Stage { tables: Vec::new(), ..stage(Takes::Claiming) };
    let why = play(&scenario(GIVEN, &stage), &stage).unwrap_err().to_string();
    assert!(
        why.contains("expected a file jobs.table.toml beside the machine, got none: rows of it are given"),
        "{why}"
    );
}

#[test]
fn mistakes_about_rows_are_shown_where_they_are() {
    let text = r#"
scenario = "mistakes"
[[given]]
rows = { jbos = { a = {} } }
[[when]]
rows = { claim = "jobs", limt = 2 }
[[when]]
rows = { update = "jobs", key = "a", set = { n = { increment = "x" } } }
[[then]]
rows.jobs.a = 4
counts = [{ table = "jobs" }, { table = "jobs", is = 1, at_most = 2 }, { table = "jobs", at_least = 3, at_most = 2 }]
[[always]]
name = "both"
state = "idle"
counts = { table = "jobs", is = 1 }
"#;
    let report = read("a.scenario.toml", text, &stage(Takes::Claiming).manifest.machine).unwrap_err();
    expect![[r#"
        error[unknown-table]: the machine uses no table `jbos`
         --> a.scenario.toml:4:10
          |
        4 | rows = { jbos = { a = {} } }
          |          ^^^^
          |
          = help: did you mean `jobs`?

        error[bad-value]: `when[0].rows` cannot be read at "/limt"
         --> a.scenario.toml:6:33
          |
        6 | rows = { claim = "jobs", limt = 2 }
          |                                 ^ expected one of claim, where, set, order, limit, delete, return, must (did you mean limit?)
          |
          = help: write one of claim, where, set, order, limit, delete, return, must (did you mean limit?)

        error[bad-value]: `when[1].rows` cannot be read at "/set/n/increment"
         --> a.scenario.toml:8:64
          |
        8 | rows = { update = "jobs", key = "a", set = { n = { increment = "x" } } }
          |                                                                ^^^ expected a number to add
          |
          = help: write a number to add

        error[wrong-type]: `then[0].rows.jobs.a` is an integer, not a table, or false
          --> a.scenario.toml:10:15
           |
        10 | rows.jobs.a = 4
           |               ^ expected a table, or false
           |
           = help: write the fields that are looked at: { status = "done" }

        error[says-nothing]: `then[0].counts[0]` says no number
          --> a.scenario.toml:11:11
           |
        11 | counts = [{ table = "jobs" }, { table = "jobs", is = 1, at_most = 2 }, { table = "jobs", at_least = 3, at_most = 2 }]
           |           ^^^^^^^^^^^^^^^^^^ expected `is`, `at_least`, `at_most`
           |
           = help: say how many: is = 1, or at_most = 1

        error[bad-value]: `then[0].counts[1]` says it twice
          --> a.scenario.toml:11:31
           |
        11 | counts = [{ table = "jobs" }, { table = "jobs", is = 1, at_most = 2 }, { table = "jobs", at_least = 3, at_most = 2 }]
           |                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           |
           = help: take `is` out, or the bounds

        error[bad-value]: `then[0].counts[2]`: at least 3 and at most 2 is never so
          --> a.scenario.toml:11:72
           |
        11 | counts = [{ table = "jobs" }, { table = "jobs", is = 1, at_most = 2 }, { table = "jobs", at_least = 3, at_most = 2 }]
           |                                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           |
           = help: write the smaller number into at_least

        error[bad-value]: `always[0]` promises something of rows and of entities
          --> a.scenario.toml:14:1
           |
        14 | state = "idle"
           | ^^^^^
           |
           = help: write two promises

        a.scenario.toml: 8 errors, 0 warnings
    "#]].assert_eq(&interlock_manifest::render(&report, false));
}
