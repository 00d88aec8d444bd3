//! A language's own build script: what it is asked, and what its answer means.
//!
//! It gets a file with the request and prints its answer as the last line of standard output: what it built with,
//! or what is wrong with the author's source.

use crate::place::{Place, at};
use crate::tools::line;
use crate::{BuildError, Options, Problem, Progress, Source};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A component that was made.
pub(crate) struct Made {
    /// Its bytes, or those of a module with a component type in it.
    pub(crate) module: Vec<u8>,
    /// What made it: name and release.
    pub(crate) tool: String,
    /// Files outside of the folder that went into it.
    pub(crate) inputs: Vec<PathBuf>,
}

/// Runs the script and reads its answer.
pub(crate) fn run(mut command: Command, source: &Source, place: &Place, options: Options) -> Result<Made, BuildError> {
    let folder = fs::canonicalize(&source.folder).map_err(at(&source.folder))?;
    let work = place.work()?;
    let out = work.path().join(format!("{}.wasm", source.name));
    let request = json!({
        "folder": folder, "main": source.main, "language": source.language.name(),
        "sdk": place.sdk(), "wit": place.wit(), "out": out, "work": work.path(),
    });
    let file = work.path().join("request.json");
    fs::write(&file, request.to_string()).map_err(at(&file))?;
    command.arg(&file).current_dir(&folder);
    let line = line(&command);
    let output =
        command.output().map_err(|why| BuildError::Tool { command: line.clone(), problem: why.to_string() })?;
    let answer = answer(source, line, &output)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if options.progress == Progress::Shown && !said.trim().is_empty() {
        eprintln!("{}", said.trim_end());
    }
    let module = fs::read(&out).map_err(at(&out))?;
    let inputs = answer["inputs"].as_array().into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from);
    let tool = answer["tool"].as_str().unwrap_or("its build script").to_owned();
    Ok(Made { module, tool, inputs: inputs.collect() })
}

/// The answer of a script that built something.
fn answer(source: &Source, command: String, output: &Output) -> Result<Value, BuildError> {
    let text = String::from_utf8_lossy(&output.stdout);
    let answer: Value = text.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    if output.status.success() && answer["tool"].is_string() {
        return Ok(answer);
    }
    let problems: Vec<Problem> =
        answer["problems"].as_array().into_iter().flatten().filter_map(Problem::from_json).collect();
    if output.status.code() == Some(1) && !problems.is_empty() {
        return Err(BuildError::Problems { folder: source.folder.clone(), problems });
    }
    let said = [text.trim_end(), String::from_utf8_lossy(&output.stderr).trim_end()].join("\n");
    let problem = match said.trim() {
        "" => format!("{}, without a word", output.status),
        said => format!("{}\n{said}", output.status),
    };
    Err(BuildError::Tool { command, problem })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Language;

    /// What becomes of a script that is a line of shell.
    fn told(script: &str) -> Result<String, Box<dyn std::error::Error>> {
        let source =
            Source { folder: "pool".into(), language: Language::Python, name: "x".into(), main: "steps".into() };
        let output = Command::new("sh").args(["-c", script]).output()?;
        Ok(match answer(&source, "build.py".to_owned(), &output) {
            Ok(answer) => format!("made by {}", answer["tool"]),
            Err(refused) => refused.to_string(),
        })
    }

    #[test]
    fn the_last_line_of_a_script_is_its_answer() -> Result<(), Box<dyn std::error::Error>> {
        assert_eq!(
            told(r#"echo noise; echo '{"uses": [], "tool": "componentize-py 1"}'"#)?,
            r#"made by "componentize-py 1""#
        );
        let problems = r#"{"problems": [{"file": "src/steps.py", "line": 3, "column": 5, "text": "no"},
            {"file": "steps.py", "line": 2, "column": null, "text": "nor"}, {"file": null, "text": "at all"}]}"#
            .replace('\n', "");
        let expected = "pool does not build:\npool/src/steps.py:3:5: no\npool/steps.py:2: nor\nat all";
        assert_eq!(told(&format!("echo '{problems}'; exit 1"))?, expected);
        Ok(())
    }

    #[test]
    fn what_a_script_says_that_is_no_answer_is_shown_as_it_is() -> Result<(), Box<dyn std::error::Error>> {
        let crash = "`build.py`: exit status: 1\nbuilding\nTraceback: a fault of the script";
        assert_eq!(told("echo building; echo 'Traceback: a fault of the script' >&2; exit 1")?, crash);
        assert_eq!(told("exit 3")?, "`build.py`: exit status: 3, without a word");
        assert_eq!(told("kill -9 $$")?, "`build.py`: signal: 9 (SIGKILL), without a word");
        assert_eq!(told("echo done")?, "`build.py`: exit status: 0\ndone");
        Ok(())
    }
}
