//! What the author of a table is told: nothing about a good one, everything about a bad one.

use expect_test::expect_file;
use interlock_kernel::table::{ClaimSpec, Table};
use interlock_manifest::{Report, Severity, parse_table, render};
use std::collections::BTreeSet;

const PENDING: &str = include_str!("samples/pending_ops.table.toml");
const FORMS: &str = include_str!("samples/forms.table.toml");

fn report(text: &str) -> (Option<Table>, Report) {
    match parse_table("pending_ops.table.toml", text) {
        Ok((table, report)) => (Some(table), report),
        Err(report) => (None, *report),
    }
}

/// One line for each part of a table.
fn show(table: &Table) -> String {
    let serde_json::Value::Object(parts) = serde_json::to_value(table).expect("JSON") else {
        panic!("a table is an object")
    };
    let mut out = String::new();
    for (name, part) in &parts {
        match (name.as_str(), part.as_object()) {
            ("claim" | "indexes", Some(entries)) => {
                entries.iter().for_each(|(entry, part)| out.push_str(&format!("{name}.{entry} {part}\n")));
            }
            _ => out.push_str(&format!("{name} {part}\n")),
        }
    }
    out
}

#[test]
fn good_tables_are_clean() {
    for (text, golden) in
        [(PENDING, expect_file!["golden/pending_ops.table.txt"]), (FORMS, expect_file!["golden/forms.table.txt"])]
    {
        let (table, report) = report(text);
        assert_eq!(render(&report, false), "");
        golden.assert_eq(&show(&table.expect("a table")));
    }
}

#[test]
fn a_table_that_says_nothing_of_claims_means_the_standard() {
    let text = "table = \"t\"\nowner = \"o\"\nindexes.by-status = [\"status\"]\naccess.clients = [\"claim\"]\n";
    let (table, report) = report(text);
    assert_eq!(render(&report, false), "");
    let table = table.expect("a table");
    assert_eq!(table.claim, ClaimSpec::standard());
    assert_eq!((table.schema, table.ttl), (None, None));
}

#[test]
fn a_table_of_whose_rows_nobody_claims_any_needs_no_status() {
    let text = "table = \"t\"\nowner = \"o\"\naccess.clients = [\"upsert\"]\n\
        [schema]\nadditionalProperties = false\nproperties.count = { type = \"integer\" }\n";
    assert_eq!(render(&report(text).1, false), "");
    let claimed = text.replace("\"upsert\"", "\"claim\"");
    let codes: Vec<_> = report(&claimed).1.problems.iter().map(|problem| problem.code).collect();
    assert!(codes.contains(&"unknown-field"), "{codes:?}");
}

#[test]
fn the_standard_follows_the_field_and_the_value_that_a_table_names() {
    let text = "table = \"t\"\nowner = \"o\"\nindexes.i = [\"state\"]\naccess.clients = [\"claim\"]\n\
        [claim]\nstatus = \"state\"\nheld = \"taken\"\n";
    let (table, report) = report(text);
    assert_eq!(render(&report, false), "");
    let claim = table.expect("a table").claim;
    let shown = |set: &[interlock_kernel::value::Mutation]| {
        set.iter().map(|one| format!("{} = {}", one.field, one.value)).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(claim.filter.any[0][0].to_string(), "row.state eq \"pending\"");
    assert_eq!(shown(&claim.set), "row.state = \"taken\", row.claimed_at = now, row.claimed_by = execution");
    assert_eq!(shown(&claim.release), "row.state = \"pending\", row.claimed_at = null, row.claimed_by = null");
    assert!(claim.is_held(&serde_json::json!({"state": "taken"})));
}

/// The code that must come, what is replaced in the table, and by what.
const CASES: &[(&str, &str, &str)] = &[
    ("syntax", "after = \"1d\"", "after = 1d"),
    ("missing-key", "table = \"pending_ops\"\n", ""),
    ("missing-key", "owner = \"payments <oncall@example.com>\"\n", ""),
    ("missing-key", "after = \"1d\"\n", ""),
    ("missing-key", "after = \"5m\", ", ""),
    ("missing-key", ", dead = { status = \"dead\" }", ""),
    ("missing-key", "{ fields = [\"status\"], tie", "{ tie"),
    ("missing-key", "where   = { status = \"pending\" }", "where = [{ field = \"status\", op = \"eq\" }]"),
    ("unknown-key", "[ttl]", "[tll]"),
    ("unknown-key", "reaper  =", "reeper ="),
    ("unknown-key", "attempts = 5", "attempt = 5"),
    ("unknown-key", "where   = { status = \"pending\" }", "where = { feild = \"status\", op = \"eq\", value = 1 }"),
    ("unknown-key", "{ fields = [\"status\"], tie", "{ field = [\"status\"], tie"),
    ("unknown-key", "clients  =", "client ="),
    ("wrong-type", "by-status   = [\"status\"]", "by-status = \"status\""),
    ("wrong-type", "by-status   = [\"status\"]", "by-status = [7]"),
    ("wrong-type", "clients  = [\"get\", \"query\", \"put\", \"upsert\"]", "clients = \"get\""),
    ("wrong-type", "set     = {", "held = [1]\nset = {"),
    ("wrong-type", "where   = { status = \"pending\" }", "where = \"pending\""),
    ("bad-name", "table = \"pending_ops\"", "table = \"Pending\""),
    ("bad-name", "by-status ", "by_status "),
    ("bad-name", "dispatcher =", "dispatcher_1 ="),
    ("reserved-name", "by-status ", "created "),
    ("reserved-name", "by-status ", "updated "),
    ("bad-choice", "\"upsert\"]", "\"insert\"]"),
    ("bad-choice", "[\"claim\", \"update\"]", "[\"clam\", \"update\"]"),
    ("bad-choice", "on_end  = \"release\"", "on_end = \"drop\""),
    ("bad-choice", "tie = \"updated\"", "tie = \"priority\""),
    ("bad-choice", "after = \"1d\"", "after = \"1d\"\nfrom = \"claim\""),
    (
        "bad-choice",
        "where   = { status = \"pending\" }",
        "where = { field = \"status\", op = \"equals\", value = \"x\" }",
    ),
    ("bad-duration", "after = \"1d\"", "after = \"1 day\""),
    ("out-of-range", "after = \"1d\"", "after = \"999ms\""),
    ("out-of-range", "after = \"1d\"", "after = \"367d\""),
    ("out-of-range", "after = \"5m\"", "after = \"999ms\""),
    ("out-of-range", "attempts = 5", "attempts = 0"),
    ("bad-value", "owner = \"payments <oncall@example.com>\"", "owner = \"\""),
    ("bad-value", "by-status   = [\"status\"]", "by-status = []"),
    ("bad-value", "[\"status\", \"priority\"]", "[\"status\", \"priority\", \"row.status\"]"),
    ("bad-value", "\"upsert\"]", "\"upsert\", \"get\"]"),
    ("bad-value", "where   = { status = \"pending\" }", "where = {}"),
    ("bad-value", "where   = { status = \"pending\" }", "where = []"),
    ("bad-value", "where   = { status = \"pending\" }", "where = { any = [] }"),
    (
        "bad-value",
        "where   = { status = \"pending\" }",
        "where = { al = [{ field = \"status\", op = \"eq\", value = \"x\" }] }",
    ),
    ("bad-value", "where   = { status = \"pending\" }", "where = { status = { is = \"pending\" } }"),
    ("bad-value", "release = {", "release = {}\nx = {"),
    ("bad-value", "dead = { status = \"dead\" }", "dead = { status = \"dead\", note = { a = 1 } }"),
    ("bad-path", "by-status   = [\"status\"]", "by-status = [\"row\"]"),
    ("bad-path", "by-status   = [\"status\"]", "by-status = [\"a..b\"]"),
    ("bad-path", "set     = {", "status = \"row\"\nset = {"),
    ("bad-path", "{ from = \"execution\" }", "{ from = \"event.who\" }"),
    ("bad-path", "{ from = \"execution\" }", "{ from = \"claimed_by\" }"),
    ("bad-path", "dead = { status = \"dead\" }", "dead = { status = \"dead\", note.a = 1 }"),
    ("bad-path", "where   = { status = \"pending\" }", "where = { status.x = \"pending\" }"),
    ("too-large", "[\"status\", \"priority\"]", "[\"status\", \"priority\", \"amount\", \"note\", \"claimed_at\"]"),
    ("bad-schema", "type = \"integer\", minimum = 0", "type = \"int\""),
    ("unknown-keyword", "minimum = 0", "minimun = 0"),
    ("unknown-field", "[\"status\", \"priority\"]", "[\"status\", \"prioritty\"]"),
    ("unknown-field", "where   = { status = \"pending\" }", "where = { status = \"pending\", kind = \"x\" }"),
    ("unknown-field", "claimed_by = { from = \"execution\" } }", "claimed_of = { from = \"execution\" } }"),
    ("unknown-field", "{ from = \"execution\" }", "{ from = \"row.who\" }"),
    ("type-mismatch", "where   = { status = \"pending\" }", "where = { status = \"pending\", priority = \"high\" }"),
    ("unused-key", "by-priority = [\"status\", \"priority\"]", "by-priority = [\"row.status\"]"),
    ("unused-key", "attempts = 5, ", ""),
    ("claim-not-held", "set     = { status = \"in_flight\"", "set = { status = \"done\""),
    ("claim-not-held", "set     = { status = \"in_flight\", ", "set = { "),
    ("claim-not-held", "set     = { status = \"in_flight\"", "set = { status = { from = \"row.note\" }"),
    ("claim-not-held", "set     =", "held = \"taken\"\nset ="),
    ("claim-not-held", "claimed_by = { from = \"execution\" } }", "row = { value = { status = \"pending\" } } }"),
    ("still-held", "release = { status = \"pending\"", "release = { status = \"in_flight\""),
    ("still-held", "release = { status = \"pending\", ", "release = { "),
    ("still-held", "dead = { status = \"dead\" }", "dead = { note = \"too often\" }"),
    ("no-release", "release = {", "# release = {"),
    (
        "no-release",
        "release = { status = \"pending\", claimed_at = { remove = true }, claimed_by = { remove = true } }\non_end  = \"release\"",
        "",
    ),
    ("refused-change", "dead = { status = \"dead\" }", "dead = { status = \"gone\" }"),
    ("refused-change", "release = { status = \"pending\"", "release = { status = \"pending\", priority = -1"),
    ("refused-change", "release = { status = \"pending\"", "release = { status = { remove = true }"),
    ("refused-change", "\"in_flight\", \"done\"", "\"done\""),
    ("unserved-claim", "where   = { status = \"pending\" }", "where = { priority = 1, claimed_by = \"nobody\" }"),
    (
        "unserved-claim",
        "where   = { status = \"pending\" }",
        "where = { any = [{ field = \"status\", op = \"eq\", value = \"pending\" }, { field = \"claimed_at\", op = \"exists\", value = false }] }",
    ),
    ("claims-again", "where   = { status = \"pending\" }", "where = { field = \"priority\", op = \"gt\", value = 0 }"),
    (
        "no-access",
        "[access]\nclients  = [\"get\", \"query\", \"put\", \"upsert\"]\nmachines = { dispatcher = [\"claim\", \"update\"] }",
        "",
    ),
    (
        "no-access",
        "clients  = [\"get\", \"query\", \"put\", \"upsert\"]\nmachines = { dispatcher = [\"claim\", \"update\"] }",
        "clients = []",
    ),
];

/// Codes that come together in a case above, because one mistake has two sides.
fn allowed(code: &str) -> &'static [&'static str] {
    match code {
        "unknown-key" => &["missing-key", "bad-value", "no-release"],
        "bad-value" => &["unknown-key"],
        "claim-not-held" => &["claims-again"],
        "claims-again" => &["unserved-claim"],
        "refused-change" => &["still-held"],
        _ => &[],
    }
}

#[test]
fn every_mistake_is_found_where_it_is() {
    let (mut golden, mut wrong) = (String::new(), String::new());
    for (code, find, replace) in CASES {
        if PENDING.matches(find).count() != 1 {
            wrong.push_str(&format!("{code}: {find:?} does not stand there once\n"));
        }
        let (table, report) = report(&PENDING.replace(find, replace));
        golden.push_str(&format!("-- {find:?} -> {replace:?}\n"));
        for problem in &report.problems {
            golden.push_str(&format!(
                "{}:{} {}[{}] {} | {}\n",
                problem.line, problem.column, problem.severity, problem.code, problem.message, problem.remedy
            ));
            if problem.code != *code && !allowed(code).contains(&problem.code) {
                wrong.push_str(&format!("{code}: {find:?} -> {replace:?} is also {}\n", problem.code));
            }
        }
        if report.problems.iter().all(|problem| problem.code != *code) {
            wrong.push_str(&format!("{code}: {find:?} -> {replace:?} is not found\n"));
        }
        assert_eq!(table.is_some(), report.count(Severity::Error) == 0, "{replace}");
    }
    expect_file!["golden/tables.txt"].assert_eq(&golden);
    assert_eq!(wrong, "");
}

#[test]
fn every_code_of_tables_has_a_case() {
    let of_tables =
        ["claim-not-held", "still-held", "no-release", "refused-change", "unserved-claim", "claims-again", "no-access"];
    let cases: BTreeSet<&str> = CASES.iter().map(|(code, ..)| *code).collect();
    assert_eq!(of_tables.into_iter().filter(|code| !cases.contains(code)).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn a_claim_that_the_schema_has_not_heard_of_is_refused_before_it_is_made() {
    let table = |schema: &str, right: &str| {
        let text = format!(
            "table = \"t\"\nowner = \"o\"\nindexes.i = [\"status\"]\naccess.clients = [{right:?}]\n[schema]\n{schema}\n"
        );
        let (_, report) = report(&text);
        report.problems.iter().map(|one| format!("{} {} {}", one.line, one.code, one.message)).collect::<Vec<_>>()
    };
    let closed = "additionalProperties = false\nproperties.status = { type = \"string\" }";
    assert_eq!(table(closed, "put"), Vec::<String>::new());
    let always = "which its schema always refuses";
    assert_eq!(
        table(closed, "claim"),
        ["claimed_at` = now", "claimed_by` = execution"].map(|what| format!(
            "4 refused-change a claim writes `row.{what} unless the table says otherwise, {always}"
        ))
    );
    assert_eq!(table("properties.claimed_at = { type = [\"integer\", \"null\"] }", "claim"), Vec::<String>::new());
    assert_eq!(table("properties.claimed_at = { type = \"string\" }", "claim").len(), 1);
    assert_eq!(table("properties.status = { enum = [\"pending\", \"taken\"] }", "claim").len(), 1);
}

#[test]
fn bounds_are_kept() {
    let indexes = |count: usize| {
        let declared: String = (0..count).map(|n| format!("i{n} = [\"f{n}\"]\n")).collect();
        let (table, _) =
            report(&format!("table = \"t\"\nowner = \"o\"\naccess.clients = [\"get\"]\n[indexes]\n{declared}"));
        table.is_some()
    };
    assert!(indexes(8));
    assert!(!indexes(9));
    let compared = |count: usize| {
        let all: Vec<String> = (0..count).map(|n| format!("f{n} = 1")).collect();
        let text = PENDING.replace("{ status = \"pending\" }\nset", &format!("{{ {} }}\nset", all.join(", ")));
        let text = text.replace("additionalProperties = false", "");
        report(&text).1.problems.iter().map(|one| one.code).filter(|code| *code == "too-large").count()
    };
    assert_eq!((compared(256), compared(257)), (0, 1));
    let (table, found) = report(&format!("# {}\n{PENDING}", "x".repeat(3 << 20)));
    assert!(table.is_none());
    assert_eq!(found.problems[0].code, "too-large");
}

#[test]
fn any_text_is_answered() {
    for text in
        ["", "=", "[", "[[claim]]", "claim = 1", "[claim]\nreaper = 1", "[access]\nmachines = []", "indexes = []"]
    {
        let (table, report) = report(text);
        assert!(table.is_none() && report.count(Severity::Error) > 0, "{text}");
        let _ = render(&report, true);
    }
    for text in [PENDING, FORMS] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)).step_by(3) {
            let _ = report(&text[..end]);
        }
    }
}
