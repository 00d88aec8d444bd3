//! Schedules: what their author is told, and when a rule comes, where a zone's clocks jump too.

use expect_test::{Expect, expect};
use interlock_kernel::schedule::{CatchUp, Overlap, Recurrence, Schedule};
use interlock_kernel::time::WallTime;
use interlock_kernel::view::Rules;
use interlock_manifest::{RuleBook, parse_schedule, render, times};
use jiff::Timestamp;

const DRAIN: &str = include_str!("samples/drain-mail.schedule.toml");

fn good(text: &str) -> Schedule {
    match parse_schedule("drain-mail.schedule.toml", text) {
        Ok((schedule, report)) => {
            assert_eq!(render(&report, false), "");
            schedule
        }
        Err(report) => panic!("{}", render(&report, false)),
    }
}

#[test]
fn a_good_schedule_is_what_it_says() {
    let schedule = good(DRAIN);
    assert_eq!((schedule.name.as_str(), schedule.owner.as_str()), ("drain-mail", "mail team <mail@example.com>"));
    assert_eq!(schedule.rule.to_string(), "*/5 8-17 * * MON-FRI Europe/Berlin");
    assert_eq!((schedule.entity.to_string().as_str(), schedule.event.as_str()), ("queue/mail", "drain"));
    assert_eq!(schedule.payload.expect("a payload").text(), r#"{"kind":"all"}"#);
    assert_eq!(schedule.due_field.as_deref(), Some("due"));
    let create = schedule.create.expect("made");
    assert_eq!((create.desired.expect("desired").text(), create.labels["team"].as_str()), (r#"{"size":10}"#, "mail"));
    assert_eq!((schedule.overlap, schedule.catch_up), (Overlap::Queue, CatchUp::All(86_400_000)));
}

#[test]
fn what_is_left_out_is_the_careful_choice() {
    let text = "schedule = \"s\"\nowner = \"o\"\ncron = \"@daily\"\nzone = \"UTC\"\nentity = \"m/k\"\nevent = \"e\"\n";
    let schedule = good(text);
    assert_eq!((schedule.overlap, schedule.catch_up), (Overlap::Skip, CatchUp::Latest));
    assert_eq!((schedule.create, schedule.payload, schedule.due_field), (None, None, None));
    assert_eq!(good(&format!("{text}catch_up = \"none\"\n")).catch_up, CatchUp::None);
    assert_eq!(good(&format!("{text}create = {{}}\n")).create, Some(interlock_kernel::schedule::Creation::default()));
}

#[test]
fn an_editor_marks_what_the_parser_refuses() {
    let schema = jsonschema(interlock_manifest::SCHEDULE_SCHEMA);
    let check = |text: &str| schema(&toml_json(text));
    assert!(check(DRAIN));
    for (find, replace) in [
        ("owner    =", "ovner ="),
        ("\"drain-mail\"", "\"Drain\""),
        ("\"queue/mail\"", "\"queue\""),
        ("\"queue\"\n", "\"wait\"\n"),
        ("{ all = \"1d\" }", "\"all\""),
        ("{ all = \"1d\" }", "{ all = 1 }"),
        ("{ desired = { size = 10 }, labels", "{ desire = { size = 10 }, labels"),
    ] {
        assert_eq!(DRAIN.matches(find).count(), 1, "{find}");
        let bad = DRAIN.replace(find, replace);
        assert!(!check(&bad), "{replace}");
        assert!(parse_schedule("s", &bad).is_err(), "{replace}");
    }
}

fn toml_json(text: &str) -> serde_json::Value {
    toml::from_str(text).expect("TOML")
}

fn jsonschema(text: &str) -> impl Fn(&serde_json::Value) -> bool + use<> {
    let schema = jsonschema::validator_for(&serde_json::from_str(text).expect("JSON")).expect("a schema");
    move |value| schema.is_valid(value)
}

#[track_caller]
fn told(find: &str, replace: &str, wanted: Expect) {
    assert_eq!(DRAIN.matches(find).count(), 1, "{find}");
    let report = parse_schedule("drain-mail.schedule.toml", &DRAIN.replace(find, replace)).expect_err(replace);
    let lines: Vec<String> = report
        .problems
        .iter()
        .map(|problem| format!("{}:{} {} -> {}", problem.line, problem.code, problem.message, problem.remedy))
        .collect();
    wanted.assert_eq(&lines.join("\n"));
}

#[test]
fn every_mistake_is_told_where_it_stands_with_what_is_allowed() {
    told(
        "*/5 8-17 * * MON-FRI",
        "*/5 8-17 * *",
        expect![[
            r#"6:bad-value "*/5 8-17 * *" is no rule of cron: Pattern must have 5 fields when seconds are disallowed. -> write minute, hour, day of the month, month and day of the week, as in "30 9 * * MON-FRI""#
        ]],
    );
    told(
        "*/5 8-17 * * MON-FRI",
        "0 */5 8-17 * * MON-FRI",
        expect![[
            r#"6:bad-value "0 */5 8-17 * * MON-FRI" is no rule of cron: Pattern must have 5 fields when seconds are disallowed. -> write minute, hour, day of the month, month and day of the week, as in "30 9 * * MON-FRI""#
        ]],
    );
    told(
        "*/5 8-17 * * MON-FRI",
        "99 8 * * *",
        expect![[
            r#"6:bad-value "99 8 * * *" is no rule of cron: Number out of bounds. -> write minute, hour, day of the month, month and day of the week, as in "30 9 * * MON-FRI""#
        ]],
    );
    told(
        "*/5 8-17 * * MON-FRI",
        "0 0 30 2 *",
        expect![[r#"6:bad-value "0 0 30 2 *" never comes -> name a day that there is"#]],
    );
    told(
        "*/5 8-17 * * MON-FRI",
        "often",
        expect![[
            r#"6:bad-value "often" is no rule of cron: Pattern must have 5 fields when seconds are disallowed. -> write minute, hour, day of the month, month and day of the week, as in "30 9 * * MON-FRI""#
        ]],
    );
    told(
        "Europe/Berlin",
        "Europe/Berln",
        expect![[r#"7:bad-choice there is no time zone "Europe/Berln" -> did you mean `Europe/Berlin`?"#]],
    );
    told(
        "\"queue/mail\"",
        "\"queue\"",
        expect![[r#"9:bad-name "queue" is not an entity: bad entity -> write machine/key"#]],
    );
    told(
        "\"queue\"\n",
        "\"wait\"\n",
        expect![[r#"16:bad-choice `overlap` cannot be "wait" -> use one of `skip`, `queue`, `deliver`"#]],
    );
    told(
        "{ all = \"1d\" }",
        "{ all = \"1s\" }",
        expect!["17:out-of-range `catch_up.all` is out of range: 1 s -> use 60 s to 366 d"],
    );
    told(
        "{ all = \"1d\" }",
        "5",
        expect![[
            r#"17:wrong-type `catch_up` is an integer, not a policy -> write "none", "latest" or { all = "1d" }"#
        ]],
    );
    told(
        "due_field = \"due\"",
        "due_field = \"kind\"",
        expect![
            "12:bad-value the payload has a field `kind` already -> take it out of the payload, or name another field"
        ],
    );
    told(
        "{ kind = \"all\" }",
        "[1]",
        expect!["11:wrong-type `payload` is an array, not a table -> a payload with a due time is a table of fields"],
    );
    told(
        "owner    =",
        "ovner =",
        expect![[r#"
        1:missing-key the schedule has no `owner` -> say who answers for it: owner = "team <mail@example.com>"
        3:unknown-key a schedule has no key `ovner` -> did you mean `owner`?"#]],
    );
}

fn wall(text: &str) -> WallTime {
    WallTime(text.parse::<Timestamp>().expect(text).as_millisecond())
}

fn rule(cron: &str, zone: &str) -> Recurrence {
    Recurrence { cron: cron.to_owned(), zone: zone.to_owned() }
}

/// The next times after `from`, and back from the last of them the same ones.
#[track_caller]
fn come(rule: &Recurrence, from: &str, wanted: &[&str]) {
    let found = times(rule, wall(from), wanted.len());
    let shown: Vec<String> =
        found.iter().map(|at| Timestamp::from_millisecond(at.0).expect("an instant").to_string()).collect();
    let wanted: Vec<String> = wanted.iter().map(|text| text.parse::<Timestamp>().expect(text).to_string()).collect();
    assert_eq!(shown, wanted, "{rule} from {from}");
    let book = RuleBook::new();
    for (nth, at) in found.iter().enumerate() {
        assert_eq!(book.latest(rule, *at), Ok(*at), "{rule}: at {}", wanted[nth]);
        assert_eq!(book.latest(rule, WallTime(at.0 + 999)), Ok(*at), "{rule}: within the second of {}", wanted[nth]);
        if let Some(before) = nth.checked_sub(1) {
            assert_eq!(book.latest(rule, WallTime(at.0 - 1)), Ok(found[before]), "{rule}: before {}", wanted[nth]);
        }
    }
}

#[test]
fn a_rule_comes_by_the_clocks_of_its_zone() {
    let nine = rule("0 9 * * MON-FRI", "Europe/Berlin");
    come(&nine, "2026-12-04T08:00:00Z", &["2026-12-07T08:00:00Z", "2026-12-08T08:00:00Z"]);
    come(&nine, "2026-12-04T07:59:59.999Z", &["2026-12-04T08:00:00Z"]);
    come(&nine, "2026-07-03T06:59:00Z", &["2026-07-03T07:00:00Z", "2026-07-06T07:00:00Z"]);
    come(&rule("0 0 29 2 *", "UTC"), "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]);
    come(&rule("@daily", "Asia/Kathmandu"), "2026-01-01T00:00:00Z", &["2026-01-01T18:15:00Z"]);
    // Either day fits where both are named.
    come(&rule("0 0 13 * FRI", "UTC"), "2026-11-12T00:00:00Z", &["2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"]);
}

#[test]
fn a_time_that_the_clocks_jump_over_comes_at_the_jump_and_one_they_show_twice_once() {
    // Berlin jumps from 02:00 to 03:00 at 01:00 UTC, and back from 03:00 to 02:00 at 01:00 UTC.
    let daily = rule("30 2 * * *", "Europe/Berlin");
    come(&daily, "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    come(&daily, "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
}

#[test]
fn a_rule_of_every_so_many_minutes_goes_by_the_time_that_passes() {
    let half = rule("*/30 * * * *", "Europe/Berlin");
    come(
        &half,
        "2026-03-29T00:20:00Z",
        &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:00:00Z"],
    );
    come(
        &half,
        "2026-10-25T00:20:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"],
    );
}

#[test]
fn a_rule_that_does_not_come_any_more_says_so() {
    let far = WallTime(i64::MAX);
    let breach = RuleBook::new().following(&rule("0 9 * * *", "UTC"), far).expect_err("no such year");
    assert_eq!(breach.expected, "a time between the years -9999 and 9999");
    let late = wall("9999-12-30T00:00:00Z");
    assert_eq!(times(&rule("0 0 29 2 *", "UTC"), late, 3), []);
    let breach = RuleBook::new().latest(&rule("0 9 * * *", "Mars/Base"), late).expect_err("no such zone");
    assert_eq!(breach.got, "Mars/Base");
}
