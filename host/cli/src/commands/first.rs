//! The first scenario of a machine that has none: made from its manifest, so that it runs as it is.

use interlock_kernel::doc::Doc;
use interlock_kernel::machine::{DESIRED_CHANGED, Machine};
use serde_json::Value;
use std::path::Path;

/// How to write it.
pub(super) fn advice(folder: &Path, machine: &Machine) -> String {
    let shown = if folder == Path::new(".") { String::new() } else { format!("{}/", folder.display()) };
    let text: String = scenario(machine)
        .lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") })
        .collect();
    let here = if folder == Path::new(".") { String::new() } else { format!(" {}", folder.display()) };
    let folder = folder.display();
    format!(
        "{folder}: no scenarios yet. Write the first one, {shown}first.scenario.toml:\n\n{text}\nthen: interlock test{here}"
    )
}

/// A scenario that sends the first event that the initial state takes, and looks what comes of it.
fn scenario(machine: &Machine) -> String {
    let initial = &machine.initial;
    let mut text = "scenario = \"what it shows, in a sentence\"\n".to_owned();
    let taken = machine.states.get(initial).and_then(|state| state.on.keys().find(|event| **event != *DESIRED_CHANGED));
    if let Some(event) = taken {
        text.push_str(&format!("\n[[when]]\nsend    = \"{event}\"\n"));
        let spec = machine.events.get(event);
        let schema = spec.and_then(|spec| spec.schema.as_ref()).map(Doc::value);
        if let Some(payload) = schema.and_then(sample) {
            text.push_str(&format!("payload = {}\n", toml(&payload)));
        }
        text.push_str("answer  = \"accepted\"\n\n[[when]]\nadvance = \"until-idle\"\n");
    }
    text.push_str(&format!("\n[then]\nstate = \"{initial}\"\n"));
    text
}

/// A value that a schema most likely accepts; none for one that accepts no value, or needs none.
fn sample(schema: &Value) -> Option<Value> {
    let first = |key: &str| schema[key].as_array().and_then(|all| all.first()).cloned();
    let given = [schema.get("const").cloned(), schema.get("default").cloned(), first("examples"), first("enum")];
    if let Some(given) = given.into_iter().flatten().next() {
        return Some(given);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"].as_array()?.first()?.as_str());
    Some(match kind? {
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        "boolean" => true.into(),
        "string" => "x".into(),
        "array" => Vec::<Value>::new().into(),
        "object" => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let fields = required.filter_map(|name| Some((name.to_owned(), sample(&schema["properties"][name])?)));
            Value::Object(fields.collect())
        }
        _ => return None,
    })
}

/// JSON as TOML writes it in a line.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name} = {}", toml(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str) -> anyhow::Result<Machine> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests").join(name).join("machine.toml");
        let report = interlock_manifest::parse("machine.toml", &std::fs::read_to_string(path)?);
        report.manifest.map(|manifest| manifest.machine).ok_or_else(|| anyhow::anyhow!("{:?}", report.problems))
    }

    #[test]
    fn the_first_scenario_of_each_example_can_be_read() -> anyhow::Result<()> {
        for name in ["resource", "noop", "survey", "hostile"] {
            let machine = machine(name)?;
            let text = scenario(&machine);
            let read = interlock_lab::scenario::read("first", &text, &machine);
            assert!(read.is_ok(), "{name}: {text}\n{read:?}");
        }
        Ok(())
    }

    #[test]
    fn the_advice_names_file_and_command() -> anyhow::Result<()> {
        let told = advice(Path::new("guests/resource"), &machine("resource")?);
        expect_test::expect![[r#"
            guests/resource: no scenarios yet. Write the first one, guests/resource/first.scenario.toml:

              scenario = "what it shows, in a sentence"

              [[when]]
              send    = "resize"
              payload = { size = 1 }
              answer  = "accepted"

              [[when]]
              advance = "until-idle"

              [then]
              state = "ready"

            then: interlock test guests/resource"#]]
        .assert_eq(&told);
        Ok(())
    }
}
