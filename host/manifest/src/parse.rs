//! From text to a manifest, or to everything that is wrong with it.

use crate::check;
use crate::keys::Keys;
use crate::log::{Log, excerpt};
use crate::node::Table;
use crate::problem::{Code, Problem, Severity};
use crate::read;
use interlock_kernel::machine::Machine;
use interlock_kernel::time::WallTime;
use serde::Serialize;
use std::collections::BTreeSet;
use toml::de::DeTable;

/// A manifest in bytes: four documents of the size the host takes, and room for the rest.
const MANIFEST_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A manifest without errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The definition.
    pub machine: Machine,
    /// The component's file, relative to the manifest; none for a machine without steps.
    pub component: Option<String>,
    /// The text as it was written.
    pub source: String,
}

/// What [`parse`] found, in the order of the text. As JSON it is the list of problems.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The file's name, as it was handed in.
    pub name: String,
    /// There exactly if no problem is an error.
    #[serde(skip)]
    pub manifest: Option<Manifest>,
    /// All of them.
    pub problems: Vec<Problem>,
    /// Further problems that were left out, warnings first.
    pub left_out: usize,
    /// The text is not TOML, so that what hangs on the whole of it could not be checked yet: missing
    /// keys, unknown keys behind the mistake, states and events that nobody uses.
    pub incomplete: bool,
    #[serde(skip)]
    pub(crate) text: String,
}

impl Report {
    fn new(name: &str, text: &str, log: Log<'_>, incomplete: bool) -> Self {
        let (problems, left_out) = log.finish();
        Self { name: name.to_owned(), manifest: None, problems, left_out, incomplete, text: text.to_owned() }
    }

    /// Problems of one severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|problem| problem.severity == severity).count()
    }
}

/// Reads and checks a manifest. `name` is shown with every problem and nothing else; no file is read.
#[must_use]
pub fn parse(name: &str, text: &str) -> Report {
    judge(name, text, None)
}

/// [`parse`], and what is wrong with the manifest as of a day: nothing here reads a clock.
#[must_use]
pub fn parse_as_of(today: WallTime, name: &str, text: &str) -> Report {
    judge(name, text, Some(today))
}

fn judge(name: &str, text: &str, today: Option<WallTime>) -> Report {
    let mut log = Log::new(text);
    let mut manifest = None;
    let mut incomplete = false;
    if text.len() > MANIFEST_BYTES_MAX {
        let message = format!("the manifest is {} bytes", text.len());
        log.add(Code::TooLarge, &(0..0), message, format!("keep it at most {MANIFEST_BYTES_MAX} bytes"));
        incomplete = true;
    } else {
        let (tree, errors) = DeTable::parse_recoverable(text);
        incomplete |= !errors.is_empty();
        let draft = read::manifest(tree.get_ref(), &mut log);
        if errors.is_empty() {
            check::draft(&draft, today, &mut log);
            manifest = (!log.has_errors()).then(|| draft.machine()).flatten().map(|machine| Manifest {
                machine,
                component: draft.component.map(|component| component.value),
                source: text.to_owned(),
            });
        } else {
            keep_what_is_sure(&errors, &mut log);
            syntax(&errors, &mut log);
        }
    }
    let report = Report::new(name, text, log, incomplete);
    Report { manifest, ..report }
}

/// Reads another text of this project's as manifests are read: every problem at once, in the same words.
///
/// # Errors
/// What is wrong with it.
pub fn read<T>(
    name: &str,
    text: &str,
    keys: &Keys,
    read: impl FnOnce(&Table<'_>, &mut Log<'_>) -> Option<T>,
) -> Result<T, Box<Report>> {
    let (found, report) = walk(name, text, keys, |root, _, log| read(root, log));
    found.ok_or_else(|| Box::new(report))
}

/// Reads a text: what it says, if there is no error in it, and every problem. `read` is told whether all of the text
/// is there, so that what hangs on the whole of it can be judged.
pub(crate) fn walk<T>(
    name: &str,
    text: &str,
    keys: &Keys,
    read: impl FnOnce(&Table<'_>, bool, &mut Log<'_>) -> Option<T>,
) -> (Option<T>, Report) {
    let mut log = Log::new(text);
    if text.len() > MANIFEST_BYTES_MAX {
        let message = format!("the text is {} bytes", text.len());
        log.add(Code::TooLarge, &(0..0), message, format!("keep it at most {MANIFEST_BYTES_MAX} bytes"));
        return (None, Report::new(name, text, log, true));
    }
    let (tree, errors) = DeTable::parse_recoverable(text);
    let is_toml = errors.is_empty();
    let found = read(&Table::root(tree.get_ref(), keys, &mut log), is_toml, &mut log);
    if !is_toml {
        keep_what_is_sure(&errors, &mut log);
        syntax(&errors, &mut log);
    }
    let found = found.filter(|_| is_toml && !log.has_errors());
    (found, Report::new(name, text, log, !is_toml))
}

/// A syntax error swallows what stands around it. Dropped are: what is reported on its line, what may
/// only seem to be missing, and keys behind it that may belong to another table.
fn keep_what_is_sure(errors: &[toml::de::Error], log: &mut Log<'_>) {
    let starts = || errors.iter().filter_map(toml::de::Error::span).map(|span| span.start);
    let lines: BTreeSet<usize> = starts().map(|at| log.line(at)).collect();
    let first = starts().min().unwrap_or(0);
    log.retain(|problem| {
        let unsure = problem.code == Code::UnknownKey.text() && problem.span.start > first;
        problem.code != Code::MissingKey.text() && !unsure && !lines.contains(&problem.line)
    });
}

fn syntax(errors: &[toml::de::Error], log: &mut Log<'_>) {
    for error in errors {
        let said = error.message();
        let (message, expected) = match said.split_once(", expected ") {
            Some((message, expected)) => (message, Some(expected)),
            None => (said, None),
        };
        let remedy = match (message, expected) {
            ("recursion limit", _) => "nest it less deeply".to_owned(),
            ("duplicate key", _) => "keep one of them".to_owned(),
            ("string values must be quoted", _) => "write text in quotes".to_owned(),
            (_, Some(expected)) => format!("write {} here", excerpt(expected)),
            (_, None) => "correct it as TOML asks".to_owned(),
        };
        let entry =
            log.add(Code::Syntax, &error.span().unwrap_or(0..0), format!("not TOML: {}", excerpt(message)), remedy);
        if let Some(expected) = expected {
            entry.expected(excerpt(expected));
        }
    }
}
