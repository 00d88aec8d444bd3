//! Requests in stories and searches: targets that are down, slow, or lose their answers.

use crate::world::doc;
use interlock_coordinator::{Attempt, Ended, Executor, SubmitError};
use interlock_kernel::command::{Change, Stage as Staged, StagedEffect};
use interlock_kernel::record::Failure;
use interlock_lab::explore::{Options, explore, replay};
use interlock_lab::scenario::{Played, Stage, play, read};
use std::sync::Arc;

const DESK: &str = r#"
machine = "desk"
owner   = "tests <tests@example.com>"
initial = "idle"
component = "desk.wasm"
desired.schema = false
outputs.schema = false
data = { default = { asked = false }, schema = { type = "object" } }
events.open.schema = false

[states.idle]
kind = "rest"
on.open = { to = "filing" }

[states.filing]
step = "file"
to   = ["asking"]
deadline = "1h"
retry = { attempts = 3, first = "1s", jitter = 0 }
on_failure = { to = "idle" }

[states.asking]
deadline = "1d"
on_failure = { to = "idle" }
on.effect-done   = { to = "idle", set = { "data.ticket" = { from = "event.body.id" } } }
on.effect-failed = { to = "idle", set = { "data.why" = { from = "event.code" } } }

[targets.tickets]
url     = "https://tickets.example.com/v1/{project}"
timeout = "5s"
retry   = { attempts = 6, first = "1s", factor = 2.0, max = "1m", jitter = 0 }
on_late = "event"
"#;

/// Asks for a ticket, with the move or with a save before it.
#[derive(Clone, Copy, PartialEq)]
enum Files {
    WithTheMove,
    BeforeTheMove,
}

impl Executor for Files {
    fn start(&self, attempt: Attempt) {
        let files = *self;
        tokio::spawn(async move {
            let gate = attempt.gate();
            let done = tokio::select! {
                biased;
                closed = gate.closed() => Err(closed.why.to_owned()),
                done = file(&attempt, files) => done.map_err(|no| no.rejection().map_or("store".to_owned(), |no| no.code.to_string())),
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

async fn file(attempt: &Attempt, files: Files) -> Result<(), SubmitError> {
    let effect = StagedEffect {
        target: "tickets".parse().unwrap(),
        fill: [("project".to_owned(), "atlas".to_owned())].into(),
        headers: Vec::new(),
        body: Some(doc(r#"{"title":"a disk","size":4}"#)),
    };
    let asks = Change { stage: Staged { effects: vec![effect], ..Staged::default() }, ..Change::default() };
    let asking = "asking".parse().unwrap();
    match files {
        Files::WithTheMove => attempt.transition(asking, asks).await.map(drop),
        Files::BeforeTheMove => {
            attempt.save(asks).await?;
            attempt.transition(asking, Change::default()).await.map(drop)
        }
    }
}

fn stage(files: Files) -> Stage {
    let report = interlock_manifest::parse("machine.toml", DESK);
    let manifest = report.manifest.unwrap_or_else(|| panic!("{:?}", report.problems));
    Stage {
        manifest,
        component: Some(interlock_kernel::doc::Digest::of(&[b"desk"])),
        tables: Vec::new(),
        executor: Arc::new(files),
    }
}

fn played(text: &str) -> Played {
    let stage = stage(Files::WithTheMove);
    let scenario =
        read("desk.scenario.toml", text, &stage.manifest.machine).unwrap_or_else(|report| panic!("{report:?}"));
    play(&scenario, &stage).unwrap()
}

/// What is not as the scenario says.
fn misses(text: &str) -> Vec<String> {
    played(text)
        .misses
        .iter()
        .map(|miss| format!("{}: expected {}, got {}", miss.what, miss.expected, miss.got))
        .collect()
}

const NONE: Vec<String> = Vec::new();

const TROUBLE: &str = r#"
scenario = "a target that is down, hangs and loses its answer"
[[replies]]
target = "tickets"
what   = "down"
times  = 1
[[replies]]
target = "tickets"
what   = "hang"
times  = 1
[[replies]]
target = "tickets"
status = 503
times  = 1
[[replies]]
target = "tickets"
what   = "lost"
status = 201
body   = { id = "T-1" }
times  = 1
[[replies]]
target = "tickets"
status = 201
body   = { id = "T-2" }
[[when]]
send = "open"
then = { state = "asking", made = [] }
[[when]]
crash = true
[[when]]
advance = "until-idle"
[then]
state = "idle"
data  = { ticket = "T-1" }
made  = [{ target = "tickets", url = "https://tickets.example.com/v1/atlas", body = { title = "a disk" }, tries = 5 }]
"#;

#[test]
fn one_request_over_all_tries_whatever_becomes_of_them() {
    let played = played(TROUBLE);
    assert_eq!(played.misses, []);
    // 1 s, then 5 s until the timeout and 2 s, then 4 s, then 8 s.
    assert_eq!(played.passed_ms, 20_000);
    let told = played.told("");
    for line in ["is not reached", "try 2: POST https://tickets.example.com/v1/atlas   nobody answers", "503"] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    for line in ["201, and the answer is lost", "try 5: POST https://tickets.example.com/v1/atlas   201, as before"] {
        assert!(told.contains(line), "{line}\n{told}");
    }
}

#[test]
fn a_host_that_dies_while_a_request_is_under_way_makes_it_again() {
    let text = r#"
scenario = "killed while nobody answers"
[[replies]]
target = "tickets"
what   = "hang"
times  = 1
[[when]]
send = "open"
then = { state = "asking", made = [{ target = "tickets", tries = 1 }] }
[[when]]
crash = true
[then]
state = "asking"
made  = [{ target = "tickets", tries = 2 }]
"#;
    // Answered without a body: the ticket has no id, and the result is on record without being taken.
    assert_eq!(misses(text), NONE);
}

#[test]
fn a_refusal_and_a_target_that_never_comes_back_are_events() {
    let with = |replies: &str, why: &str, tries: u32| {
        format!(
            "scenario = \"given up\"\n[[replies]]\ntarget = \"tickets\"\n{replies}\n[[when]]\nsend = \"open\"\n[[when]]\n\
             advance = \"until-idle\"\n[then]\nstate = \"idle\"\ndata = {{ why = \"{why}\" }}\n\
             made = [{{ target = \"tickets\", tries = {tries} }}]\n"
        )
    };
    assert_eq!(misses(&with("status = 422", "refused", 1)), NONE);
    assert_eq!(misses(&with("status = 412", "fenced", 1)), NONE);
    assert_eq!(misses(&with("status = 503", "exhausted", 6)), NONE);
}

#[test]
fn requests_that_were_not_made_or_not_so_are_missed() {
    let text = |made: &str| format!("scenario = \"missed\"\n[[when]]\nsend = \"open\"\n[then]\nmade = {made}\n");
    let got = r#"got tickets POST https://tickets.example.com/v1/atlas {"size":4,"title":"a disk"}"#;
    let missed = |made: &str, expected: &str| {
        assert_eq!(misses(&text(made)), [format!("requests of it, at 0:00: expected {expected}, {got}")]);
    };
    missed("[]", "none");
    missed("[{ target = \"tickets\" }, { target = \"tickets\" }]", "tickets | tickets");
    missed("[{ target = \"tickets\", tries = 2 }]", "tickets (2 tries)");
    missed("[{ target = \"tickets\", url = \"https://x/\" }]", "tickets https://x/");
    missed("[{ target = \"tickets\", body = { size = 5 } }]", r#"tickets {"size":5}"#);
    assert_eq!(misses(&text("{ target = \"tickets\", body = { size = 4 } }")), NONE);
}

#[test]
fn what_is_written_of_targets_is_looked_up() {
    let stage = stage(Files::WithTheMove);
    let problems = |more: &str| {
        let text = format!("scenario = \"wrong\"\n[[when]]\nsend = \"open\"\n{more}\n");
        let report = read("desk.scenario.toml", &text, &stage.manifest.machine).unwrap_err();
        report.problems.iter().map(|problem| format!("{}: {}", problem.code, problem.message)).collect::<Vec<_>>()
    };
    let unknown = "unknown-target: the machine has no target `ticket`";
    assert_eq!(problems("[[replies]]\ntarget = \"ticket\""), [unknown]);
    assert_eq!(problems("[then]\nmade = [{ target = \"ticket\" }]"), [unknown]);
    assert_eq!(problems("[[always]]\nname = \"x\"\nmade = { target = \"ticket\", at_most = 1 }"), [unknown]);
    let answered = "bad-value: `replies[0]` has an answer, and nobody answers";
    assert_eq!(problems("[[replies]]\ntarget = \"tickets\"\nwhat = \"down\"\nstatus = 200"), [answered]);
    let promises = "says-nothing: `always[0].made` promises nothing";
    assert_eq!(problems("[[always]]\nname = \"x\"\nmade = { target = \"tickets\" }"), [promises]);
}

const ONE_TICKET: &str = r#"
scenario = "a desk opens a ticket"
[[replies]]
target = "tickets"
status = 201
body   = { id = "T-1" }
[[when]]
send = "open"
[[always]]
name = "one ticket at most"
made = { target = "tickets", at_most = 1 }
"#;

#[test]
fn a_search_finds_the_second_request_and_none_where_the_move_carries_it() {
    let options = Options::default();
    let search = |files| {
        let stage = stage(files);
        let scenario = read("desk.scenario.toml", ONE_TICKET, &stage.manifest.machine).unwrap();
        let found = explore(&scenario, &stage, options).unwrap();
        (scenario, stage, found)
    };
    let (.., sound) = search(Files::WithTheMove);
    assert!(sound.broken.is_none() && sound.stopped.is_none(), "{:?}", sound.broken);
    assert!(sound.counts.unanswered > 0 && sound.counts.crash_points > 0, "{:?}", sound.counts);
    let (scenario, stage, faulty) = search(Files::BeforeTheMove);
    let told = faulty.broken.unwrap();
    let broken = told.broken.as_ref().unwrap();
    assert_eq!(
        (broken.promise.as_str(), broken.expected.as_str()),
        ("one ticket at most", "at most 1 request on tickets")
    );
    let again = replay(&scenario, &stage, options, &told.path).unwrap();
    assert_eq!(again.broken.as_ref(), Some(broken), "{}", told.path);
    // The same again is the same again.
    let (.., once_more) = search(Files::BeforeTheMove);
    assert_eq!(once_more.broken.unwrap().path, told.path);
}
