//! Guards: every operator against every type, exact numbers, paths, sources.

use crate::build::{comparison, filter};
use expect_test::expect_file;
use interlock_kernel::time::WallTime;
use interlock_kernel::value::{Filter, Operator, Path, Roots, Source, Verdict, parse_ms};
use serde_json::{Value, json};
use std::fmt::Write;

fn judge(guard: &Filter, data: &Value) -> (bool, u32) {
    let mut mismatches = 0;
    let roots =
        Roots { data: Some(data), now: Some(WallTime(1_000)), execution: Some("job/a@3.1"), ..Roots::default() };
    (guard.judge(&roots, &mut mismatches) == Verdict::Holds, mismatches)
}

/// Whether a guard holds of data; `?` marks a type mismatch.
fn check(text: &str, data: Value) -> &'static str {
    match judge(&filter(text), &data) {
        (true, 0) => "yes",
        (false, 0) => "no",
        (true, _) => "yes?",
        (false, _) => "no?",
    }
}

#[test]
fn truth_table() {
    let fields = [
        ("missing", json!({})),
        ("null", json!({ "x": null })),
        ("true", json!({ "x": true })),
        ("2", json!({ "x": 2 })),
        ("2.0", json!({ "x": 2.0 })),
        ("\"b\"", json!({ "x": "b" })),
        ("[2]", json!({ "x": [2] })),
        ("{\"b\":2}", json!({ "x": { "b": 2 } })),
    ];
    let values =
        ["data.nowhere", "null", "true", "false", "1", "2", "2.5", r#""a""#, r#""b""#, "[2,\"b\",null]", r#"{"b":2}"#];
    let mut table = String::new();
    for (operator, _) in Operator::ALL {
        for value in values {
            let row: Vec<String> = fields
                .iter()
                .map(|(field, data)| format!("{field}: {}", check(&format!("data.x {operator} {value}"), data.clone())))
                .collect();
            let _ = writeln!(table, "x {operator} {value}\n  {}", row.join(", "));
        }
    }
    expect_file!["golden/guards.txt"].assert_eq(&table);
}

#[test]
fn a_missing_field_fails_everything_but_exists_false() {
    for (operator, _) in Operator::ALL {
        for value in ["null", "true", "false", "1", r#""a""#, "[]", "{}", "data.nowhere"] {
            let held = check(&format!("data.x {operator} {value}"), json!({}));
            let expected = if (operator, value) == ("exists", "false") { "yes" } else { "no" };
            assert_eq!(held, expected, "{operator} {value}");
        }
    }
}

#[test]
fn integers_are_exact_in_64_bits_and_compare_with_floats_by_value() {
    let table = [
        ("data.x eq 18446744073709551615", json!({ "x": u64::MAX }), "yes"),
        ("data.x gt 9223372036854775807", json!({ "x": u64::MAX }), "yes"),
        ("data.x lt -9223372036854775807", json!({ "x": i64::MIN }), "yes"),
        ("data.x eq 9007199254740993", json!({ "x": 9_007_199_254_740_992_u64 }), "no"),
        ("data.x gt 9007199254740992.0", json!({ "x": 9_007_199_254_740_993_u64 }), "yes"),
        ("data.x lt 18446744073709551616.0", json!({ "x": u64::MAX }), "yes"),
        ("data.x gt -18446744073709551616.0", json!({ "x": i64::MIN }), "yes"),
        ("data.x lt 2.5", json!({ "x": 2 }), "yes"),
        ("data.x gt -2.5", json!({ "x": -2 }), "yes"),
        ("data.x lt -2.5", json!({ "x": -3 }), "yes"),
        ("data.x gt 2", json!({ "x": 2.5 }), "yes"),
        ("data.x eq 2", json!({ "x": 2.0 }), "yes"),
        ("data.x eq 0", json!({ "x": -0.0 }), "yes"),
        ("data.x in [1, 2.0]", json!({ "x": 2 }), "yes"),
        ("data.x eq {\"n\":[1.0]}", json!({ "x": { "n": [1] } }), "yes"),
        ("data.x lt 1e308", json!({ "x": 1e307 }), "yes"),
        ("data.x lt 1e308", json!({ "x": u64::MAX }), "yes"),
        ("data.x gt -1e308", json!({ "x": i64::MIN }), "yes"),
        ("data.x eq -9223372036854775808.0", json!({ "x": i64::MIN }), "yes"),
    ];
    for (guard, data, expected) in table {
        assert_eq!(check(guard, data.clone()), expected, "{guard} of {data}");
    }
}

#[test]
fn arrays_and_objects_are_equal_part_by_part() {
    let x = json!({ "x": { "a": [1, 2], "b": { "c": null } } });
    for (value, expected) in [
        (r#"{"a":[1,2],"b":{"c":null}}"#, "yes"),
        (r#"{"a":[1,2.0],"b":{"c":null}}"#, "yes"),
        (r#"{"a":[1,3],"b":{"c":null}}"#, "no"),
        (r#"{"a":[2,1],"b":{"c":null}}"#, "no"),
        (r#"{"a":[1],"b":{"c":null}}"#, "no"),
        (r#"{"a":[1,2],"b":{"c":0}}"#, "no"),
        (r#"{"a":[1,2],"b":{"d":null}}"#, "no"),
        (r#"{"a":[1,2],"b":{"c":null,"d":null}}"#, "no"),
        (r#"{"a":[1,2]}"#, "no"),
        ("{}", "no"),
    ] {
        assert_eq!(check(&format!("data.x eq {value}"), x.clone()), expected, "{value}");
    }
}

#[test]
fn a_path_starts_at_the_document_it_names() {
    let documents = ["event", "desired", "data", "outputs", "row"].map(|root| json!({ "is": root }));
    let [event, desired, data, outputs, row] = &documents;
    let all = Roots {
        event: Some(event),
        desired: Some(desired),
        data: Some(data),
        outputs: Some(outputs),
        row: Some(row),
        ..Roots::default()
    };
    for root in ["event", "desired", "data", "outputs", "row"] {
        let guard = filter(&format!(r#"{root}.is eq "{root}""#));
        assert_eq!(guard.judge(&all, &mut 0), Verdict::Holds, "{root}");
        assert_ne!(guard.judge(&Roots::default(), &mut 0), Verdict::Holds, "{root}");
    }
}

#[test]
fn text_is_ordered_by_code_point() {
    for (guard, expected) in [
        (r#"data.x lt "b""#, "yes"),
        (r#"data.x gt "B""#, "yes"),
        (r#"data.x lt "aa""#, "yes"),
        (r#"data.x starts-with """#, "yes"),
        (r#"data.x contains "a""#, "yes"),
        (r#"data.x gt 1"#, "no?"),
    ] {
        assert_eq!(check(guard, json!({ "x": "a" })), expected, "{guard}");
    }
}

#[test]
fn any_of_all_of() {
    let data = json!({ "a": 1, "b": 2 });
    for (guard, expected) in [
        ("data.a eq 1 and data.b eq 2", "yes"),
        ("data.a eq 1 and data.b eq 3", "no"),
        ("data.a eq 9 or data.b eq 2", "yes"),
        ("data.a eq 9 and data.b eq 2 or data.a eq 1 and data.b eq 2", "yes"),
        ("data.a eq 9 or data.b eq 9", "no"),
    ] {
        assert_eq!(check(guard, data.clone()), expected, "{guard}");
    }
    assert_eq!(judge(&Filter::default(), &json!(null)), (true, 0), "an empty filter matches all");
    assert_eq!(judge(&Filter { any: vec![vec![]] }, &json!(null)), (true, 0));
}

#[test]
fn a_failed_guard_says_the_last_comparison_and_what_it_met() {
    let mut mismatches = 0;
    let data = json!({ "a": 1, "long": "x".repeat(9_000) });
    let roots = Roots { data: Some(&data), ..Roots::default() };
    let mut said = |guard: &str| match filter(guard).judge(&roots, &mut mismatches) {
        Verdict::Holds => "holds".to_owned(),
        Verdict::Fails { expected, got } => format!("{expected}: {got}"),
    };
    assert_eq!(said("data.a eq 7 or data.a eq 8"), "data.a eq 8: 1");
    assert_eq!(said("data.b eq data.c"), "data.b eq data.c: nothing and nothing");
    assert!(said("data.long eq 1").len() < 400);
    let data = json!({ "wide": "ü".repeat(200) });
    let shown = match filter("data.wide eq 1").judge(&Roots { data: Some(&data), ..Roots::default() }, &mut mismatches)
    {
        Verdict::Fails { got, .. } => got,
        Verdict::Holds => panic!(),
    };
    assert_eq!(shown, format!("\"{}", "ü".repeat(127)), "cut between characters");
}

#[test]
fn paths_reach_into_arrays_and_escaped_names() {
    let data = json!({ "a.b": { "[c]": [10, { "d\\e": 7 }] }, "ü": 1, "": 2 });
    for (path, expected) in [
        (r"data.a\.b.\[c][0]", Some(json!(10))),
        (r"data.a\.b.\[c][1].d\\e", Some(json!(7))),
        (r"data.a\.b.\[c\][1].d\\e", Some(json!(7))),
        (r"data.ü", Some(json!(1))),
        (r"data.a\.b.\[c][2]", None),
        (r"data.a\.b[0]", None),
        (r"data.ü.x", None),
        ("data", Some(data.clone())),
    ] {
        let parsed: Path = path.parse().unwrap();
        assert_eq!(parsed.find(&data).cloned(), expected, "{path}");
        assert_eq!(parsed.to_string(), path);
    }
    for bad in [
        "",
        "dat.x",
        "data.",
        "data..x",
        "data[",
        "data[x]",
        "data[]",
        "data[1",
        "data[-1]",
        "data.x[1]y",
        "data.x[1]yz",
        r"data.x\",
        "data[99999999999999999999]",
    ] {
        assert!(bad.parse::<Path>().is_err(), "{bad}");
    }
    assert!("dta.x".parse::<Path>().unwrap_err().contains("did you mean data?"));
}

#[test]
fn a_path_of_parts_is_written_as_it_is_read() {
    for text in ["data", r"data.a\.b.\[c][1].d\\e", "event.x", "desired.x[0][1]", "outputs.ü", r"row.\]", "row[7]"] {
        let read: Path = text.parse().unwrap();
        let written = Path::new(read.root, read.segments.clone());
        let again: Path = written.to_string().parse().unwrap();
        assert_eq!((again.root, &again.segments), (read.root, &read.segments), "{text} as {written}");
        assert_eq!(again, written);
    }
    assert_eq!(Path::new(interlock_kernel::value::Root::Data, Vec::new()).to_string(), "data");
    let plain: Path = "data.one[2].three".parse().unwrap();
    assert_eq!(Path::new(plain.root, plain.segments.clone()), plain);
}

#[test]
fn sources_are_a_small_grammar() {
    for (text, expected) in [
        ("now", Some("now")),
        ("now+5m", Some("now+300000ms")),
        ("now-90s", Some("now-90000ms")),
        ("now+7d", Some("now+604800000ms")),
        ("execution", Some("execution")),
        ("event.x", Some("event.x")),
        ("row.x[0]", Some("row.x[0]")),
        ("nowadays", None),
        ("now+", None),
        ("now +5m", None),
        ("now5m", None),
        ("now+5", None),
        ("now+5w", None),
        ("now+-5m", None),
        ("nowü", None),
        ("now+99999999999999999999ms", None),
        ("now+9223372036854775808ms", None),
        ("executions", None),
        ("Execution", None),
        ("", None),
    ] {
        let parsed: Result<Source, String> = text.parse();
        assert_eq!(parsed.as_ref().map(ToString::to_string).ok().as_deref(), expected, "{text}: {parsed:?}");
        if let Ok(source) = parsed {
            assert_eq!(source.to_string().parse::<Source>(), Ok(source));
        }
    }
    assert_eq!(check("data.at lt now-1s", json!({ "at": -1 })), "yes");
    assert_eq!(check("data.at eq now+1s", json!({ "at": 2_000 })), "yes");
    assert_eq!(check("data.by eq execution", json!({ "by": "job/a@3.1" })), "yes");
}

#[test]
fn durations_have_a_unit_and_fit() {
    for (text, ms) in
        [("0ms", 0), ("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("7d", 604_800_000)]
    {
        assert_eq!(parse_ms(text), Ok(ms));
    }
    for bad in ["", "5", "s", "5 s", "5S", "-5s", "+5s", "1.5s", "99999999999999999999d", "999999999999999d"] {
        assert!(parse_ms(bad).is_err(), "{bad}");
    }
}

#[test]
fn comparisons_are_shown_as_they_are_written() {
    for text in ["data.x eq 1", "event.a.b in [1,2]", r#"desired.x starts-with "a""#, "outputs.x ge now+300000ms"] {
        assert_eq!(comparison(text).to_string(), text);
    }
    assert!("equals".parse::<Operator>().is_err());
    assert!("eqq".parse::<Operator>().unwrap_err().contains("did you mean eq?"));
}
