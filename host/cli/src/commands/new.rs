//! `interlock new`: a folder with a machine, its steps in one language, and scenarios that it passes.
//!
//! The files are those of `host/cli/templates`, with a few words put in. Nothing is installed, and nothing that is
//! there is overwritten.

mod files;

use crate::args::New;
use crate::failed::Failed;
use crate::out::Out;
use crate::show;
use files::{File, files, install, steps};
use interlock_build::Language;
use interlock_kernel::ids::MachineName;
use serde::Serialize;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// What was made.
#[derive(Debug, Serialize)]
pub(crate) struct Made {
    /// The machine.
    pub(crate) machine: String,
    /// The language of its steps.
    pub(crate) language: &'static str,
    /// The folder.
    pub(crate) folder: String,
    /// Its files, below the folder.
    pub(crate) files: Vec<&'static str>,
    /// What to run next, in order.
    pub(crate) next: Vec<String>,
}

/// Runs it.
pub(crate) fn run(args: &New, out: Out) -> Result<(), Failed> {
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from(args.name.as_str()));
    let sdk = match args.lang {
        Language::Rust => rust_sdk(args.sdk.as_deref())?,
        _ => PathBuf::new(),
    };
    vacant(&folder)?;
    let files = files(args.lang);
    for file in files {
        write(&folder, file, &filled(file.text, &args.name, args.lang, &sdk))?;
    }
    let made = Made {
        machine: args.name.to_string(),
        language: args.lang.name(),
        files: files.iter().map(|file| file.path).collect(),
        next: next(&folder, args.lang),
        folder: folder.display().to_string(),
    };
    out.result(&made, |paint| show::made(&made, paint));
    Ok(())
}

/// A folder that is not there, or empty: a file of somebody's is never written over.
fn vacant(folder: &Path) -> Result<(), Failed> {
    match fs::read_dir(folder) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        Err(why) => Err(Failed::Input(format!("{}: {why}", folder.display()))),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Failed::Input(format!(
                "{}: expected no folder of this name, or an empty one, got one with files; take another name, or \
                 another folder with --folder",
                folder.display()
            ))),
        },
    }
}

/// The Rust SDK, which Cargo finds by its path: it is not published.
fn rust_sdk(given: Option<&Path>) -> Result<PathBuf, Failed> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/rust");
    let path = given.unwrap_or(&own);
    let is_sdk = path.join("Cargo.toml").is_file();
    match fs::canonicalize(path).ok().filter(|_| is_sdk) {
        Some(path) => Ok(path),
        None => Err(Failed::Input(format!(
            "expected Interlock's Rust SDK in {}, got no Cargo.toml there; say where it is: --sdk CHECKOUT/sdk/rust",
            path.display()
        ))),
    }
}

fn write(folder: &Path, file: &File, text: &str) -> Result<(), Failed> {
    let path = folder.join(file.path);
    let failed = |why: std::io::Error| Failed::Input(format!("{}: {why}", path.display()));
    fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
    let mut made = fs::File::create_new(&path).map_err(failed)?;
    made.write_all(text.as_bytes()).map_err(failed)
}

/// The text with the words of this folder put in.
fn filled(text: &str, name: &MachineName, language: Language, sdk: &Path) -> String {
    let install = install(language, Path::new(".")).map_or_else(String::new, |line| format!("{line}\n"));
    let words = [
        ("{{name}}", name.to_string()),
        ("{{language}}", language.to_string()),
        ("{{steps}}", format!("`{}`", steps(language))),
        ("{{install}}", install),
        ("{{sdk}}", sdk.display().to_string()),
    ];
    words.iter().fold(text.to_owned(), |text, (word, with)| text.replace(word, with))
}

fn next(folder: &Path, language: Language) -> Vec<String> {
    let shown = folder.display();
    install(language, folder)
        .into_iter()
        .chain([format!("interlock test {shown}"), format!("interlock dev {shown}")])
        .collect()
}
