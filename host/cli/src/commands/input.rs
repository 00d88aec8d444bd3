//! Documents as people hand them over: JSON, `@FILE`, or `-` for standard input.

use crate::failed::{Code, Failed};
use crate::out::Out;
use interlock_daemon::api::Document;
use interlock_kernel::doc::{BadDoc, Doc};
use interlock_manifest::Report;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file that holds the manifest of a table ends like this.
pub(crate) const TABLE_ENDING: &str = ".table.toml";

/// A file that holds the manifest of a schedule ends like this.
pub(crate) const SCHEDULE_ENDING: &str = ".schedule.toml";

/// How much of a wrong document is shown: enough to recognize it.
const EXCERPT_CHARS: usize = 40;

/// The document that an argument stands for.
///
/// # Errors
/// [`Failed::Input`] with the file, and what is wrong with it.
pub(crate) fn document(name: &str, argument: &str) -> Result<Document, Failed> {
    let (place, text) = text(name, argument)?;
    Doc::parse(&text).map(Document).map_err(|why| {
        let what = match why {
            // The parser speaks of what it expected, which is not what it got.
            BadDoc::Syntax(why) => format!("expected JSON, got {} ({why})", excerpt(&text)),
            BadDoc::Integer(_) | BadDoc::Size(_) => why.to_string(),
        };
        Failed::Input(format!("{place}: {what}"))
    })
}

/// The text that an argument stands for, and where it is from.
///
/// # Errors
/// [`Failed::Input`] with the file.
pub(crate) fn text(name: &str, argument: &str) -> Result<(String, String), Failed> {
    if let Some(file) = argument.strip_prefix('@') {
        return Ok((file.to_owned(), read(Path::new(file))?));
    }
    if argument != "-" {
        return Ok((name.to_owned(), argument.to_owned()));
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|why| Failed::Input(format!("standard input: {why}")))?;
    Ok(("standard input".to_owned(), text))
}

/// The beginning of a text, in backquotes.
fn excerpt(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("`{}...`", line.get(..end).unwrap_or_default()),
        None if line.is_empty() => "nothing".to_owned(),
        None => format!("`{line}`"),
    }
}

/// A text file.
///
/// # Errors
/// [`Failed::Input`] with the file.
pub(crate) fn read(file: &Path) -> Result<String, Failed> {
    std::fs::read_to_string(file).map_err(|why| Failed::Input(format!("{}: {why}", file.display())))
}

/// Whether a file says of itself by its ending which manifest it is.
pub(crate) fn ends(path: &Path, ending: &str) -> bool {
    path.to_string_lossy().ends_with(ending)
}

/// The manifests with an ending that an argument stands for: itself, or those in a folder, by name.
///
/// # Errors
/// [`Failed::Input`] with the folder.
pub(crate) fn manifests(argument: &Path, ending: &str) -> Result<Vec<PathBuf>, Failed> {
    if !argument.is_dir() {
        return Ok(vec![argument.to_owned()]);
    }
    let failed = |why: std::io::Error| Failed::Input(format!("{}: {why}", argument.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(argument).map_err(failed)? {
        found.push(argument.join(entry.map_err(failed)?.file_name()));
    }
    found.retain(|path| path.is_file() && ends(path, ending));
    found.sort();
    Ok(found)
}

/// The manifests with an ending that some arguments stand for; at least one.
///
/// # Errors
/// [`Failed::Input`] with the folder, or that there is none.
pub(crate) fn some_manifests(arguments: &[PathBuf], ending: &str) -> Result<Vec<PathBuf>, Failed> {
    let mut files = Vec::new();
    for path in arguments {
        files.extend(manifests(path, ending)?);
    }
    if files.is_empty() {
        let paths: Vec<_> = arguments.iter().map(|path| path.display().to_string()).collect();
        return Err(Failed::Input(format!("{}: expected NAME{ending}, got none", paths.join(", "))));
    }
    Ok(files)
}

/// Reads a manifest of one kind: shown under this name, this text.
type Parse<T> = fn(&str, &str) -> Result<(T, Report), Box<Report>>;

/// The texts of manifests, once all of them are sound: what is wrong with each is shown.
///
/// # Errors
/// [`Failed::Input`] with a file that cannot be read; that not all are sound.
pub(crate) fn sound<T>(files: &[PathBuf], parse: Parse<T>, out: Out) -> Result<Vec<String>, Failed> {
    let mut sound = Vec::new();
    for file in files {
        let text = read(file)?;
        match parse(&file.display().to_string(), &text) {
            Ok((_, report)) => {
                out.findings_of(&report);
                sound.push(text);
            }
            Err(report) => out.findings_of(&report),
        }
    }
    if sound.len() < files.len() {
        Out::over(Code::Input)?;
    }
    Ok(sound)
}

/// The manifest that an argument stands for, and its text: itself, or the one in a folder.
///
/// # Errors
/// [`Failed::Input`] with what was expected and what was found.
pub(crate) fn manifest(argument: &Path) -> Result<(PathBuf, String), Failed> {
    let path = if argument.is_dir() { argument.join("machine.toml") } else { argument.to_owned() };
    if !path.exists() {
        let got = if argument.is_dir() { "a folder without one" } else { "nothing there" };
        let argument = argument.display();
        return Err(Failed::Input(format!(
            "{argument}: expected a manifest, or a folder with a machine.toml, got {got}"
        )));
    }
    let text = read(&path)?;
    Ok((path, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_document_is_named() {
        let said = |argument: &str| document("payload", argument).map(|_| ()).map_err(|why| why.to_string());
        assert_eq!(said(r#"{"size": 4}"#), Ok(()));
        let syntax = "payload: expected JSON, got `size=4` (expected value at line 1 column 1)";
        assert_eq!(said("size=4"), Err(syntax.to_owned()));
        assert!(said("").is_err_and(|why| why.starts_with("payload: expected JSON, got nothing (")));
        assert!(said("@no/such/file").is_err_and(|why| why.starts_with("no/such/file: ")));
    }

    #[test]
    fn a_manifest_that_is_not_there_says_what_was_expected() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let got = |path: &Path| manifest(path).map(|_| ()).map_err(|why| why.to_string()).err().unwrap_or_default();
        assert!(got(folder.path()).ends_with("a folder with a machine.toml, got a folder without one"));
        assert!(got(&folder.path().join("machine.toml")).ends_with("a folder with a machine.toml, got nothing there"));
        Ok(())
    }
}
