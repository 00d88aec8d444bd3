//! What a scenario's author is told: nothing about a good one, everything about a bad one.

use expect_test::{expect, expect_file};
use interlock_kernel::machine::Machine;
use interlock_lab::scenario::{Act, Request, Scenario, read};
use interlock_manifest::Report;

pub(crate) fn resource() -> Machine {
    let report = interlock_manifest::parse("machine.toml", include_str!("samples/resource.toml"));
    report.manifest.unwrap_or_else(|| panic!("{:?}", report.problems)).machine
}

fn told(text: &str) -> Result<Scenario, String> {
    let shown = |report: Box<Report>| interlock_manifest::render(&report, false);
    read("a.scenario.toml", text, &resource()).map_err(shown)
}

#[test]
fn every_form_of_every_key_is_read() {
    let scenario = told(include_str!("samples/forms.scenario.toml")).unwrap_or_else(|why| panic!("{why}"));
    expect_file!["golden/forms.txt"].assert_eq(&format!("{scenario:#?}\n"));
}

#[test]
fn every_mistake_is_shown_at_once_with_its_line_and_remedy() {
    let problems = told(include_str!("samples/mistakes.scenario.toml")).unwrap_err();
    expect_file!["golden/mistakes.txt"].assert_eq(&problems);
}

#[test]
fn a_scenario_with_one_entity_never_names_it() {
    let scenario =
        told("scenario = \"s\"\nwhen = [{ send = \"resize\", payload = { size = 2 } }]\nthen.state = \"ready\"");
    let scenario = scenario.unwrap_or_else(|why| panic!("{why}"));
    let Act::Ask(ask) = &scenario.when[0].act else { panic!("{scenario:?}") };
    let Request::Send { id, .. } = &ask.request else { panic!("{ask:?}") };
    let named = [&scenario.given[0].entity, &ask.entity, &scenario.then[0].entity].map(ToString::to_string);
    assert_eq!((named, id.as_str()), (["resource/it"; 3].map(str::to_owned), "e1"));
}

#[test]
fn events_are_numbered_and_an_earlier_id_makes_the_same_event_again() {
    let send = |id: &str| format!("[[when]]\nsend = \"resize\"\npayload = {{ size = 2 }}\n{id}\n");
    let text = format!("scenario = \"s\"\n{}{}{}", send(""), send("id = \"e1\""), send(""));
    let scenario = told(&text).unwrap_or_else(|why| panic!("{why}"));
    let ids = scenario.when.iter().map(|when| match &when.act {
        Act::Ask(ask) => match &ask.request {
            Request::Send { id, .. } => id.to_string(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    assert_eq!(ids.collect::<Vec<_>>(), ["e1", "e1", "e3"]);

    let text = format!("scenario = \"s\"\n{}{}", send("id = \"e2\""), send(""));
    let problems = told(&text).unwrap_err();
    expect![[r#"
        error[id-of-another]: `e2` is the id of event number 2, which comes later and has no other
         --> a.scenario.toml:5:6
          |
        5 | id = "e2"
          |      ^^^^
          |
          = help: use another id here

        a.scenario.toml: 1 error, 0 warnings
    "#]]
    .assert_eq(&problems);
}

#[test]
fn with_several_entities_each_thing_says_whose_it_is() {
    let problems =
        told("scenario = \"s\"\ngiven = [{ key = \"a\" }, { key = \"b\" }]\nthen.state = \"ready\"").unwrap_err();
    expect![[r#"
        error[missing-key]: `then` does not say which entity it is about
         --> a.scenario.toml:3:1
          |
        3 | then.state = "ready"
          | ^^^^ expected `a`, `b`
          |
          = help: name it: entity = "a"

        a.scenario.toml: 1 error, 0 warnings
    "#]]
    .assert_eq(&problems);
}

#[test]
fn a_text_that_is_not_toml_is_told_as_such() {
    let problems = told("scenario = \"s\"\n[[when]\nsend = \"resize\"\n").unwrap_err();
    expect![[r#"
        error[syntax]: not TOML: unclosed array table
         --> a.scenario.toml:2:8
          |
        2 | [[when]
          |        ^ expected `]`
          |
          = help: write `]` here

        the rest is checked once the text can be read as TOML
        a.scenario.toml: 1 error, 0 warnings
    "#]]
    .assert_eq(&problems);
}
