//! Leases in stories and searches: clients that have them, steps that lose them.

use crate::world::stage_of;
use expect_test::expect;
use interlock_coordinator::{Attempt, Ended, Executor, SubmitError};
use interlock_kernel::command::{Change, LeaseAsk};
use interlock_kernel::record::Failure;
use interlock_lab::explore::{Found, Options, explore, replay};
use interlock_lab::scenario::{Stage, play, read};
use std::sync::Arc;

const COPIER: &str = r#"
machine = "copier"
owner   = "tests <tests@example.com>"
initial = "idle"
component = "copier.wasm"
desired.schema = false
outputs.schema = false
data = { default = {}, schema = { type = "object" } }
events.start.schema = false

[leases]
disk = { ttl = "40s", hold_max = "2m" }

[states.idle]
kind = "rest"
on.start = { to = "copying" }

[states.copying]
step = "copy"
to   = ["copied"]
deadline = "1h"
retry = { attempts = 3, first = "1s", jitter = 0 }
on_failure = { to = "idle" }

[states.copied]
after = { wait = "5s", to = "idle" }
"#;

/// Takes the lease, saves that it has it, and goes on. Where `again` is false it takes it once only.
struct Copies {
    again: bool,
}

impl Executor for Copies {
    fn start(&self, attempt: Attempt) {
        let again = self.again;
        tokio::spawn(async move {
            let gate = attempt.gate();
            let done = tokio::select! {
                biased;
                closed = gate.closed() => Err(closed.why.to_owned()),
                done = copy(&attempt, again) => done.map_err(|no| no.rejection().map_or("store".to_owned(), |no| no.code.to_string())),
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

async fn copy(attempt: &Attempt, again: bool) -> Result<(), SubmitError> {
    let taken = attempt.start().documents.data.as_ref().is_some_and(|data| data.value()["taken"] == true);
    if again || !taken {
        let name = "disk".parse().unwrap();
        attempt.lease(LeaseAsk::Acquire(name, None)).await?;
        let change = Change { data: Some(crate::world::doc(r#"{"taken":true}"#)), ..Change::default() };
        attempt.save(change).await?;
    }
    attempt.transition("copied".parse().unwrap(), Change::default()).await.map(drop)
}

fn stage(manifest: &str, again: bool) -> Stage {
    Stage { executor: Arc::new(Copies { again }), ..stage_of(manifest) }
}

fn told(text: &str) -> String {
    let stage = stage(COPIER, true);
    let scenario = read("a.scenario.toml", text, &stage.manifest.machine);
    let scenario = scenario.unwrap_or_else(|why| panic!("{}", interlock_manifest::render(&why, false)));
    let played = play(&scenario, &stage).unwrap();
    let misses = played
        .misses
        .iter()
        .map(|miss| format!("line {}: {}: expected {}, got {}\n", miss.line, miss.what, miss.expected, miss.got));
    let stands = played.stands.iter().map(|(entity, stands)| format!("{}: {stands}\n", entity.key));
    format!("{}{}{}", played.told(""), misses.collect::<String>(), stands.collect::<String>())
}

fn found(manifest: &str, again: bool, text: &str, options: Options) -> Found {
    let stage = stage(manifest, again);
    let scenario = read("a.scenario.toml", text, &stage.manifest.machine).unwrap_or_else(|why| panic!("{why:?}"));
    explore(&scenario, &stage, options).unwrap()
}

#[test]
fn clients_take_extend_and_give_back_and_the_step_comes_between() {
    expect![[r#"
        0:00  it      v1  created, idle
                        data {}
              client  it: start (e1)   accepted
              it      v2  start -> copying   attempt 1, token t1
              it      call 1 of copy (acquire disk): REFUSED busy
                        expected a free lease, got held by rival for 0 ms, at least 10 s more unless it is given back
                        retry in 10 s
              it      v2  attempt 1 failed: busy, next in 1 s
                        as it was told
              client  release disk, as somebody   REFUSED fenced
                        expected token t2 of rival, got token t3 of a client
              client  acquire disk for 30 s, in line for 2 s, as third   in line, 0 before it
              client  extend disk for 2 s, as rival   held for 2 s, token t2, again
        0:01  it      v2  attempt 2 begun   token t4
              it      call 1 of copy, attempt 2 (acquire disk): REFUSED busy
                        expected a free lease, got held by rival for 1 s, at least 1 s more unless it is given back
                        retry in 1 s
              it      v2  attempt 2 failed: busy, next in 2 s
                        as it was told
        0:02  host    the lease disk of rival is over
        0:03  it      v2  attempt 3 begun   token t5
              it      v2  took lease disk
              it      v3  copy saved
                        data.taken = true
              it      v4  copy -> copied
        0:08  it      v5  after -> idle
        it: idle, at rest, waits for the event start
    "#]].assert_eq(&told(
        r#"
        scenario = "a rival has the disk, and then it is the copier's"
        [[given]]
        lease = "disk"
        by    = "rival"
        ttl   = "10s"
        [[when]]
        send = "start"
        then = { state = "copying", attempts = 1, leases = { disk = "rival" } }
        [[when]]
        release = "disk"
        by      = "somebody"
        answer  = "refused fenced"
        [[when]]
        acquire = "disk"
        by      = "third"
        wait    = "2s"
        answer  = "queued"
        then    = { leases = { disk = { holder = "rival", in_line = 1 } } }
        [[when]]
        extend = "disk"
        by     = "rival"
        ttl    = "2s"
        [[when]]
        advance = "until-idle"
        [then]
        state  = "idle"
        leases = { disk = { holder = "nobody", history = ["acquired by rival", "contended by copier/it", "fenced by a client", "extended by rival", "expired by rival", "acquired by copier/it", "released by copier/it"] } }
        "#,
    ));
}

#[test]
fn a_lease_is_lost_where_that_was_planted() {
    expect![[r#"
        0:00  it      v1  created, idle
                        data {}
              client  it: start (e1)   accepted
              it      v2  start -> copying   attempt 1, token t1
              it      v2  took lease disk
              it      v3  copy saved
                        data.taken = true
              host    the host stalls until a lease of the execution is over, before call 3 of copy (transition to copied)
        0:40  it      v3  attempt 1 failed: lease-lost, next in 1 s
                        lease disk was not renewed in time
              host    the lease disk of copier/it@i1.1 is over
              client  acquire disk for 1 s, as rival   held for 1 s, token t2
        0:41  it      v3  attempt 2 begun   token t3
              host    the lease disk of rival is over
              it      v3  took lease disk
              it      v4  copy saved
              it      v5  copy -> copied
        0:46  it      v6  after -> idle
        it: idle, at rest, waits for the event start
    "#]].assert_eq(&told(
        r#"
        scenario = "the host stalls"
        [[when]]
        fault = { call = "transition", what = "lease-lost" }
        [[when]]
        send = "start"
        then = { leases = { disk = "nobody" } }
        [[when]]
        acquire = "disk"
        by      = "rival"
        ttl     = "1s"
        [[when]]
        advance = "until-idle"
        [then]
        state = "idle"
        [[always]]
        name  = "what copies has the disk"
        when  = { state = "copied" }
        holds = "disk"
        "#,
    ));
}

#[test]
fn what_is_not_so_with_a_lease_is_named() {
    let told = told(
        r#"
        scenario = "nothing is as it is said to be"
        [[when]]
        send = "start"
        [[when]]
        acquire = "disk"
        by      = "rival"
        [[when]]
        fault = { what = "lease-lost" }
        [then]
        leases = { disk = { holder = "rival", in_line = 2, history = ["released", "acquired"] } }
        [[always]]
        name  = "it always has the disk"
        holds = "disk"
        "#,
    );
    let misses: Vec<&str> = told.lines().filter(|line| line.starts_with("line ")).collect();
    expect![[r#"
        line 12: always "it always has the disk": it, at 0:00: expected its execution to have the lease disk, got held by nobody
        line 5: the answer to acquire disk for 30 s, as rival: expected accepted or queued, got refused busy: expected a free lease, got held by copier/it@i1.1 for 0 ms, at least 2 min more unless it is given back
        line 10: holder of the lease disk, at 0:00: expected rival, got it
        line 10: line of the lease disk, at 0:00: expected 2, got 0
        line 10: history of the lease disk, at 0:00: expected "released", got acquired by copier/it@i1.1, token t2 | contended by rival
        line 8: the fault never came: expected any step to make call 1 after this, got no such call"#]].assert_eq(&misses.join("\n"));
}

const RIVAL: &str = r#"
scenario = "a rival wants the disk too"
[[when]]
send = "start"
[[when]]
acquire = "disk"
by      = "rival"
ttl     = "1m"
[[always]]
name  = "what copies has the disk"
when  = { state = "copied" }
holds = "disk"
"#;

fn faults(faults: u32) -> Options {
    Options { faults: Some(faults), ..Options::default() }
}

#[test]
fn a_step_that_takes_a_lease_for_granted_is_found_by_losing_it_and_not_without() {
    let found_none = found(COPIER, false, RIVAL, faults(0));
    assert!(found_none.broken.is_none() && found_none.stopped.is_none(), "{found_none:?}");
    let broken = found(COPIER, false, RIVAL, faults(1)).broken.expect("something breaks");
    assert_eq!(broken.broken.as_ref().unwrap().promise, "what copies has the disk");
    assert_eq!(broken.faults, 1);
    let text = broken.story.text(0..broken.story.lines().len(), "");
    expect![[r#"
        a1-g1-g1-s1-t-g1
        0:00  it      v1  created, idle
                        data {}
              client  it: start (e1)   accepted
              it      v2  start -> copying   attempt 1, token t1
              it      v2  took lease disk
              it      v3  copy saved
                        data.taken = true
              host    the host stalls until a lease of the execution is over, before call 3 of copy (transition to copied)
        0:40  it      v3  attempt 1 failed: lease-lost, next in 1 s
                        lease disk was not renewed in time
              host    the lease disk of copier/it@i1.1 is over
        0:41  it      v3  attempt 2 begun   token t2
              it      v4  copy -> copied
    "#]].assert_eq(&format!("{}\n{text}", broken.path));
    let stage = stage(COPIER, false);
    let scenario = read("a.scenario.toml", RIVAL, &stage.manifest.machine).unwrap();
    let again = replay(&scenario, &stage, faults(1), &broken.path).unwrap();
    assert_eq!(again.story.text(0..again.story.lines().len(), ""), text);
}

#[test]
fn one_that_takes_it_with_every_attempt_holds_in_every_order() {
    let seen = found(COPIER, true, RIVAL, faults(1));
    assert!(seen.broken.is_none() && seen.stopped.is_none(), "{:?}", seen.broken);
    assert!(seen.counts.leases_lost > 0 && seen.counts.equal > 0, "{:?}", seen.counts);
    // Who has the lease, and for how long, tells states apart: without a rival there are fewer.
    let alone = RIVAL.replace("[[when]]\nacquire = \"disk\"\nby      = \"rival\"\nttl     = \"1m\"\n", "");
    assert!(found(COPIER, true, &alone, faults(1)).counts.states < seen.counts.states);
}

#[test]
fn a_move_that_requires_the_lease_mends_it_too() {
    let requires = COPIER.replace("[\"copied\"]", "[{ to = \"copied\", requires = [\"disk\"] }]");
    let seen = found(&requires, false, RIVAL, faults(1));
    assert!(seen.broken.is_none() && seen.stopped.is_none(), "{:?}", seen.broken);
    let needs = COPIER.replace("step = \"copy\"", "step = \"copy\"\nneeds = [\"disk\"]");
    let seen = found(&needs, false, RIVAL, faults(1));
    assert!(seen.broken.is_none() && seen.stopped.is_none(), "{:?}", seen.broken);
}
