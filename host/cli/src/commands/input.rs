//! Documents as people hand them over: JSON, `@FILE`, or `-` for standard input.

use crate::failed::Failed;
use interlock_daemon::api::Document;
use interlock_kernel::doc::Doc;
use std::io::Read;
use std::path::Path;

/// The document that an argument stands for.
///
/// # Errors
/// [`Failed::Input`] with the file, and what is wrong with it.
pub(crate) fn document(name: &str, argument: &str) -> Result<Document, Failed> {
    let (place, text) = match argument.strip_prefix('@') {
        Some(file) => (file.to_owned(), read(Path::new(file))?),
        None if argument == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|why| Failed::Input(format!("standard input: {why}")))?;
            ("standard input".to_owned(), text)
        }
        None => (name.to_owned(), argument.to_owned()),
    };
    Doc::parse(&text).map(Document).map_err(|why| Failed::Input(format!("{place}: {why}")))
}

/// A text file.
///
/// # Errors
/// [`Failed::Input`] with the file.
pub(crate) fn read(file: &Path) -> Result<String, Failed> {
    std::fs::read_to_string(file).map_err(|why| Failed::Input(format!("{}: {why}", file.display())))
}

/// The manifest that an argument stands for: itself, or the one in a folder.
pub(crate) fn manifest_path(path: &Path) -> std::path::PathBuf {
    if path.is_dir() { path.join("machine.toml") } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_document_is_named() {
        let said = |argument: &str| document("payload", argument).map(|_| ()).map_err(|why| why.to_string());
        assert_eq!(said(r#"{"size": 4}"#), Ok(()));
        assert!(said("{size: 4}").is_err_and(|why| why.starts_with("payload: expected JSON, got")));
        assert!(said("@no/such/file").is_err_and(|why| why.starts_with("no/such/file: ")));
    }
}
