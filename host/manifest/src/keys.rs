//! Every key a manifest may have, table by table. `machine.schema.json`, `table.schema.json` and
//! `schedule.schema.json` describe the same keys; a test holds them together.

/// The keys of a kind of table.
#[derive(Debug)]
pub struct Keys {
    /// What the table is, in a message: `a manifest`.
    pub what: &'static str,
    /// The keys.
    pub names: &'static [&'static str],
}

macro_rules! keys {
    ($list:ident: $($(#[$doc:meta])* $table:ident $def:literal $what:literal [$($name:literal)*])*) => {
        $($(#[$doc])* pub(crate) const $table: Keys = Keys { what: $what, names: &[$($name),*] };)*

        /// Each with its name under `$defs` in the schema; empty is the root.
        #[cfg(test)]
        const $list: &[(&str, &Keys)] = &[$(($def, &$table)),*];
    };
}

keys! {
    OF_MACHINES:
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
}

keys! {
    OF_BOTH:
    COMPARISON "comparison" "a comparison" ["field" "op" "value"]
    GUARD_ALL "all" "a guard" ["all"]
    GUARD_ANY "any" "a guard" ["any"]
    VALUE "computed" "a value" ["from" "value" "json"]
    CHANGE "change" "a change" ["increment" "append" "max" "min" "remove" "from" "value" "json"]
}

keys! {
    OF_TABLES:
    TABLE "" "a table's manifest" ["table" "owner" "schema" "indexes" "claim" "ttl" "access"]
    INDEX "index" "an index" ["fields" "tie"]
    CLAIM "claim" "what a claim means" ["status" "held" "where" "set" "release" "on_end" "reaper"]
    REAPER "reaper" "a reaper" ["after" "attempts" "dead"]
    TTL "ttl" "a time to live" ["after" "from"]
    ACCESS "access" "what is granted" ["clients" "machines"]
}

keys! {
    OF_SCHEDULES:
    SCHEDULE "" "a schedule" [
        "schedule" "owner" "cron" "zone" "entity" "event" "payload" "due_field" "create" "overlap" "catch_up"
    ]
    CREATION "creation" "what is made" ["desired" "labels"]
    CATCH_UP "catch-up" "a policy" ["all"]
}

#[cfg(test)]
mod tests {
    use super::{Keys, OF_BOTH, OF_MACHINES, OF_SCHEDULES, OF_TABLES};
    use crate::schema::Compiled;
    use interlock_kernel::doc::Doc;
    use serde_json::Value;
    use std::collections::BTreeSet;

    #[test]
    fn the_schemas_for_editors_describe_exactly_the_keys_of_the_parser() {
        for (schema, own) in [(crate::MANIFEST_SCHEMA, OF_MACHINES), (crate::TABLE_SCHEMA, OF_TABLES)] {
            describes(&serde_json::from_str(schema).expect("JSON"), &[own, OF_BOTH].concat());
        }
        describes(&serde_json::from_str(crate::SCHEDULE_SCHEMA).expect("JSON"), OF_SCHEDULES);
    }

    fn describes(schema: &Value, all: &[(&str, &Keys)]) {
        let described: BTreeSet<&str> = schema["$defs"]
            .as_object()
            .expect("$defs")
            .iter()
            .filter(|(_, def)| def.get("properties").is_some())
            .map(|(name, _)| name.as_str())
            .collect();
        let known: BTreeSet<&str> = all.iter().map(|(def, _)| *def).filter(|def| !def.is_empty()).collect();
        assert_eq!(described, known, "tables");
        for (def, keys) in all {
            let table = if def.is_empty() { schema } else { &schema["$defs"][def] };
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

    #[test]
    fn an_editor_accepts_good_tables_and_marks_bad_ones() {
        let schema = Compiled::new(&serde_json::from_str(crate::TABLE_SCHEMA).expect("JSON")).expect("a schema");
        let check = |text: &str| schema.check(&Doc::new(toml::from_str(text).expect("TOML")));
        let pending = include_str!("../tests/samples/pending_ops.table.toml");
        assert_eq!(check(pending), Ok(()));
        assert_eq!(check(include_str!("../tests/samples/forms.table.toml")), Ok(()));
        for (find, replace) in [
            ("owner =", "ovner ="),
            ("table = \"pending_ops\"", "table = \"Pending\""),
            ("by-status ", "created "),
            ("by-status ", "by_status "),
            ("[\"status\", \"priority\"]", "[]"),
            ("[\"status\", \"priority\"]", "[\"a\", \"b\", \"c\", \"d\", \"e\"]"),
            ("tie = \"updated\"", "tie = \"priority\""),
            ("where   = { status = \"pending\" }", "where = { field = \"status\", op = \"!=\", value = 1 }"),
            ("where   = { status = \"pending\" }", "where = { status = { is = 1 } }"),
            ("where   = { status = \"pending\" }", "where = []"),
            ("{ from = \"execution\" }", "{ from = \"event.who\" }"),
            (", dead = { status = \"dead\" }", ""),
            ("after = \"1d\"", "after = 1"),
            ("\"upsert\"]", "\"insert\"]"),
            ("dispatcher =", "dispatcher_1 ="),
        ] {
            assert_eq!(pending.matches(find).count(), 1, "{find}");
            check(&pending.replace(find, replace)).expect_err(replace);
        }
    }
}
