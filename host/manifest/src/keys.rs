//! Every key a manifest may have, table by table. `machine.schema.json` describes the same keys; a
//! test holds the two together.

/// The keys of a kind of table.
#[derive(Debug)]
pub struct Keys {
    /// What the table is, in a message: `a manifest`.
    pub what: &'static str,
    /// The keys.
    pub names: &'static [&'static str],
}

macro_rules! keys {
    ($($(#[$doc:meta])* $table:ident $def:literal $what:literal [$($name:literal)*])*) => {
        $($(#[$doc])* pub(crate) const $table: Keys = Keys { what: $what, names: &[$($name),*] };)*

        /// Each with its name under `$defs` in the schema; empty is the root.
        #[cfg(test)]
        const ALL: &[(&str, &Keys)] = &[$(($def, &$table)),*];
    };
}

keys! {
    MANIFEST "" "a manifest" [
        "machine" "owner" "component" "initial" "revisions" "apply" "labels" "desired" "data" "outputs" "events"
        "states" "calendars" "leases" "targets" "tables" "peers" "limits"
    ]
    /// `[desired]` and `[data]`.
    DOCUMENT "document" "a document" ["schema" "default"]
    OUTPUTS "outputs" "outputs" ["schema"]
    EVENT "event" "an event" ["on_busy" "dedup" "schema"]
    STATE "state" "a state" [
        "kind" "outcome" "step" "needs" "to" "on" "after" "deadline" "wait" "idle" "total" "retry" "on_failure"
        "on_permanent" "on_exhausted"
    ]
    /// An entry of `on`.
    MOVE "move" "a move" ["to" "guard" "set"]
    /// An entry of a step's `to`.
    TRANSITION "transition" "a transition" ["to" "guard" "requires" "set"]
    TIMER "timer" "a timer" [
        "name" "wait" "due" "at" "next" "every" "day" "zone" "at_least" "calendar" "holidays" "to" "set"
    ]
    CALENDAR "calendar" "a calendar" ["weekend" "holidays"]
    TARGET "outbound" "a target" [
        "method" "url" "timeout" "retry" "secret" "fence" "on_late" "on_dead_letter" "answer_max"
    ]
    SECRET "secret" "a secret" ["name" "header" "prefix"]
    ON_LATE "on-late" "a use of late results" ["compensate"]
    LEASE "lease" "a lease" ["ttl" "max" "hold_max" "lock_delay"]
    /// A lease that a state needs or a transition requires, if its name is not written out.
    LEASE_FROM "lease-from" "the name of a lease" ["from"]
    RETRY "retry" "a retry policy" ["attempts" "first" "factor" "max" "jitter"]
    FAILURE "failure" "a failure path" ["to" "set"]
    LIMITS "limits" "limits" ["memory" "transitions" "execution" "history"]
    COMPARISON "comparison" "a comparison" ["field" "op" "value"]
    GUARD_ALL "all" "a guard" ["all"]
    GUARD_ANY "any" "a guard" ["any"]
    VALUE "computed" "a value" ["from" "value" "json"]
    CHANGE "change" "a change" ["increment" "append" "max" "min" "remove" "from" "value" "json"]
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::schema::Compiled;
    use interlock_kernel::doc::Doc;
    use serde_json::Value;
    use std::collections::BTreeSet;

    #[test]
    fn the_schema_for_editors_describes_exactly_the_keys_of_the_parser() {
        let schema: Value = serde_json::from_str(crate::MANIFEST_SCHEMA).expect("JSON");
        let described: BTreeSet<&str> = schema["$defs"]
            .as_object()
            .expect("$defs")
            .iter()
            .filter(|(_, def)| def.get("properties").is_some())
            .map(|(name, _)| name.as_str())
            .collect();
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
    fn an_editor_accepts_good_manifests_and_marks_bad_ones() {
        let schema = Compiled::new(&serde_json::from_str(crate::MANIFEST_SCHEMA).expect("JSON")).expect("a schema");
        let check = |text: &str| schema.check(&Doc::new(toml::from_str(text).expect("TOML")));
        let (resource, forms) =
            (include_str!("../tests/samples/resource.toml"), include_str!("../tests/samples/forms.toml"));
        assert_eq!(check(resource), Ok(()));
        assert_eq!(check(forms), Ok(()));
        for (find, replace) in [
            ("owner     =", "ovner ="),
            ("\"newest\"", "\"latest\""),
            ("[\"provisioning\"]", "[\"killed\"]"),
            ("idle       =", "iddle ="),
            ("\"15m\"", "15"),
            ("\"ne\"", "\"!=\""),
            ("outcome = \"failed\"", ""),
            ("wait = \"90s\", ", ""),
            ("jitter = 0.1 }\non_failure", "jitter = 3 }\non_failure"),
            ("\"park\"", "\"stop\""),
            ("64MiB", "64MB"),
            ("{ from = \"event.size\" } }", "{ size = 1 } }"),
            ("wait = \"90s\", ", "wait = \"90s\", day = 1, "),
            ("wait = \"90s\", ", "every = \"day\", at = \"09:00\", "),
            ("wait = \"90s\", ", "every = \"workday\", at = \"09:00\", zone = \"UTC\", "),
            ("wait = \"90s\", ", "at = \"9:00\", "),
            ("[states.lost]", "[leases]\n\"a*b\" = {}\n[states.lost]"),
            ("[states.lost]", "[leases]\na = { hold = \"1h\" }\n[states.lost]"),
            ("idle       =", "needs = [\"a*\"]\nidle ="),
            ("idle       =", "needs = [{ from = \"now\" }]\nidle ="),
            ("[states.ready.on.desired-changed]\n", "[states.ready.on.desired-changed]\nrequires = [\"a\"]\n"),
            ("owner     =", "tables = \"jobs\"\nowner ="),
            ("owner     =", "tables = [\"jobs\", \"jobs\"]\nowner ="),
            ("owner     =", "peers = [\"a_b\"]\nowner ="),
        ] {
            assert_eq!(resource.matches(find).count(), 1, "{find}");
            check(&resource.replace(find, replace)).expect_err(replace);
        }
    }
}
