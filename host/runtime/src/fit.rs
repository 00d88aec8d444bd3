//! Whether a component and a machine are made for each other: what the one imports, the other has to give.

use crate::check::{Inspection, Problem};
use interlock_kernel::machine::Machine;

/// What does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Why the component cannot be deployed for the machine.
    pub problems: Vec<Problem>,
    /// What the machine declares and the component does not use.
    pub warnings: Vec<Problem>,
}

/// Functions of `rows` that look at no table.
const WITHOUT_TABLE: [&str; 2] = ["require-entity", "answers"];

/// Compares what a component imports with what a machine declares.
#[must_use]
pub fn fit(inspection: &Inspection, machine: &Machine) -> Fit {
    let rows = inspection.can.iter().find(|power| power.name == "rows");
    let used = rows.into_iter().flat_map(|power| &power.functions);
    let used: Vec<&str> = used.map(String::as_str).filter(|name| !WITHOUT_TABLE.contains(name)).collect();
    let mut found = Fit::default();
    if !used.is_empty() && machine.tables.is_empty() {
        found.problems.push(Problem {
            code: "no-tables",
            subject: "interlock:step/rows".to_owned(),
            expected: format!("the machine {} to name the tables that its steps use", machine.name),
            got: format!("a component that imports {}, and no tables", used.join(", ")),
            remedy: "write tables = [\"NAME\"] into the manifest, or build the component without them".to_owned(),
        });
    }
    if used.is_empty() && !machine.tables.is_empty() {
        let tables: Vec<&str> = machine.tables.iter().map(|name| name.as_str()).collect();
        found.warnings.push(Problem {
            code: "unused-tables",
            subject: format!("machine {}", machine.name),
            expected: "a component that uses the tables its machine names".to_owned(),
            got: format!("one that imports nothing of interlock:step/rows, and the tables {}", tables.join(", ")),
            remedy: "take them out of tables in the manifest".to_owned(),
        });
    }
    found
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

    #[test]
    fn a_component_that_uses_tables_is_refused_for_a_machine_that_names_none() {
        let problems = fit(&component(&["claim", "update"]), &machine("")).problems;
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "no-tables: interlock:step/rows: expected the machine worker to name the tables that its steps use, got a \
              component that imports claim, update, and no tables; write tables = [\"NAME\"] into the manifest, or \
              build the component without them"
            ]
        );
        assert_eq!(fit(&component(&["claim"]), &machine("tables = [\"jobs\"]")), super::Fit::default());
    }

    #[test]
    fn a_condition_on_an_entity_needs_no_table() {
        assert_eq!(fit(&component(&["require-entity", "answers"]), &machine("")), super::Fit::default());
    }

    #[test]
    fn tables_that_no_step_uses_are_a_warning() {
        let found = fit(&component(&[]), &machine("tables = [\"jobs\"]"));
        assert_eq!((found.problems.len(), found.warnings.len()), (0, 1));
        let warning = found.warnings.first().expect("a warning");
        assert_eq!((warning.code, warning.subject.as_str()), ("unused-tables", "machine worker"));
        assert!(warning.got.ends_with("the tables jobs"), "{warning}");
    }
}
