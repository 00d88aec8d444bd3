//! Calendar rules in real zones: which instant each comes at, and what happens where a zone's clocks jump.

use interlock_kernel::ids::Name;
use interlock_kernel::time::WallTime;
use interlock_kernel::timer::{CalendarRule, Due};
use interlock_kernel::view::Rules;
use interlock_manifest::{RuleBook, parse, time_zones};
use jiff::Timestamp;

/// The rule of a timer whose table has this text.
fn rule(timer: &str) -> CalendarRule {
    rule_with(timer, "")
}

fn rule_with(timer: &str, rest: &str) -> CalendarRule {
    let text = format!(
        "machine = \"m\"\nowner = \"o\"\ninitial = \"r\"\ndesired.schema = false\noutputs.schema = false\n\
         data.schema = false\n[states.r]\nkind = \"rest\"\nafter = {{ {timer}, to = \"r\" }}\n{rest}"
    );
    let report = parse("m.toml", &text);
    let machine = report.manifest.unwrap_or_else(|| panic!("{timer}: {:?}", report.problems)).machine;
    let name: Name = "r".parse().expect("a name");
    match machine.states[&name].after[0].due.clone() {
        Due::Calendar(rule) => rule,
        other => panic!("{timer}: {other}"),
    }
}

fn wall(text: &str) -> WallTime {
    WallTime(text.parse::<Timestamp>().expect(text).as_millisecond())
}

/// `from` is when the state is entered, `due` what must come; both in RFC 3339.
#[track_caller]
fn comes(rule: &CalendarRule, entry: &str, due: &str) {
    let got = RuleBook::new().next(rule, wall(entry)).unwrap_or_else(|breach| panic!("{}: {breach:?}", rule.text));
    let got = Timestamp::from_millisecond(got.0).expect("an instant");
    assert_eq!(got.to_string(), due.parse::<Timestamp>().expect(due).to_string(), "{} from {entry}", rule.text);
}

#[track_caller]
fn refused(rule: &CalendarRule, entry: &str) -> (String, String) {
    let breach = RuleBook::new().next(rule, wall(entry)).expect_err("nothing comes");
    (breach.expected, breach.got)
}

#[test]
fn the_next_business_day_is_never_today_and_no_weekend() {
    let rule = rule("next = \"business day\", at = \"09:00\", zone = \"Europe/Berlin\"");
    assert_eq!(rule.text, "next business day, 09:00 Europe/Berlin");
    comes(&rule, "2026-11-30T06:00:00+01:00", "2026-12-01T09:00:00+01:00"); // Monday, before nine
    comes(&rule, "2026-12-04T17:00:00+01:00", "2026-12-07T09:00:00+01:00"); // Friday
    comes(&rule, "2026-12-05T12:00:00+01:00", "2026-12-07T09:00:00+01:00"); // Saturday
    // The day is the zone's: in Berlin it is Tuesday already.
    comes(&rule, "2026-11-30T23:30:00Z", "2026-12-02T09:00:00+01:00");
}

#[test]
fn every_takes_today_too_while_its_time_is_still_to_come() {
    let rule = rule("every = \"weekday\", at = \"09:00\", zone = \"Europe/Berlin\"");
    comes(&rule, "2026-11-30T06:00:00+01:00", "2026-11-30T09:00:00+01:00");
    comes(&rule, "2026-11-30T09:00:00+01:00", "2026-12-01T09:00:00+01:00"); // at it is not before it
    let rule = self::rule("every = [\"thu\", \"mon\"], at = \"17:30:15\", zone = \"UTC\"");
    assert_eq!(rule.text, "every mon, thu, 17:30:15 UTC");
    comes(&rule, "2026-12-01T00:00:00Z", "2026-12-03T17:30:15Z");
    comes(&rule, "2026-12-03T17:30:15Z", "2026-12-07T17:30:15Z");
}

#[test]
fn at_least_so_far_away_or_the_next_one() {
    let rule = rule("every = \"day\", at = \"09:00\", zone = \"UTC\", at_least = \"2h\"");
    assert_eq!(rule.text, "every day, 09:00 UTC, at least 2 h");
    comes(&rule, "2026-12-01T07:00:00Z", "2026-12-01T09:00:00Z");
    comes(&rule, "2026-12-01T07:00:00.001Z", "2026-12-02T09:00:00Z");
    let rule = self::rule("next = \"business day\", at = \"09:00\", zone = \"UTC\", at_least = \"30d\"");
    comes(&rule, "2026-12-01T10:00:00Z", "2027-01-01T09:00:00Z");
}

#[test]
fn a_day_of_the_month_is_the_last_one_of_a_shorter_month() {
    let rule = rule("day = 31, at = \"00:00\", zone = \"UTC\"");
    assert_eq!(rule.text, "day 31 of the month, 00:00 UTC");
    comes(&rule, "2027-01-31T00:00:00Z", "2027-02-28T00:00:00Z");
    comes(&rule, "2028-02-01T00:00:00Z", "2028-02-29T00:00:00Z");
    comes(&rule, "2027-03-31T00:00:01Z", "2027-04-30T00:00:00Z");
    comes(&self::rule("day = 1, at = \"06:00\", zone = \"UTC\""), "2026-08-01T05:59:59Z", "2026-08-01T06:00:00Z"); // a Saturday
}

#[test]
fn holidays_and_a_weekend_of_ones_own_are_left_out() {
    let calendar = "[calendars.gulf]\nweekend = [\"fri\", \"sat\"]\nholidays = [\"2026-12-28\", \"2026-12-27\"]\n";
    let timer = "next = \"business day\", at = \"09:00\", zone = \"Asia/Riyadh\", calendar = \"gulf\"";
    comes(&rule_with(timer, calendar), "2026-12-24T12:00:00Z", "2026-12-29T09:00:00+03:00");
    // Its own days come besides those of the calendar; any rule of weekdays leaves them out.
    let timer = "every = \"day\", at = \"09:00\", zone = \"UTC\", calendar = \"gulf\", holidays = [\"2026-12-29\"]";
    comes(&rule_with(timer, calendar), "2026-12-26T12:00:00Z", "2026-12-30T09:00:00Z");
}

#[test]
fn a_list_of_holidays_that_has_run_out_refuses_by_name() {
    let rule =
        rule("next = \"business day\", at = \"09:00\", zone = \"UTC\", holidays = [\"2026-01-01\", \"2026-12-25\"]");
    comes(&rule, "2026-12-30T12:00:00Z", "2026-12-31T09:00:00Z");
    let (expected, got) = refused(&rule, "2026-12-31T12:00:00Z");
    assert_eq!(
        (expected.as_str(), got.as_str()),
        ("holidays that reach to 2027-01-01", "a list that ends on 2026-12-25")
    );
}

#[test]
fn a_rule_that_never_comes_ends_after_ten_years() {
    let rule = rule("next = \"business day\", at = \"09:00\", zone = \"UTC\"");
    let never = CalendarRule { days: interlock_kernel::timer::Days::Weekdays(0), ..rule.clone() };
    let (expected, got) = refused(&never, "2026-12-31T12:00:00Z");
    assert_eq!(
        (expected.as_str(), got.as_str()),
        ("a day within ten years for \"next business day, 09:00 UTC\"", "none")
    );
    let elsewhere = CalendarRule { zone: "Europe/Berlinn".to_owned(), ..rule.clone() };
    let expected = format!("a zone of the time zone database {}", time_zones());
    assert_eq!(refused(&elsewhere, "2026-12-31T12:00:00Z"), (expected, "Europe/Berlinn".to_owned()));
    let beyond = RuleBook::new().next(&rule, WallTime(i64::MAX)).expect_err("beyond every calendar");
    assert_eq!(beyond.expected, "a time between the years -9999 and 9999");
}

#[test]
fn in_a_gap_the_first_instant_after_it() {
    let night = |zone: &str| rule(&format!("every = \"day\", at = \"02:30\", zone = \"{zone}\""));
    // 02:00 to 03:00 is left out.
    comes(&night("Europe/Berlin"), "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00");
    comes(&night("America/New_York"), "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00");
    // Both edges: 02:00 is left out, 03:00 is not.
    comes(
        &rule("every = \"day\", at = \"02:00\", zone = \"Europe/Berlin\""),
        "2026-03-29T00:00:00+01:00",
        "2026-03-29T03:00:00+02:00",
    );
    comes(
        &rule("every = \"day\", at = \"03:00\", zone = \"Europe/Berlin\""),
        "2026-03-29T00:00:00+01:00",
        "2026-03-29T03:00:00+02:00",
    );
    comes(
        &rule("every = \"day\", at = \"01:59:59\", zone = \"Europe/Berlin\""),
        "2026-03-29T00:00:00+01:00",
        "2026-03-29T01:59:59+01:00",
    );
    // Half an hour, 02:00 to 02:30.
    let rule = rule("every = \"day\", at = \"02:15\", zone = \"Australia/Lord_Howe\"");
    comes(&rule, "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00");
    // After it the rule goes on as it was.
    comes(&night("Europe/Berlin"), "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00");
}

#[test]
fn in_an_overlap_the_first_time_and_once() {
    let night = |zone: &str| rule(&format!("every = \"day\", at = \"02:30\", zone = \"{zone}\""));
    comes(&night("Europe/Berlin"), "2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00");
    comes(&night("Europe/Berlin"), "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"); // not again an hour later
    comes(&night("Europe/Berlin"), "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00"); // entered between the two
    let rule = rule("every = \"day\", at = \"01:30\", zone = \"America/New_York\"");
    comes(&rule, "2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-04:00");
    let rule = self::rule("every = \"day\", at = \"01:45\", zone = \"Australia/Lord_Howe\"");
    comes(&rule, "2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+11:00");
    comes(&rule, "2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30");
}

#[test]
fn a_day_is_not_twenty_four_hours_where_the_clocks_change() {
    let rule = rule("next = \"day\", at = \"12:00\", zone = \"Europe/Berlin\"");
    let hours = |noon: &str| {
        let due = RuleBook::new().next(&rule, wall(noon)).expect("a time");
        due.since(wall(noon)) / 3_600_000
    };
    let noons = ["2026-03-28T12:00:00+01:00", "2026-03-29T12:00:00+02:00", "2026-10-24T12:00:00+02:00"];
    assert_eq!(noons.map(hours), [23, 24, 25]);
}

#[test]
fn a_day_that_a_zone_left_out_is_no_weekday_and_as_a_day_of_the_month_the_instant_after_it() {
    // Samoa went from Thursday, 29 December 2011 to Saturday, 31 December.
    let friday = rule("every = \"fri\", at = \"09:00\", zone = \"Pacific/Apia\"");
    comes(&friday, "2011-12-29T12:00:00-10:00", "2012-01-06T09:00:00+14:00");
    let business = rule("next = \"business day\", at = \"09:00\", zone = \"Pacific/Apia\"");
    comes(&business, "2011-12-29T12:00:00-10:00", "2012-01-02T09:00:00+14:00");
    let thirtieth = rule("day = 30, at = \"09:00\", zone = \"Pacific/Apia\"");
    comes(&thirtieth, "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00");
    comes(&thirtieth, "2011-12-31T00:00:00+14:00", "2012-01-30T09:00:00+14:00");
}

#[test]
fn an_instant_needs_an_offset_and_is_never_early() {
    let instant = |text: &str| RuleBook::new().instant(text);
    assert_eq!(instant("2026-12-24T09:00:00+01:00"), Some(wall("2026-12-24T08:00:00Z")));
    assert_eq!(instant("1970-01-01T00:00:00.0010001Z"), Some(WallTime(2)));
    assert_eq!(instant("1969-12-31T23:59:59.9999Z"), Some(WallTime(0)));
    for bad in ["2026-12-24T09:00:00", "2026-12-24", "tomorrow", "", "2026-13-01T00:00:00Z", "1798099200000"] {
        assert_eq!(instant(bad), None, "{bad}");
    }
}

#[test]
fn the_time_zone_database_is_the_one_that_is_compiled_in() {
    assert!(time_zones().starts_with("20"), "{}", time_zones());
}
