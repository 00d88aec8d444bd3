//! Documents against compiled schemas: what is refused, where, and in which words.

use expect_test::{Expect, expect};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{MachineName, Principal, TableName};
use interlock_kernel::machine::{Machine, Revision};
use interlock_kernel::record::TableSpec;
use interlock_kernel::table::{Access, ClaimSpec, Table};
use interlock_kernel::time::WallTime;
use interlock_kernel::view::{Breach, Rules, Schema};
use interlock_manifest::{CompiledMachine, RuleBook, Uncompiled, parse};
use std::sync::Arc;

fn machine(data_schema: &str) -> Machine {
    let report = parse("m.toml", &manifest(data_schema));
    report.manifest.unwrap_or_else(|| panic!("{:?}", report.problems)).machine
}

/// What is wrong with a manifest of this schema.
fn refused(data_schema: &str) -> String {
    let report = parse("m.toml", &manifest(data_schema));
    assert!(report.manifest.is_none(), "{data_schema}");
    report.problems.into_iter().map(|problem| problem.message).collect()
}

fn manifest(data_schema: &str) -> String {
    format!(
        "machine = \"m\"\nowner = \"o\"\ninitial = \"r\"\ndesired.schema = false\noutputs.schema = false\n\
         [states.r]\nkind = \"rest\"\non.e = {{ to = \"r\" }}\n[events.e]\nschema = {{ required = [\"n\"] }}\n[data]\nschema = {data_schema}\n"
    )
}

fn revision(number: u64, machine: Machine) -> Revision {
    Revision {
        number,
        digest: Digest::of(&[b"m"]),
        component: None,
        source: String::new(),
        rollback_of: None,
        deployed: WallTime(0),
        by: Principal::local(),
        machine: Arc::new(machine),
    }
}

fn doc(text: &str) -> Doc {
    Doc::parse(text).expect("a document")
}

fn show(result: Result<(), Breach>) -> String {
    match result {
        Ok(()) => "accepted".to_owned(),
        Err(Breach { path, expected, got }) => format!("{path:?} expected {expected}, got {got}"),
    }
}

fn check(schema: &str, documents: &[&str], expected: Expect) {
    let compiled = CompiledMachine::compile(&machine(schema)).expect("compiled");
    let lines: Vec<String> =
        documents.iter().map(|text| format!("{text}: {}", show(compiled.check(Schema::Data, &doc(text))))).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_breach_says_where_what_was_expected_and_what_stood_there() {
    check(
        r#"{ type = "object", required = ["size"], additionalProperties = false, properties = { size = { type = "integer", minimum = 1, maximum = 64 }, "a/b" = { type = ["string", "null"], maxLength = 3 }, mode = { enum = ["slow", "fast"] }, mail = { format = "email" }, ids = { type = "array", maxItems = 2, uniqueItems = true, items = { type = "string", minLength = 1 } } } }"#,
        &[
            r#"{"size":4}"#,
            r#"{}"#,
            r#"{"size":4,"sice":5}"#,
            r#"{"size":"4"}"#,
            r#"{"size":4.5}"#,
            r#"{"size":0}"#,
            r#"{"size":65}"#,
            r#"{"size":1,"a/b":7}"#,
            r#"{"size":1,"a/b":"long"}"#,
            r#"{"size":1,"a/b":null}"#,
            r#"{"size":1,"mode":"fasd"}"#,
            r#"{"size":1,"mail":"nobody"}"#,
            r#"{"size":1,"ids":["a","b","c"]}"#,
            r#"{"size":1,"ids":["a","a"]}"#,
            r#"{"size":1,"ids":["a",""]}"#,
            r#"[]"#,
            r#"null"#,
        ],
        expect![[r#"
            {"size":4}: accepted
            {}: "/size" expected a value: it is required, got nothing
            {"size":4,"sice":5}: "/sice" expected no field of this name (did you mean size?), got 5
            {"size":"4"}: "/size" expected an integer, got "4"
            {"size":4.5}: "/size" expected an integer, got 4.5
            {"size":0}: "/size" expected at least 1, got 0
            {"size":65}: "/size" expected at most 64, got 65
            {"size":1,"a/b":7}: "/a~1b" expected null or text, got 7
            {"size":1,"a/b":"long"}: "/a~1b" expected at most 3 characters, got "long"
            {"size":1,"a/b":null}: accepted
            {"size":1,"mode":"fasd"}: "/mode" expected one of "slow", "fast", got "fasd"
            {"size":1,"mail":"nobody"}: "/mail" expected text in format email, got "nobody"
            {"size":1,"ids":["a","b","c"]}: "/ids" expected at most 2 elements, got ["a","b","c"]
            {"size":1,"ids":["a","a"]}: "/ids" expected elements that all differ, got ["a","a"]
            {"size":1,"ids":["a",""]}: "/ids/1" expected at least 1 character, got ""
            []: "" expected an object, got []
            null: "" expected an object, got null"#]],
    );
}

#[test]
fn rarer_rules_have_words_too() {
    check(
        r#"{ properties = { not = { not = { type = "string" } }, any = { anyOf = [{ type = "string" }, { minimum = 3 }] }, one = { oneOf = [{ minimum = 1 }, { minimum = 2 }] }, const = { const = 7 }, never = false, many = { multipleOf = 5 }, over = { exclusiveMinimum = 0 }, has = { contains = { const = 1 } }, props = { minProperties = 1, maxProperties = 2, propertyNames = { maxLength = 2 } } } }"#,
        &[
            r#"{"not":"x"}"#,
            r#"{"any":1}"#,
            r#"{"one":0}"#,
            r#"{"one":2}"#,
            r#"{"const":8}"#,
            r#"{"never":1}"#,
            r#"{"many":7}"#,
            r#"{"over":0}"#,
            r#"{"has":[2]}"#,
            r#"{"props":{}}"#,
            r#"{"props":{"long":1}}"#,
        ],
        expect![[r#"
            {"not":"x"}: "/not" expected something else than {"type":"string"}, got "x"
            {"any":1}: "/any" expected one of 2 alternatives (anyOf), got 1
            {"one":0}: "/one" expected one of 2 alternatives (oneOf), got 0
            {"one":2}: "/one" expected only one of 2 alternatives (oneOf), got 2
            {"const":8}: "/const" expected 7, got 8
            {"never":1}: "/never" expected nothing: the schema is false, got 1
            {"many":7}: "/many" expected a multiple of 5, got 7
            {"over":0}: "/over" expected more than 0, got 0
            {"has":[2]}: "/has" expected an element that fits `contains`, got [2]
            {"props":{}}: "/props" expected at least 1 field, got {}
            {"props":{"long":1}}: "/props" expected field names that are at most 2 characters, got {"long":1}"#]],
    );
}

#[test]
fn integers_are_exact() {
    check(
        r#"{ properties = { n = { type = "integer", maximum = 9007199254740993 }, u = { minimum = 9223372036854775808 }, c = { const = 9007199254740993 } } }"#,
        &[
            r#"{"n":9007199254740993}"#,
            r#"{"n":9007199254740994}"#,
            r#"{"u":9223372036854775807}"#,
            r#"{"u":18446744073709551615}"#,
            r#"{"c":9007199254740992}"#,
            r#"{"c":9007199254740993}"#,
            r#"{"n":1.0}"#,
        ],
        expect![[r#"
            {"n":9007199254740993}: accepted
            {"n":9007199254740994}: "/n" expected at most 9007199254740993, got 9007199254740994
            {"u":9223372036854775807}: "/u" expected at least 9223372036854775808, got 9223372036854775807
            {"u":18446744073709551615}: accepted
            {"c":9007199254740992}: "/c" expected 9007199254740993, got 9007199254740992
            {"c":9007199254740993}: accepted
            {"n":1.0}: accepted"#]],
    );
}

#[test]
fn no_pattern_takes_long() {
    // With backtracking this takes 2^60000 steps.
    let compiled = CompiledMachine::compile(&machine(r#"{ pattern = '^(a+)+$' }"#)).expect("compiled");
    let text = Doc::new(format!("{}!", "a".repeat(60_000)).into());
    let breach = compiled.check(Schema::Data, &text).expect_err("refused");
    assert_eq!(breach.expected, "text matching ^(a+)+$");
    assert!(breach.got.len() < 200, "{}", breach.got);
}

#[test]
fn deep_and_recursive_documents_are_judged() {
    let list = r##"{ "$ref" = "#/$defs/list", "$defs" = { list = { type = "array", maxItems = 1, items = { "$ref" = "#/$defs/list" } } } }"##;
    let compiled = CompiledMachine::compile(&machine(list)).expect("compiled");
    let deep = format!("{}{}", "[".repeat(126), "]".repeat(126));
    assert_eq!(compiled.check(Schema::Data, &doc(&deep)), Ok(()));
    let wrong = format!("{}7{}", "[".repeat(126), "]".repeat(126));
    let breach = compiled.check(Schema::Data, &doc(&wrong)).expect_err("refused");
    assert_eq!((breach.path.as_str(), breach.got.as_str()), ("/0".repeat(126).as_str(), "7"));
}

#[test]
fn a_schema_that_refers_only_to_itself_is_refused() {
    let text =
        r##"{ "$ref" = "#/$defs/a", "$defs" = { a = { "$ref" = "#/$defs/b" }, b = { "$ref" = "#/$defs/a" } } }"##;
    assert!(refused(text).contains("checks_max"));
}

#[test]
fn no_schema_makes_much_work_of_a_small_document() {
    // Checked, the first takes 2^40 steps for any document, the second 2^60 for one of 60 levels.
    let parts: Vec<String> = (0..40)
        .map(|n| {
            format!(r##"d{n} = {{ anyOf = [{{ "$ref" = "#/$defs/d{0}" }}, {{ "$ref" = "#/$defs/d{0}" }}] }}"##, n + 1)
        })
        .collect();
    let bomb =
        format!(r##"{{ "$ref" = "#/$defs/d0", "$defs" = {{ {}, d40 = {{ type = "string" }} }} }}"##, parts.join(", "));
    assert!(refused(&bomb).contains("checks_max"));
    let branch = r##"{ type = "object", properties.in = { "$ref" = "#/$defs/e" } }"##;
    let tree = format!(
        r##"{{ "$ref" = "#/$defs/e", "$defs" = {{ e = {{ anyOf = [{{ type = "integer" }}, {branch}, {branch}] }} }} }}"##
    );
    let compiled = CompiledMachine::compile(&machine(&tree)).expect("compiled");
    let deep = |levels: usize, core: &str| doc(&format!("{}{core}{}", r#"{"in":"#.repeat(levels), "}".repeat(levels)));
    assert_eq!(compiled.check(Schema::Data, &deep(8, "1")), Ok(()));
    let breach = compiled.check(Schema::Data, &deep(60, "false")).expect_err("refused");
    assert!(breach.expected.contains("checks_max"), "{breach:?}");
}

#[test]
fn each_document_has_its_own_schema_and_a_missing_one_accepts_anything() {
    let compiled = CompiledMachine::compile(&machine("true")).expect("compiled");
    let (event, unknown) = ("e".parse().expect("a name"), "other".parse().expect("a name"));
    let lines = [Schema::Desired, Schema::Data, Schema::Outputs, Schema::Event(&event), Schema::Event(&unknown)]
        .map(|schema| format!("{schema}: {}", show(compiled.check(schema, &doc("{}")))));
    expect![[r#"
        desired: "" expected nothing: the schema is false, got {}
        data: accepted
        outputs: "" expected nothing: the schema is false, got {}
        event.e: "/n" expected a value: it is required, got nothing
        event.other: accepted"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn a_book_answers_for_the_revisions_it_was_given() {
    let book = RuleBook::new();
    let name: MachineName = "m".parse().expect("a name");
    let old = book.ensure(&revision(1, machine(r#"{ type = "integer" }"#))).expect("compiled");
    let _new = book.ensure(&revision(2, machine(r#"{ type = "string" }"#))).expect("compiled");
    let again = book.ensure(&revision(1, machine(r#"{ type = "integer" }"#))).expect("compiled");
    assert!(Arc::ptr_eq(&old, &again), "compiled once");
    assert_eq!(book.check(&name, 1, Schema::Data, &doc("1")), Ok(()));
    assert_eq!(book.check(&name, 2, Schema::Data, &doc("1")).expect_err("refused").expected, "text");
    assert_eq!(book.missed(), 0);
}

#[test]
fn a_revision_nobody_ensured_lets_nothing_in_and_is_counted() {
    let book = RuleBook::new();
    let breach = book.check(&"m".parse().expect("a name"), 1, Schema::Data, &doc("1")).expect_err("refused");
    assert_eq!(breach.expected, "the compiled schemas of m revision 1");
    assert_eq!(book.missed(), 1);
}

#[test]
fn a_book_is_bounded_and_keeps_what_somebody_holds() {
    let book = RuleBook::with_capacity(3);
    let name: MachineName = "m".parse().expect("a name");
    let held = book.ensure(&revision(1, machine("true"))).expect("compiled");
    for number in 2..=10 {
        book.ensure(&revision(number, machine("true"))).expect("compiled");
        assert!(book.len() <= 4, "{}", book.len());
    }
    assert_eq!(book.check(&name, 1, Schema::Data, &doc("1")), Ok(()), "held");
    assert_eq!(book.check(&name, 10, Schema::Data, &doc("1")), Ok(()), "used last");
    assert_eq!(book.missed(), 0);
    drop(held);
    for number in 11..=20 {
        book.ensure(&revision(number, machine("true"))).expect("compiled");
    }
    book.check(&name, 1, Schema::Data, &doc("1")).expect_err("dropped");
}

#[test]
fn a_machine_whose_schema_does_not_compile_is_named() {
    let mut broken = machine("true");
    broken.data.schema = Some(doc(r#"{"properties":{"x":{"type":"text"}}}"#));
    let Uncompiled { schema, path, .. } = RuleBook::new().ensure(&revision(1, broken)).expect_err("refused");
    assert_eq!((schema.as_str(), path.as_str()), ("data", "/properties/x/type"));
}

#[test]
fn threads_share_a_book() {
    let book = Arc::new(RuleBook::with_capacity(2));
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let book = Arc::clone(&book);
            std::thread::spawn(move || {
                let name: MachineName = "m".parse().expect("a name");
                for round in 0..50 {
                    let number = (thread + round) % 5;
                    let _held = book.ensure(&revision(number, machine("{ type = \"integer\" }"))).expect("compiled");
                    assert_eq!(book.check(&name, number, Schema::Data, &doc("1")), Ok(()));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(book.missed(), 0);
}

#[test]
fn a_number_that_is_given_out_again_is_judged_by_its_new_schemas() {
    let book = RuleBook::new();
    let typed = |kind: &str| Revision {
        digest: Digest::of(&[kind.as_bytes()]),
        ..revision(2, machine(&format!("{{ type = \"{kind}\" }}")))
    };
    let (lost, kept) = (typed("string"), typed("integer"));
    let name = kept.machine.name.clone();
    let _share = book.ensure(&lost).expect("it compiles");
    assert!(book.check(&name, 2, Schema::Data, &doc("1")).is_err());
    let _share = book.ensure(&kept).expect("it compiles");
    assert!(book.check(&name, 2, Schema::Data, &doc("1")).is_ok());
}

fn declaration(number: u64, schema: Option<&str>) -> TableSpec {
    let table = Table {
        name: "jobs".parse().expect("a name"),
        owner: "tests".to_owned(),
        schema: schema.map(doc),
        indexes: [].into(),
        claim: ClaimSpec::standard(),
        ttl: None,
        access: Access::default(),
    };
    TableSpec { number, table, source: String::new(), declared: WallTime(0) }
}

#[test]
fn a_book_answers_for_the_tables_it_was_given() {
    let book = RuleBook::new();
    let name: TableName = "jobs".parse().expect("a name");
    let old = book.ensure_table(&declaration(1, Some(r#"{"type":"integer"}"#))).expect("compiled");
    let _new = book.ensure_table(&declaration(2, Some(r#"{"properties":{"n":{"type":"string"}}}"#))).expect("compiled");
    let _open = book.ensure_table(&declaration(3, None)).expect("compiled");
    let again = book.ensure_table(&declaration(1, Some(r#"{"type":"integer"}"#))).expect("compiled");
    assert!(Arc::ptr_eq(&old, &again), "compiled once");
    let lines = [(1, "1"), (1, "\"x\""), (2, r#"{"n":7}"#), (3, r#"{"n":7}"#)]
        .map(|(number, value)| format!("{number} {value}: {}", show(book.check_row(&name, number, &doc(value)))));
    expect![[r#"
        1 1: accepted
        1 "x": "" expected an integer, got "x"
        2 {"n":7}: "/n" expected text, got 7
        3 {"n":7}: accepted"#]]
    .assert_eq(&lines.join("\n"));
    assert_eq!((book.missed(), book.len()), (0, 3));
}

#[test]
fn a_table_nobody_ensured_lets_nothing_in_and_is_counted() {
    let book = RuleBook::new();
    let _machine = book.ensure(&revision(1, machine("true"))).expect("compiled");
    let breach = book.check_row(&"m".parse().expect("a name"), 1, &doc("1")).expect_err("refused");
    assert_eq!(breach.expected, "the compiled schemas of table m revision 1");
    assert_eq!(book.missed(), 1);
}

#[test]
fn a_book_keeps_tables_that_somebody_holds() {
    let book = RuleBook::with_capacity(2);
    let name: TableName = "jobs".parse().expect("a name");
    let held = book.ensure_table(&declaration(1, Some("true"))).expect("compiled");
    for number in 2..=6 {
        book.ensure_table(&declaration(number, None)).expect("compiled");
    }
    assert_eq!(book.len(), 2);
    assert_eq!(book.check_row(&name, 1, &doc("1")), Ok(()), "held");
    assert_eq!(book.check_row(&name, 6, &doc("1")), Ok(()), "used last");
    assert_eq!(book.missed(), 0);
    drop(held);
    for number in 7..=9 {
        book.ensure_table(&declaration(number, None)).expect("compiled");
    }
    book.check_row(&name, 1, &doc("1")).expect_err("dropped");
}

#[test]
fn a_table_number_that_is_given_out_again_is_judged_by_its_new_schema() {
    let book = RuleBook::new();
    let name: TableName = "jobs".parse().expect("a name");
    let _lost = book.ensure_table(&declaration(1, Some(r#"{"type":"string"}"#))).expect("compiled");
    book.check_row(&name, 1, &doc("1")).expect_err("not text");
    let _kept = book.ensure_table(&declaration(1, None)).expect("compiled");
    assert_eq!(book.check_row(&name, 1, &doc("1")), Ok(()));
}

#[test]
fn a_table_whose_schema_does_not_compile_is_named() {
    let broken = declaration(1, Some(r#"{"type":"text"}"#));
    let Uncompiled { schema, path, .. } = RuleBook::new().ensure_table(&broken).expect_err("refused");
    assert_eq!((schema.as_str(), path.as_str()), ("table jobs", "/type"));
}
