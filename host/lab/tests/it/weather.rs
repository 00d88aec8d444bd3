//! What each weather does to a story, on steps as functions; and that it shows what does not stand it.

use crate::world::{Steps, stage};
use expect_test::expect;
use interlock_coordinator::{Attempt, Ended, Executor};
use interlock_kernel::command::Change;
use interlock_lab::scenario::{Played, Stage, Weather, play_in, read};
use std::sync::Arc;

const BOTH: &str = r#"
    scenario = "both steps run"
    [[when]]
    send = "run"
    then = { state = "pause", version = 4 }
    [[when]]
    advance = "2m"
    [then]
    state = "idle"
    data = { runs = 2 }
    version = 6
    outcome = "succeeded"
"#;

fn played(stage: &Stage, text: &str, weather: Weather) -> Played {
    let scenario = read("a.scenario.toml", text, &stage.manifest.machine);
    let scenario = scenario.unwrap_or_else(|why| panic!("{}", interlock_manifest::render(&why, false)));
    play_in(&scenario, stage, weather).unwrap()
}

#[test]
fn a_story_ends_the_same_in_every_weather() {
    let calm = played(&stage(), BOTH, Weather::Calm);
    assert_eq!(calm.misses, []);
    for weather in Weather::ALL.into_iter().filter(|weather| *weather != Weather::Unheard) {
        let played = played(&stage(), BOTH, weather);
        assert_eq!(played.misses, [], "{weather}: {}", played.told(""));
        assert_eq!(played.ends, calm.ends, "{weather}: {}", played.told(""));
        assert_eq!(played.told("") == calm.told(""), weather == Weather::Calm, "{weather} does nothing");
    }
}

#[test]
fn each_weather_does_what_it_says() {
    let mut told = String::new();
    for weather in Weather::ALL {
        told.push_str(&format!("--- {weather}\n{}", played(&stage(), BOTH, weather).told("")));
    }
    expect![[r#"
        --- calm
        0:00  it      v1  created, idle
                        data {"runs":0}
              client  it: run (e1)   accepted
              it      v2  run -> first   attempt 1, token t1
              it      v3  first saved
                        data.runs = 1
              it      v4  first -> pause
        1:30  it      v5  after -> second   attempt 1, token t2
              it      v6  second -> idle
                        data.runs = 2
        --- every lock lost
        0:00  it      v1  created, idle
                        data {"runs":0}
              client  it: run (e1)   accepted
              it      v2  run -> first   attempt 1, token t1
              host    killed before call 1 of first (save of data); boots again
              it      v2  attempt 1 lost with its host, begun again   token t2
              it      v3  first saved
                        data.runs = 1
              it      v4  first -> pause
        1:30  it      v5  after -> second   attempt 1, token t3
              host    killed before call 1 of second (transition to idle); boots again
              it      v5  attempt 1 lost with its host, begun again   token t4
              it      v6  second -> idle
                        data.runs = 2
        --- every commit unheard
        0:00  it      v1  created, idle
                        data {"runs":0}
              client  it: run (e1)   accepted
              it      v2  run -> first   attempt 1, token t1
              host    killed right after call 1 of first (save of data) is done, before the step hears of it; boots again
              it      v3  first saved
                        data.runs = 1
              it      v3  attempt 1 lost with its host, begun again   token t2
              it      v4  first saved
                        data.runs = 2
              it      v5  first -> pause
        1:30  it      v6  after -> second   attempt 1, token t3
              host    killed right after call 1 of second (transition to idle) is done, before the step hears of it; boots again
              it      v7  second -> idle
                        data.runs = 3
        --- every attempt fenced once
            0:00  it      v1  created, idle
                            data {"runs":0}
                  client  it: run (e1)   accepted
                  it      v2  run -> first   attempt 1, token t1
                  host    the attempt is ended, as by a deadline, before call 1 of first (save of data)
                  it      v2  attempt 1 failed: idle-deadline, next in 1 s
                            ended on purpose, as by its deadline
        0:01.037  it      call 1 of first (save of data): REFUSED fenced
                            expected no open attempt, got attempt 1, token t1
                  it      v2  fenced: job/it@i1.1: expected no open attempt, got attempt 1, token t1
                  it      v2  attempt 2 begun   token t2
                  it      v3  first saved
                            data.runs = 1
                  it      v4  first -> pause
        1:31.037  it      v5  after -> second   attempt 1, token t3
                  host    the attempt is ended, as by a deadline, before call 1 of second (transition to idle)
                  it      v5  attempt 1 failed: idle-deadline, next in 975 ms
                            ended on purpose, as by its deadline
        1:32.012  it      call 1 of second (transition to idle): REFUSED fenced
                            expected no open attempt, got attempt 1, token t3
                  it      v5  fenced: job/it@i1.1: expected no open attempt, got attempt 1, token t3
                  it      v5  attempt 2 begun   token t4
                  it      v6  second -> idle
                            data.runs = 2
        --- every delivery doubled
        0:00  it      v1  created, idle
                        data {"runs":0}
              client  it: run (e1)   accepted
              client  it: run (e1)   accepted, again
              it      v2  run -> first   attempt 1, token t1
              it      v3  first saved
                        data.runs = 1
              it      v4  first -> pause
        1:30  it      v5  after -> second   attempt 1, token t2
              it      v6  second -> idle
                        data.runs = 2
        --- every timer late and twice
            0:00  it      v1  created, idle
                            data {"runs":0}
                  client  it: run (e1)   accepted
                  it      v2  run -> first   attempt 1, token t1
                  it      v3  first saved
                            data.runs = 1
                  it      v4  first -> pause
        1:31.700  it      v5  after -> second   attempt 1, token t2
                  it      v5  stale timer: timer after of 1767225690000 is not of this visit
                  it      v6  second -> idle
                            data.runs = 2
    "#]].assert_eq(&told);
}

/// Steps that go by the number of their attempt.
struct Counting;

impl Executor for Counting {
    fn start(&self, attempt: Attempt) {
        if attempt.start().step.as_str() != "first" {
            return Steps.start(attempt);
        }
        tokio::spawn(async move {
            let data = crate::world::doc(&format!("{{\"runs\":{}}}", attempt.start().claim.attempt));
            let change = Change { data: Some(data), ..Change::default() };
            let moved = attempt.transition("pause".parse().unwrap(), change).await;
            drop(moved);
            attempt.finish(Ended::Returned);
        });
    }
}

#[test]
fn a_step_that_counts_again_what_it_had_saved_is_found() {
    // `first` saves its count and goes on: killed between the two, it counts twice.
    let unheard = played(&stage(), BOTH, Weather::Unheard);
    assert!(unheard.misses.iter().any(|miss| miss.what.starts_with("data.runs of it")), "{:?}", unheard.misses);
}

#[test]
fn a_step_that_stands_no_second_attempt_is_found() {
    let stage = Stage { executor: Arc::new(Counting), ..stage() };
    let unversioned = BOTH.replace(", version = 4", "").replace("version = 6", "");
    assert_eq!(played(&stage, &unversioned, Weather::Calm).misses, []);
    let lost = played(&stage, &unversioned, Weather::Lost);
    assert!(lost.misses.iter().any(|miss| miss.what.starts_with("data.runs of it")), "{:?}", lost.misses);
}
