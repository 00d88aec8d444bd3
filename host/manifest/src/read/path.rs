//! Paths and sources as a text writes them: of an entity's documents in a machine, of one row in a table.

use crate::keys;
use crate::log::{Log, Spot, excerpt};
use crate::node::Node;
use crate::path::of_row;
use crate::problem::Code;
use interlock_kernel::value::{Path, Root, Source};

/// What the paths of a text are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paths {
    /// An event and an entity's documents, each by its name: `data.size`.
    Documents,
    /// One row: `size` is its field, and so is `row.size`.
    Row,
}

impl Paths {
    pub(crate) fn guard_remedy(self) -> &'static str {
        match self {
            Self::Documents => {
                "write { field = \"event.size\", op = \"gt\", value = 1 }, { all = [...] } or { any = [...] }"
            }
            Self::Row => {
                "write { status = \"pending\" }, { field = \"size\", op = \"gt\", value = 1 }, { all = [...] } or { any = [...] }"
            }
        }
    }

    pub(super) fn field_remedy(self) -> &'static str {
        match self {
            Self::Documents => "say which field is compared: field = \"event.size\"",
            Self::Row => "say which field is compared: field = \"status\"",
        }
    }

    pub(super) fn value_remedy(self) -> &'static str {
        match self {
            Self::Documents => "say what it is compared with: value = 1, or value = { from = \"data.size\" }",
            Self::Row => "say what it is compared with: value = 1, or value = { from = \"now-5m\" }",
        }
    }

    /// The field that a comparison looks at.
    pub(crate) fn field(self, text: &Spot<&str>, log: &mut Log<'_>) -> Option<Spot<Path>> {
        let path = self.path(text, log)?;
        if self == Self::Documents && path.value.root == Root::Row {
            no_row(&path.value, text, log);
            return None;
        }
        Some(path)
    }

    /// The field that a change writes.
    pub(super) fn settable(self, key: &Spot<&str>, log: &mut Log<'_>) -> Option<Spot<Path>> {
        let field = self.path(key, log)?;
        if self == Self::Documents && !matches!(field.value.root, Root::Data | Root::Outputs) {
            let name = excerpt(key.value);
            let remedy = "set fields of data or outputs; clients write desired";
            log.add(Code::BadPath, &key.at, format!("`{name}` cannot be set"), remedy)
                .expected("a path that begins with data or outputs")
                .got(name);
            return None;
        }
        Some(field)
    }

    fn path(self, text: &Spot<&str>, log: &mut Log<'_>) -> Option<Spot<Path>> {
        let read = match self {
            Self::Documents => text.value.parse::<Path>(),
            Self::Row => of_row(text.value),
        };
        let why = match read {
            Ok(path) => return Some(Spot { value: path, at: text.at.clone() }),
            Err(why) => why,
        };
        // The kernel's own words name `row` too, which moves do not see.
        let known = ["event", "desired", "data", "outputs", "row"]
            .contains(&text.value.split(['.', '[']).next().unwrap_or_default());
        let (remedy, expected) = match self {
            Self::Row => ("write the way from the row: \"status\", \"nodes[0].name\"", excerpt(&why)),
            Self::Documents if known => (DOCUMENTS, excerpt(&why)),
            Self::Documents => (DOCUMENTS, "event, desired, data or outputs first".to_owned()),
        };
        let message = format!("{:?} is not a field path", excerpt(text.value));
        log.add(Code::BadPath, &text.at, message, remedy).expected(expected).got(excerpt(text.value));
        None
    }

    /// What `from` names.
    pub(super) fn source(self, node: &Node<'_>, log: &mut Log<'_>) -> Option<Source> {
        let text = node.text(log)?;
        let remedy = match self {
            Self::Documents => "use now, now+5m, now-90s, execution, or a field such as \"event.size\"",
            Self::Row => "use now, now+5m, now-90s, execution, or a field of the row such as \"row.size\"",
        };
        match text.value.parse::<Source>() {
            Ok(Source::Field(path)) if self == Self::Documents && path.root == Root::Row => {
                no_row(&path, &text, log);
                None
            }
            Ok(Source::Field(path)) if self == Self::Row && path.root != Root::Row => {
                let message = format!("`{path}`: a table sees its row alone, whoever claims it");
                log.add(Code::BadPath, &text.at, message, remedy).got(excerpt(text.value));
                None
            }
            Ok(source) => Some(source),
            Err(_) => {
                let message = format!("{:?} is not a source", excerpt(text.value));
                let bare = text.value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']'));
                let field = of_row(text.value).ok().filter(|_| self == Self::Row && bare);
                let remedy =
                    field.map_or(remedy.to_owned(), |field| format!("a field of the row is written `{field}`"));
                log.add(Code::BadPath, &text.at, message, remedy).got(excerpt(text.value));
                None
            }
        }
    }

    /// A path without quotes is a table in a table to TOML: `data.size = 1`.
    pub(crate) fn unquoted(self, key: &Spot<&str>, node: &Node<'_>, log: &mut Log<'_>) -> bool {
        let mut inner = node.keys().into_iter().filter(|name| !keys::CHANGE.names.contains(&name.value));
        let slips = |inner: &Spot<&str>| match self {
            Self::Documents => matches!(key.value, "data" | "outputs"),
            // A field of the row may be called anything: the dot between them tells.
            Self::Row => inner.at.start == key.at.end + 1,
        };
        let Some(inner) = inner.next().filter(slips) else { return false };
        let path = excerpt(&format!("{}.{}", key.value, inner.value));
        let message = format!("`{path}` is read as a table in a table");
        log.add(Code::BadPath, &key.at, message, format!("write the path in quotes: \"{path}\" = ..."));
        true
    }
}

const DOCUMENTS: &str = "write the document and the field: \"event.size\", \"data.nodes[0]\"";

fn no_row(path: &Path, text: &Spot<&str>, log: &mut Log<'_>) {
    let remedy = "use event, desired, data or outputs";
    log.add(Code::BadPath, &text.at, format!("`{path}`: a machine's moves see no row"), remedy)
        .got(excerpt(text.value));
}
