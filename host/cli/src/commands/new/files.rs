//! The files of a new folder, by language. `{{word}}` in them is filled in.

use interlock_build::Language;
use std::path::Path;

/// A file below the folder.
pub(super) struct File {
    pub(super) path: &'static str,
    pub(super) text: &'static str,
}

macro_rules! template {
    ($at:literal => $path:literal) => {
        File { path: $path, text: include_str!(concat!("../../../templates/", $at)) }
    };
}

/// The files of every language, with those of one behind them.
macro_rules! files {
    ($($at:literal => $path:literal),+ $(,)?) => {
        &[
            template!("common/machine.toml" => "machine.toml"),
            $(template!($at => $path),)+
            template!("common/scenarios/works.scenario.toml" => "scenarios/works.scenario.toml"),
            template!("common/scenarios/crash.scenario.toml" => "scenarios/crash.scenario.toml"),
            template!("common/scenarios/fails.scenario.toml" => "scenarios/fails.scenario.toml"),
            template!("common/README.md" => "README.md"),
            template!("common/gitignore" => ".gitignore"),
        ]
    };
}

const RUST: &[File] = files!["rust/Cargo.toml" => "Cargo.toml", "rust/src/lib.rs" => "src/lib.rs"];
const JAVASCRIPT: &[File] = files![
    "js/package.json" => "package.json",
    "js/src/steps.js" => "src/steps.js",
    "js/jsconfig.json" => "jsconfig.json",
];
const TYPESCRIPT: &[File] = files![
    "ts/package.json" => "package.json",
    "ts/src/steps.ts" => "src/steps.ts",
    "ts/tsconfig.json" => "tsconfig.json",
];
const PYTHON: &[File] = files![
    "python/pyproject.toml" => "pyproject.toml",
    "python/steps.py" => "steps.py",
    "python/requirements.txt" => "requirements.txt",
];
const C: &[File] = files!["c/steps.c" => "steps.c", "c/compile_flags.txt" => "compile_flags.txt"];

/// What a folder of this language is made of.
pub(super) fn files(language: Language) -> &'static [File] {
    match language {
        Language::Rust => RUST,
        Language::JavaScript => JAVASCRIPT,
        Language::TypeScript => TYPESCRIPT,
        Language::Python => PYTHON,
        Language::C => C,
    }
}

/// Where the steps of a new folder are.
pub(super) fn steps(language: Language) -> &'static str {
    match language {
        Language::Rust => "src/lib.rs",
        Language::JavaScript => "src/steps.js",
        Language::TypeScript => "src/steps.ts",
        Language::Python => "steps.py",
        Language::C => "steps.c",
    }
}

/// What installs the tools that belong to a new folder; those of Rust and C belong to the machine.
pub(super) fn install(language: Language, folder: &Path) -> Option<String> {
    let here = folder == Path::new(".");
    let at = |name: &str| if here { name.to_owned() } else { folder.join(name).display().to_string() };
    match language {
        Language::Rust | Language::C => None,
        Language::JavaScript | Language::TypeScript if here => Some("npm install".to_owned()),
        Language::JavaScript | Language::TypeScript => Some(format!("npm install --prefix {}", folder.display())),
        Language::Python => {
            let (venv, wanted) = (at(".venv"), at("requirements.txt"));
            Some(format!("python3 -m venv {venv} && {venv}/bin/pip install -r {wanted}"))
        }
    }
}
