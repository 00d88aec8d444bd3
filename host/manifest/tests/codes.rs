//! One small mistake per code, made in a good manifest: it is found, and nothing else is.

use expect_test::expect_file;
use interlock_kernel::time::WallTime;
use interlock_manifest::{CODES, Report, Severity, parse, parse_as_of, render};
use std::collections::BTreeSet;

const RESOURCE: &str = include_str!("samples/resource.toml");

/// The codes that must come, what is replaced in the resource machine, and by what.
const CASES: &[(&str, &str, &str)] = &[
    ("syntax", "kind = \"rest\"", "kind = rest"),
    ("syntax", "kind = \"rest\"", "kind = \"rest\"\nkind = \"rest\""),
    ("unknown-key", "revisions =", "revision ="),
    ("unknown-key", "value = { from = \"data.size\" }", "value = { form = \"data.size\" }, "),
    ("missing-key", "owner     =", "# owner ="),
    ("missing-key", "outcome = \"failed\"", ""),
    ("missing-key", "initial   =", "# initial ="),
    ("missing-key", "wait = \"90s\", ", ""),
    ("missing-key", "wait = \"90s\", ", "at = \"09:00\", "),
    ("missing-key", "wait = \"90s\", ", "next = \"day\", at = \"09:00\", "),
    ("missing-key", "wait = \"90s\", ", "every = \"day\", zone = \"UTC\", "),
    ("wrong-type", "transitions = 100", "transitions = \"100\""),
    ("wrong-type", "to           = [\"ready\"]", "to = \"ready\""),
    ("wrong-type", "on_permanent = { to = \"lost\" }", "on_permanent = 1"),
    ("wrong-type", "after = { wait = \"90s\", to = \"verifying\" }", "after = \"90s\""),
    ("bad-value", "to           = [\"ready\"]", "to = []"),
    ("bad-name", "machine   = \"resource\"", "machine = \"Resource\""),
    ("bad-name", "step       = \"plan\"", "step = \"plan it\""),
    ("reserved-name", "[states.lost]", "[states.killed]\nkind = \"final\"\noutcome = \"failed\"\n[states.lost]"),
    ("reserved-name", "[states.ready]", "[events.desired-changed]\n[states.ready]"),
    ("bad-choice", "on_busy = \"reject\"", "on_busy = \"wait\""),
    ("bad-choice", "op = \"ne\"", "op = \"!=\""),
    ("bad-choice", "on_exhausted = \"park\"", "on_exhausted = \"stop\""),
    ("bad-duration", "idle       = \"30s\"", "idle = \"30 seconds\""),
    ("bad-size", "64MiB", "64M"),
    ("bad-path", "field = \"event.size\"", "field = \"size\""),
    ("bad-path", "field = \"event.size\"", "field = \"row.size\""),
    ("bad-path", "set   = { \"data.target\" =", "set   = { \"desired.image\" ="),
    ("bad-path", "set   = { \"data.target\" =", "set   = { data.target ="),
    ("bad-path", "value = { from = \"data.size\" }", "value = { from = \"tomorrow\" }"),
    ("bad-path", "wait = \"90s\", ", "at = \"dat.renew\", "),
    ("bad-path", "wait = \"90s\", ", "at = \"row.renew\", "),
    ("bad-value", "wait = \"90s\", ", "wait = \"90s\", day = 1, "),
    ("bad-value", "wait = \"90s\", ", "wait = \"90s\", zone = \"UTC\", "),
    ("bad-value", "wait = \"90s\", ", "at = \"data.size\", at_least = \"1h\", "),
    ("bad-value", "wait = \"90s\", ", "day = 1, at = \"09:00\", zone = \"UTC\", holidays = [], "),
    ("bad-value", "wait = \"90s\", ", "every = \"day\", at = \"24:00\", zone = \"UTC\", "),
    ("bad-value", "wait = \"90s\", ", "every = \"day\", at = \"9:00\", zone = \"UTC\", "),
    ("bad-value", "wait = \"90s\", ", "every = \"day\", at = \"09:00\", zone = \"UTC\", holidays = [\"2026-02-29\"], "),
    ("bad-choice", "wait = \"90s\", ", "every = \"workday\", at = \"09:00\", zone = \"UTC\", "),
    ("bad-choice", "wait = \"90s\", ", "every = [\"monday\"], at = \"09:00\", zone = \"UTC\", "),
    ("bad-choice", "wait = \"90s\", ", "every = \"day\", at = \"09:00\", zone = \"Europe/Berln\", "),
    ("bad-choice", "wait = \"90s\", ", "every = \"day\", at = \"09:00\", zone = \"UTC\", calendar = \"berlin\", "),
    ("out-of-range", "wait = \"90s\", ", "day = 32, at = \"09:00\", zone = \"UTC\", "),
    ("wrong-type", "wait = \"90s\", ", "every = [], at = \"09:00\", zone = \"UTC\", "),
    ("unused-key", "[states.lost]", "[calendars.berlin]\nholidays = [\"2026-12-25\"]\n[states.lost]"),
    ("unknown-field", "wait = \"90s\", ", "at = \"data.renew_at\", "),
    ("type-mismatch", "wait = \"90s\", ", "at = \"data.nodes\", "),
    ("timer-field", "wait = \"90s\", ", "at = \"event.size\", "),
    ("missing-key", "wait = \"90s\", ", "due = \"step\", "),
    ("bad-choice", "wait = \"90s\", ", "due = \"never\", name = \"wake\", "),
    ("bad-value", "wait = \"90s\", ", "due = \"step\", wait = \"90s\", name = \"wake\", "),
    ("bad-value", "wait = \"90s\", ", "due = \"step\", at = \"data.size\", name = \"wake\", "),
    ("bad-value", "component = \"resource.wasm\"", "component = \"/resource.wasm\""),
    ("bad-value", "owner     = \"platform-team <oncall@example.com>\"", "owner = \" \""),
    ("bad-value", "value = { from = \"data.size\" }", "value = { from = \"data.size\", json = '1' }"),
    ("bad-value", "value = { from = \"data.size\" }", "value = { json = '{' }"),
    ("bad-value", "value = { from = \"data.size\" }", "value = 2026-01-01"),
    (
        "bad-value",
        "guard = { all = [{ field = \"event.size\", op = \"ne\", value = { from = \"data.size\" } }] }",
        "guard = { any = [] }",
    ),
    ("bad-value", "= { from = \"event.size\" } }", "= { size = 3 } }"),
    ("out-of-range", "dedup   = \"24h\"", "dedup = \"31d\""),
    ("out-of-range", "factor = 2.0, max = \"30s\", jitter = 0.1", "factor = 0.9, max = \"30s\", jitter = 0.1"),
    ("out-of-range", "factor = 2.0, max = \"30s\", jitter = 0.1", "factor = 2.0, max = \"30s\", jitter = 1.1"),
    ("out-of-range", "attempts = 5", "attempts = 0"),
    ("out-of-range", "first = \"1s\"", "first = \"31s\""),
    ("out-of-range", "64MiB", "5GiB"),
    ("out-of-range", "deadline   = \"15m\"", "deadline = \"0s\""),
    ("no-schema", "[events.resize.schema]", "[limits.x]"),
    ("no-schema", "[outputs.schema]", "[outputs]\n[desired.x]"),
    ("bad-schema", "type = \"string\", minLength = 1", "type = \"text\""),
    ("bad-schema", "type = \"string\", minLength = 1", "pattern = '(a)\\1'"),
    ("bad-schema", "type = \"string\", minLength = 1", "pattern = '((a{1000}){1000}){10}'"),
    ("bad-schema", "type = \"string\", minLength = 1", "format = \"emial\""),
    ("bad-schema", "type = \"string\", minLength = 1", "'$ref' = \"https://example.com/image.json\""),
    ("bad-schema", "type = \"string\", minLength = 1", "'$ref' = \"#/$defs/none\""),
    ("unknown-keyword", "minLength = 1", "minLenght = 1"),
    ("bad-default", "default = { size = 1,", "default = { size = 65,"),
    ("bad-default", "default = { size = 1,", "default = {"),
    ("initial-not-rest", "initial   = \"ready\"", "initial = \"planning\""),
    ("unknown-state", "[\"provisioning\"]", "[\"provisoning\"]"),
    ("unknown-state", "on_permanent = { to = \"lost\" }", "on_permanent = { to = \"last\" }"),
    ("unreachable-state", "on_permanent = { to = \"lost\" }", ""),
    ("wrong-kind", "kind = \"rest\"", "kind = \"rest\"\nstep = \"plan\""),
    ("wrong-kind", "kind = \"rest\"", "kind = \"rest\"\ndeadline = \"1m\""),
    ("wrong-kind", "outcome = \"failed\"", "outcome = \"failed\"\nafter = { wait = \"1s\", to = \"ready\" }"),
    ("wrong-kind", "step         = \"verify\"", "step = \"verify\"\noutcome = \"failed\""),
    ("unused-key", "after = { wait", "retry = { attempts = 3 }\nafter = { wait"),
    ("unused-key", "on_exhausted = \"park\"", "on_exhausted = \"park\"\non_failure = \"park\""),
    ("step-without-to", "to           = [\"ready\"]", "on.resize = { to = \"ready\" }"),
    ("to-without-step", "step         = \"verify\"\n", ""),
    (
        "no-way-out",
        "after = { wait = \"90s\", to = \"verifying\" }",
        "wait = \"forever\"\n[states.ready.on.x]\nto = \"verifying\"\n[events.x.schema]",
    ),
    ("no-deadline", "deadline     = \"30m\"\n", ""),
    (
        "no-deadline",
        "after = { wait = \"90s\", to = \"verifying\" }",
        "after = { wait = \"90s\", set = { \"data.size\" = 1 } }\non.resize = { to = \"verifying\" }",
    ),
    (
        "never-rests",
        "[states.lost]",
        "[states.a]\nafter = { wait = \"1s\", to = \"b\" }\n[states.b]\nafter = { wait = \"1s\", to = \"a\" }\n[states.lost]",
    ),
    ("rests-for-good", "kind    = \"final\"\noutcome = \"failed\"", "kind = \"rest\""),
    (
        "duplicate-move",
        "to           = [\"ready\"]",
        "to = [\"ready\", { to = \"ready\", set = { \"data.size\" = 1 } }]",
    ),
    (
        "duplicate-timer",
        "after = { wait = \"90s\", to = \"verifying\" }",
        "after = [{ wait = \"90s\", to = \"verifying\" }, { name = \"after\", wait = \"2m\", to = \"verifying\" }]",
    ),
    ("empty-move", "[states.ready.on.desired-changed]\nto    = \"planning\"", "[states.ready.on.desired-changed]"),
    (
        "shadowed-move",
        "[states.ready.on.desired-changed]\nto    = \"planning\"",
        "[[states.ready.on.desired-changed]]\nto = \"planning\"\n[[states.ready.on.desired-changed]]\nto = \"lost\"",
    ),
    ("no-component", "component =", "# component ="),
    ("undeclared-event", "[states.ready.on.resize]", "[states.ready.on.resise]"),
    ("unused-event", "[states.ready]\n", "[events.ping]\nschema = false\n[states.ready]\n"),
    ("unknown-field", "field = \"event.size\"", "field = \"event.sice\""),
    ("unknown-field", "set   = { \"data.target\" =", "set   = { \"data.nodes.first\" ="),
    ("unknown-field", "value = { from = \"data.size\" }", "value = { from = \"desired.size\" }"),
    (
        "unknown-field",
        "[states.ready.on.desired-changed]\n",
        "[states.ready.on.desired-changed]\nguard = { field = \"event.size\", op = \"exists\" }\n",
    ),
    ("type-mismatch", "value = { from = \"data.size\" }", "value = \"4\""),
    ("type-mismatch", "value = { from = \"data.size\" }", "value = { from = \"data.nodes\" }"),
    ("type-mismatch", "op = \"ne\", value = { from = \"data.size\" }", "op = \"in\", value = 4"),
    ("type-mismatch", "= { from = \"event.size\" } }", "= { append = 1, max = 3 } }"),
    ("bad-name", "[states.lost]", "[leases]\n\"gpu*quota\" = {}\n[states.lost]"),
    ("bad-name", "[states.lost]", "[leases]\n\"**\" = {}\n[states.lost]"),
    ("unknown-key", "[states.lost]", "[leases]\ngpu = { time = \"30s\" }\n[states.lost]"),
    ("wrong-type", "[states.lost]", "[leases]\ngpu = \"30s\"\n[states.lost]"),
    ("out-of-range", "[states.lost]", "[leases]\ngpu = { ttl = \"999ms\" }\n[states.lost]"),
    ("out-of-range", "[states.lost]", "[leases]\ngpu = { ttl = \"61m\" }\n[states.lost]"),
    ("out-of-range", "[states.lost]", "[leases]\ngpu = { ttl = \"10s\", max = \"9s\" }\n[states.lost]"),
    ("out-of-range", "[states.lost]", "[leases]\ngpu = { ttl = \"10s\", hold_max = \"9s\" }\n[states.lost]"),
    ("out-of-range", "[states.lost]", "[leases]\ngpu = { hold_max = \"31d\" }\n[states.lost]"),
    ("out-of-range", "[states.lost]", "[leases]\ngpu = { lock_delay = \"11m\" }\n[states.lost]"),
    (
        "wrong-type",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = \"gpu-quota\"\nstep = \"plan\"",
    ),
    (
        "wrong-type",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = [7]\nstep = \"plan\"",
    ),
    (
        "bad-value",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = []\nstep = \"plan\"",
    ),
    (
        "bad-value",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = [\"gpu-quota\", \"gpu-quota\"]\nstep = \"plan\"",
    ),
    (
        "bad-name",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = [\"gpu-*\"]\nstep = \"plan\"",
    ),
    (
        "missing-key",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = [{ }]\nstep = \"plan\"",
    ),
    (
        "bad-path",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = [{ from = \"now\" }]\nstep = \"plan\"",
    ),
    (
        "bad-path",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = [{ from = \"row.x\" }]\nstep = \"plan\"",
    ),
    (
        "unknown-field",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = [{ from = \"data.cluster\" }]\nstep = \"plan\"",
    ),
    (
        "type-mismatch",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = [{ from = \"data.size\" }]\nstep = \"plan\"",
    ),
    (
        "not-granted",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"30s\" }\n[states.planning]\nneeds = [\"gpu-qouta\"]\nstep = \"plan\"",
    ),
    ("not-granted", "to           = [\"ready\"]", "to = [{ to = \"ready\", requires = [\"gpu-quota\"] }]"),
    (
        "not-granted",
        "to           = [\"ready\"]",
        "to = [{ to = \"ready\", requires = [{ from = \"outputs.endpoint\" }] }]",
    ),
    (
        "unknown-key",
        "[states.ready.on.desired-changed]\n",
        "[states.ready.on.desired-changed]\nrequires = [\"gpu-quota\"]\n",
    ),
    ("wrong-kind", "outcome = \"failed\"", "outcome = \"failed\"\nneeds = [\"gpu\"]\n[leases]\ngpu = {}"),
    ("needs-without-step", "after = { wait", "needs = [{ from = \"execution\" }]\nafter = { wait"),
    (
        "lease-under-idle",
        "[states.planning]\nstep       = \"plan\"",
        "[leases]\ngpu-quota = { ttl = \"29s\" }\n[states.planning]\nneeds = [\"gpu-quota\"]\nstep = \"plan\"",
    ),
    (
        "hold-and-wait",
        "[states.ready.on.desired-changed]\nto    = \"planning\"",
        "[[states.ready.on.desired-changed]]\nto = \"ab\"\nguard = { field = \"data.size\", op = \"eq\", value = 1 }\n[[states.ready.on.desired-changed]]\nto = \"ba\"\n[states.ab]\nstep = \"plan\"\ndeadline = \"1h\"\nneeds = [\"a\"]\nto = [\"b\"]\n[states.b]\nstep = \"plan\"\ndeadline = \"1h\"\nneeds = [\"b\"]\nto = [\"ready\"]\n[states.ba]\nstep = \"plan\"\ndeadline = \"1h\"\nneeds = [\"b\"]\nto = [\"a\"]\n[states.a]\nstep = \"plan\"\ndeadline = \"1h\"\nneeds = [\"a\"]\nto = [\"ab\", \"ready\"]\n[leases]\na = {}\nb = {}",
    ),
    ("wrong-type", "owner     =", "tables = \"pending_ops\"\nowner ="),
    ("wrong-type", "owner     =", "tables = [7]\nowner ="),
    ("bad-value", "owner     =", "tables = []\nowner ="),
    ("bad-value", "owner     =", "tables = [\"pending_ops\", \"pending_ops\"]\nowner ="),
    ("bad-value", "owner     =", "peers = [\"cluster\", \"cluster\"]\nowner ="),
    ("bad-name", "owner     =", "tables = [\"Pending\"]\nowner ="),
    ("bad-name", "owner     =", "peers = [\"pending_ops\"]\nowner ="),
    ("unknown-key", "owner     =", "table = [\"pending_ops\"]\nowner ="),
    ("unused-key", "owner     =", "peers = [\"resource\"]\nowner ="),
    ("idle-over-total", "idle       = \"30s\"", "idle = \"6m\""),
    ("deadline-under-total", "deadline   = \"15m\"", "deadline = \"4m\""),
];

/// What is put into the resource machine to have requests made.
const OUTBOUND: (&str, &str) = (
    "after = { wait = \"90s\", to = \"verifying\" }",
    r#"after = { wait = "90s", to = "verifying" }
on.effect-done = { to = "verifying" }
on.effect-failed = { to = "lost" }

[targets.tickets]
url     = "https://tickets.example.com/v1/{project}"
timeout = "5s"
retry   = { attempts = 4 }
secret  = { name = "tickets", prefix = "Bearer " }
fence   = { from = "desired.image" }
on_late = { compensate = "withdraw" }

[leases]
"cluster/*" = {}

[targets.withdraw]
method  = "DELETE"
url     = "https://tickets.example.com/v1/{project}"
on_late = "event"
"#,
);

const URL: &str = "url     = \"https://tickets.example.com/v1/{project}\"\ntimeout";

/// The same for the machine with targets.
const OUTBOUND_CASES: &[(&str, &str, &str)] = &[
    ("missing-key", URL, "timeout"),
    ("missing-key", "{ compensate = \"withdraw\" }", "{}"),
    ("missing-key", "{ name = \"tickets\", prefix", "{ prefix"),
    ("unknown-key", "{ compensate = \"withdraw\" }", "{ compensate = \"withdraw\", after = \"1h\" }"),
    ("unknown-key", "timeout = \"5s\"", "timout = \"5s\""),
    ("unknown-key", "{ name = \"tickets\",", "{ name = \"tickets\", value = \"hunter2\","),
    ("wrong-type", "{ compensate = \"withdraw\" }", "3"),
    ("wrong-type", "secret  = { name = \"tickets\", prefix = \"Bearer \" }", "secret = \"hunter2\""),
    ("bad-choice", "{ compensate = \"withdraw\" }", "\"ignore\""),
    ("bad-choice", "timeout = \"5s\"", "on_dead_letter = \"drop\""),
    ("bad-value", "method  = \"DELETE\"", "method = \"CONNECT\""),
    ("bad-value", "method  = \"DELETE\"", "method = \"delete\""),
    ("bad-value", URL, "url = \"ftp://tickets\"\ntimeout"),
    ("bad-value", URL, "url = \"https://{host}/\"\ntimeout"),
    ("bad-value", URL, "url = \"https://tickets.example.com/**\"\ntimeout"),
    ("bad-value", "prefix = \"Bearer \"", "header = \"Interlock-Token\""),
    ("bad-value", "prefix = \"Bearer \"", "header = \"Host\""),
    ("bad-value", "prefix = \"Bearer \"", "header = \"Content-Length\""),
    ("bad-path", "fence   = { from = \"desired.image\" }", "fence = { from = \"cluster\" }"),
    ("unknown-field", "fence   = { from = \"desired.image\" }", "fence = { from = \"desired.cluster\" }"),
    ("type-mismatch", "fence   = { from = \"desired.image\" }", "fence = { from = \"data.size\" }"),
    ("wrong-type", "fence   = { from = \"desired.image\" }", "fence = []"),
    ("bad-name", "fence   = { from = \"desired.image\" }", "fence = \"\""),
    ("out-of-range", "timeout = \"5s\"", "timeout = \"1h\""),
    ("out-of-range", "{ attempts = 4 }", "{ attempts = 0 }"),
    ("out-of-range", "timeout = \"5s\"", "answer_max = \"1MiB\""),
    ("bad-name", "[targets.withdraw]", "[targets.withdraw_it]"),
    ("not-granted", "fence   = { from = \"desired.image\" }", "fence = \"clutser/a\""),
    ("not-granted", "\"cluster/*\" = {}", ""),
    ("unknown-target", "compensate = \"withdraw\"", "compensate = \"withdrew\""),
    ("unknown-target", "compensate = \"withdraw\"", "compensate = \"undo\""),
    ("late-effect", "on_late = { compensate = \"withdraw\" }", ""),
    ("unused-event", "on.effect-done = { to = \"verifying\" }\n", ""),
    ("unused-event", "on.effect-failed = { to = \"lost\" }\n", ""),
    (
        "effect-wait",
        "on.effect-failed = { to = \"lost\" }\n",
        "on.effect-failed = { to = \"lost\" }\n[states.held]\nwait = \"forever\"\non.effect-done = { to = \"ready\" }\n",
    ),
    (
        "undeclared-event",
        "on.effect-failed = { to = \"lost\" }\n",
        "on.effect-failed = { to = \"lost\" }\non.effect-dropped = { to = \"lost\" }\n",
    ),
    ("reserved-name", "[targets.tickets]", "[events.effect-done]\n[events.effect-failed]\n[targets.tickets]"),
];

/// Codes that come together in a case above, because one mistake has two sides.
fn allowed(code: &str) -> &'static [&'static str] {
    match code {
        "bad-name" => &["unknown-target"],
        "undeclared-event" => &["unused-event"],
        "no-schema" => &["unknown-key"],
        "effect-wait" => &["unreachable-state"],
        "never-rests" => &["unreachable-state"],
        "to-without-step" => &["unused-key"],
        "needs-without-step" => &["not-granted"],
        _ => &[],
    }
}

#[test]
fn every_code_is_found_where_its_mistake_is() {
    let mut golden = String::new();
    let mut wrong = String::new();
    let outbound = RESOURCE.replace(OUTBOUND.0, OUTBOUND.1);
    assert_eq!(render(&parse("machine.toml", &outbound), false), "");
    let all = CASES.iter().map(|case| (RESOURCE, case));
    for (base, (code, find, replace)) in all.chain(OUTBOUND_CASES.iter().map(|case| (&*outbound, case))) {
        if base.matches(find).count() != 1 {
            wrong.push_str(&format!("{code}: {find:?} does not stand there once\n"));
        }
        let report = parse("machine.toml", &base.replace(find, replace));
        golden.push_str(&format!("-- {find:?} -> {replace:?}\n"));
        for problem in &report.problems {
            golden.push_str(&format!(
                "{}:{} {}[{}] {} | {}\n",
                problem.line, problem.column, problem.severity, problem.code, problem.message, problem.remedy
            ));
            let fine = problem.code == *code || allowed(code).contains(&problem.code);
            if !fine {
                wrong.push_str(&format!(
                    "{code}: {find:?} -> {replace:?} is also {}: {}\n",
                    problem.code, problem.message
                ));
            }
            assert!(!problem.remedy.is_empty(), "{code} has no remedy");
        }
        let severity = CODES.iter().find(|(known, ..)| known == code).map(|(_, severity, _)| *severity);
        let found = report.problems.iter().find(|problem| problem.code == *code);
        if found.map(|problem| problem.severity) != severity {
            wrong.push_str(&format!("{code}: {find:?} -> {replace:?} is not found\n"));
        }
        assert_eq!(report.manifest.is_some(), report.count(Severity::Error) == 0);
    }
    assert_eq!(wrong, "");
    expect_file!["golden/codes.txt"].assert_eq(&golden);
}

#[test]
fn every_code_has_a_case() {
    let cases: BTreeSet<&str> = CASES.iter().chain(OUTBOUND_CASES).map(|(code, ..)| *code).collect();
    let codes: BTreeSet<&str> = CODES.iter().map(|(code, ..)| *code).collect();
    // Those of tables alone have theirs in `tables.rs`.
    let elsewhere = BTreeSet::from([
        "holidays-end",
        "too-large",
        "claim-not-held",
        "still-held",
        "no-release",
        "refused-change",
        "unserved-claim",
        "claims-again",
        "no-access",
    ]);
    assert_eq!(codes, cases.union(&elsewhere).copied().collect::<BTreeSet<_>>());
    assert_eq!(codes.len(), CODES.len(), "a code stands for one thing");
}

#[test]
fn holidays_that_end_within_a_year_are_told_to_whoever_knows_the_day() {
    let rule = "next = \"business day\", at = \"09:00\", zone = \"UTC\", holidays = [\"2026-12-25\"], ";
    let text = RESOURCE.replace("wait = \"90s\", ", rule);
    let codes = |report: Report| report.problems.iter().map(|problem| problem.code).collect::<Vec<_>>();
    assert_eq!(codes(parse("machine.toml", &text)), Vec::<&str>::new());
    let as_of = |ms: i64| parse_as_of(WallTime(ms), "machine.toml", &text);
    assert_eq!(codes(as_of(1_735_689_599_999)), Vec::<&str>::new(), "2024-12-31");
    let report = as_of(1_767_225_600_000);
    assert_eq!(report.problems[0].message, "the holidays of this timer end with 2026: behind it, it is refused");
    assert_eq!(codes(report), ["holidays-end"], "2026-01-01");
    let without = RESOURCE.replace("wait = \"90s\", ", "next = \"day\", at = \"09:00\", zone = \"UTC\", ");
    assert_eq!(codes(parse_as_of(WallTime(1_767_225_600_000), "machine.toml", &without)), Vec::<&str>::new());
}

#[test]
fn a_timer_that_is_left_to_steps_wants_one_that_can_set_it() {
    let step = "due = \"step\", name = \"wake\", ";
    let found = |text: &str| {
        let report = parse("machine.toml", text);
        let found = report.problems.iter().map(|problem| format!("{}: {}", problem.code, problem.message));
        found.collect::<Vec<_>>()
    };
    let entered_by_a_step = RESOURCE.replace("wait = \"90s\", ", step);
    assert_eq!(found(&entered_by_a_step), Vec::<String>::new());
    let by_a_failure_too =
        entered_by_a_step.replace("on_exhausted = \"park\"", "on_exhausted = { to = \"provisioning\" }");
    assert_eq!(
        found(&by_a_failure_too),
        ["timer-field: `provisioning` is also entered by a failure of `verifying`, which sets no timer: refused"]
    );
    let bounded = by_a_failure_too.replace("[states.verifying]", "deadline = \"1h\"\n[states.verifying]");
    assert_eq!(found(&bounded), Vec::<String>::new());
    let by_none = RESOURCE.replace(
        "on_permanent = { to = \"lost\" }",
        &format!("on_permanent = {{ to = \"held\" }}\n[states.held]\nafter = {{ {step} to = \"lost\" }}"),
    );
    assert_eq!(
        found(&by_none),
        ["timer-field: no step sets the timer `wake`: none runs in `held`, and none enters it"]
    );
}

#[test]
fn leases_that_every_way_takes_in_the_same_order_are_no_trap() {
    let machine = |of_the_second: &str| {
        let second = format!("step         = \"verify\"\nneeds = {of_the_second}");
        let granted = "\n[leases]\na = {}\nb = {}\n";
        let first = RESOURCE.replace("step       = \"plan\"", "step = \"plan\"\nneeds = [\"a\"]");
        let again = first.replace("to           = [\"ready\"]", "to = [\"ready\", \"planning\"]");
        let report = parse("machine.toml", &(again.replace("step         = \"verify\"", &second) + granted));
        assert!(report.manifest.is_some(), "{}", render(&report, false));
        report.problems.iter().map(|problem| problem.code).collect::<Vec<_>>()
    };
    // The way back from the second to the first finds it has both: it waits for nothing there.
    assert_eq!(machine("[\"b\"]"), Vec::<&str>::new());
    assert_eq!(machine("[\"b\", \"a\"]"), Vec::<&str>::new());
}

#[test]
fn a_machine_whose_leases_can_be_had_in_thousands_of_ways_is_not_judged_and_not_slow() {
    let names: Vec<String> = (0..60).map(|n| format!("s{n}")).collect();
    let to: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let states: String = names
        .iter()
        .map(|name| {
            format!(
                "[states.{name}]\nstep = \"x\"\ndeadline = \"1h\"\nneeds = [{name:?}]\nto = [\"lost\", {}]\n",
                to.join(", ")
            )
        })
        .collect();
    let text = RESOURCE.replace("[\"provisioning\"]", &format!("[\"provisioning\", {}]", to.join(", ")))
        + &format!("\n[leases]\n\"s*\" = {{}}\n{states}");
    let report = parse("machine.toml", &text);
    assert!(report.problems.is_empty(), "{}", render(&report, false));
}

#[test]
fn a_lease_is_granted_by_name_or_by_the_beginning_of_one() {
    let found = |granted: &str, needs: &str| {
        let text = RESOURCE.replace("step       = \"plan\"", &format!("step = \"plan\"\nneeds = [{needs:?}]"));
        let report = parse("machine.toml", &format!("{text}\n[leases]\n{granted}\n"));
        report.problems.iter().map(|one| format!("{} | {}", one.code, one.remedy)).collect::<Vec<_>>()
    };
    assert_eq!(found("\"gpu-*\" = {}", "gpu-3"), Vec::<String>::new());
    assert_eq!(found("\"*\" = {}", "gpu-3"), Vec::<String>::new());
    assert_eq!(found("gpu-3 = {}", "gpu-4"), ["not-granted | did you mean `gpu-3`?"]);
    assert_eq!(
        found("\"gpu-*\" = {}", "licence"),
        ["not-granted | grant it: [leases] \"licence\" = { ttl = \"30s\" }"]
    );
    // The terms of the longest beginning that fits are the ones that count, as in the kernel.
    let terms = "\"gpu-*\" = { ttl = \"10s\" }\n\"gpu-big-*\" = { ttl = \"1m\" }";
    assert_eq!(found(terms, "gpu-big-1"), Vec::<String>::new());
    assert_eq!(found(terms, "gpu-1"), ["lease-under-idle | let `ttl` be at least 30 s, or `idle` at most 10 s"]);
}

#[test]
fn what_the_host_would_not_store_is_too_large() {
    let too_large = |find: &str, replace: &str| {
        let report = parse("machine.toml", &RESOURCE.replace(find, replace));
        let codes: BTreeSet<&str> = report.problems.iter().map(|problem| problem.code).collect();
        assert_eq!(
            codes,
            BTreeSet::from(["too-large"]),
            "{}",
            render(&report, false).lines().take(20).collect::<Vec<_>>().join("\n")
        );
    };
    let nodes = vec!["\"0123456789\""; 30_000].join(",");
    too_large("nodes = [] }", &format!("nodes = [{nodes}] }}"));
    let labels: Vec<String> = (0..33).map(|n| format!("l{n} = \"x\"")).collect();
    too_large("{ project = \"demo\" }", &format!("{{ {} }}", labels.join(", ")));
    too_large("{ project = \"demo\" }", &format!("{{ x = \"{}\" }}", "y".repeat(257)));
    let set: Vec<String> = (0..65).map(|n| format!("\"data.nodes[{n}]\" = \"x\"")).collect();
    too_large("set   = { \"data.target\" = { from = \"event.size\" } }", &format!("set = {{ {} }}", set.join(", ")));
    let needs: Vec<String> = (0..9).map(|n| format!("\"gpu-{n}\"")).collect();
    too_large(
        "[states.planning]\n",
        &format!("[leases]\n\"gpu-*\" = {{}}\n[states.planning]\nneeds = [{}]\n", needs.join(", ")),
    );
    let nested = format!("{}1{}", format!("{{ {} = ", ["a"; 40].join(".")).repeat(4), "}".repeat(4));
    too_large("nodes = [] }", &format!("nodes = [], deep = {nested} }}"));
    too_large("# A pool", &format!("# {}", "x".repeat(3 << 20)));
}

#[test]
fn tables_and_peers_are_for_steps() {
    let machine = |body: &str| {
        let text = format!("machine = \"door\"\nowner = \"o\"\ninitial = \"shut\"\n{body}");
        let report = parse("machine.toml", &text);
        let told = report.problems.iter().filter(|problem| problem.code == "unused-key");
        (report.manifest.map(|one| one.machine), told.map(|problem| problem.message.clone()).collect::<Vec<_>>())
    };
    let named = "tables = [\"pending_ops\", \"done\"]\npeers = [\"cluster\"]\n";
    let stepless = "[states.shut]\nkind = \"rest\"\nafter = { wait = \"1s\", to = \"shut\" }\n";
    let (_, told) = machine(&format!("{named}{stepless}"));
    assert_eq!(
        told,
        ["pending_ops", "done"]
            .map(|name| format!("nothing uses the table `{name}`: no state has a step"))
            .into_iter()
            .chain(["nothing uses the peer `cluster`: no state has a step".to_owned()])
            .collect::<Vec<_>>()
    );
    let with_step = "[states.open]\nstep = \"push\"\nto = [\"shut\"]\ndeadline = \"1m\"\n\
        [states.shut]\nkind = \"rest\"\nafter = { wait = \"1s\", to = \"open\" }\n";
    let (machine, told) = machine(&format!("component = \"x.wasm\"\n{named}{with_step}"));
    assert_eq!(told, Vec::<String>::new());
    let machine = machine.expect("a machine");
    assert_eq!(machine.tables.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["done", "pending_ops"]);
    assert_eq!(machine.peers.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["cluster"]);
}
