//! Scenarios as they are played, on steps as functions.

use crate::world::{stage, stage_of};
use expect_test::expect;
use interlock_lab::scenario::{Coverage, Played, Stage, play, read};

fn played(text: &str) -> Played {
    played_on(&stage(), text)
}

fn played_on(stage: &Stage, text: &str) -> Played {
    let scenario = read("a.scenario.toml", text, &stage.manifest.machine);
    let scenario = scenario.unwrap_or_else(|why| panic!("{}", interlock_manifest::render(&why, false)));
    play(&scenario, stage).unwrap()
}

/// What happened, what is not as it should be, and where everything stands.
fn told(text: &str) -> String {
    told_of(&played(text))
}

fn told_of(played: &Played) -> String {
    let misses = played
        .misses
        .iter()
        .map(|miss| format!("line {}: {}: expected {}, got {}\n", miss.line, miss.what, miss.expected, miss.got));
    let stands = played.stands.iter().map(|(entity, stands)| format!("{}: {stands}\n", entity.key));
    format!("{}{}{}", played.told(""), misses.collect::<String>(), stands.collect::<String>())
}

#[test]
fn what_happens_is_told() {
    expect![[r#"
        0:00  a       v1  created, idle
                        data {"runs":0}
              client  a: run (e1)   accepted
              a       v2  run -> first   attempt 1, token t1
              a       v3  first saved
                        data.runs = 1
              a       v4  first -> pause
              client  a: run (e2)   REFUSED busy
                        expected unlocked, got locked by job/a@i1.1 for 0 ms, pause, waiting for a timer (started by run)
                        retry in 90 s
              client  a: run (e1)   accepted, again
        1:30  a       v5  after -> second   attempt 1, token t2
              a       v6  second -> idle
                        data.runs = 2
        a: idle, at rest, waits for the event run
    "#]].assert_eq(&told(
        r#"
        scenario = "both steps run"
        given.key = "a"
        [[when]]
        send = "run"
        then = { state = "pause", locked = true, attempts = 0 }
        [[when]]
        send = "run"
        answer = "refused busy"
        [[when]]
        send = "run"
        id = "e1"
        answer = "accepted again"
        [[when]]
        advance = "90s"
        [then]
        state = "idle"
        data = { runs = 2 }
        version = 6
        outcome = "succeeded"
        answers = { e1 = "accepted again", e2 = "refused busy" }
        history = ["run -> first", "first -> pause"]
    "#,
    ));
}

#[test]
fn faults_come_where_they_were_planted() {
    for fault in ["crash", "crash-after", "conflict", "fenced", "unavailable", "unknown-kept", "unknown-lost"] {
        let text = told(&format!(
            r#"
            scenario = "a fault"
            [[when]]
            fault = {{ step = "first", call = 2, what = "{fault}" }}
            [[when]]
            send = "run"
            [[when]]
            advance = "until-idle"
            [then]
            state = "idle"
        "#
        ));
        expect_test::expect_file![format!("golden/fault-{fault}.txt")].assert_eq(&text);
    }
}

#[test]
fn a_call_is_named_by_what_it_asks_for() {
    for (call, saves) in [("save", 1), ("transition", 2), ("save 2", 1)] {
        let text = told(&format!(
            r#"
            scenario = "killed before a call"
            [[when]]
            fault = {{ step = "first", call = "{call}", what = "crash" }}
            [[when]]
            send = "run"
        "#
        ));
        assert_eq!(text.matches("first saved").count(), saves, "{text}");
        let never = "the fault never came: expected first to make save 2 after this, got no such call";
        assert_eq!(text.contains(never), call == "save 2", "{text}");
    }
}

#[test]
fn everything_that_is_not_as_it_should_be_is_named() {
    expect![[r#"
        0:00  a       v1  created, idle
                        data {"runs":0}
              b       v1  created, idle
                        data {"runs":0}
              client  a: note (e1)   REFUSED not_allowed
                        expected one of run, got note in idle
              a       v1  not allowed: job/a: expected one of run, got note in idle
              client  a: run (e2)   accepted
              a       v2  run -> first   attempt 1, token t1
              a       v3  first saved
                        data.runs = 1
              a       v4  first -> pause
              client  a: create   REFUSED conflict
                        expected no entity with this key, got one that was created already
        1:30  a       v5  after -> second   attempt 1, token t2
              a       v6  second -> idle
                        data.runs = 2
        line 6: the answer to note (e1): expected accepted or queued, got refused not_allowed: expected one of run, got note in idle
        line 9: the answer to run (e2): expected refused guard, got accepted
        line 35: always "is never busy": a, at 0:00: expected unlocked, got locked by execution 1 (run), in first
        line 13: the answer to create: expected accepted or queued, got refused conflict: expected no entity with this key, got one that was created already
        line 16: state of a, at 0:00: expected idle or second, got pause
        line 17: state of a, at 0:00: expected idle, got pause
        line 17: park of a, at 0:00: expected parked, got not parked
        line 17: lock of a, at 0:00: expected unlocked, got locked by execution 1 (run), in pause
        line 17: outcome of a, at 0:00: expected the last execution failed, got none has ended yet
        line 17: version of a, at 0:00: expected 1, got 4
        line 17: generation of a, at 0:00: expected 1, got 0
        line 17: attempts of a, at 0:00: expected 3, got 0
        line 17: inbox of a, at 0:00: expected 1, got 0
        line 17: data.more.of of a, at 0:00: expected "it", got nothing
        line 17: data.runs of a, at 0:00: expected 7, got 1
        line 17: outputs.x of a, at 0:00: expected 1, got nothing
        line 17: condition Ready of a, at 0:00: expected true, got none
        line 17: the answer to e2, at 0:00: expected queued, got accepted
        line 17: history of a, at 0:00: expected "run -> first" behind "first -> pause", got created, idle | not allowed: job/a: expected one of run, got note in idle | run -> first | first saved | first -> pause
        line 32: b, at 0:00: expected not there, got there, in idle
        line 4: the fault never came: expected second to make call 3 after this, got no such call
        line 38: eventually "has run thrice": a, at 1:30: expected data.runs ge 3, got 2
        a: idle, at rest, waits for the event run
        b: idle, at rest, waits for the event run
    "#]].assert_eq(&told(
        r#"
        scenario = "all wrong"
        given = [{ key = "a" }, { key = "b" }]
        [[when]]
        fault = { step = "second", call = 3, what = "crash" }
        [[when]]
        send = "note"
        entity = "a"
        [[when]]
        send = "run"
        entity = "a"
        answer = "refused guard"
        [[when]]
        create = "a"
        on_existing = "fail"
        then = { entity = "a", state = ["idle", "second"] }
        [[then]]
        entity = "a"
        state = "idle"
        data = { runs = 7, more = { of = "it" } }
        outputs = { x = 1 }
        version = 1
        generation = 1
        attempts = 3
        parked = true
        locked = false
        outcome = "failed"
        inbox = 1
        conditions = { Ready = "true" }
        answers = { e2 = "queued" }
        history = ["first -> pause", "run -> first"]
        [[then]]
        entity = "b"
        exists = false
        [[always]]
        name = "is never busy"
        locked = false
        [[eventually]]
        name = "has run thrice"
        entity = "a"
        field = "data.runs"
        op = "ge"
        value = 3
    "#,
    ));
}

#[test]
fn time_stands_still_but_for_what_moves_it() {
    expect![[r#"
        0:00  it      v1  created, idle
                        data {"runs":0}
              client  it: run (e1)   accepted
              it      v2  run -> first   attempt 1, token t1
              it      v3  first saved
                        data.runs = 1
              it      v4  first -> pause
              host    the wall clock jumps back by 60 min
              host    killed
        2:00  host    boots again
              host    the wall clock jumps on by 60 min
        2:01  it      v5  after -> second   attempt 1, token t2
              it      v6  second -> idle
                        data.runs = 2
              host    killed; boots again
        it: idle, at rest, waits for the event run
    "#]]
    .assert_eq(&told(
        r#"
        scenario = "down, and a wall clock that jumps"
        [[when]]
        send = "run"
        [[when]]
        wall = "-1h"
        [[when]]
        down = "2m"
        then.state = "pause"
        [[when]]
        wall = "+1h"
        then.state = "pause"
        [[when]]
        advance = "1s"
        then.state = "idle"
        [[when]]
        crash = true
        then.state = "idle"
    "#,
    ));
}

#[test]
fn a_timer_of_the_calendar_comes_when_its_zone_says_so_over_downtime_and_a_clock_that_was_set() {
    let rule = "next = \"business day\", at = \"09:00\", zone = \"Europe/Berlin\"";
    let source = crate::world::JOB.replace("wait = \"90s\"", rule);
    let text = r#"
        scenario = "a run of Friday goes on on Monday at nine in Berlin"
        [[when]]
        wall = "+1d"
        [[when]]
        send = "run"
        then.state = "pause"
        [[when]]
        down = "2d"
        then.state = "pause"
        [[when]]
        advance = "31h"
        then.state = "pause"
        [[when]]
        advance = "1h"
        then.state = "idle"
    "#;
    expect![[r#"
            0:00  it      v1  created, idle
                            data {"runs":0}
                  host    the wall clock jumps on by 24 h
                  client  it: run (e1)   accepted
                  it      v2  run -> first   attempt 1, token t1
                  it      v3  first saved
                            data.runs = 1
                  it      v4  first -> pause
                  host    killed
        48:00:00  host    boots again
        80:00:00  it      v5  after -> second   attempt 1, token t2
                  it      v6  second -> idle
                            data.runs = 2
        it: idle, at rest, waits for the event run
    "#]]
    .assert_eq(&told_of(&played_on(&stage_of(&source), text)));
}

#[test]
fn what_clients_want_is_made_written_and_taken_away() {
    expect![[r#"
        0:00  client  a: create {"x":1}   accepted
              a       v1  created, idle
                        desired {"x":1}
                        data {"runs":0}
              client  a: create {"x":1}   accepted, again
              client  a: apply {"x":2}   accepted, generation 2
              a       v1  desired written, generation 2
                        desired.x = 2
              client  a: apply {"x":3} in place of generation 1   REFUSED conflict
                        expected generation 1, got generation 2
              client  a: apply {"x":3}   FAILED, nobody knows whether it was done
              a       v1  desired written, generation 3
                        desired.x = 3
              client  a: unpark   accepted, again
              client  a: delete   accepted
              a       v1  deleted
              client  a: create   accepted
              a       v1  created, idle
                        data {"runs":0}
              client  a: kill: no longer wanted   accepted
              a       v2  killed: no longer wanted
        a: killed, for good
    "#]]
    .assert_eq(&told(
        r#"
        scenario = "a life"
        given = []
        [[when]]
        create = "a"
        desired = { x = 1 }
        labels = { team = "y" }
        [[when]]
        create = "a"
        desired = { x = 1 }
        labels = { team = "y" }
        answer = "accepted again"
        [[when]]
        apply = { x = 2 }
        then = { generation = 2, desired = { x = 2 } }
        [[when]]
        apply = { x = 3 }
        generation = 1
        answer = "refused conflict"
        [[when]]
        apply = { x = 3 }
        fault = "unknown-kept"
        answer = "unknown"
        then.generation = 3
        [[when]]
        unpark = true
        answer = "accepted again"
        [[when]]
        delete = true
        then.exists = false
        [[when]]
        create = "a"
        [[when]]
        kill = "no longer wanted"
        [then]
        state = "killed"
        version = 2
    "#,
    ));
}

#[test]
fn coverage_counts_what_happened_and_names_the_rest() {
    let stage = stage();
    let mut coverage = Coverage::new(&stage.manifest.machine);
    let rows = |coverage: &Coverage| {
        let rows = coverage.rows().into_iter();
        rows.map(|row| format!("{} {} of {}: {}\n", row.what, row.covered, row.of, row.missing.join("; ")))
            .collect::<String>()
    };
    expect![[r#"
        states 0 of 4: first; idle; pause; second
        moves 0 of 9: first: first -> pause; first: note stays first; first: a permanent failure -> parked; first: the last attempt fails, or the deadline -> parked; idle: run -> first; pause: after -> second; second: second -> idle; second: a permanent failure -> parked; second: the last attempt fails, or the deadline -> parked
        refusals 0 of 3: note refused busy; note refused not_allowed; run refused busy
        events 0 of 2: note; run
    "#]].assert_eq(&rows(&coverage));
    coverage.add(
        &played("scenario = \"s\"\n[[when]]\nsend = \"run\"\n[[when]]\nsend = \"run\"\nanswer = \"refused\"").reached,
    );
    expect![[r#"
        states 3 of 4: second
        moves 2 of 9: first: note stays first; first: a permanent failure -> parked; first: the last attempt fails, or the deadline -> parked; pause: after -> second; second: second -> idle; second: a permanent failure -> parked; second: the last attempt fails, or the deadline -> parked
        refusals 1 of 3: note refused busy; note refused not_allowed
        events 1 of 2: note
    "#]].assert_eq(&rows(&coverage));
}
