//! The examples of `docs/timers.md` are manifests without a mistake.

use interlock_manifest::{parse, render};

const PAGE: &str = include_str!("../../../docs/timers.md");

const AROUND: &str = r#"
machine = "m"
owner   = "o"
initial = "calm"
component = "m.wasm"
desired.schema = false
outputs.schema = false
[events.work]
schema = false
[data.schema]
properties.renew_at = { type = "string", format = "date-time" }
properties.nudges = { type = "integer" }
[states.verifying]
kind = "rest"
after = { wait = "1s", to = "calm" }
[states.renewing]
kind = "rest"
after = { wait = "1s", to = "calm" }
[states.calling]
kind = "rest"
after = { wait = "1s", to = "calm" }
[states.billing]
kind = "rest"
after = { wait = "1s", to = "calm" }
[states.working]
step = "work"
to = ["calm"]
deadline = "1h"
[states.calm]
kind = "rest"
on.work = { to = "working" }
"#;

fn examples() -> Vec<&'static str> {
    PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split_once("\n```")).map(|(example, _)| example).collect()
}

#[test]
fn every_example_of_the_page_on_timers_is_a_good_manifest() {
    let examples = examples();
    assert_eq!(examples.len(), 4);
    for example in examples {
        let report = parse("timers.md", &format!("{AROUND}{example}\n"));
        // Each example enters some of the states only.
        let others: Vec<_> = report.problems.iter().filter(|problem| problem.code != "unreachable-state").collect();
        assert!(others.is_empty() && report.manifest.is_some(), "{}", render(&report, false));
    }
}
