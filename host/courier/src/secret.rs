//! Secrets: named in the operator's configuration, read at each send, shown to nobody.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A secret in bytes: a signed token with many claims fits several times.
pub const SECRET_BYTES_MAX: usize = 8 << 10;

/// Where a secret is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The content of a file, without the line break at its end. Read each time: it may be rotated.
    File(PathBuf),
    /// A variable of the daemon's environment.
    Env(String),
}

/// A secret's value. It has no `Display`, and its `Debug` says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The value, for the one header it is meant for.
    pub(crate) fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// A secret that cannot be used now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSecret {
    /// Its name.
    pub name: String,
    /// What was there instead of a secret.
    pub got: String,
}

impl fmt::Display for MissingSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected the secret `{}`, got {}", self.name, self.got)
    }
}

impl std::error::Error for MissingSecret {}

/// Reads a secret now. Blocks on the file system.
///
/// # Errors
/// Why it cannot be used: never with its value, and not with its path, which is only the operator's business.
pub(crate) fn read(name: &str, source: Option<&Source>) -> Result<Secret, MissingSecret> {
    let missing = |got: String| MissingSecret { name: name.to_owned(), got };
    let bytes = match source {
        None => return Err(missing("no such secret in the operator's configuration".to_owned())),
        Some(Source::File(path)) => {
            file(path).map_err(|error| missing(format!("no file that can be read: {error}")))?
        }
        Some(Source::Env(variable)) => match std::env::var_os(variable) {
            Some(value) => value.into_encoded_bytes(),
            None => return Err(missing("no value: its environment variable is not set".to_owned())),
        },
    };
    value(bytes).map_err(|got| missing(got.to_owned()))
}

fn file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(SECRET_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn value(mut bytes: Vec<u8>) -> Result<Secret, &'static str> {
    if bytes.len() > SECRET_BYTES_MAX {
        return Err("more than 8 KiB");
    }
    if bytes.ends_with(b"\n") {
        bytes.pop();
        bytes.pop_if(|last| *last == b'\r');
    }
    if bytes.is_empty() {
        return Err("nothing: it is empty");
    }
    // What a header can hold; a line break would begin another header.
    if !bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err("a value with line breaks or other than printable ASCII characters");
    }
    Ok(Secret(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: impl AsRef<[u8]>) -> Result<Vec<u8>, &'static str> {
        value(bytes.as_ref().to_vec()).map(|secret| secret.0)
    }

    #[test]
    fn one_line_break_at_the_end_is_not_part_of_a_secret() {
        for text in ["s3cret", "s3cret\n", "s3cret\r\n"] {
            assert_eq!(shown(text), Ok(b"s3cret".to_vec()), "{text:?}");
        }
        assert_eq!(shown(" two words "), Ok(b" two words ".to_vec()));
    }

    #[test]
    fn what_no_header_can_hold_is_no_secret() {
        for text in ["a\nb", "a\n\n", "a\rb", "\u{e9}", "a\0", "a\tb"] {
            let why = "a value with line breaks or other than printable ASCII characters";
            assert_eq!(shown(text), Err(why), "{text:?}");
        }
        for text in ["", "\n", "\r\n"] {
            assert_eq!(shown(text), Err("nothing: it is empty"), "{text:?}");
        }
    }

    #[test]
    fn a_secret_is_bounded() {
        assert!(shown(vec![b'x'; SECRET_BYTES_MAX]).is_ok());
        assert_eq!(shown(vec![b'x'; SECRET_BYTES_MAX + 1]), Err("more than 8 KiB"));
    }

    #[test]
    fn a_variable_of_the_environment_is_read() {
        let path = read("path", Some(&Source::Env("PATH".to_owned()))).map(|secret| secret.0);
        assert_eq!(path, Ok(std::env::var_os("PATH").unwrap_or_default().into_encoded_bytes()));
        let none = read("none", Some(&Source::Env("INTERLOCK_NO_SUCH_VARIABLE".to_owned())));
        assert_eq!(
            none.map_err(|missing| missing.to_string()),
            Err("expected the secret `none`, got no value: its environment variable is not set".to_owned())
        );
    }
}
