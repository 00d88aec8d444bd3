//! What a failed test prints.

use crate::world::{doing, host};
use expect_test::expect;
use interlock_mock::{Fault, at};
use serde_json::json;
use std::time::Duration;

#[test]
fn it_tells_what_was_done_asked_and_answered_and_where_everything_stands() {
    let mut host = doing("save-and-go");
    host.fault(at("act").call(2), Fault::Crash);
    host.run();
    host.send("a", "run", json!({ "act": "ask-again" })).accepted();
    host.run();
    host.send("a", "run", json!({ "act": "wait" })).accepted();
    host.advance(Duration::from_secs(60));
    host.send("a", "now", json!(null)).refused("busy");
    expect![[r#"
        the story so far:
             0 ms  deploy actor: revision 1
                   create a: created, version 1
                   send run {"act":"save-and-go"} to a: accepted, acting, version 2
                   act, attempt 1 of actor/a, token 5 begins
                     save, data {"runs":1}: accepted, version 3
                   FAULT before call 2 of act: a crash
                   the host is killed
                   act, attempt 1 of actor/a, token 5 goes on
                     transition to idle: no answer
                     lost with its host
                   boot 2
                   act, attempt 2 of actor/a, token 1033 begins
                     save, data {"runs":2}: accepted, version 4
                     transition to idle: accepted, version 5
                     done
                   send run {"act":"ask-again"} to a: accepted, acting, version 6
                   act, attempt 1 of actor/a, token 1036 begins
                     transition to idle, data {"runs":3}: accepted, version 7
                     transition to alarm: REFUSED spent: actor/a: expected one transition per attempt, got another call
                     info: spent: actor/a: expected one transition per attempt, got another call
                     info: version 6
                     save: stopped, spent: called again after the answer `spent`: return after an accepted transition
                     failed after its accepted transition, which changes nothing: spent (retry): called again after the answer `spent`: return after an accepted transition
                     done
                   send run {"act":"wait"} to a: accepted, acting, version 8
                   act, attempt 1 of actor/a, token 1038 begins
                     transition to waiting: accepted, version 9
                     done
             60 s  send now to a: REFUSED busy: actor/a: expected unlocked, got locked by actor/a@4.3 for 60 s, waiting, waiting for a timer (started by run)

        actor/a is waiting, version 9, locked by @4.3
          data {"runs":3}
            1  v1   created, idle  (by local)
            2  v2   run -> acting  (by local, event event-1)
            3  v3   act saved  (by @4.1)
            4  v3   attempt 1 lost with its host, begun again  (by host)
            5  v4   act saved  (by @4.1)
            6  v5   act -> idle  (by @4.1)
            7  v6   run -> acting  (by local, event event-2)
            8  v7   act -> idle  (by @4.2)
            9  v8   run -> acting  (by local, event event-3)
           10  v9   act -> waiting  (by @4.3)
        next, in 30 s: the timer after of actor/a"#]].assert_eq(&host.story());
}

#[test]
fn steps_that_run_at_once_are_told_apart() {
    let mut host = host();
    host.create("b").accepted();
    for key in ["a", "b"] {
        host.send(key, "run", json!({ "act": "save-and-go" })).accepted();
    }
    host.run();
    expect![[r#"
        the story so far:
             0 ms  deploy actor: revision 1
                   create a: created, version 1
                   create b: created, version 1
                   send run {"act":"save-and-go"} to a: accepted, acting, version 2
                   act, attempt 1 of actor/a, token 6 begins
                   send run {"act":"save-and-go"} to b: accepted, acting, version 2
                   act, attempt 1 of actor/b, token 7 begins
                   act, attempt 1 of actor/a, token 6 goes on
                     save, data {"runs":1}: accepted, version 3
                     transition to idle: accepted, version 4
                     done
                   act, attempt 1 of actor/b, token 7 goes on
                     save, data {"runs":1}: accepted, version 3
                     transition to idle: accepted, version 4
                     done

        actor/a is idle, version 4, unlocked
          data {"runs":1}
            1  v1   created, idle  (by local)
            2  v2   run -> acting  (by local, event event-1)
            3  v3   act saved  (by @4.1)
            4  v4   act -> idle  (by @4.1)
        actor/b is idle, version 4, unlocked
          data {"runs":1}
            1  v1   created, idle  (by local)
            2  v2   run -> acting  (by local, event event-2)
            3  v3   act saved  (by @5.1)
            4  v4   act -> idle  (by @5.1)
        nothing more happens by itself"#]]
    .assert_eq(&host.story());
}

/// Runs itself again, to fail.
#[test]
fn a_failed_test_prints_it() {
    if std::env::var_os("INTERLOCK_MOCK_FAILS").is_some() {
        let mut host = doing("go");
        host.run();
        assert_eq!(host.entity("a").state(), "waiting");
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "story::a_failed_test_prints_it"]).env("INTERLOCK_MOCK_FAILS", "1");
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success(), "{said}");
    for line in [
        "right: \"waiting\"",
        "the story so far:",
        "send run {\"act\":\"go\"} to a: accepted, acting, version 2",
        "  transition to idle, data {\"runs\":1}: accepted, version 3",
        "actor/a is idle, version 3, unlocked",
    ] {
        assert!(said.contains(line), "{line} is missing in\n{said}");
    }
}
