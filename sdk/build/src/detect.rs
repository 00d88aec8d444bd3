//! Which language the step in a folder is written in, and what it is called. Nothing is run to find out.

use crate::BuildError;
use crate::place::at;
use serde_json::Value;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A language that steps are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// A `Cargo.toml`.
    Rust,
    /// A `package.json` whose `main` ends in `.js` or `.mjs`.
    JavaScript,
    /// A `package.json` whose `main` ends in `.ts`.
    TypeScript,
    /// A `pyproject.toml`.
    Python,
    /// Files that end in `.c`, at the top of the folder or in `src/`.
    C,
}

impl Language {
    /// Every one.
    pub const ALL: [Language; 5] =
        [Language::Rust, Language::JavaScript, Language::TypeScript, Language::Python, Language::C];

    /// Its short name: `rust`, `js`, `ts`, `python`, `c`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::JavaScript => "js",
            Language::TypeScript => "ts",
            Language::Python => "python",
            Language::C => "c",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Language::Rust => "Rust",
            Language::JavaScript => "JavaScript",
            Language::TypeScript => "TypeScript",
            Language::Python => "Python",
            Language::C => "C",
        })
    }
}

/// The source of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The folder it is in.
    pub folder: PathBuf,
    /// What it is written in.
    pub language: Language,
    /// What its component is called: the package's name; the folder's, where there is no package.
    pub name: String,
    /// Where the steps are: a file below the folder (JavaScript, TypeScript), a module (Python); empty for the others.
    pub main: String,
}

/// The module that a Python package's steps are in if it names none.
const PYTHON_MAIN: &str = "steps";

/// Whether a folder has the source of a step in it, be it one that [`detect`] refuses.
#[must_use]
pub fn is_step(folder: &Path) -> bool {
    !matches!(detect(folder), Err(BuildError::NoStep { .. } | BuildError::File { .. }))
}

/// Reads what a folder's step is written in.
///
/// A `pyproject.toml` that does not mention interlock, and files in C, count only where nothing else says what the
/// folder is: packages of other languages have them too.
///
/// # Errors
/// [`BuildError::NoStep`] and [`BuildError::SeveralSteps`]; [`BuildError::Manifest`] for one that cannot be read.
pub fn detect(folder: &Path) -> Result<Source, BuildError> {
    if !folder.is_dir() {
        let source = std::io::Error::from(std::io::ErrorKind::NotADirectory);
        return Err(BuildError::File { path: folder.to_owned(), source });
    }
    let (mut sure, mut likely) = (Vec::new(), Vec::new());
    if folder.join("Cargo.toml").is_file() {
        sure.push(Source::new(folder, Language::Rust, own_name(folder)?, String::new()));
    }
    let node = package_json(folder)?;
    sure.extend(node.step);
    if let Some((python, named)) = pyproject(folder)? {
        if named { sure.push(python) } else { likely.push(python) }
    }
    if sure.is_empty() && !c_files(folder)?.is_empty() {
        likely.push(Source::new(folder, Language::C, own_name(folder)?, String::new()));
    }
    let mut found = if sure.is_empty() { likely } else { sure };
    match (found.pop(), found.is_empty(), node.problem) {
        (Some(one), true, _) => Ok(one),
        (Some(last), false, _) => {
            let languages = found.into_iter().chain([last]).map(|source| source.language).collect();
            Err(BuildError::SeveralSteps { folder: folder.to_owned(), languages })
        }
        (None, _, near) => Err(BuildError::NoStep { folder: folder.to_owned(), near }),
    }
}

/// The C files of a folder, by name: those at its top and those in `src/`.
pub(crate) fn c_files(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let mut files = Vec::new();
    for place in [folder.to_owned(), folder.join("src")] {
        if !place.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&place).map_err(at(&place))? {
            let path = entry.map_err(at(&place))?.path();
            if path.is_file() && path.extension().is_some_and(|end| end == "c") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

impl Source {
    fn new(folder: &Path, language: Language, name: String, main: String) -> Self {
        Self { folder: folder.to_owned(), language, name: file_name(&name), main }
    }
}

/// What a `package.json` says.
#[derive(Default)]
struct Node {
    step: Option<Source>,
    /// Why it is not a step's.
    problem: Option<String>,
}

fn package_json(folder: &Path) -> Result<Node, BuildError> {
    let path = folder.join("package.json");
    if !path.is_file() {
        return Ok(Node::default());
    }
    let text = fs::read_to_string(&path).map_err(at(&path))?;
    let wrong = |problem: String| BuildError::Manifest { path: path.clone(), problem };
    let package: Value = serde_json::from_str(&text).map_err(|why| wrong(why.to_string()))?;
    let main = package["main"].as_str().unwrap_or_default().trim_start_matches("./");
    let language = match Path::new(main).extension().and_then(|end| end.to_str()) {
        Some("js" | "mjs") => Language::JavaScript,
        Some("ts") => Language::TypeScript,
        _ => {
            let got = if main.is_empty() { "none".to_owned() } else { format!("{main:?}") };
            let problem = format!("the `main` of its package.json ends in neither .js, .mjs nor .ts: got {got}");
            return Ok(Node { step: None, problem: Some(problem) });
        }
    };
    if !folder.join(main).is_file() {
        return Err(wrong(format!(
            "expected `main` to be the file with the steps, got {main:?}, and there is no such file"
        )));
    }
    let name = match package["name"].as_str() {
        Some(name) => name.to_owned(),
        None => own_name(folder)?,
    };
    Ok(Node { step: Some(Source::new(folder, language, name, main.to_owned())), problem: None })
}

/// The Python step, and whether its package says that it is one.
fn pyproject(folder: &Path) -> Result<Option<(Source, bool)>, BuildError> {
    let path = folder.join("pyproject.toml");
    if !path.is_file() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).map_err(at(&path))?;
    let wrong = |problem: String| BuildError::Manifest { path: path.clone(), problem };
    let project: toml::Table = toml::from_str(&text).map_err(|why| wrong(why.to_string()))?;
    let own = project.get("tool").and_then(|tool| tool.get("interlock"));
    let main = match own.and_then(|own| own.get("main")) {
        None => PYTHON_MAIN.to_owned(),
        Some(toml::Value::String(main)) => main.clone(),
        Some(other) => {
            return Err(wrong(format!("expected `tool.interlock.main` to be the name of a module, got {other}")));
        }
    };
    let name = project.get("project").and_then(|project| project.get("name")).and_then(toml::Value::as_str);
    let name = match name {
        Some(name) => name.to_owned(),
        None => own_name(folder)?,
    };
    Ok(Some((Source::new(folder, Language::Python, name, main), own.is_some())))
}

/// The folder's own name, also for `.`.
fn own_name(folder: &Path) -> Result<String, BuildError> {
    let whole = fs::canonicalize(folder).map_err(at(folder))?;
    Ok(whole.file_name().unwrap_or("step".as_ref()).to_string_lossy().into_owned())
}

/// A package's name as a file's: `@scope/name` is `name`.
fn file_name(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let kept = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = name.chars().map(kept).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "step".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    /// Makes a folder with these files, each `path` or `path: text`, and says what [`detect`] makes of it.
    fn told(files: &[&str]) -> Result<String, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let step = folder.path().join("my-step");
        fs::create_dir_all(step.join("src"))?;
        for file in files {
            let (path, text) = file.split_once(": ").unwrap_or((file, ""));
            fs::write(step.join(path), text)?;
        }
        Ok(match detect(&step) {
            Ok(Source { language, name, main, .. }) => format!("{} {name} {main}", language.name()).trim().to_owned(),
            Err(refused) => refused.to_string().replace(&*folder.path().to_string_lossy(), ""),
        })
    }

    #[test]
    fn each_language_is_known_by_what_is_in_the_folder() -> Result<(), Box<dyn Error>> {
        for (files, expected) in [
            (["Cargo.toml", "src/lib.rs"], "rust my-step"),
            ([r#"package.json: {"name": "@team/resize", "main": "./src/s.js"}"#, "src/s.js"], "js resize src/s.js"),
            ([r#"package.json: {"main": "s.mjs"}"#, "s.mjs"], "js my-step s.mjs"),
            ([r#"package.json: {"name": "..", "main": "src/s.ts"}"#, "src/s.ts"], "ts step src/s.ts"),
            (["pyproject.toml: [project]\nname = \"resize\"", "steps.py"], "python resize steps"),
            (["pyproject.toml: [tool.interlock]\nmain = \"pool.steps\"", "x.c"], "python my-step pool.steps"),
            (["steps.c", "steps.h"], "c my-step"),
            (["src/steps.c", "notes.md"], "c my-step"),
            // What another language's package has as well.
            (["Cargo.toml", "src/zlib.c"], "rust my-step"),
            (["Cargo.toml", "pyproject.toml: [tool.ruff]"], "rust my-step"),
            (["Cargo.toml", r#"package.json: {"scripts": {}}"#], "rust my-step"),
        ] {
            assert_eq!(told(&files)?, expected, "{files:?}");
        }
        Ok(())
    }

    #[test]
    fn a_folder_of_no_language_or_of_several_says_what_was_expected() -> Result<(), Box<dyn Error>> {
        let expected = "/my-step: expected the source of a step: a Cargo.toml, a package.json whose `main` ends in .js, \
                        .mjs or .ts, a pyproject.toml, or .c files there or in src/; ";
        let refused = |files: &[&str]| told(files).map(|told| told.replace(expected, ".. "));
        assert_eq!(refused(&["machine.toml", "src/steps.h"])?, ".. got none of them");
        let near = ".. the `main` of its package.json ends in neither .js, .mjs nor .ts: got ";
        assert_eq!(refused(&["package.json: {}"])?, format!("{near}none"));
        assert_eq!(refused(&[r#"package.json: {"main": "dist/steps"}"#])?, format!("{near}\"dist/steps\""));
        let several = "/my-step: expected a step in one language, got";
        let python = "pyproject.toml: [tool.interlock]";
        let node = r#"package.json: {"main": "s.js"}"#;
        assert_eq!(refused(&["Cargo.toml", python])?, format!("{several} Rust and Python: give each a folder"));
        assert_eq!(refused(&[node, "s.js", python])?, format!("{several} JavaScript and Python: give each a folder"));
        assert_eq!(refused(&["pyproject.toml", "s.c"])?, format!("{several} Python and C: give each a folder"));
        Ok(())
    }

    #[test]
    fn a_manifest_that_is_wrong_is_named() -> Result<(), Box<dyn Error>> {
        for (files, begins) in [
            ("package.json: {", "/my-step/package.json: EOF while parsing"),
            (
                r#"package.json: {"main": "s.js"}"#,
                "/my-step/package.json: expected `main` to be the file with the steps, got \"s.js\"",
            ),
            ("pyproject.toml: [tool", "/my-step/pyproject.toml: TOML parse error"),
            (
                "pyproject.toml: tool.interlock.main = 1",
                "/my-step/pyproject.toml: expected `tool.interlock.main` to be",
            ),
        ] {
            let told = told(&[files])?;
            assert!(told.starts_with(begins), "{files}: {told}");
        }
        assert_eq!(told(&["Cargo.toml"])?, "rust my-step");
        let nowhere = detect(Path::new("/nowhere/at/all")).map_err(|why| why.to_string());
        assert_eq!(nowhere, Err("cannot read or write /nowhere/at/all".to_owned()));
        Ok(())
    }
}
