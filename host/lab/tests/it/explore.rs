//! Searching what can happen to steps as functions.

use crate::world::{JOB, Steps};
use expect_test::expect;
use interlock_kernel::doc::Digest;
use interlock_lab::explore::{Found, Options, Path, Stopped, explore, replay};
use interlock_lab::scenario::{Scenario, Stage, read};
use std::sync::Arc;

fn stage(source: &str) -> Stage {
    let report = interlock_manifest::parse("machine.toml", source);
    let manifest = report.manifest.unwrap_or_else(|| panic!("{:?}", report.problems));
    Stage { manifest, component: Some(Digest::of(&[b"steps"])), tables: Vec::new(), executor: Arc::new(Steps) }
}

fn scenario(text: &str, stage: &Stage) -> Scenario {
    read("job.scenario.toml", text, &stage.manifest.machine).unwrap_or_else(|report| panic!("{report:?}"))
}

fn found(text: &str, options: Options) -> Found {
    let stage = stage(JOB);
    explore(&scenario(text, &stage), &stage, options).unwrap()
}

fn faults(faults: u32) -> Options {
    Options { faults: Some(faults), ..Options::default() }
}

/// The step saves its count and counts again on a retry.
const RUN: &str = r#"
scenario = "a job runs"
[[when]]
send = "run"
[[always]]
name = "no run counts twice"
all  = [{ field = "data.runs", op = "le", value = 2 }]
"#;

const RUN_AND_NOTE: &str = r#"
scenario = "a job runs, and is noted"
[[when]]
send = "run"
[[when]]
send = "note"
"#;

const TWO: &str = r#"
scenario = "two jobs run"
[[given]]
key = "a"
[[given]]
key = "b"
[[when]]
send = "run"
entity = "a"
[[when]]
send = "run"
entity = "b"
"#;

#[test]
fn what_breaks_is_told_from_its_beginning_and_can_be_played_again() {
    let found = found(RUN, faults(1));
    let told = found.broken.unwrap();
    let text = |told: &interlock_lab::explore::Told| {
        let lines = told.story.text(0..told.story.lines().len(), "");
        format!("{}\n{} fault, {}\n{lines}", told.broken.as_ref().unwrap(), told.faults, told.path)
    };
    expect![[r#"
        no run counts twice: job/it: expected data.runs le 2, got 3
        1 fault, a1-g1-x-g1-g1-t-g1
        0:00  it      v1  created, idle
                        data {"runs":0}
              client  it: run (e1)   accepted
              it      v2  run -> first   attempt 1, token t1
              it      v3  first saved
                        data.runs = 1
              host    killed before call 2 of first (transition to pause); boots again
              it      v3  attempt 1 lost with its host, begun again   token t2
              it      v4  first saved
                        data.runs = 2
              it      v5  first -> pause
        1:30  it      v6  after -> second   attempt 1, token t3
              it      v7  second -> idle
                        data.runs = 3
    "#]]
    .assert_eq(&text(&told));

    let stage = stage(JOB);
    let path: Path = told.path.to_string().parse().unwrap();
    let again = replay(&scenario(RUN, &stage), &stage, Options::default(), &path).unwrap();
    assert_eq!(text(&again), text(&told));
}

#[test]
fn without_faults_nothing_breaks_and_the_search_is_complete() {
    let found = found(RUN, faults(0));
    assert!(found.broken.is_none() && found.stopped.is_none(), "{found:?}");
    assert_eq!((found.counts.ends, found.counts.crash_points), (1, 0));
}

#[test]
fn every_kind_of_fault_is_tried_and_the_search_is_complete() {
    let found = found(RUN_AND_NOTE, faults(1));
    assert!(found.broken.is_none() && found.stopped.is_none(), "{found:?}");
    let counts = found.counts;
    for tried in [counts.crash_points, counts.lost, counts.doubled, counts.slow, counts.equal] {
        assert!(tried > 0, "{counts:?}");
    }
    assert!(counts.runs < counts.choices, "steps are remembered: {counts:?}");
}

#[test]
fn the_same_search_twice_is_the_same() {
    let twice = [(); 2].map(|()| format!("{:?}", found(RUN_AND_NOTE, faults(1))));
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn an_execution_that_nobody_ends_is_found() {
    let told = found(RUN_AND_NOTE, faults(2)).broken.unwrap();
    assert_eq!(told.broken.unwrap().promise, "nothing is left parked");
    assert_eq!(told.faults, 2, "with one fault it is not reached");
    let allowed = format!("{RUN_AND_NOTE}[then]\nparked = true\n");
    assert!(found(&allowed, Options { depth: Some(12), ..faults(2) }).broken.is_none());
}

#[test]
fn an_event_that_came_too_late_need_not_take_effect() {
    let source = JOB.replace("on.run = { to = \"first\" }", "on.run = { to = \"over\" }\non.note = { to = \"first\" }");
    let stage = stage(&format!("{source}\n[states.over]\nkind = \"final\"\noutcome = \"succeeded\"\n"));
    let found = explore(&scenario(RUN_AND_NOTE, &stage), &stage, faults(0)).unwrap();
    assert!(found.broken.is_none() && found.stopped.is_none(), "{found:?}");
}

#[test]
fn leaving_out_orders_that_give_the_same_loses_no_state() {
    let pruned = found(TWO, faults(1));
    let whole = found(TWO, Options { all_orders: true, ..faults(1) });
    assert!(pruned.stopped.is_none() && whole.stopped.is_none());
    assert_eq!((pruned.counts.states, pruned.counts.ends), (whole.counts.states, whole.counts.ends));
    assert!(pruned.counts.choices < whole.counts.choices, "{:?} {:?}", pruned.counts, whole.counts);
    assert!(pruned.counts.independent > 0 && whole.counts.independent == 0);
}

#[test]
fn a_timer_of_the_calendar_is_searched_like_any_other() {
    let rule = "next = \"business day\", at = \"09:00\", zone = \"Europe/Berlin\"";
    // Remembered for a month: a day, which is the default, is over before the timer comes, and the search finds that.
    let source = JOB.replace("wait = \"90s\"", rule);
    let stage = stage(&source.replace("events.run.schema", "events.run.dedup = \"30d\"\nevents.run.schema"));
    let found = explore(&scenario(RUN_AND_NOTE, &stage), &stage, faults(1)).unwrap();
    assert!(found.broken.is_none() && found.stopped.is_none(), "{found:?}");
    assert!(found.counts.ends > 0 && found.counts.crash_points > 0, "{:?}", found.counts);
}

#[test]
fn a_search_that_did_not_see_everything_says_so() {
    let found_with = |options| found(RUN_AND_NOTE, options);
    assert_eq!(found_with(Options { depth: Some(3), ..faults(0) }).stopped, Some(Stopped::Depth));
    assert_eq!(found_with(Options { states: Some(5), ..faults(0) }).stopped, Some(Stopped::States));
}
