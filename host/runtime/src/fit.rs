//! Whether a component and a machine are made for each other: what the one imports, the other has to give.

use crate::check::{Inspection, Problem};
use interlock_kernel::machine::Machine;

/// Functions of `rows` that look at no table.
const WITHOUT_TABLE: [&str; 2] = ["require-entity", "answers"];

/// What a component imports and its machine does not give, or the other way round. Warnings: one component may serve
/// several machines.
#[must_use]
pub fn fit(inspection: &Inspection, machine: &Machine) -> Option<Problem> {
    let rows = inspection.can.iter().find(|power| power.name == "rows");
    let used = rows.into_iter().flat_map(|power| &power.functions);
    let used: Vec<&str> = used.map(String::as_str).filter(|name| !WITHOUT_TABLE.contains(name)).collect();
    match (used.is_empty(), machine.tables.is_empty()) {
        (false, true) => Some(Problem {
            code: "no-tables",
            subject: "interlock:step/rows".to_owned(),
            expected: format!("the machine {} to name the tables that its steps use", machine.name),
            got: format!("a component that imports {}, and no tables", used.join(", ")),
            remedy: "write tables = [\"NAME\"] into the manifest: its steps would be denied".to_owned(),
        }),
        (true, false) => {
            let tables: Vec<&str> = machine.tables.iter().map(|name| name.as_str()).collect();
            Some(Problem {
                code: "unused-tables",
                subject: format!("machine {}", machine.name),
                expected: "a component that uses the tables its machine names".to_owned(),
                got: format!("one that imports nothing of interlock:step/rows, and the tables {}", tables.join(", ")),
                remedy: "take them out of tables in the manifest".to_owned(),
            })
        }
        (true, true) | (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::fit;
    use crate::check::{Inspection, Power};
    use crate::engine::Place;
    use interlock_kernel::machine::Machine;

    fn component(functions: &[&str]) -> Inspection {
        let functions: Vec<String> = functions.iter().map(ToString::to_string).collect();
        let power = Power { name: "rows".into(), what: "".into(), functions };
        let can = if power.functions.is_empty() { Vec::new() } else { vec![power] };
        Inspection {
            digest: String::new(),
            bytes: 0,
            can,
            cannot: Vec::new(),
            wasi: Vec::new(),
            memory_bytes: 0,
            tables: 0,
            table_elements: 0,
            place: Place::Pooled,
        }
    }

    fn machine(tables: &str) -> Machine {
        let manifest = format!(
            r#"
machine = "worker"
owner   = "tests"
component = "worker.wasm"
initial = "idle"
desired.schema = false
data.schema = false
outputs.schema = false
{tables}
[events.go]
schema = false
[states.idle]
kind = "rest"
on.go = {{ to = "working" }}
[states.working]
step = "work"
to = ["idle"]
deadline = "1m"
on_failure = "park"
"#
        );
        let report = interlock_manifest::parse("machine.toml", &manifest);
        let rendered = interlock_manifest::render(&report, false);
        report.manifest.unwrap_or_else(|| panic!("{rendered}")).machine
    }

    fn told(functions: &[&str], tables: &str) -> Option<String> {
        fit(&component(functions), &machine(tables)).map(|problem| problem.to_string())
    }

    #[test]
    fn a_component_that_uses_tables_for_a_machine_that_names_none_is_told() {
        let text = "no-tables: interlock:step/rows: expected the machine worker to name the tables that its steps use, \
                    got a component that imports claim, update, and no tables; write tables = [\"NAME\"] into the \
                    manifest: its steps would be denied";
        assert_eq!(told(&["claim", "update"], "").as_deref(), Some(text));
        assert_eq!(told(&["claim"], "tables = [\"jobs\"]"), None);
    }

    #[test]
    fn a_condition_on_an_entity_needs_no_table() {
        assert_eq!(told(&["require-entity", "answers"], ""), None);
    }

    #[test]
    fn tables_that_no_step_uses_are_told() {
        let text = "unused-tables: machine worker: expected a component that uses the tables its machine names, got one \
                    that imports nothing of interlock:step/rows, and the tables jobs; take them out of tables in the \
                    manifest";
        assert_eq!(told(&[], "tables = [\"jobs\"]").as_deref(), Some(text));
    }
}
