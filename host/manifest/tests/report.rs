//! What a manifest's author is told: nothing about a good one, everything about a bad one.

use expect_test::{expect, expect_file};
use interlock_kernel::machine::Machine;
use interlock_manifest::{Report, Severity, parse, render};

const RESOURCE: &str = include_str!("samples/resource.toml");

fn codes(report: &Report) -> Vec<&str> {
    report.problems.iter().map(|problem| problem.code).collect()
}

/// One line for each part of a machine.
fn show(machine: &Machine) -> String {
    let mut out = String::new();
    let serde_json::Value::Object(parts) = serde_json::to_value(machine).expect("JSON") else {
        panic!("a machine is an object")
    };
    for (name, part) in &parts {
        match (name.as_str(), part.as_object()) {
            ("events" | "states", Some(entries)) => {
                for (entry, part) in entries {
                    for (key, value) in part.as_object().into_iter().flatten() {
                        out.push_str(&format!("{name}.{entry}.{key} {value}\n"));
                    }
                }
            }
            _ => out.push_str(&format!("{name} {part}\n")),
        }
    }
    out
}

#[test]
fn the_example_machines_have_no_error() {
    let guests = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests");
    let mut seen = 0;
    for folder in std::fs::read_dir(guests).expect("guests") {
        let path = folder.expect("a folder").path().join("machine.toml");
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let report = parse(&path.display().to_string(), &text);
        assert!(report.manifest.is_some(), "{}", render(&report, false));
        seen += 1;
    }
    assert!(seen > 0, "no example machine in {guests}");
}

#[test]
fn the_resource_machine_is_clean() {
    let report = parse("machine.toml", RESOURCE);
    assert_eq!(render(&report, false), "");
    let manifest = report.manifest.expect("a manifest");
    assert_eq!(manifest.component.as_deref(), Some("resource.wasm"));
    assert_eq!(manifest.source, RESOURCE);
    expect_file!["golden/resource.txt"].assert_eq(&show(&manifest.machine));
}

#[test]
fn every_mistake_is_shown_at_once_with_its_line_and_remedy() {
    let report = parse("machine.toml", include_str!("samples/mistakes.toml"));
    assert!(report.manifest.is_none());
    expect_file!["golden/mistakes.txt"].assert_eq(&render(&report, false));
}

#[test]
fn syntax_errors_are_all_shown_and_bring_no_false_alarm() {
    let report = parse("machine.toml", include_str!("samples/syntax.toml"));
    expect_file!["golden/syntax.txt"].assert_eq(&render(&report, false));
}

#[test]
fn a_report_is_plain_data() {
    let report = parse("machine.toml", "machine = 7\n");
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!(json["name"], "machine.toml");
    let wrong = json["problems"]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["code"] == "wrong-type"))
        .expect("wrong-type");
    expect![[r#"{"code":"wrong-type","column":11,"expected":"text","got":"an integer","line":1,"message":"`machine` is an integer, not text","remedy":"write it in quotes","severity":"error","span":{"end":11,"start":10}}"#]]
        .assert_eq(&wrong.to_string());
}

#[test]
fn columns_count_characters_and_spans_count_bytes() {
    let report = parse("machine.toml", &RESOURCE.replace("kind = \"rest\"", "\"kïnd\" = \"rest\"; "));
    assert_eq!(codes(&report)[0], "syntax");
    let report =
        parse("machine.toml", &RESOURCE.replace("labels    = { project = \"demo\" }", "labels = { \"é\" = 1 }"));
    let [problem] = report.problems.as_slice() else { panic!("{report:?}") };
    assert_eq!((problem.line, problem.column, problem.span.len()), (7, 18, 1));
}

#[test]
fn colour_only_adds_colour() {
    let report = parse("machine.toml", include_str!("samples/mistakes.toml"));
    let colored = render(&report, true);
    let mut plain = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    assert_ne!(colored, plain);
    assert_eq!(plain, render(&report, false));
}

#[test]
fn errors_come_before_warnings_when_there_are_too_many() {
    let keys: String = (0..300).map(|n| format!("wrong-{n} = 1\n")).collect();
    let report = parse("machine.toml", &format!("{keys}{RESOURCE}"));
    assert_eq!((report.problems.len(), report.left_out), (200, 100));
    assert_eq!(report.count(Severity::Error), 200);
    assert!(render(&report, false).ends_with("and 100 more\nmachine.toml: 200 errors, 0 warnings\n"));
}

#[test]
fn any_text_is_answered() {
    let deep = format!("machine = {}1{}", "[".repeat(2_000), "]".repeat(2_000));
    let tables = format!("[{}]", vec!["a"; 2_000].join("."));
    let long_key = format!("{} = 1", "k".repeat(100_000));
    let big = format!("owner = \"{}\"", "x".repeat(3 << 20));
    for text in [
        "",
        "\u{feff}",
        "=",
        "[",
        "[[states]]",
        "[states]\nx = 1",
        "states = []",
        "\0",
        "a\r",
        "'''",
        &deep,
        &tables,
        &long_key,
        &big,
    ] {
        let report = parse("machine.toml", text);
        assert!(report.manifest.is_none() && report.count(Severity::Error) > 0);
        let _ = render(&report, true);
    }
    // Every prefix of a good manifest, cut anywhere.
    for end in (0..RESOURCE.len()).filter(|end| RESOURCE.is_char_boundary(*end)).step_by(7) {
        let _ = render(&parse("machine.toml", &RESOURCE[..end]), false);
    }
}

#[test]
fn every_form_of_every_key_is_read() {
    let report = parse("machine.toml", include_str!("samples/forms.toml"));
    assert_eq!(render(&report, false), "");
    expect_file!["golden/forms.txt"].assert_eq(&show(&report.manifest.expect("a manifest").machine));
}
