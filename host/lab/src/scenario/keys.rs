//! Every key a scenario may have, table by table. `scenario.schema.json` describes the same keys; a test
//! holds the two together.

use interlock_manifest::reading::Keys;

macro_rules! keys {
    ($($table:ident $def:literal $what:literal [$($name:literal)*])*) => {
        $(pub(super) const $table: Keys = Keys { what: $what, names: &[$($name),*] };)*

        /// Each with its name under `$defs` in the schema; empty is the root.
        #[cfg(test)]
        const ALL: &[(&str, &Keys)] = &[$(($def, &$table)),*];
    };
}

keys! {
    SCENARIO "" "a scenario" ["scenario" "given" "replies" "when" "then" "always" "eventually" "explore"]
    GIVEN "given" "a given entity" ["key" "desired" "labels"]
    FILLED "filled" "given rows" ["rows"]
    HELD "held" "a given lease" ["lease" "by" "ttl" "hold_max" "lock_delay"]
    SEND "send" "a `send`" [
        "send" "payload" "id" "expect_version" "expect_generation" "expect_visit" "expect_execution" "entity" "answer"
        "fault" "then"
    ]
    APPLY "apply" "an `apply`" ["apply" "generation" "entity" "answer" "fault" "then"]
    CREATE "create" "a `create`" ["create" "desired" "labels" "on_existing" "answer" "fault" "then"]
    KILL "kill" "a `kill`" ["kill" "entity" "answer" "fault" "then"]
    UNPARK "unpark" "an `unpark`" ["unpark" "entity" "answer" "fault" "then"]
    DELETE "delete" "a `delete`" ["delete" "entity" "answer" "fault" "then"]
    ACQUIRE "acquire" "an `acquire`" ["acquire" "by" "ttl" "hold_max" "lock_delay" "wait" "answer" "then"]
    EXTEND "extend" "an `extend`" ["extend" "by" "ttl" "answer" "then"]
    RELEASE "release" "a `release`" ["release" "by" "answer" "then"]
    ROWS "rows" "a request on `rows`" ["rows" "by" "id" "answer" "then"]
    ADVANCE "advance" "an `advance`" ["advance" "then"]
    CRASH "crash" "a `crash`" ["crash" "then"]
    DOWN "down" "a `down`" ["down" "then"]
    WALL "wall" "a `wall`" ["wall" "then"]
    PLANT "plant" "a `fault`" ["fault" "then"]
    CHECK "check" "a check" ["then"]
    FAULT "fault" "a fault" ["step" "call" "attempt" "what" "times" "entity"]
    THEN "then" "what must be so" [
        "entity" "exists" "state" "version" "generation" "observed" "desired" "data" "outputs" "parked" "locked"
        "attempts" "inbox" "outcome" "conditions" "answers" "history" "leases" "rows" "counts" "made"
    ]
    PROMISE "promise" "a promise" [
        "name" "entity" "when" "state" "parked" "locked" "outcome" "holds" "all" "any" "field" "op" "value" "made" "counts"
    ]
    TEST "test" "a test" ["state" "parked" "locked" "outcome" "holds" "all" "any" "field" "op" "value"]
    HOLDING "holding" "what a lease must be like" ["holder" "in_line" "history"]
    COUNTED "counted" "a count of rows" ["table" "where" "is" "at_least" "at_most"]
    REPLY "reply" "what a target replies" ["target" "status" "body" "what" "times"]
    MADE "made" "a request that was made" ["target" "url" "body" "tries"]
    AT_MOST "at-most" "a bound on requests" ["target" "at_most"]
    EXPLORE "explore" "`explore`" ["depth" "faults" "states"]
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// The guard language's own table, which the manifest's reader knows.
    const FOREIGN: &str = "comparison";

    #[test]
    fn the_schema_for_editors_describes_exactly_the_keys_of_the_reader() {
        let schema: Value = serde_json::from_str(crate::scenario::SCENARIO_SCHEMA).expect("JSON");
        let defs = schema["$defs"].as_object().expect("$defs").iter();
        let described = defs.filter(|(_, def)| def.get("properties").is_some()).map(|(name, _)| name.as_str());
        let described: BTreeSet<&str> = described.filter(|name| *name != FOREIGN).collect();
        let known: BTreeSet<&str> = ALL.iter().map(|(def, _)| *def).filter(|def| !def.is_empty()).collect();
        assert_eq!(described, known, "tables");
        for (def, keys) in ALL {
            let table = if def.is_empty() { &schema } else { &schema["$defs"][def] };
            let properties = table["properties"].as_object().expect(def);
            let described: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
            assert_eq!(described, keys.names.iter().copied().collect(), "{def}");
            assert_eq!(table["additionalProperties"], Value::Bool(false), "{def}");
            for (key, about) in properties {
                assert!(about["description"].is_string(), "{def}.{key} has no description");
            }
        }
    }

    #[test]
    fn the_page_about_scenarios_names_every_key() {
        let page = include_str!("../../../../docs/testing.md");
        let words: BTreeSet<&str> = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
        for (def, keys) in ALL {
            let missing: Vec<_> = keys.names.iter().filter(|key| !words.contains(*key)).collect();
            assert!(missing.is_empty(), "{def}: {missing:?}");
        }
    }

    #[test]
    fn its_examples_of_promises_are_read() {
        let page = include_str!("../../../../docs/testing.md");
        let example = page.split("```").nth(1).and_then(|part| part.strip_prefix("toml")).expect("a block of TOML");
        let schema: Value = serde_json::from_str(crate::scenario::SCENARIO_SCHEMA).expect("JSON");
        let text = format!("scenario = \"an example\"\n{example}");
        let schema = jsonschema::draft202012::new(&schema).expect("a schema");
        assert!(schema.is_valid(&toml::from_str(&text).expect("TOML")));
    }

    #[test]
    fn an_editor_accepts_good_scenarios_and_marks_bad_ones() {
        let schema: Value = serde_json::from_str(crate::scenario::SCENARIO_SCHEMA).expect("JSON");
        let schema = jsonschema::draft202012::new(&schema).expect("a schema");
        let check = |text: &str| schema.is_valid(&toml::from_str(text).expect("TOML"));
        let forms = include_str!("../../tests/it/samples/forms.scenario.toml");
        assert!(check(forms));
        for (find, replace) in [
            ("scenario = ", "senario = "),
            ("expect_visit ", "expect_vizit "),
            ("\"refused invalid\"", "\"invalid\""),
            ("\"accepted again\"\n[[when]]", "\"again\"\n[[when]]"),
            ("crash = true", "crash = false"),
            ("down = \"5m\"", "down = \"5 minutes\""),
            ("wall = \"-1h\"", "wall = \"1h\""),
            ("\"until-idle\"", "\"until-idel\""),
            ("\"exhausted\"", "\"tired\""),
            ("\"recreate\"", "\"again\""),
            ("what = \"fenced\"", "what = \"fence\""),
            ("op    = \"ge\"", "op = \">=\""),
            ("depth  = 12", "depth = 0"),
            ("wait       = \"1m\"", "waits = \"1m\""),
            ("disk = \"rival\"", "disk = { owner = \"rival\" }"),
            ("call = \"extend 2\"", "call = \"extent 2\""),
            ("kill   = \"no longer wanted\"", "kill = \"x\"\nunpark = true"),
        ] {
            assert_eq!(forms.matches(find).count(), 1, "{find}");
            assert!(!check(&forms.replace(find, replace)), "{replace}");
        }
    }
}
