//! Runs every test that answers a report of `docs/scenarios.md`, and shows the table with what came of each.
//!
//! `cargo run -p interlock-track`. Exits with 1 if a test failed, or is not there.

mod table;

use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use table::{Answered, Row, Test, rows};

fn main() -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("docs/scenarios.md");
    let rows = rows(&std::fs::read_to_string(&file).with_context(|| file.display().to_string())?);
    let mut wanted: BTreeMap<&str, BTreeSet<&Test>> = BTreeMap::new();
    for test in rows.iter().flat_map(|row| &row.tests) {
        wanted.entry(&test.package).or_default().insert(test);
    }
    let mut results = BTreeMap::new();
    for (package, tests) in wanted {
        eprintln!("{} of interlock-{package}", count(tests.len(), "test"));
        results.extend(run(&root, package, &tests)?);
    }
    let failed = show(&rows, &results);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs tests of one package; what the runner says of each: `ok`, `FAILED`. One that is not there has no result.
fn run<'t>(root: &Path, package: &str, tests: &BTreeSet<&'t Test>) -> Result<Vec<(&'t Test, String)>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--locked", "--package", &format!("interlock-{package}"), "--all-targets", "--"])
        .args(tests.iter().map(|test| test.path.as_str()))
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cargo did not start")?;
    let output = String::from_utf8_lossy(&output.stdout);
    let said: Vec<(&str, &str)> = output
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "))
        .map(|(path, result)| (path.trim(), result.trim()))
        .collect();
    let result = |test: &&'t Test| {
        // A test of a library has the name of its module before it.
        let of_it = said.iter().find(|(path, _)| *path == test.path || path.ends_with(&format!("::{}", test.path)));
        of_it.map(|(_, result)| (*test, (*result).to_owned()))
    };
    Ok(tests.iter().filter_map(result).collect())
}

/// Prints the table and the totals; whether anything is not as it should be.
fn show(rows: &[Row], results: &BTreeMap<&Test, String>) -> bool {
    let (mut failed, mut ran) = (0, 0);
    for row in rows {
        let word = match row.answered {
            Answered::Whole => "answered",
            Answered::Partly => "partly  ",
            Answered::NotYet => "not yet ",
        };
        println!("{word}  {}\n          {}", row.report, row.origin);
        for test in &row.tests {
            let result = results.get(test).map_or("NOT THERE", String::as_str);
            ran += 1;
            failed += usize::from(result != "ok");
            println!("          {result:<9}  {}::{}", test.package, test.path);
        }
    }
    let number = |answered| rows.iter().filter(|row| row.answered == answered).count();
    println!(
        "\n{}: {} answered, {} partly, {} not yet; {} run, {failed} not as they should be",
        count(rows.len(), "report"),
        number(Answered::Whole),
        number(Answered::Partly),
        number(Answered::NotYet),
        count(ran, "test")
    );
    failed > 0
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
